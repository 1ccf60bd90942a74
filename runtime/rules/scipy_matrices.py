"""Rules for further factorizations and functions of matrices (SciPy manual, `scipy.linalg`).

Where a factor is orthogonal, its derivative is that factor times a skew matrix, which is found column by
column from what must stay zero in the other factor (K. Dieci and T. Eirola, SIAM J. Matrix Anal. Appl. 20,
1999). The reverse rule is the transpose of that computation.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy import linalg

from srcgrad.runtime.rules.callbacks import pullback, pulled, pushed, pushforward
from srcgrad.runtime.rules.inputs import definite, generic, square
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import adjoint, unbroadcast
from srcgrad.runtime.support import hermitian as hermitian_part

A, S, TALL, WIDE = square(4, 4), definite(4, 4), generic(5, 3), generic(3, 4)
REAL = generic(4, 4) + np.diag([0.0, 5.0, 11.0, 18.0])


def transposed(tangent, a, factors, g):
    """The cotangent of `a`, whose factors have the tangent `tangent(a_dot, *factors)`."""
    return unbroadcast(pullback(tangent, (np.zeros_like(a), *factors), g)[1][0], a)


# --- Schur and Hessenberg -----------------------------------------------------------------------------------


def schur_tangent(a_dot, t, z):
    change = adjoint(z) @ a_dot @ z
    turn = np.zeros_like(change)
    for j in range(t.shape[0] - 1):
        right = turn[j + 1 :, :j] @ t[:j, j] - change[j + 1 :, j]
        turn[j + 1 :, j] = np.linalg.solve(
            t[j + 1 :, j + 1 :] - t[j, j] * np.eye(t.shape[0] - j - 1, dtype=t.dtype), right
        )
    turn = turn - adjoint(turn)
    return np.triu(change + t @ turn - turn @ t), z @ turn


def triangular(t):
    """The factor of a Schur decomposition, if it is a triangle."""
    if np.any(np.tril(t, -1)):
        raise NotImplementedError("the derivative of a real Schur decomposition with complex eigenvalues")
    return t


@reverse(linalg.schur, at=[S, REAL])
def schur(g, y, a, output="real", *, check_finite=True):
    """A diagonal phase of the vectors is taken not to move."""
    return transposed(schur_tangent, a + 0 * y[0], (triangular(y[0]), y[1]), g)


@forward(linalg.schur)
def schur_forward(a_dot, y, a, output="real", *, check_finite=True):
    return schur_tangent(a_dot, triangular(y[0]), y[1])


def hessenberg_tangent(a_dot, h, q):
    change = np.transpose(q) @ a_dot @ q
    turn = np.zeros_like(change)
    for j in range(h.shape[0] - 2):
        left = change[j + 2 :, j] + h[j + 2 :, :] @ turn[:, j] - turn[j + 2 :, : j + 1] @ h[: j + 1, j]
        column = left / h[j + 1, j]
        turn[j + 2 :, j + 1] = column
        turn[j + 1, j + 2 :] = -column
    return np.triu(change + h @ turn - turn @ h, -1), q @ turn


def hessenberg_parts(y, a, calc_q):
    if np.iscomplexobj(a):
        raise NotImplementedError("the derivative of the Hessenberg form of a complex matrix")
    h, q = y if calc_q else linalg.hessenberg(a, calc_q=True)
    return h, q.astype(h.dtype)


@reverse(linalg.hessenberg, alias="maybe", at=[A, case(A, calc_q=True), np.eye(2) + generic(2, 2)])
def hessenberg(g, y, a, calc_q=False, *, check_finite=True):
    return transposed(hessenberg_tangent, a, hessenberg_parts(y, a, calc_q), g if calc_q else [g, 0.0])


@forward(linalg.hessenberg)
def hessenberg_forward(a_dot, y, a, calc_q=False, *, check_finite=True):
    found = hessenberg_tangent(a_dot, *hessenberg_parts(y, a, calc_q))
    return found if calc_q else found[0]


# --- L D L^T ------------------------------------------------------------------------------------------------


def ldl_tangent(a_dot, factor, d, order):
    """For the triangle `factor[order]`, whose diagonal blocks, where `d` has blocks, are identities."""
    lower = factor[order]
    half = np.linalg.solve(lower, a_dot[order][:, order])
    change = adjoint(np.linalg.solve(lower, adjoint(half)))
    blocks = (d != 0) | np.eye(d.shape[0], dtype=bool)
    below = np.linalg.solve(np.transpose(d), np.transpose(np.where(np.tril(~blocks), change, 0)))
    moved = lower @ np.transpose(below)
    return moved[np.argsort(order)], np.where(blocks, change, 0)


def ldl_parts(y, a, lower):
    if np.iscomplexobj(a) or not lower:
        raise NotImplementedError("the derivative of ldl for complex matrices or lower=False")
    return y


@reverse(linalg.ldl, wrt="A", at=[S, A + A.T, np.array([[0.0, 2.0], [2.0, 1.0]])])
def ldl(g, y, A, lower=True, hermitian=True, *, check_finite=True):
    """The pivots are taken not to move, the matrix to stay symmetric: its cotangent is."""
    return hermitian_part(transposed(ldl_tangent, A, ldl_parts(y, A, lower), [g[0], g[1]]))


@forward(linalg.ldl)
def ldl_forward(a_dot, y, A, lower=True, hermitian=True, *, check_finite=True):
    return (*ldl_tangent(a_dot, *ldl_parts(y, A, lower)), 0.0)


# --- subspaces ----------------------------------------------------------------------------------------------


def leading(a, rank):
    """The first left singular vectors."""
    return linalg.svd(a, full_matrices=False)[0][:, :rank]


@reverse(linalg.orth, wrt="A", at=[TALL, WIDE])
def orth(g, y, A, rcond=None):
    """The rank is taken not to change."""
    return pulled(leading, (A, y.shape[1]), g, 1)[0]


@forward(linalg.orth)
def orth_forward(a_dot, y, A, rcond=None):
    return pushed(leading, (A, y.shape[1]), (a_dot,))


@reverse(linalg.null_space, wrt="A", at=[WIDE])
def null_space(g, y, A, rcond=None, *, check_finite=True, lapack_driver="gesdd"):
    """The rank is taken not to change; vectors of the null space don't turn within it."""
    return -np.transpose(y @ np.transpose(g) @ np.linalg.pinv(A))


