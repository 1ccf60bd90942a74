"""Indexing: reading and writing parts of a tensor, by PyTorch's rules."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import operator
import threading
import warnings
from typing import Any

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.autograd.graph import LEAF, Node, target_of
from srcgrad.runtime.autograd.nodes import rule_node, stand_in, version_of, watching
from srcgrad.runtime.autograd.record import call, record_beside, record_one, tracked
from srcgrad.runtime.tensor import public, shape_mismatch, type_name
from srcgrad.runtime.tensor_base import Tensor, install, own_memory, shell, wrap
from srcgrad.runtime.tensor_inplace import (
    FillBackward3,
    bump,
    carried,
    check_writable,
    copy_,
    fill_,
    in_place,
    method,
    rebase,
)
from srcgrad.runtime.tensor_join import tril, triu
from srcgrad.runtime.tensor_types import F32, F64, I64, TYPE_NAMES, fitting
from srcgrad.runtime.tensor_views import (
    ALIAS,
    SELECT,
    SLICE,
    attach,
    dimension,
    expand,
    select,
    unsqueeze,
    view_of,
)

INDEX = rule_node("IndexBackward0", operator.getitem)
UNSQUEEZED = rule_node("UnsqueezeBackward0", operator.getitem)
GATHER = rule_node("GatherBackward0", np.take_along_axis, "input")
INDEX_SELECT = rule_node("IndexSelectBackward0", operator.getitem)
GATHER.saved_names = {"self": 0, "index": 1, "dim": 2}
TAKE = rule_node("TakeBackward0", np.take)
MASKED_SELECT = rule_node("MaskedSelectBackward0", operator.getitem)


def _is_several(index: Any) -> bool:
    """Whether a list stands for a tuple: PyTorch takes it so if it holds lists, tensors, slices, None or
    `...`."""
    if type(index) is not list or len(index) >= 32:
        return False
    if not any(e is None or e is Ellipsis or isinstance(e, list | tuple | slice | Tensor) for e in index):
        return False
    warnings.warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] for "
        "x[seq]",
        UserWarning,
        stacklevel=4,
    )
    return True


_NO_INDEX = "tensors used as indices must be long, int, byte or bool tensors"


def _index_array(a: Any) -> Any:
    """An array of indices, or a mask (also one of bytes)."""
    if a.dtype == np.uint8:
        return a != 0
    if a.dtype.kind != "b" and a.dtype.name not in ("int64", "int32"):
        raise IndexError(_NO_INDEX)
    return a


def _plain(index: Any) -> tuple[list[Any], bool]:
    """The parts of an index in NumPy's terms, and whether it is basic (gives a view)."""
    parts = list(index) if type(index) is tuple or _is_several(index) else [index]
    basic = True
    out: list[Any] = []
    for p in parts:
        if isinstance(p, Tensor):
            a = p._array
            if a.ndim == 0 and a.dtype.kind in "iu":
                out.append(int(a))
            else:
                basic = False
                a = _index_array(own_memory(p) if a.ndim else a)
                out.append(a if a.ndim else bool(a))
        elif type(p) is slice:
            start, stop, step = (None if e is None else operator.index(e) for e in (p.start, p.stop, p.step))
            if step is not None and step <= 0:
                raise ValueError("step must be greater than zero")
            out.append(slice(start, stop, step))
        elif p is None or p is Ellipsis:
            out.append(p)
        elif type(p) is int:
            out.append(p)
        elif isinstance(p, bool | np.bool_):
            basic = False
            out.append(bool(p))
        elif isinstance(p, str):
            raise TypeError("only integers, slices, ellipsis, None and tensors are valid indices (got str)")
        elif isinstance(p, float | complex):
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                "indices (got "
                f"{type(p).__name__})"
            )
        elif isinstance(p, list | tuple | range):
            a = np.asarray([e._array if isinstance(e, Tensor) else e for e in p])
            if a.size == 0:
                a = a.astype(np.int64)
            basic = False
            out.append(_index_array(a))
        elif arrays.is_array(p) and p.ndim:
            basic = False
            out.append(_index_array(p))
        elif hasattr(p, "__index__"):
            out.append(operator.index(p))
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                "indices (got "
                f"{type(p).__name__})"
            )
    return out, basic


