"""Forms of call: broadcast results, options that are differentiated, options that no rule knows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as linalg
import scipy.ndimage as ndimage
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats

import srcgrad
from srcgrad import check_grads, grad, jvp

V = np.array([0.53, 0.72, 0.31])
W = np.array([0.41, 0.93, 0.65])
M = np.array([[0.41, 0.93, 0.22], [0.86, 0.34, 0.67]])
A = np.array([[2.13, 0.31, 0.52], [0.21, 1.74, 0.43], [0.62, 0.12, 2.41]])
AB = np.stack([A, A.T[::-1] + np.eye(3)])
V6 = np.array([0.34, 0.91, 0.45, 0.73, 0.15, 0.66])

# What the compiler knows of a result's shape must hold: each is broadcast against something.
SHAPES = {
    "solve": (lambda a, b: np.sum(np.linalg.solve(a, b) * b * M[0]), (AB, A)),
    "pinv": (lambda p, m: np.sum(np.linalg.pinv(p) * m), (M.T, M)),
    "triu": (lambda v, a: np.sum(np.triu(v) + a * v), (V, A)),
    "sort": (lambda m, v: np.sum(np.sort(m, axis=None) * v + np.sort(m, None)), (M, V6)),
    "gradient": (lambda m: np.sum(np.gradient(m)[0] * M + np.gradient(m, axis=1)), (M,)),
    "linspace": (lambda v, w, s: np.sum(np.linspace(v, w, 3) * v + np.linspace(s, w, 3)), (V, W, 0.6)),
    "outer": (lambda m, v: np.sum(np.multiply.outer(m, v) * v + m[..., None]), (M, V)),
    "concatenate": (lambda m, v: np.sum(np.concatenate([m, m], axis=None)[:6] * v), (M, V6)),
    "cumsum": (lambda m, v: np.sum(np.cumsum(m, axis=None) * v + np.cumprod(m, None)), (M, V6)),
    "trace": (lambda a, v: np.sum(np.trace(a) * v), (AB[:, :2], V)),
    "dot": (lambda a, v: np.sum(np.dot(a, a) * v), (AB, V)),
    "any": (lambda m, v: np.sum(np.where(np.any(m > 0.5, 1)[:, None], m, v)), (M, V)),
    "argmax": (lambda m: np.sum(np.max(m, 1) * np.argmax(m, 1)), (M,)),
    "zeros_like": (lambda v, m: np.sum(np.zeros_like(v, shape=(2, 3)) + v * m), (V, M)),
    "norm": (lambda m, v: np.sum(np.linalg.norm(m, None, 1) * v[:2]), (M, V)),
    "zip": (lambda v, w: sum([a * b for a, b in zip(v, w, strict=True)]), (V, W)),
}


@pytest.mark.parametrize("f, args", SHAPES.values(), ids=SHAPES)
def test_shapes(f, args):
    check_grads(f, args, order=1)
    given = tuple(range(len(args)))
    (tangent,) = [jvp(grad(f, given), args, args)[1]]
    numeric = [
        (b - a) / 2e-5
        for a, b in zip(*(grad(f, given)(*[x * (1 + h) for x in args]) for h in (-1e-5, 1e-5)), strict=True)
    ]
    for t, n in zip(tangent, numeric, strict=True):
        np.testing.assert_allclose(t, n, rtol=1e-5, atol=1e-6)


def test_a_batched_solve_is_right_twice():
    """Reverse over forward: the tangent of b is broadcast against the batch."""

    def tangent(a, b):
        return jvp(lambda a, b: np.sum(np.linalg.solve(a, b) * AB), (a, b), (AB[::-1], A.T))[1]

    check_grads(tangent, (AB, A), order=1)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "amax", "amin"])
def test_what_a_reduction_starts_with_is_differentiated(name):
    function = getattr(np, name)
    for start in (0.05, 1.3):
        check_grads(lambda m, s: function(m, initial=s) * s, (M, start), order=2)
        check_grads(lambda m, s: np.sum(function(m, axis=1, initial=s) ** 2), (M, start), order=2)
    check_grads(lambda m, s: np.sum(m, where=m > 0.3, initial=s), (M, 0.5), order=1)
    check_grads(lambda m, s: m.sum(initial=s) * m.prod(axis=0, initial=s), (M, 0.5), order=1)
    check_grads(lambda m, s: m.max(1, initial=s) - m.min(1, initial=s), (M, 0.5), order=1)


UNKNOWN = {
    "ddof": lambda m, s: np.std(m, ddof=s),
    "method": lambda m, s: m.std(ddof=s),
    "order": lambda m, s: np.sum(special.eval_legendre(s, m)),
    "nan": lambda m, s: np.sum(np.nan_to_num(m, nan=s)),
    "norm": lambda m, s: np.linalg.norm(m[0], ord=1 + s),
    "computed": lambda m, s: np.std(m, ddof=s * s),
    "kept": lambda m, s: [lambda m, d: np.std(m, ddof=d)][0](m, s),
}


@pytest.mark.parametrize("f", UNKNOWN.values(), ids=UNKNOWN)
def test_what_a_rule_takes_for_a_constant_must_be_one(f):
    for call in (
        lambda: grad(f, (0, 1))(M, 0.5),
        lambda: grad(f, 1)(M, 0.5),
        lambda: jvp(f, (M, 0.5), (M, 1.0)),
    ):
        with pytest.raises(srcgrad.NoRule, match="with respect to .* is not known"):
            call()
    step = 1e-6
    numeric = (f(M + step * M, 0.5) - f(M - step * M, 0.5)) / (2 * step)
    assert np.sum(grad(f)(M, 0.5) * M) == pytest.approx(numeric, rel=1e-6)
    assert jvp(f, (M, 0.5), (M, None))[1] == pytest.approx(numeric, rel=1e-6)
    stopped = grad(lambda m, s: f(m, srcgrad.stop_gradient(s)) * s, (0, 1))(M, 0.5)
    assert stopped[1] == pytest.approx(f(M, 0.5))


def test_constants_that_are_integers_or_need_no_derivative():
    assert grad(lambda m, n: np.std(m, ddof=n), (0, 1))(M, 1)[1] == 0.0
    fs = [lambda m, d: np.std(m, ddof=d)]
    found = grad(lambda m, s: fs[0](m, 0.5) * s, (0, 1))(M, 2.0)
    assert found[1] == pytest.approx(np.std(M, ddof=0.5))


@pytest.mark.parametrize(
    "f",
    [
        lambda t: np.sum(signal.chirp(t, 1.0, 2.0, 3.0) * t),
        lambda t: np.sum(signal.chirp(t, 1.0, 2.0, 3.0, method="quadratic", vertex_zero=False) * t),
        lambda t: np.sum(signal.chirp(t, 1.0, 2.0, 3.0, phi=30.0) * t),
    ],
    ids=["none", "method", "phase"],
)
def test_options_reach_the_rule(f):
    """Keyword-only ones of a rule that is called, in both modes."""
    check_grads(f, (V,), order=2)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "linear_ramp", "mean", "maximum"])
def test_padding_twice(mode):
    check_grads(lambda m: np.sum(np.pad(m**2, ((1, 0), (2, 1)), mode=mode) ** 2), (M,), order=2)
    check_grads(lambda m, s: np.sum(np.pad(m * s, 1, constant_values=s) ** 3), (M, 0.7), order=2)


def test_zip_strict_raises_as_in_python():
    def f(v, w):
        return sum([a * b for a, b in zip(v, w, strict=True)])

    with pytest.raises(ValueError, match="longer"):
        grad(f)(V, V6)


def _part(x):
    """A value of which the compiler doesn't know whether it is an array, a number or a list."""
    return {"a": x}["a"]


