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
from srcgrad.runtime.support import cofactors, expand, inverse_transposed, norm_slope, ratio, unbroadcast

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


nondifferentiable(np.linalg.matrix_rank)
