"""The Python that the compiler takes: each program's gradient against central differences."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import linecache
import logging
import math
import warnings

import numpy as np
import pytest

import srcgrad

V = np.array([0.4, 1.1, 1.7, 2.3])
M = np.array([[0.3, -0.7, 1.1], [0.9, 0.2, -0.35]])


def differences(f, args, argnum, h=1e-6):
    x = args[argnum]

    def at(value):
        return float(f(*args[:argnum], value, *args[argnum + 1 :]))

    if np.ndim(x) == 0:
        return (at(x + h) - at(x - h)) / (2 * h)
    g = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        g[i] = (at(up) - at(down)) / (2 * h)
    return g


def check(f, *args, argnums=(0,)):
    for argnum in argnums:
        expected = differences(f, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args), argnum)
        got = srcgrad.grad(f, argnum)(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        value, got = srcgrad.value_and_grad(f, argnum)(
            *[a.copy() if isinstance(a, np.ndarray) else a for a in args]
        )
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        assert value == f(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])


# Helpers that programs call ---------------------------------------------------------------------------------


def scaled(x, by=2.0, *, shift=0.0):
    return x * by + shift


def clamp(x, low, high):
    if x < low:
        return low + 0.1 * x
    if x > high:
        return high * high
    return x * x


def fact(x, n):
    return 1.0 if n == 0 else x * n * fact(x, n - 1)


def even(x, n):
    return x if n == 0 else odd(x * 1.1, n - 1)


def odd(x, n):
    return x * x if n == 0 else even(x + 0.5, n - 1)


def total(*xs, **named):
    result = named.get("start", 1.0)
    for x in xs:
        result = result * x + named.get("bias", 0.0)
    return result


def pair(x, y=3.0):
    return x * y, x + y


def make_power(n):
    def power(x):
        return x**n

    return power


@contextlib.contextmanager
def scope():
    yield 2.0


@dataclasses.dataclass
class Params:
    a: float
    b: float


Point = collections.namedtuple("Point", "x y")


class Layer:
    scale = 1.5

    def __init__(self, w, b=0.5):
        self.w = w
        self.b = b

    def __call__(self, x):
        return np.tanh(self.w * x + self.b) * self.scale

    def apply(self, x, times=2):
        for _ in range(times):
            x = self(x)
        return x

    @staticmethod
    def square(x):
        return x * x

    @classmethod
    def scaled(cls, x):
        return cls.scale * x

    @property
    def double(self):
        return self.w * 2


def doubled(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return 2.0 * f(*args, **kwargs)

    return inner


@doubled
def wrapped_cube(x):
    return x * x * x


RATE = 3.0
TABLE = {"a": 2.0, "b": [1.0, 2.0]}

# Programs ---------------------------------------------------------------------------------------------------


def loop_else(x, n):
    for i in range(n):
        x = x * 1.1
        if x > 2.0:
            x = x - 1.0
            break
    else:
        x = x * x
    return x


def nested_break(x):
    s = 0.0
    for i in range(5):
        for j in range(5):
            if j > i:
                break
            if (i + j) % 3 == 0:
                continue
            s += x * (i - j) + s * 0.1
        else:
            s = s * x
    return s


def while_else_return(x, limit):
    n = 0
    while x < limit:
        x = x * x + 0.5
        n += 1
        if n > 3:
            return x * n
    else:
        x = x + n
    return x * 2.0


def early_in_try(x):
    try:
        if x > 1.0:
            return x * x
        y = x * 3
    finally:
        z = 1.0
    return y + z


def return_in_with(x):
    with np.errstate(all="ignore"):
        for k in range(4):
            x = x * 1.2
            if x > 2.0:
                return x * k
    return x


def loop_variable_after(x):
    for i in range(3):
        x = x * i + 1.0
    return x * i


def zero_trip(x, n):
    y = x * x
    for i in range(n):
        y = y * x * i
    return y


def rows(m):
    s = 0.0
    for row in m:
        for v in row:
            s = s * 0.5 + v * v
    return s


def dict_loops(x):
    d = {"a": x, "b": x * x, "c": 2.0}
    s = 0.0
    for k, v in d.items():
        s += v * len(k)
    for v in d.values():
        s = s * v
    for k in d:
        s += d[k]
    return s


def reversed_zip(x):
    s = 1.0
    for a, b in zip(reversed(x), x):
        s = s * a + b
    for i, v in enumerate(reversed(x), 2):
        s += v**i
    return s


def strided(x):
    s = 0.0
    for i in range(len(x) - 1, 0, -2):
        s = s + x[i] * x[i - 1] * s + x[i]
    return s


def carried_array(x):
    u = x
    for _ in range(3):
        u = u * np.sin(u) + x
    return np.sum(u)


def helper_calls(x):
    return (
        scaled(x) + scaled(x, 3.0) * scaled(x, shift=x, by=x) + clamp(x, 0.5, 3.0) + clamp(0.1 * x, 0.5, 3.0)
    )


def helper_in_loop(x):
    s = 0.0
    for i in range(4):
        s = s + clamp(x * i, 0.5, 2.0) * x
    return s


def recursive(x):
    return fact(x, 4) + even(x, 3)


def variadic(x):
    xs = [x, 2.0, x * x]
    options = {"bias": x}
    return total(*xs, **options) + total(x, *xs, start=x) + total()


def returns_pair(x):
    a, b = pair(x)
    c = pair(x, y=x)
    return a * b + c[0] * c[1]


def closures(x):
    scale = x * x

    def f(t):
        def g(u):
            return u * scale + t

        return g(t) * x

    h = lambda t: f(t) + scale  # noqa: E731
    return f(2.0) + h(x)


def closure_rebound(x):
    k = x

    def f(t):
        return t * k

    a = f(2.0)
    k = x * x
    return a + f(3.0)


def functions_as_values(x):
    table = [np.sin, math.exp, make_power(3), lambda t: t * x]
    s = 0.0
    for f in table:
        s = s + f(x)
    best = max(table, key=lambda f: f(1.0))
    return s * best(x)


def apply(f, *args, **kw):
    return f(*args, **kw)


def callbacks(x):
    return apply(scaled, x, by=3.0) + apply(lambda a, b=2.0: a * b * x, x) + apply(np.tanh, x)


def partials(x):
    f = functools.partial(scaled, by=x)
    g = functools.partial(scaled, x, shift=1.0)
    return f(x) * g()


def methods(x):
    layer = Layer(x, b=0.1)
    fixed = Layer(0.7)
    return (
        layer(x)
        + layer.apply(0.5)
        + fixed.apply(x, times=3)
        + Layer.square(x)
        + fixed.scaled(x)
        + layer.double
    )


def records(x):
    p = Params(x, b=x * x)
    q = Point(p.a * 2, y=p.b)
    a, b = q
    return q.x * q.y + a * b + q[1] + dataclasses.replace(Params(1.0, 2.0), a=3.0).a


def wrapped(x):
    return wrapped_cube(x) * 0.5


def comprehension(x):
    xs = [v * v for v in x if v > 1.0]
    ys = {k: v * 2 for k, v in enumerate(x)}
    zs = [[a * b for b in x] for a in x]
    return sum(xs) + ys[1] * ys[2] + sum(sum(r) for r in zs) + max(v for v in x) + sum(list(v for v in x))


def containers(x):
    xs = [x, [x * x, 2.0], (x, {"k": x})]
    xs[0] = xs[1][0] * xs[2][1]["k"]
    a, (b, c), d = xs
    first, *rest = (a, b, c)
    return first * sum(rest) + d[0]


def lists(x):
    xs = [1.0] * 3
    xs.append(x)
    xs.extend([x * x, x + 1.0])
    xs.insert(0, x * 3)
    last = xs.pop()
    first = xs.pop(0)
    xs[1] = last * first
    xs[2:4] = [x, xs[1] * x]
    xs.reverse()
    ys = xs + [x]
    return sum(ys[1:]) * len(xs) + ys[0] * ys[-1] + sum(sorted(ys))


def dicts(x):
    d = {}
    d["a"] = x
    d["b"] = d["a"] * x
    d["a"] = d["b"] + 1.0
    d.update(c=x * 2)
    d.update({"e": d["a"]})
    z = d.get("zz", x) * d.get("a", 0.0)
    y = d.setdefault("q", x * x)
    p = d.pop("c")
    del d["b"]
    if "b" in d:
        z = 0.0
    return d["a"] * d["e"] + z + y + p + len(d)


def builtins_(x):
    return (
        min(x, 2.0 * x)
        + max(x, 3.0, x * x)
        + abs(-x)
        + pow(x, 2)
        + float(x)
        + sum((x, x))
        + sum([x, 2.0], x)
        + round(x)
        + int(x)
    )


def map_zip_sorted(x):
    a = list(map(math.sin, x))
    b = [p * q for p, q in zip(a, sorted(x, reverse=True))]
    return sum(b) + sum(map(lambda p, q: p * q, x, a))


def conditional(x, flag):
    y = x * x if flag else x
    z = (x if y > 1.0 else 2.0 * x) * (y or 1.0)
    w = flag and x or 3.0 * x
    return y * z + w + (1.0 if not flag else x)


def walrus(x):
    s = 0.0
    while (x := x * 0.5) > 0.1:
        s += (y := x * x) * y
    if (z := s * 2.0) > 0.0 and z < 100.0:
        s += z * z
    return s + [w := s * s, w + 1.0][1]


def matches(x, command):
    match command:
        case ("scale", k) if k > 0:
            return x * k
        case {"power": n}:
            return x**n
        case [a, *_]:
            return x + a
        case "neg" | "minus":
            return -x
        case None:
            return x * x * x
        case _:
            return 2.0 * x


def match_active(p):
    match p:
        case (x, y):
            return x * y
        case _:
            return 0.0


def with_blocks(x):
    with scope() as k, contextlib.suppress(ValueError):
        x = x * k
        y = x * x
    return y + x


def try_except(x, key):
    d = {"a": 2.0}
    try:
        k = d[key]
        y = x * k
    except KeyError:
        y = x * x
    else:
        y = y + 1.0
    return y


def statements(x):
    """Docstring."""
    import math as m
    from math import sin

    assert x > 0, "positive"
    y: float = x**2
    a = b = y * 3.0
    del y
    if False:
        raise RuntimeError(f"never {x!r}")
    logging.getLogger("srcgrad.test").info("x is %s", x)
    a += b
    a -= 1.0
    a **= 2
    a /= 3.0
    a %= 50.0
    print(f"{a:.3f}", end="")
    return a * m.exp(-x) * sin(x) * RATE + TABLE["a"] * x + TABLE["b"][1] * x


def indexing(x):
    y = np.outer(x, x)
    return (
        y[0, 1]
        + np.sum(y[1:, ::2])
        + np.sum(y[:, None, 1] * 2)
        + np.sum(y[..., -1])
        + np.sum(y[[0, 2, 2]])
        + np.sum(y[y > 1.0])
        + np.sum(y[np.array([0, 1]), np.array([2, 2])])
        + x[x > 1.0].sum()
    )


def array_writes(x):
    y = np.zeros((3, 4))
    y[0] = x
    y[1, :] = y[0] * 2
    y[2, 1:3] = y[0, :2] * y[1, 2:]
    y[0, 0] = y[1, 1] * y[0, 0]
    y[:, 3] += x[0]
    y[1] *= x
    y[1, 2] /= x[1]
    y -= 0.5
    y *= y
    return np.sum(y * y)


def fancy_writes(x):
    y = x * 1.0
    y[[0, 2]] = x[[1, 3]] * 2
    y[y > 2.0] = 0.5
    y[np.array([1, 1])] += x[:2]
    np.add.at(y, [0, 0, 1], x[1:])
    return np.sum(y * y)


def overlapping(x):
    y = x * 1.0
    y[1:] += y[:-1]
    y[:-1] = y[1:] * y[:-1]
    y = np.exp(y * 0.1)
    y[0] = 2 * y[0]
    return np.sum(y * x)


def out_arguments(x):
    y = np.empty_like(x)
    np.multiply(x, x, out=y)
    z = np.add(y, x, out=y)
    s = z[0]
    np.exp(-y, y)
    return np.sum(y) + s


def ping_pong(x):
    u, v = x * 1.0, np.zeros_like(x)
    for _ in range(3):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        v[0], v[-1] = u[0], u[-1]
        u, v = v, u
    return np.sum(u**2)


def ring_buffer(x):
    buf = np.zeros(3)
    s = 0.0
    for i in range(8):
        buf[i % 3] = buf[(i - 1) % 3] * 0.5 + x[i % len(x)]
        s += buf.sum() * buf[i % 3]
    return s


def copy_then_write(x):
    u = x
    for _ in range(3):
        u_new = u.copy()
        u_new[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u_new[0] = u_new[1] * u_new[0]
        u = u_new
    return np.sum(u * u)


def fill_sort(x):
    y = np.empty(4)
    y.fill(x[0])
    z = x[::-1] * y
    z.sort()
    np.copyto(y, z)
    return np.sum(y * np.arange(4.0)) + z[0]


def attributes_methods(m):
    return (
        m.T.sum(axis=0).max()
        + m.reshape(-1)[1]
        + m.mean()
        + (m @ m.T).trace()
        + m.ravel().dot(m.flatten())
        + m.std(axis=1, ddof=1).sum()
        + m.copy().transpose(1, 0)[0, 1] * m.shape[0]
        + m.clip(-0.5, 0.5).sum()
        + m.cumsum(axis=1)[1, 2]
        + m.prod()
    )


def numpy_everyday(m):
    a = np.concatenate([m, m * 2], axis=0)
    b = np.stack([m[0], m[1]]) @ np.hstack([m.T, m.T])[:, :2]
    c = np.where(m > 0, np.sqrt(np.abs(m)), m**2)
    d = np.einsum("ij,kj->ik", m, m)
    e = np.tensordot(m, m, axes=([1], [1]))
    f = np.linalg.solve(d + 3 * np.eye(2), m)
    g = np.pad(np.tile(m[0], 2), 1) * np.repeat(m[0, :2], 4)
    h = np.linalg.norm(m) + np.linalg.det(e + np.eye(2)) + np.linalg.slogdet(d + np.eye(2))[1]
    u, v = np.split(m.T.ravel(), 2)
    return (
        a.sum() + b.sum() + c.sum() + d.sum() + f.sum() + g.sum() + h + (u * v).sum() + np.var(np.roll(m, 1))
    )


def augmented_containers(x):
    d = {"s": 0.0}
    xs = [0.0, 1.0]
    for v in x:
        d["s"] += v * v
        xs[0] += d["s"]
        xs[1] *= v
    return d["s"] * xs[0] * xs[1]


def list_of_arrays(x):
    history = []
    u = x
    for _ in range(3):
        u = np.tanh(u * x)
        history.append(u)
    return sum(np.sum(h * h) for h in history) + history[1][0] * history[-1][2]


def worklist(x):
    stack = [(x, 2)]
    s = 0.0
    while stack:
        v, n = stack.pop()
        s += v * n
        if n > 0:
            stack.append((v * 0.5, n - 1))
            stack.append((v * v, n - 2))
    return s


def x_bar(x):
    x_bar, np_, _saved, saved, result, stop = x * 2, x, 1.0, x * x, x, 2.0
    for t in range(2):
        saved = saved * x_bar + t
        stop = stop + _saved
    sum = saved * stop
    résumé = sum + np_ * result
    return résumé


def shadowed(x, len, range):
    reversed = x * len
    for zip in [1.0, 2.0]:
        reversed = reversed * zip * range + x
    return reversed


def noise(x):
    warnings.warn("noise", stacklevel=1)
    return x * x


SCALAR = [
    (loop_else, 1.3, 3),
    (loop_else, 1.3, 9),
    (loop_else, 0.7, 0),
    (nested_break, 1.3),
    (while_else_return, 0.7, 2.0),
    (while_else_return, 1.2, 50.0),
    (while_else_return, 3.0, 2.0),
    (early_in_try, 2.0),
    (early_in_try, 0.5),
    (return_in_with, 1.7),
    (return_in_with, 0.2),
    (loop_variable_after, 1.3),
    (zero_trip, 1.3, 0),
    (zero_trip, 1.3, 3),
    (dict_loops, 1.3),
    (helper_calls, 1.3),
    (helper_in_loop, 0.7),
    (recursive, 1.2),
    (variadic, 1.3),
    (returns_pair, 1.3),
    (closures, 1.3),
    (closure_rebound, 1.3),
    (functions_as_values, 1.3),
    (callbacks, 1.3),
    (partials, 1.3),
    (methods, 0.7),
    (records, 1.3),
    (wrapped, 1.3),
    (containers, 1.3),
    (lists, 1.3),
    (dicts, 1.3),
    (builtins_, 1.3),
    (conditional, 1.3, True),
    (conditional, 0.7, False),
    (walrus, 1.3),
    (matches, 1.3, ("scale", 2.0)),
    (matches, 1.3, {"power": 3}),
    (matches, 1.3, [4.0, 5.0]),
    (matches, 1.3, "minus"),
    (matches, 1.3, None),
    (matches, 1.3, 17),
    (with_blocks, 1.3),
    (try_except, 1.3, "a"),
    (try_except, 1.3, "b"),
    (statements, 1.3),
    (x_bar, 1.3),
    (shadowed, 1.3, 2.0, 0.5),
    (noise, 1.3),
    (worklist, 1.3),
]
ARRAY = [
    (rows, M),
    (reversed_zip, V),
    (strided, V),
    (carried_array, V),
    (comprehension, V),
    (map_zip_sorted, V),
    (indexing, V),
    (array_writes, V),
    (fancy_writes, V),
    (overlapping, V),
    (out_arguments, V),
    (ping_pong, V),
    (ring_buffer, V),
    (copy_then_write, V),
    (fill_sort, V),
    (attributes_methods, M),
    (numpy_everyday, M),
    (augmented_containers, V),
    (list_of_arrays, V),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", SCALAR + ARRAY, ids=lambda p: p[0].__name__)
def test_gradient(program):
    f, *args = program
    check(f, *args)


def test_every_argument():
    check(shadowed, 1.3, 2.0, 0.5, argnums=(0, 1, 2))


def test_pattern_that_takes_a_tuple_apart():
    assert srcgrad.grad(match_active)((2.0, 3.0)) == (3.0, 2.0)


def test_methods_and_callables_as_roots():
    layer = Layer(0.7)
    check(layer, 0.3)
    check(layer.apply, 0.3)
    check(Layer.square, 0.3)
    check(Layer.scaled, 0.3)
    check(functools.partial(scaled, by=3.0), 0.3)
    check(wrapped_cube, 0.3)
    check(lambda x: x * x, 0.3)
    check(make_power(3), 0.3)


def nested_stores(x):
    grid = [[0.0, x], [x * x, 1.0]]
    grid[0][0] = grid[1][0] * grid[0][1]
    grid[1][1] += grid[0][0] * 2
    d = {"w": np.zeros(3), "rows": [x]}
    d["w"][1] = grid[1][1] * x
    d["rows"][0] = d["rows"][0] * 3.0
    return grid[0][0] * grid[1][1] + d["w"].sum() + d["rows"][0]


class State:
    def __init__(self, n):
        self.values = [0.0] * n
        self.total = 0.0


def object_state(x):
    s = State(3)
    for i in range(3):
        s.values[i] = x * (i + 1)
        s.total += s.values[i] * x
    return s.total * s.values[2]


def pops_argument(xs):
    last = xs.pop()
    xs.append(last * 2.0)
    xs.append(1.0)
    return xs[0] * xs[-2] * len(xs)


def walrus_else(x):
    n = 0
    while (n := n + 1) < 4:
        x = x * n
    else:
        x = x * x
    return x


@pytest.mark.parametrize("f", [nested_stores, object_state, walrus_else])
def test_deep_stores(f):
    check(f, 1.3)


def test_gradient_of_a_list_that_changes_has_the_structure_that_was_passed():
    assert srcgrad.grad(pops_argument)([2.0, 3.0]) == [18.0, 12.0]


def fill(out, x, n):
    for i in range(n):
        out[i] = x * (i + 1) + out[i - 1]
    return out[0] * 2.0


def scale_all(xs, by):
    xs *= by


def writes_into_arguments(x):
    buf = np.zeros(3)
    a = fill(buf, x, 3)
    b = fill(buf, x * x, 2)
    scale_all(buf, x)
    ys = [x, 1.0]
    push(ys, x * 3)
    return a * b + buf.sum() + sum(ys)


def push(xs, v):
    xs.append(v)
    xs[0] = xs[0] * v


class Counter:
    def __init__(self, w):
        self.w = w
        self.calls = 0
        self.total = 0.0

    def step(self, h):
        self.calls += 1
        self.total += self.w * h
        return h * self.w


class Loud(Counter):
    def step(self, h):
        return super().step(h) * 2.0


def stateful(x):
    c = Counter(x)
    d = Loud(2.0)
    h = x
    for _ in range(3):
        h = c.step(h) + d.step(x)
    return h + c.total * c.calls + d.total


@pytest.mark.parametrize("f", [writes_into_arguments, stateful])
def test_callees_that_write(f):
    check(f, 1.3)


def nonlocal_state(x):
    count = 0
    total = x

    def add(t):
        nonlocal count, total
        count += 1
        total = total * t + x
        return count * t

    s = 0.0
    for k in range(3):
        s += add(x + k) * total
    return s + total * count


def collecting_closure(x):
    seen = []

    def note(t):
        seen.append(t * x)
        return t

    y = note(x) + note(2.0)
    return y * sum(seen)


def named_attributes(x):
    c = Counter.made(x) if hasattr(Counter, "made") else Counter(x)
    c.extra = x * 2
    return getattr(c, "extra", 1.0) * getattr(c, "missing", x) + getattr(c, "w")  # noqa: B009


def lambdas_in_loops(x):
    s = 0.0
    for i in range(3):
        s = s + apply(lambda t: t * x * i, x)  # noqa: B023
        x = x * 1.1
    return s


@pytest.mark.parametrize("f", [nonlocal_state, collecting_closure, named_attributes, lambdas_in_loops])
def test_closures_that_write(f):
    check(f, 1.3)


def alias_write(x):
    a = x * 1.0
    b = a
    b[2] = a[0] * a[1]
    return np.sum(a * a)


def view_write(x):
    m = np.zeros((2, 2))
    top = m[0]
    top[:] = x[:2]
    m[1] = top * x[2:]
    top *= 2.0
    return np.sum(m * m)


def argument_alias(x):
    total = x
    total += x
    return np.sum(total * x)


def rows_as_views(x):
    m = np.zeros((3, 4))
    for i in range(3):
        row = m[i]
        row[:] = x * (i + 1)
        row[0] += row[1] * row[2]
    return np.sum(m**2)


def list_alias(x):
    xs = [x[0]]
    ys = xs
    ys.append(x[1])
    xs[0] = ys[1] * 2.0
    return sum(xs) * ys[0]


@pytest.mark.parametrize("f", [alias_write, view_write, argument_alias, rows_as_views, list_alias])
def test_aliases_and_views(f):
    check(f, V)


def captured_list(x):
    xs = []

    def push(t):
        xs.append(t + x * x)

    def twice(t):
        push(t)
        push(t + 1.0)

    push(3.0)
    twice(2.0)
    return xs[0] * xs[2]


def inner_writer(x):
    buffer = np.zeros(3)

    def outer():
        def put(i):
            buffer[i] = x * i

        put(2)

    outer()
    return buffer[2] * x


def list_of_the_old_value(a):
    for _ in range(0, 4, 2):
        xs = [4.0, a]
        a = a**2
    return a * xs[1] + xs[-2]


@pytest.mark.parametrize("f", [captured_list, inner_writer, list_of_the_old_value])
def test_writes_into_captured_variables_and_old_values(f):
    check(f, 1.3)


def kept_append(x):
    xs = []
    push = xs.append
    push(x * x)
    return xs[0]


def kept_fill(x):
    buffer = np.zeros(3)
    fill = buffer.fill
    fill(x)
    return buffer[0]


@pytest.mark.parametrize("f", [kept_append, kept_fill])
def test_methods_that_write_are_refused_without_their_call(f):
    with pytest.raises(srcgrad.UnsupportedSyntax, match="without its call"):
        srcgrad.grad(f)(1.3)


RATE = 0.7


def returns_a_global(x):
    if x < 1.0:
        return RATE
    if x > 5.0:
        return x
    return RATE * x


def test_a_branch_that_returns_a_global():
    check(returns_a_global, 1.3)
    check(returns_a_global, 0.3)
    _, tangent = srcgrad.jvp(returns_a_global, (1.3,), (2.0,))
    assert tangent == 1.4


STORE = {}


def writes_a_global(x):
    STORE["last"] = x * x
    return STORE["last"] * x


def test_writes_into_objects_from_outside_are_refused():
    with pytest.raises(srcgrad.UnsupportedSyntax, match="a write into `STORE`, which is from outside"):
        srcgrad.grad(writes_a_global)(1.3)
    assert not STORE


def starred_ufunc(x, fs=(np.sin, np.cos), args=()):
    for f in fs:
        x = f(x, *args) * x
    return np.sum(x)


def test_a_ufunc_that_receives_spread_arguments():
    check(starred_ufunc, V)


def indices_of_itself(x):
    for _ in range(2):
        x = x[[1, 0, 1, 3]]
    return np.mean(x * x)


def part_of_itself(x):
    for _ in range(2):
        x = x[::1]
    return np.sum(x**3)


def rows_that_share_a_name(m):
    row = m[1]
    for i, c in enumerate(m):
        pass
    row[2] = c[i]
    return 0.593 * row.sum() + sum([*c])


def scalar_into_a_mask(x):
    pair = [x, x * 0.5]
    y = pair[1]
    v = np.array([[-0.7, y[0]], [False, x[1]]])
    v[v < 0.8] = np.sum(np.full((3,), y[0]))
    return np.sum(v)


def copies_through_unknown_classes(x, make=list):
    xs = make(x)
    xs.append(xs[0] * xs[1])
    return xs[-1] * xs[0]


@pytest.mark.parametrize(
    "f", [indices_of_itself, part_of_itself, scalar_into_a_mask, copies_through_unknown_classes]
)
def test_values_made_of_parts_of_themselves(f):
    check(f, V)


def test_views_that_share_a_name():
    """Exact, or refused: which rows they are is seen when it runs."""
    try:
        check(rows_that_share_a_name, np.array([[0.4, -1.2, 1.5], [0.1, 0.2, 0.5], [-1.1, -1.0, -0.8]]))
    except srcgrad.AliasError as error:
        assert "memory" in str(error)


def into_integers(x):
    y = np.full(4, 1)
    y[1] = x
    return y.sum() * x


def into_integers_by_update(x):
    y = np.arange(3)
    y[1] += x
    return y.sum() * x


@pytest.mark.parametrize("f", [into_integers, into_integers_by_update])
def test_differentiated_values_into_arrays_of_integers_are_refused(f):
    for transform in (srcgrad.grad(f), lambda x: srcgrad.jvp(f, (x,), (1.0,))):
        with pytest.raises(srcgrad.UnsupportedSyntax, match="holds integers|rounds"):
            transform(1.5)


def read_after_its_loop(x):
    h = abs(x)
    for _ in range(2):
        h = np.sin(h) * h
    return h * x


def row_updated_in_its_loop(x):
    total = 0.0
    for c in np.zeros(3):
        c += x
        total += c * c
    return total + c


def updated_by_itself(x):
    y = sum(map(math.cos, [x, 2 * x]))
    y *= math.cos(y)
    return y


class Base:
    def __init__(self, b):
        self.b = b

    def describe(self, t):
        return self.b * t


class Derived(Base):
    def __call__(self, t):
        return self.describe(0.3) + t

    def describe(self, t):
        return super().describe(t) * 2.0


def through_super(x):
    return Derived(b=x * x)(1.4)


def name_of_a_function_bound_again(x):
    def apply(t):
        return t * x

    y = apply(2.0)
    apply = [y, x]
    return apply[0] * apply[1]


def written_between_uses(x):
    y = np.array([x, x])
    total = y
    z = np.where(y > 0, y, 0.0)
    y = y * 2.0
    y[0] = x * x
    return z.sum() + (total * y).sum()


@pytest.mark.parametrize(
    "f",
    [
        read_after_its_loop,
        row_updated_in_its_loop,
        updated_by_itself,
        through_super,
        name_of_a_function_bound_again,
        written_between_uses,
    ],
)
def test_scalars_through(f):
    check(f, 0.953)
    slope = differences(f, (0.953,), 0)
    assert srcgrad.jvp(f, (0.953,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)


def halved(u, depth):
    if depth <= 0:
        return np.arctan(u)
    u -= np.sin(u) * 0.5
    return 0.7 * halved(u, depth - 1)


def numbers_that_callees_update(x):
    q = np.sin(x)
    for _ in range(2):
        q -= np.arctan(halved(q, 2))
    return q * x


def list_that_grows_after_its_loop(x):
    for i in range(3):
        stack = [x * i]
        stack.append(x)
    stack.insert(0, 1.5)
    top = stack.pop()
    return sum(stack) * top


def name_of_another_structure(x):
    items = [x, x * x, 2.0]
    for _ in range(2):
        items = [x]
    for c in (x, 1.0):
        pass
    for c in [[x, x]]:
        pass
    return sum(items) * sum(c)


def list_made_of_parts(x):
    xs = [*(x, x * x), 1.5]
    k = 0
    while k < 2:
        k += 1
        xs += [x * k, 2.0]
    return sum(xs) * xs[-2]


@pytest.mark.parametrize(
    "f",
    [
        numbers_that_callees_update,
        list_that_grows_after_its_loop,
        name_of_another_structure,
        list_made_of_parts,
    ],
)
def test_scalars_through_containers(f):
    check(f, 0.953)


def zeroed(u):
    u[[2]] = 1.5
    return 1.0


def written_in_a_test(x):
    if zeroed(x) < 0.5:
        return x[0]
    return x[2] * x[1]


def test_writes_inside_tests_are_refused_or_exact():
    try:
        check(written_in_a_test, V)
    except srcgrad.AliasError as error:
        assert "writes into `x`" in str(error)


def factor_that_broadcasts(x):
    return np.sum(np.full((2,), x * 1.0) * np.ones((1,))) + np.sum(np.full((2, 3), x) * np.ones((2, 1)))


def constant_kept_for_a_function(x):
    k = 2.0
    kept = [lambda t: k * t]
    y = x * k
    k = 3.0
    total = y * kept[0](1.0)
    for k in (1.5, 2.5):
        total = total * k
    return total


@pytest.mark.parametrize("f", [factor_that_broadcasts, constant_kept_for_a_function])
def test_factors(f):
    check(f, 0.953)
    slope = differences(f, (0.953,), 0)
    assert srcgrad.jvp(f, (0.953,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)


class Vector:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __getitem__(self, i):
        return self.a if i == 0 else self.b

    def __iter__(self):
        return iter((self.a, self.b))

    @property
    def size(self):
        return self.a**2

    @size.setter
    def size(self, v):
        self.a = v**0.5


def element_of_an_object(x):
    v = Vector(x, x * x)
    return v[0] * v[1]


def object_taken_apart(x):
    a, b = Vector(x, x * x)
    return a * b


def property_stored(x):
    v = Vector(x, 1.0)
    v.size = x * x * x
    return v.a


@pytest.mark.parametrize("f", [element_of_an_object, object_taken_apart, property_stored])
def test_code_of_classes_that_runs_unseen(f):
    check(f, 1.3)


def row_read_after_a_deep_write(x):
    state = np.sin(np.outer(x, x))
    for i, c in enumerate(state):
        last = c
    state[i][0] -= x[1] * x[2]
    return np.mean(state * state) + np.mean(last * last)


def test_rows_that_a_deep_write_changes():
    try:
        check(row_read_after_a_deep_write, V)
    except srcgrad.AliasError as error:
        assert "memory" in str(error)


# Copies in a circle -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations("abcd")))
def test_a_loop_that_permutes_its_variables_in_any_order(order):
    text = f"""
