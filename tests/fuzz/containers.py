"""Statements that make and change lists, dicts and tuples."""

from __future__ import annotations

from .body import Body, makes_fresh_memory, statement
from .kinds import SCALAR, Array, Int, Items, Kind, Row, Scalar, Table
from .scope import KEYS, LIMIT


@statement(4)
def new_list(body: Body) -> None:
    arrays = [n for n, v in body.env.items() if isinstance(v.kind, Array) and len(v.kind.shape) == 1]
    lists = [n for n, v in body.env.items() if isinstance(v.kind, Items) and v.kind.item == SCALAR]
    length = body.choose.integer(0, 3)
    item: Scalar | Array = SCALAR
    match body.choose.integer(0, 6):
        case 1 if arrays:
            n = body.choose.pick(arrays)
            kind = body.env[n].kind
            assert isinstance(kind, Array)
            length = kind.shape[0]
            with body.bound(e=SCALAR):
                e = body.small(1)
            code = body.choose.pick((f"[{e} for e in {n}]", f"list({n})", f"[{e} for e in {n}[::-1]]"))
        case 2 if lists:
            n = body.choose.pick(lists)
            kind = body.env[n].kind
            assert isinstance(kind, Items)
            length = kind.length
            with body.bound(e=SCALAR):
                e = body.small(1)
            code = body.choose.pick(
                (f"[{e} for e in {n}]", f"{n} + [{body.small(1)}]", f"list(reversed({n}))", f"{n}[:]")
            )
        case 3 if lists:
            n = body.choose.pick(lists)
            length = 0
            with body.bound(e=SCALAR):
                code = f"[{body.small(1)} for e in {n} if {body.comparison()}]"
        case 4:
            length = body.choose.integer(1, 3)
            with body.bound(i=Int(0, length - 1)):
                code = f"[{body.small(1)} for i in range({length})]"
        case 5:
            shape = body.some_shape()
            item = Array(shape)
            parts = [body.squashed(body.array(shape, 1), LIMIT).code for _ in range(length)]
            code = f"[{', '.join(parts)}]"
            for p in parts:
                if not makes_fresh_memory(p):
                    body.share(p)
        case _:
            code = f"[{', '.join(body.small(1) for _ in range(length))}]"
    name = body.target(Items(item, length))
    body.emit(f"{name} = {code}")
    body.bind(name, Items(item, length))


@statement(6)
def change_list(body: Body) -> bool:
    names = body.changeable(Items)
    if not names:
        return False
    name = body.choose.pick(names)
    kind = body.env[name].kind
    assert isinstance(kind, Items)
    item = kind.item
    e = body.value(item)
    if isinstance(item, Array) and not makes_fresh_memory(e):
        if body.choose.chance(60):
            e = f"1.0 * ({e})"
        else:
            body.share(e)
    shrinkable = kind.length > 0 and (name not in body.locked and name not in body.pinned)
    match body.choose.integer(0, 8):
        case 0 | 1 | 2:
            body.emit(f"{name}.append({e})")
            body.bind(name, Items(item, kind.length + 1))
        case 3 if kind.length:
            body.emit(f"{name}[{body.index(kind.length)}] = {e}")
        case 4 if kind.length and item == SCALAR:
            sign, limit = body.choose.pick((("+=", 1.0), ("*=", 1.0), ("-=", 1.0)))
            body.emit(f"{name}[{body.index(kind.length)}] {sign} {body.small(1, limit)}")
        case 5 if shrinkable:
            at = body.choose.pick(("", "", "0", "-1"))
            out = body.target(item, anew=True)
            body.emit(f"{out} = {name}.pop({at})")
            body.bind(out, item, owned=False)
            body.bind(name, Items(item, kind.length - 1))
        case 6 if item == SCALAR:
            form = body.choose.pick(("{}.extend([{}, {}])", "{} += [{}, {}]", "{}.extend(({}, {}))"))
            body.emit(form.format(name, e, body.small(1)))
            body.bind(name, Items(item, kind.length + 2))
        case 7 if item == SCALAR:
            body.emit(f"{name}.insert(0, {e})")
            body.bind(name, Items(item, kind.length + 1))
        case _:
            least = body.choose.integer(max(1, kind.length), kind.length + 2)
            out = body.program.fresh("p")
            body.emit(f"if len({name}) > {least}:")
            with body.block():
                body.emit(f"{out} = {name}.pop()")
                targets = [n for n in body.having(Scalar) if body.assignable(n, SCALAR)]
                if targets:
                    n = body.choose.pick(targets)
                    body.emit(f"{n} += 0.3 * {out if item == SCALAR else f'np.sum({out})'}")
    return True


