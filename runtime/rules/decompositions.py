"""Rules for matrix decompositions and eigenvalues, batched (NumPy manual, `numpy.linalg`, "Decompositions").

Where a decomposition is not unique (phases of complex vectors, bases of a multiple eigenvalue, the columns
that complete a basis) the derivative is right for results that do not depend on the choice. Where eigenvalues
or singular values coincide, their difference is not divided by: what only depends on the values stays finite
and right.

The text works with the conjugated cotangents that the sources use and conjugates on the way in and out.
Sources: M. Giles, "An extended collection of matrix derivative results" (2008); I. Murray, "Differentiation
of the Cholesky decomposition" (2016); Z. Wan and S. Zhang, "Automatic differentiation for complex valued SVD"
(2019); S. Walter, L. Lehmann and R. Lamour, "On evaluating higher-order derivatives of the QR decomposition
of tall matrices with full column rank" (2012); G. Golub and V. Pereyra, "The differentiation of
pseudo-inverses" (1973).
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, definite, generic, square
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import adjoint, gaps, hermitian, ratio, solve_lower, unbroadcast

S = definite(3, 3)
BATCH = definite(2, 3, 3)
H = S + 0.3j * (generic(3, 3) - generic(3, 3).T)
A = square(3, 3)
TALL = generic(4, 3)
WIDE = generic(2, 4)
C = complexes(3, 3) + 4 * np.eye(3)


# --- Cholesky -----------------------------------------------------------------------------------------------


@reverse(np.linalg.cholesky, at=[S, BATCH, H, case(S, upper=True), case(H, upper=True)])
def cholesky(g, y, a, /, *, upper=False):
    """The cotangent is symmetric: it pairs with symmetric changes of `a`."""
    if upper:
        return cholesky_adjoint(adjoint(np.conj(g)), adjoint(y))
    return cholesky_adjoint(np.conj(g), y)


@forward(np.linalg.cholesky)
def cholesky_forward(a_dot, y, a, /, *, upper=False):
    if upper:
        return adjoint(cholesky_tangent(a_dot, adjoint(y)))
    return cholesky_tangent(a_dot, y)


def unit(x):
    """The identity, in the shape and kind of the square matrices `x`."""
    return np.tril(np.triu(np.ones_like(x)))


def lower_half(x):
    """The lower triangle of `x`, with half of the diagonal."""
    return np.tril(x) * (1 - 0.5 * unit(x))


def cholesky_adjoint(g, y):
    middle = lower_half(adjoint(y) @ g)
    right = adjoint(solve_lower(y, adjoint(middle), True))
    return np.conj(hermitian(solve_lower(y, right, True)))


def cholesky_tangent(a_dot, y):
    left = solve_lower(y, hermitian(a_dot), False)
    return y @ lower_half(adjoint(solve_lower(y, adjoint(left), False)))


# --- eigenvalues --------------------------------------------------------------------------------------------


@reverse(np.linalg.eigh, at=[S, BATCH, case(S, UPLO="U")])
def eigh(g, y, a, UPLO="L"):
    """The cotangent is symmetric: it pairs with symmetric changes of `a`."""
    w, v = y
    inner = gaps(w) * (v.mT @ g[1]) + np.expand_dims(g[0], -2) * unit(v)
    return hermitian(np.conj(v) @ inner @ v.mT)


@forward(np.linalg.eigh)
def eigh_forward(a_dot, y, a, UPLO="L"):
    w, v = y
    inner = adjoint(v) @ hermitian(a_dot) @ v
    return np.real(np.diagonal(inner, 0, -2, -1)), v @ (gaps(w) * inner)


@reverse(np.linalg.eigvalsh, at=[S, BATCH, H])
def eigvalsh(g, y, a, UPLO="L"):
    """The cotangent is symmetric: it pairs with symmetric changes of `a`."""
    v = np.linalg.eigh(a, UPLO)[1]
    return (np.conj(v) * np.expand_dims(g, -2)) @ v.mT


@forward(np.linalg.eigvalsh)
def eigvalsh_forward(a_dot, y, a, UPLO="L"):
    v = np.linalg.eigh(a, UPLO)[1]
    return np.real(np.sum(np.conj(v) * (hermitian(a_dot) @ v), axis=-2))


@reverse(np.linalg.eig, at=[definite(3, 3) + 0.2 * generic(3, 3)])
def eig(g, y, a):
    """For complex eigenvectors: right for results that do not depend on their phases."""
    w, v = y
    gw, gv = np.conj(g[0]), np.conj(g[1])
    along = adjoint(v) @ gv
    radial = np.expand_dims(np.real(np.diagonal(along, 0, -2, -1)), -2)
    inner = np.conj(gaps(w)) * (along - adjoint(v) @ v * radial)
    inner = inner + np.expand_dims(gw, -2) * unit(np.real(v))
    return unbroadcast(np.conj(np.linalg.solve(adjoint(v), inner @ adjoint(v))), a)


@forward(np.linalg.eig)
def eig_forward(a_dot, y, a):
    w, v = y
    inner = np.linalg.solve(v, a_dot @ v)
    v_dot = v @ (gaps(w) * inner)
    v_dot = v_dot - v * np.real(np.sum(np.conj(v) * v_dot, axis=-2, keepdims=True))
    return unbroadcast(np.diagonal(inner, 0, -2, -1), w), unbroadcast(v_dot, v)


@reverse(np.linalg.eigvals, at=[A, C, generic(2, 2, 2)])
def eigvals(g, y, a):
    v = np.linalg.eig(a)[1]
    return unbroadcast((np.linalg.inv(v).mT * np.expand_dims(g, -2)) @ v.mT, a)


@forward(np.linalg.eigvals)
def eigvals_forward(a_dot, y, a):
    v = np.linalg.eig(a)[1]
    return unbroadcast(np.sum(np.linalg.inv(v).mT * (a_dot @ v), axis=-2), y)


# --- singular values ----------------------------------------------------------------------------------------


@reverse(
    np.linalg.svd,
    at=[
        *[case(A, full_matrices=False), case(TALL, full_matrices=False), case(WIDE, full_matrices=False), A],
        *[case(m, compute_uv=False) for m in (A, TALL, WIDE, C, generic(2, 3, 2))],
        case(generic(2, 4, 3), False),
    ],
)
def svd(g, y, a, full_matrices=True, compute_uv=True):
    if not compute_uv:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return (np.conj(u) * np.expand_dims(g, -2)) @ np.conj(vh)
    return svd_adjoint(g, y)


def svd_adjoint(g, y):
    u, s, vh = y
    k = s.shape[-1]
    gu, gs, gv = np.conj(g[0]), g[1], adjoint(np.conj(g[2]))
    v = adjoint(vh)
    s_row, s_column = np.expand_dims(s, -2), np.expand_dims(s, -1)
    inverse = ratio(1, s_row)
    u1, v1, gu1, gv1 = u[..., :k], v[..., :k], gu[..., :k], gv[..., :k]
    along_u, along_v = adjoint(u1) @ gu1, adjoint(v1) @ gv1
    from_u, from_v = gaps(s * s) * along_u, gaps(s * s) * along_v
    inner = (from_u + adjoint(from_u)) * s_row + s_column * (from_v + adjoint(from_v))
    inner = inner + unit(np.real(inner)) * np.expand_dims(gs, -2)
    if np.iscomplexobj(u):
        inner = inner + 0.5j * unit(np.real(along_u)) * np.imag(along_u - along_v) * inverse
    left = u1 @ inner + (gu1 - u1 @ along_u) * inverse
    right = (gv1 - v1 @ along_v) * inverse
    if u.shape[-1] > k:
        left = left - u[..., k:] @ adjoint(gu[..., k:]) @ u1 * inverse
    if v.shape[-1] > k:
        right = right - v[..., k:] @ adjoint(gv[..., k:]) @ v1 * inverse
    return np.conj(left @ adjoint(v1) + u1 @ adjoint(right))


@forward(np.linalg.svd)
def svd_forward(a_dot, y, a, full_matrices=True, compute_uv=True):
    if not compute_uv:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return np.real(np.sum(np.conj(u) * (a_dot @ adjoint(vh)), axis=-2))
    return svd_tangent(a_dot, y)


def svd_tangent(a_dot, y):
    u, s, vh = y
    k = s.shape[-1]
    v = adjoint(vh)
    s_row, s_column = np.expand_dims(s, -2), np.expand_dims(s, -1)
    inverse = ratio(1, s_row)
    u1, v1 = u[..., :k], v[..., :k]
    inner = adjoint(u1) @ a_dot @ v1
    turn_u = gaps(s * s) * (inner * s_row + s_column * adjoint(inner))
    turn_v = gaps(s * s) * (s_column * inner + adjoint(inner) * s_row)
    if np.iscomplexobj(u):
        phase = 0.5j * unit(np.real(inner)) * np.imag(inner) * inverse
        turn_u, turn_v = turn_u + phase, turn_v - phase
    out_u = (a_dot @ v1 - u1 @ inner) * inverse
    out_v = (adjoint(a_dot) @ u1 - v1 @ adjoint(inner)) * inverse
    u_dot, v_dot = u1 @ turn_u + out_u, v1 @ turn_v + out_v
    if u.shape[-1] > k:
        u_dot = np.concatenate([u_dot, -u1 @ adjoint(adjoint(u[..., k:]) @ out_u)], axis=-1)
    if v.shape[-1] > k:
        v_dot = np.concatenate([v_dot, -v1 @ adjoint(adjoint(v[..., k:]) @ out_v)], axis=-1)
    return u_dot, np.real(np.diagonal(inner, 0, -2, -1)), adjoint(v_dot)


@reverse(np.linalg.svdvals, at=[A, TALL, WIDE, C])
def svdvals(g, y, x):
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return (np.conj(u) * np.expand_dims(g, -2)) @ np.conj(vh)


@forward(np.linalg.svdvals)
def svdvals_forward(x_dot, y, x):
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return np.real(np.sum(np.conj(u) * (x_dot @ adjoint(vh)), axis=-2))


# --- QR -----------------------------------------------------------------------------------------------------


@reverse(
    np.linalg.qr,
    at=[
        A,
        TALL,
        WIDE,
        generic(2, 4, 3),
        C,
        complexes(4, 2),
        complexes(2, 3),
        *[(m, "r") for m in (A, TALL, WIDE)],
    ],
)
def qr(g, y, a, mode="reduced"):
    if mode == "r":
        q, r = np.linalg.qr(a)
        return qr_adjoint(np.zeros_like(q), np.conj(g), q, r, a)
    return qr_adjoint(np.conj(g[0]), np.conj(g[1]), y[0], y[1], a)


def qr_adjoint(gq, gr, q, r, a):
    m, n = a.shape[-2:]
    k = min(m, n)
    if n > m:  # a = [x, w] = q [r, q^H w]
        w, gw = a[..., m:], gr[..., m:]
        x = qr_adjoint(gq + w @ adjoint(gw), gr[..., :m], q, r[..., :m], a[..., :m])
        return np.concatenate([x, np.conj(q @ gw)], axis=-1)
    q1, gq1, r1, gr1 = q[..., :k], gq[..., :k], r[..., :k, :], gr[..., :k, :]
    square = r1 @ adjoint(gr1) - adjoint(gq1) @ q1
    strict = np.tril(square, -1)
    copied = strict + adjoint(strict) + np.real(square) * unit(square)
    left = gq1 + q1 @ copied
    if q.shape[-1] > k:
        left = left - q[..., k:] @ adjoint(gq[..., k:]) @ q1
    return np.conj(adjoint(np.linalg.solve(r1, adjoint(left))))


@forward(np.linalg.qr)
def qr_forward(a_dot, y, a, mode="reduced"):
    if mode == "r":
        return qr_tangent(a_dot, *np.linalg.qr(a), a)[1]
    return qr_tangent(a_dot, y[0], y[1], a)


def qr_tangent(a_dot, q, r, a):
    m, n = a.shape[-2:]
    k = min(m, n)
    if n > m:
        q_dot, r_dot = qr_tangent(a_dot[..., :m], q, r[..., :m], a[..., :m])
        return q_dot, np.concatenate(
            [r_dot, adjoint(q) @ a_dot[..., m:] + adjoint(q_dot) @ a[..., m:]], axis=-1
        )
    q1, r1 = q[..., :k], r[..., :k, :]
    scaled = np.linalg.solve(r1.mT, a_dot.mT).mT
    inner = adjoint(q1) @ scaled
    strict = np.tril(inner, -1)
    turn = strict - adjoint(strict)
    if np.iscomplexobj(inner):
        turn = turn + 1j * np.imag(inner) * unit(np.real(inner))
    out = scaled - q1 @ inner
    q_dot, r_dot = q1 @ turn + out, np.triu((inner - turn) @ r1)
    if q.shape[-1] > k:
        q_dot = np.concatenate([q_dot, -q1 @ adjoint(adjoint(q[..., k:]) @ out)], axis=-1)
        r_dot = np.concatenate([r_dot, np.zeros_like(r[..., k:, :])], axis=-2)
    return q_dot, r_dot


# --- pseudo-inverse and least squares -----------------------------------------------------------------------


@reverse(np.linalg.pinv, at=[TALL, WIDE, A, C, complexes(2, 3), generic(2, 3, 2)])
def pinv(g, y, a, rcond=None):
    """Right among matrices of the same rank."""
    return np.conj(pinv_adjoint(np.conj(g), y, a))


def pinv_adjoint(g, y, a):
    from_right = adjoint(g) @ y @ adjoint(y)
    from_left = adjoint(y) @ y @ adjoint(g)
    return -adjoint(y) @ g @ adjoint(y) + from_right - a @ (y @ from_right) + from_left - (from_left @ y) @ a


@forward(np.linalg.pinv)
def pinv_forward(a_dot, y, a, rcond=None):
    h = adjoint(a_dot)
    first, second = y @ adjoint(y) @ h, h @ adjoint(y) @ y
    return -y @ a_dot @ y + first - (first @ a) @ y + second - y @ (a @ second)


B1, B2 = generic(4, seed=1), generic(4, 2, seed=1)


@reverse(
    np.linalg.lstsq,
    wrt=("a", "b"),
    at=[(TALL, B1), (TALL, B2), (WIDE, generic(2)), (complexes(4, 2), complexes(4))],
)
def lstsq(g, y, a, b, rcond=None):
    """The cotangents of solution, residuals and singular values; the rank is constant."""
    x = y[0] if b.ndim > 1 else y[0][:, None]
    gx = np.conj(g[0] if b.ndim > 1 else g[0][:, None])
    p = np.linalg.pinv(a)
    r = (b if b.ndim > 1 else b[:, None]) - a @ x
    ga = r @ adjoint(p @ (adjoint(p) @ gx)) + (adjoint(p) @ x) @ adjoint(gx - p @ (a @ gx))
    ga = ga - adjoint(p) @ gx @ adjoint(x)
    gb = adjoint(p) @ gx
    if np.size(y[1]):
        ga = ga - 2 * r * g[1] @ adjoint(x)
        gb = gb + 2 * r * g[1]
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return np.conj(ga + u * g[3] @ vh), np.conj(np.reshape(gb, b.shape))


@forward(np.linalg.lstsq)
def lstsq_forward(a_dot, b_dot, y, a, b, rcond=None):
    x = y[0] if b.ndim > 1 else y[0][:, None]
    p = np.linalg.pinv(a)
    r = (b if b.ndim > 1 else b[:, None]) - a @ x
    h = adjoint(a_dot)
    outside = h @ (adjoint(p) @ x)
    from_a = -p @ (a_dot @ x) + p @ (adjoint(p) @ (h @ r)) + outside - p @ (a @ outside)
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    s_dot = np.real(np.sum(np.conj(u) * (a_dot @ adjoint(vh)), axis=0))
    column = b_dot if b.ndim > 1 else b_dot[:, None]
    of_a = of_b = y[1]
    if np.size(y[1]):
        of_a = np.reshape(-2 * np.real(np.sum(np.conj(r) * (a_dot @ x), axis=0)), np.shape(y[1]))
        of_b = np.reshape(2 * np.real(np.sum(np.conj(r) * column, axis=0)), np.shape(y[1]))
    return (np.reshape(from_a, y[0].shape), of_a, 0, s_dot), (
        np.reshape(p @ column, y[0].shape),
        of_b,
        0,
        0 * s_dot,
    )
