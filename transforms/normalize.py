"""Normalize: at most one differentiable operation per statement, and a name of its own for each value.

Before: the statements that `desugar` leaves, with facts.
After:  stmt  ::= name = value | (names) = atom | atom[index] = atom | atom.attr = atom | target op= atom |
value
                | if test: block else: block | for name in range(...) | for target in inert | while test
                | with | try | del atom[index] | return atom
        value ::= atom | op(atom, ...) | inert;   atom ::= name | constant | module.attribute
        An *inert* expression mentions no differentiated value, or yields a discrete one, and stays as the
        user wrote it. Within one execution of a block no name is bound twice, but for names that are updated
        in place; at the end of a branch or a loop's body stand the copies `v = v_2` that hand values on.
Why here: every later pass may ask "which operation made this name?" and get one answer.
"""

from __future__ import annotations

import itertools
import string
import types
from collections.abc import Iterable
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import library, operators, trees
from srcgrad.runtime.errors import UnsupportedSyntax
from srcgrad.runtime.rules import inplace, table
from srcgrad.transforms.facts import UNKNOWN, Fact, class_attribute
from srcgrad.transforms.objects import Objects, gives_itself
from srcgrad.transforms.read import Source, fail
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import (
    Substitute,
    assign,
    at,
    attribute,
    call,
    clone,
    constant,
    expression,
    if_,
    name,
    root,
    subscript,
    tuple_,
)
from srcgrad.transforms.tree.externals import Externals
from srcgrad.transforms.tree.names import Names
from srcgrad.transforms.tree.results import name_method_result
from srcgrad.transforms.tree.sight import BINARY, UNARY, Sight
from srcgrad.transforms.tree.taint import Taint

Block = list[Any]
SEQUENCES = ("array", "list", "tuple")
LIST_MUTATORS = {"append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort"}
DICT_MUTATORS = {"update", "pop", "popitem", "setdefault", "clear"}
MUTATORS = LIST_MUTATORS | DICT_MUTATORS | {"fill", "put", "partition", "resize", "itemset"}


def normalize(
    source: Source,
    tree: gast.FunctionDef,
    names: Names,
    taint: Taint,
    externals: Externals,
    outer: dict[str, list[str]],
    given: dict[str, Fact],
    sight: Sight | None = None,
) -> gast.FunctionDef:
    """`outer` are the functions defined around this one, each with the variables that it has captured."""
    flat = _Flatten(source, names, taint, externals)
    flat.sight, flat.body = sight or Sight([]), tree.body
    first = next(iter(dataflow.parameters(tree)), None)
    if first is not None:
        flat.self_name, flat.self_fact = first.id, given.get(first.id, UNKNOWN)
    tree.body = flat.block(tree.body)
    _Rename(source, names, taint, tree, outer, externals).function()
    return tree


def is_atom(e: Any) -> bool:
    """A name, a constant, or an attribute of a module (`np.pi`)."""
    if isinstance(e, gast.Attribute):
        fact = getattr(e, "fact", None)
        owner = getattr(e.value, "fact", None)
        return fact is not None and owner is not None and owner.kind == "module"
    if isinstance(e, gast.UnaryOp):
        return isinstance(e.op, gast.USub) and isinstance(e.operand, gast.Constant)
    return isinstance(e, (gast.Name, gast.Constant))


NUMBERS = ("scalar", "array", "numeric")
_WRITTEN = {id(f): f for f in library.STANDINS.values()}
STARTED: dict[str, tuple[Any, Any, float]] = {
    "sum": (np.sum, np.add, 0.0),
    "nansum": (np.nansum, np.add, 0.0),
    "nanprod": (np.nanprod, np.multiply, 1.0),
    "nanmax": (np.nanmax, np.maximum, -np.inf),
    "nanmin": (np.nanmin, np.minimum, np.inf),
    "prod": (np.prod, np.multiply, 1.0),
    "max": (np.max, np.maximum, -np.inf),
    "min": (np.min, np.minimum, np.inf),
    "amax": (np.amax, np.maximum, -np.inf),
    "amin": (np.amin, np.minimum, np.inf),
}
"""Reductions, what joins the value they start with to the rest, and the one that changes nothing."""


