"""Rules for the methods and attributes of arrays that differ from the function of the same name.

The first parameter is the array itself. Methods with the signature of a function (`x.sum`, `x.cumsum`, ...)
are filed together with that function.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic
from srcgrad.runtime.rules.table import case, nondifferentiable, reverse
from srcgrad.runtime.support import scatter, unbroadcast

X = generic(3)
M = generic(2, 3)
T = generic(2, 3, 4)
Z = complexes(2, 3)


@reverse(
    np.ndarray.reshape,
    linear=True,
    alias="maybe",
    at=[(M, 6), (M, 3, 2), (M, (3, -1)), case(M, 3, 2, order="F")],
)
def reshape(g, y, x, *shape, order="C"):
    return np.reshape(g, x.shape, order=order)


@reverse(np.ndarray.transpose, linear=True, alias="view", at=[M, (T, 1, 2, 0), (T, (2, 0, 1)), T, (T, None)])
def transpose(g, y, x, *axes):
    if len(axes) == 0 or axes[0] is None:
        return g.T
    return np.transpose(g, np.argsort(np.mod(axes if len(axes) > 1 else axes[0], x.ndim)).reshape(-1))


@reverse(np.ndarray.T, linear=True, alias="view", at=[X, M, T])
def T_(g, y, x):
    return np.transpose(g)


@reverse(np.ndarray.mT, linear=True, alias="view", at=[M, T])
def mT(g, y, x):
    return np.matrix_transpose(g)


@reverse(np.ndarray.real, linear=True, alias="view", at=[M, Z])
def real(g, y, x):
    if np.iscomplexobj(x):
        return np.real(g) + 0j
    return g


@reverse(np.ndarray.imag, linear=True, alias="view", at=[M, Z])
def imag(g, y, x):
    if np.iscomplexobj(x):
        return -1j * np.real(g)
    return np.zeros_like(x)


@reverse(np.ndarray.copy, np.ndarray.__copy__, linear=True, at=[X, M])
def copy(g, y, x, order="C"):
    return g


@reverse(np.ndarray.item, linear=True, at=[[1.5], (X, 1), (M, 4), (M, 1, 2), (M, (1, 0))])
def item(g, y, x, *args):
    if len(args) == 0:
        return unbroadcast(g, x)
    if len(args) == 1 and isinstance(args[0], int):
        return np.reshape(scatter(g, np.ravel(x), args[0]), x.shape)
    return scatter(g, x, args if len(args) > 1 else args[0])


@reverse(np.ndarray.tolist, linear=True, at=[X, M])
def tolist(g, y, x):
    return unbroadcast(np.array(g), x)


@reverse(np.ndarray.__float__, at=[np.array(2.5)], linear=True)
def float_(g, y, x):
    return unbroadcast(g, x)


@reverse(
    np.ndarray.view,
    linear=True,
    alias="view",
    at=[M, (M.copy(), np.float64), (Z, np.float64), (generic(2, 4), complex)],
)
def view(g, y, x, dtype=None):
    """A complex number is a pair of real ones."""
    return np.conj(np.ascontiguousarray(np.conj(g)).view(x.dtype))


nondifferentiable(np.ndarray.shape, np.ndarray.ndim, np.ndarray.size, np.ndarray.dtype, np.ndarray.itemsize)
nondifferentiable(np.ndarray.nbytes, np.ndarray.strides, np.ndarray.flags, np.ndarray.base, np.ndarray.data)
nondifferentiable(np.ndarray.__len__, np.ndarray.__bool__, np.ndarray.__int__, np.ndarray.__contains__)
nondifferentiable(
    np.ndarray.dump, np.ndarray.dumps, np.ndarray.tofile, np.ndarray.setflags, np.ndarray.device
)
nondifferentiable(np.ndarray.round, np.ndarray.tobytes, np.ndarray.__index__)
