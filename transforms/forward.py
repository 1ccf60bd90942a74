"""Forward: beside each statement of a normalized function the statement that moves its tangent along.

Before: normalized statements with facts, the set of active names.
After:  the same statements; each active name `x` has a tangent `x_dot`, a real value of x's own kind and
        shape. What the function does to a container or writes in place, it does to the tangent too, so that
        names that share memory have tangents that share memory.
Why here: needs to know of each name whether it is active, and of each operation its rule.

A tangent is computed after its value, since rules may use the value; where a statement overwrites one of its
operands, from the old values, before it. Griewank & Walther, "Evaluating Derivatives", section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import late, support, tangents, trees
from srcgrad.runtime.errors import NoRule, UnsupportedSyntax
from srcgrad.runtime.rules import table
from srcgrad.transforms import facts as facts_module
from srcgrad.transforms import resolve
from srcgrad.transforms.facts import UNKNOWN, Fact, Interpreter
from srcgrad.transforms.read import Source, fail
from srcgrad.transforms.reverse import fresh, mentioned, qualified, written
from srcgrad.transforms.simplify import binding_counts
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import (
    assign,
    at,
    attribute,
    augment,
    call,
    clone,
    constant,
    expression,
    is_number,
    is_zero,
    multiply,
    name,
    negative,
    root,
    subscript,
    total,
    tuple_,
)
from srcgrad.transforms.tree.externals import Externals
from srcgrad.transforms.tree.guards import holds_floats, plain_attribute, plain_elements
from srcgrad.transforms.tree.inline import Inliner
from srcgrad.transforms.tree.names import Names
from srcgrad.transforms.tree.scope import MISSING

Block = list[Any]
NUMBERS = ("scalar", "array", "numeric")
MIRRORED = ("append", "insert", "reverse", "clear")
"""Methods of lists that do to a list of tangents what they do to the list."""


class Forward:
    """Forward mode for one function. `calls(pass, statement, operation, name or None)` gives the statements
    that call a Python callee together with its tangent."""

    def __init__(
        self,
        source: Source,
        tree: gast.FunctionDef,
        names: Names,
        interpreter: Interpreter,
        active: set[str],
        externals: Externals,
        aliases: Any,
        family: Callable[[str], str],
        user_names: set[str],
        varied: set[str],
        calls: Callable[..., Block],
        guards: Callable[[Any], Block],
    ) -> None:
        self.source, self.tree, self.names, self.active = source, tree, names, active
        self.interpreter, self.externals, self.family = interpreter, externals, family
        self.calls, self.guards = calls, guards
        self.facts = dict(interpreter.all)
        interpreter.env = dict(self.facts)
        self.inliner = Inliner(externals, self.fact)
        self.dots: dict[str, str] = {}
        self.aliases = aliases
        self.written = {aliases.find(n) for n, _ in aliases.writes}
        self.user_names, self.varied = user_names, varied
        self.closures: set[str] = set()
        bound = dataflow.bound_names(tree.body) | {p.id for p in dataflow.parameters(tree)}
        self.active = active & bound
        for n in sorted(active - bound):
            if self.fact(name(n)).kind not in ("scalar", "string", "none", "function", "module"):
                what = f"a call that may write into `{n}`, which lives outside the function"
                raise self.refuse(tree, what, "Return the value instead.")
        self.short: dict[str, tuple[Any, Any]] = {}
        """Temporaries whose tangent is another name, perhaps with a minus sign, within one statement of the
        user's."""
        self.negated: set[str] = set()
        """Temporaries whose tangent is minus the variable `x_dot`."""
        self.views: set[str] = set()
        """Names whose tangent may be a view that can't be written."""
        self.once = {n for n, count in binding_counts(tree.body).items() if count == 1}
        self.origin: Any = None

    # Entry

    def function(self, wanted: list[str]) -> tuple[Block, Any, Any]:
        """The statements, the result's expression and that of its tangent. The tangents of the parameters
        `wanted` are given under the names `self.dot(w)`; any other active parameter starts with zero."""
        body = self.tree.body
        assert isinstance(body[-1], gast.Return)
        out: Block = []
        for w in wanted:
            self.dot(w)
        for p in dataflow.parameters(self.tree):
            if p.id in self.active and p.id not in wanted:
                out.append(assign(self.dot(p.id), self.zero(name(p.id))))
        out += self.block(body[:-1])
        result = body[-1].value
        if isinstance(result, gast.Tuple):
            return out, result, tuple_([self.element(e) for e in result.elts])
        return out, result, self.tangent(result)

    # Facts and names

    def fact(self, e: Any) -> Fact:
        if isinstance(e, gast.Name):
            found = self.interpreter.env.get(e.id)
            if found is not None:
                return found
            if e.id in self.externals.objects:
                return facts_module.of_global(self.externals.objects[e.id])
        return self.interpreter.expr(clone(e))

    def know(self, n: str, fact: Fact) -> None:
        self.interpreter.env[n] = fact
        self.facts[n] = fact

    def kind(self, n: str) -> str:
        return self.facts.get(n, UNKNOWN).kind

    def dot(self, n: str) -> str:
        """The name of the tangent of `n`."""
        if n not in self.dots:
            self.dots[n] = self.names.fresh(self.family(n).rstrip("_") + "_dot")
            fact = self.facts.get(n, UNKNOWN)
            plain = fact.kind in ("list", "tuple", "dict", *NUMBERS)
            self.know(self.dots[n], replace(_plain(fact)) if plain else UNKNOWN)
        return self.dots[n]

    def external(self, value: Any, wanted: str | None = None) -> gast.Name:
        return self.externals.node(value, wanted)

    def np(self, function: str) -> Any:
        return attribute(self.external(np), function)

    def temporary(self, base: str, value: Any, like: Any, out: Block) -> gast.Name:
        made = self.names.fresh(base)
        self.know(made, self.fact(value))
        out.append(assign(made, value, like))
        return name(made)

    # Tangents of atoms

    def is_active(self, e: Any) -> bool:
        return isinstance(e, gast.Name) and e.id in self.active

    def tangent(self, e: Any) -> Any:
        """The tangent of an atom."""
        return self.read(e.id) if self.is_active(e) else self.zero(e)

    def read(self, n: str) -> Any:
        """The tangent of an active name."""
        value, origin = self.short.get(n, (None, None))
        if value is not None and origin is self.origin:
            return clone(value)
        return negative(name(self.dot(n))) if n in self.negated else name(self.dot(n))

    def element(self, e: Any) -> Any:
        """The tangent of an element of a display or argument list, which may be starred."""
        if isinstance(e, gast.Starred):
            return gast.Starred(self.tangent(e.value), gast.Load())
        return self.tangent(e)

    def zero(self, e: Any) -> Any:
        """A zero tangent for the value of an atom."""
        fact = self.fact(e)
        if isinstance(e, gast.Constant) or fact.kind in (
            "scalar",
            "string",
            "none",
            "function",
            "module",
            "closure",
        ):
            return constant(0.0)
        if fact.kind == "array" and isinstance(e, gast.Name):
            return (
                call(self.np("zeros_like"), clone(e))
                if fact.real > 1
                else call(self.helper("zeros_like"), clone(e))
            )
        if fact.kind in ("list", "tuple") and isinstance(e, (gast.List, gast.Tuple)):
            return type(e)([self.zero(x) for x in e.elts], gast.Load())
        return call(self.helper("zeros_like"), clone(e))

    def helper(self, function: str) -> gast.Name:
        return self.external(getattr(tangents, function))

    # Statements

    def block(self, body: Block) -> Block:
        out: Block = []
        for s in body:
            self.origin = getattr(s, "origin", None) or self.origin
            out += self.guards(s)
            out += self.sharing(s)
            getattr(self, "stmt_" + type(s).__name__, self.keep)(s, out)
        return out

    def keep(self, s: Any, out: Block) -> None:
        out.append(s)

    def sharing(self, s: Any) -> Block:
        """Checks, before a write that may be seen through another name, that the tangents share memory as the
        values do."""
        made: Block = []
        place = f"{self.source.filename}:{getattr(s, 'lineno', 0)}"
        for _, n, other in dict.fromkeys(g for g in self.aliases.shared if g[0] == id(s)):
            if {n, other} <= self.active and not {self.kind(n), self.kind(other)} <= {"list", "dict"}:
                values = [name(n), name(other), self.read(n), self.read(other)]
                test = call(
                    self.helper("check_sharing"), *values, constant(n), constant(other), constant(place)
                )
                made.append(expression(test, s))
        return made

    def put(self, n: str, value: Any, like: Any, out: Block) -> None:
        if n in self.once and self.family(n) not in self.user_names and self.simple(n):
            minus = isinstance(value, gast.UnaryOp) and isinstance(value.op, gast.USub)
            if isinstance(value.operand if minus else value, (gast.Name, gast.Constant)):
                self.short[n] = (value, self.origin)
            elif minus:
                self.negated.add(n)
                value = value.operand
        out.append(assign(self.dot(n), value, like))

    def simple(self, n: str) -> bool:
        return self.kind(n) == "scalar" or (
            self.kind(n) == "array" and self.aliases.find(n) not in self.written
        )

    def stmt_If(self, s: Any, out: Block) -> None:
        out.append(at(gast.If(s.test, self.block(s.body), self.block(s.orelse)), s))

    def stmt_While(self, s: Any, out: Block) -> None:
        out.append(at(gast.While(s.test, self.block(s.body), self.block(s.orelse)), s))

    def stmt_For(self, s: Any, out: Block) -> None:
        head: Block = []
        for n in sorted(dataflow.stored(s.target) & self.active):
            self.put(n, self.zero(name(n)), s, head)
        out.append(at(gast.For(s.target, s.iter, head + self.block(s.body), self.block(s.orelse), None), s))

    def stmt_With(self, s: Any, out: Block) -> None:
        head: Block = []
        for n in sorted(dataflow.head_binds(s) & self.active):
            self.put(n, self.zero(name(n)), s, head)
        out.append(at(gast.With(s.items, head + self.block(s.body), None), s))

    def stmt_Try(self, s: Any, out: Block) -> None:
        handlers = [at(gast.ExceptHandler(h.type, h.name, self.block(h.body)), h) for h in s.handlers]
        made = gast.Try(self.block(s.body), handlers, self.block(s.orelse), self.block(s.finalbody))
        out.append(at(made, s))

    def stmt_FunctionDef(self, s: Any, out: Block) -> None:
        """The tangent of a function that is used as a value is a dict of those of the variables it has
        captured."""
        out.append(s)
        self.closures.add(s.name)
        if s.name not in self.active:
            return
        captured = getattr(s, "captured", {})
        held = getattr(s, "held", {})
        pairs = [(constant(p), self.read(n)) for p, n in held.items() if n in self.active]
        for free in sorted(dataflow.free_names(s)):
            now = captured.get(free, free)
            if now == s.name or now not in self.active or free in held.values():
                continue  # the dispatcher knows a function that refers to itself
            if self.kind(now) == "closure" and now not in self.closures:
                raise self.refuse(
                    s, f"a function that refers to `{now}`, which is defined later", f"Define `{now}` first."
                )
            cell = getattr(self.tree, "late", {}).get(now)
            pairs.append((constant(free), name(cell) if cell else self.read(now)))
        self.put(s.name, gast.Dict([k for k, _ in pairs], [v for _, v in pairs]), s, out)

    def refuse(self, node: Any, what: str, why: str) -> Exception:
        place = node if hasattr(node, "lineno") else getattr(node, "origin", node)
        return fail(UnsupportedSyntax, self.source, place, f"cannot differentiate {what}", why)

    def stmt_Assign(self, s: Any, out: Block) -> None:
        (to,) = s.targets
        if isinstance(to, gast.Tuple):
            self.unpack(s, to, out)
        elif isinstance(to, gast.Name) and to.id in getattr(self.tree, "late", {}):
            self.store_late(s, to.id, out)
        elif isinstance(to, gast.Name):
            self.define(s, to.id, out)
        elif isinstance(to, gast.Subscript):
            self.store_item(s, to, out)
        else:
            self.store_attribute(s, to, out)

    def store_late(self, s: Any, v: str, out: Block) -> None:
        """A variable that kept functions have captured is bound: its tangent moves with it."""
        out.append(s)
        if v in self.active:
            dot = self.read(s.value.id) if s.value.id in self.active else constant(None)
            out.append(expression(call(self.external(late.move), name(self.tree.late[v]), dot), s))

    def define(self, s: Any, v: str, out: Block) -> None:
        op = resolve.operation(s.value)
        if self.kind(v) == "closure":
            self.closures.add(v)
        if op.kind in ("call", "dispatch"):
            self.call(s, op, v, out)
            return
        if op.kind == "pop":
            self.pop(s, v, out)
            return
        if v not in self.active:
            out.append(s)
            return
        if getattr(s, "predefined", False):
            out.append(s)
            self.put(v, constant(None), s, out)
            return
        if op.kind == "rule":
            self.check_constants(op, s, out)
        if op.kind == "inert" or not any(n in self.active for _, n in op.operands):
            if op.kind in ("unknown", "unbound") and op.operands:
                raise self.unknown(op, s)
            out.append(s)
            self.put(v, self.of_inert(s.value, v), s, out)
            return
        flow = getattr(self, "flow_" + op.kind, None)
        if flow is None:
            raise self.unknown(op, s)
        if v not in {n for _, n in op.operands}:
            after: Block = []
            value = self.owned(flow(op, v, s, after), op, v)
            out += [s, *after]
            self.put(v, value, s, out)
            return
        # The statement overwrites an operand, whose old value the tangent needs.
        new = self.names.fresh(v + "_new")
        self.know(new, self.facts.get(v, UNKNOWN))
        out.append(assign(new, s.value, s))
        value = self.owned(flow(op, new, s, out), op, v)
        self.put(v, value, s, out)
        out.append(assign(v, name(new), s))

    def check_constants(self, op: Any, s: Any, out: Block) -> None:
        """Refuses the tangent of what a rule takes for a constant."""
        constants = table.constants_of(op.rule)
        for w, n in op.operands:
            if w in constants and n in self.active and not is_zero(self.read(n)):
                shown = [constant(getattr(op.function, "__name__", "function")), constant(w)]
                check = call(self.external(trees.check_constant), name(n), *shown)
                out.append(at(expression(check), s))
        op.operands = [(w, n) for w, n in op.operands if w not in constants]

    def of_inert(self, value: Any, v: str) -> Any:
        """The zero tangent of a name that is bound to something without derivative."""
        kind = self.kind(v)
        if isinstance(value, (gast.List, gast.Tuple)) and kind in ("list", "tuple"):
            simple = [e for e in value.elts if isinstance(e, (gast.Name, gast.Constant))]
            if len(simple) == len(value.elts):
                return type(value)([self.zero(e) for e in value.elts], gast.Load())
        if isinstance(value, gast.Dict) and not value.keys:
            return gast.Dict([], [])
        if kind == "scalar" or isinstance(value, gast.Constant):
            return constant(0.0)
        if (
            kind in (*NUMBERS, "unknown")
            and self.aliases.find(v) in self.written
            and not self.floating(value)
        ):
            return call(self.helper("buffer"), name(v))
        return self.zero(name(v))

    def floating(self, value: Any) -> bool:
        """Is an array, made without derivative, surely one of floating point numbers?"""
        if not isinstance(value, gast.Call) or not self.fact(value.func).known:
            return False
        if self.fact(value.func).const not in (np.zeros, np.ones, np.empty):
            return False
        dtypes = [*value.args[1:], *(k.value for k in value.keywords if k.arg == "dtype")]
        return all(
            self.fact(d).known and self.fact(d).const in (float, np.float64, np.float32) for d in dtypes
        )

    def owned(self, value: Any, op: Any, v: str) -> Any:
        """A tangent that shares memory only where the primal does."""
        kind = self.kind(v)
        if (
            kind in ("scalar", "string", "none")
            or op.kind != "rule"
            or op.rule.alias != "fresh"
            or fresh(value)
        ):
            return value
        if isinstance(value, gast.Call) and self.fact(value.func).known:
            rule = table.find(self.fact(value.func).const)
            if (
                rule is not None
                and rule.alias == "fresh"
                and self.fact(value.func).const is not support.unbroadcast
            ):
                return value
        classes = {self.aliases.find(n) for n in (v, *(n for _, n in op.operands))}
        if not classes & self.written:
            return value
        return call(self.np("array"), value) if kind == "array" else call(self.external(trees.copy), value)

    def unknown(self, op: Any, s: Any) -> Exception:
        node = op.node if hasattr(op.node, "lineno") else getattr(s, "origin", s)
        named = written(op.node, op.function) if op.function is not None else op.kind
        if op.kind == "unbound":
            what = f"the derivative of `{named}` does not support this form of call"
            why = "Leave out the option that has no derivative, or write the operation with other functions."
        else:
            what = f"`{named}` has no derivative rule"
            why = (
                "Write it with functions that have one, give it a rule, or wrap it in srcgrad.stop_gradient "
                "if it is constant."
            )
        return fail(NoRule, self.source, node, what, why)

    # Operations

    def flow_copy(self, op: Any, v: str, s: Any, out: Block) -> Any:
        (_, x) = op.operands[0]
        if isinstance(s.value, gast.Call) and op.function is None:
            return call(attribute(self.dot(x), s.value.func.attr))
        return self.read(x)

    def flow_copy_of(self, op: Any, v: str, s: Any, out: Block) -> Any:
        return call(attribute(self.dot(op.operands[0][1]), "copy"))

    flow_copy_of_list = flow_copy_of

    def flow_rule(self, op: Any, v: str, s: Any, out: Block) -> Any:
        if op.rule.elementwise:
            return self.elementwise(op, v, s, out)
        if op.rule.linear:
            return self.linear(op, s)
        if op.rule.forward is not None:
            return self.by_rule(op, v, s, out)
        raise fail(
            NoRule,
            self.source,
            op.node if hasattr(op.node, "lineno") else s,
            f"`{qualified(op.function)}` has no forward rule",
            "Use reverse mode (grad, vjp, jacrev), or give it one with `forward`.",
        )

    def elementwise(self, op: Any, v: str, s: Any, out: Block) -> Any:
        rule = op.rule
        parameters = _parameters_of(rule.partials)
        binding = {**op.binding, parameters[0]: name(v)}
        entries = self.inliner.entries(rule.partials, binding)
        if entries is None:
            value = gast.Call(self.external(rule.partials), [name(v), *self.arguments(op)], self.keywords(op))
            if len(rule.wrt) > 1:
                whole = self.temporary("partials", value, s, out)
                entries = [subscript(clone(whole), constant(i)) for i in range(len(rule.wrt))]
            else:
                entries = [value]
        z = self.facts.get(v, UNKNOWN)
        terms = []
        for w, n in op.operands:
            partial = entries[rule.wrt.index(w)]
            if n not in self.active or _is_none(partial) or is_zero(partial):
                continue
            dot = self.read(n)
            if is_zero(dot):
                continue
            term = multiply(dot, partial)
            if rule.real and not self.facts.get(n, UNKNOWN).real:
                term = call(self.np("real"), term)
            terms.append(term)
        if not terms:
            return self.zero(name(v))
        return self.spread(total(terms), v, z, [op.binding[w] for w in rule.wrt])

    def spread(self, value: Any, v: str, z: Fact, operands: list[Any]) -> Any:
        """`value`, broadcast to the shape of the result where an operand that it does not mention was
        larger."""
        seen = mentioned(value)
        if v in seen or all(self.covered(o, seen) for o in operands):
            return value
        shape = self.fact(value)
        if facts_module.fits(shape, z):
            return value
        if z.kind == "array" and z.real > 1 and shape.kind == "scalar":
            return call(self.np("full_like"), name(v), value)
        self.views.add(v)
        if z.kind == "array" and shape.kind == "array" and z.real:
            return call(self.np("broadcast_to"), value, attribute(v, "shape"))
        return call(self.external(support.unbroadcast), value, name(v))

    def covered(self, operand: Any, seen: set[str]) -> bool:
        if isinstance(operand, gast.Name) and (operand.id in seen or self.dots.get(operand.id) in seen):
            return True
        return isinstance(operand, gast.Constant) or self.fact(operand).kind == "scalar"

    def by_rule(self, op: Any, v: str, s: Any, out: Block) -> Any:
        rule = op.rule
        parameters = _parameters_of(rule.forward)
        given = {parameters[i]: self.wrt_tangent(op, w) for i, w in enumerate(rule.wrt)}
        active = [i for i, w in enumerate(rule.wrt) if self.wrt_active(op, w)]
        own = parameters[len(rule.wrt) + 1 :]
        bound = {n: op.binding[p.name] for n, p in zip(own, rule.parameters, strict=False)}
        binding = {**op.binding, **bound, **given, parameters[len(rule.wrt)]: name(v)}
        entries = self.inliner.entries(rule.forward, binding)
        single = len(rule.wrt) == 1 or rule.joint
        if entries is not None and single:
            terms = entries if len(entries) == 1 else [tuple_(entries)]
        elif entries is not None and len(entries) == len(rule.wrt):
            terms = [entries[i] for i in active if not _is_none(entries[i])]
        else:
            first = [given[p] for p in parameters[: len(rule.wrt)]]
            value = gast.Call(
                self.external(rule.forward), [*first, name(v), *self.arguments(op)], self.keywords(op)
            )
            if single:
                terms = [value]
            else:
                whole = self.temporary("parts", value, s, out)
                terms = [subscript(clone(whole), constant(i)) for i in active]
        if not terms:
            return self.zero(name(v))
        terms = [self.without_defaults(t, op) for t in terms]
        if self.kind(v) in NUMBERS or len(terms) == 1:
            return total(terms)
        result = terms[0]
        for t in terms[1:]:
            result = call(self.external(trees.add), result, t)
        return result

    def without_defaults(self, e: Any, op: Any) -> Any:
        """Options that a rule hands on to the function itself are left out where they are the default."""
        defaults = {p.name: p for p in op.rule.parameters}
        for n in nodes.walk(e):
            if (
                isinstance(n, gast.Call)
                and self.fact(n.func).known
                and self.fact(n.func).const in op.rule.functions
            ):
                n.keywords = [
                    k for k in n.keywords if not (k.arg in defaults and _is_default(k.value, defaults[k.arg]))
                ]
        return e

    def wrt_active(self, op: Any, w: str) -> bool:
        bound = op.binding[w]
        return any(self.is_active(e) for e in (bound.elts if isinstance(bound, gast.Tuple) else [bound]))

    def wrt_tangent(self, op: Any, w: str) -> Any:
        """The tangent of a parameter of a rule: of each element where it is a display of arguments."""
        bound = op.binding[w]
        if isinstance(bound, gast.Tuple):
            return tuple_([self.tangent(e) for e in bound.elts])
        return self.tangent(bound)

    def arguments(self, op: Any) -> list[Any]:
        """The positional arguments for calling a rule."""
        made: list[Any] = []
        for p in op.rule.parameters:
            bound = op.binding[p.name]
            if p.kind is p.VAR_POSITIONAL:
                return made + [clone(e) for e in bound.elts]
            if p.kind is p.KEYWORD_ONLY or _is_default(bound, p):
                return made
            made.append(clone(bound))
        return made

    def keywords(self, op: Any) -> list[Any]:
        given = len(self.arguments(op))
        variadic = any(p.kind is p.VAR_POSITIONAL for p in op.rule.parameters)
        rest = [
            p
            for p in op.rule.parameters[0 if variadic else given :]
            if p.kind is p.KEYWORD_ONLY or not variadic
        ]
        return [
            gast.keyword(p.name, clone(op.binding[p.name]))
            for p in rest
            if not _is_default(op.binding[p.name], p)
        ]

    def linear(self, op: Any, s: Any) -> Any:
        """A function that is linear in its differentiated parameters, applied to their tangents."""
        e, wrt = s.value, op.rule.wrt
        names = [p.name for p in op.rule.parameters if p.kind is not p.KEYWORD_ONLY]

        def moved(parameter: str, given: Any) -> Any:
            if parameter == "order" and not (isinstance(given, gast.Constant) and given.value in ("C", "F")):
                return call(self.external(support.read_order), clone(array), clone(given))
            return self.element(given) if parameter in wrt else clone(given)

        if isinstance(e, gast.Attribute):
            return gast.Attribute(self.array(self.tangent(e.value), e.value), e.attr, gast.Load())
        if isinstance(e, gast.Subscript):
            return gast.Subscript(self.tangent(e.value), clone(e.slice), gast.Load())
        if isinstance(e, gast.UnaryOp):
            return gast.UnaryOp(e.op, self.tangent(e.operand))
        if isinstance(e, gast.BinOp):
            return gast.BinOp(moved(names[0], e.left), e.op, moved(names[1], e.right))
        func, args = clone(e.func), list(e.args)
        array = func.value if _is_method(e, op) else args[0] if args else None
        made = []
        if _is_method(e, op):
            func.value = self.array(moved(names[0], func.value), e.func.value)
            names = names[1:]
        for i, a in enumerate(args):
            made.append(moved(names[min(i, len(names) - 1)] if names else "", a))
        return gast.Call(func, made, [gast.keyword(k.arg, moved(k.arg, k.value)) for k in e.keywords])

    def array(self, tangent: Any, primal: Any) -> Any:
        """A tangent on which methods of arrays may be called."""
        return tangent if self.fact(primal).kind == "array" else call(self.np("asarray"), tangent)

    def flow_item(self, op: Any, v: str, s: Any, out: Block) -> Any:
        return gast.Subscript(self.tangent(s.value.value), clone(s.value.slice), gast.Load())

    def flow_attribute(self, op: Any, v: str, s: Any, out: Block) -> Any:
        (attr, x) = op.operands[0]
        return call(self.helper("get_attribute"), name(self.dot(x)), name(x), constant(attr))

    def flow_tuple(self, op: Any, v: str, s: Any, out: Block) -> Any:
        return type(s.value)([self.element(e) for e in s.value.elts], gast.Load())

    flow_list = flow_tuple

    def flow_dict(self, op: Any, v: str, s: Any, out: Block) -> Any:
        value = s.value
        if isinstance(value, gast.Dict):
            return gast.Dict(
                [None if k is None else clone(k) for k in value.keys], [self.tangent(x) for x in value.values]
            )
        return gast.Call(
            clone(value.func), [], [gast.keyword(k.arg, self.tangent(k.value)) for k in value.keywords]
        )

    def flow_struct(self, op: Any, v: str, s: Any, out: Block) -> Any:
        e = s.value
        return gast.Call(
            clone(e.func),
            [self.tangent(a) for a in e.args],
            [gast.keyword(k.arg, self.tangent(k.value)) for k in e.keywords],
        )

    def flow_sequence(self, op: Any, v: str, s: Any, out: Block) -> Any:
        n = op.operands[0][1]
        if self.kind(n) in ("list", "tuple", "array"):
            return call(clone(s.value.func), name(self.dot(n)))
        made = call(self.helper("listed"), name(self.dot(n)), name(n))
        return made if op.function is list else call(clone(s.value.func), made)

    def flow_concat(self, op: Any, v: str, s: Any, out: Block) -> Any:
        return gast.BinOp(self.tangent(s.value.left), s.value.op, self.tangent(s.value.right))

    def flow_repeat(self, op: Any, v: str, s: Any, out: Block) -> Any:
        sides = [s.value.left, s.value.right]
        moved = [self.tangent(e) if self.fact(e).kind in ("list", "tuple") else clone(e) for e in sides]
        return gast.BinOp(moved[0], s.value.op, moved[1])

    # Writes

    def unpack(self, s: Any, to: Any, out: Block) -> None:
        if isinstance(s.value, gast.Name) and self.is_active(s.value):
            out += plain_elements(self.external, self.source, s, s.value.id, self.fact(s.value))
        out.append(s)
        if not self.is_active(s.value):
            for n in sorted(dataflow.stored(to) & self.active):
                self.put(n, self.zero(name(n)), s, out)
            return
        inner = [p.value.id if isinstance(p, gast.Starred) else p.id for p in to.elts]
        wanted = [n for n in inner if n in self.active]
        if not wanted:
            return
        if len(wanted) == 1 and not any(isinstance(p, gast.Starred) for p in to.elts):
            self.put(wanted[0], subscript(self.tangent(s.value), constant(inner.index(wanted[0]))), s, out)
            return
        parts: list[Any] = []
        for p, n in zip(to.elts, inner, strict=True):
            made = gast.Name(
                self.dot(n) if n in self.active else self.names.fresh("_"), gast.Store(), None, None
            )
            parts.append(gast.Starred(made, gast.Store()) if isinstance(p, gast.Starred) else made)
        out.append(at(gast.Assign([gast.Tuple(parts, gast.Store())], self.tangent(s.value), None), s))

    def place(self, e: Any) -> Any:
        """The tangent of `x.a[i]`: the same place in the tangent of `x`."""
        if isinstance(e, gast.Name):
            return name(self.dot(e.id))
        inner = self.place(e.value)
        if isinstance(e, gast.Attribute):
            return call(self.helper("get_attribute"), inner, clone(e.value), constant(e.attr))
        return subscript(inner, clone(e.slice))

    def lost(self, s: Any, owner: Any) -> None:
        """A differentiated value that goes where its derivative can't be followed."""
        owner = root(owner)
        if self.is_active(s.value) and not (isinstance(owner, gast.Name) and owner.id in self.facts):
            text = owner.id if isinstance(owner, gast.Name) else "an object outside the function"
            raise self.refuse(s, f"a write into `{text}`", "Return the value instead.")

    def store_item(self, s: Any, to: Any, out: Block) -> None:
        if isinstance(to.value, gast.Name) and self.is_active(to.value) and self.is_active(s.value):
            out += holds_floats(self.external, self.source, s, to.value.id, self.fact(to.value))
        out.append(s)
        if not self.is_active(root(to)):
            self.lost(s, to)
            return
        value = self.tangent(s.value)
        if self.fact(to.value).kind == "array" and not self.is_active(s.value):
            value = constant(0.0)
        out.append(assign(subscript(self.place(to.value), clone(to.slice), store=True), value, s))

    def store_attribute(self, s: Any, to: Any, out: Block) -> None:
        if isinstance(to.value, gast.Name) and self.is_active(to.value):
            fact = self.fact(to.value)
            out += plain_attribute(self.external, self.source, s, to.value.id, to.attr, fact)
        out.append(s)
        if not self.is_active(root(to)):
            self.lost(s, to)
            return
        place = subscript(self.place(to.value), constant(to.attr), store=True)
        out.append(assign(place, self.tangent(s.value), s))

    def stmt_AugAssign(self, s: Any, out: Block) -> None:
        if isinstance(s.target, gast.Name):
            self.update(s, out)
            return
        repeated = getattr(s, "repeated", False)  # np.add.at, of which the passes see an update
        ufunc = self.np("add" if isinstance(s.op, gast.Add) else "subtract")
        owner = s.target.value
        if isinstance(owner, gast.Name) and self.is_active(owner) and self.is_active(s.value):
            out += holds_floats(self.external, self.source, s, owner.id, self.fact(owner))
        if repeated:
            index = _as_index(s.target.slice)
            out.append(expression(call(attribute(ufunc, "at"), clone(owner), index, clone(s.value)), s))
        else:
            out.append(s)
        if not self.is_active(root(owner)):
            self.lost(s, owner)
            return
        if not self.is_active(s.value):
            return
        dot = self.place(owner)
        if repeated:
            moved = [dot, _as_index(s.target.slice), self.tangent(s.value)]
            out.append(expression(call(attribute(clone(ufunc), "at"), *moved), s))
            return
        out.append(augment(subscript(dot, clone(s.target.slice), store=True), s.op, self.tangent(s.value), s))

    def update(self, s: Any, out: Block) -> None:
        """`x op= v`: in place for an array, a new value for a number; the same is done to the tangent,
        before."""
        x, v = s.target.id, s.value
        if x not in self.active:
            out.append(s)
            return
        rule = table.find(resolve.BINARY[type(s.op)])
        if rule is None or rule.partials is None:
            raise self.refuse(s, "this update in place", "Write `x = x @ y`.")
        dot, kind = self.dot(x), self.kind(x)
        new = self.names.fresh(x + "_new")
        self.know(new, self.facts.get(x, UNKNOWN))
        parameters = _parameters_of(rule.partials)
        binding = {parameters[0]: name(new), parameters[1]: name(x), parameters[2]: clone(v)}
        entries = self.inliner.entries(rule.partials, binding)
        assert entries is not None
        if any(new in mentioned(e) for e in entries):
            out.append(assign(new, gast.BinOp(name(x), s.op, clone(v)), s))
        factor, other = entries[0], entries[1]
        if isinstance(v, gast.Name) and v.id == x:
            factor, other = total([factor, other]), constant(0)
        elif not self.is_active(v):
            other = constant(0)
            if is_number(factor, 1):
                if kind not in ("array", "scalar") and self.fact(v).kind != "scalar":
                    out.append(
                        augment(dot, s.op, self.zero(v), s)
                    )  # the shape, or the length of a list, may grow
                out.append(s)
                return
        if is_number(factor, 1) and type(s.op) in (gast.Add, gast.Sub):
            out.append(augment(dot, s.op, self.tangent(v), s))
            out.append(s)
            return
        part = None
        if not is_zero(other):
            part = multiply(self.tangent(v), other)
            if not is_number(factor, 1) and kind != "scalar":
                part = self.temporary(dot + "_part", part, s, out)  # v may share memory with x
        if isinstance(factor, gast.BinOp) and isinstance(factor.op, gast.Div) and is_number(factor.left, 1):
            out.append(augment(dot, gast.Div(), factor.right, s))
        elif not is_number(factor, 1):
            out.append(augment(dot, gast.Mult(), factor, s))
        if part is not None:
            minus = isinstance(part, gast.UnaryOp) and isinstance(part.op, gast.USub)
            out.append(augment(dot, gast.Sub() if minus else gast.Add(), part.operand if minus else part, s))
        out.append(s)

    def stmt_Delete(self, s: Any, out: Block) -> None:
        (to,) = s.targets
        out.append(s)
        if isinstance(to, gast.Subscript) and self.is_active(root(to)):
            place = subscript(self.place(to.value), clone(to.slice))
            place.ctx = gast.Del()
            out.append(at(gast.Delete([place]), s))

    # Lists and calls

    def stmt_Expr(self, s: Any, out: Block) -> None:
        if not isinstance(s.value, gast.Call):
            out.append(s)
            return
        op = resolve.operation(s.value)
        if op.kind in ("call", "dispatch"):
            self.call(s, op, None, out)
        elif op.kind == "pop":
            self.pop(s, None, out)
        elif op.kind in MIRRORED:
            self.mirror(s, op, out)
        elif op.kind in ("unknown", "unbound") and any(n in self.varied for _, n in op.operands):
            raise self.unknown(op, s)
        else:
            out.append(s)

    def mirror(self, s: Any, op: Any, out: Block) -> None:
        owner, args = s.value.func.value, s.value.args
        out.append(s)
        if not self.is_active(root(owner)):
            start = root(owner)
            local = isinstance(start, gast.Name) and start.id in self.facts
            if args and self.is_active(args[-1]) and not local:
                text = start.id if isinstance(start, gast.Name) else "an object outside the function"
                raise self.refuse(s, f"a write into `{text}`", "Return the value instead.")
            return
        moved = [*(clone(a) for a in args[:-1]), *(self.tangent(a) for a in args[-1:])]
        out.append(expression(call(attribute(self.place(owner), s.value.func.attr), *moved), s))

    def pop(self, s: Any, v: str | None, out: Block) -> None:
        node = s.value
        owner = node.func.value
        out.append(s)
        if not self.is_active(root(owner)):
            if v is not None and v in self.active:
                self.put(v, self.zero(name(v)), s, out)
            return
        popped = call(attribute(self.place(owner), "pop"), *(clone(a) for a in node.args))
        if v is not None and v in self.active:
            self.put(v, popped, s, out)
        else:
            out.append(assign(self.names.fresh(self.dot(root(owner).id) + "_part"), popped, s))

    def call(self, s: Any, op: Any, v: str | None, out: Block) -> None:
        useful = v is not None and v in self.active
        given = any(n in self.active for _, n in op.operands)
        if given and (useful or self.calls_matter(op, s)):
            out += self.calls(self, s, op, v)
            return
        out.append(s)
        if useful and v is not None:
            self.put(v, self.zero(name(v)), s, out)

    def calls_matter(self, op: Any, s: Any) -> bool:
        """May a call whose result carries no derivative write into what has one?"""
        return bool(set(self.aliases.effects(op, s.value)[0]) & self.active)


