"""Sight: which of the user's classes a function may meet, and what their instances do beyond holding data.

Where a value is not known, `a + b` means the operator of numbers and arrays unless an object with operators
of its own may come there: out of a constructor that the function, or a function that it calls, can name, or
with an argument. Most programs have none, and their derivatives stay plain.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import operators

BINARY = {
    gast.Add: operators.add,
    gast.Sub: operators.sub,
    gast.Mult: operators.mul,
    gast.Div: operators.truediv,
    gast.Pow: operators.pow,
    gast.MatMult: operators.matmul,
    gast.Mod: operators.mod,
    gast.FloorDiv: operators.floordiv,
    gast.BitOr: operators.or_,
}
UNARY = {gast.USub: operators.neg, gast.UAdd: operators.pos, gast.Invert: operators.invert}


class Sight:
    """`roots` are functions, classes and other objects from which the search starts.

    >>> class Money:
    ...     __module__ = "shop"
    ...
    ...     def __add__(self, other):
    ...         return self
    >>> Sight([{"cost": Money()}]).may(operators.add), Sight([len]).may(operators.add)
    (True, False)
    """

    def __init__(self, roots: Iterable[Any], defined: Iterable[Any] = ()) -> None:
        """`defined` are the class statements of the function itself."""
        self.operators: set[str] = set()
        self.attributes: set[str] = set()
        self.methods: dict[str, list[types.FunctionType]] = {}
        self.carried: set[str] = set()
        """Which of an array's attributes have the same name as data of the user's objects."""
        self.seen: set[int] = set()
        for d in defined:
            stores = (n for n in gast.walk(d) if isinstance(n, (gast.Attribute, gast.FunctionDef, gast.Name)))
            names = {getattr(n, "attr", getattr(n, "name", getattr(n, "id", ""))) for n in stores}
            self.carried |= names & operators.OF_ARRAYS
            self.operators |= {s.name for s in d.body if isinstance(s, gast.FunctionDef)} & operators.NAMES
        todo = list(roots)
        while todo:
            x = todo.pop()
            if id(x) not in self.seen and len(self.seen) < 4000:
                self.seen.add(id(x))
                todo += self.step(x)

    def may(self, function: Any) -> bool:
        """May an operator, told by its function in `srcgrad.runtime.operators`, meet an object of the
        user's?"""
        names = operators.BINARY.get(function) or (operators.UNARY[function],)
        return not self.operators.isdisjoint(names)

    def step(self, x: Any) -> list[Any]:
        """What can be named from `x`."""
        if isinstance(x, functools.partial):
            return [x.func, *x.args, *x.keywords.values()]
        if isinstance(x, types.MethodType):
            return [x.__func__, x.__self__]
        if isinstance(x, (staticmethod, classmethod)):
            return [x.__func__]
        if isinstance(x, property):
            return [x.fget]
        if isinstance(x, functools.cached_property):
            return [x.func]
        if isinstance(x, (list, tuple, set)):
            return list(x)[:50]
        if isinstance(x, dict):
            return list(x.values())[:50]
        if isinstance(x, types.FunctionType):
            return self.named_by(x)
        if not isinstance(x, type) and ({"primal", "__wrapped__"} & {*getattr(x, "__dict__", ())}):
            return [v for n, v in vars(x).items() if n in ("primal", "__wrapped__")]
        cls = x if isinstance(x, type) else type(x)
        if outside(cls.__module__):
            return []
        self.operators |= operators.defined(cls)
        self.attributes |= operators.computed(cls)
        self.carried |= operators.carried(cls)
        own = [c for c in cls.__mro__ if not outside(c.__module__)]
        for n, v in [i for c in own for i in vars(c).items() if isinstance(i[1], types.FunctionType)]:
            self.methods.setdefault(n, []).append(v)
        if not isinstance(x, type):
            self.carried |= operators.OF_ARRAYS & {*getattr(x, "__dict__", ())}
        inside = [] if isinstance(x, type) else [cls, getattr(x, "__dict__", {})]
        return inside + [v for c in own for v in vars(c).values()]

    def named_by(self, f: types.FunctionType) -> list[Any]:
        """The objects that a function's code mentions."""
        if outside(f.__module__) and not f.__code__.co_filename.startswith("<srcgrad"):
            return []
        names: set[str] = set()
        codes = [f.__code__]
        for code in codes:
            names |= set(code.co_names)
            self.carried |= operators.stored(code)
            codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        found = [f.__globals__[n] for n in names if n in f.__globals__]
        for cell in f.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:
                pass
        modules = [m for m in found if isinstance(m, types.ModuleType) and not outside(m.__name__)]
        found += [vars(m)[n] for m in modules for n in names if n in vars(m)]
        found += list(f.__defaults__ or ()) + list((f.__kwdefaults__ or {}).values())
        return [x for x in found if not isinstance(x, types.ModuleType)]


def outside(module: Any) -> bool:
    """Is a module none of the user's?"""
    return str(module).partition(".")[0] in operators.OTHERS


def resolved(function: Any, left: Any, right: Any = None) -> Any:
    """How an operator on operands of known facts is computed: (method, swapped), None where no object is
    among them, "met" where only the run can tell. Facts are those of `srcgrad.transforms.facts`."""
    operands = (left,) if function in operators.UNARY else (left, right)
    names = {*operators.BINARY.get(function, ()), operators.UNARY.get(function, "")}
    if not any(f.kind == "instance" and names & operators.defined(f.items) for f in operands):
        return None
    if any(f.kind not in STANDINS and f.kind != "instance" for f in operands):
        return "met"
    classes = tuple(f.items if f.kind == "instance" else STANDINS[f.kind] for f in operands)
    found = operators.of_classes(function, classes)
    if not found:
        return "met" if left.kind == "array" else None
    return found[0] if operators.answers(found[0][0]) else "met"


STANDINS: dict[str, type] = {
    "scalar": float,
    "array": np.ndarray,
    "string": str,
    "none": type(None),
    "tuple": tuple,
    "list": list,
    "dict": dict,
}
"""For what is known of operands that are no objects: classes without operators in Python."""
