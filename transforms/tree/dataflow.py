"""Which names a statement reads and binds, and which are live after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import gast

from srcgrad.transforms.tree import nodes

SCOPES = (
    gast.FunctionDef,
    gast.AsyncFunctionDef,
    gast.Lambda,
    gast.ListComp,
    gast.SetComp,
    gast.DictComp,
    gast.GeneratorExp,
)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
_OWN_SCOPES = {*SCOPES, gast.ClassDef}
_BINDERS = {
    gast.FunctionDef,
    gast.AsyncFunctionDef,
    gast.ClassDef,
    gast.Import,
    gast.ImportFrom,
    gast.ExceptHandler,
    gast.MatchAs,
    gast.MatchStar,
    gast.MatchMapping,
}
BLOCKS = ("body", "orelse", "finalbody")


def free_names(node: Any) -> set[str]:
    """Names that an expression or a nested function reads from its surroundings."""
    found: set[str] = set()
    _free(node, found)
    return found


def _free(node: Any, found: set[str]) -> None:
    kind = type(node)
    if kind is gast.Name:
        if type(node.ctx) is gast.Load or type(node.ctx) is gast.Del:
            found.add(node.id)
        return
    if kind is gast.Constant:
        return
    if kind is gast.BinOp:
        _free(node.left, found)
        _free(node.right, found)
        return
    if kind is gast.Attribute or kind is gast.Starred:
        _free(node.value, found)
        return
    if kind is gast.Subscript:
        _free(node.value, found)
        _free(node.slice, found)
        return
    if kind is gast.Call:
        _free(node.func, found)
        _free(node.args, found)
        for keyword in node.keywords:
            _free(keyword.value, found)
        found.update(now for _, now in getattr(node, "captured", ()))  # what the callee reads by itself
        return
    if kind is gast.Assign:
        _free(node.targets, found)
        _free(node.value, found)
        return
    if kind is list:
        for n in node:
            _free(n, found)
        return
    if not isinstance(node, gast.AST):
        return
    if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)):
        inner: set[str] = set()
        body = node.body if isinstance(node.body, list) else [node.body]
        for s in body:
            _free(s, inner)
        bound = {a.id for a in parameters(node)} | bound_names(body)
        nonlocals = {n for s in _own(body) if isinstance(s, gast.Nonlocal) for n in s.names}
        found |= (inner - bound) | nonlocals
        _free(node.args.defaults, found)
        _free([d for d in node.args.kw_defaults if d is not None], found)
        _free(getattr(node, "decorator_list", []), found)
        return
    if kind in COMPREHENSIONS:
        inner = set()
        bound = set()
        for generator in node.generators:
            _free(generator.iter, inner if generator is not node.generators[0] else found)
            bound |= stored(generator.target)
            _free(generator.target, inner)
            _free(generator.ifs, inner)
        for field in ("elt", "key", "value"):
            _free(getattr(node, field, None), inner)
        found |= inner - bound
        return
    if isinstance(node, gast.AugAssign) and isinstance(node.target, gast.Name):
        found.add(node.target.id)
    for child in nodes.children(node):
        _free(child, found)


def parameters(node: Any) -> list[gast.Name]:
    a = node.args
    return [
        *a.posonlyargs,
        *a.args,
        *([a.vararg] if a.vararg else []),
        *a.kwonlyargs,
        *([a.kwarg] if a.kwarg else []),
    ]


def stored(node: Any) -> set[str]:
    """Names that an assignment target binds."""
    return {n.id for n in nodes.walk(node) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)}


def _own(body: Iterable[Any]) -> Iterator[Any]:
    """All nodes of a body, without those of nested scopes (whose head node is still given)."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        kind = type(node)
        if kind in _OWN_SCOPES:
            if kind in COMPREHENSIONS:
                todo.extend(w for w in nodes.walk(node) if isinstance(w, gast.NamedExpr))
            continue
        if kind is not gast.Name and kind is not gast.Constant:
            todo.extend(nodes.children(node))


def bound_names(body: Iterable[Any]) -> set[str]:
    """Names that a body binds in its own scope."""
    return set(_bindings(body))


def binding_counts(body: Iterable[Any]) -> Counter[str]:
    """How often a body binds each name in its own scope."""
    return Counter(_bindings(body))


