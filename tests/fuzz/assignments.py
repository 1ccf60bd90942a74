"""Statements that assign numbers, and those that only have effects."""

from __future__ import annotations

from .body import Body, statement
from .kinds import SCALAR, Array, Flag, Int, Items, Kind, Scalar, Table


@statement(14)
def assign_scalar(body: Body) -> None:
    body.assign_scalar()


@statement(8)
def augment_scalar(body: Body) -> bool:
    names = [n for n in body.having(Scalar) if body.assignable(n, SCALAR)]
    if not names:
        return False
    name = body.choose.pick(names)
    match body.choose.integer(0, 5):
        case 0 | 1 | 2:
            e = body.small() if body.trips < 5 else f"0.2 * ({body.small()})"
            body.emit(f"{name} += {e}")
        case 3:
            body.emit(f"{name} -= {body.small(2, 1.0)}")
        case 4:
            body.emit(f"{name} *= {body.small(2, 1.0)}")
        case _:
            body.emit(f"{name} /= 1.3 + abs({body.small(1)})")
    body.bind(name, SCALAR)
    return True


@statement(5)
def assign_several(body: Body) -> bool:
    scalars = [n for n in body.having(Scalar) if body.assignable(n, SCALAR)]
    match body.choose.integer(0, 6):
        case 0 | 1 if len(scalars) > 1:
            a, b = body.choose.sample(scalars, 2)
            form = body.choose.pick(("{1}, {0}", "{1}, {0}", "{1}, 0.5 * {0}", "({1}, {0})"))
            body.emit(f"{a}, {b} = {form.format(a, b)}")
            body.bind(a, SCALAR)
            body.bind(b, SCALAR)
        case 2 if len(scalars) > 2:
            a, b, c = body.choose.sample(scalars, 3)
            body.emit(f"{a}, {b}, {c} = {b}, {body.small(1)}, {a}")
            for n in (a, b, c):
                body.bind(n, SCALAR)
        case 3:
            return unpack_sequence(body)
        case 4:
            a, b, c = (body.program.fresh("p") for _ in range(3))
            body.emit(f"({a}, {b}), {c} = ({body.small(1)}, {body.small(1)}), {body.small(1)}")
            for n in (a, b, c):
                body.bind(n, SCALAR)
        case _:
            e, f = body.small(1), body.small(1)
            a = body.target(SCALAR)
            b = body.target(SCALAR, anew=True)
            body.emit(f"{a}, {b} = {e}, {f}")
            body.bind(a, SCALAR)
            body.bind(b, SCALAR)
    return True


def unpack_sequence(body: Body) -> bool:
    """`a, *rest = items` and the like."""
    exact = [n for n, v in body.env.items() if isinstance(v.kind, Array) and len(v.kind.shape) == 1]
    longer = [
        n
        for n, v in body.env.items()
        if isinstance(v.kind, Items) and v.kind.item == SCALAR and v.kind.length > 1
    ]
    if exact and body.choose.chance(50):
        n = body.choose.pick(exact)
        kind = body.env[n].kind
        assert isinstance(kind, Array)
        names = [body.program.fresh("p") for _ in range(kind.shape[0])]
        body.emit(f"{', '.join(names)}, = {n}")
        for m in names:
            body.bind(m, SCALAR)
        return True
    if not longer:
        return False
    n = body.choose.pick(longer)
    kind = body.env[n].kind
    assert isinstance(kind, Items)
    a, b = body.program.fresh("p"), body.program.fresh("p")
    rest = body.target(Items(SCALAR, kind.length - 2), anew=True)
    body.emit(f"{a}, *{rest}, {b} = {n}" if body.choose.chance(60) else f"{a}, {b}, *{rest} = {n}")
    body.bind(a, SCALAR)
    body.bind(b, SCALAR)
    body.bind(rest, Items(SCALAR, kind.length - 2))
    return True


@statement(2)
def assign_int(body: Body) -> None:
    kind: Kind = Int(0, 3)
    form = body.choose.pick(("{} % 4", "abs({}) % 3", "min({}, 3)"))
    code = body.choose.pick(
        (
            body.integer(0, 3),
            form.format(f"({body.integer(0, 3)} + {body.integer(0, 2)})"),
            f"int(3 * abs(math.tanh({body.leaf().code})))",
            f"sum(1 for e in {body.choose.pick(body.having(Items))}) % 4" if body.having(Items) else "2",
        )
    )
    name = body.target(kind)
    body.emit(f"{name} = {code}")
    body.bind(name, kind)


@statement(1)
def assign_flag(body: Body) -> None:
    code = body.condition()
    name = body.target(Flag())
    body.emit(f"{name} = bool({code})")
    body.bind(name, Flag())


@statement(1)
def alias(body: Body) -> bool:
    names = [n for n, v in body.env.items() if isinstance(v.kind, (Array, Items, Table))]
    if not names:
        return False
    n = body.choose.pick(names)
    kind = body.env[n].kind
    name = body.target(kind, owned=False)
    if name == n:
        return False
    body.emit(f"{name} = {n}")
    body.keep(name, n, kind)
    return True


@statement(2)
def walrus(body: Body) -> bool:
    name = body.target(SCALAR)
    code = body.small()
    comparison = f"(({name} := {code}) > {body.threshold()})"
    if body.choose.chance(40):
        body.bind(name, SCALAR)
        other = body.target(SCALAR)
        body.emit(f"{other} = ({name} := {code}) * {body.small(1, 1.0)}")
        body.bind(other, SCALAR)
        return True
    body.bind(name, SCALAR)
    body.emit(f"if {comparison}:")
    before = dict(body.env)
    body.merge([body.branch_of(before, body.choose.integer(1, 2)), before])
    return True


@statement(2)
def sink(body: Body) -> None:
    """What has an effect and no derivative."""
    ints = [
        *body.having(Int),
        *(f"len({n})" for n in body.having(Items)),
        repr(body.program.fresh("here")),
    ]
    scalars = body.having(Scalar) or ["0.5"]
    forms = (
        f"LOG.append({body.choose.pick(ints)})",
        f"LOG.append({body.choose.pick(ints)})",
        f"print({body.choose.pick(ints)}, 'seen')",
        f"print(f'{{{body.choose.pick(scalars)}:.3f}}')",
        f"assert np.all(np.isfinite({body.choose.pick(scalars)})), 'finite'",
    )
    body.emit(body.choose.pick(forms))


@statement(1)
def delete(body: Body) -> bool:
    names = [
        n
        for n, v in body.env.items()
        if n not in body.locked and n not in body.pinned and n not in body.foreign and not v.frozen
    ]
    if len(names) < 6 or body.level > 1:
        return False
    n = body.choose.pick(names)
    body.emit(f"del {n}")
    del body.env[n]
    return True
