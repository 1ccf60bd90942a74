"""Rules for interpolators (SciPy manual, `scipy.interpolate`).

The cotangent of an interpolator is a dict of those of the arrays that it keeps: knots and coefficients, or
the data themselves. How these follow from the arguments, and the value from them, is written out in NumPy in
`interpolants`, whose derivatives the rules ask for.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy import interpolate
from scipy.interpolate import _interpolate, _polyint

from srcgrad.runtime.rules import interpolants
from srcgrad.runtime.rules.callbacks import kept, matched, part_of, pullback, pulled, pushed
from srcgrad.runtime.rules.table import forward, reverse
from srcgrad.runtime.support import unbroadcast


def named(names, tangents):
    """The tangent of an interpolator."""
    return {names[i]: tangents[i] for i in range(len(names))}


def to_front(g, axis, rank):
    """A cotangent of values with the axes of the places first; an interpolator has put them before `axis`."""
    if not axis or g.ndim == rank:
        return g
    places = g.ndim - rank
    return np.moveaxis(g, range(axis, axis + places), range(places))


def from_front(v, axis, rank):
    """The inverse of `to_front`."""
    if not axis or v.ndim == rank:
        return v
    places = v.ndim - rank
    return np.moveaxis(v, range(places), range(axis, axis + places))


# --- piecewise polynomials ----------------------------------------------------------------------------------

POLYNOMIAL = ("_x", "_c")


def spline_call(x, y, axis, bc_type):
    """The function that gives a cubic spline's knots and coefficients, with its arguments."""
    if isinstance(bc_type, str):
        if bc_type == "periodic":
            return interpolants.periodic_spline, (x, y, axis)
        bc_type = (bc_type, bc_type)
    n = np.shape(x)[0]
    ends = [end_condition(bc, n) for bc in bc_type]
    if n == 3 and bc_type[0] == bc_type[1] == "not-a-knot":
        ends = [(interpolants.PARABOLA, 0.0)] * 2
    curved = ends[1][0] == interpolants.CURVATURE
    last = (ends[1][0], -ends[1][1]) if curved else ends[1]  # the last interval is seen from the right
    return interpolants.cubic_spline, (x, y, axis, ends[0], last)


def end_condition(bc, n):
    if isinstance(bc, str):
        if bc == "not-a-knot":
            return (interpolants.KNOT if n > 2 else interpolants.STRAIGHT), 0.0
        return (interpolants.SLOPE if bc == "clamped" else interpolants.CURVATURE), 0.0
    order, value = bc
    return (interpolants.SLOPE if order == 1 else interpolants.CURVATURE), np.ravel(value)


@reverse(interpolate.CubicSpline, wrt=("x", "y"), at=[])
def cubic_spline(g, made, x, y, axis=0, bc_type="not-a-knot", extrapolate=None):
    function, args = spline_call(x, y, axis, bc_type)
    return pulled(function, args, kept(g, POLYNOMIAL), 2)


@forward(interpolate.CubicSpline, joint=True)
def cubic_spline_forward(x_dot, y_dot, made, x, y, axis=0, bc_type="not-a-knot", extrapolate=None):
    function, args = spline_call(x, y, axis, bc_type)
    return named(POLYNOMIAL, pushed(function, args, (x_dot, y_dot)))


@reverse(interpolate.CubicHermiteSpline, wrt=("x", "y", "dydx"), at=[])
def hermite(g, made, x, y, dydx, axis=0, extrapolate=None):
    return pulled(interpolants.hermite, (x, y, dydx, axis), kept(g, POLYNOMIAL), 3)


@forward(interpolate.CubicHermiteSpline, joint=True)
def hermite_forward(x_dot, y_dot, dydx_dot, made, x, y, dydx, axis=0, extrapolate=None):
    tangent = pushed(interpolants.hermite, (x, y, dydx, axis), (x_dot, y_dot, dydx_dot))
    return named(POLYNOMIAL, tangent)


@reverse(interpolate.PchipInterpolator, wrt=("x", "y"), at=[])
def pchip(g, made, x, y, axis=0, extrapolate=None):
    return pulled(interpolants.pchip, (x, y, axis), kept(g, POLYNOMIAL), 2)


