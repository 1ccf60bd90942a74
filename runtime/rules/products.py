"""Rules for products of arrays (NumPy manual, "Linear algebra: matrix and vector products")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import operator

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import (
    cross_left,
    cross_right,
    diagonal_scatter,
    dot_left,
    dot_right,
    einsum_part,
    inner_left,
    inner_right,
    matmul_left,
    matmul_right,
    tensordot_left,
    tensordot_right,
    unbroadcast,
    unkron_left,
    unkron_right,
)

X = generic(3)
Y = generic(3, seed=1)
M = generic(2, 3)
N = generic(3, 4, seed=1)
T = generic(2, 3, 4)
S = generic(2, 4, 3, seed=1)
PAIRS = [(X, Y), (M, X), (X, N), (M, N)]


@reverse(
    operator.matmul,
    np.matmul,
    np.linalg.matmul,
    wrt=("a", "b"),
    shape="matmul",
    at=[
        *PAIRS,
        (T, S),
        (T, S[0]),
        (M, S[:, :3, :]),
        (X, T),
        (T, generic(4)),
        (T[:, None], S),
        (complexes(2, 3), complexes(3)),
    ],
)
def matmul(g, y, a, b):
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):  # sparse arrays, for example
        return matmul_left(g, a, b), matmul_right(g, a, b)
    if a.ndim == 2 and b.ndim == 2:
        return g @ b.T, a.T @ g
    if a.ndim == 2 and b.ndim == 1:
        return np.outer(g, b), a.T @ g
    if a.ndim == 1 and b.ndim == 2:
        return b @ g, np.outer(a, g)
    if a.ndim == 1 and b.ndim == 1:
        return g * b, g * a
    return matmul_left(g, a, b), matmul_right(g, a, b)


@forward(np.matmul)
def matmul_forward(a_dot, b_dot, y, a, b):
    return a_dot @ b, a @ b_dot


@reverse(
    np.dot,
    np.ndarray.dot,
    wrt=("a", "b"),
    at=[*PAIRS, (T, S), (X, S.transpose(0, 2, 1)), (T, generic(4)), (M, 2.0), (M, generic(3, 2)), (T, N.T)],
)
def dot(g, y, a, b):
    if np.ndim(a) == 2 and np.ndim(b) == 2:
        return np.dot(g, b.T), np.dot(a.T, g)
    if np.ndim(a) == 2 and np.ndim(b) == 1:
        return np.outer(g, b), np.dot(a.T, g)
    if np.ndim(a) == 1 and np.ndim(b) == 2:
        return np.dot(b, g), np.outer(a, g)
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return g * b, g * a
    return dot_left(g, a, b), dot_right(g, a, b)


@forward(np.dot)
def dot_forward(a_dot, b_dot, y, a, b):
    return np.dot(a_dot, b), np.dot(a, b_dot)


@reverse(
    np.inner,
    wrt=("a", "b"),
    at=[(X, Y), (M, X), (X, M), (M, N.T), (T, S.transpose(0, 2, 1)), (M, 2.0), (2.0, M)],
)
def inner(g, y, a, b):
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return g * b, g * a
    return inner_left(g, a, b), inner_right(g, a, b)


@forward(np.inner)
def inner_forward(a_dot, b_dot, y, a, b):
    return np.inner(a_dot, b), np.inner(a, b_dot)


@reverse(np.outer, wrt=("a", "b"), at=[(X, generic(4)), (M, X), (2.0, X)])
def outer(g, y, a, b):
    if np.ndim(a) == 1 and np.ndim(b) == 1:
        return g @ b, a @ g
    return (
        unbroadcast(np.reshape(g @ np.ravel(b), np.shape(a)), a),
        unbroadcast(np.reshape(np.ravel(a) @ g, np.shape(b)), b),
    )


@forward(np.outer)
def outer_forward(a_dot, b_dot, y, a, b):
    return np.outer(a_dot, b), np.outer(a, b_dot)


@reverse(np.linalg.outer, wrt=("x1", "x2"), at=[(X, generic(4))])
def linalg_outer(g, y, x1, x2):
    return g @ x2, x1 @ g


@forward(np.linalg.outer)
def linalg_outer_forward(x1_dot, x2_dot, y, x1, x2):
    return np.outer(x1_dot, x2), np.outer(x1, x2_dot)


@reverse(
    np.vdot, wrt=("a", "b"), at=[(X, Y), (M, generic(2, 3, seed=1)), (complexes(3), complexes(3, seed=1))]
)
def vdot(g, y, a, b):
    """The first argument is conjugated in the product."""
    return unbroadcast(np.conj(g * np.reshape(b, np.shape(a))), a), unbroadcast(
        g * np.conj(np.reshape(a, np.shape(b))), b
    )


@forward(np.vdot)
def vdot_forward(a_dot, b_dot, y, a, b):
    return np.vdot(a_dot, b), np.vdot(a, b_dot)


@reverse(
    np.vecdot,
    np.linalg.vecdot,
    wrt=("x1", "x2"),
    at=[(X, Y), (M, X), (T, generic(2, 3, 4, seed=1)), (complexes(3), complexes(3, seed=1))],
)
def vecdot(g, y, x1, x2):
    """The first argument is conjugated in the product."""
    return unbroadcast(np.conj(np.expand_dims(g, -1) * x2), x1), unbroadcast(
        np.expand_dims(g, -1) * np.conj(x1), x2
    )


@forward(np.vecdot)
def vecdot_forward(x1_dot, x2_dot, y, x1, x2):
    return np.vecdot(x1_dot, x2), np.vecdot(x1, x2_dot)


if hasattr(np, "matvec"):  # NumPy 2.2

    @reverse(
        np.matvec, wrt=("x1", "x2"), at=[(M, X), (T, generic(4)), (T, generic(2, 4)), (M, generic(2, 3))]
    )
    def matvec(g, y, x1, x2):
        return (
            unbroadcast(np.expand_dims(g, -1) * np.expand_dims(x2, -2), x1),
            unbroadcast(np.matvec(x1.mT, g), x2),
        )

    @forward(np.matvec)
    def matvec_forward(x1_dot, x2_dot, y, x1, x2):
        return np.matvec(x1_dot, x2), np.matvec(x1, x2_dot)

    @reverse(np.vecmat, wrt=("x1", "x2"), at=[(X, N), (generic(2, 3), T), (complexes(3), complexes(3, 2))])
    def vecmat(g, y, x1, x2):
        """The first argument is conjugated in the product."""
        return (
            unbroadcast(np.conj(np.matvec(x2, g)), x1),
            unbroadcast(np.expand_dims(np.conj(x1), -1) * np.expand_dims(g, -2), x2),
        )

    @forward(np.vecmat)
    def vecmat_forward(x1_dot, x2_dot, y, x1, x2):
        return np.vecmat(x1_dot, x2), np.vecmat(x1, x2_dot)


@reverse(
    np.tensordot,
    wrt=("a", "b"),
    at=[
        (T, generic(3, 4, 2)),
        case(M, N, axes=1),
        (X, Y, 0),
        (T, generic(4, 2, 5), ((0, 2), (1, 0))),
        (T, S, ((1, 2), (2, 1))),
        (T, S, (-1, 1)),
        (T, generic(4, 3, 2), ((2, 0, 1), (0, 2, 1))),
    ],
)
def tensordot(g, y, a, b, axes=2):
    return tensordot_left(g, a, b, axes), tensordot_right(g, a, b, axes)


@forward(np.tensordot)
def tensordot_forward(a_dot, b_dot, y, a, b, axes=2):
    return np.tensordot(a_dot, b, axes), np.tensordot(a, b_dot, axes)


@reverse(np.linalg.tensordot, wrt=("x1", "x2"), at=[(T, generic(3, 4, 2)), case(M, N, axes=1)])
def linalg_tensordot(g, y, x1, x2, /, *, axes=2):
    return tensordot_left(g, x1, x2, axes), tensordot_right(g, x1, x2, axes)


@forward(np.linalg.tensordot)
def linalg_tensordot_forward(x1_dot, x2_dot, y, x1, x2, /, *, axes=2):
    return np.tensordot(x1_dot, x2, axes), np.tensordot(x1, x2_dot, axes)


@reverse(
    np.einsum,
    wrt="operands",
    alias="alone",
    at=[
        ("ij,jk->ik", M, N),
        ("ij,jk", M, N),
        ("bij,j->bi", T, generic(4)),
        ("ii->i", generic(3, 3)),
        ("ii", generic(3, 3)),
        ("iij->j", generic(3, 3, 2)),
        ("ij->", M),
        ("ij->ji", M),
        ("ij,ij->i", M, generic(2, 3, seed=1)),
        ("ij,kl->il", M, N),
        ("...ij,...jk->...ik", T, S),
        ("...i,i->...", T, generic(4)),
        ("...,...", T, generic(4)),
        ("i,ij,j->", generic(2), M, X),
        case("ij,jk,kl->il", M, N, generic(4, 2), optimize=True),
        ("ij,ij->ij", M, generic(1, 3)),
        ("i...->...", M),
        (" i j , j -> i ", M, X),
        ("ij,jk->ik", complexes(2, 3), complexes(3, 2)),
    ],
)
def einsum(g, y, subscripts, *operands, optimize=False):
    parts = [einsum_part(g, i, subscripts, operands, optimize) for i in range(len(operands))]
    return parts


@forward(np.einsum)
def einsum_forward(operands_dot, y, subscripts, *operands, optimize=False):
    terms = [
        np.einsum(subscripts, *operands[:i], operands_dot[i], *operands[i + 1 :], optimize=optimize)
        for i in range(len(operands))
    ]
    return sum(terms)


@reverse(np.kron, wrt=("a", "b"), at=[(X, generic(2)), (M, generic(3, 2)), (M, X), (X, M), (T, M), (2.0, M)])
def kron(g, y, a, b):
    return unkron_left(g, a, b), unkron_right(g, a, b)


@forward(np.kron)
def kron_forward(a_dot, b_dot, y, a, b):
    return np.kron(a_dot, b), np.kron(a, b_dot)


@reverse(
    np.trace,
    np.ndarray.trace,
    linear=True,
    at=[M, generic(3, 3), (generic(3, 3), 1), (T, 0, 1, 2), (T, -1, 2, 0)],
)
def trace(g, y, a, offset=0, axis1=0, axis2=1):
    return diagonal_scatter(np.expand_dims(g, -1), a, offset, axis1, axis2)


@reverse(np.linalg.trace, linear=True, at=[M, T, case(T, offset=1)])
def linalg_trace(g, y, x, *, offset=0):
    return diagonal_scatter(np.expand_dims(g, -1), x, offset, -2, -1)


@reverse(
    np.cross,
    wrt=("a", "b"),
    at=[
        (X, Y),
        (M, X),
        (N, generic(3, 4)[:, ::-1], 0, 0, 0),
        case(N, generic(3, 4, seed=2), axis=0),
        (N, generic(4, 3), 0, 1),
    ],
)
def cross(g, y, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        return cross_left(g, a, b, axis, axis, axis), cross_right(g, a, b, axis, axis, axis)
    return cross_left(g, a, b, axisa, axisb, axisc), cross_right(g, a, b, axisa, axisb, axisc)


@forward(np.cross)
def cross_forward(a_dot, b_dot, y, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    return np.cross(a_dot, b, axisa, axisb, axisc, axis), np.cross(a, b_dot, axisa, axisb, axisc, axis)


@reverse(np.linalg.cross, wrt=("x1", "x2"), at=[(X, Y), (M, X), case(N, generic(3, 4, seed=2), axis=0)])
def linalg_cross(g, y, x1, x2, *, axis=-1):
    return cross_left(g, x1, x2, axis, axis, axis), cross_right(g, x1, x2, axis, axis, axis)


@forward(np.linalg.cross)
def linalg_cross_forward(x1_dot, x2_dot, y, x1, x2, *, axis=-1):
    return np.linalg.cross(x1_dot, x2, axis=axis), np.linalg.cross(x1, x2_dot, axis=axis)
