"""Train a small convolutional network on scikit-learn's handwritten digits, eagerly.

Run with the `examples` extra installed: `python examples/eager_digits.py`. It prints a progress line for
each epoch, the loss as a curve, and the accuracy on digits that it has not seen.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits

import srcgrad as sg
from srcgrad import nn

BARS = " ▁▂▃▄▅▆▇█"


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
    return accuracy


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
