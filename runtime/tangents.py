"""Tangents of containers: what emitted forward-mode code calls where a value is not known to be a number or
an array.

The tangent of a list is a list, of a tuple a tuple, of a dict a dict, of an object a dict of its attributes;
what the primal does to a container, forward mode does to its tangent. The tangent of what carries no
derivative (a string, a function) is 0.0.
"""

from __future__ import annotations

import copy as _copy
import functools
from collections import defaultdict
from typing import Any

import numpy as np

from srcgrad.runtime import trees
from srcgrad.runtime.errors import AliasError, ArgumentError, UnsupportedSyntax

LINEAR_ATTRIBUTES = ("T", "mT", "real", "imag", "flat")


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or (hasattr(x, "__array_function__") and not isinstance(x, np.generic))


def zeros_like(x: Any) -> Any:
    """The zero tangent of `x`, fresh.

    >>> zeros_like((1.0, [2.0, {"a": 3.0}], "text"))
    (0.0, [0.0, {'a': 0.0}], 0.0)
    """
    if is_array(x):
        kind = getattr(getattr(x, "dtype", None), "kind", "f")
        return (
            np.zeros_like(x) if kind in "fc" else np.zeros_like(x, dtype=np.float64) if kind in "biu" else 0.0
        )
    if isinstance(x, tuple):
        parts = [zeros_like(v) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, list):
        return [zeros_like(v) for v in x]
    if isinstance(x, defaultdict) and x.default_factory is not None:
        factory = x.default_factory
        return defaultdict(lambda: zeros_like(factory()), {k: zeros_like(v) for k, v in x.items()})
    if isinstance(x, dict):
        return {k: zeros_like(v) for k, v in x.items()}
    if not isinstance(x, trees.Unknown) and trees.is_object(x):
        return {k: zeros_like(v) for k, v in trees.attributes(x).items()}
    return 0.0


