"""Reductions: sums, extrema, statistics, cumulative functions, sorting, softmax."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import builtins
import math
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.graph import target_of
from srcgrad.runtime.autograd.masking import masking
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import (
    NOTHING,
    call,
    raw_of,
    record_beside,
    record_one,
    record_rule,
    tracked,
)
from srcgrad.runtime.rules import neural
from srcgrad.runtime.tensor import FUNCTIONS, public, type_name
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_create import convert
from srcgrad.runtime.tensor_inplace import method as in_place_method
from srcgrad.runtime.tensor_types import F32, F64, as_dtype, default_dtype
from srcgrad.runtime.tensor_views import called, dimension

SUM = {d: rule_node(f"SumBackward{d}", np.sum) for d in (0, 1)}
MEAN = {d: rule_node(f"MeanBackward{d}", np.mean) for d in (0, 1)}
PROD = {d: rule_node(f"ProdBackward{d}", np.prod, "both") for d in (0, 1)}
EXTREMUM = {
    ("max", False): masking(rule_node("MaxBackward1", np.max, "both")),
    ("min", False): masking(rule_node("MinBackward1", np.min, "both")),
    ("max", True): rule_node("MaxBackward0", np.take_along_axis),
    ("min", True): rule_node("MinBackward0", np.take_along_axis),
}
AMAX = {
    "amax": rule_node("AmaxBackward0", np.max, "both"),
    "amin": rule_node("AminBackward0", np.min, "both"),
}
VAR = rule_node("VarBackward0", np.var)
STD = rule_node("StdBackward0", np.std, "both")
CUMSUM = rule_node("CumsumBackward0", np.cumsum)
CUMPROD = rule_node("CumprodBackward0", np.cumprod, "both")
LOGSUMEXP = rule_node("LogsumexpBackward0", neural.logsumexp, "both")
SOFTMAX = rule_node("SoftmaxBackward0", neural.softmax)
LOG_SOFTMAX = rule_node("LogSoftmaxBackward0", neural.log_softmax)
NORM = rule_node("LinalgVectorNormBackward0", neural.vector_norm, "both")

DIMS = [{"dim": d} for d in range(64)]
"""What nodes over one dimension show, made once."""
for _kind in (EXTREMUM["max", True], EXTREMUM["min", True]):
    _kind.saved_names = {"indices": 1}
Axis = int | tuple[int, ...] | None


def axes_of(dim: Any, ndim: int) -> Axis:
    """The axes to reduce, from what a user gives as `dim`."""
    if dim is None:
        return None
    if isinstance(dim, list | tuple):
        if not dim:
            return None
        axes = tuple(dimension(d, ndim) for d in dim)
        if len(set(axes)) != len(axes):
            twice = next(d for d in axes if axes.count(d) > 1)
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
        return axes
    if not hasattr(dim, "__index__") or isinstance(dim, bool):
        raise TypeError(f"argument 'dim' must be int or tuple of ints, not {type(dim).__name__}")
    return dimension(dim, ndim)


def _count_of(shape: tuple[int, ...], axis: Axis) -> int:
    if axis is None:
        return math.prod(shape)
    if isinstance(axis, int):
        return shape[axis] if shape else 1
    return math.prod(shape[d] for d in axis)


def _shown(dim: Any, axis: Axis, keepdim: bool) -> dict[str, Any] | None:
    if axis is None:
        return None
    return {"dim": axis if isinstance(axis, tuple) else (axis,), "keepdim": keepdim}


def _reduced(
    kinds: dict[int, Any], input: Tensor, dim: Any, keepdim: bool, compute: Callable[..., Any]
) -> Tensor:
    a = input._array
    axis = axes_of(dim, a.ndim) if dim is not None else None
    if a.ndim == 0:
        axis = None
    keywords: dict[str, Any]
    if axis is None and not keepdim:
        out = compute(a)
        keywords = NOTHING
    else:
        keywords = {"axis": axis, "keepdims": keepdim}
        out = compute(a, axis=axis, keepdims=keepdim)
    result = wrap(out)
    if (input._history is not None or input._more is not None) and tracked((input,)):
        kind = kinds[0 if dim is None else 1]
        if a.dtype is out.dtype and (a.dtype is F32 or a.dtype is F64):
            record_one(kind, result, input, (), keywords, _shown(dim, axis, keepdim))
        else:
            record_rule(kind, result, (input,), keywords, _shown(dim, axis, keepdim))
    return result


def _wide(input: Tensor, dtype: Any) -> Tensor:
    """Integers and bools are added up as int64."""
    if dtype is not None:
        return convert(input, as_dtype(dtype).numpy)
    return convert(input, np.dtype("int64")) if input._array.dtype.kind in "biu" else input


_ADD: Any = np.add.reduce


def _add_up(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    if type(a) is np.ndarray:
        return _ADD(a, axis=axis, keepdims=keepdims)
    return a.sum(axis=axis, keepdims=keepdims)


@public("sum")
def sum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: bool = False,
    out: Any = None,
) -> Tensor:
    """The sum of all elements, or along `dim`."""
    return _reduced(SUM, _wide(input, dtype), dim if axis is None else axis, keepdim or keepdims, _add_up)


def _average(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    if a.size == 0:
        with arrays.quiet():
            return a.sum(axis=axis, keepdims=keepdims) / a.dtype.type(_count_of(a.shape, axis))
    if type(a) is np.ndarray and a.dtype.kind == "f" and a.dtype.itemsize >= 4:
        total = _ADD(a, axis=axis, keepdims=keepdims)
        return total / a.dtype.type(_count_of(a.shape, axis))
    return a.mean(axis=axis, keepdims=keepdims)


@public("mean")
def mean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: bool = False,
    out: Any = None,
) -> Tensor:
    """The mean of all elements, or along `dim`."""
    if dtype is not None:
        input = convert(input, as_dtype(dtype).numpy)
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
            "dtype. Got: "
            f"{type_name(input._array.dtype)}"
        )
    return _reduced(MEAN, input, dim if axis is None else axis, keepdim or keepdims, _average)


@public("prod")
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The product of all elements, or along `dim`."""
    if isinstance(dim, list | tuple):
        raise TypeError("prod() received an invalid combination of arguments - got (tuple): dim must be int")
    return _reduced(PROD, _wide(input, dtype), dim if axis is None else axis, keepdim or keepdims, _times)


