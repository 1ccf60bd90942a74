"""Elementwise functions of Tensors: division and powers, comparisons, and the functions of one argument."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import arrays, tensor_inplace
from srcgrad.runtime.autograd.graph import LEAF, Node, numbers, target_of
from srcgrad.runtime.autograd.masking import Masking, MaskingPair, masking
from srcgrad.runtime.autograd.modes import inferring, paused, state, watched
from srcgrad.runtime.autograd.nodes import (
    Elementwise,
    Powered,
    WithNumber,
    elementwise_node,
    reversed_node,
    rule_node,
    version_of,
    watching,
)
from srcgrad.runtime.autograd.record import (
    announce,
    call,
    elementwise,
    raw_of,
    record_behind,
    record_one,
    tracked,
)
from srcgrad.runtime.rules import neural
from srcgrad.runtime.tensor import (
    FUNCTIONS,
    _apply,
    _div,
    _neg,
    add,
    as_operand,
    cast,
    meet,
    mul,
    operand_dtype,
    public,
    result_or_error,
    shape_mismatch,
    sub,
    type_name,
)
from srcgrad.runtime.tensor import _operator as fast_operator
from srcgrad.runtime.tensor_base import Tensor, install, wrap
from srcgrad.runtime.tensor_guards import must_be_tensor, refuse, without_array
from srcgrad.runtime.tensor_inplace import Zero
from srcgrad.runtime.tensor_types import F32, F64, default_dtype, fitting, number_kind

_new = object.__new__

# --- functions of one argument ------------------------------------------------------------------------------


def _no_bool(name: str) -> None:
    if name == "relu":
        raise RuntimeError("Boolean inputs not supported for relu")
    raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")


UNARY: dict[str, tuple[type[Elementwise], Callable[..., Any], bool]] = {}


def of_one(kind: type[Elementwise], input: Tensor, value: Any) -> Tensor:
    """The result `value` of an elementwise operation on one Tensor of its own float dtype, recorded; not in
    inference mode."""
    result = _new(Tensor)
    result._array = value
    result._history = result._counter = result._grad = result._more = None
    history = input._history
    if input._more is not None:
        history = input._fresh_history()
    if history is None or (paused and not state.recording):
        return result
    made = kind.recipes.get(1) or kind.recipe_for(1, 1)
    node: Any = _new(kind)
    node._targets = (input if history is LEAF else history,)
    node._number = next(numbers)
    node._extras = node.dtype = node.like = node.versions = None
    node.recipe = made
    if made.keeps[0]:
        node.saved = (input,)
        if input._counter is not None:
            node.versions = (input._counter[0],)
    else:
        node.saved = (None,)
    result._history = node
    if made.result:
        result._counter = counter = [0]
        node.out, node.counter, node.version = value, counter, 0
    else:
        node.out = node.counter = None
    if watched:
        announce(node)
    return result


def _unary(
    names: str,
    function: Callable[..., Any],
    node: str,
    floating: bool = True,
    keep: str | None = None,
    in_place: bool = True,
    base: type | None = None,
) -> None:
    kind = elementwise_node(node + "Backward0", function, 1, keep, base)
    first, *rest = names.split()

    def compute(input: Tensor, *, out: Any = None) -> Tensor:
        try:
            a = input._array
        except AttributeError as error:
            raise without_array(first, error) from None
        fast = a.dtype is F32 or a.dtype is F64
        if not fast:
            refuse(first, a.dtype)
            if not floating and a.dtype.kind == "b":
                _no_bool(first)
            if floating and a.dtype.kind not in "fc":
                a = a.astype(default_dtype().numpy)
        token = arrays.hush()
        try:
            value = function(a)
        finally:
            arrays.unhush(token)
        if not fast or out is not None or inferring:
            result = elementwise(kind, (input,), (a,), value, None)
            return result if out is None else result_or_error(result, first, input, None, out)
        return of_one(kind, input, value)

    compute.__name__ = compute.__qualname__ = first
    paragraphs = (function.__doc__ or first).strip().split("\n\n")  # the first: a ufunc's signature
    compute.__doc__ = " ".join(paragraphs[paragraphs[0].startswith(f"{function.__name__}(")].split())
    public(first, *rest)(compute)
    UNARY[first] = (kind, function, floating)
    if in_place:
        for name in (first, *rest):
            tensor_inplace.method(name, compute)


for _names, _function, _node, _keep in (
    ("exp", np.exp, "Exp", "result"),
    ("exp2", np.exp2, "Exp2", "result"),
    ("expm1", np.expm1, "Expm1", "result"),
    ("log", np.log, "Log", "input"),
    ("log2", np.log2, "Log2", "input"),
    ("log10", np.log10, "Log10", "input"),
    ("log1p", np.log1p, "Log1P", "input"),
    ("sqrt", np.sqrt, "Sqrt", "result"),
    ("rsqrt", neural.rsqrt, "Rsqrt", "result"),
    ("sin", np.sin, "Sin", "input"),
    ("cos", np.cos, "Cos", "input"),
    ("tan", np.tan, "Tan", "result"),
    ("asin arcsin", np.arcsin, "Asin", "input"),
    ("acos arccos", np.arccos, "Acos", "input"),
    ("atan arctan", np.arctan, "Atan", "input"),
    ("sinh", np.sinh, "Sinh", "input"),
    ("cosh", np.cosh, "Cosh", "input"),
    ("tanh", np.tanh, "Tanh", "result"),
    ("asinh arcsinh", np.arcsinh, "Asinh", "input"),
    ("acosh arccosh", np.arccosh, "Acosh", "input"),
    ("atanh arctanh", np.arctanh, "Atanh", "input"),
    ("sigmoid", neural.sigmoid, "Sigmoid", "result"),
    ("erf", neural.erf, "Erf", "input"),
    ("erfc", neural.erfc, "Erfc", "input"),
    ("reciprocal", np.reciprocal, "Reciprocal", "result"),
    ("sinc", np.sinc, "Sinc", "input"),
    ("deg2rad", np.deg2rad, "Deg2Rad", None),
    ("rad2deg", np.rad2deg, "Rad2Deg", None),
):
    _unary(_names, _function, _node, True, _keep)

_unary("abs absolute", np.absolute, "Abs", False, "input")
_unary("relu", neural.relu, "Relu", False, "result", base=Masking)
install(__abs__=FUNCTIONS["abs"])


@public("positive")
def positive(input: Tensor) -> Tensor:
    """`+input`: the tensor itself."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


