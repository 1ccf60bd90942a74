"""Patterns that people write again and again, which pure chance would rarely hit, with random parts."""

from __future__ import annotations

from collections.abc import Callable

from .body import MOST_TRIPS, Body, scalar_into, statement
from .kinds import SCALAR, Array, Arrow, Int, Items


def vectors(body: Body) -> list[str]:
    return [n for n, v in body.env.items() if isinstance(v.kind, Array) and len(v.kind.shape) == 1]


def lines(body: Body, text: str) -> None:
    for line in text.strip("\n").splitlines():
        body.emit(line)


def best_so_far(body: Body) -> bool:
    names = vectors(body)
    if not names or body.trips * 4 > MOST_TRIPS:
        return False
    best, where = body.program.fresh("best"), body.program.fresh("at")
    lines(
        body,
        f"""
{best} = None
{where} = -1
for i_, e_ in enumerate({body.choose.pick(names)}):
    if {best} is None or e_ {body.choose.pick("<>")} {best}:
        {best} = e_ * {body.small(1, 1.0)}
        {where} = i_
""",
    )
    body.bind(best, SCALAR)
    return True


def horner(body: Body) -> bool:
    names = vectors(body)
    if not names or body.trips * 4 > MOST_TRIPS:
        return False
    s = body.program.fresh("s")
    order = body.choose.pick(("{}", "reversed({})", "{}[::-1]"))
    body.emit(f"{s} = {body.choose.pick(('0.0', '0', body.small(0)))}")
    body.emit(f"for c_ in {order.format(body.choose.pick(names))}:")
    body.emit(f"    {s} = {s} * {body.small(1, 0.9)} + c_")
    body.bind(s, SCALAR)
    return True