def _times(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return np.prod(a, axis=axis, keepdims=keepdims)


# --- extrema ------------------------------------------------------------------------------------------------


def _pair_kind(name: str, fields: tuple[str, ...] = ("values", "indices")) -> Any:
    """A named tuple that is printed as PyTorch prints what its functions return."""
    make: Any = namedtuple
    base = make(name, fields)

    def shown(self: Any) -> str:
        parts = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"srcgrad.return_types.{name}(\n{parts})"

    return type(name, (base,), {"__slots__": (), "__repr__": shown})


PAIRS: dict[str, Any] = {
    name: _pair_kind(name)
    for name in ("max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax", "cummin", "nanmedian")
}


_NEW_AXIS = [(slice(None),) * d + (None, ...) for d in range(64)]
_FIRST = [(slice(None),) * d + (0,) for d in range(64)]


def _along(
    kind: Any, input: Tensor, indices: Any, axis: int, keepdim: bool, name: str, values: Any = None
) -> Any:
    """Values at `indices` along `axis`, as a named pair."""
    a = input._array
    picked = indices[_NEW_AXIS[axis]] if not keepdim or indices.ndim < a.ndim else indices
    if values is None:
        values = np.take_along_axis(a, picked, axis)
    first = _FIRST[axis]
    result = wrap(values if keepdim else values[first])
    if (input._history is not None or input._more is not None) and tracked((input,)):
        full = wrap(values)
        record_beside(kind, full, input, (picked, axis), {"dim": axis, "keepdim": keepdim})
        if keepdim:
            result = full
        else:
            node = full._history
            result._history = _Squeezed.over(node, axis)
    return PAIRS[name](result, wrap(picked if keepdim else picked[first]))


def _alone(kind: Any, input: Tensor) -> Tensor:
    """What picking along a dimension gives for a 0-dim tensor: its one value."""
    result = wrap(arrays.copied(input._array)[()])
    if tracked((input,)):
        row = wrap(np.reshape(input._array, (1,)))
        row._history = input._fresh_history()
        record_rule(kind, row, (row, np.zeros(1, np.int64), 0), {}, {"dim": 0, "keepdim": False})
        node: Any = row._history
        node._targets = (target_of(input), *node._targets[1:])
        node.__class__ = _flattened_kind(type(node))
        result._history = node
    return result


def _flattened_kind(kind: Any) -> type:
    def apply(self: Any, g: Any, graph: bool) -> Any:
        (out, *_) = kind.apply(self, np.expand_dims(g, 0), graph)
        return (out.reshape(()) if out is not None else None,)

    return type(kind.__name__, (kind,), {"__slots__": (), "apply": apply})


class _Squeezed:
    """Lets a node made for `keepdim=True` take the gradient of the result without that dimension."""

    @staticmethod
    def over(node: Any, axis: int) -> Any:
        node.__class__ = _squeezed_kind(type(node))
        node.shown = {**(node.shown or {}), "axis": axis}
        return node


_SQUEEZED: dict[type, type] = {}


def _squeezed_kind(kind: Any) -> type:
    found = _SQUEEZED.get(kind)
    if found is None:

        def apply(self: Any, g: Any, graph: bool) -> Any:
            return kind.apply(self, np.expand_dims(g, self.shown["axis"]), graph)

        found = _SQUEEZED[kind] = type(kind.__name__, (kind,), {"__slots__": (), "apply": apply})
    return found


def _extremum(name: str, compute: Any, where: str) -> Any:
    def function(
        input: Tensor,
        dim: Any = None,
        keepdim: bool = False,
        *,
        axis: Any = None,
        keepdims: bool = False,
        out: Any = None,
    ) -> Any:
        dim = axis if axis is not None else dim
        keepdim = keepdim or keepdims
        a = input._array
        if isinstance(dim, Tensor):
            return FUNCTIONS["maximum" if name == "max" else "minimum"](input, dim)
        if a.dtype.kind == "c":
            if dim is not None:
                raise RuntimeError(f"{name}(): does not support complex input")
            raise NotImplementedError(f"\"{name}_all\" not implemented for '{type_name(a.dtype)}'")
        if dim is None:
            if a.size == 0:
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                    "reduction dim with the 'dim' argument."
                )
            plain = type(a) is np.ndarray
            return called(EXTREMUM[name, False], input, compute.reduce(a, None) if plain else compute_all(a))
        d = dimension(dim, a.ndim)
        if a.ndim == 0:
            return PAIRS[name](_alone(EXTREMUM[name, True], input), wrap(np.int64(0)))
        if a.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        if type(a) is np.ndarray:
            values = compute.reduce(a, d, None, None, True)
            return _along(EXTREMUM[name, True], input, getattr(a, where)(d), d, keepdim, name, values)
        values = compute_all(a, axis=d, keepdims=True)
        return _along(EXTREMUM[name, True], input, getattr(np, where)(a, axis=d), d, keepdim, name, values)

    compute_all = getattr(np, name)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {name}imum of all elements (ties share the gradient), or values and indices along `dim`."
    )
    return public(name)(function)


