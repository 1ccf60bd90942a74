"""Rules for integrals and differential equations (SciPy manual, `scipy.integrate`).

The derivative of an integral is the integral of the derivative, of a differential equation's solution that of
the adjoint equation, which runs backwards along the solution (L. Pontryagin et al., 1962). Both are computed
by the same routines as the primal, to the tolerances that it was given, or better.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

from srcgrad.runtime import trees
from srcgrad.runtime.rules.callbacks import dense, flat, matched, part_of, pullback, pushforward, size, unflat
from srcgrad.runtime.rules.cumulative import trapezoid, trapezoid_forward
from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import unbroadcast, undiff

X7, M = generic(7), generic(3, 5)
GRID = np.array([0.0, 0.7, 1.1, 2.0, 3.2, 3.9, 5.0])


# --- integrals of samples -----------------------------------------------------------------------------------


@reverse(
    integrate.trapezoid,
    wrt=("y", "x", "dx"),
    at=[X7, (X7, GRID), case(X7, dx=0.5), case(M, axis=0), (M, np.cumsum(M * M, 1))],
)
def trapezoid_(g, z, y, x=None, dx=1.0, axis=-1):
    found = trapezoid(g, z, y, x, dx, axis)
    return found


@forward(integrate.trapezoid)
def trapezoid_tangent(y_dot, x_dot, dx_dot, z, y, x=None, dx=1.0, axis=-1):
    found = trapezoid_forward(y_dot, x_dot, dx_dot, z, y, x, dx, axis)
    return found


def widths_of(x, dx, axis, rank):
    """The intervals along the last axis."""
    if x is None:
        return dx
    return np.diff(x) if np.ndim(x) == 1 else np.moveaxis(np.diff(x, axis=axis), axis, -1)


def place_cotangent(h_bar, x, axis):
    """The cotangent of the places from that of the intervals along the last axis."""
    if np.ndim(x) == 1:
        return unbroadcast(undiff(h_bar), x)
    return unbroadcast(np.moveaxis(undiff(h_bar), -1, axis), x)


@reverse(
    integrate.cumulative_trapezoid,
    wrt=("y", "x", "dx"),
    at=[X7, (X7, GRID), case(X7, dx=0.5, initial=0), case(M, axis=0), (M, np.cumsum(M * M, 1))],
)
def cumulative_trapezoid(g, z, y, x=None, dx=1.0, axis=-1, initial=None):
    g = np.moveaxis(g, axis, -1)
    g = g if initial is None else g[..., 1:]
    later = np.flip(np.cumsum(np.flip(g, -1), -1), -1)
    y_last, widths = np.moveaxis(y, axis, -1), widths_of(x, dx, axis, np.ndim(y))
    half = later * widths / 2
    zero = np.zeros_like(half[..., :1])
    y_bar = np.concatenate([half, zero], -1) + np.concatenate([zero, half], -1)
    h_bar = later * (y_last[..., 1:] + y_last[..., :-1]) / 2
    y_bar = unbroadcast(np.moveaxis(y_bar, -1, axis), y)
    if x is None:
        return y_bar, None, unbroadcast(np.sum(h_bar), dx)
    return y_bar, place_cotangent(h_bar, x, axis), None


@forward(integrate.cumulative_trapezoid)
def cumulative_trapezoid_forward(y_dot, x_dot, dx_dot, z, y, x=None, dx=1.0, axis=-1, initial=None):
    start = None if initial is None else 0
    of_y = integrate.cumulative_trapezoid(y_dot, x, dx, axis, start) if np.ndim(y_dot) else 0 * z
    if x is None:
        return of_y, None, dx_dot * integrate.cumulative_trapezoid(y, None, 1.0, axis, start)
    return (
        of_y,
        integrate.cumulative_trapezoid(y, x_dot, axis=axis, initial=start) if np.ndim(x_dot) else 0 * z,
        None,
    )


def simpson_total(y, h):
    """Simpson's rule for unequal intervals along the last axis, as `scipy.integrate.simpson` has it.

    An odd interval at the end goes by the correction of K. Cartwright, "Simpson's rule cumulative
    integration" (2017).
    """
    n = y.shape[-1]
    if n == 2:
        return h[..., 0] * (y[..., 0] + y[..., 1]) / 2
    last = n if n % 2 else n - 1
    first, second = h[..., 0 : last - 1 : 2], h[..., 1 : last - 1 : 2]
    both = first + second
    total = np.sum(
        both
        / 6
        * (
            y[..., 0 : last - 2 : 2] * (2 - second / first)
            + y[..., 1 : last - 1 : 2] * both * both / (first * second)
            + y[..., 2:last:2] * (2 - first / second)
        ),
        axis=-1,
    )
    if n % 2 == 0:
        a, b = h[..., -2], h[..., -1]
        total = total + y[..., -1] * (2 * b * b + 3 * a * b) / (6 * (a + b))
        total = total + y[..., -2] * (b * b + 3 * a * b) / (6 * a) - y[..., -3] * b**3 / (6 * a * (a + b))
    return total


def simpson_slopes(y, h):
    """The derivatives of the total for the elements and for the intervals, along the last axis.

    The total is linear in the elements; for the intervals a step in the imaginary direction gives the
    derivative without rounding (W. Squire and G. Trapp, 1998).
    """
    n = y.shape[-1]
    h = np.broadcast_to(h, (*y.shape[:-1], n - 1))
    of_y = np.stack([simpson_total(np.zeros_like(y) + row, h) for row in np.eye(n)], axis=-1)
    of_h = np.stack([np.imag(simpson_total(y, h + 1e-30j * row)) / 1e-30 for row in np.eye(n - 1)], axis=-1)
    return of_y, of_h


SIMPSON = [
    X7,
    case(X7[:6], x=GRID[:6]),
    case(X7, x=GRID),
    case(M, dx=0.5),
    case(M, axis=0),
    case(X7[:2], dx=0.3),
    case(X7[:4]),
]


@reverse(integrate.simpson, wrt=("y", "x", "dx"), at=SIMPSON)
def simpson(g, z, y, x=None, *, dx=1.0, axis=-1):
    last = np.moveaxis(y, axis, -1)
    of_y, of_h = simpson_slopes(last, widths_of(x, dx, axis, np.ndim(y)))
    column = np.expand_dims(g, -1)
    y_bar = unbroadcast(np.moveaxis(column * of_y, -1, axis), y)
    if x is None:
        return y_bar, None, unbroadcast(np.sum(column * of_h), dx)
    return y_bar, place_cotangent(column * of_h, x, axis), None


@forward(integrate.simpson)
def simpson_forward(y_dot, x_dot, dx_dot, z, y, x=None, *, dx=1.0, axis=-1):
    of_y = integrate.simpson(y_dot, x, dx=dx, axis=axis) if np.ndim(y_dot) else 0 * z
    _, of_h = simpson_slopes(np.moveaxis(y, axis, -1), widths_of(x, dx, axis, np.ndim(y)))
    if x is None:
        return of_y, None, unbroadcast(dx_dot * np.sum(of_h, axis=-1), z)
    return (
        of_y,
        np.sum(of_h * widths_of(x_dot, 0.0, axis, np.ndim(y)), axis=-1) if np.ndim(x_dot) else 0 * z,
        None,
    )


@reverse(integrate.romb, wrt=("y", "dx"), at=[generic(5), (generic(2, 5), 0.5), case(generic(5, 2), axis=0)])
def romb(g, z, y, dx=1.0, axis=-1):
    weights = integrate.romb(np.eye(np.shape(y)[axis]), 1.0)
    last = np.expand_dims(g, -1) * weights
    return unbroadcast(np.moveaxis(last * dx, -1, axis), y), unbroadcast(
        np.sum(last * np.moveaxis(y, axis, -1)), dx
    )


@forward(integrate.romb)
def romb_forward(y_dot, dx_dot, z, y, dx=1.0, axis=-1):
    of_y = integrate.romb(y_dot, dx, axis) if np.ndim(y_dot) else 0 * z
    return of_y, dx_dot * integrate.romb(y, 1.0, axis)


if hasattr(integrate, "cumulative_simpson"):

    @reverse(
        integrate.cumulative_simpson,
        wrt="y",
        at=[X7, case(X7, dx=0.5, initial=0), case(M, x=GRID[:5]), case(M, axis=0)],
    )
    def cumulative_simpson(g, z, y, *, x=None, dx=1.0, axis=-1, initial=None):
        """By way of the matrix of the map; the places must be constant."""
        matrix = integrate.cumulative_simpson(np.eye(np.shape(y)[axis]), x=x, dx=dx, axis=-1, initial=initial)
        return unbroadcast(np.moveaxis(np.moveaxis(g, axis, -1) @ matrix.T, -1, axis), y)

    @forward(integrate.cumulative_simpson)
    def cumulative_simpson_forward(y_dot, z, y, *, x=None, dx=1.0, axis=-1, initial=None):
        start = None if initial is None else 0.0
        return integrate.cumulative_simpson(y_dot, x=x, dx=dx, axis=axis, initial=start)


# --- integrals of functions ---------------------------------------------------------------------------------


def inner_point(a, b):
    """A point between the limits, where the integrand is defined."""
    if math.isinf(a) and math.isinf(b):
        return 0.0
    return b - 1.0 if math.isinf(a) else a + 1.0 if math.isinf(b) else (a + b) / 2


def at_limit(func, z, args):
    return 0.0 if math.isinf(z) else func(z, *args)


def integral_of(function, a, b, n, epsabs, epsrel, limit, points):
    """The integral of a function whose values are vectors of length n."""
    if n == 0:
        return np.zeros(0)
    if n == 1:
        options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
        return np.array([integrate.quad(lambda z: function(z)[0], a, b, **options)[0]])
    return integrate.quad_vec(function, a, b, epsabs=epsabs, epsrel=epsrel, limit=limit, points=points)[0]


def integral_adjoint(g, func, a, b, args, epsabs, epsrel, limit, points):
    """The cotangents of integrand, limits and further arguments; `g` is that of the integral."""

    def bars(z):
        found = pullback(func, (z, *args), g)
        return [found[0], found[1][1:]]

    like = bars(inner_point(a, b))
    total = integral_of(lambda z: flat(bars(z), like), a, b, size(like), epsabs, epsrel, limit, points)
    f_bar, args_bar = unflat(total, like)
    upper, lower = np.sum(g * at_limit(func, b, args)), np.sum(g * at_limit(func, a, args))
    return f_bar, unbroadcast(-lower, a), unbroadcast(upper, b), matched(args_bar, args)


def integral_tangents(func_dot, a_dot, b_dot, args_dot, func, a, b, args, integrate_):
    """The four contributions to the tangent of an integral."""

    def moved(f_dot, others):
        return integrate_(lambda z: pushforward(func, (z, *args), f_dot, (0.0, *others)))

    nothing = [0.0] * len(args)
    of_f = 0.0 if trees.is_zero(func_dot) else moved(func_dot, nothing)
    of_args = moved(0.0, args_dot) if isinstance(args_dot, (list, tuple)) and len(args) else 0.0
    of_a = -a_dot * at_limit(func, a, args) if a_dot else 0.0
    return of_f, of_a, b_dot * at_limit(func, b, args) if b_dot else 0.0, of_args


def gaussian(z, s):
    return math.exp(-s * z * z)


def damped(z, s, k):
    return np.exp(-s * z) * np.cos(k * z)


QUADS = [
    (gaussian, 0.2, 1.3, (0.6,)),
    (math.cos, 0.2, 1.3),
    case(damped, 0.0, 2.0, (0.5, 1.2), epsabs=1e-12, epsrel=1e-12),
]


@reverse(integrate.quad, wrt=("func", "a", "b", "args"), at=QUADS)
def quad(g, y, func, a, b, args=(), *, epsabs=1.49e-8, epsrel=1.49e-8, limit=50, points=None):
    """The estimate of the error is constant."""
    found = integral_adjoint(g[0], func, a, b, args, epsabs, epsrel, limit, points)
    return found


@forward(integrate.quad)
def quad_forward(
    func_dot,
    a_dot,
    b_dot,
    args_dot,
    y,
    func,
    a,
    b,
    args=(),
    *,
    epsabs=1.49e-8,
    epsrel=1.49e-8,
    limit=50,
    points=None,
):
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    parts = integral_tangents(
        func_dot, a_dot, b_dot, args_dot, func, a, b, args, lambda f: integrate.quad(f, a, b, **options)[0]
    )
    return (parts[0], 0.0), (parts[1], 0.0), (parts[2], 0.0), (parts[3], 0.0)


def bells(z, s):
    return np.exp(-s * z * z)


@reverse(
    integrate.quad_vec,
    wrt=("f", "a", "b", "args"),
    at=[case(bells, 0.2, 1.3, args=(positive(3),)), (np.cos, 0.2, 1.3)],
)
def quad_vec(g, y, f, a, b, epsabs=1e-200, epsrel=1e-8, norm="2", *, limit=10000, points=None, args=()):
    """The estimate of the error is constant."""
    found = integral_adjoint(g[0], f, a, b, args, max(epsabs, 1e-14), epsrel, min(limit, 1000), points)
    return found


@forward(integrate.quad_vec)
def quad_vec_forward(
    f_dot,
    a_dot,
    b_dot,
    args_dot,
    y,
    f,
    a,
    b,
    epsabs=1e-200,
    epsrel=1e-8,
    norm="2",
    *,
    limit=10000,
    points=None,
    args=(),
):
    parts = integral_tangents(
        f_dot,
        a_dot,
        b_dot,
        args_dot,
        f,
        a,
        b,
        args,
        lambda h: integrate.quad_vec(h, a, b, epsabs, epsrel, norm, points=points)[0],
    )
    return (parts[0], 0.0), (parts[1], 0.0), (parts[2], 0.0), (parts[3], 0.0)


def gauss_points(a, b, n):
    """The places and weights of Gauss-Legendre quadrature on [-1, 1], and the places on [a, b]."""
    x, w = np.polynomial.legendre.leggauss(n)
    return x, w, (b - a) * (x + 1) / 2 + a


@reverse(
    integrate.fixed_quad,
    wrt=("func", "a", "b", "args"),
    at=[(bells, 0.2, 1.3, (0.6,)), (np.cos, 0.2, 1.3, (), 3)],
)
def fixed_quad(g, y, func, a, b, args=(), n=5):
    x, w, z = gauss_points(a, b, n)
    values = func(z, *args)
    f_bar, bars = pullback(func, (z, *args), g[0] * (b - a) / 2 * w + 0 * values)
    z_bar, total = dense(bars[0], z), np.sum(w * values) / 2
    return (
        f_bar,
        np.sum(z_bar * (1 - x)) / 2 - g[0] * total,
        np.sum(z_bar * (1 + x)) / 2 + g[0] * total,
        bars[1:],
    )


@forward(integrate.fixed_quad)
def fixed_quad_forward(func_dot, a_dot, b_dot, args_dot, y, func, a, b, args=(), n=5):
    x, w, z = gauss_points(a, b, n)
    total = np.sum(w * func(z, *args)) / 2

    def moved(f_dot, z_dot, others):
        return (b - a) / 2 * np.sum(w * pushforward(func, (z, *args), f_dot, (z_dot, *others)))

    nothing = [0.0] * len(args)
    of_f = 0.0 if trees.is_zero(func_dot) else moved(func_dot, 0.0, nothing)
    of_args = moved(0.0, 0.0, args_dot) if isinstance(args_dot, (list, tuple)) and len(args) else 0.0
    of_a = moved(0.0, a_dot * (1 - x) / 2, nothing) - a_dot * total if a_dot else 0.0
    of_b = moved(0.0, b_dot * (1 + x) / 2, nothing) + b_dot * total if b_dot else 0.0
    return (of_f, None), (of_a, None), (of_b, None), (of_args, None)


def tilted(u, v, s):
    return s * u * v * v


@reverse(integrate.dblquad, wrt=("func", "args"), at=[(tilted, 0.0, 1.0, 0.0, 1.5, (0.6,))])
def dblquad(g, y, func, a, b, gfun, hfun, args=(), *, epsabs=1.49e-8, epsrel=1.49e-8):
    """The limits must be constant."""

    def bars(u, v):
        found = pullback(func, (u, v, *args), 1.0)
        return [found[0], found[1][2:]]

    v = inner_point(a, b)
    like = bars(inner_point(limit_at(gfun, v), limit_at(hfun, v)), v)
    found = []
    for k in range(size(like)):

        def part(u, v, k=k):
            return flat(bars(u, v), like)[k]

        found.append(g[0] * integrate.dblquad(part, a, b, gfun, hfun, epsabs=epsabs, epsrel=epsrel)[0])
    f_bar, args_bar = unflat(np.array(found), like)
    return f_bar, args_bar


def limit_at(limit, v):
    return limit(v) if callable(limit) else limit


@forward(integrate.dblquad)
def dblquad_forward(
    func_dot, args_dot, y, func, a, b, gfun, hfun, args=(), *, epsabs=1.49e-8, epsrel=1.49e-8
):
    def moved(f_dot, others):
        def slope(u, v):
            return pushforward(func, (u, v, *args), f_dot, (0.0, 0.0, *others))

        return integrate.dblquad(slope, a, b, gfun, hfun, epsabs=epsabs, epsrel=epsrel)[0]

    of_f = 0.0 if trees.is_zero(func_dot) else moved(func_dot, [0.0] * len(args))
    of_args = moved(0.0, args_dot) if isinstance(args_dot, (list, tuple)) and len(args) else 0.0
    return (of_f, 0.0), (of_args, 0.0)


# --- differential equations ---------------------------------------------------------------------------------

TOLERANCES = {"method": "LSODA", "rtol": 1e-10, "atol": 1e-12}


class Equation:
    """dy/dt = func(...), for the orders of arguments of `odeint` and `solve_ivp`."""

    def __init__(self, func, args, t_first):
        self.func, self.args, self.t_first = func, tuple(args), t_first

    def arguments(self, t, y):
        return (t, y, *self.args) if self.t_first else (y, t, *self.args)

    def slope(self, t, y):
        return np.asarray(self.func(*self.arguments(t, y)), float)

    def bars(self, t, y, g):
        """The cotangent of y, and those of the function and its further arguments."""
        f_bar, bars = pullback(self.func, self.arguments(t, y), g)
        return dense(bars[1 if self.t_first else 0], y), [f_bar, bars[2:]]

    def tangent(self, t, y, y_dot, f_dot, args_dot):
        dots = (0.0, y_dot) if self.t_first else (y_dot, 0.0)
        others = args_dot if isinstance(args_dot, (list, tuple)) else [0.0] * len(self.args)
        return np.asarray(pushforward(self.func, self.arguments(t, y), f_dot, (*dots, *others)), float)

    def adjoint(self, times, states, g):
        """The cotangents of the first state, of the parameters, and of the times, from those of all
        states."""
        n = states.shape[1]
        like = self.bars(times[0], states[0], np.ones(n))[1]
        state, total = np.zeros(n), np.zeros(size(like))
        t_bar = np.zeros(len(times))
        for i in range(len(times) - 1, 0, -1):
            t_bar[i] = g[i] @ self.slope(times[i], states[i])
            state = state + g[i]
            back = self.backwards(states[i - 1], times[i - 1], times[i], like)
            both = np.concatenate([state, total])
            end = integrate.solve_ivp(back, (times[i], times[i - 1]), both, **TOLERANCES).y[:, -1]
            state, total = end[:n], end[n:]
        t_bar[0] = -state @ self.slope(times[0], states[0])
        return state + g[0], unflat(total, like), t_bar

    def backwards(self, start, early, late, like):
        """The adjoint equation along the solution between two times."""
        path = integrate.solve_ivp(self.slope, (early, late), start, dense_output=True, **TOLERANCES).sol
        n = len(start)

        def slope(t, both):
            y_bar, bars = self.bars(t, path(t), both[:n])
            return -np.concatenate([np.ravel(y_bar), flat(bars, like)])

        return slope

    def tangents(self, times, states, start, f_dot, args_dot):
        """The tangents of all states, for that of the first state and those of the parameters."""
        n = states.shape[1]

        def along(t, both):
            y, y_dot = both[:n], both[n:]
            return np.concatenate([self.slope(t, y), self.tangent(t, y, y_dot, f_dot, args_dot)])

        found = [start]
        for i in range(len(times) - 1):
            both = np.concatenate([states[i], found[-1]])
            found.append(integrate.solve_ivp(along, (times[i], times[i + 1]), both, **TOLERANCES).y[n:, -1])
        return np.stack(found)


def decay(y, t, k):
    return np.array([-k * y[0] + y[1], -np.sin(y[0]) - t * y[1]])


def late_decay(t, y, k):
    return decay(y, t, k)


START, TIMES = np.array([1.0, 0.5]), np.array([0.0, 0.3, 0.7, 1.2])


@reverse(
    integrate.odeint,
    wrt=("func", "y0", "t", "args"),
    at=[case(decay, START, TIMES, (0.6,), rtol=1e-12, atol=1e-13)],
)
def odeint(g, y, func, y0, t, args=(), *, rtol=None, atol=None, mxstep=0, tfirst=False):
    """The adjoint equation along the solution, which is computed again between the given times."""
    found = Equation(func, args, tfirst).adjoint(np.asarray(t, float), y, g)
    return found[1][0], unbroadcast(found[0], np.asarray(y0)), unbroadcast(found[2], t), found[1][1]


@forward(integrate.odeint)
def odeint_forward(
    func_dot,
    y0_dot,
    t_dot,
    args_dot,
    y,
    func,
    y0,
    t,
    args=(),
    *,
    rtol=None,
    atol=None,
    mxstep=0,
    tfirst=False,
):
    equation, times, still = Equation(func, args, tfirst), np.asarray(t, float), np.zeros(y.shape[1])
    of_f = 0 * y if trees.is_zero(func_dot) else equation.tangents(times, y, still, func_dot, 0.0)
    of_y0, of_t, of_args = 0 * y, 0 * y, 0 * y
    if np.ndim(y0_dot) or np.ndim(y0) == 0 and y0_dot:
        of_y0 = equation.tangents(times, y, np.atleast_1d(y0_dot) + still, 0.0, 0.0)
    if np.ndim(t_dot):
        slopes = np.stack([equation.slope(time, state) for time, state in zip(times, y, strict=True)])
        of_t = slopes * np.reshape(t_dot, (-1, 1))
        of_t = of_t - equation.tangents(times, y, slopes[0] * t_dot[0], 0.0, 0.0)
    if isinstance(args_dot, (list, tuple)) and len(args):
        of_args = equation.tangents(times, y, still, 0.0, args_dot)
    return of_f, of_y0, of_t, of_args


@reverse(
    integrate.solve_ivp,
    wrt=("fun", "y0", "args"),
    at=[
        case(late_decay, (0.0, 1.2), START, "DOP853", TIMES, args=(0.6,), rtol=1e-12, atol=1e-13),
        case(late_decay, (0.0, 1.2), START, "DOP853", TIMES[1:], args=(0.6,), rtol=1e-12, atol=1e-13),
    ],
)
def solve_ivp(
    g, y, fun, t_span, y0, method="RK45", t_eval=None, *, args=None, rtol=1e-3, atol=1e-6, max_step=np.inf
):
    """The states at the times of the result, which are constant: the adjoint equation along the solution."""
    bars = part_of(g, "y")
    if trees.is_zero(bars):
        return 0.0, np.zeros(np.shape(y0)), [0.0] * len(args or ())
    times, states, g_states = leading(t_span, y0, y, bars)
    found = Equation(fun, args or (), True).adjoint(times, states, g_states)
    return found[1][0], unbroadcast(found[0], np.asarray(y0)), found[1][1]


def leading(t_span, y0, y, bars):
    """Times and states of a solution as rows, with the start in front if it is not among them."""
    times, states, g = np.asarray(y.t), y.y.T, np.asarray(bars).T
    if times[0] == t_span[0]:
        return times, states, g
    return (
        np.concatenate([[t_span[0]], times]),
        np.concatenate([np.reshape(y0, (1, -1)), states]),
        np.concatenate([np.zeros((1, states.shape[1])), g]),
    )


@forward(integrate.solve_ivp)
def solve_ivp_forward(
    fun_dot,
    y0_dot,
    args_dot,
    y,
    fun,
    t_span,
    y0,
    method="RK45",
    t_eval=None,
    *,
    args=None,
    rtol=1e-3,
    atol=1e-6,
    max_step=np.inf,
):
    times, states, _ = leading(t_span, y0, y, np.zeros_like(y.y))
    equation, still, skip = Equation(fun, args or (), True), np.zeros(states.shape[1]), len(times) - len(y.t)
    found = []
    for start, f_dot, others in (
        (still, fun_dot, 0.0),
        (y0_dot if np.ndim(y0_dot) else still, 0.0, 0.0),
        (still, 0.0, args_dot),
    ):
        idle = trees.is_zero(f_dot) and not isinstance(others, (list, tuple)) and not np.any(start)
        moved = np.zeros_like(states) if idle else equation.tangents(times, states, start, f_dot, others)
        found.append({"y": moved[skip:].T})
    return found[0], found[1], found[2]


nondifferentiable(integrate.newton_cotes)
