"""Statements that make arrays and write into them."""

from __future__ import annotations

from .body import Body, makes_fresh_memory, statement
from .kinds import Array
from .scope import LIMIT, SHAPES


@statement(7)
def assign_array(body: Body) -> None:
    shape = body.some_shape()
    code = body.squashed(body.array(shape), LIMIT).code
    fresh = makes_fresh_memory(code)
    name = body.target(Array(shape), owned=fresh)
    body.emit(f"{name} = {code}")
    body.keep(name, code, Array(shape))


@statement(4)
def buffer(body: Body) -> None:
    """An array made to be filled."""
    shape = body.choose.pick(SHAPES)
    known = [n for n, v in body.env.items() if isinstance(v.kind, Array) and v.kind.shape == shape]
    options = [
        f"np.zeros({shape})",
        f"np.zeros({shape[0] if len(shape) == 1 else shape})",
        f"np.ones({shape})",
    ]
    options += (
        [f"np.zeros_like({n})" for n in known]
        + [f"{n}.copy()" for n in known]
        + [f"1.5 * {n}" for n in known]
    )
    code = body.choose.pick(options)
    name = body.target(Array(shape))
    body.emit(f"{name} = {code}")
    body.bind(name, Array(shape))


@statement(8)
def write_array(body: Body) -> bool:
    names = body.writable()
    if not names:
        return False
    name = body.choose.pick(names)
    kind = body.env[name].kind
    assert isinstance(kind, Array)
    place, shape = selection(body, kind.shape)
    sign = body.choose.pick(("=", "=", "=", "+=", "+=", "-=", "*="))
    limit = 1.0 if sign == "*=" else LIMIT
    if shape and body.choose.chance(70):
        e = body.squashed(body.array(shape), limit).code
    else:
        e = body.small(2, limit)
    if sign == "+=" and body.trips > 4:
        e = f"0.2 * ({e})"
    body.emit(f"{name}{place} {sign} {e}")
    return True


def selection(body: Body, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A subscript for an array of this shape, and the shape of what it selects."""
    if len(shape) == 1:
        n = shape[0]
        match body.choose.integer(0, 8):
            case 0 | 1 | 2 | 3:
                return f"[{body.index(n)}]", ()
            case 4 if n > 2:
                return body.choose.pick(
                    (
                        ("[1:]", (n - 1,)),
                        ("[:-1]", (n - 1,)),
                        ("[1:-1]", (n - 2,)),
                        (f"[:{n - 1}]", (n - 1,)),
                    )
                )
            case 5:
                return body.choose.pick((("[:]", (n,)), ("[...]", (n,)), ("[::-1]", (n,))))
            case 6:
                return "[::2]", ((n + 1) // 2,)
            case 7:
                picked = body.choose.sample(range(n), 2)
                return f"[{picked}]", (2,)
            case _:
                return f"[{body.index(n)}]", ()
    r, c = shape
    match body.choose.integer(0, 6):
        case 0 | 1 | 2:
            return f"[{body.index(r)}, {body.index(c)}]", ()
        case 3:
            return f"[{body.index(r)}]", (c,)
        case 4:
            return f"[:, {body.index(c)}]", (r,)
        case 5:
            return f"[{body.index(r)}, 1:]", (c - 1,)
        case _:
            return f"[{body.index(r)}][{body.index(c)}]", ()


@statement(5)
def augment_array(body: Body) -> bool:
    names = body.writable()
    if not names:
        return False
    name = body.choose.pick(names)
    kind = body.env[name].kind
    assert isinstance(kind, Array)
    sign = body.choose.pick(("+=", "+=", "*=", "-=", "/="))
    limit = 1.0 if sign == "*=" else LIMIT
    if body.choose.chance(60):
        e = body.squashed(body.array(kind.shape), limit).code
    else:
        e = body.small(2, limit)
    if sign == "+=" and body.trips > 4:
        e = f"0.2 * ({e})"
    if sign == "/=":
        e = f"1.4 + np.abs({e})"
    body.emit(f"{name} {sign} {e}")
    return True


@statement(2)
def mask(body: Body) -> bool:
    names = body.writable()
    if not names:
        return False
    name = body.choose.pick(names)
    test = f"{name} {body.choose.pick(('>', '<'))} {body.threshold()}"
    form = body.choose.pick(
        ("{0}[{1}] = {2}", "{0}[{1}] *= {3}", "{0}[{1}] = 0.5 * {0}[{1}]", "{0}[{1}] += {3}")
    )
    body.emit(form.format(name, test, body.small(1), body.small(1, 1.0)))
    return True
