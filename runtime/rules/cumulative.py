"""Rules for running sums and products and for differences (NumPy manual, "Sums, products, differences")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.arrays import beside
from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import exclusive_cumprod, recurrence, recurrence_adjoint, unbroadcast, undiff

X = generic(4)
M = generic(3, 4)
AXES = [X, M, (M, 0), (M, -1), case(generic(2, 3, 2), axis=1)]


@reverse(np.cumsum, np.ndarray.cumsum, linear=True, at=AXES)
def cumsum(g, y, a, axis=None, dtype=None):
    if axis is None:
        return np.reshape(np.flip(np.cumsum(np.flip(g))), np.shape(a))
    return np.flip(np.cumsum(np.flip(g, axis), axis), axis)


@reverse(np.cumprod, np.ndarray.cumprod, at=[*AXES, [2.0, 0.0, 3.0], [0.0, 2.0, 0.0]])
def cumprod(g, y, a, axis=None, dtype=None):
    """No division by the elements, so that zeros among them are no exception."""
    if axis is None:
        return np.reshape(exclusive_cumprod(np.ravel(a)) * recurrence_adjoint(np.ravel(a), g), np.shape(a))
    last = np.moveaxis(a, axis, -1)
    return np.moveaxis(exclusive_cumprod(last) * recurrence_adjoint(last, np.moveaxis(g, axis, -1)), -1, axis)


@forward(np.cumprod)
def cumprod_forward(a_dot, y, a, axis=None, dtype=None):
    if axis is None:
        return recurrence(np.ravel(a), np.ravel(a_dot) * exclusive_cumprod(np.ravel(a)))
    last = np.moveaxis(a, axis, -1)
    return np.moveaxis(recurrence(last, np.moveaxis(a_dot, axis, -1) * exclusive_cumprod(last)), -1, axis)


if hasattr(np, "cumulative_sum"):  # NumPy 2.1

    @reverse(np.cumulative_sum, linear=True, at=[X, case(M, axis=1), case(M, axis=0, include_initial=True)])
    def cumulative_sum(g, y, x, /, *, axis=None, dtype=None, include_initial=False):
        axis = 0 if axis is None else axis
        kept = without_initial(g, axis) if include_initial else g
        return np.flip(np.cumsum(np.flip(kept, axis), axis), axis)

    @reverse(np.cumulative_prod, at=[X, case(M, axis=1), case(M, axis=0, include_initial=True)])
    def cumulative_prod(g, y, x, /, *, axis=None, dtype=None, include_initial=False):
        return cumprod(without_initial(g, axis or 0) if include_initial else g, y, x, axis or 0)

    @forward(np.cumulative_prod)
    def cumulative_prod_forward(x_dot, y, x, /, *, axis=None, dtype=None, include_initial=False):
        found = cumprod_forward(x_dot, y, x, axis or 0)
        if include_initial:
            return np.concatenate([0 * np.take(y, [0], axis or 0), found], axis or 0)
        return found


def without_initial(g, axis):
    """`g` without its first element along `axis`."""
    return np.moveaxis(np.moveaxis(g, axis, 0)[1:], 0, axis)


HOLES = np.array([[1.0, np.nan, -0.5], [2.0, 0.3, np.nan]])


@reverse(np.nancumsum, at=[*AXES, HOLES, (HOLES, 1)])
def nancumsum(g, y, a, axis=None, dtype=None):
    return np.where(np.isnan(a), 0, cumsum(g, y, a, axis))


@forward(np.nancumsum)
def nancumsum_forward(a_dot, y, a, axis=None, dtype=None):
    return np.cumsum(np.where(np.isnan(a), 0, a_dot), axis)


@reverse(np.nancumprod, at=[*AXES, HOLES, (HOLES, 1)])
def nancumprod(g, y, a, axis=None, dtype=None):
    return np.where(np.isnan(a), 0, cumprod(g, y, np.where(np.isnan(a), 1, a), axis))


@forward(np.nancumprod)
def nancumprod_forward(a_dot, y, a, axis=None, dtype=None):
    return cumprod_forward(np.where(np.isnan(a), 0, a_dot), y, np.where(np.isnan(a), 1, a), axis)


# --- differences --------------------------------------------------------------------------------------------


@reverse(
    np.diff,
    wrt=("a", "prepend", "append"),
    linear=True,
    alias="maybe",
    at=[
        *[X, M, (M, 2), (M, 1, 0), (X, 0), case(M, n=3, axis=1)],
        *[case(X, n=2, prepend=0.5, append=1.5), case(M, prepend=M[:, :1]), case(M, axis=0, append=0.3)],
    ],
)
def diff(g, y, a, n=1, axis=-1, prepend=None, append=None):
    if prepend is None and append is None:
        return undiff(g, min(n, np.shape(a)[axis]), axis), None, None
    ends_ = [1 if np.ndim(x) == 0 else np.shape(x)[axis] for x in (prepend, append) if x is not None]
    return diff_parts(undiff(g, min(n, np.shape(a)[axis] + sum(ends_)), axis), a, axis, prepend, append)


def diff_parts(g, a, axis, prepend, append):
    """The parts of `g` for `a`, for what stands before it and for what stands behind it."""
    g = np.moveaxis(g, axis, -1)
    before = 0 if prepend is None else np.shape(prepend)[axis] if np.ndim(prepend) else 1
    end = before + np.shape(a)[axis]
    ranges = [(before, end, a), (0, before, prepend), (end, g.shape[-1], append)]
    parts = [None if x is None else np.moveaxis(g[..., start:stop], -1, axis) for start, stop, x in ranges]
    return tuple(None if p is None else unbroadcast(p, x) for p, (_, _, x) in zip(parts, ranges, strict=True))


@reverse(
    np.ediff1d,
    wrt=("ary", "to_end", "to_begin"),
    linear=True,
    at=[X, M, (X, 0.5), (X, generic(2)), case(X, to_begin=0.5, to_end=generic(3))],
)
def ediff1d(g, y, ary, to_end=None, to_begin=None):
    n = max(np.size(ary) - 1, 0)
    start = 0 if to_begin is None else np.size(to_begin)
    return (
        np.reshape(undiff(g[start : start + n]), np.shape(ary)),
        None if to_end is None else unbroadcast(np.reshape(g[start + n :], np.shape(to_end)), to_end),
        None if to_begin is None else unbroadcast(np.reshape(g[:start], np.shape(to_begin)), to_begin),
    )


X7 = generic(7)
GRID = np.array([0.0, 0.7, 1.1, 2.0, 3.2, 3.9, 5.0])


@reverse(
    np.gradient,
    wrt=("f", "varargs"),
    at=[
        *[
            X7,
            (X7, 0.5),
            (X7, GRID),
            M,
            (M, 0.5, GRID[:4]),
            case(M, axis=1),
            case(M, 0.3, axis=(0, 1)),
            (M, 0.3),
        ],
        *[
            case(X7, edge_order=2),
            case(X7, GRID, edge_order=2),
            case(M, GRID[:3], axis=0, edge_order=2),
            X7[:2],
        ],
        *[(X7 * 1j + X7, GRID)],
    ],
)
def gradient(g, y, f, *varargs, axis=None, edge_order=1):
    """A slope averages the quotients on its two sides, each weighted by the other's interval."""
    return (
        gradient_back(g, f, varargs, axis, edge_order),
        gradient_spacings_back(g, f, varargs, axis, edge_order),
    )


