"""Rules for making arrays (NumPy manual, "Array creation routines")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import bessel_i, carried, like_nested, linspace_part, unbroadcast

X = generic(3)
M = generic(2, 3)


@reverse(
    np.array,
    at=[
        X,
        1.5,
        ((1.0, 2.0),),
        (((1.0, 2.0), (3.0, 4.0)),),
        ((X, X),),
        ((X, (1.0, 2.0, 3.0)),),
        case(M, ndmin=3),
    ],
)
def array(g, y, object, dtype=None, *, copy=True, order="K", ndmin=0):
    if dtype is None and ndmin == 0:
        return like_nested(g, object)
    return like_nested(np.reshape(carried(g, y), np.shape(object)), object)


@forward(np.array)
def array_forward(object_dot, y, object, dtype=None, *, copy=True, order="K", ndmin=0):
    return unbroadcast(carried(np.array(object_dot, ndmin=ndmin), y), y)


@reverse(
    np.asarray,
    np.asanyarray,
    np.asarray_chkfinite,
    alias="maybe",
    at=[X, 1.5, ((1.0, 2.0),), (X, np.float64)],
)
def asarray(g, y, a, dtype=None, order=None):
    if dtype is None:
        return like_nested(g, a)
    return like_nested(carried(g, y), a)


@forward(np.asarray)
def asarray_forward(a_dot, y, a, dtype=None, order=None):
    return unbroadcast(carried(np.asarray(a_dot), y), y)


@reverse(np.ascontiguousarray, np.asfortranarray, alias="maybe", at=[X, M.T, 1.5])
def ascontiguousarray(g, y, a, dtype=None):
    return unbroadcast(np.reshape(carried(g, y), np.shape(a)), a)


@forward(np.ascontiguousarray)
def ascontiguousarray_forward(a_dot, y, a, dtype=None):
    return unbroadcast(carried(np.ascontiguousarray(a_dot), y), y)


@reverse(np.copy, linear=True, at=[X, M, 1.5])
def copy(g, y, a, order="K"):
    return unbroadcast(g, a)


@reverse(np.astype, alias="maybe", at=[(X, np.float64), (M, np.complex128)])
def astype(g, y, x, dtype, /, *, copy=True):
    return unbroadcast(carried(g, y), x)


@forward(np.astype)
def astype_forward(x_dot, y, x, dtype, /, *, copy=True):
    return unbroadcast(carried(x_dot, y), y)


@reverse(np.ndarray.astype, alias="maybe", at=[(X, np.float64), (M, np.complex128), (M, "float64")])
def astype_method(g, y, x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    return unbroadcast(carried(g, y), x)


@forward(np.ndarray.astype)
def astype_method_forward(x_dot, y, x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    return unbroadcast(carried(x_dot, y), y)


@reverse(
    *[np.float64, np.float32, np.float16, np.longdouble, np.complex128, np.complex64],
    linear=True,
    alias="maybe",
    at=[1.5, X, [1.5]],
)
def inexact(g, y, x):
    return unbroadcast(g, x)


@reverse(np.full, wrt="fill_value", linear=True, at=[(3, 1.5), ((2, 3), X)])
def full(g, y, shape, fill_value, dtype=None):
    return unbroadcast(g, fill_value)


@reverse(np.full_like, wrt="fill_value", linear=True, at=[(M, 1.5), (M, X)])
def full_like(g, y, a, fill_value, dtype=None, order="K", subok=True, shape=None):
    return unbroadcast(g, fill_value)


@reverse(
    np.linspace,
    wrt=("start", "stop"),
    at=[(0.5, 2.0), (0.5, 2.0, 5), case(X, 2.0, 4, endpoint=False), case(X, -X, 4, axis=1)],
)
def linspace(g, y, start, stop, num=50, endpoint=True, *, dtype=None, axis=0):
    return (
        unbroadcast(linspace_part(g, 1.0, 0.0, endpoint, axis), start),
        unbroadcast(linspace_part(g, 0.0, 1.0, endpoint, axis), stop),
    )


@forward(np.linspace)
def linspace_forward(start_dot, stop_dot, y, start, stop, num=50, endpoint=True, *, dtype=None, axis=0):
    return np.linspace(start_dot, 0.0 * stop, num, endpoint, axis=axis), np.linspace(
        0.0 * start, stop_dot, num, endpoint, axis=axis
    )


@reverse(
    np.logspace,
    wrt=("start", "stop", "base"),
    at=[(0.5, 2.0, 5), (0.5, 2.0, 5, True, 3.0), case(X, 2.0, 4, endpoint=False), case(X, -X, 3, axis=1)],
)
def logspace(g, y, start, stop, num=50, endpoint=True, base=10.0, *, dtype=None, axis=0):
    scaled = g * y * np.log(base)
    return (
        unbroadcast(linspace_part(scaled, 1.0, 0.0, endpoint, axis), start),
        unbroadcast(linspace_part(scaled, 0.0, 1.0, endpoint, axis), stop),
        unbroadcast(np.sum(g * y * np.log(y)) / (base * np.log(base)), base),
    )


@forward(np.logspace)
def logspace_forward(
    start_dot, stop_dot, base_dot, y, start, stop, num=50, endpoint=True, base=10.0, *, dtype=None, axis=0
):
    return (
        unbroadcast(y * np.log(base) * np.linspace(start_dot, 0.0 * stop, num, endpoint, axis=axis), y),
        unbroadcast(y * np.log(base) * np.linspace(0.0 * start, stop_dot, num, endpoint, axis=axis), y),
        unbroadcast(y * np.log(y) / (base * np.log(base)) * base_dot, y),
    )


P = positive(3)


@reverse(
    np.geomspace,
    wrt=("start", "stop"),
    at=[(0.5, 2.0, 5), case(P, 2.0, 4, endpoint=False), case(P, P * P + 1, 3, axis=1), (-P, -1.0, 3)],
)
def geomspace(g, y, start, stop, num=50, endpoint=True, *, dtype=None, axis=0):
    return (
        unbroadcast(linspace_part(g * y, 1.0, 0.0, endpoint, axis) / start, start),
        unbroadcast(linspace_part(g * y, 0.0, 1.0, endpoint, axis) / stop, stop),
    )


@forward(np.geomspace)
def geomspace_forward(start_dot, stop_dot, y, start, stop, num=50, endpoint=True, *, dtype=None, axis=0):
    return (
        unbroadcast(y * np.linspace(start_dot / start, 0.0 * stop, num, endpoint, axis=axis), y),
        unbroadcast(y * np.linspace(0.0 * start, stop_dot / stop, num, endpoint, axis=axis), y),
    )


@reverse(np.kaiser, wrt="beta", at=[(5, 2.5), (4, 0.3), (1, 2.0)])
def kaiser(g, y, M, beta):
    """The window is i0(beta r) / i0(beta), with r a half circle over the window."""
    return unbroadcast(np.sum(g * kaiser_slope(y, M, beta)), beta)


@forward(np.kaiser)
def kaiser_forward(beta_dot, y, M, beta):
    return beta_dot * kaiser_slope(y, M, beta)


def kaiser_slope(y, M, beta):
    if M == 1:
        return 0.0 * y
    t = 2 * np.arange(M) / (M - 1) - 1
    r = np.sqrt(1 - t * t)
    return (r * bessel_i(1, beta * r) - y * bessel_i(1, beta)) / np.i0(beta)


@reverse(np.ix_, wrt="args", linear=True, alias="view", at=[(X, generic(2))])
def ix(g, y, *args):
    parts = [np.reshape(g[i], np.shape(args[i])) for i in range(len(args))]
    return parts


@reverse(np.require, alias="maybe", at=[X])
def require(g, y, a, dtype=None, requirements=None):
    return unbroadcast(carried(g, y), a)


@forward(np.require)
def require_forward(a_dot, y, a, dtype=None, requirements=None):
    return unbroadcast(carried(a_dot, y), y)


nondifferentiable(
    np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like, np.eye, np.identity, np.tri
)
STEPS = [
    case(0.3, 2.2, 0.5),
    (0.3, 2.0),
    case(5.5),
    case(stop=2.2, step=0.7),
    case(start=2.0, stop=0.5, step=-0.4),
]


@reverse(np.arange, wrt=("start", "stop", "step"), at=STEPS)
def arange(g, y, start=0, stop=None, step=1, dtype=None, *, device=None, like=None):
    """A single bound is the stop, which only tells how many elements there are."""
    moving = y.dtype.kind == "f"
    return (
        unbroadcast(np.sum(g) * (moving and stop is not None), start),
        None if stop is None else np.zeros_like(stop),
        unbroadcast(np.sum(g * np.arange(g.size)) * moving, step),
    )


@forward(np.arange)
def arange_forward(
    start_dot, stop_dot, step_dot, y, start=0, stop=None, step=1, dtype=None, *, device=None, like=None
):
    moving = y.dtype.kind == "f"
    return (
        unbroadcast(start_dot * (moving and stop is not None), y),
        None if stop is None else np.zeros_like(y),
        unbroadcast(step_dot * np.arange(y.size) * moving, y),
    )


nondifferentiable(np.indices, np.bartlett, np.blackman, np.hamming, np.hanning)
nondifferentiable(
    np.result_type, np.can_cast, np.promote_types, np.min_scalar_type, np.common_type, np.issubdtype
)
nondifferentiable(
    np.array_repr, np.array_str, np.array2string, np.format_float_positional, np.format_float_scientific
)
nondifferentiable(np.dtype, np.finfo, np.iinfo, np.einsum_path, np.bool_)
nondifferentiable(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
