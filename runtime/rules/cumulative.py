"""Rules for running sums and products and for differences (NumPy manual, "Sums, products, differences")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import exclusive_cumprod, recurrence, recurrence_adjoint, undiff

X = generic(4)
M = generic(3, 4)
AXES = [X, M, (M, 0), (M, -1), case(generic(2, 3, 2), axis=1)]


@reverse(np.cumsum, np.ndarray.cumsum, linear=True, at=AXES)
def cumsum(g, y, a, axis=None, dtype=None):
    if axis is None:
        return np.reshape(np.flip(np.cumsum(np.flip(g))), np.shape(a))
    return np.flip(np.cumsum(np.flip(g, axis), axis), axis)


@reverse(np.cumprod, np.ndarray.cumprod, at=[*AXES, [2.0, 0.0, 3.0], [0.0, 2.0, 0.0]])
def cumprod(g, y, a, axis=None, dtype=None):
    """No division by the elements, so that zeros among them are no exception."""
    if axis is None:
        return np.reshape(exclusive_cumprod(np.ravel(a)) * recurrence_adjoint(np.ravel(a), g), np.shape(a))
    last = np.moveaxis(a, axis, -1)
    return np.moveaxis(exclusive_cumprod(last) * recurrence_adjoint(last, np.moveaxis(g, axis, -1)), -1, axis)


@forward(np.cumprod)
def cumprod_forward(a_dot, y, a, axis=None, dtype=None):
    if axis is None:
        return recurrence(np.ravel(a), np.ravel(a_dot) * exclusive_cumprod(np.ravel(a)))
    last = np.moveaxis(a, axis, -1)
    return np.moveaxis(recurrence(last, np.moveaxis(a_dot, axis, -1) * exclusive_cumprod(last)), -1, axis)


@reverse(np.diff, linear=True, at=[X, M, (M, 2), (M, 1, 0), (X, 0), case(M, n=3, axis=1)])
def diff(g, y, a, n=1, axis=-1):
    return undiff(g, n, axis)