def f(x, steps):
    a, b, c, d = x
    for i in range(steps):
        parts = [b for _ in range(2)]
        d = d + 0.2 * np.sin(a - sum(parts))
        a, b, c, d = {", ".join(order)}
    return a + 2 * b * c
"""
    names = {"np": np}
    linecache.cache[f"<{order}>"] = (len(text), None, text.splitlines(True), f"<{order}>")
    exec(compile(text, f"<{order}>", "exec"), names)
    check(names["f"], V, 3)


# What a pattern, a context manager and a handler bind -------------------------------------------------------


def rebound_by_a_pattern(x):
    total = 0.0
    m = x
    for i in range(3):
        match (1, 1.5 + i):
            case [2, m]:
                pass
            case [_, m] if m < 2:
                total += m * x
        m -= x * 2
        total += m * x
    return total


def rebound_by_a_guarded_pattern_that_fails(x):
    total = 0.0
    m = x
    for i in range(3):
        match (1, 1.5 + i):
            case [_, m] if m > 5:
                m = x
            case [1, k] if (j := k * x) > 0:
                total += j
            case _:
                total += 0.5
        total += m * x
        m = m * x
    return total


def bound_by_both_alternatives(x):
    total = x
    for pair in ((x, 1.0), (2.0, x * x)):
        match pair:
            case (p, 1.0) | (2.0, p):
                total *= p
    return total


@contextlib.contextmanager
def number(value):
    yield value


def rebound_by_with(x):
    total = 0.0
    j = x
    for i in range(3):
        total += j * x
        with number(2.0) as m, number([m, 2]) as (j, k):
            total += m * x + k * j
    return total + j * x


def rebound_by_a_handler(x):
    total, e = x, x
    for i in range(3):
        total = total * x + (e if i == 0 else 1.0)
        try:
            raise ValueError
        except ValueError as e:
            pass
    return total


@pytest.mark.parametrize(
    "f",
    [
        rebound_by_a_pattern,
        rebound_by_a_guarded_pattern_that_fails,
        bound_by_both_alternatives,
        rebound_by_with,
        rebound_by_a_handler,
    ],
)
def test_names_that_are_bound_without_an_assignment(f):
    check(f, 0.7)
    value, tangent = srcgrad.jvp(f, (0.7,), (1.0,))
    np.testing.assert_allclose(tangent, differences(f, (0.7,), 0), rtol=1e-6)


# Integers and booleans as factors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: -(n * x),
        lambda x, n: n * x - n * x * n,
        lambda x, n: (x > 0.1) * x * 1.0 - (x > 0.1) * -x,
        lambda x, n: np.sum(n * np.array([x, 1.0]) * n),
    ],
)
@pytest.mark.parametrize("x", [0.3, np.float64(0.3)])
def test_factors_that_are_small_integers_or_booleans(f, x):
    n = np.uint8(200)
    expected = (f(0.3 + 1e-6, float(n)) - f(0.3 - 1e-6, float(n))) / 2e-6
    np.testing.assert_allclose(srcgrad.grad(f)(x, n), expected, rtol=1e-7)


def test_factors_that_are_arrays_of_small_integers():
    n = np.array([200, 3], dtype=np.uint8)
    got = srcgrad.grad(lambda x, n: np.sum(n * x * n) - np.sum(n * x))(np.array([0.5, 0.25]), n)
    np.testing.assert_allclose(got, [200.0**2 - 200.0, 6.0])


# Results that are their arguments ---------------------------------------------------------------------------


def test_max_of_an_array_without_dimensions_is_that_array():
    def f(x):
        s = np.where(False, 1.5, x)
        s += max(s, -1.137)
        return s

    check(f, -0.907)

    def written_while_shared(x):
        s = np.array(x)
        t = max(s, -1.137)
        s += 1.0
        return t * s

    with pytest.raises(srcgrad.AliasError):
        srcgrad.grad(written_while_shared)(-0.907)


def test_a_list_that_grows_after_it_was_chosen():
    def f(x):
        xs = [x, 2 * x]
        ys = [x * x] if x > 5 else xs
        ys.extend([x**2, 1.0])
        return sum(ys) * x

    check(f, 0.4)


def test_numbers_of_the_math_module_are_updated_as_numbers():
    def f(x):
        h = math.tanh(np.where(x[0] > 0, x[1], 0.017))
        s = h
        s -= 0.12 * x[2]
        return h * s

    check(f, V)


def test_a_tuple_of_other_parts_in_each_iteration():
    def f(x, m):
        pair = (x, 1.0)
        for i in range(2):
            pair = (m * (i + 1), x) if i else (x, m)
        return x * x + np.sum(pair[0]) * pair[1]

    check(f, 0.7, M, argnums=(0, 1))


def test_a_tuple_that_becomes_a_number():
    def f(x):
        both = (x, 1.0)
        for _ in range(2):
            both, h = (0.5 * x, x)
        return both * h

    check(f, 0.7)


def sum_after_an_exception(x):
    s = 0.0
    for v in [1.0, 0.0, 2.0]:
        try:
            s = s + x / v
        except ZeroDivisionError as error:
            s = s * x + len(str(error))
    try:
        k = {"a": 2}["b"]
    except KeyError:
        k = 3
    else:
        k = 5
    finally:
        z = x * k
    return s * z


def slices_deleted(x):
    xs = [x, x * x, 1.0, x**3]
    del xs[1:3]
    return xs[0] * xs[1] * len(xs)


@dataclasses.dataclass
class Place:
    x: float
    y: float


@dataclasses.dataclass
class Disc:
    at: Place
    r: float


def extent(shape):
    match shape:
        case Disc(Place(0.0, _), r):
            return 100 * r
        case Disc(Place(a, b), r) if r > 0:
            return math.pi * r**2 + a * b
        case float(v):
            return v * v
    return 0.0


def patterns_by_position(x):
    return extent(Disc(Place(x, 2.0), x * x)) + extent(Disc(Place(0.0, x), x)) + extent(x)


def rows_and_columns(x):
    rows = [[x, 1.0, 2.0], [3.0, x * x, 0.5]]
    xs, ys, zs = zip(*rows, strict=True)
    columns = [list(c) for c in zip(*rows, strict=True)]
    numbered = sum(i * v for i, v in zip(itertools.count(2), xs, strict=False))
    turns = sum(v * w for v, w in zip(rows[0], itertools.cycle([x, 2.0]), strict=False))
    return xs[0] * ys[1] + sum(zs) * columns[1][1] + numbered + turns


@pytest.mark.parametrize(
    "f", [sum_after_an_exception, slices_deleted, patterns_by_position, rows_and_columns]
)
def test_more_of_the_language(f):
    check(f, 0.7)


def test_matmul_in_place():
    def f(m):
        a = m.copy()
        b = a
        a @= m
        return np.sum(a**2) + b[0, 1]

    check(f, np.array([[0.3, 1.2], [0.8, -0.5]]))


def loop_in_a_loop(x):
    s = x
    for i in range(3):
        for j in range(3):
            s = s * x + i * j
    return s


def comprehension_in_a_comprehension(x):
    rows = [[x, 2.0], [x * x, x]]
    return sum([v**2 * x for row in rows for v in row if v > 0.5]) + sum([sum(r) * x for r in rows])


@pytest.mark.parametrize("f", [loop_in_a_loop, comprehension_in_a_comprehension])
def test_second_derivatives_of_nested_loops(f):
    df = srcgrad.grad(f)
    assert srcgrad.grad(df)(0.7) == pytest.approx(differences(df, (0.7,), 0), rel=1e-6)


def test_a_partial_that_is_not_called_on_this_path():
    def scaled_by(t, by):
        return t * by

    def f(x):
        g = functools.partial(scaled_by, by=0.3 * x)
        if x > 5:
            x = g(x)
        return x * 2

    check(f, 0.7)
    check(f, 6.0)


def test_an_array_of_another_length_in_each_iteration():
    def f(a, m):
        out = np.arctan(a)
        for i in range(0, 3, 2):
            out = m[: i + 1, i % 2]
        return np.mean(out)

    check(f, V, np.outer(V, V), argnums=(0, 1))


def test_a_factor_that_is_written_later():
    def f(x):
        a = np.sin(x)
        a *= x
        x[0] = a[3]
        x += 0.9
        return np.sum(x) * np.sum(a)

    check(f, V)


def test_a_list_that_grows_under_another_name_on_one_path():
    def f(x):
        path = [x, x * x]
        if x < 5:
            for _ in range(2):
                path.insert(0, 3 * x)
                path = list(reversed(path))
        return sum(path) * path[-1]

    check(f, 0.7)
    check(f, 6.0)


def test_a_function_that_is_called_underscore():
    def f(x):
        for _ in range(2):
            x = x * x
        _ = lambda a, b: a * x + b  # noqa: E731
        return _(x, 2.0)

    check(f, 0.7)


def test_an_array_that_a_loop_may_not_make():
    def f(x, a):
        for e in a:
            for n in range(0, 4, 2):
                buf = np.tanh(np.cumsum(a**2) * x)
                x = x * buf[n]
                buf[n] *= 0.6 * e
            x = x + buf[0]
        return x + np.sum(buf)

    check(f, 0.7, V, argnums=(0, 1))


def bound_by_a_pattern_after_an_early_return(y, k):
    match (k, 1.5):
        case [0, _]:
            return 0.6
        case [1, m] if True:
            state = np.arctan(m) * y
            m /= y
            out = state * m
    return out.sum()


@pytest.mark.parametrize("k", [0, 1])
def test_a_name_that_no_pattern_has_bound(k):
    found = srcgrad.grad(bound_by_a_pattern_after_an_early_return)(0.7, k)
    f = bound_by_a_pattern_after_an_early_return
    slope = 0.0 if k == 0 else (f(0.7 + 1e-6, k) - f(0.7 - 1e-6, k)) / 2e-6
    np.testing.assert_allclose(found, slope, atol=1e-8)