@forward(np.gradient)
def gradient_forward(f_dot, varargs_dot, y, f, *varargs, axis=None, edge_order=1):
    return (
        gradient_along(f_dot, f, varargs, axis, edge_order),
        gradient_along_spacings(varargs_dot, f, varargs, axis, edge_order),
    )


def gradient_back(g, f, varargs, axis, edge_order):
    axes = gradient_axes(f, axis)
    total = 0.0
    for k, i in enumerate(axes):
        h, s = quotients(np.moveaxis(f, i, -1), gradient_spacing(varargs, k))
        s_bar, _ = gradient_adjoint(np.moveaxis(gradient_part(g, k, axes), i, -1), s, h, edge_order)
        total = total + np.moveaxis(undiff(s_bar / h), -1, i)
    return unbroadcast(total, f)


def gradient_spacings_back(g, f, varargs, axis, edge_order):
    axes = gradient_axes(f, axis)
    bars = [gradient_spacing_back(g, f, varargs, k, axes, edge_order) for k in range(len(axes))]
    return bars[: len(varargs)] if len(varargs) != 1 else [sum(bars)]


def gradient_spacing_back(g, f, varargs, k, axes, edge_order):
    spacing = gradient_spacing(varargs, k)
    h, s = quotients(np.moveaxis(f, axes[k], -1), spacing)
    s_bar, h_bar = gradient_adjoint(np.moveaxis(gradient_part(g, k, axes), axes[k], -1), s, h, edge_order)
    return spacing_cotangent(h_bar - s_bar * s / h, spacing)


def gradient_along(f_dot, f, varargs, axis, edge_order):
    axes = gradient_axes(f, axis)
    found = [
        gradient_slope(f_dot, f, gradient_spacing(varargs, k), i, edge_order) for k, i in enumerate(axes)
    ]
    return tuple(found) if len(axes) > 1 else found[0]


