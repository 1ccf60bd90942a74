"""Rules for functions that call a function of the user's (NumPy manual, "Functional programming"; Python's
`functools`).

What they compute is written out in Python below, and the rules ask for the derivative of that: so the
function may use differentiated values of its surroundings, which then have a cotangent too.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from srcgrad.runtime import trees
from srcgrad.runtime.rules.callbacks import part_of, pullback, pushforward
from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import forward, reverse

X, M = generic(5), generic(3, 4)


def for_each(bar, args):
    """The cotangents of arguments, where all of them may be zero."""
    return [0.0 for _ in args] if trees.is_zero(bar) else bar


# --- piecewise ----------------------------------------------------------------------------------------------


def pieces(x, conditions, funclist, args):
    y = np.zeros_like(x)
    for i in range(len(funclist)):
        piece = funclist[i]
        mask = conditions[i]
        if not callable(piece):
            y[mask] = piece
        elif mask.any():
            y[mask] = piece(x[mask], *args)
    return y


def masks(condlist, x, count):
    """The conditions as rows of masks, with what is left over where a function is given for it."""
    if np.isscalar(condlist) or (not isinstance(condlist[0], (list, np.ndarray)) and np.ndim(x) > 0):
        condlist = [condlist]
    found = np.asarray(condlist, dtype=bool)
    if len(found) == count - 1:
        found = np.concatenate([found, ~np.any(found, axis=0, keepdims=True)])
    return np.reshape(found, (len(found), np.size(x)))


@reverse(
    np.piecewise,
    wrt=("x", "funclist", "args"),
    at=[(X, (X < 0, X >= 0), (np.sin, np.exp)), (X, (X < 0,), (np.arctan2, np.multiply), 2.0)],
)
def piecewise(g, y, x, condlist, funclist, *args):
    given = (np.ravel(x), masks(condlist, x, len(funclist)), funclist, args)
    bars = pullback(pieces, given, np.ravel(g))[1]
    return np.reshape(bars[0], np.shape(x)), bars[2], for_each(bars[3], args)


@forward(np.piecewise, joint=True)
def piecewise_forward(x_dot, funclist_dot, args_dot, y, x, condlist, funclist, *args):
    given = (np.ravel(x), masks(condlist, x, len(funclist)), funclist, args)
    x_dot = 0.0 if np.ndim(x_dot) < np.ndim(x) else np.ravel(x_dot)
    return np.reshape(pushforward(pieces, given, 0.0, (x_dot, 0.0, funclist_dot, args_dot)), np.shape(x))


# --- one call for each element or row -----------------------------------------------------------------------


def each(function, args, shape, outputs):
    """`function` of the elements of arrays; with several outputs an array for each."""
    rows = np.stack([np.ravel(np.broadcast_to(a, shape)) for a in args], axis=1)
    found = []
    for i in range(rows.shape[0]):
        found.append(function(*rows[i]))
    return shaped(np.array(found), shape, outputs)


def each_of_any(function, args, shape, outputs):
    """`each`, for arrays of different types."""
    columns = [np.ravel(np.broadcast_to(a, shape)) for a in args]
    found = []
    for i in range(len(columns[0])):
        found.append(function(*[column[i] for column in columns]))
    return shaped(np.array(found), shape, outputs)


def shaped(whole, shape, outputs):
    if outputs == 1:
        return np.reshape(whole, shape)
    return tuple([np.reshape(whole[:, k], shape) for k in range(outputs)])


def calls_of(args):
    """The function that stands for the loop over the elements."""
    return each if all(np.result_type(a).kind == "f" for a in args) else each_of_any


def each_args(self, args):
    if self.signature is not None or self.excluded or self.pyfunc is None:
        raise NotImplementedError("the derivative of np.vectorize with excluded arguments or a signature")
    return self.pyfunc, args, np.broadcast_shapes(*[np.shape(a) for a in args])


def output_count(y):
    return len(y) if isinstance(y, tuple) else 1


@reverse(np.vectorize, wrt="pyfunc", at=[])
def vectorize(g, made, pyfunc, otypes=None, doc=None, excluded=None, cache=False, signature=None):
    return part_of(g, "pyfunc")


@forward(np.vectorize)
def vectorize_forward(
    pyfunc_dot, made, pyfunc, otypes=None, doc=None, excluded=None, cache=False, signature=None
):
    return {"pyfunc": pyfunc_dot}


@reverse(
    np.vectorize.__call__,
    wrt=("self", "args"),
    at=[(np.vectorize(math.sin), X), (np.vectorize(operator.mul), generic(2, 1), generic(3))],
)
def vectorized(g, y, self, *args):
    bars = pullback(calls_of(args), (*each_args(self, args), output_count(y)), g)[1]
    return {"pyfunc": bars[0]}, for_each(bars[1], args)


@forward(np.vectorize.__call__, joint=True)
def vectorized_forward(self_dot, args_dot, y, self, *args):
    dots = (part_of(self_dot, "pyfunc"), args_dot, 0.0, 0.0)
    return pushforward(calls_of(args), (*each_args(self, args), output_count(y)), 0.0, dots)


def along(function, axis, x, args):
    """`function` of the rows of an array along an axis; its axes come in the place of that axis."""
    moved = np.moveaxis(x, axis, -1)
    rows = np.reshape(moved, (-1, x.shape[axis]))
    found = []
    for i in range(rows.shape[0]):
        found.append(np.asarray(function(rows[i], *args)))
    stacked = np.stack(found)
    whole = np.reshape(stacked, moved.shape[:-1] + stacked.shape[1:])
    places = whole.ndim - x.ndim + 1
    return np.moveaxis(whole, list(range(x.ndim - 1, whole.ndim)), list(range(axis, axis + places)))


@reverse(
    np.apply_along_axis,
    wrt=("func1d", "arr", "args"),
    at=[(np.cumprod, 0, M), (np.prod, -1, M), (np.diag, 1, M)],
)
def apply_along_axis(g, y, func1d, axis, arr, *args):
    bars = pullback(along, (func1d, axis % np.ndim(arr), np.asarray(arr), args), g)[1]
    return bars[0], bars[2], for_each(bars[3], args)


@forward(np.apply_along_axis, joint=True)
def apply_along_axis_forward(func_dot, arr_dot, args_dot, y, func1d, axis, arr, *args):
    given = (func1d, axis % np.ndim(arr), np.asarray(arr), args)
    return pushforward(along, given, 0.0, (func_dot, 0.0, arr_dot, args_dot))


def over(function, x, axes):
    """`function` along one axis after another, which it keeps with length 1."""
    for axis in axes:
        y = function(x, axis)
        x = y if np.ndim(y) == np.ndim(x) else np.expand_dims(y, axis)
    return x


def axes_list(axes):
    return [axes] if np.ndim(axes) == 0 else [int(axis) for axis in axes]


@reverse(np.apply_over_axes, wrt=("func", "a"), at=[(np.prod, M, (0, 1)), (np.cumprod, M, 1)])
def apply_over_axes(g, y, func, a, axes):
    bars = pullback(over, (func, np.asarray(a), axes_list(axes)), g)[1]
    return bars[0], bars[1]


@forward(np.apply_over_axes, joint=True)
def apply_over_axes_forward(func_dot, a_dot, y, func, a, axes):
    return pushforward(over, (func, np.asarray(a), axes_list(axes)), 0.0, (func_dot, a_dot, 0.0))


# --- others -------------------------------------------------------------------------------------------------


@reverse(np.fromfunction, wrt="function", at=[])
def fromfunction(g, y, function, shape, *, dtype=float):
    places = tuple(np.indices(shape, dtype=dtype))
    return pullback(function, places, g)[0]


@forward(np.fromfunction)
def fromfunction_forward(function_dot, y, function, shape, *, dtype=float):
    places = tuple(np.indices(shape, dtype=dtype))
    return pushforward(function, places, function_dot, [0.0] * len(places))


def folded(function, xs, initial):
    total = initial
    for i in range(len(xs)):
        total = function(total, xs[i])
    return total


def folded_from_first(function, xs):
    total = xs[0]
    for i in range(1, len(xs)):
        total = function(total, xs[i])
    return total


NOTHING = object()


@reverse(
    functools.reduce,
    wrt=("function", "iterable", "initial"),
    at=[(operator.mul, (0.5, 1.5, -0.7)), (operator.mul, M), (math.atan2, (0.5, 1.5), 0.7)],
)
def reduce(g, y, function, iterable, initial=NOTHING):
    xs = trees.sequence(iterable)
    if initial is NOTHING:
        bars = pullback(folded_from_first, (function, xs), g)[1]
        return bars[0], bars[1], 0.0
    bars = pullback(folded, (function, xs, initial), g)[1]
    return bars[0], bars[1], bars[2]


@forward(functools.reduce, joint=True)
def reduce_forward(function_dot, iterable_dot, initial_dot, y, function, iterable, initial=NOTHING):
    xs = trees.sequence(iterable)
    if initial is NOTHING:
        return pushforward(folded_from_first, (function, xs), 0.0, (function_dot, iterable_dot))
    return pushforward(folded, (function, xs, initial), 0.0, (function_dot, iterable_dot, initial_dot))
