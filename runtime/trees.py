"""Cotangents of containers: what emitted code calls where a value is not known to be a number or an array.

The cotangent of a list or a tuple is a list, of a dict a dict, of an object a dict of its attributes; the
float 0.0 stands for a zero of any structure. Functions that change something say so and change nothing else.
"""

from __future__ import annotations

import copy as _copy
import dataclasses
import functools
import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import operators
from srcgrad.runtime.errors import AliasError, ArgumentError, NoRule, ResultError, UnsupportedSyntax
from srcgrad.runtime.support import unbroadcast

NUMBERS = (float, int, np.number, complex)
_COMPUTED = (property, functools.cached_property)


def is_zero(g: Any) -> bool:
    """Is `g` the zero that stands for any structure?"""
    return type(g) is float and g == 0.0


def is_object(x: Any) -> bool:
    """Does `x` carry numbers in attributes?"""
    return (
        (hasattr(x, "__dict__") or bool(operators.slots(type(x))))
        and not isinstance(x, (type, types.FunctionType, types.MethodType, types.ModuleType))
        and (not hasattr(x, "__array__") or isinstance(x, np.poly1d))
        and not any(hasattr(type(x), mark) for mark in ("__srcgrad_call__", "__srcgrad_custom__"))
    )


def attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object that may carry numbers, by name."""
    if dataclasses.is_dataclass(x):
        return {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if hasattr(x, f.name)}
    return held_in(x)


def held_in(x: Any) -> dict[str, Any]:
    """What an object holds under its attributes' names."""
    in_slots = {n: getattr(x, n) for n in operators.slots(type(x)) if hasattr(x, n)}
    return {**getattr(x, "__dict__", {}), **in_slots}


def zeros_like(x: Any) -> Any:
    """The zero cotangent of `x`, fresh: whoever asked may change it.

    >>> zeros_like((1.0, [2.0, {"a": 3.0}], "text"))
    [0.0, [0.0, {'a': 0.0}], 0.0]
    """
    if isinstance(x, np.ndarray) or hasattr(x, "__array_function__"):
        if getattr(x, "dtype", None) is not None and x.dtype.kind not in "fc":
            return np.zeros_like(x, dtype=np.float64) if x.dtype.kind in "biu" else 0.0
        return np.zeros_like(x)
    if isinstance(x, (list, tuple)):
        return [zeros_like(v) for v in x]
    if isinstance(x, dict):
        return {k: zeros_like(v) for k, v in x.items()}
    if is_object(x):
        return {k: zeros_like(v) for k, v in attributes(x).items()}
    return 0.0


def copy(g: Any) -> Any:
    """A copy of a value or cotangent that shares no array, list or dict with it."""
    if isinstance(g, np.ndarray):
        return g.copy()
    if isinstance(g, (list, tuple)):
        return [copy(v) for v in g]
    if isinstance(g, dict):
        return {k: copy(v) for k, v in g.items()}
    if hasattr(g, "__array_function__"):
        return g.copy()
    return g


def zero_list(xs: Any) -> list[Any]:
    """The zero cotangent of a list, or of None, which stands for a list that was never made."""
    return [] if xs is None else [zeros_like(x) for x in xs]


def buffer_list(g: Any, xs: Any) -> Any:
    """The cotangent `g` of the list `xs`, as a list that may be changed in place."""
    return zeros_like(xs) if is_zero(g) else copy(match(g, xs))


def snapshot(x: Any) -> Any:
    """A primal value as it is now, safe from later writes in place; numbers and strings are returned as they
    are."""
    if isinstance(x, np.ndarray) or (hasattr(x, "__array_function__") and not isinstance(x, np.generic)):
        return x.copy()
    if type(x) in (list, tuple):
        return type(x)([snapshot(v) for v in x])
    if type(x) is dict:
        return {k: snapshot(v) for k, v in x.items()}
    return x


