"""The class `Tensor`: an array, where it came from, and how it is shared.

A Tensor has five slots. `_array` holds the values (a NumPy scalar for 0-dim values whose memory nobody
shares: ten times faster to compute with than a 0-dim array). `_history` says how the values came about (see
`autograd/graph.py`). `_counter` counts the changes of the memory, shared by all tensors on it (None: never
changed, nobody asked). `_grad` is `.grad`. `_more` holds what few tensors have. Operators and methods are
added by the other rooms (`tensor_*.py`).
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd import modes
from srcgrad.runtime.autograd.graph import LEAF, Extras, Handle, Node, Port, edge
from srcgrad.runtime.autograd.modes import state
from srcgrad.runtime.tensor_types import TYPE_NAMES, Elements, Size, as_dtype, device, dtype, from_numpy_dtype


class More:
    """What few tensors have: being a view, hooks, being made in inference mode."""

    base: Tensor | None = None
    steps: tuple[tuple[Any, tuple[Any, ...]], ...] = ()
    """For a view: the functions and arguments that make it from `base`."""
    generation: int = 0
    """Of a base: how often its history was replaced in place. Of a view: the base's when the view's history
    was made."""
    made: str | None = None
    """For a view that may not be changed in place: how it was made."""
    hooks: OrderedDict[int, Any] | None = None
    post_hooks: OrderedDict[int, Any] | None = None
    accumulator: Any = None
    leaf_extras: Extras | None = None
    retains: bool = False


class _NoCounter(list[int]):
    """Takes the place of the version counter of a tensor made in inference mode."""

    def __getitem__(self, index: Any) -> Any:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal "
            "tensor and use "
            "it in autograd, or use `srcgrad.no_grad()` instead of `srcgrad.inference_mode()`."
        )


NO_COUNTER: Any = _NoCounter()
_new = object.__new__


def wrap(array: Any) -> Tensor:
    """An untracked Tensor around `array` (no copy)."""
    t = _new(Tensor)
    t._array = array
    t._history = t._grad = t._more = None
    t._counter = NO_COUNTER if modes.inferring and state.inference else None
    return t


def own_memory(t: Tensor) -> Any:
    """The tensor's array, made real if it was a scalar: somebody is about to share its memory."""
    a = t._array
    if isinstance(a, np.generic):
        t._array = a = np.array(a)
    return a


def shell(t: Tensor) -> Tensor:
    """A second Tensor on the same memory, with the same history and counter."""
    s = _new(Tensor)
    if t._counter is None:
        t._counter = [0]
    s._array, s._counter, s._grad, s._more = t._array, t._counter, None, None
    s._history = t._history if t._more is None else t._fresh_history()
    return s


