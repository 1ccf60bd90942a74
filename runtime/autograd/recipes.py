"""Recipes: a rule cut down to the gradients that are needed, and what it then needs to keep.

A rule's text is read once. For each combination of inputs that need a gradient, the entries that nobody asks
for are taken out of its `return`s, statements that served only these are dropped, and what the rest mentions
is what a node must save: a name whose value is read, or only its shape and dtype, or nothing. So `x * w`
saves `w` alone when only `x` needs a gradient, and `x + w` saves nothing. When a rule's text can't be found,
the whole rule is used and everything is saved: slower, never wrong.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srcgrad.runtime import support
from srcgrad.runtime.rules.table import Rule

SHAPE_ATTRIBUTES = {"shape", "ndim", "size", "dtype", "itemsize"}
_SHAPE_ONLY: dict[Any, int] = {
    **dict.fromkeys(
        [
            np.shape,
            np.ndim,
            np.size,
            np.zeros_like,
            np.ones_like,
            np.empty_like,
            np.full_like,
            np.iscomplexobj,
        ],
        0,
    ),
    **dict.fromkeys([np.isrealobj, np.result_type, len, isinstance, type, support.count], 0),
    **dict.fromkeys([support.unbroadcast, support.expand, support.scatter, support.split_like], 1),
    **dict.fromkeys([support.put_along, support.carried, support.diagonal_scatter, support.unrepeat], 1),
    **dict.fromkeys([support.untile, support.window_scatter, support.unpad, support.unstack], 1),
    **dict.fromkeys([support.matmul_left, support.dot_left, support.inner_left, support.tensordot_left], 1),
    **dict.fromkeys(
        [support.matmul_right, support.dot_right, support.inner_right, support.tensordot_right], 2
    ),
    support.read_order: 0,  # Tensors are read in order "C" or "F" only
    support.unkron_left: 1,
    support.unkron_right: 2,
}
"""Functions that read only the shape and dtype of one argument: its position."""


@dataclass
class Recipe:
    """`function(y, *args)` of an elementwise rule, or `function(g, y, *args)`, cut down to what is needed."""

    function: Callable[..., Any]
    values: frozenset[str]
    """Names whose value the function reads."""
    shapes: frozenset[str]
    """Names of which it reads only shape and dtype."""
    constants: tuple[Any, ...] | None = None
    """For an elementwise rule whose needed partials are all constants: these, else None."""
    result: bool = True
    """Whether it reads the result."""
    keeps: tuple[bool, ...] = field(default=())
    """For each parameter in order: whether its value is read."""
    outline: bool = False
    """Whether it reads only shape and dtype of the result."""


@functools.cache
def recipe(rule: Rule, needs: tuple[bool, ...]) -> Recipe:
    """The recipe of `rule` when the gradients of its `wrt` parameters in `needs` are wanted."""
    function = rule.partials or rule.reverse
    if function is None:
        raise TypeError(f"{rule.name} has no derivative")
    lead = 1 if rule.elementwise else 2
    names = list(inspect.signature(function).parameters)
    tree = _tree(function)
    if tree is None:
        everything = frozenset(names)
        return Recipe(function, everything, frozenset(), None, True, (True,) * (len(names) - lead))
    _cut(tree, needs, len(rule.wrt))
    values, shapes = _mentions(tree, function.__globals__)
    return Recipe(
        _compile(tree, function),
        frozenset(values),
        frozenset(shapes - values),
        _constants(tree) if rule.elementwise else None,
        names[lead - 1] in values,
        tuple(n in values for n in names[lead:]),
        names[lead - 1] in shapes - values,
    )


def _tree(function: Callable[..., Any]) -> ast.FunctionDef | None:
    if inspect.unwrap(function) is not function:
        return None
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef) or function.__closure__:
        return None
    ast.increment_lineno(tree, first - 1)
    tree.decorator_list = []
    tree.returns = None
    return tree


def _cut(tree: ast.FunctionDef, needs: tuple[bool, ...], count: int) -> None:
    """Replace the entries that nobody needs by None, and drop assignments to names that are then never
    read."""
    if not all(needs):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Return)
                and isinstance(node.value, ast.Tuple)
                and len(node.value.elts) == count
            ):
                node.value.elts = [
                    e if need else ast.copy_location(ast.Constant(None), e)
                    for e, need in zip(node.value.elts, needs, strict=True)
                ]
    while True:
        read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        dropped = _Unread(read)
        dropped.visit(tree)
        if not dropped.found:
            return


class _Unread(ast.NodeTransformer):
    def __init__(self, read: set[str]):
        self.read = read
        self.found = False

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        names = {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        plain = all(
            isinstance(n, ast.Name | ast.Tuple | ast.Store) for t in node.targets for n in ast.walk(t)
        )
        if plain and not names & self.read:
            self.found = True
            return ast.copy_location(ast.Pass(), node)
        return node


def _mentions(tree: ast.FunctionDef, scope: dict[str, Any]) -> tuple[set[str], set[str]]:
    values: set[str] = set()
    shapes: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            values.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in SHAPE_ATTRIBUTES
        ):
            shapes.add(node.value.id)
        elif isinstance(node, ast.Compare) and all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops):
            shapes.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        elif isinstance(node, ast.Call):
            called = _resolve(node.func, scope)
            for i, argument in enumerate(node.args):
                if isinstance(argument, ast.Name) and called is not None and _SHAPE_ONLY.get(called) == i:
                    shapes.add(argument.id)
                else:
                    visit(argument)
            for keyword in node.keywords:
                visit(keyword.value)
            visit(node.func)
        else:
            for child in ast.iter_child_nodes(node):
                visit(child)

    for statement in tree.body:
        visit(statement)
    return values, shapes


def _resolve(node: ast.AST, scope: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        found = scope.get(node.id, __builtins__.get(node.id) if isinstance(__builtins__, dict) else None)
        if found is None:
            found = {"len": len, "isinstance": isinstance, "type": type}.get(node.id)
    elif isinstance(node, ast.Attribute):
        owner = _resolve(node.value, scope)
        found = getattr(owner, node.attr, None) if owner is not None else None
    else:
        found = None
    try:
        hash(found)
    except TypeError:
        return None
    return found


def _constants(tree: ast.FunctionDef) -> tuple[Any, ...] | None:
    statements = [s for s in tree.body if not isinstance(s, ast.Pass)]
    if statements and isinstance(statements[0], ast.Expr):
        statements = statements[1:]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return) or statements[0].value is None:
        return None
    value = statements[0].value
    try:
        found = [ast.literal_eval(e) for e in (value.elts if isinstance(value, ast.Tuple) else [value])]
    except ValueError:
        return None
    return tuple(found) if all(c in (1, -1, None) for c in found) else None


def _compile(tree: ast.FunctionDef, function: Callable[..., Any]) -> Callable[..., Any]:
    filename = inspect.getsourcefile(function) or "<rule>"
    module = ast.fix_missing_locations(ast.Module([_without_defaults(tree)], []))
    made: dict[str, Any] = {}
    exec(compile(module, filename, "exec"), function.__globals__, made)
    result: Any = made[function.__name__]
    result.__defaults__ = function.__defaults__
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def _without_defaults(tree: ast.FunctionDef) -> ast.FunctionDef:
    for argument in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]:
        argument.annotation = None
    return tree
