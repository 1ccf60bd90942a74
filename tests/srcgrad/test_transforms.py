"""The transforms: shapes, dtypes and structures of what they return, nesting, control of derivatives,
checks."""

from __future__ import annotations

import dataclasses
import functools
import gc
import itertools
import weakref

import numpy as np
import pytest

import srcgrad
from srcgrad import (
    check_grads,
    checkpoint,
    custom_jvp,
    custom_vjp,
    elementwise_grad,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
)

X = np.array([0.3, 0.7, 1.1])
A = np.array([[1.0, -2.0, 0.5], [0.3, 0.8, -1.2]])


def cubic(x):
    return np.sum(x**3) * x[0]


def cubic_hessian(x):
    h = np.diag(6 * x * x[0])
    h[0] += 3 * x**2
    h[:, 0] += 3 * x**2
    return h


def vector(x):
    return A @ np.sin(x) * x[0]


def vector_jacobian(x):
    return A * np.cos(x) * x[0] + np.outer(A @ np.sin(x), np.eye(3)[0])


# vjp and jvp


def test_vjp_may_be_called_again_and_leaves_its_seed_alone():
    def f(x):
        y = x * 1.0
        for _ in range(3):
            y[0] = y[1] * y[2]
            y = y * x
        return y

    value, pullback = vjp(f, X)
    seeds = np.eye(3)
    rows = [pullback(s)[0] for s in seeds]
    again = [pullback(s)[0] for s in seeds]
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_array_equal(seeds, np.eye(3))
    np.testing.assert_allclose(rows, jacfwd(f)(X), rtol=1e-12)
    rows[0][:] = np.nan
    np.testing.assert_array_equal(pullback(seeds[0])[0], again[0])
    np.testing.assert_array_equal(value, f(X))


def test_vjp_is_safe_from_later_writes_into_arguments_and_value():
    x = X.copy()
    value, pullback = vjp(lambda x: np.exp(x), x)
    before = pullback(np.ones(3))[0]
    value[:] = 0.0
    x[:] = 0.0
    np.testing.assert_array_equal(pullback(np.ones(3))[0], before)


def test_vjp_of_containers():
    def f(params, n, label):
        return {"y": params["w"] * n, "label": label, "pair": (params["b"], 2.0)}

    value, pullback = vjp(f, {"w": X, "b": 2.0}, 3, "text")
    assert value["label"] == "text"
    bars = pullback({"y": np.ones(3), "label": None, "pair": (5.0, 1.0)})
    assert len(bars) == 3 and bars[2] == "text"
    np.testing.assert_array_equal(bars[0]["w"], np.full(3, 3.0))
    assert bars[0]["b"] == 5.0 and bars[1] == pytest.approx(X.sum())


def test_vjp_refuses_wrong_cotangents():
    _, pullback = vjp(vector, X)
    with pytest.raises(TypeError, match=r"shape \(3,\), but the result has shape \(2,\)"):
        pullback(np.ones(3))
    with pytest.raises(TypeError, match="complex"):
        pullback(np.ones(2) * 1j)


def test_vjp_of_variadic_functions():
    value, pullback = vjp(lambda a, *rest: a * rest[0] * rest[1], 2.0, 3.0, 4.0)
    assert value == 24.0 and pullback(1.0) == (12.0, 8.0, 6.0)
    assert jvp(lambda a, *rest: a * rest[0] * rest[1], (2.0, 3.0, 4.0), (1.0, 0.0, 1.0)) == (24.0, 18.0)


def test_vjp_and_jvp_are_transposes():
    rng = np.random.default_rng(0)
    for f in (vector, lambda x: np.outer(x, np.tanh(x)), lambda x: np.cumsum(x)[::-1] / x):
        y, pullback = vjp(f, X)
        u, v = rng.normal(size=np.shape(y)), rng.normal(size=3)
        assert np.sum(u * jvp(f, (X,), (v,))[1]) == pytest.approx(np.sum(pullback(u)[0] * v), rel=1e-12)