@statement(2)
def new_table(body: Body) -> None:
    keys = tuple(body.choose.sample(KEYS, body.choose.integer(1, 3)))
    if body.choose.chance(25):
        shape = body.some_shape()
        item: Scalar | Array = Array(shape)
        parts = [f"1.0 * ({body.squashed(body.array(shape, 1), LIMIT).code})" for _ in keys]
    else:
        item = SCALAR
        parts = [body.small(1) for _ in keys]
    tables = [
        n for n, v in body.env.items() if isinstance(v.kind, Table) and v.kind.item == SCALAR and v.kind.keys
    ]
    if tables and body.choose.chance(35):
        n = body.choose.pick(tables)
        kind = body.env[n].kind
        assert isinstance(kind, Table)
        keys, item = kind.keys, SCALAR
        with body.bound(e=SCALAR):
            code = body.choose.pick(
                (f"{{k: {body.small(1)} for k, e in {n}.items()}}", f"dict({n})", f"{{**{n}, 'u': 0.5}}")
            )
        if "**" in code and "u" not in keys:
            keys = (*keys, "u")
    elif body.choose.chance(20):
        code = f"dict({', '.join(f'{k}={p}' for k, p in zip(keys, parts, strict=True))})"
    else:
        code = "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(keys, parts, strict=True)) + "}"
    name = body.target(Table(item, keys))
    body.emit(f"{name} = {code}")
    body.bind(name, Table(item, keys))


@statement(3)
def change_table(body: Body) -> bool:
    names = body.changeable(Table)
    if not names:
        return False
    name = body.choose.pick(names)
    kind = body.env[name].kind
    assert isinstance(kind, Table)
    key = body.choose.pick(KEYS)
    if isinstance(kind.item, Array):
        body.emit(f"{name}[{key!r}] = 1.0 * ({body.value(kind.item)})")
    elif key in kind.keys and body.choose.chance(60):
        body.emit(f"{name}[{key!r}] {body.choose.pick(('=', '+=', '*='))} {body.small(2, 1.0)}")
    else:
        form = body.choose.pick(
            (
                "{0}[{1!r}] = {2}",
                "{0}.update({{{1!r}: {2}}})",
                "{0}[{1!r}] = {0}.get({1!r}, 0.3) * 0.5 + {2}",
                "{0}.setdefault({1!r}, {2})",
            )
        )
        body.emit(form.format(name, key, body.small(2, 2.0)))
    if key not in kind.keys:
        body.bind(name, Table(kind.item, (*kind.keys, key)))
    return True


@statement(2)
def new_tuple(body: Body) -> None:
    count = body.choose.integer(2, 3)
    kinds: list[Kind] = []
    parts = []
    for _ in range(count):
        kind: Kind = Array(body.some_shape()) if body.choose.chance(25) else SCALAR
        e = body.value(kind, 1)
        if isinstance(kind, Array) and not makes_fresh_memory(e):
            e = f"1.0 * ({e})"
        kinds.append(kind)
        parts.append(e)
    if body.choose.chance(40):
        names = [body.target(k, anew=True) + "" for k in kinds]
        if len(set(names)) == len(names):
            body.emit(f"{', '.join(names)} = {', '.join(parts)}")
            for n, k in zip(names, kinds, strict=True):
                body.bind(n, k, owned=False)
            return
    name = body.target(Row(tuple(kinds)))
    body.emit(f"{name} = ({', '.join(parts)})")
    body.bind(name, Row(tuple(kinds)), owned=False)
