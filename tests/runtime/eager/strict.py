"""A stand-in for CuPy's arrays on machines without a GPU: it speaks NumPy's protocols (NEP 13 and 18) and
refuses every implicit conversion to NumPy, as CuPy does. 0-dim results stay arrays, as CuPy's do.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from srcgrad.runtime import arrays


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
        return StrictArray(np.asarray(x))
    if type(x) in (list, tuple):
        return type(x)(_outer(e) for e in x)
    return x


class StrictArray:
    __module__ = "strictarray"
    __slots__ = ("inner", "__weakref__")

    def __init__(self, inner: np.ndarray):
        self.inner = inner

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        keywords = {k: _inner(v) for k, v in keywords.items()}
        if out is not None:
            keywords["out"] = tuple(o.inner for o in out)
        if method == "at":
            getattr(ufunc, method)(inputs[0].inner, _index(inputs[1]), *[_inner(x) for x in inputs[2:]])
            return None
        got = getattr(ufunc, method)(*[_inner(x) for x in inputs], **keywords)
        return out[0] if out is not None else _outer(got)

    def __array_function__(self, function: Any, kinds: Any, args: Any, keywords: Any) -> Any:
        rest = [a if isinstance(a, np.ndarray) and a.dtype.kind == "i" else _inner(a) for a in args[1:]]
        return _outer(function(_inner(args[0]), *rest, **{k: _inner(v) for k, v in keywords.items()}))

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


def _operator(name: str) -> None:
    def method(self: Any, *others: Any) -> Any:
        got = getattr(self.inner, name)(*[_inner(o) for o in others])
        return got if got is NotImplemented else _outer(got)

    setattr(StrictArray, name, method)


for _n in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul neg "
    "pos abs invert lt le "
    "gt ge eq ne and or xor rand ror rxor"
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


class _Namespace(types.SimpleNamespace):
    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return (
            x
            if isinstance(x, StrictArray) and dtype is None
            else StrictArray(np.array(_inner_of(x), dtype=dtype))
        )

    array = asarray

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        return lambda *a, **k: _outer(function(*_inner(a), **{n: _inner(v) for n, v in k.items()}))


def _inner_of(x: Any) -> Any:
    return x.inner if isinstance(x, StrictArray) else x


def register() -> None:
    arrays.BACKENDS["strict"] = lambda: _NAMESPACE
    arrays.DEVICE_OF_MODULE["strictarray"] = "strict"


_NAMESPACE = _Namespace()
