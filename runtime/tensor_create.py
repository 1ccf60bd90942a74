"""Making tensors: from data, from NumPy, filled, random, and converted to another dtype or device."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import functools
import operator
import warnings
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.graph import LEAF
from srcgrad.runtime.autograd.modes import state
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import call
from srcgrad.runtime.tensor import FUNCTIONS, public
from srcgrad.runtime.tensor_base import Tensor, install, own_memory, wrap
from srcgrad.runtime.tensor_types import Size, as_dtype, default_dtype, device, fitting, number_kind, promoted

_DEFAULT_DEVICE: list[Any] = [None]


def set_default_device(where: Any) -> None:
    """Where new tensors live when no device is named: "cpu" (also None), or "cuda"."""
    kind = None if where is None else device(where)
    if kind is not None:
        arrays.BACKENDS[kind.type]()
    _DEFAULT_DEVICE[0] = None if kind is None or kind.type == "cpu" else kind


def get_default_device() -> device:
    """The device on which new tensors are made.

    >>> sg.get_default_device().type
    'cpu'
    """
    return _DEFAULT_DEVICE[0] or device("cpu")


def _backend(where: Any) -> Any:
    where = _DEFAULT_DEVICE[0] if where is None else where
    return arrays.BACKENDS[device(where).type]() if where is not None else np


def made(array: Any, requires_grad: bool = False) -> Tensor:
    """A new leaf."""
    t = wrap(arrays.without_memory(array))
    if requires_grad:
        if array.dtype.kind not in "fc":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t._history = LEAF
    return t


def _examine(data: Any, depth: int, sizes: list[int], found: set[Any]) -> None:
    """Collect in `found` the types of the numbers (and the dtypes of arrays) in nested `data`; check that it
    is rectangular."""
    if isinstance(data, list | tuple):
        if depth == len(sizes):
            if None in found:
                raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
            sizes.append(len(data))
        elif len(data) != sizes[depth]:
            raise ValueError(f"expected sequence of length {sizes[depth]} at dim {depth} (got {len(data)})")
        for d in data:
            kind = type(d)
            if kind is float or kind is int or kind is bool:
                if depth + 1 != len(sizes):
                    raise TypeError("not a sequence")
                found.add(kind)
                found.add(None)
            else:
                _examine(d, depth + 1, sizes, found)
        return
    if isinstance(data, np.ndarray) and data.ndim:
        for d in data:
            _examine(d, depth + 1, sizes, found) if isinstance(d, np.ndarray) else found.add(data.dtype)
        return
    if depth < len(sizes):
        raise TypeError("not a sequence")
    found.add(None)
    if isinstance(data, Tensor):
        if data._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        found.add(data._array.dtype)
    elif isinstance(data, np.ndarray | np.generic):
        found.add(data.dtype)
    elif data is None:
        raise RuntimeError("Could not infer dtype of NoneType")
    elif number_kind(data) < 0:
        raise (
            ValueError(f"too many dimensions '{type(data).__name__}'")
            if isinstance(data, str)
            else RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        )
    else:
        found.add(type(data))


def _dtype_of(found: set[Any]) -> Any:
    """The dtype of nested data, from what `_examine` found in it."""
    dtypes = [
        f if isinstance(f, np.dtype) else _dtype_of_kind(number_kind(f())) for f in found if f is not None
    ]
    return functools.reduce(promoted, dtypes) if dtypes else default_dtype().numpy


def _array_from(data: Any, dtype: Any, xp: Any) -> Any:
    wanted = None if dtype is None else as_dtype(dtype).numpy
    if data is None:
        raise RuntimeError("Could not infer dtype of NoneType")
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if arrays.is_array(data):
        if isinstance(data, np.ndarray) and data.dtype.kind in "OSUV":
            raise TypeError(
                f"can't convert np.ndarray of type {data.dtype}. The only supported types are: float64, "
                "float32, "
                "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
                "and bool."
            )
        if isinstance(data, np.ndarray) and any(n < 0 for n in data.strides):
            raise _negative_strides()
        native = data.dtype.newbyteorder("=")
        module = arrays.namespace(data)
        return (xp if module is np else module).array(data, dtype=wanted or native)
    if isinstance(data, list | tuple):
        found: set[Any] = set()
        _examine(data, 0, [], found)
        return xp.asarray(_filled_with(_plain(data), wanted or _dtype_of(found)))
    if isinstance(data, range):
        return xp.asarray(np.array(data, dtype=wanted or np.int64))
    kind = number_kind(data)
    if kind >= 0:
        return xp.asarray(_filled_with(data, wanted or _dtype_of_kind(kind)))
    if hasattr(data, "__array__"):
        return _array_from(np.asarray(data), dtype, xp)
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _filled_with(data: Any, dtype: np.dtype[Any]) -> Any:
    """An array of numbers, with PyTorch's errors if they don't fit."""
    try:
        if dtype.kind == "u":
            array = np.array(data)
            if array.dtype.kind in "iu" and array.size and array.min() < 0:
                return array.astype(dtype)  # wraps around, as in C
        return np.array(data, dtype=dtype)
    except OverflowError:
        name = dtype.name
        if name == "int64":
            raise ValueError("Overflow when unpacking long long") from None
        raise RuntimeError(f"value cannot be converted to type {name} without overflow") from None
    except (TypeError, ValueError) as error:
        if dtype.kind in "iu" and "NaN" in str(error):
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow") from None
        if dtype.kind in "iufb" and "complex" in str(error):
            return np.array(data).real.astype(dtype)
        raise


def _plain(data: Any) -> Any:
    if isinstance(data, list | tuple):
        return [_plain(d) for d in data]
    return arrays.to_host(data._array).reshape(())[()] if isinstance(data, Tensor) else data


def _dtype_of_kind(kind: int) -> Any:
    return (np.dtype(bool), np.dtype("int64"), default_dtype().numpy, default_dtype().to_complex().numpy)[
        kind
    ]


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf with a copy of `data`: a number, nested lists, an array.

    >>> tensor([1.0, 2.0], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than srcgrad.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        data = data._array
    return made(_array_from(data, dtype, _backend(device)), requires_grad)


def _negative_strides() -> ValueError:
    return ValueError(
        "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
        "currently supported. (You can probably work around this by making a copy of your array with "
        "array.copy().)"
    )


def from_numpy(array: Any) -> Tensor:
    """A Tensor on the same memory as a NumPy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if any(s < 0 for s in array.strides):
        raise _negative_strides()
    if array.dtype.byteorder == ">":
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte "
            "orders is currently not supported."
        )
    if array.dtype.kind in "OSUVMm":
        _array_from(array, None, np)
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. "
            "This means writing "
            "to this tensor will result in undefined behavior.",
            UserWarning,
            stacklevel=2,
        )
    return wrap(array)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor that shares memory with `data` where it can."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device) if dtype is not None or device is not None else data
    if isinstance(data, np.ndarray) and data.dtype.kind not in "OSUV" and _backend(device) is np:
        if any(n < 0 for n in data.strides):
            raise _negative_strides()
        if dtype is None or as_dtype(dtype).numpy == data.dtype:
            return wrap(data)
    elif arrays.is_array(data) and not isinstance(data, np.generic) and device is None:
        return wrap(data if dtype is None else data.astype(as_dtype(dtype).numpy))
    return made(_array_from(data, dtype, _backend(device)))