def _check(parts: list[Any], shape: tuple[int, ...]) -> None:
    """PyTorch's IndexErrors."""
    used = sum(
        (p.ndim if isinstance(p, np.ndarray) and p.dtype.kind == "b" else 1)
        for p in parts
        if p is not None and p is not Ellipsis and not isinstance(p, bool)
    )
    if not shape and used:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
            "to convert a 0-dim "
            "tensor to a number"
        )
    if used > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    if parts.count(Ellipsis) > 1 if not any(arrays.is_array(p) for p in parts) else False:
        raise IndexError("an index can only have a single ellipsis ('...')")
    shapes = [p.shape for p in parts if arrays.is_array(p) and p.dtype.kind != "b"]
    try:
        if len(shapes) > 1:
            np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(s)) for s in shapes)
        ) from None
    d = 0
    for position, p in enumerate(parts):
        if p is Ellipsis:
            rest = sum(
                (q.ndim if isinstance(q, np.ndarray) and q.dtype.kind == "b" else 1)
                for q in parts[position + 1 :]
                if q is not None and not isinstance(q, bool)
            )
            d = len(shape) - rest
        elif p is None or isinstance(p, bool):
            continue
        elif isinstance(p, int):
            if not -shape[d] <= p < shape[d]:
                raise IndexError(f"index {p} is out of bounds for dimension {d} with size {shape[d]}")
            d += 1
        elif isinstance(p, slice):
            d += 1
        elif p.dtype.kind == "b":
            for k in range(p.ndim):
                if p.shape[k] != shape[d + k]:
                    raise IndexError(
                        f"The shape of the mask {list(p.shape)} at index {k} does not match the shape of "
                        "the indexed tensor "
                        f"{list(shape)} at index {d + k}"
                    )
            d += p.ndim
        else:
            if p.size and (p.min() < -shape[d] or p.max() >= shape[d]):
                bad = int(p.min()) if p.min() < -shape[d] else int(p.max())
                raise IndexError(f"index {bad} is out of bounds for dimension {d} with size {shape[d]}")
            d += 1


def viewed(input: Tensor, key: tuple[Any, ...]) -> Tensor:
    """A view by basic indexing."""
    a = own_memory(input)
    kind = SLICE
    for p in key:
        if type(p) is int:
            kind = SELECT
        elif p is None:
            kind = UNSQUEEZED
        elif type(p) is slice and p != slice(None):
            kind = SLICE
    if all(p is Ellipsis for p in key):
        kind = ALIAS
    full = key if Ellipsis in [k for k in key if k is Ellipsis] else (*key, ...)
    return view_of(input, a[full], kind, (full,), viewed, (key,))


def _by_numbers_and_slices(self: Tensor, index: tuple[Any, ...]) -> Tensor | None:
    """`self[i, :, j:k]` in the common case; None for everything else, and for what fails."""
    kind = SLICE
    only_numbers = True
    for p in index:
        if type(p) is int:
            kind = SELECT
        elif type(p) is slice and p.step is None:
            only_numbers = False
            if p.start is not None or p.stop is not None:
                kind = SLICE
        else:
            return None
    key = (*index, ...)
    try:
        array = self._array[key]
    except (IndexError, TypeError):
        return None
    if only_numbers and len(index) > 1 and self._history is not None:
        return None if len(index) > 2 else _selected(self, array, index)
    if only_numbers:
        return view_of(self, array, SELECT, (key,), viewed, (index,))
    return view_of(self, array, kind, (key,), viewed, (index,))


def _selected(self: Tensor, array: Any, index: tuple[int, ...]) -> Tensor:
    """`self[i][j]`, recorded as the two nodes that it is, without a Tensor in between."""
    if array.dtype is not F32 and array.dtype is not F64 or not tracked((self,)):
        return view_of(self, array, SELECT, ((*index, ...),), viewed, (index,))
    between, result = object.__new__(Tensor), object.__new__(Tensor)
    between._array, between._counter, between._grad, between._more = (
        self._array[index[0], ...],
        None,
        None,
        None,
    )
    result._array, result._grad = array, None
    record_one(SELECT, between, self, ((index[0], ...),))
    record_one(SELECT, result, between, ((index[1], ...),))
    return attach(result, self, viewed, (index,))


