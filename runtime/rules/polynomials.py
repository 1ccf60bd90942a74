"""Rules for polynomials as arrays of coefficients, highest power first (NumPy manual, "Poly1d")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.arrays import beside
from srcgrad.runtime.rules.callbacks import part_of, pulled, pushed
from srcgrad.runtime.rules.decompositions import eigvals, eigvals_forward
from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import unbroadcast

P = generic(4)
V = generic(3, seed=1)
M = generic(2, 3)
X = np.array([-1.2, -0.5, 0.1, 0.7, 1.3, 1.9])
Y = generic(6, seed=2)


# --- the functions, highest power first ---------------------------------------------------------------------


@reverse(np.polyval, wrt=("p", "x"), at=[(P, 0.7), (P, V), (P, M), (V[:1], V)])
def polyval(g, y, p, x):
    return unbroadcast(powers_adjoint(g, x, np.size(p)), p), unbroadcast(g * np.polyval(np.polyder(p), x), x)


def powers_adjoint(g, x, n):
    """The cotangents of the coefficients, highest power first: sums of g x^k."""
    return np.vander(np.ravel(x), n).T @ np.ravel(g)


@forward(np.polyval)
def polyval_forward(p_dot, x_dot, y, p, x):
    of_p = np.polyval(p_dot, x) if np.ndim(p_dot) else 0 * y
    return unbroadcast(of_p, y), unbroadcast(x_dot * np.polyval(np.polyder(p), x), y)


@reverse(np.polyder, linear=True, alias="maybe", at=[P, (P, 2), (P, 0), (V[:1], 1)])
def polyder(g, y, p, m=1):
    for step in range(m):
        rank = np.arange(np.size(p) - m + step, 0, -1)
        g = (
            np.concatenate([g * rank, np.zeros(1, g.dtype)])
            if rank.size == np.size(g)
            else np.zeros(1, g.dtype)
        )
    return unbroadcast(np.concatenate([np.reshape(g, -1), np.zeros(np.size(p))])[: np.size(p)], p)


@reverse(np.polyint, linear=True, alias="maybe", at=[P, (P, 2), (P, 0)])
def polyint(g, y, p, m=1):
    for step in range(m):
        g = g[:-1] / np.arange(np.size(p) + m - 1 - step, 0, -1)
    return unbroadcast(g, p)


@reverse(np.polyadd, wrt=("a1", "a2"), linear=True, at=[(P, V), (V, P), (P, P)])
def polyadd(g, y, a1, a2):
    return g[np.size(g) - np.size(a1) :], g[np.size(g) - np.size(a2) :]


@reverse(np.polysub, wrt=("a1", "a2"), linear=True, at=[(P, V), (V, P)])
def polysub(g, y, a1, a2):
    return g[np.size(g) - np.size(a1) :], -g[np.size(g) - np.size(a2) :]


@reverse(np.polymul, wrt=("a1", "a2"), at=[(P, V), (V, P)])
def polymul(g, y, a1, a2):
    return np.convolve(g, np.flip(a2), "valid"), np.convolve(g, np.flip(a1), "valid")


@forward(np.polymul)
def polymul_forward(a1_dot, a2_dot, y, a1, a2):
    return np.convolve(a1_dot, a2), np.convolve(a1, a2_dot)


@reverse(np.polydiv, wrt=("u", "v"), at=[(generic(7), V), (P, V)])
def polydiv(g, y, u, v):
    """From u = v q + r: the quotient solves a triangular system of the leading coefficients."""
    q, n = y[0], np.size(y[0])
    gr = np.concatenate([np.zeros(np.size(u) - np.size(g[1])), g[1]])
    inner = np.linalg.solve(shifts(v, n).T, g[0] - np.convolve(gr, np.flip(v), "valid"))
    head = np.concatenate([inner, np.zeros(np.size(u) - n)])
    return unbroadcast(gr + head, u), unbroadcast(-np.convolve(gr + head, np.flip(q), "valid"), v)


@forward(np.polydiv)
def polydiv_forward(u_dot, v_dot, y, u, v):
    def tangents(change):
        q_dot = np.linalg.solve(shifts(v, n), change[:n])
        r_dot = (change - np.convolve(q_dot, v))[np.size(u) - np.size(y[1]) :]
        return unbroadcast(q_dot, y[0]), unbroadcast(r_dot, y[1])

    n = np.size(y[0])
    of_u = tangents(u_dot) if np.ndim(u_dot) else (0 * y[0], 0 * y[1])
    return of_u, tangents(-np.convolve(y[0], v_dot)) if np.ndim(v_dot) else (0 * y[0], 0 * y[1])


def shifts(v, n):
    """The lower triangular n x n matrix that multiplies the leading coefficients by v."""
    padded = np.concatenate([np.zeros(n - 1), v, np.zeros(n)])
    return padded[np.arange(n)[:, None] - np.arange(n) + n - 1]


@reverse(np.poly, at=[P, generic(3, 3)])
def poly(g, y, seq_of_zeros):
    if np.ndim(seq_of_zeros) == 2:
        zeros = np.linalg.eigvals(seq_of_zeros)
        return eigvals(zeros_adjoint(g, zeros), zeros, seq_of_zeros)
    return unbroadcast(zeros_adjoint(g, seq_of_zeros), seq_of_zeros)


def zeros_adjoint(g, zeros):
    return np.stack([-np.sum(g[1:] * np.poly(np.delete(zeros, i))) for i in range(len(zeros))])


@forward(np.poly)
def poly_forward(seq_of_zeros_dot, y, seq_of_zeros):
    zeros, moved = seq_of_zeros, seq_of_zeros_dot
    if np.ndim(zeros) == 2:
        zeros = np.linalg.eigvals(seq_of_zeros)
        moved = eigvals_forward(seq_of_zeros_dot, zeros, seq_of_zeros)
    slope = sum(-moved[i] * np.poly(np.delete(zeros, i)) for i in range(len(zeros)))
    return unbroadcast(np.concatenate([np.zeros(1), slope]), y)


@reverse(np.roots, at=[P, [1.0, -3.0, 2.5, 0.7, 0.1], [1.0, -3.0, 2.0, 0.0]])
def roots(g, y, p):
    """From p(root) = 0: a change of p moves the root by -dp(root) / p'(root)."""
    scaled = -g / np.polyval(np.polyder(p), y)
    return unbroadcast(np.vander(y, np.size(p)).T @ scaled, p)


