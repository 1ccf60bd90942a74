"""Shapes: views, which share memory and version counter with their base, and the copies that look like
them."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.modes import paused, state
from srcgrad.runtime.autograd.nodes import RuleNode, rule_node
from srcgrad.runtime.autograd.record import NOTHING, call, record_one, record_parts, record_rule, tracked
from srcgrad.runtime.tensor import public
from srcgrad.runtime.tensor_base import More, Tensor, install, own_memory, wrap
from srcgrad.runtime.tensor_create import shape_argument
from srcgrad.runtime.tensor_types import F32, F64, as_dtype
from srcgrad.runtime.tensor_types import dtype as Dtype

_new = object.__new__
VIEW = rule_node("ViewBackward0", np.reshape)
UNSAFE_VIEW = rule_node("UnsafeViewBackward0", np.reshape)
T_NODE = rule_node("TBackward0", np.transpose)
PERMUTE = rule_node("PermuteBackward0", np.transpose)
TRANSPOSE = rule_node("TransposeBackward0", np.swapaxes)
SQUEEZE = rule_node("SqueezeBackward0", np.reshape)
SQUEEZE_DIM = rule_node("SqueezeBackward1", np.reshape)
SQUEEZE_DIMS = rule_node("SqueezeBackward2", np.reshape)
UNSQUEEZE = rule_node("UnsqueezeBackward0", np.expand_dims)
EXPAND = rule_node("ExpandBackward0", np.broadcast_to)
SELECT = rule_node("SelectBackward0", operator.getitem)
SLICE = rule_node("SliceBackward0", operator.getitem)
ALIAS = rule_node("AliasBackward0", operator.getitem)
DIAGONAL = rule_node("DiagonalBackward0", np.diagonal)
CLONE = rule_node("CloneBackward0", np.copy)
SPLIT = rule_node("SplitBackward0", np.split)
SPLIT_SIZES = rule_node("SplitWithSizesBackward0", np.split)
UNBIND = rule_node("UnbindBackward0", np.unstack)
REPEAT = rule_node("RepeatBackward0", np.tile)
REPEAT_INTERLEAVE = rule_node("RepeatInterleaveBackward0", np.repeat)
FLIP = rule_node("FlipBackward0", np.flip)
ROLL = rule_node("RollBackward0", np.roll)
CAT = rule_node("CatBackward0", np.concatenate)
STACK = rule_node("StackBackward0", np.stack)
TRIL = rule_node("TrilBackward0", np.tril)
TRIU = rule_node("TriuBackward0", np.triu)
REAL = rule_node("RealBackward0", np.real)
IMAG = rule_node("ImagBackward0", np.imag)


def dimension(dim: int, ndim: int) -> int:
    """`dim` counted from the front; PyTorch's IndexError if there is no such dimension."""
    if type(dim) is int and 0 <= dim < ndim:
        return dim
    if isinstance(dim, Tensor):
        dim = int(dim)
    low = max(ndim, 1)
    if not -low <= dim < low:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-low}, {low - 1}], but got {dim})"
        )
    return dim % low


def attach(
    view: Tensor,
    source: Tensor,
    function: Callable[..., Tensor],
    args: tuple[Any, ...],
    made: str | None = None,
) -> Tensor:
    """Make `view` a view of `source`: shared counter, root base, and the step that makes it again from the
    base."""
    if source._counter is None:
        source._counter = [0]
    view._counter = source._counter
    more = More()
    above = source._more
    if above is not None and above.base is not None:
        more.base, more.steps = above.base, (*above.steps, (function, args))
        made = made or above.made
    else:
        more.base, more.steps = source, ((function, args),)
    more.generation = more.base._more_of().generation
    if made is None and paused and not state.recording:
        made = "no_grad"
    more.made = made
    view._more = more
    return view


