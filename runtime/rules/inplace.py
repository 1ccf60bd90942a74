"""NumPy's functions that write into their argument, and what they write, as functions that return it.

A derivative can't follow a write that happens inside NumPy: compiled code calls the function given here, and
stores its result. The rules ask where each element came from: the same write into an array of numbers tells.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, nondifferentiable, reverse, stores
from srcgrad.runtime.support import scatter

X, M, V = generic(5), generic(4, 3), generic(2, seed=1)


def copied(write, a, *args, **options):
    """What `write` leaves in `a`, which stays as it is."""
    made = np.array(a)
    write(made, *args, **options)
    return made


def numbers(v):
    """The position of each of the values in memory order."""
    return np.reshape(np.arange(np.size(v)), np.shape(v))


def origins(write, a, *args, **options):
    """For each element of `a` the position of the value that was written over it, or -1."""
    return copied(write, np.full(np.shape(a), -1), *args, **options)


nondifferentiable(numbers, origins)


def kept(g, origin):
    """The cotangent of the array written into."""
    return np.where(origin < 0, g, 0)


def given(g, origin, v):
    """The cotangent of the values written."""
    if np.ndim(v) == 0:
        return np.sum(np.where(origin < 0, 0, g))
    hit = origin >= 0
    return np.reshape(scatter(g[hit], np.ravel(v), origin[hit]), np.shape(v))


@stores(np.put, np.ndarray.put)
def put_values(a, ind, v, mode="raise"):
    """`a` with values in the places `ind` of its elements in order; they repeat if there are too few."""
    return copied(np.put, a, ind, v, mode)


@reverse(
    put_values,
    wrt=("a", "v"),
    linear=True,
    at=[(X, (0, 3), V), (X, (0, -1, 0), V), (M, (3, 5, 50), 0.7, "clip"), case(M, (3, 25), V, mode="wrap")],
)
def put_values_rule(g, y, a, ind, v, mode="raise"):
    return (
        kept(g, origins(np.put, a, ind, numbers(v), mode)),
        given(g, origins(np.put, a, ind, numbers(v), mode), v),
    )


@stores(np.place)
def place_values(arr, mask, vals):
    """`arr` with the values in turn where the mask says so."""
    return copied(np.place, arr, mask, vals)


@reverse(place_values, wrt=("arr", "vals"), linear=True, at=[(X, X > 0, V), (M, M > 0, 0.7), (M, M > 0, V)])
def place_values_rule(g, y, arr, mask, vals):
    return (
        kept(g, origins(np.place, arr, mask, numbers(vals))),
        given(g, origins(np.place, arr, mask, numbers(vals)), vals),
    )


@stores(np.putmask)
def mask_values(a, mask, values):
    """`a` with the values at the same places where the mask says so."""
    return copied(np.putmask, a, mask, values)


@reverse(
    mask_values, wrt=("a", "values"), linear=True, at=[(X, X > 0, X * X), (M, M > 0, 0.7), (M, M > 0, V)]
)
def mask_values_rule(g, y, a, mask, values):
    return (
        kept(g, origins(np.putmask, a, mask, numbers(values))),
        given(g, origins(np.putmask, a, mask, numbers(values)), values),
    )


ROWS, COLUMNS = np.array([[1, 3, 0]]), np.array([[1, 2], [0, 1], [2, 0], [0, 2]])


@stores(np.put_along_axis)
def put_values_along_axis(arr, indices, values, axis):
    """`arr` with values at indices along an axis, which match its other axes."""
    return copied(np.put_along_axis, arr, indices, values, axis)


@reverse(
    put_values_along_axis,
    wrt=("arr", "values"),
    linear=True,
    at=[(M, ROWS, V[:1], 0), (M, ROWS, X[:3], 0), (M, COLUMNS, V, 1), (M, COLUMNS, 0.7, -1)],
)
def put_values_along_axis_rule(g, y, arr, indices, values, axis):
    return (
        kept(g, origins(np.put_along_axis, arr, indices, numbers(values), axis)),
        given(g, origins(np.put_along_axis, arr, indices, numbers(values), axis), values),
    )


@stores(np.fill_diagonal)
def fill_diagonal_values(a, val, wrap=False):
    """`a` with a value, or values in turn, on its diagonal."""
    return copied(np.fill_diagonal, a, val, wrap)


@reverse(
    fill_diagonal_values,
    wrt=("a", "val"),
    linear=True,
    at=[(M, 0.7), (M.T, V), case(generic(5, 2), V, wrap=True), (generic(2, 2, 2), V)],
)
def fill_diagonal_values_rule(g, y, a, val, wrap=False):
    return (
        kept(g, origins(np.fill_diagonal, a, numbers(val), wrap)),
        given(g, origins(np.fill_diagonal, a, numbers(val), wrap), val),
    )


@stores(np.copyto)
def copied_values(dst, src, casting="same_kind", where=True):
    """`dst` with the elements of `src` where the mask says so."""
    return np.where(where, src, dst)


def flat_values(a, index, v):
    """`a` after `a.flat[index] = v`."""
    made = np.array(a)
    made.flat[index] = v
    return made


def flat_origins(a, index, v):
    made = np.full(np.shape(a), -1)
    made.flat[index] = numbers(v)
    return made


nondifferentiable(flat_origins)


@reverse(
    flat_values,
    wrt=("a", "v"),
    linear=True,
    at=[(M, 3, 0.7), (M, slice(2, 7), 0.7), (M, slice(2, 4), V), (M.T, np.array([3, 5, 3]), X[:3])],
)
def flat_values_rule(g, y, a, index, v):
    return kept(g, flat_origins(a, index, v)), given(g, flat_origins(a, index, v), v)


stores(np.ndarray.partition)(np.partition)
