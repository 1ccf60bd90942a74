"""Where NumPy's functions put their result: `np.sum(x, 0, None, z)` as `np.sum(x, 0, out=z)`.

So every later pass finds an array that a call writes into under one name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import gast
import numpy as np

from srcgrad.runtime.rules import table
from srcgrad.transforms.tree import nodes


def name_results(tree: Any, lookup: Callable[[Any], Any]) -> None:
    """Pass what stands at the place of `out`, and behind it, by name, and an array that is changed first.

    >>> import gast
    >>> tree = gast.parse("np.sum(x, 0, None, z)")
    >>> name_results(tree, lambda func: np.sum)
    >>> call = tree.body[0].value
    >>> len(call.args), [k.arg for k in call.keywords]
    (3, ['out'])
    """
    for e in nodes.walk(tree):
        if not isinstance(e, gast.Call) or any(isinstance(a, gast.Starred) for a in e.args):
            continue
        found = lookup(e.func)
        first = e.keywords[0].arg if e.keywords and not e.args else None
        if first is not None and table.written_by(found) is not None and first == _names(found)[0]:
            e.args = [e.keywords.pop(0).value]
        names = _names(found) if len(e.args) > 1 else ()
        if "out" not in names or len(e.args) <= names.index("out"):
            continue
        first = names.index("out")
        moved = list(zip(names[first:], e.args[first:], strict=False))
        e.args = e.args[:first]
        e.keywords = [
            *(gast.keyword(n, a) for n, a in moved if not (isinstance(a, gast.Constant) and a.value is None)),
            *e.keywords,
        ]


METHODS = {
    **dict.fromkeys(("all", "any", "argmax", "argmin", "choose", "dot", "max", "min", "round"), 1),
    **dict.fromkeys(("clip", "compress", "cumprod", "cumsum", "mean"), 2),
    **dict.fromkeys(("prod", "std", "sum", "take", "var"), 2),
    "trace": 4,
}
"""Methods of arrays that take a place for their result, and where among the positional arguments."""


def result_of(e: Any, found: Any) -> list[Any]:
    """Where a call, of `found` or of a method of something unknown, puts its result."""
    given = [k.value for k in e.keywords if k.arg == "out"]
    names = _names(found)
    if "out" in names:
        given += e.args[names.index("out") :][:1]
    elif found is None and isinstance(e.func, gast.Attribute) and e.func.attr in METHODS:
        given += e.args[METHODS[e.func.attr] :][:1]
    return given


def name_method_result(e: Any) -> None:
    """The same for a call of a method of an array."""
    place = METHODS.get(e.func.attr, len(e.args))
    if len(e.args) == place + 1 and not any(isinstance(a, gast.Starred) for a in e.args):
        e.keywords = [gast.keyword("out", e.args.pop()), *e.keywords]


def _names(function: Any) -> tuple[str, ...]:
    if isinstance(function, np.ufunc):
        return (*(f"x{i}" for i in range(function.nin)), *(("out",) if function.nout == 1 else ()))
    if not callable(function) or not (getattr(function, "__module__", None) or "").startswith("numpy"):
        return ()
    return _signature(function)


@functools.cache
def _signature(function: Any) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
