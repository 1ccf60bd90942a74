"""Random expressions: scalars, arrays, conditions and indices, over the variables of a scope.

Every expression comes with an estimate of how large its value may get; what would grow too large is squashed,
and functions are only called where they are smooth, so that finite differences are a reliable judge.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from .choices import Choices
from .kinds import SCALAR, Array, Arrow, Flag, Int, Items, Kind, Row, Scalar, Table, Variable

LIMIT = 3.0
"""Variables hold numbers of about this size at most."""
KEYS = ("u", "v", "rate", "mass")
SHAPES = ((3,), (3,), (3,), (2,), (4,), (2, 3), (3, 3), (3, 2))
UNARY = (
    "np.sin({})",
    "np.cos({})",
    "np.tanh({})",
    "np.arctan({})",
    "np.exp(-np.abs({}))",
    "np.sqrt(1.0 + ({}) ** 2)",
    "np.log(1.5 + np.square({}))",
    "1 / (1 + np.exp(-({})))",
    "np.abs({})",
    "np.log1p(np.abs({}))",
    "np.exp(np.tanh({}))",
    "np.arcsinh({})",
)
MATH = (
    "math.sin({})",
    "math.cos({})",
    "math.tanh({})",
    "math.atan({})",
    "math.exp(-abs({}))",
    "math.sqrt(1.0 + ({}) * ({}))",
    "math.log(2.0 + math.cos({}))",
    "abs({})",
    "math.hypot({}, 1.3)",
)


class Text(NamedTuple):
    code: str
    size: float


class Helper(NamedTuple):
    """A function of the module: its parameters as (name, kind, may be left out, keyword only)."""

    name: str
    parameters: tuple[tuple[str, Kind, bool, bool], ...]
    rest: bool
    """Takes further scalars, `*rest`."""
    result: Kind


@dataclass
class Program:
    """What the functions of one module share."""

    choose: Choices
    hard: bool = False
    """May write through views, aliases and captured names and into arguments; some of that may be refused."""
    helpers: list[Helper] = field(default_factory=list)
    count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def fresh(self, base: str) -> str:
        return f"{base}{next(self.count)}"


Rule = tuple[int, Callable[["Scope", int], "Text"]]
ArrayRule = tuple[int, Callable[["Scope", tuple[int, ...], int], "Text"]]
NUMBERS: list[Rule] = []
ARRAYS: list[ArrayRule] = []


class Scope:
    """Expressions over the variables `env` of a scope."""

    def __init__(self, program: Program, env: dict[str, Variable]) -> None:
        self.program, self.choose, self.env = program, program.choose, env

    @contextmanager
    def bound(self, **kinds: Kind) -> Iterator[None]:
        """Variables of a comprehension or lambda, for its inside only."""
        outer = self.env
        self.env = {**outer, **{n: Variable(k, owned=False, frozen=True) for n, k in kinds.items()}}
        yield
        self.env = outer

    def having(self, kind: type[Kind]) -> list[str]:
        return [n for n, v in self.env.items() if isinstance(v.kind, kind)]

    # Scalars --------------------------------------------------------------------------------------

    def scalar(self, depth: int = 2) -> Text:
        if depth <= 0:
            return self.leaf()
        code, size = self.choose.weighted(NUMBERS)(self, depth)
        return self.squashed(Text(code, size), 12.0)

    def small(self, depth: int = 2, limit: float = LIMIT) -> str:
        """A scalar expression that is not larger than `limit`."""
        return self.squashed(self.scalar(depth), limit).code

    def squashed(self, e: Text, limit: float) -> Text:
        if e.size <= limit:
            return e
        if e.size > 3 * limit or self.choose.chance(30):
            return Text(f"{limit / e.size:.2g} * ({e.code})", limit)
        return Text(
            self.choose.pick(("np.tanh({})", "np.sin({})", "np.arctan({})")).format(e.code), min(limit, 1.6)
        )

    def two(self, depth: int) -> tuple[Text, Text]:
        """Two scalar expressions, hardly ever the same one."""
        a, b = self.scalar(depth), self.scalar(depth)
        for _ in range(3):
            if a.code == b.code:
                b = self.scalar(depth)
        return a, b

    def constant(self) -> Text:
        c = self.choose.number(-1.5, 1.5)
        return Text(str(c), abs(c))

    def leaf(self) -> Text:
        options = list(self.leaves())
        if not options or self.choose.chance(10):
            return self.constant()
        scalars = [o for o in options if o.code.isidentifier()]
        if scalars and self.choose.chance(60):
            return self.choose.pick(scalars)
        return self.choose.pick(options)

    def leaves(self) -> Iterator[Text]:
        for n, v in self.env.items():
            match v.kind:
                case Scalar():
                    yield Text(n, LIMIT)
                case Array((length,)):
                    yield Text(f"{n}[{self.index(length)}]", LIMIT)
                case Array((rows, columns)):
                    form = self.choose.pick(("{}[{}, {}]", "{}[{}, {}]", "{}[{}][{}]"))
                    yield Text(form.format(n, self.index(rows), self.index(columns)), LIMIT)
                case Items(Scalar(), length) if length:
                    yield Text(f"{n}[{self.index(length)}]", LIMIT)
                case Items(Array((size,)), length) if length:
                    yield Text(f"{n}[{self.index(length)}][{self.index(size)}]", LIMIT)
                case Table(Scalar(), keys) if keys:
                    yield Text(f"{n}[{self.choose.pick(keys)!r}]", LIMIT)
                case Table(Array((size,)), keys) if keys:
                    yield Text(f"{n}[{self.choose.pick(keys)!r}][{self.index(size)}]", LIMIT)
                case Row(items):
                    for i, k in enumerate(items):
                        if k == SCALAR:
                            yield Text(f"{n}[{i}]", LIMIT)
                case Int(_, high) if self.choose.chance(30):
                    yield Text(n, float(high))

    def call(self, helper: Helper, depth: int) -> str:
        parts: list[str] = []
        by_name = False
        for name, kind, optional, keyword in helper.parameters:
            if optional and self.choose.chance(35):
                by_name = True
                continue
            if not (keyword or by_name) and not helper.rest and self.choose.chance(15):
                by_name = True
            text = self.argument(kind, depth)
            parts.append(f"{name}={text}" if keyword or by_name else text)
        if helper.rest and not by_name:
            positional = sum(not p[3] for p in helper.parameters)
            more = [self.small(0) for _ in range(self.choose.integer(0, 2))]
            parts[positional:positional] = more
        return f"{helper.name}({', '.join(parts)})"

    def argument(self, kind: Kind, depth: int) -> str:
        match kind:
            case Scalar():
                return self.small(depth)
            case Int(low, high):
                return self.integer(low, high)
            case Flag():
                return self.condition()
            case Array(shape):
                return self.squashed(self.array(shape, depth), LIMIT).code
            case Items(item, length):
                known = [
                    n
                    for n, v in self.env.items()
                    if isinstance(v.kind, Items) and v.kind.item == item and v.kind.length >= length
                ]
                if known and self.choose.chance(80):
                    return self.choose.pick(known)
                return f"[{', '.join(self.argument(item, depth) for _ in range(length))}]"
            case Table(item, keys):
                same = [n for n, v in self.env.items() if v.kind == kind]
                if same and self.choose.chance(80):
                    return self.choose.pick(same)
                return "{" + ", ".join(f"{k!r}: {self.argument(item, depth)}" for k in keys) + "}"
            case Row(items):
                same = [n for n, v in self.env.items() if v.kind == kind]
                if same and self.choose.chance(80):
                    return self.choose.pick(same)
                return f"({', '.join(self.argument(k, depth) for k in items)},)"
            case Arrow(parameters, result):
                known = [n for n, v in self.env.items() if v.kind == kind]
                if parameters == (SCALAR,) and result == SCALAR:
                    known += [h.name for h in self.program.helpers if unary_helper(h)]
                    known += ["np.sin", "np.tanh", "math.cos", "np.arctan", "abs"]
                if known and self.choose.chance(75):
                    return self.choose.pick(known)
                names = "tuvw"[: len(parameters)]
                with self.bound(**dict(zip(names, parameters, strict=True))):
                    return f"lambda {', '.join(names)}: {self.argument(result, depth)}"
        raise AssertionError(kind)

    # Arrays ---------------------------------------------------------------------------------------

    def some_shape(self) -> tuple[int, ...]:
        shapes = [v.kind.shape for v in self.env.values() if isinstance(v.kind, Array)]
        if shapes and self.choose.chance(85):
            return self.choose.pick(shapes)
        return self.choose.pick(SHAPES)

    def array(self, shape: tuple[int, ...], depth: int = 2) -> Text:
        if depth <= 0:
            return self.array_leaf(shape)
        return self.squashed(self.choose.weighted(ARRAYS)(self, shape, depth), 12.0)

    def array_leaf(self, shape: tuple[int, ...]) -> Text:
        options = list(self.array_leaves(shape))
        if options and self.choose.chance(90):
            return Text(self.choose.pick(options), LIMIT)
        return self.creation(shape, 1)

    def array_leaves(self, shape: tuple[int, ...]) -> Iterator[str]:
        for n, v in self.env.items():
            match v.kind:
                case Array(s) if s == shape:
                    yield n
                    yield n
                    if len(shape) == 1:
                        yield f"{n}[::-1]"
                        yield self.choose.pick(
                            (f"np.flip({n})", f"np.roll({n}, 1)", f"{n}[{self.gather(shape[0], shape[0])}]")
                        )
                    elif shape[0] == shape[1]:
                        yield f"{n}.T"
                case Array((length,)) if len(shape) == 1 and length > shape[0]:
                    at = self.choose.integer(0, length - shape[0])
                    yield f"{n}[{at or ''}:{at + shape[0]}]"
                    yield f"{n}[{self.gather(length, shape[0])}]"
                case Array((length,)) if shape == (1, length):
                    yield self.choose.pick(
                        (f"{n}[None, :]", f"{n}.reshape(1, -1)", f"np.expand_dims({n}, 0)")
                    )
                case Array((length,)) if shape == (length, 1):
                    yield self.choose.pick((f"{n}[:, None]", f"{n}.reshape(-1, 1)"))
                case Array((rows, columns)) if len(shape) == 1:
                    if columns == shape[0]:
                        yield f"{n}[{self.index(rows)}]"
                        yield f"{n}[{self.index(rows)}, :]"
                    if rows == shape[0]:
                        yield f"{n}[:, {self.index(columns)}]"
                    if rows * columns == shape[0]:
                        yield self.choose.pick((f"{n}.ravel()", f"{n}.reshape(-1)", f"{n}.flatten()"))
                case Array((rows, columns)) if shape == (columns, rows):
                    yield self.choose.pick(
                        (f"{n}.T", f"np.transpose({n})", f"{n}.reshape({columns}, {rows})")
                    )
                case Array((rows, columns)) if shape[1] <= columns and shape[0] <= rows:
                    yield f"{n}[:{shape[0]}, {columns - shape[1]}:]"
                case Items(Scalar(), length) if len(shape) == 1 and length >= shape[0]:
                    yield f"np.array({n}[:{shape[0]}])"
                case Items(Array(s), length) if s == shape and length:
                    yield f"{n}[{self.index(length)}]"
                case Table(Array(s), keys) if s == shape and keys:
                    yield f"{n}[{self.choose.pick(keys)!r}]"
                case Row(items):
                    for i, k in enumerate(items):
                        if k == Array(shape):
                            yield f"{n}[{i}]"

    def gather(self, length: int, count: int) -> str:
        return str([self.choose.integer(0, length - 1) for _ in range(count)])

    def creation(self, shape: tuple[int, ...], depth: int) -> Text:
        size = str(shape[0]) if len(shape) == 1 and self.choose.chance(60) else str(shape)
        match self.choose.integer(0, 4):
            case 0:
                return Text(f"np.ones({size})", 1.0)
            case 1:
                return Text(f"np.full({size}, {self.small(depth - 1)})", LIMIT)
            case 2 if len(shape) == 1:
                return Text(
                    f"np.linspace({self.choose.number(-1, 0)}, {self.choose.number(0, 1)}, {shape[0]})", 1.0
                )
            case 3 if len(shape) == 1:
                with self.bound(i=Int(0, shape[0] - 1)):
                    e = self.small(depth - 1)
                return Text(f"np.array([{e} for i in range({shape[0]})])", LIMIT)
            case _:
                if len(shape) == 1:
                    return Text(
                        f"np.array([{', '.join(self.small(depth - 1) for _ in range(shape[0]))}])", LIMIT
                    )
                rows = [f"[{', '.join(self.small(0) for _ in range(shape[1]))}]" for _ in range(shape[0])]
                return Text(f"np.array([{', '.join(rows)}])", LIMIT)

    # Integers and conditions ----------------------------------------------------------------------

    def index(self, length: int) -> str:
        inside = [
            n
            for n, v in self.env.items()
            if isinstance(v.kind, Int) and 0 <= v.kind.low and v.kind.high < length
        ]
        others = [n for n, v in self.env.items() if isinstance(v.kind, Int) and n not in inside]
        if inside and self.choose.chance(65):
            return self.choose.pick(inside)
        if others and self.choose.chance(30):
            return f"({self.choose.pick(others)} + {self.choose.integer(0, 2)}) % {length}"
        if length > 1 and self.choose.chance(6):
            return f"int({self.comparison()})"
        return str(
            self.choose.integer(-length, length - 1)
            if self.choose.chance(30)
            else self.choose.integer(0, length - 1)
        )

    def integer(self, low: int, high: int) -> str:
        known = [
            n
            for n, v in self.env.items()
            if isinstance(v.kind, Int) and low <= v.kind.low and v.kind.high <= high
        ]
        if known and self.choose.chance(60):
            return self.choose.pick(known)
        wider = [n for n, v in self.env.items() if isinstance(v.kind, Int) and n not in known]
        if wider and self.choose.chance(40):
            return f"{low} + {self.choose.pick(wider)} % {high - low + 1}"
        return str(self.choose.integer(low, high))

    def threshold(self) -> str:
        return str(self.choose.number(-1.0, 1.2))

    def comparison(self) -> str:
        """Of two numbers."""
        a = self.leaf() if self.choose.chance(60) else self.scalar(1)
        match self.choose.integer(0, 5):
            case 0 | 1:
                return f"({a.code}) > {self.threshold()}"
            case 2 | 3:
                return f"({a.code}) < {self.threshold()}"
            case 4:
                return f"{self.choose.number(-2.0, -0.2)} < ({a.code}) <= {self.choose.number(0.1, 2.0)}"
            case _:
                b = self.leaf().code
                return f"({a.code}) >= ({b if b != a.code else self.threshold()})"

    def condition(self) -> str:
        ints = self.having(Int)
        flags = self.having(Flag)
        match self.choose.integer(0, 9):
            case 0 | 1 | 2:
                return self.comparison()
            case 3 | 4 if ints:
                n = self.choose.pick(ints)
                form = self.choose.pick(
                    ("{} % 2 == 0", "{} == 1", "{} > 1", "{} in (0, 2)", "{} != 2", "{}", "{} < 3")
                )
                return form.format(n)
            case 5 if flags:
                return self.choose.pick(("{}", "not {}")).format(self.choose.pick(flags))
            case 6:
                return f"({self.comparison()}) {self.choose.pick(('and', 'or'))} ({self.condition()})"
            case 7:
                return f"not ({self.comparison()})"
            case 8 if arrays := self.having(Array):
                form = self.choose.pick(
                    ("np.any({} > {})", "({} > {}).all()", "np.all({} < {})", "({} < {}).any()")
                )
                return form.format(self.choose.pick(arrays), self.threshold())
            case 9 if lists := self.having(Items):
                return f"len({self.choose.pick(lists)}) > {self.choose.integer(1, 4)}"
            case _:
                return self.comparison()


def unary_helper(h: Helper) -> bool:
    needed = [p for p in h.parameters if not p[2]]
    return h.result == SCALAR and [p[1] for p in needed] == [SCALAR] and not needed[0][3]


NumberMaker = Callable[[Scope, int], Text]
ArrayMaker = Callable[[Scope, tuple[int, ...], int], Text]


def number(weight: int) -> Callable[[NumberMaker], NumberMaker]:
    """Registers a way to make a number: (scope, depth) -> expression."""

    def register(made: NumberMaker) -> NumberMaker:
        NUMBERS.append((weight, made))
        return made

    return register


def array(weight: int) -> Callable[[ArrayMaker], ArrayMaker]:
    """Registers a way to make an array: (scope, shape, depth) -> expression."""

    def register(made: ArrayMaker) -> ArrayMaker:
        ARRAYS.append((weight, made))
        return made

    return register