@forward(np.roots)
def roots_forward(p_dot, y, p):
    return unbroadcast(-np.polyval(p_dot, y) / np.polyval(np.polyder(p), y), y)


@reverse(
    np.polyfit,
    wrt=("x", "y", "w"),
    at=[
        (X, Y, 2),
        (X, Y, 0),
        (X, np.stack([Y, Y * Y], 1), 1),
        case(X, Y, 2, w=positive(6)),
        (X[:3], Y[:3], 2),
    ],
)
def polyfit(g, z, x, y, deg, *, w=None):
    matrix = np.vander(x, deg + 1)
    v_bar, y_bar, w_bar = fit_adjoint(g, z, matrix, y, w)
    return vander(v_bar, matrix, x, deg + 1), y_bar, w_bar


@forward(np.polyfit)
def polyfit_forward(x_dot, y_dot, w_dot, z, x, y, deg, *, w=None):
    matrix = np.vander(x, deg + 1)
    moved = vander_forward(x_dot, matrix, x, deg + 1) if np.ndim(x_dot) else 0 * matrix
    return fit_tangents(moved, y_dot, w_dot, z, matrix, y, w)


def fit_adjoint(g, z, matrix, y, w):
    """The cotangents of matrix, values and weights for the weighted least squares solution z."""
    column = (lambda v: v) if np.ndim(y) > 1 else (lambda v: v[:, None])
    weights = np.ones(len(y), matrix.dtype) if w is None else w
    a = matrix * weights[:, None]
    p = np.linalg.pinv(a)
    r = column(y) * weights[:, None] - a @ column(z)
    b_bar = p.T @ column(g)
    a_bar = r @ (p @ b_bar).T - b_bar @ column(z).T
    y_bar = np.reshape(b_bar * weights[:, None], np.shape(y))
    w_bar = np.sum(a_bar * matrix, axis=1) + np.sum(b_bar * column(y), axis=1)
    return a_bar * weights[:, None], unbroadcast(y_bar, y), None if w is None else unbroadcast(w_bar, w)


