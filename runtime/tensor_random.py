"""Random tensors."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.tensor import FUNCTIONS, public
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import _backend, made, shape_argument
from srcgrad.runtime.tensor_types import as_dtype, default_dtype


class Generator:
    """A source of random numbers with a seed of its own."""

    def __init__(self, device: Any = "cpu"):
        self.device = device
        self.random = np.random.default_rng()

    def manual_seed(self, seed: int) -> Generator:
        self.random = np.random.default_rng(seed)
        return self

    def get_state(self) -> Any:
        return self.random.bit_generator.state

    def set_state(self, value: Any) -> None:
        self.random.bit_generator.state = value


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the random numbers of this library."""
    return default_generator.manual_seed(seed)


def _random(generator: Generator | None) -> np.random.Generator:
    return (generator or default_generator).random


def _placed(values: Any, dtype: Any, where: Any, requires_grad: bool) -> Tensor:
    d = as_dtype(dtype).numpy if dtype is not None else default_dtype().numpy
    return made(_backend(where).asarray(np.asarray(values, dtype=d)), requires_grad)


def rand(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Any = None
) -> Tensor:
    """Uniform random numbers in [0, 1)."""
    return _placed(_random(generator).random(shape_argument(size)), dtype, device, requires_grad)


def randn(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Any = None
) -> Tensor:
    """Normal random numbers."""
    return _placed(_random(generator).standard_normal(shape_argument(size)), dtype, device, requires_grad)


def randint(*args: Any, dtype: Any = None, device: Any = None, generator: Any = None) -> Tensor:
    low, high, size = (0, *args) if len(args) == 2 else args
    return _placed(
        _random(generator).integers(low, high, shape_argument((size,))), dtype or np.int64, device, False
    )


def randperm(n: int, *, dtype: Any = None, device: Any = None, generator: Any = None) -> Tensor:
    return _placed(_random(generator).permutation(n), dtype or np.int64, device, False)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Tensor:
    if size is not None:
        return _placed(_random(generator).normal(mean, std, shape_argument((size,))), None, None, False)
    base = mean if isinstance(mean, Tensor) else std
    noise = _placed(_random(generator).standard_normal(tuple(base.shape)), base.dtype, base.device, False)
    return noise * std + mean


@public("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    a = input._array
    chance = arrays.to_host(a) if p is None else p
    return _placed(_random(generator).random(a.shape) < chance, input.dtype, input.device, False)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    weights = np.atleast_2d(arrays.to_host(input._array)).astype(float)
    rows = [
        _random(generator).choice(w.size, num_samples, replace=replacement, p=w / w.sum()) for w in weights
    ]
    return made(np.array(rows)[0] if input.ndim == 1 else np.array(rows))


def rand_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return rand(
        tuple(input.shape),
        dtype=dtype or input.dtype,
        device=device or input.device,
        requires_grad=requires_grad,
    )


def randn_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    return randn(
        tuple(input.shape),
        dtype=dtype or input.dtype,
        device=device or input.device,
        requires_grad=requires_grad,
    )


def randint_like(input: Tensor, *bounds: int, dtype: Any = None) -> Tensor:
    return randint(*bounds, tuple(input.shape), dtype=dtype or input.dtype)


FUNCTIONS.update({
    f.__name__: f
    for f in (
        manual_seed, rand, randn, randint, randperm, normal, multinomial, rand_like, randn_like, randint_like,
    )
})  # fmt: skip
FUNCTIONS["Generator"] = Generator