class Tensor:
    """An array that remembers how it was computed, so that gradients can be taken. PyTorch's `Tensor`."""

    __slots__ = ("_array", "_history", "_counter", "_grad", "_more", "__weakref__")
    _targets: tuple[Any, ...] = ()
    _outputs = 1
    __array_priority__ = 1000
    _array: Any
    _history: Any
    _counter: list[int] | None
    _grad: Tensor | None
    _more: More | None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def backward(
            self,
            gradient: Any = None,
            retain_graph: bool | None = None,
            create_graph: bool = False,
            inputs: Any = None,
        ) -> None: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    def __new__(cls, *data: Any, device: Any = None, dtype: Any = None) -> Tensor:
        """The old constructor: `Tensor([1, 2])` has the default dtype, `Tensor(2, 3)` is a shape."""
        from srcgrad.runtime import tensor_create
        from srcgrad.runtime.tensor_types import default_dtype

        if data and all(isinstance(d, int) for d in data):
            made = tensor_create.zeros(*data, dtype=dtype, device=device)
        elif not data:
            made = tensor_create.zeros(0, dtype=dtype, device=device)
        elif isinstance(data[0], Tensor):
            made = data[0].detach()
        else:
            made = tensor_create.tensor(data[0], dtype=dtype or default_dtype(), device=device)
        if cls is not Tensor:
            return made.as_subclass(cls)
        return made

    def __init__(self, *data: Any, device: Any = None, dtype: Any = None) -> None:
        pass

    def __init_subclass__(cls, **keywords: Any) -> None:
        from srcgrad.runtime import support

        super().__init_subclass__(**keywords)
        support.observers.add(cls)

    def as_subclass(self, cls: type) -> Any:
        """The same values and history as an object of a subclass."""
        t: Any = _new(cls)
        s = shell(self)
        t._array, t._history, t._counter, t._grad, t._more = s._array, s._history, s._counter, None, None
        return t

    def _more_of(self) -> More:
        if self._more is None:
            self._more = More()
        return self._more

    # -- history

    def _fresh_history(self) -> Any:
        """The history; that of a view is made anew when its base was changed in place since."""
        more = self._more
        if more is None or more.base is None or more.made == "no_grad":
            return self._history
        base = more.base
        generation = 0 if base._more is None else base._more.generation
        if generation != more.generation:
            with modes.enable_grad():
                again = base
                for function, args in more.steps:
                    again = function(again, *args)
            old, self._history, more.generation = self._history, again._history, generation
            if more.retains:
                self._retain_anew(old)
        return self._history

    def _retain_anew(self, old: Any) -> None:
        """After a change in place `retain_grad` follows the newest value."""
        if isinstance(old, Node | Port):
            node, number = edge(old)
            if node._extras is not None and node._extras.retains:
                node._extras.retains.pop(number, None)
        if self._history is not None and self._history is not LEAF:
            self.retain_grad()

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor; None for a leaf."""
        history = self._fresh_history()
        return None if history is None or history is LEAF else edge(history)[0]

    @property
    def output_nr(self) -> int:
        """Which output of its node this tensor is."""
        history = self._fresh_history()
        return history.number if isinstance(history, Port) else 0

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was created by the user, or computed without being recorded."""
        history = self._fresh_history()
        return history is None or history is LEAF

    @property
    def requires_grad(self) -> bool:
        """Whether operations are recorded; to be set on leaves only (else a `RuntimeError`)."""
        return self._fresh_history() is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not self.is_leaf:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Let operations on this leaf be recorded (or not). Returns the tensor itself."""
        if not self.is_leaf:
            if requires_grad:
                return self
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                "variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and self._array.dtype.kind not in "fc":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and self._counter is NO_COUNTER and not state.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            )
        self._history = LEAF if requires_grad else None
        return self

    # -- gradients

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf (or of a tensor with `retain_grad`), None before the first
        backward."""
        grad = self._grad
        if grad is None and self._history is not None and not self.is_leaf and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't "
                "be populated during autograd.backward(). If you indeed want the .grad field to be "
                "populated for a "
                "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
                "Tensor by "
                "mistake, make sure you access the leaf Tensor instead.",
                UserWarning,
                stacklevel=2,
            )
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value)}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._array.shape != self._array.shape:
                raise RuntimeError(
                    "attempting to assign a gradient of size "
                    f"'{list(value._array.shape)}' to a tensor of size '{list(self._array.shape)}'. Please "
                    "ensure that "
                    "the gradient and the tensor are the same size"
                )
            if value._array.dtype != self._array.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with dtype "
                    f"'{self.dtype}'. "
                    "The gradient's dtype must match the tensor's"
                )
            if arrays.device_type(value._array) != arrays.device_type(self._array):
                raise RuntimeError("assigned grad has data located on a different device")
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether backward fills `.grad` though this isn't a leaf: see `retain_grad`."""
        return self._more is not None and self._more.retains and not self.is_leaf

    def retain_grad(self) -> None:
        """Fill `.grad` of this computed tensor during backward."""
        history = self._fresh_history()
        if history is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if history is LEAF:
            return
        self._more_of().retains = True
        node, number = edge(history)
        more = node.extras()
        if more.retains is None:
            more.retains = {}
        more.retains[number] = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> Handle:
        """`hook(gradient)` is called when this tensor's gradient is complete, and may return another in its
        place."""
        history = self._fresh_history()
        if history is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if history is LEAF:
            more = self._more_of()
            if more.hooks is None:
                more.hooks = OrderedDict()
            handle = Handle(more.hooks)
            more.hooks[handle.id] = hook
            return handle
        node, number = edge(history)
        extras = node.extras()
        if extras.tensor_hooks is None:
            extras.tensor_hooks = []
        handle = Handle(extras.tensor_hooks)
        extras.tensor_hooks.append((number, handle.id, hook))
        return handle

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """`hook(leaf)` is called after the leaf's `.grad` has been updated."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        more = self._more_of()
        if more.post_hooks is None:
            more.post_hooks = OrderedDict()
        handle = Handle(more.post_hooks)
        more.post_hooks[handle.id] = hook
        return handle

    # -- memory

    def detach(self) -> Tensor:
        """The same memory (and version counter) outside the graph."""
        own_memory(self)
        if self._counter is None:
            self._counter = [0]
        t = wrap(self._array)
        t._counter = self._counter
        return t

    def detach_(self) -> Tensor:
        """Make this computed tensor a leaf, in place."""
        if self._more is not None and self._more.base is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets."
            )
        self._history = None
        return self

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph, with a version counter of its own: changes through it go
        unnoticed."""
        own_memory(self)
        return wrap(self._array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._history is not None and value._array.dtype.kind not in "fc":
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        own_memory(value)
        self._array = value._array

    @property
    def _base(self) -> Tensor | None:
        return None if self._more is None else self._more.base

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def _version(self) -> int:
        if self._counter is NO_COUNTER:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._counter is None else self._counter[0]

    def is_inference(self) -> bool:
        """Whether the tensor was made inside `inference_mode`."""
        return self._counter is NO_COUNTER

    # -- shape and type

    @property
    def shape(self) -> Size:
        """The lengths of the dimensions.

        >>> sg.zeros(2, 3).shape
        srcgrad.Size([2, 3])
        """
        return Size(self._array.shape)

    @property
    def size(self) -> Elements:
        """Called, the shape: `x.size()`, `x.size(dim)`; as a number how many elements, as in NumPy.

        >>> x = sg.zeros(2, 3)
        >>> x.size(), x.size(0), int(x.size)
        (srcgrad.Size([2, 3]), 2, 6)
        """
        return Elements(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._array.ndim)

    @property
    def dtype(self) -> dtype:
        """The kind of number, such as `srcgrad.float32`."""
        return from_numpy_dtype(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the memory is: `cpu` or `cuda`."""
        a = self._array
        return device(arrays.device_type(a), arrays.device_index(a))

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is a CUDA device's."""
        return arrays.device_type(self._array) == "cuda"

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return int(self._array.itemsize)

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return int(self._array.nbytes)

    def dim(self) -> int:
        """The number of dimensions.

        >>> sg.zeros(2, 3).dim()
        2
        """
        return int(self._array.ndim)

    def numel(self) -> int:
        """The number of elements.

        >>> sg.zeros(2, 3).numel()
        6
        """
        return int(self._array.size)

    nelement = numel

    def element_size(self) -> int:
        """The number of bytes of an element.

        >>> sg.zeros(2).element_size()
        4
        """
        return int(self._array.itemsize)

    def stride(self, dim: int | None = None) -> Any:
        """How many elements apart neighbours along each dimension (or along `dim`) are in memory.

        >>> sg.zeros(2, 3).stride()
        (3, 1)
        """
        strides = arrays.element_strides(own_memory(self))
        return strides if dim is None else strides[dim]

    def is_contiguous(self) -> bool:
        """Whether the elements lie in memory in order, without gaps.

        >>> sg.zeros(2, 3).T.is_contiguous()
        False
        """
        return arrays.is_contiguous(self._array)

    def data_ptr(self) -> int:
        """The address of the first element."""
        a = own_memory(self)
        return int(a.ctypes.data) if isinstance(a, np.ndarray) else int(a.data.ptr)

    def storage_offset(self) -> int:
        """How many elements after its base's first one a view begins.

        >>> sg.zeros(5)[2:].storage_offset()
        2
        """
        base = self._base
        return 0 if base is None else (self.data_ptr() - base.data_ptr()) // self.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is one of floating-point numbers."""
        return bool(self._array.dtype.kind == "f")

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return bool(self._array.dtype.kind == "c")

    def get_device(self) -> int:
        """The number of the CUDA device, -1 on the CPU."""
        index = arrays.device_index(self._array)
        return -1 if index is None else index

    def type(self, dtype: Any = None) -> Any:
        """The name of the type, as `srcgrad.FloatTensor`; with an argument, the tensor converted to it."""
        if dtype is None:
            return f"srcgrad.{'cuda.' if self.is_cuda else ''}{TYPE_NAMES.get(self.dtype.name, 'Tensor')}"
        if isinstance(dtype, str) and dtype.endswith("Tensor"):
            names = {v: k for k, v in TYPE_NAMES.items()}
            dtype = names[dtype.rpartition(".")[2]]
        return self.to(as_dtype(dtype))

    # -- Python

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        from srcgrad.runtime.tensor_print import text

        return text(self)

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self._array.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.ndim else self

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number."""
        a = self._array
        if a.size != 1:
            raise RuntimeError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
        return a.item()

    def tolist(self) -> Any:
        """The values as a number or nested lists."""
        return arrays.to_host(self._array).tolist()

    def __bool__(self) -> bool:
        n = self._array.size
        if n != 1:
            what = "no values" if n == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self._array.item())

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._array.item())

    def __round__(self, digits: int = 0) -> Tensor:
        return self.round(decimals=digits)

    def _scalar(self) -> Any:
        if self._history is not None and not _Warned.scalar:
            _Warned.scalar = True
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                "Consider using tensor.detach() first.",
                UserWarning,
                stacklevel=3,
            )
        if self._array.size != 1:
            raise _NotOne("only one element tensors can be converted to Python scalars")
        return self.item()

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, Tensor | int | float | complex | np.number):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        equal: Any = self == element
        return bool(equal._array.any())

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0 and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)


def install(**members: Any) -> None:
    """Add methods and properties to Tensor: the other rooms do."""
    for name, value in members.items():
        setattr(Tensor, name, value)


class _NotOne(RuntimeError, ValueError):
    """A tensor of several elements where one number is asked for: PyTorch raises ValueError in `float(t)`,
    and RuntimeError in `t.item()`."""


class _Warned:
    scalar = False
