"""A stand-in for CuPy's arrays on machines without a GPU: it speaks NumPy's protocols (NEP 13 and 18).

As CuPy does, it refuses every implicit conversion to NumPy, and every function, method and parameter that
CuPy has not (`cupy_names.txt` lists what it has). 0-dim results stay arrays, as CuPy's do.
"""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Iterable
from typing import Any

import cupy_names
import numpy as np

from srcgrad.runtime import arrays

_, NAMES = cupy_names.read()


def _known(name: str, keywords: Iterable[str] = (), error: type[Exception] = TypeError) -> None:
    if name not in NAMES:
        raise error(f"no implementation found for {name!r}: CuPy has none")
    if NAMES[name] and (unknown := set(keywords) - set(NAMES[name])):
        raise TypeError(f"CuPy's {name} has no parameters {unknown}")


def _inner(x: Any) -> Any:
    if isinstance(x, StrictArray):
        return x.inner
    if isinstance(x, np.ndarray) and x.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>: a host array met a device array")
    if type(x) in (list, tuple):
        return type(x)(_inner(e) for e in x)
    return x


def _index(x: Any) -> Any:
    """An index; host arrays of integers are allowed in it, as CuPy allows them."""
    if isinstance(x, StrictArray):
        return x.inner
    return tuple(_index(e) for e in x) if type(x) is tuple else x