def test_methods_partials_and_callables():
    class Model:
        def __init__(self, w):
            self.w = w

        def scaled(self, x, k=2.0):
            return self.w * x * k

        def __call__(self, x):
            return self.w * x**2

    model = Model(3.0)
    assert jvp(model.scaled, (2.0,), (1.0,)) == (12.0, 6.0)
    assert vjp(model.scaled, 2.0, 4.0)[1](1.0) == (12.0, 6.0)
    assert jvp(model, (2.0,), (1.0,)) == (12.0, 12.0)
    assert jvp(functools.partial(model.scaled, k=5.0), (2.0,), (1.0,)) == (30.0, 15.0)
    assert jacfwd(np.sin)(0.0) == 1.0
    assert jvp(grad(model.scaled, argnums=1), (2.0, 4.0), (1.0, 0.0))[1] == 3.0


def test_forms_are_not_kept_alive():
    def make():
        big = np.ones(10)
        return lambda x: np.sum(x * big)

    f = make()
    jvp(f, (X[:1],), (np.ones(1),))
    vjp(f, X[:1])
    seen = weakref.ref(f)
    del f
    gc.collect()
    assert seen() is None


# Jacobians


@pytest.mark.parametrize("transform", [jacobian, jacfwd, jacrev])
def test_jacobians(transform):
    np.testing.assert_allclose(transform(vector)(X), vector_jacobian(X), rtol=1e-12)
    assert transform(lambda x: x**2)(3.0) == 6.0
    np.testing.assert_allclose(transform(lambda s: s * X)(2.0), X)
    np.testing.assert_allclose(transform(lambda x: np.sum(x))(A), np.ones((2, 3)))
    assert transform(lambda x: np.outer(x, x))(X).shape == (3, 3, 3)
    assert transform(lambda x: np.sum(x))(np.zeros(0)).shape == (0,)
    assert transform(lambda x: x[:0])(X).shape == (0, 3)
    assert transform(lambda x: x * 2)(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("transform", [jacobian, jacfwd, jacrev])
def test_jacobians_of_containers(transform):
    def f(d, s, *, k=1.0):
        return {"sum": np.sum(d["a"]) * s * k, "all": [d["a"] * d["b"]]}

    d = {"a": X, "b": 2.0}
    found = transform(f, (0, 1))(d, 3.0, k=2.0)
    assert found["sum"][0]["b"] == 0.0 and found["sum"][1] == pytest.approx(2 * X.sum())
    np.testing.assert_allclose(found["sum"][0]["a"], np.full(3, 6.0))
    np.testing.assert_allclose(found["all"][0][0]["a"], np.eye(3) * 2)
    np.testing.assert_allclose(found["all"][0][0]["b"], X)
    np.testing.assert_allclose(found["all"][0][1], np.zeros(3))
    one = transform(f, 1)(d, 3.0)
    assert one["sum"] == pytest.approx(X.sum())


def test_jacobian_takes_the_cheaper_mode():
    calls = []

    def wide(x):
        calls.append(1)
        return np.sum(x)

    jacobian(wide)(np.ones(50))
    assert len(calls) == 1
    calls.clear()

    def tall(x):
        calls.append(1)
        return np.ones(50) * x

    jacobian(tall)(2.0)
    assert len(calls) <= 2


def test_jacobians_of_complex_functions():
    z = np.array([1.0 + 2.0j, 0.5j])
    for transform in (jacfwd, jacrev):
        with pytest.raises(TypeError, match="holomorphic"):
            transform(lambda z: z**2)(z)
        np.testing.assert_allclose(transform(lambda z: z**2, holomorphic=True)(z), np.diag(2 * z))


def test_argnums():
    def f(a, b, c):
        return a * b**2 * c

    assert jacobian(f, argnums=-1)(2.0, 3.0, 4.0) == 18.0
    assert jacfwd(f, argnums=(0, 2))(2.0, 3.0, 4.0) == (36.0, 18.0)
    with pytest.raises(TypeError, match="no argument 3"):
        jacrev(f, argnums=3)(2.0, 3.0, 4.0)
    with pytest.raises(TypeError, match="int64"):
        jacfwd(lambda x: x * 1.0)(np.arange(3))


def test_elementwise_grad():
    np.testing.assert_allclose(elementwise_grad(np.sin)(X), np.cos(X))
    np.testing.assert_allclose(elementwise_grad(lambda x, y: x * y, argnums=1)(A, X), np.sum(A, axis=0))
    found = elementwise_grad(lambda x, y: x * y, argnums=(0, 1))(X, 2.0)
    np.testing.assert_allclose(found[0], np.full(3, 2.0))
    assert found[1] == pytest.approx(X.sum())
    assert elementwise_grad(lambda x: x**3)(2.0) == 12.0


# Second derivatives


def test_hessian():
    np.testing.assert_allclose(hessian(cubic)(X), cubic_hessian(X), rtol=1e-12)
    assert hessian(lambda x: x**4)(2.0) == 48.0
    assert hessian(cubic)(X.astype(np.float32)).dtype == np.float32
    blocks = hessian(lambda x, y: np.sum(x) * y**2, (0, 1))(X, 2.0)
    np.testing.assert_allclose(blocks[0][1], np.full(3, 4.0))
    np.testing.assert_allclose(blocks[1][0], np.full(3, 4.0))
    assert blocks[1][1] == pytest.approx(2 * X.sum())
    np.testing.assert_allclose(blocks[0][0], np.zeros((3, 3)))


def test_hvp():
    v = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(hvp(cubic)(X, v), cubic_hessian(X) @ v, rtol=1e-12)
    assert hvp(lambda x: x**3)(2.0, 10.0) == 120.0
    first, second = hvp(lambda x, y: np.sum(x) * y**2, (0, 1))(X, 2.0, (np.ones(3), 1.0))
    np.testing.assert_allclose(first, np.full(3, 4.0))
    assert second == pytest.approx(12 + 2 * X.sum())
    structured = hvp(lambda p: np.sum(p["w"] ** 2) * p["b"])({"w": X, "b": 3.0}, {"w": np.ones(3), "b": 0.0})
    np.testing.assert_allclose(structured["w"], np.full(3, 6.0))


def loop(x):
    total = 0.0
    for i in range(len(x)):
        v = x[i]
        while v < 2.0:
            v = v * 1.5 + 0.1 * x[0]
        total += v**2 if i else np.exp(v)
    return total


def containers(x):
    d = {"a": [x[0], x[1] ** 2]}
    d["b"] = sum(d["a"]) * x[2]
    return d["b"] ** 2 * d["a"][1]


def writes(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] ** 2
        out[0] += out[i] * x[0]
    return np.sum(out**2)


def callee(x):
    return calls_square(x[0], k=x[1]) * calls_square(x[2])


def calls_square(t, k=1.0):
    return t * t * k**3


def closure(x):
    def inner(t):
        return t**3 * x[0]

    return sum(map(inner, x)) * inner(x[1])


@pytest.mark.parametrize("f", [cubic, loop, containers, writes, callee, closure], ids=lambda f: f.__name__)
def test_second_derivatives_in_every_order_of_modes(f):
    h = 1e-5
    want = np.zeros((3, 3))
    for i, e in enumerate(np.eye(3) * h):
        want[i] = (grad(f)(X + e) - grad(f)(X - e)) / (2 * h)
    found = [outer(inner(f))(X) for outer, inner in itertools.product([jacfwd, jacrev], repeat=2)]
    found.append(hessian(f)(X))
    for got in found:
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(got, found[0], rtol=1e-10, atol=1e-10)


def power(x):
    y = 1.0
    for _ in range(5):
        y = y * x
    return y


D = {"grad": grad, "jacfwd": jacfwd, "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1]}


@pytest.mark.parametrize("names", list(itertools.product(D, repeat=3)), ids="-".join)
def test_third_derivatives(names):
    f = power
    for name in names:
        f = D[name](f)
    assert f(2.0) == pytest.approx(60 * 2.0**2)


def test_fourth_derivatives():
    f = power
    for _ in range(4):
        f = grad(f)
    assert f(2.0) == pytest.approx(240.0)
    assert hessian(hessian(power))(2.0) == pytest.approx(240.0)


# Transforms inside differentiated functions


def test_a_derivative_inside_a_differentiated_function():
    def outer(x):
        def area(r):
            return x * r * r

        return grad(area)(1.5) * x + value_and_grad(area)(x)[0]

    for transform in (grad, jacfwd):
        assert transform(outer)(3.0) == pytest.approx(6 * 3.0 + 3 * 9.0)


@pytest.mark.parametrize("outer", [grad, jacfwd, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]])
def test_every_transform_inside_every_other(outer):
    inside = {
        "jvp": lambda x: jvp(lambda y: y**3 * x, (x,), (1.0,))[1],
        "vjp": lambda x: vjp(lambda y: y**3 * x, x)[1](1.0)[0],
        "jacfwd": lambda x: jacfwd(lambda y: y**3 * x)(x),
        "jacrev": lambda x: jacrev(lambda y: y**3 * x)(x),
        "grad": lambda x: grad(lambda y: y**3 * x)(x),
    }
    for name, f in inside.items():
        assert f(2.0) == pytest.approx(24.0), name
        assert outer(f)(2.0) == pytest.approx(9 * 4.0), name


def test_hessians_and_products_inside_gradients():
    def f(x):
        return np.sum(hessian(lambda y: np.sum(y**4))(x)) + np.sum(hvp(lambda y: np.sum(y**3))(x, np.ones(3)))

    np.testing.assert_allclose(grad(f)(X), 24 * X + 6, rtol=1e-10)
    np.testing.assert_allclose(jacfwd(f)(X), 24 * X + 6, rtol=1e-10)


def test_the_seed_of_a_pullback_is_differentiated():
    def f(s):
        return vjp(lambda x: x**2 * 3.0, 2.0)[1](s)[0] * s

    assert grad(f)(5.0) == pytest.approx(2 * 12.0 * 5.0)
    assert jacfwd(f)(5.0) == pytest.approx(2 * 12.0 * 5.0)


# Control of derivatives


def test_stop_gradient():
    def f(x):
        return stop_gradient(x**2) * x + stop_gradient({"a": [x]})["a"][0]

    assert grad(f)(3.0) == 9.0
    assert jvp(f, (3.0,), (1.0,)) == (30.0, 9.0)


@custom_vjp
def sine(x, y):
    return np.sin(x) * y


def sine_fwd(x, y):
    return sine(x, y), (np.cos(x), np.sin(x), y)


def sine_bwd(residuals, g):
    cosine, sine_, y = residuals
    return 10.0 * cosine * y * g, sine_ * g


sine.defvjp(sine_fwd, sine_bwd)


def test_custom_vjp():
    np.testing.assert_allclose(grad(sine, (0, 1))(0.5, 2.0), (20 * np.cos(0.5), np.sin(0.5)))
    assert grad(lambda x: sine(y=2.0, x=x * x))(0.5) == pytest.approx(20 * np.cos(0.25))
    bars = vjp(sine, X, X)[1](np.ones(3))
    np.testing.assert_allclose(bars[0], 10 * np.cos(X) * X)
    assert sine(0.5, 2.0) == 2.0 * np.sin(0.5)


def test_custom_vjp_forwards_and_twice():
    """What `bwd` returns is linear in the cotangent, so that it tells the tangent too."""
    assert jvp(lambda x: sine(x, 2.0), (0.5,), (1.0,))[1] == pytest.approx(20 * np.cos(0.5))
    for second in (grad(grad(sine)), hessian(sine), jacrev(jacfwd(sine))):
        assert second(0.5, 2.0) == pytest.approx(-20 * np.sin(0.5))


def test_custom_vjp_with_fixed_arguments():
    @functools.partial(custom_vjp, nondiff_argnums=(0,))
    def call(function, x):
        return function(x)

    call.defvjp(lambda function, x: (function(x), x), lambda function, x, g: (100.0 * g,))
    assert grad(lambda x: call(np.sin, x))(1.0) == 100.0
    assert jacfwd(lambda x: call(np.sin, x))(1.0) == 100.0


def test_custom_vjp_of_containers_and_methods():
    @custom_vjp
    def total(d):
        return {"sum": d["a"] + np.sum(d["b"])}

    total.defvjp(lambda d: (total(d), d["b"]), lambda b, g: ({"a": 7 * g["sum"], "b": np.ones_like(b)},))
    found = grad(lambda d: total(d)["sum"] * 2.0)({"a": 1.0, "b": X})
    assert found["a"] == 14.0
    np.testing.assert_array_equal(found["b"], np.ones(3))

    class Layer:
        w = 2.0

        @custom_vjp
        def apply(self, x):
            return self.w * x

    Layer.apply.defvjp(lambda self, x: (self.w * x, None), lambda _, g: (None, 7.0 * g))
    layer = Layer()
    assert grad(layer.apply)(1.0) == 7.0
    assert grad(lambda x: layer.apply(x) * x)(1.0) == 9.0


def test_custom_vjp_mistakes():
    @custom_vjp
    def f(x):
        return x * 2.0

    with pytest.raises(TypeError, match="defvjp"):
        grad(f)(1.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, g: (np.sum(g),))
    with pytest.raises(TypeError, match=r"argument 0 from the bwd .* shape \(\), but the argument has"):
        grad(lambda x: np.sum(f(x)))(X)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, g: g)
    with pytest.raises(TypeError, match="return a tuple"):
        grad(f)(1.0)


