"""Rules for the support functions, so that derivatives can be differentiated again without looking into
them."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.rules.decompositions import svd_adjoint, svd_tangent
from srcgrad.runtime.rules.inputs import complexes, generic, positive, square
from srcgrad.runtime.rules.table import case, elementwise, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    adjoint,
    bessel_i,
    carried,
    cross_left,
    cross_right,
    deviation,
    dot_left,
    dot_right,
    einsum_part,
    exclusive_cumprod,
    expand,
    hermitian,
    inner_left,
    inner_right,
    log_or_zero,
    lowered,
    matmul_left,
    matmul_right,
    oriented_svd,
    others,
    polygamma,
    power_slope,
    ratio,
    recurrence,
    recurrence_adjoint,
    sinc_slope,
    solve_lower,
    tensordot_left,
    tensordot_right,
    ties,
    unbroadcast,
    unkron_left,
    unkron_right,
    with_entries,
)

X = generic(3)
Y = generic(3, seed=1)
M = generic(2, 3)
T = generic(4, 2, 3)
Z = complexes(2, 3)

nondifferentiable(support.count, support.ties, support.larger, support.shares)
nondifferentiable(arrays.beside, support.read_order)
nondifferentiable(support.chosen, support.within, support.under, support.over, support.einsum_labels)


# --- shapes of cotangents -----------------------------------------------------------------------------------


@reverse(
    support.unbroadcast,
    linear=True,
    alias="maybe",
    at=[(M, X), (M, M), (M, 1.0), (2.0, X), (2.0, 1.0), (T, generic(2, 1))],
)
def unbroadcast_(gg, y, g, x):
    return unbroadcast(gg, g)


@reverse(
    support.expand,
    linear=True,
    alias="maybe",
    at=[(X, M, 0), (2.0, M), (np.array(2.0), M), (M, T, 0), (X, T, (0, 1)), (M[:1], M, 0, True), (2.0, 1.0)],
)
def expand_(gg, y, g, x, axis=None, keepdims=False):
    if np.ndim(x) == 0:
        return gg
    return np.sum(gg, axis=axis, keepdims=keepdims)


@reverse(
    support.scatter,
    linear=True,
    at=[(2.0, X, 1), (X, M, 0), (X, X, np.array([0, 2, 0])), (X[:2], M, (slice(None), 1))],
)
def scatter_(gg, y, g, x, index):
    return gg[index]


@reverse(support.carried, linear=True, alias="maybe", at=[(X, X), (X, np.arange(3))])
def carried_(gg, y, g, y_):
    return carried(gg, y_)


# --- elementwise helpers ------------------------------------------------------------------------------------


@elementwise(support.ratio, at=[(1.5, 2.0), (M, X), (2.0, X)])
def ratio_(y, a, b):
    return ratio(1.0, b), -ratio(y, b)


@elementwise(support.inverse, at=[1.5, X])
def inverse_(y, x):
    return -y * y


@elementwise(support.lowered, at=[1.5, X])
def lowered_(z, y):
    return 1


@elementwise(support.power_slope, at=[(1.5, 2.0, 1.0), (1.5, -0.5, -1.5), (positive(3), X, 0.5)])
def power_slope_(z, x, y, lower):
    lowest = lowered(lower)
    return y * power_slope(x, lower, lowest), np.power(x, lower), log_or_zero(x) * z


@elementwise(support.log_or_zero, at=[1.5, positive(3)])
def log_or_zero_(y, x):
    return ratio(1.0, x)


@elementwise(support.weight, at=[(1.5, 2.0), (M, X)])
def weight_(y, x, z):
    return y, -y


@elementwise(support.sinc_slope, at=[0.0, 0.7, X, case(X, order=2), case([0.0, 0.2, 0.9, 3.0], order=3)])
def sinc_slope_(y, x, *, order=1):
    return sinc_slope(x, order=order + 1)


@elementwise(support.digamma, at=[0.7, 3.5, -1.3])
def digamma_(y, x):
    return polygamma(1, x)


@elementwise(support.polygamma, at=[(1, 0.7), (0, 3.5), (2, -1.3), (3, 5.5)])
def polygamma_(y, n, x):
    return None, polygamma(n + 1, x)


@elementwise(support.bessel_i, at=[(0, 0.7), (1, X), (2, 0.3), (1, [0.0, 3.0, 40.0])])
def bessel_i_(y, n, x):
    return None, (bessel_i(abs(n - 1), x) + bessel_i(n + 1, x)) / 2


# --- reductions ---------------------------------------------------------------------------------------------


@reverse(
    support.deviation, linear=True, at=[X, M, case(M, axis=0), case(T, axis=(0, 2)), case(X, where=X > 0)]
)
def deviation_(g, y, x, axis=None, where=True):
    if where is True:
        return deviation(g, axis)
    return g - where * np.sum(g, axis=axis, keepdims=True) / support.count(x, axis, where)


@reverse(support.others, at=[X, M, (M, 0), (T, (0, 2)), [0.0, 2.0, 3.0], case(M, 1, where=M > 0)])
def others_(g, y, x, axis=None, where=True):
    """others is the product of the products before and after each element."""
    masked = x if where is True else np.where(where, x, 1)
    flat = merged(masked, axis)
    before, after = exclusive_cumprod(flat), np.flip(exclusive_cumprod(np.flip(flat, -1)), -1)
    g = merged(g, axis)
    after_bar = np.flip(exclusive_cumprod_adjoint(np.flip(g * before, -1), np.flip(flat, -1)), -1)
    return unmerged(exclusive_cumprod_adjoint(g * after, flat) + after_bar, x, axis) * where


@forward(support.others)
def others_forward(x_dot, y, x, axis=None, where=True):
    masked = x if where is True else np.where(where, x, 1)
    flat, moved = merged(masked, axis), merged(x_dot * where, axis)
    before, after = exclusive_cumprod(flat), np.flip(exclusive_cumprod(np.flip(flat, -1)), -1)
    after_dot = np.flip(exclusive_cumprod_forward(np.flip(moved, -1), None, np.flip(flat, -1)), -1)
    return unmerged(exclusive_cumprod_forward(moved, None, flat) * after + before * after_dot, x, axis)


def merged(a, axis):
    """`a` with the axes to be reduced moved to the end and made one."""
    if axis is None:
        return np.reshape(a, (1, -1))
    axes = [axis] if isinstance(axis, int) else list(axis)
    moved = np.moveaxis(a, axes, list(range(-len(axes), 0)))
    kept = np.ndim(a) - len(axes)
    return np.reshape(moved, (*moved.shape[:kept], math.prod(moved.shape[kept:])))


def unmerged(flat, a, axis):
    """The inverse of `merged`."""
    if axis is None:
        return np.reshape(flat, np.shape(a))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shape = [n for i, n in enumerate(np.shape(a)) if i not in {k % np.ndim(a) for k in axes}]
    return np.moveaxis(
        np.reshape(flat, [*shape, *(np.shape(a)[i] for i in axes)]), list(range(-len(axes), 0)), axes
    )


def exclusive_cumprod_adjoint(g, a):
    shifted = np.concatenate([np.ones_like(a[..., :1]), a[..., :-1]], axis=-1)
    found = exclusive_cumprod(shifted) * recurrence_adjoint(shifted, g)
    return np.concatenate([found[..., 1:], np.zeros_like(a[..., :1])], axis=-1)


@reverse(support.exclusive_cumprod, at=[X, M, [2.0, 0.0, 3.0, 0.0]])
def exclusive_cumprod_(g, y, a):
    return exclusive_cumprod_adjoint(g, a)


@forward(support.exclusive_cumprod)
def exclusive_cumprod_forward(a_dot, y, a):
    shifted = np.concatenate([np.ones_like(a[..., :1]), a[..., :-1]], axis=-1)
    moved = np.concatenate([np.zeros_like(a[..., :1]), a_dot[..., :-1]], axis=-1)
    return recurrence(shifted, moved * exclusive_cumprod(shifted))


def delayed(x):
    """`x` one place later along the last axis."""
    return np.concatenate([np.zeros_like(x[..., :1]), x[..., :-1]], axis=-1)


def advanced(x):
    """`x` one place earlier along the last axis."""
    return np.concatenate([x[..., 1:], np.zeros_like(x[..., :1])], axis=-1)


@reverse(support.recurrence, wrt=("a", "b"), at=[(X, Y), (M, generic(2, 3, seed=1))])
def recurrence_(g, y, a, b):
    return recurrence_adjoint(a, g) * delayed(y), recurrence_adjoint(a, g)


@forward(support.recurrence)
def recurrence_forward(a_dot, b_dot, y, a, b):
    return recurrence(a, a_dot * delayed(y)), recurrence(a, b_dot)


@reverse(support.recurrence_adjoint, wrt=("a", "g"), at=[(X, Y), (M, generic(2, 3, seed=1))])
def recurrence_adjoint_(gg, y, a, g):
    return delayed(recurrence(a, gg)) * y, recurrence(a, gg)


@forward(support.recurrence_adjoint)
def recurrence_adjoint_forward(a_dot, g_dot, y, a, g):
    return recurrence_adjoint(a, advanced(a_dot * y)), recurrence_adjoint(a, g_dot)


@reverse(support.undiff, linear=True, at=[X, (X, 2), (M, 1, 0)])
def undiff_(gg, y, g, n=1, axis=-1):
    return np.diff(gg, n, axis)


@reverse(
    support.masked,
    linear=True,
    shape="same",
    alias="maybe",
    at=[(X, X > 0), (M, X > 0, False), (1.5, True), (X, M > 0), (X, np.array(True))],
)
def masked_(g, y, value, condition, taken=True):
    return support.masked(g, condition, taken)


# --- selecting and copying ----------------------------------------------------------------------------------


@reverse(
    support.put_along,
    linear=True,
    at=[(M[:, :2], M, np.array([[2, 0], [1, 1]])), (X, X, np.array([1, 1, 0]), None)],
)
def put_along_(gg, y, g, x, indices, axis=-1):
    return np.take_along_axis(gg, indices, axis)


@reverse(
    support.diagonal_scatter,
    linear=True,
    at=[(X[:2], M), (X[:2], M, 1), (T[:, :, 0], T, 0, 1, 2), (X[:1], M)],
)
def diagonal_scatter_(gg, y, g, x, offset=0, axis1=0, axis2=1):
    return unbroadcast(np.diagonal(gg, offset, axis1, axis2), g)


@reverse(
    support.unrepeat,
    linear=True,
    at=[(generic(6), X, 2), (X, X, np.array([2, 0, 1])), (generic(4, 3), M, 2, 0)],
)
def unrepeat_(gg, y, g, a, repeats, axis=None):
    return np.repeat(gg, repeats, axis)


@reverse(support.untile, linear=True, at=[(generic(6), X, 2), (generic(4, 6), M, 2 * (2,))])
def untile_(gg, y, g, a, reps):
    return np.reshape(np.tile(gg, reps), np.shape(g))


@reverse(support.grid_sum, linear=True, at=[(M, 1, X), (M, 0, X[:2])])
def grid_sum_(gg, y, g, axis, x):
    others_ = [i for i in range(np.ndim(g)) if i != axis]
    return expand(np.ravel(gg), g, tuple(others_))


@reverse(
    support.window_scatter, linear=True, at=[(generic(4, 2), generic(5), 2), (generic(2, 2, 2), M, 2, 1)]
)
def window_scatter_(gg, y, g, x, window_shape, axis=None):
    return np.lib.stride_tricks.sliding_window_view(gg, window_shape, axis)


@reverse(support.unpad, linear=True, alias="maybe", at=[(generic(5), X, 1), (generic(5), X, 1, "edge")])
def unpad_(gg, y, g, x, pad_width, mode="constant"):
    return np.pad(gg, pad_width, mode)


# --- sequences ----------------------------------------------------------------------------------------------


@reverse(
    support.split_like,
    linear=True,
    alias="maybe",
    at=[(X, (X[:1], X[1:])), (M, (M[:, :1], M[:, 1:]), 1), (M, (X, X), 0, 2)],
)
def split_like_(gg, y, g, arrays, axis=0, ndim=0):
    shape = [-1] if axis is None else [-1 if i == axis % g.ndim else n for i, n in enumerate(g.shape)]
    parts = [np.reshape(part, shape) for part in gg]
    return np.concatenate(parts, axis or 0)


@reverse(support.unstack, linear=True, alias="maybe", at=[(M, (X, X)), (X, (1.0, 1.0, 1.0))])
def unstack_(gg, y, g, arrays):
    return unbroadcast(np.stack(gg), g)


@reverse(support.like_nested, linear=True, alias="maybe", at=[(M, (X, X)), (M, ((1.0, 2.0, 3.0), X))])
def like_nested_(gg, y, g, nested):
    return unbroadcast(np.array(gg), g)


@reverse(support.spread, linear=True, alias="maybe", at=[(2.0, (1.0, 2.0)), (X, M)])
def spread_(gg, y, g, iterable):
    if isinstance(iterable, (list, tuple)):
        parts = [unbroadcast(part, g) for part in gg]
        return sum(parts)
    return unbroadcast(np.sum(gg, axis=0), g)


@reverse(support.linspace_part, linear=True, at=[(X, 1.0, 0.0), (M, 0.0, 1.0, False, 1)])
def linspace_part_(gg, y, g, first, last, endpoint=True, axis=0):
    weights = np.linspace(first, last, np.shape(g)[axis], endpoint)
    shape = [-1 if i == axis % np.ndim(g) else 1 for i in range(np.ndim(g))]
    return unbroadcast(np.expand_dims(gg, axis) * np.reshape(weights, shape), g)


@reverse(support.unblock, linear=True, alias="maybe", at=[(M, M)])
def unblock_(gg, y, g, arrays):
    return unbroadcast(np.block(gg), g)


# --- products -----------------------------------------------------------------------------------------------

N = generic(3, 4, seed=1)
R = generic(2, 4)


@reverse(
    support.matmul_left,
    wrt=("g", "b"),
    at=[(R, M, N), (X[:2], M, X), (generic(5, 2, 4), M, generic(5, 3, 4))],
)
def matmul_left_(gg, y, g, a, b):
    if isinstance(a, np.ndarray):
        return gg @ b, matmul_right(g, gg, b)
    return with_entries(gg, a) @ b, matmul_right(g, with_entries(gg, a), b)


@forward(support.matmul_left)
def matmul_left_forward(g_dot, b_dot, y, g, a, b):
    return matmul_left(g_dot, a, b), matmul_left(g, a, b_dot)


@reverse(
    support.matmul_right,
    wrt=("g", "a"),
    at=[(R, M, N), (X[:2], M, X), (generic(5, 2, 4), generic(5, 2, 3), N)],
)
def matmul_right_(gg, y, g, a, b):
    if isinstance(b, np.ndarray):
        return a @ gg, matmul_left(g, a, gg)
    return a @ with_entries(gg, b), matmul_left(g, a, with_entries(gg, b))


@forward(support.matmul_right)
def matmul_right_forward(g_dot, a_dot, y, g, a, b):
    return matmul_right(g_dot, a, b), matmul_right(g, a_dot, b)


T34 = generic(2, 5, 3)


@reverse(support.dot_left, wrt=("g", "b"), at=[(R, M, N), (generic(2, 5, 4), T34, N), (M, M, 2.0)])
def dot_left_(gg, y, g, a, b):
    return unbroadcast(np.dot(gg, b), g), dot_right(g, gg, b)


@forward(support.dot_left)
def dot_left_forward(g_dot, b_dot, y, g, a, b):
    return dot_left(g_dot, a, b), dot_left(g, a, b_dot)


@reverse(support.dot_right, wrt=("g", "a"), at=[(R, M, N), (generic(2, 5, 4), T34, N)])
def dot_right_(gg, y, g, a, b):
    return np.dot(a, gg), dot_left(g, a, gg)


@forward(support.dot_right)
def dot_right_forward(g_dot, a_dot, y, g, a, b):
    return dot_right(g_dot, a, b), dot_right(g, a_dot, b)


@reverse(support.inner_left, wrt=("g", "b"), at=[(R, M, N.T), (generic(2, 5, 4), T34, N.T)])
def inner_left_(gg, y, g, a, b):
    return np.inner(gg, b), inner_right(g, gg, b)


@forward(support.inner_left)
def inner_left_forward(g_dot, b_dot, y, g, a, b):
    return inner_left(g_dot, a, b), inner_left(g, a, b_dot)


@reverse(support.inner_right, wrt=("g", "a"), at=[(R, M, N.T), (generic(2, 5, 4), T34, N.T)])
def inner_right_(gg, y, g, a, b):
    return np.inner(a, gg), inner_left(g, a, gg)


@forward(support.inner_right)
def inner_right_forward(g_dot, a_dot, y, g, a, b):
    return inner_right(g_dot, a, b), inner_right(g, a_dot, b)


@reverse(
    support.tensordot_left,
    wrt=("g", "b"),
    at=[(R, M, N, 1), (generic(5, 4), T34, generic(3, 4, 2), ((0, 2), (2, 0)))],
)
def tensordot_left_(gg, y, g, a, b, axes=2):
    return np.tensordot(gg, b, axes), tensordot_right(g, gg, b, axes)


@forward(support.tensordot_left)
def tensordot_left_forward(g_dot, b_dot, y, g, a, b, axes=2):
    return tensordot_left(g_dot, a, b, axes), tensordot_left(g, a, b_dot, axes)


@reverse(
    support.tensordot_right,
    wrt=("g", "a"),
    at=[(R, M, N, 1), (generic(5, 4), T34, generic(3, 4, 2), ((0, 2), (2, 0)))],
)
def tensordot_right_(gg, y, g, a, b, axes=2):
    return np.tensordot(a, gg, axes), tensordot_left(g, a, gg, axes)


@forward(support.tensordot_right)
def tensordot_right_forward(g_dot, a_dot, y, g, a, b, axes=2):
    return tensordot_right(g_dot, a, b, axes), tensordot_right(g, a_dot, b, axes)


@reverse(
    support.einsum_part,
    wrt=("g", "operands"),
    at=[(R, 0, "ij,jk->ik", (M, N)), (X[:2], 1, "ij,j,i->i", (M, X, X[:2]))],
)
def einsum_part_(gg, y, g, i, subscripts, operands, optimize=False):
    """The result is multilinear in the cotangent and the other operands; operand i gives only its shape."""
    changed = [gg if k == i else operand for k, operand in enumerate(operands)]
    parts = [
        np.zeros_like(operands[k]) if k == i else einsum_part(g, k, subscripts, changed, optimize)
        for k in range(len(operands))
    ]
    return np.einsum(subscripts, *changed, optimize=optimize), parts


@forward(support.einsum_part)
def einsum_part_forward(g_dot, operands_dot, y, g, i, subscripts, operands, optimize=False):
    found = np.zeros_like(y)
    for k in range(len(operands)):
        if k != i and np.ndim(operands_dot[k]) == np.ndim(operands[k]):
            changed = [operands_dot[k] if j == k else operand for j, operand in enumerate(operands)]
            found = found + einsum_part(g, i, subscripts, changed, optimize)
    return einsum_part(g_dot, i, subscripts, operands, optimize), found


@reverse(support.unkron_left, wrt=("g", "b"), at=[(generic(6, 12), M, N)])
def unkron_left_(gg, y, g, a, b):
    return np.kron(gg, b), unkron_right(g, gg, b)


@forward(support.unkron_left)
def unkron_left_forward(g_dot, b_dot, y, g, a, b):
    return unkron_left(g_dot, a, b), unkron_left(g, a, b_dot)


@reverse(support.unkron_right, wrt=("g", "a"), at=[(generic(6, 12), M, N)])
def unkron_right_(gg, y, g, a, b):
    return np.kron(a, gg), unkron_left(g, a, gg)


@forward(support.unkron_right)
def unkron_right_forward(g_dot, a_dot, y, g, a, b):
    return unkron_right(g_dot, a, b), unkron_right(g, a_dot, b)


@reverse(support.cross_left, wrt=("g", "b"), at=[(X, X, Y), (M, M, Y), (N, N, generic(3, 4), 0, 0, 0)])
def cross_left_(gg, y, g, a, b, axisa=-1, axisb=-1, axisc=-1):
    return np.cross(gg, b, axisa, axisb, axisc), cross_right(g, gg, b, axisa, axisb, axisc)


@forward(support.cross_left)
def cross_left_forward(g_dot, b_dot, y, g, a, b, axisa=-1, axisb=-1, axisc=-1):
    return cross_left(g_dot, a, b, axisa, axisb, axisc), cross_left(g, a, b_dot, axisa, axisb, axisc)


@reverse(support.cross_right, wrt=("g", "a"), at=[(X, X, Y), (M, M, Y), (N, N, generic(3, 4), 0, 0, 0)])
def cross_right_(gg, y, g, a, b, axisa=-1, axisb=-1, axisc=-1):
    return np.cross(a, gg, axisa, axisb, axisc), cross_left(g, a, gg, axisa, axisb, axisc)


@forward(support.cross_right)
def cross_right_forward(g_dot, a_dot, y, g, a, b, axisa=-1, axisb=-1, axisc=-1):
    return cross_right(g_dot, a, b, axisa, axisb, axisc), cross_right(g, a_dot, b, axisa, axisb, axisc)


# --- linear algebra -----------------------------------------------------------------------------------------

A = square(3, 3)


@reverse(support.adjoint, linear=True, alias="maybe", at=[M, Z, T])
def adjoint_(g, y, a):
    return adjoint(g)


@reverse(support.hermitian, linear=True, at=[A, complexes(3, 3)])
def hermitian_(g, y, a):
    return hermitian(g)


@reverse(support.gaps, at=[X, M, complexes(3)])
def gaps_(g, y, w):
    slope = g * y * y
    return np.sum(slope, axis=-1) - np.sum(slope, axis=-2)


@forward(support.gaps)
def gaps_forward(w_dot, y, w):
    return -y * y * (np.expand_dims(w_dot, -2) - np.expand_dims(w_dot, -1))


LOWER = np.tril(A)


@reverse(
    support.solve_lower,
    wrt=("a", "b"),
    at=[(LOWER, N), (LOWER, N, True), (np.tril(complexes(3, 3) + 3), N + 1j, True)],
)
def solve_lower_(g, y, a, b, adjoint_=False):
    b_bar = np.conj(solve_lower(a, np.conj(g), not adjoint_))
    a_bar = -b_bar @ y.mT
    return np.tril(adjoint(a_bar) if adjoint_ else a_bar), b_bar


@forward(support.solve_lower)
def solve_lower_forward(a_dot, b_dot, y, a, b, adjoint_=False):
    moved = np.tril(a_dot)
    change = (adjoint(moved) if adjoint_ else moved) @ y if np.ndim(a_dot) else 0 * b
    return -solve_lower(a, change, adjoint_), solve_lower(a, b_dot, adjoint_)


@reverse(support.inverse_transposed, at=[A, square(2, 3, 3)])
def inverse_transposed_(g, y, a):
    return -y @ g.mT @ y


@forward(support.inverse_transposed)
def inverse_transposed_forward(a_dot, y, a):
    return -y @ a_dot.mT @ y


@reverse(
    support.cofactors,
    at=[A, [[1.0, 2.0], [2.0, 4.0]], np.zeros((2, 2)), square(2, 3, 3), generic(3, 3), complexes(3, 3)],
)
def cofactors_(g, y, a):
    """In the singular vectors' basis the cofactors are products of the other singular values."""
    u, s, vh, factor = oriented_svd(a)
    inner = adjoint(u) @ (factor * g) @ adjoint(vh)
    return np.conj(u) @ second_minors(inner, s) @ np.conj(vh)


