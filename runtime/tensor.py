"""Arithmetic on Tensors: the operators, on the fast path that most programs live on, and how operands meet.

An operator whose operands agree (one dtype, or a Python number beside a float tensor) is computed and
recorded right here; everything else goes through `meet`, which applies PyTorch's promotion of dtypes.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.autograd.graph import LEAF, numbers
from srcgrad.runtime.autograd.modes import inferring, paused, state, watched
from srcgrad.runtime.autograd.nodes import Elementwise, elementwise_node, reversed_node, stand_in
from srcgrad.runtime.autograd.record import announce, elementwise
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_guards import guarded, must_be_tensor, without_array
from srcgrad.runtime.tensor_types import (
    F32,
    F64,
    SCALAR_NAMES,
    can_cast,
    default_dtype,
    number_kind,
    result_dtype,
)

support.observers.add(Tensor)

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The public functions by name, as the rooms define them."""

_new = object.__new__


def public(
    *names: str, method: bool = True, function: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: publish a function of a Tensor under `names` (default: its own), as function and as
    method."""

    def publish(f: Callable[..., Any]) -> Callable[..., Any]:
        for name in names or (f.__name__.rstrip("_") if not f.__name__.endswith("__") else f.__name__,):
            published = guarded(f, name)
            if function:
                FUNCTIONS[name] = published
            if method:
                setattr(Tensor, name, published)
        return f

    return publish


# --- how operands meet --------------------------------------------------------------------------------------


def shape_mismatch(shapes: Sequence[tuple[int, ...]]) -> RuntimeError:
    for a, b in itertools.combinations(shapes, 2):
        for back in range(1, min(len(a), len(b)) + 1):
            if a[-back] == b[-back] or 1 in (a[-back], b[-back]):
                continue
            return RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at "
                "non-singleton "
                f"dimension {max(len(a), len(b)) - back}"
            )
    return RuntimeError(f"shapes {', '.join(map(str, shapes))} can't be broadcast together")


def check_devices(raw: Sequence[Any]) -> None:
    kinds = {arrays.device_type(a) for a in raw if arrays.is_array(a) and a.ndim}
    if len(kinds) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{' and '.join(sorted(kinds))}!"
        )


def as_operand(x: Any, like: Any = None) -> Any:
    """A Tensor, a Python number, or a 0-dim NumPy scalar; NumPy arrays become Tensors. Anything else:
    NotImplemented."""
    if isinstance(x, Tensor) or number_kind(x) >= 0:
        return x
    if arrays.is_array(x):
        return wrap(x)
    return NotImplemented


def operand_dtype(inputs: Sequence[Any], floating: bool = False) -> np.dtype[Any]:
    """The dtype in which an operation on `inputs` is computed; `floating`: integers become the default
    float."""
    dtype = result_dtype(
        tuple(
            x._array if isinstance(x, Tensor) else x.item() if isinstance(x, np.generic) else x
            for x in inputs
        )
    )
    if floating and dtype.kind not in "fc":
        dtype = default_dtype().numpy
    return dtype


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """An operand's array (or number) in `dtype`. Numbers wrap around as PyTorch's do."""
    a = x._array if isinstance(x, Tensor) else x
    if isinstance(x, Tensor):
        return a if a.dtype == dtype else a.astype(dtype)
    if dtype.kind in "iu" and not -(1 << 63) <= int(a.real) < 1 << 63:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if dtype.kind in "iu":
        return np.array(int(a)).astype(dtype)[()]
    return dtype.type(a)


def meet(
    kind: type[Elementwise],
    compute: Callable[..., Any],
    inputs: Sequence[Any],
    floating: bool = False,
    dtype: np.dtype[Any] | None = None,
    numbers: str = "cast",
    **keywords: Any,
) -> Any:
    """An elementwise operation in full: promotion, errors in PyTorch's words, recording."""
    operands: list[Any] = []
    raw: list[Any] = []
    for x in inputs:
        if isinstance(x, Tensor) and (x._array.dtype is F32 or x._array.dtype is F64) and dtype is None:
            raw.append(x._array)
        x = as_operand(x)
        if x is NotImplemented:
            return NotImplemented
        operands.append(x)
    if len(raw) == len(operands) and all(a.dtype is raw[0].dtype for a in raw):
        dtype = raw[0].dtype
    else:
        dtype = dtype or operand_dtype(operands, floating)
        raw = [cast(x, dtype) for x in operands]
    token = arrays.hush()
    try:
        out = compute(*raw, **keywords)
    except ValueError:
        raise shape_mismatch([np.shape(a) for a in raw]) from None
    except TypeError:
        check_devices(raw)
        raise
    finally:
        arrays.unhush(token)
    return elementwise(kind, operands, raw, out, dtype, **keywords)


# --- the four operations, on the fast path ------------------------------------------------------------------


def _operator(
    kind: type[Elementwise],
    compute: Callable[[Any, Any], Any],
    slow: Callable[[Any, Any], Any],
    risky: bool = False,
) -> Callable[[Any, Any], Any]:
    """The method of a binary operator. `risky`: NumPy may warn about floating point, which a Tensor never
    does."""
    recipes = kind.recipes

    def method(self: Tensor, other: Any) -> Any:
        a = self._array
        dtype = a.dtype
        if dtype is not F32 and dtype is not F64:
            return slow(self, other)
        like: Any = None
        hy: Any = None
        if isinstance(other, Tensor):
            b = other._array
            if b.dtype is not dtype:
                return slow(self, other)
            hy = other._history
            if other._more is not None:
                hy = other._fresh_history()
            if a.shape != b.shape:
                like = ()
        elif type(other) is float or type(other) is int:
            b = dtype.type(other)
        else:
            return slow(self, other)
        try:
            if risky:
                token = arrays.hush()
                try:
                    out = compute(a, b)
                finally:
                    arrays.unhush(token)
            else:
                out = compute(a, b)
        except (ValueError, TypeError):
            return slow(self, other)
        result = _new(Tensor)
        result._array = out
        result._history = result._counter = result._grad = result._more = None
        hx = self._history
        if self._more is not None:
            hx = self._fresh_history()
        if (hx is None and hy is None) or (paused and not state.recording):
            return result if not inferring else wrap(out)
        if hx is not None:
            if hy is not None:
                mask, targets = 3, (self if hx is LEAF else hx, other if hy is LEAF else hy)
            else:
                mask, targets = 1, (self if hx is LEAF else hx, None)
        else:
            mask, targets = 2, (None, other if hy is LEAF else hy)
        made = recipes.get(mask)
        if made is None:
            made = kind.recipe_for(mask, 2)
        node: Any = _new(kind)
        node._targets = targets if not kind.single else targets[:1]
        node._number = next(numbers)
        node._extras = node.dtype = None
        node.recipe = made
        if like is not None:
            like = (stand_in(a), stand_in(b))
        node.like = like
        first, second = made.keeps
        node.versions = None
        if first:
            if self._counter is not None:
                node.versions = (self._counter[0], 0)
            if second:
                saved: Any = other if kind.single else b
                if hy is not None or isinstance(other, Tensor):
                    saved = other
                    if other._counter is not None:
                        node.versions = (node.versions[0] if node.versions else 0, other._counter[0])
                node.saved = (self, saved)
            else:
                node.saved = (self, None)
        elif second:
            if isinstance(other, Tensor):
                if other._counter is not None:
                    node.versions = (0, other._counter[0])
                node.saved = (None, other)
            else:
                node.saved = (None, other if kind.single else b)
        else:
            node.saved = (None, None)
        result._history = node
        if made.result:
            node.save_result(result)
        else:
            node.out = node.counter = None
        if watched:
            announce(node)
        return result

    return method


Add = elementwise_node("AddBackward0", np.add, 2)
Sub = elementwise_node("SubBackward0", np.subtract, 2)
Rsub = reversed_node("RsubBackward1", np.subtract)
Mul = elementwise_node("MulBackward0", np.multiply, 2)
Div = elementwise_node("DivBackward0", np.divide, 2, "input")
Reciprocal = elementwise_node("ReciprocalBackward0", np.reciprocal, 1)
Neg = elementwise_node("NegBackward0", np.negative, 1)


def _no_bool_minus(inputs: Sequence[Any]) -> None:
    if state.in_rules:
        return
    for x in inputs:
        if x is True or x is False or (isinstance(x, Tensor) and x._array.dtype.kind == "b"):
            if all(
                y is True or y is False or (isinstance(y, Tensor) and y._array.dtype.kind == "b")
                for y in inputs
            ):
                raise RuntimeError(
                    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                    "`logical_xor()` operator instead."
                )
            if any(isinstance(y, Tensor) for y in inputs):
                raise RuntimeError(
                    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
                    "to invert a "
                    "mask, use the `~` or `logical_not()` operator instead."
                )


def _minus_from(a: Any, b: Any) -> Any:
    return b - a


def _slow_add(x: Any, y: Any) -> Any:
    return meet(Add, np.add, (x, y))


def _slow_sub(x: Any, y: Any) -> Any:
    if as_operand(y) is NotImplemented:
        return NotImplemented
    _no_bool_minus((x, y))
    return meet(Sub, np.subtract, (x, y))


def _slow_mul(x: Any, y: Any) -> Any:
    return meet(Mul, np.multiply, (x, y))


def _slow_div(x: Any, y: Any) -> Any:
    return meet(Div, np.divide, (x, y), floating=True)


_add = _operator(Add, operator.add, _slow_add)
_sub = _operator(Sub, operator.sub, _slow_sub)
_mul = _operator(Mul, operator.mul, _slow_mul)
_reversed_sub = _operator(Rsub, _minus_from, lambda x, y: meet(Rsub, _minus_from, (x, y)))
_div = _operator(Div, operator.truediv, _slow_div, risky=True)


def _rsub(self: Tensor, other: Any) -> Any:
    """`other - self`, which PyTorch records as RsubBackward1 with `self` first."""
    if isinstance(other, Tensor):
        return _sub(other, self)
    if as_operand(other) is NotImplemented:
        return NotImplemented
    _no_bool_minus((other, self))
    return _reversed_sub(self, other)


def reciprocal_times(self: Tensor, other: Any) -> Any:
    """`number / self`: PyTorch multiplies the reciprocal."""
    if isinstance(other, Tensor):
        return _div(other, self)
    if as_operand(other) is NotImplemented:
        return NotImplemented
    if arrays.is_array(other) and other.ndim:
        return _slow_div(other, self)
    return _mul(meet(Reciprocal, np.reciprocal, (self,), floating=True), other)


def _neg(self: Tensor) -> Any:
    if self._array.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the "
            "`~` or `logical_not()` operator instead."
        )
    return elementwise(Neg, (self,), (self._array,), -self._array, None)


