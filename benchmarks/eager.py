"""The eager half beside PyTorch: one thread, CPU time, medians, rounds interleaved.

    python -m benchmarks.eager [--quick]

prints a Markdown table with one row per measurement and the goal where the project states one.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import srcgrad as sg

Work = Callable[[], Any]


def chain(m: Any, start: Any) -> Work:
    """1,000 multiplications forward and backward."""

    def run() -> None:
        y = start
        for _ in range(1000):
            y = y * 1.0001
        (y if y.ndim == 0 else y.sum()).backward()

    return run


def step(m: Any, sizes: tuple[int, ...], optimizer: bool) -> Work:
    """A multilayer perceptron: forward and backward, and an Adam step."""
    layers: list[Any] = []
    for a, b in zip(sizes, sizes[1:], strict=False):
        layers += [m.nn.Linear(a, b), m.nn.ReLU()]
    net = m.nn.Sequential(*layers[:-1])
    x, y = m.randn(32, sizes[0]), m.randn(32, sizes[-1])
    adam = m.optim.Adam(net.parameters()) if optimizer else None

    def run() -> None:
        net.zero_grad()
        m.nn.functional.mse_loss(net(x), y).backward()
        if adam is not None:
            adam.step()

    return run


@functools.cache
def index(m: Any) -> Any:
    return m.tensor([1, 0])


@functools.cache
def column(m: Any) -> Any:
    return m.tensor([[1], [0]])


@functools.cache
def mask(m: Any) -> Any:
    return m.tensor([[True, False], [False, True]])


OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a + b": lambda m, a, b: a + b,
    "a * b": lambda m, a, b: a * b,
    "a / b": lambda m, a, b: a / b,
    "a @ b": lambda m, a, b: a @ b,
    "a * 2.0": lambda m, a, b: a * 2.0,
    "a ** 2": lambda m, a, b: a**2,
    "a.exp()": lambda m, a, b: a.exp(),
    "a.tanh()": lambda m, a, b: a.tanh(),
    "a.relu()": lambda m, a, b: a.relu(),
    "a.sum()": lambda m, a, b: a.sum(),
    "a.mean()": lambda m, a, b: a.mean(),
    "a[0]": lambda m, a, b: a[0],
    "a.reshape(4)": lambda m, a, b: a.reshape(4),
    "a.t()": lambda m, a, b: a.t(),
    "a.softmax(1)": lambda m, a, b: a.softmax(1),
    "a - b": lambda m, a, b: a - b,
    "a[:, 0]": lambda m, a, b: a[:, 0],
    "a[0, 1]": lambda m, a, b: a[0, 1],
    "a[[0, 1]]": lambda m, a, b: a[[0, 1]],
    "a.view(-1)": lambda m, a, b: a.view(-1),
    "a.transpose(0, 1)": lambda m, a, b: a.transpose(0, 1),
    "a.unsqueeze(0)": lambda m, a, b: a.unsqueeze(0),
    "a.sum(1)": lambda m, a, b: a.sum(1),
    "a.max()": lambda m, a, b: a.max(),
    "a.max(1)": lambda m, a, b: a.max(1).values,
    "a.clamp(0, 1)": lambda m, a, b: a.clamp(0, 1),
    "a.log()": lambda m, a, b: a.log(),
    "a.sigmoid()": lambda m, a, b: a.sigmoid(),
    "cat([a, b])": lambda m, a, b: m.cat([a, b]),
    "stack([a, b])": lambda m, a, b: m.stack([a, b]),
    "where(a > 0, a, b)": lambda m, a, b: m.where(a > 0, a, b),
    "linear(a, b)": lambda m, a, b: m.nn.functional.linear(a, b),
    "mse_loss(a, b)": lambda m, a, b: m.nn.functional.mse_loss(a, b),
    "log_softmax(a, 1)": lambda m, a, b: m.nn.functional.log_softmax(a, 1),
    "a.maximum(b)": lambda m, a, b: a.maximum(b),
    "a.std()": lambda m, a, b: a.std(),
    "a.norm()": lambda m, a, b: a.norm(),
    "a.cumsum(0)": lambda m, a, b: a.cumsum(0),
    "a.expand(3, 2, 2)": lambda m, a, b: a.expand(3, 2, 2),
    "a.unbind()": lambda m, a, b: a.unbind()[0],
    "a.clone()": lambda m, a, b: a.clone(),
    "a.gather(1, i)": lambda m, a, b: a.gather(1, column(m)),
    "a[i]": lambda m, a, b: a[index(m)],
    "a.masked_fill(mask, 0)": lambda m, a, b: a.masked_fill(mask(m), 0.0),
    "embedding(i, a)": lambda m, a, b: m.nn.functional.embedding(index(m), a),
    "layer_norm(a)": lambda m, a, b: m.nn.functional.layer_norm(a, (2,)),
    "cross_entropy(a, i)": lambda m, a, b: m.nn.functional.cross_entropy(a, index(m)),
    "silu(a)": lambda m, a, b: m.nn.functional.silu(a),
    "gelu(a)": lambda m, a, b: m.nn.functional.gelu(a),
}


def forward(m: Any, operation: Callable[[Any, Any, Any], Any]) -> Work:
    """200 times one operation on 2x2 tensors, recorded."""
    a, b = m.ones(2, 2, requires_grad=True), m.ones(2, 2, requires_grad=True)

    def run() -> None:
        for _ in range(200):
            operation(m, a, b)

    return run


def both(m: Any, operation: Callable[[Any, Any, Any], Any]) -> Work:
    """100 times one operation on 2x2 tensors, forward and backward."""
    a, b = m.ones(2, 2, requires_grad=True), m.ones(2, 2, requires_grad=True)
    seed = m.ones(tuple(operation(m, a, b).shape))

    def run() -> None:
        for _ in range(100):
            operation(m, a, b).backward(seed)

    return run


def measurements(m: Any) -> dict[str, tuple[Work, int, float | None]]:
    """Name -> what to run, how many operations that is, and the goal as a ratio to PyTorch."""
    found: dict[str, tuple[Work, int, float | None]] = {
        "chain of 1,000, 0-dim": (chain(m, m.tensor(1.0, requires_grad=True)), 1, 0.5),
        "chain of 1,000, 100-vector": (chain(m, m.ones(100, requires_grad=True)), 1, 0.7),
        "MLP 64-64-64-64, batch 32": (step(m, (64, 64, 64, 64), False), 1, 0.8),
        "MLP 64-64-64, batch 32, with Adam": (step(m, (64, 64, 64), True), 1, None),
    }
    for name, operation in OPERATIONS.items():
        found[f"{name}, forward"] = (forward(m, operation), 200, None)
        found[f"{name}, forward and backward"] = (both(m, operation), 100, 1.0)
    return found


def main(rounds: int) -> None:
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        sys.exit("benchmarks.eager compares with PyTorch: pip install torch")
    works = {"torch": measurements(torch), "srcgrad": measurements(sg)}
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name in works["torch"]:
            for library, table in works.items():
                work, count, _ = table[name]
                start = time.process_time()
                work()
                times.setdefault((library, name), []).append((time.process_time() - start) / count * 1e6)
    print("| microseconds | PyTorch | srcgrad | ratio | goal |\n|---|---|---|---|---|")
    for name, (_, _, goal) in works["torch"].items():
        theirs, ours = (statistics.median(times[library, name][1:]) for library in ("torch", "srcgrad"))
        print(
            f"| {name} | {theirs:.2f} | {ours:.2f} | {ours / theirs:.2f} | "
            f"{goal if goal is not None else ''} |"
        )


if __name__ == "__main__":
    main(8 if "--quick" in sys.argv else 40)
