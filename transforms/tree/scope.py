"""What the free names of a function refer to: its globals, its closure cells, the builtins."""

from __future__ import annotations

import builtins
import types
from typing import Any

import gast

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING", "__bool__": lambda _: False})()


class Scope:
    """The surroundings of a function. `local` are the names that it binds itself, which refer to no known
    object.

    >>> scope = Scope(len.__class__ and (lambda: 0))
    >>> scope.name("len") is len, scope.name("no_such_name")
    (True, MISSING)
    """

    def __init__(self, function: types.FunctionType, local: frozenset[str] = frozenset()) -> None:
        self.globals = function.__globals__
        code = function.__code__
        self.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.local = local
        self.imports: dict[str, Any] = {}
        self.used: dict[str, Any] = {}
        """Functions, classes and modules that were found among the globals: what was compiled holds while
        they stay."""

    def name(self, identifier: str) -> Any:
        if identifier in self.imports:
            return self.imports[identifier]
        if identifier in self.local:
            return MISSING
        if identifier in self.cells:
            try:
                return self.cells[identifier].cell_contents
            except ValueError:
                return MISSING
        if identifier in self.globals:
            found = self.globals[identifier]
            if callable(found) or isinstance(found, types.ModuleType):
                self.used[identifier] = found
            return found
        return getattr(builtins, identifier, MISSING)

    def lookup(self, node: Any) -> Any:
        """The object that a name or a chain of attributes of modules and classes refers to, or MISSING; where
        a function names another to be differentiated in its place, that."""
        found = self.found(node)
        return getattr(found, "__srcgrad_nested__", found)

    def found(self, node: Any) -> Any:
        if isinstance(node, gast.Name):
            return self.name(node.id)
        if isinstance(node, gast.Attribute):
            owner = self.lookup(node.value)
            if isinstance(owner, (types.ModuleType, type)) or hasattr(owner, "__self__") or _ufunc(owner):
                return getattr(owner, node.attr, MISSING)
        return MISSING


def _ufunc(owner: Any) -> bool:
    return type(owner).__name__ == "ufunc"
