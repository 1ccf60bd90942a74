"""Support functions: what rules and emitted derivatives may call beside NumPy. This list is a contract.

Every function here is pure: it writes to none of its arguments. Results may share memory with the arguments
or be read-only views, so whoever wants to add to one in place copies it first. The hot ones have a fast path
for `np.ndarray` and Python floats, and a general path that uses NumPy's public functions only, so that it
serves any array type that speaks NumPy's protocols. Their own derivatives stand in `rules/supports.py`.

An array type that wants to see the calls itself (the eager Tensor, to record them) adds itself to
`observers`: its `__array_function__` then receives the support function as it would receive one of NumPy's.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.errors import NoRule

Array = Any
Axis = Any  # an int, a sequence of ints, or None

observers: set[type] = set()
"""Array types whose `__array_function__` receives the calls of support functions."""


def _observer(*arguments: Any) -> Any:
    """The first argument whose type is among `observers` (also within a list), or None."""
    for argument in arguments:
        if type(argument) in observers:
            return argument
        if type(argument) in (list, tuple) and (found := _observer(*argument)) is not None:
            return found
    return None


def _observable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `observers` among the arguments answer a call of `function` by their `__array_function__`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if observers and (seen := _observer(*args)) is not None:
            return seen.__array_function__(call, (type(seen),), args, kwargs)
        return function(*args, **kwargs)

    return call


# --- shapes of cotangents -----------------------------------------------------------------------------------


def unbroadcast(g: Array, x: Array) -> Array:
    """`g` with the shape of `x`: summed over the axes along which `x` was broadcast.

    A `g` that is smaller than `x` (a scalar) is broadcast instead. The result has the dtype of `x` where that
    is inexact; the imaginary part goes where `x` is real.

    >>> unbroadcast(np.ones((2, 3)), np.zeros(3))
    array([2., 2., 2.])
    >>> unbroadcast(np.ones((2, 3)), 1.0)
    np.float64(6.0)
    """
    if type(g) is np.ndarray:
        if type(x) is np.ndarray:
            if g.shape == x.shape:
                return g if g.dtype is x.dtype else _cast(g, x)
            return _cast(_sum_to(g, x.shape), x)
        if type(x) is float:
            total = np.add.reduce(g, axis=None)
            return total.real if g.dtype.kind == "c" else total
    elif type(g) is float and (type(x) is float or type(x) is int):
        return g
    if observers and (seen := _observer(g, x)) is not None:
        return seen.__array_function__(unbroadcast, (type(seen),), (g, x), {})
    shape = np.shape(x)
    if np.shape(g) != shape:
        g = _sum_to(g, shape) if np.ndim(g) else _fill(g, x)
    elif shape == () and isinstance(g, np.ndarray) and not isinstance(x, np.ndarray):
        g = g[()]
    return _cast(g, x)


def _sum_to(g: Array, shape: tuple[int, ...]) -> Array:
    extra = g.ndim - len(shape)
    if extra < 0:
        return np.broadcast_to(g, shape)
    axes = [*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and g.shape[extra + i] != 1)]
    if axes:
        g = g.sum(axis=tuple(axes), keepdims=True)
    g = g.reshape(g.shape[extra:])
    return g if g.shape == shape else np.broadcast_to(g, shape)


def _cast(g: Array, x: Array) -> Array:
    """`g` in the dtype of `x`, if that is inexact; the real part if `x` is real."""
    wanted = getattr(x, "dtype", None)
    if wanted is None:
        return g if isinstance(x, complex) or not np.iscomplexobj(g) else g.real
    given = getattr(g, "dtype", None)
    if wanted.kind not in "fc" or given == wanted:
        return g
    if given is None:
        return wanted.type(g.real if isinstance(g, complex) and wanted.kind == "f" else g)
    if given.kind == "c" and wanted.kind == "f":
        g = g.real
    return g.astype(wanted)


def _fill(g: Array, x: Array) -> Array:
    """The scalar `g` broadcast to the shape of `x`, in the dtype of `x` if that can hold it."""
    if not np.shape(x):
        return g
    if x.dtype.kind == "c" or (x.dtype.kind == "f" and not np.iscomplexobj(g)):
        return np.full_like(x, g)
    return np.full_like(x, g, dtype=np.result_type(g))


_SMALL = 8192
"""Up to this size, writing a fresh array is cheaper than making a broadcast view."""


def expand(g: Array, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The cotangent `g` of a reduction of `x` along `axis`, broadcast back to the shape of `x`.

    >>> expand(np.array([1.0, 2.0]), np.zeros((2, 3)), axis=1)
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    if type(x) is np.ndarray:
        if type(g) is np.ndarray and g.ndim:
            if not keepdims:
                if type(axis) is int:
                    kept = list(x.shape)
                    kept[axis] = 1
                    g = g.reshape(kept)
                elif axis is not None:
                    g = np.expand_dims(g, tuple(axis))
            if x.size > _SMALL:
                return np.broadcast_to(g, x.shape)
            out = np.empty(x.shape, g.dtype)
            out[...] = g
            return out
        if (type(g) is float or type(g) is np.float64 or type(g) is np.float32) and x.dtype.kind == "f":
            if x.size > _SMALL:
                return np.broadcast_to(x.dtype.type(g), x.shape)
            out = np.empty(x.shape, x.dtype)
            out.fill(g)
            return out
    elif type(x) is float:
        return g
    if observers and (seen := _observer(g, x)) is not None:
        return seen.__array_function__(expand, (type(seen),), (g, x, axis, keepdims), {})
    if not np.ndim(x):
        return np.reshape(g, ()) if np.ndim(g) else g
    if not np.ndim(g):
        return _fill(g, x)
    if not keepdims and axis is not None:
        g = np.expand_dims(g, axis if isinstance(axis, int) else tuple(axis))
    return np.broadcast_to(g, np.shape(x))


def _kept_shape(x: Array, axis: Axis) -> list[int]:
    """The shape that a reduction of `x` along `axis` has with keepdims=True."""
    axes = range(np.ndim(x)) if axis is None else [axis] if isinstance(axis, int) else axis
    reduced = {i % np.ndim(x) for i in axes}
    return [1 if i in reduced else n for i, n in enumerate(np.shape(x))]


def count(x: Array, axis: Axis = None, where: Array = True, ddof: float = 0) -> Any:
    """How many elements of `x` a reduction along `axis` takes together, less `ddof`; never 0.

    >>> count(np.zeros((2, 3, 4)), axis=(0, -1))
    8
    """
    if where is not True:
        n = np.sum(np.broadcast_to(where, np.shape(x)), axis=axis, keepdims=True) - ddof
        return np.where(n > 0, n, math.nan).astype(_real_dtype(x))[()]
    if axis is None:
        total = x.size if type(x) is np.ndarray else np.size(x)
    elif isinstance(axis, int):
        total = np.shape(x)[axis]
    else:
        total = math.prod(np.shape(x)[i] for i in axis)
    if not ddof:
        return total or 1
    return total - ddof if total > ddof else math.nan


def _real_dtype(x: Array) -> Any:
    dtype = np.result_type(x)
    return np.finfo(dtype).dtype if dtype.kind in "fc" else np.dtype(np.float64)


def add_at(out: Array, index: Any, part: Array) -> None:
    """`np.add.at`, asked of the array's own library: CuPy's arrays take no tuple through NumPy's."""
    (np if type(out) is np.ndarray else arrays.namespace(out)).add.at(out, index, part)


