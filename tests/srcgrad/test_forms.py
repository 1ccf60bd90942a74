"""Forms of call: broadcast results, options that are differentiated, options that no rule knows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal as signal
import scipy.special as special

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
