"""Fresh names: readable, deterministic, and never equal to a name that the user's code mentions."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

import gast

from srcgrad.transforms.tree import nodes


class Names:
    """Hands out names that are not in use.

    >>> names = Names({"x", "x_bar"})
    >>> names.fresh("x_bar"), names.fresh("t"), names.fresh("t")
    ('x_bar_', 't', 't_2')
    """

    def __init__(self, used: Iterable[str]) -> None:
        self.used = set(used)
        self._reserved = set(self.used)
        self._next: dict[str, int] = {}

    def version(self, base: str) -> str:
        """A name for a further value of the variable `base`: `base_2`, `base_3`, ..."""
        return self._numbered(base)

    def fresh(self, base: str) -> str:
        if base not in self.used and not keyword.iskeyword(base) and not hasattr(builtins, base):
            self.used.add(base)
            return base
        if base in self._reserved or keyword.iskeyword(base) or hasattr(builtins, base):
            plain = base + "_"
            if plain not in self.used:
                self.used.add(plain)
                return plain
        return self._numbered(base)

    def _numbered(self, base: str) -> str:
        number = self._next.get(base, 2)
        while f"{base}_{number}" in self.used:
            number += 1
        self._next[base] = number + 1
        result = f"{base}_{number}"
        self.used.add(result)
        return result


def identifiers(tree: gast.AST) -> set[str]:
    """Every identifier of a tree that could clash with a variable: names, arguments, functions, imports."""
    found: set[str] = set()
    for node in nodes.walk(tree):
        for field in ("id", "name", "arg", "rest", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value)
        if isinstance(node, (gast.Global, gast.Nonlocal)):
            found.update(node.names)
    return found


def stem(function: str) -> str:
    """The start of the names that are made of a function's.

    >>> stem("_energy"), stem("__2"), stem("_")
    ('energy', 'function', 'function')
    """
    stripped = function.strip("_")
    return stripped if stripped.isidentifier() else "function"
