"""Build: what the front door asks of the compiler."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

import srcgrad.transforms.constructors  # noqa: F401 (tells the dispatcher)
from srcgrad.runtime import dispatch, operators, trees
from srcgrad.runtime.dependencies import Dependency, stale
from srcgrad.runtime.errors import AliasError
from srcgrad.runtime.rules import table
from srcgrad.transforms.callee import Callee
from srcgrad.transforms.compile import (
    Compiler,
    Emitter,
    Pair,
    Unit,
    annotated_facts,
    arrays_of,
    classes_of,
    fact_of,
    hashable,
    may_write,
    settled,
    weakened,
)
from srcgrad.transforms.facts import Fact
from srcgrad.transforms.tangent import compile_jvp, halves, root


class Emitted(NamedTuple):
    """An emitted function, its text, and what must still hold for it to be valid: (globals, name, value)."""

    function: Any
    source: str
    dependencies: list[Dependency]


def gradient(df: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leading: int) -> Emitted:
    """The emitted gradient for arguments of the kinds of `args` and `kwargs`."""
    function = df.plain_for(args[leading:] if leading else args, kwargs)
    ruled = table.find(df.primal) is not None
    signature = inspect.signature(function, follow_wrapped=False) if ruled else df._parameters
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{df._title}() {error}") from None
    wanted = df._wanted(leading, args[leading:], signature)
    given: dict[str, Fact] = {}
    floating = set()
    for n, v in bound.arguments.items():
        p = signature.parameters[n]
        if p.kind is p.VAR_POSITIONAL:
            given[n] = Fact("tuple", items=tuple(fact_of(x, f"{n}[{i}]") for i, x in enumerate(v)))
        elif p.kind is p.VAR_KEYWORD:
            given[n] = Fact("dict", items=tuple((k, fact_of(x, f"{n}[{k}]")) for k, x in v.items()))
        else:
            given[n] = fact_of(v, n)
            if (type(v) is np.ndarray and v.dtype == np.float64) or isinstance(v, float):
                floating.add(n)
    for w in wanted:
        base, _, position = w.partition(":")
        value: Any = bound.arguments.get(
            base, signature.parameters[base].default if base in signature.parameters else None
        )
        trees.check_argument(value[int(position)] if position else value, w)
    seen = operators.seen_in(bound.arguments.values())
    return _emit(df, function, given, wanted, floating, seen)


def generic_gradient(df: Any, leading: int) -> Emitted:
    """The emitted gradient for arguments of any kind, or of the kinds that annotations tell."""
    wanted = df._wanted(leading, ())
    function = df.plain if not hasattr(df.inner, "_generic") else df.inner._generic().function
    facts = annotated_facts(function)
    hints = getattr(function, "__annotations__", {})
    floats = {n for n in facts if hints.get(n) in (float, "float")}
    return _emit(df, function, facts, wanted, floats)


def _emit(
    df: Any,
    function: types.FunctionType,
    given: Any,
    wanted: Any,
    floating: set[str],
    classes: Iterable[type] = (),
) -> Emitted:
    argnums = df.argnums if df.argnames is None else (0 if isinstance(df.argnames, str) else (0,))
    names = tuple(dict.fromkeys(w.partition(":")[0] for w in wanted))

    def make(compiler: Compiler) -> Emitted:
        unit = Unit(compiler, Callee(function), given, names)
        emitter = Emitter(compiler, unit)
        emitter.compiler_floating = emitter.compiler_floats = floating
        made, text = emitter.gradient(argnums, df.with_value, df.has_aux, wanted)
        texts = [text]
        seen: list[Pair] = []

        def visit(pairs: list[Pair]) -> None:
            for p in pairs:
                if p not in seen:
                    seen.append(p)
                    texts.extend(p.sources)
                    visit(p.uses)

        visit(emitter.uses)
        return Emitted(made, "\n\n\n".join(t.rstrip() for t in texts) + "\n", compiler.dependencies())

    return settled(make, classes)


def compile_call(
    function: types.FunctionType,
    first: tuple[str, ...],
    objects: tuple[Any, ...],
    args: Any,
    kwargs: Any,
    kind: str,
    positions: tuple[int, ...] | None = None,
    exposed: bool = False,
) -> tuple[Any, Any, tuple[str, ...]]:
    """For the runtime dispatcher: the halves of a callee for these arguments, and its parameters in order;
    with `positions`, for a derivative with respect to the arguments that stand there only."""
    signature = inspect.signature(function, follow_wrapped=False)
    captured: tuple[str, ...] = ()
    given: dict[str, Fact] = {}
    if kind == "function":
        captured = first
        given = {n: _weak(fact_of(v, n)) for n, v in zip(first, objects, strict=True)}
        before: tuple[Any, ...] = ()
    else:
        before = objects
    bound = signature.bind(*before, *args, **kwargs)
    parameters: list[str] = list(captured)
    for n, p in signature.parameters.items():
        if n not in bound.arguments or n in captured:
            continue
        v = bound.arguments[n]
        if p.kind is p.VAR_POSITIONAL:
            given[n] = Fact("tuple", items=tuple(_weak(fact_of(x, f"{n}[{i}]")) for i, x in enumerate(v)))
            parameters.append("*" + n)
        elif p.kind is p.VAR_KEYWORD:
            given[n] = Fact("dict", items=tuple((k, _weak(fact_of(x, f"{n}[{k}]"))) for k, x in v.items()))
            parameters.append("**" + n)
        else:
            given[n] = _weak(fact_of(v, n))
            parameters.append(("=" if n in kwargs or p.kind is p.KEYWORD_ONLY else "") + n)
    if positions is not None:
        parameters = [p for i, p in enumerate(parameters[len(captured) + len(before) :]) if i in positions]
    wanted = tuple(p.lstrip("*=") for p in parameters)
    callee = Callee(function, captured=captured)
    fixed = dispatch.fixed_of(function, captured)
    facts = tuple(sorted((k, hashable(v)) for k, v in given.items()))
    seen = operators.seen_in([*objects, *args, *kwargs.values()])
    key = (function.__code__, facts, wanted, captured, tuple(id(v) for v in fixed), exposed, seen)
    known = _CALLS.get(key)
    if known is not None and stale(known[2]):
        known = None  # a function that it calls was defined anew
    if known is None:

        def make(compiler: Compiler) -> Any:
            _refuse_writes(compiler, callee, given)
            seen_later = frozenset({*given, "return"}) if exposed else frozenset[str]()
            pair = compiler.pair(callee, given, wanted, exposed=seen_later)
            return pair.forward.cell_contents, pair.reverse.cell_contents, compiler.dependencies(), fixed

        known = _CALLS[key] = settled(make, seen)
    reverse = known[1]
    if len(wanted) == 1:
        reverse = _single(reverse)
    return known[0], reverse, tuple(parameters)


def _refuse_writes(compiler: Compiler, callee: Callee, given: dict[str, Fact]) -> None:
    written, _ = compiler.effects(callee, classes_of(given), arrays_of(given))
    touched = [n for n in given if _mutable(given[n]) and may_write(n, written, given[n].kind)]
    if touched:
        code = callee.function.__code__
        raise AliasError(
            f"{code.co_filename}:{code.co_firstlineno}: `{callee.function.__qualname__}` writes into its "
            f"argument `{touched[0]}`, which a differentiated caller can't follow here. Let it return a "
            "new value instead."
        )


def _mutable(fact: Fact) -> bool:
    return fact.kind not in ("scalar", "string", "none", "function")


def _single(reverse: Any) -> Any:
    return lambda g, saved: (reverse(g, saved),)


def _weak(fact: Fact) -> Fact:
    return weakened(fact, "v")


_CALLS: dict[Any, Any] = {}


def forget() -> None:
    """Drop the compiled calls: a rule was filed."""
    _CALLS.clear()


dispatch.compiler = compile_call
dispatch.tangent_compiler = compile_jvp

__all__ = ["generic_gradient", "gradient", "halves", "root"]
