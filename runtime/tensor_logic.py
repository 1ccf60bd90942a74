"""Comparisons, logic and tests of Tensors: their results carry no derivative."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import tensor_inplace
from srcgrad.runtime.tensor import (
    FUNCTIONS,
    as_operand,
    cast,
    operand_dtype,
    public,
    shape_mismatch,
    type_name,
)
from srcgrad.runtime.tensor_base import Tensor, install, wrap


def _comparison(names: str, compute: Callable[[Any, Any], Any], dunder: str) -> None:
    def function(input: Any, other: Any) -> Tensor:
        if as_operand(other) is NotImplemented:
            return NotImplemented
        if not isinstance(input, Tensor):
            input = wrap(np.asarray(input))
        a = input._array
        if isinstance(other, Tensor):
            b = other._array
            if b.dtype != a.dtype:
                dtype = operand_dtype((input, other))
                a, b = cast(input, dtype), cast(other, dtype)
        elif type(other) is float and a.dtype.kind == "f":
            b = a.dtype.type(other)
        elif type(other) in (int, float, bool):
            b = other
        else:
            b = other if not isinstance(other, np.generic) else other.item()
        try:
            return wrap(compute(a, b))
        except ValueError:
            raise shape_mismatch([np.shape(a), np.shape(b)]) from None

    first, *rest = names.split()
    function.__name__ = function.__qualname__ = first
    public(first, *rest)(function)
    setattr(Tensor, dunder, function)


_comparison("lt less", operator.lt, "__lt__")
_comparison("le less_equal", operator.le, "__le__")
_comparison("gt greater", operator.gt, "__gt__")
_comparison("ge greater_equal", operator.ge, "__ge__")
_comparison("eq", operator.eq, "__eq__")
_comparison("ne not_equal", operator.ne, "__ne__")
install(__hash__=object.__hash__)


def _logical(name: str, compute: Callable[..., Any]) -> None:
    def function(input: Tensor, other: Any) -> Tensor:
        if not isinstance(other, Tensor | np.ndarray):
            raise TypeError(
                f"{name}(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}"
            )
        return wrap(compute(input._array != 0, (other._array if isinstance(other, Tensor) else other) != 0))

    function.__name__ = name
    public(name)(function)


_logical("logical_and", np.logical_and)
_logical("logical_or", np.logical_or)
_logical("logical_xor", np.logical_xor)


@public("logical_not")
def logical_not(input: Tensor) -> Tensor:
    return wrap(np.logical_not(input._array))


def _bitwise(name: str, dunder: str, compute: Callable[[Any, Any], Any]) -> None:
    def function(input: Tensor, other: Any) -> Tensor:
        if as_operand(other) is NotImplemented:
            return NotImplemented
        dtype = operand_dtype((input, other))
        if dtype.kind in ("fcb" if "shift" in name else "fc"):
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(dtype)}'")
        try:
            return wrap(compute(cast(input, dtype), cast(other, dtype)))
        except ValueError:
            raise shape_mismatch((input._array.shape, other._array.shape)) from None

    function.__name__ = function.__qualname__ = name
    public(name)(function)
    setattr(Tensor, f"__{dunder}__", function)
    setattr(Tensor, f"__r{dunder}__", function)


_bitwise("bitwise_and", "and", operator.and_)
_bitwise("bitwise_or", "or", operator.or_)
_bitwise("bitwise_xor", "xor", operator.xor)


@public("bitwise_not")
def bitwise_not(input: Tensor) -> Tensor:
    """`~input`, for bool and integer tensors."""
    if input._array.dtype.kind in "fc":
        raise NotImplementedError(
            f"\"bitwise_not_cpu\" not implemented for '{type_name(input._array.dtype)}'"
        )
    return wrap(~input._array)


install(__invert__=bitwise_not)


_bitwise("bitwise_left_shift", "lshift", operator.lshift)
_bitwise("bitwise_right_shift", "rshift", operator.rshift)
del Tensor.__rlshift__, Tensor.__rrshift__  # type: ignore[attr-defined]
install(__rlshift__=lambda self, other: FUNCTIONS["bitwise_left_shift"](wrap(np.asarray(other)), self))
install(__rrshift__=lambda self, other: FUNCTIONS["bitwise_right_shift"](wrap(np.asarray(other)), self))


def _test(name: str, compute: Callable[[Any], Any]) -> None:
    def function(input: Tensor) -> Tensor:
        return wrap(compute(input._array))

    function.__name__ = name
    public(name)(function)


_test("isnan", np.isnan)
_test("isinf", np.isinf)
_test("isfinite", np.isfinite)
_test("signbit", np.signbit)


def _close(a: Tensor, b: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if isinstance(b, Tensor) and a._array.dtype != b._array.dtype:
        raise RuntimeError(f"{a.type()} did not match {b.type()}")
    return np.isclose(a._array, b._array if isinstance(b, Tensor) else b, rtol, atol, equal_nan)


@public("isclose")
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    return wrap(_close(input, other, rtol, atol, equal_nan))


@public("allclose")
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(np.all(_close(input, other, rtol, atol, equal_nan)))


@public("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shape and all values are equal."""
    return input._array.shape == other._array.shape and bool(np.all(input._array == other._array))


for _n in (
    "logical_not", "logical_and", "logical_or", "lt", "le", "gt", "ge", "eq", "ne", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_not", "logical_xor", "bitwise_left_shift", "bitwise_right_shift",
    "less", "less_equal", "greater", "greater_equal", "not_equal",
):  # fmt: skip
    tensor_inplace.method(_n, FUNCTIONS[_n])
