"""Going through trees: `children` and `walk`, several times faster than those of `ast`.

They leave out what is no part of a program's structure: contexts (`Load`, `Store`) and operators (`Add`).

>>> [type(n).__name__ for n in walk(gast.parse("x + f(1)", mode="eval").body)]
['BinOp', 'Name', 'Call', 'Name', 'Constant']
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gast

_LEAVES = {"ctx", "op", "ops", "type_comment", "id", "attr", "arg", "kind", "level", "module", "simple"}
_fields: dict[type, tuple[str, ...]] = {gast.Constant: ()}


def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a kind of node that may hold nodes, the last first."""
    found = _fields[kind] = tuple(f for f in reversed(kind._fields) if f not in _LEAVES)  # type: ignore[attr-defined]
    return found


def children(node: Any) -> list[Any]:
    """The nodes directly inside a node, in the order of the text."""
    found: list[Any] = []
    _push(node, found)
    found.reverse()
    return found


def _push(node: Any, onto: list[Any]) -> None:
    kind = type(node)
    own = node.__dict__
    for field in _fields.get(kind) or _fields_of(kind):
        value = own.get(field)
        if value is None:
            continue
        if type(value) is list:
            onto.extend([v for v in reversed(value) if isinstance(v, gast.AST)])
        elif isinstance(value, gast.AST):
            onto.append(value)


def walk(node: Any) -> Iterator[Any]:
    """A node and all nodes inside it, each before those inside it, in the order of the text."""
    todo = [node]
    while todo:
        node = todo.pop()
        kind = type(node)
        own = node.__dict__
        for field in _fields.get(kind) or _fields_of(kind):
            value = own.get(field)
            if value is None:
                continue
            if type(value) is list:
                todo.extend([v for v in reversed(value) if isinstance(v, gast.AST)])
            elif isinstance(value, gast.AST):
                todo.append(value)
        yield node
