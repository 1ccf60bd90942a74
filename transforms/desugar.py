"""Desugar: rewrite a function into a small core of statements.

Before: any Python function that `check` lets pass.
After:  assignment, `if`, `for`, `while`, `with`, `try`, stores, opaque statements, and one final `return`. No
conditional
        expression, walrus, comprehension or lambda is left where a differentiated value may flow through it;
        no
        `continue`; a `break` only as `if stop: break` at the end of a loop's body.
Why here: every later pass sees one form of each thing.

An exit in tail position of a branch needs no flag, since the reverse sweep replays the branch that was taken;
what follows it moves into the other branch. Flags are made only where nesting forces them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import gast

from srcgrad.runtime.errors import UnsupportedSyntax
from srcgrad.transforms.read import Source, fail
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.build import (
    assign,
    at,
    attribute,
    call,
    clone,
    constant,
    expression,
    if_,
    is_literal,
    list_,
    name,
    subscript,
)
from srcgrad.transforms.tree.names import Names
from srcgrad.transforms.tree.taint import Taint

Block = list[Any]
SPECIAL = (
    gast.NamedExpr,
    gast.IfExp,
    gast.ListComp,
    gast.GeneratorExp,
    gast.DictComp,
    gast.SetComp,
    gast.Lambda,
    gast.BoolOp,
)
COMPREHENSIONS = (gast.ListComp, gast.GeneratorExp, gast.DictComp, gast.SetComp)


def desugar(source: Source, tree: gast.FunctionDef, names: Names, taint: Taint) -> gast.FunctionDef:
    """`tree` in core statements. `taint` knows which names may carry differentiated values; it is kept up to
    date."""
    for stmt in nodes.walk(tree):
        if isinstance(stmt, gast.stmt) and not hasattr(stmt, "origin"):
            stmt.origin = stmt
    _Cells(names).function(tree, taint)
    pass_ = _Desugar(source, names, taint)
    for node in nodes.walk(tree):
        if isinstance(node, (gast.FunctionDef, gast.Lambda)) and node is not tree:
            pass_.captured |= dataflow.free_names(node)
    pass_.bindings = dataflow.binding_counts(tree.body)
    pass_.bindings.update(p.id for p in dataflow.parameters(tree))
    body = [s for s in tree.body if not _is_docstring(s, tree)]
    tree.body = _Exits(names, pass_.block(body)).function()
    return tree


def _is_docstring(stmt: Any, tree: gast.FunctionDef) -> bool:
    return (
        stmt is tree.body[0]
        and isinstance(stmt, gast.Expr)
        and isinstance(stmt.value, gast.Constant)
        and isinstance(stmt.value.value, str)
    )


class _Desugar:
    def __init__(self, source: Source, names: Names, taint: Taint) -> None:
        self.source, self.names, self.taint = source, names, taint
        self.captured: set[str] = set()
        """Names that nested functions read."""
        self.depth = 0
        """How many loops are around."""
        self.bindings: Counter[str] = Counter()
        """How many statements bind each name."""

    # Statements ---------------------------------------------------------------------------------------------

    def block(self, body: Block) -> Block:
        out: Block = []
        for stmt in body:
            method: Callable[[Any, Block], None] | None = getattr(self, "stmt_" + type(stmt).__name__, None)
            if method is None:
                out.append(stmt)
            else:
                method(stmt, out)
        return out

    def stmt_Pass(self, s: Any, out: Block) -> None:
        pass

    def stmt_Expr(self, s: Any, out: Block) -> None:
        e = s.value
        if isinstance(e, gast.Call) and len(e.args) == 3 and self.taint.lookup(e.func) is setattr:
            owner, which, value = e.args
            if isinstance(which, gast.Constant) and str(which.value).isidentifier() and not e.keywords:
                place = at(gast.Attribute(owner, which.value, gast.Store()), e)
                self.stmt_Assign(at(gast.Assign([place], value, None), s), out)
                return
        if isinstance(s.value, gast.Constant):
            return
        if isinstance(s.value, gast.NamedExpr):
            self.store(s.value.target, s.value.value, s, out)
            return
        out.append(at(gast.Expr(self.expr(s.value, s, out)), s))

    def stmt_Assign(self, s: Any, out: Block) -> None:
        if len(s.targets) == 1:
            self.store(s.targets[0], s.value, s, out)
            return
        value = self.atom(s.value, s, out)
        for to in s.targets:
            self.store(to, clone(value), s, out)

    def stmt_AnnAssign(self, s: Any, out: Block) -> None:
        if s.value is not None:
            self.store(s.target, s.value, s, out)

    def stmt_AugAssign(self, s: Any, out: Block) -> None:
        to = s.target
        if isinstance(to, gast.Subscript):
            to = gast.Subscript(self.spill(to.value, s, out), self.spill(to.slice, s, out), gast.Store())
        elif isinstance(to, gast.Attribute):
            to = gast.Attribute(self.spill(to.value, s, out), to.attr, gast.Store())
        out.append(at(gast.AugAssign(to, s.op, self.expr(s.value, s, out)), s))

    def spill(self, e: Any, s: Any, out: Block) -> Any:
        return self.expr(e, s, out)

    def stmt_Delete(self, s: Any, out: Block) -> None:
        for to in s.targets:
            if not isinstance(to, gast.Name):
                out.append(at(gast.Delete([to]), s))

    def stmt_Return(self, s: Any, out: Block) -> None:
        value = constant(None) if s.value is None else self.expr(s.value, s, out)
        out.append(at(gast.Return(value), s))

    def stmt_If(self, s: Any, out: Block) -> None:
        test = self.test(s.test, s, out)
        if isinstance(test, gast.Constant):  # `if False:` and `while True:` of the user's
            out.extend(self.block(s.body if test.value else s.orelse))
            return
        out.append(at(gast.If(test, self.block(s.body), self.block(s.orelse)), s))

    def stmt_While(self, s: Any, out: Block) -> None:
        before: Block = []
        self.depth += 1
        test = self.test(clone(s.test), s, before)
        body = self.block(s.body)
        self.depth -= 1
        if before:
            leave: Block = [at(gast.Break(), s)]
            if s.orelse:
                done = self.names.fresh("done")
                out.append(assign(done, constant(False), s))
                leave.insert(0, assign(done, constant(True), s))
            out.append(at(gast.While(constant(True), [*before, at(gast.If(test, body, leave), s)], []), s))
            if s.orelse:
                out.append(if_(name(done), self.block(s.orelse), [], s))
            return
        out.append(at(gast.While(test, body, self.block(s.orelse)), s))

    def stmt_For(self, s: Any, out: Block) -> None:
        it = self.expr(s.iter, s, out)
        self.depth += 1
        body = self.block(s.body)
        self.depth -= 1
        to = s.target
        if not isinstance(to, gast.Name):
            item = self.names.fresh("item")
            if self.taint.expr(it):
                self.taint.names.add(item)
            head: Block = []
            self.store(to, name(item), s, head)
            body = head + body
            to = gast.Name(item, gast.Store(), None, None)
        out.append(at(gast.For(to, it, body, self.block(s.orelse), None), s))

    def stmt_With(self, s: Any, out: Block) -> None:
        first, *others = s.items
        if others:  # which may use what the first one gave
            self.stmt_With(at(gast.With([first], [at(gast.With(others, s.body), s)]), s), out)
            return
        context = self.expr(first.context_expr, s, out)
        to = first.optional_vars
        head: Block = []
        if to is not None and not (isinstance(to, gast.Name) and self.bindings[to.id] == 1):
            given = self.names.fresh("entered")
            if self.taint.expr(context):
                self.taint.names.add(given)
            self.store(to, name(given), s, head)
            to = gast.Name(given, gast.Store(), None, None)
        out.append(at(gast.With([gast.withitem(context, to)], head + self.block(s.body)), s))

    def stmt_Try(self, s: Any, out: Block) -> None:
        for h in s.handlers:
            bound = getattr(h.name, "id", h.name)
            if bound:
                self.taint.names.add(bound)
                for x in (x for b in h.body for x in nodes.walk(b)):
                    value = getattr(x, "value", None) if isinstance(x, gast.stmt) else None
                    if (
                        isinstance(x, (gast.Assign, gast.AugAssign, gast.Return))
                        and value is not None
                        and bound in dataflow.free_names(value)
                        and self.taint.through({bound}, value)
                    ):
                        raise self.refuse(
                            x,
                            f"a value that the exception `{bound}` carries",
                            "Hand it on by a variable instead.",
                        )
        handlers = [self.handler(h, s) for h in s.handlers]
        body = self.block(s.body)
        orelse, final = self.block(s.orelse), self.block(s.finalbody)
        out.append(at(gast.Try(body, handlers, orelse, final), s))

    def handler(self, h: Any, s: Any) -> Any:
        caught, head = h.name, []
        bound = getattr(caught, "id", caught)
        if bound and self.bindings[bound] > 1:
            given = self.names.fresh("error")
            caught = given if isinstance(caught, str) else gast.Name(given, gast.Store(), None, None)
            head = [assign(bound, name(given), s)]
        return at(gast.ExceptHandler(h.type, caught, head + self.block(h.body)), h)

    def stmt_Raise(self, s: Any, out: Block) -> None:
        out.append(s)

    def stmt_Match(self, s: Any, out: Block) -> None:
        """The patterns stay; the bodies move into a chain of `if` on the number of the case that matched.

        What a pattern binds is assigned after it, where that has a derivative or the name is bound elsewhere
        too. A guard that may see such names is tested after them, and where it fails, a match of the
        cases that are left follows.
        """

        def equal(n: str, number: int) -> Any:
            return gast.Compare(name(n), [gast.Eq()], [constant(number)])

        subject = self.atom(s.subject, s, out)
        which = self.names.fresh("case")
        tainted = self.taint.expr(subject)
        bodies: Block = []
        block, cases = out, []
        out.append(assign(which, constant(-1), s))
        for number, c in enumerate(s.cases):
            names = sorted(dataflow.bound_names([c.pattern]))
            pattern = c.pattern
            head: Block = []
            moved = bool(names) and (tainted or any(self.bindings[n] > 1 for n in names))
            several = moved and tainted and isinstance(pattern, gast.MatchOr)
            split = several or (c.guard is not None and (moved or _has_walrus(c.guard)))
            chosen = equal(which, number)
            picked: Block = []
            for alternative in pattern.patterns if several else [pattern]:
                found = number
                bind = head
                if several:
                    found, bind = len(s.cases) + len(picked), []
                    picked.append(if_(equal(which, found), bind, like=s))
                if moved:
                    given = {n: self.names.fresh(n) for n in names}
                    values = [(n, name(given[n])) for n in names]
                    for bound, path in self.captures(alternative, subject) if tainted else values:
                        bind.append(assign(bound, path, s))
                        if tainted:
                            self.taint.names.add(bound)
                    alternative = _renamed(alternative, given)
                if several:
                    bind.append(assign(which, constant(number), s))
                made = [assign(which, constant(found), s)]
                cases.append(gast.match_case(alternative, None if split else c.guard, made))
            if not split:
                bodies.append((chosen, head + self.block(c.body)))
                continue
            block.append(at(gast.Match(clone(subject), cases), s))
            block += picked
            if c.guard is not None:
                test = self.test(c.guard, s, head)
                head.append(if_(gast.UnaryOp(gast.Not(), test), [assign(which, constant(-1), s)], like=s))
            if head:
                block.append(if_(chosen, head, like=s))
            bodies.append((clone(chosen), self.block(c.body)))
            left: Block = []
            if number + 1 < len(s.cases):
                block.append(if_(equal(which, -1), left, like=s))
            block, cases = left, []
        if cases:
            block.append(at(gast.Match(clone(subject), cases), s))
        chain: Block = []
        for chosen, body in reversed(bodies):
            chain = [at(gast.If(chosen, body, chain), s)]
        out.extend(chain)

    def captures(self, pattern: Any, path: Any) -> list[tuple[str, Any]]:
        """The names that a pattern binds, each with the expression that reads its value."""
        if isinstance(pattern, gast.MatchAs):
            inner = [] if pattern.pattern is None else self.captures(pattern.pattern, path)
            return inner + ([(pattern.name, clone(path))] if pattern.name else [])
        if isinstance(pattern, gast.MatchSequence):
            found = []
            stars = [i for i, p in enumerate(pattern.patterns) if isinstance(p, gast.MatchStar)]
            for i, p in enumerate(pattern.patterns):
                if isinstance(p, gast.MatchStar):
                    after = len(pattern.patterns) - i - 1
                    stop = constant(-after) if after else None
                    part = subscript(clone(path), gast.Slice(constant(i), stop, None))
                    found += [(p.name, call("list", part))] if p.name else []
                else:
                    position = i if not stars or i < stars[0] else i - len(pattern.patterns)
                    found += self.captures(p, subscript(clone(path), constant(position)))
            return found
        if isinstance(pattern, gast.MatchMapping) and not pattern.rest:
            pairs = zip(pattern.keys, pattern.patterns, strict=True)
            return [f for k, p in pairs for f in self.captures(p, subscript(clone(path), clone(k)))]
        known = self.taint.lookup(pattern.cls) if isinstance(pattern, gast.MatchClass) else None
        if known in _MATCH_THEMSELVES and len(pattern.patterns) == 1 and not pattern.kwd_attrs:
            return self.captures(pattern.patterns[0], path)
        named = getattr(known, "__match_args__", ())
        if isinstance(pattern, gast.MatchClass) and len(pattern.patterns) <= len(named):
            fields = [*zip(named, pattern.patterns, strict=False)]
            fields += zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)
            return [f for a, p in fields for f in self.captures(p, attribute(clone(path), a))]
        if dataflow.bound_names([pattern]):
            raise self.refuse(
                pattern,
                "a pattern that takes a differentiated value apart this way",
                "Match keyword patterns, or use `if`.",
            )
        return []

    def stmt_FunctionDef(self, s: Any, out: Block) -> None:
        """The definition of a nested function; default values that are computed get names."""
        for values in (s.args.defaults, s.args.kw_defaults):
            for i, d in enumerate(values):
                if d is not None and not is_literal(d):
                    values[i] = self.temporary(self.expr(d, s, out), s, out, "default")
        if self.bindings[s.name] <= 1 or s.decorator_list:
            out.append(s)
            return
        variable, s.name = s.name, self.names.fresh(s.name)  # the variable holds other things too
        if variable in self.taint.names:
            self.taint.names.add(s.name)
        out += [s, assign(variable, name(s.name), s)]

    # Stores -------------------------------------------------------------------------------------------------

    def store(self, to: Any, value: Any, s: Any, out: Block) -> None:
        if isinstance(to, gast.Name):
            if isinstance(value, gast.Lambda):
                self.stmt_FunctionDef(self.function_of(value, to.id, s), out)
                return
            out.append(assign(to.id, self.expr(value, s, out), s))
        elif isinstance(to, (gast.Tuple, gast.List)):
            self.unpack(to.elts, value, s, out)
        elif isinstance(to, gast.Subscript):
            value = self.expr(value, s, out)
            to = gast.Subscript(self.spill(to.value, s, out), self.spill(to.slice, s, out), gast.Store())
            out.append(assign(to, value, s))
        else:
            value = self.expr(value, s, out)
            out.append(assign(gast.Attribute(self.spill(to.value, s, out), to.attr, gast.Store()), value, s))

    def unpack(self, targets: list[Any], value: Any, s: Any, out: Block) -> None:
        starred = any(isinstance(t, gast.Starred) for t in targets)
        if (
            isinstance(value, (gast.Tuple, gast.List))
            and len(value.elts) == len(targets)
            and not starred
            and not any(isinstance(v, gast.Starred) for v in value.elts)
        ):
            simple = all(isinstance(t, gast.Name) for t in targets)
            bound = {t.id for t in targets if isinstance(t, gast.Name)}
            later: list[Any] = []
            for position, (to, element) in enumerate(zip(targets, value.elts, strict=True)):
                rest = set().union(*(dataflow.free_names(v) for v in value.elts[position + 1 :]))
                if simple and to.id not in rest | self.captured and not (bound & _names_of(later)):
                    if isinstance(element, gast.Lambda):
                        self.store(to, element, s, out)
                    else:
                        out.append(assign(to.id, self.expr(element, s, out), s))
                else:
                    later.append((to, self.temporary(self.expr(element, s, out), s, out)))
            for to, element in later:
                self.store(to, element, s, out)
            return
        value = self.expr(value, s, out)
        parts, nested = [], []
        for to in targets:
            inner = to.value if isinstance(to, gast.Starred) else to
            if isinstance(inner, gast.Name):
                part: Any = gast.Name(inner.id, gast.Store(), None, None)
            else:
                part = gast.Name(self.names.fresh("item"), gast.Store(), None, None)
                if self.taint.expr(value):
                    self.taint.names.add(part.id)
                nested.append((inner, name(part.id)))
            parts.append(gast.Starred(part, gast.Store()) if isinstance(to, gast.Starred) else part)
        out.append(at(gast.Assign([gast.Tuple(parts, gast.Store())], value, None), s))
        for inner, part in nested:
            self.store(inner, part, s, out)

    # Expressions --------------------------------------------------------------------------------------------

    def temporary(self, e: Any, s: Any, out: Block, base: str = "t") -> Any:
        made = self.names.fresh(base)
        if self.taint.expr(e):
            self.taint.names.add(made)
        out.append(assign(made, e, s))
        return name(made)

    def atom(self, e: Any, s: Any, out: Block) -> Any:
        e = self.expr(e, s, out)
        return e if isinstance(e, (gast.Name, gast.Constant)) else self.temporary(e, s, out)

    def test(self, e: Any, s: Any, out: Block) -> Any:
        """An expression of which only the truth matters."""
        return self.expr(e, s, out, truth=True)

    def special(self, e: Any, truth: bool = False) -> bool:
        """Must statements be put before this expression?"""
        if not isinstance(e, gast.AST):
            return False
        if isinstance(e, gast.Call) and (self.iterates(e) or self.named_attribute(e) is not e):
            return True
        if isinstance(e, gast.Call) and (self.by_key(e) is not e or self.applied(e)):
            return True
        if isinstance(e, gast.NamedExpr) or (isinstance(e, gast.Set) and self.taint.expr(e)):
            return True
        if isinstance(e, gast.Lambda):
            return self.taint.expr(e)
        if isinstance(e, (gast.IfExp, *COMPREHENSIONS)) and self.taint.expr(e):
            return True
        if isinstance(e, gast.BoolOp) and not truth and self.taint.expr(e):
            return True
        if isinstance(e, COMPREHENSIONS):
            return any(isinstance(n, gast.NamedExpr) for n in nodes.walk(e))
        if isinstance(e, gast.Call) and self.taint.discrete_call(e) and not _has_walrus(e):
            return False
        if isinstance(e, (gast.Compare, gast.JoinedStr)) and not _has_walrus(e):
            return False
        passes = isinstance(e, gast.BoolOp) or (isinstance(e, gast.UnaryOp) and isinstance(e.op, gast.Not))
        return any(self.special(c, truth and passes) for c in nodes.children(e))

    def listed(self, e: Any) -> Any:
        """`sum(zip(a, b))` with its argument as a comprehension, where the iterator yields differentiated
        values."""
        if self.iterates(e):
            place = next(i for i, a in enumerate(e.args) if self.lazy(a))
            inner, found = e.args[place], self.taint.lookup(e.args[place].func)
            variable = name(self.names.fresh("item"))
            self.taint.names.add(variable.id)
            store = gast.Name(variable.id, gast.Store(), None, None)
            test, it = [], inner
            if found is filter:
                plain = isinstance(inner.args[0], gast.Constant)
                test, it = [variable if plain else call(inner.args[0], variable)], inner.args[1]
            new = clone(e)
            new.args[place] = at(
                gast.ListComp(clone(variable), [gast.comprehension(store, it, test, 0)]), inner
            )
            return new
        return e

    def iterates(self, e: Any) -> bool:
        """Is `e` a call of which an argument is a lazy iterator over differentiated values?"""
        if not (isinstance(e, gast.Call) and any(self.lazy(a) for a in e.args)):
            return False
        return self.taint.lookup(e.func) not in (zip, enumerate, reversed, filter, map, iter)

    def lazy(self, inner: Any) -> bool:
        if not (isinstance(inner, gast.Call) and self.taint.expr(inner)):
            return False
        found = self.taint.lookup(inner.func)
        items = (
            isinstance(inner.func, gast.Attribute)
            and inner.func.attr in ("items", "values")
            and not inner.args
        )
        return found in (zip, enumerate, reversed, filter) if found is not None else items

    def by_key(self, e: Any) -> Any:
        """`max(xs, key=f)` as `sorted(xs, key=f, reverse=True)[0]`: both take the first of several
        largest."""
        if not (isinstance(e, gast.Call) and any(k.arg == "key" for k in e.keywords) and self.taint.expr(e)):
            return e
        found = self.taint.lookup(e.func)
        if found not in (max, min) or not e.args or any(k.arg != "key" for k in e.keywords):
            return e
        values = e.args[0] if len(e.args) == 1 else at(list_(e.args), e)
        keywords = list(e.keywords)
        if found is max:
            keywords.append(gast.keyword("reverse", constant(True)))
        made = at(gast.Call(call("sorted").func, [values], keywords), e)
        return at(subscript(made, constant(0)), e)

    def applied(self, e: Any) -> bool:
        """Is `e` the call of a lambda, `(lambda a: b)(c)`, that can be written out?"""
        if not isinstance(e.func, gast.Lambda) or e.keywords or not self.taint.expr(e):
            return False
        a = e.func.args
        plain = not (a.vararg or a.kwarg or a.kwonlyargs or any(isinstance(x, gast.Starred) for x in e.args))
        return plain and len(e.args) == len(a.posonlyargs) + len(a.args) and not _has_walrus(e.func.body)

    def named_attribute(self, e: Any) -> Any:
        """`getattr(x, "a", d)` with its attribute written out."""
        if not (
            isinstance(e, gast.Call)
            and isinstance(e.func, gast.Name)
            and len(e.args) in (2, 3)
            and not e.keywords
        ):
            return e
        owner, which = e.args[0], e.args[1]
        literal = (
            isinstance(which, gast.Constant) and isinstance(which.value, str) and which.value.isidentifier()
        )
        known = self.taint.lookup(e.func) is getattr and isinstance(owner, gast.Name)
        if not known or not (literal or (len(e.args) == 3 and not _computed(which))):
            return e
        read = at(attribute(clone(owner), which.value) if literal else call(e.func, clone(owner), which), e)
        if len(e.args) == 2:
            return read
        return at(gast.IfExp(call("hasattr", owner, which), read, e.args[2]), e)

    def expr(self, e: Any, s: Any, out: Block, truth: bool = False) -> Any:
        e = self.listed(self.named_attribute(self.by_key(e)))
        if isinstance(e, gast.Lambda) and self.taint.expr(e):
            made = self.names.fresh("function")
            self.stmt_FunctionDef(self.function_of(e, made, s), out)
            self.taint.names.add(made)
            return name(made)
        if not self.special(e, truth):
            return e
        if isinstance(e, gast.Call) and self.applied(e):
            return self.apply(e, s, out)
        if isinstance(e, gast.Set):
            raise self.refuse(e, "a set of differentiated values", "Use a list.")
        if isinstance(e, gast.NamedExpr):
            out.append(assign(e.target.id, self.expr(e.value, s, out), s))
            return name(e.target.id)
        if isinstance(e, gast.IfExp):
            made = self.names.fresh("t")
            test = self.test(e.test, s, out)
            body: Block = []
            body.append(assign(made, self.expr(e.body, s, body), s))
            orelse: Block = []
            orelse.append(assign(made, self.expr(e.orelse, s, orelse), s))
            if self.taint.expr(e.body) or self.taint.expr(e.orelse):
                self.taint.names.add(made)
            out.append(if_(test, body, orelse, s))
            return name(made)
        if isinstance(e, gast.BoolOp):
            made = self.names.fresh("t")
            if any(self.taint.expr(v) for v in e.values):
                self.taint.names.add(made)
            block = out
            for position, value in enumerate(e.values):
                if position:
                    test = name(made) if isinstance(e.op, gast.And) else gast.UnaryOp(gast.Not(), name(made))
                    inner: Block = []
                    block.append(if_(test, inner, [], s))
                    block = inner
                block.append(assign(made, self.expr(value, s, block), s))
            return name(made)
        if isinstance(e, COMPREHENSIONS):
            return self.comprehension(e, s, out)
        children = [(f, i) for f in e._fields for i in _positions(getattr(e, f, None))]
        ordered = [(f, i, _get(e, f, i)) for f, i in children]
        last = max((k for k, (_, _, c) in enumerate(ordered) if self.special(c)), default=-1)
        new = clone(e)
        for k, (f, i, child) in enumerate(ordered):
            made_child = self.expr(child, s, out)
            if (
                k < last
                and isinstance(made_child, gast.expr)
                and not isinstance(made_child, (gast.Constant, gast.Starred))
            ):
                if not (isinstance(made_child, gast.Name) and (f == "func" or not _has_walrus(e))):
                    if f != "func" and not isinstance(made_child, gast.Slice):
                        made_child = self.temporary(made_child, s, out)
            _set(new, f, i, made_child)
        return new

    def apply(self, e: Any, s: Any, out: Block) -> Any:
        """`(lambda a: b)(c)` as `a = c` and `b`, with a name of its own for `a`."""
        renamed = {}
        for p, argument in zip(dataflow.parameters(e.func), e.args, strict=True):
            made = renamed[p.id] = self.names.fresh(p.id)
            value = self.expr(argument, s, out)
            if self.taint.expr(value):
                self.taint.names.add(made)
            out.append(assign(made, value, s))
        body = _Rename(renamed).visit(clone(e.func.body))
        for function in _kept(body) if self.depth else ():  # each time round has variables of its own
            for n in sorted(dataflow.free_names(function) & set(renamed.values())):
                own = self.names.fresh(n)
                function.body = _Rename({n: own}).visit(function.body)
                function.args.kwonlyargs.append(gast.Name(own, gast.Param(), None, None))
                function.args.kw_defaults.append(name(n))
        return self.expr(body, s, out)

    def comprehension(self, e: Any, s: Any, out: Block) -> Any:
        if isinstance(e, gast.SetComp):
            raise self.refuse(e, "a set of differentiated values", "Use a list.")
        made = self.names.fresh("items")
        self.taint.names.add(made)
        start: Any = gast.Dict([], []) if isinstance(e, gast.DictComp) else list_([])
        out.append(assign(made, start, s))
        renamed = {v: self.names.fresh(v) for g in e.generators for v in sorted(dataflow.stored(g.target))}
        for old, new in renamed.items():
            if old in self.taint.names or any(self.taint.expr(g.iter) for g in e.generators):
                self.taint.names.add(new)
        rename = _Rename(renamed)
        block = out
        for position, g in enumerate(e.generators):
            if g.is_async:
                raise self.refuse(e, "an asynchronous comprehension", "Use a plain loop.")
            it = clone(g.iter) if position == 0 else rename.visit(clone(g.iter))
            body: Block = []
            block.append(at(gast.For(rename.visit(clone(g.target)), it, body, [], None), s))
            block = body
            for condition in g.ifs:
                inner: Block = []
                block.append(if_(rename.visit(clone(condition)), inner, [], s))
                block = inner
        if isinstance(e, gast.DictComp):
            to = gast.Subscript(name(made), rename.visit(clone(e.key)), gast.Store())
            block.append(assign(to, rename.visit(clone(e.value)), s))
        else:
            block.append(expression(call(attribute(made, "append"), rename.visit(clone(e.elt))), s))
        loop = out.pop()
        out.extend(self.block([loop]))
        return name(made)

    def function_of(self, e: Any, named: str, s: Any) -> Any:
        """A lambda as the definition of a function."""
        body = at(gast.Return(e.body), s)
        made = gast.FunctionDef(named, e.args, [body], [], None, None, [])
        made.is_lambda = True
        return at(made, s)

    def refuse(self, node: Any, what: str, why: str) -> Exception:
        return fail(UnsupportedSyntax, self.source, node, f"cannot differentiate {what}", why)


class _Cells(gast.NodeTransformer):
    """Variables that nested functions write by `nonlocal` become the only element of a list that both
    share."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.cells: dict[str, str] = {}

    def function(self, tree: gast.FunctionDef, taint: Taint) -> None:
        own = dataflow.bound_names(tree.body) | {p.id for p in dataflow.parameters(tree)}
        written = {
            n
            for s in tree.body
            for d in nodes.walk(s)
            if isinstance(d, gast.FunctionDef)
            for x in nodes.walk(d)
            if isinstance(x, gast.Nonlocal)
            for n in x.names
        }
        shared = sorted(written & own)
        if not shared:
            return
        self.cells = {n: self.names.fresh(n + "_cell") for n in shared}
        taint.names |= {c for n, c in self.cells.items() if n in taint.names}
        tree.body = [self.visit(s) for s in tree.body]
        given = {p.id for p in dataflow.parameters(tree)}
        for n in reversed(shared):
            start = list_([name(n) if n in given else constant(None)])
            made = assign(self.cells[n], start, tree.body[0])
            tree.body.insert(0, made)

    def visit_Name(self, node: Any) -> Any:
        if node.id not in self.cells:
            return node
        return at(gast.Subscript(name(self.cells[node.id]), constant(0), node.ctx), node)

    def visit_Nonlocal(self, node: Any) -> Any:
        node.names = [n for n in node.names if n not in self.cells]
        return node if node.names else at(gast.Pass(), node)

    def scope(self, node: Any) -> Any:
        body = node.body if isinstance(node.body, list) else [node.body]
        outside = {n for x in body for w in nodes.walk(x) if isinstance(w, gast.Nonlocal) for n in w.names}
        hidden = (dataflow.bound_names(body) | {p.id for p in dataflow.parameters(node)}) - outside
        saved = self.cells
        self.cells = {n: c for n, c in saved.items() if n not in hidden}
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.body = (
            [self.visit(s) for s in node.body] if isinstance(node.body, list) else self.visit(node.body)
        )
        self.cells = saved
        return node

    visit_FunctionDef = visit_Lambda = scope


