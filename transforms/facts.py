"""Facts: what is known of each value before the run: its kind, its rank, and which dimensions are equal.

Before: any tree of statements.   After: the same tree; every expression node has an attribute `fact`.
Why here: the passes that follow ask "may this be an array?", "are these shapes equal?". *Unknown* is always
allowed.

A dimension is a number, a symbol (`Dim`), or None. Two values that an elementwise operation has combined have
equal dimensions wherever neither is 1, since the primal would have failed otherwise; the signature of a
compiled derivative holds which dimensions of its arguments are 1, and so most shapes are known to be equal
without looking at them.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import gast
import numpy as np

from srcgrad.runtime import dispatch, library, operators, trees
from srcgrad.runtime.rules import table
from srcgrad.transforms.tree import dataflow, nodes
from srcgrad.transforms.tree.scope import MISSING, Scope
from srcgrad.transforms.tree.sight import BINARY, UNARY, resolved


@dataclass(frozen=True)
class Dim:
    """A length that is not known but has a name: `base + offset`; `several` if it is known not to be 1."""

    base: str
    offset: int = 0
    several: bool = False


Shape = tuple[Any, ...] | None


@dataclass(frozen=True)
class Fact:
    """`kind` is one of bottom, scalar, array, numeric (scalar or array), tuple, list, dict, none, string,
    function, closure, module, instance, object, unknown. `real` says what numbers: 2 for
    float64 or Python's float, 1 where they may be integers, 0 for any. `items` are
    the facts of a tuple's elements, the one fact of a list's elements, the (key, fact) pairs of a dict, or
    the class of an instance. `const` is the value itself if it is known."""

    kind: str
    shape: Shape = None
    real: int = 0
    items: Any = None
    const: Any = MISSING

    @property
    def rank(self) -> int | None:
        if self.kind == "scalar":
            return 0
        return None if self.shape is None else len(self.shape)

    @property
    def known(self) -> bool:
        return self.const is not MISSING


UNKNOWN = Fact("unknown")
BOTTOM = Fact("bottom")
SCALAR = Fact("scalar")
REAL = Fact("scalar", real=1)
FLOAT = Fact("scalar", real=2)
NUMERIC = Fact("numeric")
STRING = Fact("string")
NONE = Fact("none", const=None)
NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def how_real(value: Any) -> int:
    """`Fact.real` of a number."""
    if isinstance(value, float):
        return 2
    return 0 if isinstance(value, (complex, np.inexact)) else 1


def mixed(facts: Iterable[Fact]) -> int:
    """`Fact.real` of what is computed out of several."""
    reals = [f.real for f in facts]
    return max(reals) if reals and all(reals) else 0


def of_constant(value: Any) -> Fact:
    if value is None:
        return NONE
    if isinstance(value, NUMBERS):
        return Fact("scalar", real=how_real(value), const=value)
    if isinstance(value, str):
        return Fact("string", const=value)
    return Fact("object", const=value)


def of_global(value: Any) -> Fact:
    """What may be assumed of a global: functions, classes and modules are themselves; data may change between
    calls."""
    if isinstance(value, types.ModuleType):
        return Fact("module", const=value)
    if isinstance(value, type) or callable(value):
        return Fact("function", const=library.standin(getattr(value, "__srcgrad_nested__", value)))
    if isinstance(value, NUMBERS):
        return replace(of_constant(value), const=MISSING)
    if isinstance(value, str):
        return STRING
    return UNKNOWN if table.indexed_by(value) is None else Fact("object", const=value)


def join(a: Fact, b: Fact) -> Fact:
    if a == b or b.kind == "bottom":
        return a
    if a.kind == "bottom":
        return b
    real = min(a.real, b.real)
    if a.kind == b.kind:
        if a.kind == "scalar":
            return Fact("scalar", real=real)
        if a.kind == "array":
            if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
                return Fact(
                    "array", tuple(_join_dim(x, y) for x, y in zip(a.shape, b.shape, strict=True)), real
                )
            return Fact("numeric", real=real)
        if a.kind == "tuple" and a.items is not None and b.items is not None and len(a.items) == len(b.items):
            return Fact("tuple", items=tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True)))
        if a.kind == "list" and a.items is not None and b.items is not None:
            return Fact("list", items=join(a.items, b.items))
        return UNKNOWN if a.kind == "instance" else Fact(a.kind)
    if {a.kind, b.kind} <= {"scalar", "array", "numeric"}:
        return Fact("numeric", real=real)
    return UNKNOWN


def _join_dim(x: Any, y: Any) -> Any:
    if x == y:
        return x
    if several(x) and several(y):
        return Dim("?", 0, True)
    return None


def several(dim: Any) -> bool:
    """Is the dimension known not to be 1?"""
    return dim != 1 if isinstance(dim, int) else isinstance(dim, Dim) and dim.several


def same_dim(x: Any, y: Any) -> bool:
    return x is not None and x == y and not (isinstance(x, Dim) and x.base == "?")


def broadcast(shapes: list[Shape]) -> Shape:
    if any(s is None for s in shapes):
        return None
    rank = max((len(s) for s in shapes if s is not None), default=0)
    result = []
    for axis in range(-rank, 0):
        dims = [s[axis] for s in shapes if s is not None and len(s) >= -axis]
        dims = [d for d in dims if d != 1] or [1]
        first = next((d for d in dims if several(d)), dims[0])
        if any(not same_dim(d, first) for d in dims) and not several(first):
            first = None
        result.append(first)
    return tuple(result)


def fits(part: Fact, whole: Fact) -> bool:
    """Does a cotangent shaped as `whole`, the result of an elementwise operation on `part`, have `part`'s
    shape?"""
    if part.kind == "scalar" and whole.kind == "scalar":
        return True
    if (
        part.rank is None
        or whole.rank is None
        or part.rank != whole.rank
        or part.shape is None
        or whole.shape is None
    ):
        return False
    return all(several(p) or same_dim(p, w) for p, w in zip(part.shape, whole.shape, strict=True))


class Interpreter:
    """Abstract interpretation of a function body; `call_user(function or definition, arguments, keywords,
    node)` answers for calls of Python functions."""

    def __init__(self, scope: Scope, call_user: Callable[..., Fact] | None = None) -> None:
        self.scope = scope
        self.call_user = call_user
        self.result = BOTTOM
        self.env: dict[str, Fact] = {}
        self.all: dict[str, Fact] = {}

    def function(self, body: list[Any], env: dict[str, Fact]) -> Fact:
        self.env = dict(env)
        for name, fact in env.items():
            self.all[name] = join(self.all.get(name, BOTTOM), fact)
        self.block(body)
        return self.result

    # Statements ---------------------------------------------------------------------------------------------

    def block(self, body: list[Any]) -> None:
        for s in body:
            getattr(self, "stmt_" + type(s).__name__, self.other)(s)

    def other(self, s: Any) -> None:
        for child in nodes.children(s):
            if isinstance(child, gast.expr):
                self.expr(child)
        for name in dataflow.head_binds(s):
            self.bind(name, UNKNOWN)
        for inner in dataflow.blocks(s):
            self.block(inner)

    def bind(self, name: str, fact: Fact) -> None:
        self.env[name] = fact
        self.all[name] = join(self.all.get(name, BOTTOM), fact)

    def store(self, to: Any, fact: Fact) -> None:
        to.fact = fact
        if isinstance(to, gast.Name):
            self.bind(to.id, fact)
        elif isinstance(to, (gast.Tuple, gast.List)):
            fact = self.overloaded(operators.elements, fact) or fact
            for position, part in enumerate(to.elts):
                if isinstance(part, gast.Starred):
                    self.store(part.value, Fact("list"))
                    fact = UNKNOWN
                elif fact.kind == "tuple" and fact.items is not None and len(fact.items) == len(to.elts):
                    self.store(part, fact.items[position])
                else:
                    self.store(part, element(fact))
        elif isinstance(to, (gast.Subscript, gast.Attribute)):
            owner = self.expr(to.value)
            if isinstance(to, gast.Subscript):
                self.expr(to.slice)
            start = to.value
            while isinstance(start, (gast.Subscript, gast.Attribute)):
                start = start.value
            if start is not to.value and isinstance(start, gast.Name) and start.id in self.env:
                outer = self.env[start.id]
                if outer.kind in ("list", "dict", "tuple") and not (
                    owner.kind == "array" or owner.items == fact
                ):
                    self.bind(start.id, Fact(outer.kind))
            if isinstance(to.value, gast.Name) and owner.kind in ("list", "dict", "tuple"):
                self.bind(to.value.id, self.stored_into(owner, to, fact))

    def stored_into(self, owner: Fact, to: Any, fact: Fact) -> Fact:
        if owner.kind == "list":
            index = getattr(to.slice, "fact", UNKNOWN)
            if isinstance(to.slice, gast.Slice) or index.kind != "scalar":
                return Fact("list")
            return Fact("list", items=None if owner.items is None else join(owner.items, fact))
        if owner.kind == "dict" and owner.items is not None and getattr(to.slice, "fact", UNKNOWN).known:
            key = to.slice.fact.const
            if isinstance(key, (str, int)):
                return Fact("dict", items=(*((k, f) for k, f in owner.items if k != key), (key, fact)))
        return Fact(owner.kind)

    def stmt_Assign(self, s: Any) -> None:
        fact = self.expr(s.value)
        if getattr(s, "predefined", False):
            fact = BOTTOM  # a placeholder that is never read
        for to in s.targets:
            self.store(to, fact)

    def stmt_AugAssign(self, s: Any) -> None:
        value = self.expr(s.value)
        if isinstance(s.target, gast.Name):
            old = self.env.get(s.target.id, UNKNOWN)
            s.target.fact = old
            made = None
            if old.kind == "instance" and type(s.op) in BINARY:
                method = operators.method(old.items, operators.INPLACE[BINARY[type(s.op)]])
                made = self.of_method(method, [old, value])
            if made is None:
                made = old if old.kind == "array" else self.binary(s.op, old, value)
            self.bind(s.target.id, made)
        else:
            self.store(s.target, UNKNOWN)

    def stmt_Expr(self, s: Any) -> None:
        self.expr(s.value)
        call = s.value
        if (
            isinstance(call, gast.Call)
            and isinstance(call.func, gast.Attribute)
            and isinstance(call.func.value, gast.Name)
        ):
            owner = self.env.get(call.func.value.id)
            if owner is not None and owner.kind in ("list", "dict"):
                if call.func.attr == "append" and owner.items is not None and len(call.args) == 1:
                    self.bind(call.func.value.id, Fact("list", items=join(owner.items, call.args[0].fact)))
                elif call.func.attr not in (
                    "pop",
                    "reverse",
                    "sort",
                    "clear",
                    "copy",
                    "index",
                    "count",
                    "get",
                ):
                    self.bind(call.func.value.id, Fact(owner.kind))

    def stmt_If(self, s: Any) -> None:
        self.expr(s.test)
        before = dict(self.env)
        self.block(s.body)
        after = self.env
        self.env = before
        self.block(s.orelse)
        self.env = _join_env(after, self.env)

    def stmt_For(self, s: Any) -> None:
        item = self.iterated(s.iter)
        self.fixpoint(s, lambda: self.store(s.target, item))

    def stmt_While(self, s: Any) -> None:
        self.fixpoint(s, lambda: self.expr(s.test))

    def fixpoint(self, s: Any, head: Callable[[], Any]) -> None:
        while True:
            before = dict(self.env)
            head()
            self.block(s.body)
            self.env = _join_env(before, self.env)
            if self.env == before:
                break
        self.block(s.orelse)

    def stmt_With(self, s: Any) -> None:
        for item in s.items:
            manager, fact = self.expr(item.context_expr), UNKNOWN
            if manager.kind == "instance":
                fact = self.of_method(operators.method(manager.items, "__enter__"), [manager]) or UNKNOWN
            if item.optional_vars is not None:
                self.store(item.optional_vars, fact)
        self.block(s.body)

    def stmt_Try(self, s: Any) -> None:
        before = dict(self.env)
        self.block(s.body)
        self.block(s.orelse)
        after = self.env
        # An exception may have left the body anywhere.
        thrown = {n: self.all.get(n, UNKNOWN) for n in {**before, **after}}
        for handler in s.handlers:
            self.env = dict(thrown)
            if handler.name:
                self.bind(getattr(handler.name, "id", handler.name), UNKNOWN)
            self.block(handler.body)
            after = _join_env(after, self.env)
        self.env = after
        self.block(s.finalbody)

    def stmt_Match(self, s: Any) -> None:
        self.expr(s.subject)
        before, after = dict(self.env), dict(self.env)
        for c in s.cases:
            self.env = dict(before)
            for n in dataflow.bound_names([c.pattern]):
                self.bind(n, UNKNOWN)
            if c.guard is not None:
                self.expr(c.guard)
            self.block(c.body)
            after = _join_env(after, self.env)
        self.env = after

    def stmt_Return(self, s: Any) -> None:
        fact = self.expr(s.value) if s.value is not None else NONE
        self.result = join(self.result, fact)

    def stmt_FunctionDef(self, s: Any) -> None:
        for d in s.args.defaults + [d for d in s.args.kw_defaults if d is not None]:
            self.expr(d)
        self.bind(s.name, UNKNOWN if s.decorator_list else Fact("closure", const=s))

    def stmt_Import(self, s: Any) -> None:
        for n in dataflow.head_binds(s):
            found = self.scope.imports.get(n, MISSING)
            self.bind(n, UNKNOWN if found is MISSING else of_global(found))

    stmt_ImportFrom = stmt_Import

    # Expressions --------------------------------------------------------------------------------------------

    def expr(self, e: Any) -> Fact:
        method = getattr(self, "expr_" + type(e).__name__, None)
        if method is None:
            for child in nodes.children(e):
                if isinstance(child, gast.expr) and not isinstance(e, dataflow.SCOPES):
                    self.expr(child)
            fact = UNKNOWN
        else:
            fact = method(e)
        e.fact = fact
        return fact

    def expr_Constant(self, e: Any) -> Fact:
        return of_constant(e.value)

    def expr_Name(self, e: Any) -> Fact:
        if e.id in self.env:
            return self.env[e.id]
        if e.id in self.scope.local and e.id not in self.scope.imports:
            return BOTTOM  # not bound yet on any path that was seen
        found = self.scope.name(e.id)
        return UNKNOWN if found is MISSING else of_global(found)

    def expr_Attribute(self, e: Any) -> Fact:
        owner = self.expr(e.value)
        if owner.kind in ("module", "function") and owner.known:
            if owner.kind == "function" and isinstance(owner.const, types.FunctionType):
                return UNKNOWN
            found = self.scope.attribute(owner.const, e.attr)
            return UNKNOWN if found is MISSING else of_global(found)
        if owner.kind in ("array", "scalar", "numeric"):
            if e.attr in ("ndim", "size", "itemsize", "nbytes"):
                return REAL
            if e.attr == "shape":
                return Fact("tuple", items=None if owner.shape is None else tuple(REAL for _ in owner.shape))
            if e.attr == "T" and owner.shape is not None:
                return replace(owner, shape=owner.shape[::-1], const=MISSING)
            if e.attr in ("T", "real", "imag"):
                return replace(owner, const=MISSING)
        if owner.kind == "instance" and e.attr == "__class__":
            return Fact("function", const=owner.items)
        if owner.kind == "instance":
            if class_attribute(owner.items, e.attr) is not None:
                made = self.of_method(dispatch.reader(owner.items, e.attr), [owner])
                return UNKNOWN if made is None else made
        return UNKNOWN

    def expr_UnaryOp(self, e: Any) -> Fact:
        fact = self.expr(e.operand)
        if isinstance(e.op, gast.Not):
            return REAL
        made = self.overloaded(UNARY.get(type(e.op)), fact)
        if made is not None:
            return made
        if fact.kind == "scalar" and fact.known and isinstance(e.op, gast.USub):
            return replace(fact, const=-fact.const)
        made = replace(fact, const=MISSING) if fact.kind in ("scalar", "array", "numeric") else UNKNOWN
        return number_of(made)

    def expr_BinOp(self, e: Any) -> Fact:
        return self.binary(e.op, self.expr(e.left), self.expr(e.right))

    def overloaded(self, function: Any, *operands: Fact) -> Fact | None:
        """The fact of what an operator of the user's gives; None where no object decides it."""
        found = None if function is None else resolved(function, *operands)
        if found is None or found == "met":
            return None if found is None else UNKNOWN
        method, swapped = found
        return self.of_method(method, list(operands[::-1] if swapped else operands))

    def of_method(self, method: Any, given: list[Fact]) -> Fact | None:
        if not isinstance(method, types.FunctionType):
            return None
        if self.call_user is None:
            return UNKNOWN
        return self.call_user(method, given, {}, gast.Call(gast.Constant(None, None), [], []), False)

    def binary(self, op: Any, a: Fact, b: Fact) -> Fact:
        made = self.overloaded(BINARY.get(type(op)), a, b)
        if made is not None:
            return made
        if isinstance(op, gast.MatMult):
            return _matmul(a, b)
        if isinstance(op, gast.BitOr) and a.kind == b.kind == "dict":
            known = a.items is not None and b.items is not None
            return Fact("dict", items=tuple({**dict(a.items), **dict(b.items)}.items()) if known else None)
        if a.kind == b.kind == "list" and isinstance(op, gast.Add):
            known = a.items is not None and b.items is not None
            return Fact("list", items=join(a.items, b.items) if known else None)
        if a.kind == "list" and b.kind == "scalar" and isinstance(op, gast.Mult):
            return a
        if (
            a.kind == b.kind == "tuple"
            and isinstance(op, gast.Add)
            and a.items is not None
            and b.items is not None
        ):
            return Fact("tuple", items=a.items + b.items)
        if isinstance(op, gast.Add) and {a.kind, b.kind} in ({"list", "scalar"}, {"tuple", "scalar"}):
            return NUMERIC  # a number of NumPy's makes an array of a sequence
        fact = number_of(elementwise([a, b]))
        return replace(fact, real=2) if isinstance(op, gast.Div) and fact.real else fact

    def expr_Compare(self, e: Any) -> Fact:
        facts = [self.expr(e.left), *(self.expr(c) for c in e.comparators)]
        if any(isinstance(o, (gast.In, gast.NotIn, gast.Is, gast.IsNot)) for o in e.ops):
            return REAL
        fact = number_of(elementwise(facts))
        return replace(fact, real=min(fact.real, 1), const=MISSING)

    def expr_BoolOp(self, e: Any) -> Fact:
        fact = BOTTOM
        for v in e.values:
            fact = join(fact, self.expr(v))
        return fact

    def expr_IfExp(self, e: Any) -> Fact:
        self.expr(e.test)
        return join(self.expr(e.body), self.expr(e.orelse))

    def expr_NamedExpr(self, e: Any) -> Fact:
        fact = self.expr(e.value)
        self.store(e.target, fact)
        return fact

    def expr_Tuple(self, e: Any) -> Fact:
        facts = [self.expr(x) for x in e.elts]
        if any(isinstance(x, gast.Starred) for x in e.elts):
            return Fact("tuple")
        return Fact("tuple", items=tuple(facts))

    def expr_List(self, e: Any) -> Fact:
        facts = [self.expr(x) for x in e.elts]
        if any(isinstance(x, gast.Starred) for x in e.elts):
            return Fact("list")
        fact = BOTTOM
        for f in facts:
            fact = join(fact, replace(f, const=MISSING) if f.kind == "scalar" else f)
        return Fact("list", items=fact)

    def expr_Dict(self, e: Any) -> Fact:
        pairs = []
        for key, value in zip(e.keys, e.values, strict=True):
            value_fact = self.expr(value)
            if key is None:
                return Fact("dict")
            key_fact = self.expr(key)
            if not (key_fact.known and isinstance(key_fact.const, (str, int))):
                return Fact("dict")
            pairs.append((key_fact.const, value_fact))
        return Fact("dict", items=tuple(pairs))

    def expr_JoinedStr(self, e: Any) -> Fact:
        for part in e.values:
            if isinstance(part, gast.FormattedValue):
                self.expr(part.value)
        return STRING

    def expr_Lambda(self, e: Any) -> Fact:
        return UNKNOWN

    def expr_ListComp(self, e: Any) -> Fact:
        return Fact("list")

    def expr_Slice(self, e: Any) -> Fact:
        for part in (e.lower, e.upper, e.step):
            if part is not None:
                self.expr(part)
        return UNKNOWN

    def expr_Subscript(self, e: Any) -> Fact:
        owner, index = self.expr(e.value), self.expr(e.slice)
        made = self.overloaded(operators.getitem, owner, index)
        if made is not None:
            return made
        if owner.kind == "array":
            return getitem(owner, e.slice)
        if owner.kind == "tuple" and owner.items is not None:
            if (
                index.known
                and isinstance(index.const, int)
                and -len(owner.items) <= index.const < len(owner.items)
            ):
                return owner.items[index.const]
            return element(owner) if index.kind == "scalar" else UNKNOWN
        if owner.kind == "list" and owner.items is not None:
            if isinstance(e.slice, gast.Slice):
                return owner
            return element(owner) if index.kind == "scalar" else UNKNOWN
        if owner.kind == "dict" and owner.items is not None and index.known:
            return dict(owner.items).get(index.const, UNKNOWN)
        if owner.kind == "dict" and owner.items:
            return element(Fact("tuple", items=tuple(f for _, f in owner.items)))
        return UNKNOWN

    def iterated(self, it: Any) -> Fact:
        """The fact of the elements that a loop over `it` meets."""
        fact = self.expr(it)
        if isinstance(it, gast.Call) and it.func.fact.known and it.func.fact.const is range:
            return REAL
        if (
            isinstance(it, gast.Call)
            and isinstance(it.func, gast.Attribute)
            and it.func.value.fact.kind == "dict"
        ):
            items = it.func.value.fact.items
            inner = element(Fact("tuple", items=tuple(f for _, f in items))) if items else UNKNOWN
            if it.func.attr == "items":
                return Fact("tuple", items=(UNKNOWN, inner))
            if it.func.attr == "values":
                return inner
        return element(self.overloaded(operators.elements, fact) or fact)

    def expr_Call(self, e: Any) -> Fact:
        func = self.expr(e.func)
        args = [self.expr(a.value if isinstance(a, gast.Starred) else a) for a in e.args]
        keywords = {k.arg: self.expr(k.value) for k in e.keywords}
        starred = any(isinstance(a, gast.Starred) for a in e.args) or None in keywords
        if isinstance(e.func, gast.Attribute) and e.func.value.fact.kind in ("array", "scalar", "numeric"):
            method = getattr(np.ndarray, e.func.attr, None)
            if method is not None and not starred:
                return self.rule(method, [e.func.value.fact, *args], keywords)
            return UNKNOWN
        if isinstance(e.func, gast.Attribute) and e.func.value.fact.kind == "instance" and not func.known:
            found = class_attribute(e.func.value.fact.items, e.func.attr)
            if isinstance(found, types.FunctionType) and self.call_user is not None:
                return self.call_user(found, [e.func.value.fact, *args], keywords, e, starred)
            return UNKNOWN
        if func.kind == "instance":
            found = class_attribute(func.items, "__call__")
            if isinstance(found, types.FunctionType) and self.call_user is not None:
                return self.call_user(found, [func, *args], keywords, e, starred)
            return UNKNOWN
        if isinstance(e.func, gast.Attribute) and e.func.value.fact.kind in ("list", "dict"):
            owner = e.func.value.fact
            if e.func.attr in ("pop", "get") and owner.kind == "list" and owner.items is not None:
                return element(owner)
            if e.func.attr == "copy":
                return owner
            return UNKNOWN
        if func.kind == "closure" and self.call_user is not None:
            return self.call_user(func.const, args, keywords, e, starred)
        if not func.known:
            return UNKNOWN
        function = func.const
        if function is type and len(args) == 1 and args[0].kind == "instance":
            return Fact("function", const=args[0].items)
        if function in (dataclasses.replace, dataclasses.asdict, dataclasses.astuple):
            return replace(args[0], const=MISSING) if function is dataclasses.replace and args else UNKNOWN
        if (function is abs or function is float) and len(args) == 1:
            made = self.overloaded(operators.absolute if function is abs else operators.number, args[0])
            if made is not None:
                return made
        if (function is trees.new_object or function is trees.built) and args and args[0].known:
            return Fact("instance", items=args[0].const) if is_user_class(args[0].const) else UNKNOWN
        found = self.builtin(function, args, starred)
        if found is not None:
            return found
        if table.find(function) is not None and not starred:
            return self.rule(function, args, keywords)
        if function in (list, tuple) and len(args) == 1:
            if args[0].kind == "tuple" and function is tuple:
                return args[0]
            return Fact("list", items=element(args[0])) if function is list else Fact("tuple")
        if is_user_class(function):
            return Fact("instance", items=function)
        if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
            if self.call_user is not None:
                owner = of_global(function.__self__)
                return self.call_user(function.__func__, [owner, *args], keywords, e, starred)
        if self.call_user is not None and func.kind == "function":
            return self.call_user(function, args, keywords, e, starred)
        return UNKNOWN

    def builtin(self, function: Any, args: list[Fact], starred: bool) -> Fact | None:
        """The fact of a call of one of Python's builtins, or None."""
        if function is range:
            return Fact("list", items=REAL)
        if function in (len, int, bool, hash, ord) and not starred:
            return REAL
        if function is dict and not args:
            return Fact("dict")
        if function is list and not args:
            return Fact("list", items=BOTTOM)
        if function in (max, min) and len(args) > 1 and not starred:
            return (
                replace(elementwise(args), const=MISSING)
                if all(a.kind == "scalar" for a in args)
                else UNKNOWN
            )
        if function in (max, min, sum) and len(args) == 1 and args[0].kind in ("list", "tuple", "array"):
            inner = element(args[0])
            return inner if inner.kind == "scalar" else UNKNOWN
        if function is zip and not starred:
            return Fact("list", items=Fact("tuple", items=tuple(element(a) for a in args)))
        if function is enumerate and args and not starred:
            return Fact("list", items=Fact("tuple", items=(REAL, element(args[0]))))
        if function is sorted and args and not starred:
            return Fact("list", items=element(args[0]))
        if function is reversed and args and not starred:
            return Fact("list", items=element(args[0]))
        return None

    def rule(self, function: Any, args: list[Fact], keywords: dict[str | None, Fact]) -> Fact:
        rule = table.find(function)
        if rule is None:
            return UNKNOWN
        if "out" in keywords or "where" in keywords or "shape" in keywords:
            return UNKNOWN
        if getattr(function, "__module__", "") == "math" and rule.partials is not None:
            return Fact("scalar", real=2)
        real = mixed(a for a in args if a.kind not in ("none", "string")) if "dtype" not in keywords else 0
        if not rule.differentiable:
            real = min(real, 1)
        if rule.shape == "broadcast":
            names = [p.name for p in rule.parameters]  # a condition may come before them
            fact = elementwise(args[: names.index(rule.wrt[-1]) + 1] if rule.wrt else args)
            fact = replace(fact, real=min(fact.real, real), const=MISSING)
            return number_of(fact) if isinstance(function, np.ufunc) else fact
        if rule.shape == "scalar":
            return Fact("scalar", real=real)
        if rule.shape == "same" and args:
            if args[0].kind in ("scalar", "array", "numeric"):
                return replace(args[0], const=MISSING, real=args[0].real if "dtype" not in keywords else 0)
            return NUMERIC
        if rule.shape == "reduction" and args:
            return self.reduction(rule, args, keywords, real)
        if rule.shape == "matmul" and len(args) == 2:
            return _matmul(*args)
        if rule.shape is None or not args:
            return UNKNOWN
        return tagged(rule.shape, args, keywords, real)

    def reduction(
        self, rule: table.Rule, args: list[Fact], keywords: dict[str | None, Fact], real: int
    ) -> Fact:
        names = [p.name for p in rule.parameters]
        bound = dict(zip(names, args, strict=False)) | {k: v for k, v in keywords.items() if k is not None}
        if not names and len(args) > 1:  # a rule without derivative tells no parameters
            return NUMERIC
        x, axis, keep = args[0], bound.get("axis", NONE), bound.get("keepdims", of_constant(False))
        if x.kind in ("list", "tuple"):
            return Fact("scalar") if axis.kind == "none" and keep.known and not keep.const else NUMERIC
        if not (axis.known and keep.known) or x.kind == "unknown":
            return (
                NUMERIC
                if x.kind != "unknown" or axis.kind != "none"
                else (NUMERIC if not keep.known else SCALAR)
            )
        if axis.const is None and not keep.const:
            return Fact("scalar", real=real)
        if x.shape is None or not (axis.const is None or isinstance(axis.const, int)):
            return Fact("numeric", real=real)
        axes = range(len(x.shape)) if axis.const is None else [axis.const % max(1, len(x.shape))]
        if keep.const:
            return Fact("array", tuple(1 if i in axes else d for i, d in enumerate(x.shape)), real)
        shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        return Fact("array", shape, real) if shape else Fact("scalar", real=real)