_BASIC = (int, slice, type(None), type(Ellipsis), np.integer)


def scatter(g: Array, x: Array, index: Any) -> Array:
    """Zeros like `x`, with `g` added at `index`: the cotangent of `x` for `x[index]`.

    >>> scatter(np.array([1.0, 2.0, 3.0]), np.zeros(4), [0, 0, 2])
    array([3., 0., 3., 0.])
    """
    if observers and (seen := _observer(g, x)) is not None:
        return seen.__array_function__(scatter, (type(seen),), (g, x, index), {})
    if type(x) is not np.ndarray:
        out = np.zeros_like(x, dtype=_dtype(g, x))
    else:
        out = np.zeros(x.shape, _dtype(g, x))
    kind = type(index)
    if kind is int or kind is slice:
        out[index] = g
    elif kind is tuple:
        if all(isinstance(i, _BASIC) and i is not True and i is not False for i in index):
            out[index] = g
        else:
            add_at(out, index, g)
    elif isinstance(index, _BASIC) and kind is not bool:
        out[index] = g
    elif isinstance(index, np.ndarray) and index.dtype == bool:
        out[index] = g  # a mask names each element once
    else:
        add_at(out, index, g)
    return out


def _zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros of another shape, of the kind of `like`."""
    if type(like) is np.ndarray:
        return np.zeros(shape, like.dtype)
    return np.zeros(shape, like.dtype, like=like)


def _dtype(g: Array, x: Array) -> Any:
    """The dtype of a cotangent of `x` that holds `g`: that of `x`, or complex if `g` is."""
    if x.dtype.kind == "c" or (x.dtype.kind == "f" and not np.iscomplexobj(g)):
        return x.dtype
    return np.result_type(g) if x.dtype.kind not in "f" else np.result_type(x.dtype, g)


# --- elementwise helpers ------------------------------------------------------------------------------------


@_observable
def ratio(a: Array, b: Array) -> Array:
    """`a / b`, and 0 where `b` is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    if type(b) is float:
        return a / b if b else a * b
    zero = b == 0
    if not np.any(zero):
        return a / b
    return np.where(zero, 0, a / np.where(zero, 1, b))[()]


@_observable
def inverse(x: Array) -> Array:
    """`1 / x`, infinite for Python's 0 too. A Python number stays one, so that it leaves a float32 beside it.

    >>> inverse(4.0), inverse(-0.0)
    (0.25, -inf)
    """
    if isinstance(x, (float, int)) and x == 0:
        return math.copysign(math.inf, x)
    return 1 / x


@_observable
def lowered(y: Array) -> Array:
    """`y - 1`, but 0 where `y` is 0: the exponent in the derivative of `x ** y`, so that of `0 ** 0` is 0.

    >>> lowered(3), lowered(np.array([0.0, 0.5]))
    (2, array([ 0. , -0.5]))
    """
    if isinstance(y, (float, int)):
        return y - 1 if y else 0
    return y - (y != 0) if np.result_type(y).kind != "b" else np.zeros_like(y)


@_observable
def power_slope(x: Array, y: Array, lower: Array) -> Array:
    """The derivative `y * x ** lower` of `x ** y` for `x`. Where Python's own numbers would divide by 0,
    NumPy's inf or nan.

    >>> power_slope(3.0, 2, 1)
    6.0
    >>> print(power_slope(0.0, 0.5, -0.5))
    inf
    """
    if isinstance(x, (float, int, complex)) and x == 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            return y * np.power(x * 1.0, lower)
    return y * x**lower


@_observable
def log_or_zero(x: Array) -> Array:
    """The logarithm of `x`, and 0 where `x` is 0 (the factor in the derivative of `x ** y` for `y`).

    >>> log_or_zero(0.0), log_or_zero(1.0)
    (0.0, 0.0)
    """
    if type(x) is float or type(x) is int:
        return math.log(x) if x > 0 else 0.0 if x == 0 else math.nan
    return np.log(np.where(x == 0, 1, x))


@_observable
def larger(x: Array, y: Array) -> Array:
    """The share of `x` in the derivative of `max(x, y)`: 1 where it is the larger, 1/2 at a tie, else 0.

    >>> larger(np.array([1.0, 2.0, 3.0]), 2.0)
    array([0. , 0.5, 1. ])
    """
    if type(x) is float and type(y) is float:
        return 0.0 if x < y else 0.5 if x == y else 1.0
    share = np.where(x == y, 0.5, np.logical_not(np.less(x, y)))[()]
    dtype = np.result_type(x, y)
    return share if dtype == share.dtype or dtype.kind not in "fc" else share.astype(dtype)


@_observable
def weight(x: Array, z: Array) -> Array:
    """`exp(x - z)`, the weight of `x` in `z = log(exp(x) + ...)`; 0 where `x` is -inf, 1 where `x` is `z`."""
    finite = np.logical_not(np.isinf(z))
    return np.exp(np.subtract(x, np.where(finite, z, 0 if np.ndim(z) else 0.0))) * finite + (
        (x == z) & (z == np.inf)
    )


