"""Copies in other shapes, and joining: clone, repeat, flip, cat, stack and their kin."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.nodes import RuleNode, rule_node
from srcgrad.runtime.autograd.record import call, record_list, record_rule, tracked
from srcgrad.runtime.tensor import FUNCTIONS, public, write_out
from srcgrad.runtime.tensor_base import Tensor, install, wrap
from srcgrad.runtime.tensor_create import convert, shape_argument
from srcgrad.runtime.tensor_types import F32, F64, result_dtype
from srcgrad.runtime.tensor_views import (
    CAT,
    CLONE,
    FLIP,
    IMAG,
    REAL,
    REPEAT,
    REPEAT_INTERLEAVE,
    ROLL,
    STACK,
    TRIL,
    TRIU,
    broadcast_tensors,
    called,
    dimension,
    expand,
    reshape,
    transpose,
)


@public("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, through which gradients flow."""
    return called(CLONE, input, input._array.copy())


@public("contiguous", function=False)
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its memory is contiguous, else a copy."""
    if self.is_contiguous():
        return self
    return call(CLONE, (self,), out=self._array.copy())


@public("repeat", function=False)
def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """Tile: the tensor repeated along each dimension."""
    times = shape_argument(counts if repeats is None else (repeats,))
    if any(n < 0 for n in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats {list(times)}")
    if len(times) < self._array.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    return call(REPEAT, (self, times))


@public("tile")
def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """The tensor repeated `dims` times along its last dimensions (new leading ones where there are more).

    >>> sg.tile(sg.tensor([1, 2]), 2)
    tensor([1, 2, 1, 2])
    """
    times = shape_argument(counts if dims is None else (dims,))
    return repeat(input, (1,) * (input._array.ndim - len(times)) + times)


@public("repeat_interleave")
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each entry along `dim` (of the flat tensor without one) `repeats` times in a row.

    `repeats` is a number or a vector of one number per entry.

    >>> sg.repeat_interleave(sg.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    times = repeats._array if isinstance(repeats, Tensor) else repeats
    n = input._array.size if dim is None else (input._array.shape or (1,))[dimension(dim, input._array.ndim)]
    if np.ndim(times) and len(times) not in (1, n):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {len(times)} "
            f"and input.size({dim}) = {n}"
        )
    return call(REPEAT_INTERLEAVE, (input, times, dim))


@public("flip")
def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """A copy with the order of the entries reversed along `dims`.

    >>> sg.flip(sg.tensor([1, 2, 3]), 0)
    tensor([3, 2, 1])
    """
    axes = tuple(dimension(d, input._array.ndim) for d in shape_argument(axes if dims is None else (dims,)))
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[0]} appears multiple times in the list of dims")
    axes = axes if input._array.ndim else ()
    return call(FLIP, (input, axes), out=arrays.copied(np.flip(input._array, axes)))


@public("fliplr")
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in reversed order: `flip` along the second dimension.

    >>> sg.fliplr(sg.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public("flipud")
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in reversed order: `flip` along the first dimension.

    >>> sg.flipud(sg.tensor([1, 2]))
    tensor([2, 1])
    """
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public("roll")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The entries moved by `shifts` along `dims` (of the flat tensor without any), from the end to the start.

    >>> sg.roll(sg.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    axes = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    count = 1 if isinstance(shifts, int) else len(shifts)
    if count != (len(axes) or 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {count}, dims:{len(axes)}")
    for d in axes:
        dimension(d, input._array.ndim)
        if not input._array.ndim:
            raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
    return call(ROLL, (input, shifts, dims))


@public("rot90")
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor turned `k` times by 90 degrees in the plane of two dimensions, from the first to the second.

    >>> sg.rot90(sg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if input._array.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input._array.ndim}")
    out = arrays.copied(np.rot90(input._array, k, (dims[0], dims[1])))
    return call(rule_node("Rot90Backward0", np.rot90), (input, k, tuple(dims)), out=out)


@public("tril")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, zeros above diagonal number `diagonal` (0: the main one).

    >>> sg.tril(sg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle("tril", TRIL, input, diagonal)


def _triangle(name: str, kind: type[RuleNode], input: Tensor, diagonal: int) -> Tensor:
    if input._array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return call(kind, (input, diagonal))


@public("triu")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, zeros below diagonal number `diagonal` (0: the main one).

    >>> sg.triu(sg.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle("triu", TRIU, input, diagonal)


@public("diag")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector as its diagonal, or the diagonal of a matrix.

    >>> sg.diag(sg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._array.ndim}D")
    name = "DiagEmbedBackward0" if input._array.ndim == 1 else "DiagonalBackward0"
    return call(
        rule_node(name, np.diag), (input, diagonal), out=arrays.copied(np.diag(input._array, diagonal))
    )


def _joined(tensors: Any) -> list[Tensor]:
    ts = list(tensors)
    for i, x in enumerate(ts):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    d = ts[0]._array.dtype
    if all(x._array.dtype is d for x in ts):
        return ts
    d = result_dtype(tuple(x._array for x in ts))
    return [convert(x, d) if x._array.dtype != d else x for x in ts]


def _plainly(kind: type[RuleNode], tensors: list[Any], d: Any) -> Tensor | None:
    """Tensors of one floating dtype and of shapes that fit, joined; None for everything else."""
    dtype: Any = None
    arrays_: list[Any] = []
    recorded = False
    for x in tensors:
        if not isinstance(x, Tensor):
            return None
        a = x._array
        if dtype is None:
            dtype, ndim, shape = a.dtype, a.ndim, a.shape
        if a.dtype is not dtype or type(a) is not np.ndarray or a.ndim != ndim:
            return None
        if kind is STACK:
            if a.shape != shape:
                return None
            a = a[None]
        arrays_.append(a)
        recorded = recorded or x._history is not None or x._more is not None
    if (dtype is not F32 and dtype is not F64) or type(d) is not int or not 0 <= d < ndim:
        return None
    if kind is STACK and d:
        return None
    try:
        result = wrap(np.concatenate(arrays_, d))
    except ValueError:
        return None
    if recorded and tracked(tensors):
        record_list(kind, result, tensors, (d,), {"dim": d})
    return result


def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Tensor:
    """Join tensors along an existing dimension."""
    if isinstance(tensors, Tensor):
        raise TypeError("cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if out is None and axis is None:
        joined = _plainly(CAT, tensors, dim)
        if joined is not None:
            return joined
    elif out is not None:
        return write_out(out, cat(tensors, dim, axis=axis), *tensors)
    if not tensors:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    ts = _joined(tensors)
    kept = [x for x in ts if x._array.shape != (0,)] or ts
    n = kept[0]._array.ndim
    if n == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    d = dimension(dim if axis is None else axis, n)
    for i, x in enumerate(kept[1:], 1):
        if x._array.ndim != n:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {n} and {x._array.ndim}")
        for k in range(n):
            if k != d and x._array.shape[k] != kept[0]._array.shape[k]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size "
                    f"{kept[0]._array.shape[k]} but got size "
                    f"{x._array.shape[k]} for tensor number {i} in the list."
                )
    return _recorded(CAT, kept, d)


def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Tensor:
    """Join tensors along a new dimension."""
    tensors = list(tensors)
    if out is not None:
        return write_out(out, stack(tensors, dim), *tensors)
    joined = _plainly(STACK, tensors, dim)
    if joined is not None:
        return joined
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    ts = _joined(tensors)
    for i, x in enumerate(ts):
        if x._array.shape != ts[0]._array.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(ts[0]._array.shape)} at entry "
                "0 and "
                f"{list(x._array.shape)} at entry {i}"
            )
    d = dimension(dim, ts[0]._array.ndim + 1)
    return _recorded(STACK, ts, d)


def _recorded(kind: type[RuleNode], ts: list[Tensor], d: int) -> Tensor:
    result = wrap(kind.function([x._array for x in ts], d))
    if tracked(ts):
        if result._array.dtype.char in "fd":
            record_list(kind, result, ts, (d,), {"dim": d})
        elif result._array.dtype.kind in "fc":
            record_rule(kind, result, (ts, d), {}, {"dim": d})
    return result


def hstack(tensors: Any) -> Tensor:
    """Join tensors along the second dimension (vectors and numbers along their only one).

    >>> sg.hstack([sg.tensor([1]), sg.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    ts = [reshape(x, 1) if x.ndim == 0 else x for x in tensors]
    return cat(ts, 0 if ts[0].ndim == 1 else 1)


def vstack(tensors: Any) -> Tensor:
    """Join tensors along the first dimension; vectors and numbers become rows first.

    >>> sg.vstack([sg.tensor([1, 2]), sg.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([reshape(x, (1, -1)) if x.ndim < 2 else x for x in tensors], 0)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: one tensor per vector, each of the shape of the whole grid.

    `indexing="xy"` exchanges the first two dimensions.

    >>> rows, columns = sg.meshgrid(sg.tensor([1, 2]), sg.tensor([3, 4]))
    >>> rows
    tensor([[1, 1],
            [2, 2]])
    """
    ts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    if indexing not in ("xy", "ij"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    sizes = [x.numel() for x in ts]
    grids = []
    for i, x in enumerate(ts):
        shape = [1] * len(ts)
        shape[i] = sizes[i]
        grids.append(expand(reshape(x, shape), sizes))
    return tuple(transpose(g, 0, 1) for g in grids) if indexing == "xy" and len(ts) > 1 else tuple(grids)


def _part(kind: type[RuleNode], name: str, text: str) -> Any:
    def get(self: Tensor) -> Tensor:
        if self._array.dtype.kind != "c":
            if name == "imag":
                raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
            return self
        return call(kind, (self,), out=getattr(self._array, name))

    get.__name__ = name
    get.__doc__ = f"""{text}

    >>> sg.{name}(sg.tensor([1 + 2j])).item()
    {getattr(1 + 2j, name)}
    """
    return get


_real = _part(REAL, "real", "The real part; a real tensor is returned as it is.")
_imag = _part(IMAG, "imag", "The imaginary part; of a real tensor a `RuntimeError`.")
install(real=property(_real), imag=property(_imag))
FUNCTIONS.update({
    "real": _real, "imag": _imag, "cat": cat, "concat": cat, "concatenate": cat, "stack": stack,
    "hstack": hstack,
    "vstack": vstack, "meshgrid": meshgrid, "broadcast_tensors": broadcast_tensors,
})  # fmt: skip
