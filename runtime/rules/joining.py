"""Rules for joining, splitting and padding (NumPy manual, "Joining arrays", "Splitting arrays",
`numpy.pad`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import split_like, unblock, unbroadcast, unpad, unstack

X = generic(3)
M = generic(2, 3)
T = generic(2, 3, 4)
PAIR = (M, generic(2, 3, seed=1))


@reverse(
    np.concatenate, linear=True, at=[((X, X[:2]),), (PAIR, 1), case(PAIR, axis=-1), (PAIR, None), ((M,), 0)]
)
def concatenate(g, y, arrays, axis=0):
    return split_like(g, arrays, axis)


@reverse(np.stack, linear=True, at=[((X, X),), (PAIR, 1), case(PAIR, axis=-1), ((1.0, 2.5),)])
def stack(g, y, arrays, axis=0):
    if axis == 0:
        return unstack(g, arrays)
    return unstack(np.moveaxis(g, axis, 0), arrays)


@reverse(np.vstack, linear=True, at=[((X, M),), (PAIR,), ((1.0, 2.5),), ((T, T[:1]),)])
def vstack(g, y, tup):
    return split_like(g, tup, 0, 2)


@reverse(np.hstack, linear=True, at=[((X, X[:2]),), (PAIR,), ((1.0, 2.5, X),), ((T, T[:, :1]),)])
def hstack(g, y, tup):
    return split_like(g, tup, 1 if g.ndim > 1 else 0, 1)


@reverse(np.dstack, linear=True, at=[((X, X),), (PAIR,), ((T, T[:, :, :1]),)])
def dstack(g, y, tup):
    return split_like(g, tup, 2, 3)


@reverse(np.column_stack, linear=True, at=[((X, generic(3, 2)),), ((X, X),)])
def column_stack(g, y, tup):
    return split_like(g, tup, 1, -2)


@reverse(
    np.append,
    wrt=("arr", "values"),
    linear=True,
    at=[(X, 2.5), (X, M), (M, X[None], 0), case(M, M[:, :1], axis=1)],
)
def append(g, y, arr, values, axis=None):
    return split_like(g, [arr, values], axis)[0], split_like(g, [arr, values], axis)[1]


@reverse(
    np.block, linear=True, at=[((1.0, 2.0),), (((M, M[:, :1]), (generic(1, 4),)),), ((X, X),), (((1.5, X),),)]
)
def block(g, y, arrays):
    return unblock(g, arrays)


@reverse(
    np.split,
    np.array_split,
    alias="view",
    linear=True,
    at=[(generic(4), 2), (generic(5), (2,)), case(M, 3, axis=1)],
)
def split(g, y, ary, indices_or_sections, axis=0):
    return np.concatenate(g, axis)


@reverse(np.hsplit, alias="view", linear=True, at=[(generic(4), 2), (M, 3)])
def hsplit(g, y, ary, indices_or_sections):
    return np.concatenate(g, 1 if np.ndim(ary) > 1 else 0)


@reverse(np.vsplit, alias="view", linear=True, at=[(M, 2)])
def vsplit(g, y, ary, indices_or_sections):
    return np.concatenate(g, 0)


@reverse(np.dsplit, alias="view", linear=True, at=[(T, 2)])
def dsplit(g, y, ary, indices_or_sections):
    return np.concatenate(g, 2)


@reverse(np.unstack, alias="view", linear=True, at=[M, case(M, axis=1), X])
def unstack_(g, y, x, *, axis=0):
    return unbroadcast(np.stack(g, axis), x)


@reverse(
    np.pad,
    at=[
        (X, 2),
        (M, (1, 2)),
        (M, ((1, 0), (0, 2))),
        case(X, 2, mode="constant", constant_values=1.5),
        case(M, 2, mode="edge"),
        case(M, ((1, 1), (2, 2)), mode="reflect"),
        case(M, 4, mode="symmetric"),
        case(M, 4, mode="reflect"),
        case(M, ((1, 5), (7, 0)), mode="wrap"),
    ],
)
def pad(g, y, array, pad_width, mode="constant", *, constant_values=0):
    return unpad(g, array, pad_width, mode)


@forward(np.pad)
def pad_forward(array_dot, y, array, pad_width, mode="constant", *, constant_values=0):
    if mode == "constant":
        return np.pad(array_dot, pad_width)
    return np.pad(array_dot, pad_width, mode)