def add(a: Any, b: Any) -> Any:
    """The sum of two cotangents; neither is changed.

    >>> add([1.0, 0.0], [2.0, {"a": 1.0}])
    [3.0, {'a': 1.0}]
    """
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b) and all(map(is_zero, a if len(a) < len(b) else b)):
            return a if len(a) > len(b) else b  # zeros for a value of other structure, which was never made
        return [add(x, y) for x, y in zip(a, b, strict=True)]
    if isinstance(a, dict) and isinstance(b, dict):
        return {k: add(a.get(k, 0.0), b.get(k, 0.0)) for k in {**a, **b}}
    return a + b


def add_item(g: Any, index: Any, part: Any) -> None:
    """Add `part` to `g[index]`, in place."""
    if isinstance(g, np.ndarray):
        if isinstance(part, list):
            part = np.array([np.zeros(()) if is_zero(p) else p for p in part])
        if basic(index):
            g[index] += part
        else:
            np.add.at(g, index, part)
    elif isinstance(g, list) and isinstance(index, slice):
        if not is_zero(part):
            for i, p in zip(range(*index.indices(len(g))), part, strict=True):
                g[i] = add(g[i], p)
    elif isinstance(g, dict):
        g[index] = add(g.get(index, 0.0), part)
    else:
        g[index] = add(g[index], part)


def added(g: Any, index: Any, part: Any) -> Any:
    """What `add_item(g, index, part)` leaves in `g[index]`."""
    if isinstance(g, np.ndarray) and not basic(index):
        whole = g.copy()
        np.add.at(whole, index, part)
        return whole[index]
    if isinstance(g, dict):
        return add(g.get(index, 0.0), part)
    return add(g[index], part)


def basic(index: Any) -> bool:
    """Is an index made of integers, slices, None and ... only?"""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        (isinstance(i, (int, np.integer)) and not isinstance(i, bool))
        or isinstance(i, slice)
        or i is None
        or i is ...
        for i in parts
    )


def overwritten(g: Any, index: Any) -> Any:
    """The cotangent of `v` for `x[index] = v`, a copy: where an index occurs several times, the last write
    counts."""
    if isinstance(g, dict):
        return copy(g.get(index, 0.0))
    if isinstance(g, list) or basic(index):
        return copy(g[index])
    part = np.array(g[index])
    if isinstance(index, np.ndarray) and index.dtype == bool:
        return part
    order = np.full(g.shape, -1)
    numbers = np.arange(part.size).reshape(part.shape)
    order[index] = numbers
    part[order[index] != numbers] = 0
    return part


def clear_item(g: Any, index: Any) -> None:
    """Set `g[index]` to zero, in place."""
    if isinstance(g, list) and isinstance(index, slice):
        g[index] = [0.0 for _ in g[index]]
    else:
        g[index] = 0.0


def _array_rule(name: str) -> Any:
    from srcgrad.runtime.rules import table  # the rules import this module

    rule = table.find(getattr(np.ndarray, name, None))
    return rule if rule is not None and rule.reverse is not None else None


def add_attribute(g: Any, x: Any, name: str, part: Any) -> None:
    """Add `part` to the cotangent of `x.name`, in place."""
    if is_zero(part):
        return
    if getattr(getattr(x, name, None), "__self__", None) is x:  # a method: its cotangent is its object's
        if isinstance(g, dict):
            for k, v in part.items():
                g[k] = add(g.get(k, 0.0), v)
        else:
            for i, v in enumerate(part):
                g[i] = add(g[i], v)
        return
    if isinstance(g, list):
        add_item(g, x._fields.index(name), part)
    elif isinstance(g, np.ndarray) and isinstance(x, np.ndarray) and _array_rule(name) is not None:
        g += _array_rule(name).reverse(match(part, getattr(x, name)), getattr(x, name), x)
    elif isinstance(g, dict) and not isinstance(getattr(type(x), name, None), _COMPUTED):
        g[name] = add(g.get(name, 0.0), part)
    elif not isinstance(x, type) and not (
        name in operators.OF_ARRAYS and hasattr(x, "dtype")
    ):  # what a class holds is a constant
        raise UnsupportedSyntax(f"the attribute `{name}` of a {type(x).__name__} has no derivative rule")


def attribute_key(g: Any, x: Any, name: str) -> Any:
    """Under which key the cotangent of `x.name` stands in `g`, the cotangent of `x`."""
    return x._fields.index(name) if isinstance(g, list) else name


