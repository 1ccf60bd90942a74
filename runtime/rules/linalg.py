"""Rules for matrix equations, decompositions and norms, batched (NumPy manual, `numpy.linalg`).

Formulas: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
functions" (2010); I. Murray, "Differentiation of the Cholesky decomposition" (2016). Cotangents of complex
matrices are not conjugated: with respect to A they pair with dA through tr(G^T dA).
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic, square
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    cofactors,
    expand,
    inverse_transposed,
    norm_slope,
    ratio,
    unbroadcast,
    vector_norm_slope,
)

A = square(3, 3)
B = square(2, 3, 3)
C = complexes(3, 3) + 4 * np.eye(3)
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@reverse(np.linalg.inv, at=[A, B, C, square(1, 1)])
def inv(g, y, a):
    return -y.mT @ g @ y.mT


@forward(np.linalg.inv)
def inv_forward(a_dot, y, a):
    return -y @ a_dot @ y


@reverse(
    np.linalg.solve,
    wrt=("a", "b"),
    at=[
        (A, generic(3)),
        (A, generic(3, 2)),
        (B, generic(2, 3, 2)),
        (B, generic(3)),
        (A, generic(2, 3, 2)),
        (C, complexes(3)),
    ],
)
def solve(g, y, a, b):
    """With b_bar the cotangent of b, that of a is -b_bar y^T."""
    if a.ndim == 2 and b.ndim == 1:
        return -np.outer(np.linalg.solve(a.T, g), y), np.linalg.solve(a.T, g)
    if b.ndim == 1:
        return (
            unbroadcast(-np.linalg.solve(a.mT, g[..., None]) * y[..., None, :], a),
            unbroadcast(np.linalg.solve(a.mT, g[..., None])[..., 0], b),
        )
    return unbroadcast(-np.linalg.solve(a.mT, g) @ y.mT, a), unbroadcast(np.linalg.solve(a.mT, g), b)


@forward(np.linalg.solve)
def solve_forward(a_dot, b_dot, y, a, b):
    if b.ndim == 1:
        return -np.linalg.solve(a, (a_dot @ y[..., None]))[..., 0], np.linalg.solve(a, b_dot)
    return -np.linalg.solve(a, a_dot @ y), np.linalg.solve(a, b_dot)


@reverse(np.linalg.det, at=[A, B, C, SINGULAR, np.zeros((2, 2)), generic(1, 1), generic(4, 4)])
def det(g, y, a):
    """The matrix of cofactors, which exists for singular matrices too."""
    if a.ndim == 2:
        return g * cofactors(a)
    return np.expand_dims(g, (-2, -1)) * cofactors(a)


@forward(np.linalg.det)
def det_forward(a_dot, y, a):
    return np.sum(a_dot * cofactors(a), axis=(-2, -1))


@reverse(np.linalg.slogdet, at=[A, B, -A, C])
def slogdet(g, y, a):
    """The sign is constant for real matrices."""
    if a.ndim == 2 and np.isrealobj(a):
        return g[1] * inverse_transposed(a)
    if np.isrealobj(a):
        return np.expand_dims(g[1], (-2, -1)) * inverse_transposed(a)
    return unbroadcast(
        np.expand_dims(np.real(g[1]) + 1j * np.imag(g[0] * y[0]), (-2, -1)) * inverse_transposed(a), a
    )


@forward(np.linalg.slogdet)
def slogdet_forward(a_dot, y, a):
    trace = np.sum(inverse_transposed(a) * a_dot, axis=(-2, -1))
    if np.isrealobj(a):
        return 0 * trace, trace
    return 1j * np.imag(trace) * y[0], np.real(trace)


V = generic(4)
M = generic(2, 3)
T = generic(2, 3, 4)


@reverse(
    np.linalg.norm,
    at=[
        V,
        M,
        T,
        complexes(3),
        *[case(M, axis=1), case(M, axis=-1, keepdims=True), case(T, axis=(0, 2)), case(M, keepdims=True)],
        *[(V, 1), (V, 3), (V, np.inf), (V, -np.inf), (V, 2), (V, 0.5), (V, 0), (complexes(3), 3)],
        *[
            case(M, 1, axis=0),
            case(M, np.inf, axis=1, keepdims=True),
            case(M, 3, axis=1),
            case(complexes(2, 3), axis=1),
        ],
        *[
            (M, "fro"),
            (M, "nuc"),
            (M, 1),
            (M, -1),
            (M, np.inf),
            (M, -np.inf),
            (M, 2),
            (M, -2),
            (complexes(2, 3), "nuc"),
        ],
        *[
            case(T, 2, axis=(0, 2)),
            case(T, "nuc", axis=(1, 2), keepdims=True),
            case(T, 1, axis=(-1, 0)),
            (complexes(2, 3), 2),
        ],
    ],
)
def norm(g, y, x, ord=None, axis=None, keepdims=False):
    """At 0 the derivative is taken as 0; where elements tie for ord=inf they share evenly."""
    if ord is None and axis is None and np.isrealobj(x):
        return x * ratio(g, y)
    if ord is None and np.isrealobj(x):
        return x * expand(ratio(g, y), x, axis, keepdims)
    return expand(np.real(g), x, axis, keepdims) * norm_slope(y, x, ord, axis, keepdims)


@forward(np.linalg.norm)
def norm_forward(x_dot, y, x, ord=None, axis=None, keepdims=False):
    return np.sum(np.real(x_dot * norm_slope(y, x, ord, axis, keepdims)), axis=axis, keepdims=keepdims)


@reverse(
    np.linalg.vector_norm,
    at=[V, M, case(M, axis=1), case(T, axis=(0, 2), keepdims=True), case(V, ord=3), case(V, ord=1)],
)
def vector_norm(g, y, x, /, *, axis=None, keepdims=False, ord=2):
    """At 0 the derivative is taken as 0."""
    return expand(np.real(g), x, axis, keepdims) * vector_norm_slope(y, x, ord, axis, keepdims)


@forward(np.linalg.vector_norm)
def vector_norm_forward(x_dot, y, x, /, *, axis=None, keepdims=False, ord=2):
    return np.sum(np.real(x_dot * vector_norm_slope(y, x, ord, axis, keepdims)), axis=axis, keepdims=keepdims)


@reverse(np.linalg.matrix_norm, at=[M, T, case(T, ord="nuc"), case(M, ord=2, keepdims=True), case(T, ord=1)])
def matrix_norm(g, y, x, /, *, keepdims=False, ord="fro"):
    """At 0 the derivative is taken as 0."""
    return expand(np.real(g), x, (-2, -1), keepdims) * norm_slope(y, x, ord, (-2, -1), keepdims)


@forward(np.linalg.matrix_norm)
def matrix_norm_forward(x_dot, y, x, /, *, keepdims=False, ord="fro"):
    slope = norm_slope(y, x, ord, (-2, -1), keepdims)
    return np.sum(np.real(x_dot * slope), axis=(-2, -1), keepdims=keepdims)


@reverse(
    np.linalg.cond, at=[A, B, generic(4, 3), (A, 1), (A, "fro"), (A, np.inf), (A, -2), (B, 2), (B, "nuc")]
)
def cond(g, y, x, p=None):
    return expand(g, x, (-2, -1)) * cond_slope(x, p)


@forward(np.linalg.cond)
def cond_forward(x_dot, y, x, p=None):
    return np.real(np.sum(x_dot * cond_slope(x, p), axis=(-2, -1)))


def cond_slope(x, p):
    """cond is norm(x) norm(inv(x)); in the 2-norm the ratio of the extreme singular values."""
    if p is None or p == 2 or p == -2:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        top, bottom = s[..., :1], s[..., -1:]
        first, last = 1 / bottom, -top / bottom**2
        if p == -2:
            first, last = -bottom / top**2, 1 / top
        weights = np.concatenate([first, 0 * s[..., 1:-1], last], axis=-1)
        return np.conj(u * np.expand_dims(weights, -2) @ vh)
    inverse = np.linalg.inv(x)
    norm_x = np.linalg.norm(x, p, axis=(-2, -1), keepdims=True)
    norm_inverse = np.linalg.norm(inverse, p, axis=(-2, -1), keepdims=True)
    slope = norm_slope(norm_inverse, inverse, p, (-2, -1), True)
    return norm_inverse * norm_slope(norm_x, x, p, (-2, -1), True) - norm_x * (
        inverse.mT @ slope @ inverse.mT
    )


# --- products and equations ---------------------------------------------------------------------------------


@reverse(
    np.linalg.matrix_power, alias="maybe", at=[(A, n) for n in (0, 1, 2, 3, 5, -1, -2)] + [(B, 3), (C, -3)]
)
def matrix_power(g, y, a, n):
    """The sum over the factors: (a^T)^i g (a^T)^(n-1-i)."""
    if n == 2:
        return g @ a.mT + a.mT @ g
    if n < 0:
        inverse = np.linalg.inv(a)
        return -inverse.mT @ power_adjoint(g, inverse, -n) @ inverse.mT
    return power_adjoint(g, a, n)


def power_adjoint(g, a, n):
    """By halves: with c = a^(n // 2), a^n = c c, or c c a."""
    if n == 0:
        return np.zeros_like(a)
    if n == 1:
        return g
    half = np.linalg.matrix_power(a, n // 2)
    if n % 2 == 0:
        return power_adjoint(g @ half.mT + half.mT @ g, a, n // 2)
    inner = g @ a.mT
    return power_adjoint(inner @ half.mT + half.mT @ inner, a, n // 2) + (half @ half).mT @ g


@forward(np.linalg.matrix_power)
def matrix_power_forward(a_dot, y, a, n):
    if n < 0:
        inverse = np.linalg.inv(a)
        return power_tangent(-inverse @ a_dot @ inverse, inverse, -n)
    return power_tangent(a_dot, a, n)


def power_tangent(a_dot, a, n):
    if n == 0:
        return np.zeros_like(a)
    if n == 1:
        return a_dot
    half = np.linalg.matrix_power(a, n // 2)
    half_dot = power_tangent(a_dot, a, n // 2)
    whole_dot = half_dot @ half + half @ half_dot
    return whole_dot if n % 2 == 0 else whole_dot @ a + half @ half @ a_dot


N34, N42 = generic(3, 4, seed=1), generic(4, 2, seed=2)


@reverse(
    np.linalg.multi_dot,
    at=[
        ((M, N34),),
        ((M, N34, N42),),
        ((generic(2), M, N34),),
        ((M, N34, N42, generic(2)),),
        ((generic(3), N34, V),),
    ],
)
def multi_dot(g, y, arrays):
    parts = [multi_dot_part(g, arrays, i) for i in range(len(arrays))]
    return parts


def multi_dot_part(g, arrays, i):
    row = g if np.ndim(arrays[0]) > 1 else np.expand_dims(g, 0)
    whole = row if np.ndim(arrays[-1]) > 1 else np.expand_dims(row, -1)
    for left in arrays[:i]:
        whole = np.atleast_2d(left).T @ whole
    for right in arrays[:i:-1]:
        whole = whole @ (right.T if np.ndim(right) > 1 else np.atleast_2d(right))
    return unbroadcast(np.reshape(whole, np.shape(arrays[i])), arrays[i])


@forward(np.linalg.multi_dot)
def multi_dot_forward(arrays_dot, y, arrays):
    terms = [np.linalg.multi_dot([*arrays[:i], arrays_dot[i], *arrays[i + 1 :]]) for i in range(len(arrays))]
    return sum(terms)


@reverse(
    np.linalg.tensorinv,
    at=[(generic(2, 3, 6) + np.eye(6).reshape(2, 3, 6) * 3, 2), (square(6, 6).reshape(6, 2, 3), 1)],
)
def tensorinv(g, y, a, ind=2):
    flat = np.reshape(y, (-1, np.prod(a.shape[:ind])))
    return np.reshape(-flat.T @ np.reshape(g, flat.shape) @ flat.T, a.shape)


@forward(np.linalg.tensorinv)
def tensorinv_forward(a_dot, y, a, ind=2):
    flat = np.reshape(y, (-1, np.prod(a.shape[:ind])))
    return np.reshape(-flat @ np.reshape(a_dot, flat.shape) @ flat, y.shape)


@reverse(
    np.linalg.tensorsolve,
    wrt=("a", "b"),
    at=[(square(6, 6).reshape(6, 2, 3), generic(6)), (square(6, 6).reshape(2, 3, 6), M)],
)
def tensorsolve(g, y, a, b):
    inner = np.linalg.solve(np.reshape(a, (np.size(b), -1)).T, np.ravel(g))
    return np.reshape(-np.outer(inner, y), a.shape), np.reshape(inner, b.shape)


@forward(np.linalg.tensorsolve)
def tensorsolve_forward(a_dot, b_dot, y, a, b):
    matrix = np.reshape(a, (np.size(b), -1))
    change = np.reshape(a_dot, matrix.shape) @ np.ravel(y)
    return (
        np.reshape(-np.linalg.solve(matrix, change), y.shape),
        np.reshape(np.linalg.solve(matrix, np.ravel(b_dot)), y.shape),
    )


nondifferentiable(np.linalg.matrix_rank)
