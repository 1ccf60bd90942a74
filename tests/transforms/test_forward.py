"""Forward mode: programs of every kind against reverse mode and central differences, and the emitted
source."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import namedtuple

import numpy as np
import pytest

import srcgrad
from srcgrad.runtime.errors import NoRule, UnsupportedSyntax
from srcgrad.transforms import build

X = np.array([0.3, 0.7, 1.1])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


def square(t):
    return t * t


def apply(function, *args, **kwargs):
    return function(*args, **kwargs)


# Straight lines and broadcasting


@program
def arithmetic(x):
    a, b, c = x
    return (a + b) * c / (1 + a**2) - b ** (c + 1) + (-a) % 0.25 + abs(b - c)


@program
def broadcasting(x):
    m = np.outer(x, x) + x - x[0]
    m = m * x[:, None] / (1 + x) + np.ones((2, 1, 1)) * x[1]
    return np.sum(m * m) + np.mean(np.maximum(m, 0.5), axis=(0, 2))[1]


@program
def functions(x):
    return np.sum(np.tanh(x) * np.exp(-x) + np.log1p(x) * np.sqrt(x)) + math.sin(x[0]) * math.hypot(
        x[1], x[2]
    )


@program
def linear_algebra(x):
    m = np.outer(x, x) + np.diag(x) + np.eye(3)
    w, v = np.linalg.eigh(m)
    return (
        np.linalg.slogdet(m)[1] + np.sum(np.linalg.solve(m, x)) + np.trace(np.linalg.inv(m) @ m.T) + w[1] ** 2
    )


@program
def joining(x):
    rows = [x * i for i in range(1, 4)]
    m = np.stack(rows)
    return np.sum(np.concatenate([m[0], x[::-1]]) * np.tile(x, 2)) + np.sum(np.where(m > 1, m**2, m)[:, 1:])


@program
def complex_inside(x):
    z = np.exp(1j * x) * (1 + 2j * x)
    return np.sum(np.abs(z) ** 2) + np.real(z[0] * z[1]) + np.imag(np.fft.fft(x)[1])


@program
def methods(x):
    m = np.outer(x, x).reshape(1, 9)
    return m.sum() + (m.T * 2.0).mean() + x.copy().dot(x) + x.max() * x.std() + x.clip(0.4, 1.0).prod()


# Control flow


@program
def branches(x):
    if x[0] > 0.2:
        y = x * 2
    elif x[1] > 5:
        y = x
    else:
        y = 3.0
    z = y if x[2] > 1 else -y
    return np.sum(z * x)


@program
def loops(x):
    total, i = 0.0, 0
    while total < 3.0:
        total = total + x[i % 3] ** 2 + 0.1
        i += 1
        if i > 40:
            break
    for j, v in enumerate(x):
        if j == 1:
            continue
        total = total * v + j
    for a, b in zip(x[:-1], x[1:]):
        total += a * b
    return total * x[0]


@program
def swaps(x):
    a, b = x[0], x[1]
    for _ in range(5):
        a, b = b, a * x[2] + b
    return a - b


@program
def early_returns(x):
    for v in x:
        for w in x:
            if v * w > 0.6:
                return v * w * x[0]
    return x[0]


@program
def exceptions(x):
    try:
        y = x[0] ** 2
        if x[0] > 0:
            raise ValueError
        y = y * 100
    except ValueError:
        y = x[1] ** 3
    else:
        y = x[2]
    finally:
        z = x[2] * 2
    return y * z


@program
def comprehensions(x):
    squares = [v * v for v in x if v > 0.5]
    table = {i: v * x[0] for i, v in enumerate(x)}
    nested = [a * b for a in squares for b in table.values()]
    return sum(squares) + sum(nested) + max(v for v in x) * (y := x[1]) + y


# Writing in place


@program
def element_writes(x):
    out = np.zeros((3, 2))
    for i in range(3):
        out[i, 0] = x[i] ** 2
        out[i, 1] += out[i, 0] * x[0]
        out[i] *= 2.0
    out[1:, 0] = x[:2] * x[1]
    out[0] = 1.0
    return np.sum(out**2)


@program
def updates(x):
    y = x * 1.0
    y *= y
    y /= x + 1
    y **= 2
    y -= x * y
    y += y
    y[y > 0.1] = x[0]
    return np.sum(y)


@program
def scatter(x):
    out = np.zeros(3)
    np.add.at(out, [0, 0, 2], x * x)
    np.copyto(out[:1], out[1:2] + x[:1]) if False else None
    out.sort()
    return np.sum(out * np.arange(3.0) * x)


@program
def overwritten_after_use(x):
    y = x.copy()
    s = np.sum(square(y))
    y[0] = 5.0 * y[1]
    return s + y[0] * y[2]


@program
def constant_kept_apart(x):
    y = x + 1.0
    z = y + 2.0
    z[0] = 7.0
    y[1] *= 3.0
    return np.sum(y * z * x)


def fill(out, x):
    out[0] = x[0] * x[1]
    out[1:] += x[1:]
    return x[2] * out[0]


@program
def written_by_a_callee(x):
    out = np.ones(3)
    s = fill(out, x)
    return s * np.sum(out * out)


# Containers

Point = namedtuple("Point", ["east", "north"])


@dataclasses.dataclass
class State:
    position: object
    speed: float = 1.0

    def step(self, force):
        return State(self.position + self.speed * 0.1, self.speed + force * 0.1)

    @property
    def energy(self):
        return np.sum(self.position**2) + self.speed**2


@program
def lists(x):
    stack = [x[0], 2.0]
    stack.append(x[1] * x[2])
    stack.insert(0, x[2])
    last = stack.pop()
    stack.extend([x[0] * last, 1.0])
    stack[1] = stack[0] * stack[1]
    stack.reverse()
    del stack[0]
    return sum(stack) + last + stack[-1] * len(stack) + sum(stack[1:] + [x[0]] * 2)


@program
def dicts(x):
    d = {"a": x, "b": x[0] * x[1]}
    d["c"] = d["a"] * 2
    d.update(e=x[2])
    total = d.get("z", x[1]) + d.pop("b")
    for value in d.values():
        total = total + np.sum(value)
    return total * d["e"]


@program
def tuples(x):
    p = Point(x[0] * 2, north=x[1])
    first, *rest = (x[2], *p)
    return first * sum(rest) + p.east * p.north + p[0]


@program
def objects(x):
    state = State(x * 1.0, x[0])
    for _ in range(3):
        state = state.step(x[1])
    state.speed = state.speed * x[2]
    return state.energy


# Calls


def powers(t, *exponents, scale=1.0, **more):
    total = 0.0
    for e in exponents:
        total = total + t**e * scale
    for k in more:
        total = total * more[k]
    return total


def factorial(x, n):
    return x if n == 0 else x * factorial(x + 0.1, n - 1)


@program
def calls(x):
    return powers(x[0], 2, 3, scale=x[1], extra=x[2]) + factorial(x[1], 3) + square(t=x[2])


@program
def starred_calls(x):
    args, options = (x[0], 2), {"scale": x[1]}
    return powers(*args, 3, **options) + math.prod(tuple(x))


@program
def closures(x):
    a = x[0]

    def inner(t, k=2.0):
        return a * t * k + x[1]

    def outer(t):
        return inner(t) * inner(t, k=x[2])

    return outer(x[1]) + apply(outer, a) + apply(lambda t: t * a, x[2])


@program
def functions_as_values(x):
    chosen = [square, math.exp, np.tanh, lambda t: t * x[0], functools.partial(powers, x[1], 2)]
    total = 0.0
    for f in chosen[:4]:
        total = total + f(x[2])
    return total + chosen[4](scale=x[0]) + sum(map(square, x)) + sum(sorted(x, key=lambda v: -v)[:2])


def scaled(k):
    def inner(t, shift=k * 2):
        return t * k + shift * t**2

    return inner


DOUBLE, TRIPLE = scaled(2.0), scaled(3.0)


@program
def functions_that_share_code(x):
    return DOUBLE(x[0]) * TRIPLE(x[1]) + apply(DOUBLE, x[2]) * apply(TRIPLE, x[0])


@program
def recursion_in_a_closure(x):
    def collatz(t, n):
        return t * x[0] if n == 0 else collatz(t * 0.5 + x[1], n - 1)

    return apply(collatz, x[2], 4)


# The check of all


def differences(f, x, h=1e-6):
    g = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        g[i] = (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * h)
    return g


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_against_reverse_and_differences(f):
    kept = X.copy()
    value = f(X.copy())
    forward = np.zeros(3)
    for i, unit in enumerate(np.eye(3)):
        given = unit.copy()
        got, forward[i] = srcgrad.jvp(f, (X.copy(),), (given,))
        assert np.shape(got) == () and got == pytest.approx(value)
        assert np.array_equal(given, unit), "the tangent was changed"
    np.testing.assert_allclose(forward, differences(f, X), rtol=2e-6, atol=2e-7)
    try:
        reverse = srcgrad.grad(f)(X.copy())
    except srcgrad.SrcgradError as refusal:
        pytest.skip(f"reverse mode refuses: {refusal}")
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12)
    assert np.array_equal(X, kept)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_linear_in_the_tangent(f):
    u, v = np.array([1.0, -0.5, 0.25]), np.array([0.5, 2.0, -1.0])
    along = [srcgrad.jvp(f, (X.copy(),), (t,))[1] for t in (u, v, 2 * u - 3 * v)]
    assert 2 * along[0] - 3 * along[1] == pytest.approx(along[2], rel=1e-9, abs=1e-12)


# The emitted source


def source(f, *args):
    return build.root(f, args, {}, set(range(len(args)))).source


def growth(x, r):
    for _ in range(3):
        x = x + r * x * (1 - x)
    return x


def test_source_of_a_loop():
    assert source(growth, 0.3, 0.5) == (
        "def growth_jvp(x, r, x_dot, r_dot):\n"
        "    for _ in range(3):\n"
        "        p = r * x\n"
        "        d = 1 - x\n"
        "        p_dot = (r_dot * x + x_dot * r) * d - x_dot * p\n"
        "        x = x + p * d\n"
        "        x_dot = x_dot + p_dot\n"
        "    return x, x_dot\n"
    )


def fill_squares(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] * x[i]
    return out


def test_source_of_writes():
    assert (
        source(fill_squares, X)
        == (
            "def fill_squares_jvp(x, x_dot):\n"
            "    out = np.zeros(3)\n"
            "    out_dot = np.zeros_like(out)\n"
            "    for i in range(3):\n"
            "        e = x[i]\n"
            "        e_dot = x_dot[i]\n"
            "        e_2 = x[i]\n"
            "        out[i] = e * e_2\n"
            "        out_dot[i] = e_dot * e_2 + x_dot[i] * e\n"
            "    return out, out_dot\n"
        )
        or source(fill_squares, X).count("out_dot[i] =") == 1
    )


def test_inactive_code_is_left_alone():
    def f(x, n):
        table = [k * k for k in range(n)]
        print_me = f"{len(table)} entries"
        assert print_me
        return x * table[-1]

    text = source(f, 2.0, 4)
    assert "table_dot" not in text and "print_me_dot" not in text
    assert srcgrad.jvp(f, (2.0, 4), (1.0, None)) == (18.0, 9.0)


# Shapes, dtypes and structures


def test_float32_stays():
    value, tangent = srcgrad.jvp(lambda x: np.sin(x) * 2.0, (X.astype(np.float32),), (np.ones(3),))
    assert value.dtype == tangent.dtype == np.float32
    value, tangent = srcgrad.jvp(lambda x: x * 2.0, (np.float32(1.5),), (1.0,))
    assert type(value) is type(tangent) is np.float32


def test_broadcast_results_have_whole_tangents():
    value, tangent = srcgrad.jvp(lambda x: x + np.zeros((2, 3)), (X,), (np.ones(3),))
    assert value.shape == tangent.shape == (2, 3)
    tangent[0, 0] = 5.0  # writable, and memory of its own
    value, tangent = srcgrad.jvp(lambda s: s + X, (1.0,), (2.0,))
    np.testing.assert_array_equal(tangent, np.full(3, 2.0))


def test_containers_in_and_out():
    def f(params, p):
        return {"sum": params["w"] @ params["b"][0], "point": Point(p.east * 2, "label")}, State(
            params["w"], 3.0
        )

    params = {"w": X, "b": (np.ones(3), 4.0)}
    moves = {"w": np.ones(3), "b": (np.full(3, 2.0), 0.0)}
    (first, state), (moved, state_moved) = srcgrad.jvp(f, (params, Point(1.0, 2.0)), (moves, Point(1.0, 0.0)))
    assert first["sum"] == pytest.approx(X.sum())
    assert moved["sum"] == pytest.approx(3.0 + 2 * X.sum()) and moved["point"].east == 2.0
    assert isinstance(moved["point"], Point) and isinstance(state_moved, State)
    np.testing.assert_array_equal(state_moved.position, np.ones(3))
    assert state_moved.speed == 0.0


def test_a_tangent_owns_its_memory():
    t = np.ones(3)
    _, moved = srcgrad.jvp(lambda x: x, (X,), (t,))
    moved += 1
    assert np.array_equal(t, np.ones(3))


def test_arguments_that_the_function_writes():
    def f(x):
        x[0] = x[1] * 2
        return np.sum(x)

    x, t = X.copy(), np.ones(3)
    value, tangent = srcgrad.jvp(f, (x,), (t,))
    assert tangent == 4.0 and x[0] == 1.4 and np.array_equal(t, np.ones(3))


# Refusals


def test_wrong_tangents():
    with pytest.raises(TypeError, match=r"`x` has shape \(2,\), but the argument has shape \(3,\)"):
        srcgrad.jvp(lambda x: np.sum(x), (X,), (np.ones(2),))
    with pytest.raises(TypeError, match="2 primals but 1 tangents"):
        srcgrad.jvp(lambda x, y: x, (1.0, 2.0), (1.0,))
    with pytest.raises(TypeError, match="complex"):
        srcgrad.jvp(lambda x: x, (1.0,), (1j,))
    with pytest.raises(TypeError, match="int64"):
        srcgrad.jvp(lambda x: x, (np.arange(3),), (np.ones(3),))


def test_integer_arrays_do_not_receive_tangents():
    def f(x):
        n = np.array([1, 2, 3])
        n[0] = x[0] * 10
        return np.sum(n * x)

    with pytest.raises(UnsupportedSyntax, match="rounds"):
        srcgrad.jvp(f, (X,), (X,))


def test_refusals_show_the_line():
    def f(x):
        return np.busday_count(x, x)

    with pytest.raises((NoRule, UnsupportedSyntax), match="busday_count") as caught:
        srcgrad.jvp(f, (X,), (X,))
    assert "test_forward.py" in str(caught.value)


def test_writes_through_a_view():
    def f(x):
        y = x[1:]
        y[0] = 2.0 * x[0]
        return np.sum(x * x)

    _, tangent = srcgrad.jvp(f, (np.array([0.5, 0.7, 1.1]),), (np.array([1.0, 3.0, 0.0]),))
    assert tangent == pytest.approx(2 * 0.5 + 8 * 0.5)
