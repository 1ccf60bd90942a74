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


class OutOfTime(Exception):
    pass


class Shrinker:
    """The smallest program found so far, and what is tried to make it smaller."""

    def __init__(self, text: str, fails: Callable[[str], bool], seconds: float) -> None:
        self.text, self.fails = text, fails
        self.end = time.monotonic() + seconds
        self.known = {text}

    def attempt(self, edit: Callable[[ast.Module], Any]) -> bool:
        """Applies an edit to the program, and keeps the result when it still fails."""
        if time.monotonic() > self.end:
            raise OutOfTime
        tree = ast.parse(self.text)
        edit(tree)
        try:
            made = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            ast.parse(made)
        except (ValueError, SyntaxError, AttributeError):
            return False
        if made in self.known:
            return False
        self.known.add(made)
        if not self.fails(made):
            return False
        self.text = made
        return True

    def run(self) -> str:
        try:
            before = ""
            while before != self.text:
                before = self.text
                self.remove_statements()
                for edits in (structure_edits, argument_edits, expression_edits):
                    self.one_by_one(edits)
        except OutOfTime:
            pass
        return self.text

    def remove_statements(self) -> None:
        """Delta debugging over the statements of all blocks: long runs of them first."""
        length = max(1, count(self.text) // 2)
        while True:
            start = count(self.text) - length
            while start > -length:
                self.attempt(partial(drop, start=max(0, start), end=start + length))
                start -= length
            if length == 1:
                return
            length //= 2

    def one_by_one(self, edits: Callable[[ast.Module], Iterator[Edit]]) -> None:
        k = 0
        while k < sum(1 for _ in edits(ast.parse(self.text))):
            if not self.attempt(partial(nth, edits, k)):
                k += 1


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 30.0) -> str:
    """The smallest program found in the time for which `fails` still holds."""
    return Shrinker(ast.unparse(ast.parse(text)) + "\n", fails, seconds).run()


def nth(edits: Callable[[ast.Module], Iterator[Edit]], k: int, tree: ast.Module) -> None:
    list(edits(tree))[k]()


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """All blocks of statements, an outer one before those in it."""
    for node in ast.walk(tree):
        for field in BLOCKS:
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def count(text: str) -> int:
    return sum(len(block) for block in blocks(ast.parse(text)))


def drop(tree: ast.Module, start: int, end: int) -> None:
    """Removes the statements from number `start` to `end`, in the order of `blocks`."""
    at = 0
    for block in list(blocks(tree)):
        left = [s for i, s in enumerate(block, at) if not start <= i < end]
        at += len(block)
        block[:] = left or ([] if block is tree.body else [ast.Pass()])


def structure_edits(tree: ast.Module) -> Iterator[Edit]:
    """Compound statements replaced by what is in them, and without their `else`."""
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
    code = ast.Module([s for s in tree.body if not ast.unparse(s).startswith("ARGS")], [])
    for node in ast.walk(code):
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