def gradient_slope(f_dot, f, spacing, i, edge_order):
    h, s = quotients(np.moveaxis(f, i, -1), spacing)
    s_dot = np.diff(np.moveaxis(f_dot, i, -1)) / h
    return np.moveaxis(gradient_tangent(s_dot, 0 * h, s, h, edge_order), -1, i)


def gradient_along_spacings(varargs_dot, f, varargs, axis, edge_order):
    if not varargs:
        return 0.0
    axes = gradient_axes(f, axis)
    found = [
        gradient_spacing_slope(
            gradient_spacing(varargs_dot, k), f, gradient_spacing(varargs, k), i, edge_order
        )
        for k, i in enumerate(axes)
    ]
    return tuple(found) if len(axes) > 1 else found[0]


def gradient_spacing_slope(spacing_dot, f, spacing, i, edge_order):
    h, s = quotients(np.moveaxis(f, i, -1), spacing)
    h_dot = np.diff(spacing_dot) if np.ndim(spacing) else spacing_dot + 0 * h
    return np.moveaxis(gradient_tangent(-s * h_dot / h, h_dot, s, h, edge_order), -1, i)


def gradient_part(g, k, axes):
    """The cotangent of the slopes along the k-th axis."""
    return g[k] if len(axes) > 1 else g[0] if isinstance(g, (list, tuple)) else g


def gradient_axes(f, axis):
    return range(np.ndim(f)) if axis is None else [axis] if isinstance(axis, int) else axis


nondifferentiable(gradient_axes)


def gradient_spacing(varargs, k):
    return 1.0 if not varargs else varargs[0] if len(varargs) == 1 else varargs[k]


def quotients(f, spacing):
    """The intervals along the last axis and the difference quotients over them."""
    n = f.shape[-1] - 1
    if np.ndim(spacing):
        h = np.diff(spacing)
    else:
        kind = np.result_type(f.dtype.type(0).real, np.float32)
        h = np.full_like(f, spacing, dtype=kind, shape=(n,))
    return h, np.diff(f) / h


def gradient_adjoint(g, s, h, edge_order):
    """The cotangents of quotients and intervals; y is (right p + left q) / (left + right)."""
    left, right, p, q = h[:-1], h[1:], s[..., :-1], s[..., 1:]
    inner = g[..., 1:-1] / (left + right)
    mean = (right * p + left * q) / (left + right)
    s_bar = ends(inner * right, 0, 1) + ends(inner * left, 1, 0)
    h_bar = ends(inner * (q - mean), 0, 1) + ends(inner * (p - mean), 1, 0)
    for end, (near, far) in ((0, (0, 1)), (-1, (-1, -2))):
        edge = g[..., end]
        if edge_order == 1:
            s_bar = s_bar + placed(edge, near, h.size)
            continue
        total, change = h[near] + h[far], s[..., near] - s[..., far]
        s_bar = s_bar + placed(edge * (1 + h[near] / total), near, h.size)
        s_bar = s_bar - placed(edge * h[near] / total, far, h.size)
        h_bar = h_bar + placed(edge * change * h[far] / total**2, near, h.size)
        h_bar = h_bar - placed(edge * change * h[near] / total**2, far, h.size)
    return s_bar, h_bar


def gradient_tangent(s_dot, h_dot, s, h, edge_order):
    left, right, p, q = h[:-1], h[1:], s[..., :-1], s[..., 1:]
    mean = (right * p + left * q) / (left + right)
    inner = right * s_dot[..., :-1] + left * s_dot[..., 1:]
    inner = inner + (p - mean) * h_dot[..., 1:] + (q - mean) * h_dot[..., :-1]
    first = edge_tangent(s_dot, h_dot, s, h, edge_order, 0, 1)
    last = edge_tangent(s_dot, h_dot, s, h, edge_order, -1, -2)
    return np.concatenate(
        [np.expand_dims(first, -1), inner / (left + right), np.expand_dims(last, -1)], axis=-1
    )


def edge_tangent(s_dot, h_dot, s, h, edge_order, near, far):
    if edge_order == 1:
        return s_dot[..., near]
    total, change = h[near] + h[far], s[..., near] - s[..., far]
    moved = s_dot[..., near] + (s_dot[..., near] - s_dot[..., far]) * h[near] / total
    return moved + change * (h_dot[..., near] * h[far] - h_dot[..., far] * h[near]) / total**2


def ends(x, before, after):
    """`x` with zeros added at the ends of its last axis."""
    zero = 0 * x[..., :1] if x.shape[-1] else np.zeros((*x.shape[:-1], 1), x.dtype)
    return np.concatenate([zero] * before + [x] + [zero] * after, axis=-1)


def placed(value, place, n):
    """Zeros along a new last axis of length `n`, with `value` at `place`."""
    return value[..., None] * beside(np.eye(n, dtype=value.dtype)[place], value)


