"""Activity: which names both depend on a differentiated argument and influence the result.

Before: normalized statements with facts.   After: the same; `active(...)` gives the set of active names.
Why here: only active names get adjoints; whatever else the function does stays as it is.
Both halves are fixed points over the statements, by name, since normalized names are single values (LESSONS
of activity analysis: Hascoet, Naumann & Pascual, "To be recorded analysis in reverse-mode automatic
differentiation", section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gast

from srcgrad.transforms import resolve
from srcgrad.transforms.facts import UNKNOWN
from srcgrad.transforms.tree import dataflow
from srcgrad.transforms.tree.build import root

DISCRETE_KINDS = ("string", "none", "module")


def statements(body: list[Any]) -> Iterator[Any]:
    """All statements of a body and of the blocks inside, in order."""
    for s in body:
        yield s
        for inner in dataflow.blocks(s):
            yield from statements(inner)


class Flow:
    """For each statement the edges (sources, target) along which a derivative flows."""

    def __init__(self, body: list[Any], facts: dict[str, Any], effects: Callable[[Any, Any], Any]) -> None:
        self.edges: list[tuple[list[str], str]] = []
        self.facts, self.effects = facts, effects
        self.closures = {s.name for s in statements(body) if isinstance(s, gast.FunctionDef)}
        for s in statements(body):
            self.statement(s)

    def edge(self, sources: list[str], target: str) -> None:
        self.edges.append((sources, target))

    def statement(self, s: Any) -> None:
        if isinstance(s, (gast.Assign, gast.Expr)) and isinstance(s.value, gast.Call):
            op = resolve.operation(s.value)
            if op.kind == "call":  # what a callee writes into an argument comes from all of them
                for written in self.effects(op, s.value)[0]:
                    self.edge([n for _, n in op.operands], written)
        if isinstance(s, gast.Assign):
            (to,) = s.targets
            if isinstance(to, gast.Tuple):
                if isinstance(s.value, gast.Name):
                    for part in to.elts:
                        v = part.value.id if isinstance(part, gast.Starred) else part.id
                        self.edge([s.value.id], v)
                return
            sources = [n for _, n in self.operation(s.value).operands]
            if isinstance(to, gast.Name):
                self.edge(sources, to.id)
            elif isinstance(root(to), gast.Name):
                self.edge(sources, root(to).id)
        elif isinstance(s, gast.AugAssign):
            sources = [s.value.id] if isinstance(s.value, gast.Name) else []
            owner = root(s.target)
            if isinstance(owner, gast.Name):
                self.edge(sources, owner.id)
        elif isinstance(s, gast.Expr) and isinstance(s.value, gast.Call):
            op = self.operation(s.value)
            if op.kind == "dispatch":  # what is not known may write into any of its arguments
                names = [n for _, n in op.operands]
                for n in names:
                    if self.facts.get(n, UNKNOWN).kind not in ("scalar", *DISCRETE_KINDS):
                        self.edge(names, n)
            if op.kind in ("append", "insert"):
                for key, n in op.operands:
                    if key != "list" and isinstance(s.value.func.value, gast.Name):
                        self.edge([n], s.value.func.value.id)
        elif isinstance(s, gast.FunctionDef):
            called = (dataflow.free_names(s) & self.closures) - {s.name}
            held = {*getattr(s, "captured", {}).values(), *getattr(s, "held", {}).values()}
            self.edge(sorted({*held, *called}), s.name)

    def operation(self, value: Any) -> Any:
        op = resolve.operation(value)
        if op.kind == "inert":
            op.operands = []
        return op


def active(
    body: list[Any],
    facts: dict[str, Any],
    inputs: set[str],
    outputs: set[str],
    effects: Callable[[Any, Any], Any],
    shared: Iterable[tuple[str, str]] = (),
) -> set[str]:
    """The active names: varied with `inputs` and useful for `outputs`. `effects` as in `aliases`; what is
    written into one of two names that are `shared` is seen through the other."""
    edges = Flow(body, facts, effects).edges
    edges += [([a], b) for pair in shared for a, b in (pair, pair[::-1])]
    edges = [(s, t) for s, t in edges if facts.get(t, UNKNOWN).kind not in DISCRETE_KINDS]
    varied = _closure(inputs, [(s, t) for sources, t in edges for s in sources])
    useful = _closure(outputs, [(t, s) for sources, t in edges for s in sources])
    return varied & useful


def _closure(start: set[str], arrows: list[tuple[str, str]]) -> set[str]:
    reached = set(start)
    by: dict[str, list[str]] = {}
    for a, b in arrows:
        by.setdefault(a, []).append(b)
    todo = list(start)
    while todo:
        for b in by.get(todo.pop(), ()):
            if b not in reached:
                reached.add(b)
                todo.append(b)
    return reached
