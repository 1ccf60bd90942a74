"""Test inputs for the rules' `at=`: arrays of generic numbers, the same on every run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def generic(*shape: int, low: float = -1.7, high: float = 1.9, seed: int = 0) -> Any:
    """An array of numbers in (low, high) that are well apart from one another and from 0.

    >>> generic(2, 2).shape
    (2, 2)
    """
    n = math.prod(shape)
    order = (np.arange(n) * 0.6180339887498949 + 0.137 + 0.29 * seed) % 1.0
    values = low + (high - low) * order
    if low < 0 < high:
        values = values + np.where(values < 0, -0.05, 0.05)
    return values.reshape(shape)


def positive(*shape: int, seed: int = 0) -> Any:
    """An array of numbers in (0.2, 2.5)."""
    return generic(*shape, low=0.2, high=2.5, seed=seed)


def complexes(*shape: int, seed: int = 0) -> Any:
    """An array of complex numbers away from the axes."""
    return generic(*shape, seed=seed) + 1j * generic(*shape, seed=seed + 1)


def square(*shape: int, seed: int = 0) -> Any:
    """A well conditioned matrix, or a batch of them."""
    return generic(*shape, seed=seed) + 3.0 * np.eye(shape[-1])


def definite(*shape: int, seed: int = 0) -> Any:
    """A symmetric positive definite matrix, or a batch of them, with distinct eigenvalues."""
    a = generic(*shape, seed=seed)
    return a @ np.swapaxes(a, -1, -2) + np.diag(1.0 + np.arange(shape[-1]))