@forward(interpolate.PchipInterpolator, joint=True)
def pchip_forward(x_dot, y_dot, made, x, y, axis=0, extrapolate=None):
    return named(POLYNOMIAL, pushed(interpolants.pchip, (x, y, axis), (x_dot, y_dot)))


@reverse(interpolate.Akima1DInterpolator, wrt=("x", "y"), at=[])
def akima(g, made, x, y, axis=0, *, method="akima", extrapolate=None):
    """Where Akima's weights are not defined, since neighbouring slopes are the same, their mean counts."""
    return pulled(interpolants.akima, (x, y, axis, method == "makima"), kept(g, POLYNOMIAL), 2)


@forward(interpolate.Akima1DInterpolator, joint=True)
def akima_forward(x_dot, y_dot, made, x, y, axis=0, *, method="akima", extrapolate=None):
    args = (x, y, axis, method == "makima")
    return named(POLYNOMIAL, pushed(interpolants.akima, args, (x_dot, y_dot)))


@reverse(interpolate.PPoly, wrt=("c", "x"), at=[])
def ppoly(g, made, c, x, extrapolate=None, axis=0):
    knots_bar, c_bar = kept(g, POLYNOMIAL)
    return c_bar, knots_bar


@forward(interpolate.PPoly, joint=True)
def ppoly_forward(c_dot, x_dot, made, c, x, extrapolate=None, axis=0):
    return {"_x": x_dot, "_c": c_dot}


def outside(self, extrapolate):
    """How a piecewise polynomial is continued."""
    if not isinstance(self, interpolate.PPoly):
        raise NotImplementedError(
            "the derivative of a polynomial in Bernstein's basis: convert it to a PPoly"
        )
    return self.extrapolate if extrapolate is None else extrapolate


@reverse(_interpolate._PPolyBase.__call__, wrt=("self", "x"), at=[])
def piecewise(g, y, self, x, nu=0, extrapolate=None):
    """At a knot the derivative is that of the piece on its right."""
    args = (self._x, self._c, x, nu, outside(self, extrapolate))
    found = pulled(interpolants.piecewise, args, to_front(np.asarray(g), self.axis, self._c.ndim - 2), 3)
    return {"_x": found[0], "_c": found[1]}, found[2]


@forward(_interpolate._PPolyBase.__call__, joint=True)
def piecewise_forward(self_dot, x_dot, y, self, x, nu=0, extrapolate=None):
    args = (self._x, self._c, x, nu, outside(self, extrapolate))
    dots = (*kept(self_dot, POLYNOMIAL), x_dot)
    return from_front(pushed(interpolants.piecewise, args, dots), self.axis, self._c.ndim - 2)


@reverse(interpolate.PPoly.derivative, wrt="self", at=[])
def polynomial_derivative(g, made, self, nu=1):
    return {"_x": part_of(g, "_x"), "_c": lifted(part_of(g, "_c"), self._c, nu)}


@forward(interpolate.PPoly.derivative)
def polynomial_derivative_forward(self_dot, made, self, nu=1):
    return {"_x": part_of(self_dot, "_x"), "_c": lowered(part_of(self_dot, "_c"), self._c, nu)}


def factors(c, nu):
    """What the powers of a polynomial are multiplied by in its `nu`-th derivative."""
    degree = c.shape[0] - 1
    found = [interpolants.derivative_factor(degree - k, nu) for k in range(max(degree + 1 - nu, 0))]
    return np.reshape(found, (-1,) + (1,) * (c.ndim - 1))


def lowered(c_dot, c, nu):
    if np.ndim(c_dot) == 0 or nu >= c.shape[0]:
        return np.zeros((max(c.shape[0] - nu, 1), *c.shape[1:]))
    return factors(c, nu) * c_dot[: c.shape[0] - nu]


def lifted(g, c, nu):
    if np.ndim(g) == 0 or nu >= c.shape[0]:
        return np.zeros(c.shape)
    return np.concatenate([factors(c, nu) * g, np.zeros((nu, *c.shape[1:]))])


@reverse(interpolate.PPoly.antiderivative, wrt="self", at=[])
def polynomial_antiderivative(g, made, self, nu=1):
    return named(POLYNOMIAL, pulled(integrated, (self._x, self._c, nu), kept(g, POLYNOMIAL), 2))


