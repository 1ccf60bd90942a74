"""Verify: does a tree have the form that a pass promises to leave behind?

One verifier for each grammar that is stated under "After" in a pass's docstring. Tests run them between the
passes; a violation raises `BrokenPromise`, which shows the statement.

>>> import gast
>>> after_check(gast.parse("def f(x):\\n    yield x").body[0])
Traceback (most recent call last):
    ...
srcgrad.transforms.tree.verify.BrokenPromise: after check: Yield is left in
(yield x)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gast

from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.write import unparse

Block = list[Any]
Carries = Callable[[Any], bool]
"""May the value of an expression carry a derivative?"""

PLAIN = (
    *(gast.Assign, gast.AugAssign, gast.If, gast.For, gast.While, gast.With, gast.Try, gast.Match, gast.Expr),
    *(gast.Delete, gast.Assert, gast.Raise, gast.FunctionDef, gast.ClassDef, gast.Import, gast.ImportFrom),
    *(gast.Global, gast.Nonlocal, gast.Pass, gast.Break, gast.Return),
)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
SCOPES = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)


class BrokenPromise(AssertionError):
    """A pass left something that its docstring rules out."""


def broken(after: str, what: str, node: Any) -> BrokenPromise:
    return BrokenPromise(f"after {after}: {what}\n{unparse(node).rstrip()}")


def statements(body: Iterable[Any]) -> Iterator[Any]:
    """All statements of a body, without those of nested functions and classes."""
    for s in body:
        yield s
        for inner in dataflow.blocks(s):
            yield from statements(inner)


def heads(s: Any) -> Iterator[Any]:
    """The expressions of a statement itself, outside the blocks it holds."""
    if isinstance(s, (*SCOPES, gast.Match)):
        return
    for field in s._fields:
        value = getattr(s, field, None)
        if field in dataflow.BLOCKS or field == "handlers":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, gast.withitem):
                yield child.context_expr
            elif isinstance(child, gast.expr):
                yield child


# check


REFUSED = (gast.Yield, gast.YieldFrom, gast.Await, gast.AsyncFor, gast.AsyncWith, gast.AsyncFunctionDef)


def after_check(tree: Any) -> None:
    """No generator and nothing asynchronous, outside nested functions."""
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, REFUSED):
            raise broken("check", f"{type(node).__name__} is left in", node)
        if not isinstance(node, SCOPES):
            todo.extend(nodes.children(node))


# desugar


def after_desugar(tree: Any, carries: Carries, discrete: Carries) -> None:
    """The core statements. `discrete` tells of a call that its result never carries a derivative."""
    body = tree.body
    if not body or not isinstance(body[-1], gast.Return):
        raise broken("desugar", "the last statement is not a return", tree)
    for s in statements(body):
        if not isinstance(s, PLAIN):
            raise broken("desugar", f"{type(s).__name__} is left", s)
        if isinstance(s, gast.Return) and s is not body[-1]:
            raise broken("desugar", "a return that is not the last statement", s)
        if isinstance(s, (gast.For, gast.While)) and s.orelse:
            raise broken("desugar", "a loop with `else`", s)
        if isinstance(s, gast.For) and not isinstance(s.target, gast.Name):
            raise broken("desugar", "a loop that takes its items apart", s)
        if isinstance(s, gast.Assign):
            _target(s)
        for e in heads(s):
            truth = isinstance(s, (gast.If, gast.While, gast.Assert))
            _no_control_flow(s, e, carries, discrete, truth)
    _breaks(body, None)


def _target(s: Any) -> None:
    (to,) = s.targets if len(s.targets) == 1 else (None,)
    if isinstance(to, gast.Tuple):
        parts = [t.value if isinstance(t, gast.Starred) else t for t in to.elts]
        if all(isinstance(t, gast.Name) for t in parts):
            return
    elif isinstance(to, (gast.Name, gast.Subscript, gast.Attribute)):
        return
    raise broken("desugar", "an assignment to several or to nested targets", s)


def _no_control_flow(s: Any, e: Any, carries: Carries, discrete: Carries, truth: bool) -> None:
    """Nothing inside an expression decides what is evaluated, where a derivative may flow through it."""
    if isinstance(e, gast.NamedExpr):
        raise broken("desugar", "a walrus", s)
    if isinstance(e, (gast.IfExp, *COMPREHENSIONS, gast.Lambda)) and carries(e):
        raise broken("desugar", f"{type(e).__name__} of a differentiated value", s)
    if isinstance(e, gast.BoolOp) and not truth and carries(e):
        raise broken("desugar", "`and` or `or` of a differentiated value", s)
    if isinstance(e, (gast.Compare, gast.JoinedStr)) or (isinstance(e, gast.Call) and discrete(e)):
        return  # whatever decides inside, the result carries no derivative
    passes = isinstance(e, gast.BoolOp) or (isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.Not))
    for child in nodes.children(e):
        if isinstance(child, gast.expr):
            _no_control_flow(s, child, carries, discrete, truth and passes)
        elif isinstance(child, gast.keyword):
            _no_control_flow(s, child.value, carries, discrete, False)


def _breaks(body: Block, loop: Any) -> None:
    """A `break` stands only in `if stop: break`, the last statement of a loop's body."""
    for s in body:
        if isinstance(s, gast.Break):
            raise broken("desugar", "a `break` that is not `if stop: break` at the end of a loop", loop or s)
        if loop is not None and s is body[-1] and body is loop.body and is_stop(s):
            continue
        for inner in dataflow.blocks(s):
            _breaks(inner, s if isinstance(s, (gast.For, gast.While)) else loop)


def is_stop(s: Any) -> bool:
    return isinstance(s, gast.If) and not s.orelse and len(s.body) == 1 and isinstance(s.body[0], gast.Break)


