"""Simplify: make the derivative program read as if written by hand.

Before: forward and reverse statements, one operation each, every value under a name of its own.
After:  the same program with fewer names and statements: copies merged, dead statements gone, temporaries
that are used
        once folded into expressions, sums accumulated in place where nobody else can see it.
Why here: last before printing; works on plain statements and knows nothing of differentiation.

Of the user's statements only those are removed whose functions are known to have no effect.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable
from typing import Any

import gast

from srcgrad.runtime.rules import table
from srcgrad.transforms.facts import UNKNOWN
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import (
    Recompute,
    Substitute,
    assign,
    constant,
    is_number,
    name,
    negative,
    root,
)

Block = list[Any]
PURE_BUILTINS = {
    len,
    range,
    reversed,
    bool,
    slice,
    int,
    float,
    abs,
    min,
    max,
    sum,
    list,
    tuple,
    dict,
    enumerate,
    zip,
    round,
}
PURE_METHODS = {
    "copy",
    "sum",
    "mean",
    "reshape",
    "transpose",
    "dot",
    "ravel",
    "max",
    "min",
    "astype",
    "item",
    "any",
    "all",
}


class Simplify:
    """`body` is the whole program, ending in a return; `lookup(expression)` gives the object that a function
    expression refers to, or None; `parameters` are bound at the start; `temporaries` may be folded away."""

    def __init__(
        self,
        body: Block,
        parameters: list[str],
        facts: dict[str, Any],
        temporaries: set[str],
        family: Callable[[str], str],
        lookup: Callable[[Any], Any],
        pinned: set[str],
        made: set[str],
        reserved: set[str],
        floating: Callable[[Any], bool],
    ) -> None:
        self.body, self.parameters, self.facts = body, parameters, facts
        self.temporaries, self.family, self.lookup = temporaries, family, lookup
        self.kept = pinned
        self.lambdas = any(isinstance(e, gast.Lambda) for s in body for e in nodes.walk(s))
        self.made, self.reserved, self.floating = made, reserved, floating

    def pin(self) -> None:
        """Notes the names that must stay: those asked for, those that nested functions read, and those that
        are bound by what is no node of its own."""
        self.pinned = set(self.kept)
        for s in _all(self.body):
            if isinstance(s, gast.FunctionDef):
                self.pinned |= dataflow.free_names(s)
            elif isinstance(s, (gast.Global, gast.Nonlocal)):
                self.pinned |= set(s.names)
            elif isinstance(s, (gast.Import, gast.ImportFrom)):
                self.pinned |= dataflow.bound_names([s])
            elif isinstance(s, gast.Match):
                self.pinned |= dataflow.bound_names([c.pattern for c in s.cases])
        for s in self.body if self.lambdas else ():
            for e in nodes.walk(s):
                if isinstance(e, gast.Lambda):
                    self.pinned |= dataflow.free_names(e)

    def run(self) -> None:
        _drop_self_copies(self.body)
        self.dead()
        while self.constants():
            pass
        self.coalesce()
        self.dead()
        self.loops(self.body)
        _join_branches(self.body)
        self.fold()
        self.dead()
        self.first(self.body)
        self.updates()
        self.tidy()
        for s in _all(self.body):
            if not getattr(s, "body", True):
                s.body = [gast.Pass()]

    # Constants ----------------------------------------------------------------------------------------------

    def constants(self) -> bool:
        """Puts numbers in the place of temporaries that are bound once, to a number."""
        bindings = binding_counts(self.body)
        augmented = {
            s.target.id
            for s in _all(self.body)
            if isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name)
        }
        found = {}
        for s in _all(self.body):
            if isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name) and is_number(s.value):
                n = s.targets[0].id
                if bindings[n] == 1 and n in self.temporaries and n not in self.pinned and n not in augmented:
                    found[n] = s.value
        sub = Recompute(found, self.floating)
        self.body[:] = [
            sub.visit(s) for s in self.body if not (isinstance(s, gast.Assign) and _bound_in(s, found))
        ]
        for s in _all(self.body):
            for inner in dataflow.blocks(s):
                inner[:] = [x for x in inner if not _bound_in(x, found)] or [gast.Pass()]
        return bool(found)

    # Copies -------------------------------------------------------------------------------------------------

    def coalesce(self) -> None:
        """Merges `a` and `b` of a copy `a = b` where the two are never alive at once with different values.

        Aggressive coalescing on one interference graph (Chaitin, "Register allocation and spilling via graph
        coloring"): a merged name interferes with whatever either of the two did.
        """
        local = dataflow.bound_names(self.body) | set(self.parameters)  # not what the copy of a global reads
        pairs = list(
            dict.fromkeys(p for p in _copies(self.body) if self.mergeable(*p) and local.issuperset(p))
        )
        if not pairs:
            return
        wanted = {n for p in pairs for n in p}
        against = self.interference(wanted)
        now: dict[str, str] = {}

        def find(n: str) -> str:
            while n in now:
                n = now[n]
            return n

        for pair in pairs:
            a, b = find(pair[0]), find(pair[1])
            if a == b or b in against[a] or (a in self.parameters and b in self.parameters):
                continue
            kept, gone = self.preferred(a, b)
            now[gone] = kept
            against[kept] |= against[gone]
            for n in against[gone]:
                against[n].discard(gone)
                against[n].add(kept)
            if gone in self.facts and kept in self.facts and self.facts[gone].kind != self.facts[kept].kind:
                self.facts[kept] = UNKNOWN
        done: set[int] = set()
        for s in self.body:
            for node in nodes.walk(s):
                if isinstance(node, gast.Name) and node.id in now and id(node) not in done:
                    done.add(id(node))
                    node.id = find(node.id)
                elif isinstance(node, gast.FunctionDef):
                    node.name = find(node.name)
        _drop_self_copies(self.body)

    def interference(self, wanted: set[str]) -> dict[str, set[str]]:
        """For each of the names, those among them that it may not share a variable with."""
        live: dataflow.Live = {}
        at_start = dataflow.liveness(self.body, set(), live) | set(self.parameters)
        against: dict[str, set[str]] = {n: set() for n in wanted}

        def clash(n: str, others: set[str]) -> None:
            if n in wanted:
                for m in others & wanted:
                    if m != n:
                        against[n].add(m)
                        against[m].add(n)

        for p in self.parameters:
            clash(p, at_start)
        for s in _all(self.body):
            after = live.get(id(s), set())
            binds = dataflow.head_binds(s)
            if isinstance(s, (gast.For, gast.While)):
                after = live.get(-id(s), set())
            for n in binds:
                source = s.value.id if isinstance(s, gast.Assign) and isinstance(s.value, gast.Name) else None
                clash(
                    n,
                    (after | binds) - {source}
                    if isinstance(s, gast.Assign) and len(binds) == 1
                    else after | binds,
                )
            for n in _mutated(s):
                if self.facts.get(n, UNKNOWN).kind != "scalar":
                    clash(n, live.get(id(s), set()))
        return against

    def mergeable(self, a: str, b: str) -> bool:
        if a in self.pinned or b in self.pinned:
            return False
        return self.family(a) == self.family(b) or a in self.temporaries or b in self.temporaries

    def preferred(self, a: str, b: str) -> tuple[str, str]:
        def rank(n: str) -> tuple[bool, bool, int, str]:
            return (n not in self.parameters, n in self.temporaries, len(n), n)

        return (a, b) if rank(a) <= rank(b) else (b, a)

    # Dead statements ----------------------------------------------------------------------------------------

    def dead(self) -> None:
        self.pin()
        before = None
        while self.pinned != before:
            before = self.pinned
            statements = [s for s in _all(self.body) if not hasattr(s, "records")]
            self.read = set().union(*map(dataflow.head_reads, statements))
            self.body[:] = self._dead(self.body, set())[0]
            self.pin()

    def _dead(self, body: Block, live: set[str]) -> tuple[Block, set[str]]:
        out: Block = []
        for s in reversed(body):
            if isinstance(s, gast.Pass):
                continue
            if isinstance(s, gast.If):
                stops = any(isinstance(b, gast.Break) for b in s.body)
                then, live_then = self._dead(s.body, set(live))
                other, live_other = self._dead(s.orelse, set(live))
                if not then and not other and self.pure(s.test):
                    continue
                if not then and other:
                    s.test, then, other = _negation(s.test), other, []
                s.body, s.orelse = then or [gast.Pass()], other
                live = (set(live) if stops else live_then) | live_other | dataflow.head_reads(s)
            elif isinstance(s, (gast.For, gast.While)):
                around = dataflow.liveness([s], set(live)) | live
                new, _ = self._dead(s.body, around | live)
                if (
                    not new
                    and isinstance(s, gast.For)
                    and self.pure(s.iter)
                    and not (dataflow.stored(s.target) & live)
                ):
                    continue
                s.body = new or [gast.Pass()]
                live = around
            elif isinstance(s, gast.With):
                s.body, inner_live = self._dead(s.body, set(live))
                s.body = s.body or [gast.Pass()]
                live = (inner_live - dataflow.head_binds(s)) | dataflow.head_reads(s)
            elif isinstance(s, gast.Try):
                kept = dataflow.liveness([s], set(live))
                live = kept
            elif isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name):
                if s.targets[0].id not in live and s.targets[0].id not in self.pinned and self.pure(s.value):
                    continue
                live = (live - {s.targets[0].id}) | dataflow.head_reads(s)
            elif isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name):
                scalar = self.facts.get(s.target.id, UNKNOWN).kind == "scalar"
                if (
                    s.target.id not in live
                    and scalar
                    and self.pure(s.value)
                    and s.target.id not in self.pinned
                ):
                    continue
                live = live | dataflow.head_reads(s)
            elif isinstance(s, gast.FunctionDef):
                if s.name not in live and not s.decorator_list:
                    continue
                live = (live - {s.name}) | dataflow.head_reads(s)
            elif isinstance(s, gast.Expr) and getattr(s, "records", None) and s.records not in self.read:
                continue
            elif isinstance(s, gast.Return):
                live = dataflow.head_reads(s)
            elif isinstance(s, gast.Match):
                for c in s.cases:
                    c.body = self._dead(c.body, live)[0]
                bound = dataflow.bound_names([c.pattern for c in s.cases])
                guarded = any(c.guard is not None for c in s.cases)
                if not (guarded or bound & live or any(c.body for c in s.cases)) and self.pure(s.subject):
                    continue
                for c in s.cases:
                    c.body = c.body or [gast.Pass()]
                live = live | dataflow.head_reads(s)
            elif isinstance(s, gast.Raise):
                live = live | dataflow.head_reads(s)
            else:
                live = (live - dataflow.head_binds(s)) | dataflow.head_reads(s)
            out.append(s)
        out.reverse()
        return out, live

    def pure(self, e: Any) -> bool:
        """Does evaluating an expression have no effect but its value?"""
        for n in nodes.walk(e):
            if isinstance(n, (gast.Await, gast.Yield, gast.YieldFrom, gast.NamedExpr)):
                return False
            if isinstance(n, gast.Call) and not self.pure_function(n.func):
                return False
        return True

    def pure_function(self, func: Any) -> bool:
        found = self.lookup(func)
        if found is not None:
            if found in PURE_BUILTINS if _hashable(found) else False:
                return True
            module = getattr(found, "__module__", None) or ""
            if module.startswith(("srcgrad.runtime.support", "srcgrad.runtime.rules")):
                return True
            if module == "srcgrad.runtime.trees":
                return found.__name__ not in ("add_item", "add_attribute", "clear_item")
            if "random" in module or (
                isinstance(func, gast.Attribute) and "random" in str(getattr(func.value, "attr", ""))
            ):
                return False
            return table.find(found) is not None
        return (
            isinstance(func, gast.Attribute)
            and func.attr in PURE_METHODS
            and isinstance(func.value, (gast.Name, gast.Subscript))
        )

    # Loops over sequences -----------------------------------------------------------------------------------

    def loops(self, body: Block) -> None:
        """`for k in range(len(xs)): v = xs[k]` back to `for v in xs`, where k serves nothing else."""
        self._loops(body, read_counts(self.body), _single_definitions(self.body))

    def _loops(self, body: Block, counts: dict[str, int], defined: dict[str, Any]) -> None:
        for s in body:
            for inner in dataflow.blocks(s):
                self._loops(inner, counts, defined)
            if not (isinstance(s, gast.For) and isinstance(s.target, gast.Name) and s.body):
                continue
            it, first = s.iter, s.body[0]
            if not (
                isinstance(it, gast.Call) and getattr(it.func, "id", "") == "range" and len(it.args) == 1
            ):
                continue
            length = it.args[0]
            if isinstance(length, gast.Name):
                length = defined.get(length.id)
            if not (
                isinstance(length, gast.Call) and getattr(length.func, "id", "") == "len" and length.args
            ):
                continue
            xs = length.args[0]
            if not (
                isinstance(first, gast.Assign)
                and isinstance(first.targets[0], gast.Name)
                and isinstance(first.value, gast.Subscript)
                and isinstance(xs, gast.Name)
                and isinstance(first.value.value, gast.Name)
                and first.value.value.id == xs.id
                and isinstance(first.value.slice, gast.Name)
                and first.value.slice.id == s.target.id
                and counts.get(s.target.id) == 1
                and xs.id not in dataflow.bound_names(s.body)
                and xs.id not in {n for b in _all(s.body) for n in _mutated(b)}
            ):
                continue
            s.target, s.iter = first.targets[0], xs
            s.body = s.body[1:] or [gast.Pass()]

    # Folding ------------------------------------------------------------------------------------------------

    def fold(self) -> None:
        counts = read_counts(self.body)
        bindings = binding_counts(self.body)
        self._summaries: dict[int, tuple[set[str], set[str], set[str]]] = {}
        self._writes: dict[int, bool] = {}
        self._fold(self.body, counts, bindings)

    def _fold(self, body: Block, counts: dict[str, int], bindings: dict[str, int]) -> None:
        for s in body:
            for inner in dataflow.blocks(s):
                self._fold(inner, counts, bindings)
        i = 0
        while i < len(body):
            s = body[i]
            if self.foldable(s, counts, bindings):
                j = self.use(body, i, s.targets[0].id, s.value)
                if j is not None and _size(s.value) + _head_size(body[j]) <= 30:
                    _substitute_head(body[j], s.targets[0].id, s.value)
                    self._summaries.pop(id(body[j]), None)
                    del body[i]
                    i = max(0, i - 1)
                    continue
            i += 1

    def foldable(self, s: Any, counts: dict[str, int], bindings: dict[str, int]) -> bool:
        return (
            isinstance(s, gast.Assign)
            and isinstance(s.targets[0], gast.Name)
            and s.targets[0].id in self.temporaries
            and s.targets[0].id not in self.pinned
            and counts.get(s.targets[0].id) == 1
            and bindings.get(s.targets[0].id) == 1
            and self.pure(s.value)
            and not isinstance(s.value, (*dataflow.SCOPES, gast.List, gast.Dict))
        )

    def use(self, body: Block, i: int, n: str, value: Any) -> int | None:
        """The statement of the same block that reads `n`, if the value may as well be computed there."""
        operands = dataflow.free_names(value)
        views = any(self.facts.get(o, UNKNOWN).kind not in ("scalar", "string") for o in operands)
        for j in range(i + 1, len(body)):
            s = body[j]
            reads, inside, changed = self.summary(s)
            if n in reads and not isinstance(s, (gast.While, gast.FunctionDef)):
                return j if not isinstance(s, gast.Try) else None
            if n in inside or changed & operands:
                return None
            if views and self.writes(s):
                return None
        return None

    def summary(self, s: Any) -> tuple[set[str], set[str], set[str]]:
        """(names that a statement reads itself, that its blocks read, that it binds or changes), looked at
        once."""
        found = self._summaries.get(id(s))
        if found is None:
            inside = set().union(*(dataflow.reads(b) for b in dataflow.blocks(s)))
            found = (dataflow.head_reads(s), inside, dataflow.bound_names([s]) | set(_all_mutated([s])))
            self._summaries[id(s)] = found
        return found

    def writes(self, s: Any) -> bool:
        if id(s) not in self._writes:
            self._writes[id(s)] = self.may_write(s)
        return self._writes[id(s)]

    def may_write(self, s: Any) -> bool:
        """May a statement write memory that other names see?"""
        for x in _all([s]):
            if _mutated(x) and not isinstance(x, gast.AugAssign):
                return True
            if isinstance(x, gast.AugAssign):
                owner = x.target if isinstance(x.target, gast.Name) else None
                if owner is None or self.facts.get(owner.id, UNKNOWN).kind != "scalar":
                    return True
            for n in nodes.walk(x) if not list(dataflow.blocks(x)) else ():
                if isinstance(n, gast.Call) and not self.pure_function(n.func):
                    return True
        return False

    # First contributions ------------------------------------------------------------------------------------

    def first(self, body: Block) -> None:
        """`x = 0.0` followed by `x += e`, also in the branches of an `if`, becomes `x = e`."""
        for s in body:
            for inner in dataflow.blocks(s):
                self.first(inner)
        i = 0
        while i < len(body):
            s = body[i]
            if isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name) and is_number(s.value, 0):
                n = s.targets[0].id
                if (
                    n in self.temporaries
                    and n not in self.pinned
                    and self.facts.get(n, UNKNOWN).kind == "scalar"
                ):
                    j = next((j for j in range(i + 1, len(body)) if _touches(body[j], n)), None)
                    if j is not None and self.start_with(body, j, n):
                        del body[i]
                        continue
            i += 1

    def start_with(self, body: Block, j: int, n: str) -> bool:
        """Turns the first update of `n`, at or inside statement `j`, into an assignment, if there is one on
        every path."""
        s = body[j]
        if isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name) and s.target.id == n:
            if n in dataflow.free_names(s.value) or not isinstance(s.op, (gast.Add, gast.Sub)):
                return False
            value = s.value if isinstance(s.op, gast.Add) else negative(s.value)
            if is_number(value):
                value = constant(float(value.value))
            made = assign(n, value, s)
            _keep_notes(made, s)
            body[j] = made
            return True
        if isinstance(s, gast.If) and s.orelse and n not in dataflow.free_names(s.test):
            places = []
            for branch in (s.body, s.orelse):
                k = next((k for k in range(len(branch)) if _touches(branch[k], n)), None)
                if k is None or not self.could_start(branch[k], n):
                    return False
                places.append((branch, k))
            return all(self.start_with(branch, k, n) for branch, k in places)
        return False

    def could_start(self, s: Any, n: str) -> bool:
        if isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name) and s.target.id == n:
            return n not in dataflow.free_names(s.value) and isinstance(s.op, (gast.Add, gast.Sub))
        if isinstance(s, gast.If) and s.orelse and n not in dataflow.free_names(s.test):
            found = [next((x for x in branch if _touches(x, n)), None) for branch in (s.body, s.orelse)]
            return all(x is not None and self.could_start(x, n) for x in found)
        return False

    # Names --------------------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """The lowest free number for each name that the compiler made, in the order of their appearance."""
        order: dict[str, None] = {}
        for s in self.body:
            for node in _in_order(s):
                order.setdefault(node, None)
        functions = [s for s in _all(self.body) if isinstance(s, gast.FunctionDef)]
        fixed = {n for n in order if n not in self.made or n in self.pinned or n in self.parameters}
        for s in functions:  # by which they are called
            fixed |= {s.name, *(p.id for p in dataflow.parameters(s))}
        taken = self.reserved | fixed
        renamed: dict[str, str] = {}
        for n in order:
            if n in fixed:
                continue
            core, suffix = _parts(n, self.family)
            number = 1
            while True:
                wanted = f"{core}{suffix}" if number == 1 else f"{core}_{number}{suffix}"
                if wanted not in taken and not _clashes(wanted):
                    break
                number += 1
            taken.add(wanted)
            renamed[n] = wanted
        done: set[int] = set()  # a node may stand in several places
        for s in self.body:
            for node in nodes.walk(s):
                if isinstance(node, gast.Name) and node.id in renamed and id(node) not in done:
                    done.add(id(node))
                    node.id = renamed[node.id]

    # Updates in place ---------------------------------------------------------------------------------------

    def updates(self) -> None:
        """`x += e` stays in place only for numbers and for arrays that nobody else holds; else it becomes `x
        = x + e`."""
        shared = self.shared_names()
        self._updates(self.body, shared)

    def shared_names(self) -> set[str]:
        shared: set[str] = set()
        for s in _all(self.body):
            if isinstance(s, gast.Assign):
                if isinstance(s.targets[0], gast.Name) and not self.fresh(s.value):
                    shared.add(s.targets[0].id)
                elif isinstance(s.targets[0], gast.Tuple):
                    shared |= dataflow.stored(s.targets[0])
            elif isinstance(s, gast.For):
                shared |= dataflow.stored(s.target)
            for e in _head_expressions(s):
                shared |= self.handed(e)
        return shared

    def handed(self, e: Any) -> set[str]:
        """Names whose object an expression may hand to somebody."""
        if isinstance(e, gast.Name):
            return {e.id}
        if isinstance(e, gast.BinOp):
            return self.handed_inside(e.left) | self.handed_inside(e.right)
        if isinstance(e, gast.UnaryOp):
            return self.handed_inside(e.operand)
        if isinstance(e, gast.Call):
            found = self.lookup(e.func)
            parts = [*e.args, *(k.value for k in e.keywords)]
            if isinstance(e.func, gast.Attribute):
                parts.append(e.func.value)
            rule = table.find(found) if found is not None else None
            keeps = rule is not None and rule.alias == "fresh"
            keeps = keeps or (isinstance(e.func, gast.Attribute) and e.func.attr in ("copy", "sum", "mean"))
            return (
                set().union(*(self.handed_inside(p) if keeps else self.handed(p) for p in parts))
                if parts
                else set()
            )
        return {n.id for n in nodes.walk(e) if isinstance(n, gast.Name)}

    def handed_inside(self, e: Any) -> set[str]:
        return set() if isinstance(e, (gast.Name, gast.Constant)) else self.handed(e)

    def fresh(self, e: Any) -> bool:
        if isinstance(e, (gast.BinOp, gast.Constant)):
            return True
        if isinstance(e, gast.UnaryOp):
            return True
        if isinstance(e, gast.Call):
            found = self.lookup(e.func)
            if isinstance(e.func, gast.Attribute) and e.func.attr in (
                "copy",
                "sum",
                "zeros_like",
                "full_like",
                "array",
            ):
                return True
            rule = table.find(found) if found is not None else None
            named = getattr(found, "__name__", "")
            return rule is not None and rule.alias == "fresh" and named not in ("unbroadcast", "expand")
        return False

    def _updates(self, body: Block, shared: set[str]) -> None:
        for i, s in enumerate(body):
            for inner in dataflow.blocks(s):
                self._updates(inner, shared)
            if not (isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name)):
                continue
            n = s.target.id
            if getattr(s, "ours", False) and n in shared and self.facts.get(n, UNKNOWN).kind != "scalar":
                made = assign(n, gast.BinOp(name(n), s.op, s.value), s)
                _keep_notes(made, s)
                body[i] = made


# Helpers ----------------------------------------------------------------------------------------------------


def _join_branches(body: Block) -> None:
    """`if t: a` right before `if t: b else: c` becomes one `if`."""
    for s in body:
        for inner in dataflow.blocks(s):
            _join_branches(inner)
    i = 0
    while i + 1 < len(body):
        a, b = body[i], body[i + 1]
        if (
            isinstance(a, gast.If)
            and isinstance(b, gast.If)
            and isinstance(a.test, gast.Name)
            and isinstance(b.test, gast.Name)
            and a.test.id == b.test.id
            and a.test.id not in dataflow.bound_names([a])
            and not any(isinstance(x, gast.Break) for x in a.body)
        ):
            b.body = a.body + b.body
            b.orelse = a.orelse + b.orelse
            del body[i]
        else:
            i += 1


SUFFIXES = ("_bar", "_saved", "_parts", "_part", "_dot", "_old", "_new")


def _parts(n: str, family: Callable[[str], str]) -> tuple[str, str]:
    """`x_2_bar` as ("x", "_bar"): the name without its numbers, and what it was made for."""
    suffix = ""
    while True:
        stripped = n
        while stripped.rpartition("_")[2].isdigit() and stripped.rpartition("_")[0]:
            stripped = stripped.rpartition("_")[0]
        found = next((s for s in SUFFIXES if stripped.endswith(s) and len(stripped) > len(s)), None)
        if found is None:
            return stripped.rstrip("_") or stripped, suffix
        suffix = suffix if suffix.startswith(found) else found + suffix
        n = stripped[: -len(found)]


def _clashes(n: str) -> bool:
    return keyword.iskeyword(n) or hasattr(builtins, n) or not n.isidentifier()


def _in_order(node: Any) -> Any:
    """Names in the order in which they are written down."""
    if isinstance(node, gast.Name):
        yield node.id
        return
    if isinstance(node, gast.Assign):
        children = [*node.targets, node.value]
    else:
        children = list(nodes.children(node))
    for child in children:
        yield from _in_order(child)


def _touches(s: Any, n: str) -> bool:
    return any(isinstance(node, gast.Name) and node.id == n for node in nodes.walk(s))


def _keep_notes(made: Any, s: Any) -> None:
    for note in ("comment", "adjoint", "origin"):
        if hasattr(s, note):
            setattr(made, note, getattr(s, note))


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _negation(test: Any) -> Any:
    if isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
        return test.operand
    return gast.UnaryOp(gast.Not(), test)


def _all(body: Block) -> Any:
    for s in body:
        yield s
        for inner in dataflow.blocks(s):
            yield from _all(inner)


def _bound_in(s: Any, names: Any) -> bool:
    return isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name) and s.targets[0].id in names


def _copies(body: Block) -> Any:
    for s in _all(body):
        if (
            isinstance(s, gast.Assign)
            and isinstance(s.targets[0], gast.Name)
            and isinstance(s.value, gast.Name)
        ):
            if s.targets[0].id != s.value.id:
                yield s.targets[0].id, s.value.id


def _drop_self_copies(body: Block) -> None:
    for s in body:
        for inner in dataflow.blocks(s):
            _drop_self_copies(inner)
            if not inner:
                inner.append(gast.Pass())
    body[:] = [
        s
        for s in body
        if not (
            isinstance(s, gast.Assign)
            and isinstance(s.targets[0], gast.Name)
            and isinstance(s.value, gast.Name)
            and s.targets[0].id == s.value.id
        )
    ]


def _mutated(s: Any) -> list[str]:
    """Names whose object a statement itself changes in place."""
    if isinstance(s, (gast.Assign, gast.AugAssign)):
        to = s.targets[0] if isinstance(s, gast.Assign) else s.target
        if isinstance(to, (gast.Subscript, gast.Attribute)) and isinstance(root(to), gast.Name):
            return [root(to).id]
        if isinstance(s, gast.AugAssign) and isinstance(to, gast.Name):
            return [to.id]
    if isinstance(s, gast.Delete):
        return [
            t.value.id for t in s.targets if isinstance(t, gast.Subscript) and isinstance(t.value, gast.Name)
        ]
    found = []
    value = getattr(s, "value", None)
    if isinstance(value, gast.Call):
        if isinstance(value.func, gast.Attribute) and isinstance(value.func.value, gast.Name):
            if value.func.attr not in PURE_METHODS:
                found.append(value.func.value.id)
        if isinstance(s, gast.Expr):
            found += [a.id for a in value.args if isinstance(a, gast.Name)]
    return found


def _all_mutated(body: Block) -> list[str]:
    return [n for s in _all(body) for n in _mutated(s)]


def _head_expressions(s: Any) -> list[Any]:
    if isinstance(s, gast.Assign):
        to = s.targets[0]
        extra = [to.slice] if isinstance(to, gast.Subscript) else []
        return [s.value, *extra]
    if isinstance(s, gast.AugAssign):
        # An operand of `+=` is read, not kept.
        return [] if isinstance(s.value, gast.Name) else [s.value]
    if isinstance(s, (gast.Expr, gast.Return)):
        return [] if isinstance(s, gast.Return) or s.value is None else [s.value]
    return []


def read_counts(body: Block) -> dict[str, int]:
    """How often each name is read; inside a loop counts double, so that nothing is moved into one."""
    counts: dict[str, int] = {}

    def visit(node: Any) -> None:
        for n in nodes.walk(node):
            if isinstance(n, gast.Name) and not isinstance(n.ctx, (gast.Store, gast.Param)):
                counts[n.id] = counts.get(n.id, 0) + 1
            elif isinstance(n, gast.AugAssign) and isinstance(n.target, gast.Name):
                counts[n.target.id] = counts.get(n.target.id, 0) + 1

    for s in body:
        visit(s)
    return counts


def binding_counts(body: Block) -> dict[str, int]:
    counts: dict[str, int] = {}
    for s in _all(body):
        for n in dataflow.head_binds(s):
            counts[n] = counts.get(n, 0) + 1
    return counts


def _single_definitions(body: Block) -> dict[str, Any]:
    counts = binding_counts(body)
    return {
        s.targets[0].id: s.value
        for s in _all(body)
        if isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name) and counts[s.targets[0].id] == 1
    }


def _size(e: Any) -> int:
    return sum(isinstance(n, (gast.Name, gast.Constant, gast.BinOp, gast.Call)) for n in nodes.walk(e))


def _head_size(s: Any) -> int:
    if isinstance(s, (gast.If, gast.While)):
        return _size(s.test)
    if isinstance(s, gast.For):
        return _size(s.iter)
    if isinstance(s, (gast.With, gast.Try)):
        return 0
    return _size(s)


def _substitute_head(s: Any, n: str, value: Any) -> None:
    sub = Substitute({n: value})
    if isinstance(s, (gast.If, gast.While)):
        s.test = sub.visit(s.test)
    elif isinstance(s, gast.For):
        s.iter = sub.visit(s.iter)
    elif isinstance(s, gast.With):
        for item in s.items:
            item.context_expr = sub.visit(item.context_expr)
    else:
        sub.visit(s)