@custom_jvp
def squared(x, y=2.0):
    return x**2 * y


@squared.defjvp
def squared_rule(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return squared(x, y), 6 * x * y * x_dot + x**2 * y_dot


def test_custom_jvp():
    assert grad(squared, (0, 1))(3.0, 2.0) == (36.0, 9.0)
    assert grad(squared)(3.0) == 36.0
    assert jvp(squared, (3.0, 2.0), (1.0, 1.0)) == (18.0, 45.0)
    np.testing.assert_allclose(grad(lambda x: np.sum(squared(x)))(X), 12 * X)
    for second in (grad(grad(squared)), hessian(squared), jacrev(jacfwd(squared)), jacfwd(jacfwd(squared))):
        assert second(3.0) == pytest.approx(12.0)


def test_custom_jvps():
    @custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda t, value, x, y: t * y, None)
    assert grad(f, (0, 1))(3.0, 2.0) == (2.0, 0.0)
    assert jvp(f, (3.0, 2.0), (1.0, 1.0)) == (6.0, 2.0)


def test_custom_functions_refuse_captured_variables():
    def outer(x):
        @custom_jvp
        def f(y):
            return x * y

        f.defjvp(lambda p, t: (f(*p), t[0]))
        return f(x)

    with pytest.raises(srcgrad.SrcgradError):
        grad(outer)(2.0)
    with pytest.raises(srcgrad.SrcgradError):
        jvp(outer, (2.0,), (1.0,))


