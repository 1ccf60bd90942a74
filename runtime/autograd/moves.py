"""Moving tensors between devices, when the user asks for it."""

from __future__ import annotations

from typing import Any

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.graph import Node, target_of
from srcgrad.runtime.autograd.record import tracked
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_inplace import carried
from srcgrad.runtime.tensor_types import device


class Move(Node):
    """A copy to another device: the gradient travels back."""

    __slots__ = ("origin",)
    origin: str

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        return (move(g, device(self.origin)) if graph else carried(g, self.origin),)


Move.__name__ = Move.__qualname__ = "ToCopyBackward0"


def move(t: Tensor, where: device) -> Tensor:
    result = wrap(carried(t._array, where.type))
    if tracked((t,)):
        node: Any = object.__new__(Move)
        node._link((target_of(t),))
        node.origin = arrays.device_type(t._array)
        result._history = node
    return result
