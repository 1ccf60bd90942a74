"""Reverse: the adjoint of a normalized function, statement by statement, last first.

Before: normalized statements with facts, the set of active names.
After:  the same statements, calls of Python functions replaced by calls of their forward halves; and the
statements of the
        reverse sweep, which read primal values by name. Which of these must be recorded is the next pass's
        business.
Why here: needs to know of each name whether it is active, and of each operation its rule.

Within one block contributions to a cotangent are collected as expressions and written out when the cotangent
is read, as one sum; nothing is zeroed and then added to. Cotangents of names that live longer than a block
are variables, `x_bar`. Names that are indexed or written in place have their cotangent in a buffer that
belongs to the sweep. Griewank & Walther, "Evaluating Derivatives", section 3.2 (incremental reverse mode) and
4.2 (overwriting).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import late, support, trees
from srcgrad.runtime.errors import NoRule, SrcgradError, UnsupportedSyntax
from srcgrad.runtime.rules import table
from srcgrad.transforms import facts as facts_module
from srcgrad.transforms import resolve
from srcgrad.transforms.activity import statements
from srcgrad.transforms.facts import UNKNOWN, Fact, Interpreter
from srcgrad.transforms.normalize import basic_index
from srcgrad.transforms.read import Source, fail
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import (
    assign,
    assign_tuple,
    attribute,
    augment,
    call,
    clone,
    constant,
    expression,
    is_number,
    is_zero,
    list_,
    multiply,
    name,
    negative,
    root,
    subscript,
    total,
)
from srcgrad.transforms.tree.externals import Externals
from srcgrad.transforms.tree.guards import holds_floats, plain_attribute, plain_elements
from srcgrad.transforms.tree.inline import Inliner
from srcgrad.transforms.tree.names import Names
from srcgrad.transforms.tree.scope import MISSING

Block = list[Any]
Masks = tuple[tuple[str, bool], ...]
NUMBERS = ("scalar", "array", "numeric")


@dataclass
class Term:
    """One contribution to a cotangent: an expression, and the user's statement that it comes from."""

    value: Any
    origin: Any = None
    masks: Masks = ()
    """Conditions where the contribution is an exact 0 unless they are what is told."""
    _reads: tuple[Any, set[str]] | None = None

    @property
    def reads(self) -> set[str]:
        """The names that the expression reads."""
        if self._reads is None or self._reads[0] is not self.value:
            self._reads = (self.value, mentioned(self.value))
        return self._reads[1]