def get_attribute(g: Any, x: Any, name: str) -> Any:
    """The cotangent of `x.name` out of the cotangent of `x`."""
    if is_zero(g):
        return 0.0
    return g[x._fields.index(name)] if isinstance(g, list) else g.get(name, 0.0)


def held(x: Any, name: str) -> Any:
    """What the object `x` holds under `name`, whatever its class says about it."""
    return vars(x)[name]


def match(g: Any, x: Any) -> Any:
    """The cotangent `g` in the structure of `x`: a list as an array where `x` is one, a scalar zero spread
    out."""
    if is_zero(g) and not isinstance(x, (*NUMBERS, np.ndarray)):
        return zeros_like(x)
    if isinstance(x, np.ndarray):
        if isinstance(g, list):
            if not g:
                return np.zeros(x.shape)
            return np.stack([np.broadcast_to(p, x.shape[1:]) for p in g])
        return np.broadcast_to(g, x.shape) if np.shape(g) != x.shape else g
    if isinstance(x, (list, tuple)) and isinstance(g, np.ndarray):
        return list(g)
    return g


def unlisted(g: Any, x: Any) -> Any:
    """The cotangent of `x`, of which `g` is that of `list(x)` or of another list of what `x` yields.

    >>> unlisted([1.0, 2.0], {"a": 3.0, "b": 4.0})
    {'a': 0.0, 'b': 0.0}
    """
    if isinstance(x, dict):
        return zeros_like(x)  # it yields its keys
    if isinstance(x, (list, tuple, np.ndarray)):
        return match(g, x)
    raise UnsupportedSyntax(
        f"cannot differentiate a list made of {type(x).__name__}. Build the list in a loop."
    )


def conform(g: Any, x: Any) -> Any:
    """The cotangent `g` of `x`; if it is of another structure, it is a zero that was made for another value.

    >>> conform([0.0], [1.0, 2.0])
    [0.0, 0.0]
    >>> conform([np.zeros(3), 1.5], (1.0, 2.0))
    [0.0, 1.5]
    """
    if is_zero(g):
        return g if isinstance(x, (np.ndarray, *NUMBERS)) else zeros_like(x)
    if isinstance(x, (np.ndarray, *NUMBERS)):
        same = not isinstance(g, (list, dict)) and np.shape(g) in ((), np.shape(x))
    elif isinstance(x, (list, tuple)):
        same = isinstance(g, (list, tuple, np.ndarray)) and len(g) == len(x)
        if same and not isinstance(g, np.ndarray):
            return [conform(a, b) for a, b in zip(g, x, strict=True)]
    elif isinstance(x, dict):
        same = isinstance(g, dict)
        if same:
            return {k: conform(a, x[k]) if k in x else a for k, a in g.items()}
    else:
        same = isinstance(g, dict)
    if not same and not only_zeros(g):
        raise UnsupportedSyntax(
            "a variable holds values of several structures, and the derivative of one arrived at another. "
            "Give each structure a variable of its own."
        )
    return g if same else zeros_like(x)


def only_zeros(g: Any) -> bool:
    """Is every number in `g` zero?

    >>> only_zeros([0.0, {"a": np.zeros(2)}])
    True
    """
    if isinstance(g, (list, tuple)):
        return all(map(only_zeros, g))
    if isinstance(g, dict):
        return all(map(only_zeros, g.values()))
    return g is None or not np.any(g)


def stored(g: Any, v: Any) -> Any:
    """The cotangent of `v` for `x[i] = v`, of which `g` is that of `x[i]`: summed where `v` was broadcast.

    >>> stored(np.array([1.0, 2.0]), 3.0)
    np.float64(3.0)
    """
    number = isinstance(v, (*NUMBERS, np.ndarray))
    return unbroadcast(g, v) if number and isinstance(g, (*NUMBERS, np.ndarray)) else match(g, v)


