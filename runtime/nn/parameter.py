"""Parameters and buffers: what a module learns, and what it merely keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime.autograd.graph import LEAF
from srcgrad.runtime.tensor_base import NO_COUNTER, Tensor, own_memory


class Parameter(Tensor):
    """A leaf that requires grad and that a Module notices when it is assigned."""

    _printed_as = "Parameter"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = Tensor()
        a = own_memory(data)
        if requires_grad and a.dtype.kind not in "fc":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t: Parameter = object.__new__(cls)
        t._array, t._grad, t._more = (
            a if a.ndim else a[()] if not isinstance(a, np.ndarray) else a,
            None,
            None,
        )
        if data._counter is None:
            data._counter = [0]
        t._counter = None if data._counter is NO_COUNTER else data._counter
        t._history = LEAF if requires_grad else None
        return t

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        pass


class Buffer(Tensor):
    """A tensor that a Module keeps as state without learning it."""

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        t: Buffer = (Tensor() if data is None else data).as_subclass(cls)
        t.persistent = persistent
        return t

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        pass
