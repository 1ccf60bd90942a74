"""Classes, named tuples, functions as values, and the less common ways to call and to build."""

from __future__ import annotations

from .body import MOST_TRIPS, Body, scalar_into, statement
from .kinds import SCALAR, Array, Arrow, Items, Row, Scalar, Table

HEADS = {
    "functools": "import functools",
    "Pair": "import collections\nPair = collections.namedtuple('Pair', ['re', 'im'])",
    "Point": """
import dataclasses

@dataclasses.dataclass
class Point:
    east: float
    north: float = 0.4

    def norm(self):
        return np.sqrt(1.0 + self.east * self.east + self.north ** 2)

    def moved(self, by):
        return Point(0.5 * self.east + by, north=self.north)
""",
    "Model": """
class Base:
    decay = 0.9

    def describe(self, t):
        return 0.6 * t + self.b

class Model(Base):
    def __init__(self, w, b=0.3):
        self.w = w
        self.b = b

    def step(self, h, v):
        if h > 0.913:
            return np.tanh(self.w * h) * self.decay
        return np.tanh(self.w * h + v) * self.decay + self.b

    def count(self):
        self.calls = 1 + getattr(self, 'calls', 0)
        return self.calls

    def __call__(self, t):
        return self.step(t, self.b) - self.describe(0.3 * t)

    def describe(self, t):
        return super().describe(t) * 0.7

    @property
    def scale(self):
        return self.w * 0.5

    @staticmethod
    def half(t):
        return 0.5 * t

    @classmethod
    def made(cls, w):
        return cls(w * cls.decay)
""",
}
"""What a module needs before its functions, by the word in their text that asks for it."""
UNARY = Arrow((SCALAR,), SCALAR)


@statement(2)
def named_tuple(body: Body) -> bool:
    if body.trips * 3 > MOST_TRIPS:
        return False
    p, s = body.program.fresh("z"), body.program.fresh("s")
    body.emit(f"{p} = Pair({body.small(1)}, {body.choose.pick(('', 'im='))}{body.small(1)})")
    if body.choose.chance(60):
        body.emit(f"for _ in range({body.integer(0, 3)}):")
        form = body.choose.pick(
            (
                "{0} = Pair({0}.re * 0.6 - 0.3 * {0}.im * {0}.im, {1} * {0}.im)",
                "{0} = {0}._replace(im=0.4 * {0}.re + {1})",
                "{0} = Pair(*({0}.im, {0}.re * {1}))",
            )
        )
        body.emit("    " + form.format(p, body.small(1, 1.0)))
    body.emit(f"{s} = {p}.re * {body.small(1, 1.0)} + {p}.im")
    body.bind(p, Row((SCALAR, SCALAR)), owned=False)
    body.bind(s, SCALAR)
    return True


@statement(2)
def data_class(body: Body) -> bool:
    p, s = body.program.fresh("point"), body.program.fresh("s")
    second = body.choose.pick(("", f", {body.small(1)}", f", north={body.small(0)}"))
    body.emit(f"{p} = Point({body.small(1)}{second})")
    match body.choose.integer(0, 3):
        case 0:
            body.emit(f"{p} = {p}.moved({body.small(1)})")
        case 1:
            body.emit(f"{p}.east {body.choose.pick(('=', '+=', '*='))} {body.small(1, 1.0)}")
        case 2:
            body.emit(f"if {body.condition()}:")
            body.emit(f"    {p}.north = {body.small(1)}")
    body.emit(f"{s} = 0.5 * {p}.norm() + {p}.north * {body.small(1, 1.0)}")
    body.bind(s, SCALAR)
    return True