@forward(interpolate.PPoly.antiderivative)
def polynomial_antiderivative_forward(self_dot, made, self, nu=1):
    return named(POLYNOMIAL, pushed(integrated, (self._x, self._c, nu), kept(self_dot, POLYNOMIAL)))


def integrated(knots, c, nu):
    if nu == 1:
        return interpolants.antiderivative(knots, c)
    for _ in range(nu):
        knots, c = interpolants.antiderivative(knots, c)
    return knots, c


@reverse(interpolate.PPoly.integrate, wrt=("self", "a", "b"), at=[])
def polynomial_integral(g, y, self, a, b, extrapolate=None):
    args = (self._x, self._c, a, b, continued(self, a, b, extrapolate))
    found = pulled(interpolants.integral, args, g, 4)
    return {"_x": found[0], "_c": found[1]}, found[2], found[3]


@forward(interpolate.PPoly.integrate, joint=True)
def polynomial_integral_forward(self_dot, a_dot, b_dot, y, self, a, b, extrapolate=None):
    args = (self._x, self._c, a, b, continued(self, a, b, extrapolate))
    return pushed(interpolants.integral, args, (*kept(self_dot, POLYNOMIAL), a_dot, b_dot))


def continued(self, a, b, extrapolate):
    found = outside(self, extrapolate)
    within = self._x[0] <= min(a, b) and max(a, b) <= self._x[-1]
    if found == "periodic" and not within:
        raise NotImplementedError("the derivative of a periodic spline's integral beyond its period")
    return True


# --- B-splines ----------------------------------------------------------------------------------------------

SPLINE = ("_t", "_c")


@reverse(interpolate.BSpline, wrt=("t", "c"), at=[])
def bspline(g, made, t, c, k, extrapolate=True, axis=0):
    t_bar, c_bar = kept(g, SPLINE)
    return t_bar, np.moveaxis(c_bar, 0, axis) if np.ndim(c_bar) else c_bar


@forward(interpolate.BSpline, joint=True)
def bspline_forward(t_dot, c_dot, made, t, c, k, extrapolate=True, axis=0):
    return {"_t": t_dot, "_c": np.moveaxis(c_dot, axis, 0)}


@reverse(interpolate.BSpline.__call__, wrt=("self", "x"), at=[])
def bspline_value(g, y, self, x, nu=0, extrapolate=None):
    args = (self._t, self._c, self.k, x, nu, self.extrapolate if extrapolate is None else extrapolate)
    found = pulled(interpolants.spline_value, args, to_front(np.asarray(g), self.axis, self._c.ndim - 1), 4)
    return {"_t": found[0], "_c": found[1]}, found[3]


@forward(interpolate.BSpline.__call__, joint=True)
def bspline_value_forward(self_dot, x_dot, y, self, x, nu=0, extrapolate=None):
    args = (self._t, self._c, self.k, x, nu, self.extrapolate if extrapolate is None else extrapolate)
    dots = (*kept(self_dot, SPLINE), 0.0, x_dot)
    return from_front(pushed(interpolants.spline_value, args, dots), self.axis, self._c.ndim - 1)


def only_interpolating(bc_type):
    if bc_type is not None and bc_type not in ("not-a-knot", (None, None), ("not-a-knot", "not-a-knot")):
        raise NotImplementedError(
            "the derivative of make_interp_spline with conditions at the ends: use CubicSpline"
        )


@reverse(interpolate.make_interp_spline, wrt=("x", "y", "t"), at=[])
def make_interp_spline(g, made, x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True):
    only_interpolating(bc_type)
    found = pulled(interpolants.interpolating_spline, (x, y, k, t, axis), kept(g, SPLINE), 4)
    return found[0], found[1], found[3]


@forward(interpolate.make_interp_spline, joint=True)
def make_interp_spline_forward(
    x_dot, y_dot, t_dot, made, x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True
):
    only_interpolating(bc_type)
    dots = (x_dot, y_dot, 0.0, 0.0 if t is None else t_dot)
    return named(SPLINE, pushed(interpolants.interpolating_spline, (x, y, k, t, axis), dots))


def fitted_value(tck, x, nu, ext):
    """What `splev` computes."""
    t, c, k = tck
    found = interpolants.spline_value(
        t, np.asarray(c)[: t.shape[0] - k - 1], k, edge(t, k, x, ext), nu, ext != 1
    )
    return found


