"""Nodes of operations that let a gradient through or not: what is held back is 0, whatever arrived.

In `relu(x).sqrt()` an infinite gradient meets a derivative of 0, and their product is nan. PyTorch selects
where it says so here. A product is many times faster than a selection, so it is taken first.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.runtime.autograd.nodes import Binary, Elementwise, RuleNode, Unary, times
from srcgrad.runtime.tensor_base import Tensor


def finite(g: Any) -> bool:
    """Is all of a host array sure to be finite?"""
    a = g._array if isinstance(g, Tensor) else g
    if type(a) is np.ndarray:
        return math.isfinite(np.vdot(a, a))
    return isinstance(a, np.generic) and math.isfinite(a)


def selected(g: Any, partial: Any) -> Any:
    """`g * partial`, and 0 where `partial` is 0."""
    out = times(g, partial)
    if partial is None or type(partial) is int or finite(out):
        return out
    return np.where(np.equal(partial, 0), 0, out)[()]


class Masking(Unary):
    """An elementwise operation of one argument."""

    __slots__ = ()
    times = staticmethod(selected)

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        out = Unary.apply(self, g, graph)
        return out if finite(out[0]) else Elementwise.apply(self, g, graph)


class MaskingPair(Binary):
    """An elementwise operation of two arguments."""

    __slots__ = ()
    times = staticmethod(selected)

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        out = Binary.apply(self, g, graph)
        if all(x is None or finite(x) for x in out):
            return out
        return Elementwise.apply(self, g, graph)


def masking(kind: type[RuleNode]) -> Any:
    """A node class like `kind` whose first gradient is 0 where none of a finite one would arrive."""

    def apply(self: Any, g: Any, graph: bool) -> tuple[Any, ...]:
        out = kind.apply(self, g, graph)
        if out[0] is None or finite(out[0]):
            return out
        share = kind.apply(self, np.ones_like(g), graph)[0]
        return np.where(np.equal(share, 0), 0, out[0]), *out[1:]

    return type(kind.__name__, (kind,), {"__slots__": (), "apply": apply, "plans": {}})
