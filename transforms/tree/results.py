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

from srcgrad.transforms.tree import nodes


def name_results(tree: Any, lookup: Callable[[Any], Any]) -> None:
    """Pass what stands at the place of `out`, and behind it, by name.

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
        names = _names(lookup(e.func)) if len(e.args) > 1 else ()
        if "out" not in names or len(e.args) <= names.index("out"):
            continue
        first = names.index("out")
        moved = list(zip(names[first:], e.args[first:], strict=False))
        e.args = e.args[:first]
        e.keywords = [
            *(gast.keyword(n, a) for n, a in moved if not (isinstance(a, gast.Constant) and a.value is None)),
            *e.keywords,
        ]


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
