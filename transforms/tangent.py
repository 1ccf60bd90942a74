"""Tangent: the driver of forward mode, from a function to the function that also moves tangents along.

The form `jvp` of a function `f(x, n)` with the tangent of `x` is `f_jvp(x, n, x_dot) -> (value, tangent)`.
Tangents are passed by keyword; where `f` has defaults or takes any number of arguments, they can be passed in
no other way.
"""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass, field
from typing import Any

import gast

import srcgrad.runtime.rules.forwardmode  # noqa: F401 (files its rules)
from srcgrad.runtime import dispatch, operators, tangents
from srcgrad.runtime.dependencies import Dependency, stale
from srcgrad.runtime.errors import NoRule
from srcgrad.transforms import facts as facts_module
from srcgrad.transforms.callee import Callee, bind
from srcgrad.transforms.compile import (
    Compiler,
    Emitter,
    Unit,
    differentiable,
    fact_of,
    forget_captured,
    hashable,
    settled,
    weakened,
)
from srcgrad.transforms.facts import UNKNOWN, Fact
from srcgrad.transforms.forward import Forward
from srcgrad.transforms.read import fail
from srcgrad.transforms.reverse import qualified
from srcgrad.transforms.tree import dataflow
from srcgrad.transforms.tree.build import assign, assign_tuple, call, clone, constant, name, tuple_
from srcgrad.transforms.tree.names import stem

Block = list[Any]


@dataclass
class Jvp:
    """The forward-mode form of a callee; `dots` are the names of the tangents of the parameters `wanted`."""

    name: str
    wanted: tuple[str, ...]
    dots: dict[str, str] = field(default_factory=dict)
    jvp: types.CellType = field(default_factory=types.CellType)
    sources: list[str] = field(default_factory=list)
    uses: list[Jvp] = field(default_factory=list)


def jvp_of(
    compiler: Compiler, callee: Callee, given: dict[str, Fact], wanted: tuple[str, ...], root: bool = False
) -> Jvp:
    """The forward-mode form of a callee for these facts and differentiated parameters, compiled once."""
    facts = tuple(sorted((k, hashable(v)) for k, v in given.items()))
    key = ("jvp", callee.key, facts, wanted, root)
    known = compiler.tangents.get(key)
    if known is None:
        unit = Unit(compiler, callee, given, wanted, root, mirrored=True)
        known = compiler.tangents[key] = Jvp(
            callee.name, wanted, {w: unit.names.fresh(w + "_dot") for w in wanted}
        )
        try:
            TangentEmitter(compiler, unit, known).emit(root)
        except BaseException:
            del compiler.tangents[key]
            raise
    return known


