"""Rules for the methods of universal functions: reduce, accumulate, outer, reduceat (NumPy manual,
`numpy.ufunc`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    exclusive_cumprod,
    expand,
    larger,
    log_or_zero,
    lowered,
    others,
    put_along,
    ratio,
    recurrence,
    recurrence_adjoint,
    ties,
    unbroadcast,
    weight,
)

X = generic(4)
M = generic(2, 3)
T = generic(2, 3, 2)
MASK = np.array([[True, False, True], [False, True, True]])
AXES = [X, M, (M, 1), case(T, axis=(0, 2)), case(M, axis=None), case(M, axis=1, keepdims=True), (X[:1], 0)]
MASKED = [case(M, axis=0, where=MASK)]


@reverse(np.add.reduce, at=[*AXES, *MASKED, case(M, initial=2.0)])
def add_reduce(g, y, array, axis=0, dtype=None, *, keepdims=False, initial=0, where=True):
    if where is True:
        return expand(g, array, axis, keepdims)
    return expand(g, array, axis, keepdims) * where


@forward(np.add.reduce)
def add_reduce_forward(array_dot, y, array, axis=0, dtype=None, *, keepdims=False, initial=0, where=True):
    return np.add.reduce(array_dot, axis=axis, dtype=dtype, keepdims=keepdims, where=where)


@reverse(np.multiply.reduce, at=[*AXES, *MASKED, case(M, initial=2.0)])
def multiply_reduce(g, y, array, axis=0, dtype=None, *, keepdims=False, initial=1, where=True):
    return expand(g * initial, array, axis, keepdims) * others(array, axis, where) * where


@forward(np.multiply.reduce)
def multiply_reduce_forward(
    array_dot, y, array, axis=0, dtype=None, *, keepdims=False, initial=1, where=True
):
    return initial * np.sum(array_dot * others(array, axis, where) * where, axis=axis, keepdims=keepdims)


@reverse(
    np.maximum.reduce, np.fmax.reduce, at=[*AXES, case(M, initial=-5.0, where=MASK), case(M, 1, initial=0.3)]
)
def maximum_reduce(g, y, array, axis=0, dtype=None, *, keepdims=False, initial=None, where=True):
    """Elements that tie share evenly."""
    return expand(g, array, axis, keepdims) * ties(y, array, axis, keepdims, where)


@reverse(
    np.minimum.reduce, np.fmin.reduce, at=[*AXES, case(M, initial=5.0, where=MASK), case(M, 1, initial=0.3)]
)
def minimum_reduce(g, y, array, axis=0, dtype=None, *, keepdims=False, initial=None, where=True):
    """Elements that tie share evenly."""
    return expand(g, array, axis, keepdims) * ties(y, array, axis, keepdims, where)


@forward(np.maximum.reduce)
def maximum_reduce_forward(
    array_dot, y, array, axis=0, dtype=None, *, keepdims=False, initial=None, where=True
):
    return np.sum(array_dot * ties(y, array, axis, keepdims, where), axis=axis, keepdims=keepdims)


@forward(np.minimum.reduce)
def minimum_reduce_forward(
    array_dot, y, array, axis=0, dtype=None, *, keepdims=False, initial=None, where=True
):
    return np.sum(array_dot * ties(y, array, axis, keepdims, where), axis=axis, keepdims=keepdims)


@reverse(np.logaddexp.reduce, at=[*AXES, case(M, initial=0.3)])
def logaddexp_reduce(g, y, array, axis=0, dtype=None, *, keepdims=False, initial=-np.inf):
    return expand(g, array, axis, keepdims) * weight(array, expand(y, array, axis, keepdims))


@forward(np.logaddexp.reduce)
def logaddexp_reduce_forward(array_dot, y, array, axis=0, dtype=None, *, keepdims=False, initial=-np.inf):
    return np.sum(array_dot * weight(array, expand(y, array, axis, keepdims)), axis=axis, keepdims=keepdims)


@reverse(np.hypot.reduce, at=[*AXES[:-1], case(M, initial=0.3)])
def hypot_reduce(g, y, array, axis=0, dtype=None, *, keepdims=False, initial=0):
    """At 0 the derivative is taken as 0."""
    return array * expand(ratio(g, y), array, axis, keepdims)


@forward(np.hypot.reduce)
def hypot_reduce_forward(array_dot, y, array, axis=0, dtype=None, *, keepdims=False, initial=0):
    return ratio(np.sum(array * array_dot, axis=axis, keepdims=keepdims), y)


# --- accumulate ---------------------------------------------------------------------------------------------


@reverse(np.add.accumulate, linear=True, at=[X, M, (M, 1)])
def add_accumulate(g, y, array, axis=0, dtype=None):
    return np.flip(np.cumsum(np.flip(g, axis), axis), axis)


@reverse(np.multiply.accumulate, at=[X, M, (M, 1), [2.0, 0.0, 3.0]])
def multiply_accumulate(g, y, array, axis=0, dtype=None):
    last = np.moveaxis(array, axis, -1)
    return np.moveaxis(exclusive_cumprod(last) * recurrence_adjoint(last, np.moveaxis(g, axis, -1)), -1, axis)


@forward(np.multiply.accumulate)
def multiply_accumulate_forward(array_dot, y, array, axis=0, dtype=None):
    last = np.moveaxis(array, axis, -1)
    return np.moveaxis(recurrence(last, np.moveaxis(array_dot, axis, -1) * exclusive_cumprod(last)), -1, axis)


@reverse(np.maximum.accumulate, np.minimum.accumulate, at=[X, M, (M, 1), generic(2, 7)])
def extremum_accumulate(g, y, array, axis=0, dtype=None):
    """A running extremum passes its cotangent to the element that it is."""
    return leader_scatter(g, y, array, axis)


@forward(np.maximum.accumulate)
def extremum_accumulate_forward(array_dot, y, array, axis=0, dtype=None):
    return np.take_along_axis(array_dot, leaders(y, array, axis), axis)


def leaders(y, array, axis):
    """The index along `axis` of the last element that was the running extremum `y`."""
    shape = [-1 if i == axis % np.ndim(array) else 1 for i in range(np.ndim(array))]
    places = np.reshape(np.arange(np.shape(array)[axis]), shape)
    return np.maximum.accumulate(np.where(y == array, places, 0), axis=axis)


def leader_scatter(g, y, array, axis):
    return put_along(g, array, leaders(y, array, axis), axis)


@reverse(np.logaddexp.accumulate, at=[X, M, (M, 1)])
def logaddexp_accumulate(g, y, array, axis=0, dtype=None):
    """y[k] has the weights exp(array[i] - y[k]) for i <= k; these factor into steps exp(y[k] - y[k + 1]) <=
    1."""
    last, total = np.moveaxis(array, axis, -1), np.moveaxis(y, axis, -1)
    return np.moveaxis(
        weight(last, total) * recurrence_adjoint(steps(total), np.moveaxis(g, axis, -1)), -1, axis
    )


@forward(np.logaddexp.accumulate)
def logaddexp_accumulate_forward(array_dot, y, array, axis=0, dtype=None):
    last, total = np.moveaxis(array, axis, -1), np.moveaxis(y, axis, -1)
    return np.moveaxis(
        recurrence(steps(total), np.moveaxis(array_dot, axis, -1) * weight(last, total)), -1, axis
    )


def steps(total):
    """exp(total[k - 1] - total[k]) along the last axis, 0 for the first."""
    inner = weight(total[..., :-1], total[..., 1:])
    return np.concatenate([np.zeros_like(total[..., :1]), inner], axis=-1)


# --- outer and reduceat -------------------------------------------------------------------------------------

PAIRS = [(generic(3), generic(2)), (M, generic(2)), (1.5, M)]


def over_first(g, x, y):
    """The cotangent of `x` from that of an outer result: summed over the axes of `y`."""
    return unbroadcast(np.sum(g, axis=tuple(range(np.ndim(x), np.ndim(x) + np.ndim(y)))), x)


def over_second(g, x, y):
    """The cotangent of `y` from that of an outer result: summed over the axes of `x`."""
    return unbroadcast(np.sum(g, axis=tuple(range(np.ndim(x)))), y)


def aligned(x, y):
    """`x` with an axis of length 1 for each axis of `y` behind its own."""
    return np.reshape(x, np.shape(x) + (1,) * np.ndim(y))


@reverse(np.add.outer, wrt=("A", "B"), at=PAIRS)
def add_outer(g, y, A, B):
    return over_first(g, A, B), over_second(g, A, B)


@forward(np.add.outer)
def add_outer_forward(A_dot, B_dot, y, A, B):
    return np.add.outer(A_dot, np.zeros_like(B)), np.add.outer(np.zeros_like(A), B_dot)


@reverse(np.subtract.outer, wrt=("A", "B"), at=PAIRS)
def subtract_outer(g, y, A, B):
    return over_first(g, A, B), over_second(-g, A, B)


@forward(np.subtract.outer)
def subtract_outer_forward(A_dot, B_dot, y, A, B):
    return np.subtract.outer(A_dot, np.zeros_like(B)), np.subtract.outer(np.zeros_like(A), B_dot)


@reverse(np.multiply.outer, wrt=("A", "B"), at=PAIRS)
def multiply_outer(g, y, A, B):
    return over_first(g * B, A, B), over_second(g * aligned(A, B), A, B)


@forward(np.multiply.outer)
def multiply_outer_forward(A_dot, B_dot, y, A, B):
    return np.multiply.outer(A_dot, B), np.multiply.outer(A, B_dot)


@reverse(np.divide.outer, wrt=("A", "B"), at=PAIRS)
def divide_outer(g, y, A, B):
    return over_first(g / B, A, B), over_second(-g * y / B, A, B)


@forward(np.divide.outer)
def divide_outer_forward(A_dot, B_dot, y, A, B):
    return np.divide.outer(A_dot, B), -y * B_dot / B


@reverse(np.power.outer, wrt=("A", "B"), at=[(positive(3), generic(2)), (positive(2, 2), 2)])
def power_outer(g, y, A, B):
    lower = np.power(aligned(A, B), lowered(np.asarray(B)))
    return over_first(g * B * lower, A, B), over_second(g * y * log_or_zero(aligned(A, B)), A, B)


@forward(np.power.outer)
def power_outer_forward(A_dot, B_dot, y, A, B):
    lower = np.power(aligned(A, B), lowered(np.asarray(B)))
    return aligned(A_dot, B) * B * lower, y * log_or_zero(aligned(A, B)) * B_dot


@reverse(np.maximum.outer, wrt=("A", "B"), at=[(generic(3), generic(2, seed=1)), (M, generic(2, seed=1))])
def maximum_outer(g, y, A, B):
    """At a tie each side gets half."""
    return over_first(g * larger(aligned(A, B), B), A, B), over_second(g * larger(B, aligned(A, B)), A, B)


@forward(np.maximum.outer)
def maximum_outer_forward(A_dot, B_dot, y, A, B):
    return aligned(A_dot, B) * larger(aligned(A, B), B), B_dot * larger(B, aligned(A, B))


@reverse(np.minimum.outer, wrt=("A", "B"), at=[(generic(3), generic(2, seed=1)), (M, generic(2, seed=1))])
def minimum_outer(g, y, A, B):
    """At a tie each side gets half."""
    return over_first(g * larger(B, aligned(A, B)), A, B), over_second(g * larger(aligned(A, B), B), A, B)


@forward(np.minimum.outer)
def minimum_outer_forward(A_dot, B_dot, y, A, B):
    return aligned(A_dot, B) * larger(B, aligned(A, B)), B_dot * larger(aligned(A, B), B)


@reverse(
    np.add.reduceat,
    linear=True,
    at=[(generic(7), np.array([0, 3, 5])), (generic(7), np.array([4, 1, 6, 2])), (M, np.array([0, 1]), 1)],
)
def add_reduceat(g, y, array, indices, axis=0, dtype=None):
    """Segment k runs from indices[k] to indices[k + 1], or is one element where that is not larger."""
    n = np.shape(array)[axis]
    starts = np.asarray(indices)
    ends = np.append(starts[1:], n)
    places = np.arange(n)
    inside = (places == starts[:, None]) | ((places >= starts[:, None]) & (places < ends[:, None]))
    return unbroadcast(np.moveaxis(np.tensordot(g, inside * 1.0, (axis, 0)), -1, axis), array)


nondifferentiable(
    *[f.outer for f in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)],
    *[np.logical_and.reduce, np.logical_or.reduce, np.logical_xor.reduce],
)
