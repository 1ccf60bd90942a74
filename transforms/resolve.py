"""Resolve: which derivative each operation has.

Before: normalized statements with facts.   After: the same; `operation(value)` tells what a value is made by.
Why here: the analyses and both derivative passes ask the same question and must get the same answer.

Operators, subscripts, attributes and methods of arrays become the functions under which their rules are
filed. A call of a Python function becomes a call of its derivative pair; what can't be known before the run
becomes a call of the runtime dispatcher.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
import types
from dataclasses import dataclass, field
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import operators, trees
from srcgrad.runtime.dispatch import is_namedtuple
from srcgrad.runtime.rules import table
from srcgrad.transforms.facts import UNKNOWN
from srcgrad.transforms.tree.build import constant
from srcgrad.transforms.tree.sharing import CONSTANT_ATTRIBUTES

BINARY = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
    gast.Div: operator.truediv,
    gast.Pow: operator.pow,
    gast.MatMult: operator.matmul,
    gast.Mod: operator.mod,
    gast.FloorDiv: operator.floordiv,
    gast.BitAnd: operator.and_,
    gast.BitOr: operator.or_,
    gast.BitXor: operator.xor,
    gast.LShift: operator.lshift,
    gast.RShift: operator.rshift,
}
UNARY = {gast.USub: operator.neg, gast.UAdd: operator.pos, gast.Invert: operator.invert}
NUMBERS = ("scalar", "array", "numeric")


@dataclass
class Operation:
    """`kind`: copy, rule, call (a Python function or local closure), dispatch, tuple, list, dict, struct,
    item, attribute, concat, repeat, append, pop, insert, inert. `binding` maps a rule's parameters to the
    atoms of this use; `operands` are (parameter or key, name) of what may be differentiated."""

    kind: str
    rule: table.Rule | None = None
    function: Any = None
    binding: dict[str, Any] = field(default_factory=dict)
    operands: list[tuple[Any, str]] = field(default_factory=list)
    node: Any = None


def fact(node: Any) -> Any:
    return getattr(node, "fact", UNKNOWN)


def _names(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, str]]:
    return [(key, atom.id) for key, atom in pairs if isinstance(atom, gast.Name)]


def operation(value: Any) -> Operation:
    """What a normalized value is made by."""
    made = _operation(value)
    made.node = value
    return made


def _operation(value: Any) -> Operation:
    if isinstance(value, gast.Name):
        return Operation("copy", operands=[(None, value.id)])
    if isinstance(value, gast.BinOp):
        kinds = {fact(value.left).kind, fact(value.right).kind}
        if kinds & {"list", "tuple"} and not kinds & {"array", "numeric"}:
            if isinstance(value.op, gast.Add) and "scalar" not in kinds:
                return Operation("concat", operands=_names([("left", value.left), ("right", value.right)]))
            if isinstance(value.op, gast.Mult):
                return Operation("repeat", operands=_names([("left", value.left), ("right", value.right)]))
        if "string" in kinds:
            return Operation("inert")
        return of_rule(BINARY[type(value.op)], [value.left, value.right], [])
    if isinstance(value, gast.UnaryOp):
        if isinstance(value.op, gast.Not):
            return Operation("inert")
        return of_rule(UNARY[type(value.op)], [value.operand], [])
    if isinstance(value, gast.Subscript):
        if fact(value.value).kind in ("array", "numeric"):
            return Operation("item", table.find(operator.getitem), operands=_names([("x", value.value)]))
        return Operation("item", operands=_names([("x", value.value)]))
    if isinstance(value, gast.Attribute):
        owner = fact(value.value).kind
        if value.attr in CONSTANT_ATTRIBUTES and (owner in NUMBERS or not hasattr(value, "carries")):
            return Operation("inert")
        found = getattr(np.ndarray, value.attr, None)
        if fact(value.value).kind in NUMBERS and found is not None and table.find(found) is not None:
            return of_rule(found, [value.value], [])
        return Operation("attribute", operands=_names([(value.attr, value.value)]))
    if isinstance(value, (gast.Tuple, gast.List)):
        kind = "tuple" if isinstance(value, gast.Tuple) else "list"
        pairs: list[tuple[Any, Any]] = list(enumerate(value.elts))
        return Operation(
            kind, operands=_names([(i, e.value if isinstance(e, gast.Starred) else e) for i, e in pairs])
        )
    if isinstance(value, gast.Dict):
        return Operation("dict", operands=_names(list(enumerate(value.values))))
    if isinstance(value, gast.Call):
        return _call(value)
    return Operation("inert")


def of_rule(function: Any, args: list[Any], keywords: list[Any]) -> Operation:
    """The use of a rule, its parameters bound to the arguments of a call; NoRule's cause is an unbindable
    argument."""
    rule = table.find(function)
    if rule is None:
        return Operation("unknown", function=function)
    if not rule.differentiable:
        return Operation("inert", rule, function)
    given = [(("arg", i), a) for i, a in enumerate(args)] + [(("key", k.arg), k.value) for k in keywords]
    unbound = Operation("unbound", rule, function, operands=_names(given))
    binding: dict[str, Any] = {}
    operands: list[tuple[Any, str]] = []
    parameters = list(rule.parameters)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = next((p for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    for p, a in zip(positional, args, strict=False):
        binding[p.name] = a
    rest = args[len(positional) :]
    if variadic is not None:
        binding[variadic.name] = gast.Tuple(list(rest), gast.Load())
    elif rest:
        return unbound
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for k in keywords:
        if k.arg not in named or k.arg in binding:
            return unbound
        binding[k.arg] = k.value
    for p in parameters:
        if p.name not in binding:
            if p.default is p.empty:
                return unbound
            binding[p.name] = constant(p.default)
    for w in rule.wrt:
        bound = binding.get(w)
        if isinstance(bound, gast.Name):
            operands.append((w, bound.id))
        elif isinstance(bound, gast.Tuple):
            operands += [((w, i), e.id) for i, e in enumerate(bound.elts) if isinstance(e, gast.Name)]
    for w in table.constants_of(rule) - {*rule.wrt}:
        if isinstance(binding[w], gast.Name):
            operands.append((w, binding[w].id))
    return Operation("rule", rule, function, binding, operands)


def _call(e: Any) -> Operation:
    if getattr(e, "discrete", False):
        return Operation("inert")
    func = e.func
    starred = any(isinstance(a, gast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords)
    values = [(("arg", i), a.value if isinstance(a, gast.Starred) else a) for i, a in enumerate(e.args)]
    values += [(("key", k.arg), k.value) for k in e.keywords]
    if isinstance(func, gast.Attribute) and not fact(func).known:
        owner = fact(func.value)
        method = getattr(np.ndarray, func.attr, None)
        if owner.kind in NUMBERS and method is not None and not starred:
            found = of_rule(method, [func.value, *e.args], e.keywords)
            if found.kind != "unknown":
                return found
        if (
            owner.kind == "list"
            and func.attr in ("append", "pop", "insert", "reverse", "clear", "copy")
            and not starred
        ):
            return Operation(func.attr, operands=_names([("list", func.value), *values]))
        if owner.kind in ("list", "dict", "tuple", "string") and func.attr in (
            "keys",
            "index",
            "count",
            "join",
            "format",
        ):
            return Operation("inert")
        if owner.kind == "dict" and func.attr == "copy":
            return Operation("copy_of", operands=_names([("x", func.value)]))
        return Operation("dispatch", operands=_names([("func", func.value), *values]))
    captured = [
        (("captured", free), gast.Name(now, gast.Load(), None, None))
        for free, now in getattr(e, "captured", [])
    ]
    if fact(func).kind == "closure" and hasattr(e, "captured"):
        return Operation("call", function=fact(func).const, operands=_names([*captured, *values]))
    known = fact(func).const if fact(func).known and fact(func).kind != "closure" else None
    if known is None:
        return Operation("dispatch", operands=_names([("func", func), *values]))
    if operators.looked_at(known) or known is operators.attribute:
        return Operation("dispatch", operands=_names(values))
    if known is copy.copy and len(e.args) == 1:
        return Operation("dispatch", operands=_names(values))
    if known is type and len(e.args) == 1:
        return Operation("inert")
    if known in (dataclasses.replace, dataclasses.asdict, dataclasses.astuple):
        return Operation("dispatch", operands=_names(values))
    if known is trees.as_list:
        return Operation("copy", function=known, operands=_names(values))
    if table.find(known) is not None and not starred:
        return of_rule(known, e.args, e.keywords)
    if table.find(known) is not None:  # which arguments there are is known at run time
        return Operation("dispatch", operands=_names([("func", func), *values]))
    if (
        (getattr(known, "__module__", None) or "").split(".")[0] in ("numpy", "scipy")
        and isinstance(known, types.FunctionType)
        and not known.__code__.co_filename.startswith("<srcgrad")  # a derivative of one of their functions
    ):
        return Operation("unknown", function=known, operands=_names(values))
    if isinstance(getattr(known, "__self__", None), np.ufunc):  # a method of it
        return Operation("unknown", function=known, operands=_names(values))
    if getattr(
        known, "__srcgrad_wraps__", False
    ):  # a transform's derivative is that of the function it transforms
        return Operation("copy", function=known, operands=_names([(None, a) for a in e.args[:1]]))
    if isinstance(known, types.FunctionType) and not starred:
        return Operation("call", function=known, operands=_names(values))
    if is_namedtuple(known) and not starred:
        return Operation("struct", function=known, operands=_names(_fields(known._fields, e)))
    if known in (list, tuple) and len(e.args) == 1:
        kind = fact(e.args[0]).kind
        if kind == "dict" and not isinstance(e.args[0], gast.Starred):
            return Operation("inert")  # its keys
        if kind in ("unknown", "object"):
            return Operation("dispatch", function=known, operands=_names(values))
        return Operation("sequence", function=known, operands=_names(values))
    if known is dict and len(e.args) <= 1:
        if not e.args:
            return Operation("dict", operands=_names([(k.arg, k.value) for k in e.keywords]))
        if not e.keywords and fact(e.args[0]).kind == "dict":
            return Operation("copy_of", operands=_names([("x", e.args[0])]))
    if (
        isinstance(known, functools.partial)
        or isinstance(known, (types.FunctionType, types.MethodType, type))
        or callable(known)
    ):
        return Operation("dispatch", function=known, operands=_names(values))
    return Operation("dispatch", operands=_names([("func", func), *values]))


def _fields(fields: tuple[str, ...], e: Any) -> list[tuple[Any, Any]]:
    return [*zip(fields, e.args, strict=False), *((k.arg, k.value) for k in e.keywords)]
