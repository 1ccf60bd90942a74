"""Iterators as lists: what `__iter__` yields, collected, for a caller that takes all of it at once."""

from __future__ import annotations

import builtins
from typing import Any

import gast

from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import assign, at, attribute, call, expression, list_, name
from srcgrad.transforms.tree.names import Names, identifiers
from srcgrad.transforms.tree.scope import Scope

YIELDS = (gast.Yield, gast.YieldFrom)


def collected(tree: Any, scope: Scope) -> None:
    """Makes an `__iter__` return the list of what it would yield.

    >>> from srcgrad.transforms.write import unparse
    >>> tree = gast.parse("def __iter__(self):\\n    yield self.x\\n    yield from self.rest").body[0]
    >>> collected(tree, Scope(lambda: 0))
    >>> print(unparse(tree))
    def __iter__(self):
        items = []
        items.append(self.x)
        items.extend(self.rest)
        return items
    """
    own = [n for s in tree.body if not isinstance(s, dataflow.SCOPES) for n in nodes.walk(s)]
    yields = [n for n in own if isinstance(n, YIELDS)]
    if not yields:
        for s in own:
            value = s.value if isinstance(s, gast.Return) else None
            if isinstance(value, gast.Call) and scope.lookup(value.func) is builtins.iter:
                if len(value.args) == 1 and not value.keywords:
                    s.value = at(call("list", *value.args), value)
        return
    statements = {id(s.value) for s in own if isinstance(s, gast.Expr)}
    if any(id(y) not in statements for y in yields):
        return  # it receives what is sent to it: refused as a generator
    items = Names(identifiers(tree)).fresh("items")
    tree.body = [
        at(assign(items, list_([])), tree.body[0]),
        *[_Collect(items).visit(s) for s in tree.body],
        at(gast.Return(name(items)), tree.body[-1]),
    ]


class _Collect(gast.NodeTransformer):
    def __init__(self, items: str) -> None:
        self.items = items

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_Lambda = visit_FunctionDef

    def visit_Expr(self, node: Any) -> Any:
        if isinstance(node.value, YIELDS):
            method = "append" if isinstance(node.value, gast.Yield) else "extend"
            value = node.value.value or gast.Constant(None, None)
            made = at(call(attribute(name(self.items), method), value), node.value)
            return at(expression(made, node), node)
        return node

    def visit_Return(self, node: Any) -> Any:
        return at(gast.Return(name(self.items)), node)
