"""Variables that functions have captured and that are bound again while those functions are kept.

A call through a container, `fs[0](t)`, reads such a variable as it is then, whichever value it had where the
function was defined. So the cotangent that the call gives belongs to what was bound to the variable last, and
is collected here until the reverse sweep comes to that binding. Emitted code says

    e_cell = late.variable(lambda: e_late)    # at its start
    e_late = e                                # where `e` is bound
    e_bar = late.take(e_cell)                 # the reverse of that

and `dispatch` adds to the record when it meets a function that has captured `e_late`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CellType
from typing import Any

from srcgrad.runtime import tangents, trees


class Variable:
    """What is known of one captured variable of one call: its cell, the cotangent collected so far and, in
    forward mode, its present tangent (None is zero)."""

    __slots__ = ("cell", "bar", "moved", "__weakref__")

    def __init__(self, cell: CellType) -> None:
        self.cell = cell
        self.bar: Any = 0.0
        self.moved: Any = None


_known: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


def variable(reader: Callable[[], Any]) -> Variable:
    """The record of the variable that `reader` reads.

    >>> def f(x):
    ...     cell = variable(lambda: x)
    ...     return find((lambda: x).__closure__[0]) is cell
    >>> f(1.0)
    True
    """
    (cell,) = reader.__closure__ or ()
    made = _known[id(cell)] = Variable(cell)
    return made


def find(cell: CellType) -> Variable | None:
    """The record of a cell, or None: the variable is bound once."""
    return _known.get(id(cell)) if _known else None


def take(record: Variable) -> Any:
    """The cotangent collected since the last call; 0.0 stands for a zero of any structure."""
    bar, record.bar = record.bar, 0.0
    return bar


def give(record: Variable, bar: Any) -> None:
    """Adds a cotangent to what is collected."""
    record.bar = trees.add(record.bar, bar)


def move(record: Variable, dot: Any) -> None:
    """Sets the variable's tangent."""
    record.moved = dot


def tangent(dot: Any) -> Any:
    """The tangent of a captured variable, of which `dot` may be the record."""
    if not isinstance(dot, Variable):
        return dot
    return tangents.zeros_like(dot.cell.cell_contents) if dot.moved is None else dot.moved
