"""What a tensor is made of besides values: dtypes, devices, shapes, and PyTorch's promotion of dtypes."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, SupportsIndex

import numpy as np

from srcgrad.runtime import arrays


class dtype:
    """A tensor's dtype. It equals the NumPy dtype that it stands for, and NumPy accepts it wherever it takes
    a dtype.

    >>> float32, np.zeros(1, dtype=float32.numpy).dtype == float32
    (srcgrad.float32, True)
    """

    __slots__ = ("numpy", "name", "kind", "itemsize", "is_floating_point", "is_complex", "is_signed")

    def __init__(self, name: str):
        self.numpy = np.dtype(name)
        self.name = name
        self.kind = self.numpy.kind
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = self.kind == "f"
        self.is_complex = self.kind == "c"
        self.is_signed = self.kind in "ifc"

    @property
    def type(self) -> Any:
        """The scalar type of NumPy."""
        return self.numpy.type

    @property
    def char(self) -> str:
        """The letter by which NumPy calls it."""
        return self.numpy.char

    def __repr__(self) -> str:
        return f"srcgrad.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self is other
        if other is None or isinstance(other, str | int | float):
            return isinstance(other, str) and other == self.name
        try:
            return bool(self.numpy == other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __reduce__(self) -> Any:
        return _dtype_named, (self.name,)

    def to_complex(self) -> DType:
        """The complex dtype of the same precision (complex64 for all of up to 4 bytes).

        >>> sg.float64.to_complex()
        srcgrad.complex128
        """
        return complex64 if self.itemsize <= 4 else complex128

    def to_real(self) -> DType:
        """The dtype of the real part.

        >>> sg.complex64.to_real()
        srcgrad.float32
        """
        return float32 if self.name == "complex64" else float64 if self.name == "complex128" else self


DType = dtype
# NumPy takes an object for a dtype if it has an attribute of that name
dtype.dtype = property(lambda self: self.numpy, doc="The dtype of NumPy.")  # type: ignore[attr-defined]

bool_ = dtype("bool")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
float16 = dtype("float16")
float32 = dtype("float32")
float64 = dtype("float64")
complex64 = dtype("complex64")
complex128 = dtype("complex128")

ALL = (
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
    float16, float32, float64, complex64, complex128,
)  # fmt: skip
_BY_NUMPY = {d.numpy: d for d in ALL}
_BY_NAME = {d.name: d for d in ALL}
_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}
TYPE_NAMES = {
    "bool": "BoolTensor", "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor", "float16": "HalfTensor", "float32": "FloatTensor", "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}  # fmt: skip
SCALAR_NAMES = {n: t.removesuffix("Tensor").replace("Complex", "Complex") for n, t in TYPE_NAMES.items()}
I64 = np.dtype("int64")
F32, F64 = float32.numpy, float64.numpy


def _dtype_named(name: str) -> dtype:
    return _BY_NAME[name]


class _Defaults:
    floating: dtype = float32


def default_dtype() -> dtype:
    """The dtype of new tensors of Python floats.

    >>> sg.get_default_dtype()
    srcgrad.float32
    """
    return _Defaults.floating


def set_default_dtype(d: Any) -> None:
    """The dtype of new floating point tensors."""
    d = as_dtype(d)
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d!r}")
    _Defaults.floating = d


def from_numpy_dtype(d: np.dtype[Any]) -> dtype:
    try:
        return _BY_NUMPY[d]
    except KeyError:
        pass
    try:
        return _BY_NUMPY[d.newbyteorder("=")]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {d}. The only supported types are: "
            + ", ".join(x.name for x in ALL)
        ) from None


def as_dtype(d: Any) -> dtype:
    """A dtype from whatever names one: ours, NumPy's, a string, or `float`, `int`, `bool`, `complex`."""
    if isinstance(d, dtype):
        return d
    if isinstance(d, type) and d in _PYTHON:
        return _PYTHON[d]
    if isinstance(d, str) and d in _BY_NAME:
        return _BY_NAME[d]
    return from_numpy_dtype(np.dtype(d))


class device:
    """Where a tensor lives: `device("cpu")`, `device("cuda:0")`."""

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, kind: Any = "cpu", index: int | None = None):
        if isinstance(kind, device):
            kind, index = kind.type, kind.index
        if isinstance(kind, int):
            kind, index = "cuda", kind
        name, _, number = str(kind).partition(":")
        if name not in arrays.BACKENDS:
            raise RuntimeError(
                f"Expected one of {', '.join(arrays.BACKENDS)} device type at start of device string: {kind}"
            )
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (f", index={self.index})" if self.index is not None else ")")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            other = device(other)
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)


class Size(tuple[int, ...]):
    """A shape.

    >>> Size((2, 3)), Size((2, 3)).numel()
    (srcgrad.Size([2, 3]), 6)
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape.

        >>> sg.Size((2, 3)).numel()
        6
        """
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"srcgrad.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index: Any) -> Any:
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __mul__(self, other: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, other))