def edge(t, k, x, ext):
    x = np.asarray(x)
    return np.clip(x, t[k], t[t.shape[0] - k - 1]) if ext == 3 else x


@reverse(interpolate.splev, wrt=("x", "tck"), at=[])
def splev(g, y, x, tck, der=0, ext=0):
    if isinstance(tck, interpolate.BSpline):
        raise NotImplementedError("the derivative of splev with a BSpline: call the spline")
    if isinstance(tck[1], (list, tuple)):
        raise NotImplementedError("the derivative of splev for a curve: use BSpline")
    bars = pullback(fitted_value, (tck, x, der, ext), np.asarray(g))[1]
    return matched([bars[1]], [x])[0], bars[0]


@forward(interpolate.splev, joint=True)
def splev_forward(x_dot, tck_dot, y, x, tck, der=0, ext=0):
    return pushed(fitted_value, (tck, x, der, ext), (tck_dot, x_dot))


def fitted(x, y, k):
    """What `splrep` computes without smoothing."""
    t, c = interpolants.interpolating_spline(x, y, k, None, 0)
    return t, np.concatenate([c, np.zeros(k + 1)]), k


def check_fit(w, k, task, s, per):
    if w is not None or task or s or per or k % 2 == 0:
        raise NotImplementedError("the derivative of splrep with weights, smoothing or an even degree")


@reverse(interpolate.splrep, wrt=("x", "y"), at=[])
def splrep(
    g, tck, x, y, w=None, xb=None, xe=None, k=3, task=0, s=None, t=None, full_output=0, per=0, quiet=1
):
    check_fit(w, k, task, s, per)
    return pulled(fitted, (x, y, k), [g[0], g[1], 0.0], 2)


@forward(interpolate.splrep, joint=True)
def splrep_forward(
    x_dot,
    y_dot,
    tck,
    x,
    y,
    w=None,
    xb=None,
    xe=None,
    k=3,
    task=0,
    s=None,
    t=None,
    full_output=0,
    per=0,
    quiet=1,
):
    check_fit(w, k, task, s, per)
    return pushed(fitted, (x, y, k), (x_dot, y_dot))


# --- interp1d and polynomials -------------------------------------------------------------------------------


def data_of(x, y, axis, order, degree):
    """What an `interp1d` keeps: the sorted data, in rows too, and the spline through them."""
    x = np.asarray(x)[order]
    y = np.take(np.asarray(y), order, axis=axis)
    u = interpolants.rows(y, axis)
    if degree is None:
        return x, y, u
    return x, y, u, interpolants.interpolating_spline(x, u, degree, None, 0)


def data_args(made, x, y, axis, assume_sorted, fill_value):
    if made._kind in ("previous", "next") and isinstance(fill_value, str):
        raise NotImplementedError(
            f"the derivative of interp1d(kind='{made._kind}', fill_value='extrapolate')"
        )
    order = np.arange(np.size(x)) if assume_sorted else np.argsort(np.asarray(x), kind="mergesort")
    return x, y, axis, order, (made._spline.k if made._kind == "spline" else None)


@reverse(interpolate.interp1d, wrt=("x", "y"), at=[])
def interp1d(
    g,
    made,
    x,
    y,
    kind="linear",
    axis=-1,
    copy=True,
    bounds_error=None,
    fill_value=np.nan,
    assume_sorted=False,
):
    args = data_args(made, x, y, axis, assume_sorted, fill_value)
    parts = kept(g, ("x", "y", "_y"))
    if made._kind == "spline":
        parts.append(kept(part_of(g, "_spline"), SPLINE))
    return pulled(data_of, args, parts, 2)


@forward(interpolate.interp1d, joint=True)
def interp1d_forward(
    x_dot,
    y_dot,
    made,
    x,
    y,
    kind="linear",
    axis=-1,
    copy=True,
    bounds_error=None,
    fill_value=np.nan,
    assume_sorted=False,
):
    found = pushed(data_of, data_args(made, x, y, axis, assume_sorted, fill_value), (x_dot, y_dot))
    tangent = named(("x", "y", "_y"), found[:3])
    if made._kind == "spline":
        tangent["_spline"] = named(SPLINE, found[3])
    return tangent