def _plain(fact: Fact) -> Fact:
    """What is known of a tangent: the kind and shape of the value, never the value itself."""
    if fact.kind in ("tuple", "list", "dict") and fact.items is not None:
        if fact.kind == "tuple":
            return Fact("tuple", items=tuple(_plain(f) for f in fact.items))
        if fact.kind == "list":
            return Fact("list", items=_plain(fact.items))
        return Fact("dict", items=tuple((k, _plain(f)) for k, f in fact.items))
    if fact.kind in NUMBERS:
        return replace(fact, const=MISSING)
    return Fact(fact.kind) if fact.kind in ("tuple", "list", "dict", "bottom") else UNKNOWN


def _parameters_of(rule: Any) -> list[str]:
    code = rule.__code__
    return list(code.co_varnames[: code.co_argcount])


def _is_none(e: Any) -> bool:
    return isinstance(e, gast.Constant) and e.value is None


def _is_default(bound: Any, p: Any) -> bool:
    return isinstance(bound, gast.Constant) and bound.value is p.default and p.default is not p.empty


def _is_method(e: Any, op: Any) -> bool:
    """Is a call of a rule's function written `x.f(...)`?"""
    return isinstance(e.func, gast.Attribute) and not resolve.fact(e.func).known


def _as_index(index: Any) -> Any:
    """An index as an argument of a call: slices become `slice(...)`."""
    if isinstance(index, gast.Slice):
        parts = [p if p is not None else constant(None) for p in (index.lower, index.upper, index.step)]
        return call("slice", *(parts if index.step is not None else parts[:2]))
    if isinstance(index, gast.Tuple):
        return gast.Tuple([_as_index(p) for p in index.elts], gast.Load())
    return clone(index)
