"""Utilities on parameters and gradients."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from srcgrad.runtime.autograd.modes import no_grad
from srcgrad.runtime.nn.utils import rnn as rnn
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import tensor
from srcgrad.runtime.tensor_join import cat, stack
from srcgrad.runtime.tensor_reduce import norm


def _with_grads(parameters: Any) -> list[Tensor]:
    found = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in found if p._grad is not None]


def _gradient(p: Tensor) -> Any:
    return p._grad


def get_total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The norm of the norms of all tensors: that of all their elements together.

    With `error_if_nonfinite` a norm that is infinite or nan is a `RuntimeError`.

    >>> sg.nn.utils.get_total_norm([sg.tensor([3.0]), sg.tensor([4.0])])
    tensor(5.)
    """
    norms = [norm(t, norm_type) for t in tensors]
    if not norms:
        return tensor(0.0)
    total = norm(stack(norms), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`; returns the norm before."""
    ps = _with_grads(parameters)
    with no_grad():
        total = get_total_norm(
            [p._grad for p in ps if p._grad is not None], float(norm_type), error_if_nonfinite
        )
        scale = float(max_norm) / (total + 1e-6)
        factor = scale.clamp(max=1.0)
        for p in ps:
            _gradient(p).mul_(factor)
    return total


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Keep every element of the gradients between `-clip_value` and `clip_value`."""
    with no_grad():
        for p in _with_grads(parameters):
            _gradient(p).clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in one vector (recorded)."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write a vector back into the parameters."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected srcgrad.Tensor, but got: {type(vec)}")
    start = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[start : start + n].view_as(p).data
        start += n


__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "rnn",
    "vector_to_parameters",
]  # fmt: skip
