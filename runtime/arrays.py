"""Arrays: the one place that knows which array libraries exist and where an array lives.

NumPy and CuPy arrays are used through NumPy's own functions wherever these dispatch (NEP 13 and 18), and
through the array's own namespace where an array is created. Nothing here moves data between devices unless
it is asked to.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.errors import MissingExtra

Array = Any
"""A NumPy or CuPy array, or a NumPy scalar (a 0-dim value whose memory nobody shares)."""


def _load_cupy() -> Any:
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise MissingExtra(
            'device="cuda" needs CuPy: install it with `pip install "srcgrad[cupy]"`'
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise RuntimeError(
            f"CuPy is installed but no CUDA device can be used ({error}). Install the NVIDIA driver, "
            'or keep tensors on device="cpu".'
        ) from error
    if count == 0:
        raise RuntimeError('no CUDA device was found: keep tensors on device="cpu"')
    return cupy


BACKENDS: dict[str, Callable[[], Any]] = {"cpu": lambda: np, "cuda": _load_cupy}
"""Device type -> a function that loads the namespace whose arrays live there."""

DEVICE_OF_MODULE: dict[str, str] = {"numpy": "cpu", "cupy": "cuda"}
"""Top-level module of an array's type -> device type."""

SPECIAL: dict[str, Callable[[], Any]] = {"cuda": lambda: importlib.import_module("cupyx.scipy.special")}
"""Device type -> a function that loads its special functions, for those that do not dispatch from SciPy's."""


def is_array(value: Any) -> bool:
    """Whether `value` is an array of a known library (Tensors are not arrays).

    >>> is_array(np.float32(1)), is_array(np.ones(2)), is_array([1.0])
    (True, True, False)
    """
    if isinstance(value, np.ndarray | np.generic):
        return True
    return type(value).__module__.partition(".")[0] in DEVICE_OF_MODULE


def namespace(array: Array) -> Any:
    """The module whose functions create arrays beside `array`."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    module = type(array).__module__.partition(".")[0]
    return BACKENDS[DEVICE_OF_MODULE[module]]() if module in DEVICE_OF_MODULE else sys.modules[module]


def special(array: Array) -> Any:
    """The module of special functions for `array`."""
    device = device_type(array) if is_array(array) else "cpu"
    return importlib.import_module("scipy.special") if device == "cpu" else SPECIAL[device]()


def array_of(value: Any) -> Array:
    """`value` as an array, where it lives."""
    return value if is_array(value) else np.asarray(value)


def copied(array: Array) -> Array:
    """A copy with memory of its own, also of a scalar."""
    return np.array(array) if isinstance(array, np.generic) else array.copy()


def beside(values: Any, like: Array) -> Array:
    """Values made on the host (positions, weights, random numbers) as an array where `like` lives."""
    if isinstance(like, np.ndarray | np.generic):
        return np.asarray(values)
    where = {} if is_array(like) else {"device": like.device}
    return namespace(like).asarray(values, **where)


def device_type(array: Array) -> str:
    """'cpu' or 'cuda' (or the name of a registered backend)."""
    if isinstance(array, np.ndarray | np.generic):
        return "cpu"
    return DEVICE_OF_MODULE[type(array).__module__.partition(".")[0]]


def device_index(array: Array) -> int | None:
    if isinstance(array, np.ndarray | np.generic):
        return None
    device = getattr(array, "device", None)
    index = getattr(device, "id", None)
    return 0 if index is None else int(index)


def to_host(array: Array) -> Array:
    """The values as a NumPy array. The only function that leaves a device, called only when the user asks
    for it."""
    if isinstance(array, np.ndarray | np.generic):
        return np.asarray(array)
    return array.get()


def with_memory(array: Array) -> Array:
    """A real 0-dim array in place of a NumPy scalar, so that memory can be shared.

    >>> type(with_memory(np.float32(2))).__name__
    'ndarray'
    """
    return np.array(array) if isinstance(array, np.generic) else array


def without_memory(array: Array) -> Array:
    """A NumPy scalar in place of a 0-dim NumPy array that nobody else sees: ten times faster to compute
    with."""
    return array[()] if type(array) is np.ndarray and array.ndim == 0 else array


def expand(array: Array, shape: tuple[int, ...]) -> Array:
    """Like `broadcast_to`, but writable where `array` is: PyTorch allows some writes into expanded memory."""
    if type(array) is not np.ndarray:
        return np.broadcast_to(array, shape)
    lead = len(shape) - array.ndim
    strides = (0,) * lead + tuple(
        0 if array.shape[i] != shape[lead + i] else array.strides[i] for i in range(array.ndim)
    )
    if array.flags.c_contiguous and array.size:
        return np.ndarray(shape, array.dtype, array, 0, strides)
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=array.flags.writeable)


def element_strides(array: Array) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides)


def is_contiguous(array: Array) -> bool:
    if isinstance(array, np.generic):
        return True
    return bool(array.flags.c_contiguous)


def same_memory(a: Array, b: Array) -> bool:
    """Whether `a`, made from `b`, is a view of it and not a copy."""
    if isinstance(a, np.generic) or isinstance(b, np.generic):
        return False
    if isinstance(a, np.ndarray):
        return bool(np.may_share_memory(a, b))
    return not a.size or bool(a.data.ptr == b.data.ptr)


def overlaps_itself(array: Array) -> bool:
    """Whether one memory location is more than one element (an expanded array)."""
    if isinstance(array, np.generic) or not array.size:
        return False
    return any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True))


try:  # NumPy's warnings, switched off in a fifth of a microsecond; `errstate` takes one and a half
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _QUIET = _make_extobj(all="ignore")

    def hush() -> Any:
        """Silence floating point warnings until `unhush` gets the returned token: IEEE values speak for
        themselves."""
        return _extobj_contextvar.set(_QUIET)

    unhush: Callable[[Any], None] = _extobj_contextvar.reset
except ImportError:

    def hush() -> Any:
        return np.seterr(all="ignore")

    def unhush(token: Any) -> None:
        np.seterr(**token)


class quiet:
    """`with quiet():` no floating point warnings."""

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = hush()

    def __exit__(self, *error: Any) -> None:
        unhush(self.token)