@dataclass
class Scope:
    """The state of one block of the reverse sweep."""

    local: set[str]
    loop: bool = False
    out: Block = field(default_factory=list)
    pending: dict[str, list[Term]] = field(default_factory=dict)
    items: dict[str, dict[Any, list[Term]]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Local names whose variable x_bar holds a part of the cotangent."""
    moved: set[str] = field(default_factory=set)
    """Outer names whose variable's content went to another name and is to be overwritten."""
    touched: dict[str, str] = field(default_factory=dict)
    """Outer names that are contributed to: "add" or "buffer"."""


class Reverse:
    """The reverse sweep of one function. `pair(call node, operation, active operands)` gives the derivative
    pair of a Python callee."""

    def __init__(
        self,
        source: Source,
        tree: gast.FunctionDef,
        names: Names,
        interpreter: Interpreter,
        active: set[str],
        externals: Externals,
        pair: Callable[..., Any],
    ) -> None:
        self.source, self.tree, self.names, self.active = source, tree, names, active
        self.interpreter, self.externals, self.pair = interpreter, externals, pair
        self.facts = dict(interpreter.all)
        interpreter.env = dict(self.facts)
        self.inliner = Inliner(externals, self.fact)
        self.inliner.parameters = {p.id for p in dataflow.parameters(tree)}
        self.bars: dict[str, str] = {}
        self.bar_names: dict[str, str] = {}
        self.home: dict[str, int] = {}
        self.snapshots: dict[tuple[int, str], str] = {}
        self.after: dict[int, Block] = {}
        self.before: dict[int, Block] = {}
        self.aliases: Any = None
        self.unbound: set[str] = set()
        self._certain: set[str] | None = None
        self._predefined: set[str] | None = None
        self.current: Any = None
        self.replaced: dict[int, Block] = {}
        self.uses_dispatch = False
        self.masks: Masks = ()
        self.unknowns = False
        self.bindings: Counter[str] | None = None
        self.scope = Scope(set())
        self.origin: Any = None
        self.runs_once = False
        self.shadows: set[str] = set()
        """Arrays whose cotangents are made in the forward sweep, since they share memory with one another."""
        self.start: Block = []

    # Entry --------------------------------------------------------------------------------------------------

    def function(
        self, seed: Callable[[Any], Any], wanted: list[str], incoming: dict[str, str]
    ) -> tuple[Any, Block, list[Any]]:
        """The result's expression, the reverse sweep's statements, and the cotangent expressions of `wanted`.

        `seed(result)` gives the cotangent expression of the result, `incoming` the names of the cotangents,
        after the call, of parameters that the function changes."""
        body = self.tree.body
        assert isinstance(body[-1], gast.Return)
        result = body[-1].value
        self.find_homes()
        self.make_shadows()
        scope = self.scope = Scope({n for n, h in self.home.items() if h == id(body)})
        self.origin = getattr(body[-1], "origin", None)
        if isinstance(result, gast.Tuple):
            given = seed(result)
            for i, e in enumerate(result.elts):
                inner = e.value if isinstance(e, gast.Starred) else e
                if isinstance(inner, gast.Name) and inner.id in self.active:
                    part = (
                        given[i]
                        if isinstance(given, list)
                        else self.matched(subscript(clone(given), constant(i)), inner.id)
                    )
                    self.contribute(inner.id, part)
        elif isinstance(result, gast.Name) and result.id in self.active:
            self.contribute(result.id, seed(result))
        for n, bar in incoming.items():
            self.know(bar, self.facts.get(n, UNKNOWN) if self.kind(n) in NUMBERS else UNKNOWN)
            self.contribute(n, name(bar))
        self.block(body[:-1], scope)
        outputs = []
        for w in wanted:
            outputs.append(self.whole(w, scope) if w in self.active else None)
            if w in self.shadows and not self.runs_once:
                outputs[-1] = self.temporary(self.bar(w), call(attribute(self.bar(w), "copy")))
                self.reset(w)
        if not self.runs_once:
            others = {p.id for p in dataflow.parameters(self.tree)} & self.shadows - set(wanted)
            for n in sorted(others):
                self.reset(n)
        return result, scope.out, outputs

    def find_homes(self) -> None:
        """For each name the innermost block that holds all its occurrences (a value carried by a loop lives
        outside it)."""
        paths: dict[str, tuple[int, ...]] = {}

        def meet(n: str, path: tuple[int, ...]) -> None:
            known = paths.get(n)
            if known is None:
                paths[n] = path
                return
            common = 0
            while common < min(len(known), len(path)) and known[common] == path[common]:
                common += 1
            paths[n] = path[:common]

        def visit(block: Block, path: tuple[int, ...], own: int = 0) -> None:
            path = (*path, own or id(block))
            for s in block:
                for n in dataflow.head_reads(s):
                    meet(n, path)
                binds = dataflow.head_binds(s)
                inner_first = isinstance(s, gast.For)
                for n in binds:
                    meet(n, (*path, id(s.body)) if inner_first else path)
                if isinstance(s, (gast.For, gast.While)):
                    live = _carried(s)
                    for n in live:
                        meet(n, path)
                for inner in dataflow.blocks(s):
                    # The `else` of a `try` goes on where its body ended; `with` and `finally` run once, in
                    # line.
                    tried = isinstance(s, gast.Try)
                    if isinstance(s, gast.With) or (tried and (not s.handlers or inner is s.finalbody)):
                        visit(inner, path[:-1], path[-1])
                    else:
                        follows = tried and inner is s.orelse
                        visit(inner, path, id(s.body) if follows else 0)

        body = self.tree.body
        for p in dataflow.parameters(self.tree):
            meet(p.id, (id(body),))
        visit(body, ())
        self.home = {n: p[-1] for n, p in paths.items() if p}

    # Cotangents that share memory ---------------------------------------------------------------------------

    def make_shadows(self) -> None:
        """Where names for one memory are written in place, their cotangents are names for one memory too:
        each is made where its name is bound, as zeros or as the same view of another. What is written through
        one of them is then seen through the others, in the reverse sweep as in the primal."""
        if self.aliases is None or not self.aliases.shadowed:
            return
        self.shadows = self.aliases.shadowed
        self.start = [self.shadow(p.id) for p in dataflow.parameters(self.tree) if p.id in self.shadows]
        for s in statements(self.tree.body):
            if id(s) in self.aliases.mirrors and s.targets[0].id in self.shadows:
                made = self.shadow(s.targets[0].id, s, self.aliases.mirrors[id(s)])
                self.after.setdefault(id(s), []).append(made)
            elif getattr(s, "predefined", False) and s.targets[0].id in self.shadows:
                made = assign(self.bar(s.targets[0].id), constant(None), s)
                self.after.setdefault(id(s), []).append(made)

    def shadow(self, v: str, s: Any = None, base: str | None = None) -> Any:
        """The statement that makes the cotangent of `v`."""
        if base not in self.shadows:
            zeros = self.np("zeros_like") if self.facts[v].real > 1 else self.external(trees.zeros_like)
            return assign(self.bar(v), call(zeros, name(v)), s)
        view = clone(s.value)
        bar = name(self.bar(base))
        if isinstance(view, gast.Name):
            view = bar
        elif isinstance(view, (gast.Subscript, gast.Attribute)):
            view.value = bar
        else:
            if isinstance(view.func, gast.Attribute) and isinstance(view.func.value, gast.Name):
                view.func.value = bar if view.func.value.id == base else view.func.value
            view.args = [bar if isinstance(a, gast.Name) and a.id == base else a for a in view.args]
            place = constant(f"{self.source.filename}:{getattr(s, 'lineno', 0)}")
            shared = self.external(trees.same_view)
            view = call(shared, view, name(v), clone(bar), name(base), constant(v), place)
        return assign(self.bar(v), view, s)

    def made_new(self, s: Any) -> bool:
        """Does the definition `s` give a name memory of its own?"""
        return id(s) in self.aliases.mirrors and self.aliases.mirrors[id(s)] not in self.shadows

    def spent(self, s: Any, v: str) -> None:
        """Called when the cotangent of `v` has been handed on by its definition `s`."""
        if v in self.shadows and self.made_new(s) and not self.runs_once:
            self.settle({self.bar(v)}, copies=True)
            self.reset(v)

    def reset(self, n: str) -> None:
        """Makes the cotangent of `n` zero again, for a pullback that is called again."""
        self.emit(
            assign(subscript(name(self.bar(n)), gast.Slice(None, None, None), store=True), constant(0.0))
        )

    def to_shadow(self, n: str, value: Any, item: Any) -> None:
        """Adds a contribution to a cotangent that shares memory with others, at once."""
        bars = sorted(self.bar(m) for m in self.shadows)
        value = self.stable(value)
        for bar in bars:
            if self.crossed(bar, value, ""):
                value = self.temporary(self.bar(n), self.owned(value, n))
                break
        self.settle(set(bars), copies=True)
        if item is not None:
            self.emit_item(n, _key_node(item), value)
        else:
            made = accumulation(self.bar(n), value)
            made.ours = False  # it stays in place
            self.emit(made)

    # Facts and names ----------------------------------------------------------------------------------------

    def fact(self, e: Any) -> Fact:
        if isinstance(e, gast.Name):
            found = self.interpreter.env.get(e.id)
            if found is not None:
                return found
            if e.id in self.externals.objects:
                return facts_module.of_global(self.externals.objects[e.id])
        old = self.interpreter.scope
        return self.interpreter.expr(clone(e)) if old is not None else UNKNOWN

    def know(self, n: str, fact: Fact) -> None:
        self.interpreter.env[n] = fact

    def bar(self, n: str) -> str:
        if n not in self.bars:
            self.bars[n] = self.names.fresh(n + "_bar")
            fact = self.facts.get(n, UNKNOWN)
            if fact.kind in ("tuple", "dict", "list"):
                fact = Fact(fact.kind if fact.kind != "tuple" else "list")
            elif fact.kind not in ("scalar", "array", "numeric"):
                fact = UNKNOWN
            self.know(self.bars[n], replace(fact, const=MISSING))
        return self.bars[n]

    def temporary(self, base: str, value: Any) -> gast.Name:
        made = self.names.fresh(base)
        self.know(made, self.fact(value))
        self.emit(assign(made, self.stable(value)))
        return name(made)

    def external(self, value: Any) -> gast.Name:
        return self.externals.node(value)

    def np(self, function: str) -> Any:
        return attribute(self.external(np), function)

    def emit(self, s: Any, origin: Any = None) -> None:
        if isinstance(s, gast.Assign) and is_number(s.value):
            s.value = constant(float(s.value.value))  # a cotangent is never an int
        s.origin = origin or self.origin
        s.adjoint = True
        self.scope.out.append(s)

    def kind(self, n: str) -> str:
        return self.facts.get(n, UNKNOWN).kind

    def temp_like(self, n: str) -> bool:
        return n in self.names_of_temporaries

    names_of_temporaries: set[str] = set()

    # Contributions ------------------------------------------------------------------------------------------

    def contribute(self, n: str, value: Any, item: Any = None, masks: Masks = ()) -> None:
        if n not in self.active or is_zero(value):
            return
        if n in self.shadows:
            self.to_shadow(n, value, item)
            return
        term = Term(self.stable(value), self.origin, masks)
        if item is not None:
            self.scope.items.setdefault(n, {}).setdefault(item, []).append(term)
        else:
            self.scope.pending.setdefault(n, []).append(term)
        if n not in self.scope.local:
            self.scope.touched.setdefault(n, "add")

    def stable(self, value: Any) -> Any:
        """`value` with a recorded copy in place of each primal value that is overwritten before the reverse
        sweep. What it took from later statements was made stable there, and is left as it is."""
        if self.aliases is None or self.current is None or not self.aliases.overwrites:
            return value
        value = clone(value)
        fresh = [n for n in nodes.walk(value) if isinstance(n, gast.Name) and not hasattr(n, "stable")]
        lengths = {n.id for n in fresh if n.id in self.facts and self.kind(n.id) not in NUMBERS}
        read = value_names(value)
        for n in fresh:
            n.stable = True
            if n.id in self.facts and n.id in read | lengths and self.aliases.overwritten(n.id, self.current):
                n.id = self.snapshot(n.id)
        return value

    def snapshot(self, n: str, first: bool = False) -> str:
        """The name of a copy of `n` as it is at the current statement; before it, if `first`."""
        key = (id(self.current), n)
        if key not in self.snapshots:
            made = self.names.fresh(n + "_saved")
            self.facts[made] = self.facts[n]
            self.know(made, self.facts[n])
            sure = self.kind(n) == "array" and n not in self.predefined()
            copied = call(attribute(n, "copy")) if sure else call(self.external(trees.snapshot), name(n))
            # What an update reads has changed once it is done.
            when = self.before if first or isinstance(self.current, gast.AugAssign) else self.after
            when.setdefault(id(self.current), []).append(assign(made, copied, self.current))
            self.snapshots[key] = made
        return self.snapshots[key]

    def predefined(self) -> set[str]:
        """Names that are None where what binds them does not run."""
        if self._predefined is None:
            every = [s for s in statements(self.tree.body) if isinstance(s, gast.Assign)]
            found = {s.targets[0].id for s in every if getattr(s, "predefined", False)}
            copies = [s for s in every if all(isinstance(e, gast.Name) for e in (s.value, s.targets[0]))]
            size = -1
            while size != len(found):
                size = len(found)
                found |= {s.targets[0].id for s in copies if s.value.id in found}
            self._predefined = found
        return self._predefined

    def has(self, n: str) -> bool:
        s = self.scope
        return n in self.shadows or bool(
            s.pending.get(n) or s.items.get(n) or n in s.held or (n not in s.local and n not in s.moved)
        )

    def sum_of(self, terms: list[Term], n: str) -> Any:
        """The sum of contributions; equal ones are counted, and those of containers added by a helper."""
        values: list[Any] = []
        seen: dict[str, int] = {}
        for t in terms:
            key = gast.dump(t.value)
            if key in seen and self.kind(n) in NUMBERS:
                position = seen[key]
                values[position] = (
                    multiply(constant(2), values[position])
                    if not isinstance(values[position], tuple)
                    else None
                )
                del seen[key]
                continue
            seen[key] = len(values)
            values.append(t.value)
        if self.kind(n) not in NUMBERS:
            result = values[0]
            for v in values[1:]:
                result = call(self.external(trees.add), result, v)
            return result
        return total(values)

    def take(self, n: str) -> tuple[Any, Any] | None:
        """The cotangent of a local name as an expression, with its origin; it is then gone. None if it is
        zero."""
        s = self.scope
        terms = s.pending.pop(n, [])
        origin = terms[-1].origin if terms else self.origin
        items = s.items.pop(n, None)
        if items:
            built = self.display(n, items) if not terms and n not in s.held else None
            if built is not None:
                terms = [Term(built, self.origin)]
            else:
                s.items[n] = items
                s.pending[n] = terms
                self.buffer(n)
                terms = []
        if n in s.held:
            s.held.discard(n)
            terms = [Term(name(self.bar(n)), None), *terms]
        if not terms:
            return None
        return self.sum_of(terms, n), origin

    def display(self, n: str, items: dict[Any, list[Term]]) -> Any:
        """The cotangent of a tuple of known length as a list display."""
        fact = self.facts.get(n, UNKNOWN)
        if fact.kind != "tuple" or fact.items is None:
            return None
        if not all(isinstance(k, int) and -len(fact.items) <= k < len(fact.items) for k in items):
            return None
        parts = []
        for i, f in enumerate(fact.items):
            terms = items.get(i, []) + items.get(i - len(fact.items), [])
            values = [t.value for t in terms]
            if not values:
                parts.append(constant(0.0))
            elif f.kind in ("scalar", "array", "numeric"):
                parts.append(total(values))
            else:
                result = values[0]
                for v in values[1:]:
                    result = call(self.external(trees.add), result, v)
                parts.append(result)
        return list_(parts)

    def zero(self, n: str) -> Any:
        kind = self.kind(n)
        if kind == "scalar":
            return constant(0.0)
        if n not in self.certain():
            self.unbound |= {n} & self.facts.keys()  # and not what is from outside
            return call(self.external(trees.zeros_like), name(n))
        if kind not in NUMBERS and n in self.facts and self.grows_after(n):
            # A list that the statement changes through another name had another length under this one.
            inside = {id(x) for x in statements([self.current])}
            itself = any(w.rstrip("*") == n and where in inside for w, where in self.aliases.writes)
            n = self.snapshot(n, first=bool(dataflow.blocks(self.current)) and not itself)
        if kind == "array" and self.facts[n].real > 1:
            return call(self.np("zeros_like"), name(n))
        return call(self.external(trees.zero_list if kind == "list" else trees.zeros_like), name(n))

    def grows_after(self, n: str) -> bool:
        """Is a container changed after the current statement, which may change its structure?"""
        return (
            self.current is not None
            and self.aliases is not None
            and self.aliases.overwrites
            and self.aliases.overwritten(n, self.current)
        )

    def certain(self) -> set[str]:
        """Names that every path through the function binds; others get a value at the start if the sweep
        reads them."""
        if self._certain is None:
            self._certain = _bound_inside(self.tree.body) | {p.id for p in dataflow.parameters(self.tree)}
        return self._certain

    def full(self, value: Any, n: str) -> Any:
        """A cotangent expression in the full shape of `n`: a scalar that stands for a whole array is
        spread."""
        return self.filled(value, n) if self.kind(n) == "array" else value

    def filled(self, g: Any, n: str) -> Any:
        """A scalar that stands for the whole cotangent of the array `n`, spread; others as they are."""
        if self.fact(g).kind != "scalar":
            return g
        if self.facts.get(n, UNKNOWN).real > 1:
            return call(self.np("full_like"), name(n), g)
        return call(self.external(support.unbroadcast), g, name(n))  # n may hold integers

    def owned(self, value: Any, n: str) -> Any:
        """An expression whose value nobody else holds."""
        kind = self.kind(n)
        if kind == "scalar" or fresh(value):
            return value
        if kind == "array":
            return call(self.np("array"), value)
        if isinstance(value, (gast.List, gast.Dict)):
            return value
        return call(self.external(trees.copy), value)

    def buffer(self, n: str) -> str:
        """Makes sure that x_bar is a variable in this scope that may be changed in place; returns its
        name."""
        s, bar = self.scope, self.bar(n)
        if n in self.shadows:
            self.settle({self.bar(m) for m in self.shadows}, copies=True)
            return bar
        in_place = n in s.held or (n not in s.local and n not in s.moved)
        self.settle({bar}, but=n, copies=in_place)
        terms = s.pending.pop(n, [])
        items = s.items.pop(n, {})
        for t in [t for parts in items.values() for t in parts]:
            t.value = self.apart(t.value, n)
        outer = n not in s.local
        if n in s.held or (outer and n not in s.moved):
            if outer:
                s.touched[n] = "buffer"
            if terms:
                self.accumulate(n, self.sum_of(terms, n))
        else:
            if outer:
                s.touched.setdefault(n, "add")
                s.moved.discard(n)
            else:
                s.held.add(n)
            value = self.owned(self.full(self.sum_of(terms, n), n), n) if terms else self.zero(n)
            if terms and self.kind(n) == "list":
                value = call(self.external(trees.buffer_list), value, name(n))
            elif terms and self.kind(n) not in NUMBERS:
                value = call(self.external(trees.copy), call(self.external(trees.match), value, name(n)))
            self.emit(assign(bar, value), terms[-1].origin if terms else None)
        for key, parts in items.items():
            for t in parts:
                self.emit_item(n, _key_node(key), t.value)
        return bar

    def apart(self, value: Any, n: str) -> Any:
        """`value` as it is before the variable of `n`'s cotangent changes."""
        s, bar = self.scope, self.bars.get(n)
        if bar is None or n in self.shadows:
            return value
        value = self.settled(bar, value, n)
        if bar not in mentioned(value):
            return value
        in_place = n in s.held or (n not in s.local and n not in s.moved)
        return self.temporary(bar, self.owned(value, n) if in_place else value)

    def accumulate(self, n: str, value: Any) -> None:
        """x_bar += value, as a statement."""
        bar, kind = self.bar(n), self.kind(n)
        value = self.settled(bar, value, n)
        if kind in ("scalar", "array", "numeric"):
            self.emit(accumulation(bar, value))
        else:
            self.emit(assign(bar, call(self.external(trees.add), name(bar), value)))

    def add_item(self, n: str, index: Any, value: Any) -> None:
        """x_bar[index] += value, as a statement; x_bar is a buffer."""
        self.emit_item(
            n, index if isinstance(index, gast.Attribute) else self.stable(index), self.stable(value)
        )

    def emit_item(self, n: str, index: Any, value: Any) -> None:
        """Like `add_item`, for what has been made stable where it was found."""
        bar, fact = self.bar(n), self.facts.get(n, UNKNOWN)
        place = subscript(name(bar), clone(index), store=True)
        if isinstance(index, gast.Attribute):  # the marker of an attribute, see _key_node
            self.emit(
                expression(
                    call(self.external(trees.add_attribute), name(bar), name(n), constant(index.attr), value)
                )
            )
            return
        if fact.kind == "array":
            if basic_index(self.known_index(index)):
                minus = isinstance(value, gast.UnaryOp) and isinstance(value.op, gast.USub)
                op, part = (gast.Sub(), value.operand) if minus else (gast.Add(), value)
                self.emit(augment(place, op, part))
            else:
                self.emit(
                    expression(
                        call(attribute(self.np("add"), "at"), name(bar), _as_index(clone(index)), value)
                    )
                )
        elif _element(fact).kind == "scalar" and not isinstance(index, gast.Slice):
            self.emit(augment(place, gast.Add(), value))
        else:
            self.emit(
                expression(call(self.external(trees.add_item), name(bar), _as_index(clone(index)), value))
            )

    def known_index(self, index: Any) -> Any:
        made = clone(index)
        for part in made.elts if isinstance(made, gast.Tuple) else [made]:
            if not isinstance(part, gast.Slice):
                part.fact = self.fact(part)
        return made

    def settle(self, bars: set[str], but: str = "", copies: bool = False) -> None:
        """Writes out what has been collected and mentions one of the variables `bars`, before these change;
        as `copies` where they change in place."""
        s = self.scope
        for n in list({**s.pending, **s.items}):
            if n == but:
                continue
            if any(not bars.isdisjoint(t.reads) for t in self.collected(n)):
                if s.items.get(n) and not s.pending.get(n) and self.kind(n) in ("tuple",):
                    for part in s.items[n].values():
                        for t in part:
                            if bars & t.reads:
                                value = self.owned(t.value, n) if copies else t.value
                                t.value = self.temporary(self.names_base(n), value)
                    continue
                self.hold(n, copies)
        self.scope = s

    def names_base(self, n: str) -> str:
        return n + "_bar"

    def hold(self, n: str, copies: bool = False) -> None:
        """Writes the collected contributions of `n` to its variable."""
        s = self.scope
        if s.items.get(n):
            self.buffer(n)
            return
        terms = s.pending.pop(n, [])
        if not terms:
            return
        value, origin = self.sum_of(terms, n), terms[-1].origin
        if n in s.held or (n not in s.local and n not in s.moved):
            self.accumulate(n, value)
        else:
            bar = self.bar(n)
            value = self.shaped(value, n)
            value = self.settled(bar, value, n, n if copies else "")
            self.emit(assign(bar, self.owned(value, n) if copies else value), origin)
            if n in s.local:
                s.held.add(n)
            else:
                s.moved.discard(n)

    def settled(self, bar: str, value: Any, but: str = "", owner: str = "") -> Any:
        """Settles what mentions `bar` and returns `value` as it was before; a copy of it where `owner` asks
        for one."""
        if self.crossed(bar, value, but):
            value = self.temporary(bar, self.owned(value, owner) if owner else value)
        self.settle({bar}, but)
        return value

    def crossed(self, bar: str, value: Any, but: str) -> bool:
        """Will settling what mentions `bar` change a variable that `value` reads?"""
        s, read = self.scope, mentioned(value)
        waiting = {
            m: set().union(*(t.reads for t in self.collected(m)))
            for m in {**s.pending, **s.items}
            if m != but
        }
        written = {bar}
        while overwritten := [m for m, reads in waiting.items() if reads & written]:
            for m in overwritten:
                del waiting[m]
                if self.bars.get(m) in read:
                    return True
                written.add(self.bar(m))
        return False

    def collected(self, n: str) -> list[Term]:
        s = self.scope
        return s.pending.get(n, []) + [t for part in s.items.get(n, {}).values() for t in part]

    def shaped(self, value: Any, n: str) -> Any:
        return value if self.kind(n) != "array" else self.full(value, n)

    def whole(self, n: str, scope: Scope) -> Any:
        """The cotangent of a parameter at the end of the sweep, or None if it is zero."""
        self.scope = scope
        if n in self.shadows:
            return name(self.bar(n))
        taken = self.take(n)
        return None if taken is None else taken[0]

    # Blocks -------------------------------------------------------------------------------------------------

    def block(self, body: Block, scope: Scope) -> None:
        """The reverse of a block, into `scope.out`."""
        self.scope = scope
        for s in reversed(body):
            self.statement(s)
        self.current = None
        self.finish(scope)

    def statement(self, s: Any) -> None:
        self.origin = getattr(s, "origin", None) or self.origin
        method = getattr(self, "stmt_" + type(s).__name__, None)
        self.current = s
        if method is not None:
            method(s)

    def finish(self, scope: Scope) -> None:
        """Hands the contributions to outer names to their variables, none of which is read after it was
        overwritten."""
        for n in [n for n in scope.items if n not in scope.local and scope.items[n]]:
            self.buffer(n)
        pending: list[tuple[str, Any, bool, Any]] = []
        for n in list(scope.pending):
            if n in scope.local:
                continue
            terms = scope.pending.pop(n)
            if terms:
                pending.append((n, self.sum_of(terms, n), n not in scope.moved, terms[-1].origin))
                scope.moved.discard(n)
        for n in sorted(scope.moved):
            pending.append((n, self.zero(n), False, None))
        scope.moved.clear()
        while pending:
            for entry in pending:
                others = (
                    set().union(*(mentioned(v) for m, v, _, _ in pending if m != entry[0]))
                    if len(pending) > 1
                    else set()
                )
                if self.bar(entry[0]) not in others:
                    pending.remove(entry)
                    self.write(*entry)
                    break
            else:
                values = []
                for n, value, adds, _ in pending:
                    if adds:
                        containers = self.kind(n) not in NUMBERS
                        old = name(self.bar(n))
                        value = (
                            call(self.external(trees.add), old, value) if containers else total([old, value])
                        )
                    values.append(self.shaped(value, n))
                made = assign_tuple([self.bar(n) for n, *_ in pending], gast.Tuple(values, gast.Load()))
                self.emit(made, pending[-1][3])
                pending = []

    def write(self, n: str, value: Any, adds: bool, origin: Any) -> None:
        if adds:
            before = self.origin
            self.origin = origin or before
            self.accumulate(n, value)
            self.origin = before
        else:
            self.emit(assign(self.bar(n), self.shaped(value, n)), origin)

    def descend(
        self, s: Any, bodies: list[Block], loop: bool, build: Callable[[list[Block]], Block | None]
    ) -> None:
        """The reverse of a statement that holds blocks. `build` makes the statements of the reversed
        blocks."""
        scope, origin, current = self.scope, self.origin, self.current
        bound = set().union(*(_rebound(b) for b in bodies)) & self.active - self.shadows
        carried = _carried(s) & self.active if loop else set()
        joined = {n for n in bound if n in scope.local and n not in carried}
        dead = {n for n in joined if not (scope.pending.get(n) or scope.items.get(n) or n in scope.held)}
        inner_scopes, codes = [], []
        if loop:  # which may not run at all: what it binds keeps its cotangent
            joined = dead
        for body in bodies:
            # A name whose value is of no use after the block lives inside it, for the sweep.
            inner = Scope({n for n, h in self.home.items() if h == id(body)} | (dead & _rebound(body)), loop)
            self.block(body, inner)
            inner_scopes.append(inner)
            codes.append(inner.out)
        self.scope, self.origin, self.current = scope, origin, current
        touched: dict[str, str] = {}
        for inner in inner_scopes:
            for n, mode in inner.touched.items():
                if touched.get(n) != "buffer":
                    touched[n] = mode
        if not any(codes):
            for n in joined:
                scope.pending.pop(n, None)
                scope.items.pop(n, None)
                scope.held.discard(n)
            return
        changed = {self.bar(n) for n in touched}
        live_joins = sorted(joined - dead)
        for n in live_joins:
            if scope.items.get(n):
                taken = self.take(n)
                if taken is not None:
                    scope.pending[n] = [Term(taken[0], taken[1])]
            if scope.pending.get(n):
                terms = scope.pending.pop(n)
                if n in scope.held:
                    self.accumulate(n, self.sum_of(terms, n))
                else:
                    value = self.settled(self.bar(n), self.shaped(self.sum_of(terms, n), n), n)
                    self.emit(assign(self.bar(n), value), terms[-1].origin)
                    scope.held.add(n)
        self.settle(changed | {self.bar(n) for n in self.shadows}, copies=True)
        for n in sorted(touched):
            mode = touched[n]
            if n in joined:
                continue
            if n in scope.local:
                if n not in scope.held:
                    if mode == "buffer" or scope.items.get(n):
                        self.buffer(n)
                    elif scope.pending.get(n):
                        self.hold(n)
                    else:
                        self.emit(assign(self.bar(n), self.zero(n)))
                        scope.held.add(n)
                elif scope.pending.get(n) or scope.items.get(n):
                    self.hold(n)
            else:
                if n in scope.moved:
                    if scope.pending.get(n) or scope.items.get(n) or mode == "buffer":
                        self.buffer(n) if mode == "buffer" else self.hold(n)
                    else:
                        self.emit(assign(self.bar(n), self.zero(n)))
                        scope.moved.discard(n)
                elif scope.pending.get(n) or scope.items.get(n):
                    self.hold(n)
                if scope.touched.get(n) != "buffer":
                    scope.touched[n] = mode
        # What a loop binds has other values again once its reverse has run, which restores what was saved.
        self.settle(set().union(*(dataflow.bound_names([x]) for x in _loops([s]))))
        made = build(codes)
        if made is not None:
            for m in made:
                m.origin = None
                m.primal = s
                scope.out.append(m)
        for n in joined:
            scope.pending.pop(n, None)
            scope.items.pop(n, None)
            scope.held.discard(n)

    # Statements ---------------------------------------------------------------------------------------------

    def stmt_If(self, s: Any) -> None:
        if any(isinstance(b, gast.Break) for b in s.body):
            return

        def build(codes: list[Block]) -> Block:
            body, orelse = codes
            made = gast.If(clone(s.test), body, orelse)
            if not body:
                made = gast.If(gast.UnaryOp(gast.Not(), clone(s.test)), orelse, [])
                made.inverted = True
            made.is_branch = True
            return [made]

        self.descend(s, [s.body, s.orelse], False, build)

    def stmt_For(self, s: Any) -> None:
        self.descend(s, [s.body], True, lambda codes: [_reversed_loop(s, codes[0])])

    stmt_While = stmt_For

    def stmt_With(self, s: Any) -> None:
        self.inline(s.body)

    def inline(self, body: Block) -> None:
        """The reverse of a block that runs exactly once, as part of the block around it."""
        for s in reversed(body):
            self.statement(s)

    def stmt_Try(self, s: Any) -> None:
        if not s.handlers:
            self.inline(s.finalbody)
            self.inline(s.body)
            return
        self.inline(s.finalbody)
        which = self.names.fresh("path")
        self.know(which, facts_module.REAL)
        bodies = [s.body + s.orelse, *(h.body for h in s.handlers)]
        whole: Block = s.body + s.orelse
        for n, h in self.home.items():
            if h == id(s.body):
                self.home[n] = id(whole)
        bodies[0] = whole

        def build(codes: list[Block]) -> Block:
            chain: Block = []
            for number in reversed(range(len(codes))):
                if not codes[number]:
                    continue
                test = gast.Compare(name(which), [gast.Eq()], [constant(number)])
                made = gast.If(test, codes[number], chain)
                made.is_branch = True
                chain = [made]
            s.orelse.append(assign(which, constant(0), s))
            for number, h in enumerate(s.handlers, 1):
                h.body.append(assign(which, constant(number), s))
            return chain

        self.descend(s, bodies, False, build)

    def refuse(
        self, node: Any, what: str, why: str, error: type[SrcgradError] = UnsupportedSyntax
    ) -> SrcgradError:
        place = node if hasattr(node, "lineno") else self.origin
        return fail(error, self.source, place, what, why)

    def stmt_Assign(self, s: Any) -> None:
        (to,) = s.targets
        if isinstance(to, gast.Tuple):
            self.unpack(s, to)
        elif isinstance(to, gast.Name) and to.id in self.late:
            self.store_late(s, to.id)
        elif isinstance(to, gast.Name):
            self.define(s, to.id)
        elif isinstance(to, gast.Subscript):
            self.store_item(s, to)
        else:
            self.store_attribute(s, to)

    def store_late(self, s: Any, v: str) -> None:
        """A variable that kept functions have captured was bound: what their calls gave since belongs to the
        value."""
        if v not in self.active:
            return
        n = s.value.id
        taken = call(self.external(late.take), name(self.late[v]))
        if n in self.active:
            self.contribute(n, self.matched(self.temporary(n + "_part", taken), n))
        else:
            self.emit(expression(taken))

    def define(self, s: Any, v: str) -> None:
        op = resolve.operation(s.value)
        if op.kind in ("call", "dispatch"):
            self.calls(s, op, v)
            self.spent(s, v)
            return
        if op.kind == "pop":
            self.pop(s, op, v)
            return
        if v in self.shadows:
            if v in self.active and self.made_new(s):
                self.flow(op, name(self.bar(v)), v, s)
            self.spent(s, v)
            return
        if v not in self.active:
            return
        self.masks = ()
        g = self.cotangent(v, s)
        if g is None:
            return
        fact = self.facts.get(v, UNKNOWN)
        same = fact.kind == "scalar" or (
            fact.kind == "array" and fact.shape and all(facts_module.same_dim(d, d) for d in fact.shape)
        )
        if v in getattr(self.tree, "idle", ()) and not same:
            # Its zero was made for the value that came after, which may have been of another structure.
            now = op.operands[0][1] if op.kind == "copy" and op.operands else v
            g = call(self.external(trees.conform), g, name(now))
        self.flow(op, g, v, s)
        self.masks = ()

    def cotangent(self, v: str, s: Any) -> Any:
        """The cotangent of the name that a statement binds, removed from the books; None if it is zero."""
        scope = self.scope
        if v in self.shadows:
            return name(self.bar(v))
        if v in scope.local:
            terms = scope.pending.get(v, [])
            if terms and not scope.items.get(v) and v not in scope.held:
                self.masks = tuple(m for m in terms[0].masks if all(m in t.masks for t in terms))
            taken = self.take(v)
            if taken is None:
                return None
            g, origin = taken
            if not atomic(g) and not self.disposable(v):
                made = self.bar(v)
                g = self.settled(made, g)
                before = self.origin
                self.origin = origin or before
                self.know(made, self.fact(g))
                self.emit(assign(made, g))
                self.origin = before
                return name(made)
            return g
        if scope.pending.get(v) or scope.items.get(v):
            self.hold(v)
        if scope.loop:
            scope.touched.setdefault(v, "add")
            scope.moved.add(v)
        return name(self.bar(v))

    def disposable(self, v: str) -> bool:
        """May the cotangent of this name stay an expression? Only of names that the compiler made."""
        return v not in self.user_names

    late: dict[str, str] = {}
    """Variables that are bound again after functions which are kept have captured them, each with the name of
    its record."""
    user_names: set[str] = set()
    varied: set[str] = set()

    def once(self, g: Any, uses: int, v: str) -> Any:
        """`g` as something that may be written down `uses` times."""
        if uses <= 1 or atomic(g):
            return g
        bar = self.bar(v)
        g = self.settled(bar, g)
        self.know(bar, self.fact(g))
        self.emit(assign(bar, g))
        return name(bar)

    def flow(self, op: Any, g: Any, v: str, s: Any) -> None:
        """Hands the cotangent `g` of `v` on to the operands of the operation that made `v`."""
        method = getattr(self, "flow_" + op.kind, None)
        if method is None:
            if any(n in self.active for _, n in op.operands) or op.kind in ("unknown", "unbound"):
                raise self.unknown(op)
            return
        method(op, g, v, s)

    def unknown(self, op: Any) -> Exception:
        named = written(op.node, op.function)
        if op.kind == "unbound":
            return self.refuse(
                op.node,
                f"the derivative of `{named}` does not support this form of call",
                "Leave out the option that has no derivative, or write the operation with other functions.",
                NoRule,
            )
        return self.refuse(
            op.node,
            f"`{named}` has no derivative rule",
            "Write it with functions that have one, give it a rule, or wrap it in srcgrad.stop_gradient if "
            "it is constant.",
            NoRule,
        )

    def flow_inert(self, op: Any, g: Any, v: str, s: Any) -> None:
        pass

    def flow_copy(self, op: Any, g: Any, v: str, s: Any) -> None:
        self.contribute(op.operands[0][1], g, masks=self.masks)

    def flow_copy_of(self, op: Any, g: Any, v: str, s: Any) -> None:
        self.contribute(op.operands[0][1], g)

    flow_copy_of_list = flow_copy_of

    def flow_rule(self, op: Any, g: Any, v: str, s: Any) -> None:
        rule = op.rule
        active = [(w, n) for w, n in op.operands if n in self.active]
        active = [(w, n) for w, n in active if not self.not_known(op, w, n)]
        if not active:
            return
        if rule.elementwise:
            self.flow_elementwise(op, active, g, v)
            return
        g = self.spread(g, v)
        wanted = [w for w in rule.wrt if any((a if isinstance(a, str) else a[0]) == w for a, _ in active)]
        g_name = "?g"
        binding = {**op.binding}
        tree_params = _rule_parameters(rule.reverse)
        binding[tree_params[0]] = name(g_name)
        binding[tree_params[1]] = name(v)
        self.know(g_name, self.fact(g))
        entries = self.inliner.entries(rule.reverse, binding)
        if entries is None or len(entries) < len(rule.wrt):
            g = self.once(g, 2, v)
            arguments = [g, name(v)]
            keywords: list[gast.keyword] = []
            for p in rule.parameters:
                bound = op.binding.get(p.name)
                if isinstance(bound, gast.Constant) and bound.value is p.default and p.default is not p.empty:
                    continue
                if p.kind is p.VAR_POSITIONAL:
                    arguments += [clone(e) for e in bound.elts]
                elif (
                    p.kind is p.KEYWORD_ONLY
                    or keywords
                    or any(q.name not in op.binding for q in rule.parameters[: rule.parameters.index(p)])
                    or len(arguments) - 2 != rule.parameters.index(p)
                ):
                    keywords.append(gast.keyword(p.name, clone(bound)))
                else:
                    arguments.append(clone(bound))
            value = gast.Call(self.external(rule.reverse), arguments, keywords)
            if len(rule.wrt) > 1:
                whole = self.temporary(v + "_bar", value)
                entries = [subscript(clone(whole), constant(i)) for i in range(len(rule.wrt))]
            else:
                entries = [value]
        count = sum(uses_of(entries[rule.wrt.index(w)], g_name) for w in wanted)
        g = self.once(g, count, v)
        for w in wanted:
            value = replace_name(entries[rule.wrt.index(w)], g_name, g, self.product)
            parts = [(a, n) for a, n in active if (a if isinstance(a, str) else a[0]) == w]
            if len(parts) == 1 and isinstance(parts[0][0], str):
                self.contribute(parts[0][1], self.signed(value), masks=self.masked_by(op, w))
            else:
                whole = value if atomic(value) or len(parts) == 1 else self.temporary(v + "_bar", value)
                for (_, i), n in parts:
                    self.contribute(n, subscript(clone(whole), constant(i)))

    def not_known(self, op: Any, parameter: Any, n: str) -> bool:
        """Does the rule take a parameter for a constant? Its cotangent is then refused to whoever needs
        it."""
        if parameter not in table.constants_of(op.rule):
            return False
        self.unknowns = True
        shown = [constant(getattr(op.function, "__name__", "function")), constant(parameter)]
        self.contribute(n, call(self.external(trees.unknown_slope), name(n), *shown))
        return True

    def signed(self, value: Any) -> Any:
        return value

    def spread(self, g: Any, v: str) -> Any:
        """A scalar that stands for the whole cotangent of an array, written out in full."""
        if self.kind(v) == "array":
            return self.filled(g, v)
        if self.kind(v) in ("numeric", "unknown") and self.fact(g).kind == "scalar":
            return call(self.external(trees.match), g, name(v))
        return g

    def flow_elementwise(self, op: Any, active: list[Any], g: Any, v: str) -> None:
        rule = op.rule
        parameters = _rule_parameters(rule.partials)
        binding = {**op.binding, parameters[0]: name(v)}
        entries = self.inliner.entries(rule.partials, binding)
        if entries is None:
            arguments, options = [name(v)], []
            for p in rule.parameters:
                bound = op.binding[p.name]
                if p.kind is p.KEYWORD_ONLY:
                    options.append(gast.keyword(p.name, clone(bound)))
                else:
                    several = p.kind is p.VAR_POSITIONAL
                    arguments += [clone(e) for e in bound.elts] if several else [clone(bound)]
            value = gast.Call(self.external(rule.partials), arguments, options)
            if len(rule.wrt) > 1:
                whole = self.temporary("partials", value)
                entries = [subscript(clone(whole), constant(i)) for i in range(len(rule.wrt))]
            else:
                entries = [value]
        z = self.facts.get(v, UNKNOWN)
        operands = [(w, n) for w, n in active]
        if z.kind == "array" and self.fact(g).kind == "scalar":  # which stands for the whole array
            shapes = [self.facts.get(n, UNKNOWN) for _, n in operands]
            factors = [self.fact(entries[rule.wrt.index(w)]) for w, _ in operands]
            shapes += [f for f in factors if f.kind != "scalar"]
            if not all(facts_module.fits(f, z) for f in shapes):
                g = self.spread(g, v)
        real = getattr(rule, "real", False)
        wanted = [(n, entries[rule.wrt.index(w)]) for w, n in operands]
        wanted = [
            (n, p)
            for n, p in wanted
            if not (isinstance(p, gast.Constant) and p.value is None) and not is_zero(p)
        ]
        g = self.once(g, len(wanted), v)
        for n, partial in wanted:
            value = self.product(self.unmasked(g) if value_names(partial) else g, partial)
            x = self.facts.get(n, UNKNOWN)
            if real and not x.real:
                value = call(self.np("multiply"), call(self.np("real"), g), partial)
            if value_names(partial):
                for condition, taken in self.masks:
                    when = [] if taken else [constant(False)]
                    value = call(self.external(support.masked), value, name(condition), *when)
            self.contribute(n, self.fit(value, n, x, z), masks=self.masks)

    def product(self, g: Any, partial: Any) -> Any:
        return multiply(g, partial, self.floating)

    def floating(self, e: Any) -> bool:
        """Is the value of `e` sure to be of floats?"""
        if isinstance(e, gast.Constant) or self.fact(e).real == 2:
            return True
        if isinstance(e, gast.BinOp):
            return self.floating(e.left) or self.floating(e.right)
        if isinstance(e, gast.UnaryOp):
            return self.floating(e.operand)
        return any(isinstance(n, gast.Name) and n.id in self.varied for n in nodes.walk(e))

    def unmasked(self, g: Any) -> Any:
        """`g` without masks that its product will have again."""
        for condition, taken in reversed(self.masks):
            if not (
                isinstance(g, gast.Call) and getattr(g.func, "id", "") == self.external(support.masked).id
            ):
                break
            if g.args[1].id != condition or (len(g.args) == 2) is not taken:
                break
            g = g.args[0]
        return g

    def masked_by(self, op: Any, parameter: str) -> Masks:
        """What selects the elements of an operand that `np.where` may have taken: the cotangent of the others
        is 0, whatever it is multiplied by.

        The condition must be a name that means the same at every statement of the block."""
        if op.function not in (np.where, support.masked):
            return ()
        condition = op.binding.get("condition")
        if not isinstance(condition, gast.Name) or condition.id not in self.scope.local:
            return ()
        if self.bindings is None:
            self.bindings = Counter(
                n.id
                for n in nodes.walk(self.tree)
                if isinstance(n, gast.Name) and not isinstance(n.ctx, gast.Load)
            )
        overwritten = self.aliases is not None and self.aliases.overwritten(condition.id, self.current)
        if self.bindings[condition.id] > 1 or overwritten:
            return ()
        taken: Any = op.binding.get("taken")
        if op.function is np.where:
            return (*self.masks, (condition.id, parameter == "x"))
        return (*self.masks, (condition.id, bool(taken.value) if taken is not None else True))

    def fit(self, value: Any, n: str, x: Fact, z: Fact) -> Any:
        """`value`, shaped as the result `z`, summed to the shape of the operand `n`."""
        if facts_module.fits(x, z):
            return value
        shape = self.fact(value)
        if x.kind == "scalar" and z.kind == "array" and shape.kind == "array" and z.real and x.real:
            return call(self.np("sum"), value)
        if (
            x.kind == "array"
            and z.kind == "array"
            and x.shape
            and z.shape
            and len(z.shape) == len(x.shape) + 1
            and z.real
        ):
            trailing = Fact("array", z.shape[1:])
            if facts_module.fits(x, trailing) and shape.rank == len(z.shape):
                return call(self.np("sum"), value, axis=constant(0))
        return call(self.external(support.unbroadcast), value, name(n))

    def flow_item(self, op: Any, g: Any, v: str, s: Any) -> None:
        (_, x), index = op.operands[0], s.value.slice
        if x not in self.active:
            return
        kind = self.kind(x)
        key = _static_key(index)
        if kind in ("tuple", "struct") and key is not None:
            self.contribute(x, self.spread(g, v), item=key)
            return
        guards = plain_elements(self.external, self.source, s, x, self.facts.get(x, UNKNOWN))
        self.before.setdefault(id(s), []).extend(guards)
        g = self.apart(self.spread(g, v), x)
        self.buffer(x)
        self.add_item(x, index, g)

    def flow_attribute(self, op: Any, g: Any, v: str, s: Any) -> None:
        attr, x = op.operands[0]
        if x not in self.active:
            return
        g = self.apart(self.spread(g, v), x)
        self.buffer(x)
        self.add_item(x, gast.Attribute(name(x), attr, gast.Load()), g)

    def matched(self, part: Any, n: str) -> Any:
        """A part of a container's cotangent, where 0.0 may stand for a zero of any structure, as the
        cotangent of `n`."""
        return part if self.kind(n) == "scalar" else call(self.external(trees.match), part, name(n))

    def flow_tuple(self, op: Any, g: Any, v: str, s: Any) -> None:
        elements = s.value.elts
        stars = [i for i, e in enumerate(elements) if isinstance(e, gast.Starred)]
        if isinstance(g, gast.List) and not stars and len(g.elts) == len(elements):
            for i, n in op.operands:
                self.contribute(n, g.elts[i])
            return
        g = self.once(g, 2, v)
        if not stars:
            for i, n in op.operands:
                if n in self.active:
                    self.contribute(n, self.matched(subscript(clone(g), constant(i)), n))
            return
        offset: Any = constant(0)
        for e in elements:
            inner = e.value if isinstance(e, gast.Starred) else e
            here = offset
            if isinstance(e, gast.Starred):
                length = call("len", clone(inner))
                stop = length if is_number(here, 0) else gast.BinOp(clone(here), gast.Add(), length)
                if isinstance(inner, gast.Name) and inner.id in self.active:
                    part = subscript(clone(g), gast.Slice(clone(here), stop, None))
                    self.contribute(inner.id, call(self.external(trees.match), part, name(inner.id)))
                offset = stop
            else:
                if isinstance(inner, gast.Name) and inner.id in self.active:
                    self.contribute(inner.id, subscript(clone(g), clone(here)))
                is_const = isinstance(here, gast.Constant)
                offset = constant(here.value + 1) if is_const else gast.BinOp(here, gast.Add(), constant(1))

    flow_list = flow_tuple

    def flow_dict(self, op: Any, g: Any, v: str, s: Any) -> None:
        g = self.once(g, 2, v)
        value = s.value
        for key, n in op.operands:
            if n not in self.active:
                continue
            if isinstance(value, gast.Dict):
                this, after = (
                    value.keys[key],
                    list(zip(value.keys[key + 1 :], value.values[key + 1 :], strict=True)),
                )
                if this is not None and any(
                    k is not None and gast.dump(k) == gast.dump(this) for k, _ in after
                ):
                    continue
                later = [
                    clone(v) if k is None else list_([clone(k)])
                    for k, v in after
                    if this is None or k is None
                ]
                if this is None:
                    self.contribute(n, call(self.external(trees.select), clone(g), name(n), *later))
                elif later:
                    self.contribute(n, call(self.external(trees.unless), clone(g), clone(this), *later))
                else:
                    self.contribute(n, subscript(clone(g), clone(this)))
            else:
                self.contribute(n, subscript(clone(g), constant(key)))

    def flow_struct(self, op: Any, g: Any, v: str, s: Any) -> None:
        g = self.once(g, 2, v)
        for key, n in op.operands:
            if n in self.active:
                self.contribute(n, call(self.external(trees.get_attribute), clone(g), name(v), constant(key)))

    def flow_sequence(self, op: Any, g: Any, v: str, s: Any) -> None:
        if op.operands:
            n = op.operands[0][1]
            known = self.kind(n) in ("list", "tuple", "array", "numeric")
            self.contribute(n, call(self.external(trees.match if known else trees.unlisted), g, name(n)))

    def flow_concat(self, op: Any, g: Any, v: str, s: Any) -> None:
        g = self.once(g, 2, v)
        length = call("len", clone(s.value.left))
        for side, n in op.operands:
            part = gast.Slice(None, length, None) if side == "left" else gast.Slice(length, None, None)
            self.contribute(n, subscript(clone(g), clone(part)))

    def flow_repeat(self, op: Any, g: Any, v: str, s: Any) -> None:
        for _, n in op.operands:
            if self.kind(n) in ("list", "tuple"):
                self.contribute(n, call(self.external(trees.unrepeat_list), g, name(n)))

    # Writes -------------------------------------------------------------------------------------------------

    def unpack(self, s: Any, to: Any) -> None:
        source = s.value
        if not isinstance(source, gast.Name) or source.id not in self.active:
            return
        x = source.id
        guards = plain_elements(self.external, self.source, s, x, self.facts.get(x, UNKNOWN))
        self.before.setdefault(id(s), []).extend(guards)
        position = 0
        after_star = False
        static = self.kind(x) in ("tuple", "struct")
        for i, part in enumerate(to.elts):
            star = isinstance(part, gast.Starred)
            v = part.value.id if star else part.id
            index: Any = constant(i - len(to.elts) if after_star else i)
            if star:
                after_star = True
                rest = len(to.elts) - i - 1
                index = gast.Slice(constant(i), constant(-rest) if rest else None, None)
            position += 1
            if v not in self.active:
                continue
            g = self.cotangent(v, s)
            if g is None:
                continue
            g = self.spread(g, v)
            if static and not star:
                self.contribute(x, g, item=index.value)
            else:
                g = self.apart(g, x)
                self.buffer(x)
                if star:
                    self.emit(
                        expression(
                            call(self.external(trees.add_item), name(self.bar(x)), _as_index(index), g)
                        )
                    )
                else:
                    self.add_item(x, index, g)

    def store_item(self, s: Any, to: Any) -> None:
        start = root(to)
        if not isinstance(start, gast.Name) or start.id not in self.active:
            self.lost(s, to.value)
            return
        x, index, value = start.id, self.stable(to.slice), s.value
        if x in self.scope.local and not self.has(x):
            return
        if start is not to.value:
            self.store_deep(x, to.value, index, value)
            return
        bar = self.buffer(x)
        place = subscript(name(bar), clone(index))
        fact = self.facts.get(x, UNKNOWN)
        basic = basic_index(self.known_index(index))
        if isinstance(value, gast.Name) and value.id in self.active:
            self.check_floats(s, x)
            piece = (
                facts_module.getitem(fact, self.known_index(index))
                if fact.kind == "array"
                else _element(fact)
            )
            if isinstance(index, gast.Slice) and fact.kind != "array":
                piece = UNKNOWN
            if fact.kind == "array" and basic:
                part: Any = place if piece.kind == "scalar" else call(attribute(place, "copy"))
            elif piece.kind == "scalar" and fact.kind == "list":
                part = place
            else:
                part = call(self.external(trees.overwritten), name(bar), _as_index(clone(index)))
            made = self.names.fresh(value.id + "_bar" if self.disposable(value.id) else x + "_part")
            self.know(made, piece if piece.kind in ("scalar", "array", "numeric") else UNKNOWN)
            self.emit(assign(made, part))
            self.clear(x, index, fact, basic)
            source = self.facts.get(value.id, UNKNOWN)
            if source.kind == "scalar" and piece.kind == "scalar":
                self.contribute(value.id, name(made))
            elif fact.kind == "array" or piece.kind in ("array", "numeric"):
                self.contribute(value.id, self.fit(name(made), value.id, source, piece))
            elif fact.kind in ("list", "dict", "tuple"):
                self.contribute(value.id, name(made))
            else:
                self.contribute(value.id, call(self.external(trees.stored), name(made), name(value.id)))
        else:
            self.clear(x, index, fact, basic)

    def check_floats(self, s: Any, x: str) -> None:
        made = holds_floats(self.external, self.source, s, x, self.facts.get(x, UNKNOWN))
        self.before.setdefault(id(s), []).extend(made)

    def store_deep(self, x: str, owner: Any, index: Any, value: Any) -> None:
        """`x.a[i][index] = value`: the same place in the cotangent of `x`."""
        inner = self.place_in(owner, self.buffer(x))
        index = _as_index(clone(index)) if not isinstance(index, str) else constant(index)
        if isinstance(value, gast.Name) and value.id in self.active:
            part = call(self.external(trees.overwritten), clone(inner), clone(index))
            made = self.names.fresh(value.id + "_bar" if self.disposable(value.id) else x + "_part")
            fact = self.facts.get(value.id, UNKNOWN)
            self.know(made, fact if fact.kind == "scalar" else UNKNOWN)
            self.emit(assign(made, part))
            self.emit(expression(call(self.external(trees.clear_item), inner, index)))
            self.contribute(value.id, call(self.external(trees.stored), name(made), name(value.id)))
        else:
            self.emit(expression(call(self.external(trees.clear_item), inner, index)))

    def place_in(self, e: Any, bar: str) -> Any:
        """The cotangent of a part of a container, as a part of the container's cotangent."""
        if isinstance(e, gast.Name):
            return name(bar)
        inner = self.place_in(e.value, bar)
        return subscript(inner, constant(e.attr) if isinstance(e, gast.Attribute) else clone(e.slice))

    def clear(self, x: str, index: Any, fact: Fact, basic: bool) -> None:
        bar = self.bar(x)
        several = isinstance(index, gast.Slice) or self.fact(index).kind != "scalar"
        if fact.kind in ("list", "unknown", "numeric") and (several or fact.kind != "list"):
            self.emit(expression(call(self.external(trees.clear_item), name(bar), _as_index(clone(index)))))
        else:
            self.emit(assign(subscript(name(bar), clone(index), store=True), constant(0.0)))

    def lost(self, s: Any, owner: Any) -> None:
        """A differentiated value that goes where its derivative can't be followed."""
        value = s.value
        owner = root(owner)
        local = isinstance(owner, gast.Name) and owner.id in self.facts
        if isinstance(value, gast.Name) and value.id in self.active and not local:
            text = owner.id if isinstance(owner, gast.Name) else "an object outside the function"
            raise self.refuse(s, f"cannot differentiate a write into `{text}`", "Return the value instead.")

    def store_attribute(self, s: Any, to: Any) -> None:
        start = root(to)
        if not isinstance(start, gast.Name) or start.id not in self.active:
            self.lost(s, to.value)
            return
        x = start.id
        if start is not to.value:
            self.store_deep(x, to.value, to.attr, s.value)
            return
        guards = plain_attribute(self.external, self.source, s, x, to.attr, self.facts.get(x, UNKNOWN))
        self.before.setdefault(id(s), []).extend(guards)
        bar = self.buffer(x)
        if isinstance(s.value, gast.Name) and s.value.id in self.active:
            read = call(self.external(trees.get_attribute), name(bar), name(x), constant(to.attr))
            made = self.temporary(s.value.id + "_bar", read)
            self.contribute(s.value.id, made)
        self.emit(assign(subscript(name(bar), constant(to.attr), store=True), constant(0.0)))

    def stmt_AugAssign(self, s: Any) -> None:
        if isinstance(s.target, gast.Name):
            self.update(s)
            return
        owner = s.target.value
        if not isinstance(owner, gast.Name) or owner.id not in self.active:
            self.lost(s, owner)
            return
        x, value = owner.id, s.value
        if not (isinstance(value, gast.Name) and value.id in self.active) or not self.has(x):
            return
        self.check_floats(s, x)
        bar = self.buffer(x)
        fact, index = self.facts.get(x, UNKNOWN), self.stable(s.target.slice)
        known = self.known_index(index)
        piece = facts_module.getitem(fact, known) if fact.kind == "array" else UNKNOWN
        part: Any = subscript(name(bar), clone(index))
        if basic_index(known) and piece.kind != "scalar":
            part = call(attribute(part, "copy"))
        if isinstance(s.op, gast.Sub):
            part = negative(part)
        made = self.temporary(value.id + "_bar" if self.disposable(value.id) else x + "_part", part)
        if piece.kind == "scalar":
            self.know(made.id, piece)
        self.contribute(value.id, self.fit(made, value.id, self.facts.get(value.id, UNKNOWN), piece))

    def update(self, s: Any) -> None:
        """`x op= v` for a name that may be an array: in place there, a new value otherwise; the derivative is
        the same."""
        x, value = s.target.id, s.value
        if x not in self.active:
            return
        shadow = x in self.shadows
        local = x in self.scope.local and not shadow
        if not self.has(x):
            return
        rule = table.find(resolve.BINARY[type(s.op)])
        if rule is None or rule.partials is None:
            raise self.refuse(s, "cannot differentiate this update in place", "Write `x = x @ y`.")
        parameters = _rule_parameters(rule.partials)
        old, new = self.names.fresh(x + "_old"), self.names.fresh(x + "_new")
        fact = self.facts.get(x, UNKNOWN)
        self.know(old, fact)
        self.know(new, fact)
        self.facts[old] = self.facts[new] = fact
        itself = isinstance(value, gast.Name) and value.id == x
        binding = {
            parameters[0]: name(new),
            parameters[1]: name(old),
            parameters[2]: name(old) if itself else clone(value),
        }
        entries = self.inliner.entries(rule.partials, binding)
        assert entries is not None
        gives = isinstance(value, gast.Name) and value.id in self.active
        linear = is_number(entries[0], 1)
        if local:
            taken = self.take(x)
            assert taken is not None
            g = self.once(self.spread(taken[0], x), 2, x)
            g_was = None
            if isinstance(g, gast.Name) and g.id == self.bar(x):
                g_was = g.id
        else:
            if self.scope.pending.get(x) or self.scope.items.get(x):
                self.hold(x)
            g = name(self.bar(x))
            g_was = g.id
        expr = None
        overlaps = shadow and gives and value.id in self.shadows and not linear
        if overlaps:  # which `x_bar` is not to see before it has become that of the old value
            g = self.temporary(self.bar(x), call(attribute(g, "copy")))
        if gives and value.id == x:
            back = total([self.product(clone(g), entries[0]), self.product(clone(g), entries[1])])
            if local and g_was is None:
                self.contribute(x, back)
            else:
                self.touch(x)
                self.become(x, back)
        elif gives:
            v_fact = self.facts.get(value.id, UNKNOWN)
            expr = self.fit(self.product(g, entries[1]), value.id, v_fact, fact)
            if fact.kind != "scalar" and not fresh(expr):
                expr = self.owned(expr, x)  # the cotangent of x goes on changing in place
            if overlaps:
                self.become(x, self.product(name(self.bar(x)), entries[0]))
            self.contribute(value.id, expr)
        if overlaps or (gives and value.id == x):
            pass
        elif linear:
            if not local or g_was is not None:
                self.touch(x)
            else:
                self.contribute(x, g)
        else:
            back = self.product(clone(g), entries[0])
            if local and g_was is None:
                self.contribute(x, back)
            else:
                self.touch(x)
                self.become(x, back)
        used = set()
        for e in entries if gives else entries[:1]:
            used |= mentioned(e)
        before = [(old, name(x))] if old in used else []
        after = [(new, name(x))] if new in used else []
        if before or after:
            wrap = self.external(trees.snapshot)
            made: Block = [assign(n, call(clone(wrap), e), s) for n, e in before]
            made.append(s)
            made += [assign(n, call(clone(wrap), e), s) for n, e in after]
            self.replaced[id(s)] = made

    def touch(self, x: str) -> None:
        """Notes that the variable of `x`'s cotangent holds it."""
        if x in self.shadows:
            return
        if x in self.scope.local:
            self.scope.held.add(x)
        else:
            self.scope.touched.setdefault(x, "add")

    def become(self, x: str, value: Any) -> None:
        """x_bar = value, where `value` reads x_bar."""
        bar, value = self.bar(x), self.stable(value)
        shadow = x in self.shadows
        if shadow:
            self.buffer(x)
        else:
            value = self.settled(bar, value, x)
        if isinstance(value, gast.BinOp) and isinstance(value.left, gast.Name) and value.left.id == bar:
            made = augment(bar, value.op, value.right)
            self.emit(made if shadow else _ours(made))
        elif shadow:
            self.emit(assign(subscript(name(bar), gast.Slice(None, None, None), store=True), value))
        else:
            self.emit(assign(bar, value))

    def stmt_Delete(self, s: Any) -> None:
        (to,) = s.targets
        if (
            not isinstance(to, gast.Subscript)
            or not isinstance(to.value, gast.Name)
            or to.value.id not in self.active
        ):
            return
        x = to.value.id
        bar = self.buffer(x)
        if self.kind(x) == "list":
            self.emit(expression(call(attribute(bar, "insert"), clone(to.slice), constant(0.0))))
        else:
            self.emit(assign(subscript(name(bar), clone(to.slice), store=True), constant(0.0)))

    def stmt_FunctionDef(self, s: Any) -> None:
        """The cotangent of a function that was used as a value: a dict of those of the variables it
        captured."""
        if s.name not in self.active:
            return
        g = self.cotangent(s.name, s)
        if g is None:
            return
        g = self.once(g, 2, s.name)
        for p, n in getattr(s, "held", {}).items():
            if n in self.active:
                part = call(self.external(trees.get_attribute), clone(g), name(s.name), constant(p))
                self.contribute(n, self.matched(part, n))
        called = {n for n in dataflow.free_names(s) if self.kind(n) == "closure" and n != s.name}
        for n in sorted({*getattr(s, "captured", {}).values(), *called} - set(self.late)):
            if n in self.active:
                part = call(self.external(trees.get_attribute), clone(g), name(s.name), constant(n))
                self.contribute(n, self.matched(part, n) if self.kind(n) == "array" else part)

    # Lists --------------------------------------------------------------------------------------------------

    def stmt_Expr(self, s: Any) -> None:
        if not isinstance(s.value, gast.Call):
            return
        op = resolve.operation(s.value)
        if op.kind in ("call", "dispatch"):
            self.calls(s, op, None)
        elif op.kind == "append":
            self.append(s, op)
        elif op.kind == "pop":
            self.pop(s, op, None)
        elif op.kind in ("unknown", "unbound"):
            if any(n in self.varied for _, n in op.operands):
                raise self.unknown(op)
        elif op.kind == "insert":
            self.insert(s, op)
        elif op.kind in ("reverse", "clear"):
            xs = op.operands[0][1]
            if xs not in self.active:
                return
            if op.kind == "clear":
                raise self.refuse(
                    s, "cannot differentiate `clear` of a differentiated list", "Start a new list."
                )
            bar = self.buffer(xs)
            self.emit(expression(call(attribute(bar, "reverse"))))

    def append(self, s: Any, op: Any) -> None:
        owner, value = s.value.func.value, s.value.args[0]
        if not isinstance(owner, gast.Name) or owner.id not in self.active:
            if isinstance(value, gast.Name) and value.id in self.active and owner.id not in self.facts:
                raise self.refuse(
                    s, f"cannot differentiate a write into `{owner.id}`", "Return the value instead."
                )
            return
        bar = self.buffer(owner.id)
        taken = call(attribute(bar, "pop"))
        if isinstance(value, gast.Name) and value.id in self.active:
            base = value.id + "_bar" if self.disposable(value.id) else owner.id + "_part"
            made = self.names.fresh(base)
            fact = self.facts.get(value.id, UNKNOWN)
            self.know(made, fact if fact.kind == "scalar" else UNKNOWN)
            self.emit(assign(made, taken))
            part: Any = name(made)
            if fact.kind == "array":
                part = call(self.external(trees.match), part, name(value.id))
            self.contribute(value.id, part)
        else:
            self.emit(assign(self.names.fresh(owner.id + "_part"), taken))

    def insert(self, s: Any, op: Any) -> None:
        owner, (index, value) = s.value.func.value, s.value.args
        if not isinstance(owner, gast.Name) or owner.id not in self.active:
            return
        if not (isinstance(index, gast.Constant) and index.value == 0):
            raise self.refuse(s, "cannot differentiate `insert` at this position", "Build the list in order.")
        bar = self.buffer(owner.id)
        made = self.temporary(owner.id + "_part", call(attribute(bar, "pop"), constant(0)))
        if isinstance(value, gast.Name) and value.id in self.active:
            self.contribute(value.id, made)

    def pop(self, s: Any, op: Any, v: str | None) -> None:
        node = s.value
        owner, index = node.func.value, node.args[0] if node.args else None
        if not isinstance(owner, gast.Name) or owner.id not in self.active:
            return
        g: Any = None
        if v is not None and v in self.active:
            g = self.cotangent(v, s)
            if g is not None:
                g = self.apart(self.spread(g, v), owner.id)
        g = constant(0.0) if g is None else g
        bar = self.buffer(owner.id)
        if index is None or (isinstance(index, gast.Constant) and index.value == -1):
            self.emit(expression(call(attribute(bar, "append"), g)))
        else:
            where: Any = clone(index)
            if not (isinstance(index, gast.Constant) and index.value >= 0):
                length = gast.BinOp(call("len", name(bar)), gast.Add(), constant(1))
                where = gast.BinOp(where, gast.Mod(), length)
            self.emit(expression(call(attribute(bar, "insert"), where, g)))

    # Calls --------------------------------------------------------------------------------------------------

    def calls(self, s: Any, op: Any, v: str | None) -> None:
        given = [(k, n) for k, n in op.operands if n in self.active]
        useful = v is not None and v in self.active
        changes = op.kind == "call" and any(n in self.active and self.has(n) for n in self.aliases.written(s))
        if changes:
            g = self.cotangent(v, s) if useful and v is not None else None
            g = constant(0.0) if g is None else self.once(self.spread(g, v), 2, v) if v is not None else g
            self.pair(self, s, op, given, g, v)
            return
        if not useful or not given:
            writable = [n for _, n in given if self.kind(n) not in ("scalar", "string", "none")]
            if writable and op.kind == "dispatch" and op.function is not None and op.function is not print:
                self.pair(self, s, op, given, None, None)  # which refuses what it does not know
            return
        g = self.cotangent(v, s) if v is not None else None
        if g is None or v is None:
            return
        g = self.once(self.spread(g, v), 2, v)
        self.pair(self, s, op, given, g, v)


def accumulation(bar: str, value: Any) -> Any:
    """bar += value, or bar -= value where `value` carries a minus sign."""
    if isinstance(value, gast.UnaryOp) and isinstance(value.op, gast.USub):
        return _ours(augment(bar, gast.Sub(), value.operand))
    return _ours(augment(bar, gast.Add(), value))


def _ours(s: Any) -> Any:
    s.ours = True  # made by the compiler: may become `x = x + value`
    return s


def _carried(loop: Any) -> set[str]:
    """Names whose value an iteration of the loop hands to the next or to what follows."""
    if not isinstance(loop, (gast.For, gast.While)):
        return set()
    bound = dataflow.bound_names(loop.body)
    live = dataflow.liveness(loop.body, set())
    return (bound & live) - (dataflow.head_binds(loop) if isinstance(loop, gast.For) else set())


def _bound_inside(body: Block) -> set[str]:
    """Names that are bound wherever control reaches the end of the block that binds them."""
    found = dataflow.definitely_bound(body)
    outside = dataflow.reads(body)
    for s in body:
        for inner in dataflow.blocks(s):
            here = _bound_inside(inner)
            rest = dataflow.reads([x for x in body if x is not s]) if here else outside
            found |= here - rest
    return found


def _rebound(body: Block) -> set[str]:
    """Names that a block gives a new value, updates in place not counted."""
    found: set[str] = set()
    for s in body:
        if not isinstance(s, gast.AugAssign):
            found |= dataflow.head_binds(s)
        for inner in dataflow.blocks(s):
            found |= _rebound(inner)
    return found


def _reversed_loop(s: Any, body: Block) -> Any:
    made = gast.For(gast.Name("_", gast.Store(), None, None), constant(None), body, [], None)
    made.reverses = s
    return made


def mentioned(e: Any) -> set[str]:
    """Names that an expression reads."""
    return dataflow.free_names(e)


SHAPE_ONLY = {
    "unbroadcast": 1,
    "match": 1,
    "zeros_like": 0,
    "full_like": 0,
    "add_attribute": 1,
    "get_attribute": 1,
}


def value_names(e: Any) -> set[str]:
    """Names whose value an expression reads, of those that are not stable yet; a use that asks for the shape
    only does not count."""
    found: set[str] = set()
    todo = [e]
    while todo:
        node = todo.pop()
        if isinstance(node, gast.Name):
            if not hasattr(node, "stable"):
                found.add(node.id)
            continue
        if isinstance(node, gast.Attribute) and node.attr in ("size", "shape", "ndim", "dtype"):
            continue
        children = list(nodes.children(node))
        if isinstance(node, gast.Call):
            word = node.func.attr if isinstance(node.func, gast.Attribute) else getattr(node.func, "id", "")
            position = SHAPE_ONLY.get(word.rstrip("_"))
            if (
                position is not None
                and len(node.args) > position
                and isinstance(node.args[position], gast.Name)
            ):
                children.remove(node.args[position])
        todo.extend(children)
    return found


def uses_of(e: Any, n: str) -> int:
    return sum(isinstance(w, gast.Name) and w.id == n for w in nodes.walk(e))


def atomic(e: Any) -> bool:
    if isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.USub):
        return isinstance(e.operand, gast.Name) or isinstance(e.operand, gast.Constant)
    return isinstance(e, (gast.Name, gast.Constant))