def unrepeat_list(g: Any, xs: Any) -> Any:
    """The cotangent of the list `xs` for `xs * n`."""
    if is_zero(g):
        return 0.0
    out: list[Any] = [0.0] * len(xs)
    for i, part in enumerate(g):
        out[i % len(xs)] = add(out[i % len(xs)], part)
    return out


def sequence(x: Any) -> Any:
    """`x` if it can be indexed by position, else the list of what it yields."""
    if isinstance(x, (list, tuple, np.ndarray, range, str)) or hasattr(x, "__array_function__"):
        return x
    if isinstance(x, (itertools.count, itertools.cycle)):
        raise UnsupportedSyntax(
            f"an itertools.{type(x).__name__} has no end: zip it with something that has one, in the loop "
            "itself."
        )
    if is_object(x) and operators.defined(type(x)):
        raise UnsupportedSyntax(
            f"a {type(x).__name__} gives its elements by a method that the compiler can't follow here. Let "
            "its `__iter__` be a generator, or return an iterator over a list."
        )
    return list(x)


def as_list(x: Any) -> Any:
    """`x`, which has to be a list: of other things it is not known what a method called `append` does."""
    if type(x) is not list:
        raise UnsupportedSyntax(
            f"a method of a {type(x).__name__} changes it in a way that the derivative can't follow. Use "
            "a list that has a name of its own."
        )
    return x


def transposed(rows: Any, strict: bool = False) -> list[Any]:
    """`list(zip(*rows, strict=strict))`.

    >>> transposed([[1, 2, 3], [4, 5, 6]])
    [(1, 4), (2, 5), (3, 6)]
    """
    return list(zip(*rows, strict=strict))


def untransposed(g: Any, rows: Any) -> Any:
    """The cotangent of `rows` for `transposed(rows)`."""
    if is_zero(g):
        return 0.0
    made = zeros_like([list(r) for r in rows])
    for i, column in enumerate(g):
        for j, part_ in enumerate(() if is_zero(column) else column):
            made[j][i] = part_
    return [match(m, r) for m, r in zip(made, rows, strict=True)]


def equal_length(*lengths: int) -> int:
    """The length that all of `lengths` are; zip's own error where they differ.

    >>> equal_length(2, 2)
    2
    """
    if len(set(lengths)) > 1:
        list(zip(*map(range, lengths), strict=True))
    return lengths[0]


def sort_array(x: Any, axis: int = -1, kind: Any = None) -> Any:
    """What `x.sort(axis, kind)` leaves in an array."""
    return np.sort(x, axis=axis, kind=kind)


def like(g: Any, x: Any) -> Any:
    """The gradient `g` as the caller receives it: in the structure, shape and dtype of `x`, in memory of its
    own.

    >>> like([1.0, 0.0], (3.0, np.zeros(2)))
    (1.0, array([0., 0.]))
    """
    if isinstance(g, Unknown):
        known(g)
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "fcbiu":
            return x
        if np.iscomplexobj(g) and x.dtype.kind != "c":
            g = np.real(g)
        dtype = x.dtype if x.dtype.kind in "fc" else np.float64
        if isinstance(g, list):
            g = match(g, x)
        out = np.empty_like(x, dtype=dtype)
        out[...] = g
        return out
    if isinstance(x, (bool, np.bool_)) or x is None or isinstance(x, (str, bytes)):
        return x
    if isinstance(x, NUMBERS):
        if isinstance(g, np.ndarray):  # with dimensions: zeros, where a name stood for something else later
            g = unbroadcast(g, x) if g.ndim else g[()]
        if np.iscomplexobj(g) and not isinstance(x, (complex, np.complexfloating)):
            g = np.real(g)
        if isinstance(x, np.inexact) and not isinstance(x, float):
            return type(x)(g)
        if isinstance(x, (complex, np.complexfloating)):
            return complex(g) if type(x) is complex else type(x)(g)
        return float(g) if isinstance(g, (int, float, np.floating)) else g
    if isinstance(x, dict):
        parts = {k: like(0.0 if is_zero(g) else g.get(k, 0.0), v) for k, v in x.items()}
        return parts if type(x) is dict else _rebuilt_dict(x, parts)
    if isinstance(x, (list, tuple)):
        items = [like(0.0 if is_zero(g) else g[i], v) for i, v in enumerate(x)]
        if hasattr(x, "_fields"):
            return type(x)(*items)
        return type(x)(items)
    if hasattr(x, "__array_function__"):
        return g + np.zeros_like(x)
    if is_object(x):
        made = _copy.copy(x)
        for k, v in attributes(x).items():
            object.__setattr__(made, k, like(0.0 if is_zero(g) else g.get(k, 0.0), v))
        return made
    return x


