"""Views: a name that only ever stands for another one, or for a part of it, gives way to what it stands for.

Before: core statements with facts.
After:  the same, but where memory is written in place, plain aliases `b = a` and views `top = m[0]` of it are
gone:
        `top[1] = v` reads `m[0][1] = v`.
Why here: the reverse pass treats each name as a value of its own. With one name for one piece of memory,
writes through aliases are exact.

Only names that are bound once give way, and only while what they stand for stays the same; everything else is
left to the analysis of aliases, which refuses what it can't follow.
"""

from __future__ import annotations

from typing import Any

import gast

from srcgrad.transforms.facts import UNKNOWN
from srcgrad.transforms.normalize import MUTATORS, basic_index
from srcgrad.transforms.tree import dataflow
from srcgrad.transforms.tree.build import clone, root
from srcgrad.transforms.tree.results import result_of

Block = list[Any]


def resolve_views(tree: gast.FunctionDef) -> bool:
    """Changes `tree` in place; returns whether anything was changed."""
    changed = False
    while True:
        found = _candidate(tree)
        if found is None:
            return changed
        block, statement = found
        block[:] = [s for s in block if s is not statement] or [gast.Pass()]
        stand_in = _Put(statement.targets[0].id, statement.value)
        tree.body[:] = [stand_in.visit(s) for s in tree.body]
        changed = True


def _candidate(tree: gast.FunctionDef) -> tuple[Block, Any] | None:
    counts: dict[str, int] = {p.id: 1 for p in dataflow.parameters(tree)}
    written: set[str] = set()
    captured: set[str] = set()
    for _, s in _statements(tree.body):
        for n in dataflow.head_binds(s) if not isinstance(s, gast.AugAssign) else ():
            counts[n] = counts.get(n, 0) + 1
        written |= _written(s)
        if isinstance(s, gast.FunctionDef):
            captured |= dataflow.free_names(s)
    if not written:
        return None
    live: dataflow.Live = {}
    dataflow.liveness(tree.body, set(), live)
    for block, s in _statements(tree.body):
        if not (isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name)):
            continue
        v, value = s.targets[0].id, s.value
        source = value if isinstance(value, gast.Name) else getattr(value, "value", None)
        if not isinstance(source, gast.Name) or v in captured or counts.get(v) != 1 or source.id == v:
            continue
        if counts.get(source.id) != 1 or not written & {v, source.id}:
            continue
        kind, own = getattr(source, "fact", UNKNOWN).kind, getattr(value, "fact", UNKNOWN).kind
        if isinstance(value, gast.Name):
            if kind not in ("array", "list", "dict"):
                continue
        elif isinstance(value, gast.Subscript):
            steady = {n for n in dataflow.free_names(value.slice)}
            if not (
                kind == own == "array"
                and basic_index(value.slice)
                and all(counts.get(n) == 1 for n in steady)
            ):
                continue
        else:
            continue
        if _carried(tree.body, s, v):
            continue
        return block, s
    return None


def _carried(body: Block, s: Any, v: str) -> bool:
    """Is `v` read in a loop around its definition before it is defined there?"""
    for outer in _loops_around(body, s):
        if v in dataflow.liveness(outer.body, set()):
            return True
    return False


def _loops_around(body: Block, s: Any) -> list[Any]:
    for x in body:
        if x is s:
            return []
        for inner in dataflow.blocks(x):
            if any(y is s for _, y in _statements(inner)):
                here = [x] if isinstance(x, (gast.For, gast.While)) else []
                return here + _loops_around(inner, s)
    return []


def _statements(body: Block) -> Any:
    for s in body:
        yield body, s
        for inner in dataflow.blocks(s):
            yield from _statements(inner)


def _written(s: Any) -> set[str]:
    """Names whose memory a statement writes in place."""
    found: set[str] = set()
    if isinstance(s, (gast.Assign, gast.AugAssign)):
        for to in s.targets if isinstance(s, gast.Assign) else [s.target]:
            if isinstance(to, (gast.Subscript, gast.Attribute)) and isinstance(root(to), gast.Name):
                found.add(root(to).id)
            elif isinstance(s, gast.AugAssign) and getattr(to, "fact", UNKNOWN).kind in ("array", "list"):
                found.add(to.id)
    value = getattr(s, "value", None)
    if isinstance(value, gast.Call):
        if isinstance(value.func, gast.Attribute) and value.func.attr in MUTATORS:
            found |= {root(value.func).id} if isinstance(root(value.func), gast.Name) else set()
        found |= {root(a).id for a in result_of(value, None) if isinstance(root(a), gast.Name)}
    return found


class _Put(gast.NodeTransformer):
    """Puts an expression in the place of a name, also where the name is updated in place."""

    def __init__(self, n: str, value: Any) -> None:
        self.n, self.value = n, value

    def visit_Name(self, node: Any) -> Any:
        if node.id != self.n:
            return node
        new = clone(self.value)
        if isinstance(node.ctx, gast.Store):
            new.ctx = gast.Store()
        return new