def called(
    kind: type[RuleNode],
    input: Tensor,
    out: Any,
    rest: tuple[Any, ...] = (),
    keywords: Any = NOTHING,
    shown: dict[str, Any] | None = None,
) -> Tensor:
    """The result `out` of an operation on one Tensor, recorded."""
    result = wrap(out)
    if (input._history is not None or input._more is not None) and tracked((input,)):
        dtype = input._array.dtype
        if dtype is out.dtype and (dtype is F32 or dtype is F64):
            record_one(kind, result, input, rest, keywords, shown)
        elif out.dtype.kind in "fc":
            record_rule(kind, result, (input, *rest), keywords, shown)
    return result


def view_of(
    source: Tensor,
    array: Any,
    kind: type[RuleNode],
    args: tuple[Any, ...],
    function: Callable[..., Tensor],
    function_args: tuple[Any, ...],
    shown: dict[str, Any] | None = None,
) -> Tensor:
    """A view with values `array`, recorded as `kind` over `args`; `function(source, *function_args)` makes
    it again."""
    result = _new(Tensor)
    result._array = array
    result._history = result._grad = result._more = None
    if source._history is not None or source._more is not None:
        if (not paused or state.recording) and (source._more is None or source._fresh_history() is not None):
            if array.dtype is F32 or array.dtype is F64:
                record_one(kind, result, source, args, NOTHING, shown)
            else:
                record_rule(kind, result, (source, *args), {}, shown)
    return attach(result, source, function, function_args)


# --- reshaping ----------------------------------------------------------------------------------------------


