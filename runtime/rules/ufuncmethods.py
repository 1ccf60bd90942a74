"""Rules for the methods of universal functions: reduce, accumulate, outer, reduceat (NumPy manual,
`numpy.ufunc`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime.rules import table
from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    exclusive_cumprod,
    expand,
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


# --- outer -------------------------------------------------------------------------------------

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


def outer_by(partials: Any) -> Any:
    """The rules of a binary ufunc's `outer`, from those of the ufunc itself."""

    def outer(g, y, A, B):
        by_first, by_second = partials(y, aligned(A, B), B)
        return over_first(g * by_first, A, B), over_second(g * by_second, A, B)

    def outer_forward(A_dot, B_dot, y, A, B):
        by_first, by_second = partials(y, aligned(A, B), B)
        return unbroadcast(aligned(A_dot, B) * by_first, y), unbroadcast(by_second * B_dot, y)

    return outer, outer_forward


def file_outer(ufunc, at):
    """File `ufunc.outer`; at ties and kinks it does as the ufunc."""
    outer, outer_forward = outer_by(table.find(ufunc).partials)
    outer.__name__ = f"{ufunc.__name__}_outer"
    reverse(ufunc.outer, wrt=("A", "B"), at=at)(outer)
    forward(ufunc.outer)(outer_forward)


OUTER: list[tuple[list[Any], list[Any]]] = [
    ([np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.hypot, np.arctan2], PAIRS),
    (
        [np.power, np.float_power, np.logaddexp, np.logaddexp2, np.fmax, np.fmin, np.copysign],
        [(positive(3), generic(2, seed=1))],
    ),
    ([np.remainder, np.fmod, np.heaviside, np.nextafter], [(generic(3), positive(2))]),
]
for several, inputs in OUTER:
    for binary in several:
        file_outer(binary, inputs)


# --- reduceat -----------------------------------------------------------------------------------------------

STARTS = [
    (generic(7), np.array([0, 3, 5])),
    (generic(7), np.array([4, 1, 6, 2])),
    (generic(3, 5), np.array([0, 2]), 1),
]


def segments(array, indices, axis):
    """Which elements along `axis` belong to segment k: those from indices[k] up to indices[k + 1], or one
    alone where that is not larger."""
    n = np.shape(array)[axis]
    starts = np.asarray(indices)
    ends = np.append(starts[1:], n)
    places = np.arange(n)
    return (places == starts[:, None]) | ((places >= starts[:, None]) & (places < ends[:, None]))


def repeated(array, inside, axis):
    """`array`, its `axis` last, once for each segment."""
    last = np.moveaxis(array, axis, -1)
    return np.broadcast_to(last[..., None, :], (*np.shape(last)[:-1], *np.shape(inside)))


def product_weights(array, indices, axis):
    inside = segments(array, indices, axis)
    return others(repeated(array, inside, axis), -1, inside) * inside


def extremum_weights(y, array, indices, axis):
    inside = segments(array, indices, axis)
    return ties(np.moveaxis(y, axis, -1), repeated(array, inside, axis), -1, False, inside)


def over_segments(g, weights, axis):
    return np.moveaxis(np.sum(np.moveaxis(g, axis, -1)[..., None] * weights, axis=-2), -1, axis)


def in_segments(dot, weights, axis):
    return np.moveaxis(np.sum(np.moveaxis(dot, axis, -1)[..., None, :] * weights, axis=-1), -1, axis)


@reverse(np.add.reduceat, linear=True, at=STARTS)
def add_reduceat(g, y, array, indices, axis=0, dtype=None):
    return unbroadcast(over_segments(g, segments(array, indices, axis), axis), array)


@reverse(np.multiply.reduceat, at=[*STARTS, ([2.0, 0.0, 3.0, 0.0], np.array([0, 2]))])
def multiply_reduceat(g, y, array, indices, axis=0, dtype=None):
    return unbroadcast(over_segments(g, product_weights(array, indices, axis), axis), array)


@forward(np.multiply.reduceat)
def multiply_reduceat_forward(array_dot, y, array, indices, axis=0, dtype=None):
    return unbroadcast(in_segments(array_dot, product_weights(array, indices, axis), axis), y)


@reverse(np.maximum.reduceat, np.minimum.reduceat, np.fmax.reduceat, np.fmin.reduceat, at=STARTS)
def extremum_reduceat(g, y, array, indices, axis=0, dtype=None):
    """Elements that tie share evenly."""
    return unbroadcast(over_segments(g, extremum_weights(y, array, indices, axis), axis), array)


@forward(np.maximum.reduceat, np.minimum.reduceat, np.fmax.reduceat, np.fmin.reduceat)
def extremum_reduceat_forward(array_dot, y, array, indices, axis=0, dtype=None):
    return unbroadcast(in_segments(array_dot, extremum_weights(y, array, indices, axis), axis), y)


nondifferentiable(
    *[f.outer for f in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)],
    *[np.logical_and.reduce, np.logical_or.reduce, np.logical_xor.reduce],
)
