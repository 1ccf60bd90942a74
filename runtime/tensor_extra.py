"""Less common functions of Tensors, most of them built from the others: joins, statistics, distances, special
functions, changes of shape in place.

The special functions need SciPy (the `scipy` extra).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import arrays, tensor_inplace
from srcgrad.runtime.autograd.graph import LEAF
from srcgrad.runtime.autograd.nodes import elementwise_node
from srcgrad.runtime.autograd.record import tracked
from srcgrad.runtime.errors import MissingExtra
from srcgrad.runtime.rules import neural
from srcgrad.runtime.tensor import FUNCTIONS, _sub, meet, public, shape_mismatch
from srcgrad.runtime.tensor_base import Tensor, install, shell, wrap
from srcgrad.runtime.tensor_create import shape_argument
from srcgrad.runtime.tensor_inplace import bump, check_writable, method
from srcgrad.runtime.tensor_join import cat, flip, stack
from srcgrad.runtime.tensor_linalg import addmm, matmul_
from srcgrad.runtime.tensor_reduce import cumsum, norm, sort
from srcgrad.runtime.tensor_reduce import sum as _sum
from srcgrad.runtime.tensor_types import default_dtype
from srcgrad.runtime.tensor_views import (
    dimension,
    reshape,
    select,
    split,
    squeeze,
    t,
    transpose,
    unsqueeze,
)

# --- special functions --------------------------------------------------------------------------------------


def _special(name: str, scipy_name: str, node: str) -> None:
    """A function of SciPy's: its rule stands with SciPy's others."""
    kinds: list[Any] = []

    def function(input: Tensor) -> Tensor:
        if not kinds:
            try:
                special = importlib.import_module("scipy.special")
            except ImportError as error:
                raise MissingExtra(f'{name} needs SciPy: `pip install "srcgrad[scipy]"`') from error
            kinds.append(elementwise_node(node + "Backward0", getattr(special, scipy_name), 1))
        function = kinds[0].function
        if input._array.dtype.name == "float16":  # SciPy has no half precision
            return meet(kinds[0], lambda a: function(a).astype(a.dtype), (input,), floating=True)
        return meet(kinds[0], function, (input,), floating=True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"SciPy's `special.{scipy_name}`."
    public(name)(function)
    method(name, function)


_special("lgamma", "gammaln", "Lgamma")
_special("digamma", "digamma", "Digamma")
_special("erfinv", "erfinv", "Erfinv")
_special("i0", "i0", "I0")

# --- three operands -----------------------------------------------------------------------------------------

_LERP = elementwise_node("LerpBackward0", neural.lerp, 3)
_LERP_TENSOR = elementwise_node("LerpBackward1", neural.lerp, 3)
_ADDCMUL = elementwise_node("AddcmulBackward0", neural.addcmul, 3)
_ADDCDIV = elementwise_node("AddcdivBackward0", neural.addcdiv, 3)


@public("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """`input + weight * (end - input)`."""
    kind = _LERP_TENSOR if isinstance(weight, Tensor) else _LERP
    return meet(kind, neural.lerp, (input, end, weight))


@public("addcmul")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`."""
    return meet(_ADDCMUL, neural.addcmul, (input, tensor1, tensor2), value=value)


