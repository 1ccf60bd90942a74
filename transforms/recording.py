"""Recording: what the reverse sweep reads and the primal overwrites is saved, once per iteration of each
loop.

Before: the forward statements, and the reverse statements, in which reversed loops and branches are marked.
After:  two lists of plain statements; each loop whose reverse needs something appends it to one list of its
own.
Why here: only now is it known which values the reverse sweep reads.

Outside loops every value has a name of its own and is simply read. A scalar that is a cheap expression of
values that are at hand is computed again instead. The lists are read from the end, never emptied, so that a
pullback may be called again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gast

from srcgrad.transforms.activity import statements
from srcgrad.transforms.facts import UNKNOWN
from srcgrad.transforms.tree import dataflow
from srcgrad.transforms.tree.build import (
    Substitute,
    assign,
    attribute,
    augment,
    call,
    clone,
    constant,
    expression,
    list_,
    name,
    tuple_,
)
from srcgrad.transforms.tree.names import Names

Block = list[Any]


class Record:
    """`block(reverse)` changes the forward and the reverse statements in place."""

    def __init__(self, forward: Block, names: Names, facts: dict[str, Any], temporaries: set[str]) -> None:
        self.forward, self.names, self.facts, self.temporaries = forward, names, facts, temporaries
        self.parent: dict[int, tuple[Block, Any]] = {}
        self.definitions: dict[str, list[Any]] = {}
        self.index(forward, None)

    def index(self, body: Block, outer: Any) -> None:
        for s in body:
            self.parent[id(s)] = (body, outer)
            for n in dataflow.head_binds(s):
                self.definitions.setdefault(n, []).append(s)
            for inner in dataflow.blocks(s):
                self.index(inner, s)

    def block(self, body: Block) -> None:
        """Inner loops first: their lists are values that the loops around them may have to save."""
        out: Block = []
        for s in body:
            for inner in dataflow.blocks(s):
                self.block(inner)
            if hasattr(s, "reverses"):
                out.extend(self.loop(s))
            elif getattr(s, "is_branch", False):
                self.branch(s)
                out.append(s)
            else:
                out.append(s)
        body[:] = out

    # Branches -----------------------------------------------------------------------------------------------

    def branch(self, s: Any) -> None:
        """The test of a reversed branch: read again if that is sure to give the same, else the forward sweep
        names it."""
        primal = s.primal if hasattr(s, "primal") else None
        if primal is None or not isinstance(primal, gast.If):
            return
        inverted = getattr(s, "inverted", False)
        body, outer = self.parent[id(primal)]
        in_loop = self.loop_around(primal) is not None
        if self.repeatable(primal.test, in_loop):
            return
        test = self.names.fresh("taken")
        value = primal.test if isinstance(primal.test, gast.Compare) else call("bool", primal.test)
        made = assign(test, value, primal)
        body.insert(_position(body, primal), made)
        self.parent[id(made)] = (body, outer)
        self.definitions.setdefault(test, []).append(made)
        primal.test = name(test)
        again: Any = clone(primal.test)
        s.test = gast.UnaryOp(gast.Not(), again) if inverted else again

    def repeatable(self, test: Any, in_loop: bool) -> bool:
        if isinstance(test, gast.Name):
            return self.facts.get(test.id, UNKNOWN).kind in ("scalar", "bottom") or test.id not in self.facts
        if isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
            return self.repeatable(test.operand, in_loop)
        if in_loop:
            return False
        if isinstance(test, gast.BoolOp):
            return all(self.repeatable(v, in_loop) for v in test.values)
        if isinstance(test, gast.Compare):
            return all(self.scalar(e) for e in (test.left, *test.comparators))
        return isinstance(test, gast.Constant)

    def scalar(self, e: Any) -> bool:
        if isinstance(e, (gast.Constant,)):
            return True
        if isinstance(e, gast.Name):
            return self.facts.get(e.id, UNKNOWN).kind in ("scalar", "string", "none")
        if isinstance(e, gast.UnaryOp):
            return self.scalar(e.operand)
        if isinstance(e, gast.BinOp):
            return self.scalar(e.left) and self.scalar(e.right)
        return False

    def loop_around(self, s: Any) -> Any:
        while s is not None:
            _, s = self.parent.get(id(s), (None, None))
            if isinstance(s, (gast.For, gast.While)):
                return s
        return None

    # Loops --------------------------------------------------------------------------------------------------

    def loop(self, reversed_: Any) -> Block:
        primal = reversed_.reverses
        body = reversed_.body
        bound = dataflow.bound_names([primal]) | dataflow.bound_names(primal.body)
        needed = self.needed(body, bound)
        needed = self.recompute(body, needed, bound, primal)
        place, outer = self.parent[id(primal)]
        stops = bool(primal.body) and _is_stop(primal.body[-1])
        counter = (
            primal.target.id
            if isinstance(primal, gast.For) and isinstance(primal.target, gast.Name)
            else None
        )
        plain_range = _is_range(primal) and not stops and counter not in self.rebound(primal)
        if not needed or (plain_range and needed == [counter] and self.steady(primal.iter)):
            if plain_range and self.steady(primal.iter):
                reversed_.target = gast.Name(counter if needed else "_", gast.Store(), None, None)
                if not needed and "_" in self.names.used:
                    reversed_.target.id = self.names.fresh("_")
                again = clone(primal.iter)
                reversed_.iter = call("reversed", again) if needed else again
                return [reversed_]
            if not needed:
                return self.counted(reversed_, primal, place, outer)
        saved = self.names.fresh(needed[0] + "_saved" if len(needed) == 1 else "saved")
        start = assign(saved, list_([]), primal)
        place.insert(_position(place, primal), start)
        self.parent[id(start)] = (place, outer)
        self.definitions.setdefault(saved, []).append(start)
        self.predefine(primal, needed, place)
        # A container that is made anew in each iteration is not changed by later ones: it is kept itself, and
        # has at the end of the iteration the structure with which the sweep starts.
        carried = self.carried(primal.body)
        position = self.earliest(primal.body, set(needed))
        if any(n in self.growing and self.changed_after(n, primal) for n in needed):
            position = len(primal.body) - stops  # their structure as it is at the end
        rebound = dataflow.bound_names(primal.body[:position])
        heads = {n: self.names.fresh(n + "_old") for n in needed if n in carried & rebound}
        by_value = {n for n in needed if n in carried or self.changed_after(n, primal)}
        items = [name(heads[n]) if n in heads else self.kept(n) if n in by_value else name(n) for n in needed]
        item: Any = items[0] if len(items) == 1 else tuple_(items)
        push = expression(call(attribute(saved, "append"), item), primal)
        push.records = saved
        primal.body.insert(position, push)
        primal.body[:0] = [assign(made, self.kept(n), primal) for n, made in heads.items()]
        target: Any = gast.Name(needed[0], gast.Store(), None, None)
        if len(needed) > 1:
            target = gast.Tuple([gast.Name(n, gast.Store(), None, None) for n in needed], gast.Store())
        reversed_.target = target
        reversed_.iter = call("reversed", name(saved))
        return [reversed_]

    def kept(self, n: str) -> Any:
        """What is saved for `n`: of a list or dict that changes later, the structure it has now."""
        return call(self.structure, name(n)) if n in self.growing else name(n)

    def needed(self, body: Block, bound: set[str]) -> list[str]:
        """Names that the reversed body reads and the primal body binds, in the order of their names."""
        own = dataflow.bound_names(body)
        free = dataflow.liveness(body, set())
        found = {n for n in free if n in bound}
        return sorted(found - {n for n in own if n not in bound})

    def rebound(self, primal: Any) -> set[str]:
        return dataflow.bound_names(primal.body)

    def steady(self, it: Any) -> bool:
        """Does `range(...)`, evaluated in the reverse sweep, give what it gave?"""
        return all(isinstance(a, (gast.Constant, gast.Name, gast.UnaryOp)) for a in it.args)

    def counted(self, reversed_: Any, primal: Any, place: Block, outer: Any) -> Block:
        count = self.names.fresh("count")
        start = assign(count, constant(0), primal)
        place.insert(_position(place, primal), start)
        self.parent[id(start)] = (place, outer)
        self.definitions.setdefault(count, []).append(start)
        primal.body.insert(0, augment(count, gast.Add(), constant(1), primal))
        reversed_.target = gast.Name(
            "_" if "_" not in self.names.used else self.names.fresh("_"), gast.Store(), None, None
        )
        reversed_.iter = call("range", name(count))
        return [reversed_]

    def predefine(self, primal: Any, needed: Iterable[str], place: Block) -> None:
        """Names that a path through the loop may leave unbound get a value, so that they can be saved."""
        inside = dataflow.definitely_bound(primal.body) | dataflow.head_binds(primal)
        carried = self.carried(primal.body)
        for n in needed:
            if n in carried:
                if not self.bound_before(n, primal):
                    made = assign(n, constant(None), primal)
                    place.insert(_position(place, primal), made)
            elif n not in inside:
                primal.body.insert(0, assign(n, constant(None), primal))

    def bound_before(self, n: str, s: Any) -> bool:
        while s is not None:
            body, outer = self.parent[id(s)]
            if n in dataflow.definitely_bound(body[: _position(body, s)]):
                return True
            if outer is not None and n in dataflow.head_binds(outer):
                return True
            s = outer
        return n in self.parameters

    def carried(self, body: Block) -> set[str]:
        """Names of which the body of a loop reads the value that an iteration starts with."""
        live = dataflow.liveness(body, set())
        return live | {bar for bar, n in self.shadows.items() if n in live}

    shadows: dict[str, str] = {}
    """Cotangents that are made in the forward sweep, each with its name; they come and go with it."""
    parameters: set[str] = set()
    growing: set[str] = set()
    """Containers whose structure changes."""
    structure: Any = None

    aliases: Any = None

    def changed_after(self, n: str, loop: Any) -> bool:
        """May the container `n` change once the loop is done?"""
        return n in self.growing and self.aliases.changed_after(n, loop)

    def earliest(self, body: Block, needed: set[str]) -> int:
        """The first place in a loop's body at which everything that is to be saved has its value: the records
        of the loops inside are complete, so that the emitted program can be differentiated as any other."""
        carried = self.carried(body)
        position = 0
        for i, s in enumerate(body):
            filled = {getattr(x, "records", None) for x in statements([s])} & needed
            if filled or dataflow.bound_names([s]) & (needed - carried):
                position = i + 1
        return position

    def recompute(self, body: Block, needed: list[str], bound: set[str], primal: Any) -> list[str]:
        """Puts cheap scalar expressions of values at hand in the place of temporaries."""
        changed = True
        kept = set(needed)
        while changed:
            changed = False
            for n in sorted(kept):
                value = self.cheap(n)
                if value is None:
                    continue
                operands = dataflow.free_names(value)
                if all(o in kept - {n} or o not in bound for o in operands):
                    sub = Substitute({n: value})
                    body[:] = [sub.visit(s) for s in body]
                    kept.discard(n)
                    kept |= {o for o in operands if o in bound}
                    changed = True
        return sorted(kept)

    def cheap(self, n: str) -> Any:
        definitions = self.definitions.get(n, [])
        if n not in self.temporaries or len(definitions) != 1 or not isinstance(definitions[0], gast.Assign):
            return None
        value = definitions[0].value
        if self.facts.get(n, UNKNOWN).kind != "scalar" or not isinstance(
            definitions[0].targets[0], gast.Name
        ):
            return None
        simple = isinstance(value, gast.BinOp) and isinstance(
            value.op, (gast.Add, gast.Sub, gast.Mult, gast.Div)
        )
        simple = simple or (isinstance(value, gast.UnaryOp) and isinstance(value.op, gast.USub))
        simple = simple or (isinstance(value, gast.BinOp) and isinstance(value.op, (gast.Mod, gast.FloorDiv)))
        return (
            value
            if simple and all(isinstance(o, (gast.Name, gast.Constant)) for o in _operands(value))
            else None
        )


def _operands(value: Any) -> list[Any]:
    return [value.left, value.right] if isinstance(value, gast.BinOp) else [value.operand]


def _position(body: Block, s: Any) -> int:
    return next(i for i, b in enumerate(body) if b is s)


def _is_range(primal: Any) -> bool:
    it = getattr(primal, "iter", None)
    return isinstance(it, gast.Call) and isinstance(it.func, gast.Name) and it.func.id == "range"


def _is_stop(s: Any) -> bool:
    return isinstance(s, gast.If) and any(isinstance(b, gast.Break) for b in s.body)