def _by_numbers(self: Tensor, index: list[Any]) -> Tensor | None:
    """`self[[i, j]]`, a copy, in the common case; None for everything else, and for what fails."""
    for p in index:
        if type(p) is not int:
            return None
    try:
        key = np.array(index)
        result = wrap(self._array[key])
    except (IndexError, OverflowError):
        return None
    if self._history is not None and tracked((self,)):
        record_beside(Index, result, self, (key,))
        result._history.watched = ()
    return result


def getitem(self: Tensor, index: Any) -> Tensor:
    if type(index) is int and self._array.ndim:
        n = self._array.shape[0]
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
        a = own_memory(self)
        key = (index % n, ...)
        return view_of(self, a[key], SELECT, (key,), select, (0, index))
    if type(index) is tuple and index and type(self._array) is np.ndarray:
        out = _by_numbers_and_slices(self, index)
        if out is not None:
            return out
    elif type(index) is Tensor and type(self._array) is type(index._array) is np.ndarray and index.ndim:
        if index._array.dtype == I64:
            try:
                out = _picked(Index, self, self._array[index._array], (index._array,))
            except IndexError:
                out = None
            if out is not None:
                if out._history is not None:
                    out._history.watched = [(index, version_of(index))]
                return out
    elif type(index) is list and type(self._array) is np.ndarray and 0 < len(index) < 32:
        out = _by_numbers(self, index)
        if out is not None:
            return out
    if type(index) is slice and index.step is None and self._array.ndim:
        start, stop = index.start, index.stop
        if (start is None or type(start) is int) and (stop is None or type(stop) is int):
            key = (index, ...)
            return view_of(self, own_memory(self)[key], SLICE, (key,), viewed, ((index,),))
    parts, basic = _plain(index)
    _check(parts, self._array.shape)
    if basic:
        if all(p is None for p in parts) and parts:
            out = self
            for _ in parts:
                out = unsqueeze(out, 0)
            return out
        if parts and all(type(p) is int for p in parts):
            out = self
            for p in parts:
                out = select(out, 0, p)
            return out
        return viewed(self, tuple(parts))
    source, key = _advanced(self, parts)
    result: Tensor = _indexed(source, key, own_memory(source)[key], index)
    return result


def _advanced(self: Tensor, parts: list[Any]) -> tuple[Tensor, Any]:
    """What an index with tensors in it means: a view by its basic parts, then an index with only tensors."""
    basic: list[Any] = []
    rest: list[Any] = []
    for p in parts:
        if isinstance(p, bool):
            basic.append(None)
            rest.append(np.zeros(int(p), np.int64))
        elif arrays.is_array(p):
            basic += [slice(None)] * (p.ndim if p.dtype.kind == "b" else 1)
            rest.append(p)
        else:
            basic.append(p)
            if type(p) is not int:
                rest.append(p if p is Ellipsis else slice(None))
    plain = all(p is Ellipsis or (type(p) is slice and p == slice(None)) for p in basic)
    source = self if plain else viewed(self, tuple(basic))
    return source, tuple(rest) if len(rest) != 1 else rest[0]


Index = watching(INDEX)
"""Indexing by tensors: notices later changes of the index tensors."""


def _indexed(self: Tensor, key: Any, out: Any, index: Any) -> Tensor:
    result = wrap(out)
    if tracked((self,)) and result._array.dtype.kind in "fc":
        record_beside(Index, result, self, (key,))
        members = index if type(index) is tuple else (index,)
        result._history.watched = [(t, version_of(t)) for t in members if isinstance(t, Tensor)]
    return result


class IndexPut(Node):
    """Writing at tensor indices: the old values get nothing where they were overwritten, the new ones what
    is there."""

    __slots__ = ("key", "like", "accumulate")
    key: Any
    like: Any
    accumulate: bool

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        old, new = self._targets if len(self._targets) == 2 else (self._targets[0], None)
        rest = None
        if old is not None:
            if self.accumulate:
                rest = g
            elif graph:
                rest = g.clone()
                rest[self.key] = 0
            else:
                rest = arrays.copied(g)
                rest[self.key] = 0
        part = g[self.key] if new is not None else None
        if part is not None:
            part = support.unbroadcast(part, self.like)
        return rest, part


def _put_kind(name: str) -> type[IndexPut]:
    return type(name, (IndexPut,), {"__slots__": ()})


