"""What SciPy's interpolators compute, in NumPy, so that it can be differentiated like any other code.

Each function gives the numbers that an interpolator keeps (its coefficients), or the value that it finds at
a place. The formulas are those of C. de Boor, "A Practical Guide to Splines" (1978), F. Fritsch and J.
Butland, SIAM J. Sci. Stat. Comput. 5 (1984), H. Akima, J. ACM 17 (1970), and C. Moler, "Numerical Computing
with MATLAB" (2004), chapter 3.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy import linalg

KNOT, SLOPE, CURVATURE, PARABOLA, STRAIGHT = range(5)
"""Conditions at an end of a spline: its second knot is none; its slope or its curvature is given; with three
points, a parabola; with two, a straight line."""


def rows(y, axis):
    """`y` with the interpolated axis first and all others as one."""
    moved = np.moveaxis(np.asarray(y), axis, 0)
    return np.reshape(moved, (moved.shape[0], -1))


def hermite(x, y, slopes, axis):
    """The knots and coefficients, highest power first, of cubics with given values and slopes at `x`."""
    return hermite_of_rows(np.asarray(x), y, rows(y, axis), rows(slopes, axis), axis)


def hermite_of_rows(x, y, u, s, axis):
    """`hermite` for slopes with all other axes as one."""
    h = (x[1:] - x[:-1])[:, None]
    m = (u[1:] - u[:-1]) / h
    t = (s[:-1] + s[1:] - 2 * m) / h
    c = np.stack([t / h, (m - s[:-1]) / h - t, s[:-1], u[:-1]])
    return x, np.reshape(c, (4, x.shape[0] - 1, *np.moveaxis(np.asarray(y), axis, 0).shape[1:]))


def cubic_spline(x, y, axis, start, end):
    """The knots and coefficients of a cubic spline; `start` and `end` are (condition, value)."""
    x, u = np.asarray(x), rows(y, axis)
    h = (x[1:] - x[:-1])[:, None]
    m = (u[1:] - u[:-1]) / h
    n = x.shape[0]
    later = min(1, n - 2)
    own, other, first = end_row(start[0], start[1], h[0], h[later], m[0], m[later])
    own_, other_, last = end_row(end[0], end[1], h[n - 2], h[n - 2 - later], m[n - 2], m[n - 2 - later])
    zero = np.zeros(1)
    upper = np.concatenate([zero, other * np.ones(1), h[:-1, 0]])
    middle = np.concatenate([own * np.ones(1), 2 * (h[:-1, 0] + h[1:, 0]), own_ * np.ones(1)])
    lower = np.concatenate([h[1:, 0], other_ * np.ones(1), zero])
    inner = 3 * (h[1:] * m[:-1] + h[:-1] * m[1:])
    right = np.concatenate([np.reshape(first, (1, -1)), inner, np.reshape(last, (1, -1))])
    s = linalg.solve_banded((1, 1), np.stack([upper, middle, lower]), right)
    return hermite_of_rows(x, y, u, s, axis)


def end_row(condition, value, h0, h1, m0, m1):
    """The equation for the slopes at an end and beside it: their coefficients, and the right-hand side."""
    if condition == KNOT:
        d = h0 + h1
        return h1, d, ((h0 + 2 * d) * h1 * m0 + h0**2 * m1) / d
    if condition == SLOPE:
        return 1.0, 0.0, value + 0 * m0
    if condition == CURVATURE:
        return 2 * h0, h0, 3 * h0 * m0 - value * h0**2 / 2
    if condition == PARABOLA:
        return 1.0, 1.0, 2 * m0
    return 1.0, 0.0, m0


def periodic_spline(x, y, axis):
    """The knots and coefficients of a periodic cubic spline."""
    x, u = np.asarray(x), rows(y, axis)
    h = x[1:] - x[:-1]
    n = h.shape[0]
    before = np.concatenate([h[-1:], h[:-1]])
    m = (u[1:] - u[:-1]) / h[:, None]
    m_before = np.concatenate([m[-1:], m[:-1]])
    eye = np.eye(n)
    system = (
        2 * (h + before)[:, None] * eye
        + before[:, None] * np.roll(eye, 1, axis=1)
        + h[:, None] * np.roll(eye, -1, axis=1)
    )
    s = np.linalg.solve(system, 3 * (h[:, None] * m_before + before[:, None] * m))
    return hermite_of_rows(x, y, u, np.concatenate([s, s[:1]]), axis)


def pchip(x, y, axis):
    """The knots and coefficients of the monotone cubics of Fritsch and Butland."""
    x, u = np.asarray(x), rows(y, axis)
    h = (x[1:] - x[:-1])[:, None]
    m = (u[1:] - u[:-1]) / h
    if x.shape[0] == 2:
        return hermite_of_rows(x, y, u, np.concatenate([m, m]), axis)
    same = m[:-1] * m[1:] > 0
    left, right = np.where(same, m[:-1], 1), np.where(same, m[1:], 1)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = np.where(same, (w1 + w2) / (w1 / left + w2 / right), 0)
    start = pchip_end(h[0], h[1], m[0], m[1])
    end = pchip_end(h[-1], h[-2], m[-1], m[-2])
    return hermite_of_rows(x, y, u, np.concatenate([start[None, :], inner, end[None, :]]), axis)


def pchip_end(h0, h1, m0, m1):
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    limited = np.where((np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3 * np.abs(m0)), 3 * m0, d)
    return np.where(np.sign(d) != np.sign(m0), 0, limited)


def akima(x, y, axis, modified):
    """The knots and coefficients of Akima's cubics."""
    x, u = np.asarray(x), rows(y, axis)
    m = (u[1:] - u[:-1]) / (x[1:] - x[:-1])[:, None]
    if x.shape[0] == 2:
        return hermite_of_rows(x, y, u, np.concatenate([m, m]), axis)
    before, after = 2 * m[:1] - m[1:2], 2 * m[-1:] - m[-2:-1]
    m = np.concatenate([2 * before - m[:1], before, m, after, 2 * after - m[-1:]])
    turn = np.abs(m[1:] - m[:-1])
    f1, f2 = turn[2:], turn[:-2]
    if modified:
        level = np.abs(m[1:] + m[:-1]) / 2
        f1, f2 = f1 + level[2:], f2 + level[:-2]
    total = f1 + f2
    clear = total > 1e-9 * np.max(total)
    weight = np.where(clear, f2, 1) / np.where(clear, total, 1)
    s = np.where(clear, m[1:-2] + weight * (m[2:-1] - m[1:-2]), (m[3:] + m[:-3]) / 2)
    return hermite_of_rows(x, y, u, s, axis)


