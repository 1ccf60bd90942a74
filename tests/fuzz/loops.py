"""`for` and `while`."""

from __future__ import annotations

from dataclasses import replace

from .body import MOST_TRIPS, Body, Env, merged, statement
from .kinds import SCALAR, Array, Int, Items, Kind, Scalar, Table, fits


@statement(9)
def for_loop(body: Body) -> bool:
    targets, iterable, kinds, fewest, most, held = iteration(body)
    if body.trips * most > MOST_TRIPS:
        return False
    if any(n in body.locked and not fits(k, body.env[n].kind) for n, k in kinds.items() if n in body.env):
        return False
    before = dict(body.env)
    outer = (body.locked, body.trips)
    body.locked, body.trips = body.locked | set(before), body.trips * max(1, most)
    for n in held:
        body.bind(n, body.env[n].kind, owned=body.env[n].owned, frozen=True)
    for n, k in kinds.items():
        body.bind(n, k, owned=False, frozen=isinstance(k, Int) and body.choose.chance(90))
    if isinstance(next(iter(kinds.values())), Array):
        for n in held:
            body.bind(n, body.env[n].kind, owned=False, frozen=True)
    exits = body.exits
    body.emit(f"for {targets} in {iterable}:")
    after = loop_body(body, "break continue", body.choose.integer(1, 4))
    body.locked, body.trips = outer
    left = body.exits > exits
    known = dict(before)
    ends = [before] if after is None else [before, after]
    for n, v in merged(ends).items():
        known[n] = replace(v, frozen=before[n].frozen)
    if fewest > 0 and after is not None:
        for n, v in after.items():
            if n not in before and (n in kinds or not left):
                known[n] = replace(v, frozen=False)
    body.env = known
    if body.choose.chance(18):
        loop_else(body, dict(before), known)
    return True


def iteration(body: Body) -> tuple[str, str, dict[str, Kind], int, int, list[str]]:
    """(targets, iterable, kinds of the targets, fewest trips, most trips, containers to be left alone)."""
    fresh = body.program.fresh
    arrays = [n for n in body.having(Array)]
    lists = [n for n in body.having(Items)]
    tables = [n for n, v in body.env.items() if isinstance(v.kind, Table) and v.kind.keys]
    ints = [n for n, v in body.env.items() if isinstance(v.kind, Int) and v.kind.low >= 0]
    e, i = body.choose.pick(("e", "c", fresh("e"))), body.choose.pick(("i", "n_", fresh("i")))
    if e in body.foreign or e in body.env:
        e = fresh("e")
    if i in body.foreign or i in body.env:
        i = fresh("i")

    def member(n: str) -> tuple[Kind, int, int]:
        kind = body.env[n].kind
        if isinstance(kind, Array):
            rest = kind.shape[1:]
            return (Array(rest) if rest else SCALAR), kind.shape[0], kind.shape[0]
        assert isinstance(kind, Items)
        return kind.item, kind.length, kind.length + 3

    match body.choose.integer(0, 13):
        case 0 | 1 | 2:
            a = body.choose.integer(0, 2)
            b = body.choose.integer(0, 4)
            form = body.choose.pick(
                (f"range({b})", f"range({b})", f"range({a}, {b})", f"range({b}, {a}, -1)")
            )
            r = eval(form)
            return i, form, {i: Int(min(r, default=0), max(r, default=0))}, len(r), len(r), []
        case 3 | 4 if ints:
            n = body.choose.pick(ints)
            kind = body.env[n].kind
            assert isinstance(kind, Int)
            plus = body.choose.pick(("", "", " + 1"))
            return (
                i,
                f"range({n}{plus})",
                {i: Int(0, max(0, kind.high))},
                kind.low + len(plus) // 4,
                kind.high + 1,
                [],
            )
        case 5 | 6 if arrays:
            n = body.choose.pick(arrays)
            kind, low, high = member(n)
            return e, body.choose.pick((n, n, f"{n}[::-1]", f"reversed({n})")), {e: kind}, low, high, [n]
        case 7 if lists:
            n = body.choose.pick(lists)
            kind, low, high = member(n)
            return (
                e,
                body.choose.pick((n, f"reversed({n})", f"{n}[::-1]", f"list({n})")),
                {e: kind},
                low,
                high,
                [n],
            )
        case 8 if tables:
            n = body.choose.pick(tables)
            table = body.env[n].kind
            assert isinstance(table, Table)
            k = fresh("key")
            count = len(table.keys)
            if body.choose.chance(30):
                return e, f"{n}.values()", {e: table.item}, count, 4, [n]
            return f"{k}, {e}", f"{n}.items()", {e: table.item}, count, 4, [n]
        case 9 | 10 if arrays or lists:
            n = body.choose.pick(arrays + lists)
            kind, low, high = member(n)
            start = body.choose.pick(("", "", ", 1"))
            top = (low - 1 if n in arrays else 9) + (1 if start else 0)
            return (
                f"{i}, {e}",
                f"enumerate({n}{start})",
                {i: Int(1 if start else 0, max(0, top)), e: kind},
                low,
                high,
                [n],
            )
        case 11 if len(arrays) + len(lists) > 1:
            a1, a2 = body.choose.sample(arrays + lists, 2)
            (k1, l1, h1), (k2, l2, h2) = member(a1), member(a2)
            f = fresh("e")
            if body.choose.chance(30):
                top = min(h1, h2) - 1
                return (
                    f"{i}, ({e}, {f})",
                    f"enumerate(zip({a1}, {a2}))",
                    {i: Int(0, max(0, top)), e: k1, f: k2},
                    min(l1, l2),
                    min(h1, h2),
                    [a1, a2],
                )
            return f"{e}, {f}", f"zip({a1}, {a2})", {e: k1, f: k2}, min(l1, l2), min(h1, h2), [a1, a2]
        case 12:
            values = [body.small(1) for _ in range(body.choose.integer(1, 3))]
            code = f"({', '.join(values)},)" if body.choose.chance(50) else f"[{', '.join(values)}]"
            return e, code, {e: SCALAR}, len(values), len(values), []
        case _:
            b = body.choose.integer(1, 4)
            form = body.choose.pick((f"reversed(range({b}))", f"range(0, {b}, 2)", f"range({b})"))
            return i, form, {i: Int(0, b - 1)}, 1, b, []