install(__pos__=positive)


@public("neg", "negative")
def neg(input: Tensor) -> Tensor:
    """`-input`."""
    return _neg(input)


@public("square")
def square(input: Tensor) -> Tensor:
    """`input ** 2`, elementwise.

    >>> sg.square(sg.tensor([3.0]))
    tensor([9.])
    """
    return pow(input, 2)


# --- constant almost everywhere -----------------------------------------------------------------------------


def _flat(names: str, function: Callable[..., Any], node: str, text: str, example: str) -> None:
    """Functions whose derivative is 0 wherever it exists: tracked, with a zero gradient, as in PyTorch."""
    kind: Any = type(node + "Backward0", (Zero,), {"__slots__": ()})
    first, *rest = names.split()

    def compute(input: Tensor, **keywords: Any) -> Tensor:
        a = input._array
        if a.dtype.kind == "b" and first not in ("sign", "sgn"):
            _no_bool(first)
        if a.dtype.kind == "c" and first != "sgn":
            raise NotImplementedError(f"{first} is not supported for complex inputs")
        value = function(a, **keywords) if a.dtype.kind in "fc" else function(a, **keywords).astype(a.dtype)
        result = wrap(value)
        if a.dtype.kind in "fc" and tracked((input,)):
            result._history = kind.make(target_of(input))
        return result

    compute.__name__ = compute.__qualname__ = first
    compute.__doc__ = f"""{text}, elementwise; the gradient is 0.

    >>> sg.{first}(sg.tensor([-1.5, 2.5]))
    tensor([{example}])
    """
    public(first, *rest)(compute)
    for name in (first, *rest):
        tensor_inplace.method(name, compute)


def _rounded(a: Any, decimals: int = 0) -> Any:
    return np.round(a, decimals)


def _sgn(a: Any) -> Any:
    return a if a.dtype.kind == "b" else np.sign(a)


