"""Derivatives of whole programs at kinks, ties and singular points (those of the documentation)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as special

import srcgrad

INF = math.inf
W3 = np.array([1.0, 2.0, 5.0])


def of(*values):
    return np.array(values, dtype=float)


def double_where(x):
    safe = np.where(x > 0, x, 1.0)
    return np.sum(np.where(x > 0, np.sqrt(safe), 0.0))


def symmetric(a):
    _, v = np.linalg.eigh(a)
    return np.sum((v @ np.diag(of(1.0, 2.0)) @ v.T) ** 2)


CASES = [
    ("abs", lambda x: abs(x), (0.0,), (0.0,)),
    ("sign", lambda x: np.sign(x), (0.0,), (0.0,)),
    ("max-two", lambda x: np.max(x), (of(1, 0, 1),), (of(0.5, 0, 0.5),)),
    ("max-axis", lambda x: np.sum(np.max(x, axis=0)), (of(1, 0, 1),), (of(0.5, 0, 0.5),)),
    ("min-three", lambda x: x.min(), (of(1, 1, 1),), (of(1, 1, 1) / 3,)),
    ("maximum", lambda x, y: np.maximum(x, y), (1.0, 1.0), (0.5, 0.5)),
    ("minimum", lambda x, y: np.minimum(x, y), (1.0, 1.0), (0.5, 0.5)),
    ("fmax", lambda x, y: np.fmax(x, y), (1.0, 1.0), (0.5, 0.5)),
    ("relu", lambda x: np.maximum(x, 0), (0.0,), (0.5,)),
    ("relu-where", lambda x: np.where(x > 0, x, 0), (0.0,), (0.0,)),
    ("relu-branch", lambda x: x if x > 0 else 0.0, (0.0,), (0.0,)),
    ("clip", lambda x: np.sum(np.clip(x, 0, 1)), (of(0, 1, 0.5),), (of(1, 1, 1),)),
    ("clip-bound", lambda x, b: np.clip(x, b, 1.0), (0.5, 0.5), (1.0, 0.0)),
    ("sort", lambda x: np.sum(np.sort(x) * W3), (of(0.5, 0.5, 0.1),), (of(2, 5, 1),)),
    ("median", lambda x: np.median(x), (of(0.5, 0.5, 0.1, 0.9),), (of(0.5, 0.5, 0, 0),)),
    ("partition", lambda x: np.sum(np.partition(x, 1)[1:]), (of(0.5, 0.7, 0.1),), (of(1, 1, 0),)),
    ("sqrt", lambda x: np.sqrt(x), (0.0,), (INF,)),
    ("cbrt", lambda x: np.cbrt(x), (0.0,), (INF,)),
    ("log", lambda x: np.sum(np.log(x)), (of(0),), (of(INF),)),
    ("log-number", lambda x: np.log(x) + np.log2(x) * 2.0, (0.0,), (INF,)),
    ("log1p-number", lambda x: np.log1p(x), (-1.0,), (INF,)),
    ("arctanh-number", lambda x: np.arctanh(x), (1.0,), (INF,)),
    ("divide-number", lambda x: np.divide(2.0, x), (0.0,), (-INF,)),
    ("divide-by-0", lambda x: np.divide(x, 0.0), (2.0,), (INF,)),
    ("power-number", lambda x: np.power(x, -1.0), (0.0,), (-INF,)),
    ("root-number", lambda x: x**0.5, (0.0,), (INF,)),
    ("mean-none", lambda x: np.mean(x), (of(),), (of(),)),
    ("arcsin", lambda x: np.arcsin(x), (1.0,), (INF,)),
    ("arccosh", lambda x: np.arccosh(x), (1.0,), (INF,)),
    ("norm", lambda x: np.linalg.norm(x), (of(0, 0),), (of(0, 0),)),
    ("norm-rows", lambda x: np.sum(np.linalg.norm(x, axis=1)), (np.array([[0.0, 0], [3, 4]]),),
     (np.array([[0, 0], [0.6, 0.8]]),)),
    ("norm-1", lambda x: np.linalg.norm(x, 1), (of(0, 2),), (of(0, 1),)),
    ("norm-inf", lambda x: np.linalg.norm(x, np.inf), (of(1, -1),), (of(0.5, -0.5),)),
    ("norm-3", lambda x: np.linalg.norm(x, 3), (of(0, 0),), (of(0, 0),)),
    ("hypot", lambda x, y: np.hypot(x, y), (0.0, 0.0), (0.0, 0.0)),
    ("arctan2", lambda x, y: np.arctan2(x, y), (0.0, 0.0), (0.0, 0.0)),
    ("square", lambda x: x**2.0, (0.0,), (0.0,)),
    ("power-1", lambda x: x**1.0, (0.0,), (1.0,)),
    ("power-0", lambda x: x**0.0, (0.0,), (0.0,)),
    ("power-half", lambda x: np.sum(x**0.5), (of(0),), (of(INF),)),
    ("power-0-2", lambda x, y: x**y, (0.0, 2.0), (0.0, 0.0)),
    ("power-0-0", lambda x, y: np.power(x, y), (0.0, 0.0), (0.0, 0.0)),
    ("power-negative", lambda x: x**3, (-2.0,), (12.0,)),
    ("power-negative-float", lambda x: np.power(x, 3.0), (-2.0,), (12.0,)),
    ("prod", lambda x: np.prod(x), (of(0, 2, 3),), (of(6, 0, 0),)),
    ("prod-two", lambda x: np.prod(x), (of(0, 0, 3),), (of(0, 0, 0),)),
    ("cumprod", lambda x: np.sum(np.cumprod(x)), (of(2, 0, 3),), (of(1, 8, 0),)),
    ("std", lambda x: np.std(x), (of(0.7, 0.7, 0.7),), (of(0, 0, 0),)),
    ("std-exact", lambda x: x.std(ddof=1), (of(0.5, 0.5),), (of(0, 0),)),
    ("var", lambda x: np.var(x), (of(0.7, 0.7, 0.7),), (of(0, 0, 0),)),
    ("std-one", lambda x: np.std(x), (of(0.7),), (of(0),)),
    ("where-nan", lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)), (of(-1, 2),), (of(0, 0.5),)),
    ("where-infinite", lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), (of(0, 4),), (of(0, 0.25),)),
    ("where-double", double_where, (of(0, 4),), (of(0, 0.25),)),
    ("det", lambda a: np.linalg.det(a), (np.array([[1.0, 2], [2, 4]]),), (np.array([[4, -2], [-2, 1]]),)),
    ("det-zero", lambda a: np.linalg.det(a), (np.zeros((2, 2)),), (np.zeros((2, 2)),)),
    ("det-rank-1", lambda a: np.linalg.det(a), (np.ones((3, 3)),), (np.zeros((3, 3)),)),
    ("eigvalsh", lambda a: np.sum(np.linalg.eigvalsh(a) ** 2), (2 * np.eye(2),), (4 * np.eye(2),)),
    ("eigh", lambda a: np.sum(np.linalg.eigh(a)[0] ** 2), (2 * np.eye(2),), (4 * np.eye(2),)),
    ("svd", lambda a: np.sum(np.linalg.svd(a, compute_uv=False)), (np.eye(2),), (np.eye(2),)),
    ("svd-thin", lambda a: np.sum(np.linalg.svd(a, full_matrices=False)[1]), (np.eye(2),), (np.eye(2),)),
    ("logsumexp-one", lambda x: special.logsumexp(x), (of(-INF, 0),), (of(0, 1),)),
    ("logsumexp-none", lambda x: special.logsumexp(x), (of(-INF, -INF),), (of(0, 0),)),
    ("logaddexp", lambda x, y: np.logaddexp(x, y), (1000.0, 0.0), (1.0, 0.0)),
    ("sinc", lambda x: np.sinc(x), (0.0,), (0.0,)),
    ("mod", lambda x: np.mod(x, 1.0), (2.0,), (1.0,)),
    ("mod-divisor", lambda x, y: x % y, (-2.5, 1.0), (1.0, 3.0)),
    ("fmod-divisor", lambda x, y: np.fmod(x, y), (-2.5, 1.0), (1.0, 2.0)),
    ("floor", lambda x: np.floor(x) + np.round(x), (1.0,), (0.0,)),
    ("heaviside", lambda x: np.heaviside(x, 0.5), (0.0,), (0.0,)),
    ("nan_to_num", lambda x: np.sum(np.nan_to_num(x, posinf=1.0)), (of(np.nan, INF, 1),), (of(0, 0, 1),)),
    ("nanmax", lambda x: np.nanmax(x), (of(np.nan, 1, 2),), (of(0, 0, 1),)),
    ("ptp", lambda x: np.ptp(x), (of(0.5, 0.5),), (of(0, 0),)),
    ("interp-knot", lambda x: np.interp(x, of(0, 1, 2), of(0, 1, 3)), (1.0,), (2.0,)),
    ("interp-outside", lambda x: np.interp(x, of(0, 1, 2), of(0, 1, 3)), (-1.0,), (0.0,)),
    ("quantile", lambda x: np.quantile(x, 0.5), (of(0.1, 0.5, 0.9),), (of(0, 1, 0),)),
    ("expit", lambda x: special.expit(x), (800.0,), (0.0,)),
    ("erfinv", lambda x: special.erfinv(x), (1.0,), (INF,)),
    ("i0e", lambda x: special.i0e(x), (0.0,), (0.0,)),
    ("entr", lambda x: special.entr(x), (0.0,), (INF,)),
    ("linspace", lambda a, b: np.sum(np.linspace(a, b, 3)), (1.0, 1.0), (1.5, 1.5)),
    ("angle", lambda x: np.angle(x), (-1.0,), (0.0,)),
    ("abs-complex", lambda z: np.abs(z), (0j,), (0.0,)),
    ("abs-3-4", lambda z: np.abs(z), (3 + 4j,), (0.6 - 0.8j,)),
    ("real-square", lambda z: np.real(z**2), (1 + 2j,), (2 + 4j,)),
    ("imag", lambda z: np.imag(z), (1 + 2j,), (-1j,)),
    ("angle-complex", lambda z: np.angle(z), (0j,), (0.0,)),
    ("cholesky-symmetric", lambda s: np.linalg.cholesky(s)[1, 0], (np.array([[2, 0.5], [0.5, 1]]),),
     (np.array([[-0.0883883, 0.3535534], [0.3535534, 0.0]]),)),
    ("copysign", lambda x: np.copysign(x, 1.0), (0.0,), (0.0,)),
    ("log2", lambda x: np.sum(np.log2(x) + np.log10(x)), (of(0),), (of(INF),)),
    ("amax", lambda x: np.amax(x) + np.nanmin(x), (of(1, 1),), (of(1, 1),)),
    ("nanvar", lambda x: np.nanmean(x) * 2, (of(1, np.nan, 2),), (of(1, 0, 1),)),
    ("nanprod", lambda x: np.nanprod(x), (of(0, 2),), (of(2, 0),)),
    ("unused", lambda x, y: x, (1.0, 2.0), (1.0, 0.0)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f, args, want", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_kink(f, args, want):
    with np.errstate(all="ignore"):
        found = srcgrad.grad(f, tuple(range(len(args))))(*args)
        for i, (g, w) in enumerate(zip(found, want, strict=True)):
            assert np.shape(g) == np.shape(args[i])
            np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-7)
            for unit in np.reshape(np.eye(np.size(w)), (np.size(w), *np.shape(w))):
                moves = [np.zeros_like(a)[()] for a in args]
                moves[i] = unit[()] if np.ndim(unit) else unit.item()
                t = srcgrad.jvp(f, args, tuple(moves))[1]
                expected = np.real(np.sum(np.where(unit == 0, 0, w)))
                if "cholesky" not in f.__code__.co_names:  # its tangents are those of symmetric matrices
                    np.testing.assert_allclose(t, expected, rtol=1e-6, atol=1e-7)


def masks(x):
    return np.sum(np.where(x > 0, np.sqrt(x) * x, 3 * x * x))


@pytest.mark.filterwarnings("ignore")
def test_where_is_exact_where_the_other_branch_is_nan():
    """Also through several steps, twice, and where the cotangent itself is 0."""
    x = of(-1, 0, 4)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(srcgrad.grad(masks)(x), [-6.0, 0.0, 3.0])
        second = np.diag(of(6.0, 6.0, 0.375))
        for outer in (srcgrad.jacfwd, srcgrad.jacrev):
            for inner in (srcgrad.jacfwd, srcgrad.grad):
                np.testing.assert_allclose(outer(inner(masks))(x), second)

        def missing(m, x):
            return np.sum(np.where(np.isnan(x), 0.0, (x - m) ** 2))

        assert srcgrad.grad(missing)(0.5, of(1, np.nan, 2)) == -2 * 0.5 - 2 * 1.5

        def residual(x):
            return np.sum(np.where(x > 0, (x - 4.0) ** 2 * np.exp(x), 0.0))

        np.testing.assert_allclose(srcgrad.hessian(residual)(x)[2, 2], 2 * math.exp(4))
        np.testing.assert_allclose(srcgrad.jacrev(srcgrad.grad(residual))(x)[2, 2], 2 * math.exp(4))

        def loop(x):
            total = 0.0
            for i in range(3):
                positive = x[i] > 0
                total = total + np.where(positive, np.sqrt(x[i]), 1.0)
            return total

        np.testing.assert_allclose(srcgrad.grad(loop)(x), [0.0, 0.0, 0.25])


def test_second_derivatives():
    np.testing.assert_allclose(srcgrad.hessian(np.prod)(of(0, 2, 3))[0, 1], 3.0)
    assert srcgrad.grad(srcgrad.grad(np.sinc))(0.0) == pytest.approx(-(math.pi**2) / 3)


@pytest.mark.filterwarnings("ignore")
def test_degenerate_eigenvectors_are_finite():
    assert np.all(np.isfinite(srcgrad.grad(symmetric)(2 * np.eye(2))))
    assert np.all(np.isfinite(srcgrad.grad(lambda a: np.linalg.norm(a, "nuc"))(np.zeros((2, 2)))))
    with np.errstate(all="ignore"):
        srcgrad.grad(lambda a: np.linalg.slogdet(a)[1])(np.array([[1.0, 2], [2, 4]]))  # raises nothing
