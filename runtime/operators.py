"""Operators of objects: which method of a class an operator calls, told when its operands are met.

Python's rules (Language reference, 3.3.8 "Emulating numeric types"): the left operand's method comes first,
but for a right operand of a subclass that has a reflected method of its own; a method that returns
`NotImplemented` leaves the word to the other. Emitted code calls the functions of this module through the
dispatcher, where it is not known whether an operand is a number, an array or an object.

>>> class Money:
...     __module__ = "shop"
...
...     def __init__(self, cents):
...         self.cents = cents
...
...     def __radd__(self, other):
...         return Money(self.cents + other)
>>> [(m.__name__, swapped) for m, swapped in methods(add, (1.5, Money(2.0)))]
[('__radd__', True)]
>>> methods(add, (1.5, 2.0))
[]
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.errors import UnsupportedSyntax


def _per_class(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return functools.lru_cache(maxsize=1024)(f)


def add(a: Any, b: Any) -> Any:
    return a + b


def sub(a: Any, b: Any) -> Any:
    return a - b


def mul(a: Any, b: Any) -> Any:
    return a * b


def truediv(a: Any, b: Any) -> Any:
    return a / b


def pow(a: Any, b: Any) -> Any:
    return a**b


def power(a: Any, n: Any) -> Any:
    """`a**n` with an exponent that carries no derivative."""
    return a**n


def fixed(n: Any) -> Any:
    """`n`, taken for a constant."""
    return n


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def mod(a: Any, b: Any) -> Any:
    return a % b


def floordiv(a: Any, b: Any) -> Any:
    return a // b


def or_(a: Any, b: Any) -> Any:
    return a | b


def neg(a: Any) -> Any:
    return -a


def pos(a: Any) -> Any:
    return +a


def invert(a: Any) -> Any:
    return ~a


def absolute(a: Any) -> Any:
    return abs(a)


def number(a: Any) -> Any:
    return float(a)


def getitem(a: Any, index: Any) -> Any:
    return a[index]


def elements(a: Any) -> Any:
    """What a loop over `a`, or an assignment to several targets, takes one by one."""
    return a


BINARY: dict[Callable[..., Any], tuple[str, str]] = {
    add: ("__add__", "__radd__"),
    sub: ("__sub__", "__rsub__"),
    mul: ("__mul__", "__rmul__"),
    truediv: ("__truediv__", "__rtruediv__"),
    pow: ("__pow__", "__rpow__"),
    power: ("__pow__", "__rpow__"),
    matmul: ("__matmul__", "__rmatmul__"),
    mod: ("__mod__", "__rmod__"),
    floordiv: ("__floordiv__", "__rfloordiv__"),
    or_: ("__or__", "__ror__"),
}
UNARY: dict[Callable[..., Any], str] = {
    neg: "__neg__",
    pos: "__pos__",
    invert: "__invert__",
    absolute: "__abs__",
    number: "__float__",
    getitem: "__getitem__",
    elements: "__iter__",
}
INPLACE = {f: "__i" + name.strip("_") + "__" for f, (name, _) in BINARY.items()}
NAMES = frozenset({n for pair in BINARY.values() for n in pair} | set(UNARY.values()))
PLAIN: dict[Any, str] = {
    **{f: f"a0 {sign} a1" for f, sign in zip(BINARY, "+ - * / ** ** @ % // |".split(), strict=True)},
    power: "a0 ** fixed(a1)",
    **{
        neg: "-a0",
        pos: "+a0",
        invert: "~a0",
        absolute: "abs(a0)",
        number: "float(a0)",
        getitem: "a0[a1]",
        elements: "a0",
    },
}
"""The functions that the dispatcher looks at, and what each does where no operand is an object."""

OTHERS = {*sys.stdlib_module_names, "numpy", "scipy", "srcgrad", "builtins", "numba", "cupy", "torch", "jax"}
OTHERS -= {"__main__"}
"""Modules whose classes' operators are not the user's."""


@_per_class
def defined(cls: type) -> frozenset[str]:
    """The operators that a class of the user's defines in Python."""
    if (cls.__module__ or "").partition(".")[0] in OTHERS or issubclass(cls, (np.ndarray, np.generic)):
        return frozenset()
    return frozenset(n for n in NAMES if isinstance(method(cls, n), types.FunctionType))


def method(cls: type, name: str) -> Any:
    """What a class or its bases say about a name, without running anything."""
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)


def methods(function: Any, operands: tuple[Any, ...]) -> list[tuple[Any, bool]]:
    """The methods that an operator calls, in their order, each with whether its operands are swapped; none
    where the operator is that of numbers, arrays and containers."""
    return of_classes(function, tuple(map(type, operands)))


def of_classes(function: Any, classes: tuple[type, ...]) -> list[tuple[Any, bool]]:
    """`methods` for operands of given classes."""
    first = classes[0]
    if function in UNARY:
        name = UNARY[function]
        return [(method(first, name), False)] if name in defined(first) else []
    name, reflected = BINARY[function]
    second = classes[1]
    found = [(method(first, name), False)] if name in defined(first) else []
    if second is first or reflected not in defined(second):
        return found
    if issubclass(first, np.ndarray) and not _declines(second):
        return found
    other = (method(second, reflected), True)
    if issubclass(second, first) and method(second, reflected) is not method(first, reflected):
        return [other, *found]
    return [*found, other]


def _declines(cls: type) -> bool:
    """Do NumPy's arrays leave an operator to the objects of `cls`, instead of applying it element by
    element?"""
    if method(cls, "__array_ufunc__") is None and any("__array_ufunc__" in vars(c) for c in cls.__mro__):
        return True
    return bool((getattr(cls, "__array_priority__", None) or 0) > 0)