@_observable
def sinc_slope(x: Array, *, order: int = 1) -> Array:
    """The derivative of `np.sinc` of the given order, also at 0.

    Away from 0 by the recurrence that follows from differentiating x sinc(x) = sin(pi x) / pi; near 0 by the
    power series.
    """
    x = x if hasattr(x, "dtype") else np.asarray(x)
    near = np.abs(x) < 0.3 * (1 + order)
    safe = np.where(near, 1, x)
    far = np.sinc(safe)
    for n in range(1, order + 1):
        far = (math.pi ** (n - 1) * np.sin(math.pi * safe + n * math.pi / 2) - n * far) / safe
    t = np.where(near, x, 0)
    series = 0 * t
    for k in range((order + 1) // 2, 14 + 2 * order):
        series = series + (-1) ** k * math.pi ** (2 * k) / (
            (2 * k + 1) * math.factorial(2 * k - order)
        ) * t ** (2 * k - order)
    return np.where(near, series, far)[()]


# --- reductions ---------------------------------------------------------------------------------------------


@_observable
def ties(y: Array, x: Array, axis: Axis = None, keepdims: bool = False, where: Array = True) -> Array:
    """The share of each element of `x` in its extremum `y`: elements that tie share evenly, nan among them.

    >>> ties(np.float64(3.0), np.array([3.0, 1.0, 3.0]))
    array([0.5, 0. , 0.5])
    >>> ties(np.float64(np.nan), np.array([np.nan, 1.0, 3.0]))
    array([1., 0., 0.])
    """
    if np.ndim(y) and not keepdims and axis is not None:
        y = np.expand_dims(y, axis if isinstance(axis, int) else tuple(axis))
    hit = (x == y) & where
    count = np.sum(hit, axis=axis, keepdims=True)
    if not np.all(count):
        hit = hit | (count == 0) & np.not_equal(x, x) & where
        count = np.maximum(np.sum(hit, axis=axis, keepdims=True), 1)
    share = hit / count
    return share if np.result_type(x).kind not in "fc" else share.astype(np.result_type(x))


@_observable
def deviation(x: Array, axis: Axis = None, where: Array = True) -> Array:
    """`x` less its mean along `axis`, exactly 0 where `x` is constant.

    >>> deviation(np.array([0.7, 0.7, 0.7]))
    array([0., 0., 0.])
    """
    if not np.size(x):
        return x
    axes = range(np.ndim(x)) if axis is None else [axis] if isinstance(axis, int) else axis
    first = tuple(
        slice(0, 1) if i in {j % np.ndim(x) for j in axes} else slice(None) for i in range(np.ndim(x))
    )
    shifted = x - x[first] if np.ndim(x) else x - x
    if where is True:
        return shifted - np.mean(shifted, axis=axis, keepdims=True)
    return shifted - np.mean(shifted, axis=axis, keepdims=True, where=where)


def read_order(x: Array, order: str) -> str:
    """The order "C" or "F" in which "A" and "K" read `x`, which its memory decides.

    >>> read_order(np.zeros((2, 3)).T, "A"), read_order(np.zeros((2, 3)), "K")
    ('F', 'C')

    Raises NoRule for "K" and an array that is not contiguous.
    """
    if order in ("A", "K"):
        flags = np.asarray(x).flags
        if order == "K" and not flags.forc:
            raise NoRule('no derivative for order="K" of an array that is not contiguous: make a copy of it')
        return "F" if flags.fnc else "C"
    return order


@_observable
def others(x: Array, axis: Axis = None, where: Array = True) -> Array:
    """For each element of `x`, the product of the other elements along `axis` (no division: right beside
    zeros too).

    >>> others(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    if not np.ndim(x):
        return np.ones_like(x)
    if where is not True:
        x = np.where(where, x, 1)
    if axis is None:
        return np.reshape(_others(np.reshape(x, -1)), np.shape(x))
    if isinstance(axis, int):
        return np.moveaxis(_others(np.moveaxis(x, axis, -1)), -1, axis)
    last = tuple(range(-len(axis), 0))
    moved = np.moveaxis(x, axis, last)
    kept = moved.ndim - len(axis)
    flat = _others(np.reshape(moved, (*moved.shape[:kept], math.prod(moved.shape[kept:]))))
    return np.moveaxis(np.reshape(flat, moved.shape), last, axis)


def _others(x: Array) -> Array:
    return exclusive_cumprod(x) * np.flip(exclusive_cumprod(np.flip(x, -1)), -1)


@_observable
def recurrence(a: Array, b: Array) -> Array:
    """`s` with `s[..., k] = b[..., k] + a[..., k] * s[..., k - 1]`, starting from 0.

    >>> recurrence(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    array([ 1.,  3., 10.])
    """
    if type(a) is not np.ndarray or type(b) is not np.ndarray:  # arrays of a device
        parts: list[Array] = []
        for k in range(b.shape[-1]):
            parts.append(b[..., k] + a[..., k] * parts[-1] if parts else b[..., k])
        return np.stack(parts, -1) if parts else b
    s = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    if s.ndim == 1:
        last: Any = 0.0
        values = []
        for factor, term in zip(a.tolist(), b.tolist(), strict=True):
            last = term + factor * last
            values.append(last)
        s[...] = values
        return s
    for k in range(s.shape[-1]):
        s[..., k] = b[..., k] + a[..., k] * s[..., k - 1] if k else b[..., 0]
    return s


@_observable
def recurrence_adjoint(a: Array, g: Array) -> Array:
    """The cotangent of `b` for `recurrence(a, b)`: `r[..., k] = g[..., k] + a[..., k + 1] * r[..., k + 1]`.

    >>> recurrence_adjoint(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    array([9., 4., 1.])
    """
    shifted = np.concatenate([0 * a[..., :1], a[..., :0:-1]], axis=-1)
    return np.flip(recurrence(shifted, np.flip(g, -1)), -1)


@_observable
def exclusive_cumprod(a: Array) -> Array:
    """For each element along the last axis, the product of those before it."""
    return np.cumprod(np.concatenate([np.ones_like(a[..., :1]), a[..., :-1]], axis=-1), axis=-1)


@_observable
def undiff(g: Array, n: int = 1, axis: int = -1) -> Array:
    """The cotangent of `a` for `np.diff(a, n, axis)`.

    >>> undiff(np.array([1.0, 1.0]))
    array([-1.,  0.,  1.])
    """
    for _ in range(n):
        zero = np.zeros_like(
            np.take(g, [], axis=axis), shape=[1 if i == axis % g.ndim else m for i, m in enumerate(g.shape)]
        )
        g = np.concatenate([zero, g], axis=axis) - np.concatenate([g, zero], axis=axis)
    return g


@_observable
def spread(g: Array, iterable: Any) -> Any:
    """The cotangent `g` of `sum(iterable)`, for each element.

    >>> spread(1.0, [2.0, 3.0])
    [1.0, 1.0]
    """
    if isinstance(iterable, (list, tuple)):
        return [unbroadcast(g, part) for part in iterable]
    return unbroadcast(g, iterable)


@_observable
def shares(y: Any, values: Sequence[Any]) -> Array:
    """The share of each of `values` in their extremum `y`: those that tie share evenly.

    >>> shares(2.0, [2.0, 1.0, 2.0])
    array([0.5, 0. , 0.5])
    """
    hit = np.array([value == y for value in values])
    return hit / max(hit.sum(), 1)


# --- selecting elements -------------------------------------------------------------------------------------


@_observable
def chosen(conditions: Sequence[Array], i: int) -> Array:
    """Where `np.select` takes its i-th choice (the default, if i is the number of conditions)."""
    earlier: Any = False
    for condition in conditions[:i]:
        earlier = np.logical_or(earlier, condition)
    return np.logical_and(np.logical_not(earlier), conditions[i] if i < len(conditions) else True)


@_observable
def within(x: Array, *bounds: Array) -> Array:
    """Where `x` lies in the closed interval between the bounds: `low, high`, or `None` in place of either.

    >>> within(np.array([1.0, 2.0, 3.0]), 2.0, None)
    array([False,  True,  True])
    """
    inside: Any = True
    for i, bound in enumerate(bounds):
        if bound is not None:
            inside = np.logical_and(
                inside, np.less_equal(bound, x) if i % 2 == 0 else np.less_equal(x, bound)
            )
    return np.logical_and(inside, np.full(np.shape(x), True)) if inside is True else inside


@_observable
def under(x: Array, low: Array, high: Array = None) -> Array:
    """Where `np.clip(x, low, high)` is `low` because `x` lies under it."""
    if low is None:
        return False
    return np.less(x, low) if high is None else np.logical_and(np.less(x, low), np.less_equal(low, high))


@_observable
def over(x: Array, low: Array, high: Array) -> Array:
    """Where `np.clip(x, low, high)` is `high` because `x` (or `low`) lies over it."""
    if high is None:
        return False
    return np.greater(x if low is None else np.maximum(x, low), high)


@_observable
def put_along(g: Array, x: Array, indices: Array, axis: int | None = -1) -> Array:
    """Zeros like `x` with `g` added at `indices` along `axis`: the cotangent for `np.take_along_axis`.

    >>> put_along(np.array([1.0, 2.0]), np.zeros(3), np.array([2, 0]))
    array([2., 0., 1.])
    """
    if axis is None:
        return np.reshape(scatter(g, np.reshape(x, -1), indices), np.shape(x))
    axis = axis % np.ndim(x)
    if type(g) is type(indices) is np.ndarray and g.shape == indices.shape and indices.shape[axis] == 1:
        n = np.shape(x)[axis]  # one element of each row: no two additions meet
        places = np.arange(n).reshape([n if k == axis else 1 for k in range(g.ndim)])
        return np.where(places == indices % n, g, g.dtype.type(0))
    full = np.broadcast_shapes(
        np.shape(indices), tuple(1 if i == axis else n for i, n in enumerate(np.shape(x)))
    )
    index = [
        np.reshape(np.arange(n), [n if k == i else 1 for k in range(len(full))]) for i, n in enumerate(full)
    ]
    index[axis] = indices
    return scatter(g, x, tuple(index))


@_observable
def diagonal_scatter(g: Array, x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Zeros like `x` with `g` on the diagonal: the cotangent for `np.diagonal(x, offset, axis1, axis2)`.

    >>> diagonal_scatter(np.array([1.0, 2.0]), np.zeros((2, 2)))
    array([[1., 0.],
           [0., 2.]])
    """
    below, right = max(-offset, 0), max(offset, 0)
    rows = np.arange(below, max(below, min(np.shape(x)[axis1], np.shape(x)[axis2] + below - right)))
    columns = rows - below + right
    out = np.zeros_like(x, dtype=_dtype(g, x))
    np.moveaxis(out, (axis1, axis2), (-2, -1))[..., rows, columns] = g
    return out


# --- copies of elements -------------------------------------------------------------------------------------


@_observable
def unrepeat(g: Array, a: Array, repeats: Any, axis: int | None = None) -> Array:
    """The cotangent of `a` for `np.repeat(a, repeats, axis)`: the sum over each element's copies.

    >>> unrepeat(np.array([1.0, 2.0, 3.0]), np.zeros(2), [2, 1])
    array([3., 3.])
    """
    if axis is None:
        return np.reshape(unrepeat(g, np.reshape(a, -1), repeats, 0), np.shape(a))
    g = np.moveaxis(g, axis, 0)
    n = np.shape(a)[axis]
    if np.size(repeats) == 1:
        total = np.sum(np.reshape(g, (n, int(np.ravel(repeats)[0]), *g.shape[1:])), axis=1)
    else:
        total = scatter(g, _zeros((n, *g.shape[1:]), g), np.repeat(np.arange(n), repeats))
    return np.moveaxis(total, 0, axis)


@_observable
def untile(g: Array, a: Array, reps: Any) -> Array:
    """The cotangent of `a` for `np.tile(a, reps)`: the sum over its copies.

    >>> untile(np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(2), 2)
    array([4., 6.])
    """
    copies = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    n = max(len(copies), np.ndim(a))
    shape = (1,) * (n - np.ndim(a)) + np.shape(a)
    copies = (1,) * (n - len(copies)) + copies
    split = np.reshape(g, [k for pair in zip(copies, shape, strict=True) for k in pair])
    return np.reshape(np.sum(split, axis=tuple(range(0, 2 * n, 2))), np.shape(a))


@_observable
def grid_sum(g: Array, axis: int, x: Array) -> Array:
    """The cotangent of `x` for an array of `np.meshgrid` along whose `axis` it lies."""
    return np.reshape(np.sum(g, axis=tuple(i for i in range(np.ndim(g)) if i != axis)), np.shape(x))


@_observable
def window_scatter(g: Array, x: Array, window_shape: Any, axis: Any = None) -> Array:
    """The cotangent of `x` for `sliding_window_view(x, window_shape, axis)`.

    >>> window_scatter(np.ones((2, 2)), np.zeros(3), 2)
    array([1., 2., 1.])
    """
    window = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = range(np.ndim(x)) if axis is None else (axis,) if isinstance(axis, int) else axis
    out = np.zeros_like(x, dtype=_dtype(g, x))
    for offset in np.ndindex(*window):
        place = [slice(None)] * np.ndim(x)
        for axis_, start in zip(axes, offset, strict=True):
            i = axis_ % np.ndim(x)
            begin = (place[i].start or 0) + start
            place[i] = slice(begin, begin + g.shape[i])
        out[tuple(place)] += g[(..., *offset)]
    return out


# --- sequences of arrays ------------------------------------------------------------------------------------


@_observable
def split_like(g: Array, arrays: Sequence[Array], axis: int | None = 0, ndim: int = 0) -> list[Array]:
    """The parts of `g` that came from each of the concatenated `arrays`.

    `ndim` tells how arrays of lower rank were promoted before: to that many axes, as `np.atleast_1d`,
    `atleast_2d` and `atleast_3d` do; -2: vectors became columns.

    >>> split_like(np.arange(3.0), [np.zeros(1), np.zeros(2)])
    [array([0.]), array([1., 2.])]
    """
    if axis is None:
        sizes = [np.size(a) for a in arrays]
    elif ndim in (0, 1) and all(np.ndim(a) for a in arrays):
        sizes = [np.shape(a)[axis] for a in arrays]
    elif ndim == -2:
        sizes = [np.shape(a)[1] if np.ndim(a) > 1 else 1 for a in arrays]
    else:
        promote = {0: np.atleast_1d, 1: np.atleast_1d, 2: np.atleast_2d, 3: np.atleast_3d}[ndim]
        sizes = [promote(np.empty(np.shape(a))).shape[axis] for a in arrays]
    parts = []
    start = 0
    where: Any = (slice(None),) * (0 if axis is None else axis % g.ndim)
    for size, array in zip(sizes, arrays, strict=True):
        part = g[(*where, slice(start, start + size))]
        parts.append(unbroadcast(np.reshape(part, np.shape(array)), array))
        start += size
    return parts


@_observable
def unstack(g: Array, arrays: Sequence[Array]) -> list[Array]:
    """The parts of `g` along its first axis, one for each of the stacked `arrays`.

    >>> unstack(np.array([1.0, 2.0]), [0.0, 0.0])
    [np.float64(1.0), np.float64(2.0)]
    """
    return [unbroadcast(part, array) for part, array in zip(g, arrays, strict=True)]


@_observable
def carried(g: Array, y: Array) -> Array:
    """`g`, or zeros where `y` is discrete: a cast to integers carries no derivative."""
    return g if np.result_type(y).kind in "fc" else 0.0 * np.asarray(g)


@_observable
def linspace_part(g: Array, first: float, last: float, endpoint: bool = True, axis: int = 0) -> Array:
    """`g` summed along `axis` with weights that `np.linspace` spaces evenly from `first` to `last`."""
    return np.tensordot(np.linspace(first, last, np.shape(g)[axis], endpoint), g, (0, axis))


@_observable
def unblock(g: Array, arrays: Any) -> Any:
    """The parts of `g` that came from each array of the nested lists of `np.block(arrays)`."""
    if not isinstance(arrays, (list, tuple)):
        return np.reshape(g, np.shape(arrays))

    def depth(nested: Any) -> int:
        return 1 + depth(nested[0]) if isinstance(nested, (list, tuple)) else 0

    def rank(nested: Any) -> int:
        return max(map(rank, nested)) if isinstance(nested, (list, tuple)) else np.ndim(nested)

    def extent(nested: Any, axis: int) -> int:
        """Size along `axis` (negative) of a nested block of depth -own."""
        if not isinstance(nested, (list, tuple)):
            return int(np.shape(nested)[axis]) if np.ndim(nested) >= -axis else 1
        parts = [extent(part, axis) for part in nested]
        return sum(parts) if depth(nested) == -axis else parts[0]

    def part(piece: Any, nested: Any) -> Any:
        if not isinstance(nested, (list, tuple)):
            return unbroadcast(np.reshape(piece, np.shape(nested)), nested)
        axis = -depth(nested)
        start, found = 0, []
        for inner in nested:
            stop = start + extent(inner, axis)
            index = (slice(None),) * (piece.ndim + axis) + (slice(start, stop),)
            found.append(part(piece[index], inner))
            start = stop
        return found

    total = max(depth(arrays), rank(arrays))
    return part(np.reshape(g, (1,) * (total - g.ndim) + g.shape), arrays)


@_observable
def unpad(g: Array, x: Array, pad_width: Any, mode: Any = "constant") -> Array:
    """The cotangent of `x` for `np.pad(x, pad_width, mode)`: each element's copies in the border are added to
    it.

    >>> unpad(np.array([1.0, 2.0, 4.0]), np.zeros(2), (1, 0), "edge")
    array([3., 4.])
    """
    if isinstance(pad_width, dict):
        given: Any = [pad_width.get(i, pad_width.get(i - np.ndim(x), 0)) for i in range(np.ndim(x))]
        pairs: Any = [(p, p) if isinstance(p, int) else tuple(p) for p in given]
    else:
        pairs = [tuple(p) for p in np.broadcast_to(pad_width, (np.ndim(x), 2)).tolist()]
    if mode == "constant":
        return g[tuple(slice(before, before + n) for (before, _), n in zip(pairs, np.shape(x), strict=True))]
    for axis, ((before, after), n) in enumerate(zip(pairs, np.shape(x), strict=True)):
        source = np.pad(np.arange(n), (before, after), mode)
        moved = np.moveaxis(g, axis, 0)
        moved = scatter(moved, _zeros((n, *moved.shape[1:]), moved), source)
        g = np.moveaxis(moved, 0, axis)
    return g


@_observable
def like_nested(g: Array, nested: Any) -> Any:
    """The cotangent `g` of `np.array(nested)`, as lists nested like `nested`.

    >>> like_nested(np.array([[1.0, 2.0], [3.0, 4.0]]), [[0.0, 0.0], np.zeros(2)])
    [[np.float64(1.0), np.float64(2.0)], array([3., 4.])]
    """
    if isinstance(nested, (list, tuple)):
        return [like_nested(g[i], part) for i, part in enumerate(nested)]
    return unbroadcast(g, nested)


# --- products -----------------------------------------------------------------------------------------------


def is_sparse(x: Array) -> bool:
    """Is `x` one of SciPy's sparse arrays?"""
    return type(x) is not np.ndarray and hasattr(x, "tocoo")


def with_entries(g: Any, x: Array) -> Array:
    """The cotangent `g` of `x`, as a sparse array where `x` is one."""
    if not is_sparse(x):
        return g
    made = x.copy()
    made.data = g["data"]
    return made


def sparse_left(g: Array, a: Array, b: Array) -> Any:
    """The cotangent of `a` for `a @ b` where one of them is sparse; that of a sparse array is a dict."""
    if not is_sparse(a):
        return unbroadcast(g @ b.T, a)
    if is_sparse(b):
        raise NotImplementedError("the derivative of a product of sparse arrays")
    entries = a.tocoo()
    left, right = np.reshape(g, (a.shape[0], -1)), np.reshape(b, (a.shape[1], -1))
    return {"data": np.sum(left[entries.row] * right[entries.col], axis=1)}


def sparse_right(g: Array, a: Array, b: Array) -> Any:
    """The cotangent of `b` for `a @ b` where one of them is sparse."""
    if not is_sparse(b):
        return unbroadcast(a.T @ g, b)
    if is_sparse(a):
        raise NotImplementedError("the derivative of a product of sparse arrays")
    entries = b.tocoo()
    left, right = np.reshape(a, (-1, b.shape[0])), np.reshape(g, (-1, b.shape[1]))
    return {"data": np.sum(left[:, entries.row] * right[:, entries.col], axis=0)}


@_observable
def matmul_left(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `a` for `a @ b`, for any ranks."""
    if is_sparse(a) or is_sparse(b):
        return sparse_left(g, a, b)
    if b.ndim == 1:
        return unbroadcast(g[..., None] * b, a)
    if a.ndim == 1:
        return unbroadcast((b @ g[..., None])[..., 0], a)
    return unbroadcast(g @ np.swapaxes(b, -1, -2), a)


@_observable
def matmul_right(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `b` for `a @ b`, for any ranks."""
    if is_sparse(a) or is_sparse(b):
        return sparse_right(g, a, b)
    if a.ndim == 1:
        return unbroadcast(a[:, None] * g[..., None, :] if b.ndim > 1 else a * g, b)
    if b.ndim == 1:
        return unbroadcast((np.swapaxes(a, -1, -2) @ g[..., None])[..., 0], b)
    return unbroadcast(np.swapaxes(a, -1, -2) @ g, b)


@_observable
def dot_left(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `a` for `np.dot(a, b)`, for any ranks."""
    if not np.ndim(a) or not np.ndim(b):
        return unbroadcast(g * b, a)
    if np.ndim(b) == 1:
        return unbroadcast(np.expand_dims(g, -1) * b, a)
    b = np.moveaxis(b, -2, -1)
    n = np.ndim(b) - 1
    first = np.ndim(a) - 1
    return unbroadcast(np.tensordot(g, b, (list(range(first, first + n)), list(range(n)))), a)


@_observable
def dot_right(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `b` for `np.dot(a, b)`, for any ranks."""
    if not np.ndim(a) or not np.ndim(b):
        return unbroadcast(g * a, b)
    n = np.ndim(a) - 1
    summed = np.tensordot(a, g, (list(range(n)), list(range(n))))
    return unbroadcast(summed if np.ndim(b) == 1 else np.moveaxis(summed, 0, -2), b)


@_observable
def inner_left(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `a` for `np.inner(a, b)`; that of `b` is `inner_left` of the transposed problem."""
    if not np.ndim(a) or not np.ndim(b):
        return unbroadcast(g * b, a)
    n, first = np.ndim(b) - 1, np.ndim(a) - 1
    return unbroadcast(np.tensordot(g, b, (list(range(first, first + n)), list(range(n)))), a)


@_observable
def inner_right(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `b` for `np.inner(a, b)`."""
    if not np.ndim(a) or not np.ndim(b):
        return unbroadcast(g * a, b)
    n = np.ndim(a) - 1
    return unbroadcast(np.tensordot(g, a, (list(range(n)), list(range(n)))), b)


def _contracted(a: Array, b: Array, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        return list(range(np.ndim(a) - axes, np.ndim(a))), list(range(axes))
    first, second = ([x] if isinstance(x, int) else list(x) for x in axes)
    return [i % np.ndim(a) for i in first], [i % np.ndim(b) for i in second]


@_observable
def tensordot_left(g: Array, a: Array, b: Array, axes: Any = 2) -> Array:
    """The cotangent of `a` for `np.tensordot(a, b, axes)`."""
    over_a, over_b = _contracted(a, b, axes)
    free_a = [i for i in range(np.ndim(a)) if i not in over_a]
    free_b = [i for i in range(np.ndim(b)) if i not in over_b]
    tail = list(range(len(free_a), len(free_a) + len(free_b)))
    out = np.tensordot(
        g, b, (tail, free_b)
    )  # axes: free_a, then the contracted ones in the order they have in b
    return unbroadcast(
        np.moveaxis(out, range(np.ndim(a)), free_a + [over_a[over_b.index(i)] for i in sorted(over_b)]), a
    )


@_observable
def tensordot_right(g: Array, a: Array, b: Array, axes: Any = 2) -> Array:
    """The cotangent of `b` for `np.tensordot(a, b, axes)`."""
    over_a, over_b = _contracted(a, b, axes)
    free_a = [i for i in range(np.ndim(a)) if i not in over_a]
    free_b = [i for i in range(np.ndim(b)) if i not in over_b]
    out = np.tensordot(
        a, g, (free_a, list(range(len(free_a))))
    )  # axes: contracted in the order of a, then free_b
    return unbroadcast(
        np.moveaxis(out, range(np.ndim(b)), [over_b[over_a.index(i)] for i in sorted(over_a)] + free_b), b
    )


@_observable
def einsum_part(g: Array, i: int, subscripts: str, operands: Sequence[Array], optimize: Any = False) -> Array:
    """The cotangent of the i-th of the `operands` of `np.einsum(subscripts, *operands)`: an einsum of `g`
    with the rest.

    Ellipses are spelled out first. An index that occurs in this operand only was summed over: it is carried
    by ones. One that occurs twice in it stood for a diagonal: it is carried by an identity matrix.
    """
    inputs, output = einsum_labels(subscripts, [np.ndim(a) for a in operands])
    sizes: dict[str, int] = {}
    for labels, operand in zip(inputs, operands, strict=True):
        for label, n in zip(labels, np.shape(operand), strict=True):
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    rest = [inputs[k] for k in range(len(inputs)) if k != i]
    arrays = [operands[k] for k in range(len(inputs)) if k != i]
    known = set(output).union(*rest)
    target = ""
    for label in inputs[i]:
        if label not in known:
            rest.append(label)
            arrays.append(np.ones(sizes[label], np.result_type(operands[i])))
            known.add(label)
        if label in target:
            fresh = next(c for c in _LETTERS if c not in known and c not in inputs[i])
            known.add(fresh)
            rest.append(label + fresh)
            arrays.append(np.eye(sizes[label], dtype=np.result_type(operands[i])))
            label = fresh
        target += label
    spec = ",".join([output, *rest]) + "->" + target
    return unbroadcast(np.einsum(spec, g, *arrays, optimize=optimize), operands[i])


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum_labels(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The labels of the operands and of the result of an einsum, with ellipses and the implicit result
    spelled out.

    >>> einsum_labels("...ij,jk", [3, 2])
    (['aij', 'jk'], 'aik')
    """
    if not isinstance(subscripts, str):
        raise NotImplementedError(
            "the derivative of np.einsum with lists of indices: give the indices as a string"
        )
    subscripts = subscripts.replace(" ", "")
    left, arrow, output = subscripts.partition("->")
    inputs = left.split(",")
    spare = [c for c in _LETTERS if c not in subscripts]
    hidden = [rank - len(labels.replace("...", "")) for labels, rank in zip(inputs, ranks, strict=True)]
    most = max([n for labels, n in zip(inputs, hidden, strict=True) if "..." in labels], default=0)
    dots = "".join(spare[:most])
    inputs = [
        labels.replace("...", dots[most - n :] if n else "") for labels, n in zip(inputs, hidden, strict=True)
    ]
    if arrow:
        return inputs, output.replace("...", dots)
    joined = "".join(inputs)
    return inputs, dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))


def _kron_shapes(a: Array, b: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    n = max(np.ndim(a), np.ndim(b))
    return (1,) * (n - np.ndim(a)) + np.shape(a), (1,) * (n - np.ndim(b)) + np.shape(b)


@_observable
def unkron_left(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `a` for `np.kron(a, b)`."""
    of_a, of_b = _kron_shapes(a, b)
    blocks = np.reshape(g, [n for pair in zip(of_a, of_b, strict=True) for n in pair])
    factor = np.reshape(b, [n for m in of_b for n in (1, m)])
    return unbroadcast(
        np.reshape(np.sum(blocks * factor, axis=tuple(range(1, blocks.ndim, 2))), np.shape(a)), a
    )


@_observable
def unkron_right(g: Array, a: Array, b: Array) -> Array:
    """The cotangent of `b` for `np.kron(a, b)`."""
    of_a, of_b = _kron_shapes(a, b)
    blocks = np.reshape(g, [n for pair in zip(of_a, of_b, strict=True) for n in pair])
    factor = np.reshape(a, [n for m in of_a for n in (m, 1)])
    return unbroadcast(
        np.reshape(np.sum(blocks * factor, axis=tuple(range(0, blocks.ndim, 2))), np.shape(b)), b
    )


def _vectors(x: Array, axis: int) -> Array:
    """`x` with its vectors along the last axis; those of two components get a third, 0."""
    x = np.moveaxis(x, axis, -1)
    return x if x.shape[-1] == 3 else np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)


@_observable
def cross_left(g: Array, a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1) -> Array:
    """The cotangent of `a` for `np.cross(a, b, axisa, axisb, axisc)`: b x g."""
    if np.shape(a)[axisa] == 2 and np.shape(b)[axisb] == 2:
        g = np.stack([0 * g, 0 * g, g], axis=-1)
    else:
        g = np.moveaxis(g, axisc, -1)
    product = np.cross(_vectors(b, axisb), g)[..., : np.shape(a)[axisa]]
    return np.moveaxis(unbroadcast(product, np.moveaxis(a, axisa, -1)), -1, axisa)


@_observable
def cross_right(g: Array, a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1) -> Array:
    """The cotangent of `b` for `np.cross(a, b, axisa, axisb, axisc)`: g x a."""
    return -cross_left(g, b, a, axisb, axisa, axisc)


# --- linear algebra -----------------------------------------------------------------------------------------


@_observable
def inverse_transposed(a: Array) -> Array:
    """The inverse of `a`, transposed; for a singular matrix infinite instead of an error."""
    try:
        return np.swapaxes(np.linalg.inv(a), -1, -2)
    except np.linalg.LinAlgError:
        with np.errstate(divide="ignore", invalid="ignore"):
            return cofactors(a) / np.linalg.det(a)[..., None, None]


@_observable
def cofactors(a: Array) -> Array:
    """The matrix of cofactors: det(a) times the transposed inverse, and its limit where `a` is singular.

    >>> cofactors(np.array([[1.0, 2.0], [2.0, 4.0]])).round(12)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    determinant = np.linalg.det(a)
    scale = np.prod(np.linalg.norm(a, axis=-1), axis=-1)  # Hadamard's bound
    if np.all(np.abs(determinant) > 1e-10 * scale):
        return np.swapaxes(np.linalg.inv(a), -1, -2) * np.expand_dims(determinant, (-2, -1))
    u, s, vh, factor = oriented_svd(a)
    return factor * (np.conj(u) * np.expand_dims(others(s, -1), -2)) @ np.conj(vh)


def oriented_svd(a: Array) -> tuple[Array, Array, Array, Array]:
    """The singular value decomposition, and the product of the determinants of its bases."""
    u, s, vh = np.linalg.svd(a)
    return u, s, vh, np.expand_dims(np.linalg.det(u) * np.linalg.det(vh), (-2, -1))


@_observable
def masked(value: Array, condition: Array, taken: bool = True) -> Array:
    """The cotangent `value` with an exact 0 where `condition` is not `taken`, if the two have one shape, or
    `condition` the smaller: there it is 0 times something, which may be infinite or nan.

    >>> masked(np.array([1.0, np.nan]), np.array([True, False]))
    array([1., 0.])
    """
    shape, selected = np.shape(value), np.shape(condition)
    if not shape and not selected:
        return value if bool(condition) is taken else np.zeros_like(value)[()]
    if selected != shape and (len(selected) > len(shape) or np.broadcast_shapes(selected, shape) != shape):
        return value
    return (np.where(condition, value, 0) if taken else np.where(condition, 0, value))[()]


@_observable
def adjoint(a: Array) -> Array:
    """The conjugate transpose of the last two axes."""
    return np.conj(np.swapaxes(a, -1, -2)) if np.iscomplexobj(a) else np.swapaxes(a, -1, -2)


@_observable
def hermitian(a: Array) -> Array:
    """The Hermitian part of `a` (for real matrices, the symmetric part)."""
    return (a + adjoint(a)) / 2


@_observable
def gaps(w: Array) -> Array:
    """The matrix of 1 / (w[j] - w[i]), and 0 where the two are equal.

    >>> gaps(np.array([1.0, 3.0]))
    array([[ 0. ,  0.5],
           [-0.5,  0. ]])
    """
    return ratio(np.ones_like(w[..., :1, None]), np.expand_dims(w, -2) - np.expand_dims(w, -1))


@_observable
def solve_lower(a: Array, b: Array, adjoint_: bool = False) -> Array:
    """The solution of `a x = b` for a lower triangular `a`, or of `a^H x = b`."""
    if type(a) is np.ndarray and a.ndim == 2 and a.dtype == b.dtype and "scipy.linalg" in sys.modules:
        solve: Any = sys.modules["scipy.linalg"].solve_triangular
        return solve(a, b, trans="C" if adjoint_ else "N", lower=True, check_finite=False)
    return np.linalg.solve(adjoint(np.tril(a)) if adjoint_ else np.tril(a), b)


@_observable
def norm_slope(y: Array, x: Array, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The derivative of `y = np.linalg.norm(x, ord, axis, keepdims)`: 0 where `y` is 0, ties share."""
    if not keepdims:
        y = np.reshape(np.asarray(y, _real_dtype(x)), _kept_shape(x, axis))
    if ord is None or ord == "fro":
        return ratio(np.conj(x), y)
    if axis is None and np.ndim(x) == 2:
        axis = (0, 1)
    if axis is not None and not isinstance(axis, int) and len(axis) == 2:
        return _matrix_norm_slope(y, x, ord, axis)
    return vector_norm_slope(y, x, ord, axis, True)


@_observable
def vector_norm_slope(y: Array, x: Array, ord: Any = 2, axis: Axis = None, keepdims: bool = False) -> Array:
    """The derivative of `y = np.linalg.vector_norm(x, ord=ord, axis=axis)`: 0 where `y` is 0, ties share."""
    if not keepdims:
        y = np.reshape(np.asarray(y, _real_dtype(x)), _kept_shape(x, axis))
    sign = np.conj(np.sign(x))
    size = np.abs(x)
    if ord in (math.inf, -math.inf):
        return sign * ties(y, size, axis, True)
    if ord == 0:
        return 0 * sign
    if ord == 1:
        return sign
    if ord == 2:
        return ratio(np.conj(x), y)
    power = np.where(size == 0, 0, np.where(size == 0, 1, size) ** (ord - 1))
    return sign * ratio(power, np.where(y == 0, 1, y) ** (ord - 1))


def _matrix_norm_slope(y: Array, x: Array, ord: Any, axis: Sequence[int]) -> Array:
    rows, columns = axis
    if ord in (1, -1, math.inf, -math.inf):
        summed, searched = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = np.sum(np.abs(x), axis=summed, keepdims=True)
        return np.conj(np.sign(x)) * ties(y, sums, searched, True)
    u, s, vh = np.linalg.svd(np.moveaxis(x, (rows, columns), (-2, -1)), full_matrices=False)
    if ord != "nuc":
        u = u * np.expand_dims(ties(np.max(s, axis=-1) if ord == 2 else np.min(s, axis=-1), s, -1), -2)
    return np.moveaxis(np.conj(u @ vh), (-2, -1), (rows, columns))


# --- functions that NumPy lacks -----------------------------------------------------------------------------


def digamma(x: float) -> Any:
    """The logarithmic derivative of the gamma function, for Python floats (Abramowitz & Stegun, 6.3).

    >>> round(digamma(1.0), 12)
    -0.577215664902
    """
    return polygamma(0, x)


@_observable
def bessel_i(n: int, x: Array) -> Array:
    """The modified Bessel function I_n (Abramowitz & Stegun, 9.6.10), for whole n and moderate or large `x`.

    >>> bool(np.isclose(bessel_i(1, 2.0), 1.5906368546373291))
    True
    """
    x = np.asarray(x) + 0.0
    sign = np.where(x < 0, (-1.0) ** n, 1.0).astype(x.dtype)
    size = np.abs(x)
    near = np.where(size < 30, size, 1)
    term = (near / 2) ** abs(n) / math.factorial(abs(n))
    series = term
    for k in range(1, 60):
        term = term * (near / 2) ** 2 / (k * (k + abs(n)))
        series = series + term
    far = np.where(size < 30, 30, size)
    term = 0 * far + 1  # the asymptotic series, 9.7.1
    asymptotic = term
    for k in range(1, 14):
        term = -term * (4 * n * n - (2 * k - 1) ** 2) / (8 * k * far)
        asymptotic = asymptotic + term
    asymptotic = asymptotic * np.exp(far) / np.sqrt(2 * math.pi * far)
    return (sign * np.where(size < 30, series, asymptotic))[()]


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def polygamma(n: int, x: float) -> Any:
    """The n-th derivative of digamma, for Python floats: recurrence up to x >= 12, then the asymptotic series
    (6.4.11)."""
    if x <= 0:
        if x == math.floor(x):
            return math.nan
        return _reflected(n, x)
    shifted = 0.0
    while x < 12 + n:
        shifted += x ** -(n + 1)
        x += 1
    if n == 0:
        series = math.log(x) - 0.5 / x
        for k, b in enumerate(_BERNOULLI, 1):
            series -= b / (2 * k) * x ** (-2 * k)
        return series - shifted
    series = math.factorial(n - 1) / x**n + math.factorial(n) / (2 * x ** (n + 1))
    for k, b in enumerate(_BERNOULLI, 1):
        series += b * math.factorial(2 * k + n - 1) / (math.factorial(2 * k) * x ** (2 * k + n))
    return -((-1) ** n) * (series + math.factorial(n) * shifted)


def _reflected(n: int, x: float) -> Any:
    """polygamma at negative x: (-1)^n psi_n(1 - x) - psi_n(x) = d^n/dx^n pi cot(pi x) (6.4.7)."""
    cot = 1 / math.tan(math.pi * x)
    powers = [0.0, 1.0]  # pi cot(pi x) and its derivatives are polynomials in cot: d cot = -pi (1 + cot^2)
    for _ in range(n):
        slope = [i * c for i, c in enumerate(powers)][1:]
        powers = [0.0] * (len(slope) + 2)
        for i, c in enumerate(slope):
            powers[i] -= math.pi * c
            powers[i + 2] -= math.pi * c
    return (-1) ** n * polygamma(n, 1 - x) - math.pi * sum(c * cot**i for i, c in enumerate(powers))
