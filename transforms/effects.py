"""Effects: through which parameters a function writes, as its text tells.

Nothing is compiled for it: the callees that the text names are looked at in the same way. Calls of what it
does not name, such as a function that is a parameter, are marked: the compiler has to look into the function
with the facts of a call.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Iterator
from typing import Any

import gast
import numpy as np

from srcgrad.runtime.rules import table
from srcgrad.transforms import facts as facts_module
from srcgrad.transforms.activity import statements
from srcgrad.transforms.aliases import makes_object
from srcgrad.transforms.callee import Callee, bind, discrete
from srcgrad.transforms.normalize import DICT_MUTATORS, LIST_MUTATORS, MUTATORS
from srcgrad.transforms.read import read
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import clone, name, root
from srcgrad.transforms.tree.results import result_of
from srcgrad.transforms.tree.scope import MISSING, Scope
from srcgrad.transforms.tree.sharing import FRESH_METHODS, copies, shares


def effects_of(compiler: Any, tree: Any, callee: Callee, classes: dict[str, type]) -> tuple[set[str], str]:
    """(marked parameters through which a function writes, what of its result may share memory with one:
    "held", what it holds, "itself", or "").

    `p*` stands for what `p` holds. Marks: `?p` is written if it is mutable, `~p` if it is no array (by a
    method of lists or dicts), `!p*` by `p[i] += x`, and `%p` is passed to what the text does not name.
    """
    reach: dict[str, set[str]] = {p.id: {p.id} for p in dataflow.parameters(tree)}
    for c in callee.captured:
        reach[c] = {c}
    holds = {n: {n + "*"} for n in reach}
    """What the contents of a container may be, as `reach` tells what it may be itself."""
    written: set[str] = set()
    gives_back = ""
    own = {p.id for p in dataflow.parameters(tree)} | dataflow.bound_names(tree.body)
    scope = Scope(callee.function, frozenset(own))
    outer = {n for s in statements(tree.body) if isinstance(s, gast.Nonlocal) for n in s.names}
    body = _versions(tree)
    arrays = _new_arrays(body, scope)
    trusted = str(callee.function.__module__).partition(".")[0] in ("srcgrad", "contextlib")
    emitted = callee.function.__code__.co_filename.startswith("<srcgrad")
    inner_functions = {
        n.name: n for n in nodes.walk(tree) if isinstance(n, gast.FunctionDef) and n is not tree
    }
    local = {**getattr(tree, "siblings", {}), **inner_functions}

    def roots(e: Any) -> set[str]:
        """What an expression may be a part of."""
        if isinstance(e, gast.Name):
            return reach.get(e.id, set())
        if isinstance(e, (gast.Subscript, gast.Attribute, gast.Starred)):
            if isinstance(e, gast.Attribute) and e.attr in ("shape", "size", "ndim"):
                return set()
            return roots(e.value) | contents(e.value)
        if isinstance(e, gast.NamedExpr):
            return roots(e.value)
        if isinstance(e, gast.Call):
            found = scope.lookup(e.func)
            if makes_object(found) or any(found is f for f in (list, dict, tuple, set, sorted)):
                return set()
            if isinstance(found, types.FunctionType) and table.find(found) is None:
                if compiler.effects(Callee(found))[1] == "held":
                    return set()  # a new container
        return set().union(*(roots(x) | (contents(x) if deep else set()) for x, deep in parts_of(e)))

    def contents(e: Any) -> set[str]:
        """What the elements of an expression's value may be a part of."""
        if isinstance(e, gast.Name):
            return holds.get(e.id, set())
        if isinstance(e, (gast.Subscript, gast.Attribute, gast.Starred, gast.NamedExpr)):
            return contents(e.value)
        if isinstance(e, gast.Lambda):
            return captured_by(e)
        if isinstance(e, (gast.Tuple, gast.List)):
            return set().union(*(roots(x) | contents(x) for x in e.elts))
        if isinstance(e, gast.Dict):
            return set().union(*(roots(x) | contents(x) for x in e.values))
        if isinstance(e, gast.BinOp) and isinstance(e.op, (gast.Add, gast.Mult)):  # of lists
            return contents(e.left) | contents(e.right)
        if isinstance(e, (gast.ListComp, gast.GeneratorExp, gast.SetComp, gast.DictComp)):
            return set().union(*(reach.get(n, set()) | holds.get(n, set()) for n in dataflow.free_names(e)))
        if isinstance(e, gast.Call) and isinstance(e.func, gast.Attribute) and e.func.attr == "copy":
            return contents(e.func.value)  # of a list
        return set().union(*(roots(x) | contents(x) for x, _ in parts_of(e)))

    def captured_by(definition: Any) -> set[str]:
        """What a function made here may read when it is called."""
        found = dataflow.free_names(definition)
        return set().union(*(reach.get(n, set()) | holds.get(n, set()) for n in found))

    def parts_of(e: Any) -> list[tuple[Any, bool]]:
        """The expressions of which another's value may be one, and whether it may be a part of them."""
        if isinstance(e, gast.IfExp):
            return [(e.body, False), (e.orelse, False)]
        if isinstance(e, gast.BoolOp):
            return [(x, False) for x in e.values]
        if not isinstance(e, gast.Call):
            return []
        found = scope.lookup(e.func)
        parts = [*e.args, *(k.value for k in e.keywords)]
        rule = table.find(found) if found is not MISSING else None
        if rule is not None and not shares(rule, len(parts), e):
            return []
        if isinstance(found, types.FunctionType) and rule is None:
            if not compiler.effects(Callee(found))[1]:
                return []
        elif isinstance(e.func, gast.Attribute):
            if e.func.attr in FRESH_METHODS and copies(e):
                return []
            parts.append(e.func.value)
        elif found is not MISSING and found in (len, sum, abs, float, int, range, round):
            return []
        return [(p, True) for p in parts]

    def put(owner: Any, values: list[Any]) -> None:
        """Notes that a container receives values."""
        start = root(owner)
        if isinstance(start, gast.Name) and start.id not in arrays:
            for v in values:
                holds[start.id] = holds.get(start.id, set()) | roots(v) | contents(v)

    def put_elements(owner: Any, value: Any) -> None:
        """Notes that a list receives what another holds, by `+=`."""
        start = root(owner)
        if isinstance(start, gast.Name) and start.id not in arrays:
            holds[start.id] = holds.get(start.id, set()) | contents(value)

    def written_by_local(definition: Any, node: Any) -> set[str]:
        """Through what a call of a function defined here, or beside this one, writes."""
        free = tuple(sorted((dataflow.free_names(definition) | set(callee.captured)) & set(reach)))
        called = Callee(callee.function, definition, None, free)
        inner, _ = compiler.precise_effects(called)
        bound = bind(definition.args, node, called)
        received = [(n, [name(n)]) for n in free] + list(bound.items())
        return {
            mark + r
            for p, atoms in received
            for mark in ("", "?", "~", "%")
            if {mark + p, mark + p + "*"} & inner or (not mark and "!" + p + "*" in inner)
            for a in atoms
            for r in roots(a) | contents(a)
        }

    def handed_over(e: Any, found: Any) -> set[str]:
        """What a call gives to a function of which the text does not tell what it does."""
        given = [*e.args, *(k.value for k in e.keywords)]
        if not isinstance(e.func, gast.Call):
            given.append(e.func.value if isinstance(e.func, gast.Attribute) else e.func)
        callback = any(
            isinstance(a, gast.Lambda)
            or (
                isinstance(a, gast.Name)
                and (a.id in local or isinstance(scope.lookup(a), types.FunctionType))
            )
            for a in given
        )
        if trusted or not _unknown(e, found, local, callback):
            return set()
        return set().union(*(roots(a) | contents(a) for a in given))

    def visit(body: list[Any]) -> None:
        nonlocal gives_back
        for s in body:
            if isinstance(s, (gast.Assign, gast.AnnAssign)) and s.value is not None:
                for to in getattr(s, "targets", None) or [s.target]:
                    for t, value, inside in _pairs(to, s.value):
                        if isinstance(t, gast.Name):
                            written.update({t.id} & outer)
                            found_in = roots(value) | (contents(value) if inside else set())
                            reach[t.id] = reach.get(t.id, set()) | found_in
                            holds[t.id] = holds.get(t.id, set()) | contents(value)
                        else:
                            written.update(roots(t.value))
                            put(t.value, [value])
            elif isinstance(s, gast.AugAssign):
                to = s.target
                if not isinstance(to, gast.Name):
                    written.update(roots(to.value))
                    if not emitted:  # where the elements of containers have names when they are updated
                        written.update("!" + r for r in contents(to.value))
                    put_elements(to.value, s.value)
                else:
                    written.update({to.id} & outer)
                    written.update(("?" + r) for r in roots(to))
                    put_elements(to, s.value)
            elif isinstance(s, gast.For):
                for n in dataflow.stored(s.target):
                    reach[n] = reach.get(n, set()) | roots(s.iter) | contents(s.iter)
                    holds[n] = holds.get(n, set()) | contents(s.iter)
            elif isinstance(s, gast.With):
                for item in s.items:
                    for n in dataflow.stored(item.optional_vars) if item.optional_vars is not None else ():
                        reach[n] = (
                            reach.get(n, set()) | roots(item.context_expr) | contents(item.context_expr)
                        )
            elif isinstance(s, gast.Match):
                for n in dataflow.bound_names([c.pattern for c in s.cases]):
                    reach[n] = reach.get(n, set()) | roots(s.subject) | contents(s.subject)
                    holds[n] = holds.get(n, set()) | contents(s.subject)
            elif isinstance(s, gast.FunctionDef):
                holds[s.name] = holds.get(s.name, set()) | captured_by(s)
            elif isinstance(s, gast.Return) and s.value is not None:
                gives_back = (
                    "itself" if roots(s.value) else gives_back or ("held" if contents(s.value) else "")
                )
            for e in nodes.walk(s) if not isinstance(s, (gast.FunctionDef, gast.ClassDef)) else ():
                if isinstance(e, gast.comprehension):
                    for n in dataflow.stored(e.target):
                        reach[n] = reach.get(n, set()) | roots(e.iter) | contents(e.iter)
                        holds[n] = holds.get(n, set()) | contents(e.iter)
                if isinstance(e, gast.NamedExpr):
                    reach[e.target.id] = reach.get(e.target.id, set()) | roots(e.value)
                    holds[e.target.id] = holds.get(e.target.id, set()) | contents(e.value)
                if isinstance(e, gast.Call):
                    written.update("%" + r for r in handed_over(e, scope.lookup(e.func)))
                    if isinstance(e.func, gast.Attribute) and e.func.attr in MUTATING:
                        mark = "~" if e.func.attr in OF_CONTAINERS else ""
                        written.update(mark + r for r in roots(e.func.value))
                        put(e.func.value, [*e.args, *(k.value for k in e.keywords)])
                    if isinstance(e.func, gast.Name) and e.func.id in local:
                        written.update(written_by_local(local[e.func.id], e))
                    found, node = scope.lookup(e.func), e
                    method = _method(e, classes, callee, tree)
                    if method is not None:
                        found, owner = method
                        node = gast.Call(e.func, [owner, *e.args], e.keywords)
                    itself = _called(found)
                    if itself is not None:
                        found, node = (
                            itself,
                            gast.Call(e.func, [gast.Constant(None, None), *e.args], e.keywords),
                        )
                    if isinstance(found, types.FunctionType) and table.find(found) is None:
                        try:
                            args = read(found).tree.args
                            bound = bind(args, node, Callee(found))
                        except Exception:
                            written.update("%" + r for a in node.args for r in roots(a) | contents(a))
                            continue
                        known = [
                            (p, classes.get(a[0].id))
                            for p, a in bound.items()
                            if a and isinstance(a[0], gast.Name)
                        ]
                        inner, _ = compiler.precise_effects(
                            Callee(found), tuple((p, c) for p, c in known if c is not None)
                        )
                        for p, atoms in bound.items():
                            for a in atoms:
                                if p + "*" in inner or "?" + p + "*" in inner:
                                    written.update(contents(a))
                                if "~" + p + "*" in inner:
                                    written.update("~" + r for r in contents(a))
                                if {"%" + p, "%" + p + "*"} & inner:
                                    written.update("%" + r for r in roots(a) | contents(a))
                                if "~" + p in inner:
                                    written.update("~" + r for r in roots(a))
                                    put(a, [x for q, others in bound.items() if q != p for x in others])
                                if p in inner:
                                    written.update(roots(a))
                                    put(a, [x for q, others in bound.items() if q != p for x in others])
                                elif "?" + p in inner:
                                    written.update("?" + r for r in roots(a))
                    for into in result_of(e, None if found is MISSING else found):
                        written.update(roots(into))
                    of = getattr(found, "__self__", None)
                    at_ = isinstance(of, np.ufunc) and getattr(found, "__name__", "") == "at"
                    if at_ or found is np.copyto or table.written_by(found):
                        for a in [*e.args[:1], *(k.value for k in e.keywords if k.arg in FIRST)]:
                            written.update(roots(a))
            for inner_body in [*dataflow.blocks(s), *(c.body for c in getattr(s, "cases", []))]:
                visit(inner_body)

    for _ in range(3):
        visit(body)
    if str(callee.function.__module__).startswith("srcgrad.runtime.rules."):
        written.clear()  # a rule leaves its arguments as they are
    return written, gives_back