CALLS: list[int] = []


def test_checkpoint():
    CALLS.clear()

    def heavy(x, k=1.1):
        CALLS.append(1)
        for _ in range(4):
            x = np.sin(x) * k
        return x

    want = grad(heavy)(0.3)
    CALLS.clear()
    assert grad(checkpoint(heavy))(0.3) == want and len(CALLS) == 2
    assert grad(lambda x: checkpoint(heavy)(x, k=1.1) * 2)(0.3) == pytest.approx(2 * want)
    assert jvp(checkpoint(heavy), (0.3,), (1.0,))[1] == pytest.approx(want)
    second = grad(grad(heavy))(0.3)
    for again in (grad(grad(checkpoint(heavy))), hessian(checkpoint(heavy))):
        assert again(0.3) == pytest.approx(second)

    def outer(a):
        def inner(x):
            return a * x * x

        return checkpoint(inner)(3.0) * checkpoint(inner)(a)

    assert grad(outer)(2.0) == pytest.approx(36 * 8.0)
    assert jacfwd(outer)(2.0) == pytest.approx(36 * 8.0)


def test_checkpoint_saves_only_the_arguments():
    def heavy(x):
        for _ in range(50):
            x = np.sin(x)
        return x

    from srcgrad.runtime import dispatch

    _, plain = dispatch.forward(heavy, (X,))
    _, saved = dispatch.forward(checkpoint(heavy), (X,))
    count = [sum(a.size for a in numbers(s)) for s in (plain, saved)]
    assert count[1] == X.size and count[0] >= 50 * X.size


