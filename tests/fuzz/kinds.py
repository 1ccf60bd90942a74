"""What the generator knows about a value: its kind, and for a variable also who may write into it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scalar:
    """A real number."""


@dataclass(frozen=True)
class Int:
    """A Python int between two bounds, both included: an index, a count."""

    low: int
    high: int


@dataclass(frozen=True)
class Flag:
    """A bool."""


@dataclass(frozen=True)
class Array:
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Items:
    """A list of at least `length` values of one kind."""

    item: Scalar | Array
    length: int


@dataclass(frozen=True)
class Table:
    """A dict of values of one kind under (at least) these keys."""

    item: Scalar | Array
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A tuple."""

    items: tuple[Kind, ...]


@dataclass(frozen=True)
class Arrow:
    """A function that is called by position."""

    parameters: tuple[Kind, ...]
    result: Kind


Kind = Scalar | Int | Flag | Array | Items | Table | Row | Arrow
SCALAR = Scalar()


@dataclass(frozen=True)
class Variable:
    kind: Kind
    owned: bool = True
    """Made in this function, and no other name shares its memory: writing into it needs no alias analysis."""
    frozen: bool = False
    """Not to be assigned or changed: a loop's counter, a container that is iterated over."""


def join(a: Kind, b: Kind) -> Kind | None:
    """The kind of a variable that has one of two kinds; None when nothing useful is known."""
    if a == b:
        return a
    if isinstance(a, Items) and isinstance(b, Items) and a.item == b.item:
        return Items(a.item, min(a.length, b.length))
    if isinstance(a, Int) and isinstance(b, Int):
        return Int(min(a.low, b.low), max(a.high, b.high))
    if isinstance(a, Table) and isinstance(b, Table) and a.item == b.item:
        return Table(a.item, tuple(k for k in a.keys if k in b.keys))
    return None


def fits(new: Kind, old: Kind) -> bool:
    """May a variable of kind `old` become one of kind `new` where code written for `old` runs again?"""
    if isinstance(new, Items) and isinstance(old, Items):
        return new.item == old.item and new.length >= old.length
    if isinstance(new, Int) and isinstance(old, Int):
        return old.low <= new.low and new.high <= old.high
    if isinstance(new, Table) and isinstance(old, Table):
        return new.item == old.item and set(old.keys) <= set(new.keys)
    return new == old