def _pairs(to: Any, value: Any) -> Iterator[tuple[Any, Any, bool]]:
    """(target, value, is the target a part of what the value is taken apart into) of an assignment."""
    displays = (gast.Tuple, gast.List)
    if isinstance(to, displays) and isinstance(value, displays) and len(to.elts) == len(value.elts):
        if not any(isinstance(e, gast.Starred) for e in [*to.elts, *value.elts]):
            for t, v in zip(to.elts, value.elts, strict=True):
                yield from _pairs(t, v)
            return
    for t in places(to):
        yield t, value, t is not to


def _versions(tree: Any) -> list[Any]:
    """The statements of a function, with a name of its own for each value that a variable is given in
    straight line."""
    shared = {n for s in tree.body for f in nodes.walk(s) if isinstance(f, SCOPED) for n in _of_others(f)}
    bound = {p.id for p in dataflow.parameters(tree)}
    now: dict[str, str] = {}
    made: list[Any] = []
    for s in tree.body:
        to = s.targets[0] if isinstance(s, gast.Assign) and len(s.targets) == 1 else None
        again = clone(s) if now else s
        for n in nodes.walk(again) if now else ():
            if isinstance(n, gast.Name):
                n.id = now.get(n.id, n.id)
        if isinstance(to, gast.Name) and to.id in bound - shared:
            again = clone(again)
            now[to.id] = again.targets[0].id = f"{to.id}@{len(made)}"
        bound |= dataflow.bound_names([s])
        made.append(again)
    return made


