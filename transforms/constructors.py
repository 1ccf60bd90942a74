"""Constructors: a class as a function that makes an instance, fills it, and returns it.

`__init__` becomes the body of that function, and so do the `__init__` of base classes and `__post_init__`
where they are called and live in the same module. What `dataclasses` generates is written out from the
fields.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any

import gast

from srcgrad.runtime import dispatch, operators, trees
from srcgrad.runtime.errors import NoRule
from srcgrad.transforms.load import load
from srcgrad.transforms.read import read
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import Substitute, assign, at, call, clone, name
from srcgrad.transforms.tree.names import Names, identifiers
from srcgrad.transforms.write import unparse

Defaults = tuple[tuple[Any, ...] | None, dict[str, Any] | None]


def constructor(cls: type) -> types.FunctionType:
    """The function that stands for a call of `cls`, with its signature."""
    initialise: Any = cls.__init__  # type: ignore[misc]
    if not isinstance(initialise, types.FunctionType):
        raise NoRule(f"the class `{cls.__qualname__}` has no Python `__init__` to differentiate.")
    return _Constructor(cls, initialise).function()


def generated(initialise: Any) -> bool:
    """Was an `__init__` written by `dataclasses`?"""
    return isinstance(initialise, types.FunctionType) and initialise.__code__.co_filename == "<string>"


class _Constructor:
    def __init__(self, cls: type, initialise: types.FunctionType) -> None:
        self.cls, self.initialise = cls, initialise
        self.cells: dict[str, types.CellType] = {}
        self.names = Names(set())
        self.place: Any = initialise
        self.local: set[str] = set()

    def function(self) -> types.FunctionType:
        if generated(self.initialise):
            args, body, self.place, defaults = self.of_fields()
        else:
            tree = read(self.initialise).tree
            self.names = Names(identifiers(tree))
            args = tree.args
            self.local = {p.id for p in dataflow.parameters(tree)} | dataflow.bound_names(tree.body)
            first = (args.posonlyargs or args.args).pop(0).id
            head = assign(first, call(self.cell(trees.new_object), self.cell(self.cls)))
            written = [_returning(s, first) for s in tree.body]
            body = [
                head,
                *self.inlined(written, first, _owner(self.cls, self.initialise)),
                gast.Return(name(first)),
            ]
            defaults = (self.initialise.__defaults__, self.initialise.__kwdefaults__)
        definition = gast.FunctionDef("construct", args, body, [], None, None, [])
        return load(unparse(definition), "construct", self.place, self.cells, defaults)

    def cell(self, value: Any) -> Any:
        for n, c in self.cells.items():
            if c.cell_contents is value:
                return name(n)
        wanted = getattr(value, "__name__", "value").strip("_")
        made = self.names.fresh(wanted if wanted.isidentifier() else "value")
        self.cells[made] = types.CellType(value)
        return name(made)

    # What is called on the way ------------------------------------------------------------------------------

    def inlined(self, body: list[Any], me: str, owner: type | None) -> list[Any]:
        """The statements of an `__init__` of the class `owner`, in which those of its bases are written
        out."""
        out: list[Any] = []
        for s in body:
            e = s.value if isinstance(s, gast.Expr) else None
            found = self.called(e, me, owner)
            if found is not None:
                method, base, given = found
                out += self.expanded(method, base, given, e, s, me)
                continue
            for inner in dataflow.BLOCKS:
                if getattr(s, inner, None) and not isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                    setattr(s, inner, self.inlined(getattr(s, inner), me, owner))
            out.append(_Super(self, me, owner).visit(s))
        return out

    def called(self, e: Any, me: str, owner: type | None) -> Any:
        """(function, its class, arguments) for `super().__init__(...)` and `self.__post_init__(...)`."""
        func = e.func if isinstance(e, gast.Call) else None
        if not isinstance(func, gast.Attribute):
            return None
        if func.attr == "__post_init__" and isinstance(func.value, gast.Name) and func.value.id == me:
            found = operators.method(self.cls, func.attr)
            return (found, _owner(self.cls, found), e.args) if isinstance(found, types.FunctionType) else None
        if _is_super(func.value):
            found, base = self.following(owner, func.attr)
            return (found, base, e.args) if func.attr in ("__init__", "__post_init__") else None
        return None

    def following(self, owner: type | None, attr: str) -> tuple[Any, Any]:
        """What `super().attr` means in a method of the class `owner`, and the class that holds it."""
        order = self.cls.__mro__
        after = order[order.index(owner) + 1 :] if owner in order else ()
        return next(((vars(c)[attr], c) for c in after if attr in vars(c)), (None, None))

    def expanded(self, found: Any, base: Any, given: list[Any], e: Any, s: Any, me: str) -> list[Any]:
        if found is object.__init__ or not isinstance(found, types.FunctionType):
            return [] if found is object.__init__ and not given else [s]
        if generated(found):
            found = _written(base)
        called = at(gast.Expr(gast.Call(self.cell(found), [name(me), *given], e.keywords)), s)
        spread = any(isinstance(a, gast.Starred) for a in given) or any(k.arg is None for k in e.keywords)
        if spread or found.__globals__ is not self.place.__globals__:
            return [called]
        tree = clone(read(found).tree)
        a = tree.args
        free = set(found.__code__.co_freevars) - {"__class__"}
        if a.vararg or a.kwarg or free or any(isinstance(n, _NOT_INLINED) for n in _all(tree.body)):
            return [called]
        try:
            bound = inspect.signature(found).bind(None, *given, **{k.arg: k.value for k in e.keywords})
        except TypeError:
            return [s]
        own = {p.id for p in dataflow.parameters(tree)} | dataflow.bound_names(tree.body)
        if (dataflow.free_names(tree.body) - own) & self.local:  # a global there, a variable here
            return [called]
        first = (a.posonlyargs or a.args)[0].id
        as_ = {n: me if n == first else self.names.fresh(n) for n in sorted(own)}
        values = dispatch.defaults_of(found)
        out = []
        for p in inspect.signature(found).parameters:
            if p != first:
                value = bound.arguments[p] if p in bound.arguments else self.cell(values[p])
                out.append(at(assign(as_[p], value), s))
        renamed = [_Renamed(as_).visit(x) for x in tree.body]
        return out + self.inlined(renamed, me, base)

    # Dataclasses --------------------------------------------------------------------------------------------

    def of_fields(self) -> tuple[Any, list[Any], types.FunctionType, Defaults]:
        text, namespace, defaults, after = _fields_text(self.cls, "construct", "")
        definition: Any = gast.parse(text).body[0]
        self.names = Names(identifiers(definition))
        self.local = identifiers(definition)
        self.cells = {n: types.CellType(v) for n, v in namespace.items()}
        self.names.used |= {*self.cells}
        after_init: Any = operators.method(self.cls, "__post_init__")
        if isinstance(after_init, types.FunctionType):
            self.place = after_init
            made = gast.parse(after).body
            definition.body[-1:-1] = self.inlined(made, "made", None)
        else:
            place = next(
                (
                    v
                    for v in vars(self.cls).values()
                    if isinstance(v, types.FunctionType) and not generated(v)
                ),
                None,
            )
            self.place = place or _all
        return definition.args, definition.body, self.place, defaults


_NOT_INLINED = (gast.Return, gast.Lambda, gast.FunctionDef, gast.ClassDef, gast.Global, gast.Nonlocal)


def _all(body: list[Any]) -> Any:
    return (n for s in body for n in nodes.walk(s))


def _owner(cls: type, function: Any) -> type | None:
    """The class among the bases of `cls` that holds a method."""
    return next((c for c in cls.__mro__ if function in [v for v in vars(c).values() if v is function]), None)


def _is_super(e: Any) -> bool:
    return isinstance(e, gast.Call) and getattr(e.func, "id", "") == "super" and not e.args


def _fields_text(cls: Any, called: str, me: str) -> tuple[str, dict[str, Any], Defaults, str]:
    """A dataclass's `__init__` as text: `def construct(x, y): ...` which makes an instance, or, with `me`, a
    method that fills one; what it reaches, its defaults, and the call of `__post_init__`."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    fields = {f.name: f for f in dataclasses.fields(cls)}
    shown, namespace = [me] if me else [], {"cls": cls, "built": trees.built, "missing": _MISSING}
    positional, named = [], {}
    lines: list[str] = []
    starred = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        value = p.default
        if p.name in fields and fields[p.name].default_factory is not dataclasses.MISSING:
            value = _MISSING
            namespace[f"factory_{p.name}"] = fields[p.name].default_factory
            lines += [f"    if {p.name} is missing:", f"        {p.name} = factory_{p.name}()"]
        shown.append(p.name if value is p.empty else f"{p.name}=None")
        if value is not p.empty and p.kind is p.KEYWORD_ONLY:
            named[p.name] = value
        elif value is not p.empty:
            positional.append(value)
    kept = [n for n, f in fields.items() if f.init]
    for n, f in fields.items():
        if not f.init and f.default_factory is not dataclasses.MISSING:
            namespace[f"factory_{n}"] = f.default_factory
            lines.append(f"    {n} = factory_{n}()")
            kept.append(n)
    if me:
        lines += [f"    {me}.{n} = {n}" for n in kept]
    else:
        lines.append(f"    made = built(cls, ({''.join(repr(n) + ', ' for n in kept)}), {', '.join(kept)})")
    extra = ", ".join(p.name for p in parameters if p.name not in fields)
    after = f"{me or 'made'}.__post_init__({extra})"
    if me:
        lines.append(f"    {after}" if hasattr(cls, "__post_init__") else "    pass")
    else:
        lines.append("    return made")
    text = "\n".join([f"def {called}({', '.join(shown)}):", *lines, ""])
    return text, namespace, (tuple(positional) or None, named or None), after