@statement(2)
def model(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    m, s = body.program.fresh("model"), body.program.fresh("s")
    made = body.choose.pick(("Model({})", "Model({}, b={})", "Model.made({})", "Model(w={})"))
    body.emit(f"{m} = {made.format(body.small(1), body.small(1))}")
    body.emit(f"{s} = {body.small(0)}")
    body.bind(s, SCALAR)
    vectors = [n for n, v in body.env.items() if isinstance(v.kind, Array) and len(v.kind.shape) == 1]
    match body.choose.integer(0, 5):
        case 0 if vectors:
            body.emit(f"for e_ in {body.choose.pick(vectors)}:")
            body.emit(f"    {s} = {m}.step({s}, e_)")
        case 1:
            body.emit(f"{s} = {m}({s}) + {m}.scale * {body.small(1, 1.0)}")
        case 2:
            body.emit(f"{m}.w = {body.small(1)}")
            body.emit(f"{s} = {m}.step({s}, v={body.small(1)})")
        case 3 if body.program.hard:
            body.emit(f"{m}.count()")
            body.emit(f"{s} += 0.1 * {m}.count()")
        case 3:
            body.emit(f"{s} = {m}.half({s}) + Model.half({body.small(1)}) + {m}.decay * {m}.w")
        case 4:
            body.emit(f"for _ in range({body.integer(0, 3)}):")
            body.emit(f"    {m}.b = 0.4 * {m}.b + 0.3 * {s}")
            body.emit(f"    {s} = {m}.describe({s})")
        case _:
            f = body.program.fresh("bound")
            body.emit(f"{f} = {m}.step")
            body.emit(f"{s} = {f}({s}, {body.small(1)})")
    return True


@statement(3)
def functions_as_values(body: Body) -> bool:
    if body.trips * 3 > MOST_TRIPS:
        return False
    a, b = body.argument(UNARY, 1), body.argument(UNARY, 1)
    name = body.program.fresh("fs")
    match body.choose.integer(0, 4):
        case 0:
            body.emit(f"{name} = [{a}, {b}]")
            s = scalar_into(body)
            body.emit(f"for fn_ in {name}:")
            body.emit(f"    {s} = 0.5 * fn_({s}) + 0.1")
        case 1:
            body.emit(f"{name} = {{'a': {a}, 'b': {b}}}")
            s = scalar_into(body)
            body.emit(f"{s} = 0.5 * {name}['{body.choose.pick('ab')}']({s}) + 0.1")
        case 2:
            helpers = [h for h in body.program.helpers if len(h.parameters) > 1 and h.result == SCALAR]
            if not helpers:
                return False
            helper = body.choose.pick(helpers)
            first, second, *rest = helper.parameters
            if rest or first[1] != SCALAR or helper.rest:
                return False
            body.emit(f"{name} = functools.partial({helper.name}, {second[0]}={body.argument(second[1], 1)})")
            body.bind(name, UNARY, owned=False)
        case 3:
            body.emit(f"{name} = {a} if {body.condition()} else {b}")
            body.bind(name, UNARY, owned=False)
        case _:
            body.emit(f"{name} = (lambda k: lambda t: {body.small(1, 1.0)} * t + k)({body.small(1)})")
            body.bind(name, UNARY, owned=False)
    return True


@statement(3)
def built(body: Body) -> bool:
    """`map`, `zip`, `sorted`, nested comprehensions."""
    lists = [n for n, v in body.env.items() if isinstance(v.kind, Items) and v.kind.item == SCALAR]
    arrays = [n for n, v in body.env.items() if isinstance(v.kind, Array) and len(v.kind.shape) == 1]
    if not lists + arrays:
        return False
    n = body.choose.pick(lists + arrays)
    kind = body.env[n].kind
    length = kind.length if isinstance(kind, Items) else kind.shape[0] if isinstance(kind, Array) else 0
    name = body.target(Items(SCALAR, length), anew=True)
    other = body.choose.pick(lists + arrays)
    match body.choose.integer(0, 7):
        case 0:
            body.emit(f"{name} = list(map({body.argument(UNARY, 1)}, {n}))")
        case 1:
            body.emit(
                f"{name} = sorted({n}{body.choose.pick(('', ', reverse=True', ', key=lambda t: t * t'))})"
            )
        case 2:
            length = 0
            with body.bound(b=SCALAR, c=SCALAR):
                e = body.small(1)
            body.emit(f"{name} = [{e} for b, c in zip({n}, {other})]")
        case 3:
            length = 0
            with body.bound(b=SCALAR, c=SCALAR):
                e = body.small(1)
            body.emit(f"{name} = [{e} for b in {n} for c in {other}]")
        case 4:
            body.emit(f"{name} = [*{n}, {body.small(1)}]")
            length += 1
        case 5:
            s = scalar_into(body)
            body.emit(f"{s} = 0.4 * {s} + 0.1 * sum(map({body.argument(UNARY, 1)}, {n}))")
            return True
        case 6:
            s = scalar_into(body)
            body.emit(f"if any(b > {body.threshold()} for b in {n}):")
            body.emit(f"    {s} = 0.3 * {s} + 0.2 * len({n})")
            return True
        case _:
            key = body.choose.pick(("i % 2", "str(i)", "(i, 0)"))
            s = scalar_into(body)
            body.emit(f"{s} = 0.3 * {s} + 0.2 * sum({{{key}: 0.5 * b for i, b in enumerate({n})}}.values())")
            return True
    body.bind(name, Items(SCALAR, length))
    return True


@statement(2)
def star_call(body: Body) -> bool:
    """`g(*pair)`, `g(**options)`."""
    helpers = [h for h in body.program.helpers if h.result == SCALAR and not h.rest]
    if not helpers:
        return False
    helper = body.choose.pick(helpers)
    s = body.target(SCALAR)
    plain = [p for p in helper.parameters if not p[3]]
    if body.choose.chance(50):
        body.emit(f"{s} = {helper.name}(*({', '.join(body.argument(p[1], 1) for p in plain)},))")
    else:
        given = ", ".join(f"{p[0]!r}: {body.argument(p[1], 1)}" for p in helper.parameters[1:])
        first = body.argument(helper.parameters[0][1], 1)
        body.emit(f"{s} = {helper.name}({first}, **{{{given}}})")
    body.bind(s, SCALAR)
    return True


@statement(3)
def write_several(body: Body) -> bool:
    """Element targets in tuples and chains."""
    arrays = [n for n in body.writable(1)]
    lists = [n for n in body.changeable(Items) if getattr(body.env[n].kind, "length", 0) > 1]
    lists = [n for n in lists if getattr(body.env[n].kind, "item", None) == SCALAR]
    if not arrays + lists:
        return False
    w = body.choose.pick(arrays + lists)
    kind = body.env[w].kind
    length = kind.shape[0] if isinstance(kind, Array) else kind.length if isinstance(kind, Items) else 0
    i, j = body.index(length), body.index(length)
    match body.choose.integer(0, 4):
        case 0 | 1:
            body.emit(f"{w}[{i}], {w}[{j}] = {w}[{j}], {w}[{i}]")
        case 2:
            body.emit(f"{w}[{i}] = {w}[{j}] = {body.small(1)}")
        case 3:
            s = body.target(SCALAR)
            body.emit(f"{s}, {w}[{i}] = {w}[{j}], {body.small(1)}")
            body.bind(s, SCALAR)
        case _:
            if w in lists:
                return False
            places = [body.choose.integer(0, length - 1) for _ in range(3)]
            body.emit(f"np.add.at({w}, {places}, {body.small(1, 0.5)})")
    return True


@statement(2)
def counter(body: Body) -> bool:
    """A nested function with a `nonlocal` count."""
    if body.level > 2 or not body.program.hard:
        return False
    f, k = body.program.fresh("tick"), body.program.fresh("ticks")
    s = scalar_into(body)
    body.emit(f"{k} = 0")
    body.emit(f"def {f}(t):")
    body.emit(f"    nonlocal {k}")
    body.emit(f"    {k} += 1")
    body.emit(f"    return 0.6 * t + 0.1 * {k}")
    body.emit(f"{s} = {f}({f}({s}))")
    return True


@statement(2)
def collector(body: Body) -> bool:
    """A nested function that changes a list of the outer one."""
    if body.level > 2 or not body.program.hard:
        return False
    f, xs = body.program.fresh("push"), body.program.fresh("xs")
    body.emit(f"{xs} = []")
    body.emit(f"def {f}(t):")
    body.emit(f"    {xs}.append(t * {body.small(1, 1.0)})")
    body.emit(f"{f}({body.small(1)})")
    body.emit(f"{f}({body.small(1)})")
    body.bind(xs, Items(SCALAR, 2), frozen=True)
    return True


@statement(1)
def discard(body: Body) -> bool:
    """`del` and `pop` of keys."""
    names = [n for n in body.changeable(Table) if n not in body.locked and n not in body.pinned]
    if not names:
        return False
    n = body.choose.pick(names)
    kind = body.env[n].kind
    assert isinstance(kind, Table)
    if len(kind.keys) < 2 or not isinstance(kind.item, Scalar):
        return False
    key = kind.keys[0]
    if body.choose.chance(50):
        body.emit(f"del {n}[{key!r}]")
    else:
        s = body.target(SCALAR, anew=True)
        body.emit(f"{s} = {n}.pop({key!r})")
        body.bind(s, SCALAR)
    body.bind(n, Table(kind.item, kind.keys[1:]))
    return True
