"""Callees: the functions that a function calls, and which parameters receive what."""

from __future__ import annotations

import bisect
import re
import sys
import types
from dataclasses import dataclass
from typing import Any

import gast

from srcgrad.runtime.rules import table

DISCRETE = {
    *(
        len,
        isinstance,
        issubclass,
        range,
        print,
        str,
        repr,
        type,
        hasattr,
        id,
        int,
        round,
        bool,
        any,
        all,
        callable,
        hash,
    ),
    *(format, ord, chr, input, open, slice, bytes),
}
"""Functions whose result never carries a derivative."""


def discrete(function: Any) -> bool:
    """Does the result of calling `function` never carry a derivative?"""
    try:
        if function in DISCRETE or function in (bisect.bisect, bisect.bisect_left, bisect.bisect_right):
            return True
    except TypeError:
        return False
    rule = table.find(function)
    if rule is not None:
        return not rule.differentiable and rule.alias == "fresh"
    module = (getattr(function, "__module__", None) or "").split(".")[0]
    return module in (
        "logging",
        "warnings",
        "time",
        "random",
        "datetime",
        "pprint",
        "traceback",
    ) or isinstance(getattr(function, "__self__", None), _loggers())


def _loggers() -> tuple[type, ...]:
    logging = sys.modules.get("logging")
    return (logging.Logger,) if logging is not None else ()


def only_computes(function: Any) -> bool:
    """Is a function known to leave its arguments as they are?"""
    return function is not None and table.find(function) is not None and not table.written_by(function)


@dataclass
class Callee:
    """A Python function to differentiate, or a function defined inside another one (`definition`, with its
    parent)."""

    function: types.FunctionType
    definition: Any = None
    parent: Any = None
    captured: tuple[str, ...] = ()

    @property
    def key(self) -> Any:
        # Functions that share their code may differ in their defaults and in what they have captured.
        return (self.function if self.definition is None else id(self.definition), self.captured)

    @property
    def place(self) -> Any:
        """The same for what is read from the same text again."""
        d = self.definition
        return (
            self.function
            if d is None
            else (self.function, d.name, getattr(d, "lineno", 0), getattr(d, "col_offset", 0))
        )

    @property
    def name(self) -> str:
        if self.definition is not None:
            return str(self.definition.name)
        called = self.function.__name__
        return (
            "lambda_"
            if called == "<lambda>"
            else called
            if called.isidentifier()
            else re.sub(r"\W+", "_", called)
        )


def bind(args: Any, node: Any, callee: Callee) -> dict[str, list[Any]]:
    """Which atoms of a call without stars each parameter receives."""
    bound: dict[str, list[Any]] = {}
    captured = [gast.Name(now, gast.Load(), None, None) for _, now in getattr(node, "captured", ())]
    for free, atom in zip(callee.captured, captured, strict=False):
        bound[free] = [atom]
    positional = [p.id for p in args.posonlyargs + args.args]
    for p, atom in zip(positional, node.args, strict=False):
        bound[p] = [atom]
    if args.vararg is not None:
        bound[args.vararg.id] = list(node.args[len(positional) :])
    named = set(positional) - {p.id for p in args.posonlyargs} | {p.id for p in args.kwonlyargs}
    for k in node.keywords:
        if k.arg in named:
            bound[k.arg] = [k.value]
        elif args.kwarg is not None:
            bound.setdefault(args.kwarg.id, []).append(k.value)
    return bound