@public("addcdiv")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`."""
    return meet(_ADDCDIV, neural.addcdiv, (input, tensor1, tensor2), floating=True, value=value)


for _n in ("lerp", "addcmul", "addcdiv", "xlogy"):
    method(_n, FUNCTIONS[_n])


@public("rsub", method=False)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`other - alpha * input`."""
    scaled = input if alpha == 1 else input * alpha
    return _sub(other, scaled) if isinstance(other, Tensor) else other - scaled


# --- matrices -----------------------------------------------------------------------------------------------

method("addmm", addmm)


@public("addmv")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (mat @ vec)`."""
    return input * beta + matmul_(mat, vec) * alpha


@public("addr")
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    return input * beta + FUNCTIONS["outer"](vec1, vec2) * alpha


@public("addbmm")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2).sum(0)`."""
    return input * beta + _sum(matmul_(batch1, batch2), 0) * alpha


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, from left to right."""
    out = matrices[0]
    for m in matrices[1:]:
        out = matmul_(out, m)
    return out


@public("logdet")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan where it is negative."""
    sign, value = FUNCTIONS["slogdet"](input)
    return value.masked_fill(sign < 0, math.nan)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of the differences between all rows of `x1` and all rows of `x2`."""
    return norm(unsqueeze(x1, -2) - unsqueeze(x2, -3), p, -1)


@public("diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Vectors along the last dimension as diagonals of matrices."""
    n, d = input.shape[-1], abs(offset)
    wide = input.new_zeros(*input.shape[:-1], n + d, n + d)
    i = np.arange(n)
    flat = (i + max(-offset, 0)) * (n + d) + i + max(offset, 0)
    index = wrap(arrays.beside(flat, input._array))
    filled = wide.reshape(*input.shape[:-1], -1).index_add(-1, index, input)
    out = filled.reshape(wide.shape)
    return out if (dim1, dim2) == (-2, -1) else out.movedim((-2, -1), (dim1, dim2))


@public("diagflat")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements, flat, on diagonal number `offset`, and zeros elsewhere.

    >>> sg.diagflat(sg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(input.reshape(-1), offset)


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one."""
    blocks = [x.reshape(1, -1) if x.ndim < 2 else x for x in tensors]
    width = sum(b.shape[1] for b in blocks)
    rows, start = [], 0
    for b in blocks:
        parts = [b.new_zeros(b.shape[0], start), b, b.new_zeros(b.shape[0], width - start - b.shape[1])]
        rows.append(cat(parts, 1))
        start += b.shape[1]
    return cat(rows, 0)


@public("cov")
def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """The covariances of the rows."""
    if input._array.dtype.kind not in "fc":
        input = input.to(default_dtype())
    x = input.reshape(1, -1) if input.ndim < 2 else input
    d = x - x.mean(1, True)
    return squeeze(d @ t(d).conj() / (x.shape[1] - correction))


@public("corrcoef")
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows."""
    c = cov(input)
    if c.ndim == 0:
        return c / c
    if c.is_complex():
        s = c.diagonal().real.sqrt()
        return c / s.unsqueeze(1) / s.unsqueeze(0)
    s = c.diagonal().sqrt()
    return (c / s.unsqueeze(1) / s.unsqueeze(0)).clamp(-1, 1)


# --- joining and splitting ----------------------------------------------------------------------------------


def dstack(tensors: Any) -> Tensor:
    """Join tensors along the third dimension; those with fewer than three get it first.

    >>> sg.dstack([sg.zeros(2, 3), sg.ones(2, 3)]).shape
    srcgrad.Size([2, 3, 2])
    """
    return cat([_at_least(x, 3) for x in tensors], 2)


def column_stack(tensors: Any) -> Tensor:
    """Join tensors along the second dimension; vectors and numbers become columns first.

    >>> sg.column_stack([sg.tensor([1, 2]), sg.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    return cat([reshape(x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors], 1)


def _at_least(x: Tensor, n: int) -> Tensor:
    if x.ndim == 0:
        return reshape(x, (1,) * n)
    if n == 2 and x.ndim == 1:
        return unsqueeze(x, 0)
    if n == 3 and x.ndim < 3:
        return unsqueeze(unsqueeze(x, 0), -1) if x.ndim == 1 else unsqueeze(x, -1)
    return x


def _each(n: int) -> Callable[..., Any]:
    def function(*tensors: Any) -> Any:
        given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
        out = tuple(_at_least(x, n) for x in given)
        return out[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else out

    function.__name__ = function.__qualname__ = f"atleast_{n}d"
    function.__doc__ = f"""A tensor with dimensions of length 1 added up to {n}; of several tensors a tuple.

    >>> sg.atleast_{n}d(sg.tensor(1.0)).shape
    srcgrad.Size({[1] * n})
    """
    return function


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that arrays of these shapes broadcast to; a `ValueError` if they don't fit.

    >>> sg.broadcast_shapes((2, 1), (3,))
    srcgrad.Size([2, 3])
    """
    return FUNCTIONS["Size"](np.broadcast_shapes(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All choices of one element from each vector, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.reshape(-1) for g in FUNCTIONS["meshgrid"](*tensors, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.numel()), r)), dtype=np.int64).reshape(-1, r)
    return input[wrap(arrays.beside(rows, input._array))]