class _Rename(gast.NodeTransformer):
    def __init__(self, by: dict[str, str]) -> None:
        self.by = by

    def visit_Name(self, node: gast.Name) -> Any:
        node.id = self.by.get(node.id, node.id)
        return node


def _kept(e: Any) -> list[Any]:
    """The functions that an expression makes which may be called after it was evaluated."""
    applied = {id(n.func) for n in nodes.walk(e) if isinstance(n, gast.Call)}
    return [n for n in nodes.walk(e) if isinstance(n, gast.Lambda) and id(n) not in applied]


def _renamed(pattern: Any, names: dict[str, str]) -> Any:
    """A copy of a pattern that binds other names."""
    pattern = clone(pattern)
    for p in nodes.walk(pattern):
        for field in ("name", "rest"):
            if isinstance(p, (gast.MatchAs, gast.MatchStar, gast.MatchMapping)) and getattr(p, field, None):
                setattr(p, field, names[getattr(p, field)])
    return pattern


_MATCH_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes of which the one positional pattern matches the value itself (PEP 634)."""


def _computed(e: Any) -> bool:
    """Does an expression call something, so that it may be evaluated only once?"""
    return any(isinstance(n, (gast.Call, gast.NamedExpr)) for n in nodes.walk(e))


def _has_walrus(e: Any) -> bool:
    return any(isinstance(n, gast.NamedExpr) for n in nodes.walk(e))


def _names_of(pairs: list[Any]) -> set[str]:
    return {t.id for t, _ in pairs if isinstance(t, gast.Name)}


def _positions(value: Any) -> list[int | None]:
    if isinstance(value, list):
        return list(range(len(value)))
    return [None] if isinstance(value, gast.AST) else []


def _get(e: Any, field: str, position: int | None) -> Any:
    child = getattr(e, field)
    child = child if position is None else child[position]
    return child


def _set(e: Any, field: str, position: int | None, value: Any) -> None:
    if position is None:
        setattr(e, field, value)
    else:
        getattr(e, field)[position] = value


# Exits ------------------------------------------------------------------------------------------------------


class _Exits:
    """Turns `return`, `break` and `continue` into structure; see the module's text."""

    def __init__(self, names: Names, body: Block) -> None:
        self.names = names
        self.body = body
        self.result = ""
        self.returned = ""

    def function(self) -> Block:
        body = self.body
        early = any(_may(s, (gast.Return,)) for s in body[:-1])
        if not early and body and isinstance(body[-1], gast.Return):
            return self.block(body[:-1], None) + [body[-1]]
        if not any(_may(s, (gast.Return,)) for s in body):
            return [*self.block(body, None), gast.Return(constant(None))]
        self.result = self.names.fresh("result")
        new = self.block(body, None)
        head: Block = []
        if not ends(body):
            head.append(assign(self.result, constant(None)))
        if self.returned:
            head.append(assign(self.returned, constant(False)))
        return [*head, *new, gast.Return(name(self.result))]

    def block(self, body: Block, loop: _Loop | None) -> Block:
        out: Block = []
        for position, s in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(s, gast.Return):
                out.append(assign(self.result, s.value, s))
                if loop is not None and loop.deep:
                    out.append(assign(self.flag(), constant(True), s))
                    if loop.is_loop:
                        loop.stop_used = True
                        out.append(assign(loop.stop, constant(True), s))
                return out
            if isinstance(s, gast.Break):
                assert loop is not None
                loop.stop_used = True
                out.append(assign(loop.stop, constant(True), s))
                return out
            if isinstance(s, gast.Continue):
                assert loop is not None
                if loop.skip_needed:
                    out.append(assign(loop.skip, constant(True), s))
                return out
            if isinstance(s, gast.Raise):
                out.append(s)
                return out
            if isinstance(s, gast.If) and _may(s, (gast.Return, gast.Break, gast.Continue, gast.Raise)):
                return out + self.branch(s, rest, loop)
            if isinstance(s, gast.If):
                out.append(at(gast.If(s.test, self.block(s.body, loop), self.block(s.orelse, loop)), s))
                continue
            if isinstance(s, (gast.For, gast.While)):
                if s.orelse and not any(_may(x, (gast.Break,)) for x in s.body):
                    rest, s.orelse = s.orelse + rest, []  # an `else` that nothing skips
                    made, leaves = self.loop(s, loop)
                    out.extend(made)
                    return out + (
                        self.block(rest, loop) if leaves is None else self.block_after(leaves, rest, loop, s)
                    )
                made, leaves = self.loop(s, loop)
                out.extend(made)
                if leaves is not None:
                    return out + self.block_after(leaves, rest, loop, s)
                continue
            if isinstance(s, (gast.With, gast.Try)):
                leaves = self.wrapped(s, loop)
                out.append(s)
                if ends([s.origin_body if hasattr(s, "origin_body") else s]):
                    return out
                if leaves:
                    return out + self.block_after(leaves, rest, loop, s)
                continue
            out.append(s)
        return out

    def branch(self, s: Any, rest: Block, loop: _Loop | None) -> Block:
        exits = (gast.Return, gast.Break, gast.Continue)
        if ends(s.body):
            return [at(gast.If(s.test, self.block(s.body, loop), self.block(s.orelse + rest, loop)), s)]
        if ends(s.orelse):
            return [at(gast.If(s.test, self.block(s.body + rest, loop), self.block(s.orelse, loop)), s)]
        if not any(_may(x, exits) for x in s.body + s.orelse) or not rest:
            made = at(gast.If(s.test, self.block(s.body, loop), self.block(s.orelse, loop)), s)
            return [made, *self.block(rest, loop)]
        # Some path through the branches exits and some other goes on: flags tell which.
        inner = loop or _Loop(self.names, is_loop=False)
        flags = []
        if _may(s, (gast.Return,)):
            flags.append(self.flag())
        if loop is not None and _may(s, (gast.Break,)):
            flags.append(loop.stop)
        if loop is not None and _may(s, (gast.Continue,)):
            loop.skip_needed = True
            flags.append(loop.skip)
        saved, inner.deep = inner.deep, True
        made = at(gast.If(s.test, self.block(s.body, inner), self.block(s.orelse, inner)), s)
        inner.deep = saved
        return [made, *self.block_after(flags, rest, loop, s)]

    def block_after(self, flags: list[str], rest: Block, loop: _Loop | None, like: Any) -> Block:
        """`rest`, run only if none of the flags is up."""
        new = self.block(rest, loop)
        if not new:
            return []
        tests: list[Any] = [gast.UnaryOp(gast.Not(), name(f)) for f in flags]
        test = tests[0] if len(tests) == 1 else gast.BoolOp(gast.And(), tests)
        return [at(gast.If(test, new, []), like)]

    def loop(self, s: Any, outer: _Loop | None) -> tuple[Block, list[str] | None]:
        loop = _Loop(self.names, is_loop=True)
        loop.skip_needed = _mixed_continue(s.body)
        returns = any(_may(x, (gast.Return,)) for x in s.body)
        body = self.block(s.body, loop)
        before: Block = []
        if loop.stop_used:
            before.append(assign(loop.stop, constant(False), s))
            body.append(at(gast.If(name(loop.stop), [at(gast.Break(), s)], []), s))
        if loop.skip_needed:
            body.insert(0, assign(loop.skip, constant(False), s))
        made = at(gast.For(s.target, s.iter, body, [], None), s) if isinstance(s, gast.For) else None
        made = made or at(gast.While(s.test, body, []), s)
        out = [*before, made]
        leaves = None
        if returns:
            leaves = [self.flag()]
            if outer is not None and outer.is_loop:
                outer.stop_used = True
                out.append(if_(name(self.returned), [assign(outer.stop, constant(True), s)], [], s))
        if s.orelse:
            if not loop.stop_used:
                out.extend(self.block(s.orelse, outer))
            else:
                inner = outer or _Loop(self.names, is_loop=False)
                saved, inner.deep = inner.deep, True
                test = gast.UnaryOp(gast.Not(), name(loop.stop))
                if any(_may(x, (gast.Return,)) for x in s.orelse):
                    leaves = [self.flag()]
                if outer is not None and any(_may(x, (gast.Break,)) for x in s.orelse):
                    leaves = (leaves or []) + [outer.stop]
                if outer is not None and any(_may(x, (gast.Continue,)) for x in s.orelse):
                    outer.skip_needed = True
                    leaves = (leaves or []) + [outer.skip]
                out.append(if_(test, self.block(s.orelse, inner), [], s))
                inner.deep = saved
        return out, leaves

    def wrapped(self, s: Any, loop: _Loop | None) -> list[str]:
        """`with` and `try`: their blocks are left by flags; returns the flags that may be up afterwards."""
        inner = loop or _Loop(self.names, is_loop=False)
        flags = []
        if _may(s, (gast.Return,)):
            flags.append(self.flag())
        if loop is not None and _may(s, (gast.Break,)):
            flags.append(loop.stop)
        if loop is not None and _may(s, (gast.Continue,)):
            loop.skip_needed = True
            flags.append(loop.skip)
        saved, inner.deep = inner.deep, True
        s.origin_body = _Ends(ends(s.body) and all(ends(h.body) for h in getattr(s, "handlers", [])))
        if isinstance(s, gast.Try):
            orelse = s.orelse
            s.body = self.block(s.body, inner)
            if orelse and flags and _may_block(s.body, flags):
                orelse = [if_(gast.UnaryOp(gast.Not(), name(f)), orelse, [], s) for f in flags[:1]]
            for h in s.handlers:
                h.body = self.block(h.body, inner) or [gast.Pass()]
            s.orelse = self.block(orelse, inner)
            s.finalbody = self.block(s.finalbody, inner)
        else:
            s.body = self.block(s.body, inner)
        s.body = s.body or [gast.Pass()]
        inner.deep = saved
        return flags

    def flag(self) -> str:
        if not self.returned:
            self.returned = self.names.fresh("returned")
        return self.returned