def _rebuilt_dict(x: Any, parts: dict[Any, Any]) -> Any:
    made = _copy.copy(x)
    made.update(parts)
    return made


def check_scalar(y: Any, name: str) -> None:
    """Raise unless `y`, the result of the function called `name`, is a real scalar."""
    if isinstance(y, (float, int)) or (
        np.isscalar(y) and np.isrealobj(y) and not isinstance(y, (str, bytes))
    ):
        return
    if hasattr(y, "shape") and y.shape == () and np.isrealobj(y):
        return
    if hasattr(y, "shape"):
        kind = "complex " if np.iscomplexobj(y) else ""
        got = f"a {kind}scalar" if y.shape == () else f"an array of shape {y.shape}"
    else:
        got = f"a {type(y).__name__}"
    raise not_scalar(name, got)


def not_scalar(name: str, got: str) -> ResultError:
    return ResultError(
        f"grad needs a function whose result is a real scalar, but {name} returned {got}. Reduce the "
        "result to a scalar, or use srcgrad.jacobian, srcgrad.vjp or srcgrad.elementwise_grad."
    )


class Unknown:
    """The cotangent of what a rule takes for a constant, in the place of a number: it passes through
    arithmetic, and raises `NoRule` where it is needed."""

    shape: tuple[int, ...] = ()
    ndim, size, dtype = 0, 1, np.dtype(float)

    def __init__(self, message: str) -> None:
        self.__dict__["message"] = message

    def __getattr__(self, name: str) -> Any:
        raise NoRule(self.message)

    def _itself(self, *_: Any, **__: Any) -> Unknown:
        return self

    def __float__(self) -> float:
        raise NoRule(self.message)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NoRule(self.message)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _itself
    __array_ufunc__ = __array_function__ = _itself


def unknown_slope(x: Any, function: str, parameter: str) -> Any:
    """The cotangent of `x`, for which `function` has no rule: none where `x` is discrete."""
    if isinstance(x, (list, tuple)):
        return [unknown_slope(v, function, parameter) for v in x]
    if not _continuous(x):
        return zeros_like(x)
    return Unknown(
        f"the derivative of `{function}` with respect to `{parameter}` is not known, and what is passed "
        "there is differentiated. Pass a constant, or srcgrad.stop_gradient(...) of it."
    )


def check_constant(x: Any, function: str, parameter: str) -> None:
    """Raise if `x`, which has a tangent, may change what `function` returns in a way that no rule knows."""
    if isinstance(x, (list, tuple)):
        for part in x:
            check_constant(part, function, parameter)
    elif _continuous(x):
        known(unknown_slope(x, function, parameter))


def _continuous(x: Any) -> bool:
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return isinstance(x, (float, complex)) or (isinstance(kind, str) and kind in ("f", "c"))


def known(g: Any) -> Any:
    """`g`, which must be known."""
    if isinstance(g, Unknown):
        raise NoRule(g.message)
    return g


def check_argument(x: Any, name: str) -> None:
    """Raise if a derivative with respect to `x`, the argument called `name`, makes no sense."""
    dtype = None if operators.carried(type(x)) else getattr(x, "dtype", None)
    if dtype is not None and getattr(x, "ndim", 0) > 0 and dtype.kind in "biu":
        raise ArgumentError(
            f"the argument `{name}` is an array of {dtype}: a derivative needs floating point numbers. Pass "
            f"`{name}.astype(float)`, or leave it out of argnums."
        )
    if isinstance(x, np.ndarray) and type(x) in (np.matrix, np.ma.MaskedArray):
        raise ArgumentError(
            f"the argument `{name}` is a {type(x).__name__}, whose operators mean something else than an "
            "array's. "
            f"Pass `np.asarray({name})`."
        )
    nothing = x is None or isinstance(x, (set, frozenset, type)) or (callable(x) and not is_object(x))
    if nothing or isinstance(x, (str, bytes)) or (dtype is not None and dtype.kind not in "fcbiu"):
        raise ArgumentError(
            f"the argument `{name}` is a {type(x).__name__}: it has no derivative. Leave it out of argnums."
        )