def _new_arrays(body: list[Any], scope: Scope) -> set[str]:
    """Names that stand for new arrays of numbers only, which hold nothing."""
    counts = dataflow.binding_counts(body)
    counts.subtract(s.target.id for s in statements(body) if _updates(s))
    found = set()
    for s in statements(body):
        if isinstance(s, gast.Assign) and isinstance(s.value, gast.Call) and len(s.targets) == 1:
            made, to = scope.lookup(s.value.func), s.targets[0]
            plain = made in (np.zeros_like, np.zeros, np.ones, np.empty) and len(s.value.args) == 1
            if plain and not s.value.keywords and isinstance(to, gast.Name) and counts[to.id] == 1:
                found.add(to.id)
    return found


def _updates(s: Any) -> bool:
    return isinstance(s, gast.AugAssign) and isinstance(s.target, gast.Name)


SCOPED = (gast.FunctionDef, gast.Lambda, gast.ClassDef, gast.Global, gast.Nonlocal)


def _of_others(s: Any) -> Iterable[str]:
    """Variables of the function around that a scope inside reads, or that a statement declares."""
    if isinstance(s, (gast.Global, gast.Nonlocal)):
        return list(s.names)
    return dataflow.free_names(s.body if isinstance(s, gast.ClassDef) else s)