asarray = as_tensor


def scalar_tensor(
    value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of one number, without dimensions, in the default dtype.

    >>> sg.scalar_tensor(3)
    tensor(3.)
    """
    return full((), value, dtype=dtype or default_dtype(), device=device, requires_grad=requires_grad)


def shape_argument(size: Any) -> tuple[int, ...]:
    """A shape given as separate numbers or as one tuple, list or Size."""
    if len(size) == 1 and isinstance(size[0], list | tuple | np.ndarray | range):
        size = size[0]
    try:
        return tuple([s if type(s) is int else operator.index(s) for s in size])
    except TypeError:
        bad = next(s for s in size if not hasattr(s, "__index__") or isinstance(s, Tensor))
        raise TypeError(f"argument 'size' must be tuple of ints, not {type(bad).__name__}") from None


def _filled(name: str) -> Any:
    def create(
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        out: Any = None,
        **_: Any,
    ) -> Tensor:
        shape = shape_argument(size or (_.get("size"),))
        if any(s < 0 for s in shape):
            raise RuntimeError(f"{name}: Dimension size must be non-negative, got {list(shape)}")
        d = as_dtype(dtype).numpy if dtype is not None else default_dtype().numpy
        return made(getattr(_backend(device), name)(shape, dtype=d), requires_grad)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"A tensor of the given size: NumPy's `{name}`, with the default dtype."
    return create


zeros, ones, empty = _filled("zeros"), _filled("ones"), _filled("empty")


def full(
    size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor filled with one value, whose dtype follows from the value."""
    if isinstance(fill_value, Tensor) and fill_value.requires_grad:
        raise TypeError("full(): argument 'fill_value' (position 2) must be Number, not Tensor")
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    d = as_dtype(dtype).numpy if dtype is not None else _dtype_of_kind(number_kind(value))
    return made(
        _backend(device).full(
            shape_argument((size,) if isinstance(size, int) else (tuple(size),)), fitting(value, d), dtype=d
        ),
        requires_grad,
    )


def _like(name: str) -> Any:
    def create(
        input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
    ) -> Tensor:
        a = input._array
        d = as_dtype(dtype).numpy if dtype is not None else a.dtype
        xp = arrays.namespace(a) if device is None else _backend(device)
        return made(getattr(xp, name)(a.shape, dtype=d), requires_grad)

    create.__name__ = create.__qualname__ = name + "_like"
    create.__doc__ = f"""`{name}` of the shape, dtype and device of a tensor.

    >>> sg.{name}_like(sg.tensor([[1.0, 2.0]])).shape
    srcgrad.Size([1, 2])
    """
    return create


zeros_like, ones_like, empty_like = _like("zeros"), _like("ones"), _like("empty")


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor filled with one value, of the shape, dtype and device of another.

    >>> sg.full_like(sg.zeros(2), 7)
    tensor([7., 7.])
    """
    a = input._array
    d = as_dtype(dtype).numpy if dtype is not None else a.dtype
    xp = arrays.namespace(a) if device is None else _backend(device)
    if isinstance(fill_value, Tensor) and fill_value.requires_grad:
        raise TypeError("full_like(): argument 'fill_value' (position 2) must be Number, not Tensor")
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return made(xp.full(a.shape, fitting(value, d), dtype=d), requires_grad)


def arange(
    *bounds: Any,
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from start (default 0) to before end, by step; int64 if all are integers."""
    if end is not None:
        bounds = (*(bounds or (start,)), end)
    if len(bounds) == 2:
        bounds = (*bounds, step)
    if not bounds:
        raise TypeError("arange() received an invalid combination of arguments - got ()")
    if any(isinstance(b, Tensor) and b.requires_grad for b in bounds):
        raise TypeError("arange(): the bounds must be Numbers, not Tensors that require grad")
    values = [b.item() if isinstance(b, Tensor) else b for b in bounds]
    d = (
        as_dtype(dtype).numpy
        if dtype is not None
        else _dtype_of_kind(max(1, *(number_kind(v) for v in values)))
    )
    start, stop, step = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (stop - start) * step < 0:
        raise RuntimeError("upper bound and larger bound inconsistent with step sign")
    count = max(0, int(np.ceil((stop - start) / step)))
    steps = _backend(device).arange(count)
    exact = start + steps * step
    return made(exact.astype(d), requires_grad)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, at equal distances; negative: a `RuntimeError`.

    >>> sg.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    d = as_dtype(dtype).numpy if dtype is not None else default_dtype().numpy
    return made(_backend(device).linspace(float(start), float(end), steps).astype(d), requires_grad)


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`base` to the powers `linspace(start, end, steps)`.

    >>> sg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    d = as_dtype(dtype).numpy if dtype is not None else default_dtype().numpy
    return made((base ** np.linspace(float(start), float(end), steps)).astype(d), requires_grad)


def eye(
    n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The n by m matrix (by default square) with ones on the diagonal and zeros elsewhere.

    >>> sg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if n < 0 or (m or 0) < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n if n < 0 else m}")
    d = as_dtype(dtype).numpy if dtype is not None else default_dtype().numpy
    return made(_backend(device).eye(n, m, dtype=d), requires_grad)


# --- conversion ---------------------------------------------------------------------------------------------


_TO_COPY = rule_node("ToCopyBackward0", np.astype)


def convert(t: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """The tensor in another dtype (itself, if it has it)."""
    if t._array.dtype == dtype:
        return t
    return call(_TO_COPY, (t, dtype), out=t._array.astype(dtype))


@public("to", function=False)
def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """The tensor with another dtype or on another device; itself if nothing changes."""
    from srcgrad.runtime.tensor_types import device as Device

    for a in args:
        if isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, Device) or (isinstance(a, str) and a.partition(":")[0] in arrays.BACKENDS):
            device = a
        elif a is not None and not isinstance(a, bool):
            dtype = a
    result = self if dtype is None else convert(self, as_dtype(dtype).numpy)
    if device is not None and Device(device).type != arrays.device_type(self._array):
        result = _moved(result, Device(device))
    return result.clone() if copy and result is self else result


def _moved(t: Tensor, where: device) -> Tensor:
    from srcgrad.runtime.autograd.moves import move

    return move(t, where)


def _converter(name: str, dtype: str) -> None:
    numpy_dtype = np.dtype(dtype)

    def method(self: Tensor) -> Tensor:
        return convert(self, numpy_dtype)

    method.__name__ = name
    method.__doc__ = f"""The tensor as {dtype} (itself, if it has that dtype).

    >>> sg.tensor([1, 0]).{name}().dtype
    srcgrad.{dtype}
    """
    setattr(Tensor, name, method)


for _n, _d in {
    "float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64",
    "short": "int16",
    "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}.items():  # fmt: skip
    _converter(_n, _d)


@public("cpu", function=False)
def cpu(self: Tensor) -> Tensor:
    """The tensor in the computer's own memory (itself, if it is there).

    >>> sg.tensor([1]).cpu().device.type
    'cpu'
    """
    return to(self, device="cpu")


@public("cuda", function=False)
def cuda(self: Tensor, index: int | None = None) -> Tensor:
    """The tensor on the CUDA device; needs CuPy, or is an error."""
    return to(self, device="cuda")


@public("type_as", function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another.

    >>> sg.tensor([1, 2]).type_as(sg.tensor(0.5))
    tensor([1., 2.])
    """
    return convert(self, other._array.dtype)


@public("astype", function=False)
def astype(self: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """NumPy's name for `to(dtype)`."""
    return convert(self, as_dtype(dtype).numpy)


def _new_method(name: str) -> None:
    function = globals()[name]

    def method(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, **keywords: Any) -> Tensor:
        return function(*args, dtype=dtype or self.dtype, device=device or self.device, **keywords)

    method.__name__ = "new_" + name
    method.__doc__ = f"`srcgrad.{name}(...)` with the dtype and the device of this tensor."
    setattr(Tensor, "new_" + name, method)


for _n in ("zeros", "ones", "empty", "full", "tensor"):
    _new_method(_n)


# --- NumPy --------------------------------------------------------------------------------------------------


@public("numpy", function=False)
def numpy(self: Tensor, *, force: bool = False) -> Any:
    """The values as a NumPy array on the same memory."""
    if arrays.device_type(self._array) != "cpu":
        if not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host "
                "memory first."
            )
        return arrays.to_host(self._array)
    if self.requires_grad and state.recording and not force:
        from srcgrad.runtime.tensor_special import hint

        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead." + hint()
        )
    return own_memory(self)


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


install(__array__=_array)


FUNCTIONS.update({
    f.__name__: f
    for f in (
        tensor, from_numpy, as_tensor, asarray, scalar_tensor, zeros, ones, empty, full, zeros_like,
        ones_like, empty_like,
        full_like, arange, linspace, logspace, eye,
    )
})  # fmt: skip
FUNCTIONS["asarray"] = as_tensor
FUNCTIONS["set_default_device"], FUNCTIONS["get_default_device"] = set_default_device, get_default_device


def is_tensor(value: Any) -> bool:
    """Whether a value is a `Tensor`.

    >>> sg.is_tensor(sg.tensor(1)), sg.is_tensor(1)
    (True, False)
    """
    return isinstance(value, Tensor)


FUNCTIONS["is_tensor"] = is_tensor
FUNCTIONS["Size"] = Size