def derivative_factor(power, nu):
    """The factor of `x ** power` in its `nu`-th derivative."""
    factor = 1.0
    for k in range(nu):
        factor *= power - k
    return factor


def piecewise(knots, c, x, nu, extrapolate):
    """The value at `x`, of any shape, of polynomials with the coefficients `c[:, i]` between knots."""
    shape = np.shape(x) + c.shape[2:]
    at = np.reshape(x, (-1,))
    if extrapolate == "periodic":
        at = knots[0] + (at - knots[0]) % (knots[-1] - knots[0])
    i = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, knots.shape[0] - 2)
    t = (at - knots[i])[:, None]
    c = np.reshape(c, (c.shape[0], c.shape[1], -1))
    degree = c.shape[0] - 1
    total = np.zeros((at.shape[0], c.shape[2]), c.dtype)
    for k in range(max(degree + 1 - nu, 0)):
        total = total * t + derivative_factor(degree - k, nu) * c[k][i]
    if not extrapolate:
        total = np.where(((at >= knots[0]) & (at <= knots[-1]))[:, None], total, 0)
    return np.reshape(total, shape)


def antiderivative(knots, c):
    """The knots and coefficients of the integral from the first knot on."""
    powers = np.reshape(np.arange(c.shape[0], 0, -1), (-1,) + (1,) * (c.ndim - 1))
    raised = c / powers
    h = np.reshape(knots[1:] - knots[:-1], (1, -1) + (1,) * (c.ndim - 2))
    area = np.sum(raised * h**powers, axis=0)
    before = np.concatenate([0 * area[:1], np.cumsum(area[:-1], axis=0)])
    return knots, np.concatenate([raised, before[None]])


def integral(knots, c, a, b, extrapolate):
    """The integral from `a` to `b`."""
    knots, raised = antiderivative(knots, c)
    return piecewise(knots, raised, b, 0, extrapolate) - piecewise(knots, raised, a, 0, extrapolate)


# B-splines (de Boor, chapter X)