SEQUENCES = {
    "times": lambda v: np.sum(np.gradient(v) * [1.0, 2.0, 3.0]) * v[0],
    "times tuple": lambda v: np.sum((1.0, 2.0, 3.0) * np.gradient(v**2)),
    "times active": lambda v: np.sum([v[0], 2.0, v[1]] * np.gradient(v**2)),
    "plus": lambda v: np.sum(([v[0], 2.0, 3.0] + np.gradient(v)) ** 2),
    "number plus": lambda v: np.sum((np.sum(v) + [1.0, v[1]]) ** 2),
    "plus number": lambda v: np.sum(([1.0, v[1]] + np.sum(v)) ** 2),
    "repeated": lambda v: sum([v[0], v[1] ** 2] * _part(3)),
    "joined": lambda v: np.sum(np.array(_part([v[0]]) + [v[1] ** 2, 1.0]) ** 2),
    "matmul": lambda v: ([v[0], 1.0, v[1]] @ A) @ [1, 2, 3],
    "dot": lambda v: np.dot([v[0], v[1]], [1, 2]) ** 2,
    "solve": lambda v: np.sum(np.linalg.solve(A * v, [1, 2, 3])),
    "reduce": lambda v: np.maximum.reduce([v[0], v[1]]) * np.add.reduce([v[1], 1.0]),
    "ufunc": lambda v: np.sum(np.arctan2([1.0, 2.0, 0.3], v)),
    "scipy": lambda v: special.logsumexp([v[0], v[1] ** 2]),
    "keyword": lambda v: np.polyfit([0.1, 0.5, 0.9], v**2, 1, w=[1, 2, 1])[0],
    "interp": lambda v: np.sum(np.interp(v, [0.0, 0.5, 1.0], [1.0, 3.0, 2.0])),
}


@pytest.mark.parametrize("f", SEQUENCES.values(), ids=SEQUENCES)
def test_lists_beside_arrays(f):
    check_grads(f, (V,), order=2)


