"""Expressions whose value is an array of a given shape."""

from __future__ import annotations

from .kinds import Array, Arrow
from .scope import LIMIT, UNARY, Scope, Text, array


@array(20)
def array_binary(scope: Scope, shape: tuple[int, ...], depth: int) -> Text:
    a = scope.array(shape, depth - 1)
    match scope.choose.integer(0, 4):
        case 0 | 1:
            b = scope.array(shape, depth - 1)
        case 2 | 3 if len(shape) == 2:
            other = scope.choose.pick(((shape[1],), (1, shape[1]), (shape[0], 1)))
            b = scope.array_leaf(other)
        case _:
            b = scope.scalar(depth - 1)
    if scope.choose.chance(30):
        a, b = b, a
    match scope.choose.integer(0, 4):
        case 0 | 1:
            return Text(f"({a.code}) * ({b.code})", a.size * b.size)
        case 2:
            return Text(f"({a.code}) + ({b.code})", a.size + b.size)
        case 3:
            return Text(f"({a.code}) - ({b.code})", a.size + b.size)
        case _:
            return Text(f"({a.code}) / (1.3 + ({b.code}) ** 2)", a.size)


@array(12)
def array_unary(scope: Scope, shape: tuple[int, ...], depth: int) -> Text:
    a = scope.array(shape, depth - 1)
    if scope.choose.chance(20):
        form = scope.choose.pick(
            ("-({})", "({}) ** 2", "({}).copy()", "np.copy({})", "np.clip({}, -0.8013, 0.9017)")
        )
        return Text(form.format(a.code), a.size**2)
    return Text(scope.choose.pick(UNARY).format(a.code), max(1.0, a.size))


@array(5)
def array_selection(scope: Scope, shape: tuple[int, ...], depth: int) -> Text:
    a, b = scope.array(shape, depth - 1), scope.array(shape, depth - 1)
    size = max(a.size, b.size)
    match scope.choose.integer(0, 3):
        case 0:
            return Text(f"{scope.choose.pick(('np.maximum', 'np.minimum'))}({a.code}, {b.code})", size)
        case 1:
            return Text(f"np.maximum({a.code}, {scope.choose.number(-0.5, 0.5)})", size)
        case 2:
            return Text(f"np.where(({a.code}) > {scope.choose.number(-0.7, 0.7)}, {a.code}, {b.code})", size)
        case _:
            return Text(f"(({a.code}) if {scope.condition()} else ({b.code}))", size)


@array(12)
def array_structure(scope: Scope, shape: tuple[int, ...], depth: int) -> Text:
    """Products, joins and reductions along an axis that give an array of this shape."""
    d = depth - 1
    if len(shape) == 2:
        rows, columns = shape
        match scope.choose.integer(0, 4):
            case 0:
                k = scope.choose.pick((2, 3))
                a, b = scope.array((rows, k), d), scope.array((k, columns), d)
                return Text(f"({a.code}) @ ({b.code})", a.size * b.size * k)
            case 1:
                a, b = scope.array((rows,), d), scope.array((columns,), d)
                return Text(f"np.outer({a.code}, {b.code})", a.size * b.size)
            case 2:
                parts = [scope.array((columns,), d) for _ in range(rows)]
                form = scope.choose.pick(("np.stack([{}])", "np.array([{}])", "np.vstack([{}])"))
                return Text(form.format(", ".join(p.code for p in parts)), max(p.size for p in parts))
            case 3:
                a = scope.array((rows, columns), d)
                form = scope.choose.pick(
                    (
                        "({0}) - np.mean({0}, axis=0)",
                        "({0}) - ({0}).sum(axis=1, keepdims=True)",
                        "np.cumsum({0}, axis=0)",
                    )
                )
                return Text(form.format(a.code), a.size * 4)
            case _:
                a = scope.array((columns, rows), d)
                return Text(f"({a.code}).T", a.size)
    n = shape[0]
    match scope.choose.integer(0, 6):
        case 0:
            k = scope.choose.pick((2, 3))
            a, b = scope.array((n, k), d), scope.array((k,), d)
            return Text(f"({a.code}) @ ({b.code})", a.size * b.size * k)
        case 1:
            k = scope.choose.pick((2, 3))
            a, b = scope.array((k,), d), scope.array((k, n), d)
            return Text(
                scope.choose.pick(("({}) @ ({})", "np.dot({}, {})")).format(a.code, b.code),
                a.size * b.size * k,
            )
        case 2:
            a = scope.array((n, scope.choose.pick((2, 3))), d)
            form = scope.choose.pick(
                ("np.sum({}, axis=1)", "({}).mean(axis=1)", "np.max({}, axis=1)", "({}).sum(axis=-1)")
            )
            return Text(form.format(a.code), a.size * 3)
        case 3:
            a = scope.array((scope.choose.pick((2, 3)), n), d)
            form = scope.choose.pick(
                ("np.mean({}, axis=0)", "({}).sum(0)", "np.sum({}, axis=0)", "({}).min(axis=0)")
            )
            return Text(form.format(a.code), a.size * 3)
        case 4 if n > 1:
            k = scope.choose.integer(1, n - 1)
            a, b = scope.array((k,), 0), scope.array((n - k,), 0)
            form = scope.choose.pick(
                ("np.concatenate([{}, {}])", "np.concatenate(({}, {}))", "np.hstack(({}, {}))")
            )
            return Text(form.format(a.code, b.code), max(a.size, b.size))
        case 5:
            a = scope.array(shape, d)
            form = scope.choose.pick(("np.cumsum({})", "np.sort({})", "np.roll({}, -1)", "np.flip({})"))
            return Text(form.format(a.code), a.size * 2)
        case _:
            functions = [
                f"{f}({scope.argument(v.kind.parameters[0], d)})"
                for f, v in scope.env.items()
                if isinstance(v.kind, Arrow) and v.kind.result == Array(shape) and len(v.kind.parameters) == 1
            ]
            helpers = [h for h in scope.program.helpers if h.result == Array(shape)]
            if functions:
                return Text(scope.choose.pick(functions), LIMIT)
            if helpers:
                return Text(scope.call(scope.choose.pick(helpers), d), LIMIT)
            return array_unary(scope, shape, depth)


@array(14)
def array_leaf(scope: Scope, shape: tuple[int, ...], depth: int) -> Text:
    return scope.array_leaf(shape)


@array(3)
def creation(scope: Scope, shape: tuple[int, ...], depth: int) -> Text:
    return scope.creation(shape, depth)
