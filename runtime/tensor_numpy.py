"""NumPy's protocols: NumPy's functions, SciPy's special functions, and the rules themselves work on Tensors.

A function is looked up in the rule table and recorded as one node; a function of the table without
derivative is computed; one that the table doesn't know is refused if a tracked Tensor is among its arguments.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.autograd.nodes import Elementwise, _positions, elementwise_node, rule_node
from srcgrad.runtime.autograd.record import BY_SHAPE, call, elementwise, raw_of, tracked
from srcgrad.runtime.errors import NoRule
from srcgrad.runtime.rules.table import Rule, find
from srcgrad.runtime.tensor import FUNCTIONS, _add, _div, _mul, _neg, _sub, cast, operand_dtype, write_out
from srcgrad.runtime.tensor_base import Tensor, install, wrap
from srcgrad.runtime.tensor_linalg import matmul_
from srcgrad.runtime.tensor_math import UNARY, _pow
from srcgrad.runtime.tensor_views import attach


def node_name(name: str) -> str:
    return "".join(part.title() for part in name.strip("_").split("_")) + "Backward0"


def _as_tensor(x: Any) -> Any:
    return wrap(x) if arrays.is_array(x) else x


def _flipping(f: Any) -> Any:
    def apply(x: Any, y: Any) -> Any:
        if not isinstance(x, Tensor):
            x = wrap(x) if arrays.is_array(x) else wrap(np.asarray(x, dtype=operand_dtype((x,)))[()])
        return f(x, _as_tensor(y))

    return apply


_FAST = {
    np.add: _flipping(_add), np.subtract: _flipping(_sub), np.multiply: _flipping(_mul),
    np.divide: _flipping(_div),
    np.power: _flipping(_pow), np.matmul: _flipping(matmul_), np.negative: _neg,
}  # fmt: skip
_BY_FUNCTION: dict[Any, Any] = {function: FUNCTIONS[name] for name, (_, function, _f) in UNARY.items()}


@functools.cache
def _makes_floats(ufunc: Any) -> bool:
    """Whether a ufunc turns integers into floating point numbers."""
    types = getattr(ufunc, "types", [])
    return bool(types) and not any(set(t.replace("->", "")) <= set("bBhHiIlLqQ?") for t in types)


@functools.cache
def _kind_of(ufunc: Any, count: int, name: str) -> type[Elementwise]:
    return elementwise_node(node_name(name), ufunc, count)


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    out = keywords.pop("out", None)
    if method == "reduce" and ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        function = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}[ufunc]
        keywords.setdefault("axis", 0)
        return array_function(self, function, (), inputs, keywords)
    if method != "__call__":
        bound = getattr(ufunc, method)
        if method != "at" and find(bound) is not None:
            return array_function(self, bound, (), inputs, keywords)
        if tracked(inputs):
            raise NoRule(f"np.{ufunc.__name__}.{method} has no derivative rule")
        got = getattr(ufunc, method)(*[raw_of(x) for x in inputs], **keywords)
        return wrap(got) if got is not None else None
    mask = keywords.pop("where", True)
    if mask is not True and out is None:
        raise NoRule(f"np.{ufunc.__name__}(where=...) leaves values open: give out=, or use np.where")
    dtype = keywords.pop("dtype", None)
    if dtype is not None:
        inputs = tuple(x.astype(dtype) if isinstance(x, Tensor) else x for x in inputs)
    for name in keywords:
        if name in ("casting", "order", "subok", "signature", "axes", "axis"):
            raise NoRule(f"np.{ufunc.__name__}({name}=...) is not supported on Tensors")
    result = _compute(ufunc, inputs, keywords)
    if mask is not True:
        result = FUNCTIONS["where"](_as_tensor(mask), result, _as_tensor(out[0]).detach().clone())
    if out is not None:
        target = out[0]
        if isinstance(target, Tensor):
            return write_out(target, result, *inputs)
        target[...] = result.numpy()
        return target
    return result


_REFLECTED = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.divide: "__rtruediv__",
    np.power: "__rpow__", np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__",
}  # fmt: skip


def _compute(ufunc: Any, inputs: Any, keywords: dict[str, Any]) -> Any:
    if len(inputs) == 2 and isinstance(inputs[0], np.generic | int | float) and ufunc in _REFLECTED:
        first = inputs[0].item() if isinstance(inputs[0], np.generic) else inputs[0]
        return getattr(inputs[1], _REFLECTED[ufunc])(first)
    if not keywords:
        fast = _FAST.get(ufunc)
        if fast is not None:
            return fast(*inputs)
        fast = _BY_FUNCTION.get(ufunc)
        if fast is not None:
            return fast(*inputs)
    rule = find(ufunc)
    if rule is None or not rule.elementwise:
        if rule is not None and rule.differentiable:
            return array_function(None, ufunc, (), inputs, keywords)
        if rule is None and tracked(inputs):
            raise NoRule(f"{getattr(ufunc, '__name__', ufunc)} has no derivative rule")
        got = ufunc(*[raw_of(x) for x in inputs], **{k: raw_of(v) for k, v in keywords.items()})
        return tuple(map(wrap, got)) if isinstance(got, tuple) else wrap(got)
    return _elementwise(ufunc, rule, inputs, keywords)


def _elementwise(function: Any, rule: Rule, inputs: Any, keywords: dict[str, Any]) -> Any:
    operands = [_as_tensor(x) for x in inputs]
    dtype = operand_dtype([x for x in operands], _makes_floats(function))
    raw = [cast(x, dtype) for x in operands]
    with arrays.quiet():
        try:
            out = function(*raw, **keywords)
        except TypeError:  # an order that must stay an integer
            raw = [x if type(x) is int else r for x, r in zip(operands, raw, strict=True)]
            out = function(*raw, **keywords)
    kind = _kind_of(function, len(operands), rule.name)
    return elementwise(kind, operands, raw, out, dtype, **keywords)


def _shape(x: Any) -> Any:
    return tuple(x._array.shape) if isinstance(x, Tensor) else np.shape(x)


def _block(arrays: Any) -> Any:
    """`np.block`, as concatenations: the innermost lists along the last axis, and so on outwards."""

    def nesting(x: Any) -> int:
        return 1 + max(map(nesting, x)) if isinstance(x, list) else 0

    def members(x: Any) -> list[Any]:
        return [e for part in x for e in members(part)] if isinstance(x, list) else [x]

    depth = nesting(arrays)
    rank = max(depth, *(np.ndim(e) for e in members(arrays)))

    def joined(x: Any, level: int) -> Any:
        if isinstance(x, list):
            return FUNCTIONS["cat"]([joined(e, level + 1) for e in x], level - depth)
        x = x if isinstance(x, Tensor) else wrap(np.asarray(x))
        return x.reshape((1,) * (rank - x.ndim) + tuple(x.shape))

    return joined(arrays, 0)


_SPECIAL: dict[Any, Any] = {
    np.block: _block,
    np.shape: _shape,
    np.ndim: lambda x: x._array.ndim,
    np.size: lambda x, axis=None: x._array.size if axis is None else x._array.shape[axis],
    np.iscomplexobj: lambda x: x._array.dtype.kind == "c",
    np.isrealobj: lambda x: x._array.dtype.kind != "c",
    np.result_type: lambda *xs: np.result_type(*[x._array.dtype if isinstance(x, Tensor) else x for x in xs]),
    np.reshape: lambda a, shape, order="C", copy=None: a.reshape(shape, order=order),
    np.ravel: lambda a, order="C": a.reshape(-1, order=order),
    np.transpose: lambda a, axes=None: a.permute(axes) if axes is not None else a.T,
    np.swapaxes: lambda a, axis1, axis2: a.transpose(axis1, axis2),
    np.copy: lambda a, order="K": a.clone(),
    np.broadcast_to: lambda array, shape: array.expand(shape),
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.astype: lambda x, dtype, copy=True: x.astype(dtype),
    np.moveaxis: lambda a, source, destination: a.movedim(source, destination),
    np.array_equal: lambda a, b: np.array_equal(raw_of(a), raw_of(b)),
    np.allclose: lambda a, b, **k: np.allclose(raw_of(a), raw_of(b), **k),
}


_ANY_FIRST = (np.result_type, np.block)
"""Special functions whose first argument need not be a Tensor."""


def array_function(self: Any, function: Any, types: Any, args: Any, keywords: dict[str, Any]) -> Any:
    special = _SPECIAL.get(function)
    if special is not None and (not args or isinstance(args[0], Tensor) or function in _ANY_FIRST):
        return special(*args, **keywords)
    rule = find(function)
    if rule is None:
        inner = getattr(function, "__wrapped__", None)
        if getattr(function, "__module__", "") == support.__name__:
            return inner(*args, **keywords) if inner is not None else _on_tensors(function, args, keywords)
        if tracked(args) or tracked(list(keywords.values())):
            raise NoRule(
                f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', function)} has no "
                "derivative rule: "
                "detach the Tensor, or file a rule with srcgrad.runtime.rules.table"
            )
        return wrapped(function(*_raw(args), **_raw_values(keywords)))
    if not rule.differentiable:
        return wrapped(function(*_raw(args), **_raw_values(keywords)))
    if rule.elementwise:
        return _elementwise(function, rule, args, keywords)
    positional, named = _bound(rule, args, keywords)
    _refuse_others(rule, positional, named)
    positional = [
        _as_tensor(a) if isinstance(a, np.ndarray) and i == 0 else a for i, a in enumerate(positional)
    ]
    with arrays.quiet():
        out = function(*_raw(args), **_raw_values(keywords))
    result = call(rule_node(node_name(rule.name), function), positional, named, out=out)
    for i, part in enumerate(result if isinstance(result, tuple | list) else [result]):
        for place, source in enumerate(positional):
            if isinstance(source, Tensor) and isinstance(part, Tensor) and part is not source:
                if arrays.same_memory(part._array, source._array):
                    rest = (positional[:place], positional[place + 1 :], named)
                    index = i if isinstance(result, tuple | list) else None
                    attach(part, source, _again, (function, *rest, index), f"numpy:{function.__name__}")
    return result


def _again(source: Tensor, function: Any, before: Any, after: Any, named: Any, index: int | None) -> Any:
    """The view that a NumPy function made of `source`, made again after the memory has changed."""
    result = function(*before, source, *after, **named)
    return result if index is None else result[index]


def _refuse_others(rule: Rule, positional: list[Any], named: dict[str, Any]) -> None:
    """A tracked Tensor in a place for which the rule has no derivative is refused, never taken as
    constant."""
    function = rule.functions[0]
    if getattr(function, "__module__", "") == support.__name__:
        return  # rules call these with Tensors of which they read the shape
    given = list(named.items())
    star = _positions(rule)[1]
    for i, value in enumerate(positional):
        name = rule.parameters[i if star is None else min(i, star)].name
        if name not in rule.wrt and name != BY_SHAPE.get(function):
            given.append((name, value))
    for name, value in given:
        if tracked((value,)):
            raise NoRule(
                f"{rule.name} has no derivative with respect to `{name}`: detach the Tensor if it is constant"
            )


def _on_tensors(function: Any, args: Any, keywords: dict[str, Any]) -> Any:
    observers = set(support.observers)
    support.observers.clear()
    try:
        return function(*args, **keywords)
    finally:
        support.observers.update(observers)


def _raw(args: Any) -> Any:
    return tuple(raw_of(a) for a in args)


def _raw_values(keywords: dict[str, Any]) -> dict[str, Any]:
    return {k: raw_of(v) for k, v in keywords.items()}


def wrapped(value: Any) -> Any:
    """Tensors in place of arrays."""
    if isinstance(value, np.ndarray) or (arrays.is_array(value) and not isinstance(value, np.generic)):
        return wrap(value)
    if isinstance(value, np.generic):
        return wrap(value)
    if isinstance(value, list):
        return [wrapped(v) for v in value]
    if type(value) is tuple:
        return tuple(wrapped(v) for v in value)
    return value


def _bound(rule: Rule, args: Any, keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments in the order of the rule's parameters, and the keyword-only ones."""
    positional = list(args)
    named = dict(keywords)
    for parameter in rule.parameters[len(positional) :]:
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD or parameter.kind is parameter.POSITIONAL_ONLY:
            if not named:
                break
            if parameter.name in named:
                positional.append(named.pop(parameter.name))
            elif any(p.name in named for p in rule.parameters if p.kind is p.POSITIONAL_OR_KEYWORD):
                positional.append(parameter.default)
            else:
                break
    return positional, named


install(__array_ufunc__=array_ufunc)
install(__array_function__=array_function)