NEW_AXES = {
    "none": lambda v: np.sum(np.sum(v**2)[None] * W),
    "ellipsis": lambda v: np.sum(_part(np.sum(v**2))[..., None] * W),
    "newaxis": lambda v: np.sum(np.mean(v**2)[np.newaxis, ...] * W),
    "element": lambda v: np.sum(v[1][None, None] * M * v),
    "empty": lambda v: np.sum(v**2)[()] * np.sum(v)[...],
    "zero rank": lambda v: np.sum(np.dot(v[..., 1], A) * A),
}


@pytest.mark.parametrize("f", NEW_AXES.values(), ids=NEW_AXES)
def test_numbers_of_numpy_are_indexed(f):
    check_grads(f, (V,), order=2)


def discrete_named(x):
    z = x * x
    np.floor(x * 3, out=z)
    return np.sum(z * x)


def discrete_placed(x):
    z = x * x
    np.greater(x, 0.4, z)
    return np.sum(z * x)


def discrete_masked(x):
    z = x * x
    np.rint(x * 3, where=[True, False, True], out=z)
    return np.sum(z * x)


def discrete_result(x):
    y = np.ceil(x * 3, where=[True, False, True], out=x * x)
    return np.sum(y * x)


def constant_masked(x):
    z = x * x
    np.add(2.0, 1.0, z, where=x > 0.4)
    return np.sum(z * x)


def reduced(x):
    z = x * x
    np.sum(np.outer(x, x), 0, None, z)
    return np.sum(z * x) + np.std(x, 0, None, None, 1)


def clipped(x):
    z = x * x
    np.clip(x, 0.4, 0.6, z)
    return np.sum(z * x)


def stacked(x):
    z = np.zeros((2, 3))
    np.stack([x, x * x], 0, z)
    return np.sum(z * x)


OUTS = [
    *[discrete_named, discrete_placed, discrete_masked, discrete_result],
    *[constant_masked, reduced, clipped, stacked],
]


@pytest.mark.parametrize("f", OUTS, ids=lambda f: f.__name__)
def test_what_out_is_filled_with(f):
    """By name or by place; what `where` leaves out keeps its derivative, what is overwritten loses it."""
    check_grads(f, (np.array([0.31, 0.52, 0.73]),), order=2)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_the_memory_decides_the_order(order):
    tangent = np.arange(6.0).reshape(2, 3)
    for x in (M, np.asfortranarray(M)):
        for f in (lambda x: np.ravel(x, order), lambda x: x.flatten(order), lambda x: x.ravel(order=order)):
            want = np.ravel_multi_index(np.unravel_index(np.arange(6), (2, 3), "F"), (2, 3))
            want = want if order == "F" or (order in "AK" and x is not M) else np.arange(6)
            np.testing.assert_array_equal(jvp(f, (x,), (tangent,))[1], np.ravel(tangent)[want])
            back = srcgrad.vjp(f, x)[1](np.arange(6.0))[0]
            np.testing.assert_array_equal(np.ravel(back)[want], np.arange(6.0))
    with pytest.raises(srcgrad.NoRule, match="contiguous"):
        grad(lambda t: np.sum(np.ravel(t, order="K")))(np.ones((2, 3, 4)).transpose(0, 2, 1))


SEVERAL = {
    "average": lambda m: np.average(m, axis=1, weights=V * m[0], returned=True),
    "logsumexp": lambda m: special.logsumexp(m, axis=1, b=[1.0, -2.0, 0.5], return_sign=True),
    "nansum": lambda m: (np.nansum(m, initial=m[0, 0]), np.nanmax(m, axis=0, initial=m[0, 1])),
    "empty": lambda m: (np.prod(m[:, :0], axis=0), np.diff(m, n=5), np.prod(m[:, :0] * m[0, 0], axis=1)),
    "dx": lambda m: (np.trapezoid(m, dx=m[:, 1:]), np.trapezoid(m, axis=0, dx=m[0])),
    "complex": lambda m: (np.nanstd(m + 1j * m**2), np.nanvar(m * 1j + m**2, axis=1)),
    "coordinates": lambda m: (ndimage.map_coordinates(A, m[:, :2]), ndimage.shift(m, m[0, :2], order=1)),
    "gradient": lambda m: (np.gradient(m, m[0, 0], axis=1, edge_order=2), np.gradient(m**2)[0]),
    "piecewise": lambda m: (np.piecewise(m[0, 0], [m[0, 0] > 0.1], [lambda x: x**2]), m[0]),
}


@pytest.mark.parametrize("f", SEVERAL.values(), ids=SEVERAL)
def test_options_with_results_of_their_own(f):
    def total(m):
        found = f(m)
        return np.sum(found[0] * 1.3) + np.sum(found[1] ** 2)

    check_grads(total, (M,), order=2)


def test_a_normal_density_in_one_dimension_and_frozen():
    check_grads(lambda x, m, c: stats.multivariate_normal.logpdf(x, m, c), (0.4, 0.1, 1.7), order=2)
    check_grads(lambda x: stats.multivariate_normal(W, A @ A.T).logpdf(x) ** 2, (V,), order=2)
    check_grads(lambda a, v: np.sum(linalg.solve(a, v) ** 2), (AB, V), order=2)