def one_dimensional(self, x):
    """What an interpolator in one dimension computes: the function, its arguments, where it keeps them."""
    if isinstance(self, interpolate.BarycentricInterpolator):
        return interpolants.lagrange, (self.xi, self.yi, x), ("xi", "yi")
    if not isinstance(self, interpolate.interp1d):
        raise NotImplementedError(f"the derivative of {type(self).__name__}: use BarycentricInterpolator")
    if self._kind == "spline":
        return spline_at, (self._spline._t, self._spline._c, x, self._spline.k, self._extrapolate), SPLINE
    if self._kind == "linear":
        return interpolants.linear, (self.x, self._y, x, self._extrapolate), ("x", "_y")
    return interpolants.steps, (self.x, self._y, x, self._kind, self._extrapolate), ("x", "_y")


def spline_at(t, c, x, k, extrapolate):
    return interpolants.spline_value(t, c, k, np.reshape(x, (-1,)), 0, extrapolate)


def in_rows(g, self, x):
    """The cotangent of an interpolator's values, with the axes of the places as one and first."""
    rank = len(self._y_extra_shape)
    return np.reshape(to_front(np.asarray(g), self._y_axis, rank), (np.size(x), -1))


@reverse(
    _polyint._Interpolator1D.__call__,
    interpolate.BarycentricInterpolator.__call__,
    wrt=("self", "x"),
    at=[],
)
def value_1d(g, y, self, x):
    function, args, names = one_dimensional(self, x)
    found = pulled(function, args, in_rows(g, self, x), 3)
    bar = named(names, found[:2])
    return {"_spline": bar} if names == SPLINE else bar, found[2]


@forward(_polyint._Interpolator1D.__call__, joint=True)
def value_1d_forward(self_dot, x_dot, y, self, x):
    function, args, names = one_dimensional(self, x)
    dots = kept(part_of(self_dot, "_spline") if names == SPLINE else self_dot, names)
    found = pushed(function, args, (*dots, x_dot))
    found = np.reshape(found, np.shape(x) + self._y_extra_shape)
    return from_front(found, self._y_axis, len(self._y_extra_shape))


def nodes_and_rows(xi, yi, axis):
    return np.asarray(xi), interpolants.rows(yi, axis)


@reverse(interpolate.BarycentricInterpolator, wrt=("xi", "yi"), at=[])
def barycentric(g, made, xi, yi, axis=0, *, random_state=None):
    return pulled(nodes_and_rows, (xi, yi, axis), kept(g, ("xi", "yi")), 2)


@forward(interpolate.BarycentricInterpolator, joint=True)
def barycentric_forward(xi_dot, yi_dot, made, xi, yi, axis=0, *, random_state=None):
    return named(("xi", "yi"), pushed(nodes_and_rows, (xi, yi, axis), (xi_dot, yi_dot)))


# --- several dimensions -------------------------------------------------------------------------------------


def grid_and_values(points, values, flipped):
    """What a `RegularGridInterpolator` keeps: its grid, ascending."""
    grid = tuple([np.flip(p) if i in flipped else np.asarray(p) for i, p in enumerate(points)])
    return grid, np.flip(values, axis=flipped) if flipped else np.asarray(values)


@reverse(interpolate.RegularGridInterpolator, wrt=("points", "values"), at=[])
def regular_grid(
    g,
    made,
    points,
    values,
    method="linear",
    bounds_error=True,
    fill_value=np.nan,
    *,
    solver=None,
    solver_args=None,
):
    args = (tuple(points), values, made._descending_dimensions)
    bars = pullback(grid_and_values, args, kept(g, ("_grid", "_values")))[1]
    return bars[0], matched(bars[1:2], [values])[0]


@forward(interpolate.RegularGridInterpolator, joint=True)
def regular_grid_forward(
    points_dot,
    values_dot,
    made,
    points,
    values,
    method="linear",
    bounds_error=True,
    fill_value=np.nan,
    *,
    solver=None,
    solver_args=None,
):
    args = (tuple(points), values, made._descending_dimensions)
    tangent = pushed(grid_and_values, args, (tuple(points_dot), values_dot))
    return named(("_grid", "_values"), tangent)


