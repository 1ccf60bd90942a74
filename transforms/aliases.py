"""Aliases: which names may share memory, wherever something is written in place.

Before: normalized statements with facts and activity.   After: the same, or a refusal that shows the write
and the alias.
Why here: the reverse pass treats each name as a value of its own, which is exact unless memory that one name
writes is later seen through another. It also asks which values are overwritten before the reverse sweep reads
them.

The relation is followed along the statements (a fresh value shares with nothing; a name bound anew forgets
what it shared). A token is a name, `x`, or what a container holds, `x*`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from typing import Any

import gast

from srcgrad.runtime import trees
from srcgrad.runtime.errors import AliasError
from srcgrad.transforms import facts as facts_module
from srcgrad.transforms import resolve
from srcgrad.transforms.activity import statements
from srcgrad.transforms.facts import UNKNOWN
from srcgrad.transforms.normalize import MUTATORS, basic_index
from srcgrad.transforms.read import Source, fail
from srcgrad.transforms.tree import dataflow
from srcgrad.transforms.tree.build import root
from srcgrad.transforms.tree.scope import MISSING
from srcgrad.transforms.tree.sharing import memory_of, shares

VALUES = ("scalar", "string", "none", "module", "function")
Relation = dict[str, set[str]]


class Aliases:
    """`effects(operation)` tells for a call of a Python function: (parameters it writes into, may its result
    share memory with an argument), by the names of the arguments; `contents_written(operation)` the
    containers among these which may hold arrays that it writes. `seen_by_caller` are parameters whose new
    value the caller goes on with."""

    def __init__(
        self,
        source: Source,
        tree: Any,
        facts: dict[str, Any],
        active: set[str],
        varied: set[str],
        effects: Callable[[Any, Any], Any],
        scope: Any,
        mirrored: bool = False,
        contents_written: Callable[[Any, Any], set[str]] = lambda op, value: set(),
        seen_by_caller: Collection[str] = (),
    ) -> None:
        self.source, self.tree, self.facts, self.effects = source, tree, facts, effects
        self.active, self.varied, self.scope = active, varied, scope
        self.mirrored, self.contents_written = mirrored, contents_written
        self.shared: list[tuple[int, str, str]] = []
        """(Statement that writes into a name, name, another name that may see it), where the derivatives
        share memory too: in forward mode, which does to the tangents what the primal does to the values, and
        in reverse mode for arrays."""
        self.mirrors: dict[int, str | None] = {}
        """In reverse mode: each definition of a name whose cotangent shares memory as its value does, with
        the name of which it makes a view, or None if what it makes is new."""
        self.shadowed: set[str] = set()
        self.conflicts: list[tuple[Any, str, str]] = []
        self.position: dict[int, int] = {}
        self.loops: dict[int, tuple[int, ...]] = {}
        self.writes: list[tuple[str, int]] = []
        self.updates: list[tuple[str, int]] = []
        """Names that stand for several values, bound anew by `x op= y` or kept for functions, and where."""
        self.parent: dict[str, str] = {}
        self.live: dataflow.Live = {}
        self.late = set(getattr(tree, "late", {}))
        """Variables that functions which are kept read when they are called."""
        self.parameters = {p.id for p in dataflow.parameters(tree)}
        self.written_parameters: set[str] = set()
        self.written_tokens: set[str] = set()
        """The same, with `p*` for what a parameter holds."""
        self.guards: list[tuple[int, str, str]] = []
        self.exposed: set[str] = set()
        self.repeated: set[str] = set()
        """Containers that hold one mutable object in several places."""
        """Classes of memory that the caller writes after the call."""
        self.shared_result = False
        *body, last = tree.body
        dataflow.liveness(body, dataflow.free_names(last) | set(seen_by_caller), self.live)
        self.number(tree.body, ())
        self.collect(tree.body)
        self.given = {n for s in statements(tree.body) for n in self.arguments(s)}
        """Names that calls of other functions receive, which may keep them."""
        if self.writes or any(isinstance(s, gast.Return) for s in tree.body):
            start: Relation = {}
            self.block(tree.body, start)
            self.mirror()

    def arguments(self, s: Any) -> set[str]:
        value = getattr(s, "value", None)
        if not isinstance(value, gast.Call) or resolve.operation(value).kind not in ("call", "dispatch"):
            return set()
        parts = [*value.args, *(k.value for k in value.keywords)]
        return set().union(*map(dataflow.free_names, parts))

    def number(self, body: list[Any], loops: tuple[int, ...]) -> None:
        for s in body:
            self.position[id(s)] = len(self.position)
            self.loops[id(s)] = loops
            inner = (*loops, id(s)) if isinstance(s, (gast.For, gast.While)) else loops
            for b in dataflow.blocks(s):
                self.number(b, inner)

    def kind(self, n: str) -> str:
        if n not in self.facts:
            found = self.scope.name(n)
            return str(facts_module.of_global(found).kind) if found is not MISSING else "unknown"
        return str(self.facts[n].kind)

    # Who writes ---------------------------------------------------------------------------------------------

    def written(self, s: Any) -> list[str]:
        """Names whose memory a statement may write."""
        if isinstance(s, gast.Assign) and isinstance(s.targets[0], (gast.Subscript, gast.Attribute)):
            owner = s.targets[0].value
            if isinstance(owner, gast.Name):
                return [owner.id]
            start = root(owner)
            if not isinstance(start, gast.Name):
                return []
            # A row of an array shares its memory; a part of a container is what it holds.
            return [start.id] if self.kind(start.id) in ("array", "numeric") else [start.id + "*"]
        if isinstance(s, gast.AugAssign):
            owner = s.target if isinstance(s.target, gast.Name) else s.target.value
            if isinstance(owner, gast.Name) and not (owner is s.target and self.kind(owner.id) in VALUES):
                return [owner.id]
            return []
        if isinstance(s, gast.Delete):
            return [
                t.value.id
                for t in s.targets
                if isinstance(t, gast.Subscript) and isinstance(t.value, gast.Name)
            ]
        value = getattr(s, "value", None)
        if isinstance(s, (gast.Assign, gast.Expr)) and isinstance(value, gast.Call):
            op = resolve.operation(value)
            if op.kind in ("append", "pop", "insert", "reverse", "clear") and isinstance(
                value.func.value, gast.Name
            ):
                return [value.func.value.id]
            if op.kind in ("call", "dispatch"):
                return sorted(self.effects(op, value)[0]) + [
                    n + "*" for n in self.contents_written(op, value)
                ]
            if isinstance(value.func, gast.Attribute) and value.func.attr in MUTATORS and op.kind == "inert":
                return [value.func.value.id] if isinstance(value.func.value, gast.Name) else []
        return []

    def collect(self, body: list[Any]) -> None:
        for s in body:
            self.writes += [(n, id(s)) for n in self.written(s)]
            if isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name):
                self.updates.append((s.target.id, id(s)))
            pinned = dataflow.head_binds(s) & getattr(self.tree, "pinned", set())
            self.updates += [(n, id(s)) for n in pinned]
            for b in dataflow.blocks(s):
                self.collect(b)

    # The relation -------------------------------------------------------------------------------------------

    def find(self, t: str) -> str:
        while self.parent.get(t, t) != t:
            t = self.parent[t]
        return t

    def unite(self, a: str, b: str) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra != rb:
            self.parent[ra] = rb

    def relate(self, r: Relation, a: str, b: str) -> None:
        """`a` may share with `b` and with all that `b` shares with."""
        for t in {b, *r.get(b, ())} - {a}:
            self.pair(r, a, t)

    def pair(self, r: Relation, a: str, b: str) -> None:
        r.setdefault(a, set()).add(b)
        r.setdefault(b, set()).add(a)
        self.unite(a, b)

    def bury(self, r: Relation, live: set[str]) -> None:
        """Forgets the local names that nothing reads any more."""
        for n in {t.rstrip("*") for t in r} - live - self.late:
            if n in self.facts and n not in self.parameters:
                self.forget(r, n)

    def forget(self, r: Relation, n: str) -> None:
        for token in (n, n + "*"):
            for other in r.pop(token, ()):
                r.get(other, set()).discard(token)

    def block(self, body: list[Any], r: Relation) -> None:
        for s in body:
            self.statement(s, r)
            self.bury(r, self.live.get(id(s), set()))

    def statement(self, s: Any, r: Relation) -> None:
        for n in self.written(s):
            self.check(n, s, r)
        if isinstance(s, gast.Assign):
            (to,) = s.targets
            if isinstance(to, gast.Name):
                self.bind(to.id, s.value, r)
            elif isinstance(to, gast.Tuple):
                for part in to.elts:
                    star = isinstance(part, gast.Starred)
                    v = part.value.id if star else part.id
                    self.forget(r, v)
                    if isinstance(s.value, gast.Name) and self.kind(v) not in VALUES:
                        x = s.value.id
                        if self.kind(x) != "array":
                            self.relate(r, v + "*" if star else v, x + "*")
                        if self.kind(x) not in ("tuple", "list"):
                            self.relate(r, v + "*" if star else v, x)
            elif isinstance(root(to), gast.Name) and isinstance(s.value, gast.Name):
                if self.kind(root(to).id) not in ("array", "numeric"):
                    self.hold(r, root(to).id, s.value.id)
        elif isinstance(s, gast.Expr) and isinstance(s.value, gast.Call):
            op = resolve.operation(s.value)
            if op.kind in ("append", "insert") and isinstance(s.value.func.value, gast.Name):
                for key, n in op.operands:
                    if key != "list":
                        self.hold(r, s.value.func.value.id, n)
        elif isinstance(s, gast.If):
            other = {k: set(v) for k, v in r.items()}
            self.block(s.body, r)
            self.block(s.orelse, other)
            _merge(r, other)
        elif isinstance(s, (gast.For, gast.While)):
            while True:
                before = {k: set(v) for k, v in r.items()}
                for n in dataflow.head_binds(s):
                    self.forget(r, n)
                self.block(s.body, r)
                _merge(r, before)
                if r == before:
                    break
        elif isinstance(s, gast.Try):
            before = {k: set(v) for k, v in r.items()}
            self.block(s.body, r)
            self.block(s.orelse, r)
            for h in s.handlers:
                other = {k: set(v) for k, v in before.items()}
                self.block(h.body, other)
                _merge(r, other)
            self.block(s.finalbody, r)
        elif isinstance(s, gast.With):
            self.block(s.body, r)
        elif isinstance(s, gast.FunctionDef):
            self.forget(r, s.name)
            held = [*getattr(s, "captured", {}).values(), *getattr(s, "held", {}).values()]
            for n in held if getattr(s, "escapes", True) else ():
                self.hold(r, s.name, n)
        elif isinstance(s, gast.Return):
            for n in dataflow.free_names(s.value):
                shared = {t.rstrip("*") for t in {n, *r.get(n, ()), *r.get(n + "*", ())}}
                if self.kind(n) not in VALUES and shared & self.parameters:
                    self.shared_result = True

    def hold(self, r: Relation, container: str, n: str) -> None:
        if self.kind(n) in VALUES:
            return
        self.relate(r, container + "*", n)
        self.relate(r, container + "*", n + "*")

    def bind(self, v: str, value: Any, r: Relation) -> None:
        op = resolve.operation(value)
        sources = [n for _, n in op.operands if self.kind(n) not in VALUES]
        shared = {n: {n, *r.get(n, ())} for n in sources}
        held = {n: {n + "*", *r.get(n + "*", ())} if self.kind(n) != "array" else set() for n in sources}
        self.forget(r, v)
        if self.kind(v) in VALUES:
            return
        fact = self.facts.get(v, UNKNOWN)
        if op.kind == "repeat" and isinstance(value.left, gast.List):
            if any(getattr(e, "fact", UNKNOWN).kind not in VALUES for e in value.left.elts):
                self.repeated.add(v)

        def link(a: str, tokens: set[str]) -> None:
            for t in tokens:
                if t.rstrip("*") != v:
                    self.pair(r, a, t)

        for n in sources:
            if op.kind == "copy":
                link(v, shared[n])
                link(v + "*", held[n])
            elif op.kind in ("tuple", "list", "dict", "struct"):
                if self.spread(value, n):
                    if facts_module.element(self.facts.get(n, UNKNOWN)).kind not in VALUES:
                        link(v + "*", held[n] | self.views(n, shared[n]))
                    continue
                link(v + "*", shared[n] | held[n])
                if [m for _, m in op.operands].count(n) > 1:
                    self.repeated.add(v)
            elif op.kind in ("item", "attribute", "pop"):
                if self.kind(n) in ("array", "numeric"):
                    if not (
                        isinstance(value, gast.Subscript)
                        and facts_module.getitem(self.facts[n], value.slice).kind == "scalar"
                    ):
                        link(v, shared[n])
                else:
                    piece = isinstance(value, gast.Subscript) and isinstance(value.slice, gast.Slice)
                    if not (piece and self.kind(n) in ("list", "tuple")):  # a list of its own
                        link(v, held[n])
                    link(v + "*", held[n])
                    if self.kind(n) not in ("tuple", "list", "dict"):
                        link(v, shared[n])
            elif op.kind == "repeat" and facts_module.element(self.facts.get(n, UNKNOWN)).kind not in VALUES:
                self.repeated.add(v)
                link(v + "*", held[n])
            elif op.kind in ("concat", "repeat", "sequence", "copy_of", "copy_of_list"):
                if facts_module.element(self.facts.get(n, UNKNOWN)).kind not in VALUES:
                    views = self.views(n, shared[n]) if op.kind == "sequence" else set()
                    link(v + "*", held[n] | views)
            elif op.kind == "rule":
                if op.rule is not None and op.rule.alias == "elements":
                    if facts_module.element(self.facts.get(n, UNKNOWN)).kind not in VALUES:
                        link(v + "*", held[n] | self.views(n, shared[n]))
                elif op.rule is not None and shares(op.rule, len(op.operands), value):
                    if op.function is not trees.built:
                        link(v, shared[n] | held[n])
                    if fact.kind in ("list", "tuple", "unknown", "instance"):
                        link(v + "*", shared[n] | held[n])
            elif op.kind in ("call", "dispatch"):
                if kept := self.effects(op, value)[1]:
                    if kept == "itself" and not makes_object(op.function):
                        link(v, shared[n] | held[n])
                    link(v + "*", shared[n] | held[n])
        if sources:
            return
        own, inside = memory_of(value, known_object, self.may_give_back)
        for token, tokens in ((v, own), (v + "*", inside)):
            for t in tokens:
                n = t.rstrip("*")
                list_itself = token != v and t == n and self.kind(n) in ("list", "tuple", "dict")
                if (
                    n != v
                    and self.kind(n) not in VALUES
                    and not (list_itself and isinstance(value, gast.Call))
                ):
                    link(token, {t, *r.get(t, ())})

    def may_give_back(self, e: Any) -> bool:
        """May the result of a call that carries no derivative share memory with its arguments?"""
        function = known_object(e.func)
        if not isinstance(function, types.FunctionType):
            return True
        return bool(self.effects(resolve.Operation("call", function=function, node=e), e)[1])

    def spread(self, value: Any, n: str) -> bool:
        """Does a display hold the elements of `n`, `[*n]`, and not `n` itself?"""
        parts = getattr(value, "elts", [])
        held = [p for p in parts if isinstance(p, gast.Name) and p.id == n]
        return not held and any(
            isinstance(p, gast.Starred) and isinstance(p.value, gast.Name) and p.value.id == n for p in parts
        )

    def views(self, n: str, shared: set[str]) -> set[str]:
        """What the elements of `n` share memory with, beside what `n` holds: rows with their array."""
        return set() if self.kind(n) in ("list", "tuple", "dict") else shared

    def check(self, n: str, s: Any, r: Relation) -> None:
        live = self.live.get(id(s), set())
        token, n = n, n.rstrip("*")
        holders = {t.rstrip("*") for t in {token, *r.get(token, ())}}
        repeated = holders & self.repeated and n in self.varied and (token != n or n not in self.repeated)
        if repeated and not self.mirrored:
            what = f"`{n}` is written in place here, which a list holds several times"
            raise fail(
                AliasError,
                self.source,
                s,
                what,
                "Make the parts of the list one by one, each with memory of its own.",
            )
        for t in sorted(r.get(token, ())):
            other = t.rstrip("*")
            if other == getattr(s, "returned_to", None):
                continue  # an element that is updated and put back at once
            outside = other not in self.facts or (other in self.late and self.callable_later(other, r, live))
            if other != n and (other in live or outside) and ({n, other} & self.varied):
                inside_call = token != n and isinstance(getattr(s, "value", None), gast.Call)
                if self.mirrored and {n, other} <= self.varied and not outside and not inside_call:
                    self.shared.append((id(s), n, other))
                    continue
                if (
                    not self.mirrored
                    and (token, t) == (n, other)
                    and {n, other} <= self.varied
                    and self.kind(n) == self.kind(other) == "array"
                    and not outside
                    and isinstance(s, (gast.Assign, gast.AugAssign, gast.Expr))
                ):
                    self.shared.append((id(s), n, other))
                    self.conflicts.append((s, n, other))
                    continue
                deep = isinstance(s, gast.Assign) and not isinstance(s.targets[0], gast.Name)
                sure = (token == n or deep) and self.kind(n) in ("list", "dict", "instance")
                unsure = ("unknown", "numeric", "bottom")
                if self.kind(n) in unsure or (
                    sure and self.kind(other) in unsure
                ):  # it may be a number: seen when it runs
                    self.guards.append((id(s), n, other))
                    continue
                raise self.refusal(s, n, other)
        tokens = {t for t in {token, *r.get(token, ())} if t.rstrip("*") in self.parameters}
        self.written_tokens |= tokens
        self.written_parameters |= {t.rstrip("*") for t in tokens}

    def callable_later(self, n: str, r: Relation, live: set[str]) -> bool:
        """May a function that has captured the variable `n` be called from here on?"""
        tokens = r.get(n, set()) | r.get(n + "*", set())
        holders = {t.rstrip("*") for t in tokens if t.endswith("*")} - {n}
        return any(h in live or h not in self.facts or h in self.given for h in holders)

    def refusal(self, s: Any, n: str, other: str) -> Exception:
        what = f"`{n}` is written in place here while `{other}` may share its memory"
        return fail(AliasError, self.source, s, what, f"Make `{n}` a copy first: `{n} = {n}.copy()`.")

    # Cotangents that share memory ---------------------------------------------------------------------------

    def mirror(self) -> None:
        """Where an array is written while another name for its memory is in use, the cotangents of all arrays
        that may share that memory are made in the forward sweep, and share theirs in the same way. Refused
        where the forward sweep can't tell how a name got its memory."""
        if not self.conflicts:
            return
        definitions: dict[str, list[Any]] = {}
        for s in statements(self.tree.body):
            for v in dataflow.head_binds(s):
                definitions.setdefault(v, []).append(s)
        first = {self.find(n): (s, n, other) for s, n, other in self.conflicts}
        todo = [t for t in self.parent if self.find(t) in first and t.rstrip("*") in self.varied]
        while todo:  # and arrays that carry no derivative, of which others are views
            t = todo.pop()
            n, conflict = t.rstrip("*"), first[self.find(t)]
            if n in self.shadowed:
                continue
            self.shadowed.add(n)
            if t != n or self.kind(n) != "array" or n in self.late or n not in self.facts:
                raise self.refusal(*conflict)
            for s in definitions.get(n, ()):
                if isinstance(s, gast.AugAssign) or getattr(s, "predefined", False):
                    continue
                if not isinstance(s, gast.Assign) or not isinstance(s.targets[0], gast.Name):
                    raise self.refusal(*conflict)
                try:
                    base = self.mirrors[id(s)] = self.origin(s.value)
                except LookupError:
                    raise self.refusal(*conflict) from None
                if base is not None:
                    todo.append(base)
        for n, where in self.writes:
            s = next(s for s in statements(self.tree.body) if id(s) == where)
            called = isinstance(getattr(s, "value", None), gast.Call) and resolve.operation(s.value).kind
            plain = isinstance(s, gast.AugAssign) or called == "call"
            plain = plain or (isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Subscript))
            if self.find(n.rstrip("*")) in first and not plain:
                raise self.refusal(*first[self.find(n.rstrip("*"))])

    def origin(self, value: Any) -> str | None:
        """The array of which an expression makes a view, or None if it makes a new one. LookupError if that
        is not known."""
        op = resolve.operation(value)
        if op.kind == "copy" and isinstance(value, gast.Name):
            return value.id
        if op.kind == "item" and isinstance(value.value, gast.Name) and self.kind(value.value.id) == "array":
            return value.value.id if basic_index(value.slice) else None
        if op.kind == "rule":
            arrays = {n for _, n in op.operands if self.kind(n) not in VALUES}
            if op.rule is None or not shares(op.rule, len(op.operands), value):
                return None
            if len(arrays) == 1 and self.kind(min(arrays)) == "array":
                return min(arrays)
        if op.kind == "call" and not self.effects(op, value)[1]:
            return None
        if op.kind == "copy_of" or (op.kind == "inert" and isinstance(value, gast.Call)):
            return None
        raise LookupError

    # For the reverse pass -----------------------------------------------------------------------------------

    def changed_after(self, n: str, loop: Any) -> bool:
        """May what `n` holds be written once `loop` is done?"""
        inside = {i for i, loops in self.loops.items() if id(loop) in loops}
        around = set(self.loops.get(id(loop), ()))
        last = max((self.position[i] for i in inside), default=0)
        return any(
            where not in inside and (self.position[where] > last or around & set(self.loops[where]))
            for written, where in self.writes
            if self.find(written) == self.find(n) or written.rstrip("*") == n
        )

    @property
    def overwrites(self) -> bool:
        """Is anything written in place, or bound anew by an update?"""
        return bool(self.writes or self.updates or self.exposed)

    def overwritten(self, n: str, s: Any) -> bool:
        """May the memory of `n`, as `s` reads it, be written before the reverse sweep?"""
        if id(s) in self.position and any(n == m and self.after(where, s) for m, where in self.updates):
            return True
        if self.kind(n) in VALUES:
            return False
        same = self.find(n)
        if same in self.exposed:
            return True
        if not self.writes or id(s) not in self.position:
            return False
        return any(
            self.after(where, s) or (where == id(s) and written != n)  # `x *= y`, where y is a view of x
            for written, where in self.writes
            if self.find(written) == same or written.rstrip("*") == n
        )

    def after(self, where: int, s: Any) -> bool:
        """May the statement numbered `where` run after `s`?"""
        if self.position[where] > self.position[id(s)]:
            return True
        return bool(set(self.loops[where]) & set(self.loops[id(s)]))


def known_object(e: Any) -> Any:
    fact = getattr(e, "fact", UNKNOWN)
    return fact.const if fact.known else None


def makes_object(function: Any) -> bool:
    """Is a call of `function` sure to give a new object?"""
    return isinstance(function, type) and getattr(function, "__new__", None) is object.__new__


def _merge(a: Relation, b: Relation) -> None:
    for k, v in b.items():
        a.setdefault(k, set()).update(v)
