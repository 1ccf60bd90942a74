"""Which names an expression may share memory with, by its text."""

from __future__ import annotations

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


def memory_of(e: Any, lookup: Callable[[Any], Any], of_call: Callable[[Any], bool]) -> set[str]:
    """Names whose memory, or a part of it, the value of `e` may be or hold. `lookup(expression)` gives what a
    function expression refers to, or None; `of_call(call)` tells whether the result of a call of a Python
    function may share memory with its arguments.

    >>> tree = gast.parse("x[1:].T if c else [y, z + 1]", mode="eval").body
    >>> sorted(memory_of(tree, lambda f: None, lambda call: True))
    ['x', 'y']
    >>> memory_of(gast.parse("[2 * b for b in a]", mode="eval").body, lambda f: None, lambda call: True)
    set()
    """

    def union(parts: list[Any]) -> set[str]:
        return set().union(*(memory_of(p, lookup, of_call) for p in parts))

    if isinstance(e, gast.Name):
        return {e.id}
    if isinstance(e, gast.Attribute):
        return set() if e.attr in CONSTANT_ATTRIBUTES else union([e.value])
    if isinstance(e, (gast.Subscript, gast.Starred, gast.NamedExpr)):
        return union([e.value])
    if isinstance(e, gast.IfExp):
        return union([e.body, e.orelse])
    if isinstance(e, (gast.BoolOp, gast.Dict)):
        return union(e.values)
    if isinstance(e, (gast.Tuple, gast.List, gast.Set)):
        return union(e.elts)
    if isinstance(e, (gast.ListComp, gast.GeneratorExp, gast.SetComp, gast.DictComp)):
        shared = union([e.value if isinstance(e, gast.DictComp) else e.elt])
        for g in reversed(e.generators):
            if shared & dataflow.stored(g.target):
                shared = (shared - dataflow.stored(g.target)) | union([g.iter])
        return shared
    if not isinstance(e, gast.Call):
        return set()
    parts = [*e.args, *(k.value for k in e.keywords)]
    found = lookup(e.func)
    if found is None and isinstance(e.func, gast.Attribute):
        found = getattr(np.ndarray, e.func.attr, None)
        if e.func.attr in FRESH_METHODS:
            return set()
        parts.append(e.func.value)
    rule = None if found is None else table.find(found)
    if rule is not None:
        return union(parts) if rule.shares(len(parts)) else set()
    if any(found is f for f in FRESH_BUILTINS) or not of_call(e):
        return set()
    return union(parts)
