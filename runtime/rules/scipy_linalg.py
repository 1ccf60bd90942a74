"""Rules for linear algebra (SciPy manual, `scipy.linalg`).

What NumPy has too goes back to the formulas beside NumPy's rules. A derivative of a matrix function along E
is a block of the function of a block matrix: f([[A, E], [0, A]]) holds it above the diagonal (R. Mathias,
1996; N. Higham, "Functions of Matrices", section 3.2), and its transpose is the derivative at A^T. Where only
one triangle of a symmetric matrix is read, the cotangent is symmetric. Options that only save time or check
the input (`overwrite_a`, `check_finite`) are refused or passed on without effect on the derivative.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy import linalg

from srcgrad.runtime.rules.callbacks import pulled, pushed
from srcgrad.runtime.rules.decompositions import (
    eig,
    eig_forward,
    eigvals_forward,
    lower_half,
    lstsq,
    lstsq_forward,
    pinv_adjoint,
    pinv_forward,
    qr_adjoint,
    qr_tangent,
    svd_adjoint,
    svd_tangent,
)
from srcgrad.runtime.rules.decompositions import eigvals as eigvals_reverse
from srcgrad.runtime.rules.inputs import complexes, definite, generic, positive, square
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    adjoint,
    cofactors,
    expand,
    gaps,
    hermitian,
    norm_slope,
    scatter,
    unbroadcast,
)

A = square(3, 3)
BATCH = square(2, 3, 3)
B = square(3, 3, seed=1)
S = definite(3, 3)
C = complexes(3, 3) + 4 * np.eye(3)
H = S + 0.3j * (generic(3, 3) - generic(3, 3).T)
TALL, WIDE = generic(4, 3), generic(2, 4)
X, R = generic(3), generic(3, 2)


def column(b):
    return b if np.ndim(b) > 1 else np.expand_dims(b, -1)


# --- equations ----------------------------------------------------------------------------------------------

SYMMETRIC = ("sym", "her", "pos", "symmetric", "hermitian", "positive definite")


@reverse(
    linalg.solve,
    wrt=("a", "b"),
    at=[
        *[
            (A, X),
            (A, R),
            (C, X + 1j),
            case(A, X, transposed=True),
            case(S, R, assume_a="pos"),
            case(S, X, assume_a="sym"),
        ],
        *[case(H, X + 0j, assume_a="her"), case(S, X, lower=True, assume_a="pos")],
        *[(np.stack([A, S, A.T]), R), (np.stack([A, S, A.T]), X)],
    ],
)
def solve(g, y, a, b, lower=False, *, check_finite=True, assume_a=None, transposed=False):
    turned = a if transposed else a.mT
    g, y = (np.expand_dims(g, -1), np.expand_dims(y, -1)) if np.ndim(b) == 1 else (g, y)
    b_bar = np.linalg.solve(turned, g)
    a_bar = -y @ b_bar.mT if transposed else -b_bar @ y.mT
    if assume_a in SYMMETRIC:
        a_bar = hermitian(a_bar) if assume_a not in ("sym", "symmetric") else (a_bar + a_bar.mT) / 2
    return unbroadcast(a_bar, a), unbroadcast(b_bar[..., 0] if np.ndim(b) == 1 else b_bar, b)


@forward(linalg.solve)
def solve_forward(a_dot, b_dot, y, a, b, lower=False, *, check_finite=True, assume_a=None, transposed=False):
    matrix = a.mT if transposed else a
    of_a = 0 * y
    if np.ndim(a_dot):
        columns = np.expand_dims(y, -1) if np.ndim(b) == 1 else y
        change = (a_dot.mT if transposed else a_dot) @ columns
        of_a = np.reshape(-np.linalg.solve(matrix, change), np.shape(y))
    of_b = np.reshape(np.linalg.solve(matrix, column(b_dot)), np.shape(y)) if np.ndim(b_dot) else 0 * y
    return of_a, of_b


def triangle(x, lower, unit_diagonal=False):
    """The part of a cotangent that belongs to a triangular matrix."""
    if lower:
        return np.tril(x, -1 if unit_diagonal else 0)
    return np.triu(x, 1 if unit_diagonal else 0)


TRANSPOSES = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


@reverse(
    linalg.solve_triangular,
    wrt=("a", "b"),
    at=[
        *[
            (A, X),
            (A, R),
            case(A, R, lower=True),
            case(A, R, trans=1),
            case(A, X, "T", lower=True),
            case(C, R + 1j, trans=2),
        ],
        *[
            case(A, R, lower=True, unit_diagonal=True),
            case(A, R, trans=1, unit_diagonal=True),
            case(C, R + 0j, trans="C", lower=True),
        ],
    ],
)
def solve_triangular(g, y, a, b, trans=0, lower=False, unit_diagonal=False, *, check_finite=True):
    way = TRANSPOSES[trans]
    back = (1, 0, 0)[way]
    g = np.conj(g) if way == 2 else g
    b_bar = linalg.solve_triangular(a, column(g), trans=back, lower=lower, unit_diagonal=unit_diagonal)
    b_bar = np.conj(b_bar) if way == 2 else b_bar
    a_bar = -b_bar @ column(y).mT
    a_bar = (a_bar, a_bar.mT, adjoint(a_bar))[way]
    return (
        unbroadcast(triangle(a_bar, lower, unit_diagonal), a),
        unbroadcast(np.reshape(b_bar, np.shape(b)), b),
    )


@forward(linalg.solve_triangular)
def solve_triangular_forward(
    a_dot, b_dot, y, a, b, trans=0, lower=False, unit_diagonal=False, *, check_finite=True
):
    def solved(change):
        return linalg.solve_triangular(a, change, trans=trans, lower=lower, unit_diagonal=unit_diagonal)

    of_a = 0 * y
    if np.ndim(a_dot):
        moved = triangle(a_dot, lower, unit_diagonal)
        moved = (moved, moved.mT, adjoint(moved))[TRANSPOSES[trans]]
        of_a = -np.reshape(solved(moved @ column(y)), np.shape(y))
    return of_a, solved(b_dot) if np.ndim(b_dot) else 0 * y


@reverse(linalg.inv, at=[A, C, BATCH])
def inv(g, y, a, *, check_finite=True):
    return -y.mT @ g @ y.mT


@forward(linalg.inv)
def inv_forward(a_dot, y, a, *, check_finite=True):
    return -y @ a_dot @ y


@reverse(linalg.det, at=[A, C, BATCH, [[1.0, 2.0], [2.0, 4.0]]])
def det(g, y, a, *, check_finite=True):
    """The matrix of cofactors, which exists for singular matrices too."""
    if np.ndim(a) == 2:
        return g * cofactors(a)
    return unbroadcast(np.expand_dims(g, (-2, -1)) * cofactors(a), a)


@forward(linalg.det)
def det_forward(a_dot, y, a, *, check_finite=True):
    return unbroadcast(np.sum(a_dot * cofactors(a), axis=(-2, -1)), y)


@reverse(linalg.pinv, at=[TALL, WIDE, A, C])
def pinv(g, y, a, *, atol=None, rtol=None, check_finite=True):
    """Right among matrices of the same rank."""
    return np.conj(pinv_adjoint(np.conj(g), y, a))


@forward(linalg.pinv)
def pinv_tangent(a_dot, y, a, *, atol=None, rtol=None, check_finite=True):
    return pinv_forward(a_dot, y, a)


@reverse(linalg.pinvh, at=[S, H])
def pinvh(g, y, a, atol=None, rtol=None, lower=True, *, check_finite=True):
    """Right among matrices of the same rank."""
    return hermitian(np.conj(pinv_adjoint(np.conj(g), y, a)))


@forward(linalg.pinvh)
def pinvh_forward(a_dot, y, a, atol=None, rtol=None, lower=True, *, check_finite=True):
    return pinv_forward(hermitian(a_dot), y, a)


@reverse(
    linalg.lstsq,
    wrt=("a", "b"),
    at=[(TALL, generic(4, seed=1)), (TALL, generic(4, 2, seed=1)), (WIDE, generic(2))],
)
def least_squares(g, y, a, b, cond=None, *, check_finite=True):
    """The cotangents of solution, residuals and singular values; the rank is constant."""
    return lstsq(g, y, a, b)


@forward(linalg.lstsq)
def least_squares_forward(a_dot, b_dot, y, a, b, cond=None, *, check_finite=True):
    return lstsq_forward(a_dot, b_dot, y, a, b)


@reverse(
    linalg.norm,
    at=[
        X,
        A,
        case(A, axis=1),
        (X, 1),
        (X, 3),
        (A, "nuc"),
        (A, 2),
        (A, 1),
        (X, np.inf),
        case(TALL, axis=0, keepdims=True),
    ],
)
def norm(g, y, a, ord=None, axis=None, keepdims=False, *, check_finite=True):
    """At 0 the derivative is taken as 0."""
    return expand(np.real(g), a, axis, keepdims) * norm_slope(y, a, ord, axis, keepdims)


@forward(linalg.norm)
def norm_forward(a_dot, y, a, ord=None, axis=None, keepdims=False, *, check_finite=True):
    return np.sum(np.real(a_dot * norm_slope(y, a, ord, axis, keepdims)), axis=axis, keepdims=keepdims)


# --- Cholesky, LU -------------------------------------------------------------------------------------------


@reverse(linalg.cholesky, at=[S, H, case(S, lower=True), case(H, lower=True)])
def cholesky(g, y, a, lower=False, *, check_finite=True):
    """The cotangent is symmetric: it pairs with symmetric changes of `a`."""
    g = np.conj(triangle(g, lower))
    return cholesky_adjoint(g if lower else adjoint(g), y if lower else adjoint(y))


def cholesky_adjoint(g, factor):
    """For a lower factor: L^-H (the lower half of L^H g) L^-1, made Hermitian."""
    middle = lower_half(adjoint(factor) @ g)
    left = solve_factor(factor, middle, True)
    return np.conj(hermitian(adjoint(solve_factor(factor, adjoint(left), True))))


def solve_factor(factor, b, conjugate):
    """The solution of L x = b, or of L^H x = b, for a lower L."""
    return linalg.solve_triangular(factor, b, trans=2 if conjugate else 0, lower=True, check_finite=False)


@forward(linalg.cholesky)
def cholesky_forward(a_dot, y, a, lower=False, *, check_finite=True):
    if lower:
        return cholesky_tangent(a_dot, y)
    return adjoint(cholesky_tangent(a_dot, adjoint(y)))


def cholesky_tangent(a_dot, factor):
    left = solve_factor(factor, hermitian(a_dot), False)
    return factor @ lower_half(adjoint(solve_factor(factor, adjoint(left), False)))


@reverse(linalg.cho_factor, at=[S, case(S, lower=True), case(H, lower=True)])
def cho_factor(g, y, a, lower=False, *, check_finite=True):
    """The other triangle of the result is that of `a`, as it was."""
    factor, part = triangle(y[0], lower), np.conj(triangle(g[0], lower))
    found = cholesky_adjoint(part if lower else adjoint(part), factor if lower else adjoint(factor))
    return found + triangle(g[0], not lower, True)


@forward(linalg.cho_factor)
def cho_factor_forward(a_dot, y, a, lower=False, *, check_finite=True):
    factor = triangle(y[0], lower)
    moved = cholesky_tangent(a_dot, factor if lower else adjoint(factor))
    return (moved if lower else adjoint(moved)) + triangle(a_dot, not lower, True), False


@reverse(
    linalg.cho_solve,
    wrt=("c_and_lower", "b"),
    at=[
        ((np.tril(A), True), X),
        ((np.triu(A), False), R),
        ((np.tril(C), True), R + 1j),
        ((np.triu(C), False), X + 1j),
    ],
)
def cho_solve(g, y, c_and_lower, b, *, check_finite=True):
    c, lower = c_and_lower
    inner = np.conj(linalg.cho_solve((c, lower), np.conj(column(g))))
    a_bar = -inner @ column(y).mT
    factor = triangle(c, lower)
    if lower:
        c_bar = a_bar @ np.conj(factor) + np.conj(a_bar.mT @ factor)
    else:
        c_bar = np.conj(factor) @ a_bar + np.conj(factor @ a_bar.mT)
    return [triangle(c_bar, lower), 0.0], np.reshape(inner, np.shape(b))


@forward(linalg.cho_solve)
def cho_solve_forward(c_and_lower_dot, b_dot, y, c_and_lower, b, *, check_finite=True):
    c, lower = c_and_lower
    of_c = 0 * y
    if isinstance(c_and_lower_dot, (tuple, list)):
        factor, moved = triangle(c, lower), triangle(c_and_lower_dot[0], lower)
        if not lower:
            factor, moved = adjoint(factor), adjoint(moved)
        change = moved @ (adjoint(factor) @ column(y)) + factor @ (adjoint(moved) @ column(y))
        of_c = np.reshape(-linalg.cho_solve((c, lower), change), np.shape(y))
    return of_c, linalg.cho_solve((c, lower), b_dot) if np.ndim(b_dot) else 0 * y


def lu_adjoint(gl, gu, lower, upper):
    """The cotangent of the permuted matrix L U, from those of L (unit lower) and U; for any shape (S. Walter,
    2012)."""
    m, n = lower.shape[-2], upper.shape[-1]
    k = min(m, n)
    tail = None
    if n > m:  # U = [U1, U2] with U2 = L^-1 A2
        tail = np.linalg.solve(lower.mT, gu[..., k:])
        gl = gl - tail @ upper[..., k:].mT
        gu, upper = gu[..., :k], upper[..., :k]
    head, below = lower[..., :k, :], lower[..., k:, :]
    across = gu @ upper.mT - below.mT @ gl[..., k:, :]
    inner = np.tril(head.mT @ gl[..., :k, :], -1) + np.triu(across)
    inner = np.linalg.solve(head.mT, inner)
    if m > n:
        inner = np.concatenate([inner, gl[..., k:, :]], axis=-2)
    found = np.linalg.solve(upper, inner.mT).mT
    return found if tail is None else np.concatenate([found, tail], axis=-1)


def lu_tangent(a_dot, lower, upper):
    """The tangents of L and U from that of the permuted matrix L U."""
    m, n = lower.shape[-2], upper.shape[-1]
    k = min(m, n)
    head, below, square_ = lower[..., :k, :], lower[..., k:, :], upper[..., :k]
    scaled = np.linalg.solve(square_.mT, a_dot[..., :k].mT).mT
    inner = np.linalg.solve(head, scaled[..., :k, :])
    across = np.triu(inner)
    l_dot = head @ np.tril(inner, -1)
    if m > n:
        l_dot = np.concatenate([l_dot, scaled[..., k:, :] - below @ across], axis=-2)
    u_dot = across @ square_
    if n > m:
        right = np.linalg.solve(lower, a_dot[..., k:] - l_dot @ upper[..., k:])
        u_dot = np.concatenate([u_dot, right], axis=-1)
    return l_dot, u_dot


@reverse(linalg.lu, at=[A, TALL, WIDE, BATCH, case(A, permute_l=True), case(TALL, p_indices=True), C])
def lu(g, y, a, permute_l=False, *, check_finite=True, p_indices=False):
    """The permutation is constant."""
    order, lower, upper = lu_parts(y, a, permute_l, p_indices)
    gl = g[0] if permute_l else g[1]
    gl = np.take_along_axis(gl, np.argsort(order, axis=-1)[..., None], axis=-2) if permute_l else gl
    found = lu_adjoint(gl, g[-1], lower, upper)
    return unbroadcast(np.take_along_axis(found, order[..., None], axis=-2), a)


def lu_parts(y, a, permute_l, p_indices):
    """The row of L U that each row of `a` is, L, and U."""
    if permute_l:
        order, lower, upper = linalg.lu(a, p_indices=True)
        return np.asarray(order), lower, upper
    return (np.asarray(y[0]) if p_indices else np.argmax(y[0], axis=-1)), y[1], y[2]


@forward(linalg.lu)
def lu_forward(a_dot, y, a, permute_l=False, *, check_finite=True, p_indices=False):
    order, lower, upper = lu_parts(y, a, permute_l, p_indices)
    back = np.argsort(order, axis=-1)[..., None]
    l_dot, u_dot = lu_tangent(np.take_along_axis(a_dot, back, axis=-2), lower, upper)
    if permute_l:
        return np.take_along_axis(l_dot, order[..., None], axis=-2), u_dot
    return np.zeros_like(y[0]), l_dot, u_dot


def pivoted(pivots, m):
    """The rows of a matrix after the exchanges that LAPACK lists in `pivots`."""
    order = np.arange(m)
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return order


def unpacked(packed):
    """L and U of a packed square or rectangular factorisation."""
    m, n = packed.shape
    k = min(m, n)
    return np.tril(packed, -1)[:, :k] + np.eye(m, k, dtype=packed.dtype), np.triu(packed)[:k]


def packed(lower, upper):
    """What the strict lower triangle of one and the upper triangle of the other make together."""
    m, n = lower.shape[0], upper.shape[1]
    out = np.zeros((m, n), np.result_type(lower, upper))
    out[:, : min(m, n)] += np.tril(lower, -1)
    out[: min(m, n)] += np.triu(upper)
    return out


@reverse(linalg.lu_factor, at=[A, C])
def lu_factor(g, y, a, *, check_finite=True):
    """The permutation is constant."""
    lower, upper = unpacked(y[0])
    found = lu_adjoint(np.tril(g[0], -1)[:, : len(upper)], np.triu(g[0])[: len(upper)], lower, upper)
    return scatter(found, a, (pivoted(y[1], len(a)),))


@forward(linalg.lu_factor)
def lu_factor_forward(a_dot, y, a, *, check_finite=True):
    return packed(*lu_tangent(a_dot[pivoted(y[1], len(a))], *unpacked(y[0]))), np.zeros_like(y[1])


LU, PIV = linalg.lu_factor(A)


@reverse(linalg.lu_solve, wrt=("lu_and_piv", "b"), at=[((LU, PIV), X), ((LU, PIV), R, 1), ((LU, PIV), X, 0)])
def lu_solve(g, y, lu_and_piv, b, trans=0, *, check_finite=True):
    factors, pivots = lu_and_piv
    b_bar = linalg.lu_solve((factors, pivots), column(g), trans=0 if trans else 1)
    if trans == 2:
        raise NotImplementedError("the derivative of lu_solve with trans=2")
    a_bar = -column(y) @ b_bar.mT if trans else -b_bar @ column(y).mT
    a_bar = a_bar[pivoted(pivots, len(factors))]
    lower, upper = unpacked(factors)
    return [packed(a_bar @ upper.mT, lower.mT @ a_bar), np.zeros_like(pivots)], np.reshape(b_bar, np.shape(b))


@forward(linalg.lu_solve)
def lu_solve_forward(lu_and_piv_dot, b_dot, y, lu_and_piv, b, trans=0, *, check_finite=True):
    factors, pivots = lu_and_piv
    of_a = 0 * y
    if isinstance(lu_and_piv_dot, (tuple, list)):
        lower, upper = unpacked(factors)
        moved = lu_and_piv_dot[0]
        change = np.tril(moved, -1) @ upper + lower @ np.triu(moved)
        change = change[np.argsort(pivoted(pivots, len(factors)))]
        change = (change.mT if trans else change) @ column(y)
        of_a = np.reshape(-linalg.lu_solve((factors, pivots), change, trans), np.shape(y))
    return of_a, linalg.lu_solve((factors, pivots), b_dot, trans) if np.ndim(b_dot) else 0 * y


# --- eigenvalues --------------------------------------------------------------------------------------------


@reverse(
    linalg.eigh,
    wrt=("a", "b"),
    at=[
        S,
        (A + A.T, S),
        case(S, eigvals_only=True),
        case(A + A.T, S, eigvals_only=True),
        case(H, eigvals_only=True),
    ],
)
def eigh(g, y, a, b=None, *, lower=True, eigvals_only=False, check_finite=True, driver=None):
    """The cotangents are symmetric: they pair with symmetric changes."""
    if eigvals_only:
        w, v = linalg.eigh(a, b, lower=lower)
        gw, along = g, np.zeros_like(v)
    else:
        (w, v), gw = y, g[0]
        along = v.mT @ g[1]
    return eigh_adjoint(gw, along, w, v, b)


def eigh_adjoint(gw, along, w, v, b):
    """With P = v^H (dA - w dB) v: dw = diag(P), dv = v (gaps P - diag(v^H dB v) / 2)."""
    eye = np.eye(np.shape(w)[-1], dtype=np.real(v).dtype)
    inner = gaps(w) * along + eye * np.expand_dims(gw, -2)
    a_bar = hermitian(np.conj(v) @ inner @ v.mT)
    if b is None:
        return a_bar, None
    inner = -inner * np.expand_dims(w, -2) - eye * along / 2
    return a_bar, hermitian(np.conj(v) @ inner @ v.mT)


@forward(linalg.eigh)
def eigh_forward(
    a_dot, b_dot, y, a, b=None, *, lower=True, eigvals_only=False, check_finite=True, driver=None
):
    w, v = linalg.eigh(a, b, lower=lower) if eigvals_only else y
    eye = np.eye(np.shape(w)[-1], dtype=np.real(v).dtype)
    of_a = of_b = (0 * w, 0 * v)
    if np.ndim(a_dot):
        inner = adjoint(v) @ hermitian(a_dot) @ v
        of_a = (np.real(np.diagonal(inner)), v @ (gaps(w) * inner))
    if b is not None and np.ndim(b_dot):
        metric = adjoint(v) @ hermitian(b_dot) @ v
        inner = -metric * w
        of_b = (np.real(np.diagonal(inner)), v @ (gaps(w) * inner - eye * metric / 2))
    return (of_a[0], of_b[0]) if eigvals_only else (of_a, of_b)


@reverse(linalg.eigvalsh, wrt=("a", "b"), at=[S, (A + A.T, S), H])
def eigvalsh(g, y, a, b=None, *, lower=True, check_finite=True, driver=None):
    """The cotangents are symmetric: they pair with symmetric changes."""
    w, v = linalg.eigh(a, b, lower=lower)
    return eigh_adjoint(g, np.zeros_like(v), w, v, b)


@forward(linalg.eigvalsh)
def eigvalsh_forward(a_dot, b_dot, y, a, b=None, *, lower=True, check_finite=True, driver=None):
    return eigh_forward(a_dot, b_dot, y, a, b, lower=lower, eigvals_only=True)


@reverse(linalg.eig, at=[S + 0.2 * A])
def eig_(g, y, a, *, check_finite=True):
    """For complex eigenvectors: right for results that do not depend on their phases."""
    return eig(g, y, a)


@forward(linalg.eig)
def eig_tangent(a_dot, y, a, *, check_finite=True):
    return eig_forward(a_dot, y, a)


@reverse(linalg.eigvals, at=[A, C])
def eigvals(g, y, a, *, check_finite=True):
    return eigvals_reverse(g, y, a)


@forward(linalg.eigvals)
def eigvals_tangent(a_dot, y, a, *, check_finite=True):
    return eigvals_forward(a_dot, y, a)


D3, E2 = generic(3) * 2, positive(2)


@reverse(linalg.eigh_tridiagonal, wrt=("d", "e"), at=[(D3, E2), case(D3, E2, eigvals_only=True)])
def eigh_tridiagonal(g, y, d, e, eigvals_only=False, *, check_finite=True):
    w, v = linalg.eigh_tridiagonal(d, e) if eigvals_only else y
    along = np.zeros_like(v) if eigvals_only else v.mT @ g[1]
    a_bar = eigh_adjoint(g if eigvals_only else g[0], along, w, v, None)[0]
    return unbroadcast(np.diagonal(a_bar), d), unbroadcast(2 * np.diagonal(a_bar, 1), e)


@forward(linalg.eigh_tridiagonal)
def eigh_tridiagonal_forward(d_dot, e_dot, y, d, e, eigvals_only=False, *, check_finite=True):
    w, v = linalg.eigh_tridiagonal(d, e) if eigvals_only else y
    of_d = of_e = (0 * w, 0 * v)
    if np.ndim(d_dot):
        inner = v.T @ (np.diag(d_dot) @ v)
        of_d = (np.diagonal(inner), v @ (gaps(w) * inner))
    if np.ndim(e_dot):
        inner = v.T @ ((np.diag(e_dot, 1) + np.diag(e_dot, -1)) @ v)
        of_e = (np.diagonal(inner), v @ (gaps(w) * inner))
    return (of_d[0], of_e[0]) if eigvals_only else (of_d, of_e)


@reverse(linalg.eigvalsh_tridiagonal, wrt=("d", "e"), at=[(D3, E2)])
def eigvalsh_tridiagonal(g, y, d, e, *, check_finite=True):
    return eigh_tridiagonal(g, y, d, e, True)


@forward(linalg.eigvalsh_tridiagonal)
def eigvalsh_tridiagonal_forward(d_dot, e_dot, y, d, e, *, check_finite=True):
    return eigh_tridiagonal_forward(d_dot, e_dot, y, d, e, True)


def band_places(n, bands, lower):
    """Rows and columns of the full matrix for the elements of a symmetric band, and which elements exist."""
    offset = np.arange(bands)[:, None]
    j = np.broadcast_to(np.arange(n), (bands, n))
    i = j + offset if lower else j - (bands - 1 - offset)
    return np.clip(i, 0, n - 1), j, (i >= 0) & (i < n)


def from_band(band, lower):
    """The full Hermitian matrix of a band."""
    i, j, inside = band_places(band.shape[1], band.shape[0], lower)
    half = np.zeros((band.shape[1],) * 2, band.dtype)
    half[i[inside], j[inside]] = band[inside]
    return half + adjoint(half) - np.diag(np.diagonal(half))


def band_adjoint(a_bar, band, lower):
    """The cotangent of a band from that of the Hermitian matrix that it stands for."""
    i, j, inside = band_places(band.shape[1], band.shape[0], lower)
    both = a_bar[i, j] + np.where(i == j, 0, np.conj(a_bar[j, i]))
    return unbroadcast(np.where(inside, both, 0), band)


BAND = np.array([[0.0, 0.3, -0.2], [3.0, 4.0, 2.5]])
LOWER_BAND = np.array([[3.0, 4.0, 2.5], [0.3, -0.2, 0.0]])


@reverse(linalg.eig_banded, at=[BAND, case(LOWER_BAND, lower=True), case(BAND, eigvals_only=True)])
def eig_banded(g, y, a_band, lower=False, eigvals_only=False, *, check_finite=True):
    w, v = linalg.eig_banded(a_band, lower) if eigvals_only else y
    along = np.zeros_like(v) if eigvals_only else v.mT @ g[1]
    return band_adjoint(eigh_adjoint(g if eigvals_only else g[0], along, w, v, None)[0], a_band, lower)


@forward(linalg.eig_banded)
def eig_banded_forward(a_band_dot, y, a_band, lower=False, eigvals_only=False, *, check_finite=True):
    w, v = linalg.eig_banded(a_band, lower) if eigvals_only else y
    inner = adjoint(v) @ from_band(a_band_dot, lower) @ v
    w_dot = np.real(np.diagonal(inner))
    return w_dot if eigvals_only else (w_dot, v @ (gaps(w) * inner))


@reverse(linalg.eigvals_banded, at=[BAND, case(LOWER_BAND, lower=True)])
def eigvals_banded(g, y, a_band, lower=False, *, check_finite=True):
    return eig_banded(g, y, a_band, lower, True)


@forward(linalg.eigvals_banded)
def eigvals_banded_forward(a_band_dot, y, a_band, lower=False, *, check_finite=True):
    return eig_banded_forward(a_band_dot, y, a_band, lower, True)


# --- singular values, QR, polar -----------------------------------------------------------------------------


@reverse(
    linalg.svd,
    at=[
        A,
        case(TALL, full_matrices=False),
        case(WIDE, full_matrices=False),
        *[case(m, compute_uv=False) for m in (TALL, C)],
    ],
)
def svd(g, y, a, full_matrices=True, compute_uv=True, *, check_finite=True, lapack_driver="gesdd"):
    if not compute_uv:
        return svdvals(g, y, a)
    return svd_adjoint(g, y)


@forward(linalg.svd)
def svd_forward(
    a_dot, y, a, full_matrices=True, compute_uv=True, *, check_finite=True, lapack_driver="gesdd"
):
    if not compute_uv:
        return svdvals_forward(a_dot, y, a)
    return svd_tangent(a_dot, y)


@reverse(linalg.svdvals, at=[A, TALL, WIDE, C])
def svdvals(g, y, a, *, check_finite=True):
    u, _, vh = linalg.svd(a, full_matrices=False)
    return (np.conj(u) * np.expand_dims(g, -2)) @ np.conj(vh)


@forward(linalg.svdvals)
def svdvals_forward(a_dot, y, a, *, check_finite=True):
    u, _, vh = linalg.svd(a, full_matrices=False)
    return np.real(np.sum(np.conj(u) * (a_dot @ adjoint(vh)), axis=-2))


QR_CASES = [
    *[A, WIDE, C, *[case(m, mode="economic") for m in (A, TALL, WIDE, complexes(4, 2))]],
    *[case(m, mode="r") for m in (A, TALL, WIDE)],
    *[
        case(A, pivoting=True),
        case(TALL, mode="economic", pivoting=True),
        case(TALL, mode="r", pivoting=True),
    ],
]


@reverse(linalg.qr, at=QR_CASES)
def qr(g, y, a, *, mode="full", pivoting=False, check_finite=True):
    order = y[-1] if pivoting else np.arange(np.shape(a)[1])
    moved = a[:, order]
    if mode == "r":
        q, r = linalg.qr(moved, mode="economic")
        return scatter(
            qr_adjoint(np.zeros_like(q), np.conj(g[0][: len(r)]), q, r, moved), a, (slice(None), order)
        )
    return scatter(qr_adjoint(np.conj(g[0]), np.conj(g[1]), y[0], y[1], moved), a, (slice(None), order))


@forward(linalg.qr)
def qr_forward(a_dot, y, a, *, mode="full", pivoting=False, check_finite=True):
    order = y[-1] if pivoting else np.arange(np.shape(a)[1])
    moved = a[:, order]
    q, r = linalg.qr(moved, mode="economic") if mode == "r" else y[:2]
    q_dot, r_dot = qr_tangent(a_dot[:, order], q, r, moved)
    rest = (np.zeros_like(order),) if pivoting else ()
    if mode == "r":
        return (np.concatenate([r_dot, np.zeros_like(y[0][len(r_dot) :])]), *rest)
    return (q_dot, r_dot, *rest)


def flipped(x, rows, columns):
    return x[:: -1 if rows else 1, :: -1 if columns else 1]


@reverse(linalg.rq, at=[A, C, case(WIDE, mode="economic")])
def rq(g, y, a, *, mode="full", check_finite=True):
    """a = r q is the QR decomposition of the adjoint of a turned upside down."""
    turned = adjoint(flipped(a, True, False))
    q, r = adjoint(flipped(y[1], True, False)), adjoint(flipped(y[0], True, True))
    gq, gr = adjoint(flipped(np.conj(g[1]), True, False)), adjoint(flipped(np.conj(g[0]), True, True))
    found = adjoint(np.conj(qr_adjoint(gq, gr, q, r, turned)))
    return np.conj(flipped(found, True, False))


@forward(linalg.rq)
def rq_forward(a_dot, y, a, *, mode="full", check_finite=True):
    turned = adjoint(flipped(a, True, False))
    q, r = adjoint(flipped(y[1], True, False)), adjoint(flipped(y[0], True, True))
    q_dot, r_dot = qr_tangent(adjoint(flipped(a_dot, True, False)), q, r, turned)
    return flipped(adjoint(r_dot), True, True), flipped(adjoint(q_dot), True, False)


def polar_adjoint(gu, gp, a, u, p):
    """For a = u p with a of full column rank, conjugated cotangents in and out (N. Higham, "Functions of
    Matrices", 8.)."""
    s, v = np.linalg.eigh(p)
    sums = 1 / (np.expand_dims(s, -1) + np.expand_dims(s, -2))
    gu = gu + a @ adjoint(gp)
    inner = sums * (adjoint(v) @ (adjoint(u) @ gu) @ v)
    turned = u @ (v @ (inner - adjoint(inner)) @ adjoint(v))
    outside = (gu - u @ (adjoint(u) @ gu)) @ (v / np.expand_dims(s, -2)) @ adjoint(v)
    return u @ gp + turned + outside


def polar_tangent(a_dot, a, u, p):
    s, v = np.linalg.eigh(p)
    sums = 1 / (np.expand_dims(s, -1) + np.expand_dims(s, -2))
    inner = adjoint(v) @ (adjoint(u) @ a_dot) @ v
    u_dot = u @ (v @ (sums * (inner - adjoint(inner))) @ adjoint(v))
    u_dot = u_dot + (a_dot - u @ (adjoint(u) @ a_dot)) @ (v / np.expand_dims(s, -2)) @ adjoint(v)
    return u_dot, adjoint(u_dot) @ a + adjoint(u) @ a_dot


@reverse(linalg.polar, at=[A, TALL, C, case(A, side="left"), case(WIDE, side="left")])
def polar(g, y, a, side="right"):
    u, p = y
    gu, gp = np.conj(g[0]), np.conj(g[1])
    if side == "left":
        return np.conj(adjoint(polar_adjoint(adjoint(gu), gp, adjoint(a), adjoint(u), p)))
    return np.conj(polar_adjoint(gu, gp, a, u, p))


@forward(linalg.polar)
def polar_forward(a_dot, y, a, side="right"):
    u, p = y
    if side == "left":
        u_dot, p_dot = polar_tangent(adjoint(a_dot), adjoint(a), adjoint(u), p)
        return adjoint(u_dot), p_dot
    return polar_tangent(a_dot, a, u, p)


@reverse(linalg.orthogonal_procrustes, wrt=("A", "B"), at=[(A, B), (TALL, generic(4, 3, seed=1))])
def orthogonal_procrustes(g, y, A, B, *, check_finite=True):
    """The rotation is the polar factor of A^H B, the scale its nuclear norm."""
    m, u = adjoint(A) @ B, y[0]
    m_bar = (
        polar_adjoint(np.conj(g[0]), np.zeros_like(u), m, u, hermitian(adjoint(u) @ m)) + np.real(g[1]) * u
    )
    return B @ np.conj(m_bar).T if np.isrealobj(A) else np.conj(B @ adjoint(m_bar)), np.conj(A @ m_bar)


@forward(linalg.orthogonal_procrustes)
def orthogonal_procrustes_forward(A_dot, B_dot, y, A, B, *, check_finite=True):
    m, u = adjoint(A) @ B, y[0]
    p = hermitian(adjoint(u) @ m)
    found = []
    for m_dot in (
        adjoint(A_dot) @ B if np.ndim(A_dot) else 0 * m,
        adjoint(A) @ B_dot if np.ndim(B_dot) else 0 * m,
    ):
        found.append((polar_tangent(m_dot, m, u, p)[0], np.real(np.sum(np.conj(u) * m_dot))))
    return found[0], found[1]


# --- functions of matrices ----------------------------------------------------------------------------------


def block(a, e):
    """[[a, e], [0, a]]"""
    return np.concatenate(
        [np.concatenate([a, e], axis=-1), np.concatenate([np.zeros_like(a), a], axis=-1)], axis=-2
    )


def block_derivative(function, a, e, *rest):
    """The derivative of a matrix function at `a` along `e`."""
    n = a.shape[-1]
    return function(block(a, e), *rest)[..., :n, n:]


@reverse(linalg.expm, at=[A * 0.3, BATCH * 0.3, C * 0.2, generic(1, 1)])
def expm(g, y, A):
    if A.ndim == 2:
        return unbroadcast(linalg.expm_frechet(A.T, g, compute_expm=False), A)
    return block_derivative(linalg.expm, A.mT, g)


@forward(linalg.expm)
def expm_forward(A_dot, y, A):
    if A.ndim == 2:
        return unbroadcast(linalg.expm_frechet(A, A_dot, compute_expm=False), y)
    return block_derivative(linalg.expm, A, A_dot)


@reverse(linalg.expm_frechet, wrt=("A", "E"), at=[(A * 0.3, B), case(A * 0.3, B, compute_expm=False)])
def expm_frechet(g, y, A, E, method=None, compute_expm=True, *, check_finite=True):
    """Both results are blocks of the exponential of a block matrix."""
    n = len(A)
    whole = np.zeros((2 * n, 2 * n), np.result_type(g[-1]))
    whole[:n, n:] = g[1] if compute_expm else g
    if compute_expm:
        whole[:n, :n] = g[0]
    found = linalg.expm_frechet(block(A, E).T, whole, compute_expm=False)
    return unbroadcast(found[:n, :n] + found[n:, n:], A), unbroadcast(found[:n, n:], E)


@forward(linalg.expm_frechet)
def expm_frechet_forward(A_dot, E_dot, y, A, E, method=None, compute_expm=True, *, check_finite=True):
    n = len(A)
    zero = np.zeros_like(A)
    of_a = linalg.expm_frechet(
        block(A, E), block(A_dot if np.ndim(A_dot) else zero, zero), compute_expm=False
    )
    of_e = linalg.expm_frechet(
        block(A, E), block(zero, E_dot if np.ndim(E_dot) else zero), compute_expm=False
    )
    if compute_expm:
        return (of_a[:n, :n], of_a[:n, n:]), (of_e[:n, :n], of_e[:n, n:])
    return of_a[:n, n:], of_e[:n, n:]


@reverse(linalg.logm, at=[S, A + 2 * np.eye(3)])
def logm(g, y, A):
    return unbroadcast(block_derivative(linalg.logm, A.T, g), A)


@forward(linalg.logm)
def logm_forward(A_dot, y, A):
    return unbroadcast(block_derivative(linalg.logm, A, A_dot), y)


@reverse(linalg.sqrtm, at=[S, A + 2 * np.eye(3), C])
def sqrtm(g, y, A):
    """From y y = A: the cotangent x solves y^T x + x y^T = g."""
    return unbroadcast(linalg.solve_sylvester(y.T, y.T, g), A)


@forward(linalg.sqrtm)
def sqrtm_forward(A_dot, y, A):
    return unbroadcast(linalg.solve_sylvester(y, y, A_dot), y)


@reverse(linalg.fractional_matrix_power, at=[(S, 0.5), (S, -0.3), (A + 2 * np.eye(3), 1.7)], wrt="A")
def fractional_matrix_power(g, y, A, t):
    return unbroadcast(block_derivative(linalg.fractional_matrix_power, A.T, g, t), A)


@forward(linalg.fractional_matrix_power)
def fractional_matrix_power_forward(A_dot, y, A, t):
    return unbroadcast(block_derivative(linalg.fractional_matrix_power, A, A_dot, t), y)


@reverse(linalg.cosm, at=[A * 0.3, S * 0.2])
def cosm(g, y, A):
    return block_derivative(linalg.cosm, A.T, g)


@forward(linalg.cosm)
def cosm_forward(A_dot, y, A):
    return block_derivative(linalg.cosm, A, A_dot)


@reverse(linalg.sinm, at=[A * 0.3, S * 0.2])
def sinm(g, y, A):
    return block_derivative(linalg.sinm, A.T, g)


@forward(linalg.sinm)
def sinm_forward(A_dot, y, A):
    return block_derivative(linalg.sinm, A, A_dot)


@reverse(linalg.tanm, at=[A * 0.3, S * 0.2])
def tanm(g, y, A):
    return block_derivative(linalg.tanm, A.T, g)


@forward(linalg.tanm)
def tanm_forward(A_dot, y, A):
    return block_derivative(linalg.tanm, A, A_dot)


@reverse(linalg.coshm, at=[A * 0.3, S * 0.2])
def coshm(g, y, A):
    return block_derivative(linalg.coshm, A.T, g)


@forward(linalg.coshm)
def coshm_forward(A_dot, y, A):
    return block_derivative(linalg.coshm, A, A_dot)


@reverse(linalg.sinhm, at=[A * 0.3, S * 0.2])
def sinhm(g, y, A):
    return block_derivative(linalg.sinhm, A.T, g)


@forward(linalg.sinhm)
def sinhm_forward(A_dot, y, A):
    return block_derivative(linalg.sinhm, A, A_dot)


@reverse(linalg.tanhm, at=[A * 0.3, S * 0.2])
def tanhm(g, y, A):
    return block_derivative(linalg.tanhm, A.T, g)


@forward(linalg.tanhm)
def tanhm_forward(A_dot, y, A):
    return block_derivative(linalg.tanhm, A, A_dot)


@reverse(linalg.signm, at=[generic(3, 3) + np.diag([2.0, -2.0, 3.0])])
def signm(g, y, A):
    """From y y = 1 and y A = A y: for N = y A, N dy + dy N = dA - y dA y."""
    inner = linalg.solve_sylvester((y @ A).T, (y @ A).T, g)
    return inner - y.T @ inner @ y.T


@forward(linalg.signm)
def signm_forward(A_dot, y, A):
    return linalg.solve_sylvester(y @ A, y @ A, A_dot - y @ A_dot @ y)


# --- matrix equations ---------------------------------------------------------------------------------------


@reverse(
    linalg.solve_sylvester, wrt=("a", "b", "q"), at=[(A, B + 5 * np.eye(3), TALL[:3]), (A, S[:2, :2], R)]
)
def solve_sylvester(g, y, a, b, q):
    return -sylvester(g, a, b) @ y.T, -y.T @ sylvester(g, a, b), sylvester(g, a, b)


def sylvester(g, a, b):
    return linalg.solve_sylvester(a.T, b.T, g)


@forward(linalg.solve_sylvester)
def solve_sylvester_forward(a_dot, b_dot, q_dot, y, a, b, q):
    return (
        linalg.solve_sylvester(a, b, -a_dot @ y if np.ndim(a_dot) else 0 * y),
        linalg.solve_sylvester(a, b, -y @ b_dot if np.ndim(b_dot) else 0 * y),
        linalg.solve_sylvester(a, b, q_dot if np.ndim(q_dot) else 0 * y),
    )


@reverse(linalg.solve_continuous_lyapunov, wrt=("a", "q"), at=[(A, S), (A, B), (C, C * 1j)])
def solve_continuous_lyapunov(g, y, a, q):
    """For a x + x a^H = q."""
    inner = linalg.solve_continuous_lyapunov(a.T, g)
    return unbroadcast(-inner @ y.T - np.conj(inner.T @ y), a), unbroadcast(inner, q)


@forward(linalg.solve_continuous_lyapunov)
def solve_continuous_lyapunov_forward(a_dot, q_dot, y, a, q):
    moved = a_dot if np.ndim(a_dot) else 0 * a
    return (
        linalg.solve_continuous_lyapunov(a, -moved @ y - y @ adjoint(moved)),
        linalg.solve_continuous_lyapunov(a, q_dot if np.ndim(q_dot) else 0 * q),
    )


@reverse(linalg.solve_discrete_lyapunov, wrt=("a", "q"), at=[(A * 0.2, S), (A * 0.2, B), (C * 0.1, C)])
def solve_discrete_lyapunov(g, y, a, q, method=None):
    """For x = a x a^H + q."""
    inner = linalg.solve_discrete_lyapunov(a.T, g, method)
    return unbroadcast(inner @ (y @ adjoint(a)).T + np.conj(inner.T @ (a @ y)), a), unbroadcast(inner, q)


@forward(linalg.solve_discrete_lyapunov)
def solve_discrete_lyapunov_forward(a_dot, q_dot, y, a, q, method=None):
    moved = a_dot if np.ndim(a_dot) else 0 * a
    change = moved @ y @ adjoint(a)
    change = change + a @ y @ adjoint(moved)
    return (
        linalg.solve_discrete_lyapunov(a, change, method),
        linalg.solve_discrete_lyapunov(a, q_dot if np.ndim(q_dot) else 0 * q, method),
    )


@reverse(
    linalg.solve_continuous_are,
    wrt=("a", "b", "q", "r"),
    at=[(A, R, S, S[:2, :2] + np.eye(2)), (A, B, S, np.eye(3))],
)
def solve_continuous_are(g, y, a, b, q, r):
    """With the gain k = r^-1 b^T x, changes of x obey a Lyapunov equation for a - b k (all real)."""
    k = np.linalg.solve(r, b.T @ y)
    inner = hermitian(linalg.solve_continuous_lyapunov(a - b @ k, -g))
    return (
        unbroadcast(2 * y @ inner, a),
        unbroadcast(-2 * y @ inner @ k.T, b),
        unbroadcast(inner, q),
        unbroadcast(k @ inner @ k.T, r),
    )


@forward(linalg.solve_continuous_are)
def solve_continuous_are_forward(a_dot, b_dot, q_dot, r_dot, y, a, b, q, r):
    k = np.linalg.solve(r, b.T @ y)
    closed = (a - b @ k).T
    half = [
        y @ a_dot if np.ndim(a_dot) else 0 * y,
        -y @ b_dot @ k if np.ndim(b_dot) else 0 * y,
        q_dot / 2 if np.ndim(q_dot) else 0 * y,
        k.T @ r_dot @ k / 2 if np.ndim(r_dot) else 0 * y,
    ]
    found = [linalg.solve_continuous_lyapunov(closed, -h - h.T) for h in half]
    return found[0], found[1], found[2], found[3]


@reverse(
    linalg.solve_discrete_are,
    wrt=("a", "b", "q", "r"),
    at=[(A * 0.3, R, S, S[:2, :2]), (A * 0.3, B, S, np.eye(3))],
)
def solve_discrete_are(g, y, a, b, q, r):
    """With the gain k, changes of x obey a Lyapunov equation for a - b k (all real)."""
    k = np.linalg.solve(r + b.T @ y @ b, b.T @ y @ a)
    closed = a - b @ k
    inner = hermitian(linalg.solve_discrete_lyapunov(closed, g))
    return (
        unbroadcast(2 * y @ closed @ inner, a),
        unbroadcast(-2 * y @ closed @ inner @ k.T, b),
        unbroadcast(inner, q),
        unbroadcast(k @ inner @ k.T, r),
    )


@forward(linalg.solve_discrete_are)
def solve_discrete_are_forward(a_dot, b_dot, q_dot, r_dot, y, a, b, q, r):
    k = np.linalg.solve(r + b.T @ y @ b, b.T @ y @ a)
    closed = a - b @ k
    half = [
        closed.T @ y @ a_dot if np.ndim(a_dot) else 0 * y,
        -closed.T @ y @ b_dot @ k if np.ndim(b_dot) else 0 * y,
        q_dot / 2 if np.ndim(q_dot) else 0 * y,
        k.T @ r_dot @ k / 2 if np.ndim(r_dot) else 0 * y,
    ]
    found = [linalg.solve_discrete_lyapunov(closed.T, h + h.T) for h in half]
    return found[0], found[1], found[2], found[3]


# --- banded and structured matrices -------------------------------------------------------------------------


def diagonals(ab, lower, upper):
    """Rows and columns of the full matrix for the elements of `ab`, and which of them exist."""
    n = ab.shape[1]
    j = np.broadcast_to(np.arange(n), ab.shape)
    i = j + np.arange(-upper, lower + 1)[:, None]
    return np.clip(i, 0, n - 1), j, (i >= 0) & (i < n)


def transposed_band(ab, lower, upper):
    """The diagonals of the transposed matrix, whose roles are exchanged."""
    n = ab.shape[1]
    out = np.zeros_like(ab)
    for row, offset in enumerate(range(upper, -lower - 1, -1)):
        width = max(n - abs(offset), 0)
        from_, to = max(offset, 0), max(-offset, 0)
        out[lower + upper - row, to : to + width] = ab[row, from_ : from_ + width]
    return out


AB = np.array([[0.0, 0.3, -0.2, 0.5], [3.0, 4.0, 2.5, 3.5], [0.7, -0.6, 0.4, 0.0]])
AB2 = np.array([[0.0, 0.3, -0.2, 0.5], [3.0, 4.0, 2.5, 3.5], [0.7, -0.6, 0.4, 0.0], [0.2, 0.1, 0.0, 0.0]])


@reverse(linalg.solve_banded, wrt=("ab", "b"), at=[((1, 1), AB, generic(4)), ((2, 1), AB2, generic(4, 2))])
def solve_banded(g, y, l_and_u, ab, b, *, check_finite=True):
    lower, upper = l_and_u
    b_bar = linalg.solve_banded((upper, lower), transposed_band(ab, lower, upper), g)
    i, j, inside = diagonals(ab, lower, upper)
    found = -np.sum(column(b_bar)[i] * column(y)[j], axis=-1)
    return unbroadcast(np.where(inside, found, 0), ab), unbroadcast(b_bar, b)


@forward(linalg.solve_banded)
def solve_banded_forward(ab_dot, b_dot, y, l_and_u, ab, b, *, check_finite=True):
    of_ab = 0 * y
    if np.ndim(ab_dot):
        i, j, inside = diagonals(ab, *l_and_u)
        full = np.zeros((ab.shape[1],) * 2, ab.dtype)
        full[i[inside], j[inside]] = ab_dot[inside]
        of_ab = -linalg.solve_banded(l_and_u, ab, full @ y)
    return of_ab, linalg.solve_banded(l_and_u, ab, b_dot) if np.ndim(b_dot) else 0 * y


@reverse(linalg.solveh_banded, wrt=("ab", "b"), at=[(BAND, X), (BAND, R), case(LOWER_BAND, X, lower=True)])
def solveh_banded(g, y, ab, b, *, lower=False, check_finite=True):
    b_bar = np.conj(linalg.solveh_banded(ab, np.conj(g), lower=lower))
    return band_adjoint(-column(b_bar) @ column(y).T, ab, lower), unbroadcast(b_bar, b)


@forward(linalg.solveh_banded)
def solveh_banded_forward(ab_dot, b_dot, y, ab, b, *, lower=False, check_finite=True):
    of_ab = -linalg.solveh_banded(ab, from_band(ab_dot, lower) @ y, lower=lower) if np.ndim(ab_dot) else 0 * y
    return of_ab, linalg.solveh_banded(ab, b_dot, lower=lower) if np.ndim(b_dot) else 0 * y


def band_of(matrix, band, lower):
    """The elements of a matrix that a band holds."""
    i, j, inside = band_places(band.shape[1], band.shape[0], lower)
    return np.where(inside, matrix[i, j], 0)


def factor_of(band, lower):
    """The triangular matrix of a banded Cholesky factor, as a lower one."""
    i, j, inside = band_places(band.shape[1], band.shape[0], lower)
    half = np.zeros((band.shape[1],) * 2, band.dtype)
    half[i[inside], j[inside]] = band[inside]
    return half if lower else adjoint(half)


@reverse(linalg.cholesky_banded, at=[BAND, case(LOWER_BAND, lower=True)])
def cholesky_banded(g, y, ab, *, lower=False, check_finite=True):
    """By way of the full matrix; elements of the band outside of the matrix are passed on."""
    full = cholesky_adjoint(np.conj(factor_of(g, lower)), factor_of(y, lower))
    return band_adjoint(full, ab, lower) + np.where(band_places(*ab.shape[::-1], lower)[2], 0, g)


@forward(linalg.cholesky_banded)
def cholesky_banded_forward(ab_dot, y, ab, *, lower=False, check_finite=True):
    found = cholesky_tangent(from_band(ab_dot, lower), factor_of(y, lower))
    inside = band_places(*ab.shape[::-1], lower)[2]
    return np.where(inside, band_of(found if lower else adjoint(found), y, lower), ab_dot)


CB, LCB = linalg.cholesky_banded(BAND), linalg.cholesky_banded(LOWER_BAND, lower=True)


@reverse(linalg.cho_solve_banded, wrt=("cb_and_lower", "b"), at=[((CB, False), X), ((LCB, True), R)])
def cho_solve_banded(g, y, cb_and_lower, b, *, check_finite=True):
    """By way of the full matrix."""
    cb, lower = cb_and_lower
    inner = np.conj(linalg.cho_solve_banded((cb, lower), np.conj(g)))
    a_bar, factor = -column(inner) @ column(y).T, factor_of(cb, lower)
    full = a_bar @ np.conj(factor) + np.conj(a_bar.T @ factor)
    return [band_of(full if lower else adjoint(full), cb, lower), 0.0], unbroadcast(inner, b)


@forward(linalg.cho_solve_banded)
def cho_solve_banded_forward(cb_and_lower_dot, b_dot, y, cb_and_lower, b, *, check_finite=True):
    cb, lower = cb_and_lower
    of_cb = 0 * y
    if isinstance(cb_and_lower_dot, (tuple, list)):
        factor, moved = factor_of(cb, lower), factor_of(cb_and_lower_dot[0], lower)
        change = moved @ adjoint(factor) + factor @ adjoint(moved)
        of_cb = -linalg.cho_solve_banded((cb, lower), change @ y)
    return of_cb, linalg.cho_solve_banded((cb, lower), b_dot) if np.ndim(b_dot) else 0 * y


def toeplitz_parts(c_or_cr):
    """First column and first row; only the column's first element counts."""
    if isinstance(c_or_cr, tuple):
        return np.ravel(c_or_cr[0]), np.ravel(c_or_cr[1])
    return np.ravel(c_or_cr), np.conj(np.ravel(c_or_cr))


def toeplitz_adjoint(left, right, c_or_cr):
    """The cotangents of column and row for that of the matrix, left right^T: sums along its diagonals."""
    c, r = toeplitz_parts(c_or_cr)
    left, right = column(left), column(right)
    sums = sum(np.convolve(left[:, k], right[::-1, k]) for k in range(left.shape[1]))
    middle = len(r) - 1
    c_bar, r_bar = sums[middle:], np.concatenate([0 * sums[:1], sums[:middle][::-1]])
    if isinstance(c_or_cr, tuple):
        return [
            unbroadcast(np.reshape(c_bar, np.shape(c_or_cr[0])), c_or_cr[0]),
            unbroadcast(np.reshape(r_bar, np.shape(c_or_cr[1])), c_or_cr[1]),
        ]
    return unbroadcast(np.reshape(c_bar + np.conj(r_bar), np.shape(c_or_cr)), c_or_cr)


T3 = generic(3) + np.array([4.0, 0.0, 0.0])


@reverse(linalg.solve_toeplitz, wrt=("c_or_cr", "b"), at=[(T3, X), ((T3, generic(3, seed=2)), R)])
def solve_toeplitz(g, y, c_or_cr, b, *, check_finite=True):
    c, r = toeplitz_parts(c_or_cr)
    b_bar = linalg.solve_toeplitz((np.concatenate([c[:1], r[1:]]), c), g)
    return toeplitz_adjoint(-b_bar, y, c_or_cr), unbroadcast(b_bar, b)


@forward(linalg.solve_toeplitz)
def solve_toeplitz_forward(c_or_cr_dot, b_dot, y, c_or_cr, b, *, check_finite=True):
    of_c = 0 * y
    if np.ndim(c_or_cr_dot) or isinstance(c_or_cr_dot, tuple):
        of_c = -linalg.solve_toeplitz(c_or_cr, linalg.toeplitz(*toeplitz_parts(c_or_cr_dot)) @ y)
    return of_c, linalg.solve_toeplitz(c_or_cr, b_dot) if np.ndim(b_dot) else 0 * y


@reverse(linalg.matmul_toeplitz, wrt=("c_or_cr", "x"), at=[(T3, X), (T3, R)])
def matmul_toeplitz(g, y, c_or_cr, x, *, check_finite=False, workers=None):
    c, r = toeplitz_parts(c_or_cr)
    x_bar = linalg.matmul_toeplitz((np.concatenate([c[:1], r[1:]]), c), g)
    return toeplitz_adjoint(g, x, c_or_cr), unbroadcast(x_bar, x)


@forward(linalg.matmul_toeplitz)
def matmul_toeplitz_forward(c_or_cr_dot, x_dot, y, c_or_cr, x, *, check_finite=False, workers=None):
    of_c = 0 * y
    if np.ndim(c_or_cr_dot) or isinstance(c_or_cr_dot, tuple):
        of_c = unbroadcast(linalg.toeplitz(*toeplitz_parts(c_or_cr_dot)) @ x, y)
    return of_c, linalg.matmul_toeplitz(c_or_cr, x_dot) if np.ndim(x_dot) else 0 * y


@reverse(linalg.solve_circulant, wrt=("c", "b"), at=[(T3, X), (T3, R)])
def solve_circulant(g, y, c, b):
    """The transpose of a circulant matrix is the circulant of the reversed column."""
    b_bar = linalg.solve_circulant(np.roll(c[::-1], 1), g)
    places = np.mod(np.arange(len(c))[:, None] - np.arange(len(c)), len(c))
    return scatter(-column(b_bar) @ column(y).T, c, places), unbroadcast(b_bar, b)


@forward(linalg.solve_circulant)
def solve_circulant_forward(c_dot, b_dot, y, c, b):
    of_c = -linalg.solve_circulant(c, linalg.circulant(c_dot) @ y) if np.ndim(c_dot) else 0 * y
    return of_c, linalg.solve_circulant(c, b_dot) if np.ndim(b_dot) else 0 * y


def placed(g, places, x):
    """The cotangent of `x` for a matrix that has its elements, counted from 1, at `places`."""
    found = scatter(g, np.zeros(np.size(x) + 1, np.result_type(g)), places)
    return unbroadcast(np.reshape(found[1:], np.shape(x)), x)


def numbered(x, start=1):
    return np.reshape(np.arange(start, start + np.size(x)), np.shape(x))


@reverse(linalg.toeplitz, wrt=("c", "r"), at=[X, (X, generic(4)), complexes(3)])
def toeplitz(g, y, c, r=None):
    """Only the column's first element counts."""
    n = np.size(c)
    if r is None:
        below = np.arange(n)[:, None] >= np.arange(n)
        places = np.abs(np.arange(n)[:, None] - np.arange(n)) + 1
        return placed(np.where(below, g, np.conj(g)), places, c), None
    places = linalg.toeplitz(numbered(c), numbered(r, n + 1))
    found = placed(g, places, np.zeros(n + np.size(r), np.result_type(g)))
    return unbroadcast(np.reshape(found[:n], np.shape(c)), c), unbroadcast(
        np.reshape(found[n:], np.shape(r)), r
    )


@forward(linalg.toeplitz)
def toeplitz_forward(c_dot, r_dot, y, c, r=None):
    c_dot = c_dot if np.ndim(c_dot) else np.zeros_like(c)
    if r is None:
        return linalg.toeplitz(c_dot), None
    r_dot = r_dot if np.ndim(r_dot) else np.zeros_like(r)
    return linalg.toeplitz(c_dot, np.zeros_like(r)), linalg.toeplitz(np.zeros_like(c), r_dot)


@reverse(linalg.hankel, wrt=("c", "r"), at=[X, (X, generic(4))])
def hankel(g, y, c, r=None):
    """Only the column's last element counts."""
    n = np.size(c)
    if r is None:
        return placed(g, linalg.hankel(numbered(c)), c), None
    found = placed(
        g, linalg.hankel(numbered(c), numbered(r, n + 1)), np.zeros(n + np.size(r), np.result_type(g))
    )
    return unbroadcast(np.reshape(found[:n], np.shape(c)), c), unbroadcast(
        np.reshape(found[n:], np.shape(r)), r
    )


@forward(linalg.hankel)
def hankel_forward(c_dot, r_dot, y, c, r=None):
    c_dot = c_dot if np.ndim(c_dot) else np.zeros_like(c)
    if r is None:
        return linalg.hankel(c_dot), None
    r_dot = r_dot if np.ndim(r_dot) else np.zeros_like(r)
    return linalg.hankel(c_dot, np.zeros_like(r)), linalg.hankel(np.zeros_like(c), r_dot)


@reverse(linalg.circulant, linear=True, at=[X])
def circulant(g, y, c):
    return placed(g, linalg.circulant(numbered(c)), c)


@reverse(linalg.convolution_matrix, linear=True, at=[(X, 4), (X, 4, "same"), (X, 4, "valid")])
def convolution_matrix(g, y, a, n, mode="full"):
    return placed(g, linalg.convolution_matrix(numbered(a), n, mode), a)


@reverse(linalg.leslie, wrt=("f", "s"), linear=True, at=[(X, X[:2])])
def leslie(g, y, f, s):
    return unbroadcast(g[0], f), unbroadcast(np.diagonal(g, -1), s)


@reverse(linalg.companion, at=[generic(4)])
def companion(g, y, a):
    first = g[0] * -1 / a[0]
    return np.concatenate([np.reshape(-np.sum(first * a[1:]) / a[0], (1,)), first])


@forward(linalg.companion)
def companion_forward(a_dot, y, a):
    first = -a_dot[1:] / a[0] + a[1:] * a_dot[0] / a[0] ** 2
    return np.concatenate([first[None], np.zeros_like(y[1:])])


@reverse(linalg.fiedler_companion, at=[generic(5), generic(4)])
def fiedler_companion(g, y, a):
    """The matrix holds elements of -a / a[0], and ones."""
    scaled = placed(g, fiedler_places(a), a)
    return np.concatenate([np.reshape(np.sum(scaled * a) / a[0] ** 2, (1,)), -scaled[1:] / a[0]])


def fiedler_places(a):
    """Where the matrix holds which element of `a`, counted from 1; found by telling numbers apart."""
    marks = np.concatenate([[1.0], np.arange(2.0, np.size(a) + 1)])
    matrix = -linalg.fiedler_companion(marks)
    return np.where(matrix > 1.5, np.round(matrix), 0).astype(int)


@forward(linalg.fiedler_companion)
def fiedler_companion_forward(a_dot, y, a):
    moved = -a_dot / a[0] + a * a_dot[0] / a[0] ** 2
    return np.where(fiedler_places(a) > 0, np.concatenate([0 * moved[:1], moved])[fiedler_places(a)], 0)


@reverse(linalg.fiedler, at=[X])
def fiedler(g, y, a):
    """The matrix of abs(a_i - a_j)."""
    signs = np.sign(a[:, None] - a)
    return np.sum(g * signs, axis=1) - np.sum(g * signs, axis=0)


@forward(linalg.fiedler)
def fiedler_forward(a_dot, y, a):
    return np.sign(a[:, None] - a) * (a_dot[:, None] - a_dot)


@reverse(linalg.khatri_rao, wrt=("a", "b"), at=[(TALL, B)])
def khatri_rao(g, y, a, b):
    parts = np.reshape(g, (np.shape(a)[0], np.shape(b)[0], -1))
    return np.sum(parts * b, axis=1), np.sum(parts * np.expand_dims(a, 1), axis=0)


@forward(linalg.khatri_rao)
def khatri_rao_forward(a_dot, b_dot, y, a, b):
    return (
        linalg.khatri_rao(a_dot, b) if np.ndim(a_dot) else 0 * y,
        linalg.khatri_rao(a, b_dot) if np.ndim(b_dot) else 0 * y,
    )


@reverse(linalg.diagsvd, linear=True, at=[(X, 3, 4), (X, 4, 3), (X, 3, 3)])
def diagsvd(g, y, s, M, N):
    return unbroadcast(np.diagonal(g), s)


@reverse(linalg.block_diag, wrt="arrs", linear=True, at=[(A, R), (X, 1.5, A)])
def block_diag(g, y, *arrs):
    parts = []
    row = col = 0
    for a in arrs:
        m, n = np.shape(np.atleast_2d(a))
        parts.append(unbroadcast(np.reshape(g[row : row + m, col : col + n], np.shape(a)), a))
        row, col = row + m, col + n
    return parts


nondifferentiable(
    linalg.dft, linalg.hadamard, linalg.helmert, linalg.hilbert, linalg.invhilbert, linalg.pascal
)
nondifferentiable(linalg.invpascal, linalg.issymmetric, linalg.ishermitian, linalg.bandwidth)


def qr_applied(a, c, mode):
    """What `qr_multiply` returns, with the factor Q written out."""
    q, r = linalg.qr(a, mode="economic")
    return q @ c if mode == "left" else c @ q, r


@reverse(
    linalg.qr_multiply,
    wrt=("a", "c"),
    at=[(square(3, 3), generic(2, 3)), (generic(3, 2), generic(2, 2), "left"), (generic(3, 2), generic(3))],
)
def qr_multiply(g, y, a, c, mode="right"):
    return pulled(qr_applied, (a, c, mode), g, 2)


@forward(linalg.qr_multiply)
def qr_multiply_forward(a_dot, c_dot, y, a, c, mode="right"):
    return pushed(qr_applied, (a, c, mode), (a_dot, 0.0)), pushed(qr_applied, (a, c, mode), (0.0, c_dot))