def new_object(cls: Any) -> Any:
    """An instance of `cls` without attributes."""
    return cls.__new__(cls)


def built(cls: Any, names: tuple[str, ...], *values: Any) -> Any:
    """An instance of `cls` with these attributes, which is then as it is made to be: a frozen one too."""
    made = cls.__new__(cls)
    for n, v in zip(names, values, strict=True):
        object.__setattr__(made, n, v)
    return made


def unbuilt(g: Any, names: tuple[str, ...]) -> list[Any]:
    """The cotangents of the values in `built(cls, names, *values)`."""
    return [0.0 for _ in names] if is_zero(g) else [g.get(n, 0.0) for n in names]


def rebuilt(g: Any, names: tuple[str, ...]) -> Any:
    """The cotangent, or tangent, of an object out of those of its attributes."""
    return 0.0 if is_zero(g) else dict(zip(names, g, strict=True))


def part(g: Any, of: Any) -> Any:
    """The cotangent `g` of a sum, as the cotangent of its summand `of`: what `of` lacks is left out, numbers
    are unbroadcast."""
    if is_zero(of) and not isinstance(g, (int, float, np.floating)):
        return 0.0
    if isinstance(of, (list, tuple)):
        return [0.0] * len(of) if is_zero(g) else [part(x, y) for x, y in zip(g, of, strict=True)]
    if isinstance(of, dict):
        return {k: part(0.0 if is_zero(g) else g.get(k, 0.0), v) for k, v in of.items()}
    if isinstance(g, list) and np.ndim(of) and len(of) == len(g):  # a list was made of an array's rows
        return match(g, of)
    if isinstance(g, (list, dict)):
        return sum(np.sum(part(x, of)) for x in (g.values() if isinstance(g, dict) else g))
    return unbroadcast(g, of)


def placed(g: Any, like_: Any, index: Any) -> Any:
    """A cotangent in the structure of `like_`, zero but for `g` at `index`."""
    made = zeros_like(like_)
    add_item(made, index, g)
    return made


def with_attribute(like_: Any, x: Any, name: str, g: Any) -> Any:
    """A cotangent in the structure of `like_`, zero but for the attribute `name`."""
    if is_zero(like_):
        return 0.0
    made = copy(like_)
    made = {k: 0.0 for k in made} if isinstance(made, dict) else [0.0 for _ in made]
    add_attribute(made, x, name, g)
    return made


