"""Checks that emitted code makes where text alone can't tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcgrad.runtime import trees
from srcgrad.transforms.facts import Fact
from srcgrad.transforms.read import Source
from srcgrad.transforms.tree.build import call, constant, expression, name


def plain_elements(external: Callable[[Any], Any], source: Source, s: Any, x: str, fact: Fact) -> list[Any]:
    """Before an element of `x` is taken: an object's own class gives it."""
    if fact.kind not in ("unknown", "instance"):
        return []
    place = f"{source.filename}:{getattr(s, 'lineno', 0)}"
    return [expression(call(external(trees.refuse_object), name(x), constant(x), constant(place)), s)]


def plain_attribute(
    external: Callable[[Any], Any], source: Source, s: Any, x: str, attribute: str, fact: Fact
) -> list[Any]:
    """Before `x.attribute` is stored: a property runs code."""
    if fact.kind == "instance" and fact.items is not None:
        found = getattr(fact.items, attribute, None)
        if not hasattr(type(found), "__set__") and "__setattr__" not in trees.vars_of_class(fact.items):
            return []
    place = f"{source.filename}:{getattr(s, 'lineno', 0)}"
    values = [name(x), constant(attribute), constant(x), constant(place)]
    return [expression(call(external(trees.refuse_property), *values), s)]


def holds_floats(external: Callable[[Any], Any], source: Source, s: Any, x: str, fact: Fact) -> list[Any]:
    """Before a differentiated value is written into `x`: an array of integers would cut it off."""
    if fact.real > 1 or fact.kind not in ("array", "numeric", "unknown"):
        return []
    place = f"{source.filename}:{getattr(s, 'lineno', 0)}"
    return [expression(call(external(trees.refuse_integers), name(x), constant(x), constant(place)), s)]
