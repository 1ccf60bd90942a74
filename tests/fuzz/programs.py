"""Random programs: the text of a module with a function `f`, its helpers, and `ARGS` to call it with.

`program(Choices.seeded(7))` is a text; `programs()` is a hypothesis strategy for the same, whose failures
shrink.
"""

from __future__ import annotations

import ast
import re

import numpy as np
from hypothesis import strategies as st

from . import assignments, branches, containers, functions, idioms, loops, objects, scalars, vectors, writes
from .body import Body
from .choices import Choices
from .kinds import SCALAR, Array, Arrow, Flag, Int, Items, Kind, Row, Scalar, Table, Variable
from .scope import KEYS, SHAPES, Helper, Program

HEAD = "import math\nimport numpy as np\n\nLOG = []\nRATE = 0.613\n"
PARTS = (scalars, vectors, assignments, writes, containers, branches, loops, functions, idioms, objects)
"""Importing these files registers what programs are made of."""
UNARY = Arrow((SCALAR,), SCALAR)


def program(choose: Choices, size: int = 10) -> str:
    """The text of a program of about `size` statements in its main function."""
    shared = Program(choose, hard=choose.chance(5))
    parts: list[str] = []
    for _ in range(choose.weighted([(4, 0), (3, 1), (2, 2), (1, 3)])):
        parts.append(helper(shared))
    parameters = arguments(choose)
    env = {n: Variable(k, owned=False, frozen=isinstance(k, Int)) for n, k in parameters}
    if choose.chance(20):
        env["RATE"] = Variable(SCALAR, owned=False, frozen=True)
    body = Body(shared, env, SCALAR, choose.integer(3, 2 * size))
    body.statements(size)
    body.finish()
    parts.append("\n".join([f"def f({', '.join(n for n, _ in parameters)}):", *body.lines]))
    values = ", ".join(literal(choose, k) for _, k in parameters)
    parts.append(f"ARGS = ({values},)")
    text = "\n\n".join(parts)
    heads = [head for word, head in objects.HEADS.items() if re.search(rf"\b{word}\b", text)]
    return ast.unparse(ast.parse("\n\n".join([HEAD, *heads, text]))) + "\n"


@st.composite
def programs(draw: st.DrawFn, size: int = 10) -> str:
    return program(Choices(lambda low, high: draw(st.integers(low, high))), size)


def arguments(choose: Choices) -> list[tuple[str, Kind]]:
    """The parameters of `f`."""
    optional: list[tuple[int, tuple[str, Kind]]] = [
        (6, ("a", Array(choose.pick(((3,), (3,), (4,), (2,)))))),
        (4, ("y", SCALAR)),
        (3, ("m", Array(choose.pick(((2, 3), (3, 3), (3, 2)))))),
        (3, ("p", Items(SCALAR, choose.integer(2, 3)))),
        (3, ("d", Table(SCALAR, tuple(choose.sample(KEYS, 2))))),
        (1, ("layers", Items(Array((3,)), 2))),
        (1, ("model", Table(Array(choose.pick(SHAPES)), KEYS[:2]))),
        (2, ("both", Row((SCALAR, Array((3,)))))),
        (5, ("n", Int(*[choose.integer(0, 4)] * 2))),
        (1, ("verbose", Flag())),
    ]
    out: list[tuple[str, Kind]] = [("x", SCALAR if choose.chance(75) else Array(choose.pick(SHAPES)))]
    for _ in range(choose.integer(0, 4)):
        option = choose.weighted([o for o in optional if o[1] not in out])
        out.append(option)
    return out


def literal(choose: Choices, kind: Kind) -> str:
    """The text of a value of this kind."""

    def number() -> float:
        return choose.number(-1.4, 1.5)

    match kind:
        case Scalar():
            return str(number())
        case Int(low, high):
            return str(choose.integer(low, high))
        case Flag():
            return str(choose.chance(50))
        case Array(shape):
            values = np.array([number() for _ in range(int(np.prod(shape)))]).reshape(shape)
            return f"np.array({values.tolist()})"
        case Items(item, length):
            return f"[{', '.join(literal(choose, item) for _ in range(length))}]"
        case Table(item, keys):
            return "{" + ", ".join(f"{k!r}: {literal(choose, item)}" for k in keys) + "}"
        case Row(items):
            return f"({', '.join(literal(choose, k) for k in items)},)"
        case Arrow():
            return "math.sin"
    raise AssertionError(kind)


def helper(shared: Program) -> str:
    """The text of a function of the module, which is added to what programs may call."""
    choose = shared.choose
    name = shared.fresh(choose.pick(("g", "helper", "_h", "combine")))
    if choose.chance(20):
        return recursive(shared, name)
    kinds: tuple[Kind, ...] = (SCALAR, SCALAR, Array(choose.pick(SHAPES)), Int(0, 3), Items(SCALAR, 2), UNARY)
    parameters: list[tuple[str, Kind, bool, bool]] = [
        ("u0", SCALAR if choose.chance(70) else Array((3,)), False, False)
    ]
    shown = ["u0"]
    for i in range(1, choose.integer(1, 4)):
        kind = choose.pick(kinds)
        optional = kind in (SCALAR, Int(0, 3)) and (choose.chance(40) or parameters[-1][2])
        if parameters[-1][2] and not optional:
            kind, optional = SCALAR, True
        parameters.append((f"u{i}", kind, optional, False))
        shown.append(f"u{i}={literal(choose, kind)}" if optional else f"u{i}")
    rest = choose.chance(15) and not any(p[2] for p in parameters)
    if rest:
        shown.append("*rest")
    if choose.chance(20):
        parameters.append(("scale", SCALAR, True, True))
        shown += (["*"] if not rest else []) + [f"scale={literal(choose, SCALAR)}"]
    shapes: tuple[tuple[int, ...], ...] = ((3,), (2,), (2, 3))
    results: list[tuple[int, Kind]] = [(6, SCALAR), (3, Array(choose.pick(shapes)))]
    results += [(2, Row((SCALAR, SCALAR))), (1, Row((SCALAR, Array((3,)))))]
    result = choose.weighted(results)
    env = {n: Variable(k, owned=False, frozen=isinstance(k, Int)) for n, k, _, _ in parameters}
    if rest:
        env["rest"] = Variable(Items(SCALAR, 0), owned=False, frozen=True)
    body = Body(shared, env, result, choose.integer(1, 7))
    body.trips = 5
    body.statements(5)
    body.finish()
    shared.helpers.append(Helper(name, tuple(parameters), rest, result))
    return "\n".join([f"def {name}({', '.join(shown)}):", *body.lines])


def recursive(shared: Program, name: str) -> str:
    choose = shared.choose
    env = {"u0": Variable(SCALAR), "depth": Variable(Int(0, 3), frozen=True)}
    body = Body(shared, env, SCALAR, choose.integer(1, 4))
    body.trips = 8
    body.emit("if depth <= 0:")
    with body.block():
        body.emit(f"return {body.small(1)}")
    body.statements(choose.integer(0, 2))
    if body.alive:
        again = f"{name}({body.small(1)}, depth - 1)"
        if choose.chance(40):
            again = f"{again} * {body.small(1, 1.0)} + 0.4 * {name}({body.small(0)}, depth - 2)"
        body.emit(f"return 0.7 * {again}")
    shared.helpers.append(
        Helper(name, (("u0", SCALAR, False, False), ("depth", Int(0, 3), False, False)), False, SCALAR)
    )
    return "\n".join([f"def {name}(u0, depth):", *body.lines])
