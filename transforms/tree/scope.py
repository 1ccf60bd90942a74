"""What the free names of a function refer to: its globals, its closure cells, the builtins."""

from __future__ import annotations

import builtins
import types
from typing import Any

import gast
import numpy as np

from srcgrad.runtime.dependencies import Cell, Dependency, Kind

NUMBERS = (bool, int, float, complex, np.number, np.bool_)

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
        self.used: dict[tuple[int, str], Dependency] = {}
        """What was found among the globals, the captured variables and the attributes of the user's modules:
        what was compiled holds while functions, classes and modules stay, and numbers stay numbers."""

    def name(self, identifier: str) -> Any:
        if identifier in self.imports:
            return self.imports[identifier]
        if identifier in self.local:
            return MISSING
        if identifier in self.cells:
            try:
                found = self.cells[identifier].cell_contents
            except ValueError:
                return MISSING
            return self.depend(Cell(self.cells[identifier]), self.cells[identifier], identifier, found)
        if identifier in self.globals:
            return self.depend(self.globals, self.globals, identifier, self.globals[identifier])
        return getattr(builtins, identifier, MISSING)

    def depend(self, space: Any, owner: Any, n: str, found: Any) -> Any:
        """Notes that `found` is what `n` means there."""
        if callable(found) or isinstance(found, types.ModuleType):
            self.used[id(owner), n] = (space, n, found)
        elif isinstance(found, NUMBERS):
            self.used[id(owner), n] = (space, n, Kind(found))
        return found

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
            logger = type(owner).__module__ == "logging"
            if (
                isinstance(owner, (types.ModuleType, type))
                or logger
                or hasattr(owner, "__self__")
                or _ufunc(owner)
            ):
                return self.attribute(owner, node.attr)
        return MISSING

    def attribute(self, owner: Any, n: str) -> Any:
        """An attribute of a module, a class or a function."""
        if isinstance(owner, types.ModuleType) and n in vars(owner) and _changes(owner):
            return self.depend(vars(owner), owner, n, vars(owner)[n])
        return getattr(owner, n, MISSING)


def _changes(module: types.ModuleType) -> bool:
    """May a module's attributes be bound anew? Libraries' are taken to stay."""
    return module.__name__.partition(".")[0] not in ("numpy", "scipy", "math", "srcgrad")


def _ufunc(owner: Any) -> bool:
    return type(owner).__name__ == "ufunc"