INDEX_PUT = _put_kind("IndexPutBackward0")
INDEX_ADD, INDEX_COPY = _put_kind("IndexAddBackward0"), _put_kind("IndexCopyBackward0")
INDEX_FILL, SCATTER_ADD = _put_kind("IndexFillBackward0"), _put_kind("ScatterAddBackward0")
SCATTER, SCATTER_NUMBER = _put_kind("ScatterBackward0"), _put_kind("ScatterBackward1")
MASKED_SCATTER, PUT = _put_kind("MaskedScatterBackward0"), _put_kind("PutBackward0")
_COPYING = threading.local()
"""While a function that copies (`index_add`) runs: the tensor that it copied."""


def _put(self: Tensor, key: Any, value: Tensor, accumulate: bool, kind: type[IndexPut] = INDEX_PUT) -> Tensor:
    source = getattr(_COPYING, "source", None)
    recorded = tracked((self if source is None else source, value))
    check_writable(self, recorded, not accumulate)
    history = shell(self)._history if recorded and source is None else None
    a = own_memory(self)
    v = value._array
    if arrays.device_type(v) != arrays.device_type(a):
        v = carried(v, arrays.device_type(a))
    if v.dtype != a.dtype:
        v = v.astype(a.dtype)
    try:
        if accumulate:
            arrays.namespace(a).add.at(a, key, v)
        else:
            a[key] = v
    except ValueError:
        shape = a[key].shape
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(v.shape)} cannot be broadcast to indexing result "
            f"of shape {list(shape)}"
        ) from None
    bump(self)
    if recorded:
        node: Any = object.__new__(kind)
        old = target_of(source) if source is not None else self if history is LEAF else history
        node._link((old,) if kind in (INDEX_FILL, SCATTER_NUMBER) else (old, target_of(value)))
        node.key, node.like, node.accumulate = key, stand_in(value._array), accumulate
        rebase(self, node)
    return self


def setitem(self: Tensor, index: Any, value: Any) -> None:
    number = not isinstance(value, Tensor)
    if number:
        if isinstance(value, int | float | complex | np.number | np.bool_):
            value = wrap(fitting(value, self._array.dtype))
        else:
            kind = TYPE_NAMES.get(self.dtype.name, "Tensor")
            what = "numpy.ndarray" if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(f"can't assign a {what} to a srcgrad.{kind}")
    parts, basic = _plain(index)
    _check(parts, self._array.shape)
    if basic:
        if isinstance(self._array, np.generic):
            own_memory(self)
        target = self if _is_whole(parts, self._array.shape) else viewed(self, tuple(parts))
        _allow(self, target)
        if target is self and number:
            fill_(self, value, FillBackward3)
            return
        value = _without_leading_ones(value, target._array.ndim)
        if target._array.shape != value._array.shape:
            expand(value, tuple(target._array.shape))
        if value._array.dtype.kind == "c" and self._array.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {self.dtype.name} without overflow")
        _check_overlap(target._array, value._array)
        copy_(target, value)
        return
    source, key = _advanced(self, parts)
    if source is not self:
        _allow(self, source)
    _put(source, key, value, False)


def _allow(self: Tensor, view: Tensor) -> None:
    """A view made only to write through it may be written even if it was made under `no_grad`."""
    if view._more is not None and view._more.made == "no_grad" and not (self._more and self._more.made):
        view._more.made = None