def numbers(x):
    if isinstance(x, np.ndarray):
        return [x]
    return [a for part in x for a in numbers(part)] if isinstance(x, (tuple, list)) else []


# Checks


@dataclasses.dataclass
class Line:
    slope: float
    points: object


def test_check_grads_passes():
    check_grads(lambda w, b: np.tanh(w @ np.ones(3) + b), (A, 0.5), order=2)
    check_grads(power, (1.5,), order=3, modes=("fwd",))
    check_grads(power, (1.5,), order=2)
    check_grads(lambda d, n: d["a"] * d["b"][0] ** n, ({"a": X, "b": (2.0,)}, 2), order=2)
    check_grads(lambda x: np.sin(x), (X.astype(np.float32),), order=1)
    check_grads(lambda z: z * z * np.exp(z), (np.array([1 + 0.2j, 0.3]),), order=1)
    check_grads(lambda line: line.slope * np.sum(line.points**2), (Line(2.0, X),), order=2)
    check_grads(lambda x: loop(x), (X,), modes=("rev",))


def test_check_grads_fails():
    @custom_jvp
    def f(w):
        return np.sum(w["a"] ** 2)

    f.defjvp(lambda p, t: (f(*p), np.sum(p[0]["a"] * t[0]["a"] * np.array([2.0, 2.0, 2.5]))))
    with pytest.raises(
        AssertionError, match=r"first derivative of .*f is wrong in forward mode: argument 0 \(`w`\)"
    ):
        check_grads(f, ({"a": X},))
    with pytest.raises(srcgrad.CheckFailed, match=r"entry \['a'\]\[2\]: analytic 2.75, numeric 2.2"):
        check_grads(f, ({"a": X},), modes=("rev",))
    with pytest.raises(TypeError, match="mode"):
        check_grads(power, (1.0,), modes=("forward",))
    with pytest.raises(TypeError, match="tuple"):
        check_grads(power, 1.0)
    with pytest.raises(TypeError, match="no argument"):
        check_grads(lambda s: 1.0, ("text",))


