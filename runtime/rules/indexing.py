"""Rules for selecting and ordering elements (NumPy manual, "Indexing routines" and "Sorting, searching, and
counting")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    chosen,
    diagonal_scatter,
    over,
    put_along,
    scatter,
    unbroadcast,
    under,
    within,
)

X = generic(4)
M = generic(2, 3)
T = generic(2, 3, 4)
MASK = np.array([[True, False, True], [False, True, True]])
INDEX = np.array([2, 0, 2])


@reverse(
    np.where,
    wrt=("x", "y"),
    linear=True,
    at=[
        (MASK, M, generic(3)),
        (MASK, 1.5, M),
        (True, 1.5, 2.5),
        (MASK[0], M, 0.0),
        (np.array([True, False]), 1.0, 2.0),
    ],
)
def where(g, z, condition, x, y):
    """The cotangent is masked before anything is multiplied by it: what was not selected gets an exact 0."""
    return unbroadcast(np.where(condition, g, 0), x), unbroadcast(np.where(condition, 0, g), y)


@reverse(
    np.select,
    wrt=("choicelist", "default"),
    linear=True,
    at=[((MASK, M > 0), (M, 1.5), 0.5), ((M > 1, M < -0.5), (M, -M), generic(3)), ((M > 1,), (M,))],
)
def select(g, y, condlist, choicelist, default=0):
    parts = [unbroadcast(np.where(chosen(condlist, i), g, 0), choicelist[i]) for i in range(len(choicelist))]
    return parts, unbroadcast(np.where(chosen(condlist, len(condlist)), g, 0), default)


@reverse(
    np.choose,
    wrt="choices",
    linear=True,
    at=[(np.array([1, 0, 1, 1]), (X, -X)), (np.array([[1], [0]]), (X, 1.5))],
)
def choose(g, y, a, choices):
    parts = [unbroadcast(np.where(np.equal(a, i), g, 0), choices[i]) for i in range(len(choices))]
    return parts


@reverse(np.ndarray.choose, wrt="choices", linear=True, at=[(np.array([1, 0, 1, 1]), (X, -X))])
def choose_method(g, y, a, choices):
    parts = [unbroadcast(np.where(np.equal(a, i), g, 0), choices[i]) for i in range(len(choices))]
    return parts


BOUNDS = [
    (M, -0.5, 0.7),
    (M, -0.5, None),
    (M, None, generic(3, seed=1)),
    (M, generic(3, high=-0.1, seed=2), 1.0),
    (0.3, 0.5, 1.0),
]


@reverse(
    np.clip,
    wrt=("a", "a_min", "a_max", "min", "max"),
    at=[*BOUNDS, case(M, min=-0.5, max=0.4), case(M, min=0.1)],
)
def clip(g, y, a, a_min=None, a_max=None, *, min=None, max=None):
    """On a bound the argument gets all; a bound gets what lies outside."""
    return (
        unbroadcast(g * within(a, a_min, a_max, min, max), a),
        unbroadcast(g * under(a, a_min, a_max), a_min),
        unbroadcast(g * over(a, a_min, a_max), a_max),
        unbroadcast(g * under(a, min, max), min),
        unbroadcast(g * over(a, min, max), max),
    )


@forward(np.clip)
def clip_forward(
    a_dot, a_min_dot, a_max_dot, min_dot, max_dot, y, a, a_min=None, a_max=None, *, min=None, max=None
):
    return (
        a_dot * within(a, a_min, a_max, min, max),
        None if a_min is None else unbroadcast(a_min_dot * under(a, a_min, a_max), y),
        None if a_max is None else unbroadcast(a_max_dot * over(a, a_min, a_max), y),
        None if min is None else unbroadcast(min_dot * under(a, min, max), y),
        None if max is None else unbroadcast(max_dot * over(a, min, max), y),
    )


@reverse(np.ndarray.clip, wrt=("a", "min", "max"), at=[b for b in BOUNDS if not isinstance(b[0], float)])
def clip_method(g, y, a, min=None, max=None):
    return (
        unbroadcast(g * within(a, min, max), a),
        unbroadcast(g * under(a, min, max), min),
        unbroadcast(g * over(a, min, max), max),
    )


@forward(np.ndarray.clip)
def clip_method_forward(a_dot, min_dot, max_dot, y, a, min=None, max=None):
    return (
        a_dot * within(a, min, max),
        None if min is None else unbroadcast(min_dot * under(a, min, max), y),
        None if max is None else unbroadcast(max_dot * over(a, min, max), y),
    )


# --- by index -----------------------------------------------------------------------------------------------


@reverse(
    np.take,
    np.ndarray.take,
    linear=True,
    at=[
        *[(X, INDEX), (M, 2), (M, INDEX, 1), case(M, 1, axis=0), (T, INDEX[None], 1)],
        *[case(X, INDEX + 3, mode="wrap"), case(M, INDEX, axis=0, mode="clip"), case(X, -INDEX, mode="clip")],
    ],
)
def take(g, y, a, indices, axis=None, *, mode="raise"):
    if axis is None:
        return np.reshape(scatter(g, np.ravel(a), taken(indices, np.size(a), mode)), np.shape(a))
    return scatter(g, a, (slice(None),) * (axis % np.ndim(a)) + (taken(indices, np.shape(a)[axis], mode),))


def taken(indices, n, mode):
    """The elements that `np.take` takes for the indices, for each of its modes."""
    if mode == "raise":
        return indices
    return np.mod(indices, n) if mode == "wrap" else np.clip(indices, 0, n - 1)


@reverse(
    np.take_along_axis,
    linear=True,
    at=[(M, np.array([[1, 1], [0, 2]]), 1), (M, np.array([[1, 0, 1]]), 0), (X, INDEX, None)],
)
def take_along_axis(g, y, arr, indices, axis=-1):
    return put_along(g, arr, indices, axis)


@reverse(np.compress, wrt="a", linear=True, at=[(MASK[0], X[:3]), (MASK[0], M, 1), (MASK[0], M)])
def compress(g, y, condition, a, axis=None):
    return take(g, y, a, np.flatnonzero(condition), axis)


@reverse(np.ndarray.compress, linear=True, at=[(X[:3], MASK[0]), (M, MASK[0], 1)])
def compress_method(g, y, a, condition, axis=None):
    return take(g, y, a, np.flatnonzero(condition), axis)


@reverse(np.extract, wrt="arr", linear=True, at=[(MASK, M)])
def extract(g, y, condition, arr):
    return np.reshape(scatter(g, np.ravel(arr), np.flatnonzero(condition)), np.shape(arr))


@reverse(
    np.diag,
    linear=True,
    alias="maybe",
    at=[X, generic(3, 3), M, (X, 1), (M, 1), (generic(3, 3), -1), (X, -2)],
)
def diag(g, y, v, k=0):
    if v.ndim == 1:
        return np.diag(g, k)
    return diagonal_scatter(g, v, k)


@reverse(np.diagflat, linear=True, at=[X, M, (X, 1)])
def diagflat(g, y, v, k=0):
    return np.reshape(np.diag(g, k), np.shape(v))


@reverse(
    np.diagonal, np.ndarray.diagonal, linear=True, alias="view", at=[M, (M, 1), (T, 0, 1, 2), (T, -1, 0, 2)]
)
def diagonal(g, y, a, offset=0, axis1=0, axis2=1):
    return diagonal_scatter(g, a, offset, axis1, axis2)


@reverse(np.linalg.diagonal, linear=True, alias="view", at=[M, T, case(T, offset=1)])
def linalg_diagonal(g, y, x, *, offset=0):
    return diagonal_scatter(g, x, offset, -2, -1)


@reverse(np.tril, linear=True, at=[M, (M, 1), (T, -1), X])
def tril(g, y, m, k=0):
    return unbroadcast(np.tril(g, k), m)


@reverse(np.triu, linear=True, at=[M, (M, 1), (T, -1), X])
def triu(g, y, m, k=0):
    return unbroadcast(np.triu(g, k), m)


# --- ordering -----------------------------------------------------------------------------------------------


@reverse(np.sort, at=[X, M, (M, 0), (M, None), (T, 1)])
def sort(g, y, a, axis=-1, kind=None, *, stable=None):
    """Elements that tie keep their order."""
    return put_along(g, a, np.argsort(a, axis=axis, kind="stable"), axis)


@forward(np.sort)
def sort_forward(a_dot, y, a, axis=-1, kind=None, *, stable=None):
    return np.take_along_axis(a_dot, np.argsort(a, axis=axis, kind="stable"), axis)


@reverse(np.partition, at=[(X, 1), (M, 1), (M, 0, 0), (generic(7), (2, 4)), (M, 3, None)])
def partition(g, y, a, kth, axis=-1):
    return put_along(g, a, np.argpartition(a, kth, axis=axis), axis)


@forward(np.partition)
def partition_forward(a_dot, y, a, kth, axis=-1):
    return np.take_along_axis(a_dot, np.argpartition(a, kth, axis=axis), axis)


@reverse(np.sort_complex, at=[X + 1j, X])
def sort_complex(g, y, a):
    return unbroadcast(put_along(g, a + 0j, np.argsort(a, axis=-1, kind="stable"), -1), a)


@forward(np.sort_complex)
def sort_complex_forward(a_dot, y, a):
    return np.take_along_axis(a_dot, np.argsort(a, axis=-1, kind="stable"), -1) + 0 * y


PLACES = [case(X, True, True, True), case(M, return_inverse=True), case(X, return_counts=True)]


@reverse(np.unique, at=[X, M, *PLACES])
def unique(
    g, y, ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True
):
    """Along an axis the first of equal parts has all of the cotangent."""
    many = return_index or return_inverse or return_counts
    if axis is None:
        return unique_values(g[0], y[0], ar) if many else unique_values(g, y, ar)
    first = np.unique(ar, return_index=True, axis=axis)[1]
    return put_rows(g[0] if many else g, ar, first, axis)


def put_rows(g, ar, first, axis):
    return np.moveaxis(scatter(np.moveaxis(g, axis, 0), np.moveaxis(ar, axis, 0), first), 0, axis)


@reverse(np.unique_values, at=[X, M])
def unique_values(g, y, ar):
    """Equal elements share the cotangent of the value that they have in common."""
    rank = np.searchsorted(y, ar)
    share = 1 / np.take(np.bincount(np.ravel(rank), minlength=np.size(y)), rank)
    return unbroadcast(np.take(g, rank) * share, ar)


@forward(np.unique)
def unique_forward(
    ar_dot, y, ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True
):
    many = return_index or return_inverse or return_counts
    if axis is None:
        dot = unique_values_forward(ar_dot, y[0] if many else y, ar)
    else:
        dot = np.take(ar_dot, np.unique(ar, return_index=True, axis=axis)[1], axis)
    still = tuple(np.zeros_like(part) for part in y[1:]) if many else ()
    return (dot, *still) if many else dot


@reverse(np.unique_all, np.unique_counts, np.unique_inverse, at=[X])
def unique_parts(g, y, x):
    return unique_values(g[0], y[0], x)


@forward(np.unique_all, np.unique_counts, np.unique_inverse)
def unique_parts_forward(x_dot, y, x):
    still = [np.zeros_like(part) for part in y[1:]]
    return type(y)(unique_values_forward(x_dot, y[0], x), *still)


@forward(np.unique_values)
def unique_values_forward(ar_dot, y, ar):
    rank = np.ravel(np.searchsorted(y, ar))
    total = scatter(np.ravel(ar_dot), y, rank)
    return unbroadcast(total / np.bincount(rank, minlength=np.size(y)), y)


nondifferentiable(
    np.argsort, np.argpartition, np.lexsort, np.searchsorted, np.digitize, np.nonzero, np.flatnonzero
)
nondifferentiable(
    np.argwhere, np.ndarray.argsort, np.ndarray.argpartition, np.ndarray.searchsorted, np.ndarray.nonzero
)
nondifferentiable(np.isin, np.unravel_index, np.ravel_multi_index)
nondifferentiable(
    np.diag_indices, np.diag_indices_from, np.tril_indices, np.tril_indices_from, np.triu_indices
)
nondifferentiable(np.triu_indices_from, np.mask_indices)
