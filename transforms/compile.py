"""The compiler's driver: analyses a function for given kinds of arguments and emits its derivative.

`emit` gives a function object of one *form*:

    grad            the gradient
    value_and_grad  (value, gradient)
    forward         (value, saved): the primal with what its reverse half needs
    reverse         (cotangent of the value, saved) -> cotangents of the arguments
    jvp             (arguments, tangents) -> (value, tangent)

One derivative is compiled per function, kinds of arguments and set of differentiated arguments.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import gast
import numpy as np

import srcgrad.runtime.rules.emitted
import srcgrad.runtime.rules.kinds  # noqa: F401 (files its rules)
from srcgrad.runtime import dispatch, late, library, trees
from srcgrad.runtime.dependencies import Dependency
from srcgrad.runtime.errors import AliasError, ArgumentError, NoRule, SrcgradError, UnsupportedSyntax
from srcgrad.runtime.rules import table
from srcgrad.transforms import facts as facts_module
from srcgrad.transforms import resolve
from srcgrad.transforms.activity import active as active_names
from srcgrad.transforms.activity import statements
from srcgrad.transforms.aliases import Aliases
from srcgrad.transforms.callee import Callee, bind, discrete, only_computes
from srcgrad.transforms.check import check
from srcgrad.transforms.desugar import desugar, ends
from srcgrad.transforms.effects import CHANGING, METHODS, effects_of, places
from srcgrad.transforms.facts import BOTTOM, UNKNOWN, Fact, Interpreter
from srcgrad.transforms.load import load
from srcgrad.transforms.normalize import MUTATORS, normalize
from srcgrad.transforms.read import Source, fail, read
from srcgrad.transforms.recording import Record
from srcgrad.transforms.reverse import Reverse, fresh, written
from srcgrad.transforms.reverse import _as_index as as_index
from srcgrad.transforms.simplify import Simplify
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import (
    assign,
    assign_tuple,
    call,
    clone,
    constant,
    expression,
    list_,
    name,
    root,
    subscript,
    tuple_,
)
from srcgrad.transforms.tree.externals import Externals
from srcgrad.transforms.tree.generators import collected
from srcgrad.transforms.tree.names import Names, identifiers, stem
from srcgrad.transforms.tree.results import name_results
from srcgrad.transforms.tree.scope import MISSING, Scope
from srcgrad.transforms.tree.sight import Sight
from srcgrad.transforms.tree.taint import Taint
from srcgrad.transforms.views import resolve_views
from srcgrad.transforms.write import unparse

FAMILY_SEPARATOR = "_"

T = TypeVar("T")


class WritesMore(Exception):
    """A function turned out to write into more of its parameters than its text tells: it calls functions that
    it is given, or that it takes out of containers."""

    def __init__(self, callee: Callee, tokens: set[str]) -> None:
        super().__init__(callee.name)
        self.place, self.tokens = callee.place, tokens


class Unit:
    """The analysis of one function for given facts about its parameters and a set of differentiated
    parameters."""

    def __init__(
        self,
        compiler: Compiler,
        callee: Callee,
        given: dict[str, Fact],
        wanted: tuple[str, ...],
        root: bool = True,
        exposed: frozenset[str] = frozenset(),
        mirrored: bool = False,
    ) -> None:
        self.compiler, self.callee, self.given, self.wanted = compiler, callee, given, wanted
        if callee.definition is None:
            self.source: Source = read(callee.function)
            self.tree = clone(self.source.tree)
            drop_parameters(self.tree.args, set(callee.captured))
            first = [gast.Name(c, gast.Param(), None, None) for c in callee.captured]
            self.tree.args.args = first + self.tree.args.posonlyargs + self.tree.args.args
            self.tree.args.posonlyargs = []
        else:
            self.source = callee.parent.source
            self.tree = clone(callee.definition)
            first = [gast.Name(c, gast.Param(), None, None) for c in callee.captured]
            self.tree.args.posonlyargs = first + self.tree.args.posonlyargs
            if not self.tree.args.posonlyargs[len(first) :]:
                self.tree.args.args = self.tree.args.posonlyargs + self.tree.args.args
                self.tree.args.posonlyargs = []
        tree = self.tree
        own = {p.id for p in dataflow.parameters(tree)} | dataflow.bound_names(tree.body)
        declared = {
            n for s in statements(tree.body) if isinstance(s, (gast.Global, gast.Nonlocal)) for n in s.names
        }
        self.scope = compiler.scope(callee.function, frozenset(own - declared))
        self.find_imports(tree)
        if callee.definition is None and callee.function.__name__ == "__iter__":
            collected(tree, self.scope)
        check(self.source, tree, self.scope)
        for node in nodes.walk(tree):
            if callee.captured and isinstance(node, gast.Nonlocal) and set(node.names) & set(callee.captured):
                raise fail(
                    UnsupportedSyntax,
                    self.source,
                    node,
                    f"cannot differentiate a nested function that writes the nonlocal `{node.names[0]}`",
                    "Let it return the new value.",
                )
        used = identifiers(tree) | set(callee.function.__code__.co_freevars)
        self.user_names = own | used
        self.names = Names(used)
        self.defaults = self.default_facts()
        self.outer: dict[str, Any] = {}
        if callee.definition is not None:
            known = {**callee.parent.outer, **callee.parent.closures}
            self.outer = {n: d for n, d in known.items() if n not in own}
        nested = {s.name: s for s in statements(tree.body) if isinstance(s, gast.FunctionDef)}
        self.defined = set(nested)
        for d in nested.values():
            d.siblings = {**getattr(callee.definition, "siblings", {}), **nested}
        self.own_names = own
        name_results(tree, self.lookup)
        self.sight = sight = compiler.sight(callee.function, self.scope, tree)
        self.taint = Taint(
            self.tainted(),
            tree.body,
            self.lookup,
            discrete,
            lambda e: self.written_by(e, nested),
            next((p.id for p in dataflow.parameters(tree)), ""),
            sight.carried,
        )
        self.refuse_writes_outside(tree)
        self.refuse_spent_iterators(tree)
        tree.decorator_list = []
        tree.returns = None
        for p in dataflow.parameters(tree):
            p.annotation = None
        desugar(self.source, tree, self.names, self.taint)
        self.interpret()
        if resolve_views(tree):
            self.taint.spread(tree.body)
            self.interpret()
        self.externals = Externals(self.names, self.scope, self.user_names)
        outer = {n: callee.parent.captured_by(d) for n, d in self.outer.items()}
        normalize(self.source, tree, self.names, self.taint, self.externals, outer, given, sight)
        self.closures: dict[str, Any] = {}
        for s in statements(tree.body):
            if isinstance(s, gast.FunctionDef) and not s.decorator_list:
                s.home_unit = getattr(s, "original", s).home_unit = self
                self.closures[s.name] = s
        self.interpreter = self.interpret()
        self.result = self.interpreter.result
        returned = tree.body[-1].value
        outputs = {n.id for n in nodes.walk(returned) if isinstance(n, gast.Name)}
        self.mutated = tuple(w for w in wanted if self.writes(w)) if not root else ()
        outputs |= set(self.mutated)
        inputs = {w for w in wanted if given.get(w, UNKNOWN).kind not in ("none", "string")}
        facts = self.interpreter.all
        self.active: set[str] = set()
        if not mirrored:
            self.active = active_names(tree.body, facts, inputs, outputs, self.effects)
        self.aliases = Aliases(
            self.source,
            tree,
            facts,
            self.active,
            self.taint.names,
            self.effects,
            self.scope,
            mirrored,
            self.contents_written,
            set(self.mutated),
        )
        if not root:
            self.compiler.confirm(callee, self.aliases.written_tokens, given)
        if self.aliases.shared:
            shared = [(n, other) for _, n, other in self.aliases.shared]
            self.active |= active_names(tree.body, facts, inputs, outputs, self.effects, shared)
            if mirrored:  # constants too of which others are views
                memory = {self.aliases.find(n) for pair in shared for n in pair}
                arrays = {n for n, f in facts.items() if f.kind == "array" and f.real != 1}
                self.active |= {n for n in arrays if self.aliases.find(n) in memory}
        elif mirrored:
            self.active = active_names(tree.body, facts, inputs, outputs, self.effects)
        self.aliases.exposed = {self.aliases.find(n) for n in {*exposed, *self.mutated} - {"return"}}
        if "return" in exposed:
            self.aliases.exposed |= {self.aliases.find(n) for n in outputs}
        self.refuse_hidden_writes(tree)
        self.examine_calls(tree)
        tree.body[:0] = self.entry_guards()

    def examine_calls(self, tree: Any) -> None:
        """Looks into the functions that call what their text does not name, of calls that will not be
        compiled: what they write may matter."""
        changing_lambdas: set[str] = set()
        for s in statements(tree.body):
            if isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                continue
            seen = s.value if isinstance(s, (gast.Assign, gast.Expr)) else None
            if isinstance(s, gast.Assign) and dataflow.head_binds(s) & self.active:
                continue
            if isinstance(seen, gast.Lambda) and changes_something(seen):
                changing_lambdas |= dataflow.head_binds(s)
            func = seen.func if isinstance(seen, gast.Call) else None
            matters = isinstance(s, gast.Expr) or getattr(func, "id", "") in changing_lambdas
            if func is not None and matters and resolve.operation(seen).kind == "dispatch":
                self.refuse_unknown(s, resolve.operation(seen))
            for e in dataflow.head_nodes(s):
                if not isinstance(e, gast.Call):
                    continue
                self.refuse_changing_callbacks(s, e)
                function = resolve.operation(e).function if e is seen else self.lookup(e.func)
                callee = self.callee_of(function, e) if table.find(function) is None else None
                if callee is not None and not (e is seen and set(self.aliases.written(s)) & self.active):
                    self.examine(e if hasattr(e, "lineno") else s, callee, e)

    def refuse_changing_callbacks(self, s: Any, e: Any) -> None:
        """Functions made here that write into variables of this one, where nothing follows their calls."""
        for a in [*e.args, *(k.value for k in e.keywords)]:
            made = self.closures.get(getattr(a, "id", ""))
            if isinstance(a, gast.Lambda):
                made = gast.FunctionDef("lambda_", a.args, [gast.Return(a.body)], [], None, None)
                self.compiler.lambdas.append(made)
            if made is None or isinstance(self.lookup(e.func), types.FunctionType):
                continue
            free = tuple(sorted(dataflow.free_names(made) & self.interpreter.all.keys()))
            written, _ = self.compiler.effects(Callee(self.callee.function, made, None, free))
            for n in free:
                if n in self.taint.names and may_write(n, written, self.interpreter.all[n].kind):
                    what = f"a function that writes into `{n}` is called inside an expression here"
                    raise fail(AliasError, self.source, s, what, "Write the loop out.")

    def refuse_unknown(self, s: Any, op: Any) -> None:
        """A call for its effect, of what is only known when it runs."""
        called = s.value.func
        names = [n for _, n in op.operands]
        owner = getattr(getattr(called, "value", None), "fact", UNKNOWN).kind
        if owner not in ("function", "module") and getattr(called, "attr", "") in METHODS - CHANGING:
            names = [n for n in names if n == getattr(root(called), "id", "")]
        if isinstance(called, gast.Name) and called.id not in self.defined:
            names.append(called.id)  # what a function that was made elsewhere has captured
        facts = self.interpreter.all
        changing = [
            n
            for n in names
            if n in (self.taint.names if n in facts else self.active)
            and facts.get(n, UNKNOWN).kind not in ("scalar", "string", "none", "function")
        ]
        if changing and not only_computes(op.function):
            what = f"cannot tell whether `{written(s.value, op.function)}` writes into `{changing[0]}`"
            out = "Use its result, or write the update out."
            raise fail(UnsupportedSyntax, self.source, op.node, what, out)

    def examine(self, at: Any, callee: Callee, e: Any) -> None:
        try:
            bound = bind(self.parameters_of(callee), e, callee)
        except Exception:  # no source
            return
        written, _ = self.compiler.precise_effects(callee, self.classes(bound))
        given = {
            p: weakened(self.interpreter.all.get(getattr(a[0], "id", ""), getattr(a[0], "fact", UNKNOWN)), p)
            for p, a in bound.items()
            if len(a) == 1
        }
        unsure = [
            (p, a.id)
            for p, atoms in bound.items()
            if {"%" + p, "%" + p + "*"} & written
            for a in atoms
            if isinstance(a, gast.Name)
            and a.id in self.taint.names
            and self.interpreter.all.get(a.id, UNKNOWN).kind not in ("scalar", "string", "none", "function")
        ]
        if not unsure:
            return
        try:
            self.compiler.examine(callee, given, tuple(p for p, _ in unsure))
        except SrcgradError as error:
            what = f"cannot tell whether `{callee.name}` writes into `{unsure[0][1]}`: "
            what += str(error).splitlines()[0]
            raise fail(
                UnsupportedSyntax, self.source, at, what, "Use its result, or write the update out."
            ) from error

    def refuse_hidden_writes(self, tree: Any) -> None:
        """Calls inside expressions that carry no derivative, such as a test, may not write into what does: no
        pass would see it."""
        for s in statements(tree.body):
            if isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                continue
            seen = s.value if isinstance(s, (gast.Assign, gast.Expr)) else None
            for e in dataflow.head_nodes(s):
                if not isinstance(e, gast.Call) or (e is seen and not self.ignored(s)):
                    continue
                written = [] if e is seen else self.written_by(e, self.closures)
                if e is not seen and isinstance(e.func, gast.Attribute) and e.func.attr in MUTATORS:
                    written = [*written, e.func.value]
                elif isinstance(e.func, gast.Attribute) and self.changes_itself(e.func):
                    written = [*written, e.func.value]
                for n in {root(a).id for a in written if isinstance(root(a), gast.Name)} & self.taint.names:
                    if self.interpreter.all.get(n, UNKNOWN).kind not in ("scalar", "string", "none"):
                        raise fail(
                            AliasError,
                            self.source,
                            e if hasattr(e, "lineno") else s,
                            f"a call inside an expression writes into `{n}` here",
                            "Make the call a statement of its own, and use its result.",
                        )

    def ignored(self, s: Any) -> bool:
        """Is a statement a call of a method of an unknown object, of whose result nothing is made?"""
        owner = s.value.func.value if isinstance(s.value.func, gast.Attribute) else None
        kind = getattr(owner, "fact", UNKNOWN).kind if owner is not None else ""
        return kind in ("unknown", "object") and not dataflow.head_binds(s) & self.active

    def changes_itself(self, func: Any) -> bool:
        """May a method, as far as the classes in sight tell, write into its object?"""
        owner = getattr(func.value, "fact", UNKNOWN)
        if owner.kind == "instance":
            methods = [facts_module.class_attribute(owner.items, func.attr)]
        else:
            methods = self.sight.methods.get(func.attr, []) if owner.kind in ("unknown", "object") else []
        for m in methods:
            if isinstance(m, types.FunctionType) and m.__code__.co_argcount:
                own = classes_of({m.__code__.co_varnames[0]: owner})
                if {m.__code__.co_varnames[0]} & self.compiler.effects(Callee(m), own)[0]:
                    return True
        return False

    def entry_guards(self) -> list[Any]:
        """Checks at the start of a function that writes into its arguments: no two of them may share
        memory."""
        immutable = ("scalar", "string", "none", "function", "module")
        names = [p.id for p in dataflow.parameters(self.tree)]
        facts = {n: self.given.get(n, self.defaults.get(n, UNKNOWN)) for n in names}
        names = [n for n in names if facts[n].kind not in immutable]
        made: list[Any] = []
        place = f"{self.source.filename}:{getattr(self.source.tree, 'lineno', 0)}"

        def guard(function: Any, *args: Any) -> None:
            checked = self.externals.node(function)
            checked.fact = Fact("function", const=function)
            s = expression(call(checked, *args))
            s.origin = self.source.tree
            made.append(s)

        for n in sorted(self.aliases.written_parameters & set(names)):
            for other in names:
                if other != n and not (other in self.aliases.written_parameters and other < n):
                    guard(
                        trees.refuse_shared,
                        name(n),
                        name(other),
                        constant(n),
                        constant(other),
                        constant(place),
                    )
            if facts[n].kind != "array":
                guard(trees.refuse_overlap, name(n), constant(n), constant(place))
        return made

    def refuse_writes_outside(self, tree: Any) -> None:
        """A differentiated value that goes into an object from outside the function has left it."""
        for s in statements(tree.body):
            if not isinstance(s, (gast.Assign, gast.AugAssign)) or not self.taint.expr(s.value):
                continue
            for to in s.targets if isinstance(s, gast.Assign) else [s.target]:
                for place in places(to):
                    owner = root(place)
                    if (
                        isinstance(place, (gast.Subscript, gast.Attribute))
                        and isinstance(owner, gast.Name)
                        and owner.id not in self.own_names
                        and self.callee.definition is None
                    ):
                        raise fail(
                            UnsupportedSyntax,
                            self.source,
                            s,
                            f"cannot differentiate a write into `{owner.id}`, "
                            "which is from outside the function",
                            "Pass it as an argument, or return the value.",
                        )

    def refuse_spent_iterators(self, tree: Any) -> None:
        """An iterator that has a name may be gone through once; what is made of it here is a list."""
        for s in statements(tree.body):
            if not isinstance(s, gast.Assign) or not isinstance(s.targets[0], gast.Name):
                continue
            func = getattr(s.value, "func", None)
            gives = isinstance(s.value, gast.GeneratorExp) or (
                func is not None and library.lazy(self.scope.lookup(func))
            )
            if not gives or not self.taint.expr(s.value):
                continue
            n = s.targets[0].id
            uses = [x for x in nodes.walk(tree) if isinstance(x, gast.Name) and x.id == n]
            uses = [x for x in uses if isinstance(x.ctx, gast.Load)]
            loops = [x for x in statements(tree.body) if isinstance(x, (gast.For, gast.While))]
            again = any(
                x in uses and not any(y is s for y in nodes.walk(loop))
                for loop in loops
                for b in loop.body
                for x in nodes.walk(b)
            )
            if len(uses) > 1 or again:
                raise fail(
                    UnsupportedSyntax,
                    self.source,
                    s,
                    f"the iterator `{n}` is used more than once",
                    f"Make a list of it: `{n} = list(...)`.",
                )

    def written_by(self, node: Any, nested: dict[str, Any]) -> list[Any]:
        """The arguments of a call into which the callee may write, from its text alone."""
        found, definition = self.lookup(node.func), nested.get(getattr(node.func, "id", ""))
        if definition is not None:
            captured = self.captures(definition, nested)
            callee, args = Callee(self.callee.function, definition, None, captured), definition.args
        elif isinstance(found, types.FunctionType) and table.find(found) is None:
            try:
                callee, args = Callee(found), read(found).tree.args
            except Exception:  # no source: it will be refused, or has no differentiated arguments
                return []
        else:
            return []
        written, _ = self.compiler.effects(callee)
        closed = [name(n) for n in callee.captured if {n, "?" + n} & written]
        if any(isinstance(a, gast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            return [*node.args, *closed] if written else []
        bound = bind(args, node, callee)
        return closed + [a for p, atoms in bound.items() if {p, "?" + p} & written for a in atoms]

    def captures(self, definition: Any, nested: dict[str, Any]) -> tuple[str, ...]:
        """The variables of this function that a function defined here reads, itself or through others defined
        here."""
        reached, free = [definition], set()
        for d in reached:
            more = dataflow.free_names(d) & self.own_names
            free |= more
            reached += [nested[f] for f in sorted(more) if f in nested and nested[f] not in reached]
        return tuple(sorted(free - set(nested)))

    def writes(self, parameter: str) -> bool:
        """Does the function change what the caller passed for a parameter?"""
        written, _ = self.compiler.effects(self.callee, classes_of(self.given), arrays_of(self.given))
        kind = self.given.get(parameter, UNKNOWN).kind
        if kind in ("scalar", "string", "none"):
            return False
        return may_write(parameter, written, kind)

    def tainted(self) -> set[str]:
        wanted = set(self.wanted)
        return wanted | {n for n, d in self.outer.items() if set(self.callee.parent.captured_by(d)) & wanted}

    def captured_by(self, definition: Any) -> list[str]:
        """The variables that a function defined here, or further out, has captured, directly or through
        others."""
        return list(getattr(definition, "frees", ()))

    def find_imports(self, tree: Any) -> None:
        for s in statements(tree.body):
            if isinstance(s, gast.Import):
                for a in s.names:
                    bound = a.asname or a.name.split(".")[0]
                    self.scope.imports[bound] = _module(a.name if a.asname else bound)
            elif isinstance(s, gast.ImportFrom) and not s.level:
                module = _module(s.module or "")
                for a in s.names:
                    self.scope.imports[a.asname or a.name] = (
                        getattr(module, a.name, MISSING) if module else MISSING
                    )

    def default_facts(self) -> dict[str, Fact]:
        facts: dict[str, Fact] = {}
        a, f = self.tree.args, self.callee.function
        if self.callee.definition is None:
            for n, v in dispatch.defaults_of(f).items():
                facts[n] = fact_of_default(v)
        else:
            positional = a.posonlyargs + a.args
            for p, d in zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True):
                facts[p.id] = getattr(d, "fact", UNKNOWN)
            for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True):
                if d is not None:
                    facts[p.id] = getattr(d, "fact", UNKNOWN)
        return facts

    def lookup(self, node: Any) -> Any:
        found = self.scope.lookup(node)
        return None if found is MISSING else found

    def interpret(self) -> Interpreter:
        interpreter = Interpreter(self.scope, self.call_user)
        self.running = interpreter
        env = {}
        for p in dataflow.parameters(self.tree):
            fact = self.given.get(p.id, self.defaults.get(p.id, UNKNOWN))
            if (
                self.tree.args.vararg is not None
                and p.id == self.tree.args.vararg.id
                and p.id not in self.given
            ):
                fact = Fact("tuple", items=())
            if (
                self.tree.args.kwarg is not None
                and p.id == self.tree.args.kwarg.id
                and p.id not in self.given
            ):
                fact = Fact("dict", items=())
            env[p.id] = fact
        for n, d in self.outer.items():
            env[n] = Fact("closure", const=d)
        interpreter.function(self.tree.body, env)
        for n in self.outer:
            interpreter.all.pop(n, None)
        return interpreter

    def callee_of(self, function: Any, node: Any) -> Callee | None:
        if isinstance(function, gast.FunctionDef):
            function = getattr(function, "original", function)
            captured = tuple(f for f, _ in getattr(node, "captured", ()))
            return Callee(self.callee.function, function, getattr(function, "home_unit", self), captured)
        if isinstance(function, types.FunctionType):
            return Callee(function)
        return None

    def call_user(
        self, function: Any, args: list[Fact], keywords: dict[Any, Fact], node: Any, starred: bool
    ) -> Fact:
        """The fact of the result of calling a Python function."""
        callee = self.callee_of(function, node)
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            return UNKNOWN
        if callee is None or starred or not isinstance(node, gast.Call):
            return UNKNOWN
        env = {}
        if callee.definition is not None:
            now = dict(getattr(node, "captured", ()))
            for n in dataflow.free_names(callee.definition) | set(now):
                fact = self.running.env.get(now.get(n, n))
                if fact is not None:
                    env[n] = fact if fact.kind == "closure" else weakened(fact, n)
        return self.compiler.result_fact(callee, args, keywords, env)

    def effects(self, op: Any, value: Any) -> tuple[set[str], str]:
        """(names of arguments whose memory a call may write, may the result share memory with an
        argument)."""
        if op.kind != "call" or op.function is None:
            kinds = {self.interpreter.all.get(n, UNKNOWN).kind for _, n in op.operands}
            return set(), "" if kinds <= {"scalar", "string", "none", "function", "closure"} else "itself"
        callee = self.callee_of(op.function, value)
        if callee is None:
            return set(), "itself"
        bound = bind(self.parameters_of(callee), value, callee)
        arrays = arrays_of(
            {
                p: self.interpreter.all.get(a[0].id, UNKNOWN)
                for p, a in bound.items()
                if len(a) == 1 and isinstance(a[0], gast.Name)
            }
        )
        written, shares = self.compiler.effects(callee, self.classes(bound), arrays)
        names = set()
        for p, atoms in bound.items():
            for a in atoms:
                if not isinstance(a, gast.Name):
                    continue
                kind = self.interpreter.all.get(a.id, UNKNOWN).kind
                if may_write(p, written, kind):
                    names.add(a.id)
        return names, shares

    def contents_written(self, op: Any, value: Any) -> set[str]:
        """Containers among the arguments of a call which may write into what they hold."""
        callee = self.callee_of(op.function, value) if op.kind == "call" and op.function is not None else None
        if callee is None:
            return set()
        bound = bind(self.parameters_of(callee), value, callee)
        written, _ = self.compiler.precise_effects(callee, self.classes(bound))
        found, immutable = set(), ("scalar", "string", "none")
        for p, atoms in bound.items():
            if any(mark + p + "*" in written for mark in ("", "?", "!")):
                for a in atoms:
                    fact = self.interpreter.all.get(getattr(a, "id", ""), UNKNOWN)
                    held = facts_module.element(fact).kind if fact.kind in ("list", "tuple") else "unknown"
                    if fact.kind in ("list", "tuple", "dict", "instance") and held not in immutable:
                        found.add(a.id)
        return found

    def unsure(self) -> set[str]:
        """Variables that are compared at run time, whether they share memory, and may be unbound then."""
        bound = {p.id for p in dataflow.parameters(self.tree)}
        found: set[str] = set()
        for s in self.tree.body:
            inside = {id(x) for x in statements([s])}
            pairs = [pair for where, *pair in self.aliases.guards + self.aliases.shared if where in inside]
            found |= {n for pair in pairs for n in pair} - bound
            bound |= dataflow.definitely_bound([s])
        return found & self.interpreter.all.keys()

    def classes(self, bound: dict[str, list[Any]]) -> tuple[tuple[str, type], ...]:
        """Which parameters of a callee receive objects of known classes."""
        facts = {
            p: self.interpreter.all.get(a[0].id, UNKNOWN)
            for p, a in bound.items()
            if a and isinstance(a[0], gast.Name)
        }
        return classes_of(facts)

    def unclear(self, value: Any) -> list[str]:
        """Arguments of a call that the callee writes into if they are arrays, which is not known."""
        op = resolve.operation(value)
        callee = self.callee_of(op.function, value) if op.kind == "call" and op.function is not None else None
        if callee is None:
            return []
        bound = bind(self.parameters_of(callee), value, callee)
        written, _ = self.compiler.effects(callee, self.classes(bound))
        names = [
            a.id
            for p, atoms in bound.items()
            if "?" + p in written
            for a in atoms
            if isinstance(a, gast.Name)
        ]
        return sorted(
            {n for n in names if self.interpreter.all.get(n, UNKNOWN).kind in ("unknown", "numeric")}
            & self.active
        )

    def parameters_of(self, callee: Callee) -> Any:
        return callee.definition.args if callee.definition is not None else read(callee.function).tree.args


def classes_of(facts: dict[str, Fact]) -> tuple[tuple[str, type], ...]:
    return tuple(sorted(((p, f.items) for p, f in facts.items() if f.kind == "instance"), key=lambda c: c[0]))


def arrays_of(facts: dict[str, Fact]) -> frozenset[str]:
    """The parameters that receive arrays or numbers."""
    return frozenset(p for p, f in facts.items() if f.kind in ("array", "scalar", "numeric"))


def _module(dotted: str) -> Any:
    if dotted in sys.modules:
        return sys.modules[dotted]
    try:
        return importlib.import_module(dotted)
    except ImportError:
        return MISSING


def drop_parameters(args: Any, names: set[str]) -> None:
    """Takes parameters with default values out of a signature: their values come with the captured ones."""
    for part in (args.posonlyargs, args.args):
        part[:] = [p for p in part if p.id not in names]
    args.kw_defaults = [
        d for p, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if p.id not in names
    ]
    args.kwonlyargs = [p for p in args.kwonlyargs if p.id not in names]


def fact_of_default(value: Any) -> Fact:
    fact = fact_of(value, "default")
    return fact if fact.kind in ("none", "function", "string") else replace(fact, const=MISSING)


def fact_of(value: Any, path: str) -> Fact:
    """The fact of an argument's value: kind, rank and which dimensions are 1; never other shapes or
    values."""
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return Fact("scalar", real=facts_module.how_real(value))
    if isinstance(value, (complex, np.complexfloating)):
        return Fact("scalar")
    if type(value) is np.ndarray:
        if value.dtype.kind not in "fcbiu":
            return UNKNOWN
        dims = tuple(
            1 if d == 1 else facts_module.Dim(f"{path}.{i}", 0, True) for i, d in enumerate(value.shape)
        )
        real = 2 if value.dtype == np.float64 else 1 if value.dtype.kind in "biu" else 0
        return Fact("array", dims, real)
    if value is None:
        return facts_module.NONE
    if isinstance(value, str):
        return facts_module.STRING
    if type(value) is list:
        fact = BOTTOM
        for i, v in enumerate(value):
            fact = facts_module.join(fact, fact_of(v, f"{path}[{i}]"))
        return Fact("list", items=fact)
    if type(value) is tuple:
        return Fact("tuple", items=tuple(fact_of(v, f"{path}[{i}]") for i, v in enumerate(value)))
    if type(value) is dict and all(isinstance(k, (str, int)) for k in value):
        return Fact("dict", items=tuple((k, fact_of(v, f"{path}[{k}]")) for k, v in value.items()))
    if isinstance(value, dict):
        return Fact("dict")
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return Fact("function", const=value)
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc, type)) or table.find(value) is not None:
        return Fact("function", const=value)
    if facts_module.is_user_class(type(value)):
        return Fact("instance", items=type(value))
    return UNKNOWN


def weakened(fact: Fact, path: str) -> Fact:
    """A fact as a callee may know it: no values, and dimensions under the parameter's own names."""
    if fact.kind == "array" and fact.shape is not None:
        dims = tuple(
            1 if d == 1 else facts_module.Dim(f"{path}.{i}", 0, facts_module.several(d))
            for i, d in enumerate(fact.shape)
        )
        return Fact("array", dims, fact.real)
    if fact.kind == "scalar":
        return Fact("scalar", real=fact.real)
    if fact.kind == "tuple" and fact.items is not None:
        return Fact("tuple", items=tuple(weakened(f, f"{path}[{i}]") for i, f in enumerate(fact.items)))
    if fact.kind == "list" and fact.items is not None:
        return Fact("list", items=weakened(fact.items, path + "[]"))
    if fact.kind == "dict" and fact.items is not None:
        return Fact("dict", items=tuple((k, weakened(f, f"{path}[{k}]")) for k, f in fact.items))
    if fact.kind in ("function", "none", "instance"):
        return fact
    if fact.kind == "closure":
        return UNKNOWN
    return Fact(fact.kind, real=fact.real)