def basis(x, t, k):
    """The numbers of the splines that are not 0 at each place, and their values, in k + 1 columns."""
    i = np.clip(np.searchsorted(t, x, side="right") - 1, k, t.shape[0] - k - 2)[:, None]
    x = x[:, None]
    values = np.ones(x.shape)
    none = np.zeros(x.shape)
    for j in range(1, k + 1):
        right, left = t[i + np.arange(1, j + 1)], t[i + np.arange(1 - j, 1)]
        share = values / (right - left)
        down, up = (right - x) * share, (x - left) * share
        values = np.concatenate([down, none], axis=1) + np.concatenate([none, up], axis=1)
    return i + np.arange(-k, 1), values


def spline_derivative(t, c, k):
    """Knots and coefficients of the derivative of a spline of degree `k`."""
    n = t.shape[0] - k - 1
    width = t[k + 1 : k + n] - t[1:n]
    apart = np.where(width == 0, 1, width)[:, None]
    return t[1:-1], np.where((width == 0)[:, None], 0, k * (c[1:n] - c[: n - 1]) / apart)


def spline_value(t, c, k, x, nu, extrapolate):
    """A spline's `nu`-th derivative at `x`, of any shape; 0 outside of the knots unless `extrapolate`."""
    trailing = c.shape[1:]
    at = np.reshape(x, (-1,))
    start, end = t[k], t[t.shape[0] - k - 1]
    if extrapolate == "periodic":
        at = start + (at - start) % (end - start)
    inside = (at >= start) & (at <= end)
    c = np.reshape(c, (c.shape[0], -1))
    for _ in range(nu):
        if k == 0:
            return np.zeros(np.shape(x) + trailing)
        t, c = spline_derivative(t, c, k)
        k = k - 1
    numbers, values = basis(at, t, k)
    total = np.sum(values[:, :, None] * c[numbers], axis=1)
    if not extrapolate:
        total = np.where(inside[:, None], total, 0)
    return np.reshape(total, np.shape(x) + trailing)


def interpolating_knots(x, k):
    """The knots of the spline of degree `k` through points at `x`: those near the ends are left out."""
    if k == 0:
        return np.concatenate([x, x[-1:]])
    if k % 2:
        half, inner = (k + 1) // 2, x
    else:
        half, inner = k // 2, (x[1:] + x[:-1]) / 2
    ends = np.ones(k + 1)
    return np.concatenate([x[0] * ends, inner[half : inner.shape[0] - half], x[-1] * ends])


def interpolating_spline(x, y, k, t, axis):
    """The knots and coefficients of the spline of degree `k` through points."""
    x, u = np.asarray(x), rows(y, axis)
    t = interpolating_knots(x, k) if t is None else np.asarray(t)
    n = x.shape[0]
    shape = np.moveaxis(np.asarray(y), axis, 0).shape
    if k == 0:
        return t, np.reshape(u, shape)
    numbers, values = basis(x, t, k)
    band = np.zeros((2 * k + 1, n))
    band[k + np.arange(n)[:, None] - numbers, numbers] = values
    return t, np.reshape(linalg.solve_banded((k, k), band, u), shape)


# Polynomials


def lagrange(nodes, values, x):
    """The value at `x` of the polynomial that goes through points."""
    n = nodes.shape[0]
    at = np.reshape(x, (-1,))
    eye = np.eye(n, dtype=bool)
    apart = np.where(eye, 1, nodes[:, None] - nodes[None, :])
    ratios = np.where(eye, 1, (at[:, None, None] - nodes[None, None, :]) / apart)
    return np.prod(ratios, axis=2) @ values


# Straight lines


def linear(knots, values, x, extrapolate):
    """Straight lines between knots; 0 outside of them unless `extrapolate`. `values` has the shape (n, r)."""
    at = np.reshape(x, (-1,))
    i = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, knots.shape[0] - 2)
    t = ((at - knots[i]) / (knots[i + 1] - knots[i]))[:, None]
    found = values[i] + t * (values[i + 1] - values[i])
    if extrapolate:
        return found
    return np.where(((at >= knots[0]) & (at <= knots[-1]))[:, None], found, 0)


def steps(knots, values, x, kind, extrapolate):
    """The value of the nearest, the previous or the next point."""
    at = np.reshape(x, (-1,))
    if kind in ("nearest", "nearest-up"):
        middles = (knots[1:] + knots[:-1]) / 2
        i = np.searchsorted(middles, at, side="left" if kind == "nearest" else "right")
    elif kind == "previous":
        i = np.searchsorted(knots, at, side="right") - 1
    else:
        i = np.searchsorted(knots, at)
    found = values[np.clip(i, 0, knots.shape[0] - 1)]
    if extrapolate:
        return found
    return np.where(((at >= knots[0]) & (at <= knots[-1]))[:, None], found, 0)