def _sign(a: Any) -> Any:
    """Of nan, 0: PyTorch's `sign` counts how often a number is greater than 0 and less."""
    return np.where(np.isnan(a), 0, np.sign(a)).astype(a.dtype)[()] if a.dtype.kind == "f" else _sgn(a)


_flat("floor", np.floor, "Floor", "The greatest integer that isn't greater", "-2.,  2.")
_flat("ceil", np.ceil, "Ceil", "The smallest integer that isn't smaller", "-1.,  3.")
_flat("trunc fix", np.trunc, "Trunc", "The integer part", "-1.,  2.")
_flat("round", _rounded, "Round", "Rounded to `decimals` (0), halves to the even neighbour", "-2.,  2.")
_flat("sign", _sign, "Sign", "-1, 0 or 1", "-1.,  1.")
_flat("sgn", _sgn, "Sgn", "-1, 0 or 1; of complex numbers `x / abs(x)`", "-1.,  1.")


@public("frac")
def frac(input: Tensor) -> Tensor:
    """`input - trunc(input)`, elementwise; only of floating-point tensors.

    >>> sg.frac(sg.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """
    if input._array.dtype.kind not in "f":
        raise NotImplementedError(f"\"frac_cpu\" not implemented for '{type_name(input._array.dtype)}'")
    return meet(FRAC, neural.frac, (input,))


FRAC, LOGIT = (
    elementwise_node(n, f, 1) for n, f in (("FracBackward0", neural.frac), ("LogitBackward0", neural.logit))
)


# --- division, remainders, powers ---------------------------------------------------------------------------


class NotImplementedNode(Node):
    """Backward of an operation that PyTorch doesn't differentiate either."""

    __slots__ = ()

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        raise RuntimeError("derivative for aten::floor_divide is not implemented")


def _integer_zero(a: Any, b: Any, dtype: Any, name: str = "div_floor") -> None:
    if dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_name(dtype)}'")
    if dtype.kind in "iu" and bool(np.any(b == 0)):
        raise RuntimeError("ZeroDivisionError")


