"""Where decisions come from: a seeded `random.Random`, or hypothesis, which can then shrink them.

Every decision is an integer in a range, and the simplest choice is the smallest one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions built on one function that gives an integer between two bounds, both included."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        return cls(random.Random(seed).randint)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        at = self.integer(0, sum(w for w, _ in options) - 1)
        for weight, option in options:
            at -= weight
            if at < 0:
                return option
        raise AssertionError("weights don't add up")

    def number(self, low: float, high: float, step: float = 0.01) -> float:
        """A short decimal; never a round one, so that ties and thresholds hit by chance stay rare."""
        return round(low + step * self.integer(0, round((high - low) / step)) + 0.003, 6)

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """`count` different options, in their order."""
        left = list(range(len(options)))
        while len(left) > count:
            left.pop(self.integer(0, len(left) - 1))
        return [options[i] for i in left]
