"""Checks that emitted code makes where text alone can't tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcgrad.runtime import trees
from srcgrad.transforms.facts import Fact
from srcgrad.transforms.read import Source
from srcgrad.transforms.tree.build import call, constant, expression, name


def holds_floats(external: Callable[[Any], Any], source: Source, s: Any, x: str, fact: Fact) -> list[Any]:
    """Before a differentiated value is written into `x`: an array of integers would cut it off."""
    if fact.real > 1 or fact.kind not in ("array", "numeric", "unknown"):
        return []
    place = f"{source.filename}:{getattr(s, 'lineno', 0)}"
    return [expression(call(external(trees.refuse_integers), name(x), constant(x), constant(place)), s)]