MORE_RESULTS = {"returned", "return_index", "return_inverse", "return_counts", "full", "cov", "retstep"}
"""Options that make functions give tuples."""


def tagged(tag: str, args: list[Fact], keywords: dict[str | None, Fact], real: int) -> Fact:
    """The fact of a result by its rule's shape tag; see `srcgrad.runtime.rules.kinds`."""
    first = args[0]
    if not MORE_RESULTS.isdisjoint(keywords) or None in keywords:
        return UNKNOWN
    if tag == "numeric":
        return NUMERIC
    if tag == "row":
        return Fact("array", (None,), real)
    if tag == "rows" and first.kind in ("list", "tuple"):
        return Fact("array", (None, None)) if element(first).rank in (0, 1, 2) else NUMERIC
    if tag == "beside" and first.kind in ("list", "tuple"):
        rank = element(first).rank
        return NUMERIC if rank is None else Fact("array", (None,) * max(1, rank))
    if tag == "diag" and first.kind == "array" and first.rank in (1, 2):
        return Fact("array", (None,) * (3 - first.rank), real)
    if tag == "inner" and len(args) == 2:
        return Fact("scalar", real=real) if args[0].rank == args[1].rank == 1 else NUMERIC
    if tag == "list":
        return Fact("list")
    if tag == "anything":
        return replace(first, const=MISSING) if first.kind in ("scalar", "array", "numeric") else UNKNOWN
    if tag == "cotangent" and first.kind in ("list", "tuple", "dict"):
        return Fact("dict" if first.kind == "dict" else "list")
    if tag == "cotangent":
        return replace(first, const=MISSING) if first.kind in ("scalar", "array", "numeric") else UNKNOWN
    if tag == "filled":
        shape = _shape_from(first)
        real = 0
        if "dtype" not in keywords and all(a.kind in ("scalar", "tuple") for a in args):
            real = args[1].real if len(args) == 2 else 2
        return NUMERIC if shape is None else Fact("array", shape, real) if shape else SCALAR
    if tag == "second" and len(args) > 1 and args[1].kind in ("list", "tuple", "dict"):
        return Fact("dict" if args[1].kind == "dict" else "list")
    if tag == "second" and len(args) > 1:
        return replace(args[1], const=MISSING) if args[1].kind in ("scalar", "array", "numeric") else UNKNOWN
    if tag == "solve" and len(args) == 2:
        return replace(args[1], const=MISSING) if first.rank == 2 and args[1].kind == "array" else NUMERIC
    if tag == "matrices":
        return replace(first, const=MISSING) if first.rank is not None and first.rank > 1 else NUMERIC
    if tag == "sorted" and first.kind == "array":
        axis = args[1] if len(args) > 1 else keywords.get("axis", of_constant(-1))
        return replace(first, const=MISSING) if axis.known and isinstance(axis.const, int) else NUMERIC
    if tag == "dot" and len(args) == 2:
        return _matmul(*args) if args[1].rank in (1, 2) else NUMERIC
    if tag == "trace":
        return Fact("scalar", real=real) if first.rank == 2 else NUMERIC
    if tag == "nested":
        return _nested(first) if "ndmin" not in keywords else NUMERIC
    if tag == "places":
        return replace(first, real=real, const=MISSING) if first.kind in ("scalar", "array") else NUMERIC
    if tag == "where":
        made = elementwise(args)
        return Fact("array", (), made.real) if made.kind == "scalar" else replace(made, const=MISSING)
    if tag == "transpose" and first.shape is not None and len(args) == 1 and not keywords:
        return replace(first, shape=first.shape[::-1], const=MISSING)
    if tag == "transpose" and first.shape is not None:
        return Fact("array", (None,) * len(first.shape), real)
    if tag == "reshape" and first.kind in ("array", "numeric", "scalar"):
        wanted = args[1] if len(args) == 2 else Fact("tuple", items=tuple(args[1:]))
        shape = _shape_from(wanted)
        return Fact("numeric", real=first.real) if not shape else Fact("array", shape, first.real)
    if (
        tag in ("rank", "spectrum", "diagonal", "expanded", "parts")
        and first.kind == "array"
        and first.rank is not None
    ):
        more = {"diagonal": -1, "expanded": 1}.get(tag, 0)
        if tag == "expanded" and not (len(args) == 2 and args[1].kind == "scalar"):
            return NUMERIC
        made = Fact("array", (None,) * (first.rank + more), 0 if tag == "spectrum" else real)
        return Fact("list", items=made) if tag == "parts" else made
    if tag == "shaped" and len(args) == 2:
        shape = _shape_from(args[1])
        return Fact("array", shape, first.real) if shape else NUMERIC
    if tag == "vector" and all(a.kind == "scalar" for a in (args if len(args) > 1 else ())):
        return Fact("array", (None,), real)
    if tag in ("matrix", "outer"):
        return Fact("array", (None, None), real)
    if tag in ("join", "stack") and first.kind in ("list", "tuple"):
        inner = element(first)
        axis = args[1] if len(args) > 1 else keywords.get("axis", of_constant(0))
        if inner.shape is not None and axis.known and isinstance(axis.const, int):
            return Fact("array", (None,) * (len(inner.shape) + (tag == "stack")), inner.real)
        return Fact("numeric", real=inner.real)
    if tag == "einsum" and first.known and isinstance(first.const, str) and "->" in first.const:
        output = first.const.partition("->")[2].strip()
        if "..." not in output:
            rest = mixed(args[1:])
            return Fact("array", (None,) * len(output), rest) if output else Fact("scalar", real=rest)
    if tag == "det" and first.shape is not None:
        return (
            Fact("array", first.shape[:-2], first.real)
            if len(first.shape) > 2
            else Fact("scalar", real=first.real)
        )
    if tag == "cumulative":
        axis = args[1] if len(args) > 1 else keywords.get("axis", NONE)
        if first.rank == 1 or (axis.known and isinstance(axis.const, int)):
            return replace(first, const=MISSING)
        return Fact("array", (None,), first.real) if axis.kind == "none" else NUMERIC
    return NUMERIC if first.kind in ("scalar", "array", "numeric") else UNKNOWN