def newton(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    s, t = body.program.fresh("s"), body.program.fresh("t")
    target = body.small(1)
    lines(
        body,
        f"""
{s} = 1.7
{t} = 1.2 + abs({target})
while abs({s} * {s} - {t}) > 0.0311:
    {s} = 0.5 * ({s} + {t} / {s})
""",
    )
    body.bind(s, SCALAR)
    return True


def stencil(body: Body) -> bool:
    names = [n for n in vectors(body) if body.env[n].kind in (Array((3,)), Array((4,)))]
    if not names or body.trips * 4 > MOST_TRIPS:
        return False
    v, w = body.choose.pick(names), body.program.fresh("w")
    lines(
        body,
        f"""
{w} = np.zeros_like({v})
for i_ in range(1, len({v}) - 1):
    {w}[i_] = {v}[i_ - 1] - {body.small(1, 1.0)} * {v}[i_] + {w}[i_ - 1]
{w}[0] = {w}[1] * {v}[0]
{w}[-1] = {body.choose.pick((f"{w}[-2]", f"{v}[0]", body.small(0)))}
""",
    )
    body.bind(w, body.env[v].kind)
    return True


def time_steps(body: Body) -> bool:
    names = [n for n in vectors(body) if body.env[n].kind in (Array((3,)), Array((4,)))]
    if not names or body.trips * 3 > MOST_TRIPS:
        return False
    v, w = body.choose.pick(names), body.program.fresh("w")
    step = body.choose.pick(
        (
            f"{w}[1:] += 0.3 * {w}[:-1]",
            f"{w}[1:-1] += 0.1 * ({w}[2:] - {w}[:-2])",
            f"{w}[:-1] = {w}[1:] * {body.small(1, 1.0)}",
            f"{w} = {w} + 0.1 * np.roll({w}, 1)",
        )
    )
    lines(
        body,
        f"""
{w} = {v} * 1.0
for _ in range({body.integer(0, 3)}):
    {step}
    {w} *= {body.small(1, 1.0)}
    {w}[0] = {w}[-1] * {body.small(1, 1.0)}
""",
    )
    body.bind(w, body.env[v].kind)
    return True


def ping_pong(body: Body) -> bool:
    names = [n for n in vectors(body) if body.env[n].kind == Array((3,))]
    if not names or body.trips * 3 > MOST_TRIPS:
        return False
    a, b = body.program.fresh("u"), body.program.fresh("w")
    lines(
        body,
        f"""
{a} = {body.choose.pick(names)}.copy()
{b} = np.zeros(3)
for _ in range({body.integer(0, 3)}):
    for i_ in range(3):
        {b}[i_] = 0.5 * {a}[i_] + 0.3 * {a}[i_ - 1] * {body.small(1, 1.0)}
    {a}, {b} = {b}, {a}
""",
    )
    body.bind(a, Array((3,)), owned=False)
    body.bind(b, Array((3,)), owned=False)
    return True


def ring(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    s, buffer = scalar_into(body), body.program.fresh("ring")
    made = body.choose.pick(("np.zeros(3)", "[0.0, 0.0, 0.0]", "[0.1] * 3"))
    lines(
        body,
        f"""
{buffer} = {made}
for i_ in range({body.choose.integer(0, 5)}):
    {buffer}[i_ % 3] = 0.4 * {s} + {body.small(1, 1.0)}
    {s} = 0.7 * {s} + {buffer}[(i_ + 1) % 3] * 0.5
""",
    )
    body.bind(buffer, Array((3,)) if "np" in made else Items(SCALAR, 3))
    return True


def triangle(body: Body) -> bool:
    if body.trips * 6 > MOST_TRIPS:
        return False
    m = body.program.fresh("low")
    with body.bound(i_=Int(0, 2), j_=Int(0, 2)):
        e, d = body.small(1), body.small(1)
    lines(
        body,
        f"""
{m} = np.zeros((3, 3))
for i_ in range(3):
    for j_ in range(i_ + 1):
        s_ = {e}
        for k_ in range(j_):
            s_ = s_ - 0.3 * {m}[i_, k_] * {m}[j_, k_]
        if i_ == j_:
            {m}[i_, j_] = np.sqrt(1.0 + s_ * s_)
        else:
            {m}[i_, j_] = s_ / {m}[j_, j_] + 0.1 * {d}
""",
    )
    body.bind(m, Array((3, 3)))
    return True


def first_over(body: Body) -> bool:
    names = vectors(body)
    if not names or body.trips * 4 > MOST_TRIPS:
        return False
    s = body.program.fresh("s")
    lines(
        body,
        f"""
for i_, e_ in enumerate({body.choose.pick(names)}):
    if e_ * {body.small(1, 1.0)} > {body.threshold()}:
        {s} = e_ * (i_ + 1)
        break
else:
    {s} = {body.small(1)}
""",
    )
    body.bind(s, SCALAR)
    return True


def memo(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    s, cache = scalar_into(body), body.program.fresh("cache")
    with body.bound(i_=Int(0, 3)):
        e = body.small(1)
    lines(
        body,
        f"""
{cache} = {{}}
for i_ in range({body.choose.integer(1, 4)}):
    if i_ % 2 not in {cache}:
        {cache}[i_ % 2] = {e}
    {s} += 0.5 * {cache}[i_ % 2]
""",
    )
    return True


def counts(body: Body) -> bool:
    names = vectors(body)
    if not names or body.trips * 4 > MOST_TRIPS:
        return False
    cell = body.program.fresh("cell")
    lines(
        body,
        f"""
{cell} = {{}}
for e_ in {body.choose.pick(names)}:
    k_ = 'low' if e_ < {body.threshold()} else 'high'
    {cell}[k_] = {cell}.get(k_, {body.choose.pick(("0.0", body.small(0)))}) + e_ * e_
""",
    )
    s = scalar_into(body)
    body.emit(f"{s} = 0.3 * {s} + 0.2 * sum({cell}.values())")
    return True


def prefix(body: Body) -> bool:
    names = vectors(body)
    if not names or body.trips * 4 > MOST_TRIPS:
        return False
    xs = body.program.fresh("xs")
    v = body.choose.pick(names)
    kind = body.env[v].kind
    assert isinstance(kind, Array)
    lines(
        body,
        f"""
{xs} = [{body.small(1)}]
for e_ in {v}:
    {xs}.append({xs}[-1] * {body.small(1, 0.9)} + e_)
""",
    )
    body.bind(xs, Items(SCALAR, kind.shape[0] + 1))
    return True


def fibonacci(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    a, b = body.program.fresh("s"), body.program.fresh("t")
    body.emit(f"{a}, {b} = {body.small(1)}, {body.small(1)}")
    after = body.choose.pick((f"0.5 * ({a} + {b})", f"{a} * {body.small(1, 0.9)} - 0.3 * {b}"))
    body.emit(f"for _ in range({body.integer(0, 4)}):")
    body.emit(f"    {a}, {b} = {b}, {after}")
    body.bind(a, SCALAR)
    body.bind(b, SCALAR)
    return True


def recurrent(body: Body) -> bool:
    """A hidden state fed with rows."""
    matrices = [n for n, v in body.env.items() if v.kind in (Array((2, 3)), Array((3, 3)))]
    if not matrices or body.trips * 3 > MOST_TRIPS:
        return False
    m, h = body.choose.pick(matrices), body.program.fresh("h")
    body.emit(f"{h} = {body.choose.pick(('np.zeros(3)', '0.0', body.argument(Array((3,)), 1)))}")
    body.emit(f"for row_ in {m}:")
    body.emit(f"    {h} = np.tanh({h} * {body.small(1, 1.0)} + row_)")
    body.bind(h, Array((3,)), owned=False)
    return True


def bisection(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    low, high = body.program.fresh("low"), body.program.fresh("high")
    lines(
        body,
        f"""
{low}, {high} = -1.0 * abs({body.small(0)}), 1.0 + abs({body.small(0)})
for _ in range(4):
    mid_ = 0.5 * ({low} + {high})
    if math.sin(mid_) < {body.threshold()}:
        {low} = mid_
    else:
        {high} = mid_
""",
    )
    body.bind(low, SCALAR)
    body.bind(high, SCALAR)
    return True


def filled_by_function(body: Body) -> bool:
    """A function argument applied in a loop."""
    if body.trips * 3 > MOST_TRIPS or body.level > 3:
        return False
    name = body.program.fresh("iterate")
    s = body.program.fresh("s")
    f = body.argument(ARROW, 1)
    lines(
        body,
        f"""
def {name}(fn, v, times={body.choose.integer(0, 3)}):
    for _ in range(times):
        v = fn(v) * 0.7 + 0.1
    return v
{s} = {name}({f}, {body.small(1)}{body.choose.pick(("", ", 2", ", times=1"))})
""",
    )
    body.bind(s, SCALAR)
    return True


ARROW = Arrow((SCALAR,), SCALAR)
IDIOMS: tuple[Callable[[Body], bool], ...] = (
    best_so_far,
    horner,
    newton,
    stencil,
    time_steps,
    ping_pong,
    ring,
    triangle,
    first_over,
    memo,
    counts,
    prefix,
    fibonacci,
    recurrent,
    bisection,
    filled_by_function,
)


@statement(5)
def idiom(body: Body) -> bool:
    return body.choose.pick(IDIOMS)(body)