@public("split_with_sizes")
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Parts along `dim` with these sizes, which must add up to its length: `split`.

    >>> sg.split_with_sizes(sg.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(input, list(split_sizes), dim)


@public("hsplit")
def hsplit(input: Tensor, sections: Any) -> Any:
    """`tensor_split` along the second dimension (of a vector: along its only one).

    Equal parts must be possible (`RuntimeError`).

    >>> sg.hsplit(sg.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _split_evenly("hsplit", input, sections, 0 if input.ndim == 1 else 1, 1)


@public("vsplit")
def vsplit(input: Tensor, sections: Any) -> Any:
    """`tensor_split` along the first dimension, of two or more.

    Equal parts must be possible (`RuntimeError`).

    >>> [part.shape[0] for part in sg.vsplit(sg.zeros(4, 2), 2)]
    [2, 2]
    """
    return _split_evenly("vsplit", input, sections, 0, 2)


def _split_evenly(name: str, input: Tensor, sections: Any, dim: int, least: int) -> Any:
    if input.ndim < least:
        raise RuntimeError(
            f"{name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} "
            "dimensions!"
        )
    if isinstance(sections, int) and (sections < 1 or input.shape[dim] % sections):
        raise RuntimeError(
            f"{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{input.shape[dim]} is not divisible by the split_size {sections}!"
        )
    return FUNCTIONS["tensor_split"](input, sections, dim)


@public("narrow_copy")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `length` entries along `dim`, from `start`: `narrow` with memory of its own.

    >>> sg.narrow_copy(sg.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    return input.narrow(dim, start, length).clone()


def _scattered(name: str, part: Callable[..., Tensor]) -> None:
    """A copy of a tensor with one part of it replaced."""

    def function(input: Tensor, src: Tensor, *args: Any, **keywords: Any) -> Tensor:
        out = input.clone()
        part(out, *args, **keywords).copy_(src)
        return out

    function.__name__ = function.__qualname__ = name + "_scatter"
    function.__doc__ = f"A copy of `input` in which `src` stands in place of `{name}`."
    public(name + "_scatter")(function)


def _slice(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return x[(slice(None),) * dimension(dim, x.ndim) + (slice(start, end, step),)]


_scattered("select", select)
_scattered("slice", _slice)
_scattered("diagonal", FUNCTIONS["diagonal"])


# --- statistics and searching -------------------------------------------------------------------------------


@public("msort")
def msort(input: Tensor) -> Tensor:
    """The values sorted along the first dimension, in ascending order.

    >>> sg.msort(sg.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return sort(input, 0).values


@public("quantile")
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The q-th quantiles, linear between the sorted values; nan where a value is nan."""
    if interpolation != "linear":
        raise NotImplementedError("quantile interpolates linearly only")
    if not input.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    x = input.reshape(-1) if dim is None or not input.ndim else input.movedim(dim, -1)
    qs = q if isinstance(q, Tensor) else wrap(x._array.dtype.type(q))
    if qs._array.dtype != x._array.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if bool(np.any((qs._array < 0) | (qs._array > 1))):
        raise RuntimeError("quantile() q must be in the range [0, 1]")
    ordered = sort(x, -1).values
    at = np.atleast_1d(qs._array) * (x.shape[-1] - 1)
    low = np.floor(at).astype(np.int64)
    high = np.ceil(at).astype(np.int64)
    a, b = (ordered[..., wrap(i)] for i in (low, high))
    weight = qs.reshape(-1) * (x.shape[-1] - 1) - wrap(low.astype(x._array.dtype))
    out = (a + (b - a) * weight).movedim(-1, 0)
    missing = np.any(np.isnan(x._array), axis=-1)
    if bool(np.any(missing)):
        out = out.masked_fill(wrap(missing), math.nan)
    if keepdim:
        out = (
            out.reshape(-1, *([1] * input.ndim))
            if dim is None
            else out.unsqueeze(dimension(dim, input.ndim) + 1)
        )
    return out[0] if qs.ndim == 0 else out


@public("logcumsumexp")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """`log(cumsum(exp(x)))`, kept in range by the maximum."""
    d = dimension(dim, input.ndim)
    high = wrap(np.max(input._array, axis=d, keepdims=True)) if input.numel() else wrap(input._array[:0])
    return cumsum((input - high).exp(), d).log() + high


@public("logaddexp2")
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """`log2(2 ** input + 2 ** other)` without overflow, elementwise.

    >>> sg.logaddexp2(sg.tensor(3.0), sg.tensor(3.0))
    tensor(4.)
    """
    return meet(
        elementwise_node("Logaddexp2Backward0", np.logaddexp2, 2), np.logaddexp2, (input, other), True
    )


@public("renorm")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The parts along `dim` whose p-norm is greater than `maxnorm`, scaled down to it."""
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    others = tuple(k for k in range(input.ndim) if k != dimension(dim, input.ndim))
    size = norm(input, p, others, True)
    return FUNCTIONS["where"](size > maxnorm, input * (maxnorm / (size + 1e-7)), input)


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral by the trapezoidal rule."""
    return _sum(_trapezoids(y, x, dx, dim), dim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule, over `x` or with steps of `dx`.

    One entry fewer than `y` along `dim`.

    >>> sg.cumulative_trapezoid(sg.tensor([1.0, 3.0, 5.0]))
    tensor([2., 6.])
    """
    return cumsum(_trapezoids(y, x, dx, dim), dim)


def _trapezoids(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    n = y.shape[dim]
    pairs = _slice(y, dim, 1) + _slice(y, dim, 0, n - 1)
    if x is None:
        return pairs * (dx / 2)
    steps = _slice(x, dim if x.ndim > 1 else 0, 1) - _slice(x, dim if x.ndim > 1 else 0, 0, x.shape[-1] - 1)
    return pairs * steps / 2


def searchsorted(
    sorted_sequence: Tensor, values: Any, *, right: bool = False, side: str | None = None
) -> Tensor:
    """Where `values` would have to be inserted to keep the sequence sorted."""
    v = values._array if isinstance(values, Tensor) else values
    edge: Any = side or ("right" if right else "left")
    a = sorted_sequence._array
    if a.ndim == 1:
        return wrap(np.searchsorted(a, v, edge))
    rows = [np.searchsorted(x, y, edge) for x, y in zip(_rows(a), _rows(v), strict=True)]
    return wrap(np.stack(rows).reshape(v.shape))


def _rows(a: Any) -> Any:
    return a.reshape(-1, a.shape[-1])


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """The number of boundaries below each value."""
    return searchsorted(boundaries, input, right=right)


def isin(elements: Any, test_elements: Any) -> Tensor:
    """Whether each of `elements` is among `test_elements`: bools of the shape of `elements`.

    >>> sg.isin(sg.tensor([1, 2, 3]), sg.tensor([2]))
    tensor([False,  True, False])
    """
    a, b = (x._array if isinstance(x, Tensor) else arrays.array_of(x) for x in (elements, test_elements))
    return wrap(np.isin(a, b))


@public("unique_consecutive")
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The elements, flat, without the repetitions that follow each other.

    With `return_inverse` and `return_counts` a tuple: also the group of each element, and the groups' sizes.

    >>> sg.unique_consecutive(sg.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    a = np.reshape(input._array, -1)
    first = np.concatenate([np.ones(min(a.size, 1), bool), a[1:] != a[:-1]])
    groups = np.cumsum(first) - 1
    out = [wrap(a[first])]
    if return_inverse:
        out.append(wrap(groups.reshape(input._array.shape)))
    if return_counts:
        out.append(wrap(np.bincount(groups)))
    return out[0] if len(out) == 1 else tuple(out)


@public("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of `bins` equal bins from `min` to `max`.

    If both bounds are 0, the smallest and the greatest element take their place.

    >>> sg.histc(sg.tensor([0.0, 1.0, 1.0, 4.0]), bins=2)
    tensor([3., 1.])
    """
    a = input._array
    if not a.size:
        return wrap(np.zeros(bins, a.dtype))
    low, high = (min, max) if (min, max) != (0, 0) else (float(a.min()), float(a.max()))
    if low == high:
        low, high = low - 1, high + 1
    counts, _ = np.histogram(a, bins, (low, high))
    return wrap(counts.astype(a.dtype))


@public("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that aren't 0, one row each: `nonzero`.

    >>> sg.argwhere(sg.tensor([0, 5, 6]))
    tensor([[1],
            [2]])
    """
    return input.nonzero()


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The indices of the lower triangle of a `row` by `col` matrix: a (2, n) tensor of rows and columns.

    >>> sg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return wrap(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The indices of the upper triangle of a `row` by `col` matrix: a (2, n) tensor of rows and columns.

    >>> sg.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return wrap(np.stack(np.triu_indices(row, offset, col)))


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The powers of a vector, as columns."""
    n = x.shape[-1] if N is None else N
    powers = stack([x**k for k in range(n)], -1)
    return powers if increasing else flip(powers, -1)


@public("heaviside")
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where `input` is negative, 1 where it is positive, `values` where it is 0.

    Its derivative isn't defined: a `RuntimeError` where one would be recorded.

    >>> sg.heaviside(sg.tensor([-1.0, 0.0, 2.0]), sg.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if tracked((input, values)):
        raise RuntimeError("derivative for aten::heaviside is not implemented")
    a, v = input._array, values._array
    if a.dtype != v.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    try:
        return wrap(np.where(a == 0, v, a > 0).astype(a.dtype)[()])
    except ValueError:
        raise shape_mismatch((a.shape, v.shape)) from None


# --- shapes in place ----------------------------------------------------------------------------------------


def _reshaped(name: str, function: Callable[..., Tensor]) -> None:
    """The form of a view that changes the tensor itself."""

    def changed(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        if self._more is not None and self._more.base is not None:
            raise RuntimeError(f"{name}_ of a view is not supported: use {name}")
        recorded = tracked((self,))
        check_writable(self, recorded, True)
        view = function(shell(self), *args, **keywords)
        self._array = view._array
        if recorded:
            node: Any = view._history
            if node._targets and node._targets[0] is not None and self._history is LEAF:
                raise RuntimeError(
                    "a leaf Variable that requires grad is being used in an in-place operation."
                )
            tensor_inplace.rebase(self, node)
        bump(self)
        return self

    changed.__name__ = name + "_"
    changed.__doc__ = f"`{name}`, of the tensor itself."
    setattr(Tensor, name + "_", changed)


for _name, _function in (
    ("t", t), ("transpose", transpose), ("swapaxes", transpose), ("swapdims", transpose),
    ("squeeze", squeeze), ("unsqueeze", unsqueeze),
):  # fmt: skip
    _reshaped(_name, _function)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the diagonal to one value."""
    if self.ndim != 2 or wrap:
        raise RuntimeError("fill_diagonal_ is for matrices, without wrapping")
    self.diagonal().fill_(fill_value)
    return self


method("renorm", renorm)
for _name in ("lgamma", "digamma", "erfinv", "i0"):
    method(_name, FUNCTIONS[_name])


@public("sum_to_size", function=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over what broadcasting from `size` would have added."""
    wanted = shape_argument(size)
    lead = self.ndim - len(wanted)
    if lead < 0 or any(n not in (1, m) for n, m in zip(wanted, self.shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
    axes = (*range(lead), *(i + lead for i, n in enumerate(wanted) if n == 1 and self.shape[i + lead] != 1))
    out = _sum(self, axes, True) if axes else self
    return reshape(out, wanted)


# --- what a tensor is ---------------------------------------------------------------------------------------


def _question(name: str, answer: Callable[[Tensor], Any], text: str, function: bool = True) -> None:
    def ask(input: Tensor) -> Any:
        return answer(input)

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = text
    public(name, function=function)(ask)


_question("is_signed", lambda x: x._array.dtype.kind not in "ub", "Whether the dtype has negative numbers.")
_question(
    "is_nonzero", lambda x: bool(x), "Whether the only element differs from 0; several: a `RuntimeError`."
)
_question(
    "get_device",
    lambda x: -1 if x.device.type == "cpu" else x.device.index or 0,
    "The number of the CUDA device, -1 on the CPU.",
)
_question("ndimension", lambda x: x.ndim, "The number of dimensions.", False)
_question("isreal", lambda x: wrap(np.isreal(x._array)), "Whether the imaginary part of each element is 0.")
_question("isneginf", lambda x: wrap(np.isneginf(x._array)), "Whether each element is minus infinity.")
_question("isposinf", lambda x: wrap(np.isposinf(x._array)), "Whether each element is plus infinity.")
_question("adjoint", lambda x: transpose(x, -2, -1).conj(), "The matrices transposed and conjugated.")


@public("is_inference", method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made inside `inference_mode`."""
    return input.is_inference()


@public("detach", method=False)
def detach(input: Tensor) -> Tensor:
    """The same values on the same memory, cut off from the graph."""
    return input.detach()


@public("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have one shape.

    >>> sg.is_same_size(sg.zeros(2, 1), sg.zeros(2))
    False
    """
    return input._array.shape == other._array.shape


@public("copy", function=False)
def _copy(self: Tensor) -> Tensor:
    """NumPy's name for `clone`."""
    return self.clone()


@public("conjugate", function=False)
def _conjugate(self: Tensor) -> Tensor:
    """NumPy's name for `conj`."""
    return self.conj()


install(fill_diagonal_=fill_diagonal_, is_sparse=False, is_quantized=False)
FUNCTIONS.update({
    f.__name__: f
    for f in (
        block_diag, broadcast_shapes, bucketize, cartesian_prod, cdist, chain_matmul, column_stack,
        combinations, cumulative_trapezoid, dstack, isin, searchsorted, trapezoid, tril_indices,
        triu_indices, vander, _each(1), _each(2), _each(3),
    )
})  # fmt: skip
FUNCTIONS["trapz"], FUNCTIONS["row_stack"] = trapezoid, FUNCTIONS["vstack"]


def _functional(name: str) -> None:
    """`exp_(x)` beside `x.exp_()`."""

    def function(input: Tensor, *args: Any, **keywords: Any) -> Tensor:
        return getattr(input, name)(*args, **keywords)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`input.{name}(...)`."
    FUNCTIONS[name] = function


for _name in (
    "abs_", "ceil_", "clamp_", "cos_", "exp_", "expm1_", "fill_", "floor_", "log_", "log1p_", "neg_",
    "reciprocal_", "relu_", "round_", "rsqrt_", "sigmoid_", "sin_", "sqrt_", "square_", "tan_", "tanh_",
    "trunc_", "zero_",
):  # fmt: skip
    _functional(_name)
