"""Derivatives clipped and inspected at a point, checkpointed loops, rules of the user's own."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import srcgrad
from srcgrad import (
    check_grads,
    checkpointed_loop,
    grad,
    hessian,
    hvp,
    intercept,
    jacfwd,
    jacrev,
    jvp,
    rules,
    vjp,
)
from srcgrad.loops import _split
from srcgrad.runtime.rules import table

X = np.array([1.0, 2.0, 3.0])

# intercept


def clipped(x):
    y = intercept(x**2, lambda d: np.clip(d, -1.0, 4.5))
    return np.sum(y * 3.0)


def test_intercept_clips_in_both_modes():
    np.testing.assert_allclose(grad(clipped)(X), 3 * 2 * X)  # a cotangent of 3 passes
    np.testing.assert_allclose(grad(lambda x: clipped(x) * 2)(X), 4.5 * 2 * X)
    assert jvp(clipped, (X,), (np.ones(3),))[1] == 3 * (2.0 + 4.0 + 4.5)
    assert clipped(X) == 3 * np.sum(X**2)


def test_intercept_inspects():
    seen = []

    def f(x):
        for _ in range(3):
            x = intercept(np.sin(x), lambda d: seen.append(d))
        return x

    want = math.cos(0.5) * math.cos(math.sin(0.5)) * math.cos(math.sin(math.sin(0.5)))
    assert grad(f)(0.5) == pytest.approx(want)
    assert seen[0] == 1.0 and seen[1] == pytest.approx(math.cos(math.sin(math.sin(0.5)))) and len(seen) == 3
    seen.clear()
    assert jvp(f, (0.5,), (1.0,))[1] == pytest.approx(want)
    assert seen[0] == pytest.approx(math.cos(0.5)) and seen[-1] == pytest.approx(want)


def test_intercept_keeps_form_and_checks_what_is_returned():
    def f(d):
        d = intercept(d, lambda t: {"a": 2 * t["a"], "b": (0.0, t["b"][1])})
        return np.sum(d["a"]) * d["b"][0] + d["b"][1]

    at = {"a": X.astype(np.float32), "b": (2.0, 3.0)}
    bars = grad(f)(at)
    np.testing.assert_array_equal(bars["a"], np.full(3, 4.0))
    assert bars["a"].dtype == np.float32 and bars["b"] == (0.0, 1.0)
    assert jvp(f, (at,), (at,))[1] == pytest.approx(2 * 6.0 * 2.0 + 3.0)

    def wrong(x):
        return np.sum(intercept(x, lambda d: np.ones(7)))

    for call in (lambda: grad(wrong)(X), lambda: jvp(wrong, (X,), (X,))):
        with pytest.raises(TypeError, match=r"intercept.*has shape \(7,\)"):
            call()


def test_intercept_through_writes_and_second_derivatives():
    def f(x):
        y = intercept(x * 1.0, lambda d: 10 * d)
        y[0] = 5.0
        return np.sum(y)

    np.testing.assert_array_equal(grad(f)(X), [0.0, 10.0, 10.0])
    assert jvp(f, (X,), (np.ones(3),))[1] == 20.0

    def doubled(x):
        return intercept(x**3, lambda d: 2 * d)

    for second in (
        hessian,
        lambda f: grad(grad(f)),
        lambda f: jacrev(jacfwd(f)),
        lambda f: jacfwd(jacfwd(f)),
    ):
        assert second(doubled)(2.0) == pytest.approx(2 * 12.0)


def test_intercept_of_a_tensor():
    t = srcgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    intercept(t * 3, lambda g: g * 10).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.full(3, 30.0))


# Loops


def step(i, x, r):
    return x + r * x * (1 - x) * (1 + 0.1 * i)


def plain(x, r):
    for i in range(23):
        x = step(i, x, r)
    return x


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 23, 50])
def test_checkpointed_loop_is_the_plain_loop(slots):
    def f(x, r):
        return checkpointed_loop(step, slots)(23, x, r)

    want = grad(plain, (0, 1))(0.3, 0.11)
    assert f(0.3, 0.11) == plain(0.3, 0.11)
    np.testing.assert_allclose(grad(f, (0, 1))(0.3, 0.11), want, rtol=1e-13)
    tangent = jvp(f, (0.3, 0.11), (1.0, 2.0))[1]
    assert tangent == pytest.approx(want[0] + 2 * want[1], rel=1e-12)
    if slots in (1, 3):
        second = hessian(plain, (0, 1))(0.3, 0.11)
        for outer, inner in itertools.product([jacfwd, jacrev], repeat=2):
            np.testing.assert_allclose(outer(inner(f, (0, 1)), (0, 1))(0.3, 0.11), second, rtol=1e-10)


def test_checkpointed_loop_of_arrays_containers_and_captured_values():
    def f(a, x):
        def body(i, state):
            return {"x": np.tanh(a @ state["x"]), "t": state["t"] + state["x"][0] * i}

        end = checkpointed_loop(body, slots=3)(8, {"x": x, "t": 1.0})
        return np.sum(end["x"]) * end["t"]

    a = np.array([[0.5, 0.2], [-0.3, 0.8]])
    check_grads(f, (a, X[:2]), order=2)


def test_checkpointed_loop_of_no_steps():
    loop = checkpointed_loop(step, 3)
    assert grad(loop, (1, 2))(0, 0.3, 0.1) == (1.0, 0.0)
    assert jvp(lambda x: loop(0, x, 0.1), (0.3,), (2.0,)) == (0.3, 2.0)


def test_checkpointed_loop_keeps_no_more_states_than_slots_and_runs_the_fewest_steps():
    """Griewank & Walther 2000: 100 steps cost 209 more with 11 states in memory, 280 with 6."""
    for slots, want in ((11, 209), (6, 280)):
        ran, starts = 0, [0]
        for last in range(99, -1, -1):
            while last > starts[-1] and len(starts) < slots:
                middle = starts[-1] + _split(last + 1 - starts[-1], slots - len(starts))
                ran += middle - starts[-1]
                starts.append(middle)
            ran += last - starts[-1]
            if starts[-1] == last:
                starts.pop()
        assert ran == want


def test_checkpointed_loop_mistakes():
    def writes(i, x):
        x[0] += 1.0
        return x

    def f(x):
        return np.sum(checkpointed_loop(writes, 2)(3, x))

    with pytest.raises(srcgrad.AliasError, match="writes into its argument"):
        grad(f)(X.copy())
    with pytest.raises(TypeError, match="slots"):
        checkpointed_loop(step, 0)
    with pytest.raises(TypeError, match="function"):
        checkpointed_loop(3.0)
    with pytest.raises(TypeError, match="keyword"):
        grad(lambda x: checkpointed_loop(step)(3, x, r=0.1))(0.3)


def test_long_checkpointed_loop():
    loop = checkpointed_loop(lambda i, x: x + 1e-4 * x * (1 - x), slots=10)
    x, slope = 0.3, 1.0
    for _ in range(5000):
        slope *= 1 + 1e-4 * (1 - 2 * x)
        x += 1e-4 * x * (1 - x)
    value, pullback = vjp(lambda x: loop(5000, x), 0.3)
    assert value == pytest.approx(x) and pullback(1.0)[0] == pytest.approx(slope, rel=1e-12)
    assert hvp(lambda x: loop(50, x) ** 2)(0.3, 1.0) == pytest.approx(
        (grad(lambda x: loop(50, x) ** 2)(0.3 + 1e-5) - grad(lambda x: loop(50, x) ** 2)(0.3 - 1e-5)) / 2e-5,
        rel=1e-6,
    )


# Rules of the user's own


@pytest.fixture
def filed():
    """The rules that a test files are taken away again."""
    yield
    for function in (cube, halved, solved):
        table._TABLE.pop(function, None)
    rules._forget()


def cube(x):
    return x * x * x


def uses_cube(x):
    return cube(x) * x


def test_a_rule_of_ones_own(filed):
    with pytest.raises(TypeError, match="no rule"):
        rules.check(cube)

    @rules.elementwise(cube, at=[2.0, -0.5])
    def slope(y, x):
        return 3 * x**2

    rules.check(cube)
    assert "3 * x ** 2" in grad(uses_cube).source_for(2.0)
    assert grad(uses_cube)(2.0) == 32.0 and jvp(uses_cube, (2.0,), (1.0,)) == (16.0, 32.0)
    assert grad(grad(uses_cube))(2.0) == 48.0
    assert grad(cube)(2.0) == 12.0 and jvp(cube, (2.0,), (1.0,))[1] == 12.0


def halved(x):
    return x * 0.5


def uses_halved(x):
    return halved(x) * 4.0


def test_a_rule_holds_for_what_was_compiled_before(filed):
    df = grad(uses_halved)
    assert df(1.0) == 2.0 and jvp(uses_halved, (1.0,), (1.0,))[1] == 2.0
    assert vjp(uses_halved, 1.0)[1](1.0)[0] == 2.0

    @rules.elementwise(halved)
    def slope(y, x):
        return 100.0

    assert df(1.0) == 400.0 and jvp(uses_halved, (1.0,), (1.0,))[1] == 400.0
    assert vjp(uses_halved, 1.0)[1](1.0)[0] == 400.0
    with pytest.raises(TypeError, match="no inputs"):
        rules.check(halved)
    with pytest.raises(TypeError, match="rule already"):
        rules.elementwise(halved)(slope)


def solved(a, b, scale=1.0):
    return np.linalg.solve(a, b) * scale


def test_rules_for_both_modes(filed):
    at = [rules.case([[2.0, 0.3], [0.1, 1.5]], [1.0, 2.0], scale=2.0)]
    with pytest.raises(TypeError, match="reverse rule"):
        rules.forward(solved)

    @rules.reverse(solved, wrt=("a", "b"), at=at)
    def solved_reverse(g, y, a, b, scale=1.0):
        t = np.linalg.solve(a.T, g)
        return -np.outer(t, y), scale * t

    @rules.forward(solved)
    def solved_forward(a_dot, b_dot, y, a, b, scale=1.0):
        return -np.linalg.solve(a, a_dot @ y), scale * np.linalg.solve(a, b_dot)

    rules.check(solved)


def test_a_wrong_rule_is_found(filed):
    @rules.elementwise(cube, at=[[1.0, 2.0]])
    def slope(y, x):
        return 3.1 * x**2

    with pytest.raises(srcgrad.CheckFailed, match=r"cube.*argument 0"):
        rules.check(cube)


def test_a_function_without_derivative(filed):
    rules.nondifferentiable(halved)
    assert grad(lambda x: halved(x) * x)(2.0) == 1.0
