"""`Variable`: the old name of a tensor that takes part in differentiation."""

from __future__ import annotations

from typing import Any

from srcgrad.runtime.tensor_base import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Tensor:
        from srcgrad.runtime.tensor_create import tensor

        t = data.detach() if isinstance(data, Tensor) else tensor([] if data is None else data)
        return t.requires_grad_() if requires_grad else t


class Variable(metaclass=_VariableMeta):
    """`Variable(t, requires_grad=True)` is a Tensor on the memory of `t`; the wrapper is no longer needed."""
