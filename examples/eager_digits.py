"""Train a small convolutional network on scikit-learn's handwritten digits, eagerly.

Run with the `examples` extra installed: `python examples/eager_digits.py`. It prints a progress line for
each epoch, the loss as a curve, and the accuracy on digits that it has not seen. At the end the same model,
written in plain NumPy, goes through the compiler: its gradient agrees with the eager one.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits

import srcgrad as sg
from srcgrad import nn

BARS = "▁▂▃▄▅▆▇█"


def curve(losses: list[float], width: int = 60) -> str:
    """The losses as a line of bars, each the mean of a stretch."""
    parts = np.array_split(np.array(losses), min(width, len(losses)))
    heights = np.array([p.mean() for p in parts])
    scaled = (heights / heights.max() * (len(BARS) - 1)).astype(int)
    return "".join(BARS[i] for i in scaled)


def progress(epoch: int, done: float, loss: float) -> None:
    if done < 1 and not sys.stdout.isatty():
        return
    filled = int(30 * done)
    end = "\n" if done == 1 else ""
    start = "\r" if sys.stdout.isatty() else ""
    print(f"{start}epoch {epoch} [{'#' * filled:<30}] loss {loss:.4f}", end=end, flush=True)


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def convolve(x, w, b):
    """A 3 x 3 convolution of images with channels last, in plain NumPy."""
    height, width = x.shape[1], x.shape[2]
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = b
    for i in range(3):
        for j in range(3):
            out = out + wide[:, i : i + height, j : j + width] @ w[i, j]
    return out


def pool(x):
    n, height, width, channels = x.shape
    return np.max(np.reshape(x, (n, height // 2, 2, width // 2, 2, channels)), axis=(2, 4))


def plain_loss(w1, b1, w2, b2, w3, b3, images, labels):
    """The cross-entropy of the same network, in plain NumPy."""
    x = pool(np.maximum(convolve(images, w1, b1), 0))
    x = pool(np.maximum(convolve(x, w2, b2), 0))
    scores = np.reshape(np.transpose(x, (0, 3, 1, 2)), (len(labels), -1)) @ w3 + b3
    scores = scores - np.max(scores, axis=1, keepdims=True)
    logs = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(logs[np.arange(len(labels)), labels])


def compare(net: nn.Sequential, images: sg.Tensor, labels: sg.Tensor) -> float:
    """The largest difference between the compiled gradient and the eager one."""
    net.double().zero_grad()
    nn.functional.cross_entropy(net(images.double()), labels).backward()
    layout = [(2, 3, 1, 0), (0,), (2, 3, 1, 0), (0,), (1, 0), (0,)]
    plain = [p.detach().permute(*d).numpy() for p, d in zip(net.parameters(), layout, strict=True)]
    compiled = sg.grad(plain_loss, argnums=tuple(range(6)))
    got = compiled(*plain, images.double().permute(0, 2, 3, 1).numpy(), labels.numpy())
    eager = [p.grad.permute(*d).numpy() for p, d in zip(net.parameters(), layout, strict=True)]
    return max(float(np.abs(a - b).max()) for a, b in zip(got, eager, strict=True))


def main(epochs: int = 5, batch: int = 64) -> float:
    sg.manual_seed(0)
    digits = load_digits()
    images = sg.tensor(digits.images[:, None].astype(np.float32) / 16)
    labels = sg.tensor(digits.target.astype(np.int64))
    order = sg.randperm(len(labels))
    seen, unseen = order[:1437], order[1437:]

    net = network()
    optimizer = sg.optim.Adam(net.parameters(), lr=5e-3)
    losses: list[float] = []
    for epoch in range(1, epochs + 1):
        shuffled = seen[sg.randperm(len(seen))]
        parts = shuffled.split(batch)
        for i, part in enumerate(parts, 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images[part]), labels[part])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            progress(epoch, i / len(parts), losses[-1])

    with sg.no_grad():
        guessed = net(images[unseen]).argmax(1)
    accuracy = (guessed == labels[unseen]).float().mean().item()
    print("loss", curve(losses))
    print(f"accuracy on {len(unseen)} unseen digits: {accuracy:.1%}")
    part = unseen[:64]
    difference = compare(net, images[part], labels[part])
    print(f"compiled and eager gradient differ by at most {difference:.1e}")
    return accuracy


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
