"""What must still hold for emitted code to be valid: the globals, captured variables and attributes of
modules that it was compiled for.

>>> space = {"rate": 2.0}
>>> stale([(space, "rate", Kind(2.0))]), stale([({"rate": [2.0]}, "rate", Kind(2.0))])
(False, True)
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CellType
from typing import Any


class Kind:
    """Stands for any value of a type: a number whose value may change, but which stays a number."""

    __slots__ = ("type",)

    def __init__(self, value: Any) -> None:
        self.type = type(value)


class Cell:
    """A captured variable, looked up as in a namespace."""

    __slots__ = ("cell",)

    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    def get(self, name: str) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return None


Dependency = tuple[Any, str, Any]
"""(a namespace, a name in it, the object that it must refer to or a `Kind`)"""


def stale(dependencies: Iterable[Dependency]) -> bool:
    """Has any of them changed?"""
    for space, name, value in dependencies:
        now = space.get(name)
        if now is not value and not (type(value) is Kind and type(now) is value.type):
            return True
    return False
