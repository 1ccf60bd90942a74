"""Calls that can't be resolved before the run: the callee is looked at when it is met, and its derivative
remembered.

Emitted code calls `forward(function, args, kwargs)` for `(value, saved)` and `reverse(saved, cotangent)` for
the list `[cotangent of the function, of the positional arguments, of the keyword arguments]`. The cotangent
of a function is a dict of those of the variables it has captured, of a bound method that of its object, of a
`functools.partial` that of its parts. Both are ordinary Python, so that they can be differentiated again.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from srcgrad.runtime import late, library, operators, tangents, trees
from srcgrad.runtime.errors import NoRule, UnsupportedSyntax
from srcgrad.runtime.rules import table

compiler: Callable[..., Any] | None = None
"""Set by the compiler: (function, arguments by parameter, captured variables) -> (forward, reverse,
parameters)."""

build_constructor: Callable[[type], types.FunctionType] | None = None
"""Set by the compiler: a class -> a function that makes an instance and returns it."""


class Plan:
    """How one call is differentiated: its halves, the arguments they take, and where the cotangents
    belong."""

    __slots__ = ("forward", "back", "first", "parameters", "kind", "target", "named")

    def __init__(
        self,
        forward: Any,
        reverse: Any,
        first: tuple[Any, ...],
        parameters: tuple[str, ...],
        kind: str,
        target: Any = None,
        named: tuple[str, ...] = (),
    ) -> None:
        self.forward, self.back, self.first = forward, reverse, first
        self.parameters, self.kind, self.target = parameters, kind, target
        self.named = named
        """The arguments that the call gives by name."""


def forward(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    exposed: bool = False,
    known: Any = None,
) -> tuple[Any, Any]:
    """The value of `function(*args, **kwargs)`, and what `reverse` needs; `exposed` says that the memory of
    the arguments or the result is written later, so that copies are kept; `known` is the plan of the call,
    where it has been made before."""
    keywords = {} if kwargs is None else kwargs
    plan = plan_of(function, args, keywords, _exposed if exposed else None) if known is None else known
    if plan.back is None:
        return plan.forward(*args, **keywords), (plan, None, len(args))
    inputs = inputs_of(function, plan)
    y, saved = plan.forward(*inputs, *args, **keywords)
    return y, (plan, saved, len(args))


def inputs_of(function: Any, plan: Any) -> tuple[Any, ...]:
    """What the callee takes before its arguments: a method's object, the values that a function has
    captured."""
    if plan.kind == "method":
        return (function.__self__,)
    if plan.kind == "object":
        return (function,)
    if plan.kind == "bound":
        return tuple(function.leading)
    if plan.kind == "function" and plan.first:
        return tuple(held_by(plan.target)[n] for n in plan.first)
    return ()


def held_by(function: types.FunctionType) -> dict[str, Any]:
    """What a function holds: the values of its captured variables and its default values."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {n: c.cell_contents for n, c in cells} | defaults_of(function)


def defaults_of(function: types.FunctionType) -> dict[str, Any]:
    """Default values by parameter."""
    code, values = function.__code__, function.__defaults__ or ()
    named = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return dict(zip(named, values, strict=True)) | (function.__kwdefaults__ or {})


def inputs_bar(g: Any, function: Any, plan: Any) -> Any:
    """The cotangent of `function` out of that of `inputs_of(function, plan)`."""
    if trees.is_zero(g) or not g:
        return 0.0
    return captured_bar(plan, g) if plan.kind == "function" else g[0]


def inputs_dot(t: Any, function: Any, plan: Any) -> tuple[Any, ...]:
    """The tangent of `inputs_of(function, plan)` out of that of `function`."""
    values = inputs_of(function, plan)
    if plan.kind != "function":
        return (t,)[: len(values)]
    parts = t if isinstance(t, dict) else {}
    return tuple(
        t if v is function else parts[n] if n in parts else tangents.zeros_like(v)
        for n, v in zip(plan.first, values, strict=True)
    )