@forward(support.cofactors)
def cofactors_forward(a_dot, y, a):
    u, s, vh, factor = oriented_svd(a)
    inner = adjoint(u) @ a_dot @ adjoint(vh)
    return factor * np.conj(u) @ second_minors(inner, s) @ np.conj(vh)


def second_minors(x, s):
    """The derivative of the cofactors of diag(s) along x; it is its own transpose."""
    eye = np.eye(s.shape[-1], dtype=s.dtype)
    pairs = others(np.where(eye == 1, 1, np.expand_dims(s, -2)), -1) * (1 - eye)
    diagonal = np.sum(pairs * np.expand_dims(np.diagonal(x, 0, -2, -1), -2), axis=-1)
    return eye * np.expand_dims(diagonal, -1) - pairs * x.mT


@reverse(
    support.vector_norm_slope,
    wrt=("y", "x"),
    at=[
        *[(2.0, X), (2.0, X, 3), (2.0, X, 1), (M[:, 0] + 3, M, 3, 1), (M[:, :1] + 3, M, 2, 1, True)],
        *[(2.0, X, 0.5), (2.0, complexes(3)), (1.9, X, np.inf), (2.0, X, 0)],
    ],
)
def vector_norm_slope_(g, z, y, x, ord=2, axis=None, keepdims=False):
    along_y, along_x = slope_slopes(z, y, x, ord, axis, keepdims)
    y_bar = np.real(np.sum(g * along_y, axis=axis, keepdims=keepdims))
    return unbroadcast(y_bar, y), np.conj(g * along_x) if np.iscomplexobj(x) else g * along_x