def new_partial(func: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`functools.partial(func, *args, **keywords)`; its cotangent is a dict of those of its parts."""
    return functools.partial(func, *args, **keywords)


def ordered(xs: Any, key: Any = None, reverse: bool = False) -> list[int]:
    """The positions of the elements of `xs` in sorted order."""
    values = list(xs)
    return sorted(
        range(len(values)), key=lambda i: values[i] if key is None else key(values[i]), reverse=reverse
    )


def unsorted(g: Any, xs: Any, key: Any = None, reverse: bool = False) -> Any:
    """The cotangent of `xs` for `sorted(xs, key=key, reverse=reverse)`."""
    if is_zero(g):
        return 0.0
    out: list[Any] = [0.0] * len(g)
    for part_, i in zip(g, ordered(xs, key, reverse), strict=True):
        out[i] = part_
    return match(out, xs)


def in_order(x_dot: Any, xs: Any, key: Any = None, reverse: bool = False) -> Any:
    """The tangent of `sorted(xs, key=key, reverse=reverse)`."""
    return [x_dot[i] for i in ordered(xs, key, reverse)]


def select(g: Any, x: dict[Any, Any], *later: Any) -> Any:
    """The cotangent of the dict `x` in `{**x, ...}`, where the keys in the containers `later` overwrote its
    own."""
    if is_zero(g):
        return 0.0
    return {k: 0.0 if any(k in c for c in later) else g.get(k, 0.0) for k in x}


def unless(g: Any, key: Any, *later: Any) -> Any:
    """The cotangent of the value under `key` of a dict display, unless one of the containers `later`
    overwrote it."""
    if is_zero(g) or any(key in c for c in later):
        return 0.0
    return g.get(key, 0.0)


def unselected(g: Any, of: dict[Any, Any], x: dict[Any, Any], *later: Any) -> Any:
    """The cotangent of `of` for `select(of, x, *later)`."""
    if is_zero(g):
        return zeros_like(of)
    return {
        k: g.get(k, 0.0) if k in x and not any(k in c for c in later) else zeros_like(v)
        for k, v in of.items()
    }


def taken(g: Any, index: Any) -> Any:
    """The cotangent of `part` for `placed(part, like_, index)`."""
    if is_zero(g):
        return 0.0
    return copy(g.get(index, 0.0)) if isinstance(g, dict) else copy(g[index])


def reachable(x: Any) -> list[Any]:
    """`x` and the arrays, lists and dicts that it holds, however deep."""
    found, seen, todo = [], set(), [x]
    while todo:
        value = todo.pop()
        if id(value) in seen or isinstance(value, (*NUMBERS, str)):
            continue
        seen.add(id(value))
        found.append(value)
        if isinstance(value, (list, tuple)):
            todo.extend(value)
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, types.MethodType):
            todo.append(value.__self__)
        elif isinstance(value, functools.partial):
            todo.extend((value.func, value.args, value.keywords))
        elif isinstance(value, types.FunctionType):
            todo.extend(c.cell_contents for c in value.__closure__ or () if _filled(c))
        elif is_object(value):
            todo.extend(held_in(value).values())
    return found


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def refuse_shared(x: Any, other: Any, name: str, other_name: str, place: str) -> None:
    """Raise if `x`, about to be changed in place, shares memory with `other`, which is used later on."""
    if isinstance(x, (*NUMBERS, str, tuple)) or x is None:
        return
    if isinstance(x, memoryview):
        x = np.asarray(x)
    for value in reachable(other):
        same = value is x
        if not same and isinstance(x, np.ndarray) and isinstance(value, np.ndarray):
            same = np.shares_memory(x, value)
        if same:
            raise AliasError(
                f"{place}: `{name}` is written in place here while `{other_name}` shares its memory\n"
                f"Make `{name}` a copy first: `{name} = {name}.copy()`."
            )


def same_view(v_bar: Any, v: Any, x_bar: Any, x: Any, name: str, place: str) -> Any:
    """`v_bar`, a view of `x_bar` as `v` is one of `x`. Raises `AliasError` where `v` is a copy, or where it
    holds an element several times.

    >>> x, x_bar = np.arange(4.0), np.zeros(4)
    >>> same_view(x_bar.reshape(2, 2), x.reshape(2, 2), x_bar, x, "v", "f.py:1").base is x_bar
    True
    """
    repeated = any(step == 0 and n > 1 for step, n in zip(v.strides, v.shape, strict=True))
    if v.size and (repeated or not (np.may_share_memory(v, x) and np.may_share_memory(v_bar, x_bar))):
        what = "repeats elements" if repeated else "is a copy here"
        raise AliasError(
            f"{place}: memory that `{name}` may share is written in place, but `{name}` {what}\n"
            f"Make `{name}` a copy: `{name} = {name}.copy()`."
        )
    if not v_bar.flags.writeable:
        v_bar.flags.writeable = True  # np.diagonal's views are read-only
    return v_bar


def refuse_mutable(x: Any, name: str, place: str) -> None:
    """Raise if `x`, given to a function that updates its parameter in place, is an array or a list, or holds
    one."""
    if any(isinstance(v, (np.ndarray, list, dict)) for v in reachable(x)):
        raise AliasError(
            f"{place}: this call writes into its argument `{name}`\n"
            "Let the function return a new value instead."
        )


def structure(x: Any) -> Any:
    """The containers of `x`, copied, with the values they hold: what `like` needs to know of an argument that
    changes."""
    if type(x) is list:
        return [structure(v) for v in x]
    if type(x) is tuple:
        return tuple(structure(v) for v in x)
    if type(x) is dict:
        return {k: structure(v) for k, v in x.items()}
    return x


def refuse_integers(x: Any, name: str, place: str) -> None:
    """Raise if the array `x`, into which a differentiated value is written, holds integers."""
    if getattr(getattr(x, "dtype", None), "kind", "f") in "biu":
        raise UnsupportedSyntax(
            f"{place}: `{name}` holds integers: a differentiated value that is written into it loses its "
            "fraction and its derivative\nMake it an array of floats, for example with `dtype=float`."
        )


def refuse_object(x: Any, name: str, place: str) -> None:
    """Raise if `x`, of which an element is taken, is an object whose own class gives its elements."""
    if is_object(x) and not isinstance(x, (dict, list, tuple, np.ndarray)):
        raise UnsupportedSyntax(
            f"{place}: `{name}` is a {type(x).__name__}: its elements come from a method of its class, "
            "through which the derivative can't be followed here\nUse its attributes, or or its methods."
        )


def vars_of_class(cls: type) -> set[str]:
    """What a class and its bases define, `object` apart."""
    return set().union(*(vars(c) for c in cls.__mro__[:-1]))


def refuse_property(x: Any, attribute: str, name: str, place: str) -> None:
    """Raise if storing `x.attribute` runs code of the class of `x`."""
    found = getattr(type(x), attribute, None)
    own = type(found).__module__ not in ("builtins", "types") and hasattr(type(found), "__set__")
    runs = "__setattr__" in vars_of_class(type(x)) and not isinstance(x, types.SimpleNamespace)
    if isinstance(found, property) or own or runs:
        raise UnsupportedSyntax(
            f"{place}: storing `{name}.{attribute}` runs code of the class {type(x).__name__}, through "
            "which the derivative can't be followed here\nCall a method that sets it."
        )


def refuse_twice(x: Any, part: Any, name: str, place: str) -> None:
    """Raise if the container or object `x` holds `part`, which is written in place, more than once."""
    if isinstance(x, (*NUMBERS, np.ndarray, str)) or isinstance(part, NUMBERS):
        return
    found, seen, todo = 0, set(), [x]
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        held: Any = ()
        if isinstance(value, dict):
            held = value.values()
        elif isinstance(value, (list, tuple)):
            held = () if value and isinstance(value[0], NUMBERS) else value
        elif is_object(value):
            held = held_in(value).values()
        for v in held:
            if v is part or (
                isinstance(part, np.ndarray) and isinstance(v, np.ndarray) and np.shares_memory(v, part)
            ):
                found += 1
            elif not isinstance(v, (*NUMBERS, str, np.ndarray)):
                todo.append(v)
    if found > 1:
        raise AliasError(
            f"{place}: `{name}` holds what is written in place here more than once\nMake copies of its parts."
        )


def refuse_overlap(x: Any, name: str, place: str) -> None:
    """Raise if two parts of the container `x`, into which the function writes, share memory."""
    parts = reachable(x)
    arrays = [v for v in parts if isinstance(v, np.ndarray)]
    twice = _held_twice(x, set())
    for i, a in enumerate(arrays):
        twice = twice or any(np.shares_memory(a, b) for b in arrays[:i])
    if twice:
        raise AliasError(
            f"{place}: two parts of the argument `{name}`, into which this function writes, share memory\n"
            "Pass copies."
        )


def _held_twice(x: Any, seen: set[int]) -> bool:
    """Does a container hold an array, list or dict in two places?"""
    if isinstance(x, dict):
        children = list(x.values())
    elif isinstance(x, (list, tuple)):
        children = list(x)
    else:
        children = list(held_in(x).values()) if is_object(x) else []
    for child in children:
        if isinstance(child, (np.ndarray, list, dict)):
            if id(child) in seen:
                return True
            seen.add(id(child))
        if not isinstance(child, NUMBERS) and _held_twice(child, seen):
            return True
    return False
