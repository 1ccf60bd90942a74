"""`scatter_reduce`: scattering with any reduction."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime.autograd.graph import FREED
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import call, raw_of
from srcgrad.runtime.rules import neural_scatter
from srcgrad.runtime.support import scatter
from srcgrad.runtime.tensor import public
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_index import scattered
from srcgrad.runtime.tensor_inplace import method


class ScatterReduce(rule_node("ScatterReduceBackward0", neural_scatter.scatter_reduce)):  # type: ignore[misc]
    """Several zeros in one product hide each other from the second derivative."""

    __slots__ = ()

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        if graph and self.recipe is not FREED and self.saved[3] == "prod":
            a, src, index = (raw_of(x) for x in self.saved[:3])
            zeros = (a == 0) + scatter((src == 0) * np.ones_like(src), a, index)
            if bool(np.any(zeros > 1)):
                raise RuntimeError(
                    "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are "
                    "scattered to the same position in self"
                )
        return super().apply(g, graph)


ScatterReduce.__name__ = "ScatterReduceBackward0"


@public("scatter_reduce")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`scatter_add` with any reduction: sum, prod, mean, amax or amin of what is scattered to each place.

    What `input` holds there counts too, unless `include_self` is False. Others are a `RuntimeError`.

    >>> sg.zeros(2).scatter_reduce(0, sg.tensor([0, 0, 1]), sg.tensor([1.0, 5.0, 2.0]), "amax")
    tensor([5., 2.])
    """
    if reduce not in neural_scatter.WAYS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    key, part = scattered(input, dim, index, src)
    return call(ScatterReduce, (input, part, key, reduce, include_self))


method("scatter_reduce", scatter_reduce)