def on_grid(grid, values, xi, nearest, extrapolate):
    """The value of a grid interpolator: `xi` is an array of places, or a tuple of arrays of coordinates."""
    if isinstance(xi, tuple):
        xi = np.stack(np.broadcast_arrays(*xi), axis=-1)
    elif xi.ndim == 1:
        xi = np.reshape(xi, (-1, len(grid)))
    if nearest:
        return interpolants.nearest(grid, values, xi, extrapolate)
    return interpolants.multilinear(grid, values, xi, extrapolate)


def grid_args(grid, values, xi, method, extrapolate):
    if method not in ("linear", "nearest"):
        raise NotImplementedError(f"the derivative of interpolation on a grid with method='{method}'")
    places = tuple([np.asarray(x) for x in xi]) if isinstance(xi, tuple) else np.asarray(xi)
    return grid, values, places, method == "nearest", extrapolate


@reverse(interpolate.RegularGridInterpolator.__call__, wrt=("self", "xi"), at=[])
def grid_value(g, y, self, xi, method=None, *, nu=None):
    extrapolate = self.bounds_error or self.fill_value is None
    args = grid_args(self._grid, self._values, xi, method or self.method, extrapolate)
    bars = pullback(on_grid, args, np.asarray(g))[1]
    return {"_grid": bars[0], "_values": bars[1]}, bars[2]


@forward(interpolate.RegularGridInterpolator.__call__, joint=True)
def grid_value_forward(self_dot, xi_dot, y, self, xi, method=None, *, nu=None):
    extrapolate = self.bounds_error or self.fill_value is None
    args = grid_args(self._grid, self._values, xi, method or self.method, extrapolate)
    return pushed(on_grid, args, (*kept(self_dot, ("_grid", "_values")), xi_dot))


@reverse(interpolate.RBFInterpolator, wrt=("y", "d", "smoothing", "epsilon"), at=[])
def radial(
    g, made, y, d, neighbors=None, smoothing=0.0, kernel="thin_plate_spline", epsilon=None, degree=None
):
    found = pulled(interpolants.rbf_coefficients, radial_args(made, y, d), part_of(g, "_coeffs"), 4)
    smoothing_bar = unbroadcast(found[2] + part_of(g, "smoothing"), smoothing)
    epsilon_bar = None if epsilon is None else found[3] + part_of(g, "epsilon")
    return found[0] + part_of(g, "y"), found[1], smoothing_bar, epsilon_bar


@forward(interpolate.RBFInterpolator, joint=True)
def radial_forward(
    y_dot,
    d_dot,
    smoothing_dot,
    epsilon_dot,
    made,
    y,
    d,
    neighbors=None,
    smoothing=0.0,
    kernel="thin_plate_spline",
    epsilon=None,
    degree=None,
):
    moved = 0.0 if epsilon is None else epsilon_dot
    smoothed = np.broadcast_to(smoothing_dot, np.shape(made.smoothing))
    dots = (y_dot, d_dot, smoothed, moved)
    tangent = pushed(interpolants.rbf_coefficients, radial_args(made, y, d), dots)
    return {"_coeffs": tangent, "y": y_dot, "smoothing": smoothed, "epsilon": moved}


def radial_args(made, y, d):
    if made.neighbors is not None or np.iscomplexobj(d):
        raise NotImplementedError("the derivative of RBFInterpolator with neighbors, or complex data")
    return y, d, made.smoothing, made.epsilon, made.kernel, made.powers, made._shift, made._scale


@reverse(interpolate.RBFInterpolator.__call__, wrt=("self", "x"), at=[])
def radial_value(g, z, self, x):
    args = radial_value_args(self, x)
    found = pulled(interpolants.rbf_value, args, np.reshape(g, (np.shape(x)[0], -1)), 4)
    return {"y": found[1], "_coeffs": found[2], "epsilon": found[3]}, found[0]


@forward(interpolate.RBFInterpolator.__call__, joint=True)
def radial_value_forward(self_dot, x_dot, z, self, x):
    dots = (x_dot, *kept(self_dot, ("y", "_coeffs", "epsilon")))
    return np.reshape(pushed(interpolants.rbf_value, radial_value_args(self, x), dots), np.shape(z))


def radial_value_args(self, x):
    return x, self.y, self._coeffs, self.epsilon, self.kernel, self.powers, self._shift, self._scale
