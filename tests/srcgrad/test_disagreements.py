"""What other libraries get wrong: each against finite differences, in both modes."""

from __future__ import annotations

import numpy as np
import numpy.polynomial as poly
import pytest

from srcgrad import check_grads, grad

V = np.array([0.53, 0.72, 0.31])
W = np.array([0.41, 0.93, 0.65])
M = np.array([[0.41, 0.93, 0.22], [0.88, 0.34, 0.67]])
Z = np.array([[2.0, 0.3 + 0.2j, 0.1], [0.3 - 0.2j, 1.5, 0.4j], [0.1, -0.4j, 1.8]])
KEEP = np.array([[True, False, True], [False, True, True]])


def last_write_wins(v, w):
    y = v * 1.0
    y[[0, 0]] += w[:2]
    return np.sum(y**2)


def sorted_in_place(v):
    y = v * 1.0
    y.sort()
    return np.sum(y * W)


def filled(v, s):
    y = np.empty(3)
    y.fill(s)
    return np.sum(y * v)


def hermitian(z):
    return (z + np.conj(z.T)) / 2


CASES = {
    "sum where": (lambda m: np.sum(m**2, where=KEEP), (M,)),
    "sum initial": (lambda m: np.sum(m**2, initial=3.0), (M,)),
    "max initial": (lambda m: np.sum(np.max(m, axis=1, initial=0.9)), (M,)),
    "mean where": (lambda m: np.sum(np.mean(m**2, axis=1, where=KEEP)), (M,)),
    "std correction": (lambda m: np.sum(np.std(m, axis=1, correction=1)), (M,)),
    "full_like": (lambda v, s: np.sum(np.full_like(v, s) * v), (V, 0.7)),
    "pad maximum": (lambda v: np.sum(np.pad(v, 2, mode="maximum") ** 2), (V,)),
    "pad minimum": (lambda v: np.sum(np.pad(v, 2, mode="minimum") ** 2), (V,)),
    "pad median": (lambda m: np.sum(np.pad(m, 1, mode="median") ** 2), (M,)),
    "last write wins": (last_write_wins, (V, W)),
    "unique": (lambda v: np.sum(np.unique(v) * W), (V,)),
    "norm inf": (lambda v: np.linalg.norm(v, np.inf) * np.linalg.norm(np.outer(v, W), np.inf), (V,)),
    "polyval": (lambda x, c: np.sum(poly.polynomial.polyval(x, c)), (V, W)),
    "chebval": (lambda x, c: np.sum(poly.chebyshev.chebval(x, c)), (V, W)),
    "legval": (lambda x, c: np.sum(poly.legendre.legval(x, c)), (V, W)),
    "hermval": (lambda x, c: np.sum(poly.hermite.hermval(x, c)), (V, W)),
    "hermeval": (lambda x, c: np.sum(poly.hermite_e.hermeval(x, c)), (V, W)),
    "lagval": (lambda x, c: np.sum(poly.laguerre.lagval(x, c)), (V, W)),
    "copy": (lambda v: np.sum(v.copy() * v), (V,)),
    "astype": (lambda v: np.sum(v.astype(float) ** 2 * v), (V,)),
    "astype int": (lambda v: np.sum((v * 10).astype(int) * v), (V,)),
    "sort in place": (sorted_in_place, (V,)),
    "fill": (filled, (V, 0.7)),
    "item": (lambda v: v.item(1) * v[0] + v[2].item() ** 2, (V,)),
    "float": (lambda v: float(v[1]) * v[0] * float(v[1]), (V,)),
    "sign complex": (lambda z: np.real(np.sum(np.sign(z) * (1 + 2j))), (Z[0] + 0.1j,)),
    "cholesky complex": (lambda z: np.real(np.sum(np.linalg.cholesky(hermitian(z)) * (1 + 2j))), (Z,)),
}


@pytest.mark.parametrize("f, args", CASES.values(), ids=CASES)
def test_disagreement(f, args):
    check_grads(f, args, order=1)


def test_what_is_constant():
    """The template of `full_like`, and integers made of floats."""
    np.testing.assert_array_equal(grad(lambda v: np.sum(np.full_like(v, 2.0)))(V), np.zeros(3))
    np.testing.assert_array_equal(grad(lambda v: 1.0 * np.sum((v * 10).astype(int)))(V), np.zeros(3))
