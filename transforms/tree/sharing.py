"""What an expression may share memory with, by its text."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import gast
import numpy as np

from srcgrad.runtime.rules import table
from srcgrad.transforms.tree import dataflow

CONSTANT_ATTRIBUTES = {
    "shape",
    "ndim",
    "size",
    "dtype",
    "itemsize",
    "nbytes",
    "strides",
    "flags",
    "__name__",
    "__class__",
    "_fields",
}
FRESH_METHODS = ("copy", "sum", "mean", "dot", "std", "var", "max", "min", "item", "tolist", "astype")
FRESH_BUILTINS = (len, sum, abs, float, int, bool, str, range, round, isinstance, any, all)


CONTAINERS = (list, tuple, set, dict, sorted, reversed, zip, enumerate, map, filter)
"""Functions whose result is new and holds what their arguments hold."""


def copies(call: Any) -> bool:
    """Does a call not say `copy=False`?"""
    return not any(k.arg == "copy" and getattr(k.value, "value", None) is not True for k in call.keywords)


def shares(rule: table.Rule, operands: int, call: Any) -> bool:
    """May the result of a call of a function with this rule share memory with an operand?"""
    return rule.shares(operands) or (isinstance(call, gast.Call) and not copies(call))


def memory_of(
    e: Any, lookup: Callable[[Any], Any], of_call: Callable[[Any], bool]
) -> tuple[set[str], set[str]]:
    """What the value of `e` may be a part of, and what it may hold, as tokens: `x` for the value of a name,
    `x*` for what that holds. `lookup(expression)` gives what a function expression refers to, or None;
    `of_call(call)` tells whether the result of a call of a Python function may share memory with its
    arguments.

    >>> def of(text):
    ...     own, held = memory_of(gast.parse(text, mode="eval").body, lambda f: None, lambda call: True)
    ...     return sorted(own), sorted(held)
    >>> of("x[1:].T")
    (['x', 'x*'], ['x*'])
    >>> of("[y, z + 1]")
    ([], ['y', 'y*'])
    >>> of("[2 * b for b in a]")
    ([], [])
    """

    def union(parts: list[Any]) -> tuple[set[str], set[str]]:
        found = [memory_of(p, lookup, of_call) for p in parts]
        return set().union(*(own for own, _ in found)), set().union(*(held for _, held in found))

    def within(parts: list[Any]) -> tuple[set[str], set[str]]:
        own, held = union(parts)
        return own | held, held

    def holding(parts: list[Any]) -> tuple[set[str], set[str]]:
        own, held = union(parts)
        return set(), own | held

    if isinstance(e, (gast.Name, gast.Attribute)):
        known = lookup(e)
        if callable(known) or isinstance(known, types.ModuleType):
            return set(), set()
    if isinstance(e, gast.Name):
        return {e.id}, {e.id + "*"}
    if isinstance(e, gast.Attribute):
        return (set(), set()) if e.attr in CONSTANT_ATTRIBUTES else within([e.value])
    if isinstance(e, gast.Subscript):
        return within([e.value])
    if isinstance(e, (gast.Starred, gast.NamedExpr)):
        return union([e.value])
    if isinstance(e, gast.IfExp):
        return union([e.body, e.orelse])
    if isinstance(e, gast.BoolOp):
        return union(e.values)
    if isinstance(e, gast.Dict):
        return holding(e.values)
    if isinstance(e, (gast.Tuple, gast.List, gast.Set)):
        return holding(e.elts)
    if isinstance(e, (gast.ListComp, gast.GeneratorExp, gast.SetComp, gast.DictComp)):
        _, held = holding([e.value if isinstance(e, gast.DictComp) else e.elt])
        for g in reversed(e.generators):
            if {t.rstrip("*") for t in held} & dataflow.stored(g.target):
                held = {t for t in held if t.rstrip("*") not in dataflow.stored(g.target)}
                held |= within([g.iter])[0]
        return set(), held
    if not isinstance(e, gast.Call):
        return set(), set()
    parts = [*e.args, *(k.value for k in e.keywords)]
    found = lookup(e.func)
    if found is None and isinstance(e.func, gast.Attribute):
        found = getattr(np.ndarray, e.func.attr, None)
        if e.func.attr in FRESH_METHODS and copies(e):
            return set(), union([e.func.value])[1] if e.func.attr == "copy" else set()
        parts.append(e.func.value)
    if any(found is f for f in CONTAINERS):
        return holding(parts)
    rule = None if found is None else table.find(found)
    if rule is not None:
        return within(parts) if shares(rule, len(parts), e) else (set(), set())
    if any(found is f for f in FRESH_BUILTINS) or not of_call(e):
        return set(), set()
    own, held = within(parts)
    return own, own | held
