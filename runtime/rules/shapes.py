"""Rules for functions that rearrange an array (NumPy manual, "Array manipulation routines")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, nondifferentiable, reverse
from srcgrad.runtime.support import grid_sum, read_order, unbroadcast, unrepeat, untile, window_scatter

X = generic(3)
M = generic(2, 3)
T = generic(2, 3, 4)


@reverse(
    np.reshape,
    linear=True,
    alias="maybe",
    at=[(M, 6), (M, (3, 2)), (M, (-1,)), case(M, (3, 2), order="F"), (1.5, 1)],
)
def reshape(g, y, a, shape, order="C", *, copy=None):
    return np.reshape(g, np.shape(a), order=read_order(a, order))


@reverse(np.ravel, np.ndarray.ravel, linear=True, alias="maybe", at=[M, X, 1.5, case(M, order="F"), (T, "F")])
def ravel(g, y, a, order="C"):
    if order == "C":
        return np.reshape(g, np.shape(a))
    return np.reshape(g, np.shape(a), order=read_order(a, order))


@reverse(np.ndarray.flatten, linear=True, at=[M, X, (T, "F")])
def flatten(g, y, a, order="C"):
    return np.reshape(g, a.shape, order=read_order(a, order))


@reverse(
    np.transpose, np.permute_dims, linear=True, alias="maybe", at=[X, M, T, (T, (1, 2, 0)), (T, (0, -1, 1))]
)
def transpose(g, y, a, axes=None):
    if axes is None:
        return np.transpose(g)
    return np.transpose(g, np.argsort(np.mod(axes, np.ndim(a))))


@reverse(np.matrix_transpose, np.linalg.matrix_transpose, linear=True, alias="maybe", at=[M, T])
def matrix_transpose(g, y, x):
    return np.matrix_transpose(g)


@reverse(np.swapaxes, np.ndarray.swapaxes, linear=True, alias="maybe", at=[(M, 0, 1), (T, -1, 0)])
def swapaxes(g, y, a, axis1, axis2):
    return np.swapaxes(g, axis1, axis2)


@reverse(np.moveaxis, linear=True, alias="maybe", at=[(T, 0, 2), (T, (0, 1), (-1, 0)), (T, -1, 0)])
def moveaxis(g, y, a, source, destination):
    return np.moveaxis(g, destination, source)


@reverse(np.rollaxis, linear=True, alias="maybe", at=[(T, 2), (T, 0, 2), (T, -1, 1), (T, 0, 3), (T, 1, 1)])
def rollaxis(g, y, a, axis, start=0):
    axis, start = axis % np.ndim(a), start + (np.ndim(a) if start < 0 else 0)
    return np.moveaxis(g, start - 1 if axis < start else start, axis)


@reverse(np.expand_dims, linear=True, alias="view", at=[(M, 0), (M, -1), (M, (0, 2)), (1.5, 0)])
def expand_dims(g, y, a, axis):
    return np.reshape(g, np.shape(a))


@reverse(np.squeeze, np.ndarray.squeeze, linear=True, alias="view", at=[M[None], case(M[:, None], axis=1), M])
def squeeze(g, y, a, axis=None):
    return np.reshape(g, np.shape(a))


@reverse(
    np.atleast_1d,
    np.atleast_2d,
    np.atleast_3d,
    wrt="arys",
    linear=True,
    alias="maybe",
    at=[1.5, X, M, T, (1.5, M)],
)
def atleast(g, y, *arys):
    parts = g if len(arys) > 1 else [g]
    found = [np.reshape(parts[i], np.shape(arys[i])) for i in range(len(arys))]
    return found


@reverse(
    np.broadcast_to,
    linear=True,
    alias="view",
    at=[(X, (2, 3)), (M, (2, 3)), (1.5, (2, 2)), (M[:, :1], (2, 3))],
)
def broadcast_to(g, y, array, shape):
    return unbroadcast(g, array)


@reverse(np.broadcast_arrays, wrt="args", linear=True, alias="view", at=[(X, M), (1.5, X[:, None])])
def broadcast_arrays(g, y, *args):
    parts = [unbroadcast(g[i], args[i]) for i in range(len(args))]
    return parts


@reverse(
    np.meshgrid,
    wrt="xi",
    linear=True,
    at=[(X, generic(2)), case(X, generic(2), indexing="ij"), (X, generic(2), X), case(X, X[:2], sparse=True)],
)
def meshgrid(g, y, *xi, indexing="xy", sparse=False, copy=True):
    parts = []
    for i in range(len(xi)):
        axis = 1 - i if indexing == "xy" and i < 2 and len(xi) > 1 else i
        parts.append(np.reshape(g[i], np.shape(xi[i])) if sparse else grid_sum(g[i], axis, xi[i]))
    return parts


@reverse(np.flip, linear=True, alias="view", at=[M, (M, 0), (T, (0, -1))])
def flip(g, y, m, axis=None):
    return np.flip(g, axis)


@reverse(np.fliplr, linear=True, alias="view", at=[M])
def fliplr(g, y, m):
    return np.fliplr(g)


@reverse(np.flipud, linear=True, alias="view", at=[M, X])
def flipud(g, y, m):
    return np.flipud(g)


@reverse(np.rot90, linear=True, alias="maybe", at=[M, (M, 2), (T, 3, (1, 2)), (M, -1)])
def rot90(g, y, m, k=1, axes=(0, 1)):
    return np.rot90(g, -k, axes)


@reverse(np.roll, linear=True, at=[(X, 1), (M, 2), (M, 1, 0), (M, (1, -1), (0, 1))])
def roll(g, y, a, shift, axis=None):
    return np.roll(g, np.negative(shift), axis)


@reverse(
    np.repeat,
    np.ndarray.repeat,
    linear=True,
    at=[(X, 2), (M, 2, 1), (M, 3), (X, np.array([1, 0, 2])), (M, np.array([2, 1]), 0)],
)
def repeat(g, y, a, repeats, axis=None):
    return unrepeat(g, a, repeats, axis)


@reverse(np.tile, linear=True, at=[(X, 2), (X, (2, 2)), (M, (2, 1)), (M, 2), (1.5, 3), (T, (2, 1))])
def tile(g, y, A, reps):
    return untile(g, A, reps)


@reverse(
    np.lib.stride_tricks.sliding_window_view,
    linear=True,
    alias="view",
    at=[(generic(5), 3), (M, (2, 2)), case(M, 2, axis=1), case(T, (2, 3), axis=(1, -1))],
)
def sliding_window_view(g, y, x, window_shape, axis=None):
    return window_scatter(g, x, window_shape, axis)


nondifferentiable(np.shape, np.ndim, np.size, np.broadcast_shapes, np.shares_memory, np.may_share_memory)