def fresh(e: Any) -> bool:
    """Does the expression make a value that nobody else holds?"""
    return isinstance(e, gast.BinOp) or (
        isinstance(e, gast.UnaryOp) and not isinstance(e.operand, gast.Constant)
    )


class _Replace(gast.NodeTransformer):
    def __init__(self, n: str, by: Any, product: Callable[[Any, Any], Any]) -> None:
        self.n, self.by, self.product = n, by, product

    def visit_Name(self, node: Any) -> Any:
        return clone(self.by) if node.id == self.n else node

    def visit_BinOp(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, gast.Mult):
            return self.product(node.left, node.right)
        return node


def replace_name(e: Any, n: str, by: Any, product: Callable[[Any, Any], Any]) -> Any:
    return _Replace(n, by, product).visit(clone(e))


def _rule_parameters(rule: Any) -> list[str]:
    code = rule.__code__
    return list(code.co_varnames[: code.co_argcount])


def _element(fact: Fact) -> Fact:
    if fact.kind == "dict" and fact.items:
        result = facts_module.BOTTOM
        for _, f in fact.items:
            result = facts_module.join(result, f)
        return result
    if fact.kind in ("list", "tuple", "array"):
        return facts_module.element(fact)
    return UNKNOWN


def _static_key(index: Any) -> Any:
    if (
        isinstance(index, gast.Constant)
        and isinstance(index.value, (int, str))
        and not isinstance(index.value, bool)
    ):
        return index.value
    if (
        isinstance(index, gast.UnaryOp)
        and isinstance(index.op, gast.USub)
        and isinstance(index.operand, gast.Constant)
    ):
        return -index.operand.value if isinstance(index.operand.value, int) else None
    return None