class TangentEmitter(Emitter):
    """Makes the forward-mode form of one unit."""

    def __init__(self, compiler: Compiler, unit: Unit, made: Jvp) -> None:
        super().__init__(compiler, unit)
        self.made = made

    def emit(self, root: bool) -> None:
        unit, made = self.unit, self.made
        forward = self.forward = Forward(
            unit.source,
            unit.tree,
            unit.names,
            unit.interpreter,
            unit.active,
            self.externals,
            unit.aliases,
            self.family,
            unit.user_names,
            unit.taint.names,
            self.call,
            self.guards,
        )
        for w, dot in made.dots.items():
            forward.dots[w] = dot
            fact = forward.facts.get(w, UNKNOWN)
            forward.know(dot, fact if fact.kind in ("scalar", "array", "numeric") else UNKNOWN)
        body, value, tangent = forward.function(list(made.wanted))
        forget_captured(body)
        self.facts = {**forward.interpreter.env, **forward.facts}
        if root and not self.plain(value, tangent, unit.result):
            result = unit.names.fresh("result")
            body.append(gast.Assign([gast.Name(result, gast.Store(), None, None)], value, None))
            value, tangent = (
                name(result),
                call(self.externals.node(tangents.like, "like_tangent"), tangent, name(result)),
            )
        records = self.records(getattr(unit.tree, "late", {}))
        for n in sorted(unit.unsure()):
            dots = [forward.dot(n)] if n in forward.active else []
            records += [assign(v, constant(None)) for v in (n, *dots)]
        whole = [*records, *body, gast.Return(tuple_([value, tangent]))]
        parameters = [p.id for p in dataflow.parameters(unit.tree)]
        self.simplify(whole, parameters + list(made.dots.values()), set())
        whole = self.with_outer(whole)
        self.used = dataflow.reads(whole)
        called = f"{stem(unit.callee.name)}_jvp"
        function = self.load(self.definition(called, self.signature(), whole), True)
        made.sources.append(self.text)
        made.jvp.cell_contents = function

    def family(self, n: str) -> str:
        base = n
        while base not in self.unit.user_names and base.rpartition("_")[2].isdigit():
            base = base.rpartition("_")[0]
        return base

    def signature(self) -> Any:
        """The primal's parameters, then the tangents."""
        args = clone(self.unit.tree.args)
        dots = [gast.Name(d, gast.Param(), None, None) for d in self.made.dots.values()]
        function = self.unit.callee.function
        defaults = args.defaults or (self.unit.callee.definition is None and function.__defaults__)
        if args.vararg or args.kwonlyargs or args.kwarg or defaults or args.posonlyargs:
            args.kwonlyargs = [*args.kwonlyargs, *dots]
            args.kw_defaults = [*args.kw_defaults, *(None for _ in dots)]
        else:
            args.args = [*args.args, *dots]
        return args

    def plain(self, value: Any, tangent: Any, fact: Fact) -> bool:
        """Has the result's tangent for sure the result's structure, shape and dtype?"""
        if (
            isinstance(value, gast.Tuple)
            and isinstance(tangent, gast.Tuple)
            and fact.kind == "tuple"
            and fact.items
        ):
            return len(fact.items) == len(value.elts) == len(tangent.elts) and all(
                self.plain(v, d, f) for v, d, f in zip(value.elts, tangent.elts, fact.items, strict=True)
            )
        every = all(
            f.real
            for n, f in self.unit.interpreter.all.items()
            if n in self.unit.active and f.kind not in ("tuple", "list", "dict", "none", "closure", "bottom")
        )
        shape = self.forward.fact(tangent)
        if not (fact.real and every) or (fact.kind == "array" and self.forward.views):
            return False
        return fact.kind == shape.kind and (
            fact.kind == "scalar" or (fact.kind == "array" and facts_module.fits(shape, fact))
        )

    # Calls

    def call(self, forward: Forward, s: Any, op: Any, v: str | None) -> Block:
        """The statement that calls a Python callee together with its tangent."""
        v = v or self.unit.names.fresh("_")
        made = self.dynamic(forward, s, op) if op.kind == "dispatch" else self.static(forward, s, op)
        return [assign_tuple([v, forward.dot(v)], made, s)]

    def static(self, forward: Forward, s: Any, op: Any) -> Any:
        unit, node = self.unit, s.value
        callee = unit.callee_of(op.function, node)
        assert callee is not None
        args = unit.parameters_of(callee)
        bound = bind(args, node, callee)
        facts: dict[str, Fact] = {}
        dots: dict[str, Any] = {}
        for p, atoms in bound.items():
            useful = any(forward.is_active(a) for a in atoms)
            if args.vararg is not None and p == args.vararg.id:
                items = tuple(weakened(forward.fact(a), f"{p}[{i}]") for i, a in enumerate(atoms))
                facts[p] = Fact("tuple", items=items)
                dots[p] = tuple_([forward.tangent(a) for a in atoms])
            elif args.kwarg is not None and p == args.kwarg.id:
                extra = [k for k in node.keywords if any(k.value is a for a in atoms)]
                facts[p] = Fact(
                    "dict", items=tuple((k.arg, weakened(forward.fact(k.value), k.arg)) for k in extra)
                )
                dots[p] = gast.Dict(
                    [constant(k.arg) for k in extra], [forward.tangent(k.value) for k in extra]
                )
            else:
                facts[p] = weakened(forward.fact(atoms[0]), p)
                dots[p] = forward.tangent(atoms[0])
            if not useful:
                del dots[p]
        made = jvp_of(self.compiler, callee, facts, tuple(dots))
        if made not in self.made.uses and made is not self.made:
            self.made.uses.append(made)
        captured = [name(now) for _, now in getattr(node, "captured", ())]
        keywords = [*node.keywords, *(gast.keyword(made.dots[p], t) for p, t in dots.items())]
        return gast.Call(name(self.half(made, "jvp")), captured + node.args, keywords)

    def half(self, pair: Any, which: str) -> str:
        cell = getattr(pair, which)
        for known, c in self.halves.items():
            if c is cell:
                return known
        made = self.unit.names.fresh(f"{stem(pair.name)}_{which}")
        self.halves[made] = cell
        return made

    def dynamic(self, forward: Forward, s: Any, op: Any) -> Any:
        unit, node = self.unit, s.value
        if op.function is not None and not differentiable(op.function):
            raise fail(
                NoRule,
                unit.source,
                node if hasattr(node, "lineno") else s.origin,
                f"`{qualified(op.function)}` has no derivative rule",
                "Write it with functions that have one, or give it a rule.",
            )

        def dot(e: Any) -> Any:
            if isinstance(e, gast.Starred):
                inner = (
                    forward.tangent(e.value)
                    if forward.is_active(e.value)
                    else call(forward.helper("nothing"), clone(e.value))
                )
                return gast.Starred(inner, gast.Load())
            return forward.tangent(e) if forward.is_active(e) else constant(None)

        func = node.func.value if isinstance(node.func, gast.Attribute) else node.func
        keywords = node.keywords
        keys = [None if k.arg is None else constant(k.arg) for k in keywords]
        moved = [k for k in keywords if forward.is_active(k.value)]
        arguments: list[Any] = [
            node.func,
            tuple_(node.args),
            gast.Dict(keys, [k.value for k in keywords]),
            dot(func),
            tuple_([dot(a) for a in node.args]),
            gast.Dict(
                [None if k.arg is None else constant(k.arg) for k in moved],
                [forward.tangent(k.value) for k in moved],
            ),
        ]
        if not moved:
            arguments.pop()
            if not keywords:
                arguments[2] = constant(None)
        return call(self.externals.node(dispatch.jvp, "call_jvp"), *arguments)