def _method(e: Any, classes: dict[str, type], callee: Callee, tree: Any) -> Any:
    """(function, receiver) for a call of a method of an argument whose class is known, or through
    `super()`."""
    func = e.func
    if not isinstance(func, gast.Attribute):
        if isinstance(func, gast.Name) and func.id in classes:
            return facts_module.class_attribute(classes[func.id], "__call__"), func
        return None
    if isinstance(func.value, gast.Name) and func.value.id in classes:
        return facts_module.class_attribute(classes[func.value.id], func.attr), func.value
    first = next(iter(dataflow.parameters(tree)), None)
    by_super = (
        isinstance(func.value, gast.Call)
        and getattr(func.value.func, "id", "") == "super"
        and not func.value.args
    )
    if by_super and first is not None and first.id in classes:
        cells = dict(
            zip(callee.function.__code__.co_freevars, callee.function.__closure__ or (), strict=True)
        )
        order = classes[first.id].__mro__
        if "__class__" in cells and cells["__class__"].cell_contents in order:
            following = order[order.index(cells["__class__"].cell_contents) + 1 :]
            found = next((vars(c)[func.attr] for c in following if func.attr in vars(c)), None)
            return found, gast.Name(first.id, gast.Load(), None, None)
    return None


def _called(found: Any) -> Any:
    """The Python function that a call of a class, a bound method or an object with `__call__` calls, with the
    object as its first argument."""
    if found is MISSING or isinstance(found, types.FunctionType) or table.find(found) is not None:
        return None
    if isinstance(found, types.MethodType):
        return found.__func__
    if isinstance(found, type):
        of = None if dataclasses.is_dataclass(found) else facts_module.class_attribute(found, "__init__")
    else:
        of = facts_module.class_attribute(type(found), "__call__")
    return of if isinstance(of, types.FunctionType) else None