# normalize


def after_normalize(tree: Any, carries: Carries, discrete: Carries) -> None:
    """At most one differentiable operation per statement; no name bound twice within a block."""
    after_desugar(tree, carries, discrete)
    for s in statements(tree.body):
        if isinstance(s, (gast.Assign, gast.AugAssign, gast.Expr, gast.Return)):
            if not is_value(s.value, carries, discrete):
                raise broken("normalize", "more than one operation on differentiated values", s)
        if isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Tuple) and not is_atom(s.value):
            raise broken("normalize", "a tuple is taken apart that has no name", s)
        places = s.targets if isinstance(s, (gast.Assign, gast.Delete)) else []
        for to in [s.target] if isinstance(s, gast.AugAssign) else places:
            if not isinstance(to, gast.Tuple) and carries(to) and not is_path(to):
                raise broken("normalize", "a store into something that has no name", s)
    shared = _shared(tree.body)
    _once(tree.body, shared)


def is_atom(e: Any) -> bool:
    """A name, a number with or without a sign, or an attribute of a name (of a module: `np.pi`)."""
    if isinstance(e, gast.Attribute):
        return isinstance(e.value, gast.Name)
    if isinstance(e, gast.UnaryOp):
        return isinstance(e.op, gast.USub) and isinstance(e.operand, gast.Constant)
    return isinstance(e, (gast.Name, gast.Constant))


def is_path(e: Any) -> bool:
    while isinstance(e, (gast.Subscript, gast.Attribute)):
        e = e.value
    return isinstance(e, gast.Name)


def is_value(e: Any, carries: Carries, discrete: Carries) -> bool:
    """An atom, an operation on atoms, or an expression that carries no derivative."""
    if is_atom(e) or not carries(e):
        return True
    parts = list(nodes.children(e))
    if isinstance(e, gast.Call):
        method = isinstance(e.func, gast.Attribute)
        parts = [e.func.value if method else e.func, *e.args, *(k.value for k in e.keywords)]
    elif isinstance(e, gast.Subscript):
        parts = [e.value]  # an index is discrete
    parts = [p.value if isinstance(p, gast.Starred) else p for p in parts]
    return all(is_atom(p) or not carries(p) for p in parts if isinstance(p, gast.expr))


def _shared(body: Block) -> set[str]:
    """Names that are variables and not values: seen by nested scopes, or declared global or nonlocal."""
    found: set[str] = set()
    for s in statements(body):
        if isinstance(s, (gast.Global, gast.Nonlocal)):
            found |= set(s.names)
        elif isinstance(s, SCOPES):
            found |= dataflow.free_names(s.body if isinstance(s, gast.ClassDef) else s)
    return found


def _once(body: Block, shared: set[str]) -> None:
    bound = Counter(
        n
        for s in body
        if isinstance(s, gast.Assign) and not getattr(s, "predefined", False)
        for to in s.targets
        for n in dataflow.stored(to)
        if isinstance(to, (gast.Name, gast.Tuple))
    )
    for n, count in bound.items():
        if count > 1 and n not in shared:
            block = gast.If(gast.Name(n, gast.Load(), None, None), body, [])
            raise broken("normalize", f"`{n}` is bound {count} times in one block", block)
    for s in body:
        for inner in dataflow.blocks(s):
            _once(inner, shared)


# recording


def after_recording(forward: Block, reverse: Block) -> None:
    """Plain statements; a reversed loop binds what its body reads of all that the primal loop has bound."""
    for s in statements([*forward, *reverse]):
        if not isinstance(s, PLAIN):
            raise broken("recording", f"{type(s).__name__} is left", s)
    for s in statements(reverse):
        primal = getattr(s, "reverses", None)
        if primal is None:
            continue
        bound = dataflow.bound_names([primal]) | dataflow.bound_names(primal.body)
        missing = (dataflow.liveness(s.body, set()) & bound) - dataflow.head_binds(s)
        if missing:
            raise broken(
                "recording",
                f"the reversed loop reads {', '.join(sorted(missing))}, which it does not restore",
                s,
            )


# simplify


def _reads_now(s: Any) -> set[str]:
    """What a statement reads when it runs, which is not what a lambda in it reads."""
    later = {n for e in nodes.walk(s) if isinstance(e, gast.Lambda) for n in dataflow.free_names(e)}
    return dataflow.head_reads(s) - later


def after_simplify(body: Block, parameters: Iterable[str], made: Iterable[str]) -> None:
    """Plain statements that end in a return; of the names that the compiler `made`, each is bound before it
    is read, and none is bound in vain, but for those inside `try`, where what raises must stay."""
    made = set(made)
    for s in statements(body):
        if not isinstance(s, PLAIN):
            raise broken("simplify", f"{type(s).__name__} is left", s)
    if not body or not isinstance(body[-1], gast.Return):
        raise broken("simplify", "the last statement is not a return", gast.Module(body or [gast.Pass()], []))
    bound = set(parameters)
    for s in statements(body):
        early = (_reads_now(s) & made) - bound - dataflow.head_binds(s)
        if early:
            raise broken("simplify", f"`{min(early)}` is read before anything binds it", s)
        bound |= dataflow.head_binds(s)
    read = dataflow.reads(body) | {
        n for s in statements(body) if isinstance(s, SCOPES) for n in dataflow.free_names(s)
    }
    tried = {id(x) for s in statements(body) if isinstance(s, gast.Try) for x in statements([s])}
    for s in statements(body):
        to = s.targets[0] if isinstance(s, gast.Assign) and id(s) not in tried else None
        calls = to is not None and any(isinstance(n, gast.Call) for n in nodes.walk(s.value))
        if isinstance(to, gast.Name) and to.id in made - read and not calls:
            raise broken("simplify", f"`{to.id}` is never read", s)