max = _extremum("max", np.maximum, "argmax")
min = _extremum("min", np.minimum, "argmin")


def _amax(name: str, compute: Callable[..., Any]) -> Any:
    def function(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        a = input._array
        axis = axes_of(dim, a.ndim)
        axis = axis if a.ndim else None
        if a.dtype.kind == "c":
            kind = "max" if name == "amax" else "min"
            raise NotImplementedError(f"\"{kind}_values_cpu\" not implemented for 'ComplexFloat'")
        if a.size == 0 and axis is None:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument."
            )
        if a.size == 0:
            for d in axis if isinstance(axis, tuple) else (axis,):
                if a.shape[d] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        keywords = {} if axis is None and not keepdim else {"axis": axis, "keepdims": keepdim}
        out = compute(a, axis=axis, keepdims=keepdim)
        return call(AMAX[name], (input,), keywords, out=out, shown=_shown(dim, axis, keepdim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {name[1:]}imum of all elements or along `dim`; ties share the gradient.

    Of no elements it is an error: a `RuntimeError`, or an `IndexError` if `dim` is given.

    >>> sg.{name}(sg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
    tensor([{"2., 4." if name == "amax" else "1., 3."}])
    """
    return public(name)(function)


amax, amin = _amax("amax", np.max), _amax("amin", np.min)


@public("aminmax")
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest and the greatest elements, of all or along `dim`, as a pair `(min, max)`.

    Ties share the gradient; see `amax` for the errors.

    >>> low, high = sg.aminmax(sg.tensor([3.0, 1.0, 2.0]))
    >>> low, high
    (tensor(1.), tensor(3.))
    """
    pair = PAIRS.setdefault("aminmax", _pair_kind("aminmax", ("min", "max")))
    d = () if dim is None else dim
    return pair(amin(input, d, keepdim), amax(input, d, keepdim))


def _arg(name: str, compute: Callable[..., Any]) -> None:
    def function(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
        a = input._array
        d = dim if axis is None else axis
        if a.dtype.kind in "bc":
            kind = "bool" if a.dtype.kind == "b" else "complex"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        if a.size == 0 and (d is None or a.shape[dimension(d, a.ndim)] == 0):
            what = "to be specified for input.numel() == 0." if d is None else f"{d} to have non-zero size."
            raise IndexError(f"{name}(): Expected reduction dim {what}")
        if d is not None:
            dimension(d, a.ndim)
        if a.ndim == 0:
            return wrap(np.int64(0))
        return wrap(compute(a, axis=None if d is None else dimension(d, a.ndim), keepdims=keepdim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The first index of the {name[3:]}imum along `dim` (of the flat tensor without one).

    Of no elements it is an `IndexError`, of bools or complex numbers a `RuntimeError`.

    >>> sg.{name}(sg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
    tensor([{"1, 0" if name == "argmax" else "0, 1"}])
    """
    public(name)(function)


_arg("argmax", np.argmax)
_arg("argmin", np.argmin)


@public("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along `dim`; elements that are equal keep their order.

    >>> sg.argsort(sg.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return sort(input, dim, descending).indices


def _order(a: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(a, axis=axis, kind="stable")
    n = a.shape[axis]
    turned = np.flip(a, axis)
    return n - 1 - np.flip(np.argsort(turned, axis=axis, kind="stable"), axis)


SORT = rule_node("SortBackward0", np.take_along_axis)
TOPK = rule_node("TopkBackward0", np.take_along_axis)
SORT.saved_names = TOPK.saved_names = {"indices": 1}


@public("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sorted values and where they came from."""
    a = input._array
    d = dimension(dim, a.ndim)
    if a.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    if a.ndim == 0:
        return PAIRS["sort"](_alone(SORT, input), wrap(np.int64(0)))
    return _along(SORT, input, _order(a, d, descending), d, True, "sort")


@public("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) values along `dim`."""
    a = input._array
    d = dimension(dim, a.ndim)
    if not 0 <= k <= (a.shape[d] if a.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if a.ndim == 0:
        return PAIRS["topk"](_alone(TOPK, input), wrap(np.int64(0)))
    order = _order(a, d, largest)[(slice(None),) * d + (slice(0, k),)]
    return _along(TOPK, input, order, d, True, "topk")


@public("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along `dim`, counted from 1, and its index, as `(values, indices)`.

    A `RuntimeError` if there are fewer.

    >>> sg.kthvalue(sg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    a = input._array
    d = dimension(dim, a.ndim)
    if not 1 <= k <= (a.shape[d] if a.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    kind = rule_node("KthvalueBackward0", np.take_along_axis)
    if a.ndim == 0:
        return PAIRS["kthvalue"](_alone(kind, input), wrap(np.int64(0)))
    return _along(
        kind,
        input,
        np.take(_order(a, d, False), k - 1, axis=d),
        d,
        keepdim,
        "kthvalue",
    )


@public("mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The value that occurs most often (the smallest of several), and where it stands last."""
    a = input._array
    d = dimension(dim, a.ndim)
    kind = rule_node("ModeBackward0", np.take_along_axis)
    if not a.ndim:
        return PAIRS["mode"](_alone(kind, input), wrap(np.int64(0)))
    if not a.shape[d]:
        raise IndexError(f"mode(): Expected reduction dim {d} to have non-zero size.")
    rows = np.moveaxis(a, d, -1)
    counts = np.sum(rows[..., :, None] == rows[..., None, :], axis=-1)
    often = counts == np.max(counts, axis=-1, keepdims=True)
    value = np.take_along_axis(rows, np.argsort(rows, axis=-1), -1)
    oftens = np.take_along_axis(often, np.argsort(rows, axis=-1), -1)
    value = np.take_along_axis(value, np.argmax(oftens, axis=-1)[..., None], -1)
    last = rows.shape[-1] - 1 - np.argmax(np.flip(rows == value, -1), axis=-1)
    return _along(kind, input, last, d, keepdim, "mode")


MEDIAN = rule_node("MedianBackward1", np.take_along_axis)


MEDIAN_OF_ALL = masking(rule_node("MedianBackward0", np.max, "both"))
NANMEDIAN = rule_node("NanmedianBackward1", np.take_along_axis)
NANMEDIAN_OF_ALL = masking(rule_node("NanmedianBackward0", np.max, "both"))
"""The median of all elements: ties share, as those of an extremum do."""


def _orderly(a: Any, name: str) -> None:
    if a.dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(a.dtype)}'")


@public("median")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of all elements, or values and indices along `dim`."""
    a = input._array
    if dim is None:
        n = a.size
        _orderly(a, "median")
        value = (
            a.dtype.type(math.nan)
            if n and a.dtype.kind == "f" and bool(np.any(np.isnan(a)))
            else np.partition(np.reshape(a, -1), (n - 1) // 2)[(n - 1) // 2]
            if n
            else np.array(math.nan, a.dtype)[()]
        )
        return call(MEDIAN_OF_ALL, (input,), out=value)
    d = dimension(dim, a.ndim)
    _orderly(a, "median")
    if a.ndim == 0:
        return PAIRS["median"](_alone(MEDIAN, input), wrap(np.int64(0)))
    if a.shape[d] == 0:
        raise IndexError(f"median(): Expected reduction dim {d} to have non-zero size.")
    order = np.take(_order(a, d, False), (a.shape[d] - 1) // 2, axis=d)
    if a.dtype.kind == "f":
        missing = np.isnan(a)
        order = np.where(np.any(missing, axis=d), np.argmax(missing, axis=d), order)
    return _along(MEDIAN, input, order, d, keepdim, "median")


@public("nanmedian")
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not nan; nan where there are none.

    >>> sg.nanmedian(sg.tensor([3.0, float("nan"), 1.0, 2.0]))
    tensor(2.)
    """
    a = input._array
    if dim is None:
        kept = a[~np.isnan(a)]
        value = np.sort(kept)[(kept.size - 1) // 2] if kept.size else a.dtype.type(math.nan)
        return call(NANMEDIAN_OF_ALL, (input,), out=value)
    d = dimension(dim, a.ndim)
    if a.ndim == 0:
        return PAIRS["nanmedian"](_alone(NANMEDIAN, input), wrap(np.int64(0)))
    middle = np.maximum(np.sum(~np.isnan(a), axis=d, keepdims=True) - 1, 0) // 2
    order = np.take_along_axis(_order(a, d, False), middle, d)[_FIRST[d]]
    return _along(NANMEDIAN, input, order, d, keepdim, "nanmedian")


# --- statistics ---------------------------------------------------------------------------------------------


def _variance(a: Any, axis: Axis, ddof: Any, keepdims: bool) -> Any:
    if type(a) is not np.ndarray or a.dtype not in (F32, F64):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.var(a, axis=axis, ddof=ddof, keepdims=keepdims)
    n = _count_of(a.shape, axis)
    d = a - _ADD(a, axis=axis, keepdims=True) / a.dtype.type(n)
    return _ADD(d * d, axis=axis, keepdims=keepdims) / a.dtype.type(builtins.max(n - ddof, 0))


def _spread(name: str, kind: Any) -> Any:
    def function(
        input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None,
        axis: Any = None, keepdims: bool = False, ddof: Any = None,
    ) -> Tensor:  # fmt: skip
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if input._array.dtype.kind not in "fc":
            raise RuntimeError(f"{name} and {name}_mean only support floating point and complex dtypes")
        ddof = ddof if ddof is not None else correction
        if ddof is None:
            ddof = 1 if unbiased is None else int(unbiased)
        d = axes_of(dim if axis is None else axis, input._array.ndim)
        d = d if input._array.ndim else None
        if _count_of(input._array.shape, d) - ddof <= 0:
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
                "reduction factor (input numel divided by output numel).",
                UserWarning,
                stacklevel=2,
            )
        keywords = {"axis": d, "ddof": ddof, "keepdims": keepdim or keepdims}
        with arrays.quiet():
            out = _variance(input._array, d, ddof, keepdim or keepdims)
            out = np.sqrt(out) if name == "std" else out
        return call(kind, (input,), keywords, out=out, shown=_shown(dim, d, keepdim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{name}`, with Bessel's correction unless `correction` says otherwise."
    return public(name)(function)


var = _spread("var", VAR)
std = _spread("std", STD)


def var_mean(input: Tensor, dim: Any = None, **keywords: Any) -> tuple[Tensor, Tensor]:
    """The variance and the mean, of all elements or along `dim`; keywords as in `var`.

    >>> sg.var_mean(sg.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    return var(input, dim, **keywords), mean(input, dim, keywords.get("keepdim", False))


def std_mean(input: Tensor, dim: Any = None, **keywords: Any) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean, of all elements or along `dim`; keywords as in `std`.

    >>> sg.std_mean(sg.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    return std(input, dim, **keywords), mean(input, dim, keywords.get("keepdim", False))


FUNCTIONS["var_mean"], FUNCTIONS["std_mean"] = var_mean, std_mean


@public("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm of the elements (2 by default)."""
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{type_name(input._array.dtype)}"
        )
    if p == "nuc":
        return call(rule_node("LinalgNuclearBackward0", np.linalg.norm), (input, "nuc"))
    if isinstance(p, Tensor):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not Tensor")
    order = 2.0 if p is None or p == "fro" else float(p)
    axis = axes_of(dim, input._array.ndim)
    with arrays.quiet():
        return call(NORM, (input, order, axis, keepdim))


@public("dist")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of `input - other`.

    >>> sg.dist(sg.tensor([3.0, 0.0]), sg.tensor([0.0, 4.0]))
    tensor(5.)
    """
    return norm(input - other, p)


@public("logsumexp")
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """`log(sum(exp(input)))` along `dim` without overflow; integers are computed in the default dtype.

    >>> sg.logsumexp(sg.tensor([0.0, 0.0]), 0)
    tensor(0.6931)
    """
    x = input if input._array.dtype.kind in "fc" else convert(input, default_dtype().numpy)
    axis = axes_of(dim, x._array.ndim)
    axis = axis if x._array.ndim else None
    if x._array.size == 0:
        return sum(x.exp(), dim, keepdim).log()
    with arrays.quiet():
        return call(LOGSUMEXP, (x, axis, keepdim), shown=_shown(dim, axis, keepdim))


@public("softmax")
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along `dim`."""
    x = input if dtype is None else convert(input, as_dtype(dtype).numpy)
    if x._array.dtype.kind != "f":
        dimension(dim, x._array.ndim)
        raise NotImplementedError(
            f"\"softmax_lastdim_kernel_impl\" not implemented for '{type_name(x._array.dtype)}'"
        )
    d = dimension(dim, x._array.ndim)
    if not x._array.size:
        return x * 1
    token = arrays.hush()
    try:
        out = SOFTMAX.function(x._array, d)
    finally:
        arrays.unhush(token)
    return called(SOFTMAX, x, out, (d,), shown=DIMS[d])


@public("log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`log(softmax(input))` along `dim`, computed as `input - logsumexp(input, dim)`.

    Integers and complex numbers are a `NotImplementedError`, unless `dtype` converts them.

    >>> sg.log_softmax(sg.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    x = input if dtype is None else convert(input, as_dtype(dtype).numpy)
    if x._array.dtype.kind != "f":
        dimension(dim, x._array.ndim)
        raise NotImplementedError(
            f"\"log_softmax_lastdim_kernel_impl\" not implemented for '{type_name(x._array.dtype)}'"
        )
    d = dimension(dim, x._array.ndim)
    if not x._array.size:
        return x * 1
    token = arrays.hush()
    try:
        out = LOG_SOFTMAX.function(x._array, d)
    finally:
        arrays.unhush(token)
    return called(LOG_SOFTMAX, x, out, (d,), shown=DIMS[d])


# --- cumulative ---------------------------------------------------------------------------------------------


@public("cumsum")
def cumsum(input: Tensor, dim: Any = None, *, axis: Any = None, dtype: Any = None) -> Tensor:
    """The running sum along `dim` (of all elements, flat, without one); integers and bools add up as int64.

    >>> sg.cumsum(sg.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    return _accumulated(CUMSUM, _wide(input, dtype), dim if axis is None else axis)


def _accumulated(kind: Any, x: Tensor, dim: Any) -> Tensor:
    a = x._array
    d = None if dim is None else dimension(dim, a.ndim)
    if a.ndim == 0:
        out = _accumulated(kind, x.reshape(1), 0).reshape(())
        out._more = None  # nobody else knows the memory of which it is a view
        return out
    return called(kind, x, kind.function(a, d), (d,), shown=DIMS[d] if d is not None else {"dim": d})


@public("cumprod")
def cumprod(input: Tensor, dim: Any = None, *, axis: Any = None, dtype: Any = None) -> Tensor:
    """The running product along `dim` (of all elements, flat, without one); integers multiply as int64.

    >>> sg.cumprod(sg.tensor([2, 3, 4]), 0)
    tensor([ 2,  6, 24])
    """
    return _accumulated(CUMPROD, _wide(input, dtype), dim if axis is None else axis)


def _running(name: str, compute: Any, better: Callable[[Any, Any], Any]) -> None:
    kind = rule_node(name.title() + "Backward0", np.take_along_axis)

    def function(input: Tensor, dim: int) -> Any:
        a = input._array
        if not a.size:
            return PAIRS[name](input.clone(), wrap(np.zeros(a.shape, np.int64)))
        d = dimension(dim, a.ndim)
        if a.ndim == 0:
            return PAIRS[name](_alone(kind, input), wrap(np.int64(0)))
        best = compute.accumulate(a, axis=d)
        positions = (
            arrays.namespace(a).arange(a.shape[d]).reshape([-1 if k == d else 1 for k in range(a.ndim)])
        )
        indices = np.maximum.accumulate(np.where((a == best) | (a != a), positions, 0), axis=d)
        return _along(kind, input, indices, d, True, name)

    function.__name__ = name
    function.__doc__ = f"""The {name[3:]}imum so far along `dim`, and its last index, as `(values, indices)`.

    >>> sg.{name}(sg.tensor([2, 1, 3]), 0).values
    tensor([2, {"2, 3" if name == "cummax" else "1, 1"}])
    """
    public(name)(function)


_running("cummax", np.maximum, np.greater_equal)
_running("cummin", np.minimum, np.less_equal)


@public("diff")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times, each with one entry fewer.

    `prepend` and `append` are joined to the input first.

    >>> sg.diff(sg.tensor([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    >>> sg.diff(sg.tensor([1, 4]), prepend=sg.tensor([0]))
    tensor([1, 3])
    """
    if input._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = dimension(dim, input._array.ndim)
    parts = [t for t in (prepend, input, append) if t is not None]
    x = input if len(parts) == 1 else FUNCTIONS["cat"](parts, d)
    before = (slice(None),) * d
    for _ in range(builtins.min(n, x.shape[d])):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != earlier if x._array.dtype.kind == "b" else later - earlier
    return x.clone() if x is input else x


def _truth(name: str, compute: Callable[..., Any]) -> None:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
        a = input._array
        out = compute(a, axis=axes_of(dim if axis is None else axis, a.ndim), keepdims=keepdim)
        return wrap(out.astype(a.dtype) if a.dtype == np.uint8 else out)

    function.__name__ = name
    function.__doc__ = f"""Whether {name} elements differ from 0, of the whole tensor or along `dim`.

    >>> sg.{name}(sg.tensor([True, False]))
    tensor({name == "any"})
    """
    public(name)(function)


_truth("all", np.all)
_truth("any", np.any)


@public("count_nonzero")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements aren't 0, of all or along `dim`, as int64.

    >>> sg.count_nonzero(sg.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """
    count = np.count_nonzero(input._array, axis=axes_of(dim, input._array.ndim))
    return wrap(np.int64(count) if isinstance(count, int) else count)


_UNIQUE: Any = np.unique


@public("unique")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The different elements, sorted: of the flat tensor, or its different parts along `dim`.

    With `return_inverse` and `return_counts` a tuple: also the place of each element among them, and how
    often each occurs.

    >>> sg.unique(sg.tensor([2, 1, 2]))
    tensor([1, 2])
    """
    if tracked((input,)):
        raise NotImplementedError("the derivative for 'unique' is not implemented: detach the Tensor")
    if dim is not None and not input._array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    got: Any = _UNIQUE(input._array, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
    return tuple(wrap(g) for g in got) if isinstance(got, tuple) else wrap(got)


@public("bincount")
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, ... occurs in a vector of integers (or the sum of their `weights`).

    The result has at least `minlength` entries; negative numbers and other ranks are a `RuntimeError`.

    >>> sg.bincount(sg.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    a = input._array
    if a.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{type_name(a.dtype)}'")
    if a.ndim != 1 or (a.size and a.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    counts = np.bincount(a, raw_of(weights), minlength)
    if weights is not None and weights.dtype.name == "float32":
        counts = counts.astype(np.float32)
    return wrap(counts)


@public("nansum")
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements that aren't nan, of all or along `dim`; their gradient is 1, that of a nan 0.

    >>> sg.nansum(sg.tensor([1.0, float("nan")]))
    tensor(1.)
    """
    return call(
        rule_node("NansumBackward0", np.nansum),
        (_wide(input, dtype),),
        {"axis": axes_of(dim, input._array.ndim), "keepdims": keepdim},
    )


@public("nanmean")
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The mean of the elements that aren't nan, of all or along `dim`; integers are a `RuntimeError`.

    >>> sg.nanmean(sg.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    if input._array.dtype.kind not in "fc":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{type_name(input._array.dtype)}"
        )
    there = wrap(~np.isnan(input._array))
    return nansum(input, dim, keepdim) / sum(there, dim, keepdim)


for _n in ("cumsum", "cumprod", "softmax", "log_softmax"):
    in_place_method(_n, FUNCTIONS[_n])