@dataclass
class Pair:
    """The forward and reverse halves of a callee. The functions are set once both are emitted (recursion
    refers to cells)."""

    name: str
    parameters: tuple[str, ...]
    forward: types.CellType = field(default_factory=types.CellType)
    reverse: types.CellType = field(default_factory=types.CellType)
    mutated: tuple[str, ...] = ()
    sources: list[str] = field(default_factory=list)
    uses: list[Pair] = field(default_factory=list)


@dataclass
class Half:
    """Stands in the table of externals for one half of a pair that may not be emitted yet."""

    cell: types.CellType
    __module__ = "srcgrad.emitted"


class Compiler:
    """One per root function: what has been analysed and emitted for it and for the functions it calls."""

    def __init__(self, classes: Iterable[type] = (), written: dict[Any, set[str]] | None = None) -> None:
        """`classes` are those of objects that come with the arguments; `written` tells for functions by their
        place what they write beside what their text tells."""
        self.written = written if written is not None else {}
        self.classes, self.roots = list(classes), set[Any]()
        self.pairs: dict[Any, Pair] = {}
        self.results: dict[Any, Fact] = {}
        self.running: set[Any] = set()
        self.effect_cache: dict[Any, tuple[set[str], str]] = {}
        self.tangents: dict[Any, Any] = {}
        self.examined: dict[Any, Unit] = {}
        self.lambdas: list[Any] = []
        """Definitions made of lambdas. They are kept, as the units that were looked into: what is known of a
        definition is filed under its identity."""
        self.numbers: dict[str, int] = {"call": 1}
        self.scopes: list[Scope] = []

    def sight(self, function: types.FunctionType, scope: Scope, tree: Any) -> Sight:
        """Which classes a function that is compiled here may meet."""
        self.roots.add(function)
        defined = [s for s in statements(tree.body) if isinstance(s, gast.ClassDef)]
        return Sight([*self.roots, *self.classes, *scope.imports.values()], defined)

    # Summaries of callees -----------------------------------------------------------------------------------

    def result_fact(
        self, callee: Callee, args: list[Fact], keywords: dict[Any, Fact], env: dict[str, Fact]
    ) -> Fact:
        try:
            tree = callee.definition if callee.definition is not None else read(callee.function).tree
        except Exception:
            return UNKNOWN
        if isinstance(tree, gast.AsyncFunctionDef) or any(
            isinstance(n, (gast.Yield, gast.YieldFrom)) for n in nodes.walk(tree)
        ):
            return UNKNOWN
        facts = dict(env)
        a = tree.args
        positional = [p.id for p in a.posonlyargs + a.args]
        for p, f in zip(positional, args, strict=False):
            facts[p] = weakened(f, p)
        if a.vararg is not None:
            rest = args[len(positional) :]
            facts[a.vararg.id] = Fact(
                "tuple", items=tuple(weakened(f, f"{a.vararg.id}[{i}]") for i, f in enumerate(rest))
            )
        extra = []
        for k, f in keywords.items():
            if k in positional or k in [p.id for p in a.kwonlyargs]:
                facts[k] = weakened(f, k)
            else:
                extra.append((k, weakened(f, k)))
        if a.kwarg is not None:
            facts[a.kwarg.id] = Fact("dict", items=tuple(extra))
        if callee.definition is None:
            for n, v in dispatch.defaults_of(callee.function).items():
                facts.setdefault(n, fact_of_default(v))
        key = (callee.key, tuple(sorted((k, hashable(v)) for k, v in facts.items())))
        if key in self.results:
            return self.results[key]
        if len(self.running) > 40:
            return UNKNOWN
        own = {p.id for p in dataflow.parameters(tree)} | dataflow.bound_names(tree.body)
        scope = Scope(callee.function, frozenset(own))

        def call_user(fn: Any, ar: Any, kw: Any, _: Any, starred: bool) -> Fact:
            if starred or not isinstance(fn, (types.FunctionType, gast.FunctionDef)):
                return UNKNOWN
            if isinstance(fn, gast.FunctionDef):
                seen = {n: interpreter.env[n] for n in dataflow.free_names(fn) if n in interpreter.env}
                return self.result_fact(Callee(callee.function, fn), ar, kw, seen)
            return self.result_fact(Callee(fn), ar, kw, {})

        self.results[key] = BOTTOM
        self.running.add(key)
        try:
            for _ in range(6):
                interpreter = Interpreter(scope, call_user)
                found = interpreter.function(clone(tree.body), facts)
                found = facts_module.join(found, facts_module.NONE) if not ends(tree.body) else found
                found = weakened(found, "result")
                if found == self.results[key]:
                    break
                self.results[key] = facts_module.join(self.results[key], found)
            else:
                self.results[key] = UNKNOWN
        finally:
            self.running.discard(key)
        return self.results[key]

    def effects(
        self,
        callee: Callee,
        classes: tuple[tuple[str, type], ...] = (),
        arrays: frozenset[str] = frozenset(),
    ) -> tuple[set[str], str]:
        """(parameters that a function may write into, may its result share memory with a parameter), from its
        text alone. `arrays` are parameters that receive arrays, which have no methods of lists."""
        written, shares = self.precise_effects(callee, classes)
        vain = {w for w in written if w.strip("?!~*") in arrays and (w.startswith("~") or w.endswith("*"))}
        deep = {w for w in written if w.startswith("?") and w.endswith("*")}
        return deep | {w.strip("!~*") for w in written - vain if not w.startswith("%")}, shares

    def precise_effects(
        self, callee: Callee, classes: tuple[tuple[str, type], ...] = ()
    ) -> tuple[set[str], str]:
        """Like `effects`, with the marks of `effects_of`."""
        key = (callee.key, classes)
        if callee.function.__module__ == "dataclasses":  # the dispatcher writes out what they do
            return set(), "itself"
        if key not in self.effect_cache:
            self.effect_cache[key] = (set(), "")
            try:
                tree = callee.definition if callee.definition is not None else read(callee.function).tree
            except Exception:
                self.effect_cache[key] = (set(), "itself")
                return self.effect_cache[key]
            for _ in range(4):
                found = effects_of(self, tree, callee, dict(classes))
                found[0].update(self.written.get(callee.place, ()))
                if found == self.effect_cache[key]:
                    break
                self.effect_cache[key] = found
        return self.effect_cache[key]

    def confirm(self, callee: Callee, tokens: set[str], given: dict[str, Fact]) -> None:
        """Raise WritesMore unless what a function writes, as its analysis found, is what its text told."""
        written, _ = self.precise_effects(callee, classes_of(given))
        told = {w.lstrip("?!~") for w in written if not w.startswith("%")}
        if more := tokens - told - self.written.get(callee.place, set()):  # so that each start knows more
            raise WritesMore(callee, more)

    def examine(self, callee: Callee, given: dict[str, Fact], wanted: tuple[str, ...]) -> None:
        """Raise WritesMore if a function, for such arguments, writes more than its text tells."""
        key = (callee.key, tuple(sorted((k, hashable(v)) for k, v in given.items())), wanted)
        if key not in self.examined:
            unit = self.examined[key] = Unit.__new__(Unit)
            unit.__init__(self, callee, given, wanted, False)  # type: ignore[misc]

    def scope(self, function: types.FunctionType, local: frozenset[str]) -> Scope:
        made = Scope(function, local)
        self.scopes.append(made)
        return made

    def dependencies(self) -> list[Dependency]:
        """What must stay as it is for the compiled derivative to be valid."""
        return list({key: d for s in self.scopes for key, d in s.used.items()}.values())

    # Pairs --------------------------------------------------------------------------------------------------

    def unique(self, wanted: str) -> str:
        """A name for the halves of a pair: callees of one name, or for several kinds of arguments, are
        numbered."""
        number = self.numbers[wanted] = self.numbers.get(wanted, 0) + 1
        return wanted if number == 1 else f"{wanted}_{number}"

    def pair(
        self,
        callee: Callee,
        given: dict[str, Fact],
        wanted: tuple[str, ...],
        root: bool = False,
        exposed: frozenset[str] = frozenset(),
    ) -> Pair:
        key = (callee.key, tuple(sorted((k, hashable(v)) for k, v in given.items())), wanted, root, exposed)
        if key in self.pairs:
            return self.pairs[key]
        made = self.pairs[key] = Pair(self.unique(stem(callee.name)), wanted)
        if not root:
            written, _ = self.effects(callee, classes_of(given), arrays_of(given))
            kinds = {w: given.get(w, UNKNOWN).kind for w in wanted}
            made.mutated = tuple(
                w
                for w in wanted
                if kinds[w] not in ("scalar", "string", "none") and may_write(w, written, kinds[w])
            )
        try:
            unit = Unit(self, callee, given, wanted, root, exposed)
            made.mutated = unit.mutated
            Emitter(self, unit, made).pair(root)
        except BaseException:
            del self.pairs[key]
            raise
        return made