def carries(value: Any) -> bool:
    """Is a captured value data, which differs from one instance of a function to the next?"""
    if isinstance(value, types.FunctionType):
        emitted = value.__code__.co_filename.startswith("<srcgrad") and "<locals>" not in value.__qualname__
        return value.__closure__ is not None and not emitted
    if hasattr(value, "__srcgrad_call__"):
        return True
    return not (
        isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType, np.ufunc)) or table.find(value)
    )


def data_of(function: types.FunctionType, args: Any, kwargs: dict[str, Any]) -> tuple[str, ...]:
    """The captured variables of a function that hold data, and the parameters that receive a default value
    which was computed where the function was defined; other captured variables hold functions and modules,
    and stay as they are."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    captured = tuple(n for n, c in cells if carries(c.cell_contents))
    code = function.__code__
    if not (code.co_filename.startswith("<srcgrad") and "<locals>" in function.__qualname__):
        return captured
    given = {*code.co_varnames[: min(len(args), code.co_argcount)], *kwargs}
    return captured + tuple(n for n, v in defaults_of(function).items() if n not in given and _numbers_in(v))


def fixed_of(function: types.FunctionType, first: tuple[str, ...]) -> tuple[Any, ...]:
    """What else a function's meaning depends on, beside its code and its arguments."""
    return (function.__globals__, *(v for n, v in held_by(function).items() if n not in first))


def reverse(saved: Any, g: Any) -> list[Any]:
    """[cotangent of the function, list for the positional arguments, dict for the keyword arguments]."""
    plan, record, count = saved
    if plan.back is None:
        return [0.0, [0.0] * count, {}]
    bars = plan.back(g, record)
    return arrange(plan, bars, count)


