"""Functions that the tests differentiate from a module of their own, as users do."""

from __future__ import annotations

import numpy as np

RATE = 2.0


def square(x):
    """The square of x."""
    return x * x


def scaled(x, by=2.0, *, shift=0.0):
    return x * by + shift


def by_rate(x):
    return RATE * x


def helper(x):
    return 3.0 * x


def uses_helper(x):
    return helper(x) * x


def fails(x):
    y = x * 2.0
    return y / np.array([1.0]).item(int(y) * 0 + 5)


def fails_inside(x):
    return fails(x) * x
