"""Branches, early exits, `match`, `try` and `with`."""

from __future__ import annotations

from .body import Body, Env, scalar_into, statement
from .kinds import SCALAR, Flag, Int, Variable


@statement(8)
def branch(body: Body) -> None:
    before = dict(body.env)
    paths: list[Env | None] = []
    body.emit(f"if {body.condition()}:")
    paths.append(body.branch_of(before, body.choose.integer(1, 3)))
    while body.choose.chance(20):
        body.env = dict(before)
        body.emit(f"elif {body.condition()}:")
        paths.append(body.branch_of(before, body.choose.integer(1, 2)))
    if body.choose.chance(50):
        body.emit("else:")
        paths.append(body.branch_of(before, body.choose.integer(1, 3)))
    else:
        paths.append(before)
    body.merge(paths)


@statement(3)
def one_branch(body: Body) -> None:
    """A variable that exists on one path only, used later on the same path."""
    flag = body.program.fresh("has")
    name = body.program.fresh("opt")
    body.emit(f"{flag} = bool({body.condition()})")
    body.bind(flag, Flag(), frozen=True)
    body.emit(f"if {flag}:")
    with body.block():
        body.emit(f"{name} = {body.small()}")
    body.statements(body.choose.integer(0, 1))
    if not body.alive:
        return
    out = scalar_into(body)
    body.emit(f"if {flag}:")
    with body.block():
        body.emit(f"{out} = 0.5 * {out} + {name} * {body.small(1, 1.0)}")


@statement(6)
def exit(body: Body) -> bool:
    """A guarded `break`, `continue` or `return`, at times with an `else`."""
    ways = ["return"]
    if body.loops:
        ways = [*body.loops[-1].split() * 2, "return"]
    if "return" in ways and body.level > 1 and not body.loops and body.choose.chance(50):
        return False
    way = body.choose.pick(ways)
    before = dict(body.env)
    body.emit(f"if {body.condition()}:")
    with body.block():
        if body.choose.chance(40):
            body.statements(1)
        if body.alive:
            body.emit(way if way != "return" else f"return {body.value(body.result)}")
    body.exits += 1
    body.env, body.alive = before, True
    if body.choose.chance(15):
        body.emit("else:")
        body.merge([body.branch_of(before, body.choose.integer(1, 2))])
    return True


@statement(2)
def match(body: Body) -> bool:
    ints = body.having(Int)
    before = dict(body.env)
    paths: list[Env | None] = []
    if ints and body.choose.chance(60):
        body.emit(f"match {body.choose.pick(ints)}:")
        cases = [body.choose.pick(("0", "1", "0 | 2")), body.choose.pick(("2", "3"))]
    else:
        a, b = body.program.fresh("m"), body.program.fresh("m")
        body.emit(f"match ({body.integer(0, 1)}, {body.small(1)}):")
        cases = [f"(0, {a})", f"(1, {b}) if {b} > {body.threshold()}"]
    with body.block():
        for c in cases:
            body.env = dict(before)
            body.emit(f"case {c}:")
            inside = dict(before)
            for n in ("m" + part.split("m")[1].split(")")[0] for part in [c] if "m" in part):
                inside[n] = Variable(SCALAR)
            paths.append(body.branch_of(inside, body.choose.integer(1, 2)))
        if body.choose.chance(60):
            body.emit("case _:")
            paths.append(body.branch_of(before, 1))
        else:
            paths.append(before)
    body.merge(paths)
    return True


@statement(2)
def guarded(body: Body) -> None:
    """`try` that does not fire, `try`/`finally`, `with`."""
    before = dict(body.env)
    match body.choose.integer(0, 3):
        case 0:
            body.emit("try:")
            after = body.branch_of(before, body.choose.integer(1, 2))
            body.env, body.alive = dict(before), True
            error = body.choose.pick(("KeyError", "(ValueError, IndexError)", "ZeroDivisionError as error"))
            body.emit(f"except {error}:")
            with body.block():
                body.emit(f"LOG.append('never {body.program.fresh('')}')")
            body.merge([before, after])
        case 1:
            body.emit("try:")
            after = body.branch_of(before, body.choose.integer(1, 2))
            body.emit("finally:")
            with body.block():
                body.emit(f"LOG.append({body.program.fresh('final')!r})")
            body.merge([after])
        case _:
            body.emit(
                body.choose.pick(
                    (
                        "with np.errstate(divide='ignore'):",
                        "with np.errstate(over='ignore', invalid='ignore'):",
                    )
                )
            )
            body.merge([body.branch_of(before, body.choose.integer(1, 2))])