@forward(linalg.null_space)
def null_space_forward(a_dot, y, A, rcond=None, *, check_finite=True, lapack_driver="gesdd"):
    return -np.linalg.pinv(A) @ a_dot @ y


def angles(a, b):
    """The principal angles, small ones from their sines (A. Knyazev and M. Argentati, 2002)."""
    p, q = np.linalg.qr(a)[0], np.linalg.qr(b)[0]
    products = adjoint(p) @ q
    cosines = linalg.svdvals(products)
    rest = q - p @ products if p.shape[1] >= q.shape[1] else p - q @ adjoint(products)
    sines = linalg.svdvals(rest)[: cosines.shape[0]]
    small = cosines[::-1] ** 2 >= 0.5
    near = np.arcsin(np.where(small, sines, 0.0))
    return np.where(small, near, np.arccos(np.where(small, 0.0, cosines[::-1])))


@reverse(
    linalg.subspace_angles,
    wrt=("A", "B"),
    at=[(TALL, generic(5, 3, seed=1)), (TALL, generic(5, 2, seed=1)), (TALL[:, :1], TALL[:, :1] + 0.3)],
)
def subspace_angles(g, y, A, B):
    found = pulled(angles, (A, B), g, 2)
    return found


@forward(linalg.subspace_angles, joint=True)
def subspace_angles_forward(a_dot, b_dot, y, A, B):
    return pushed(angles, (A, B), (a_dot, b_dot))


# --- functions of matrices ----------------------------------------------------------------------------------


def slopes_between(func, values):
    """The divided differences of a function between eigenvalues, with its derivative where they are equal."""
    found, scalars = func(values), np.ones_like(values)
    apart = values[:, None] - values[None, :]
    same = np.abs(apart) <= 1e-7 * (1 + np.abs(values))[:, None]
    slope = np.broadcast_to(pushforward(func, (values,), 0.0, (scalars,))[:, None], apart.shape)
    return np.where(same, slope, (found[:, None] - found[None, :]) / np.where(same, 1, apart))


def as_real(x, y):
    return x if np.iscomplexobj(y) else np.real(x)


@reverse(linalg.funm, wrt=("A", "func"), at=[(S, np.exp), (REAL, np.sin), (A, np.exp)])
def funm(g, y, A, func):
    """From the eigenvectors, which must be independent (J. Daleckii and M. Krein, 1965)."""
    values, vectors = np.linalg.eig(A)
    inverse = np.linalg.inv(vectors)
    inner = np.transpose(inverse @ np.transpose(g) @ vectors)
    outer = np.transpose(inverse) @ (inner * slopes_between(func, values)) @ np.transpose(vectors)
    return unbroadcast(as_real(outer, A), A), pullback(func, (values,), np.diagonal(inner))[0]


@forward(linalg.funm, joint=True)
def funm_forward(a_dot, func_dot, y, A, func):
    values, vectors = np.linalg.eig(A)
    inverse = np.linalg.inv(vectors)
    inner = (inverse @ (a_dot + 0 * A) @ vectors) * slopes_between(func, values)
    moved = pushforward(func, (values,), func_dot, (0.0,)) if np.size(func_dot) else 0.0
    return as_real(vectors @ (inner + np.diag(moved + 0 * values)) @ inverse, y)
