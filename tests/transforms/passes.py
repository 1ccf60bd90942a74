"""What each pass leaves of a function, as a function that can be run.

`unit(f, args)` analyses `f` and keeps a copy of each tree on its way; `run` makes a function of one.
"""

from __future__ import annotations

import builtins
import contextlib
import types
from collections.abc import Iterator
from typing import Any

import gast
import numpy as np

from srcgrad.runtime.errors import SrcgradError
from srcgrad.transforms import compile as driver
from srcgrad.transforms.callee import Callee
from srcgrad.transforms.compile import Compiler, Emitter, Unit, WritesMore, fact_of
from srcgrad.transforms.load import load
from srcgrad.transforms.tree import dataflow, verify
from srcgrad.transforms.tree.build import call, clone, expression, name
from srcgrad.transforms.write import unparse


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Verifies each pass's grammar right after it has run; keeps the trees of `desugar` and `normalize` in
    the unit's `stages`."""
    units: list[dict[str, Any]] = []  # a unit may look into another

    def check(source, tree, scope):
        real_check(source, tree, scope)
        verify.after_check(tree)

    def desugar(source, tree, names, taint):
        made = real_desugar(source, tree, names, taint)
        verify.after_desugar(tree, taint.expr, taint.discrete_call)
        units[-1]["desugar"] = clone(tree)
        return made

    def normalize(source, tree, names, taint, *rest):
        made = real_normalize(source, tree, names, taint, *rest)
        verify.after_normalize(tree, taint.expr, taint.discrete_call)
        units[-1]["normalize"] = clone(tree)
        return made

    def unit(self, *args):
        units.append({})
        try:
            real_unit(self, *args)
        finally:
            self.stages = units.pop()

    def reverse(self, *args, **kwargs):
        made = real_reverse(self, *args, **kwargs)
        verify.after_recording(made[0], made[1])
        return made

    def simplify(self, whole, parameters, pinned):
        made = set(self.unit.names.used) - self.unit.user_names
        real_simplify(self, whole, parameters, pinned)
        made -= {*self.externals.objects, *self.halves, *pinned}
        verify.after_simplify(whole, parameters, made)

    real_check, real_desugar, real_normalize = driver.check, driver.desugar, driver.normalize
    real_unit, real_reverse, real_simplify = Unit.__init__, Emitter.reverse, Emitter.simplify
    driver.check, driver.desugar, driver.normalize = check, desugar, normalize
    Unit.__init__, Emitter.reverse, Emitter.simplify = unit, reverse, simplify
    try:
        yield
    finally:
        driver.check, driver.desugar, driver.normalize = real_check, real_desugar, real_normalize
        Unit.__init__, Emitter.reverse, Emitter.simplify = real_unit, real_reverse, real_simplify


def unit(f: types.FunctionType, args: tuple[Any, ...] | None) -> Unit:
    """The function, analysed for arguments of these kinds, or any kind. What the analyses after `normalize`
    refuse is of no concern here."""
    names = [p.id for p in dataflow.parameters(driver.read(f).tree)]
    given = {} if args is None else {n: fact_of(a, n) for n, a in zip(names, args, strict=False)}
    made = Unit.__new__(Unit)
    with watched():
        try:
            made.__init__(Compiler(), Callee(f), given, tuple(names))
        except (SrcgradError, WritesMore):
            if "normalize" not in made.stages:
                raise
    return made


def run(unit: Unit, stage: str) -> types.FunctionType:
    """The function as it is after a pass."""
    tree = clone(unit.stages[stage])
    cells = {n: types.CellType(v) for n, v in unit.externals.objects.items()} if stage != "desugar" else {}
    _builtins(unit, tree, cells)
    tree.body = _plain(tree.body)
    if stage == "normalize":
        _pass_captured(tree)
    tree.name = f"after_{stage}"
    f = unit.callee.function
    return load(unparse(tree), tree.name, f, cells, (f.__defaults__, f.__kwdefaults__))


def _builtins(unit: Unit, tree: Any, cells: dict[str, Any]) -> None:
    """Builtins that the compiler calls and the user's names hide get names of their own."""
    for n in gast.walk(tree):
        if isinstance(n, gast.Name) and getattr(n, "ours", False) and hasattr(builtins, n.id):
            if n.id in unit.user_names and unit.scope.name(n.id) is not getattr(builtins, n.id):
                cells[f"builtin_{n.id}"] = types.CellType(getattr(builtins, n.id))
                n.id = f"builtin_{n.id}"


def _plain(body: list[Any]) -> list[Any]:
    """Updates at repeated indices, which the passes see as one update, as what they are."""
    out = []
    for s in body:
        for field in (*dataflow.BLOCKS, "handlers"):
            inner = getattr(s, field, None)
            if inner and not isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                if field == "handlers":
                    for h in inner:
                        h.body = _plain(h.body)
                else:
                    setattr(s, field, _plain(inner))
        if getattr(s, "repeated", False):
            ufunc = "add" if isinstance(s.op, gast.Add) else "subtract"
            at = gast.Attribute(gast.Attribute(name("np"), ufunc, gast.Load()), "at", gast.Load())
            index = driver.as_index(clone(s.target.slice))
            out.append(expression(call(at, name(s.target.value.id), index, clone(s.value)), s))
        else:
            out.append(s)
        if isinstance(s, (gast.If, gast.For, gast.While)) and not s.body:
            s.body = [gast.Pass()]
    return out


def _pass_captured(tree: Any) -> None:
    """A nested function reads the values that its variables have when it is called: they are passed to it."""
    closures = {s.name: s for s in verify.statements(tree.body) if isinstance(s, gast.FunctionDef)}
    for s in closures.values():
        if not hasattr(s, "original"):
            return
    calls = [
        n
        for n in gast.walk(gast.Module(tree.body, []))
        if hasattr(n, "captured") and isinstance(n, gast.Call)
    ]
    moved = {
        c.func.id
        for c in calls
        if c.func.id in closures
        and any(now != closures[c.func.id].captured.get(f, now) for f, now in c.captured)
    }
    if not moved:
        return
    called = {id(c.func) for c in calls}
    for s in tree.body:
        for n in gast.walk(s):
            if (
                isinstance(n, gast.Name)
                and n.id in moved
                and isinstance(n.ctx, gast.Load)
                and id(n) not in called
            ):
                raise NotImplementedError("a function that is both called and passed on")
    for n in moved:
        s = closures[n]
        s.body = clone(s.original.body)
        s.args = clone(s.original.args)
        first = [gast.Name(f, gast.Param(), None, None) for f in s.frees]
        s.args.posonlyargs = first + s.args.posonlyargs
    for c in calls:
        if c.func.id in moved:
            c.args = [name(now) for _, now in c.captured] + c.args
    for s in closures.values():
        for c in gast.walk(s):
            if isinstance(c, gast.Call) and isinstance(c.func, gast.Name) and c.func.id in moved:
                c.args = [name(f) for f in closures[c.func.id].frees] + c.args


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, structure included."""
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (float, np.ndarray, np.generic)):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b, equal_nan=True))
    return bool(a == b)