@forward(support.vector_norm_slope)
def vector_norm_slope_forward(y_dot, x_dot, z, y, x, ord=2, axis=None, keepdims=False):
    along_y, along_x = slope_slopes(z, y, x, ord, axis, keepdims)
    moved = np.conj(x_dot) if np.iscomplexobj(x) else x_dot
    return along_y * expand(y_dot, x, axis, keepdims), along_x * moved


def slope_slopes(z, y, x, ord, axis, keepdims):
    """The derivatives of a vector norm's slope z for the norm y and for the (conjugate) vector."""
    full = expand(y, x, axis, keepdims)
    if ord is None or ord == 2 or ord == "fro":
        return -ratio(z, full), ratio(np.ones_like(np.real(x)), full)
    if np.iscomplexobj(x):
        raise NotImplementedError(f"second derivative of a norm with ord={ord} for complex arrays")
    if ord in (0, 1, np.inf, -np.inf):
        return np.zeros_like(x), np.zeros_like(x)
    size = np.where(x == 0, 1, np.abs(x))
    curvature = (ord - 1) * ratio(size ** (ord - 2) * (x != 0), np.where(full == 0, 1, full) ** (ord - 1))
    return -(ord - 1) * ratio(z, full), curvature


@reverse(
    support.norm_slope,
    wrt=("y", "x"),
    at=[
        (2.0, M),
        (2.0, X, 3),
        (2.0, M, 1),
        (2.0, M, "nuc"),
        (2.0, M, 2),
        (X, generic(3, 4, 2), "nuc", (1, 2)),
        (2.0, M, -2),
    ],
)
def norm_slope_(g, z, y, x, ord=None, axis=None, keepdims=False):
    if ord in ("nuc", 2, -2) and is_matrix(x, axis):
        return np.zeros_like(y), singular_adjoint(g, x, ord, axis)
    return vector_norm_slope_(g, z, y, x, plain(x, ord, axis), axis, keepdims)