class _Flatten(Objects):
    def __init__(self, source: Source, names: Names, taint: Taint, externals: Externals) -> None:
        self.source, self.names, self.taint, self.externals = source, names, taint, externals

    self_name = ""
    self_fact = UNKNOWN
    body: Block

    # Statements ---------------------------------------------------------------------------------------------

    def block(self, body: Block) -> Block:
        out: Block = []
        for s in body:
            getattr(self, "stmt_" + type(s).__name__, self.keep)(s, out)
        return out

    def keep(self, s: Any, out: Block) -> None:
        out.append(s)

    def stmt_Assign(self, s: Any, out: Block) -> None:
        (to,) = s.targets
        if isinstance(to, gast.Name):
            out.append(assign(to, self.value(s.value, s, out), s))
        elif isinstance(to, gast.Tuple):
            value = self.elements(s.value, s, out) if self.taint.expr(s.value) else None
            out.append(at(gast.Assign([to], value or self.atom(s.value, s, out), None), s))
        elif self.stored(to, s.value, s, out):
            pass
        elif _is_flat(to):
            given = [as_argument(self.index(to.slice, s, out)), self.atom(s.value, s, out)]
            self.write_result(inplace.flat_values, to.value.value, given, [], s, out)
        else:
            value = self.atom(s.value, s, out)
            out.append(assign(self.place(to, s, out), value, s))

    def place(self, to: Any, s: Any, out: Block) -> Any:
        """A subscript or attribute as the target of a store."""
        owner = self.path(to.value, s, out)
        if isinstance(to, gast.Attribute):
            return at(gast.Attribute(owner, to.attr, gast.Store()), to)
        return at(gast.Subscript(owner, self.index(to.slice, s, out), gast.Store()), to)

    def path(self, e: Any, s: Any, out: Block) -> Any:
        """The container that a store changes: a name, or a part of a part of what a name holds,
        `xs[i].field[j]`."""
        known = getattr(e, "fact", UNKNOWN).kind
        if isinstance(e, gast.Subscript) and self.taint.expr(e):
            if getattr(e.value, "fact", UNKNOWN).kind not in ("array", "numeric") or basic_index(e.slice):
                made = gast.Subscript(self.path(e.value, s, out), self.index(e.slice, s, out), gast.Load())
                made.fact = getattr(e, "fact", UNKNOWN)
                return at(made, e)
        if (
            isinstance(e, gast.Attribute)
            and self.taint.expr(e)
            and not is_atom(e)
            and known not in ("module", "function")
            and getattr(e.value, "fact", UNKNOWN).kind not in NUMBERS  # `x.T` is a view, no part of a record
        ):
            made = gast.Attribute(self.path(e.value, s, out), e.attr, gast.Load())
            made.fact = getattr(e, "fact", UNKNOWN)
            return at(made, e)
        return self.atom(e, s, out)

    def stmt_AugAssign(self, s: Any, out: Block) -> None:
        to, kind = s.target, getattr(s.target, "fact", UNKNOWN).kind
        if isinstance(to, gast.Name):
            if (to.id in self.taint.names or self.taint.expr(s.value)) and self.updated(s, out):
                pass
            elif kind in ("scalar", "tuple", "string", "none"):
                value = gast.BinOp(at(name(to.id), to), s.op, s.value)
                value.left.fact = to.fact
                out.append(assign(to.id, self.value(at(value, to), s, out, taint=True), s))
            elif kind == "dict" and isinstance(s.op, gast.BitOr):
                owner = name(to.id)
                owner.fact = to.fact
                update = at(gast.Call(gast.Attribute(owner, "update", gast.Load()), [s.value], []), s)
                self.stmt_Expr(at(expression(update, s), s), out)
            elif isinstance(s.op, gast.MatMult):
                read = at(name(to.id), to)
                read.fact = to.fact
                made = at(gast.BinOp(read, s.op, self.atom(s.value, s, out)), s)
                whole = gast.Subscript(clone(read), constant(...), gast.Store())
                out.append(assign(whole, self.temporary(made, s, out, tainted=True), s))
            elif kind == "list" and isinstance(s.op, gast.Add):
                owner = name(to.id)
                owner.fact = to.fact
                self.extend(owner, self.atom(s.value, s, out), s, out)
            else:
                out.append(at(gast.AugAssign(to, s.op, self.atom(s.value, s, out)), s))
            return
        if _is_flat(to) or getattr(to.value, "fact", UNKNOWN).kind == "instance" and _computed_store(to):
            read = clone(to)
            read.ctx, read.value.fact = gast.Load(), getattr(to.value, "fact", UNKNOWN)
            self.stmt_Assign(assign(to, at(gast.BinOp(read, s.op, s.value), s), s), out)
            return
        value = self.atom(s.value, s, out)
        place = self.place(to, s, out)
        owner = getattr(to.value, "fact", UNKNOWN)
        if (
            isinstance(place, gast.Subscript)
            and owner.kind == "array"
            and isinstance(s.op, (gast.Add, gast.Sub))
        ):
            if basic_index(place.slice) and isinstance(place.value, gast.Name):
                out.append(at(gast.AugAssign(place, s.op, value), s))
                return
        read = clone(place)
        read.ctx = gast.Load()
        if not is_atom(read.value):
            read = self.value(read, s, out)
        old = self.temporary(read, s, out, "old", tainted=self.taint.expr(read) or self.taint.expr(value))
        element = _element_kind(owner)
        if owner.kind in ("array", "numeric") or element == "scalar":
            new = self.temporary(gast.BinOp(old, s.op, value), s, out, "new", tainted=True)
            out.append(assign(place, new, s))
        else:
            made = at(gast.AugAssign(gast.Name(old.id, gast.Store(), None, None), s.op, value), s)
            made.returned_to = getattr(place.value, "id", None)
            out.append(made)
            out.append(assign(place, name(old.id), s))

    def stmt_Expr(self, s: Any, out: Block) -> None:
        e = s.value
        if isinstance(e, gast.Call) and isinstance(e.func, gast.Attribute):
            lowered = self.method(e, s, out, used=False)
            if lowered is not None:
                return
        if isinstance(e, gast.Call) and self.effect(e, s, out):
            return
        value = self.value(e, s, out)
        if not is_atom(value):
            out.append(expression(value, s))

    def stmt_Delete(self, s: Any, out: Block) -> None:
        (to,) = s.targets
        if isinstance(getattr(to, "slice", None), gast.Slice) and self.taint.expr(to.value):
            self.delete_slice(to, s, out)
            return
        place = self.place(to, s, out)
        place.ctx = gast.Del()
        out.append(at(gast.Delete([place]), s))

    def delete_slice(self, to: Any, s: Any, out: Block) -> None:
        """`del xs[i:j]` as one deletion after another."""
        if to.slice.step is not None or getattr(to.value, "fact", UNKNOWN).kind != "list":
            raise self.refuse(to, "this `del`", "Make a new list of what is kept.")
        owner, index = self.atom(to.value, s, out), self.index(to.slice, s, out)
        length = self.builtin(len, clone(owner))
        bounds = call(
            attribute(call("slice", index.lower or constant(None), index.upper or constant(None)), "indices"),
            length,
        )
        start, stop = (
            self.temporary(subscript(clone(bounds), constant(i)), s, out, n, tainted=False)
            for i, n in enumerate(("start", "stop"))
        )
        rounds = call("range", gast.BinOp(stop, gast.Sub(), clone(start)))
        rounds.func.fact = Fact("function", const=range)
        start.fact = Fact("scalar", real=1)
        gone = at(gast.Delete([gast.Subscript(owner, clone(start), gast.Del())]), s)
        counter = gast.Name(self.names.fresh("k"), gast.Store(), None, None)
        out.append(at(gast.For(counter, rounds, [gone], [], None), s))

    def stmt_Return(self, s: Any, out: Block) -> None:
        value = self.value(s.value, s, out) if isinstance(s.value, gast.Tuple) else self.atom(s.value, s, out)
        out.append(at(gast.Return(value), s))

    def stmt_If(self, s: Any, out: Block) -> None:
        test = self.test(s.test, s, out)
        out.append(at(gast.If(test, self.block(s.body), self.block(s.orelse)), s))

    def stmt_While(self, s: Any, out: Block) -> None:
        before: Block = []
        test = self.test(clone(s.test), s, before)
        body = self.block(s.body)
        if before:  # the test has effects: it moves into the body
            stop = self.names.fresh("stop")
            leave = [assign(stop, constant(True), s)]
            inner = [assign(stop, constant(False), s), *before, at(gast.If(test, body, leave), s)]
            broken = body and isinstance(body[-1], gast.If) and len(body[-1].body) == 1
            if broken and isinstance(body[-1].body[0], gast.Break):
                user = body.pop()
                body.append(if_(user.test, [assign(stop, constant(True), s)], [], s))
            inner.append(if_(name(stop), [at(gast.Break(), s)], [], s))
            out.append(at(gast.While(constant(True), inner, []), s))
            return
        out.append(at(gast.While(test, body, []), s))

    def stmt_For(self, s: Any, out: Block) -> None:
        range_ = isinstance(s.iter, gast.Call) and _known(s.iter.func) is range
        if range_:
            args = [self.atom(a, s, out) for a in s.iter.args]
            it = at(gast.Call(s.iter.func, args, []), s.iter)
            out.append(at(gast.For(s.target, it, self.block(s.body), [], None), s))
            return
        if not self.taint.expr(s.iter):
            out.append(at(gast.For(s.target, s.iter, self.block(s.body), [], None), s))
            return
        made = self.sequence(s.iter, s, out)
        if made is None or made[0] is None:
            raise self.refuse(
                s.iter, "a loop over this", "Loop over an array, a list, a tuple, or the items of a dict."
            )
        length, item = made
        changed = {n.id for n in nodes.walk(s.iter) if isinstance(n, gast.Name)}
        for inner in _walk_statements(s.body):
            if isinstance(inner, gast.Expr) and isinstance(inner.value, gast.Call):
                func = inner.value.func
                if isinstance(func, gast.Attribute) and func.attr in MUTATORS - {"fill"}:
                    if isinstance(func.value, gast.Name) and func.value.id in changed:
                        raise self.refuse(
                            inner, "a loop over a list that its body changes", "Loop over a copy of it."
                        )
        counter = self.names.fresh("k")
        head: Block = []
        element = item(name(counter))
        body = list(s.body)
        first = body[0] if body else None
        if (
            isinstance(first, gast.Assign)
            and isinstance(first.targets[0], gast.Tuple)
            and isinstance(first.value, gast.Name)
            and first.value.id == s.target.id
            and isinstance(element, gast.Tuple)
            and len(element.elts) == len(first.targets[0].elts)
            and not any(isinstance(t, gast.Starred) for t in first.targets[0].elts)
        ):
            for to, e in zip(first.targets[0].elts, element.elts, strict=True):
                head.append(assign(to.id, e, s))
            body = body[1:]
        elif isinstance(element, gast.Subscript) and _changes_attributes(s, element):
            element.fact = getattr(s.target, "fact", UNKNOWN)
            body = [Substitute({s.target.id: element}).visit(clone(b)) for b in body]
            head.append(assign(s.target.id, clone(element), s))
        else:
            head.append(assign(s.target.id, element, s))
        it = call("range", length)
        it.func.fact = Fact("function", const=range)
        flat = self.block(head + body)
        out.append(at(gast.For(gast.Name(counter, gast.Store(), None, None), it, flat, [], None), s))

    def sequence(self, it: Any, s: Any, out: Block) -> Any:
        """How to index what `it` iterates over: (atom for its length, function from counter to element), or
        None."""
        fact = getattr(it, "fact", UNKNOWN)
        if isinstance(it, gast.Call) and _known(it.func) is zip and _one_star(it):
            rows = at(self.columns(it, s, out), it)
            it = self.temporary(rows, s, out, "rows", tainted=True)
            fact = it.fact = Fact("list")
        if isinstance(it, gast.Call):
            function = _known(it.func)
            if function is enumerate:
                inner = self.sequence(it.args[0], s, out)
                start = it.args[1] if len(it.args) > 1 else next((k.value for k in it.keywords), constant(0))
                start = self.atom(start, s, out)
                if inner is None:
                    return None
                zero = isinstance(start, gast.Constant) and start.value == 0
                return inner[0], lambda k: tuple_(
                    [k if zero else gast.BinOp(k, gast.Add(), clone(start)), inner[1](k)]
                )
            if function is np.ndenumerate and len(it.args) == 1 and not it.keywords:
                owner = self.atom(it.args[0], s, out)
                every = call(self.support(np.ndindex), attribute(clone(owner), "shape"))
                places = self.temporary(self.builtin(list, every), s, out, "places", tainted=False)
                length = self.temporary(self.builtin(len, clone(places)), s, out, "n", tainted=False)
                return length, lambda k: tuple_(
                    [subscript(clone(places), k), subscript(clone(owner), subscript(clone(places), clone(k)))]
                )
            if function is itertools.count and len(it.args) < 3 and not it.keywords:
                start, step = [self.atom(a, s, out) for a in it.args] + [constant(0), constant(1)][
                    len(it.args) :
                ]
                return None, lambda k: gast.BinOp(
                    clone(start), gast.Add(), gast.BinOp(k, gast.Mult(), clone(step))
                )
            if function is itertools.repeat and len(it.args) == 1 and not it.keywords:
                again = self.atom(it.args[0], s, out)
                return None, lambda k: clone(again)
            if function is itertools.cycle and len(it.args) == 1:
                inner = self.sequence(it.args[0], s, out)
                if inner is None or inner[0] is None:
                    return None
                return None, lambda k: inner[1](gast.BinOp(k, gast.Mod(), clone(inner[0])))
            if (
                function is zip
                and it.args
                and not any(isinstance(a, gast.Starred) for a in it.args)
                and all(k.arg == "strict" and isinstance(k.value, gast.Constant) for k in it.keywords)
            ):
                parts = [self.sequence(a, s, out) for a in it.args]
                if any(p is None for p in parts):
                    return None
                lengths = [p[0] for p in parts if p[0] is not None]
                if not lengths:
                    return None
                strict = any(k.value.value for k in it.keywords)
                common = call(self.support(trees.equal_length), *lengths) if strict else None
                length = (
                    lengths[0]
                    if len(lengths) == 1
                    else self.temporary(common or self.builtin(min, *lengths), s, out, "n", tainted=False)
                )
                return length, lambda k: tuple_([p[1](clone(k)) for p in parts])
            if function is reversed and len(it.args) == 1:
                inner = self.sequence(it.args[0], s, out)
                if inner is None or inner[0] is None:
                    return None
                last = self.temporary(gast.BinOp(clone(inner[0]), gast.Sub(), constant(1)), s, out, "last")
                return inner[0], lambda k: inner[1](gast.BinOp(clone(last), gast.Sub(), k))
            if isinstance(it.func, gast.Attribute) and it.func.attr in ("items", "values") and not it.args:
                if getattr(it.func.value, "fact", UNKNOWN).kind == "dict":
                    owner = self.atom(it.func.value, s, out)
                    keys = self.temporary(self.builtin(list, clone(owner)), s, out, "keys", tainted=False)
                    length = self.temporary(self.builtin(len, clone(keys)), s, out, "n", tainted=False)
                    if it.func.attr == "values":
                        return length, lambda k: subscript(clone(owner), subscript(clone(keys), k))
                    return length, lambda k: tuple_(
                        [subscript(clone(keys), k), subscript(clone(owner), subscript(clone(keys), clone(k)))]
                    )
        tainted = self.taint.expr(it)
        if fact.kind == "dict" or not (tainted or fact.kind in SEQUENCES):
            atom = self.temporary(self.builtin(list, it), s, out, "items", tainted=False)
        else:
            taken = self.elements(it, s, out)
            fact = fact if taken is None else UNKNOWN
            atom = taken or self.atom(it, s, out)
            if fact.kind not in SEQUENCES:
                atom = self.temporary(
                    at(call(self.support(trees.sequence), atom), it), s, out, "items", tainted=True
                )
        length = self.temporary(self.builtin(len, clone(atom)), s, out, "n", tainted=False)
        atom.fact = fact
        return length, lambda k: subscript(clone(atom), k)

    def columns(self, e: Any, s: Any, out: Block) -> Any:
        """`zip(*rows)` as a list."""
        strict = [clone(k.value) for k in e.keywords]
        return call(self.support(trees.transposed), self.atom(e.args[0].value, s, out), *strict)

    def builtin(self, function: Any, *args: Any) -> Any:
        made = call(function.__name__, *args)
        made.func.fact = Fact("function", const=function)
        made.func.builtin = True
        return made

    def stmt_With(self, s: Any, out: Block) -> None:
        if self.managed(s, out):
            return
        for item in s.items:
            known = _known(getattr(item.context_expr, "func", None))
            if known is not operators.Leaving and self.taint.expr(item.context_expr):
                raise self.refuse(
                    item.context_expr,
                    "a context manager that receives a differentiated value",
                    "Pass it later.",
                )
        out.append(at(gast.With(s.items, self.block(s.body), None), s))

    def stmt_Try(self, s: Any, out: Block) -> None:
        handlers = [at(gast.ExceptHandler(h.type, h.name, self.block(h.body)), h) for h in s.handlers]
        out.append(
            at(gast.Try(self.block(s.body), handlers, self.block(s.orelse), self.block(s.finalbody)), s)
        )

    # Calls with effects -------------------------------------------------------------------------------------

    def effect(self, e: Any, s: Any, out: Block) -> bool:
        """Calls that write into an argument, as stores."""
        function = _known(e.func)
        if function is np.copyto and len(e.args) == 2 and not e.keywords:
            self.write_all(e.args[0], e.args[1], s, out)
            return True
        written = table.written_by(function) if e.args and self.taint.expr(e) else None
        if written is not None:
            self.write_result(written, e.args[0], e.args[1:], e.keywords, s, out)
            return True
        if function in (trees.add_item, trees.add_attribute, trees.clear_item):
            self.cotangent_effect(function, e, s, out)
            return True
        at_ = getattr(function, "__name__", "") == "at" and getattr(function, "__self__", None)
        if isinstance(at_, np.ufunc) and len(e.args) == 3:
            if at_ not in (np.add, np.subtract):
                raise self.refuse(e, f"`np.{at_.__name__}.at`", "Write a loop.")
            owner, value = self.atom(e.args[0], s, out), self.atom(e.args[2], s, out)
            made = gast.AugAssign(
                gast.Subscript(owner, self.index(e.args[1], s, out), gast.Store()),
                gast.Add() if at_ is np.add else gast.Sub(),
                value,
            )
            made.repeated = True  # every occurrence of an index counts
            out.append(at(made, s))
            return True
        return False

    def cotangent_effect(self, function: Any, e: Any, s: Any, out: Block) -> None:
        """What emitted code does in place to the cotangent of a container, as a store."""
        owner = self.atom(e.args[0], s, out)
        if function is trees.clear_item:
            index = self.index(e.args[1], s, out)
            old = self.temporary(subscript(clone(owner), clone(index)), s, out, "old", tainted=True)
            zero = self.temporary(call(self.support(trees.zeros_like), old), s, out, "zero", tainted=False)
            out.append(assign(gast.Subscript(owner, index, gast.Store()), zero, s))
            return
        if function is trees.add_attribute:
            x = self.atom(e.args[1], s, out)
            old_ = call(self.support(trees.get_attribute), clone(owner), x, e.args[2])
            key = call(self.support(trees.attribute_key), clone(owner), clone(x), e.args[2])
            index, value = self.temporary(key, s, out, "key", tainted=False), self.atom(e.args[3], s, out)
        else:
            index, value = self.index(e.args[1], s, out), self.atom(e.args[2], s, out)
            if getattr(owner, "fact", UNKNOWN).kind == "array":
                made = gast.AugAssign(gast.Subscript(owner, index, gast.Store()), gast.Add(), value)
                made.repeated = True
                out.append(at(made, s))
                return
            sum_ = call(self.support(trees.added), clone(owner), as_argument(clone(index)), value)
            new = self.temporary(sum_, s, out, "new", tainted=True)
            out.append(assign(gast.Subscript(owner, index, gast.Store()), new, s))
            return
        old = self.temporary(old_, s, out, "old", tainted=True)
        new = self.temporary(call(self.support(trees.add), old, value), s, out, "new", tainted=True)
        out.append(assign(gast.Subscript(owner, index, gast.Store()), new, s))

    def write_all(self, to: Any, value: Any, s: Any, out: Block) -> None:
        place, _ = self.through(to, s, out)
        value = self.atom(value, s, out)
        out.append(assign(place, value, s))

    def through(self, to: Any, s: Any, out: Block) -> tuple[Any, Any]:
        """Where a write into the array `to` goes, and what reads it: a view is written through."""
        if isinstance(to, gast.Subscript) and self.taint.expr(to) and basic_index(to.slice):
            if getattr(to.value, "fact", UNKNOWN).kind in NUMBERS:
                owner, index = self.atom(to.value, s, out), self.index(to.slice, s, out)
                read = gast.Subscript(clone(owner), clone(index), gast.Load())
                return gast.Subscript(owner, index, gast.Store()), at(read, to)
        owner = self.atom(to, s, out)
        return gast.Subscript(owner, constant(...), gast.Store()), clone(owner)

    def write_result(
        self, function: Any, to: Any, args: list[Any], keywords: list[Any], s: Any, out: Block
    ) -> None:
        """Store what `function` returns for `to` and other arguments in `to`."""
        place, read = self.through(to, s, out)
        owner = read if is_atom(read) else self.temporary(read, s, out, "part", tainted=True)
        given = [self.argument(a, s, out) for a in args]
        named = [gast.keyword(k.arg, self.argument(k.value, s, out)) for k in keywords]
        result = at(gast.Call(self.support(function), [owner, *given], named), s)
        out.append(assign(place, self.temporary(result, s, out, "written", tainted=True), s))

    def extend(self, owner: Any, value: Any, s: Any, out: Block) -> None:
        """`owner.extend(value)` as a loop of appends."""
        item = self.names.fresh("item")
        if self.taint.expr(value):
            self.taint.names.add(item)
        append = call(attribute(clone(owner), "append"), name(item))
        if isinstance(value, gast.Name):
            append.func.value.fact = getattr(owner, "fact", UNKNOWN)
        loop = at(
            gast.For(gast.Name(item, gast.Store(), None, None), value, [expression(append, s)], [], None), s
        )
        self.stmt_For(loop, out)

    def method(self, e: Any, s: Any, out: Block, used: bool) -> Any:
        """Methods of containers and arrays that write, as simpler statements. Returns the result's
        expression, or None if the call is to be taken as it is; for an unused result, something that is not
        None when statements were made."""
        attr, owner_kind = e.func.attr, getattr(e.func.value, "fact", UNKNOWN).kind
        if e.keywords and any(k.arg is None for k in e.keywords):
            return None
        tainted = self.taint.expr(e)
        if tainted and attr in LIST_MUTATORS and owner_kind in ("list", "unknown"):
            inside = self.inside(e, s, out, used)
            if inside is not None:
                return inside
        if owner_kind in ("array", "numeric") and attr in ("fill", "sort") and not used and tainted:
            owner = self.atom(e.func.value, s, out)
            if attr == "fill":
                out.append(
                    assign(
                        gast.Subscript(owner, constant(...), gast.Store()), self.atom(e.args[0], s, out), s
                    )
                )
            else:
                sort = gast.Call(self.support(trees.sort_array), [clone(owner), *e.args], e.keywords)
                ordered = self.temporary(at(sort, e), s, out, "ordered", tainted=True)
                out.append(assign(gast.Subscript(owner, constant(...), gast.Store()), ordered, s))
            return True
        written = table.written_by(getattr(np.ndarray, attr, None))
        if owner_kind in ("array", "numeric") and written is not None and not used and tainted:
            self.write_result(written, e.func.value, e.args, e.keywords, s, out)
            return True
        if owner_kind == "list" and tainted:
            owner = self.atom(e.func.value, s, out)
            if attr == "copy":
                return self.builtin(list, owner)
            if attr == "remove" and not used and len(e.args) == 1:
                found = call(attribute(clone(owner), "index"), self.atom(e.args[0], s, out))
                place = self.temporary(found, s, out, "place", tainted=False)
                out.append(at(gast.Delete([gast.Subscript(owner, place, gast.Del())]), s))
                return constant(None)
            if attr == "extend":
                self.extend(owner, self.atom(e.args[0], s, out), s, out)
                return constant(None)
            if attr == "sort" and not used:
                ordered = self.builtin(sorted, clone(owner))
                ordered.keywords = e.keywords
                t = self.temporary(ordered, s, out, "ordered", tainted=True)
                whole = gast.Subscript(owner, gast.Slice(None, None, None), gast.Store())
                out.append(assign(whole, t, s))
                return True
        if owner_kind == "dict" and tainted:
            owner = self.atom(e.func.value, s, out)
            if attr == "get":
                key = self.atom(e.args[0], s, out)
                made = self.names.fresh("t")
                self.taint.names.add(made)
                found = [assign(made, subscript(clone(owner), clone(key)), s)]
                default: Block = []
                value = self.atom(e.args[1], s, default) if len(e.args) > 1 else constant(None)
                default.append(assign(made, value, s))
                out.append(if_(gast.Compare(key, [gast.In()], [owner]), found, default, s))
                return name(made)
            if attr == "setdefault":
                key, value = self.atom(e.args[0], s, out), self.atom(e.args[1], s, out)
                place = gast.Subscript(clone(owner), clone(key), gast.Store())
                out.append(if_(gast.Compare(key, [gast.NotIn()], [owner]), [assign(place, value, s)], [], s))
                return subscript(clone(owner), clone(key))
            if attr == "pop":
                key = self.atom(e.args[0], s, out)
                made = self.names.fresh("t")
                self.taint.names.add(made)
                place = gast.Subscript(clone(owner), clone(key), gast.Del())
                found = [assign(made, subscript(clone(owner), clone(key)), s), at(gast.Delete([place]), s)]
                if len(e.args) > 1:
                    default = []
                    default.append(assign(made, self.atom(e.args[1], s, default), s))
                    out.append(if_(gast.Compare(key, [gast.In()], [owner]), found, default, s))
                else:
                    out.extend(found)
                return name(made)
            if attr == "update":
                pairs = []
                if e.args:
                    other = self.atom(e.args[0], s, out)
                    if getattr(e.args[0], "fact", UNKNOWN).kind != "dict":
                        raise self.refuse(e, "`update` with this", "Update with a dict.")
                    keys = self.temporary(self.builtin(list, clone(other)), s, out, "keys", tainted=False)
                    key = self.names.fresh("key")
                    place = gast.Subscript(clone(owner), name(key), gast.Store())
                    body = self.block([assign(place, subscript(clone(other), name(key)), s)])
                    out.append(
                        at(gast.For(gast.Name(key, gast.Store(), None, None), keys, body, [], None), s)
                    )
                pairs = [(constant(k.arg), k.value) for k in e.keywords]
                for k, v in pairs:
                    out.append(assign(gast.Subscript(clone(owner), k, gast.Store()), self.atom(v, s, out), s))
                return constant(None)
        return None

    def inside(self, e: Any, s: Any, out: Block, used: bool) -> Any:
        """`d[k].append(v)`: the list is taken out, changed, and put back; None for the methods of a list that
        has a name, and where no list is known to be meant."""
        place, attr = e.func.value, e.func.attr
        if isinstance(place, gast.Call) and isinstance(place.func, gast.Attribute):
            owner = getattr(place.func.value, "fact", UNKNOWN)
            if place.func.attr != "setdefault" or owner.kind != "dict":
                return None
            place = self.method(place, s, out, used=True)
        known = getattr(e.func.value, "fact", UNKNOWN).kind == "list"
        if not isinstance(place, (gast.Subscript, gast.Attribute)) or not isinstance(root(place), gast.Name):
            return None
        if not known and attr not in ("append", "extend", "insert", "reverse"):
            return None
        if attr == "sort" or root(place).id not in self.taint.names:
            return None
        path = self.path(place, s, out)
        taken = call(self.support(trees.as_list), self.value(clone(path), s, out))
        if not is_atom(taken.args[0]):
            taken.args[0] = self.temporary(taken.args[0], s, out, "part", tainted=True)
        start = len(out)
        part = self.temporary(at(taken, e), s, out, "items", tainted=True)
        part.fact = Fact("list", items=getattr(getattr(e.func.value, "fact", UNKNOWN), "items", None))
        changed = at(gast.Call(gast.Attribute(part, attr, gast.Load()), e.args, e.keywords), e)
        result = constant(None)
        if used:
            result = self.temporary(self.value(changed, s, out), s, out, "t", tainted=True)
        else:
            self.stmt_Expr(expression(changed, s), out)
        for x in _walk_statements(out[start:]):
            x.returned_to = root(place).id
        if not dataflow.displayed(root(place).id, self.body):
            held = (constant(root(place).id), constant(f"{self.source.filename}:{getattr(s, 'lineno', 0)}"))
            guard = call(self.support(trees.refuse_twice), clone(root(path)), clone(part), *held)
            out.insert(start + 1, expression(guard, s))
        store = clone(path)
        store.ctx = gast.Store()
        out.append(assign(store, clone(part), s))
        return result

    def support(self, function: Any) -> Any:
        made = self.externals.node(function)
        made.fact = Fact("function", const=function)
        return made

    # Expressions --------------------------------------------------------------------------------------------

    def temporary(self, e: Any, s: Any, out: Block, base: str = "", tainted: bool | None = None) -> Any:
        made = self.names.fresh(base or suggest(e))
        if self.taint.expr(e) if tainted is None else tainted:
            self.taint.names.add(made)
        out.append(assign(made, e, s))
        result = name(made)
        result.fact = getattr(e, "fact", UNKNOWN)
        return result

    def atom(self, e: Any, s: Any, out: Block) -> Any:
        if is_atom(e):
            return e
        value = self.value(e, s, out)
        return value if is_atom(value) else self.temporary(value, s, out)

    def inert(self, e: Any) -> bool:
        if not self.taint.expr(e):
            return not self.effects(e)
        return False

    def effects(self, e: Any) -> list[Any]:
        """Calls inside an expression that may write into what they are given, where that may be
        differentiated."""
        found = []
        for n in nodes.walk(e):
            if not isinstance(n, gast.Call):
                continue
            touched = any(self.taint.expr(a) for a in self.taint.arguments(n))
            if (
                isinstance(n.func, gast.Attribute)
                and n.func.attr in MUTATORS
                and self.taint.expr(n.func.value)
            ):
                found.append(n)
            elif isinstance(n.func, gast.Attribute) and self.of_object(n.func):
                if touched or self.taint.expr(n.func.value):
                    found.append(n)
            elif touched and not self.taint.discrete_call(n):
                function = _known(n.func)
                if isinstance(function, types.FunctionType) and not getattr(
                    function, "__module__", ""
                ).startswith("numpy"):
                    found.append(n)
                elif getattr(n.func, "fact", UNKNOWN).kind == "closure":
                    found.append(n)
        return found

    def of_object(self, func: Any) -> bool:
        """May what is called be a method of one of the user's classes?"""
        owner = getattr(func.value, "fact", UNKNOWN)
        if owner.kind == "instance":
            return isinstance(class_attribute(owner.items, func.attr), types.FunctionType)
        return owner.kind in ("unknown", "object") and func.attr in self.sight.methods

    def test(self, e: Any, s: Any, out: Block) -> Any:
        """The truth of an expression carries no derivative: it stays, but for calls that may write."""
        return self.discrete(e, s, out)

    def discrete(self, e: Any, s: Any, out: Block) -> Any:
        for found in self.effects(e):
            e = self.pull_out(e, found, s, out)
        return e

    def pull_out(self, e: Any, found: Any, s: Any, out: Block) -> Any:
        if e is found:
            return self.atom(e, s, out)
        new = clone(e)

        def replace(old: Any, made: Any, conditional: bool) -> Any:
            if old is found:
                if conditional:
                    return made  # evaluated only sometimes: stays, and counts as a plain call of the primal
                return self.atom(old, s, out)
            if isinstance(old, dataflow.SCOPES):
                conditional = True
            for field in old._fields:
                a, b = getattr(old, field, None), getattr(made, field, None)
                lazy = conditional or isinstance(old, gast.IfExp)
                if isinstance(a, list):
                    for i, (x, y) in enumerate(zip(a, b or [], strict=False)):
                        if isinstance(x, gast.AST) and b is not None:
                            b[i] = replace(x, y, lazy or (isinstance(old, gast.BoolOp) and i > 0))
                elif isinstance(a, gast.AST):
                    setattr(made, field, replace(a, b, lazy))
            return made

        return replace(e, new, False)

    def index(self, e: Any, s: Any, out: Block) -> Any:
        if isinstance(e, gast.Slice):
            parts = [None if p is None else self.atom(p, s, out) for p in (e.lower, e.upper, e.step)]
            return gast.Slice(*parts)
        if isinstance(e, gast.Tuple):
            made = tuple_([self.index(p, s, out) for p in e.elts])
            return at(made, e)
        if isinstance(e, (gast.List,)) and not dataflow.free_names(e):
            return e
        return self.atom(e, s, out)

    def value(self, e: Any, s: Any, out: Block, taint: bool = False) -> Any:
        """`e` as an operation on atoms."""
        if is_atom(e):
            return e
        if isinstance(e, (gast.Compare, gast.JoinedStr)) or (
            isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.Not)
        ):
            return self.discrete(e, s, out)
        if not taint and self.inert(e):
            return e
        method = getattr(self, "value_" + type(e).__name__, None)
        if method is None:
            return e
        made = method(e, s, out)
        if hasattr(e, "fact"):
            made.fact = e.fact
        return at(made, e)

    def value_BinOp(self, e: Any, s: Any, out: Block) -> Any:
        kinds = {getattr(x, "fact", UNKNOWN).kind for x in (e.left, e.right)}
        if isinstance(e.op, gast.BitOr) and kinds == {"dict"}:
            return self.value_Dict(gast.Dict([None, None], [e.left, e.right]), s, out)
        function = BINARY.get(type(e.op))
        made = None if function is None else self.operated(function, [e.left, e.right], s, out)
        if made is not None:
            return made
        left, right = self.atom(e.left, s, out), None
        if isinstance(e.op, gast.MatMult):
            (left, right), _ = self.arrays(np.matmul, [left, e.right], [], s, out)
        return gast.BinOp(left, e.op, self.atom(right or e.right, s, out))

    def value_UnaryOp(self, e: Any, s: Any, out: Block) -> Any:
        function = UNARY.get(type(e.op))
        made = None if function is None else self.operated(function, [e.operand], s, out)
        return made or gast.UnaryOp(e.op, self.atom(e.operand, s, out))

    def value_Subscript(self, e: Any, s: Any, out: Block) -> Any:
        joined = table.indexed_by(_known(e.value))
        if joined is not None:
            parts = e.slice.elts if isinstance(e.slice, gast.Tuple) else [e.slice]
            return at(call(self.support(joined), *[as_argument(self.index(p, s, out)) for p in parts]), e)
        if self.met(operators.getitem, e.value, e.slice) is not None:
            given = as_argument(self.index(e.slice, s, out))
            return self.operated(operators.getitem, [e.value, given], s, out)
        owner = self.atom(e.value, s, out)
        kind = getattr(e.value, "fact", UNKNOWN).kind
        axes = new_axes(e.slice)
        if axes and (
            kind in ("scalar", "numeric") or (kind == "unknown" and isinstance(e.slice, gast.Tuple))
        ):
            return call(self.support(np.expand_dims), owner, constant(axes))
        if kind == "scalar" and isinstance(e.slice, gast.Constant) and e.slice.value is ...:
            return call(self.support(np.asarray), owner)
        if kind == "scalar" and isinstance(e.slice, gast.Tuple) and not e.slice.elts:
            return owner
        return gast.Subscript(owner, self.index(e.slice, s, out), gast.Load())

    def value_Attribute(self, e: Any, s: Any, out: Block) -> Any:
        owner = getattr(e.value, "fact", UNKNOWN)
        if isinstance(e.value, gast.Call) and _known(e.value.func) is super:
            return self.of_super_attribute(e, s, out)
        computed = self.computed(e, s, out)
        if computed is not None:
            return computed
        if e.attr == "flat" and owner.kind in ("array", "numeric"):
            copied = gast.Attribute(self.atom(e.value, s, out), "flatten", gast.Load())
            return gast.Call(copied, [], [])
        made = gast.Attribute(self.atom(e.value, s, out), e.attr, gast.Load())
        made.carries = True
        return made

    def value_Starred(self, e: Any, s: Any, out: Block) -> Any:
        return gast.Starred(self.elements(e.value, s, out) or self.atom(e.value, s, out), gast.Load())

    def item(self, e: Any, s: Any, out: Block) -> Any:
        return self.value_Starred(e, s, out) if isinstance(e, gast.Starred) else self.atom(e, s, out)

    def value_Tuple(self, e: Any, s: Any, out: Block) -> Any:
        return tuple_([self.item(x, s, out) for x in e.elts])

    def value_List(self, e: Any, s: Any, out: Block) -> Any:
        return gast.List([self.item(x, s, out) for x in e.elts], gast.Load())

    def value_Dict(self, e: Any, s: Any, out: Block) -> Any:
        keys = [None if k is None else self.atom(k, s, out) for k in e.keys]
        return gast.Dict(keys, [self.atom(v, s, out) for v in e.values])

    def argument(self, e: Any, s: Any, out: Block) -> Any:
        """An argument of a call: an atom, or a literal without names such as `(0, 1)`."""
        if isinstance(e, gast.Starred):
            return self.value_Starred(e, s, out)
        if isinstance(e, gast.Lambda) or (
            not dataflow.free_names(e) and not isinstance(e, (gast.List, gast.Dict))
        ):
            return e
        return self.atom(e, s, out)

    def value_Call(self, e: Any, s: Any, out: Block) -> Any:
        if self.taint.discrete_call(e) and not self.effects(e):
            e.discrete = True
            return e
        if isinstance(e.func, gast.Attribute):
            if getattr(e.func.value, "fact", UNKNOWN).kind in NUMBERS:
                name_method_result(e)
            lowered = self.method(e, s, out, used=True)
            if lowered is not None:
                return lowered if is_atom(lowered) else self.value(lowered, s, out)
        e = self.of_class(e, s, out)
        func = e.func
        made_by = isinstance(func, gast.Call) or getattr(func, "attr", "") == "__class__"
        if made_by and isinstance(_known(func), type) or id(_known(func)) in _WRITTEN:
            func = self.support(_known(func))
        elif isinstance(func, gast.Attribute) and not is_atom(func):
            if getattr(func, "fact", UNKNOWN).known and getattr(func.value, "fact", UNKNOWN).kind in (
                "module",
                "function",
            ):
                pass
            else:
                func = at(gast.Attribute(self.atom(func.value, s, out), func.attr, gast.Load()), func)
                func.fact = getattr(e.func, "fact", UNKNOWN)
        elif not is_atom(func):
            func = self.atom(func, s, out)
        ufunc = _known(func)
        if ufunc is zip and _one_star(e):
            return self.columns(e, s, out)
        if ufunc is map and len(e.args) >= 2:
            return self.mapped(e, s, out)
        made = self.called(ufunc, e, s, out)
        if made is not None:
            return made
        given, result_into = self.consumed(ufunc, list(e.args), s, out), None
        if ufunc is np.einsum:
            given = _with_subscripts(given)
        spread = any(isinstance(a, gast.Starred) for a in given)
        if isinstance(ufunc, np.ufunc) and len(given) == ufunc.nin + 1 and not spread:
            result_into = self.through(given.pop(), s, out)
        given, named = self.arrays(ufunc, given, e.keywords, s, out)
        args = [self.argument(a, s, out) for a in given]
        keywords = []
        options = {k.arg: k.value for k in named if isinstance(ufunc, np.ufunc)}
        if "dtype" in options:
            args = [self.of_dtype(a, options["dtype"], s, out) for a in args]
        where = self.argument(options["where"], s, out) if "where" in options and "out" in options else None
        for k in named:
            if k.arg == "dtype" and "dtype" in options or k.arg == "where" and where is not None:
                continue
            if k.arg == "out" and not (isinstance(k.value, gast.Constant) and k.value.value is None):
                into = (
                    k.value.elts[0] if isinstance(k.value, gast.Tuple) and len(k.value.elts) == 1 else k.value
                )
                result_into = self.through(into, s, out)
            else:
                keywords.append(gast.keyword(k.arg, self.argument(k.value, s, out)))
        made = self.started(at(gast.Call(func, args, keywords), e), s, out)
        if args and isinstance(args[0], gast.Name) and gives_itself(_known(func)):
            out.append(expression(made, s))
            return args[0]
        if result_into is None:
            return made
        t = self.temporary(made, s, out, tainted=True)
        place, read = result_into
        if where is not None:
            old = read if is_atom(read) else self.temporary(clone(read), s, out, "part", tainted=True)
            chosen = gast.Call(self.support(np.where), [where, t, clone(old)], [])
            t = self.temporary(at(chosen, e), s, out, tainted=True)
        out.append(assign(place, t, s))
        return clone(read)

    def ruled(self, e: Any) -> tuple[Any, list[Any]]:
        """The function with a rule that a call refers to, and its positional arguments."""
        if isinstance(e.func, gast.Attribute) and not getattr(e.func, "fact", UNKNOWN).known:
            if getattr(e.func.value, "fact", UNKNOWN).kind in NUMBERS:
                return getattr(np.ndarray, e.func.attr, None), [e.func.value, *e.args]
            return None, []
        return _known(e.func), e.args

    def started(self, e: Any, s: Any, out: Block) -> Any:
        """A reduction that starts with a differentiated value, as one operation more."""
        function, args = self.ruled(e)
        kept = [k for k in e.keywords if k.arg != "initial"]
        if len(kept) == len(e.keywords) or getattr(function, "__name__", "") not in STARTED:
            return e
        (initial,) = [k.value for k in e.keywords if k.arg == "initial"]
        plain, join, neutral = STARTED[function.__name__]
        if not self.taint.expr(initial) or function not in (
            plain,
            getattr(np.ndarray, function.__name__, None),
        ):
            return e
        kept.append(gast.keyword("initial", constant(neutral)))
        reduced = self.temporary(gast.Call(self.support(plain), args, kept), s, out, tainted=True)
        return at(gast.Call(self.support(join), [reduced, initial], []), e)

    def of_dtype(self, a: Any, dtype: Any, s: Any, out: Block) -> Any:
        """An argument of a ufunc in the type in which it is to compute."""
        made = gast.Call(self.support(np.asarray), [a], [gast.keyword("dtype", clone(dtype))])
        return self.temporary(made, s, out, tainted=True)

    def arrays(
        self, function: Any, given: list[Any], named: list[Any], s: Any, out: Block
    ) -> tuple[list[Any], list[Any]]:
        """The arguments of a function of NumPy's or SciPy's, lists among them as the arrays it makes of
        them."""
        rule = table.find(function)
        if rule is None or not rule.differentiable or function in (np.array, np.asarray):
            return given, named
        owner = getattr(function, "__self__", None)  # of a ufunc's methods
        module = (getattr(function, "__module__", None) or type(function).__module__ or "").split(".")[0]
        ufunc = isinstance(function, np.ufunc) or isinstance(owner, np.ufunc)
        values = [*given, *(k.value for k in named)]
        if module not in ("numpy", "scipy") and not ufunc or not any(map(self.taint.expr, values)):
            return given, named
        names = [p.name for p in rule.parameters]
        sequences = ("list",) if module == "scipy" else ("list", "tuple")

        def array(a: Any, parameter: str) -> Any:
            kind = getattr(a, "fact", UNKNOWN).kind
            if kind not in sequences or parameter not in rule.wrt:
                return a
            if not ufunc and _takes_sequences(rule, names.index(parameter)):
                return a
            call_ = at(gast.Call(self.support(np.asarray), [self.atom(a, s, out)], []), a)
            made = self.temporary(call_, s, out, "a", tainted=self.taint.expr(a))
            made.fact = Fact("numeric")
            return made

        placed = [array(a, n) for a, n in zip(given, names, strict=False)]
        return (
            [*placed, *given[len(placed) :]],
            [gast.keyword(k.arg, array(k.value, k.arg)) for k in named],
        )

    def of_class(self, e: Any, s: Any, out: Block) -> Any:
        """A call of a method, or of an instance, as a call of the function that its class defines."""
        func = e.func
        owner = getattr(func, "fact", UNKNOWN)
        receiver, method = func, "__call__"
        if (
            isinstance(func, gast.Attribute)
            and isinstance(func.value, gast.Call)
            and _known(func.value.func) is super
        ):
            return self.of_super(e, func)
        if isinstance(func, gast.Attribute):
            owner, receiver, method = getattr(func.value, "fact", UNKNOWN), func.value, func.attr
        bound = _known(func)
        if isinstance(bound, types.MethodType) and table.find(bound) is not None:
            return e
        if isinstance(bound, types.MethodType) and isinstance(func, gast.Attribute) and is_atom(func.value):
            if isinstance(bound.__func__, types.FunctionType):  # a class method
                made = gast.Call(self.support(bound.__func__), [func.value, *e.args], e.keywords)
                made.fact = getattr(e, "fact", UNKNOWN)
                return at(made, e)
        if owner.kind != "instance":
            return e
        found = class_attribute(owner.items, method)
        if not isinstance(found, types.FunctionType):
            return e
        made = gast.Call(self.support(found), [self.atom(receiver, s, out), *e.args], e.keywords)
        made.fact = getattr(e, "fact", UNKNOWN)
        return at(made, e)

    def of_super(self, e: Any, func: Any) -> Any:
        """`super().method(...)` as a call of the function that comes next in the order of the object's
        class."""
        found = None if func.value.args else self.next_in_order(func.attr)
        if isinstance(found, types.FunctionType):
            made = gast.Call(self.support(found), [name(self.self_name), *e.args], e.keywords)
            return at(made, e)
        if self.self_name in self.taint.names:
            raise self.refuse(e, "this use of `super()`", "Call the base class by its name.")
        return e

    def next_in_order(self, attr: str) -> Any:
        """What the classes after this method's own, in the order of the object's class, hold under a name."""
        cell = self.externals.scope.cells.get("__class__")
        if cell is None or self.self_fact.kind != "instance":
            return None
        order = self.self_fact.items.__mro__
        following = order[order.index(cell.cell_contents) + 1 :] if cell.cell_contents in order else ()
        return next((vars(c)[attr] for c in following if attr in vars(c)), None)

    def of_super_attribute(self, e: Any, s: Any, out: Block) -> Any:
        """`super().attribute`: the getter of a property; other things are not told apart."""
        found = self.next_in_order(e.attr)
        if e.value.args or not isinstance(found, property) or not isinstance(found.fget, types.FunctionType):
            raise self.refuse(e, "this use of `super()`", "Call the base class by its name.")
        return gast.Call(self.support(found.fget), [name(self.self_name)], [])

    def mapped(self, e: Any, s: Any, out: Block) -> Any:
        """`map(f, xs)` as a loop that fills a list."""
        function = e.args[0] if is_atom(e.args[0]) else self.atom(e.args[0], s, out)
        made = self.names.fresh("items")
        self.taint.names.add(made)
        out.append(assign(made, gast.List([], gast.Load()), s))
        item = self.names.fresh("item")
        self.taint.names.add(item)
        it = e.args[1] if len(e.args) == 2 else self.builtin(zip, *e.args[1:])
        parts = (
            [name(item)]
            if len(e.args) == 2
            else [subscript(name(item), constant(i)) for i in range(len(e.args) - 1)]
        )
        append = call(attribute(made, "append"), call(clone(function), *parts))
        append.func.value.fact = Fact("list")
        append.args[0].func.fact = getattr(function, "fact", UNKNOWN)
        loop = gast.For(gast.Name(item, gast.Store(), None, None), it, [expression(append, s)], [], None)
        self.stmt_For(at(loop, s), out)
        result = name(made)
        result.fact = Fact("list")
        return result

    def refuse(self, node: Any, what: str, why: str) -> Exception:
        return fail(UnsupportedSyntax, self.source, node, f"cannot differentiate {what}", why)