class _Ends(gast.stmt):
    """Stands for a rewritten statement: whether every path through the original left it."""

    def __init__(self, ends: bool) -> None:
        super().__init__()
        self.ends = ends


class _Loop:
    """The flags of the innermost loop; `deep` when an exit must raise a flag since code follows it
    outside."""

    def __init__(self, names: Names, is_loop: bool) -> None:
        self.is_loop = is_loop
        self.deep = is_loop
        self.stop = names.fresh("stop") if is_loop else ""
        self.skip = names.fresh("skip") if is_loop else ""
        self.stop_used = False
        self.skip_needed = False


def ends(body: Block) -> bool:
    """Does every path through `body` leave it (by return, break, continue or raise)?"""
    for s in body:
        if isinstance(s, _Ends):
            return s.ends
        if isinstance(s, (gast.Return, gast.Break, gast.Continue, gast.Raise)):
            return True
        if isinstance(s, gast.If) and s.orelse and ends(s.body) and ends(s.orelse):
            return True
        if isinstance(s, gast.With) and ends(s.body):
            return True
        if isinstance(s, gast.Try):
            if ends(s.finalbody):
                return True
            if (ends(s.body) or ends(s.orelse)) and all(ends(h.body) for h in s.handlers):
                return True
        if isinstance(s, gast.While) and isinstance(s.test, gast.Constant) and s.test.value:
            if not any(_may(x, (gast.Break,)) for x in s.body):
                return True
    return False


