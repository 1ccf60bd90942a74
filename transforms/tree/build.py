"""Short constructors for gast nodes, and the algebra that keeps emitted expressions free of noise.

>>> from srcgrad.transforms.write import unparse
>>> unparse(multiply(name("g"), divide(constant(1), name("y"))))
'g / y'
>>> unparse(add(name("a"), negative(multiply(name("b"), constant(2)))))
'a - b * 2'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gast


def name(identifier: str) -> gast.Name:
    return gast.Name(identifier, gast.Load(), None, None)


def target(identifier: str) -> gast.Name:
    return gast.Name(identifier, gast.Store(), None, None)


def parameter(identifier: str) -> gast.Name:
    return gast.Name(identifier, gast.Param(), None, None)


def constant(value: Any) -> gast.Constant:
    return gast.Constant(value, None)


def call(function: gast.expr | str, *args: gast.expr, **keywords: gast.expr) -> gast.Call:
    if isinstance(function, str):
        function = name(function)
        function.ours = (
            True  # a builtin that the user may have shadowed, or a name that emitted code brings along
        )
    return gast.Call(function, list(args), [gast.keyword(k, v) for k, v in keywords.items()])


def attribute(value: gast.expr | str, *path: str) -> gast.expr:
    result = name(value) if isinstance(value, str) else value
    for part in path:
        result = gast.Attribute(result, part, gast.Load())
    return result


def subscript(value: gast.expr, index: gast.expr, store: bool = False) -> gast.Subscript:
    return gast.Subscript(value, index, gast.Store() if store else gast.Load())


def tuple_(elements: Iterable[gast.expr]) -> gast.Tuple:
    return gast.Tuple(list(elements), gast.Load())


def list_(elements: Iterable[gast.expr]) -> gast.List:
    return gast.List(list(elements), gast.Load())


def assign(to: gast.expr | str, value: gast.expr, like: gast.stmt | None = None) -> gast.Assign:
    if isinstance(to, str):
        to = target(to)
    return at(gast.Assign([to], value, None), like)


def assign_tuple(names: Sequence[str], value: gast.expr, like: gast.stmt | None = None) -> gast.Assign:
    to = gast.Tuple([target(n) for n in names], gast.Store())
    return at(gast.Assign([to], value, None), like)


def augment(
    to: gast.expr | str, operator: gast.operator, value: gast.expr, like: gast.stmt | None = None
) -> gast.AugAssign:
    if isinstance(to, str):
        to = target(to)
    return at(gast.AugAssign(to, operator, value), like)


def if_(test: gast.expr, body: list[Any], orelse: list[Any] | None = None, like: Any = None) -> gast.If:
    return at(gast.If(test, body, orelse or []), like)


def expression(value: gast.expr, like: gast.stmt | None = None) -> gast.Expr:
    return at(gast.Expr(value), like)


def at(node: Any, like: Any) -> Any:
    """`node`, said to stand where `like` stands: errors and comments about it show that line."""
    if like is not None:
        for field in ("lineno", "col_offset", "end_lineno", "end_col_offset", "origin"):
            if hasattr(like, field) and not hasattr(node, field):
                setattr(node, field, getattr(like, field))
    return node


_SHARED = (gast.expr_context, gast.operator, gast.unaryop, gast.boolop)


def clone(node: Any) -> Any:
    """A deep copy of a tree; several times faster than `copy.deepcopy`, and it keeps attributes such as
    `fact`."""
    if type(node) is list:
        return [clone(n) for n in node]
    if not isinstance(node, gast.AST):
        return node
    kind = type(node)
    new = gast.AST.__new__(kind)
    own = new.__dict__
    own.update(node.__dict__)
    for field in kind._fields:
        value = own.get(field)
        if type(value) is list:
            own[field] = [clone(n) for n in value]
        elif isinstance(value, gast.AST) and not isinstance(value, _SHARED):
            own[field] = clone(value)
    return new


class Substitute(gast.NodeTransformer):
    """Replaces names that are read by expressions: `Substitute({"x": node}).visit(tree)`."""

    def __init__(self, by: dict[str, gast.expr]) -> None:
        self.by = by

    def visit_Name(self, node: gast.Name) -> gast.expr:
        if node.id in self.by and isinstance(node.ctx, (gast.Load, gast.Del)):
            return clone(self.by[node.id])
        return node

    def visit_Lambda(self, node: gast.Lambda) -> gast.expr:
        """Parameters hide the names around; default values belong to what is around."""
        given = node.args
        given.defaults = [self.visit(d) for d in given.defaults]
        given.kw_defaults = [d and self.visit(d) for d in given.kw_defaults]
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        hidden = {p.id for p in every if p is not None}
        around, self.by = self.by, {n: e for n, e in self.by.items() if n not in hidden}
        node.body = self.visit(node.body)
        self.by = around
        return node


class Recompute(Substitute):
    """Like `Substitute`; products into which something was put are simplified."""

    def __init__(self, by: dict[str, gast.expr], floating: Callable[[gast.expr], bool]) -> None:
        super().__init__(by)
        self.floating = floating

    def visit_BinOp(self, node: gast.BinOp) -> gast.expr:
        put_in = any(isinstance(e, gast.Name) and e.id in self.by for e in (node.left, node.right))
        self.generic_visit(node)
        if put_in and isinstance(node.op, gast.Mult) and (is_number(node.left) or is_number(node.right)):
            return multiply(node.left, node.right, self.floating)
        return node


def root(e: Any) -> Any:
    """The name at the start of a chain of subscripts and attributes.

    >>> root(gast.parse("a.b[0].c", mode="eval").body).id
    'a'
    """
    while isinstance(e, (gast.Subscript, gast.Attribute)):
        e = e.value
    return e


# Algebra ----------------------------------------------------------------------------------------------------


def is_number(node: gast.expr, value: float | None = None) -> bool:
    if not isinstance(node, gast.Constant) or type(node.value) not in (int, float):
        return False
    return value is None or node.value == value


def is_literal(e: Any) -> bool:
    """A constant, perhaps with a sign."""
    return isinstance(e.operand if isinstance(e, gast.UnaryOp) else e, gast.Constant)


def is_zero(node: gast.expr) -> bool:
    return is_number(node, 0)


def negative(a: gast.expr) -> gast.expr:
    if isinstance(a, gast.UnaryOp) and isinstance(a.op, gast.USub):
        return a.operand
    if is_number(a):
        return constant(-a.value)
    return gast.UnaryOp(gast.USub(), a)


def _sign(a: gast.expr) -> tuple[bool, gast.expr]:
    """Whether `a` carries a minus sign, and `a` without it."""
    if isinstance(a, gast.UnaryOp) and isinstance(a.op, gast.USub):
        return True, a.operand
    if is_number(a) and a.value < 0:
        return True, constant(-a.value)
    if isinstance(a, gast.BinOp) and isinstance(a.op, (gast.Mult, gast.Div)):
        minus, left = _sign(a.left)
        if minus:
            return True, gast.BinOp(left, a.op, a.right)
    return False, a


def add(a: gast.expr, b: gast.expr) -> gast.expr:
    minus, positive = _sign(b)
    if minus:
        return gast.BinOp(a, gast.Sub(), positive)
    minus, positive = _sign(a)
    if minus:
        return gast.BinOp(b, gast.Sub(), positive)
    return gast.BinOp(a, gast.Add(), b)


def subtract(a: gast.expr, b: gast.expr) -> gast.expr:
    return add(a, negative(b))


def multiply(a: gast.expr, b: gast.expr, floating: Callable[[gast.expr], bool] = lambda e: True) -> gast.expr:
    """The product a * b of a cotangent and a factor; ones vanish, signs move outwards, 1 / y becomes a
    division.

    A factor that is not `floating`, so that it may be an integer or a boolean, keeps the one that makes it a
    float: NumPy's integers overflow, and its booleans have no minus.
    """
    if is_number(a) and is_number(b):
        return constant(a.value * b.value)
    if is_literal(a) and is_number(_sign(a)[1], 1) and not floating(b):
        return gast.BinOp(constant(-1.0 if _sign(a)[0] else 1.0), gast.Mult(), b)
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    if is_number(b, -1):
        return negative(a)
    minus_a, a = _sign(a)
    minus_b, b = _sign(b)
    if is_number(a) and is_number(b):
        return constant(-a.value * b.value if minus_a != minus_b else a.value * b.value)
    if is_number(a, 1):
        product = b
    elif isinstance(b, gast.BinOp) and isinstance(b.op, gast.Mult):
        product = gast.BinOp(multiply(a, b.left), gast.Mult(), b.right)
    elif isinstance(b, gast.BinOp) and isinstance(b.op, gast.Div):
        product = gast.BinOp(multiply(a, b.left), gast.Div(), b.right)
    else:
        product = gast.BinOp(a, gast.Mult(), b)
    return negative(product) if minus_a != minus_b else product


def divide(a: gast.expr, b: gast.expr) -> gast.expr:
    if is_number(b, 1):
        return a
    return gast.BinOp(a, gast.Div(), b)


def total(terms: Sequence[gast.expr]) -> gast.expr:
    """The sum of one or more terms, positive ones first so that no leading minus is needed."""
    ordered = sorted(terms, key=lambda t: _sign(t)[0])
    result = ordered[0]
    for term in ordered[1:]:
        result = add(result, term)
    return result