def spacing_cotangent(h_bar, spacing):
    total = np.sum(h_bar, axis=tuple(range(h_bar.ndim - 1)))
    return unbroadcast(undiff(total), spacing) if np.ndim(spacing) else unbroadcast(np.sum(total), spacing)


@reverse(
    np.trapezoid,
    wrt=("y", "x", "dx"),
    at=[
        X7,
        (X7, GRID),
        case(X7, dx=0.5),
        (M, GRID[:4]),
        case(M, axis=0),
        case(M, GRID[:3], axis=0),
        (M, np.cumsum(M * M, 1)),
        case(M, dx=X7[:3]),
        case(M, dx=M[1:], axis=0),
    ],
)
def trapezoid(g, z, y, x=None, dx=1.0, axis=-1):
    last, widths = np.moveaxis(y, axis, -1), trapezoid_widths(x, dx, axis, np.ndim(y))
    column = np.expand_dims(g, -1)
    mean = column * (last[..., 1:] + last[..., :-1]) / 2
    if np.ndim(dx):
        widths = np.moveaxis(np.broadcast_to(dx, np.shape(np.moveaxis(mean, -1, axis))), axis, -1)
    half = column * widths / 2 + 0 * mean
    y_bar = unbroadcast(np.moveaxis(ends(half, 0, 1) + ends(half, 1, 0), -1, axis), y)
    if x is None:
        return y_bar, None, unbroadcast(np.moveaxis(mean, -1, axis), dx)
    if np.ndim(x) == 1:
        return y_bar, unbroadcast(undiff(mean), x), None
    return y_bar, unbroadcast(np.moveaxis(undiff(mean), -1, axis), x), None


@forward(np.trapezoid)
def trapezoid_forward(y_dot, x_dot, dx_dot, z, y, x=None, dx=1.0, axis=-1):
    of_y = np.trapezoid(y_dot, x, dx, axis)
    if x is None:
        return of_y, None, np.trapezoid(y, None, dx_dot, axis)
    return of_y, np.trapezoid(y, x_dot, axis=axis), None


def trapezoid_widths(x, dx, axis, rank):
    if x is None:
        return dx
    return np.diff(x) if np.ndim(x) == 1 else np.moveaxis(np.diff(x, axis=axis), axis, -1)


# --- convolution --------------------------------------------------------------------------------------------

LONG, SHORT, EVEN = generic(7), generic(3, seed=1), generic(4, seed=2)
MODES = [
    (a, v, mode)
    for mode in ("full", "same", "valid")
    for a, v in ((LONG, SHORT), (SHORT, LONG), (LONG, EVEN), (EVEN, LONG))
]


@reverse(np.convolve, wrt=("a", "v"), at=[(LONG, SHORT), *MODES, (LONG * 1j + 1, SHORT - 1j, "same")])
def convolve(g, y, a, v, mode="full"):
    return (
        unbroadcast(np.convolve(uncut(g, a, v, mode), np.flip(v), "valid"), a),
        unbroadcast(np.convolve(uncut(g, a, v, mode), np.flip(a), "valid"), v),
    )


@forward(np.convolve)
def convolve_forward(a_dot, v_dot, y, a, v, mode="full"):
    return np.convolve(a_dot, v, mode), np.convolve(a, v_dot, mode)


@reverse(
    np.correlate,
    wrt=("a", "v"),
    at=[(LONG, SHORT), *MODES, (LONG * 1j + 1, SHORT - 1j, "same"), (SHORT + 1j, LONG * 1j)],
)
def correlate(g, y, a, v, mode="valid"):
    """The second argument is conjugated in the product."""
    return (
        unbroadcast(np.convolve(uncut(g, a, v, mode, True), np.conj(v), "valid"), a),
        unbroadcast(np.conj(np.flip(np.convolve(uncut(g, a, v, mode, True), np.flip(a), "valid"))), v),
    )


@forward(np.correlate)
def correlate_forward(a_dot, v_dot, y, a, v, mode="valid"):
    return np.correlate(a_dot, v, mode), np.correlate(a, v_dot, mode)


def uncut(g, a, v, mode, flipped=False):
    """`g`, the cotangent of part of a convolution, with zeros where the rest was cut off."""
    if mode == "full":
        return g
    full, short = np.size(a) + np.size(v) - 1, min(np.size(a), np.size(v))
    before = short - 1 if mode == "valid" else (short - 1) // 2
    if flipped and mode == "same" and np.size(v) > np.size(a):
        before = short // 2
    zeros = np.zeros_like(g, shape=(full,))
    return np.concatenate([zeros[:before], g, zeros[before + g.size :]])