def forget_captured(body: list[Any]) -> None:
    """Calls that stay as they are read what their functions have captured in the functions' own way."""
    for s in body:
        for n in nodes.walk(s):
            if isinstance(n, gast.Call) and hasattr(n, "captured"):
                del n.captured


def changes_something(e: Any) -> bool:
    """Does an expression call a method that changes its object?"""
    called = [n.func for n in nodes.walk(e) if isinstance(n, gast.Call)]
    return any(isinstance(f, gast.Attribute) and f.attr in MUTATORS for f in called)


def may_write(parameter: str, written: set[str], kind: str) -> bool:
    """Does a function with these effects write into what a parameter of this kind is, or holds?"""
    return (
        parameter in written
        or ("?" + parameter in written and kind in ("array", "list", "dict"))
        or ("?" + parameter + "*" in written and kind in ("tuple", "instance"))
    )


def settled(make: Callable[[Compiler], T], classes: Iterable[type] = ()) -> T:
    """What `make` makes with a compiler, once it knows what each function writes."""
    written: dict[Any, set[str]] = {}
    while True:
        try:
            return make(Compiler(classes, written))
        except WritesMore as more:
            written.setdefault(more.place, set()).update(more.tokens)


def hashable(fact: Fact) -> Any:
    """A key that is equal for facts which mean the same to the compiler; objects and classes count by
    identity."""
    items = fact.items
    if isinstance(items, Fact):
        items = hashable(items)
    elif isinstance(items, tuple):
        items = tuple(hashable(i) if isinstance(i, Fact) else (repr(i[0]), hashable(i[1])) for i in items)
    return (fact.kind, fact.shape, fact.real, items, id(fact.const) if fact.known else None)