def _is_whole(parts: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether the index is the tensor itself: `x[...]`, `x[:]`."""
    return all(
        p is Ellipsis or (type(p) is slice and p.step in (None, 1) and p.indices(n) == (0, n, 1))
        for p, n in zip(parts, shape, strict=False)
    ) and len(parts) <= len(shape) + (Ellipsis in [p for p in parts if p is Ellipsis])


def _check_overlap(target: Any, value: Any) -> None:
    """A part may be copied onto itself, but not onto another part of the same memory that overlaps it."""
    if not isinstance(target, np.ndarray) or not isinstance(value, np.ndarray) or target.size < 2:
        return
    steps = [[s for s, n in zip(a.strides, a.shape, strict=True) if n > 1] for a in (target, value)]
    if target.ctypes.data == value.ctypes.data and steps[0] == steps[1]:
        return
    if np.may_share_memory(target, value) and np.shares_memory(target, value):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def _without_leading_ones(value: Tensor, ndim: int) -> Tensor:
    shape = value._array.shape
    extra = len(shape) - ndim
    if extra > 0 and all(s == 1 for s in shape[:extra]):
        return value.reshape(shape[extra:])
    return value


def _delitem(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


install(__getitem__=getitem, __setitem__=setitem, __delitem__=_delitem)


# --- gathering and scattering -------------------------------------------------------------------------------


def outside(index: Any, n: int) -> bool:
    """Is one of an array of indices below 0, or `n` or more?"""
    if index.size < 32 and type(index) is np.ndarray:  # faster than two reductions
        return any(not 0 <= i < n for i in index.ravel().tolist())
    return bool(index.size and (index.min() < 0 or index.max() >= n))


@public("gather")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """`out[i][j] = input[index[i][j]][j]` for `dim` 0, and so on."""
    a, i = input._array, index._array
    d = dimension(dim, a.ndim)
    if i.dtype.kind not in "iu":
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if i.ndim != a.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    if outside(i, a.shape[d]):
        bad = int(i.min() if i.min() < 0 else i.max())
        raise RuntimeError(f"index {bad} is out of bounds for dimension {d} with size {a.shape[d]}")
    if all(i.shape[k] == a.shape[k] for k in range(a.ndim) if k != d):
        if i.ndim == 2 and type(a) is type(i) is np.ndarray:
            places = np.arange(i.shape[1 - d])
            out = a[places[:, None], i] if d else a[i, places]
        else:
            out = np.take_along_axis(a, i, d)
        return _picked(GATHER, input, out, (i, d))
    key = [np.arange(n).reshape([-1 if k == j else 1 for j in range(i.ndim)]) for k, n in enumerate(i.shape)]
    key[d] = i
    return call(rule_node("GatherBackward0", operator.getitem), (input, tuple(key)))


@public("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at `indices` along `dim` (of the flat tensor without one); the other dimensions broadcast.

    >>> x = sg.tensor([[3, 1], [2, 4]])
    >>> sg.take_along_dim(x, x.argsort(dim=1), dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    d = dimension(dim, input.ndim)
    sides = [(*x.shape[:d], 1, *x.shape[d + 1 :]) for x in (input, indices)]
    shape = np.broadcast_shapes(*sides)
    x, i = (expand(t, (*shape[:d], t.shape[d], *shape[d + 1 :])) for t in (input, indices))
    return gather(x, d, i)


@public("index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The entries along `dim` at the places in the vector `index`.

    A `RuntimeError` if `index` isn't int32 or int64, an `IndexError` if one is negative or too large.

    >>> sg.index_select(sg.tensor([10, 20, 30]), 0, sg.tensor([2, 0]))
    tensor([30, 10])
    """
    d = dimension(dim, input._array.ndim)
    i = index._array
    if i.dtype != I64 and i.dtype != np.int32:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if i.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not input._array.ndim:
        return index_select(input.reshape(1), 0, index).reshape(())
    if i.size and (i.max() >= input._array.shape[d] or i.min() < 0):
        raise IndexError("index out of range in self")
    key = (slice(None),) * d + (np.atleast_1d(i),)
    return _picked(INDEX_SELECT, input, input._array[key], (key,))


def _picked(kind: Any, input: Tensor, out: Any, rest: tuple[Any, ...]) -> Tensor:
    """Elements of `input`, recorded beside the arrays that say which."""
    result = wrap(out)
    if (input._history is not None or input._more is not None) and tracked((input,)):
        if out.dtype.kind in "fc":
            record_beside(kind, result, input, rest)
    return result


@public("take")
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at `index`, counted as if the tensor were flat; an `IndexError` if one is out of range.

    >>> sg.take(sg.tensor([[1, 2], [3, 4]]), sg.tensor([0, 3]))
    tensor([1, 4])
    """
    i, n = index._array, input._array.size
    if i.dtype.kind != "i":
        raise RuntimeError("take(): Expected a long tensor for index")
    if i.size and (i.max() >= n or i.min() < -n):
        bad = int(i.max() if i.max() >= n else i.min())
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {n} elements.")
    return call(TAKE, (input, index._array))


@public("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, as a vector; both are broadcast first.

    A mask that isn't bool is a `RuntimeError`.

    >>> sg.masked_select(sg.tensor([1, 2, 3]), sg.tensor([True, False, True]))
    tensor([1, 3])
    """
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    try:
        shape = np.broadcast_shapes(input._array.shape, mask._array.shape)
    except ValueError:
        raise shape_mismatch((mask._array.shape, input._array.shape)) from None
    source = input if input._array.shape == shape else expand(input, shape)
    return call(MASKED_SELECT, (source, np.broadcast_to(mask._array, shape)))


@public("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that aren't 0: one row each, or with `as_tuple` one vector per dimension.

    >>> sg.nonzero(sg.tensor([0, 5, 6]))
    tensor([[1],
            [2]])
    """
    found = np.nonzero(np.atleast_1d(input._array))
    if as_tuple:
        return tuple(wrap(f) for f in found)
    return wrap(np.stack(found, -1)[:, : input._array.ndim])  # of one number: as many empty rows


def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values` (or, with `accumulate`, add them) where a tuple of index tensors points.

    >>> sg.zeros(3).index_put_((sg.tensor([1]),), sg.tensor(5.0))
    tensor([0., 5., 0.])
    """
    _same_dtype("Index put", self, values)
    parts, _ = _plain(tuple(indices))
    _check(parts, self._array.shape)
    return _put(self, tuple(parts), values, accumulate)


def _same_dtype(name: str, self: Tensor, source: Any) -> None:
    if isinstance(source, Tensor) and source._array.dtype != self._array.dtype:
        kinds = [type_name(t._array.dtype) for t in (self, source)]
        raise RuntimeError(
            f"{name}: expected self and source to have the same dtype, but got (self) {kinds[0]} and "
            f"(source) {kinds[1]}"
        )


def _along(self: Tensor, name: str, dim: int, index: Tensor, source: Tensor | None = None) -> tuple[Any, ...]:
    d = dimension(dim, self._array.ndim)
    i = np.atleast_1d(index._array)
    if i.dtype != I64 and i.dtype != np.int32:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if i.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector")
    _same_dtype(name, self, source)
    if source is not None and source._array.ndim and self._array.ndim:
        others = [x._array.shape[:d] + x._array.shape[d + 1 :] for x in (self, source)]
        if others[0] != others[1]:
            raise RuntimeError(
                f"{name}(): source tensor shape must match self tensor shape, excluding the specified "
                f"dimension. Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
            )
        if i.size != source._array.shape[d]:
            raise RuntimeError(
                f"{name}(): Number of indices ({i.size}) should be equal to source.size(dim): "
                f"({source._array.shape[d]}), for dim: {d}"
            )
    n = self._array.shape[d] if self._array.ndim else 1
    if i.size and (i.min() < -n or i.max() >= n):
        raise IndexError(f"{name}(): index out of range in self")
    return (slice(None),) * d + (i,) if self._array.ndim else ()


def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Add `alpha` times `source` to the entries along `dim` at the places in `index`.

    >>> sg.zeros(2).index_add_(0, sg.tensor([1, 1]), sg.tensor([2.0, 3.0]))
    tensor([0., 5.])
    """
    key = _along(self, "index_add_", dim, index, source)
    return _put(self, key, source if alpha == 1 else source * alpha, True, INDEX_ADD)


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Write `source` to the entries along `dim` at the places in `index`.

    >>> sg.zeros(2).index_copy_(0, sg.tensor([1]), sg.tensor([2.0]))
    tensor([0., 2.])
    """
    return _put(self, _along(self, "index_copy_", dim, index, source), source, False, INDEX_COPY)


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Set the entries along `dim` at the places in `index` to one value.

    >>> sg.zeros(3).index_fill_(0, sg.tensor([0, 2]), 7)
    tensor([7., 0., 7.])
    """
    filler = value if isinstance(value, Tensor) else wrap(fitting(value, self._array.dtype))
    kind = INDEX_FILL if filler._history is None else INDEX_PUT
    return _put(self, _along(self, "index_fill_", dim, index), filler, False, kind)


def scattered(self: Tensor, dim: int, index: Tensor, src: Any) -> tuple[tuple[Any, ...], Tensor]:
    i = index._array
    d = dimension(dim, self._array.ndim)
    if max(i.ndim, 1) != max(self._array.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    sizes = [(self._array.shape, [k for k in range(i.ndim) if k != d])]
    if isinstance(src, Tensor):
        _same_dtype("scatter()", self, src)
        sizes.append((src._array.shape, list(range(i.ndim))))
    for shape, dims in sizes:
        if len(shape) == i.ndim and any(i.shape[k] > shape[k] for k in dims):
            raise RuntimeError(
                f"Expected index {list(i.shape)} to be no larger than {list(shape)} apart from dimension {d}"
            )
    if outside(i, self._array.shape[d]):
        bad = int(i.min() if i.min() < 0 else i.max())
        raise RuntimeError(f"index {bad} is out of bounds for dimension {d} with size {self._array.shape[d]}")
    key = [np.arange(n).reshape([-1 if k == j else 1 for j in range(i.ndim)]) for k, n in enumerate(i.shape)]
    key[d : d + 1] = [i] if self._array.ndim else []
    if isinstance(src, Tensor):
        part = src if src._array.shape == i.shape else src[tuple(slice(0, n) for n in i.shape)]
    else:
        part = wrap(self._array.dtype.type(src))
    return tuple(key), part


def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None, value: Any = None
) -> Tensor:
    """Write `src`, a tensor or a number, at the places `index` along `dim`; `reduce`: "add" or "multiply".

    `index` has the tensor's rank, and is a `RuntimeError` where it is out of range.

    >>> sg.zeros(3).scatter_(0, sg.tensor([2, 0]), sg.tensor([1.0, 5.0]))
    tensor([5., 0., 1.])
    """
    key, part = scattered(self, dim, index, src if value is None else value)
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if reduce == "multiply":
        if tracked((self, part)):
            raise RuntimeError("derivative for aten::scatter is not implemented")
        a = own_memory(self)
        arrays.namespace(a).multiply.at(a, key, part._array.astype(a.dtype))
        bump(self)
        return self
    kind = SCATTER if isinstance(src, Tensor) else SCATTER_NUMBER
    return _put(self, key, part, reduce == "add", kind)


def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Add `src` at the places `index` along `dim`; the errors are those of `scatter_`.

    >>> sg.zeros(2).scatter_add_(0, sg.tensor([1, 1]), sg.tensor([2.0, 3.0]))
    tensor([0., 5.])
    """
    key, part = scattered(self, dim, index, src)
    return _put(self, key, part, True, SCATTER_ADD)


def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Set the elements where `mask` holds to one value; a mask that isn't bool is a `RuntimeError`.

    >>> sg.tensor([1, 2]).masked_fill_(sg.tensor([True, False]), 0)
    tensor([0, 2])
    """
    return in_place(self, masked_fill, mask, value, overlapping=True)


@public("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where `mask`, else `input`."""
    from srcgrad.runtime.tensor_math import masked

    return masked(input, mask, value)


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the elements of `source`, in order, where `mask` holds; a `RuntimeError` if there are too few.

    >>> sg.zeros(3).masked_scatter_(sg.tensor([True, False, True]), sg.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.name}"
        )
    _same_dtype("masked_scatter", self, source)
    m = np.broadcast_to(mask._array, self._array.shape)
    n = int(np.count_nonzero(m))
    if source.numel() < n:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return _put(self, (m,), source.reshape(-1)[:n], False, MASKED_SCATTER)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write `source` where `index` counts the elements as if the tensor were flat."""
    _same_dtype("put_()", self, source)
    key = np.unravel_index(index._array % max(self._array.size, 1), self._array.shape)
    return _put(self, key, source, accumulate, PUT)


for _f in (
    index_put_,
    index_add_,
    index_copy_,
    index_fill_,
    scatter_,
    scatter_add_,
    masked_fill_,
    masked_scatter_,
    put_,
):
    setattr(Tensor, _f.__name__, _f)


def _copying(name: str) -> None:
    changed = globals()[name + "_"]

    def function(input: Tensor, *args: Any, **keywords: Any) -> Tensor:
        _COPYING.source = input
        try:
            return changed(wrap(arrays.copied(input._array)), *args, **keywords)
        finally:
            _COPYING.source = None

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A copy of `input` changed by `{name}_`."
    public(name)(function)


for _n in (
    "index_add", "index_copy", "index_fill", "index_put", "put", "scatter", "scatter_add", "masked_scatter",
):  # fmt: skip
    _copying(_n)

method("tril", tril)
method("triu", triu)