_MISSING = object()


def _written(cls: type) -> types.FunctionType:
    """The `__init__` of a dataclass, with source."""
    text, namespace, defaults, _ = _fields_text(cls, "initialise", "made")
    made = dispatch.made_from(text, "initialise", namespace, f"initialise {cls.__qualname__} {id(cls):x}")
    made.__defaults__, made.__kwdefaults__ = defaults
    return made


class _Renamed(Substitute):
    def __init__(self, as_: dict[str, str]) -> None:
        self.as_ = as_

    def visit_Name(self, node: Any) -> Any:
        node.id = self.as_.get(node.id, node.id)
        return node


class _Super(gast.NodeTransformer):
    """`super().method(...)` as a call of the function that is meant."""

    def __init__(self, made: _Constructor, me: str, owner: type | None) -> None:
        self.made, self.me, self.owner = made, me, owner

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, gast.Attribute) and _is_super(node.func.value):
            found, _ = self.made.following(self.owner, node.func.attr)
            if isinstance(found, types.FunctionType):
                return at(gast.Call(self.made.cell(found), [name(self.me), *node.args], node.keywords), node)
        return node


def _returning(s: Any, first: str) -> Any:
    class Returns(gast.NodeTransformer):
        def visit_Return(self, node: Any) -> Any:
            return gast.Return(name(first))

        def visit_FunctionDef(self, node: Any) -> Any:
            return node

    return Returns().visit(s)


dispatch.build_constructor = constructor