def as_argument(index: Any) -> Any:
    """An index as an argument of a call: slices become `slice(...)`."""
    if isinstance(index, gast.Slice):
        return call(
            "slice", *(p if p is not None else constant(None) for p in (index.lower, index.upper, index.step))
        )
    if isinstance(index, gast.Tuple):
        return gast.Tuple([as_argument(p) for p in index.elts], gast.Load())
    return index


def _with_subscripts(args: list[Any]) -> list[Any]:
    """The arguments of an einsum that gives its indices in lists, `A, [0, 1], v, [1], [0]`, as
    `"ab,b->a", A, v`."""
    lists = args[1::2] if len(args) % 2 == 0 else [*args[1::2], args[-1]]
    if not lists or not all(isinstance(i, gast.List) for i in lists):
        return args
    words = []
    for i in lists:
        if not all(isinstance(n, gast.Constant) and (n.value is ... or n.value < 26) for n in i.elts):
            return args
        words.append("".join("..." if n.value is ... else string.ascii_lowercase[n.value] for n in i.elts))
    operands = args[: 2 * (len(args) // 2) : 2]
    result = "->" + words.pop() if len(args) % 2 else ""
    return [constant(",".join(words) + result), *operands]


def _is_flat(to: Any) -> bool:
    """Is the target of a store an element, or several, of an array's `flat`?"""
    if not (isinstance(to, gast.Subscript) and isinstance(to.value, gast.Attribute)):
        return False
    owner = getattr(to.value.value, "fact", UNKNOWN)
    return bool(to.value.attr == "flat" and owner.kind in ("array", "numeric"))


def _changes_attributes(s: Any, element: Any) -> bool:
    """Does a loop's body store attributes of what it goes through, so that these are to be stored in the
    sequence?"""
    n = s.target.id
    bound = dataflow.bound_names(s.body)
    if {n, getattr(element.value, "id", "")} & bound or not isinstance(element.value, gast.Name):
        return False
    places = [x for b in s.body for x in nodes.walk(b) if isinstance(x, gast.Attribute)]
    return any(isinstance(x.ctx, gast.Store) and getattr(x.value, "id", "") == n for x in places)


def _one_star(e: Any) -> bool:
    """Is a call of the form `f(*xs)`?"""
    plain = all(k.arg == "strict" for k in e.keywords)
    return len(e.args) == 1 and isinstance(e.args[0], gast.Starred) and plain


def _computed_store(to: Any) -> bool:
    """Does the class of an instance decide what a store into it does?"""
    cls = to.value.fact.items
    if isinstance(to, gast.Subscript):
        return operators.method(cls, "__setitem__") is not None
    return isinstance(class_attribute(cls, to.attr), property)


def new_axes(index: Any) -> tuple[int, ...]:
    """The axes that an index adds, if it does nothing else: `None`, `..., None`, `None, None`; else `()`.

    >>> new_axes(gast.parse("x[None, ..., None]").body[0].value.slice)
    (0, -1)
    """
    parts = index.elts if isinstance(index, gast.Tuple) else [index]
    kinds = [
        None if getattr(p, "attr", "") == "newaxis" else p.value if isinstance(p, gast.Constant) else 0
        for p in parts
    ]
    if None not in kinds or any(k is not None and k is not ... for k in kinds) or kinds.count(...) > 1:
        return ()
    first = kinds.index(...) if ... in kinds else len(kinds)
    return (*range(first), *range(first + 1 - len(kinds), 0))


def _takes_sequences(rule: Any, position: int) -> bool:
    return any(
        len(c.args) > position
        and isinstance(c.args[position], (tuple, list))
        and not _numbers(c.args[position])
        for c in rule.at
    )


def _numbers(x: Any) -> bool:
    return isinstance(x, list) and all(isinstance(v, (int, float)) or _numbers(v) for v in x)


def _known(func: Any) -> Any:
    fact = getattr(func, "fact", None)
    return fact.const if fact is not None and getattr(fact, "known", False) else None


def _element_kind(owner: Any) -> str:
    items = getattr(owner, "items", None)
    if owner.kind == "list" and items is not None:
        return str(items.kind)
    if owner.kind == "dict" and items and len({f.kind for _, f in items}) == 1:
        return str(items[0][1].kind)
    return "unknown"


def basic_index(index: Any) -> bool:
    """Is an index made of integers, slices, None and ... only, as far as the facts tell?"""
    parts = index.elts if isinstance(index, gast.Tuple) else [index]
    for p in parts:
        if isinstance(p, gast.Slice):
            continue
        if isinstance(p, gast.Constant):
            if isinstance(p.value, bool):
                return False
            continue
        if isinstance(p, gast.UnaryOp) and isinstance(p.operand, gast.Constant):
            continue
        if getattr(p, "fact", UNKNOWN).kind != "scalar":
            return False
    return True


SUGGESTED = {gast.Add: "s", gast.Sub: "d", gast.Mult: "p", gast.Div: "q", gast.Pow: "r", gast.MatMult: "m"}


def suggest(e: Any) -> str:
    """A short name for a temporary, after the operation that makes it."""
    if isinstance(e, gast.BinOp):
        return SUGGESTED.get(type(e.op), "t")
    if isinstance(e, gast.Call):
        func = e.func
        word = func.attr if isinstance(func, gast.Attribute) else getattr(func, "id", "t")
        return (
            str(word) if len(word) <= 4 and word.isidentifier() and word.islower() else str(word)[0].lower()
        )
    return "t"


def _walk_statements(body: Block) -> Any:
    for s in body:
        yield s
        for inner in dataflow.blocks(s):
            yield from _walk_statements(inner)


def _makes_functions(s: Any) -> bool:
    return any(isinstance(n, (gast.FunctionDef, gast.Lambda)) for n in nodes.walk(s))


def _all_blocks(body: Block) -> Any:
    yield body
    for s in body:
        for inner in dataflow.blocks(s):
            yield from _all_blocks(inner)


# Names ------------------------------------------------------------------------------------------------------


class _Rename:
    """Gives each value of a variable a name of its own, and hands values on by copies where paths join."""

    def __init__(
        self,
        source: Source,
        names: Names,
        taint: Taint,
        tree: gast.FunctionDef,
        outer: dict[str, list[str]],
        externals: Externals,
    ) -> None:
        self.externals = externals
        self.source, self.names, self.taint, self.tree, self.outer = source, names, taint, tree, outer
        self.live: dataflow.Live = {}
        self.given: set[str] = set()
        self.unsure: set[str] = set()
        """Names that one of the paths that join leaves unbound."""
        self.now: dict[str, str] = {}
        """The same for functions that are only called by their name."""
        self.idle: set[str] = set()
        """Names of variables that every round of a loop binds anew, whatever they were before."""
        self.late: dict[str, str] = {}
        """Variables that are bound again after a function which is kept has captured them, each with the
        variable that such functions read: it always has the present value."""

    def function(self) -> None:
        body = self.tree.body
        self.local = dataflow.bound_names(body) | {p.id for p in dataflow.parameters(self.tree)}
        self.closures = {s.name: s for s in _walk_statements(body) if isinstance(s, gast.FunctionDef)}
        self.frees = self._free_variables()
        dataflow.liveness(body, set(), self.live, self.frees)
        self.pinned = self._pinned(body)
        env = {p.id: p.id for p in dataflow.parameters(self.tree)}
        self.given = set(env)
        known: Block = []
        self.present(list(env), env, self.tree, known)
        self.block(body, env)
        body[:0] = known
        self.tree.idle, self.tree.pinned = self.idle, self.pinned | set(self.now.values())
        self.tree.late = {v: self.names.fresh(f"{n}_cell") for n, v in self.late.items()}
        copied = {
            s.value.id
            for s in _walk_statements(body)
            if isinstance(s, gast.Assign)
            and isinstance(s.targets[0], gast.Name)
            and isinstance(s.value, gast.Name)
        }
        for n in sorted(copied & self.unsure):  # a copy would fail where the name is unbound
            start = assign(n, constant(None))
            start.predefined = True
            body.insert(0, start)

    def _free_variables(self) -> dict[str, list[str]]:
        visible = self.local | set(self.outer)
        frees = {n: dataflow.free_names(s) & visible for n, s in self.closures.items()}
        for n, s in self.closures.items():  # default values are read where the function is defined
            inside = dataflow.free_names(s.body)
            frees[n] -= {d.id for d in self.computed_defaults(s).values()} - inside
        for free in frees.values():  # what a function further out has captured is a variable here too
            for n in free & set(self.outer):
                free |= set(self.outer[n])
        changed = True
        while changed:
            changed = False
            for free in frees.values():
                more = set().union(*(frees[f] for f in free if f in frees)) if free else set()
                if more - free:
                    free |= more
                    changed = True
        hidden = set(self.closures) | set(self.outer)
        return {n: sorted(f for f in free if f not in hidden) for n, free in frees.items()}

    def _pinned(self, body: Block) -> set[str]:
        """Names that keep one variable throughout: those declared global or nonlocal, and those that a
        function which is used as a value has captured."""
        pinned: set[str] = set()
        escaping: set[str] = set()
        for s in _walk_statements(body):
            if isinstance(s, (gast.Global, gast.Nonlocal)):
                pinned |= set(s.names)
                for n in s.names:
                    if n in self.taint.names:
                        raise self.refuse(
                            s, f"a write to the global or nonlocal `{n}`", "Return the value instead."
                        )
            if isinstance(s, gast.ClassDef):
                pinned |= dataflow.free_names(s.body) & self.local
            if isinstance(s, gast.FunctionDef):
                for inner in nodes.walk(s):
                    if (
                        isinstance(inner, gast.Nonlocal)
                        and s.name in self.taint.names
                        and set(inner.names) & self.local
                    ):
                        raise self.refuse(
                            s,
                            f"a nested function that writes the `nonlocal` `{inner.names[0]}`",
                            "Return it.",
                        )
                    if isinstance(inner, gast.Nonlocal) and set(inner.names) & self.taint.names & self.local:
                        raise self.refuse(
                            s,
                            f"a write to `{inner.names[0]}` of the enclosing function",
                            "Return it instead.",
                        )
        for s in _walk_statements(body):
            heads = [s.value] if isinstance(s, (gast.Assign, gast.Expr)) else list(nodes.children(s))
            for node in heads:
                for n, direct in _uses(node, s):
                    if n in self.closures and not direct:
                        escaping.add(n)
        todo = list(escaping)
        while todo:  # a function that an escaping one calls escapes too
            n = todo.pop()
            for f in dataflow.free_names(self.closures[n]) & set(self.closures):
                if f not in escaping:
                    escaping.add(f)
                    todo.append(f)
        self.escaping = escaping
        places: dict[int, tuple[int, tuple[int, ...]]] = {}
        bindings: dict[str, list[int]] = {}
        _number(body, (), places, bindings)
        holding = {n for n, s in self.closures.items() if any(_makes_functions(b) for b in s.body)}
        kept = {n: self._kept(self.closures[n]) for n in holding}
        bound_by = (gast.Assign, gast.AugAssign, gast.For, gast.With)
        for s in _walk_statements(body):  # functions that carry no derivative stay as they are
            if isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                continue
            position, loops = places[id(s)]
            applied = {id(e.func) for e in dataflow.head_nodes(s) if isinstance(e, gast.Call)}
            for e in dataflow.head_nodes(s):
                if isinstance(e, (gast.Lambda, gast.GeneratorExp)) and id(e) not in applied:
                    pinned |= {
                        n
                        for n in dataflow.free_names(e) - self.taint.names
                        for b in bindings.get(n, [])
                        if places[b][0] > position or set(places[b][1]) & set(loops)
                    }
        odd = {
            n for s in _walk_statements(body) if not isinstance(s, bound_by) for n in dataflow.head_binds(s)
        }
        used = _used_names(body)
        for n in sorted(self.closures.keys() & used):  # what nobody can call reads nothing
            position, loops = places[id(self.closures[n])]
            for free in self.frees[n]:
                later = [
                    b
                    for b in bindings.get(free, [])
                    if places[b][0] > position or set(places[b][1]) & set(loops)
                ]
                if later and not self.transient(self.closures[n], free, body):
                    if free not in self.taint.names:
                        pinned.add(free)
                    elif n not in escaping and free not in kept.get(n, ()):
                        # It reads the variable only while it is called; a call without a derivative stays.
                        if free not in odd and free not in self.now:
                            self.now[free] = self.names.fresh(f"{free}_now")
                            self.taint.names.add(self.now[free])
                    elif free in kept.get(n, ()) or free in odd:
                        raise self.refuse(
                            self.closures[n],
                            f"a function that captured `{free}`, which is bound again later",
                            f"Pass `{free}` as an argument.",
                        )
                    elif free not in self.late:
                        self.late[free] = self.names.fresh(f"{free}_late")
                        self.taint.names.add(self.late[free])
        return pinned

    def _kept(self, s: Any) -> set[str]:
        """The variables that functions made by `s` have captured which may be called after `s` was."""
        called, given = set(), set()
        for n in nodes.walk(s):
            if isinstance(n, gast.Call):
                called.add(id(n.func))
                rule = table.find(self.taint.lookup(n.func))
                if rule is not None:  # which calls what it is given at once
                    given |= {id(a) for a in [*n.args, *(k.value for k in n.keywords)]}
        found: set[str] = set()
        for n in nodes.walk(s):
            if isinstance(n, gast.Assign) and isinstance(n.value, gast.Lambda):
                (to, *more) = n.targets
                if isinstance(to, gast.Name) and not more and not self._used(s, to.id, called):
                    given.add(id(n.value))
            if isinstance(n, gast.Lambda) and id(n) not in called | given:
                found |= dataflow.free_names(n)
            elif isinstance(n, gast.FunctionDef) and n is not s and self._used(s, n.name, called):
                found |= dataflow.free_names(n)
        return found

    def _used(self, s: Any, n: str, called: set[int]) -> bool:
        """Is the function `n`, defined in `s`, used otherwise than called?"""
        uses = [u for u in nodes.walk(s) if isinstance(u, gast.Name) and u.id == n]
        return any(id(u) not in called and not isinstance(u.ctx, gast.Store) for u in uses)

    def present(self, variables: Iterable[str], env: dict[str, str], like: Any, out: Block) -> None:
        """Hands the new values of variables to the functions that have captured them."""
        for n in dict.fromkeys(variables):
            for present in (self.late.get(n), self.now.get(n)):
                if present is not None:
                    out.append(assign(present, name(env[n]), like))

    def transient(self, s: Any, free: str, body: Block) -> bool:
        """Is a lambda only handed to one call, right after it was made, that can't keep it?"""
        if not getattr(s, "is_lambda", False):
            return False
        block: Block = next((b for b in _all_blocks(body) if any(x is s for x in b)), [])
        start = next((i for i, x in enumerate(block) if x is s), 0)
        uses = [i for i, x in enumerate(block) if s.name in dataflow.head_reads(x)]
        inner = any(s.name in dataflow.reads(b) for x in block for b in dataflow.blocks(x))
        if inner or len(uses) != 1 or uses[0] <= start:
            return False
        call_ = getattr(block[uses[0]], "value", None)
        if any(free in dataflow.bound_names([x]) for x in block[start + 1 : uses[0]]):
            return False
        if not isinstance(call_, gast.Call) or table.find(_known(call_.func)) is None:
            return False  # a method, or a user's function, may keep it
        return getattr(call_, "fact", UNKNOWN).kind in ("scalar", "array", "numeric", "string", "none")

    def refuse(self, node: Any, what: str, why: str) -> Exception:
        return fail(UnsupportedSyntax, self.source, node, f"cannot differentiate {what}", why)

    def new(self, variable: str) -> str:
        """A name for a further value of a variable; the first value gets the variable's own name."""
        if variable not in self.given:
            self.given.add(variable)
            return variable
        made = self.names.version(variable)
        if variable in self.taint.names:
            self.taint.names.add(made)
        return made

    def rename(self, node: Any, env: dict[str, str]) -> Any:
        return _Apply(self, env).visit(node)

    def block(self, body: Block, env: dict[str, str]) -> None:
        out: Block = []
        for s in body:
            getattr(self, "stmt_" + type(s).__name__, self.other)(s, env, out)
        body[:] = out

    def bind(self, variable: str, env: dict[str, str]) -> str:
        if variable in self.pinned:
            env[variable] = variable
            return variable
        env[variable] = self.new(variable)
        return env[variable]

    def other(self, s: Any, env: dict[str, str], out: Block) -> None:
        out.append(self.rename(s, env))
        for n in dataflow.head_binds(s):
            env.setdefault(n, n)

    def stmt_Assign(self, s: Any, env: dict[str, str], out: Block) -> None:
        s.value = self.rename(s.value, env)
        (to,) = s.targets
        variables: list[str] = []
        if isinstance(to, gast.Name):
            variables = [to.id]
            to.id = self.bind(to.id, env)
        elif isinstance(to, gast.Tuple):
            for part in to.elts:
                inner = part.value if isinstance(part, gast.Starred) else part
                variables.append(inner.id)
                inner.id = self.bind(inner.id, env)
        else:
            s.targets = [self.rename(to, env)]
        out.append(s)
        self.present(variables, env, s, out)

    def stmt_AugAssign(self, s: Any, env: dict[str, str], out: Block) -> None:
        s.value = self.rename(s.value, env)
        variable = s.target.id if isinstance(s.target, gast.Name) else None
        if variable is not None:
            s.target.id = env.get(variable, variable)
        else:
            s.target = self.rename(s.target, env)
        out.append(s)
        if variable is not None:
            self.present([variable], env, s, out)

    def stmt_Match(self, s: Any, env: dict[str, str], out: Block) -> None:
        s.subject = self.rename(s.subject, env)
        before = dict(env)
        fresh: dict[str, str] = {}
        for c in s.cases:
            inner = dict(before)
            for p in nodes.walk(c.pattern):
                for field in ("name", "rest"):
                    v = getattr(p, field, None)
                    if isinstance(v, str):
                        if v not in fresh:
                            fresh[v] = self.bind(v, env)
                            if v in before:  # the value that it keeps if nothing matches
                                out.append(assign(fresh[v], name(before[v]), s))
                        inner[v] = fresh[v]
                        setattr(p, field, fresh[v])
                if isinstance(p, gast.MatchValue):
                    p.value = self.rename(p.value, before)
            if c.guard is not None:
                c.guard = self.rename(c.guard, inner)
            for b in c.body:  # the number of the case
                for n in nodes.walk(b):
                    if isinstance(n, gast.Name):
                        n.id = env.get(n.id, n.id)
        out.append(s)

    def stmt_FunctionDef(self, s: Any, env: dict[str, str], out: Block) -> None:
        for values in (s.args.defaults, s.args.kw_defaults):
            values[:] = [d if d is None else self.rename(d, env) for d in values]
        known = {n: env[n] for n in self.frees[s.name] if n in env}
        present = self.late if s.name in self.escaping else self.now
        known |= {n: present[n] for n in self.frees[s.name] if n in present}
        written = clone(s)  # as the user wrote it, for its own derivative
        _Rebind({k: v for k, v in known.items() if k != v}).visit_body(s)
        s.held = {p: d.id for p, d in self.computed_defaults(s).items()}
        for values in (written.args.defaults, written.args.kw_defaults):
            values[:] = [constant(None) if isinstance(d, gast.Name) else d for d in values]
        s.original = written
        s.captured = known
        s.frees = written.frees = self.frees[s.name]
        s.escapes = s.name in self.escaping
        s.name = self.bind(s.name, env) if s.name not in self.closures else s.name
        self.given.add(s.name)
        env[s.name] = s.name
        out.append(s)

    def computed_defaults(self, s: Any) -> dict[str, Any]:
        """The parameters whose default value is computed, and the names of those values."""
        a = s.args
        positional = a.posonlyargs + a.args
        pairs = [
            *zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True),
            *zip(a.kwonlyargs, a.kw_defaults, strict=True),
        ]
        return {p.id: d for p, d in pairs if isinstance(d, gast.Name)}

    def stmt_If(self, s: Any, env: dict[str, str], out: Block) -> None:
        s.test = self.rename(s.test, env)
        then, other = dict(env), dict(env)
        self.block(s.body, then)
        self.block(s.orelse, other)
        merged = self.merge([(s.body, then), (s.orelse, other)], env, self.live[id(s)], s)
        out.append(s)
        env.update(merged)

    def merge(
        self, paths: list[tuple[Block, dict[str, str]]], env: dict[str, str], live: set[str], s: Any
    ) -> dict[str, str]:
        """After paths join: one name for each variable that they left with different ones."""
        merged: dict[str, str] = {}
        variables = sorted({v for _, e in paths for v in e if e.get(v) != env.get(v)})
        for v in variables:
            if v not in live:
                merged[v] = env.get(v, v)
                continue
            ends = {e.get(v) for _, e in paths}
            if len(ends) == 1:
                merged[v] = paths[0][1][v]
                continue
            joint = self.new(v)
            merged[v] = joint
            for block, e in paths:
                if e.get(v) is not None:
                    block.append(assign(joint, name(e[v]), s))
                else:
                    self.unsure.add(joint)
        return merged

    def loop(self, s: Any, env: dict[str, str], out: Block, targets: list[Any]) -> None:
        after = self.live[id(s)]
        assigned = dataflow.bound_names([s]) if isinstance(s, gast.For) else dataflow.bound_names(s.body)
        around = self._live_at_head(s, after)
        carried = sorted(
            v for v in assigned if v in (around | after) and v not in self.pinned and v not in self.closures
        )
        heads = {}
        read = dataflow.Liveness({}, self.frees).before(s.body, set(), None) | dataflow.head_reads(s)
        if isinstance(s, gast.For):
            read -= dataflow.head_binds(s)
        for v in carried:
            head = self.new(v)
            if v not in read:
                self.idle.add(head)
            if v in env:
                out.append(assign(head, name(env[v]), s))
            elif v in around:
                start = assign(head, constant(None), s)
                start.predefined = True
                out.append(start)
            heads[v] = head
            env[v] = head
        inner = dict(env)
        bound = [t for to in targets for t in nodes.walk(to) if isinstance(t, gast.Name)]
        variables = [n.id for n in bound]
        for n in bound:
            n.id = self.bind(n.id, inner)
        if isinstance(s, gast.While):
            s.test = self.rename(s.test, env)
        known: Block = []
        self.present(variables, inner, s, known)
        self.block(s.body, inner)
        s.body[:0] = known
        copies = [(heads[v], inner[v]) for v in carried if inner.get(v) != heads[v]]
        tail: Block = []
        if (
            s.body
            and isinstance(s.body[-1], gast.If)
            and any(isinstance(b, gast.Break) for b in s.body[-1].body)
        ):
            tail = [s.body.pop()]
        s.body.extend(self.parallel(copies, s))
        s.body.extend(tail)
        out.append(s)

    def _live_at_head(self, s: Any, after: set[str]) -> set[str]:
        return dataflow.liveness([s], set(after), None, self.frees) | self._loop_carried(s, after)

    def _loop_carried(self, s: Any, after: set[str]) -> set[str]:
        live = set(after) | dataflow.head_reads(s)
        while True:
            inner = dataflow.Liveness({}, self.frees).before(s.body, live, after)
            new = live | (inner - dataflow.head_binds(s))
            if new == live:
                return live
            live = new

    def parallel(self, copies: list[tuple[str, str]], s: Any) -> Block:
        """Copies that happen at once, in an order (and with temporaries) such that none reads an overwritten
        name."""
        out: Block = []
        pending = list(copies)
        while pending:
            for pair in pending:
                if not any(source == pair[0] for _, source in pending if (_, source) != pair):
                    out.append(assign(pair[0], name(pair[1]), s))
                    pending.remove(pair)
                    break
            else:
                to, source = pending[0]
                made = self.names.fresh("t")
                if source in self.taint.names:
                    self.taint.names.add(made)
                # The cycle is cut where `to`, still to be read by another copy, would be overwritten.
                out.append(assign(made, name(to), s))
                pending = [(t, made if x == to else x) for t, x in pending]
        return out

    def stmt_For(self, s: Any, env: dict[str, str], out: Block) -> None:
        s.iter = self.rename(s.iter, env)
        self.loop(s, env, out, [s.target])

    def stmt_While(self, s: Any, env: dict[str, str], out: Block) -> None:
        self.loop(s, env, out, [])

    def stmt_With(self, s: Any, env: dict[str, str], out: Block) -> None:
        variables: list[str] = []
        for item in s.items:
            item.context_expr = self.rename(item.context_expr, env)
            if item.optional_vars is not None:
                for n in [t for t in nodes.walk(item.optional_vars) if isinstance(t, gast.Name)]:
                    if isinstance(n.ctx, gast.Store):
                        variables.append(n.id)
                        n.id = self.bind(n.id, env)
        known: Block = []
        self.present(variables, env, s, known)
        self.block(s.body, env)
        s.body[:0] = known
        out.append(s)

    def stmt_Try(self, s: Any, env: dict[str, str], out: Block) -> None:
        if not s.handlers:
            self.block(s.body, env)
            self.block(s.finalbody, env)
            out.append(s)
            return
        live = self.live[id(s)] | dataflow.liveness(s.finalbody, set(self.live[id(s)]), None, self.frees)
        handled = set().union(*(dataflow.liveness(h.body, set(live)) for h in s.handlers))
        # What only the last statement binds is as it was before, where an exception comes.
        assigned = dataflow.bound_names(s.body[:-1] if isinstance(s.body[-1], gast.Assign) else s.body)
        for v in sorted(assigned & handled):
            if v in self.taint.names and v in dataflow.reads([x for h in s.handlers for x in h.body]):
                raise self.refuse(
                    s,
                    f"`except` after `{v}` may have been assigned",
                    f"Assign `{v}` before `try` or after it.",
                )
        then = dict(env)
        self.block(s.body, then)
        self.block(s.orelse, then)
        paths = [(s.orelse, then)]
        for h in s.handlers:
            other = dict(env)
            if h.name:
                bound = getattr(h.name, "id", h.name)
                other[bound] = bound
            self.block(h.body, other)
            paths.append((h.body, other))
        merged = self.merge(paths, env, live, s)
        env.update(merged)
        self.block(s.finalbody, env)
        out.append(s)


class _Apply(gast.NodeTransformer):
    """Replaces variables by the names of their present values; notes what each direct call of a nested
    function captures."""

    def __init__(self, renamer: _Rename, env: dict[str, str]) -> None:
        self.renamer, self.env = renamer, env

    def visit_Name(self, node: Any) -> Any:
        if node.id in self.env and self.env[node.id] != node.id:
            new = gast.Name(self.env[node.id], node.ctx, None, None)
            if hasattr(node, "fact"):
                new.fact = node.fact
            return at(new, node)
        return node

    def visit_Call(self, node: Any) -> Any:
        if _spreads(node):
            pass  # which parameters receive what is seen when it runs
        elif isinstance(node.func, gast.Name) and node.func.id in self.renamer.closures:
            node.captured = [(f, self.env.get(f, f)) for f in self.renamer.frees[node.func.id]]
            self.complete(node, self.renamer.closures[node.func.id])
        elif isinstance(node.func, gast.Name) and node.func.id in self.renamer.outer:
            node.captured = [(f, self.env.get(f, f)) for f in self.renamer.outer[node.func.id]]
        self.generic_visit(node)
        return node

    def complete(self, node: Any, definition: Any) -> None:
        """Passes default values that were computed to a direct call of a nested function."""
        held = self.renamer.computed_defaults(definition)
        if not held:
            return
        a = definition.args
        given = {p.id for p in (a.posonlyargs + a.args)[: len(node.args)]} | {k.arg for k in node.keywords}
        missing = [p for p in held if p not in given]
        if set(missing) & {p.id for p in a.posonlyargs}:
            raise self.renamer.refuse(node, "a positional-only default value that was computed", "Pass it.")
        for p in missing:
            value = name(self.env.get(held[p].id, held[p].id))
            node.keywords.append(gast.keyword(p, value))

    def _scope(self, node: Any) -> Any:
        inner = {k: v for k, v in self.env.items() if k != v and k in dataflow.free_names(node)}
        bound = set()
        for g in getattr(node, "generators", []):
            bound |= dataflow.stored(g.target)
        if isinstance(node, gast.Lambda):
            bound |= {p.id for p in dataflow.parameters(node)}
        return Substitute({k: name(v) for k, v in inner.items() if k not in bound}).visit(node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda = _scope


class _Rebind:
    def __init__(self, by: dict[str, str]) -> None:
        self.by = by

    def visit_body(self, s: Any) -> None:
        if not self.by:
            return
        bound = dataflow.bound_names(s.body) | {p.id for p in dataflow.parameters(s)}
        by = {k: name(v) for k, v in self.by.items() if k not in bound}
        s.body = [Substitute(by).visit(b) for b in s.body]


def _spreads(e: Any) -> bool:
    """Has a call arguments of the form `*xs` or `**kw`?"""
    return any(isinstance(a, gast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords)


def _uses(node: Any, s: Any) -> Any:
    """(name, is it the function of a flattened call) for the names in an expression."""
    direct = isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and not _spreads(node)
    for n in nodes.walk(node) if isinstance(node, gast.AST) and not isinstance(node, gast.stmt) else ():
        if isinstance(n, gast.Name) and not isinstance(n.ctx, (gast.Store, gast.Param)):
            yield n.id, direct and n is node.func


def _used_names(body: Block) -> set[str]:
    """Names that are read, except to be kept in variables which are not."""
    used: set[str] = set()
    kept: dict[str, set[str]] = {}
    for s in _walk_statements(body):
        to = s.targets[0] if isinstance(s, gast.Assign) and len(s.targets) == 1 else None
        if isinstance(to, gast.Name) and _keeps_only(s.value):
            kept.setdefault(to.id, set()).update(dataflow.free_names(s.value))
        elif isinstance(s, gast.FunctionDef) and not s.decorator_list:
            kept.setdefault(s.name, set()).update(dataflow.head_reads(s))
        else:
            used |= dataflow.head_reads(s)
    todo = list(used)
    while todo:
        new = kept.pop(todo.pop(), set()) - used
        used |= new
        todo += new
    return used


def _keeps_only(value: Any) -> bool:
    """Does an expression do nothing with what it is made of but hold it?"""
    if isinstance(value, (gast.List, gast.Tuple, gast.Set)):
        return all(map(_keeps_only, value.elts))
    if isinstance(value, gast.Dict):
        return all(isinstance(k, gast.Constant) for k in value.keys) and all(map(_keeps_only, value.values))
    return isinstance(value, (gast.Name, gast.Attribute, gast.Constant, gast.Lambda))


def _number(
    body: Block, loops: tuple[int, ...], places: dict[int, Any], bindings: dict[str, list[int]]
) -> None:
    """The position and the surrounding loops of each statement, and the statements that bind each name."""
    for s in body:
        inner_loops = (*loops, id(s)) if isinstance(s, (gast.For, gast.While)) else loops
        places[id(s)] = (len(places), inner_loops)
        binds = dataflow.head_binds(s) | (
            {s.target.id} if isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name) else set()
        )
        for n in binds:
            bindings.setdefault(n, []).append(id(s))
        for inner in dataflow.blocks(s):
            _number(inner, inner_loops, places, bindings)