def _shape_from(fact: Fact) -> Shape:
    """The shape that a value means as the `shape` argument of a constructor."""
    if fact.kind == "scalar":
        return (fact.const if fact.known and isinstance(fact.const, int) and fact.const >= 0 else None,)
    if fact.kind == "tuple" and fact.items is not None and all(f.kind == "scalar" for f in fact.items):
        return tuple(
            f.const if f.known and isinstance(f.const, int) and f.const >= 0 else None for f in fact.items
        )
    return None


def _nested(fact: Fact) -> Fact:
    if fact.kind == "scalar":
        return Fact("array", (), fact.real)
    if fact.kind in ("array", "numeric"):
        return replace(fact, const=MISSING)
    if fact.kind in ("list", "tuple") and fact.items is not None:
        inner = _nested(element(fact))
        length = len(fact.items) if fact.kind == "tuple" else None
        if inner.shape is not None:
            return Fact("array", (length, *inner.shape), inner.real)
    return NUMERIC


def is_user_class(cls: Any) -> bool:
    """Is `cls` a class whose instances carry attributes, with methods written in Python?"""
    if not isinstance(cls, type) or issubclass(
        cls, (tuple, list, dict, str, BaseException, np.generic, np.ndarray)
    ):
        return False
    if (cls.__module__ or "").split(".")[0] in (
        "builtins",
        "numpy",
        "scipy",
        "functools",
        "collections",
        "srcgrad",
    ):
        return False
    if type(cls).__call__ is not type.__call__ or cls.__new__ is not object.__new__:
        return False
    return any(isinstance(v, (types.FunctionType, property)) for c in cls.__mro__ for v in vars(c).values())