def _outer(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        a = np.asarray(x)
        if not a.flags.writeable:  # CuPy's views may all be written
            with warnings.catch_warnings(), contextlib.suppress(ValueError):
                warnings.simplefilter("ignore")
                a.flags.writeable = True
        return StrictArray(a)
    if isinstance(x, tuple):
        return tuple(_outer(e) for e in x)
    return [_outer(e) for e in x] if type(x) is list else x


class StrictArray:
    __module__ = "strictarray"
    __slots__ = ("inner", "__weakref__")

    def __init__(self, inner: np.ndarray):
        self.inner = inner

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        if not all(isinstance(x, (StrictArray, np.ndarray, np.generic, int, float, complex)) for x in inputs):
            return NotImplemented
        space = "" if ufunc.__class__.__module__ == "numpy" and hasattr(np, ufunc.__name__) else "special."
        _known(space + ufunc.__name__, keywords)
        if method != "__call__":
            _known("ufunc." + method)
        keywords = {k: _inner(v) for k, v in keywords.items()}
        if out is not None:
            keywords["out"] = tuple(o.inner for o in out)
        if method == "at":
            return _Ufunc(ufunc).at(*inputs)
        got = getattr(ufunc, method)(*[_inner(x) for x in inputs], **keywords)
        return out[0] if out is not None else _outer(got)

    def __array_function__(self, function: Any, kinds: Any, args: Any, keywords: Any) -> Any:
        if not all(issubclass(kind, (StrictArray, np.ndarray)) for kind in kinds):
            return NotImplemented
        space = function.__module__.removeprefix("numpy").lstrip(".")
        keywords.pop("like", None)
        _known(f"{space}.{function.__name__}".lstrip("."), keywords)
        if not args:
            return _outer(function(**{k: _inner(v) for k, v in keywords.items()}))
        rest = [a if isinstance(a, np.ndarray) and a.dtype.kind == "i" else _inner(a) for a in args[1:]]
        return _outer(function(_inner(args[0]), *rest, **{k: _inner(v) for k, v in keywords.items()}))

    @property
    def data(self) -> Any:
        """As CuPy's arrays have: the memory, with its address."""
        return types.SimpleNamespace(ptr=self.inner.ctypes.data)

    @property
    def flags(self) -> Any:
        """Those that CuPy's arrays have."""
        f = self.inner.flags
        return types.SimpleNamespace(
            c_contiguous=f.c_contiguous, f_contiguous=f.f_contiguous, owndata=f.owndata
        )

    def get(self) -> np.ndarray:
        return self.inner.copy()

    def item(self) -> Any:
        return self.inner.item()

    def __getitem__(self, index: Any) -> Any:
        return StrictArray(np.asarray(self.inner[_index(index)]))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.inner[_index(index)] = _inner(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _known("ndarray." + name, error=AttributeError)
        value = getattr(self.inner, name)
        if callable(value):
            return lambda *a, **k: _outer(value(*_inner(a), **{n: _inner(v) for n, v in k.items()}))
        return _outer(value) if isinstance(value, np.ndarray) else value

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        return bool(self.inner)

    def __int__(self) -> int:
        return int(self.inner)

    def __float__(self) -> float:
        return float(self.inner)

    def __index__(self) -> int:
        return self.inner.__index__()


_UFUNCS = {"truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "sub": "subtract"}
_UFUNCS |= {"mul": "multiply", "pow": "power", "lt": "less", "le": "less_equal", "gt": "greater"}
_UFUNCS |= {"ge": "greater_equal", "eq": "equal", "ne": "not_equal", "neg": "negative", "pos": "positive"}
_UFUNCS |= {"lshift": "left_shift", "rshift": "right_shift"}


def _operator(name: str) -> None:
    plain = name.strip("_")
    plain = plain if plain in "rshift" or plain[0] != "r" else plain[1:]
    bitwise = f"bitwise_{plain}" if plain in ("and", "or", "xor") else plain
    numpys: Any = getattr(np, _UFUNCS.get(plain, bitwise))

    def method(self: Any, *others: Any) -> Any:
        if any(type(o).__module__.startswith("srcgrad") for o in others):  # as CuPy's do
            return numpys(*others[::-1], self) if name.startswith("__r") else numpys(self, *others)
        got = getattr(self.inner, name)(*[_inner(o) for o in others])
        return got if got is NotImplemented else _outer(got)

    setattr(StrictArray, name, method)


for _n in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul neg "
    "pos abs invert lt le "
    "gt ge eq ne and or xor rand ror rxor lshift rshift"
).split():
    _operator(f"__{_n}__")
StrictArray.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]


def _in_place(name: str) -> None:
    def method(self: Any, other: Any) -> Any:
        getattr(self.inner, name)(_inner(other))
        return self

    setattr(StrictArray, name, method)


for _n in "iadd isub imul itruediv".split():
    _in_place(f"__{_n}__")


class _Special:
    def __getattr__(self, name: str) -> Any:
        import scipy.special

        _known("special." + name)
        function = getattr(scipy.special, name)
        return lambda *a, **k: _outer(function(*_inner(a), **{n: _inner(v) for n, v in k.items()}))


class _Namespace(types.SimpleNamespace):
    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return (
            x
            if isinstance(x, StrictArray) and dtype is None
            else StrictArray(np.array(_inner_of(x), dtype=dtype))
        )

    array = asarray

    lib = types.SimpleNamespace(
        stride_tricks=types.SimpleNamespace(
            as_strided=lambda x, shape, strides: _outer(
                np.lib.stride_tricks.as_strided(x.inner, shape, strides, writeable=True)
            )
        )
    )

    def __getattr__(self, name: str) -> Any:
        _known(name)
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            return _Ufunc(function)
        return lambda *a, **k: _outer(function(*_inner(a), **{n: _inner(v) for n, v in k.items()}))


class _Ufunc:
    """One of CuPy's ufuncs."""

    def __init__(self, inner: Any):
        self.inner = inner

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.inner(*args, **keywords)

    def at(self, a: Any, index: Any, value: Any) -> None:
        self.inner.at(a.inner, _index(index), _inner(value))


def _inner_of(x: Any) -> Any:
    return x.inner if isinstance(x, StrictArray) else x


def register() -> None:
    arrays.BACKENDS["strict"] = lambda: _NAMESPACE
    arrays.DEVICE_OF_MODULE["strictarray"] = "strict"
    arrays.SPECIAL["strict"] = lambda: _SPECIAL


_NAMESPACE, _SPECIAL = _Namespace(), _Special()
