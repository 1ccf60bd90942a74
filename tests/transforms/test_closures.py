"""Functions that are kept, and variables that they have captured: bound again, or written in place."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad


def over_a_loop_variable(x):
    for e in (x, x * x):
        kept = [lambda t: e * t]  # noqa: B023 (late binding is the point)
    return kept[0](x)


def bound_after_the_loop(x):
    kept = []
    for i in range(3):
        y = x * (i + 1)
        kept.append(lambda t: y * t)  # noqa: B023
    total = 0.0
    for function in kept:
        total += function(x)
        y = y * 1.5
    return total


def in_a_dict(x):
    kept = {"line": lambda t: x * t, "sine": np.sin}
    total = kept["line"](2.0)
    x = x * x
    total += kept["line"](x) * kept["sine"](x)
    x = 3.0
    return total + kept["line"](total)


def of_an_array(x):
    a = x * np.arange(3.0)
    kept = [lambda t: (a * t).sum()]
    total = kept[0](x)
    a = a * a
    total += kept[0](total)
    a = np.sin(a)
    return total * kept[0](2.0)


def plus_one(function, t):
    return function(t) + 1.0


def through_a_helper(x):
    kept = [lambda t: x * t]
    total = plus_one(kept[0], x)
    while total < 20:
        x = x + total
        total = total + plus_one(kept[0], 0.5)
    return total


def through_another_function(x):
    def inner(t):
        return x * t

    kept = [lambda t: inner(t) * t]
    total = kept[0](1.0)
    x += total
    return kept[0](2.0) * total


def bound_in_branches(x):
    kept = [lambda t: a * t]
    if x > 0:
        a = x
    else:
        a = x * x
    total = kept[0](x)
    if total > 0:
        a = total * total
    return kept[0](x)


def applied_at_once(x):
    y = (lambda t: (lambda s: t * s + x)(x * t))(x * x)
    x = y * 2.0
    return (lambda t: t * x)(y)


def factories_in_a_loop(x):
    kept = []
    for i in range(3):
        kept.append((lambda k: lambda t: x * t + k)(x * i))
    total = sum(function(x) for function in kept)
    x = x * total
    return kept[2](x)


LATE = [
    over_a_loop_variable,
    bound_after_the_loop,
    in_a_dict,
    of_an_array,
    through_a_helper,
    through_another_function,
    bound_in_branches,
    applied_at_once,
    factories_in_a_loop,
]


@pytest.mark.parametrize("f", LATE)
def test_variables_that_are_bound_again(f):
    x, h = 1.3, 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    assert srcgrad.grad(f)(x) == pytest.approx(slope, rel=1e-6)
    assert srcgrad.jvp(f, (x,), (1.0,)) == pytest.approx((f(x), slope), rel=1e-6)


def test_a_pullback_can_be_called_again():
    value, pullback = srcgrad.vjp(in_a_dict, 1.3)
    assert pullback(1.0) == pullback(1.0) == (pytest.approx(pullback(2.0)[0] / 2),)


def test_second_derivatives_of_them_are_refused():
    with pytest.raises(srcgrad.SrcgradError):
        srcgrad.grad(srcgrad.grad(over_a_loop_variable))(1.3)


def kept_while_written(x):
    a = np.array([x, 2 * x])
    kept = [lambda t: a * t]
    a[0] = 5 * x * x
    return kept[0](x).sum()


def list_kept_while_written(x):
    a = [x, 2 * x]
    kept = [lambda t: a[0] * t]
    a[0] = 5 * x * x
    return kept[0](x)


def factory(b):
    return lambda t: b * t


def made_elsewhere(x):
    a = np.array([x, 2 * x])
    function = factory(a)
    a[0] = 5 * x * x
    return function(x).sum()


@pytest.mark.parametrize("f", [kept_while_written, list_kept_while_written, made_elsewhere])
def test_writes_into_what_a_kept_function_reads(f):
    """Exact, or refused."""
    x, h = 1.3, 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    try:
        assert srcgrad.grad(f)(x) == pytest.approx(slope, rel=1e-6)
    except srcgrad.AliasError as error:
        assert "may share its memory" in str(error)


def default_value(x):
    kept = [lambda t, k=x * x: t * k]
    return kept[0](2.0)


def early_binding(x):
    kept = []
    for i in range(3):
        y = x * i
        kept.append(lambda t, y=y: t * y)
    return sum(function(x) for function in kept)


def default_of_a_direct_call(x):
    def inner(t, k=x):
        return t * k

    x = x * x
    return inner(x) + inner(x, 2.0) + inner(x, k=x)


def default_by_keyword(x):
    def inner(t, *, k=x):
        return t * k

    kept = [inner]
    x = x * x
    return kept[0](x) + kept[0](x, k=3.0)


def default_made_in_a_loop(x):
    for i in range(3):
        z = x * i

        def inner(t, k=z * z):
            return t * k

    return inner(x)


def told(x):
    print("seen", x)
    return x * x


@pytest.mark.parametrize(
    "f",
    [
        default_value,
        early_binding,
        default_of_a_direct_call,
        default_by_keyword,
        default_made_in_a_loop,
        told,
    ],
)
def test_default_values_that_were_computed(f):
    x, h = 1.3, 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    assert srcgrad.grad(f)(x) == pytest.approx(slope, rel=1e-6)
    assert srcgrad.jvp(f, (x,), (1.0,)) == pytest.approx((f(x), slope), rel=1e-6)


def test_second_derivatives_through_default_values():
    for f in (default_value, early_binding):
        x, h = 1.3, 1e-5
        df = srcgrad.grad(f)
        slope = (df(x + h) - df(x - h)) / (2 * h)
        assert srcgrad.grad(df)(x) == pytest.approx(slope, rel=1e-5)
        assert srcgrad.hvp(f)(x, 1.0) == pytest.approx(slope, rel=1e-5)


def bound_in_a_branch_before_a_direct_call(x):
    y = x * 0.7

    def step(t):
        return y * t

    if x > 0:
        y = y * y
    return step(x)


def bound_in_a_loop_before_a_direct_call(x):
    y = x * 0.7
    total = 0.0

    def step(t):
        return y * t

    for _ in range(3):
        total += step(x)
        y = 1.5 * y
    return total + step(x)


def defined_in_branches(x):
    if x > 0:

        def step(t):
            return t * x
    else:

        def step(t):
            return t + x

    return step(x)


def function_then_value(x):
    for _ in range(3):

        def step(t):
            return t * x

        step = step(2.0)
    return step * x


def bound_to_a_constant(x):
    rate = 0.5
    kept = (lambda k: lambda t: rate * t + k)(2.0)
    rate = 3.0
    return kept(x)


@pytest.mark.parametrize(
    "f",
    [
        bound_in_a_branch_before_a_direct_call,
        bound_in_a_loop_before_a_direct_call,
        defined_in_branches,
        function_then_value,
        bound_to_a_constant,
    ],
)
def test_what_a_function_reads_when_it_is_called(f):
    x, h = 1.3, 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    assert srcgrad.value_and_grad(f)(x) == pytest.approx((f(x), slope), rel=1e-6)
    assert srcgrad.jvp(f, (x,), (1.0,)) == pytest.approx((f(x), slope), rel=1e-6)


def enclosing_variable_of_arrays(x):
    total = np.zeros(2)

    def add(v):
        nonlocal total
        total = total + v

    for k in range(3):
        add(np.array([x * k, x * x]))
    return total.prod()


def default_index(x):
    xs = [x, x * x, 2.0]
    total = 0.0
    for i in range(3):

        def picked(k=i):
            return xs[k] * xs[0]

        total += picked() * i
    return total


def spread_into_a_nested_function(x):
    options = dict(k=x, s=x * x)

    def inner(t, k=1.0, **others):
        return t * k * others["s"]

    return inner(*(x,), **options)


@pytest.mark.parametrize("f", [enclosing_variable_of_arrays, default_index, spread_into_a_nested_function])
def test_enclosing_variables_and_spread_arguments(f):
    x, h = 1.3, 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    assert srcgrad.grad(f)(x) == pytest.approx(slope, rel=1e-6)
    assert srcgrad.jvp(f, (x,), (1.0,)) == pytest.approx((f(x), slope), rel=1e-6)


def test_lists_in_a_dict_are_exact_or_refused():
    def f(x):
        groups = {}
        for k in range(4):
            groups.setdefault(k % 2, []).append(x * k)
        return sum(groups[0]) * sum(groups[1])

    try:
        assert srcgrad.grad(f)(1.3) == pytest.approx(2 * 1.3 * 2 * 4)
    except srcgrad.UnsupportedSyntax as error:
        assert "cannot tell" in str(error)


def called_without_a_derivative(x, a):
    step = lambda t: x  # noqa: E731
    a = a * 2.0
    x, y = a * 0.5, x
    return step(1.0) * a + y


def test_calls_that_carry_no_derivative_read_the_present_value():
    for argnum in (0, 1):
        args = [1.3, 0.7]
        up, down = list(args), list(args)
        up[argnum] += 1e-6
        down[argnum] -= 1e-6
        slope = (called_without_a_derivative(*up) - called_without_a_derivative(*down)) / 2e-6
        assert srcgrad.grad(called_without_a_derivative, argnum)(*args) == pytest.approx(slope, rel=1e-6)


def test_an_array_that_a_function_captured_and_never_reads():
    def helper(t, _):
        return 2.0 * t

    def f(m):
        return np.sum(helper(np.sum(m) - m[1], lambda t: m.T))

    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_allclose(srcgrad.grad(f)(x), [[4.0, 4.0], [2.0, 2.0], [4.0, 4.0]])


def test_a_module_is_not_written_through_what_its_functions_give():
    def f(y):
        with np.errstate(all="ignore"):
            w = np.ones((3,))
        w += y
        xs = list(map(np.tanh, w))
        xs.append(y)
        return sum(xs)

    assert srcgrad.grad(f)(0.3) == pytest.approx(1 + 3 / np.cosh(1.3) ** 2)


def test_writes_beside_a_function_that_is_not_called_any_more():
    def f(x):
        w = np.ones(3)
        fs = {"a": lambda t: w * t, "b": np.tanh}
        y = np.sum(fs["a"](x))
        w *= x
        w[1] = x**2
        return np.sum(w) * y

    assert srcgrad.grad(f)(0.3) == pytest.approx((f(0.3 + 1e-6) - f(0.3 - 1e-6)) / 2e-6)

    def called_later(x):
        w = np.ones(3)
        fs = {"a": lambda t: w * t, "b": np.tanh}
        w *= x
        return np.sum(fs["a"](x))

    try:
        found = srcgrad.grad(called_later)(0.3)
    except srcgrad.AliasError:
        return
    assert found == pytest.approx(1.8)


def test_writes_beside_a_function_that_a_call_may_have_kept():
    kept = []

    def f(x):
        w = np.ones(3) * x
        kept.append(lambda t: w * t)
        w *= x
        return np.sum(kept.pop()(x))

    try:
        found = srcgrad.grad(f)(0.3)
    except srcgrad.SrcgradError:
        return
    assert found == pytest.approx(9 * 0.3**2)


def test_parameters_of_one_name_inside_one_another():
    def f(x):
        q = x
        r = (lambda t: q if (lambda t: q)(0.6) >= t else t * x)(True)
        return r * (lambda t: (lambda t: t * 2)(5.0) + t * (lambda x: t * x)(3.0))(x)

    for x in (0.3, 1.4):
        assert srcgrad.grad(f)(x) == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)


def decides(x):
    def big(a):
        return bool(a > x - 0.1)

    def step(a):
        if big(a):
            return 0.95 * a * x
        return a * a

    return step(x) + step(0.1 * x)


def decides_two_levels_out(x):
    limit = 2.0 * x

    def big(a):
        return above(a, 0.5)

    def above(a, k):
        return bool(a > k * limit)

    def outer(a):
        def inner(b):
            return b * x if big(b) else b * b

        return inner(a) + inner(3.0 * a)

    return outer(0.7 * x)


def leaves_results_unused(x):
    square = lambda a: a * x  # noqa: E731

    def step(a):
        for _ in range(2):
            if a > 0.1:
                unused = square(-1.2)  # noqa: F841
        return 0.9 * a

    return step(x) + square(2.0)


@pytest.mark.parametrize("f", [decides, decides_two_levels_out, leaves_results_unused])
def test_functions_around_that_carry_no_derivative(f):
    for x in (0.7, 1.9):
        slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(srcgrad.grad(f)(x), slope, rtol=1e-7)
        np.testing.assert_allclose(srcgrad.jvp(f, (x,), (1.0,))[1], slope, rtol=1e-7)
        curved = (srcgrad.grad(f)(x + 1e-6) - srcgrad.grad(f)(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(srcgrad.grad(srcgrad.grad(f))(x), curved, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(srcgrad.jacfwd(srcgrad.grad(f))(x), curved, rtol=1e-6, atol=1e-9)


def rebound_in_a_loop(x):
    total = x

    def inner(a):
        return total * a

    for _ in range(2):
        g = inner(x)
        total = 1.5
    return g


def rebound_after_one_pass(x):
    total = x

    def inner():
        return [total]

    for _ in range(1):
        g = np.full(2, inner())
        total = 1.5
    return g[0]


def rebound_by_a_while(x):
    total, k = x, 0

    def inner(a):
        return total * a

    s = 0.0
    while k < 3:
        s = s + inner(x)
        total = total * x
        k += 1
    return s


@pytest.mark.parametrize("f", [rebound_in_a_loop, rebound_after_one_pass, rebound_by_a_while])
def test_captured_variables_that_a_loop_binds_again(f):
    slope = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(srcgrad.grad(f)(0.7), slope, rtol=1e-7)
    np.testing.assert_allclose(srcgrad.jvp(f, (0.7,), (1.0,))[1], slope, rtol=1e-7)


def named_like_emitted_lists(x):
    def repeated(step, v):
        for _ in range(2):
            v = step(v) * v
        return v

    def saved():
        return 1.0

    return repeated(lambda t: t * x, x) + saved()


def test_functions_named_like_what_is_emitted():
    f = named_like_emitted_lists
    slope = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(srcgrad.grad(f)(0.7), slope, rtol=1e-7)