def _loops(body: Block) -> Iterator[Any]:
    """The outermost loops of a block."""
    for s in body:
        if isinstance(s, (gast.For, gast.While)):
            yield s
        else:
            for inner in dataflow.blocks(s):
                yield from _loops(inner)


def _key_node(key: Any) -> Any:
    return constant(key)


def _as_index(index: Any) -> Any:
    """An index as an argument of a call: slices become `slice(...)`."""
    if isinstance(index, gast.Slice):
        parts = [p if p is not None else constant(None) for p in (index.lower, index.upper, index.step)]
        return call("slice", *(parts if index.step is not None else parts[:2]))
    if isinstance(index, gast.Tuple):
        return gast.Tuple([_as_index(p) for p in index.elts], gast.Load())
    return index


def written(node: Any, function: Any) -> str:
    """A function as the user's call names it."""
    func = getattr(node, "func", None)
    parts: list[str] = []
    while isinstance(func, gast.Attribute):
        parts.insert(0, func.attr)
        func = func.value
    if isinstance(func, gast.Name) and (parts or function is None):
        return ".".join([func.id, *parts])
    return "this call" if function is None else qualified(function)


def qualified(function: Any) -> str:
    """How a user would write a function: `np.kron`, `scipy.special.erf`, `helper`."""
    named = str(getattr(function, "__qualname__", getattr(function, "__name__", repr(function))))
    module = str(getattr(function, "__module__", "") or "")
    if module.split(".")[0] == "numpy":
        module = module.replace("numpy", "np", 1)
    return f"{module}.{named}" if module and module not in ("builtins", "__main__") else named