def texts(made: Jvp) -> str:
    """The source of a forward-mode form and of all that it calls."""
    seen: list[Jvp] = []

    def visit(j: Jvp) -> None:
        if j not in seen:
            seen.append(j)
            for u in j.uses:
                visit(u)

    visit(made)
    return "\n\n\n".join(t.rstrip() for j in seen for t in j.sources) + "\n"


# For the front door


def root(
    function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], moving: set[int | str]
) -> Root:
    """The forward-mode form of a function for arguments of the kinds of these. `moving` are the positions and
    names of the arguments that have a tangent."""
    signature = inspect.signature(function, follow_wrapped=False)
    given, wanted = _given(signature, args, kwargs, moving)

    def make(compiler: Compiler) -> Root:
        made = jvp_of(compiler, Callee(function), given, wanted, True)
        return Root(made.jvp.cell_contents, texts(made), compiler.dependencies(), signature, made.dots)

    return settled(make, operators.seen_in([*args, *kwargs.values()]))


@dataclass(slots=True)
class Root:
    """A compiled forward-mode form, and which tangent is called what."""

    function: types.FunctionType
    source: str
    dependencies: list[Dependency]
    signature: inspect.Signature
    dots: dict[str, str]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], tangents_: dict[int | str, Any]) -> Any:
        dots = {}
        bound = self.signature.bind(*args, **kwargs)
        position = 0
        for n, v in bound.arguments.items():
            p = self.signature.parameters[n]
            if p.kind is p.VAR_POSITIONAL:
                t: Any = tuple(tangents_.get(i) for i in range(position, position + len(v)))
            elif p.kind is p.VAR_KEYWORD:
                t = {k: tangents_.get(k) for k in v}
            else:
                t = tangents_.get(n, tangents_.get(position))
                position += 1
            if n in self.dots:
                dots[self.dots[n]] = tangents.given(t, v, n)
        return self.function(*args, **kwargs, **dots)


def _given(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], moving: set[int | str]
) -> tuple[dict[str, Fact], tuple[str, ...]]:
    """The facts of the arguments by parameter, and the parameters of which an argument moves."""
    bound = signature.bind(*args, **kwargs)
    given: dict[str, Fact] = {}
    wanted: list[str] = []
    position = 0
    for n, v in bound.arguments.items():
        p = signature.parameters[n]
        if p.kind is p.VAR_POSITIONAL:
            given[n] = Fact("tuple", items=tuple(fact_of(x, f"{n}[{i}]") for i, x in enumerate(v)))
            moves = any(i in moving for i in range(position, position + len(v)))
        elif p.kind is p.VAR_KEYWORD:
            given[n] = Fact("dict", items=tuple((k, fact_of(x, f"{n}[{k}]")) for k, x in v.items()))
            moves = any(k in moving for k in v)
        else:
            given[n] = fact_of(v, n)
            moves = n in moving or position in moving
            position += 1
        if moves:
            wanted.append(n)
    return given, tuple(wanted)


@dataclass(slots=True)
class Halves:
    """The halves of a function for `vjp`: forward(args) -> (value, saved), reverse(cotangent, saved) ->
    cotangents."""

    forward: types.FunctionType
    back: types.FunctionType
    source: str
    dependencies: list[Dependency]
    wanted: tuple[str, ...]


