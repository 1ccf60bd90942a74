"""Rules that need a whole program to be tested: those of objects that keep arrays (interpolators,
distributions), of functions that call a function, or that write into their argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import interpolate, sparse, stats
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial.transform import Rotation

import srcgrad

KNOTS = np.array([0.0, 0.7, 1.1, 2.0, 3.2, 3.9, 5.0])
X4 = np.array([0.0, 0.5, 1.3, 2.0])
DATA = np.array([0.3, -0.8, 1.2, 0.9, -0.4, 0.7, 1.5])
RISING = np.array([0.1, 0.4, 0.45, 1.2, 1.9, 1.7, 2.5])
TABLE = np.outer(DATA, [1.0, 0.5]) + np.array([0.1, -0.2])
PLACES = np.array([0.3, 1.6, 0.8, 2.75, 4.4])
GRID = np.sin(np.arange(28.0)).reshape(7, 4)
POINTS = np.array([[0.3, 0.2], [1.6, 1.9], [4.4, 0.8]])
SCATTERED = np.array([[0.1, 0.3], [0.9, 0.2], [0.4, 1.1], [1.3, 0.8], [0.6, 0.5]])
KEY_POINTS = np.array([[0.3, 0.2], [1.1, 0.9], [0.2, 0.8]])
T9 = np.array([0.0, 0, 0, 0, 1.5, 3.0, 3.5, 5, 5, 5, 5])


def interpolated(class_: Any, **options: Any) -> Callable[..., Any]:
    return lambda x, y, at: class_(x, y, **options)(at)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cubic": (interpolated(interpolate.CubicSpline), (KNOTS, DATA, PLACES)),
    "cubic, one place": (interpolated(interpolate.CubicSpline), (KNOTS, DATA, 0.9)),
    "cubic, natural": (interpolated(interpolate.CubicSpline, bc_type="natural"), (KNOTS, DATA, PLACES)),
    "cubic, clamped": (interpolated(interpolate.CubicSpline, bc_type="clamped"), (KNOTS, DATA, PLACES)),
    "cubic, given": (
        interpolated(interpolate.CubicSpline, bc_type=((2, 0.3), (2, 0.8))),
        (KNOTS, DATA, PLACES),
    ),
    "cubic, mixed": (
        interpolated(interpolate.CubicSpline, bc_type=((1, 0.3), "not-a-knot")),
        (KNOTS, DATA, PLACES),
    ),
    "cubic, columns": (interpolated(interpolate.CubicSpline), (KNOTS, TABLE, PLACES)),
    "cubic, axis": (interpolated(interpolate.CubicSpline, axis=1), (KNOTS, TABLE.T.copy(), PLACES)),
    "cubic, axis, one place": (interpolated(interpolate.CubicSpline, axis=1), (KNOTS, TABLE.T.copy(), 0.9)),
    "cubic, three points": (interpolated(interpolate.CubicSpline), (X4[:3], DATA[:3], PLACES[:3])),
    "cubic, two points": (interpolated(interpolate.CubicSpline), (X4[:2], DATA[:2], PLACES[:1])),
    "cubic, two points, clamped": (
        interpolated(interpolate.CubicSpline, bc_type="clamped"),
        (X4[:2], DATA[:2], PLACES[:1]),
    ),
    "cubic, beyond": (interpolated(interpolate.CubicSpline), (KNOTS, DATA, np.array([-0.5, 5.6]))),
    "cubic, periodic": (
        lambda x, y, at: interpolate.CubicSpline(x, np.append(y, y[0]), bc_type="periodic")(at),
        (KNOTS, DATA[:6], np.append(PLACES, 6.2)),
    ),
    "cubic, periodic, three points": (
        lambda x, y, at: interpolate.CubicSpline(x, np.append(y, y[0]), bc_type="periodic")(at),
        (KNOTS[:3], DATA[:2], PLACES[:1]),
    ),
    "cubic, slope": (lambda x, y, at: interpolate.CubicSpline(x, y)(at, 1), (KNOTS, DATA, PLACES)),
    "cubic, derivative": (
        lambda x, y, at: interpolate.CubicSpline(x, y).derivative()(at),
        (KNOTS, DATA, PLACES),
    ),
    "cubic, second derivative": (
        lambda x, y, at: interpolate.CubicSpline(x, y).derivative(nu=2)(at),
        (KNOTS, DATA, PLACES),
    ),
    "cubic, antiderivative": (
        lambda x, y, at: interpolate.CubicSpline(x, y).antiderivative()(at),
        (KNOTS, DATA, PLACES),
    ),
    "cubic, integral": (
        lambda x, y, a, b: interpolate.CubicSpline(x, y).integrate(a, b),
        (KNOTS, DATA, 0.4, 3.5),
    ),
    "hermite": (
        lambda x, y, s, at: interpolate.CubicHermiteSpline(x, y, s)(at),
        (KNOTS, DATA, DATA[::-1].copy(), PLACES),
    ),
    "pchip": (interpolated(interpolate.PchipInterpolator), (KNOTS, DATA, PLACES)),
    "pchip, rising": (interpolated(interpolate.PchipInterpolator), (KNOTS, RISING, PLACES)),
    "pchip, columns": (interpolated(interpolate.PchipInterpolator), (KNOTS, TABLE, PLACES)),
    "akima": (interpolated(interpolate.Akima1DInterpolator), (KNOTS, DATA, PLACES)),
    "makima": (interpolated(interpolate.Akima1DInterpolator, method="makima"), (KNOTS, TABLE, PLACES)),
    "polynomials": (
        lambda c, x, at: interpolate.PPoly(c, x)(at),
        (GRID.reshape(2, 14)[:, :6].copy(), KNOTS, PLACES),
    ),
    "spline": (lambda x, y, at: interpolate.make_interp_spline(x, y)(at), (KNOTS, DATA, PLACES)),
    "spline, degree 2": (
        lambda x, y, at: interpolate.make_interp_spline(x, y, k=2)(at),
        (KNOTS, TABLE, PLACES),
    ),
    "spline, degree 1": (
        lambda x, y, at: interpolate.make_interp_spline(x, y, k=1)(at),
        (KNOTS, DATA, PLACES),
    ),
    "spline, axis": (
        lambda x, y, at: interpolate.make_interp_spline(x, y, axis=1)(at),
        (KNOTS, TABLE.T.copy(), PLACES),
    ),
    "b-spline": (lambda c, at: interpolate.BSpline(T9, c, 3)(at), (DATA, PLACES)),
    "b-spline, knots": (
        lambda t, c, at: interpolate.BSpline(np.concatenate([T9[:4], t, T9[7:]]), c, 3)(at),
        (T9[4:7].copy(), DATA, PLACES),
    ),
    "b-spline, slope": (lambda c, at: interpolate.BSpline(T9, c, 3)(at, nu=1), (TABLE, PLACES)),
    "splev": (
        lambda c, at: interpolate.splev(at, (T9, c, 3)),
        (np.concatenate([DATA, np.zeros(4)]), PLACES),
    ),
    "splev, slope": (
        lambda c, at: interpolate.splev(at, (T9, c, 3), der=1),
        (np.concatenate([DATA, np.zeros(4)]), PLACES),
    ),
    "splev, constant beyond": (
        lambda c, at: interpolate.splev(at, (T9, c, 3), ext=3),
        (np.concatenate([DATA, np.zeros(4)]), np.array([-1.0, 2.0, 6.0])),
    ),
    "splrep": (
        lambda x, y, at: interpolate.splev(at, interpolate.splrep(x, y)),
        (KNOTS, DATA, PLACES),
    ),
    "interp1d": (interpolated(interpolate.interp1d), (KNOTS, DATA, PLACES)),
    "interp1d, one place": (interpolated(interpolate.interp1d), (KNOTS, DATA, 0.9)),
    "interp1d, rows": (interpolated(interpolate.interp1d), (KNOTS, TABLE.T.copy(), PLACES)),
    "interp1d, columns": (interpolated(interpolate.interp1d, axis=0), (KNOTS, TABLE, PLACES)),
    "interp1d, unsorted": (
        interpolated(interpolate.interp1d),
        (KNOTS[[3, 0, 1, 6, 2, 4, 5]], DATA, PLACES),
    ),
    "interp1d, outside": (
        interpolated(interpolate.interp1d, bounds_error=False, fill_value=0.5),
        (KNOTS, DATA, np.array([-1.0, 0.9, 5.5])),
    ),
    "interp1d, beyond": (
        interpolated(interpolate.interp1d, fill_value="extrapolate"),
        (KNOTS, DATA, np.array([-1.0, 0.9, 5.5])),
    ),
    "interp1d, cubic": (interpolated(interpolate.interp1d, kind="cubic"), (KNOTS, TABLE.T.copy(), PLACES)),
    "interp1d, quadratic": (interpolated(interpolate.interp1d, kind="quadratic"), (KNOTS, DATA, PLACES)),
    "interp1d, nearest": (interpolated(interpolate.interp1d, kind="nearest"), (KNOTS, DATA, PLACES)),
    "interp1d, previous": (interpolated(interpolate.interp1d, kind="previous"), (KNOTS, DATA, PLACES)),
    "interp1d, next": (interpolated(interpolate.interp1d, kind="next"), (KNOTS, DATA, PLACES)),
    "interp1d, values": (lambda x, y: interpolate.interp1d(x, y).y, (KNOTS, DATA)),
    "barycentric": (interpolated(interpolate.BarycentricInterpolator), (X4, DATA[:4], PLACES[:3])),
    "barycentric, columns": (interpolated(interpolate.BarycentricInterpolator), (X4, TABLE[:4], PLACES[:3])),
    "grid": (
        lambda x, y, v, at: interpolate.RegularGridInterpolator((x, y), v)(at),
        (KNOTS, X4, GRID, POINTS),
    ),
    "grid, one place": (
        lambda x, y, v, at: interpolate.RegularGridInterpolator((x, y), v)(at),
        (KNOTS, X4, GRID, POINTS[1]),
    ),
    "grid, coordinates": (
        lambda v, a, b: interpolate.RegularGridInterpolator((KNOTS, X4), v)((a, b)),
        (GRID, POINTS[:, 0].copy(), POINTS[:, 1].copy()),
    ),
    "grid, trailing": (
        lambda x, v, at: interpolate.RegularGridInterpolator((x,), v)(at),
        (KNOTS, GRID, PLACES),
    ),
    "grid, descending": (
        lambda x, y, v, at: interpolate.RegularGridInterpolator((x, y), v)(at),
        (KNOTS, X4[::-1].copy(), GRID, POINTS),
    ),
    "grid, outside": (
        lambda v, at: interpolate.RegularGridInterpolator((KNOTS, X4), v, bounds_error=False, fill_value=0.3)(
            at
        ),
        (GRID, np.array([[-1.0, 0.4], [0.5, 0.6]])),
    ),
    "grid, beyond": (
        lambda v, at: interpolate.RegularGridInterpolator(
            (KNOTS, X4), v, bounds_error=False, fill_value=None
        )(at),
        (GRID, np.array([[-1.0, 0.4], [0.5, 0.6]])),
    ),
    "grid, nearest": (
        lambda v, at: interpolate.RegularGridInterpolator((KNOTS, X4), v, method="nearest")(at),
        (GRID, POINTS),
    ),
    "radial": (interpolated(interpolate.RBFInterpolator), (SCATTERED, DATA[:5], KEY_POINTS)),
    "radial, smooth": (
        lambda y, d, s, at: interpolate.RBFInterpolator(y, d, smoothing=s, kernel="cubic")(at),
        (SCATTERED, TABLE[:5], 0.3, KEY_POINTS),
    ),
    "radial, gaussian": (
        lambda y, d, e, at: interpolate.RBFInterpolator(y, d, kernel="gaussian", epsilon=e)(at),
        (SCATTERED, DATA[:5], 1.3, KEY_POINTS),
    ),
}
SPREAD = np.array([[1.2, 0.3, -0.2], [0.3, 0.9, 0.1], [-0.2, 0.1, 1.5]])
PROGRAMS |= {
    "normal": (lambda m, s, x: stats.norm(m, s).logpdf(x), (0.3, 1.4, DATA)),
    "normal, by name": (lambda m, s, x: stats.norm(scale=s, loc=m).cdf(x), (0.3, RISING, DATA)),
    "normal, mean": (lambda m, s: stats.norm(m, s).mean() * stats.norm(m, s).std(), (0.3, 1.4)),
    "gamma": (lambda a, s, x: stats.gamma(a, scale=s).logpdf(x), (1.7, 0.8, RISING)),
    "beta": (lambda a, b, q: stats.beta(a, b).pdf(q), (1.7, 0.8, PLACES / 6)),
    "poisson": (lambda m: stats.poisson(m).logpmf(np.array([0, 2, 3])), (1.7,)),
    "several normal": (
        lambda m, c, x: stats.multivariate_normal(m, (c + c.T) / 2).logpdf(x),
        (DATA[:3], SPREAD, GRID[:3, :3]),
    ),
    "several normal, density": (
        lambda m, c, x: stats.multivariate_normal(m, (c + c.T) / 2).pdf(x),
        (DATA[:3], SPREAD, DATA[1:4]),
    ),
    "several normal, variances": (
        lambda c, x: stats.multivariate_normal(DATA[:3], cov=c).logpdf(x),
        (RISING[:3], GRID[:3, :3]),
    ),
    "estimate": (lambda d, x: stats.gaussian_kde(d)(x), (DATA, PLACES)),
    "estimate, logarithm": (lambda d, x: stats.gaussian_kde(d, bw_method=0.4).logpdf(x), (DATA, PLACES)),
    "estimate, plane": (
        lambda d, x: stats.gaussian_kde(d.T, weights=RISING[:5]).pdf(x.T),
        (SCATTERED, KEY_POINTS),
    ),
}
CUTS = np.array([-0.5, 0.5])
PROGRAMS |= {
    "pieces": (
        lambda x, a: np.piecewise(x, [x < 0, x >= 0], [lambda t: t * t * a, lambda t: np.sin(a * t)]),
        (DATA, 0.7),
    ),
    "pieces, rest": (
        lambda x, a: np.piecewise(x, [x < -0.5, x > 0.5], [lambda t: t * t, 1.5, lambda t: a * t**3]),
        (DATA, 0.7),
    ),
    "pieces, arguments": (
        lambda x, a: np.piecewise(x, [x < 0.5], [lambda t, b: t * t * b, lambda t, b: np.exp(b * t)], a),
        (DATA, 0.7),
    ),
    "pieces, overlap": (
        lambda x: np.piecewise(x, [x > -1, x > 0.8], [lambda t: t * t, lambda t: np.exp(t)]),
        (DATA,),
    ),
    "each": (lambda x, a: np.vectorize(lambda t: t**2 * a if t > 0 else np.sin(t))(x), (TABLE, 0.7)),
    "each of two": (lambda x, y: np.vectorize(lambda s, t: s * t)(x, y), (GRID, X4)),
    "each, two results": (lambda x: sum(np.vectorize(lambda t: (t * t, np.exp(t)))(x)), (DATA,)),
    "along": (lambda x, a: np.apply_along_axis(lambda t: t[0] * t[1] * a, 0, x), (GRID, 0.7)),
    "along, vectors": (
        lambda x, a: np.apply_along_axis(lambda t, b: np.cumsum(t * t) * b, 0, x, a),
        (GRID, 0.7),
    ),
    "along, matrices": (lambda x: np.apply_along_axis(lambda t: np.outer(t, t), -1, x), (GRID,)),
    "over": (lambda x: np.apply_over_axes(np.sum, x * x, [0, 1]), (GRID,)),
    "over, products": (lambda x: np.apply_over_axes(np.prod, x, 1), (GRID,)),
    "of places": (lambda a: np.fromfunction(lambda i, j: np.sin(a * i) * j, (3, 4)), (0.7,)),
    "fold": (lambda x: functools.reduce(lambda s, t: s * np.sin(t) + t, list(x)), (DATA,)),
    "fold, start": (
        lambda x, a: functools.reduce(lambda s, t: s * a + t, [x[0], x[1] ** 2, x[2]], a),
        (DATA, 0.7),
    ),
    "fold, array": (lambda x: functools.reduce(lambda s, t: s * t, x), (GRID,)),
}


ROWS, COLUMNS = np.array([0, 0, 1, 2, 2, 3]), np.array([0, 2, 1, 0, 3, 1])
INDICES, POINTERS = np.array([0, 2, 1, 0, 3, 1]), np.array([0, 2, 3, 5, 6])
STRONG = np.array([2.0, 0.5, 3.0, 0.7, 1.8, 0.4, 2.5])
PATTERN = (np.array([0, 0, 1, 2, 2, 2, 3]), np.array([0, 2, 1, 0, 2, 3, 3]))
FIXED = sparse.csr_array((DATA[:6], INDICES, POINTERS), shape=(4, 4))
PROGRAMS |= {
    "polynomial": (lambda c, x: np.poly1d(c)(x), (X4[1:], DATA)),
    "polynomial, leading zero": (lambda c, x: np.poly1d([0.0, c, c * c])(x), (0.7, DATA)),
    "polynomial, roots": (lambda c, x: np.poly1d(c, True)(x), (DATA[:3], DATA)),
    "polynomial, slope": (lambda c, x: np.poly1d(c * c).deriv()(x), (DATA[:4], DATA)),
    "polynomial, area": (lambda c, x: np.poly1d(c * c).integ(2)(x), (DATA[:4], 0.7)),
    "power series": (lambda c, x: np.polynomial.Polynomial(c)(x), (DATA[:4], DATA)),
    "power series, list": (lambda a, x: np.polynomial.Polynomial([a, 0.2, a * a])(x), (0.7, DATA)),
    "power series, domain": (
        lambda c, d, x: np.polynomial.Polynomial(c, domain=d)(x),
        (DATA[:4], np.array([-0.3, 1.4]), DATA),
    ),
    "chebyshev": (lambda c, x: np.polynomial.Chebyshev(c, [0, 2])(x), (DATA[:4], DATA)),
    "legendre, slope": (lambda c, x: np.polynomial.Legendre(c, [0, 2]).deriv(2)(x), (DATA[:5], DATA)),
    "hermite": (lambda c, x: np.polynomial.Hermite(c).deriv()(x), (DATA[:4], 0.7)),
    "sparse, constant": (lambda x: FIXED @ (x * x), (X4,)),
    "sparse, from the right": (lambda x: (x * x) @ FIXED, (X4,)),
    "sparse, transposed": (lambda x: FIXED.T @ (x * x), (GRID.T.copy(),)),
    "sparse, once": (
        lambda d, x: sparse.csr_array((d, INDICES, POINTERS), shape=(4, 4)) @ x,
        (DATA[:6], X4),
    ),
    "sparse, columns, once": (
        lambda d, x: sparse.csc_array((d * d, INDICES, POINTERS), shape=(4, 4)) @ x,
        (DATA[:6], GRID.T.copy()),
    ),
    "sparse, coordinates, once": (
        lambda d, x: x @ sparse.csr_array((d * d, (ROWS[::-1], COLUMNS[::-1])), shape=(4, 4)),
        (DATA[:6], X4),
    ),
    "sparse, coo, once": (
        lambda d, x: sparse.coo_array((d, (ROWS, COLUMNS)), shape=(4, 4)) @ x,
        (DATA[:6], X4),
    ),
    "sparse, equation, once": (
        lambda d, b: sparse_linalg.spsolve(sparse.csc_array((d, PATTERN), shape=(4, 4)), b),
        (STRONG, X4),
    ),
    "rotate": (lambda v, x: Rotation.from_rotvec(v).apply(x), (DATA[:3], RISING[:3])),
    "rotate rows": (lambda v, x: Rotation.from_rotvec(v).apply(x), (DATA[:3], GRID[:4, :3])),
    "rotate each": (
        lambda v, x: Rotation.from_rotvec(v).apply(x, inverse=True),
        (GRID[:4, :3], GRID[3:7, :3]),
    ),
    "rotate a little": (lambda v, x: Rotation.from_rotvec(v * 1e-4).apply(x) * 1e4, (DATA[:3], RISING[:3])),
    "rotate, matrix": (lambda v: Rotation.from_rotvec(v, degrees=True).as_matrix(), (DATA[:3] * 50,)),
    "rotate, matrices": (lambda q: Rotation.from_quat(q).as_matrix(), (GRID,)),
    "rotate, quaternion": (
        lambda q: Rotation.from_quat(q, scalar_first=True).inv().as_quat(canonical=True),
        (DATA[:4],),
    ),
    "rotate, vector": (lambda q: Rotation.from_quat(q).as_rotvec(), (DATA[:4],)),
    "rotate, vectors": (lambda q: Rotation.from_quat(q).as_rotvec(degrees=True), (GRID,)),
    "rotate, angle": (lambda q: Rotation.from_quat(q).magnitude(), (GRID,)),
    "rotate, angles": (lambda a: Rotation.from_euler("xyz", a).as_matrix(), (DATA[:3],)),
    "rotate, moving axes": (
        lambda a: Rotation.from_euler("ZX", a, degrees=True).as_matrix(),
        (GRID[:, :2] * 50,),
    ),
    "rotate, one axis": (lambda a: Rotation.from_euler("y", a).as_quat(), (0.7,)),
}


def put_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.put(y, [0, 2, -1], v)
    return y * y


def put_in_turn_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.put(y, [5, 9, 30], v, mode="wrap")
    return y * y


def put_scalar_in_place(x: Any, v: Any) -> Any:
    y = x * x
    y.put([1, 2], v)
    return y * y


def place_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.place(y, y > 0.5, v)
    return y * y


def mask_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.putmask(y, y > 0.5, v)
    return y * y


def put_along_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.put_along_axis(y, np.array([[1, 3, 0, 2]]), v, axis=0)
    return y * y


def put_along_rows_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.put_along_axis(y, np.array([[1, 3]]), v, axis=1)
    return y * y


def put_flat_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.put_along_axis(y, np.array([1, 3]), v, axis=None)
    return y * y


def diagonal_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.fill_diagonal(y, v)
    return y * y


def diagonal_in_turn_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.fill_diagonal(y, v, wrap=True)
    return y * y


def partial_diagonal_in_place(x: Any, v: Any) -> Any:
    y = x * x
    np.fill_diagonal(y[1:3, :2], v)
    return y * y


def partition_in_place(x: Any) -> Any:
    y = x * x
    y.partition(2)
    return y * y


def sort_in_place(x: Any) -> Any:
    y = x * x
    y.sort()
    return y * y


def flat_in_place(x: Any, v: Any) -> Any:
    y = x * x
    y.flat[3:5] = v
    return y * y.T.flat[1]


def flat_update_in_place(x: Any) -> Any:
    y = x * x
    y.flat[7] *= y.flat[2]
    return y * y


def options_of_ufuncs(x: Any) -> Any:
    y = x * 2.0
    np.sin(x, where=x > 0, out=y)
    return y + np.cos(x, dtype=np.float64)


PROGRAMS |= {
    "put": (put_in_place, (DATA, X4[1:])),
    "put in turn": (put_in_turn_in_place, (GRID, X4[1:3])),
    "put scalar": (put_scalar_in_place, (DATA, 0.7)),
    "place": (place_in_place, (DATA, X4[1:3])),
    "mask": (mask_in_place, (DATA, X4[1:3])),
    "put along": (put_along_in_place, (GRID, X4)),
    "put along rows": (put_along_rows_in_place, (GRID, 0.7)),
    "put flat": (put_flat_in_place, (DATA, X4[:2])),
    "diagonal": (diagonal_in_place, (GRID, 0.7)),
    "diagonal in turn": (diagonal_in_turn_in_place, (GRID, X4)),
    "partial diagonal": (partial_diagonal_in_place, (GRID, 0.7)),
    "partition": (partition_in_place, (DATA,)),
    "sort": (sort_in_place, (DATA,)),
    "flat": (flat_in_place, (GRID, X4[1:3])),
    "flat, update": (flat_update_in_place, (GRID,)),
    "options": (options_of_ufuncs, (DATA,)),
    "joined": (lambda x, a: np.r_[x * x, a, 0:3, x], (DATA, 0.7)),
    "joined columns": (lambda x, y: np.c_[x * x, y, x], (X4, GRID.T.copy())),
    "indices in lists": (
        lambda a, b, x: np.einsum(a, [0, 1], x, [1], [0]) + np.einsum(a, [..., 1], b, [1, ...]),
        (GRID, GRID[:4, 0].copy(), X4),
    ),
    "pairs": (lambda x: np.abs(x.view(complex)) ** 2, (GRID,)),
}
LINEAR_ONLY = ("nearest", "previous", "next", "once")


def weighed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a real number for a result."""

    def value(*args: Any) -> Any:
        y = np.asarray(function(*args))
        return np.sum(y * np.cos(np.arange(float(y.size)).reshape(y.shape)))

    return value