def _bindings(body: Iterable[Any]) -> Iterator[str]:
    for node in _own(body):
        kind = type(node)
        if kind is gast.Name:
            if type(node.ctx) is gast.Store:
                yield node.id
        elif kind not in _BINDERS:
            continue
        elif kind is gast.Import or kind is gast.ImportFrom:
            yield from ((a.asname or a.name).split(".")[0] for a in node.names)
        elif kind is gast.MatchMapping:
            if node.rest:
                yield node.rest
        elif isinstance(node.name, str):  # the name of a handler is a node
            yield node.name


_COMPOUND = {
    gast.Module,
    gast.ExceptHandler,
    gast.match_case,
    gast.If,
    gast.For,
    gast.AsyncFor,
    gast.While,
    gast.With,
    gast.AsyncWith,
    gast.Try,
}


def blocks(stmt: gast.stmt) -> list[list[Any]]:
    """The statement lists directly inside a statement."""
    if type(stmt) not in _COMPOUND:
        return []
    found = [block for field in BLOCKS if (block := getattr(stmt, field, None))]
    return found + [handler.body for handler in getattr(stmt, "handlers", [])]


def head_nodes(stmt: gast.stmt) -> Iterator[Any]:
    """The nodes of a statement outside the blocks it holds."""
    inside = {id(s) for block in blocks(stmt) for s in block}
    todo: list[Any] = [stmt]
    while todo:
        node = todo.pop()
        yield node
        todo += [n for n in nodes.children(node) if id(n) not in inside]


def head_reads(stmt: gast.stmt) -> set[str]:
    """Names that a statement reads itself, outside the blocks it holds."""
    if isinstance(stmt, (gast.If, gast.While)):
        return free_names(stmt.test)
    if isinstance(stmt, gast.For):
        return free_names(stmt.iter) | free_names(stmt.target)
    if isinstance(stmt, gast.With):
        return free_names(stmt.items)
    if isinstance(stmt, gast.Try):
        return free_names([h.type for h in stmt.handlers])
    return free_names(stmt)


def head_binds(stmt: gast.stmt) -> set[str]:
    """Names that a statement binds itself, outside the blocks it holds."""
    if isinstance(stmt, gast.For):
        return stored(stmt.target)
    if isinstance(stmt, gast.With):
        return {
            n for item in stmt.items if item.optional_vars is not None for n in stored(item.optional_vars)
        }
    if isinstance(stmt, (gast.If, gast.While)):
        return bound_names([stmt.test])
    if isinstance(stmt, gast.Try):
        return set()
    if isinstance(stmt, gast.Delete):
        return set()
    if isinstance(stmt, gast.Assign) and _plain(stmt.value):
        return {stmt.targets[0].id} if type(stmt.targets[0]) is gast.Name else stored_in(stmt.targets)
    if isinstance(stmt, gast.AugAssign) and _plain(stmt.value):
        return {stmt.target.id} if isinstance(stmt.target, gast.Name) else set()
    return bound_names([stmt])


def stored_in(targets: list[Any]) -> set[str]:
    return set().union(*(stored(t) for t in targets))


def _plain(e: Any) -> bool:
    """Is `e` an expression without scopes and walruses, as far as a quick look tells?"""
    kind = type(e)
    if kind is gast.Name or kind is gast.Constant:
        return True
    if kind is gast.BinOp:
        return _plain(e.left) and _plain(e.right)
    if kind is gast.UnaryOp:
        return _plain(e.operand)
    if kind is gast.Attribute:
        return _plain(e.value)
    if kind is gast.Subscript:
        return _plain(e.value) and _plain(e.slice)
    if kind is gast.Call:
        return _plain(e.func) and all(map(_plain, e.args)) and not e.keywords
    if kind is gast.Tuple or kind is gast.List:
        return all(map(_plain, e.elts))
    return False


def reads(block: Iterable[gast.stmt]) -> set[str]:
    """Names that a block reads anywhere."""
    found: set[str] = set()
    for stmt in block:
        found |= head_reads(stmt)
        for inner in blocks(stmt):
            found |= reads(inner)
    return found


Live = dict[int, set[str]]


def liveness(
    block: list[Any], after: set[str], record: Live | None = None, implied: dict[str, list[str]] | None = None
) -> set[str]:
    """Names live before `block`; `record` receives, by the id of each statement, the names live after it
    (and, by the negative id of a loop, those live where its body starts). Who reads a name that is `implied`
    also reads those of its list: a function's captured variables."""
    return set(Liveness(record if record is not None else {}, implied).before(block, set(after), None))