def test_check_grads_finds_wrong_second_derivatives():
    @custom_jvp
    def f(x):
        return x**3

    @custom_jvp
    def slope(x):
        return 3 * x**2

    slope.defjvps(lambda t, value, x: 5 * x * t)
    f.defjvps(lambda t, value, x: slope(x) * t)
    check_grads(f, (1.5,), order=1)
    with pytest.raises(srcgrad.CheckFailed, match="second derivative .*differentiating"):
        check_grads(f, (1.5,), order=2)


# Source


def test_source():
    assert "def vector_jvp(x, x_dot):" in jvp.source_for(vector, X)
    assert "def vector_forward(x):" in vjp.source_for(vector, X)
    assert jacfwd(vector).source_for(X) == jvp.source_for(vector, X)
    assert jacrev(vector).source_for(X) == vjp.source_for(vector, X)
    assert "def cubic_grad_jvp(x, x_dot):" in hessian(cubic).source_for(X)
    assert hvp(cubic).source_for(X) == hessian(cubic).source_for(X)


def slope_of(x):
    return x * 2.0


def uses_slope_of(x):
    return slope_of(x) * x


def test_functions_defined_anew_are_seen(monkeypatch):
    assert jvp(uses_slope_of, (3.0,), (1.0,))[1] == vjp(uses_slope_of, 3.0)[1](1.0)[0] == 12.0
    monkeypatch.setitem(globals(), "slope_of", lambda x: x * 5.0)
    assert jvp(uses_slope_of, (3.0,), (1.0,))[1] == vjp(uses_slope_of, 3.0)[1](1.0)[0] == 30.0
