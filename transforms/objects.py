"""Objects: what a statement does with an instance of a class, as calls of the functions that it holds.

A part of `normalize`: operators, subscripts, loops, properties and stores whose meaning a class decides.
Where the class is known they become calls of its methods; where an object may come but need not, calls of the
functions in `srcgrad.runtime.operators`, at which the dispatcher looks when it meets the operands.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import types
from typing import TYPE_CHECKING, Any

import gast

from srcgrad.runtime import dispatch, operators
from srcgrad.transforms.facts import UNKNOWN, Fact, class_attribute
from srcgrad.transforms.read import read
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import assign, at, call, clone, constant, expression, if_, name
from srcgrad.transforms.tree.sight import BINARY, Sight, resolved

if TYPE_CHECKING:
    from srcgrad.transforms.tree.names import Names
    from srcgrad.transforms.tree.taint import Taint

Block = list[Any]
UNSURE = ("unknown", "object", "bottom")
"""Kinds of values that may be objects."""
PLAIN: set[Any] = {*operators.BINARY, operators.neg, operators.pos} - {operators.power}
FUNCTIONS: dict[Any, Any] = {getattr(operator, f.__name__): f for f in PLAIN}
FUNCTIONS |= {
    builtins.abs: operators.absolute,
    builtins.float: operators.number,
    operator.getitem: operators.getitem,
}
CONSUMERS = (list, tuple, sum, max, min, sorted, math.fsum, math.prod)
"""Functions of one argument that take the elements of an object."""


def kind_of(e: Any) -> Fact:
    found: Fact = getattr(e, "fact", UNKNOWN)
    return found


class Objects:
    """What `normalize` asks about objects; it gives the rest."""

    sight: Sight
    names: Names
    taint: Taint

    if TYPE_CHECKING:

        def atom(self, e: Any, s: Any, out: Block) -> Any: ...
        def argument(self, e: Any, s: Any, out: Block) -> Any: ...
        def index(self, e: Any, s: Any, out: Block) -> Any: ...
        def value(self, e: Any, s: Any, out: Block, taint: bool = False) -> Any: ...
        def temporary(
            self, e: Any, s: Any, out: Block, base: str = "", tainted: bool | None = None
        ) -> Any: ...
        def support(self, function: Any) -> Any: ...
        def block(self, body: Block) -> Block: ...
        def stmt_For(self, s: Any, out: Block) -> None: ...

    def met(self, function: Any, *operands: Any) -> Any:
        """How an operator on these expressions is computed: (method, swapped), "met" where the run decides,
        None where it is that of numbers, arrays and containers."""
        facts = [kind_of(o) for o in operands]
        found = resolved(function, *facts)
        if found is None and (function is operators.or_ or self.sight.may(function)):
            looked = facts[:1] if function in operators.UNARY else facts
            found = "met" if any(f.kind in UNSURE for f in looked) else None
        if found is None and function in (operators.add, operators.mul):
            kinds = {f.kind for f in facts}
            if "unknown" in kinds and kinds & {"list", "tuple"} and any(map(self.taint.expr, operands)):
                return (
                    "met"  # the run tells whether a sequence is joined or repeated, or is an array's numbers
                )
        return found

    def operated(self, function: Any, operands: list[Any], s: Any, out: Block) -> Any:
        """An operator whose meaning an object decides, as a call; None for others."""
        found = self.met(function, *operands)
        if found is None:
            return None
        atoms = [self.argument(o, s, out) for o in operands]
        if function is operators.pow and not self.taint.expr(operands[1]):
            function = operators.power
        if found == "met":
            return gast.Call(self.support(function), atoms, [])
        method, swapped = found
        return gast.Call(self.support(method), atoms[::-1] if swapped else atoms, [])

    def elements(self, e: Any, s: Any, out: Block) -> Any:
        """The elements of an object, as its class gives them; None for other values."""
        found = self.operated(operators.elements, [e], s, out)
        return None if found is None else self.temporary(at(found, e), s, out, "items", tainted=True)

    # Attributes ---------------------------------------------------------------------------------------------

    def computed(self, e: Any, s: Any, out: Block) -> Any:
        """An attribute that a class computes, as a call; None for others."""
        owner = kind_of(e.value)
        if owner.kind == "instance":
            if class_attribute(owner.items, e.attr) is None:
                return None
            read = dispatch.reader(owner.items, e.attr)
            return None if read is None else gast.Call(self.support(read), [self.atom(e.value, s, out)], [])
        if owner.kind in UNSURE and e.attr in self.sight.attributes:
            x = self.atom(e.value, s, out)
            return gast.Call(self.support(operators.attribute), [x, constant(e.attr)], [])
        return None

    def stored(self, to: Any, value: Any, s: Any, out: Block) -> bool:
        """A store that a class computes, `x[i] = v` or `x.a = v`, as a statement; False for others."""
        owner = kind_of(to.value)
        if owner.kind != "instance":
            return False
        if isinstance(to, gast.Subscript):
            method = operators.method(owner.items, "__setitem__")
            given = [_as_argument(to.slice), value]
        else:
            found = class_attribute(owner.items, to.attr)
            method, given = getattr(found, "fset", None), [value]
        if not isinstance(method, types.FunctionType):
            return False
        atoms = [self.argument(a, s, out) for a in [to.value, *given]]
        out.append(expression(gast.Call(self.support(method), atoms, []), s))
        return True

    # Statements ---------------------------------------------------------------------------------------------

    def updated(self, s: Any, out: Block) -> bool:
        """`x += v` of an object, or of what may be one; False for others."""
        to, function = s.target, BINARY.get(type(s.op))
        owner = kind_of(to)
        if function is None:
            return False
        read = at(name(to.id), to)
        read.fact = owner
        method_name = operators.INPLACE[function]
        if owner.kind == "instance":
            method = operators.method(owner.items, method_name)
            value: Any = gast.BinOp(read, s.op, s.value)
            if isinstance(method, types.FunctionType):
                value = gast.Call(self.support(method), [read, self.atom(s.value, s, out)], [])
            out.append(assign(to.id, self.value(at(value, to), s, out, taint=True), s))
            return True
        if self.met(function, read, s.value) is None or owner.kind in ("array", "list"):
            return False
        value = self.atom(s.value, s, out)
        test = call(self.support(operators.rebinds), self.support(function), read, clone(value))
        called = gast.Call(self.support(function), [clone(read), clone(value)], [])
        other = at(gast.AugAssign(to, s.op, value), s)
        out.append(if_(test, [assign(to.id, at(called, to), s)], [other], s))
        return True

    def managed(self, s: Any, out: Block) -> bool:
        """`with` on an object whose `__enter__` and `__exit__` are known, as calls of them; False for
        others."""
        owner = kind_of(s.items[0].context_expr)
        if owner.kind != "instance":
            return False
        enter, leave = (operators.method(owner.items, n) for n in ("__enter__", "__exit__"))
        if not (isinstance(enter, types.FunctionType) and isinstance(leave, types.FunctionType)):
            return False
        inner = s.body if len(s.items) == 1 else [at(gast.With(s.items[1:], s.body, None), s)]
        to = s.items[0].optional_vars
        manager = s.items[0].context_expr
        itself = gives_itself(enter)
        bound = dataflow.bound_names(s.body)
        if itself and isinstance(to, gast.Name) and to.id not in bound:
            out += self.block([assign(to, manager, s)])
            manager, to = name(to.id), None
        elif not isinstance(manager, gast.Name) or manager.id in bound:
            manager = self.temporary(manager, s, out, "manager", tainted=True)
        manager.fact = owner
        entered = at(gast.Call(self.support(enter), [manager], []), s)
        out += self.block([expression(entered, s) if to is None else assign(to, entered, s)])
        guard = call(self.support(operators.Leaving), clone(manager))
        out.append(at(gast.With([gast.withitem(guard, None)], self.block(inner), None), s))
        none = constant(None)
        left = gast.Call(self.support(leave), [clone(manager), none, clone(none), clone(none)], [])
        out += self.block([expression(at(left, s), s)])
        return True

    # Calls --------------------------------------------------------------------------------------------------

    def called(self, function: Any, e: Any, s: Any, out: Block) -> Any:
        """A call of `operator.add`, `abs`, `sum` and the like on objects; None for others."""
        if e.keywords or any(isinstance(a, gast.Starred) for a in e.args):
            return None
        if function is getattr and len(e.args) == 2:
            return gast.Call(self.support(operators.attribute), [self.atom(a, s, out) for a in e.args], [])
        known = function is float or isinstance(function, types.BuiltinFunctionType)
        same = FUNCTIONS.get(function) if known else None
        if same is not None and len(e.args) == (
            1 if same in operators.UNARY and same is not operators.getitem else 2
        ):
            return self.operated(same, list(e.args), s, out)
        if function is sum and e.args and self.sight.may(operators.add):
            return self.summed(e, s, out)
        return None

    def consumed(self, function: Any, args: list[Any], s: Any, out: Block) -> list[Any]:
        """The arguments of a function, with the elements of an object in its place."""
        if len(args) != 1 or isinstance(args[0], gast.Starred):
            return args
        if not any(function is c for c in CONSUMERS) or not self.taint.expr(args[0]):
            return args
        found = self.elements(args[0], s, out)
        return args if found is None else [found]

    def summed(self, e: Any, s: Any, out: Block) -> Any:
        """`sum(xs, start)` where the elements may be objects: one addition after another."""
        inner = getattr(kind_of(e.args[0]), "items", None)
        if kind_of(e.args[0]).kind == "array" or getattr(inner, "kind", "") in ("scalar", "array", "numeric"):
            return None
        total, item = self.names.fresh("total"), self.names.fresh("item")
        self.taint.names |= {total, item}
        out.append(assign(total, e.args[1] if len(e.args) > 1 else constant(0), s))
        added = at(gast.BinOp(name(total), gast.Add(), name(item)), e)
        if isinstance(inner, Fact):
            added.right.fact = inner
        store = gast.Name(item, gast.Store(), None, None)
        self.stmt_For(at(gast.For(store, e.args[0], [assign(total, added, s)], [], None), s), out)
        return name(total)


@functools.lru_cache(maxsize=1024)
def gives_itself(function: Any) -> bool:
    """Is what a function returns always its first argument, as of a method that ends with `return self`?"""
    if not isinstance(function, types.FunctionType) or function.__code__.co_filename.startswith("<srcgrad"):
        return False
    try:
        tree = read(function).tree
    except Exception:
        return False
    first = next((p.id for p in dataflow.parameters(tree)), None)
    returns = [n for n in _own(tree.body) if isinstance(n, gast.Return)]
    names = [getattr(r.value, "id", None) for r in returns]
    ended = bool(tree.body) and isinstance(tree.body[-1], gast.Return)
    return bool(ended and set(names) == {first} and first not in dataflow.bound_names(tree.body))


def _own(body: list[Any]) -> Any:
    """The nodes of a body, but for those of functions and classes defined in it."""
    todo = list(body)
    while todo:
        n = todo.pop()
        yield n
        if not isinstance(n, (gast.FunctionDef, gast.ClassDef, gast.Lambda)):
            todo += nodes.children(n)


def _as_argument(index: Any) -> Any:
    from srcgrad.transforms.normalize import as_argument

    return as_argument(index)