def difference(function: Callable[..., Any], args: Any, directions: Any, step: float = 1e-4) -> Any:
    def at(t: float) -> Any:
        return function(*[a + t * v for a, v in zip(args, directions, strict=True)])

    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)


def directions_of(args: Any) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.uniform(0.5, 1.5, np.shape(a)) * rng.choice([-1, 1], np.shape(a)) for a in args]


@pytest.mark.parametrize("name", PROGRAMS)
def test_first(name: str) -> None:
    function, args = PROGRAMS[name]
    value, directions = weighed(function), directions_of(args)
    want = difference(value, args, directions)
    found = srcgrad.grad(value, argnums=tuple(range(len(args))))(*args)
    for g, a in zip(found, args, strict=True):
        assert np.shape(g) == np.shape(a)
    got = sum(np.sum(g * v) for g, v in zip(found, directions, strict=True))
    assert abs(got - want) <= 1e-7 * (1 + abs(want))
    tangent = srcgrad.jvp(value, args, tuple(directions))[1]
    assert abs(tangent - got) <= 1e-9 * (1 + abs(got))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if not n.endswith(LINEAR_ONLY)])
def test_second(name: str) -> None:
    function, args = PROGRAMS[name]
    value, directions = weighed(function), directions_of(args)
    every = tuple(range(len(args)))

    def slope(*args: Any) -> Any:
        found = srcgrad.grad(value, argnums=every)(*args)
        total = 0.0
        for i in range(len(directions)):
            total = total + np.sum(found[i] * directions[i])
        return total

    want = difference(slope, args, directions)
    found = srcgrad.grad(slope, argnums=every)(*args)
    got = sum(np.sum(g * v) for g, v in zip(found, directions, strict=True))
    assert abs(got - want) <= 1e-6 * (1 + abs(want))