def places(to: Any) -> list[Any]:
    """The names, subscripts and attributes that an assignment target stores into."""
    if isinstance(to, (gast.Tuple, gast.List)):
        return [p for t in to.elts for p in places(t)]
    if isinstance(to, gast.Subscript) and isinstance(to.value, gast.Attribute) and to.value.attr == "flat":
        return [gast.Subscript(to.value.value, to.slice, gast.Store())]
    return places(to.value) if isinstance(to, gast.Starred) else [to]


MUTATING = {
    *MUTATORS,
    *("add", "discard", "__setitem__", "__delitem__"),
    *(f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")),
}
"""Methods that change their object."""
OF_CONTAINERS = (LIST_MUTATORS - {"sort"}) | DICT_MUTATORS | {"add", "discard"}
"""Methods that arrays do not have."""


FIRST = ("dst", "a", "arr")
"""What NumPy's functions call the array that they write into."""
HARMLESS = {
    *(abs, all, any, bin, bool, callable, chr, complex, dict, divmod, enumerate, float, format, frozenset),
    *(hasattr, hash, hex, id, int, isinstance, issubclass, iter, len, list, max, min, oct, ord, pow, print),
    *(range, repr, reversed, round, set, slice, sorted, str, sum, tuple, type, vars, zip, super, object),
}
"""Builtins that leave their arguments as they are, unless they are given a function."""
METHODS = {m for kind in (np.ndarray, list, tuple, dict, str, float, set) for m in dir(kind) if m[0] != "_"}
"""Methods that leave their arguments, and but for those of MUTATING their object, as they are."""
CHANGING = {"byteswap", "setfield", "setflags", "view", "getfield"}


def _unknown(e: Any, found: Any, local: dict[str, Any], callback: bool) -> bool:
    """May a call write into its arguments in a way that the text does not tell? `callback`: is one of them a
    function?"""
    if found is MISSING:
        if isinstance(e.func, gast.Attribute):
            return e.func.attr not in METHODS - CHANGING
        return not (isinstance(e.func, gast.Name) and e.func.id in local)
    if isinstance(found, type):
        return callback or not (
            found.__module__ in ("builtins", "srcgrad")
            or issubclass(found, (tuple, BaseException, np.generic))
            or dataclasses.is_dataclass(found)
        )
    if table.find(found) is not None or table.written_by(found) is not None or discrete(found):
        return False
    return callback or not isinstance(found, types.FunctionType) and found not in HARMLESS