def loop_body(body: Body, ways: str, count: int) -> Env | None:
    body.loops.append(ways)
    after = body.branch_of(body.env, count)
    body.loops.pop()
    return after


def loop_else(body: Body, before: Env, known: Env) -> None:
    body.emit("else:")
    after = body.branch_of(before, body.choose.integer(1, 2))
    left = {n: v for n, v in known.items() if n in before}
    body.env = merged([left, after] if after is not None else [left])


@statement(5)
def while_loop(body: Body) -> bool:
    if body.trips * 4 > MOST_TRIPS:
        return False
    form = body.choose.integer(0, 4)
    if form == 4:
        return drain(body)
    k = body.program.fresh("k")
    most = body.choose.integer(0, 4)
    if form == 2:
        body.emit(f"{k} = {most}")
    else:
        body.emit(f"{k} = 0")
    kind = Int(0, max(1, most))
    body.bind(k, kind, frozen=True)
    before = dict(body.env)
    outer = (body.locked, body.trips)
    body.locked, body.trips = body.locked | set(before), body.trips * max(1, most)
    scalars = body.having(Scalar)
    guard = (
        f" and {body.choose.pick(scalars)} < {body.choose.number(0.5, 3.0)}"
        if scalars and body.choose.chance(40)
        else ""
    )
    ways, last = "break continue", ""
    match form:
        case 0:
            body.emit(f"while {k} < {most}{guard}:")
            first = f"{k} += 1"
            if body.choose.chance(40):
                first, last, ways = "", first, "break"
        case 1:
            body.emit(f"while ({k} := {k} + 1) <= {most}{guard}:")
            first = ""
        case 2:
            body.emit(f"while {k}{guard}:")
            first = f"{k} -= 1"
        case _:
            body.emit(f"while {body.choose.pick(('True', '1'))}:")
            first = f"{k} += 1"
            last = ""
    body.level += 1
    if first:
        body.emit(first)
    if form == 3:
        body.emit(f"if {k} > {most}{guard.replace(' and ', ' or ').replace('<', '>')}:")
        with body.block():
            body.emit("break")
    body.level -= 1
    after = loop_body(body, ways, body.choose.integer(1, 4))
    if last:
        with body.block():
            body.emit(last)
    body.locked, body.trips = outer
    body.env = merged([before] if after is None else [before, after])
    body.bind(k, Int(0, most + 1))
    if form != 3 and body.choose.chance(18):
        loop_else(body, dict(before), dict(body.env))
    return True


def drain(body: Body) -> bool:
    """A worklist: `while queue: e = queue.pop()`."""
    names = [n for n in body.changeable(Items) if n not in body.locked and n not in body.pinned]
    names = [n for n in names if getattr(body.env[n].kind, "item", None) == SCALAR]
    if not names:
        return False
    name = body.choose.pick(names)
    body.bind(name, Items(SCALAR, 0))
    before = dict(body.env)
    outer = (body.locked, body.trips)
    body.locked, body.trips = body.locked | set(before), body.trips * 6
    form = body.choose.pick(("while {}:", "while len({}) > 0:", "while {}:"))
    body.emit(form.format(name))
    with body.block():
        body.emit(f"e_ = {name}.pop({body.choose.pick(('', '0'))})")
    body.bind("e_", SCALAR)
    body.bind(name, Items(SCALAR, 0), owned=True, frozen=True)
    after = loop_body(body, "break continue", body.choose.integer(1, 3))
    body.locked, body.trips = outer
    body.env = merged([before] if after is None else [before, after])
    body.bind(name, Items(SCALAR, 0))
    return True