def answers(found: Any) -> bool:
    """Is a method sure not to return `NotImplemented`, as far as its text tells?"""
    return "NotImplemented" not in found.__code__.co_names


def spread(function: Any, classes: tuple[type, ...]) -> bool:
    """Does an array apply an operator to each of its elements and an object?"""
    return (
        function in BINARY
        and issubclass(classes[0], np.ndarray)
        and BINARY[function][1] in defined(classes[1])
        and not of_classes(function, classes)
    )


def refused(function: Any, *operands: Any) -> Any:
    """Python's own error where no method answers."""
    if spread(function, tuple(map(type, operands))):
        raise UnsupportedSyntax(
            f"an array applies `{function.__name__}` to each of its elements and the "
            f"{type(operands[1]).__name__}, which gives an array of objects: differentiation needs an array "
            "of numbers. Put the object first, or loop over the array."
        )
    kinds = " and ".join(f"'{type(x).__name__}'" for x in operands)
    raise TypeError(f"unsupported operand type(s) for {function.__name__}: {kinds}")


def looked_at(function: Any) -> bool:
    """Is a function one of those above?"""
    return isinstance(function, types.FunctionType) and function in PLAIN


def rebinds(function: Any, a: Any, b: Any) -> bool:
    """Does `a += b`, told by its operator, bind `a` to what a method of a class gives?"""
    if isinstance(method(type(a), INPLACE[function]), types.FunctionType) and defined(type(a)):
        raise UnsupportedSyntax(
            f"`{INPLACE[function]}` of a {type(a).__name__}, of which the compiler does not know that it is "
            "one, changes it in a way that can't be followed. Write the operation out."
        )
    return bool(methods(function, (a, b)))


class Leaving:
    """Runs `__exit__` of a context manager if its body raises, and only then: else emitted code calls it.

    Raises UnsupportedSyntax where `__exit__` suppresses the exception: what was left undone is not known."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, place: Any) -> None:
        if kind is not None and self.manager.__exit__(kind, error, place):
            raise UnsupportedSyntax(
                f"a {type(self.manager).__name__} suppressed a {kind.__name__}: the derivative of a body "
                "that was left half-way can't be followed."
            )


# Attributes that a class computes ---------------------------------------------------------------------------


def attribute(x: Any, name: str) -> Any:
    """`x.name`, for the dispatcher."""
    return getattr(x, name)


@_per_class
def computed(cls: type) -> frozenset[str]:
    """The attributes that a class of the user's computes with Python code when they are read."""
    if (cls.__module__ or "").partition(".")[0] in OTHERS:
        return frozenset()
    return frozenset(n for c in cls.__mro__ for n in vars(c) if computes(method(cls, n)))


def computes(found: Any) -> bool:
    """Is what a class holds a property, plain or cached, that is written in Python?"""
    if isinstance(found, property):
        return isinstance(found.fget, types.FunctionType)
    return isinstance(found, functools.cached_property) and isinstance(found.func, types.FunctionType)


OF_ARRAYS = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags"})
"""Attributes that carry no derivative, unless an object of the user's has data under such a name."""


@_per_class
def carried(cls: type) -> frozenset[str]:
    """The names of array attributes that a class of the user's gives to something of its own."""
    if (cls.__module__ or "").partition(".")[0] in OTHERS or issubclass(cls, np.ndarray):
        return frozenset()
    held = {n for c in cls.__mro__[:-1] for n in (*vars(c), *vars(c).get("__annotations__", ()))}
    codes = [f.__code__ for c in cls.__mro__ for f in vars(c).values() if isinstance(f, types.FunctionType)]
    return frozenset(held & OF_ARRAYS).union(*map(stored, codes))


@functools.lru_cache(maxsize=4096)
def stored(code: types.CodeType) -> frozenset[str]:
    """The names of array attributes that a function stores in an object."""
    if OF_ARRAYS.isdisjoint(code.co_names):
        return frozenset()
    import dis

    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR") & OF_ARRAYS


def seen_in(values: Any, depth: int = 4) -> frozenset[type]:
    """The classes with operators or computed attributes among the objects that values hold, a few levels
    deep."""
    found: set[type] = set()
    for v in values:
        kind = type(v)
        if kind in _PLAIN:
            continue
        held: Any = ()
        if isinstance(v, (list, tuple)):
            held = v[:20]
        elif isinstance(v, dict):
            held = list(v.values())[:20]
        elif kind.__module__.partition(".")[0] not in OTHERS:
            held = list(getattr(v, "__dict__", {}).values())
            held += [getattr(v, n) for n in slots(kind) if hasattr(v, n)]
        if defined(kind) or computed(kind) or carried(kind):
            found.add(kind)
        if depth and held:
            found |= seen_in(held, depth - 1)
    return frozenset(found)


_PLAIN = {
    float,
    int,
    bool,
    str,
    type(None),
    np.ndarray,
    np.float64,
    types.FunctionType,
    type,
    types.ModuleType,
}


@_per_class
def slots(cls: Any) -> Any:
    """The attributes that instances of a class of the user's hold in slots."""
    if (cls.__module__ or "").partition(".")[0] in OTHERS or issubclass(cls, (tuple, str, int, float)):
        return ()
    found = [vars(c).get("__slots__", ()) for c in cls.__mro__]
    names = [n for s in found for n in ((s,) if isinstance(s, str) else s)]
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))