def class_attribute(cls: type, name: str) -> Any:
    """What the class of an instance says about an attribute, without running anything."""
    if any("__getattr__" in vars(c) or "__getattribute__" in vars(c) for c in cls.__mro__[:-1]):
        return None
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)


def _join_env(a: dict[str, Fact], b: dict[str, Fact]) -> dict[str, Fact]:
    return {n: join(a.get(n, BOTTOM), b.get(n, BOTTOM)) for n in {**a, **b}}


def element(fact: Fact) -> Fact:
    """The fact of one element of a sequence."""
    if fact.kind == "array" and fact.shape:
        return (
            Fact("array", fact.shape[1:], fact.real)
            if len(fact.shape) > 1
            else Fact("scalar", real=fact.real)
        )
    if fact.kind == "list" and fact.items is not None:
        return fact.items if fact.items.kind != "bottom" else UNKNOWN
    if fact.kind == "tuple" and fact.items is not None:
        result = BOTTOM
        for f in fact.items:
            result = join(result, replace(f, const=MISSING) if f.kind == "scalar" else f)
        return result if result.kind != "bottom" else UNKNOWN
    return UNKNOWN


def number_of(fact: Fact) -> Fact:
    """Of operators and NumPy's ufuncs, which make a number of what has no dimension."""
    return Fact("scalar", real=fact.real) if fact.kind == "array" and fact.shape == () else fact


