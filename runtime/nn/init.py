"""Initial values, written in place without history."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.modes import no_grad
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_inplace import store
from srcgrad.runtime.tensor_random import default_generator


def _random(generator: Any) -> np.random.Generator:
    return (generator or default_generator).random


def _write(tensor: Tensor, values: Any) -> Tensor:
    a = tensor._array
    with no_grad():
        store(tensor, arrays.namespace(a).asarray(np.asarray(values).astype(a.dtype)), checked=False)
    return tensor


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which a nonlinearity should be compensated."""
    if nonlinearity in (
        "linear",
        "sigmoid",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
    ):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform random values in [a, b)."""
    return _write(tensor, _random(generator).uniform(a, b, tuple(tensor.shape)))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal random values."""
    return _write(tensor, _random(generator).normal(mean, std, tuple(tensor.shape)))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normal random values, drawn again until they lie in [a, b]."""
    random = _random(generator)
    values = random.normal(mean, std, tuple(tensor.shape))
    while True:
        outside = (values < a) | (values > b)
        count = int(np.count_nonzero(outside))
        if not count:
            return _write(tensor, values)
        values[outside] = random.normal(mean, std, count)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one value.

    >>> sg.nn.init.constant_(sg.empty(2), 3.0)
    tensor([3., 3.])
    """
    return _write(tensor, np.full(tuple(tensor.shape), val))


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    >>> sg.nn.init.ones_(sg.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    >>> sg.nn.init.zeros_(sg.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere; other ranks are a `ValueError`.

    >>> sg.nn.init.eye_(sg.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _write(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights that keep the channels as they are."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    values = np.zeros(tuple(tensor.shape))
    per = tensor.shape[0] // groups
    centre = tuple(s // 2 for s in tensor.shape[2:])
    for g in range(groups):
        for d in range(min(per, tensor.shape[1])):
            values[(g * per + d, d, *centre)] = 1
    return _write(tensor, values)


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers up to `gain * sqrt(6 / (fan_in + fan_out))` in size (Glorot and Bengio, 2010).

    Fewer than two dimensions are a `ValueError`.

    >>> bool((sg.nn.init.xavier_uniform_(sg.empty(3, 3)).abs() <= 1).all())
    True
    """
    fan_in, fan_out = _fans(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers with deviation `gain * sqrt(2 / (fan_in + fan_out))` (Glorot and Bengio, 2010).

    Fewer than two dimensions are a `ValueError`.

    >>> sg.nn.init.xavier_normal_(sg.empty(3, 2)).shape
    srcgrad.Size([3, 2])
    """
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _fan(tensor: Tensor, mode: str) -> int:
    modes = {"fan_in": 0, "fan_out": 1}
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[modes[mode.lower()]]


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform numbers up to `gain * sqrt(3 / fan)` in size (He et al., arXiv:1502.01852).

    `gain` is `calculate_gain(nonlinearity, a)`; `mode` says which fan ("fan_in" or "fan_out", else a
    `ValueError`).

    >>> bool((sg.nn.init.kaiming_uniform_(sg.empty(3, 6)).abs() <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal numbers with deviation `gain / sqrt(fan)`: see `kaiming_uniform_`.

    >>> sg.nn.init.kaiming_normal_(sg.empty(3, 2)).shape
    srcgrad.Size([3, 2])
    """
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """An orthogonal matrix (or orthonormal rows, or columns)."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    flat = _random(generator).standard_normal((rows, columns))
    q, r = np.linalg.qr(flat.T if rows < columns else flat)
    q = q * np.sign(np.diag(r))
    return _write(tensor, gain * (q.T if rows < columns else q).reshape(tuple(tensor.shape)))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers in a matrix, with the share `sparsity` of each column 0; other ranks: a `ValueError`.

    >>> (sg.nn.init.sparse_(sg.empty(4, 2), 0.5) == 0).sum(0)
    tensor([2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    random = _random(generator)
    values = random.normal(0, std, tuple(tensor.shape))
    zeros = math.ceil(sparsity * tensor.shape[0])
    for column in range(tensor.shape[1]):
        values[random.permutation(tensor.shape[0])[:zeros], column] = 0
    return _write(tensor, values)