class Emitter:
    """Makes the functions of one unit."""

    def __init__(self, compiler: Compiler, unit: Unit, pair: Pair | None = None) -> None:
        self.compiler, self.unit = compiler, unit
        self.uses: list[Pair] = []
        self.self_pair = pair
        self.externals = unit.externals
        self.halves: dict[str, types.CellType] = {}
        self._float_variables: dict[str, bool] = {}
        self.is_floating: Callable[[Any], bool] = lambda e: True
        self.shadow_bars: set[str] = set()

    # The reverse pass and what follows ----------------------------------------------------------------------

    def reverse(
        self, seed: Callable[[Any], Any], incoming: dict[str, str] | None = None, runs_once: bool = False
    ) -> tuple[list[Any], list[Any], Any, list[Any]]:
        """(forward statements, reverse statements, the result's expression, cotangents of the wanted
        parameters)."""
        unit = self.unit
        pass_ = self.pass_ = Reverse(
            unit.source, unit.tree, unit.names, unit.interpreter, unit.active, self.externals, self.call_pair
        )
        pass_.aliases = unit.aliases
        pass_.runs_once = runs_once
        pass_.user_names = unit.user_names
        pass_.varied = unit.taint.names
        self.is_floating = pass_.floating
        pass_.late = getattr(unit.tree, "late", {})
        result, reverse, outputs = pass_.function(seed, list(unit.wanted), incoming or {})
        self.unknowns = pass_.unknowns
        forward = self.records(pass_.late) + pass_.start + self.rewritten(unit.tree.body[:-1])
        forget_captured(forward)
        for cell in pass_.late.values():
            pass_.facts[cell] = Fact("object")
        temporaries = set(unit.names.used) - unit.user_names
        recorder_facts = {**pass_.interpreter.env, **pass_.facts}
        worker = Record(forward, unit.names, recorder_facts, temporaries)
        worker.parameters = {p.id for p in dataflow.parameters(unit.tree)}
        worker.shadows = {pass_.bar(n): n for n in pass_.shadows}
        self.shadow_bars = set(worker.shadows)
        copied = {n for _, n in pass_.snapshots} & dataflow.bound_names(forward)
        copied = copied and copied & dataflow.liveness(forward, set())
        unsure = (pass_.unbound | unit.unsure() | copied) - worker.parameters
        unsure |= {pass_.bar(n) for n in unsure & pass_.shadows}
        for n in sorted(unsure):
            start = assign(n, constant(None))
            start.predefined = True
            forward.insert(0, start)
        written = {unit.aliases.find(n.rstrip("*")) for n, _ in unit.aliases.writes}
        worker.growing = {
            n
            for n, fact in unit.interpreter.all.items()
            if fact.kind in ("list", "dict") and unit.aliases.find(n) in written
        }
        worker.structure = self.externals.node(trees.structure)
        worker.aliases = unit.aliases
        worker.block(reverse)
        self.facts = recorder_facts
        self.at_start: dict[str, str] = {}
        for w in unit.wanted:
            # A list or dict that grows or shrinks: the gradient has the structure that was passed.
            if unit.interpreter.all.get(w, UNKNOWN).kind in (
                "list",
                "dict",
                "unknown",
                "tuple",
            ) and self.changes(w):
                kept = self.at_start[w] = unit.names.fresh(w + "_given")
                self.facts[kept] = Fact("object")
                forward.insert(0, assign(kept, call(self.externals.node(trees.structure), name(w))))
        return forward, reverse, result, outputs

    def records(self, variables: dict[str, str]) -> list[Any]:
        """The records of captured variables that are bound again: `e_cell = variable(lambda: e_late)`."""
        none = gast.arguments([], [], None, [], [], None, [])
        make = late.variable
        return [
            assign(cell, call(self.externals.node(make), gast.Lambda(clone(none), name(n))))
            for n, cell in sorted(variables.items())
            if n in self.unit.active
        ]

    def changes(self, w: str) -> bool:
        aliases = self.unit.aliases
        return any(
            aliases.find(n) in (aliases.find(w), aliases.find(w + "*")) or n.rstrip("*") == w
            for n, _ in aliases.writes
        )

    def given(self, w: str) -> Any:
        """The argument `w` as it was passed."""
        return name(self.at_start.get(w, w))

    def rewritten(self, body: list[Any]) -> list[Any]:
        out = []
        for s in body:
            for field_ in dataflow.BLOCKS:
                inner = getattr(s, field_, None)
                if inner and not isinstance(s, (gast.FunctionDef, gast.ClassDef)):
                    setattr(s, field_, self.rewritten(inner))
            for h in getattr(s, "handlers", []):
                h.body = self.rewritten(h.body)
            out += self.guards(s)
            out += self.pass_.before.get(id(s), [])
            if getattr(s, "repeated", False):  # np.add.at, of which the passes see an update
                function = np.add if isinstance(s.op, gast.Add) else np.subtract
                at_ = gast.Attribute(
                    gast.Attribute(self.externals.node(np), function.__name__, gast.Load()), "at", gast.Load()
                )
                index = as_index(clone(s.target.slice))
                out.append(expression(call(at_, name(s.target.value.id), index, clone(s.value)), s))
            else:
                out += self.pass_.replaced.get(id(s), [s])
            out += self.pass_.after.get(id(s), [])
        return out

    def guards(self, s: Any) -> list[Any]:
        """Checks before a statement that writes into what may share memory with another name."""
        made = []
        place = f"{self.unit.source.filename}:{getattr(s, 'lineno', 0)}"
        for _, n, other in dict.fromkeys(g for g in self.unit.aliases.guards if g[0] == id(s)):
            to = s.targets[0] if isinstance(s, gast.Assign) else None
            part = clone(to.value) if isinstance(to, (gast.Subscript, gast.Attribute)) else name(n)
            if not isinstance(root(part), gast.Name) or root(part).id != n:
                part = name(n)
            test = call(
                self.externals.node(trees.refuse_shared),
                part,
                name(other),
                constant(n),
                constant(other),
                constant(place),
            )
            made.append(expression(test, s))
        for to in s.targets if isinstance(s, gast.Assign) else []:
            part = getattr(to, "value", None)
            if isinstance(part, (gast.Subscript, gast.Attribute)) and isinstance(root(part), gast.Name):
                n = root(part).id
                if n in self.unit.active and not dataflow.displayed(n, self.unit.tree.body):
                    where = (constant(n), constant(place))
                    test = call(self.externals.node(trees.refuse_twice), name(n), clone(part), *where)
                    made.append(expression(test, s))
        value = getattr(s, "value", None)
        if isinstance(s, (gast.Assign, gast.Expr)) and isinstance(value, gast.Call):
            for n in self.unit.unclear(value):
                test = call(self.externals.node(trees.refuse_mutable), name(n), constant(n), constant(place))
                made.append(expression(test, s))
        return made

    def call_pair(self, pass_: Reverse, s: Any, op: Any, given: list[Any], g: Any, v: str | None) -> None:
        """The two halves of a call: the forward one in place of the statement `s`, the reverse one into the
        sweep."""
        unit = self.unit
        if op.kind == "dispatch":
            self.dispatched(pass_, s, op, given, g, v)
            return
        node = s.value
        callee = unit.callee_of(op.function, node)
        assert callee is not None
        args = unit.parameters_of(callee)
        bound = bind(args, node, callee)
        facts: dict[str, Fact] = {}
        for p, atoms in bound.items():
            if args.vararg is not None and p == args.vararg.id:
                facts[p] = Fact(
                    "tuple",
                    items=tuple(weakened(self.atom_fact(a), f"{p}[{i}]") for i, a in enumerate(atoms)),
                )
            elif args.kwarg is not None and p == args.kwarg.id:
                extra = [k for k in node.keywords if any(k.value is a for a in atoms)]
                facts[p] = Fact(
                    "dict", items=tuple((k.arg, weakened(self.atom_fact(k.value), k.arg)) for k in extra)
                )
            else:
                facts[p] = weakened(self.atom_fact(atoms[0]), p)
        wanted = tuple(
            p
            for p, atoms in bound.items()
            if any(isinstance(a, gast.Name) and a.id in unit.active for a in atoms)
        )
        pair = self.compiler.pair(callee, facts, wanted, exposed=self.exposed(pass_, bound, s, v))
        if pair not in self.uses:
            self.uses.append(pair)
        forward, reverse = self.half(pair, "forward"), self.half(pair, "reverse")
        saved = unit.names.fresh(f"{stem(callee.name)}_saved")
        pass_.facts[saved] = Fact("object")
        pass_.know(saved, Fact("object"))
        captured = [name(now) for _, now in getattr(node, "captured", ())]
        made = gast.Call(name(forward), captured + node.args, node.keywords)
        if v is None:
            pass_.replaced[id(s)] = [assign_tuple([unit.names.fresh("result"), saved], made, s)]
        else:
            pass_.replaced[id(s)] = [assign_tuple([v, saved], made, s)]
        changed: dict[str, str] = {}
        numbers = set(unit.unclear(node))  # a guard has seen that these can't be written
        for p in pair.mutated:
            if all(isinstance(a, gast.Name) and a.id in numbers for a in bound[p]):
                continue
            atoms = [a for a in bound[p] if isinstance(a, gast.Name)]
            others = [
                a.id for q, given_ in bound.items() if q != p for a in given_ if isinstance(a, gast.Name)
            ]
            packed = p in (getattr(args.vararg, "id", None), getattr(args.kwarg, "id", None))
            if (
                len(bound[p]) != 1
                or packed
                or not atoms
                or atoms[0].id in others
                or atoms[0].id in changed.values()
            ):
                what = f"`{callee.name}` writes into its argument `{p}`"
                what += ", which is passed in a way that can't be followed"
                raise pass_.refuse(node, what, "Pass a name of its own, once.", AliasError)
            changed[p] = atoms[0].id
        incoming = [
            name(pass_.buffer(changed[p])) if p in changed else pass_.zero(bound[p][0].id)
            for p in pair.mutated
        ]
        value = call(reverse, g, name(saved), *incoming)
        targets = []
        flows: list[tuple[str, Any]] = []
        shadows: list[tuple[str, str]] = []
        for p in wanted:
            if p in changed:
                targets.append(pass_.bar(changed[p]))
                if changed[p] in pass_.shadows:  # whose memory others share
                    targets[-1] = unit.names.fresh(targets[-1])
                    shadows.append((changed[p], targets[-1]))
                continue
            bar = unit.names.fresh(f"{p}_bar")
            targets.append(bar)
            for position, atom in enumerate(bound[p]):
                if not (isinstance(atom, gast.Name) and atom.id in unit.active):
                    continue
                if args.vararg is not None and p == args.vararg.id:
                    part: Any = subscript(name(bar), constant(position))
                elif args.kwarg is not None and p == args.kwarg.id:
                    key = next(k.arg for k in node.keywords if k.value is atom)
                    part = subscript(name(bar), constant(key))
                else:
                    part = name(bar)
                flows.append((atom.id, part))
            pass_.know(
                bar,
                pass_.facts.get(bound[p][0].id, UNKNOWN) if isinstance(bound[p][0], gast.Name) else UNKNOWN,
            )
            if (
                args.vararg is not None
                and p == args.vararg.id
                or args.kwarg is not None
                and p == args.kwarg.id
            ):
                pass_.know(bar, UNKNOWN)
        if len(targets) == 1:
            pass_.emit(assign(targets[0], value))
        else:
            pass_.emit(assign_tuple(targets, value))
        for n, bar in shadows:
            pass_.know(bar, pass_.facts.get(n, UNKNOWN))
            pass_.become(n, name(bar))
        for n, part in flows:
            pass_.contribute(n, part)

    def exposed(self, pass_: Reverse, bound: dict[str, list[Any]], s: Any, v: str | None) -> frozenset[str]:
        """Parameters of a callee whose memory is written after the call ("return": its result's), so that the
        callee has to record copies of what its reverse half reads of them."""
        found = {
            p
            for p, atoms in bound.items()
            for a in atoms
            if isinstance(a, gast.Name) and pass_.aliases.overwritten(a.id, s)
        }
        if v is not None and pass_.aliases.overwritten(v, s):
            found.add("return")
        return frozenset(found)

    def atom_fact(self, atom: Any) -> Fact:
        if isinstance(atom, gast.Name):
            known = self.pass_.facts.get(atom.id)
            if known is None:
                known = facts_module.of_global(self.unit.lookup(atom))
                known = known if known.kind == "function" else UNKNOWN
            return known
        return getattr(atom, "fact", UNKNOWN)

    def half(self, pair: Pair, which: str) -> str:
        cell = getattr(pair, which)
        for known, c in self.halves.items():
            if c is cell:
                return known
        made = self.unit.names.fresh(f"{pair.name}_{which}")
        self.halves[made] = cell
        return made

    def dispatched(self, pass_: Reverse, s: Any, op: Any, given: list[Any], g: Any, v: str | None) -> None:
        unit = self.unit
        node = s.value
        known = op.function
        if known is not None and not differentiable(known):
            raise fail(
                NoRule,
                unit.source,
                node if hasattr(node, "lineno") else s.origin,
                f"`{written(node, known)}` has no derivative rule",
                "Write it with functions that have one, or give it a rule.",
            )
        if v is None or g is None:
            return
        saved = unit.names.fresh(f"{v}_saved")
        pass_.facts[saved] = Fact("object")
        pass_.know(saved, Fact("object"))
        keywords = [k for k in node.keywords]
        kwargs = gast.Dict(
            [None if k.arg is None else constant(k.arg) for k in keywords], [k.value for k in keywords]
        )
        arguments = [node.func, tuple_(node.args)]
        exposed = self.exposed(pass_, {n: [name(n)] for _, n in op.operands}, s, v)
        if keywords or exposed:
            arguments.append(kwargs)
        if exposed:
            arguments.append(constant(True))
        made = call(self.externals.node(dispatch.forward, "call_forward"), *arguments)
        pass_.replaced[id(s)] = [assign_tuple([v, saved], made, s)]
        whole = pass_.temporary(
            v + "_parts", call(self.externals.node(dispatch.reverse, "call_reverse"), name(saved), g)
        )
        if any(isinstance(a, gast.Starred) for a in node.args) or any(k.arg is None for k in keywords):
            self.starred(pass_, node, whole)
        else:
            for position, atom in enumerate(node.args):
                if isinstance(atom, gast.Name) and atom.id in unit.active:
                    part = subscript(subscript(clone(whole), constant(1)), constant(position))
                    pass_.contribute(atom.id, pass_.matched(part, atom.id))
            for k in keywords:
                if isinstance(k.value, gast.Name) and k.value.id in unit.active:
                    part = subscript(subscript(clone(whole), constant(2)), constant(k.arg))
                    pass_.contribute(k.value.id, pass_.matched(part, k.value.id))
        func = node.func
        if isinstance(func, gast.Name) and func.id in unit.active:
            pass_.contribute(func.id, subscript(clone(whole), constant(0)))
        elif (
            isinstance(func, gast.Attribute)
            and isinstance(func.value, gast.Name)
            and func.value.id in unit.active
        ):
            part = call(
                self.externals.node(dispatch.owner),
                subscript(clone(whole), constant(0)),
                func.value,
                constant(func.attr),
            )
            pass_.contribute(func.value.id, part)

    def starred(self, pass_: Reverse, node: Any, whole: Any) -> None:
        """Cotangents of `f(a, *xs, k=b, **kw)`: positions are counted when it runs."""
        active = self.unit.active
        offset: Any = constant(0)
        for atom in node.args:
            inner = atom.value if isinstance(atom, gast.Starred) else atom
            parts = subscript(clone(whole), constant(1))
            if isinstance(atom, gast.Starred):
                stop = gast.BinOp(clone(offset), gast.Add(), call("len", clone(inner)))
                if isinstance(inner, gast.Name) and inner.id in active:
                    piece = subscript(parts, gast.Slice(clone(offset), stop, None))
                    pass_.contribute(inner.id, call(self.externals.node(trees.match), piece, clone(inner)))
                offset = stop
            else:
                if isinstance(inner, gast.Name) and inner.id in active:
                    pass_.contribute(inner.id, subscript(parts, clone(offset)))
                offset = gast.BinOp(offset, gast.Add(), constant(1))
        for k in node.keywords:
            if isinstance(k.value, gast.Name) and k.value.id in active:
                table_ = subscript(clone(whole), constant(2))
                if k.arg is not None:
                    pass_.contribute(k.value.id, subscript(table_, constant(k.arg)))
                else:
                    pass_.contribute(
                        k.value.id, call(self.externals.node(trees.select), table_, clone(k.value))
                    )

    # Forms --------------------------------------------------------------------------------------------------

    def gradient(
        self, argnums: Any, with_value: bool, has_aux: bool, wanted: tuple[str, ...]
    ) -> tuple[types.FunctionType, str]:
        unit = self.unit
        seed_fact = unit.result
        if not has_aux and seed_fact.kind in ("tuple", "list", "dict", "string"):
            raise trees.not_scalar(unit.callee.name, f"a {seed_fact.kind}")

        def seed(result: Any) -> Any:
            if has_aux:
                return list_([constant(1.0), constant(0.0)])
            return constant(1.0)

        for n in unit.wanted:
            fact = unit.given.get(n, UNKNOWN)
            if fact.kind in ("string",):
                raise ArgumentError(
                    f"the argument `{n}` of {unit.callee.name} is a string: it has no derivative."
                )
        forward, reverse, result, outputs = self.reverse(seed, runs_once=True)
        value = result
        if with_value and not isinstance(result, gast.Tuple):
            kept = unit.names.fresh("value")
            forward.append(assign(kept, clone(result)))
            self.facts[kept] = unit.result
            value = result = name(kept)
        main: Any = result
        fact = seed_fact
        if has_aux:
            if isinstance(result, gast.Tuple) and len(result.elts) == 2:
                main = result.elts[0]
                fact = self.result_part(0)
            else:
                main = subscript(clone(result), constant(0))
                fact = UNKNOWN
        checks: list[Any] = []
        if not (fact.kind == "scalar" and fact.real):
            shown = constant(unit.callee.name)
            checks = [expression(call(self.externals.node(trees.check_scalar), clone(main), shown))]
        finals: list[Any] = []
        used: set[str] = set()
        for w in wanted:
            base, _, position = w.partition(":")
            out = outputs[unit.wanted.index(base)]
            if self.unknowns and out is not None:
                out = call(self.externals.node(trees.known), out)
            finals.append(self.final_item(base, int(position), out) if position else self.final(w, out, used))
        gradient: Any = finals[0] if isinstance(argnums, int) else tuple_(finals)
        if has_aux:
            aux = result.elts[1] if isinstance(result, gast.Tuple) else subscript(clone(result), constant(1))
            if with_value:
                returned: Any = tuple_([tuple_([clone(main), aux]), gradient])
            else:
                returned = tuple_([gradient, aux])
        else:
            returned = tuple_([clone(value), gradient]) if with_value else gradient
        suffix = "value_and_grad" if with_value else "grad"
        return self.finish(f"{stem(unit.callee.name)}_{suffix}", [*forward, *checks], reverse, returned, True)

    def result_part(self, i: int) -> Fact:
        items = self.unit.result.items
        return items[i] if self.unit.result.kind == "tuple" and items is not None else UNKNOWN

    def final(self, w: str, out: Any, used: set[str]) -> Any:
        """The gradient as the caller receives it: full shape, the argument's dtype, memory of its own."""
        fact = self.unit.given.get(w, UNKNOWN)
        every = all(
            self.unit.interpreter.all.get(n, UNKNOWN).real
            for n in self.unit.active
            if self.unit.interpreter.all.get(n, UNKNOWN).kind not in ("tuple", "list", "dict", "none")
        )
        if out is None:
            if fact.kind == "scalar" and fact.real:
                return constant(0.0)
            if fact.kind == "array" and fact.real and w in self.floating():
                return call(self.pass_.np("zeros_like"), name(w))
            return call(self.externals.node(trees.like), constant(0.0), self.given(w))
        shape = self.pass_.fact(out)
        if fact.kind == "scalar" and fact.real and every and shape.kind == "scalar":
            return out if self.floats(out) else call("float", out)
        if fact.kind == "array" and fact.rank != 0 and fact.real and every and w in self.floating():
            if shape.kind == "array" and shape.rank == fact.rank and fresh(out):
                return out
            held = isinstance(out, gast.Name) and out.id in self.pass_.bars.values() and out.id not in used
            if held and shape.kind == "array" and self.owned_bar(out.id):
                used.add(out.id)
                return out
            if shape.kind == "scalar":
                return call(self.pass_.np("full_like"), name(w), out)
        return call(self.externals.node(trees.like), out, self.given(w))

    def floats(self, e: Any) -> bool:
        """Is a scalar expression sure to give a float, and not an int?"""
        if isinstance(e, gast.Constant):
            return isinstance(e.value, float)
        if isinstance(e, gast.Name):
            return e.id in self.compiler_floats or self.float_variable(e.id)
        if isinstance(e, gast.UnaryOp):
            return self.floats(e.operand)
        if isinstance(e, gast.BinOp):
            return isinstance(e.op, gast.Div) or self.floats(e.left) or self.floats(e.right)
        if isinstance(e, gast.Call):
            word = e.func.attr if isinstance(e.func, gast.Attribute) else getattr(e.func, "id", "")
            return word in ("sum", "cos", "sin", "exp", "log", "sqrt", "float") and len(e.args) > 0
        return False

    def float_variable(self, n: str) -> bool:
        """Is everything that the sweep assigns to a variable sure to be a float?"""
        if n not in self._float_variables:
            self._float_variables[n] = (
                True  # while it is looked at, so that `x = x + ...` depends on the rest only
            )
            values = []
            for s in [*statements(self.pass_.scope.out), *statements(self.unit.tree.body)]:
                if isinstance(s, gast.Assign) and n in dataflow.head_binds(s):
                    values.append(s.value if isinstance(s.targets[0], gast.Name) else name("?"))
            self._float_variables[n] = bool(values) and all(self.floats(v) for v in values)
        return self._float_variables[n]

    compiler_floats: set[str] = set()

    def final_item(self, base: str, position: int, out: Any) -> Any:
        whole = constant(0.0) if out is None else subscript(out, constant(position))
        return call(self.externals.node(trees.like), whole, subscript(name(base), constant(position)))

    def floating(self) -> set[str]:
        return self.compiler_floating

    compiler_floating: set[str] = set()

    def owned_bar(self, bar: str) -> bool:
        """Is everything that the sweep assigns to a variable fresh memory?"""
        values = []
        for s in statements(self.pass_.scope.out):
            if isinstance(s, gast.Assign) and isinstance(s.targets[0], gast.Name) and s.targets[0].id == bar:
                values.append(s.value)
            elif (
                isinstance(s, gast.Assign)
                and bar in dataflow.stored(s.targets[0])
                and isinstance(s.targets[0], gast.Tuple)
            ):
                return False
        made = {"zeros_like", "array", "full_like", "copy"}
        return all(
            fresh(v)
            or (isinstance(v, gast.Call) and isinstance(v.func, gast.Attribute) and v.func.attr in made)
            for v in values
        )

    def pair(self, root: bool) -> None:
        """Emits both halves into `self.self_pair`."""
        unit, pair = self.unit, self.self_pair
        assert pair is not None
        bar = unit.names.fresh("result_bar")
        kind = unit.result

        def seed(result: Any) -> Any:
            fact = kind
            if isinstance(result, gast.Name):
                self.pass_.know(bar, fact if fact.kind in ("scalar", "array", "numeric") else UNKNOWN)
            else:
                self.pass_.know(bar, UNKNOWN)
            return name(bar)

        incoming = {w: unit.names.fresh(w + "_bar") for w in unit.mutated}
        forward, reverse, result, outputs = self.reverse(seed, incoming)
        if root:
            finals: list[Any] = [self.final_pair(w, o) for w, o in zip(unit.wanted, outputs, strict=True)]
        else:
            finals = [
                self.pass_.zero(w) if o is None else self.pass_.full(o, w)
                for w, o in zip(unit.wanted, outputs, strict=True)
            ]
        returned = tuple_(finals) if root or len(finals) != 1 else finals[0]
        base = pair.name
        saved = unit.names.fresh("saved")
        body = [*forward]
        marker = assign(saved, constant(None))
        whole = [*body, marker, *reverse, gast.Return(returned)]
        keep = {n.id for n in nodes.walk(result) if isinstance(n, gast.Name)}
        marker.value = tuple_([result])
        given_bars = list(incoming.values())
        copies = set(
            self.pass_.snapshots.values()
        )  # made now, for the reverse half: they stay where they are
        self.simplify(
            whole,
            [p.id for p in dataflow.parameters(unit.tree)] + [bar, *given_bars],
            keep | copies | {bar, saved, *given_bars},
        )
        position = next((i for i, s in enumerate(whole) if s is marker), None)
        if position is None:
            position = len(whole) - 1
        body, after = self.with_outer(whole[:position]), self.with_outer(whole[position + 1 :])
        needed = sorted(
            n for n in dataflow.liveness(after, set()) if n not in (bar, *given_bars) and self.local(n)
        )
        undefined = [n for n in needed if n not in self.certain(body)]
        body = [assign(n, constant(None)) for n in undefined if n not in self.parameter_names()] + body
        self.comments(after)
        forward_returns = gast.Return(
            tuple_([marker.value.elts[0], tuple_([self.lasting(n) for n in needed])])
        )
        head = [assign_tuple(needed, name(saved))] if needed else []
        tree = self.definition(f"{base}_forward", unit.tree.args, [*body, forward_returns])
        pair.forward.cell_contents = self.load(tree, True)
        taken = [gast.Name(n, gast.Param(), None, None) for n in (bar, saved, *given_bars)]
        arguments = gast.arguments(taken, [], None, [], [], None, [])
        tree = self.definition(f"{base}_reverse", arguments, [*head, *after])
        pair.reverse.cell_contents = self.load(tree, False)
        pair.uses = self.uses

    def with_outer(self, body: list[Any]) -> list[Any]:
        """Statements with the definitions of the functions around this one that they call as they are."""
        outer, found = self.unit.outer, dict[str, Any]()
        todo = [n for n in outer if n in dataflow.reads(body) and n in self.unit.user_names]
        while todo:
            n = todo.pop()
            if n not in found:
                found[n] = clone(outer[n])
                todo += [m for m in dataflow.free_names(found[n]) if m in outer]
        return [*(found[n] for n in outer if n in found), *body]

    def lasting(self, n: str) -> Any:
        """What a callee keeps of a value: of a list or dict that its caller goes on to change, the structure
        it has now."""
        aliases, kind = self.unit.aliases, self.unit.interpreter.all.get(n, UNKNOWN).kind
        if kind in ("list", "dict") and aliases.find(n) in aliases.exposed:
            return call(self.externals.node(trees.structure), name(n))
        return name(n)

    def final_pair(self, w: str, out: Any) -> Any:
        return call(self.externals.node(trees.like), constant(0.0) if out is None else out, self.given(w))

    def parameter_names(self) -> set[str]:
        return {p.id for p in dataflow.parameters(self.unit.tree)}

    def certain(self, body: list[Any]) -> set[str]:
        return dataflow.definitely_bound(body) | self.parameter_names()

    def local(self, n: str) -> bool:
        if n in self.externals.objects or n in self.halves:
            return False
        return n in self.bound_anywhere

    def finish(
        self, called: str, forward: list[Any], reverse: list[Any], returned: Any, root: bool
    ) -> tuple[types.FunctionType, str]:
        unit = self.unit
        whole = [*forward, *reverse, gast.Return(returned)]
        self.simplify(whole, [p.id for p in dataflow.parameters(unit.tree)], set())
        self.comments(whole)
        tree = self.definition(called, unit.tree.args, whole)
        made = self.load(tree, True)
        return made, self.text

    def simplify(self, whole: list[Any], parameters: list[str], pinned: set[str]) -> None:
        unit = self.unit
        temporaries = set(unit.names.used) - unit.user_names

        def family(n: str) -> str:
            base = n
            while base not in unit.user_names and base.rpartition("_")[2].isdigit():
                base = base.rpartition("_")[0]
            return base

        versions = {n for n in temporaries if family(n) in unit.user_names and family(n) != n}
        Simplify(
            whole,
            parameters,
            self.facts,
            temporaries - versions,
            family,
            self.lookup,
            pinned | self.shadow_bars,
            temporaries - set(self.externals.objects) - set(self.halves),
            unit.user_names | set(self.externals.objects) | set(self.halves),
            self.is_floating,
        ).run()
        self.bound_anywhere = dataflow.bound_names(whole) | set(parameters)

    def lookup(self, func: Any) -> Any:
        if isinstance(func, gast.Name) and func.id in self.externals.objects:
            return self.externals.objects[func.id]
        if isinstance(func, gast.Name) and func.id in self.halves:
            return None
        if (
            isinstance(func, gast.Attribute)
            and isinstance(func.value, gast.Name)
            and func.value.id in self.externals.objects
        ):
            return getattr(self.externals.objects[func.value.id], func.attr, None)
        return self.unit.lookup(func)

    # Text ---------------------------------------------------------------------------------------------------

    def comments(self, body: list[Any]) -> None:
        """Above each block of adjoint statements a comment that quotes the primal line."""
        last: Any = None
        for s in statements(body):
            origin = getattr(s, "origin", None)
            if not getattr(s, "adjoint", False) or _trivial(s):
                continue
            compound = (gast.For, gast.While, gast.If, gast.With, gast.Try)
            if isinstance(origin, compound) and not (
                isinstance(origin, gast.For) and isinstance(s, gast.Expr)
            ):
                continue
            if origin is None or not hasattr(origin, "lineno"):
                continue
            quoted = self.quote(origin)
            if quoted and quoted != last:
                s.comment = f"reverse of: {quoted}"
                last = quoted

    def quote(self, origin: Any) -> str:
        return quote(self.unit.source, origin)

    def definition(self, called: str, args: Any, body: list[Any]) -> Any:
        args = clone(args)
        return gast.FunctionDef(called, args, body or [gast.Pass()], [], None, None, [])

    def load(self, tree: Any, primal_signature: bool) -> types.FunctionType:
        unit = self.unit
        self.replace_shadowed_builtins(tree)
        text = unparse(tree)
        self.text = text
        cells = {n: types.CellType(v) for n, v in self.externals.objects.items()}
        cells.update(self.halves)
        f = unit.callee.function
        defaults: tuple[Any, Any] = (None, None)
        if primal_signature and unit.callee.definition is None:
            values = dispatch.defaults_of(f)
            a = unit.tree.args
            positional = [p.id for p in a.posonlyargs + a.args if p.id not in unit.callee.captured]
            defaults = (
                tuple(values[n] for n in positional if n in values) or None,
                {p.id: values[p.id] for p in a.kwonlyargs if p.id in values} or None,
            )
        elif primal_signature:
            a = unit.tree.args
            defaults = (
                tuple(_literal(d) for d in a.defaults) or None,
                {p.id: _literal(d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
                or None,
            )
        made = load(text, tree.name, f, cells, defaults, (unit.source.filename, origins(text, tree)))
        made.__qualname__ = tree.name
        if self.self_pair is not None:
            self.self_pair.sources.append(text)
        return made

    def replace_shadowed_builtins(self, tree: Any) -> None:
        import builtins

        for n in nodes.walk(tree):
            if isinstance(n, gast.Name) and getattr(n, "ours", False):
                real = getattr(builtins, n.id, None)
                if (
                    real is not None
                    and self.unit.scope.name(n.id) is not real
                    or n.id in self.unit.scope.local
                ):
                    if real is not None:
                        n.id = self.externals.name(real, n.id)


def _trivial(s: Any) -> bool:
    """A statement of the reverse sweep that only sets up or hands on a cotangent."""
    if not isinstance(s, gast.Assign):
        return False
    if isinstance(s.value, gast.Call):
        word = (
            s.value.func.attr if isinstance(s.value.func, gast.Attribute) else getattr(s.value.func, "id", "")
        )
        return word == "zeros_like"
    return isinstance(s.value, (gast.Name, gast.Constant))


def _literal(d: Any) -> Any:
    if isinstance(d, gast.Constant):
        return d.value
    fact = getattr(d, "fact", UNKNOWN)
    return fact.const if fact.known else None


def quote(source: Source, origin: Any) -> str:
    """The first line of the user's statement, for a comment."""
    text = source.line(origin.lineno).strip() if hasattr(source, "line") else ""
    return text


def origins(text: str, tree: Any) -> dict[int, int]:
    """For each line of the emitted text, the line of the user's file that it comes from."""
    import ast

    found: dict[int, int] = {}

    def walk(made: list[Any], printed: list[Any]) -> None:
        for a, b in zip(made, printed, strict=False):
            origin = getattr(a, "origin", None)
            if origin is not None and hasattr(origin, "lineno"):
                for line in range(b.lineno, (b.end_lineno or b.lineno) + 1):
                    found.setdefault(line, origin.lineno)
            for x, y in zip(dataflow.blocks(a), _blocks(b), strict=False):
                walk(x, y)

    walk(tree.body, ast.parse(text).body[0].body)  # type: ignore[attr-defined]
    return found


def _blocks(s: Any) -> Any:
    for field_ in dataflow.BLOCKS:
        inner = getattr(s, field_, None)
        if inner:
            yield inner
    for h in getattr(s, "handlers", []):
        yield h.body


def differentiable(known: Any) -> bool:
    """May the runtime dispatcher know what to do with a callable that is not a plain function?"""
    if table.find(known) is not None:
        return True
    if isinstance(known, (types.FunctionType, types.MethodType)):
        return True
    if isinstance(known, type):
        return known.__module__ != "builtins" or known in (list, tuple, dict)
    if isinstance(known, (types.BuiltinFunctionType, types.BuiltinMethodType, np.ufunc)):
        owner = getattr(known, "__self__", None)
        return owner is not None and not isinstance(owner, types.ModuleType)
    module = type(known).__module__
    return module not in ("builtins", "numpy")


def signature_facts(function: Callable[..., Any], bound: dict[str, Any]) -> dict[str, Fact]:
    return {n: fact_of(v, n) for n, v in bound.items()}


def annotated_facts(function: Callable[..., Any]) -> dict[str, Fact]:
    """What annotations tell: `float` and `int` are scalars, `np.ndarray` an array of unknown rank."""
    facts = {}
    hints = getattr(function, "__annotations__", {})
    for p in inspect.signature(function).parameters.values():
        hint = hints.get(p.name)
        if hint in (float, int, "float", "int"):
            facts[p.name] = facts_module.REAL
        elif hint is np.ndarray or hint in ("np.ndarray", "numpy.ndarray"):
            facts[p.name] = Fact("array")
        else:
            facts[p.name] = UNKNOWN
    return facts
