"""Random tensors."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.tensor import FUNCTIONS, public, type_name
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import _backend, made, shape_argument
from srcgrad.runtime.tensor_inplace import overwritten
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


def _floating(dtype: Any, kernel: str) -> None:
    d = None if dtype is None else as_dtype(dtype).numpy
    if d is not None and d.kind not in "fc":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(d)}'")


def rand(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Any = None
) -> Tensor:
    """Uniform random numbers in [0, 1)."""
    _floating(dtype, "check_uniform_bounds")
    return _placed(_random(generator).random(shape_argument(size)), dtype, device, requires_grad)


def randn(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Any = None
) -> Tensor:
    """Normal random numbers."""
    _floating(dtype, "normal_kernel_cpu")
    return _placed(_random(generator).standard_normal(shape_argument(size)), dtype, device, requires_grad)


def randint(*args: Any, dtype: Any = None, device: Any = None, generator: Any = None) -> Tensor:
    low, high, size = (0, *args) if len(args) == 2 else args
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
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
    if np.any((np.asarray(chance) < 0) | (np.asarray(chance) > 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
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


def _in_place(name: str, node: str, draw: Any) -> None:
    """Add `Tensor.name`: fill the tensor with random numbers; its old values then have no influence."""

    def method(self: Tensor, *args: Any, generator: Any = None, **keywords: Any) -> Tensor:
        a = self._array
        values = np.asarray(draw(_random(generator), a, *args, **keywords)).astype(a.dtype)
        return overwritten(self, arrays.namespace(a).asarray(values)[()], node)

    method.__name__ = name
    setattr(Tensor, name, method)


def _integers(random: Any, a: Any, low: int = 0, high: int | None = None) -> Any:
    if high is None:
        low, high = 0, low or (2**24 if a.dtype.kind == "f" else min(np.iinfo(a.dtype).max, 2**62) + 1)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return random.integers(low, high, a.shape)


def _chance(random: Any, a: Any, p: Any = 0.5) -> Any:
    return random.random(a.shape) < (arrays.to_host(p._array) if isinstance(p, Tensor) else p)


def _uniform(random: Any, a: Any, low: float = 0.0, high: float = 1.0, **keywords: Any) -> Any:
    low, high = keywords.pop("from", low), keywords.pop("to", high)
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    return random.uniform(low, high, a.shape)


def _normal(random: Any, a: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    if std < 0:
        raise RuntimeError(f"normal_ expects std >= 0.0, but found std {std:g}")
    return random.normal(mean, std, a.shape)


_in_place("uniform_", "UniformBackward0", _uniform)
_in_place("normal_", "NormalBackward0", _normal)
_in_place("exponential_", "ExponentialBackward0", lambda r, a, lambd=1.0: r.exponential(1 / lambd, a.shape))
_in_place("geometric_", "GeometricBackward0", lambda r, a, p: r.geometric(p, a.shape))
_in_place("random_", "RandomBackward1", _integers)
_in_place("bernoulli_", "BernoulliBackward2", _chance)


FUNCTIONS.update({
    f.__name__: f
    for f in (
        manual_seed, rand, randn, randint, randperm, normal, multinomial, rand_like, randn_like, randint_like,
    )
})  # fmt: skip
FUNCTIONS["Generator"] = Generator
