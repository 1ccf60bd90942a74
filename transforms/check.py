"""Check: refuse at once what no later pass could differentiate, wherever it stands.

Before: the tree that `read` gives.   After: the same tree, or an error that shows the construct, says why,
and what to do.
"""

from __future__ import annotations

import builtins
from typing import Any

import gast

from srcgrad.runtime.errors import UnsupportedSyntax
from srcgrad.transforms.read import Source, fail
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.scope import MISSING, Scope
from srcgrad.transforms.write import unparse

REFUSED: dict[type, tuple[str, str]] = {
    gast.Yield: ("`yield`", "A generator has no single result. Collect the values in a list and return it."),
    gast.YieldFrom: (
        "`yield from`",
        "A generator has no single result. Collect the values in a list and return it.",
    ),
    gast.Await: (
        "`await`",
        "A coroutine has no result until it is run. Differentiate a plain function, and await outside.",
    ),
    gast.AsyncFor: ("`async for`", "Differentiate a plain function, and await outside of it."),
    gast.AsyncWith: ("`async with`", "Differentiate a plain function, and await outside of it."),
}
DYNAMIC = {builtins.exec, builtins.eval, builtins.locals, builtins.globals, builtins.vars}
if hasattr(gast, "TryStar"):
    REFUSED[gast.TryStar] = ("`except*`", "Use `except`.")


MUTATORS = {"pop", "remove", "clear", "reverse", "sort", "update", "fill", "put", "add", "resize"}
WRITERS = {"append", "extend", "insert", "popitem", "setdefault", "__setitem__"}
"""Methods that write into their object; the names of the second kind are hardly used for data."""


def check(source: Source, tree: gast.FunctionDef, scope: Scope) -> None:
    if isinstance(tree, gast.AsyncFunctionDef):
        raise fail(
            UnsupportedSyntax,
            source,
            tree,
            "cannot differentiate an `async` function (a coroutine)",
            "A coroutine has no result until it is run. Differentiate a plain function, and await outside.",
        )
    calls = {id(n.func) for n in _own_nodes(tree.body) if isinstance(n, gast.Call)}
    local = dataflow.bound_names(tree.body)
    for node in _own_nodes(tree.body):
        if (
            isinstance(node, gast.Attribute)
            and isinstance(node.ctx, gast.Load)
            and id(node) not in calls
            and (node.attr in WRITERS or (node.attr in MUTATORS and getattr(node.value, "id", "") in local))
            and scope.lookup(node) is MISSING
        ):
            owner = unparse(node.value)
            raise fail(
                UnsupportedSyntax,
                source,
                node,
                f"cannot differentiate the method `{owner}.{node.attr}` without its call",
                f"It writes into `{owner}`, and where it will be called can't be told. Call it directly.",
            )
        found = REFUSED.get(type(node))
        if found is not None:
            raise fail(UnsupportedSyntax, source, node, f"cannot differentiate {found[0]}", found[1])
        if isinstance(node, gast.AsyncFunctionDef):
            raise fail(
                UnsupportedSyntax,
                source,
                node,
                "cannot differentiate a nested `async` function",
                "Use a plain function.",
            )
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Name):
            called = scope.name(node.func.id)
            if type(called).__name__ == "builtin_function_or_method" and called in DYNAMIC:
                why = "It sees or changes variables that the compiler can't. Write the code out."
                raise fail(UnsupportedSyntax, source, node, f"cannot differentiate `{node.func.id}`", why)


def _own_nodes(body: list[Any]) -> Any:
    """All nodes of a function body, also in comprehensions and lambdas, but not in nested functions."""
    todo: list[Any] = list(reversed(body))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            continue
        todo.extend(reversed(list(nodes.children(node))))