@forward(support.norm_slope)
def norm_slope_forward(y_dot, x_dot, z, y, x, ord=None, axis=None, keepdims=False):
    if ord in ("nuc", 2, -2) and is_matrix(x, axis):
        return np.zeros_like(z), singular_tangent(x_dot, x, ord, axis)
    return vector_norm_slope_forward(y_dot, x_dot, z, y, x, plain(x, ord, axis), axis, keepdims)


def is_matrix(x, axis):
    return np.ndim(x) == 2 if axis is None else not isinstance(axis, int) and len(axis) == 2


def plain(x, ord, axis):
    """Matrix norms that are maxima of sums of sizes have second derivative 0, like ord=1."""
    return 1 if is_matrix(x, axis) and ord in (1, -1, np.inf, -np.inf) else ord


def singular(x, ord, axis):
    """The decomposition of the matrices in x, and the weights of its directions in the slope."""
    if np.iscomplexobj(x):
        raise NotImplementedError(f"second derivative of a norm with ord={ord} for complex arrays")
    u, s, vh = np.linalg.svd(np.moveaxis(x, (0, 1) if axis is None else axis, (-2, -1)), full_matrices=False)
    if ord == "nuc":
        return u, s, vh, np.ones_like(s)
    return u, s, vh, ties(np.max(s, axis=-1) if ord == 2 else np.min(s, axis=-1), s, -1)


def singular_adjoint(g, x, ord, axis):
    axes = (0, 1) if axis is None else axis
    u, s, vh, w = singular(x, ord, axis)
    g = np.moveaxis(g, axes, (-2, -1))
    u_bar, vh_bar = (g @ vh.mT) * np.expand_dims(w, -2), np.expand_dims(w, -1) * (u.mT @ g)
    return np.moveaxis(svd_adjoint((u_bar, np.zeros_like(s), vh_bar), (u, s, vh)), (-2, -1), axes)


def singular_tangent(x_dot, x, ord, axis):
    axes = (0, 1) if axis is None else axis
    u, s, vh, w = singular(x, ord, axis)
    u_dot, _, vh_dot = svd_tangent(np.moveaxis(x_dot, axes, (-2, -1)), (u, s, vh))
    moved = (u_dot * np.expand_dims(w, -2)) @ vh + (u * np.expand_dims(w, -2)) @ vh_dot
    return np.moveaxis(moved, (-2, -1), axes)
