"""The body of one function, written statement by statement; the statements are in the files beside.

The body knows which names exist at each point and what they hold, on every path: a name made in one branch is
forgotten after it, a name that exists when a loop starts keeps its kind in the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from .kinds import (
    SCALAR,
    Array,
    Arrow,
    Flag,
    Int,
    Items,
    Kind,
    Row,
    Scalar,
    Table,
    Variable,
    fits,
    join,
)
from .scope import Program, Scope

NAMES: dict[type[Kind], tuple[str, ...]] = {
    Scalar: ("s", "t", "z", "acc", "total", "r", "q", "h"),
    Array: ("v", "g", "w", "buf", "state", "out", "field"),
    Items: ("items", "stack", "xs", "path"),
    Table: ("cell", "table", "stats"),
    Row: ("pair", "both"),
    Int: ("k", "j", "count"),
    Flag: ("flag", "seen", "ok"),
    Arrow: ("apply", "inner", "step"),
}
ODD_NAMES = (
    "x_bar",
    "s_bar",
    "x_saved",
    "_",
    "t_1",
    "result",
    "saved",
    "s_2",
    "v_bar",
    "e_bar",
    "λ",
    "id",
    "input",
)
VIEWS = {"flip", "transpose", "expand_dims", "reshape", "ravel", "asarray", "swapaxes"}
MOST_TRIPS = 40

Env = dict[str, Variable]


Statement = Callable[["Body"], "bool | None"]
STATEMENTS: list[tuple[int, Statement]] = []


def statement(weight: int) -> Callable[[Statement], Statement]:
    """Registers a way to write a statement; it returns False when it wrote nothing."""

    def register(write: Statement) -> Statement:
        STATEMENTS.append((weight, write))
        return write

    return register


def makes_fresh_memory(code: str) -> bool:
    """Does the expression surely give an array that nothing else refers to?"""

    def fresh(e: ast.expr) -> bool:
        match e:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Constant():
                return True
            case ast.IfExp(body=a, orelse=b):
                return fresh(a) and fresh(b)
            case ast.Call(func=ast.Attribute(attr=attribute)):
                return attribute not in VIEWS
            case ast.Subscript(slice=ast.List()):
                return True
        return False

    return fresh(ast.parse(code, mode="eval").body)


class Body(Scope):
    """Writes the statements of one function."""

    def __init__(
        self, program: Program, env: Env, result: Kind, budget: int, foreign: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(program, env)
        self.result, self.budget = result, budget
        self.foreign = foreign
        """Names of the enclosing function: to be read only."""
        self.lines: list[str] = []
        self.level = 1
        self.locked: frozenset[str] = frozenset()
        """Names that exist where an enclosing loop starts."""
        self.pinned: set[str] = set()
        """Names that a nested function reads."""
        self.loops: list[str] = []
        """For each enclosing loop which exits its body may use: "break continue"."""
        self.trips = 1
        self.exits = 0
        self.alive = True

    # Bookkeeping ----------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.level + line)

    def assignable(self, name: str, kind: Kind) -> bool:
        v = self.env.get(name)
        if name in self.foreign or v is not None and v.frozen:
            return False
        return v is None or not (name in self.locked or name in self.pinned) or fits(kind, v.kind)

    def target(self, kind: Kind, owned: bool = True, anew: bool = False) -> str:
        """A name to assign a value of this kind to: one in use, or a new one."""
        able = [
            n
            for n in self.env
            if self.assignable(n, kind) and (owned or not self.env[n].owned or n not in self.locked)
        ]
        same = [n for n in able if type(self.env[n].kind) is type(kind)]
        if same and not anew and self.choose.chance(50):
            return self.choose.pick(same)
        if able and not anew and self.choose.chance(6):
            return self.choose.pick(able)
        pool = ODD_NAMES if self.choose.chance(7) else NAMES[type(kind)]
        free = [n for n in pool if n not in self.env and n not in self.foreign]
        return self.choose.pick(free) if free else self.program.fresh(NAMES[type(kind)][0])

    def bind(self, name: str, kind: Kind, owned: bool = True, frozen: bool = False) -> None:
        self.env[name] = Variable(kind, owned, frozen)

    def share(self, code: str) -> None:
        """An expression that may give a view was kept: its arrays are no longer this function's alone."""
        for n in {e.id for e in ast.walk(ast.parse(code)) if isinstance(e, ast.Name)}:
            v = self.env.get(n)
            if v is not None and isinstance(v.kind, (Array, Items, Table, Row)):
                self.env[n] = replace(v, owned=False)

    def keep(self, name: str, code: str, kind: Kind) -> None:
        """`name = code` was emitted."""
        fresh = isinstance(kind, (Scalar, Int, Flag)) or makes_fresh_memory(code)
        if not fresh:
            self.share(code)
        self.bind(name, kind, owned=fresh)

    def value(self, kind: Kind, depth: int = 2) -> str:
        return self.argument(kind, depth)

    def writable(self, rank: int | None = None) -> list[str]:
        return [
            n
            for n, v in self.env.items()
            if isinstance(v.kind, Array)
            and (rank is None or len(v.kind.shape) == rank)
            and not v.frozen
            and n not in self.foreign
            and (v.owned or self.program.hard and self.choose.chance(50))
        ]

    def changeable(self, kind: type[Kind]) -> list[str]:
        """Containers that may be changed."""
        return [
            n
            for n, v in self.env.items()
            if isinstance(v.kind, kind)
            and not v.frozen
            and n not in self.foreign
            and (v.owned or self.program.hard)
        ]

    # Blocks ---------------------------------------------------------------------------------------

    def statements(self, count: int) -> None:
        start = len(self.lines)
        for _ in range(count):
            if self.budget <= 0 or not self.alive:
                break
            self.statement()
        if len(self.lines) == start:
            self.assign_scalar()

    def statement(self) -> None:
        self.budget -= 1
        for _ in range(4):
            if self.choose.weighted(STATEMENTS)(self) is not False:
                return
        self.assign_scalar()

    @contextmanager
    def block(self) -> Iterator[None]:
        self.level += 1
        yield
        self.level -= 1

    def branch_of(self, before: Env, count: int) -> Env | None:
        """Emits one branch; the names after it, None when control does not get there."""
        self.env, self.alive = dict(before), True
        with self.block():
            self.statements(count)
        after = self.env if self.alive else None
        self.alive = True
        return after

    def merge(self, paths: list[Env | None]) -> None:
        alive = [p for p in paths if p is not None]
        self.alive = bool(alive)
        self.env = merged(alive) if alive else {}

    # Assignments ----------------------------------------------------------------------------------

    def assign_scalar(self) -> None:
        e = self.small()
        name = self.target(SCALAR)
        form = "{} = {}"
        if self.choose.chance(4):
            form = "{}: float = {}"
        elif self.choose.chance(4):
            other = self.target(SCALAR, anew=True)
            form = f"{other} = {form}"
            self.bind(other, SCALAR)
        self.emit(form.format(name, e))
        self.bind(name, SCALAR)

    # Arrays ---------------------------------------------------------------------------------------

    # Containers -----------------------------------------------------------------------------------

    # Branches and loops ---------------------------------------------------------------------------

    # Functions ------------------------------------------------------------------------------------

    # Other statements -----------------------------------------------------------------------------

    # The end --------------------------------------------------------------------------------------

    def finish(self) -> None:
        """The last `return`: of a scalar, one that depends on most of what is there."""
        if not self.alive:
            return
        if self.result != SCALAR:
            self.emit(f"return {self.value(self.result)}")
            return
        parts = []
        for n, v in self.env.items():
            if n in self.foreign and self.choose.chance(70) or self.choose.chance(15):
                continue
            match v.kind:
                case Scalar():
                    parts.append(n)
                case Array():
                    parts.append(
                        self.choose.pick(
                            (f"np.sum({n})", f"{n}.sum()", f"np.mean({n} * {n})", f"np.sum(np.sin({n}))")
                        )
                    )
                case Items(Scalar(), _):
                    parts.append(f"sum({n})")
                case Items(Array(), length) if length:
                    parts.append(f"np.sum({n}[{self.index(length)}])")
                case Table(Scalar(), keys) if keys:
                    parts.append(self.choose.pick((f"sum({n}.values())", f"{n}[{keys[0]!r}]")))
                case Row(items):
                    parts += [
                        f"{n}[{i}]" if k == SCALAR else f"np.sum({n}[{i}])" for i, k in enumerate(items)
                    ]
        if not parts:
            self.emit(f"return {self.small()}")
            return
        terms = [f"{self.choose.number(0.3, 1.3)} * {p}" if self.choose.chance(60) else p for p in parts]
        self.emit(f"return {' + '.join(terms)}")


def scalar_into(body: Body) -> str:
    """The name of a scalar that exists and may be added to."""
    names = [n for n in body.having(Scalar) if body.assignable(n, SCALAR)]
    if names and body.choose.chance(70):
        return body.choose.pick(names)
    name = body.program.fresh("s")
    body.emit(f"{name} = {body.small(1)}")
    body.bind(name, SCALAR)
    return name


def merged(paths: list[Env]) -> Env:
    """What is known where control comes from any of several paths."""
    first, *rest = paths
    out: Env = {}
    for n, v in first.items():
        kind: Kind | None = v.kind
        owned, frozen = v.owned, v.frozen
        for other in rest:
            if n not in other or kind is None:
                kind = None
                break
            kind = join(kind, other[n].kind)
            owned = owned and other[n].owned
            frozen = frozen and other[n].frozen
        if kind is not None:
            out[n] = Variable(kind, owned, frozen)
    return out