class Elements(int):
    """`t.size`: NumPy's number of elements when used as a number, PyTorch's `t.size(dim)` when called."""

    shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> Elements:
        n = 1
        for s in shape:
            n *= s
        made = int.__new__(cls, n)
        made.shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return Size(self.shape)
        if not -len(self.shape) <= dim < len(self.shape):
            n = max(len(self.shape), 1)
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
            )
        return self.shape[dim]


_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


@lru_cache(maxsize=4096)
def promoted(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """PyTorch's common dtype of two operands of the same priority.

    >>> promoted(np.dtype("int64"), np.dtype("float16"))
    dtype('float16')
    """
    if a == b:
        return a
    ka, kb = _CATEGORY[a.kind], _CATEGORY[b.kind]
    if ka >= 2 or kb >= 2:
        if ka != kb and not (ka >= 2 and kb >= 2):
            return a if ka > kb else b
    elif a.itemsize == 8 and b.itemsize == 8 and ka == kb == 1:
        return np.dtype("int64")
    return np.promote_types(a, b)


def number_kind(value: Any) -> int:
    """The category of a Python number: 0 bool, 1 int, 2 float, 3 complex; -1 for anything else."""
    if isinstance(value, bool | np.bool_):
        return 0
    if isinstance(value, int | np.integer):
        return 1
    if isinstance(value, float | np.floating):
        return 2
    if isinstance(value, complex | np.complexfloating):
        return 3
    return -1


def number_dtype(kind: int) -> np.dtype[Any]:
    """The dtype that a number of this category has where no tensor decides it."""
    if kind == 2:
        return default_dtype().numpy
    if kind == 3:
        return default_dtype().to_complex().numpy
    return np.dtype("bool") if kind == 0 else np.dtype("int64")


def result_dtype(operands: tuple[Any, ...]) -> np.dtype[Any]:
    """PyTorch's result dtype: tensors with dimensions decide before 0-dim tensors, these before numbers.

    `operands` are arrays, NumPy scalars that stand for 0-dim tensors, or Python numbers.
    """
    best: list[np.dtype[Any] | None] = [None, None, None]
    for o in operands:
        kind = (
            number_kind(o) if isinstance(o, int | float | complex) and not isinstance(o, np.generic) else -1
        )
        if kind >= 0:
            level, d = 2, number_dtype(kind)
        else:
            level, d = (0 if o.ndim else 1), o.dtype
        old = best[level]
        best[level] = d if old is None else promoted(old, d)
    result = best[0]
    for lower in best[1:]:
        if lower is None:
            continue
        if result is None:
            result = lower
        elif _CATEGORY[lower.kind] > _CATEGORY[result.kind]:
            if lower.kind == "c" and result.kind == "f":
                lower = np.dtype("complex128") if result.itemsize == 8 else lower
            result = lower
    assert result is not None
    return result


_RANGES = {
    np.dtype(kind): (low, high)
    for kind, low, high in [
        *((k, np.iinfo(k).min, np.iinfo(k).max) for k in "bhilq"),
        *((k, -int(np.iinfo(k).max), np.iinfo(k).max) for k in "BHILQ"),  # negative numbers wrap around
        *((k, float(np.finfo(k).min), float(np.finfo(k).max)) for k in "efd"),
    ]
}


def fitting(number: Any, dtype: np.dtype[Any]) -> Any:
    """A Python number as a scalar of the dtype of an existing tensor; RuntimeError if it lies out of range.

    >>> fitting(-1, np.dtype("uint8"))
    np.uint8(255)
    """
    if dtype in _RANGES:
        low, high = _RANGES[dtype]
        real = number.real
        endless = dtype.kind == "f" and not math.isfinite(real)
        if number.imag or not (endless or low <= real <= high):
            name = dtype.name if dtype.kind == "f" else f"{dtype.name}_t"
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        number = real
    return np.asarray(number).astype(dtype)[()]


def can_cast(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether an in-place operation may store `source` values in a `target` tensor (the category may not
    fall)."""
    return _CATEGORY[source.kind] <= _CATEGORY[target.kind] and not (
        source.kind != "b" and target.kind == "b"
    )


class finfo:
    """Limits of a floating point dtype."""

    def __init__(self, d: Any = None):
        if d is not None and as_dtype(d).numpy.kind not in "fc":
            raise TypeError("finfo() requires a floating point input type. Use iinfo to handle 'finfo'")
        info = np.finfo(as_dtype(d if d is not None else default_dtype()).numpy)
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.bits, self.resolution, self.dtype = int(info.bits), float(info.resolution), info.dtype.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, d: Any):
        if as_dtype(d).numpy.kind not in "iu":
            raise TypeError("iinfo() requires an integer input type. Use finfo to handle 'iinfo'")
        info = np.iinfo(as_dtype(d).numpy)
        self.max, self.min, self.bits = int(info.max), int(info.min), int(info.bits)
        self.dtype = info.dtype.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