class Liveness:
    def __init__(self, record: Live, implied: dict[str, list[str]] | None = None) -> None:
        self.record, self.implied = record, implied or {}
        self.heads: dict[int, tuple[set[str], set[str]]] = {}
        """What each statement reads and binds itself; loops ask again and again."""

    def head(self, stmt: Any) -> tuple[set[str], set[str]]:
        found = self.heads.get(id(stmt))
        if found is None:
            reads = head_reads(stmt)
            for n in reads & self.implied.keys():
                reads |= set(self.implied[n])
            found = self.heads[id(stmt)] = reads, head_binds(stmt)
        return found

    def before(self, block: list[Any], live: set[str], exit_: set[str] | None) -> set[str]:
        """Names live before `block`, given those live after it and after the loop around it."""
        record = self.record
        for stmt in reversed(block):
            known = record.get(id(stmt))
            record[id(stmt)] = live if known is None else known | live
            reads, binds = self.head(stmt)
            kind = type(stmt)
            if kind is gast.If:
                live = self.before(stmt.body, live, exit_) | self.before(stmt.orelse, live, exit_) | reads
            elif kind is gast.For or kind is gast.While:
                live = self.loop(stmt, live, exit_)
            elif kind is gast.With:
                live = self.before(stmt.body, live, exit_) - binds | reads
            elif kind is gast.Try:
                live = self.before(stmt.finalbody, live, exit_)
                handlers = [self.before(h.body, live, exit_) for h in stmt.handlers]
                live = self.before(stmt.orelse, live, exit_)
                # An exception may leave the body anywhere: what a handler reads is live throughout.
                thrown = set().union(*handlers) if handlers else set()
                live = self.before(stmt.body, live | thrown, exit_) | thrown
            elif kind is gast.Break:
                live = set(exit_ or ())
            elif kind is gast.Return:
                live = reads
            elif kind is gast.Raise or kind is gast.Match:  # a match may bind nothing
                live = live | reads
            else:
                live = (live - binds) | reads
        return live

    def loop(self, stmt: Any, after: set[str], exit_: set[str] | None) -> set[str]:
        reads, binds = self.head(stmt)
        live = self.before(stmt.orelse, after, exit_) | reads
        while True:
            inner = self.before(stmt.body, live, after)
            self.record[-id(stmt)] = self.record.get(-id(stmt), set()) | inner  # live where the body starts
            new = live | (inner - binds) | reads
            if new == live:
                return live
            live = new


def definitely_bound(block: Iterable[gast.stmt]) -> set[str]:
    """Names that are bound on every path through `block`."""
    found: set[str] = set()
    for stmt in block:
        if isinstance(stmt, gast.If):
            found |= definitely_bound(stmt.body) & definitely_bound(stmt.orelse)
        elif isinstance(stmt, gast.With):
            found |= head_binds(stmt) | definitely_bound(stmt.body)
        elif isinstance(stmt, (gast.For, gast.While)):
            pass
        elif isinstance(stmt, gast.Try):
            found |= definitely_bound(stmt.finalbody)
            if not stmt.handlers:
                found |= definitely_bound(stmt.body)
        elif isinstance(stmt, gast.Match):
            pass
        elif isinstance(stmt, gast.Delete):
            found -= {n.id for t in stmt.targets for n in nodes.walk(t) if isinstance(n, gast.Name)}
        else:
            found |= head_binds(stmt)
    return found


def displayed(n: str, body: list[Any]) -> bool:
    """Is all that the statements bind to `n` a list or dict written out there, or a name of one?"""
    values, todo, seen = [], [n], {n}
    bound: dict[str, list[Any]] = {}
    for s in body:
        for x in nodes.walk(s):
            if isinstance(x, gast.Assign):
                for to in x.targets:
                    for v in stored(to) if not isinstance(to, (gast.Subscript, gast.Attribute)) else ():
                        bound.setdefault(v, []).append(x.value if isinstance(to, gast.Name) else None)
            elif isinstance(x, gast.stmt):
                for v in head_binds(x):
                    bound.setdefault(v, []).append(None)
    while todo:
        found = bound.get(todo.pop(), [None])
        for value in found:
            if isinstance(value, gast.Name):
                if value.id not in seen:
                    seen.add(value.id)
                    todo.append(value.id)
            elif not (isinstance(value, gast.Constant) and value.value is None):
                values.append(value)
    return all(isinstance(v, (gast.List, gast.Dict)) for v in values)
