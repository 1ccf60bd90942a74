"""Activations."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import tensor_math
from srcgrad.runtime.arrays import beside, quiet
from srcgrad.runtime.autograd.masking import Masking
from srcgrad.runtime.autograd.modes import inferring
from srcgrad.runtime.autograd.nodes import Elementwise, elementwise_node
from srcgrad.runtime.rules import neural
from srcgrad.runtime.tensor import FUNCTIONS, meet
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_inplace import in_place
from srcgrad.runtime.tensor_math import where
from srcgrad.runtime.tensor_random import default_generator
from srcgrad.runtime.tensor_reduce import log_softmax as _log_softmax
from srcgrad.runtime.tensor_reduce import norm
from srcgrad.runtime.tensor_reduce import softmax as _softmax
from srcgrad.runtime.tensor_types import F32, F64
from srcgrad.runtime.tensor_views import chunk, expand_as

assert tensor_math.UNARY  # the room that defines these
sigmoid: Callable[..., Tensor] = FUNCTIONS["sigmoid"]
tanh: Callable[..., Tensor] = FUNCTIONS["tanh"]
_relu: Callable[..., Tensor] = FUNCTIONS["relu"]


def _kind(name: str, function: Any, count: int = 1, base: type | None = None) -> type[Elementwise]:
    return elementwise_node(name + "Backward0", function, count, "input", base)


_GELU, _GELU_TANH = _kind("Gelu", neural.gelu), _kind("Gelu", neural.gelu_tanh)
_SILU, _MISH = _kind("Silu", neural.silu), _kind("Mish", neural.mish)
_SOFTPLUS, _LOGSIGMOID = _kind("Softplus", neural.softplus), _kind("LogSigmoid", neural.logsigmoid)
_ELU, _CELU, _LEAKY = (
    _kind("Elu", neural.elu),
    _kind("Celu", neural.elu),
    _kind("LeakyRelu", neural.leaky_relu),
)
_HARDTANH, _HARDSIGMOID, _HARDSWISH, _THRESHOLD = (
    _kind(f.__name__.capitalize(), f, base=Masking)
    for f in (neural.hardtanh, neural.hardsigmoid, neural.hardswish, neural.threshold)
)
_PRELU = _kind("PreluKernel", neural.prelu, 2)


def _apply(kind: type[Elementwise], input: Tensor, inplace: bool = False, **keywords: Any) -> Tensor:
    if not keywords and not inplace and type(input) is Tensor and not inferring:
        a = input._array
        if a.dtype is F32 or a.dtype is F64:
            with quiet():
                value = kind.function(a)
            return tensor_math.of_one(kind, input, value)
    if inplace:
        return in_place(input, lambda t: meet(kind, kind.function, (t,), True, **keywords))
    result: Tensor = meet(kind, kind.function, (input,), True, **keywords)
    return result


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(input, 0)`, elementwise; the gradient at 0 is 0.

    >>> sg.nn.functional.relu(sg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else _relu(input)


def relu_(input: Tensor) -> Tensor:
    """`relu`, of the tensor itself.

    >>> sg.nn.functional.relu_(sg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(input, 0), 6)`, elementwise.

    >>> sg.nn.functional.relu6(sg.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """
    return _apply(_HARDTANH, input, inplace, low=0.0, high=6.0)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The input kept between `min_val` and `max_val`, elementwise.

    >>> sg.nn.functional.hardtanh(sg.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return _apply(_HARDTANH, input, inplace, low=min_val, high=max_val)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The input where it is positive, else `negative_slope` times it, elementwise.

    >>> sg.nn.functional.leaky_relu(sg.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return _apply(_LEAKY, input, inplace, negative_slope=negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The input where it is positive, else `alpha * (exp(input) - 1)`, elementwise.

    >>> sg.nn.functional.elu(sg.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """
    return _apply(_ELU, input, inplace, alpha=alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The input where it is positive, else `alpha * (exp(input / alpha) - 1)`, elementwise.

    >>> sg.nn.functional.celu(sg.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """
    return _apply(_CELU, input, inplace, alpha=alpha, input_scale=1.0 / alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`scale * elu(input, alpha)` with the constants that keep mean 0 and variance 1 (arXiv:1706.02515).

    >>> sg.nn.functional.selu(sg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.0507])
    """
    return _apply(_ELU, input, inplace, alpha=1.6732632423543772, scale=1.0507009873554805)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """`input * Phi(input)`, with the normal distribution function or its `approximate="tanh"`.

    Another `approximate` is a `RuntimeError`.

    >>> sg.nn.functional.gelu(sg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _apply(_GELU if approximate == "none" else _GELU_TANH, input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`, elementwise.

    >>> sg.nn.functional.silu(sg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return _apply(_SILU, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))`, elementwise.

    >>> sg.nn.functional.mish(sg.tensor([0.0]))
    tensor([0.])
    """
    return _apply(_MISH, input, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta * input)) / beta`; the input itself where `beta * input` is above `threshold`.

    >>> sg.nn.functional.softplus(sg.tensor([0.0]))
    tensor([0.6931])
    """
    return _apply(_SOFTPLUS, input, beta=beta, threshold=threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """`log(sigmoid(input))` without overflow, elementwise.

    >>> sg.nn.functional.logsigmoid(sg.tensor([0.0]))
    tensor([-0.6931])
    """
    return _apply(_LOGSIGMOID, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`relu6(input + 3) / 6`, elementwise.

    >>> sg.nn.functional.hardsigmoid(sg.tensor([-3.0, 0.0, 3.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _apply(_HARDSIGMOID, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)`, elementwise.

    >>> sg.nn.functional.hardswish(sg.tensor([0.0, 3.0]))
    tensor([0., 3.])
    """
    return _apply(_HARDSWISH, input, inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The input where it is positive, else `weight` times it: one weight, or one per channel (dimension 1).

    >>> sg.nn.functional.prelu(sg.tensor([-1.0, 2.0]), sg.tensor([0.5]))
    tensor([-0.5000,  2.0000])
    """
    if weight.numel() > 1 and input.ndim > 1:
        weight = weight.reshape(weight.numel(), *([1] * (input.ndim - 2)))
    result: Tensor = meet(_PRELU, neural.prelu, (input, weight))
    return result


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU whose slope is drawn for each element in training, and the middle one otherwise."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    drawn = default_generator.random.uniform(lower, upper, input._array.shape)
    slopes = wrap(beside(drawn.astype(input._array.dtype), input._array))
    if inplace:
        return in_place(input, lambda t: where(t >= 0, t, t * slopes))
    return where(input >= 0, input, input * slopes)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Softmax of logits with Gumbel noise; `hard`: one-hot, with the gradient of the soft one."""
    noise = -np.log(default_generator.random.exponential(size=logits._array.shape))
    soft = _softmax((logits + wrap(beside(noise.astype(logits._array.dtype), logits._array))) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, keepdim=True)
    return FUNCTIONS["zeros_like"](logits).scatter(dim, best, 1.0) - soft.detach() + soft


def softsign(input: Tensor) -> Tensor:
    """`input / (1 + |input|)`, elementwise.

    >>> sg.nn.functional.softsign(sg.tensor([1.0]))
    tensor([0.5000])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`, elementwise.

    >>> sg.nn.functional.tanhshrink(sg.tensor([0.0]))
    tensor([0.])
    """
    return input - tanh(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 where `|input| <= lambd`, else the input.

    >>> sg.nn.functional.hardshrink(sg.tensor([-1.0, 0.25]))
    tensor([-1.,  0.])
    """
    return input.masked_fill(input.abs() <= lambd, 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The input moved towards 0 by `lambd`, 0 where it would pass it; a negative `lambd`: a `RuntimeError`.

    >>> sg.nn.functional.softshrink(sg.tensor([-1.5, 0.25]))
    tensor([-1.,  0.])
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    shrunk = input - lambd * input.detach().sign()
    return shrunk.masked_fill(input.abs() <= lambd, 0.0)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The input where it is above `threshold`, else `value`.

    >>> sg.nn.functional.threshold(sg.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return _apply(_THRESHOLD, input, inplace, limit=threshold, value=value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second.

    >>> sg.nn.functional.glu(sg.tensor([3.0, 0.0]))
    tensor([1.5000])
    """
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    first, second = chunk(input, 2, dim)
    return first * sigmoid(second)


def _default_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
        "argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`exp(input) / sum(exp(input))` along `dim`; without one it warns, and takes 0 or 1.

    >>> sg.nn.functional.softmax(sg.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(input, _default_dim("softmax", input.ndim) if dim is None else dim, dtype)


def softmin(input: Tensor, dim: int | None = None) -> Tensor:
    """`softmax(-input)` along `dim`.

    >>> sg.nn.functional.softmin(sg.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(-input, _default_dim("softmin", input.ndim) if dim is None else dim)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`log(softmax(input))` along `dim`; without one it warns, and takes 0 or 1.

    >>> sg.nn.functional.log_softmax(sg.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _log_softmax(input, _default_dim("log_softmax", input.ndim) if dim is None else dim, dtype)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """The input over its p-norm along `dim` (over `eps` where that is smaller).

    >>> sg.nn.functional.normalize(sg.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = norm(input, p, dim, True).clamp(min=eps)
    return input / expand_as(length, input)