def forward_of(function: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> tuple[Any, Any]:
    """Like `forward`, for a derivative with respect to the arguments at `positions` only."""
    plan = plan_for(function, args, positions)
    inputs = inputs_of(function, plan)
    y, saved = plan.forward(*inputs, *args)
    return y, (plan, saved)


def reverse_of(saved: Any, g: Any) -> Any:
    """The cotangents of the arguments at the positions that `forward_of` was given."""
    plan, record = saved
    return plan.back(g, record)


def plan_for(function: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> Plan:
    def make(target: Any, first: Any, kind: str, args: Any, kwargs: Any, objects: Any) -> Plan:
        return _compiled(target, first, kind, args, kwargs, objects, positions)

    found = plan_of(function, args, {}, make)
    assert isinstance(found, Plan)
    return found


def arrange(plan: Plan, bars: Any, count: int) -> list[Any]:
    """Cotangents by parameter, as the call's function, positions and keywords."""
    skip = len(plan.first)
    positional: list[Any] = []
    keywords: dict[str, Any] = dict.fromkeys(plan.named, 0.0)
    for place, bar in zip(plan.parameters[skip:], bars[skip:], strict=False):
        if place.startswith("**"):
            keywords.update({} if trees.is_zero(bar) else bar)
        elif place.startswith("*"):
            positional.extend([0.0] * (count - len(positional)) if trees.is_zero(bar) else bar)
        elif len(positional) < count and not place.startswith("="):
            positional.append(bar)
        else:
            keywords[place.lstrip("=")] = bar
    f_bar: Any = 0.0
    if plan.kind in ("method", "object", "bound"):
        f_bar = bars[0]
    elif plan.kind == "function" and skip:
        f_bar = captured_bar(plan, bars[:skip])
    return [f_bar, positional + [0.0] * (count - len(positional)), keywords]


def captured_bar(plan: Any, bars: Any) -> Any:
    """The cotangent of a function out of those of what it has captured, which may be the function itself.
    That of a variable which is bound again is collected with the variable."""
    itself = itself_in(plan)
    cells = dict(zip(plan.target.__code__.co_freevars, plan.target.__closure__ or (), strict=True))
    f_bar: Any = {}
    for n, bar in zip(plan.first, bars, strict=True):
        record = late.find(cells[n]) if n in cells else None
        if record is not None:
            late.give(record, bar)
        elif n not in itself:
            f_bar[n] = bar
    for n, bar in zip(plan.first, bars, strict=True):
        if n in itself:
            f_bar = trees.add(f_bar, bar)
    return f_bar


def itself_in(plan: Any) -> set[str]:
    """Under which names a function has captured itself."""
    cells = zip(plan.target.__code__.co_freevars, plan.target.__closure__ or (), strict=True)
    return {n for n, c in cells if n in plan.first and c.cell_contents is plan.target}


def unarranged(g: Any, plan: Plan, count: int) -> list[Any]:
    """The cotangent of `bars` for `arrange(plan, bars, count)`."""
    skip, named = len(plan.first), [p.lstrip("=") for p in plan.parameters if not p.startswith("*")]
    f_bar, positional, keywords = (0.0, [0.0] * count, {}) if trees.is_zero(g) else g
    if plan.kind == "function":
        itself = itself_in(plan)
        parts = [f_bar if n in itself or trees.is_zero(f_bar) else f_bar.get(n, 0.0) for n in plan.first]
    else:
        parts = [f_bar] * skip
    position = 0
    for place in plan.parameters[skip:]:
        if place.startswith("**"):
            parts.append({k: v for k, v in keywords.items() if k not in named})
        elif place.startswith("*"):
            parts.append(positional[position:])
            position = count
        elif position < count and not place.startswith("="):
            parts.append(positional[position])
            position += 1
        else:
            parts.append(keywords.get(place.lstrip("="), 0.0))
    return parts


def owner(bar: Any, x: Any, name: str) -> Any:
    """The cotangent of `x` for a call of `x.name`: of a method's object, or of an object that holds a
    function."""
    if trees.is_zero(bar) or getattr(getattr(x, name, None), "__self__", None) is x:
        return bar
    return {name: bar}


def owned(g: Any, bar: Any, x: Any, name: str) -> Any:
    """The cotangent of `bar` for `owner(bar, x, name)`."""
    if trees.is_zero(bar) or getattr(getattr(x, name, None), "__self__", None) is x:
        return g
    return 0.0 if trees.is_zero(g) else g[name]


def plan_of(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], make: Callable[..., Any] | None = None
) -> Any:
    """Looks at a callee as it is met. `make` compiles a Python function for the arguments."""
    make = make or _compiled
    if compiler is None:
        raise NoRule("the compiler is not loaded: import srcgrad.transforms")
    if custom(function):
        return function.plan(args, kwargs)
    function = library.once(library.standin(function))
    if operators.looked_at(function):
        return make(_operator(function, tuple(map(type, args))), (), "plain", args, kwargs, ())
    if function is operators.attribute:
        return make(_attribute(cast(Any, type(args[0])), args[1]), (), "plain", args, kwargs, ())
    if function is copy.copy and len(args) == 1:
        return make(
            _copier(cast(Any, type(args[0])), (*trees.held_in(args[0]),)), (), "plain", args, kwargs, ()
        )
    if getattr(function, "__module__", None) == "dataclasses" and args:
        written = _of_dataclass(function, cast(Any, type(args[0])), len(args), tuple(kwargs))
        if written is not None:
            return make(written, (), "plain", args, kwargs, ())
    if isinstance(function, types.FunctionType) and table.find(function) is None:
        return make(function, data_of(function, args, kwargs), "function", args, kwargs, ())
    if (
        isinstance(function, types.MethodType)
        and function.__name__ == "_make"
        and is_namedtuple(function.__self__)
    ):
        made: Any = function.__self__
        maker = _namedtuple_from(made, len(made._fields))
        return make(maker, (), "plain", args, kwargs, ())
    if isinstance(function, types.MethodType) and table.find(function) is None:
        inner = function.__func__
        if function.__name__ == "_replace" and is_namedtuple(type(function.__self__)):
            inner = _once("namedtuple._replace", _REPLACE)
        if isinstance(inner, types.FunctionType):
            return make(_ruled(inner, args, kwargs), ("self",), "method", args, kwargs, (function.__self__,))
        if hasattr(inner, "__srcgrad_call__"):
            emitted = cast(Any, inner).__srcgrad_call__((function.__self__, *args), kwargs)
            return make(emitted, ("self",), "method", args, kwargs, (function.__self__,))
        if custom(inner):
            plan = cast(Any, inner).plan((function.__self__, *args), kwargs)
            return Plan(plan.forward, plan.back, ("self",), plan.parameters, "method", None, plan.named)
    rule = table.find(function)
    if rule is not None:
        if not rule.differentiable:
            return Plan(function, None, (), (), "plain")
        return make(_wrapper(function, len(args), tuple(kwargs)), (), "plain", args, kwargs, ())
    if isinstance(function, functools.partial):
        return make(_partial(function), ("function",), "object", args, kwargs, (function,))
    bound_to = getattr(function, "__self__", None)
    if isinstance(bound_to, np.ndarray):
        method = getattr(np.ndarray, function.__name__, None)
        if table.find(method) is None and bound_to.dtype.kind in "fc":
            raise NoRule(f"the method `{function.__name__}` of an array has no derivative rule")
        if table.find(method) is not None:
            return make(
                _wrapper(method, 1 + len(args), tuple(kwargs)), ("self",), "method", args, kwargs, (bound_to,)
            )
    if isinstance(bound_to, dict) and function.__name__ in _OF_DICTS:
        return make(
            _once(f"dict.{function.__name__}", _OF_DICTS[function.__name__]),
            ("self",),
            "method",
            args,
            kwargs,
            (bound_to,),
        )
    if isinstance(bound_to, (list, dict)) and function.__name__ in _CHANGES:
        raise UnsupportedSyntax(
            f"`{function.__name__}` changes a {type(bound_to).__name__} of which the compiler does not "
            "know that it is one: the derivative of what it holds can't be followed. Make it in the function "
            "itself, or return a new one."
        )
    if function is functools.partial:
        text = "def apply(func, *args, **keywords):\n    return new_partial(func, args, keywords)\n"
        maker = _once("make partial", text, {"new_partial": trees.new_partial})
        return make(maker, (), "plain", args, kwargs, ())
    plain = isinstance(function, type) and function in _OF_CLASSES and len(args) == 1
    if plain and function is dict and not isinstance(args[0], dict) and not kwargs:
        return make(_once("make dict of pairs", _OF_PAIRS), (), "plain", args, kwargs, ())
    if plain and (isinstance(args[0], dict) if function is dict else not kwargs):
        return make(_once(f"make {function.__name__}", _OF_CLASSES[function]), (), "plain", args, kwargs, ())
    if function is types.SimpleNamespace and not args:
        return make(_namespace(tuple(kwargs)), (), "plain", args, kwargs, ())
    if isinstance(function, (operator.itemgetter, operator.attrgetter, operator.methodcaller)):
        return make(_getter(repr(function), function), (), "plain", args, kwargs, ())
    if isinstance(function, type):
        if not _numbers_in((args, kwargs)):
            return Plan(function, None, (), (), "plain")
        return make(_constructor(function), (), "plain", args, kwargs, ())
    derivative_of = getattr(function, "__srcgrad_call__", None)
    if derivative_of is not None:
        emitted, leading = derivative_of(args, kwargs), getattr(function, "leading", ())
        if leading:
            return make(emitted, ("self",), "bound", args, kwargs, leading)
        return make(emitted, data_of(emitted, args, kwargs), "function", args, kwargs, ())
    call = getattr(type(function), "__call__", None)  # noqa: B004 (the function itself is wanted)
    if isinstance(call, types.FunctionType):
        return make(_ruled(call, args, kwargs), ("self",), "object", args, kwargs, (function,))
    if not _numbers_in((args, kwargs)):
        return Plan(function, None, (), (), "plain")
    name = getattr(function, "__qualname__", getattr(function, "__name__", repr(function)))
    module = getattr(function, "__module__", None)
    raise NoRule(
        f"`{module + '.' if module and module != 'builtins' else ''}{name}` has no derivative rule, and no "
        "Python source to differentiate. Write it with functions that have one, or give it a rule."
    )


def custom(function: Any) -> bool:
    """Has a function derivatives of its own, made by the user?"""
    return getattr(type(function), "__srcgrad_custom__", False) is True


def _compiled(
    function: types.FunctionType,
    first: tuple[str, ...],
    kind: str,
    args: Any,
    kwargs: Any,
    objects: tuple[Any, ...],
    positions: tuple[int, ...] | None = None,
    exposed: bool = False,
) -> Plan:
    assert compiler is not None
    captured = objects
    if kind == "function" and first:
        captured = tuple(held_by(function)[n] for n in first)
    forward_half, reverse_half, parameters = compiler(
        function, first, captured, args, kwargs, kind, positions, exposed
    )
    return Plan(forward_half, reverse_half, first, parameters, kind, function, tuple(kwargs))


def _exposed(function: Any, first: Any, kind: str, args: Any, kwargs: Any, objects: Any) -> Plan:
    return _compiled(function, first, kind, args, kwargs, objects, None, True)


# Forward mode -----------------------------------------------------------------------------------------------

tangent_compiler: Callable[..., Any] | None = None
"""Set by the compiler: (function, kind, objects, args, kwargs, tangents of function, args and kwargs) ->
TangentPlan."""


class TangentPlan:
    """How one call is differentiated forwards. `first` are the captured variables that the emitted function
    takes before the arguments; `places` tell for each tangent that it takes (its name, where it is found,
    under which key)."""

    __slots__ = ("jvp", "first", "kind", "places", "target")

    def __init__(
        self,
        jvp: Any,
        first: tuple[str, ...],
        kind: str,
        places: tuple[tuple[str, str, Any], ...],
        target: Any = None,
    ) -> None:
        self.jvp, self.first, self.kind, self.places, self.target = jvp, first, kind, places, target


def jvp(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    function_dot: Any,
    arg_dots: tuple[Any, ...],
    kwarg_dots: dict[str, Any] | None = None,
) -> tuple[Any, Any]:
    """(value, tangent) of `function(*args, **kwargs)`. A tangent that is None is zero; the tangent of a
    function is a dict of those of the variables it has captured, of a bound method that of its object."""
    keywords = {} if kwargs is None else kwargs
    keyword_dots = {} if kwarg_dots is None else kwarg_dots
    plan = tangent_plan_of(function, args, keywords, function_dot, arg_dots, keyword_dots)
    if plan.jvp is None:
        value = function(*args, **keywords)
        return value, tangents.zeros_like(value)
    inputs = inputs_of(function, plan)
    dots = {}
    for name, where, key in plan.places:
        if where == "function":
            dots[name] = function_dot
        elif where == "captured":
            dots[name] = late.tangent(function_dot[key])
        elif where == "argument":
            dots[name] = arg_dots[key]
        elif where == "arguments":
            dots[name] = tangents.filled(arg_dots[key:], args[key:])
        elif where == "every":
            dots[name] = tangents.filled(arg_dots, args)
            if plan.kind == "method":
                dots[name] = tangents.filled((function_dot, *arg_dots), (*inputs, *args))
        elif where == "keyword":
            dots[name] = keyword_dots[key]
        else:
            dots[name] = {
                k: keyword_dots[k] if k in keyword_dots else tangents.zeros_like(keywords[k]) for k in key
            }
    return cast(tuple[Any, Any], plan.jvp(*inputs, *args, **keywords, **dots))


def tangent_plan_of(
    function: Any, args: Any, kwargs: Any, function_dot: Any, arg_dots: Any, kwarg_dots: Any
) -> TangentPlan:
    given = function_dot is not None or any(d is not None for d in arg_dots) or bool(kwarg_dots)
    if not given:
        return TangentPlan(None, (), "plain", ())

    inner: Any = function.__func__ if isinstance(function, types.MethodType) else function
    if custom(inner):
        if inner is not function:
            plan = inner.tangent_plan(
                (function.__self__, *args), kwargs, (None, (function_dot, *arg_dots), kwarg_dots)
            )
            return TangentPlan(plan.jvp, (), "method", plan.places)
        plan = function.tangent_plan(args, kwargs, (function_dot, arg_dots, kwarg_dots))
        return cast(TangentPlan, plan)

    def make(target: Any, first: Any, kind: str, args: Any, kwargs: Any, objects: Any) -> Any:
        assert tangent_compiler is not None
        return tangent_compiler(target, kind, objects, args, kwargs, function_dot, arg_dots, kwarg_dots)

    found = plan_of(function, args, kwargs, make)
    return found if isinstance(found, TangentPlan) else TangentPlan(None, (), "plain", ())


def _numbers_in(x: Any) -> bool:
    """Is there a floating point number anywhere in `x`?"""
    if isinstance(x, (float, complex, np.inexact)):
        return True
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return getattr(dtype, "kind", "f") in "fcO"
    if isinstance(x, dict):
        return any(_numbers_in(v) for v in x.values())
    if isinstance(x, (list, tuple)):
        return any(_numbers_in(v) for v in x)
    return hasattr(x, "__dict__") and any(_numbers_in(v) for v in vars(x).values())


_counter = 0


def made_from(text: str, name: str, namespace: dict[str, Any], shown: str) -> types.FunctionType:
    """A small function written for one callee, with source that the compiler can read."""
    import linecache

    filename = f"<srcgrad {shown}>"
    exec(compile(text, filename, "exec"), namespace)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    function = namespace[name]
    assert isinstance(function, types.FunctionType)
    return function


@functools.lru_cache(maxsize=512)
def _wrapper(function: Any, count: int, keywords: tuple[str, ...]) -> types.FunctionType:
    """`def apply(a0, a1, *, k): return function(a0, a1, k=k)`, for a function with a rule."""
    names = [f"a{i}" for i in range(count)]
    named = getattr(function, "__name__", "function")
    parameters = ", ".join([*names, *(["*", *keywords] if keywords else [])])
    given = ", ".join([*names, *(f"{k}={k}" for k in keywords)])
    text = f"def apply({parameters}):\n    return function({given})\n"
    return made_from(
        text,
        "apply",
        {"function": function},
        f"call of {named} {count} {' '.join(keywords)} {id(function):x}",
    )


def _ruled(method: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> types.FunctionType:
    """A method, or the call of it where it has a rule."""
    if table.find(method) is None:
        return method
    return _wrapper(method, 1 + len(args), tuple(kwargs))


@functools.lru_cache(maxsize=512)
def _operator(function: Any, classes: tuple[type, ...]) -> types.FunctionType:
    """What an operator does to operands of these classes, as a function of them."""
    names = ", ".join(f"a{i}" for i in range(len(classes)))
    found = operators.of_classes(function, classes)
    lines: list[str] = []
    if function is operators.or_ and all(issubclass(c, dict) for c in classes):
        return _once("join dicts", "def apply(a0, a1):\n    return {**a0, **a1}\n")
    namespace = {"refused": operators.refused, "fixed": operators.fixed, "function": function}
    for i, (method, swapped) in enumerate(found):
        namespace[f"method_{i}"] = method
        given = "a1, a0" if swapped else names
        lines.append(f"    y{i} = method_{i}({given})")
        if operators.answers(method):
            lines[-1] = f"    return method_{i}({given})"
            break
        lines += [f"    if y{i} is not NotImplemented:", f"        return y{i}"]
    else:
        lines.append(
            f"    return refused(function, {names})"
            if found or operators.spread(function, classes)
            else f"    return {operators.PLAIN[function]}"
        )
    shown = f"{function.__name__} of {' and '.join(c.__qualname__ for c in classes)}"
    text = "\n".join([f"def apply({names}):", *lines, ""])
    return made_from(text, "apply", namespace, f"{shown} {' '.join(f'{id(c):x}' for c in classes)}")


@functools.lru_cache(maxsize=512)
def reader(cls: Any, name: str) -> Any:
    """The function that computes the attribute `name` of an instance of `cls`: a property's getter, for a
    cached one a function that keeps what it has found. None for other attributes."""
    found = operators.method(cls, name)
    if not operators.computes(found):
        return None
    if isinstance(found, property):
        return found.fget
    text = (
        f"def apply(x):\n    if {name!r} not in x.__dict__:\n        x.{name} = function(x)\n"
        f"    return held(x, {name!r})\n"
    )
    namespace = {"function": cast(Any, found).func, "held": trees.held}
    return made_from(text, "apply", namespace, f"cached {name} of {cls.__qualname__} {id(cls):x}")


@functools.lru_cache(maxsize=512)
def _copier(cls: Any, names: tuple[str, ...]) -> Any:
    """`copy.copy` of an instance of a class that holds attributes of these names, written out."""
    text = "x"
    if issubclass(cls, np.ndarray):
        text = "x.copy()"
    elif cls is list or cls is dict:
        text = f"{cls.__name__}(x)"
    elif names and not hasattr(cls, "__copy__"):
        text = f"built(cls, {names!r}, {', '.join('x.' + n for n in names)})"
    elif not issubclass(cls, (int, float, complex, str, tuple, np.generic)):
        raise NoRule(f"a copy of a {cls.__qualname__} has no derivative rule")
    namespace = {"cls": cls, "built": trees.built}
    return made_from(f"def apply(x):\n    return {text}\n", "apply", namespace, f"copy {id(cls):x} {names}")


@functools.lru_cache(maxsize=512)
def _of_dataclass(function: Any, cls: Any, count: int, keywords: tuple[str, ...]) -> Any:
    """`dataclasses.replace`, `asdict` and `astuple` for instances of a class, written out; None for other
    functions."""
    if not dataclasses.is_dataclass(cls) or count != 1:
        return None
    fields = [f for f in dataclasses.fields(cls) if f.init or function is not dataclasses.replace]
    inner = "[{}]" if function is dataclasses.astuple else "{{{}}}"
    if function is dataclasses.replace:
        values = ", ".join(f"{f.name}={f.name if f.name in keywords else 'x.' + f.name}" for f in fields)
        parameters = ", ".join(["x", "*", *keywords] if keywords else ["x"])
        text = f"def apply({parameters}):\n    return cls({values})\n"
        return made_from(text, "apply", {"cls": cls}, f"replace {' '.join(keywords)} {id(cls):x}")
    if function not in (dataclasses.asdict, dataclasses.astuple) or keywords:
        return None
    named = function is dataclasses.asdict
    values = ", ".join(f"{f.name!r}: part(x.{f.name})" if named else f"part(x.{f.name})" for f in fields)
    inner = f"{{{values}}}" if named else f"({values}, )"
    text = f"def apply(x):\n    return {inner}\n" + _PARTS
    return made_from(
        text,
        "apply",
        {"is_dataclass": _is_record, "whole": function, "ndarray": np.ndarray},
        f"{function.__name__} {id(cls):x}",
    )


_PARTS = """
def part(v):
    if is_dataclass(v):
        return whole(v)
    if isinstance(v, list):
        return [part(x) for x in v]
    if isinstance(v, tuple):
        return tuple([part(x) for x in v])
    if isinstance(v, dict):
        return {k: part(x) for k, x in v.items()}
    if isinstance(v, ndarray):
        return v.copy()
    return v
"""


def _is_record(v: Any) -> bool:
    return dataclasses.is_dataclass(v) and not isinstance(v, type)


@functools.lru_cache(maxsize=512)
def _attribute(cls: Any, name: str) -> types.FunctionType:
    """`x.name` of an instance of `cls`, as a function of `x` and `name`."""
    read = reader(cls, name)
    line = f"x.{name}" if read is None else "read(x)"
    text = f"def apply(x, name):\n    return {line}\n"
    return made_from(text, "apply", {"read": read}, f"{name} of {cls.__qualname__} {id(cls):x}")


_REPLACE = """def apply(self, **changes):
    parts = []
    for i, n in enumerate(self._fields):
        parts.append(changes[n] if n in changes else self[i])
    return self._make(parts)
"""
_PARTIAL = """def apply(function, *args, **kwargs):
    return function.func(*function.args, *args, **{**function.keywords, **kwargs})
"""


def _partial(function: Any) -> types.FunctionType:
    return _once("partial", _PARTIAL)


_CHANGES = (
    *(
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "reverse",
        "sort",
        "update",
        "popitem",
        "setdefault",
    ),
    *("__setitem__", "__delitem__", "__iadd__"),
)
_OF_DICTS = {
    "get": "def apply(self, key, default=None):\n    return self[key] if key in self else default\n",
    "copy": "def apply(self):\n    return {k: self[k] for k in self}\n",
    "items": "def apply(self):\n    return [(k, self[k]) for k in self]\n",
    "values": "def apply(self):\n    return [self[k] for k in self]\n",
}
_OF_CLASSES = {
    list: "def apply(x):\n    return [v for v in x]\n",
    tuple: "def apply(x):\n    return tuple([v for v in x])\n",
    dict: "def apply(x, **more):\n    return {**{k: x[k] for k in x}, **more}\n",
}
_OF_PAIRS = "def apply(pairs):\n    return {k: v for k, v in pairs}\n"
_made: dict[str, types.FunctionType] = {}


@functools.lru_cache(maxsize=512)
def _namespace(names: tuple[str, ...]) -> types.FunctionType:
    """`types.SimpleNamespace(a=..., b=...)`, written out."""
    given = ", ".join(names)
    text = f"def apply({'*, ' + given if names else ''}):\n    return built(cls, {names!r}, {given})\n"
    namespace = {"cls": types.SimpleNamespace, "built": trees.built}
    return made_from(text, "apply", namespace, f"namespace {' '.join(names)}")


def _getter(shown: str, function: Any) -> types.FunctionType:
    """What `operator.itemgetter(...)`, `attrgetter` or `methodcaller` does, written out."""
    _, parts = function.__reduce__()[:2]
    namespace = {f"part{i}": p for i, p in enumerate(parts)}
    if isinstance(function, operator.itemgetter):
        found = [f"x[part{i}]" for i in range(len(parts))]
    elif isinstance(function, operator.attrgetter):
        found = [f"x.{p}" for p in parts]
    else:
        found = [f"x.{parts[0]}({', '.join(f'part{i}' for i in range(1, len(parts)))})"]
    result = found[0] if len(found) == 1 else f"({', '.join(found)})"
    text = f"def apply(x):\n    return {result}\n"
    return made_from(text, "apply", namespace, f"{shown} {id(function):x}")


def _once(key: str, text: str, namespace: dict[str, Any] | None = None) -> types.FunctionType:
    if key not in _made:
        _made[key] = made_from(text, "apply", namespace or {}, key)
    return _made[key]


def is_namedtuple(cls: Any) -> bool:
    """Is `cls` a class made by `collections.namedtuple` or `typing.NamedTuple`, with its own way of
    construction?"""
    if not (isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return False
    return getattr(cls.__new__, "__module__", "").startswith("namedtuple_")


@functools.lru_cache(maxsize=512)
def _namedtuple_from(cls: type, count: int) -> types.FunctionType:
    """`cls._make(parts)` as a call with the parts one by one."""
    given = ", ".join(f"parts[{i}]" for i in range(count))
    text = f"def apply(parts):\n    return cls({given})\n"
    return made_from(text, "apply", {"cls": cls}, f"make {cls.__qualname__} {id(cls):x}")


@functools.lru_cache(maxsize=512)
def _constructor(cls: type) -> types.FunctionType:
    """A function with a class's signature that builds an instance step by step."""
    if is_namedtuple(cls):
        fields = ", ".join(cls._fields)  # type: ignore[attr-defined]
        text = f"def apply({fields}):\n    return cls({fields})\n"
        made = made_from(text, "apply", {"cls": cls}, f"construct {cls.__qualname__} {id(cls):x}")
        made.__defaults__ = tuple(cls._field_defaults.values()) or None  # type: ignore[attr-defined]
        return made
    if build_constructor is None:
        raise NoRule("the compiler is not loaded: import srcgrad.transforms")
    return build_constructor(cls)