def buffer(x: Any) -> Any:
    """The zero tangent of an array into which differentiated values are written."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "biu":
        raise UnsupportedSyntax(
            f"an array of {x.dtype} receives differentiated values, which it rounds: make it an array of "
            "floating point numbers."
        )
    return zeros_like(x)


def get_attribute(t: Any, x: Any, name: str) -> Any:
    """The tangent of `x.name`, where `t` is that of `x`."""
    if trees.is_zero(t):
        return zeros_like(getattr(x, name))
    if isinstance(t, dict):
        if name in t:
            return t[name]
        found = getattr(type(x), name, None)
        if isinstance(found, functools.cached_property):
            raise UnsupportedSyntax(f"the attribute `{name}` of a {type(x).__name__} has no derivative rule")
        if getattr(getattr(x, name), "__self__", None) is x:
            return t  # a bound method
        if isinstance(found, property):
            from srcgrad.runtime import dispatch

            return dispatch.jvp(found.fget, (x,), {}, None, (t,), {})[1]
        return zeros_like(getattr(x, name))
    if isinstance(t, tuple) and hasattr(x, "_fields"):
        return t[x._fields.index(name)]
    if is_array(x) or isinstance(x, np.generic):
        if name in LINEAR_ATTRIBUTES:
            return getattr(np.asarray(t), name)
    elif isinstance(x, (int, float, complex)) and name in ("real", "imag"):
        return getattr(t, name)
    raise UnsupportedSyntax(f"the attribute `{name}` of a {type(x).__name__} has no derivative rule")


def listed(t: Any, x: Any) -> list[Any]:
    """The tangent of `list(x)`, where `t` is that of `x`."""
    if isinstance(x, (str, dict)) or trees.is_zero(t):
        return [zeros_like(v) for v in list(x)]
    return list(t)


def check_sharing(x: Any, y: Any, x_dot: Any, y_dot: Any, name: str, other: str, place: str) -> None:
    """Raise unless the tangents of `x` and `y` share memory where `x` and `y` do."""
    mutable = not isinstance(x, (tuple, *trees.NUMBERS)) and (
        isinstance(x, (list, dict)) or trees.is_object(x)
    )
    wrong = mutable and x is y and x_dot is not y_dot
    for a, a_dot in zip(leaves(x), leaves_of(x_dot, x), strict=True):
        for b, b_dot in zip(leaves(y), leaves_of(y_dot, y), strict=True):
            if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b):
                wrong = wrong or not np.may_share_memory(a_dot, b_dot)
    if wrong:
        raise AliasError(
            f"{place}: `{name}` is written in place here while `{other}` shares its memory, but "
            f"not that of its tangent. Make `{name}` a copy first: `{name} = {name}.copy()`."
        )


def nothing(xs: Any) -> list[None]:
    """One "has no tangent" for each element of `xs`.

    >>> nothing((1, 2))
    [None, None]
    """
    return [None] * len(xs)


def filled(dots: Any, values: Any) -> tuple[Any, ...]:
    """The tangents `dots` of `values`, zeros in the place of None."""
    return tuple([zeros_like(v) if d is None else d for d, v in zip(dots, values, strict=True)])


def filled_dot(dots_dot: Any, dots: Any, values: Any) -> tuple[Any, ...]:
    """The tangent of `filled(dots, values)`."""
    return tuple([zeros_like(v) if d is None else t for t, d, v in zip(dots_dot, dots, values, strict=True)])


# At the front door


def given(t: Any, x: Any, name: str) -> Any:
    """The tangent `t` of the argument `x` called `name`, as the caller gave it, in the form that emitted code
    works on."""
    if is_array(x):
        kind = x.dtype.kind
        if kind not in "fc":
            if t is None or not np.any(t):
                return zeros_like(x)
            raise ArgumentError(
                f"the argument `{name}` is an array of {x.dtype}: it has no tangent. Pass None or zeros."
            )
        if t is None:
            return np.zeros_like(x)
        if np.shape(t) != x.shape:
            raise ArgumentError(
                f"the tangent of `{name}` has shape {np.shape(t)}, but the argument has shape {x.shape}"
            )
        _check_real(t, x.dtype, name)
        made = np.empty_like(x)
        made[...] = t
        return made
    if x is None or isinstance(x, (str, bytes)) or callable(x):
        return 0.0
    if isinstance(x, (int, float, complex, np.number)):
        if t is None:
            return 0.0
        if np.shape(t) != ():
            raise ArgumentError(
                f"the tangent of `{name}` has shape {np.shape(t)}, but the argument is a number"
            )
        _check_real(t, np.result_type(x), name)
        if isinstance(x, np.inexact) and not isinstance(x, float):
            return type(x)(t)
        if isinstance(t, np.ndarray):
            t = t[()]
        return complex(t) if isinstance(t, complex) else float(t)
    if isinstance(x, dict):
        _check_kind(t, dict, x, name)
        return {k: given(None if t is None else t.get(k), v, f"{name}[{k!r}]") for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        _check_kind(t, (list, tuple), x, name)
        if t is not None and len(t) != len(x):
            raise ArgumentError(
                f"the tangent of `{name}` has {len(t)} elements, but the argument has {len(x)}"
            )
        parts = [given(None if t is None else t[i], v, f"{name}[{i}]") for i, v in enumerate(x)]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if trees.is_object(x):
        fields = {} if t is None else t if isinstance(t, dict) else trees.attributes(t)
        return {k: given(fields.get(k), v, f"{name}.{k}") for k, v in trees.attributes(x).items()}
    return 0.0


def _check_real(t: Any, dtype: Any, name: str) -> None:
    if np.iscomplexobj(t) and dtype.kind != "c":
        raise ArgumentError(f"the tangent or cotangent of `{name}` is complex, but the value is real")


def _check_kind(t: Any, kinds: Any, x: Any, name: str, what: str = "argument") -> None:
    if t is not None and not isinstance(t, kinds):
        shown = f"the tangent of `{name}`" if what == "argument" else name
        raise ArgumentError(f"{shown} is a {type(t).__name__}, but the {what} is a {type(x).__name__}")


def like(t: Any, y: Any) -> Any:
    """The tangent `t` of the result `y` as the caller receives it: in the structure, shape and dtype of `y`.

    >>> like([1.0, 0.0], [3.0, np.float32(1.0)])
    [1.0, np.float32(0.0)]
    """
    if is_array(y):
        kind = getattr(getattr(y, "dtype", None), "kind", "f")
        dtype = y.dtype if kind in "fc" else np.float64 if kind in "biu" else None
        if dtype is None:
            return 0.0
        array = np.empty_like(y, dtype=dtype)
        array[...] = t if kind == "c" else np.real(t)
        return array
    if y is None or isinstance(y, (str, bytes, bool, np.bool_)):
        return 0.0
    if isinstance(y, (int, float, complex, np.number)):
        if isinstance(t, np.ndarray):
            t = t[()]
        real = not isinstance(y, (complex, np.complexfloating))
        t = np.real(t) if real and np.iscomplexobj(t) else t
        if isinstance(y, np.inexact):
            return type(y)(t)
        return complex(t) if not real else float(t)
    if isinstance(y, dict):
        made = {k: like(t[k] if isinstance(t, dict) else 0.0, v) for k, v in y.items()}
        return made
    if isinstance(y, (list, tuple)):
        parts = [like(0.0 if trees.is_zero(t) else t[i], v) for i, v in enumerate(y)]
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    if trees.is_object(y):
        fields = t if isinstance(t, dict) else {} if trees.is_zero(t) else trees.attributes(t)
        made = _copy.copy(y)
        for k, v in trees.attributes(y).items():
            object.__setattr__(made, k, like(fields.get(k, 0.0), v))
        return made
    return 0.0


def cotangent(g: Any, y: Any, name: str = "the cotangent", of: str = "result") -> Any:
    """The cotangent `g` of the result `y`, as the caller gave it, in the form that emitted code works on: a
    copy, with lists for tuples and dicts for objects."""
    if isinstance(y, (list, tuple)):
        _check_kind(g, (list, tuple), y, name, of)
        if g is not None and len(g) != len(y):
            raise ArgumentError(f"{name} has {len(g)} elements, but the {of} has {len(y)}")
        return [cotangent(None if g is None else g[i], v, f"{name}[{i}]", of) for i, v in enumerate(y)]
    if isinstance(y, dict):
        _check_kind(g, dict, y, name, of)
        return {k: cotangent(None if g is None else g.get(k), v, f"{name}[{k!r}]", of) for k, v in y.items()}
    if is_array(y) or isinstance(y, trees.NUMBERS):
        if g is None:
            return zeros_like(y)
        if np.shape(g) != np.shape(y):
            raise ArgumentError(f"{name} has shape {np.shape(g)}, but the {of} has shape {np.shape(y)}")
        if is_array(y) and y.dtype.kind in "fc":
            _check_real(g, y.dtype, name)
            made = np.empty_like(y)
            made[...] = g
            return made
        if isinstance(y, np.inexact) and not isinstance(y, (float, complex)):
            return type(y)(g)
        g = g[()] if isinstance(g, np.ndarray) else g
        return g if isinstance(g, complex) else float(g)
    if trees.is_object(y):
        fields = {} if g is None else g if isinstance(g, dict) else trees.attributes(g)
        return {k: cotangent(fields.get(k), v, f"{name}.{k}", of) for k, v in trees.attributes(y).items()}
    return 0.0


# The numbers in a structure


def is_leaf(x: Any) -> bool:
    """Is `x` a number or an array of numbers?"""
    if is_array(x):
        return getattr(x.dtype, "kind", "f") in "fciu"
    return isinstance(x, trees.NUMBERS) and not isinstance(x, (bool, np.bool_))


def leaves(x: Any) -> list[Any]:
    """The numbers and arrays of numbers in a structure, in order.

    >>> leaves({"a": 1.0, "b": (2.0, "text")})
    [1.0, 2.0]
    """
    return leaves_of(x, x)


def as_input(value: Any) -> Any:
    """A test input as rules write it: lists are arrays of doubles, tuples stay sequences."""
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    return tuple(as_input(v) for v in value) if type(value) is tuple else value


def leaves_of(t: Any, x: Any) -> list[Any]:
    """What stands in `t`, a tangent or cotangent of `x`, in the places of the leaves of `x`."""
    if is_leaf(x):
        return [t]
    if isinstance(x, (list, tuple)):
        return [v for i, part in enumerate(x) for v in leaves_of(0.0 if trees.is_zero(t) else t[i], part)]
    if isinstance(x, dict):
        return [v for k, part in x.items() for v in leaves_of(0.0 if trees.is_zero(t) else t[k], part)]
    if not is_array(x) and trees.is_object(x):
        parts = {} if trees.is_zero(t) else t if isinstance(t, dict) else trees.attributes(t)
        return [v for k, part in trees.attributes(x).items() for v in leaves_of(parts.get(k, 0.0), part)]
    return []


def rebuilt(x: Any, values: list[Any]) -> Any:
    """The structure `x` with its leaves replaced, in order, by `values`.

    >>> rebuilt({"a": 1.0, "b": (2.0, "text")}, [3.0, 4.0])
    {'a': 3.0, 'b': (4.0, 'text')}
    """
    return _regrown(x, iter(values), "value")


def regrown(x: Any, values: Any) -> Any:
    """The tangent of `x` with `values` in the places of its leaves."""
    return _regrown(x, iter(values), "tangent")


def regrown_bar(x: Any, values: Any) -> Any:
    """The cotangent of `x` with `values` in the places of its leaves."""
    return 0.0 if trees.is_zero(values) else _regrown(x, iter(values), "cotangent")


def _regrown(x: Any, values: Any, form: str) -> Any:
    if is_leaf(x):
        return next(values)
    if isinstance(x, dict):
        return {k: _regrown(v, values, form) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        parts = [_regrown(v, values, form) for v in x]
        if form == "cotangent":
            return parts
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if not is_array(x) and trees.is_object(x):
        fields = {k: _regrown(v, values, form) for k, v in trees.attributes(x).items()}
        if form != "value":
            return fields
        made = _copy.copy(x)
        for k, v in fields.items():
            object.__setattr__(made, k, v)
        return made
    return x if form == "value" else 0.0
