"""Makes a failing program small: removes and simplifies parts while it fails in the same way."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Edit = Callable[[], Any]
BLOCKS = ("body", "orelse", "finalbody")


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 30.0) -> str:
    """The smallest program found in the time for which `fails` still holds."""
    end = time.monotonic() + seconds
    text = ast.unparse(ast.parse(text)) + "\n"
    position = 0
    while time.monotonic() < end:
        tried = False
        for i, candidate in enumerate(candidates(text)):
            if i < position:
                continue
            tried = True
            if time.monotonic() > end:
                return text
            if candidate != text and fails(candidate):
                text, position = candidate, i
                break
        else:
            if not tried or position == 0:
                return text
            position = 0
    return text


def candidates(text: str) -> Iterator[str]:
    """Simpler programs, the boldest simplification first."""
    size = sum(1 for _ in ast.walk(ast.parse(text)))
    for step in (statement_edits, argument_edits, expression_edits):
        k = 0
        while True:
            tree = ast.parse(text)
            edits = step(tree)
            edit = next((e for i, e in enumerate(edits) if i == k), None)
            if edit is None:
                break
            k += 1
            edit()
            try:
                made = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
                ast.parse(made)
            except (ValueError, SyntaxError, AttributeError):
                continue
            if sum(1 for _ in ast.walk(tree)) < size or step is not statement_edits:
                yield made


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in BLOCKS:
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def statement_edits(tree: ast.Module) -> Iterator[Edit]:
    """Runs of statements removed, compound statements replaced by what is in them."""
    for block in blocks(tree):
        for length in sorted({len(block), len(block) // 2, 2, 1}, reverse=True):
            for start in range(0, len(block) - length + 1, max(1, length)):
                if length and not (length == 1 and isinstance(block[start], ast.Pass)):
                    empty = length == len(block) and block is not tree.body
                    yield partial(replace, block, start, start + length, [ast.Pass()] if empty else [])
    for block in blocks(tree):
        for i, s in enumerate(block):
            if isinstance(s, (ast.FunctionDef, ast.ClassDef)):
                continue
            for field in BLOCKS:
                inner = getattr(s, field, None)
                if inner:
                    yield partial(replace, block, i, i + 1, inner)
                    if field != "body":
                        yield partial(setattr, s, field, [])
            if isinstance(s, ast.Match):
                for case in s.cases:
                    yield partial(replace, block, i, i + 1, case.body)
                    if len(s.cases) > 1:
                        yield partial(s.cases.remove, case)


def argument_edits(tree: ast.Module) -> Iterator[Edit]:
    """Parameters of `f` removed together with their values."""
    f = next((s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == "f"), None)
    assignments = [s for s in tree.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "ARGS"]
    if f is None or not assignments or not isinstance(assignments[0].value, ast.Tuple):
        return
    values = assignments[0].value.elts

    def remove(i: int) -> None:
        f.args.args.pop(i)
        values.pop(i)

    for i in range(min(len(f.args.args), len(values))):
        yield partial(remove, i)


def expression_edits(tree: ast.Module) -> Iterator[Edit]:
    """Expressions replaced by a part of themselves or by a constant."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and field not in ("target", "func", "ctx", "slice"):
                for smaller in parts(value):
                    yield partial(setattr, node, field, smaller)
            elif isinstance(value, list) and field in ("elts", "args", "values", "comparators"):
                for i, v in enumerate(value):
                    if isinstance(v, ast.expr):
                        for smaller in parts(v):
                            yield partial(value.__setitem__, i, smaller)
                    if len(value) > 1 and field in ("elts", "values") and not isinstance(node, ast.Dict):
                        yield partial(value.pop, i)
        if isinstance(node, ast.Call):
            for k in node.keywords:
                yield partial(node.keywords.remove, k)


def replace(block: list[ast.stmt], start: int, end: int, new: list[ast.stmt]) -> None:
    block[start:end] = new


def parts(e: ast.expr) -> Iterator[ast.expr]:
    """Simpler expressions, likely of the same type."""
    simpler: list[ast.expr] = []
    match e:
        case ast.Compare() | ast.BoolOp():
            simpler = [
                ast.Constant(True),
                ast.Constant(False),
                *(e.values if isinstance(e, ast.BoolOp) else []),
            ]
        case ast.Call(args=args):
            simpler = [*args, ast.Constant(1.5)]
            if isinstance(e.func, ast.Attribute) and not isinstance(e.func.value, ast.Name):
                simpler.append(e.func.value)
        case ast.Subscript(value=value):
            simpler = [value, ast.Constant(1.5)]
        case ast.IfExp(body=body, orelse=orelse):
            simpler = [body, orelse]
        case ast.BinOp(left=left, right=right):
            simpler = [left, right, ast.Constant(1.5)]
        case ast.UnaryOp(operand=operand):
            simpler = [operand]
        case ast.NamedExpr(value=value):
            simpler = [value]
        case ast.ListComp() | ast.GeneratorExp():
            simpler = [e.generators[0].iter]
    yield from (copy.deepcopy(s) for s in simpler if not isinstance(s, (ast.Starred, ast.Slice)))
