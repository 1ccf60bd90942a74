"""Comparisons, logic and tests of Tensors: their results carry no derivative."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
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
    result_or_error,
    shape_mismatch,
    type_name,
)
from srcgrad.runtime.tensor_base import Tensor, install, wrap
from srcgrad.runtime.tensor_types import F64 as _F64


def _comparison(names: str, compute: Callable[[Any, Any], Any], dunder: str, sign: str) -> None:
    ordered = sign not in ("==", "!=")

    def function(input: Any, other: Any) -> Tensor:
        if as_operand(other) is NotImplemented:
            return NotImplemented
        if not isinstance(input, Tensor):
            input = wrap(np.asarray(input))
        a = input._array
        if ordered and (
            a.dtype.kind == "c" or getattr(other, "dtype", _F64).kind == "c" or type(other) is complex
        ):
            raise NotImplementedError(f'"{dunder[2:4]}_cpu" not implemented for complex numbers')
        if isinstance(other, Tensor):
            b = other._array
            if b.dtype != a.dtype:
                dtype = operand_dtype((input, other))
                a, b = cast(input, dtype), cast(other, dtype)
        elif type(other) is float and a.dtype.kind == "f":
            b = a.dtype.type(other)
        elif type(other) is int and a.dtype.kind == "u":
            b = np.asarray(other).astype(a.dtype)[()]  # wraps around, as PyTorch's numbers do
        elif type(other) in (int, float, bool):
            b = other
        else:
            b = other if not isinstance(other, np.generic) else other.item()
        try:
            return wrap(compute(a, b))
        except ValueError:
            raise shape_mismatch([np.shape(a), np.shape(b)]) from None

    def checked(input: Any, other: Any) -> Tensor:
        return result_or_error(function(input, other), first, input, other)

    first, *rest = names.split()
    checked.__name__ = checked.__qualname__ = first
    checked.__doc__ = f"""`input {sign} other`, elementwise: bools; a `RuntimeError` if the shapes don't fit.

    >>> sg.{first}(sg.tensor([1, 2]), 2).tolist()
    {[compute(1, 2), compute(2, 2)]}
    """
    public(first, *rest)(checked)
    setattr(Tensor, dunder, function)


_comparison("lt less", operator.lt, "__lt__", "<")
_comparison("le less_equal", operator.le, "__le__", "<=")
_comparison("gt greater", operator.gt, "__gt__", ">")
_comparison("ge greater_equal", operator.ge, "__ge__", ">=")
_comparison("eq", operator.eq, "__eq__", "==")
_comparison("ne not_equal", operator.ne, "__ne__", "!=")
install(__hash__=object.__hash__)


def _logical(name: str, compute: Callable[..., Any]) -> None:
    def function(input: Tensor, other: Any) -> Tensor:
        if not isinstance(other, Tensor | np.ndarray):
            raise TypeError(
                f"{name}(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}"
            )
        a, b = input._array, other._array if isinstance(other, Tensor) else other
        try:
            return wrap(compute(a != 0, b != 0))
        except ValueError:
            raise shape_mismatch((a.shape, b.shape)) from None

    function.__name__ = name
    function.__doc__ = f"""`{name[8:]}` of whether elements differ from 0; `other` no tensor: a `TypeError`.

    >>> sg.{name}(sg.tensor([True, True]), sg.tensor([True, False])).tolist()
    {[bool(compute(True, True)), bool(compute(True, False))]}
    """
    public(name)(function)


_logical("logical_and", np.logical_and)
_logical("logical_or", np.logical_or)
_logical("logical_xor", np.logical_xor)


@public("logical_not")
def logical_not(input: Tensor) -> Tensor:
    """Whether each element is 0.

    >>> sg.logical_not(sg.tensor([0.0, 2.0]))
    tensor([ True, False])
    """
    return wrap(np.logical_not(input._array))


def _bitwise(name: str, dunder: str, compute: Callable[[Any, Any], Any], sign: str) -> None:
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

    def checked(input: Tensor, other: Any) -> Tensor:
        return result_or_error(function(input, other), name, input, other)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"""`input {sign} other`, of integers and bools (else a `NotImplementedError`).

    >>> sg.{name}(sg.tensor([5, 3]), 1).tolist()
    {[compute(5, 1), compute(3, 1)]}
    """
    public(name)(checked)
    setattr(Tensor, f"__{dunder}__", function)
    setattr(Tensor, f"__r{dunder}__", function)


_bitwise("bitwise_and", "and", operator.and_, "&")
_bitwise("bitwise_or", "or", operator.or_, "|")
_bitwise("bitwise_xor", "xor", operator.xor, "^")


@public("bitwise_not")
def bitwise_not(input: Tensor) -> Tensor:
    """`~input`, for bool and integer tensors."""
    if input._array.dtype.kind in "fc":
        raise NotImplementedError(
            f"\"bitwise_not_cpu\" not implemented for '{type_name(input._array.dtype)}'"
        )
    return wrap(~input._array)


def _inverted(self: Tensor) -> Tensor:
    if self._array.dtype.kind in "fc":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return wrap(~self._array)


install(__invert__=_inverted)


_bitwise("bitwise_left_shift", "lshift", operator.lshift, "<<")
_bitwise("bitwise_right_shift", "rshift", operator.rshift, ">>")
del Tensor.__rlshift__, Tensor.__rrshift__  # type: ignore[attr-defined]


def _shifted(name: str) -> Callable[[Tensor, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        if as_operand(other) is NotImplemented:
            return NotImplemented
        return FUNCTIONS[name](wrap(np.asarray(other)), self)

    return method


install(__rlshift__=_shifted("bitwise_left_shift"), __rrshift__=_shifted("bitwise_right_shift"))
install(
    __ilshift__=lambda self, other: self.bitwise_left_shift_(other),
    __irshift__=lambda self, other: self.bitwise_right_shift_(other),
)


def _test(name: str, compute: Callable[[Any], Any], text: str) -> None:
    def function(input: Tensor) -> Tensor:
        return wrap(compute(input._array))

    function.__name__ = name
    function.__doc__ = f"""Whether each element {text}.

    >>> sg.{name}(sg.tensor([float("nan"), float("-inf"), 1.0])).tolist()
    {[bool(compute(x)) for x in (math.nan, -math.inf, 1.0)]}
    """
    public(name)(function)


_test("isnan", np.isnan, "is nan")
_test("isinf", np.isinf, "is an infinity, of either sign")
_test("isfinite", np.isfinite, "is neither nan nor an infinity")
_test("signbit", np.signbit, "has its sign bit set, as -0.0 has")


def _close(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool) -> Any:
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(f"{a.type()} did not match {b.type()}")
    try:
        return np.isclose(a._array, b._array, rtol, atol, equal_nan)
    except ValueError:
        raise shape_mismatch((a._array.shape, b._array.shape)) from None


@public("isclose")
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether `|input - other| <= atol + rtol * |other|`, elementwise.

    A `RuntimeError` if the dtypes differ; nan is close to nan only with `equal_nan`.

    >>> sg.isclose(sg.tensor([1.0, 2.0]), sg.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return wrap(_close(input, other, rtol, atol, equal_nan))


@public("allclose")
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close: see `isclose`.

    >>> sg.allclose(sg.tensor([1.0]), sg.tensor([1.0 + 1e-7]))
    True
    """
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