for _name, _method in {
    "__add__": _add, "__radd__": lambda self, other: _add(self, other),
    "__sub__": _sub, "__rsub__": _rsub,
    "__mul__": _mul, "__rmul__": lambda self, other: _mul(self, other),
    "__truediv__": _div, "__rtruediv__": reciprocal_times,
    "__neg__": _neg, "__pos__": lambda self: self,
}.items():  # fmt: skip
    setattr(Tensor, _name, _method)


def _with_alpha(kind: type[Elementwise], compute: Any, input: Any, other: Any, alpha: Any) -> Any:
    """`input +- alpha * other` as one node, which saves nothing."""
    if as_operand(input) is NotImplemented or as_operand(other) is NotImplemented:
        return NotImplemented
    if isinstance(alpha, Tensor):
        raise TypeError("add(): argument 'alpha' must be Number, not Tensor")
    dtype = operand_dtype((input, other))
    if dtype.kind == "b" or (dtype.kind in "iu" and isinstance(alpha, float)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    x, y = cast(input, dtype), cast(other, dtype)
    with arrays.quiet():
        try:
            out = compute(x, y * dtype.type(alpha))
        except ValueError:
            raise shape_mismatch([np.shape(x), np.shape(y)]) from None
    result = elementwise(kind, (input, other), (x, y), out, dtype)
    node = result._history
    if node is not None:
        p, q = node.recipe.constants
        node.recipe = dataclasses.replace(node.recipe, constants=(p, None if q is None else q * alpha))
    return result


@public("add")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """`input + alpha * other`."""
    got = _apply(_add, input, other) if alpha == 1 else _with_alpha(Add, np.add, input, other, alpha)
    return result_or_error(got, "add", input, other, out)


@public("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """`input - alpha * other`."""
    got = _apply(_sub, input, other) if alpha == 1 else _with_alpha(Sub, np.subtract, input, other, alpha)
    return result_or_error(got, "sub", input, other, out)


@public("mul", "multiply")
def mul(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """`input * other`."""
    return result_or_error(_apply(_mul, input, other), "mul", input, other, out)


def _apply(method: Callable[[Any, Any], Any], input: Any, other: Any) -> Any:
    if not isinstance(input, Tensor):
        input = wrap(np.asarray(input, dtype=operand_dtype((input,)))[()])
    return method(input, other)


def result_or_error(result: Any, name: str, input: Any, other: Any, out: Any = None) -> Any:
    if result is NotImplemented:
        raise must_be_tensor(name, "other", 1, other)
    return result if out is None else write_out(out, result, input, other)


def write_out(out: Tensor, result: Tensor, *inputs: Any) -> Tensor:
    """Store `result` in `out`, as the argument `out=` asks."""
    from srcgrad.runtime.tensor_inplace import store

    if state.recording and any(isinstance(t, Tensor) and t.requires_grad for t in (out, *inputs)):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires "
            "grad."
        )
    if out._array.shape != result._array.shape:
        out._array = np.empty_like(result._array, dtype=out._array.dtype)
    if not can_cast(result._array.dtype, out._array.dtype):
        raise RuntimeError(
            f"result type {type_name(result._array.dtype)} can't be cast to the desired output type "
            f"{type_name(out._array.dtype)}"
        )
    store(out, result._array)
    return out


def with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with the keyword `out=`, where the result is also written."""

    @functools.wraps(function)
    def called(*args: Any, out: Any = None, **keywords: Any) -> Any:
        if out is None:
            try:
                return function(*args, **keywords)
            except AttributeError as error:
                raise without_array(function.__name__, error) from None
        flat = [e for x in (*args, *keywords.values()) for e in (x if type(x) in (list, tuple) else (x,))]
        if type(out) in (list, tuple):
            results = function(*args, **keywords)
            return type(results)(*[write_out(o, r, *flat) for o, r in zip(out, results, strict=True)])
        return write_out(out, function(*args, **keywords), *flat)

    return called


def type_name(dtype: np.dtype[Any]) -> str:
    return SCALAR_NAMES.get(dtype.name, dtype.name)
