"""What a checkpointed loop costs: time, memory and steps, for a scalar loop of a million steps.

python benchmarks/loops.py [steps]
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable

import srcgrad

X, R = 0.3, 1e-6


def step(i: int, x: float, r: float) -> float:
    return x + r * x * (1 - x)


def growth(n: int, x: float, r: float) -> float:
    for _ in range(n):
        x = x + r * x * (1 - x)
    return x


def measured(loop: Callable[..., float], n: int) -> tuple[float, float, float]:
    """(the gradient, seconds, peak memory in MiB)."""
    gradient = srcgrad.grad(loop, argnums=1)
    gradient(3, X, R)
    start = time.perf_counter()
    found = gradient(n, X, R)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    gradient(n, X, R)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, seconds, peak / 2**20


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{n} steps   gradient   seconds   peak MiB")
    print("everything saved  {:.9f}  {:7.2f}  {:8.2f}".format(*measured(growth, n)))
    for slots in (5, 10, 30, 100, 1000):
        found, seconds, peak = measured(srcgrad.checkpointed_loop(step, slots), n)
        print(f"{slots:5} slots       {found:.9f}  {seconds:7.2f}  {peak:8.2f}")


if __name__ == "__main__":
    main()
