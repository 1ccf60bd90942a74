"""Padding as modules: zeros, a constant, reflected, repeated and wrapped edges, in one to three axes."""

from __future__ import annotations

from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn.module import Module
from srcgrad.runtime.tensor_base import Tensor


class _Pad(Module):
    """`padding` is one number, or (before, after) from the last dimension backwards."""

    axes = 1
    mode = "constant"

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


def _made(name: str, base: type, axes: int, mode: str = "constant") -> Any:
    what = {
        "constant": "A constant",
        "reflect": "Reflections",
        "replicate": "The edges",
        "circular": "The far",
    }
    doc = f"{what[mode]} around the last {axes} axes."
    return type(name, (base,), {"axes": axes, "mode": mode, "__doc__": doc, "__module__": __name__})


ZeroPad1d, ZeroPad2d, ZeroPad3d = (_made(f"ZeroPad{n}d", _Pad, n) for n in (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = (_made(f"ConstantPad{n}d", _ConstantPad, n) for n in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (
    _made(f"ReflectionPad{n}d", _Pad, n, "reflect") for n in (1, 2, 3)
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (
    _made(f"ReplicationPad{n}d", _Pad, n, "replicate") for n in (1, 2, 3)
)
CircularPad1d, CircularPad2d, CircularPad3d = (
    _made(f"CircularPad{n}d", _Pad, n, "circular") for n in (1, 2, 3)
)