def elementwise(facts: list[Fact]) -> Fact:
    if (
        any(f.kind not in ("scalar", "array", "numeric", "list", "tuple", "bottom") for f in facts)
        or not facts
    ):
        return UNKNOWN
    if any(f.kind in ("list", "tuple") for f in facts):
        return NUMERIC if any(f.kind in ("array", "numeric") for f in facts) else UNKNOWN
    real = mixed(facts)
    if all(f.kind in ("scalar", "bottom") for f in facts):
        return Fact("scalar", real=real)
    shape = broadcast([() if f.kind == "scalar" else f.shape for f in facts])
    if shape is None:
        rank_known = all(f.rank is not None for f in facts)
        return Fact("array" if rank_known else "numeric", real=real)
    return Fact("array", shape, real)


def _matmul(a: Fact, b: Fact) -> Fact:
    if a.kind != "array" or b.kind != "array" or not a.shape or not b.shape:
        return NUMERIC if a.kind != "unknown" and b.kind != "unknown" else UNKNOWN
    real = mixed([a, b])
    left = a.shape[:-1]
    if len(b.shape) == 1:
        shape = left
    elif len(a.shape) == 1:
        shape = (*b.shape[:-2], b.shape[-1])
    else:
        batch = broadcast([a.shape[:-2], b.shape[:-2]]) or ()
        shape = (*batch, a.shape[-2], b.shape[-1])
    return Fact("array", shape, real) if shape else Fact("scalar", real=real)


