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
        """Start again from a seed; returns the generator.

        >>> x = sg.rand(2, generator=sg.Generator().manual_seed(0))
        >>> sg.equal(x, sg.rand(2, generator=sg.Generator().manual_seed(0)))
        True
        """
        self.random = np.random.default_rng(seed)
        return self

    def get_state(self) -> Any:
        """The state, for `set_state`.

        >>> g = sg.Generator()
        >>> state = g.get_state()
        >>> x = sg.rand(2, generator=g)
        >>> g.set_state(state)
        >>> sg.equal(x, sg.rand(2, generator=g))
        True
        """
        return self.random.bit_generator.state

    def set_state(self, value: Any) -> None:
        """Go back to a state from `get_state`."""
        self.random.bit_generator.state = value


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the random numbers of this library."""
    return default_generator.manual_seed(seed)


def get_rng_state() -> Any:
    """The state of the random numbers of this library, for `set_rng_state`.

    >>> state = sg.get_rng_state()
    >>> x = sg.rand(2)
    >>> sg.set_rng_state(state)
    >>> sg.equal(x, sg.rand(2))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Go back to a state from `get_rng_state`."""
    default_generator.set_state(new_state)


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
    """Integers drawn from `low` (default 0) to before `high`: `randint([low,] high, size)`.

    A `RuntimeError` if there are none between them.

    >>> sg.randint(5, 6, (2,))
    tensor([5, 5])
    """
    low, high, size = (0, *args) if len(args) == 2 else args
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return _placed(
        _random(generator).integers(low, high, shape_argument((size,))), dtype or np.int64, device, False
    )


def randperm(n: int, *, dtype: Any = None, device: Any = None, generator: Any = None) -> Tensor:
    """The numbers 0 to n - 1 in random order.

    >>> sg.randperm(3).sort().values
    tensor([0, 1, 2])
    """
    return _placed(_random(generator).permutation(n), dtype or np.int64, device, False)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Tensor:
    """Normal random numbers with this mean and deviation: two numbers and a `size`, or tensors.

    >>> sg.normal(sg.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    if isinstance(std, Tensor) and bool((std._array < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if size is not None:
        return _placed(_random(generator).normal(mean, std, shape_argument((size,))), None, None, False)
    base = mean if isinstance(mean, Tensor) else std
    noise = _placed(_random(generator).standard_normal(tuple(base.shape)), base.dtype, base.device, False)
    return noise * std + mean


@public("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """1 with the probability that each element gives (or `p`), else 0; a `RuntimeError` outside of [0, 1].

    >>> sg.bernoulli(sg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    a = input._array
    chance = arrays.to_host(a) if p is None else p
    if np.any((np.asarray(chance) < 0) | (np.asarray(chance) > 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return _placed(_random(generator).random(a.shape) < chance, input.dtype, input.device, False)


@public("multinomial")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """`num_samples` indices, drawn with probabilities in proportion to the elements of each row.

    `input` is a vector or a matrix; without `replacement` no index is drawn twice.

    >>> sg.multinomial(sg.tensor([0.0, 1.0]), 2, replacement=True)
    tensor([1, 1])
    """
    weights = np.atleast_2d(arrays.to_host(input._array)).astype(float)
    rows = [
        _random(generator).choice(w.size, num_samples, replace=replacement, p=w / w.sum()) for w in weights
    ]
    return made(np.array(rows)[0] if input.ndim == 1 else np.array(rows))


def rand_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform random numbers in [0, 1), of the shape, dtype and device of a tensor.

    >>> sg.rand_like(sg.zeros(2, 3)).shape
    srcgrad.Size([2, 3])
    """
    return rand(
        tuple(input.shape),
        dtype=dtype or input.dtype,
        device=device or input.device,
        requires_grad=requires_grad,
    )


def randn_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Normal random numbers of the shape, dtype and device of a tensor.

    >>> sg.randn_like(sg.zeros(2, 3)).shape
    srcgrad.Size([2, 3])
    """
    return randn(
        tuple(input.shape),
        dtype=dtype or input.dtype,
        device=device or input.device,
        requires_grad=requires_grad,
    )


def randint_like(input: Tensor, *bounds: int, dtype: Any = None) -> Tensor:
    """Random integers (`high` or `low, high`, see `randint`) of the shape and dtype of a tensor.

    >>> sg.randint_like(sg.zeros(2), 5, 6)
    tensor([5., 5.])
    """
    return randint(*bounds, tuple(input.shape), dtype=dtype or input.dtype)


def _in_place(name: str, node: str, draw: Any, law: str, example: str = "") -> None:
    """Add `Tensor.name`: fill the tensor with random numbers; its old values then have no influence."""

    def method(self: Tensor, *args: Any, generator: Any = None, **keywords: Any) -> Tensor:
        a = self._array
        if name in _CONTINUOUS and a.dtype.kind not in "fc":
            raise NotImplementedError(f"\"{name}cpu\" not implemented for '{type_name(a.dtype)}'")
        values = np.asarray(draw(_random(generator), a, *args, **keywords)).astype(a.dtype)
        return overwritten(self, arrays.namespace(a).asarray(values)[()], node)

    method.__name__ = name
    method.__doc__ = f"""Fill the tensor with random numbers, {law}; its old values then have no influence.

    >>> sg.zeros(2).{name}({example}).shape
    srcgrad.Size([2])
    """
    setattr(Tensor, name, method)


_CONTINUOUS = ("uniform_", "normal_", "exponential_")


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


_in_place("uniform_", "UniformBackward0", _uniform, "uniform from `low` to `high` (0 to 1)")
_in_place("normal_", "NormalBackward0", _normal, "normal with this `mean` (0) and `std` (1)")
_in_place(
    "exponential_",
    "ExponentialBackward0",
    lambda r, a, lambd=1.0: r.exponential(1 / lambd, a.shape),
    "exponential with the rate `lambd` (1)",
)
_in_place(
    "geometric_",
    "GeometricBackward0",
    lambda r, a, p: r.geometric(p, a.shape),
    "geometric with the chance `p`",
    "0.5",
)
_in_place("random_", "RandomBackward1", _integers, "integers from `low` (0) to before `high`", "6")
_in_place("bernoulli_", "BernoulliBackward2", _chance, "1 with the chance `p` (0.5), else 0")


FUNCTIONS.update({
    f.__name__: f
    for f in (
        get_rng_state, manual_seed, set_rng_state, rand, randn, randint, randperm, normal, rand_like,
        randn_like, randint_like,
    )
})  # fmt: skip
FUNCTIONS["Generator"] = Generator