def halves(
    function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], moving: set[int | str]
) -> Halves:
    given, wanted = _given(inspect.signature(function, follow_wrapped=False), args, kwargs, moving)

    def make(compiler: Compiler) -> Halves:
        pair = compiler.pair(Callee(function), given, wanted, True)
        source = "\n\n\n".join(t.rstrip() for t in pair_texts(pair)) + "\n"
        both = (pair.forward.cell_contents, pair.reverse.cell_contents)
        return Halves(*both, source, compiler.dependencies(), wanted)

    return settled(make, operators.seen_in([*args, *kwargs.values()]))


def pair_texts(pair: Any) -> list[str]:
    seen: list[Any] = []

    def visit(p: Any) -> None:
        if p not in seen:
            seen.append(p)
            for u in p.uses:
                visit(u)

    visit(pair)
    return [t for p in seen for t in p.sources]


# For the runtime dispatcher


def compile_jvp(
    function: types.FunctionType,
    kind: str,
    objects: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    function_dot: Any,
    arg_dots: tuple[Any, ...],
    kwarg_dots: dict[str, Any],
) -> dispatch.TangentPlan:
    """The forward-mode form of a callee for these arguments, with tangents for those that have one."""
    signature = inspect.signature(function, follow_wrapped=False)
    captured: tuple[str, ...] = ()
    given: dict[str, Fact] = {}
    places: list[tuple[str, str, Any]] = []
    if kind == "function":
        contents = dispatch.held_by(function)
        moving = function_dot if isinstance(function_dot, dict) else {}
        bound_now = signature.bind(*args, **kwargs).arguments
        moved = tuple(n for n in contents if n in moving and n not in bound_now)
        captured = tuple(dict.fromkeys((*dispatch.data_of(function, args, kwargs), *moved)))
        for n in captured:
            given[n] = weak_fact(contents[n], n)
            if contents[n] is function and function_dot is not None:
                places.append((n, "function", None))
            elif n in moving:
                places.append((n, "captured", n))
    bound = signature.bind(*objects, *args, **kwargs)
    first = next(iter(signature.parameters), None) if objects else None
    position = -len(objects)
    for n, p in signature.parameters.items():
        if n not in bound.arguments or n in captured:
            continue
        v = bound.arguments[n]
        if p.kind is p.VAR_POSITIONAL:
            given[n] = Fact("tuple", items=tuple(weak_fact(x, f"{n}[{i}]") for i, x in enumerate(v)))
            if any(d is not None for d in arg_dots[position:]):
                places.append((n, "arguments", position))
        elif p.kind is p.VAR_KEYWORD:
            given[n] = Fact("dict", items=tuple((k, weak_fact(x, f"{n}[{k}]")) for k, x in v.items()))
            if any(k in kwarg_dots for k in v):
                places.append((n, "keywords", tuple(v)))
        elif n == first:
            given[n] = weak_fact(v, n)
            if function_dot is not None:
                places.append((n, "function", None))
        else:
            given[n] = weak_fact(v, n)
            if n in kwargs or p.kind is p.KEYWORD_ONLY:
                if n in kwarg_dots:
                    places.append((n, "keyword", n))
            elif arg_dots[position] is not None:
                places.append((n, "argument", position))
        position += 1
    wanted = tuple(n for n, _, _ in places)
    facts = tuple(sorted((k, hashable(v)) for k, v in given.items()))
    fixed = dispatch.fixed_of(function, captured)
    seen = operators.seen_in([*objects, *args, *kwargs.values()])
    key = (function.__code__, facts, wanted, captured, tuple(id(v) for v in fixed), seen)
    known = _CALLS.get(key)
    if known is None or stale(known[1]):

        def make(compiler: Compiler) -> Any:
            made = jvp_of(compiler, Callee(function, captured=captured), given, wanted)
            return made, compiler.dependencies(), fixed  # the key names `fixed` by id

        known = _CALLS[key] = settled(make, seen)
    made = known[0]
    named = tuple((made.dots[n], where, at) for n, where, at in places)
    return dispatch.TangentPlan(made.jvp.cell_contents, captured, kind, named, function)


_CALLS: dict[Any, Any] = {}


def forget() -> None:
    """Drop the compiled calls: a rule was filed."""
    _CALLS.clear()


def weak_fact(value: Any, path: str) -> Fact:
    return weakened(fact_of(value, path), path)
