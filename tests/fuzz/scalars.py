"""Expressions whose value is a number."""

from __future__ import annotations

from .kinds import SCALAR, Arrow, Int, Items, Row, Table
from .scope import LIMIT, MATH, UNARY, Scope, Text, number


@number(24)
def binary(scope: Scope, depth: int) -> Text:
    a, b = scope.two(depth - 1)
    match scope.choose.integer(0, 7):
        case 0 | 1:
            return Text(f"({a.code}) + ({b.code})", a.size + b.size)
        case 2 | 3 | 4:
            return Text(f"({a.code}) * ({b.code})", a.size * b.size)
        case 5 | 6:
            return Text(f"({a.code}) - ({b.code})", a.size + b.size)
        case _:
            return Text(f"({a.code}) / (1.3 + ({b.code}) ** 2)", a.size)


@number(14)
def unary(scope: Scope, depth: int) -> Text:
    a = scope.scalar(depth - 1)
    match scope.choose.integer(0, 5):
        case 0:
            return Text(f"-({a.code})", a.size)
        case 1 | 2:
            return Text(scope.choose.pick(UNARY).replace("{}", a.code), max(1.0, a.size))
        case 3 | 4:
            return Text(scope.choose.pick(MATH).replace("{}", a.code), max(2.0, a.size))
        case _:
            return Text(f"({a.code}) ** {scope.choose.pick((2, 3))}", a.size**3)


@number(3)
def power(scope: Scope, depth: int) -> Text:
    a, b = scope.scalar(depth - 1), scope.small(depth - 1, 2.0)
    form = scope.choose.pick(
        ("(0.6 + abs({})) ** ({})", "pow(0.6 + abs({}), {})", "np.power(0.7 + np.abs({}), {})")
    )
    return Text(form.format(scope.squashed(a, 2.0).code, b), 8.0)


@number(8)
def selection(scope: Scope, depth: int) -> Text:
    a, b = scope.two(depth - 1)
    size = max(a.size, b.size)
    match scope.choose.integer(0, 6):
        case 0 | 1:
            return Text(f"(({a.code}) if {scope.condition()} else ({b.code}))", size)
        case 2:
            return Text(f"{scope.choose.pick(('max', 'min'))}({a.code}, {b.code})", size)
        case 3:
            return Text(f"{scope.choose.pick(('np.maximum', 'np.minimum'))}({a.code}, {b.code})", size)
        case 4:
            return Text(f"np.where({scope.comparison()}, {a.code}, {b.code})", size)
        case 5:
            return Text(f"({scope.condition()}) * ({a.code})", a.size)
        case _:
            word = scope.choose.pick(("and", "or"))
            return Text(f"(({a.code}) {word} ({b.code}))", size)


@number(8)
def reduction(scope: Scope, depth: int) -> Text:
    """A scalar made of all elements of an array or a container."""
    kinds = [k for n, k in ((n, v.kind) for n, v in scope.env.items()) if isinstance(k, (Items, Table, Row))]
    if kinds and scope.choose.chance(40):
        return container_reduction(scope, depth)
    shape = scope.some_shape()
    a = scope.array(shape, depth - 1)
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    if len(shape) == 1 and scope.choose.chance(30):
        b = scope.array(shape, depth - 1)
        form = scope.choose.pick(("({}) @ ({})", "np.dot({}, {})", "np.sum(({}) * ({}))", "np.inner({}, {})"))
        return Text(form.format(a.code, b.code), a.size * b.size * count)
    options = [
        ("np.sum({})", float(count)),
        ("np.mean({})", 1.0),
        ("({}).sum()", float(count)),
        ("({}).mean()", 1.0),
        ("np.max({})", 1.0),
        ("np.min({})", 1.0),
        ("({}).max()", 1.0),
        ("np.sum(np.square({}))", 12.0),
        ("np.sqrt(1.0 + np.sum(({}) ** 2))", 3.0),
        ("np.var({})", 4.0),
    ]
    if len(shape) == 1:
        options += [
            ("sum({})", float(count)),
            ("np.linalg.norm(1.7 + np.abs({}))", 4.0),
            ("max({})", 1.0),
        ]
        options += [("np.cumsum({})[-1]", float(count)), ("np.sum(({})[1:])", float(count))]
    else:
        options += [("np.sum({}, axis=0)[0]", 3.0), ("np.trace({})", 3.0), ("({})[-1].sum()", 3.0)]
    form, factor = scope.choose.pick(options)
    return Text(form.format(a.code), a.size * factor)


def container_reduction(scope: Scope, depth: int) -> Text:
    lists = [
        n
        for n, v in scope.env.items()
        if isinstance(v.kind, Items) and v.kind.item == SCALAR and v.kind.length
    ]
    tables = [
        n for n, v in scope.env.items() if isinstance(v.kind, Table) and v.kind.item == SCALAR and v.kind.keys
    ]
    if tables and (not lists or scope.choose.chance(40)):
        n = scope.choose.pick(tables)
        form = scope.choose.pick(("sum({}.values())", "max({}.values())", "sum(t * t for t in {}.values())"))
        if form.startswith("sum(t"):
            with scope.bound(t=SCALAR):
                e = scope.scalar(depth - 1)
            return Text(f"sum({e.code} for t in {n}.values())", 4 * e.size)
        return Text(form.format(n), 8.0)
    if not lists:
        return scope.leaf()
    n = scope.choose.pick(lists)
    match scope.choose.integer(0, 5):
        case 0:
            return Text(f"sum({n})", 10.0)
        case 1:
            return Text(f"{scope.choose.pick(('max', 'min'))}({n})", LIMIT)
        case 2:
            return Text(f"sum({n}) / len({n})", LIMIT)
        case 3:
            return Text(f"np.sum(np.array({n}))", 10.0)
        case 4:
            with scope.bound(e=SCALAR):
                e = scope.scalar(depth - 1)
                test = f" if {scope.comparison()}" if scope.choose.chance(40) else ""
            return Text(f"sum({e.code} for e in {n}{test})", 4 * e.size)
        case _:
            with scope.bound(e=SCALAR, i=Int(0, 3)):
                e = scope.scalar(depth - 1)
            return Text(f"sum([{e.code} for i, e in enumerate({n})])", 4 * e.size)


@number(8)
def invocation(scope: Scope, depth: int) -> Text:
    """A call of a helper, of a function variable, of a lambda on the spot."""
    own = [(n, v.kind) for n, v in scope.env.items() if isinstance(v.kind, Arrow) and v.kind.result == SCALAR]
    if own and scope.choose.chance(60):
        n, kind = scope.choose.pick(own)
        assert isinstance(kind, Arrow)
        return Text(f"{n}({', '.join(scope.argument(k, depth - 1) for k in kind.parameters)})", LIMIT)
    helpers = [h for h in scope.program.helpers if h.result == SCALAR]
    if helpers and scope.choose.chance(75):
        return Text(scope.call(scope.choose.pick(helpers), depth - 1), LIMIT)
    with scope.bound(t=SCALAR):
        e = scope.scalar(depth - 1)
    return Text(f"(lambda t: {e.code})({scope.small(depth - 1)})", e.size)


@number(14)
def leaf(scope: Scope, depth: int) -> Text:
    return scope.leaf()