def getitem(x: Fact, index: Any) -> Fact:
    """The fact of `x[index]` for an array `x`."""
    parts = index.elts if isinstance(index, gast.Tuple) else [index]
    if x.shape is None:
        return Fact("numeric", real=x.real)
    dims = list(x.shape)
    result: list[Any] = []
    used = sum(1 for p in parts if not _is_none(p) and not _is_ellipsis(p))
    for part in parts:
        if _is_none(part):
            result.append(1)
        elif _is_ellipsis(part):
            while len(dims) > used:
                result.append(dims.pop(0))
        elif isinstance(part, gast.Slice):
            if not dims:
                return Fact("numeric", real=x.real)
            result.append(_sliced(dims.pop(0), part))
            used -= 1
        elif getattr(part, "fact", UNKNOWN).kind == "scalar" and not isinstance(
            getattr(part.fact, "const", 0), bool
        ):
            if not dims:
                return Fact("numeric", real=x.real)
            dims.pop(0)
            used -= 1
        else:
            fact = getattr(part, "fact", UNKNOWN)
            if (
                len(parts) == 1
                and fact.kind == "list"
                and fact.items is not None
                and fact.items.kind == "scalar"
            ):
                return Fact("array", (None, *dims[1:]), x.real)
            return Fact("numeric", real=x.real)
    shape = (*result, *dims)
    return Fact("array", shape, x.real) if shape else Fact("scalar", real=x.real)


def _is_none(p: Any) -> bool:
    return isinstance(p, gast.Constant) and p.value is None


def _is_ellipsis(p: Any) -> bool:
    return isinstance(p, gast.Constant) and p.value is ...


def _sliced(dim: Any, part: Any) -> Any:
    if part.lower is None and part.upper is None and part.step is None:
        return dim
    lower, upper = _number(part.lower, 0), _number(part.upper, None)
    if part.step is not None or lower is None or lower < 0 or not isinstance(dim, Dim):
        return None
    if part.upper is None:
        return Dim(dim.base, dim.offset - lower) if lower else dim
    if upper is None or upper >= 0:
        return None
    return Dim(dim.base, dim.offset - lower + upper)


def _number(node: Any, default: Any) -> Any:
    if node is None:
        return default
    fact = getattr(node, "fact", UNKNOWN)
    return fact.const if fact.known and isinstance(fact.const, int) else None
