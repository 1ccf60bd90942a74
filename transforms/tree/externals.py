"""Names under which emitted code reaches what the user's module does not hold: NumPy, support functions,
called rules."""

from __future__ import annotations

import types
from typing import Any

import gast
import numpy as np

from srcgrad.transforms.tree.build import name
from srcgrad.transforms.tree.names import Names
from srcgrad.transforms.tree.scope import Scope


class Externals:
    """One per emitted function. An external reaches it through a closure cell, so that no name of the user's
    can clash."""

    def __init__(self, names: Names, scope: Scope, user_names: set[str] | None = None) -> None:
        self.names, self.scope = names, scope
        self.user_names = set() if user_names is None else user_names
        self.objects: dict[str, Any] = {}
        self._named: dict[int, str] = {}

    def name(self, value: Any, wanted: str | None = None) -> str:
        if id(value) in self._named:
            return self._named[id(value)]
        wanted = str(wanted or getattr(value, "__name__", "external"))
        if isinstance(value, types.ModuleType):
            wanted = "np" if value is np else wanted.rpartition(".")[2]
            if self.scope.name(wanted) is value and self.free(wanted):
                return self.reuse(value, wanted)
        wanted = wanted.strip("_") or "external"
        surroundings = wanted in self.scope.globals or wanted in self.scope.cells
        if self.scope.name(wanted) is value and surroundings and self.free(wanted):
            return self.reuse(value, wanted)
        made = self.names.fresh(wanted)
        self.objects[made] = value
        self.scope.imports[made] = value
        self._named[id(value)] = made
        return made

    def free(self, wanted: str) -> bool:
        """Does a name of the user's surroundings mean the same in the emitted function?"""
        made = wanted in self.names.used and wanted not in self.user_names
        return wanted not in self.scope.local and not made

    def reuse(self, value: Any, wanted: str) -> str:
        """The user's own global."""
        self._named[id(value)] = wanted
        self.names.used.add(wanted)
        self.user_names.add(wanted)
        return wanted

    def node(self, value: Any, wanted: str | None = None) -> gast.Name:
        return name(self.name(value, wanted))