def _may(s: Any, kinds: tuple[type, ...]) -> bool:
    """May `s` exit its surroundings in one of these ways? A loop keeps its own breaks and continues."""
    if isinstance(s, kinds):
        return True
    if isinstance(s, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
        return False
    if isinstance(s, (gast.For, gast.While)):
        outward = tuple(k for k in kinds if k not in (gast.Break, gast.Continue))
        return any(_may(x, outward) for x in s.body) or any(_may(x, kinds) for x in s.orelse)
    return any(_may(x, kinds) for block in dataflow.blocks(s) for x in block)


def _may_block(body: Block, flags: list[str]) -> bool:
    return bool(dataflow.bound_names(body) & set(flags))


def _mixed_continue(body: Block) -> bool:
    """Is there a `continue` that only a flag can express: inside `with`/`try`, or on one of several paths of
    a branch?"""
    for position, s in enumerate(body):
        if not _may(s, (gast.Continue,)) or isinstance(s, gast.Continue):
            continue
        if isinstance(s, gast.If):
            if ends(s.body):
                if _mixed_continue(s.body) or _mixed_continue(s.orelse + body[position + 1 :]):
                    return True
            elif ends(s.orelse):
                if _mixed_continue(s.orelse) or _mixed_continue(s.body + body[position + 1 :]):
                    return True
            elif body[position + 1 :]:
                return True
            elif _mixed_continue(s.body) or _mixed_continue(s.orelse):
                return True
        else:
            return True
    return False