@public("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """`input / other`; with `rounding_mode` "floor" or "trunc" rounded, keeping integers."""
    if rounding_mode is None:
        return result_or_error(_apply(_div, input, other), "div", input, other, out)
    if as_operand(other) is NotImplemented:
        raise must_be_tensor("div", "other", 1, other)
    if rounding_mode == "floor":
        rounded = _floor_divide(input, other)
        if isinstance(rounded._history, NotImplementedNode):
            rounded._history = ROUNDED_DIV.make(None)
            rounded._history._targets = tuple(
                target_of(x) if isinstance(x, Tensor) else None for x in (input, other)
            )
        return rounded
    if rounding_mode != "trunc":
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    dtype = operand_dtype((input, other))
    if dtype.kind in "fc":
        with arrays.quiet():
            result = wrap(np.trunc(cast(input, dtype) / cast(other, dtype)))
        if tracked((input, other)):
            result._history = ROUNDED_DIV.make(None)
            result._history._targets = tuple(
                target_of(x) if isinstance(x, Tensor) else None for x in (input, other)
            )
        return result
    a, b = cast(input, dtype), cast(other, dtype)
    _integer_zero(a, b, dtype)
    return wrap((np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(dtype))


@public("floor_divide")
def floor_divide(input: Any, other: Any) -> Tensor:
    """The quotient, rounded down."""
    return result_or_error(_floor_divide(input, other), "floor_divide", input, other)


def _floor_divide(input: Any, other: Any) -> Any:
    input, other = as_operand(input), as_operand(other)
    if input is NotImplemented or other is NotImplemented:
        return NotImplemented
    dtype = operand_dtype((input, other))
    a, b = cast(input, dtype), cast(other, dtype)
    _integer_zero(a, b, dtype)
    with arrays.quiet():
        try:
            result = wrap(np.floor_divide(a, b))
        except ValueError:
            raise shape_mismatch([np.shape(a), np.shape(b)]) from None
    if tracked((input, other)) and dtype.kind in "fc":
        node: Any = object.__new__(FLOOR_DIVIDE)  # PyTorch's own has no derivative either
        node._link(tuple(target_of(x) if isinstance(x, Tensor) else None for x in (input, other)))
        result._history = node
    return result


ROUNDED_DIV: Any = type("DivBackward2", (Zero,), {"__slots__": ()})
FLOOR_DIVIDE = type("FloorDivideBackward0", (NotImplementedNode,), {"__slots__": ()})
REMAINDER = elementwise_node("RemainderBackward1", np.remainder, 2)
REMAINDER_NUMBER = elementwise_node("RemainderBackward0", np.remainder, 2, None, WithNumber)
FMOD = elementwise_node("FmodBackward1", np.fmod, 2)
FMOD_NUMBER = elementwise_node("FmodBackward0", np.fmod, 2, None, WithNumber)
POW = elementwise_node("PowBackward0", np.power, 2, None, Powered)
POW_TENSOR = elementwise_node("PowBackward1", np.power, 2)
POW_SCALAR = reversed_node("PowBackward2", np.power)
POW_SCALAR.saved_names = {"self": 1, "exponent": 0}
ATAN2 = elementwise_node("Atan2Backward0", np.arctan2, 2)
HYPOT = elementwise_node("HypotBackward0", np.hypot, 2)
MAXIMUM = elementwise_node("MaximumBackward0", np.maximum, 2, kind=MaskingPair)
MINIMUM = elementwise_node("MinimumBackward0", np.minimum, 2, kind=MaskingPair)
LOGADDEXP = elementwise_node("LogaddexpBackward0", np.logaddexp, 2)
XLOGY = elementwise_node("XlogyBackward0", neural.xlogy, 2)
COPYSIGN = elementwise_node("CopysignBackward0", np.copysign, 2)


def _two(
    name: str,
    kind: type[Elementwise],
    compute: Callable[..., Any],
    floating: bool = False,
    check: Any = None,
    by_number: type[Elementwise] | None = None,
    only_tensors: bool = False,
) -> Any:
    fast = fast_operator(kind, compute, lambda x, y: meet(kind, compute, (x, y), floating), risky=True)

    def function(input: Any, other: Any, *, out: Any = None) -> Tensor:
        if only_tensors:
            if not isinstance(other, Tensor):
                raise must_be_tensor(name, "other", 1, other)
            if out is None and isinstance(input, Tensor):
                return fast(input, other)
        if check is not None and as_operand(other) is not NotImplemented:
            check(input, other)
        used = kind if by_number is None or isinstance(other, Tensor) else by_number
        return result_or_error(meet(used, compute, (input, other), floating), name, input, other, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{getattr(compute, '__name__', name)}`, with PyTorch's promotion of dtypes."
    public(name)(function)
    return function


def _check_zero(input: Any, other: Any) -> None:
    divisor = other._array if isinstance(other, Tensor) else other
    _integer_zero(input, divisor, operand_dtype((input, other)), "remainder")


remainder = _two("remainder", REMAINDER, np.remainder, False, _check_zero, REMAINDER_NUMBER)
fmod = _two("fmod", FMOD, np.fmod, False, _check_zero, FMOD_NUMBER)
atan2 = _two("atan2", ATAN2, np.arctan2, True, only_tensors=True)
_two("hypot", HYPOT, np.hypot, True, only_tensors=True)
maximum = _two("maximum", MAXIMUM, np.maximum, only_tensors=True)
minimum = _two("minimum", MINIMUM, np.minimum, only_tensors=True)
_two("fmax", elementwise_node("FmaxBackward0", np.fmax, 2, kind=MaskingPair), np.fmax, only_tensors=True)
_two("fmin", elementwise_node("FminBackward0", np.fmin, 2, kind=MaskingPair), np.fmin, only_tensors=True)
_two("logaddexp", LOGADDEXP, np.logaddexp, True, only_tensors=True)
XLOGY_NUMBER = elementwise_node("XlogyBackward2", neural.xlogy, 2, None, WithNumber)
COPYSIGN_NUMBER = elementwise_node("CopysignBackward1", np.copysign, 2, None, WithNumber)
_two("xlogy", XLOGY, neural.xlogy, True, None, XLOGY_NUMBER)
_two("copysign", COPYSIGN, np.copysign, True, None, COPYSIGN_NUMBER)


def _power_of(exponent: Any, base: Any) -> Any:
    return np.power(base, exponent)


def _slow_pow(x: Any, y: Any) -> Any:
    if as_operand(y) is NotImplemented or as_operand(x) is NotImplemented:
        return NotImplemented
    dtype = operand_dtype((x, y))
    if dtype.kind == "b":
        if y is True and isinstance(x, Tensor):
            return x.clone()
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if dtype.kind in "iu" and number_kind(y) >= 0 and y < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if dtype.kind in "iu" and isinstance(y, Tensor) and bool(np.any(y._array < 0)):
        a, b = cast(x, dtype), cast(y, dtype)
        exact = np.where(np.abs(a) == 1, np.where(a == 1, 1, np.where(b % 2 == 0, 1, -1)), 0)
        return wrap(np.where(b < 0, exact, np.power(a, np.maximum(b, 0))).astype(dtype))
    if not isinstance(x, Tensor):
        return meet(POW_SCALAR, _power_of, (y, x))
    if not isinstance(y, Tensor):
        return meet(POW, operator.pow, (x, y))
    return meet(POW_TENSOR, np.power, (x, y))


_pow_number = fast_operator(POW, operator.pow, _slow_pow, risky=True)
_pow_tensor = fast_operator(POW_TENSOR, operator.pow, _slow_pow, risky=True)


def _pow(self: Tensor, other: Any) -> Any:
    return _pow_tensor(self, other) if isinstance(other, Tensor) else _pow_number(self, other)


@public("pow")
def pow(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent`."""
    result = _pow(input, exponent) if isinstance(input, Tensor) else _slow_pow(input, exponent)
    return result_or_error(result, "pow", input, exponent)


@public("float_power")
def float_power(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent`, computed in float64, or complex128; one of them must be a tensor (`TypeError`).

    >>> sg.float_power(sg.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=srcgrad.float64)
    """
    from srcgrad.runtime.tensor_create import convert

    pair = (input, exponent)
    for place, (name, x) in enumerate(zip(("input", "exponent"), pair, strict=True), 1):
        if as_operand(x) is NotImplemented:
            raise must_be_tensor("float_power", name, place, x)
    if not any(isinstance(x, Tensor) for x in pair):
        kinds = ", ".join(type(x).__name__ for x in pair)
        raise TypeError(
            f"float_power() received an invalid combination of arguments - got ({kinds}), but expected one "
            "of: two Tensors, a Tensor and a number"
        )
    wide = np.dtype(complex if operand_dtype(pair).kind == "c" else float)
    return pow(*[convert(x, wide) if isinstance(x, Tensor) else x for x in pair])


def _reversed(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: f(other, self)


def _or_not(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: NotImplemented if as_operand(other) is NotImplemented else f(self, other)


for _name, _method in {
    "__pow__": _pow, "__rpow__": _reversed(_slow_pow), "__floordiv__": _or_not(_floor_divide),
    "__rfloordiv__": _or_not(_reversed(_floor_divide)), "__mod__": _or_not(remainder),
    "__rmod__": _or_not(_reversed(remainder)),
}.items():  # fmt: skip
    setattr(Tensor, _name, _method)


# --- choosing -----------------------------------------------------------------------------------------------

WHERE = rule_node("WhereBackward0", np.where)
WHERE.saved_names = {"condition": 0}
MASKED_FILL = watching(rule_node("MaskedFillBackward0", np.where))
MASKED_FILL_TENSOR = watching(rule_node("MaskedFillBackward1", np.where))


def _chosen(kind: Any, condition: Any, x: Any, y: Any) -> Tensor:
    from srcgrad.runtime.tensor_create import convert

    if not isinstance(condition, Tensor):
        raise must_be_tensor("where", "condition", 1, condition)
    c = condition._array
    if c.dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {c.dtype}"
        )
    if type(x) is type(y) is Tensor:
        a, b = x._array, y._array
        if a.dtype is b.dtype and (a.dtype is F32 or a.dtype is F64) and c.shape == a.shape == b.shape:
            result = wrap(np.where(c, a, b))
            if tracked((x, y)):
                record_behind(kind, result, condition, (x, y))
            return result
    dtype = operand_dtype((x, y))
    sides = [convert(s, dtype) if isinstance(s, Tensor) else wrap(fitting(s, dtype)) for s in (x, y)]
    try:
        return call(kind, (condition, *sides))
    except ValueError:
        raise shape_mismatch([np.shape(a) for a in (c, *sides)]) from None


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition`, else `other`; with one argument, the indices where it holds."""
    if input is None:
        return condition.nonzero(as_tuple=True)
    if other is None:
        raise must_be_tensor("where", "other", 3, other)
    return _chosen(WHERE, condition, input, other)


FUNCTIONS["where"] = where


@public("where", function=False)
def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where `condition`, else `other`."""
    return where(condition, self, other)


def masked(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    if isinstance(mask, Tensor) and mask._array.dtype.kind != "b":
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.name}"
        )
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if isinstance(value, Tensor):
        from srcgrad.runtime.tensor_create import convert

        filler: Any = convert(value, input._array.dtype)
    else:
        filler = fitting(value, input._array.dtype)
    keep = wrap(~mask._array) if isinstance(mask, Tensor) else ~mask
    a = input._array
    if not isinstance(filler, Tensor) and (a.dtype is F32 or a.dtype is F64) and isinstance(mask, Tensor):
        if mask._array.shape == a.shape:
            result = wrap(np.where(keep._array, a, filler))
            if tracked((input,)):
                record_behind(MASKED_FILL, result, keep, (input,), (filler,))
                result._history.watched = [(mask, version_of(mask))]
            return result
    try:
        kind = MASKED_FILL_TENSOR if isinstance(filler, Tensor) else MASKED_FILL
        result = call(kind, (keep, input, filler))
        if isinstance(mask, Tensor) and result._history is not None:
            result._history.watched = [(mask, version_of(mask))]
    except ValueError:
        raise shape_mismatch((input._array.shape, np.shape(raw_of(mask)))) from None
    return result


CLIP, CLIP_TENSORS, CLAMP_MIN, CLAMP_MAX = (
    masking(rule_node(f"Clamp{name}", np.clip))
    for name in ("Backward1", "Backward0", "MinBackward0", "MaxBackward0")
)
for _kind in (CLIP, CLIP_TENSORS, CLAMP_MIN, CLAMP_MAX):
    _kind.hides_none = True


_BOUNDS = (int, float, type(None))


@public("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, _kind: Any = None) -> Tensor:
    """`input` kept between `min` and `max`; on a bound the gradient is kept."""
    char = input._array.dtype.char if isinstance(input, Tensor) else ""
    if char in ("f", "d") and type(min) in _BOUNDS and type(max) in _BOUNDS and _kind is None:
        if min is not None or max is not None:  # the common case, bare
            a = input._array if min is None else np.maximum(input._array, min)
            a = a if max is None else np.minimum(a, max)
            result = wrap(a)
            if (input._history is not None or input._more is not None) and tracked((input,)):
                record_one(CLIP, result, input, (min, max), shown={"min": min, "max": max})
            return result
    from srcgrad.runtime.tensor_create import convert

    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and not isinstance(bound, Tensor) and number_kind(bound) < 0:
            raise must_be_tensor("clamp", name, 1, bound)
    dtype = operand_dtype((input, *bounds))
    x = convert(input, dtype)
    low, high = (
        b if b is None else convert(b, dtype) if isinstance(b, Tensor) else fitting(b, dtype)
        for b in (min, max)
    )
    if dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    kind = _kind or (CLIP_TENSORS if isinstance(low, Tensor) or isinstance(high, Tensor) else CLIP)
    try:
        return call(kind, (x, low, high), shown={"min": min, "max": max})
    except ValueError:
        sizes = [b._array.shape for b in (low, high) if isinstance(b, Tensor)]
        raise shape_mismatch([x._array.shape, *sizes]) from None


@public("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """The greater of `input` and `min`, elementwise; on the bound the gradient is kept.

    >>> sg.clamp_min(sg.tensor([-1.0, 2.0]), 0)
    tensor([0., 2.])
    """
    return clamp(input, min, _kind=CLAMP_MIN)


@public("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """The smaller of `input` and `max`, elementwise; on the bound the gradient is kept.

    >>> sg.clamp_max(sg.tensor([-1.0, 2.0]), 0)
    tensor([-1.,  0.])
    """
    return clamp(input, None, max, _kind=CLAMP_MAX)


@public("nan_to_num")
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """`input` with `nan` for nan, `posinf` and `neginf` for infinities (by default the greatest numbers).

    >>> sg.nan_to_num(sg.tensor([float("nan"), 1.0]))
    tensor([0., 1.])
    """
    kind = elementwise_node("NanToNumBackward0", np.nan_to_num, 1)
    return meet(kind, np.nan_to_num, (input,), nan=nan, posinf=posinf, neginf=neginf)


@public("logit")
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """`log(input / (1 - input))`, with `input` first kept between `eps` and `1 - eps` if that is given.

    >>> sg.logit(sg.tensor([0.5]))
    tensor([0.])
    """
    return meet(LOGIT, neural.logit, (input,), floating=True, eps=eps)


CONJ = rule_node("ConjBackward0", np.conjugate)
ANGLE = rule_node("AngleBackward0", np.angle)
FLAT_ANGLE: Any = type("AngleBackward0", (Zero,), {"__slots__": ()})


@public("conj", "conj_physical", "resolve_conj")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, elementwise; a real tensor is returned as it is.

    >>> sg.conj(sg.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return input if input._array.dtype.kind != "c" else call(CONJ, (input,))


@public("angle")
def angle(input: Tensor) -> Tensor:
    """The angle of complex numbers in radians; of real ones 0, or pi where they are negative.

    >>> sg.angle(sg.tensor([1.0, -1.0]))
    tensor([0.0000, 3.1416])
    """
    a = input._array
    if a.dtype.kind == "c":
        return call(ANGLE, (input,))
    x = input if a.dtype.kind == "f" else wrap(a.astype(default_dtype().numpy))
    out = np.where(x._array < 0, np.pi, np.where(np.isnan(x._array), np.nan, 0.0))
    result = wrap(out.astype(x._array.dtype)[()])
    if tracked((input,)):
        result._history = FLAT_ANGLE.make(target_of(input))
    return result


# --- in place -----------------------------------------------------------------------------------------------


def _fast_in_place(name: str, ufunc: Any, function: Callable[..., Tensor], floating: bool = False) -> None:
    """`add_` and its kin write straight into the memory when nothing is recorded."""

    def changed(self: Tensor, other: Any, **keywords: Any) -> Tensor:
        if not keywords and self._history is None and self._more is None and type(self._array) is np.ndarray:
            a = self._array
            b = other._array if isinstance(other, Tensor) and other._history is None else other
            plain = type(b) in (float, int) or (arrays.is_array(b) and b.dtype == a.dtype)
            if plain and a.dtype.kind == "f" and a.flags.writeable and not arrays.overlaps_itself(a):
                if np.shape(b) == () or b.shape == a.shape:
                    tensor_inplace.check_writable(self, False, True)
                    with arrays.quiet():
                        ufunc(a, b, out=a)
                    tensor_inplace.bump(self)
                    return self
        return tensor_inplace.in_place(self, function, other, **keywords)

    changed.__name__ = name
    changed.__doc__ = f"`{name[:-1]}`, of the tensor itself."
    setattr(Tensor, name, changed)


_fast_in_place("add_", np.add, add)
_fast_in_place("sub_", np.subtract, sub)
_fast_in_place("mul_", np.multiply, mul)
_fast_in_place("div_", np.divide, div)
for _alias, _n in {
    "subtract_": "sub_",
    "multiply_": "mul_",
    "divide_": "div_",
    "true_divide_": "div_",
}.items():
    setattr(Tensor, _alias, getattr(Tensor, _n))


def _augmented(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if as_operand(other) is NotImplemented:
            return NotImplemented
        return getattr(self, name)(other)

    return method


tensor_inplace.method("pow", pow)
for _n in (
    "remainder", "fmod", "floor_divide", "clamp", "clip", "clamp_min", "clamp_max",
    "neg", "negative", "square", "atan2", "nan_to_num", "frac", "hypot", "logit",
):  # fmt: skip
    tensor_inplace.method(_n, FUNCTIONS[_n])
for _dunder, _n in {
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_", "__ipow__": "pow_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
}.items():  # fmt: skip
    setattr(Tensor, _dunder, _augmented(_n))