def fit_tangents(matrix_dot, y_dot, w_dot, z, matrix, y, w):
    column = (lambda v: v) if np.ndim(y) > 1 else (lambda v: v[:, None])
    weights = np.ones(len(y), matrix.dtype) if w is None else w
    a = matrix * weights[:, None]
    p = np.linalg.pinv(a)
    r = column(y) * weights[:, None] - a @ column(z)

    def moved(a_dot, b_dot):
        change = p @ (b_dot - a_dot @ column(z)) + p @ (p.T @ (a_dot.T @ r))
        return unbroadcast(np.reshape(change, np.shape(z)), z)

    of_y = column(y_dot) * weights[:, None] if np.ndim(y_dot) else 0 * r
    if w is None or not np.ndim(w_dot):
        of_w = None
    else:
        of_w = moved(matrix * w_dot[:, None], column(y) * w_dot[:, None])
    return moved(matrix_dot * weights[:, None], 0 * r), moved(0 * a, of_y), of_w


@reverse(np.vander, at=[V, (V, 5), case(V, 4, increasing=True), (V, 1)])
def vander(g, y, x, N=None, increasing=False):
    if increasing:
        g, y = np.flip(g, -1), np.flip(y, -1)
    powers = beside(np.arange(np.shape(y)[1] - 1, 0, -1), g)
    return unbroadcast(np.sum(g[:, :-1] * powers * y[:, 1:], axis=1), x)


@forward(np.vander)
def vander_forward(x_dot, y, x, N=None, increasing=False):
    if increasing:
        return np.flip(vander_forward(x_dot, np.flip(y, -1), x), -1)
    return np.concatenate(
        [x_dot[:, None] * np.arange(np.shape(y)[1] - 1, 0, -1) * y[:, 1:], np.zeros_like(y[:, :1])], axis=1
    )[:, : np.shape(y)[1]]


# --- polynomials as objects ---------------------------------------------------------------------------------


def coefficients(c_or_r, from_roots, start):
    """The coefficients that a `poly1d` keeps, without leading zeros."""
    return (np.poly(c_or_r) if from_roots else np.atleast_1d(c_or_r))[start:]


def coefficient_args(made, c_or_r, r):
    count = np.size(c_or_r) + 1 if r else np.size(c_or_r)
    return c_or_r, bool(r), count - len(made.coeffs)


@reverse(np.poly1d, at=[])
def poly1d(g, made, c_or_r, r=False, variable=None):
    """Leading zeros are left out: they are taken to stay 0."""
    return pulled(coefficients, coefficient_args(made, c_or_r, r), part_of(g, "coeffs"), 1)[0]


@forward(np.poly1d)
def poly1d_forward(c_or_r_dot, made, c_or_r, r=False, variable=None):
    return {"coeffs": pushed(coefficients, coefficient_args(made, c_or_r, r), (c_or_r_dot,))}


def coeffs_of(polynomial):
    return polynomial.coeffs


@reverse(coeffs_of, at=[])
def coeffs_bar(g, y, polynomial):
    return {"coeffs": g}


@forward(coeffs_of)
def coeffs_dot(polynomial_dot, y, polynomial):
    return part_of(polynomial_dot, "coeffs") + np.zeros(y.shape)


@reverse(np.poly1d.__call__, wrt=("self", "val"), at=[])
def poly1d_value(g, y, self, val):
    bars = polyval(g, y, coeffs_of(self), val)
    return {"coeffs": bars[0]}, bars[1]


@forward(np.poly1d.__call__, joint=True)
def poly1d_value_forward(self_dot, val_dot, y, self, val):
    return pushed(np.polyval, (coeffs_of(self), val), (part_of(self_dot, "coeffs"), val_dot))


@reverse(np.poly1d.deriv, wrt="self", at=[])
def poly1d_derivative(g, made, self, m=1):
    return {"coeffs": pulled(np.polyder, (coeffs_of(self), m), part_of(g, "coeffs"), 1)[0]}


@forward(np.poly1d.deriv)
def poly1d_derivative_forward(self_dot, made, self, m=1):
    return {"coeffs": np.polyder(part_of(self_dot, "coeffs"), m)}


@reverse(np.poly1d.integ, wrt="self", at=[])
def poly1d_integral(g, made, self, m=1):
    return {"coeffs": pulled(np.polyint, (coeffs_of(self), m), part_of(g, "coeffs"), 1)[0]}


@forward(np.poly1d.integ)
def poly1d_integral_forward(self_dot, made, self, m=1):
    return {"coeffs": np.polyint(part_of(self_dot, "coeffs"), m)}