def resolved(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The shape with -1 filled in; PyTorch's errors if it doesn't fit."""
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = 1
    for s in shape:
        if s < -1:
            raise RuntimeError(f"invalid shape dimension {s}")
        known *= s if s != -1 else 1
    invalid = RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    if -1 in shape:
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                "dimension size -1 can "
                "be any value and is ambiguous"
            )
        if size % known:
            raise invalid
        return tuple(size // known if s == -1 else s for s in shape)
    if known != size:
        raise invalid
    return shape


def _plainly(input: Tensor, shape: tuple[Any, ...], function: Any) -> Tensor | None:
    """`input` in another shape in the common case, contiguous memory and a shape that fits; else None."""
    a = input._array
    if type(a) is not np.ndarray or not a.flags.c_contiguous:
        return None
    for s in shape:
        if type(s) is not int and (type(s) is not tuple or len(shape) != 1):
            return None
    try:
        array = a.reshape(*shape)
    except (ValueError, TypeError):
        return None
    new = array.shape
    return view_of(input, array, VIEW, (new,), function, (new,))


@public("view", function=False)
def view(self: Tensor, *shape: Any, size: Any = None) -> Tensor:
    """The same memory in another shape (or reinterpreted as another dtype)."""
    if not shape:
        if size is None:
            raise TypeError("view() received an invalid combination of arguments - got ()")
        shape = (size,)
    again = _plainly(self, shape, view)
    if again is not None:
        return again
    if len(shape) == 1 and isinstance(shape[0], Dtype | np.dtype):
        try:
            other = own_memory(self).view(as_dtype(shape[0]).numpy)
        except ValueError as error:
            raise RuntimeError(f"view as {shape[0]}: {error}") from None
        return attach(wrap(other), self, view, shape)
    new = resolved(shape_argument(shape), self._array.size)
    a = own_memory(self)
    try:
        array = a.reshape(new, copy=False) if type(a) is np.ndarray else a.reshape(new)
        if type(a) is not np.ndarray and not arrays.same_memory(array, a):
            raise ValueError("a copy")
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two "
            "contiguous subspaces). Use .reshape(...) instead."
        ) from None
    return view_of(self, array, VIEW, (new,), view, (new,))


@public("reshape")
def reshape(input: Tensor, *sizes: Any, shape: Any = None, order: str = "C") -> Tensor:
    """Another shape: a view where possible, else a copy. (`order="F"` is NumPy's: first index fastest.)"""
    shape = sizes if shape is None else (shape,)
    if order == "C":
        again = _plainly(input, shape, reshape)
        if again is not None:
            return again
    if order == "F":
        turned = permute(input, tuple(range(input.ndim))[::-1])
        wanted = resolved(shape_argument(shape), input._array.size)
        return permute(reshape(turned, wanted[::-1]), tuple(range(len(wanted)))[::-1])
    if order != "C":
        raise NotImplementedError(f"reshape with order={order!r}: use 'C' or 'F'")
    a = own_memory(input)
    new = resolved(shape_argument(shape), a.size)
    array = a.reshape(new)
    if not a.flags.c_contiguous and array.size and not arrays.same_memory(array, a):
        return call(UNSAFE_VIEW, (call(CLONE, (input,)), new))
    return view_of(input, array, VIEW, (new,), reshape, (new,))


@public("reshape_as", function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor.

    >>> sg.arange(4).reshape_as(sg.zeros(2, 2)).shape
    srcgrad.Size([2, 2])
    """
    return reshape(self, tuple(other._array.shape))


@public("view_as", function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor.

    >>> sg.arange(4).view_as(sg.zeros(2, 2)).shape
    srcgrad.Size([2, 2])
    """
    return view(self, tuple(other._array.shape))


@public("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the dimensions from `start_dim` to `end_dim` into one."""
    shape = input._array.shape
    first, last = dimension(start_dim, len(shape)), dimension(end_dim, len(shape))
    if not shape:
        return reshape(input, 1)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    n = 1
    for s in shape[first : last + 1]:
        n *= s
    return reshape(input, (*shape[:first], n, *shape[last + 1 :]))


@public("ravel")
def ravel(input: Tensor) -> Tensor:
    """All elements as a vector, a view where the memory allows it.

    >>> sg.ravel(sg.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return reshape(input, -1)


@public("unflatten")
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Dimension `dim` split into `sizes`, one of which may be -1; a `RuntimeError` if they don't fit.

    >>> sg.unflatten(sg.zeros(6), 0, (2, 3)).shape
    srcgrad.Size([2, 3])
    """
    shape = input._array.shape
    d = dimension(dim, len(shape))
    if not shape:
        raise RuntimeError("unflatten: a 0-dim tensor has no dimension to split")
    try:
        parts = resolved(tuple(sizes), shape[d])
    except RuntimeError as error:
        if "invalid for input" not in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} "
            f"({shape[d]}) in the input tensor"
        ) from None
    return reshape(input, (*shape[:d], *parts, *shape[d + 1 :]))


# --- permuting ----------------------------------------------------------------------------------------------


@public("t")
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix."""
    a = own_memory(input)
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return view_of(input, a.T, T_NODE, (), t, ())


@public("permute")
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Another order of the dimensions."""
    a = own_memory(input)
    axes = shape_argument(order if dims is None else (dims,))
    if len(axes) != a.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
            "the desired ordering of "
            f"dimensions i.e. input.dim() = {a.ndim} is not equal to len(dims) = {len(axes)}"
        )
    if len({dimension(d, a.ndim) for d in axes}) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_of(input, a.transpose(axes), PERMUTE, (axes,), permute, (axes,))


@public("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, *dims: Any, dim0: Any = None, dim1: Any = None) -> Tensor:
    """Exchange two dimensions. (NumPy's forms, no argument or all axes, permute.)"""
    if dim1 is not None:
        dims = (dims[0] if dims else dim0, dim1)
    if len(dims) != 2 or (len(dims) == 1 and isinstance(dims[0], list | tuple)):
        axes = shape_argument(dims) if dims and dims[0] is not None else tuple(range(input.ndim))[::-1]
        return permute(input, axes)
    a = own_memory(input)
    first, second = dimension(dims[0], a.ndim), dimension(dims[1], a.ndim)
    if a.ndim == 0:
        return alias(input)
    return view_of(input, a.swapaxes(first, second), TRANSPOSE, (first, second), transpose, (first, second))


def _matrices(name: str, transposed: Callable[[Tensor], Tensor], text: str) -> property:
    def get(self: Tensor) -> Tensor:
        n = self._array.ndim
        if n < 2 or (name == "H" and n > 2):
            what = "matrices (2-D tensors)" if name == "H" else "matrices or batches of matrices"
            raise RuntimeError(f"tensor.{name} is only supported on {what}. Got {n}-D tensor.")
        return transposed(self)

    return property(get, doc=text)


def _reversed_axes(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return permute(self, tuple(range(self._array.ndim))[::-1])


install(T=property(_reversed_axes))
install(
    mT=_matrices("mT", lambda x: transpose(x, -2, -1), "The matrices transposed: the last two dimensions."),
    mH=_matrices("mH", lambda x: transpose(x, -2, -1).conj(), "The matrices transposed and conjugated."),
    H=_matrices("H", lambda x: transpose(x, 0, 1).conj(), "The matrix transposed and conjugated."),
)


@public("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The dimensions `source` moved to the places `destination`; the others keep their order.

    >>> sg.movedim(sg.zeros(2, 3, 4), 0, -1).shape
    srcgrad.Size([3, 4, 2])
    """
    n = input._array.ndim
    if not n:
        return transpose(input, source, destination)
    src = [dimension(d, n) for d in ([source] if isinstance(source, int) else source)]
    dst = [dimension(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    order = [d for d in range(n) if d not in src]
    for to, frm in sorted(zip(dst, src, strict=True)):
        order.insert(to, frm)
    return permute(input, tuple(order))


# --- dimensions of size one, expanding ----------------------------------------------------------------------


@public("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new dimension of size 1."""
    a = own_memory(input)
    d = dimension(dim, a.ndim + 1)
    shape = a.shape
    return view_of(input, a.reshape((*shape[:d], 1, *shape[d:])), UNSQUEEZE, (d,), unsqueeze, (d,))


@public("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1 (all, or those given)."""
    a = own_memory(input)
    if dim is None:
        new = tuple(s for s in a.shape if s != 1)
        kind = SQUEEZE
    else:
        drop = {dimension(d, a.ndim) for d in ([dim] if isinstance(dim, int) else dim)}
        new = tuple(s for i, s in enumerate(a.shape) if s != 1 or i not in drop)
        kind = SQUEEZE_DIM if isinstance(dim, int) else SQUEEZE_DIMS
    return view_of(input, a.reshape(new), kind, (new,), squeeze, (dim,))


@public("expand", function=False)
def expand(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Repeat dimensions of size 1 without copying."""
    a = own_memory(self)
    wanted = shape_argument(sizes if size is None else (size,))
    lead = len(wanted) - a.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(srcgrad.{self.type().rpartition('.')[2]}{{{list(a.shape)}}}, size={list(wanted)}): "
            "the number of sizes provided "
            f"({len(wanted)}) must be greater or equal to the number of dimensions in the tensor ({a.ndim})"
        )
    new = []
    for i, s in enumerate(wanted):
        if i < lead:
            if s == -1:
                raise RuntimeError(
                    f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing "
                    f"dimension {i}"
                )
            new.append(s)
            continue
        old = a.shape[i - lead]
        if s != -1 and s != old and old != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({s}) must match the existing size ({old}) at "
                f"non-singleton dimension {i}. "
                f" Target sizes: {list(wanted)}.  Tensor sizes: {list(a.shape)}"
            )
        new.append(old if s == -1 else s)
    return view_of(self, arrays.expand(a, tuple(new)), EXPAND, (tuple(new),), expand, (tuple(new),))


@public("expand_as", function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor.

    >>> sg.tensor([1, 2]).expand_as(sg.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(self, tuple(other._array.shape))


@public("broadcast_to")
def broadcast_to(input: Tensor, *shape: Any) -> Tensor:
    """A view of the tensor as one of this shape: `expand`.

    >>> sg.broadcast_to(sg.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expand(input, *shape)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of all tensors in the shape that they broadcast to; a `ValueError` if they don't fit.

    >>> [x.shape for x in sg.broadcast_tensors(sg.zeros(2, 1), sg.zeros(3))]
    [srcgrad.Size([2, 3]), srcgrad.Size([2, 3])]
    """
    shape = np.broadcast_shapes(*(t._array.shape for t in tensors))
    return tuple(expand(t, shape) for t in tensors)


# --- parts --------------------------------------------------------------------------------------------------


@public("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One entry along a dimension."""
    a = own_memory(input)
    if a.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d, n = dimension(dim, a.ndim), a.shape[dimension(dim, a.ndim)]
    i = int(index)
    if not -n <= i < n:
        raise IndexError(
            f"select(): index {i} out of range for tensor of size {list(a.shape)} at dimension {d}"
        )
    key = (slice(None),) * d + (i % n, ...)
    return view_of(input, a[key], SELECT, (key,), select, (d, i))


@public("narrow")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` entries along a dimension, from `start`."""
    a = own_memory(input)
    if a.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = dimension(dim, a.ndim)
    start = int(start)
    n = a.shape[d]
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    if start < 0:
        start += n
    if start + length > n or start < 0 or length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    key = (slice(None),) * d + (slice(start, start + length),)
    return view_of(input, a[key], SLICE, (key,), narrow, (d, start, length))


def sliced(input: Tensor, key: Any) -> Tensor:
    """A view by slices only."""
    a = own_memory(input)
    return view_of(input, a[key], SLICE, (key,), sliced, (key,))


@public("alias", method=False, function=False)
def alias(input: Tensor) -> Tensor:
    """A new view of everything."""
    return view_of(input, own_memory(input)[...], ALIAS, (...,), alias, ())


@public("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonal of dimensions `dim1` and `dim2`, as a new last dimension.

    >>> sg.diagonal(sg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    a = own_memory(input)
    if dimension(dim1, a.ndim) == dimension(dim2, a.ndim):
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    array = a.diagonal(offset, dim1, dim2)
    if type(array) is np.ndarray and not array.flags.writeable and a.flags.writeable:
        array.flags.writeable = True
    args = (offset, dim1, dim2)
    return view_of(input, array, DIAGONAL, args, diagonal, args)


class Unfold(rule_node("UnfoldBackward0", operator.getitem)):  # type: ignore[misc]
    """Picking by an index that holds the windows, which then go to the end; nothing saved can change."""

    __slots__ = ()

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        return super().apply(np.moveaxis(g, -1, len(self.saved[1])), graph)

    def holds(self) -> bool:
        return False


Unfold.__name__ = "UnfoldBackward0"


@public("unfold", function=False)
def unfold(self: Tensor, dimension_: int, size: int, step: int) -> Tensor:
    """Windows of `size` along a dimension, `step` apart, as a new last dimension."""
    if not self._array.ndim:
        dimension(dimension_, 0)
        if size > 1:
            raise RuntimeError(f"maximum size for tensor at dimension 0 is 1 but size is {size}")
        return reshape(self, 1)[:size]
    a = own_memory(self)
    d = dimension(dimension_, a.ndim)
    if size > a.shape[d]:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {a.shape[d]} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    writable = {"writeable": a.flags.writeable} if type(a) is np.ndarray else {}
    windows = np.lib.stride_tricks.sliding_window_view(a, size, axis=d, **writable)
    array = windows[(slice(None),) * d + (slice(None, None, step),)]
    starts = np.arange(0, a.shape[d] - size + 1, step)[:, None] + np.arange(size)
    key = (slice(None),) * d + (starts,)
    result = wrap(array)
    if tracked((self,)):
        record_rule(Unfold, result, (self, key), {})
    return attach(result, self, unfold, (dimension_, size, step))


def _places(shape: Sequence[int], strides: Sequence[int], start: int) -> Any:
    """Where in the memory each element stands, counted in elements."""
    where = np.full(tuple(shape), start)
    for d, (n, s) in enumerate(zip(shape, strides, strict=True)):
        where = where + (np.arange(n) * s).reshape((-1,) + (1,) * (len(shape) - d - 1))
    return where


@public("as_strided")
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Any view of the memory, by strides in elements, also of what `input`, itself a view, leaves out.

    A `RuntimeError` if it reached beyond the memory, or if its gradient concerned what `input` leaves out.

    >>> sg.as_strided(sg.arange(4), (2, 2), (2, 1))
    tensor([[0, 1],
            [2, 3]])
    """
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {list(stride)}, {list(size)}")
    a, root = own_memory(input), own_memory(input if input._base is None else input._base)
    storage = root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d])).reshape(-1)
    if root.size and not arrays.same_memory(storage, root):
        raise RuntimeError("as_strided: the tensor's memory has gaps; use .contiguous() first")
    start = input.storage_offset() if storage_offset is None else storage_offset
    where = _places(size, stride, start)
    if where.size and (where.min() < 0 or where.max() >= storage.size):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start} are out of "
            f"bounds for storage of size {storage.size * a.itemsize}"
        )
    make: Any = arrays.namespace(a).lib.stride_tricks.as_strided
    array = make(storage[start:], tuple(size), tuple(s * a.itemsize for s in stride))
    if type(a) is np.ndarray and not a.flags.writeable:
        array.flags.writeable = False
    result = wrap(array)
    if tracked((input,)):
        own = _places(input._array.shape, input.stride(), input.storage_offset()).reshape(-1)
        order = np.argsort(own)
        found = order[np.minimum(np.searchsorted(own[order], where), own.size - 1)] if own.size else where
        if where.size and bool(np.any(own[found] != where)):
            raise RuntimeError("as_strided: the gradient of elements outside of the tensor can't be recorded")
        flattened = reshape(input, -1)
        record_rule(rule_node("AsStridedBackward0", operator.getitem), result, (flattened, found), {})
    return attach(result, input, as_strided, (size, stride, storage_offset))


def _several(
    source: Tensor,
    parts: list[Any],
    kind: type[RuleNode],
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    steps: list[Any],
) -> tuple[Tensor, ...]:
    results = [wrap(p) for p in parts]
    if tracked((source,)):
        if source._array.dtype is F32 or source._array.dtype is F64:
            record_parts(kind, results, source, args, keywords)
        else:
            record_rule(kind, results, (source, *args), keywords)
    name = kind.__name__.removesuffix("Backward0")
    for r, (function, step) in zip(results, steps, strict=True):
        attach(r, source, function, step, f"multiple:{name}" if state.recording else "no_grad")
    return tuple(results)


@public("split")
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Parts of the given size (the last may be smaller), or of the given sizes."""
    if split_size_or_sections is None:
        split_size_or_sections = split_size
    a = own_memory(tensor)
    if not a.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = dimension(dim, a.ndim)
    n = a.shape[d]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if size == 0 and n:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        bounds = list(range(0, n, size)) + [n] if n else [0, 0]
        kind = SPLIT
    else:
        sizes = [int(s) for s in split_size_or_sections]
        if sum(sizes) != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
                f"dimension {d}), but got "
                f"split_sizes={sizes}"
            )
        bounds = [0, *np.cumsum(sizes).tolist()]
        kind = SPLIT_SIZES
    keys = [(slice(None),) * d + (slice(b, e),) for b, e in zip(bounds, bounds[1:], strict=False)]
    return _several(
        tensor,
        [a[k] for k in keys],
        kind,
        (tuple(bounds[1:-1]),),
        {"axis": d},
        [(sliced, (k,)) for k in keys],
    )


@public("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not input._array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    n = input._array.shape[dimension(dim, input._array.ndim)]
    return split(input, max(1, -(-n // chunks)) if n else [0] * chunks, dim)


@public("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts along `dim`, the first ones longer by one where needed, or parts between indices.

    >>> sg.tensor_split(sg.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    >>> sg.tensor_split(sg.arange(3), [1])
    (tensor([0]), tensor([1, 2]))
    """
    if not input._array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got one with 0 dims")
    n = input._array.shape[dimension(dim, input._array.ndim)]
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {k}")
        sizes = [n // k + (i < n % k) for i in range(k)]
    else:
        bounds = [0, *indices_or_sections, n]
        sizes = [e - b for b, e in zip(bounds, bounds[1:], strict=False)]
    return split(input, sizes, dim)


@public("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All entries along a dimension."""
    a = own_memory(input)
    if a.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = dimension(dim, a.ndim)
    if not a.shape[d]:
        return ()
    parts = [a[(slice(None),) * d + (i, ...)] for i in range(a.shape[d])]
    return _several(input, parts, UNBIND, (), {"axis": d}, [(select, (d, i)) for i in range(a.shape[d])])