def nearest(grid, values, x, extrapolate):
    """The value of the nearest point of a grid, at the rows of `x`; 0 outside unless `extrapolate`."""
    dims = len(grid)
    at = np.reshape(x, (-1, dims))
    index = []
    inside = np.ones(at.shape[0], dtype=bool)
    for k in range(dims):
        knots = np.asarray(grid[k])
        place = at[:, k]
        index.append(np.searchsorted((knots[1:] + knots[:-1]) / 2, place))
        inside = inside & (place >= knots[0]) & (place <= knots[-1])
    found = values[tuple(index)]
    if not extrapolate:
        found = np.where(np.reshape(inside, (-1,) + (1,) * (values.ndim - dims)), found, 0)
    return np.reshape(found, np.shape(x)[:-1] + values.shape[dims:])


def multilinear(grid, values, x, extrapolate):
    """Linear interpolation along every axis of a grid, at the rows of `x`; 0 outside unless `extrapolate`."""
    dims = len(grid)
    x = np.asarray(x)
    shape = x.shape[:-1] + values.shape[dims:]
    at = np.reshape(x, (-1, dims))
    corners = np.reshape(np.indices((2,) * dims), (dims, -1))
    index, weights = [], np.ones((at.shape[0], corners.shape[1]))
    inside = np.ones(at.shape[0], dtype=bool)
    for k in range(dims):
        knots = np.asarray(grid[k])
        place = at[:, k]
        i = np.clip(np.searchsorted(knots, place, side="right") - 1, 0, knots.shape[0] - 2)
        share = ((place - knots[i]) / (knots[i + 1] - knots[i]))[:, None]
        weights = weights * np.where(corners[k] == 1, share, 1 - share)
        index.append(i[:, None] + corners[k])
        inside = inside & (place >= knots[0]) & (place <= knots[-1])
    spread = np.reshape(weights, weights.shape + (1,) * (values.ndim - dims))
    total = np.sum(spread * values[tuple(index)], axis=1)
    if not extrapolate:
        total = np.where(np.reshape(inside, (-1,) + (1,) * (values.ndim - dims)), total, 0)
    return np.reshape(total, shape)


# Radial basis functions (SciPy manual, `RBFInterpolator`)


def kernel_of(r, kernel):
    """A radial function of the distance `r`."""
    if kernel == "linear":
        return -r
    if kernel == "thin_plate_spline":
        return np.where(r == 0, 0, r**2 * np.log(np.where(r == 0, 1, r)))
    if kernel == "cubic":
        return r**3
    if kernel == "quintic":
        return -(r**5)
    if kernel == "multiquadric":
        return -np.sqrt(r**2 + 1)
    if kernel == "inverse_multiquadric":
        return 1 / np.sqrt(r**2 + 1)
    if kernel == "inverse_quadratic":
        return 1 / (r**2 + 1)
    return np.exp(-(r**2))


def distances(a, b):
    square = np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=2)
    return np.where(square == 0, 0, np.sqrt(np.where(square == 0, 1, square)))


def monomials(x, powers):
    """The products of powers of the columns of `x`."""
    return np.prod(x[:, None, :] ** np.floor(powers)[None, :, :], axis=2)


def rbf_coefficients(y, d, smoothing, epsilon, kernel, powers, shift, scale):
    """The coefficients of the radial functions around the points `y` and of the monomials."""
    y, d = np.asarray(y), np.asarray(d)
    values = np.reshape(d, (d.shape[0], -1))
    p, r = y.shape[0], powers.shape[0]
    radial = kernel_of(distances(y * epsilon, y * epsilon), kernel) + smoothing * np.eye(p)
    poly = monomials((y - shift) / scale, powers)
    top = np.concatenate([radial, poly], axis=1)
    bottom = np.concatenate([np.transpose(poly), np.zeros((r, r))], axis=1)
    right = np.concatenate([values, np.zeros((r, values.shape[1]))])
    return np.linalg.solve(np.concatenate([top, bottom]), right)


def rbf_value(x, y, coefficients, epsilon, kernel, powers, shift, scale):
    x = np.asarray(x)
    radial = kernel_of(distances(x * epsilon, y * epsilon), kernel)
    poly = monomials((x - shift) / scale, powers)
    return np.concatenate([radial, poly], axis=1) @ coefficients
