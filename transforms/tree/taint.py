"""A quick over-approximation, by name, of what may carry a differentiated value.

It decides what stays as the user wrote it: an expression that mentions no tainted name is never taken apart.
The exact answer is found later by the activity analysis.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Container, Iterable
from typing import Any

import gast

from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.results import result_of
from srcgrad.transforms.tree.sharing import CONSTANT_ATTRIBUTES, memory_of


class Taint:
    """`lookup(name)` gives what a name that the function does not bind refers to, `discrete(object)` whether
    the result of calling an object never carries a derivative, `written(call)` the arguments into which a
    callee may write; `carried` are names such as `size` that objects of the user's give to their own
    data."""

    def __init__(
        self,
        names: Iterable[str],
        body: list[Any],
        lookup: Callable[[Any], Any],
        discrete: Callable[[Any], bool],
        written: Callable[[Any], list[Any]] = lambda call: [],
        receiver: str = "",
        carried: Container[str] = (),
    ) -> None:
        self.names = set(names)
        self.lookup, self.discrete, self.written = lookup, discrete, written
        self.receiver, self.carried = receiver, carried
        self.views: dict[str, set[str]] = {}
        """Names whose memory another name may share: what is written through it reaches them."""
        self.spread(body)

    def spread(self, body: list[Any]) -> None:
        """Taints what the statements of `body` make from tainted names, until nothing more is added."""
        before = -1
        while before != len(self.names):
            before = len(self.names)
            self.block(body)

    def block(self, body: list[Any]) -> None:
        for s in body:
            self.note_views(s)
            if isinstance(s, (gast.Assign, gast.AnnAssign, gast.AugAssign)):
                if s.value is not None and self.expr(s.value):
                    for to in getattr(s, "targets", None) or [s.target]:
                        self.add_target(to, written=isinstance(s, gast.AugAssign))
            elif isinstance(s, gast.For):
                if self.expr(s.iter):
                    self.add_target(s.target)
            elif isinstance(s, gast.With):
                for item in s.items:
                    if item.optional_vars is not None and self.expr(item.context_expr):
                        self.add_target(item.optional_vars)
            elif isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                free = (
                    dataflow.free_names(s) if isinstance(s, gast.FunctionDef) else dataflow.free_names(s.body)
                )
                if free & self.names:
                    self.names.add(s.name)
            elif isinstance(s, gast.Match) and self.expr(s.subject):
                for c in s.cases:
                    self.names |= dataflow.bound_names([c.pattern])
            elif isinstance(s, gast.Expr) and isinstance(s.value, gast.Call):
                func = s.value.func
                known = self.lookup(func) is not None
                if (
                    isinstance(func, gast.Attribute)
                    and not known
                    and any(self.expr(a) for a in self.arguments(s.value))
                ):
                    self.add_target(func.value, True)
                elif any(self.expr(a) for a in self.arguments(s.value)) and not self.discrete_call(s.value):
                    for a in s.value.args:  # the callee may write one argument into another
                        self.add_target(a)
            for walrus in nodes.walk(s) if not isinstance(s, gast.FunctionDef) else ():
                if isinstance(walrus, gast.NamedExpr) and self.expr(walrus.value):
                    self.names.add(walrus.target.id)
                elif isinstance(walrus, gast.Call) and any(
                    self.expr(a) for a in [walrus.func, *self.arguments(walrus)]
                ):
                    for a in self.written(walrus):
                        self.add_target(a, True)
                    for a in result_of(walrus, self.lookup(walrus.func)):
                        self.add_target(a, True)
                    if isinstance(walrus.func, gast.Attribute) and self.lookup(walrus.func) is None:
                        self.add_target(walrus.func.value, True)  # a method may keep what it is given
                elif isinstance(walrus, gast.comprehension) and self.expr(walrus.iter):
                    self.names |= dataflow.stored(walrus.target)
            for inner in dataflow.blocks(s):
                self.block(inner)
            for c in getattr(s, "cases", []):
                self.block(c.body)

    def note_views(self, s: Any) -> None:
        """Notes which names a statement makes names for memory that has one."""
        pairs: list[tuple[Any, Any]] = []
        if isinstance(s, gast.Assign):
            pairs = [(to, s.value) for to in s.targets]
        elif isinstance(s, gast.AnnAssign) and s.value is not None:
            pairs = [(s.target, s.value)]
        elif isinstance(s, gast.For):
            pairs = [(s.target, s.iter)]
        elif isinstance(s, gast.With):
            pairs = [(i.optional_vars, i.context_expr) for i in s.items if i.optional_vars is not None]
        elif isinstance(s, gast.Match):
            pairs = [(name, s.subject) for name in dataflow.bound_names([c.pattern for c in s.cases])]
        pairs += [
            (e.target, e.value if isinstance(e, gast.NamedExpr) else e.iter)
            for e in dataflow.head_nodes(s)
            if isinstance(e, (gast.NamedExpr, gast.comprehension))
        ]
        for to, value in pairs:
            own, held = memory_of(value, self.lookup, lambda call: False)
            shared = {t.rstrip("*") for t in own | held}
            for n in {to} if isinstance(to, str) else dataflow.stored(to):
                self.views.setdefault(n, set()).update(shared - {n})

    def add_target(self, to: Any, written: bool = False) -> None:
        """Taints what a value is stored in; where it is `written` into memory, also what shares that."""
        if isinstance(to, gast.Name):
            if isinstance(self.lookup(to), types.ModuleType):
                return
            self.names.add(to.id)
            todo = [to.id] if written else []
            seen = set(todo)
            while todo:
                shared = self.views.get(todo.pop(), set()) - seen
                seen |= shared
                self.names |= shared
                todo += shared
        elif isinstance(to, (gast.Tuple, gast.List)):
            for t in to.elts:
                self.add_target(t, written)
        elif isinstance(to, gast.Starred):
            self.add_target(to.value, written)
        elif isinstance(to, (gast.Subscript, gast.Attribute)):
            self.add_target(to.value, True)
        elif isinstance(to, gast.Call) and isinstance(to.func, gast.Attribute):
            if self.lookup(to.func) is None:  # a method, whose result may be a part of its object
                self.add_target(to.func.value, True)

    def arguments(self, call: Any) -> list[Any]:
        return [*call.args, *(k.value for k in call.keywords)]

    def discrete_call(self, call: Any) -> bool:
        """Does a call give what carries no derivative? What `where` leaves out stays in `out`."""
        found = self.lookup(call.func)
        filled = any(self.expr(place) for place in result_of(call, found))
        return found is not None and self.discrete(found) and not filled

    def through(self, names: set[str], e: Any) -> bool:
        """May the value of `e` carry what these names carry?"""
        kept, self.names = self.names, names
        try:
            return self.expr(e)
        finally:
            self.names = kept

    def expr(self, e: Any) -> bool:
        """May the value of `e` carry a derivative?"""
        if isinstance(e, gast.Name):
            return e.id in self.names
        if isinstance(e, (gast.Constant, gast.Compare, gast.JoinedStr)):
            return False
        if isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.Not):
            return False
        if isinstance(e, gast.Attribute):
            if e.attr in CONSTANT_ATTRIBUTES and e.attr not in self.carried:
                return False
            return self.expr(e.value)
        if isinstance(e, gast.Subscript):
            joins = isinstance(e.value, gast.Attribute) and e.value.attr in ("r_", "c_")
            return self.expr(e.value) or (joins and self.expr(e.slice))
        if isinstance(e, gast.IfExp):
            return self.expr(e.body) or self.expr(e.orelse)
        if isinstance(e, gast.Call):
            if self.discrete_call(e):
                return False
            if isinstance(e.func, gast.Name) and e.func.id == "super" and not e.args:
                return self.receiver in self.names
            return self.expr(e.func) or any(self.expr(a) for a in self.arguments(e))
        if isinstance(e, (gast.ListComp, gast.SetComp, gast.GeneratorExp)):
            return self.expr(e.elt)
        if isinstance(e, gast.DictComp):
            return self.expr(e.value)
        if isinstance(e, gast.Lambda):
            return bool(dataflow.free_names(e) & self.names)
        return any(self.expr(c) for c in nodes.children(e) if isinstance(c, gast.AST))
