"""Reading a rule as source: which of its `return`s is taken for given facts, and its expression with the
arguments put in.

A rule whose body, as far as the facts decide its tests, is one `return` is inlined; any other is called.
"""

from __future__ import annotations

import builtins
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import support
from srcgrad.transforms.facts import UNKNOWN, Dim, Fact
from srcgrad.transforms.read import read
from srcgrad.transforms.tree import dataflow
from srcgrad.transforms.tree.build import (
    Substitute,
    add,
    attribute,
    clone,
    constant,
    divide,
    is_number,
    multiply,
    name,
    negative,
    subtract,
)
from srcgrad.transforms.tree.externals import Externals


@functools.cache
def _tree(rule: Callable[..., Any]) -> Any:
    return read(rule).tree


class Inliner:
    def __init__(self, externals: Externals, fact_of: Callable[[Any], Fact]) -> None:
        self.externals, self.fact_of = externals, fact_of
        self.parameters: set[str] = set()

    def twin(self, fact: Fact) -> str | None:
        """A parameter that has the shape of a value, which then need not be kept for its shape."""
        if not fact.shape or not all(isinstance(d, Dim) and d.offset == 0 for d in fact.shape):
            return None
        base = fact.shape[0].base.rpartition(".")[0]
        whole = all(d.base == f"{base}.{i}" for i, d in enumerate(fact.shape))
        return (
            base
            if whole and base in self.parameters and self.fact_of(name(base)).shape == fact.shape
            else None
        )

    def entries(self, rule: Callable[..., Any], binding: dict[str, Any]) -> list[Any] | None:
        """The expressions that `rule` returns (a list of one unless it returns a tuple), or None if it must
        be called."""
        tree = _tree(rule)
        returned = self.decide(tree.body, binding, rule)
        if returned is None:
            return None
        parts = returned.elts if isinstance(returned, gast.Tuple) else [returned]
        bound = {p.id for p in dataflow.parameters(tree)}
        return [self.put_in(clone(p), binding, rule, bound) for p in parts]

    def decide(self, body: list[Any], binding: dict[str, Any], rule: Any) -> Any:
        for s in body:
            if isinstance(s, gast.Expr) and isinstance(s.value, gast.Constant):
                continue
            if isinstance(s, gast.Return):
                return s.value
            if not isinstance(s, gast.If):
                return None
            truth = self.truth(s.test, binding, rule)
            if truth is None:
                return None
            taken = s.body if truth else s.orelse
            if taken:
                return self.decide(taken, binding, rule) if truth or s.orelse else None
        return None

    # Tests --------------------------------------------------------------------------------------------------

    def truth(self, test: Any, binding: dict[str, Any], rule: Any) -> bool | None:
        """Whether a rule's test holds, or None if the facts don't tell."""
        if isinstance(test, gast.BoolOp):
            truths = [self.truth(v, binding, rule) for v in test.values]
            if isinstance(test.op, gast.And):
                return False if False in truths else None if None in truths else True
            return True if True in truths else None if None in truths else False
        if isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
            truth = self.truth(test.operand, binding, rule)
            return None if truth is None else not truth
        if isinstance(test, gast.Compare) and len(test.ops) == 1:
            left, right = (
                self.static(test.left, binding, rule),
                self.static(test.comparators[0], binding, rule),
            )
            if isinstance(test.ops[0], (gast.Is, gast.IsNot)) and right == ("value", None):
                if left is None:
                    return None
                none = left == ("value", None)
                return none if isinstance(test.ops[0], gast.Is) else not none
            if left is None or right is None or left[0] != "value" or right[0] != "value":
                return None
            compare = COMPARISONS.get(type(test.ops[0]))
            return None if compare is None else bool(compare(left[1], right[1]))
        if isinstance(test, gast.Call) and isinstance(test.func, gast.Name) and test.func.id == "isinstance":
            return self.isinstance(test.args[0], test.args[1], binding, rule)
        if isinstance(test, gast.Call) and isinstance(test.func, gast.Attribute):
            fact = self.fact_of(binding[test.args[0].id]) if _parameter(test.args[0], binding) else UNKNOWN
            if test.func.attr in ("isrealobj", "iscomplexobj") and fact.real:
                return test.func.attr == "isrealobj"
            return None
        static = self.static(test, binding, rule)
        return bool(static[1]) if static is not None and static[0] == "value" else None

    def isinstance(self, value: Any, kinds: Any, binding: dict[str, Any], rule: Any) -> bool | None:
        if not _parameter(value, binding):
            return None
        static = self.static(value, binding, rule)
        names = kinds.elts if isinstance(kinds, gast.Tuple) else [kinds]
        types_ = tuple(_lookup(n, rule) for n in names)
        if static is not None and static[0] == "value" and all(isinstance(t, type) for t in types_):
            return isinstance(static[1], types_)
        fact = self.fact_of(binding[value.id])
        if fact.kind == "array" and all(isinstance(t, type) for t in types_):
            if np.ndarray in types_:
                return True
            if all(t in (float, int, complex, bool, list, tuple) for t in types_):
                return False
        if fact.kind == "scalar" and types_ == (np.ndarray,):
            return False
        return None

    def static(self, e: Any, binding: dict[str, Any], rule: Any) -> tuple[str, Any] | None:
        """("value", v) if an expression of a rule is known, ("some", None) if only that it is not None."""
        if isinstance(e, gast.Constant):
            return "value", e.value
        if _parameter(e, binding):
            bound = binding[e.id]
            if isinstance(bound, gast.Constant):
                return "value", bound.value
            fact = self.fact_of(bound)
            if fact.known and (fact.const is None or isinstance(fact.const, (bool, int, float, str))):
                return "value", fact.const
            return ("some", None) if fact.kind in ("scalar", "array", "tuple", "list", "dict") else None
        if isinstance(e, gast.Attribute) and e.attr == "ndim" and _parameter(e.value, binding):
            rank = self.fact_of(binding[e.value.id]).rank
            return None if rank is None else ("value", rank)
        if (
            isinstance(e, gast.Call)
            and isinstance(e.func, gast.Attribute)
            and e.func.attr == "ndim"
            and len(e.args) == 1
        ):
            rank = self.fact_of(binding[e.args[0].id]).rank if _parameter(e.args[0], binding) else None
            return None if rank is None else ("value", rank)
        return None

    # Expressions --------------------------------------------------------------------------------------------

    def put_in(self, e: Any, binding: dict[str, Any], rule: Any, bound: set[str]) -> Any:
        """An expression of a rule with the arguments in place of its parameters, simplified."""
        if isinstance(e, gast.Name):
            if e.id in binding:
                return clone(binding[e.id])
            if e.id in bound:
                raise KeyError(e.id)
            return self.outer(e, rule)
        if isinstance(e, gast.Attribute):
            owner = _lookup(e.value, rule)
            if isinstance(owner, types.ModuleType) and owner.__name__.split(".")[0] in (
                "srcgrad",
                "builtins",
            ):
                found = getattr(owner, e.attr)
                return self.outer(gast.Name(e.attr, gast.Load(), None, None), rule, found)
        if isinstance(e, gast.Call):
            short = self.contract(e, binding, rule, bound)
            if short is not None:
                return short
        if isinstance(e, dataflow.SCOPES):
            raise NotImplementedError("a rule's expression may not open a scope")
        for field in e._fields:
            value = getattr(e, field, None)
            if isinstance(value, list):
                setattr(
                    e,
                    field,
                    [self.put_in(v, binding, rule, bound) if isinstance(v, gast.AST) else v for v in value],
                )
            elif isinstance(value, gast.AST) and not isinstance(
                value, (gast.operator, gast.unaryop, gast.expr_context)
            ):
                setattr(e, field, self.put_in(value, binding, rule, bound))
        return self.simplify(e)

    def outer(self, e: Any, rule: Any, found: Any = None) -> Any:
        found = _lookup(e, rule) if found is None else found
        if getattr(builtins, e.id, None) is found and found is not None:
            if self.externals.scope.name(e.id) is found and e.id not in self.externals.scope.local:
                return e
        return self.externals.node(found, e.id)

    def contract(self, e: Any, binding: dict[str, Any], rule: Any, bound: set[str]) -> Any:
        """Support functions that known facts make superfluous."""
        function = _lookup(e.func, rule)
        if function is support.expand:
            args = [self.put_in(clone(a), binding, rule, bound) for a in e.args]
            whole = len(args) == 2 or (_is(args[2], None) and (len(args) < 4 or _is(args[3], False)))
            spread = self.fact_of(args[1]).kind in ("array", "scalar")
            if whole and spread and self.fact_of(args[0]).kind == "scalar":
                return args[0]  # a scalar cotangent broadcasts by itself
        if function in OPERATORS:
            template, harmless = OPERATORS[function]
            last = self.put_in(clone(e.args[-1]), binding, rule, bound)
            number = literal(last)
            inside = {n for a in e.args for n in dataflow.free_names(a)} & set(binding)
            arrays = any(self.fact_of(binding[n]).kind == "array" for n in inside)
            if arrays or (number is not None and harmless(number)):
                operands = dict(zip(("A", "B", "C"), e.args, strict=False))
                written = Substitute(operands).visit(gast.parse(template, mode="eval").body)
                return self.put_in(written, binding, rule, bound)
        if function is support.lowered:
            number = literal(self.put_in(clone(e.args[0]), binding, rule, bound))
            return None if number is None else constant(number - (number != 0))
        if function is support.count and len(e.args) == 1 and _parameter(e.args[0], binding):
            fact = self.fact_of(binding[e.args[0].id])
            if fact.kind == "array":
                twin = self.twin(fact)
                size = attribute(twin if twin else clone(binding[e.args[0].id]), "size")
                return gast.BoolOp(gast.Or(), [size, constant(1)])
            if fact.kind == "scalar":
                return constant(1)
        return None

    def simplify(self, e: Any) -> Any:
        if isinstance(e, gast.BinOp):
            a, b = e.left, e.right
            x, y = literal(a), literal(b)
            if x is not None and y is not None and type(e.op) in FOLDED:
                try:
                    return constant(FOLDED[type(e.op)](x, y))
                except ArithmeticError:
                    return e
            if isinstance(e.op, gast.Mult):
                return multiply(a, b)
            if isinstance(e.op, gast.Div):
                return divide(a, b)
            if isinstance(e.op, gast.Add):
                return add(a, b)
            if isinstance(e.op, gast.Sub):
                return a if is_number(b, 0) else subtract(a, b)
            if isinstance(e.op, gast.Pow) and is_number(b, 1):
                return a
            if isinstance(e.op, gast.Pow) and is_number(b, 0):
                return constant(1)
        if isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.USub):
            return negative(e.operand)
        if isinstance(e, gast.Compare) and len(e.ops) == 1:
            x, y = literal(e.left), literal(e.comparators[0])
            if x is not None and y is not None:
                return constant(int(COMPARISONS[type(e.ops[0])](x, y)))
        return e


COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    gast.Eq: operator.eq,
    gast.NotEq: operator.ne,
    gast.Lt: operator.lt,
    gast.LtE: operator.le,
    gast.Gt: operator.gt,
    gast.GtE: operator.ge,
    gast.Is: operator.is_,
    gast.IsNot: operator.is_not,
}
OPERATORS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    np.reciprocal: ("1 / A", bool),
    support.inverse: ("1 / A", bool),
    np.divide: ("A / B", bool),
    np.floor_divide: ("A // B", bool),
    np.power: ("A ** B", lambda n: isinstance(n, int) and n >= 0),
    support.power_slope: ("B * A ** C", lambda n: n <= -1 or n >= 0),
}
"""Functions that are an operator where an operand is an array, or where the last one is a number for which
Python's operator does the same on numbers."""
FOLDED: dict[type, Callable[[Any, Any], Any]] = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
}


def _parameter(e: Any, binding: dict[str, Any]) -> bool:
    return isinstance(e, gast.Name) and e.id in binding


def literal(e: Any) -> Any:
    """The number that an expression writes out, or None."""
    if isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.USub) and is_number(e.operand):
        return -e.operand.value
    return e.value if is_number(e) else None


def _is(e: Any, value: Any) -> bool:
    return isinstance(e, gast.Constant) and e.value is value


def _lookup(e: Any, rule: Any) -> Any:
    """What a free name (or attribute chain) of a rule refers to."""
    if isinstance(e, gast.Attribute):
        return getattr(_lookup(e.value, rule), e.attr, None)
    if not isinstance(e, gast.Name):
        return None
    found = rule.__globals__.get(e.id, getattr(builtins, e.id, None))
    if found is None and rule.__closure__:
        cells = dict(zip(rule.__code__.co_freevars, rule.__closure__, strict=True))
        found = cells[e.id].cell_contents if e.id in cells else None
    return found
