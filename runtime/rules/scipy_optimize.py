"""Rules for roots and minima (SciPy manual, `scipy.optimize`): the implicit function theorem.

A root does not depend on where the search began, so starting points and brackets have derivative 0.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy import optimize

from srcgrad.runtime import trees
from srcgrad.runtime.rules.callbacks import (
    dense,
    flat,
    matched,
    part_of,
    pullback,
    pushforward,
    rows,
    unflat,
)
from srcgrad.runtime.rules.decompositions import lstsq
from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse

V = positive(3)


# --- roots --------------------------------------------------------------------------------------------------


def root_adjoint(g, f, x, args):
    """From f(x, p) = 0: a change of p moves x by -(df/dp) / (df/dx), element by element."""
    slope = dense(pullback(f, (x, *args), np.ones_like(x) if np.ndim(x) else 1.0)[1][0], x)
    f_bar, bars = pullback(f, (x, *args), -g / slope)
    return f_bar, matched(bars[1:], args)


def root_tangents(f_dot, args_dot, f, x, args):
    slope = dense(pullback(f, (x, *args), np.ones_like(x) if np.ndim(x) else 1.0)[1][0], x)
    nothing = [0.0] * len(args)
    of_f = 0.0 if trees.is_zero(f_dot) else -pushforward(f, (x, *args), f_dot, (0.0, *nothing)) / slope
    of_args = 0.0
    if isinstance(args_dot, (list, tuple)) and len(args):
        of_args = -pushforward(f, (x, *args), 0.0, (0.0, *args_dot)) / slope
    return of_f, of_args


def cubic(z, s):
    return z**3 + z - s


BRACKETED = [(cubic, 0.0, 2.0, (0.6,))]
BRACKETING = (optimize.brentq, optimize.brenth, optimize.bisect, optimize.ridder, optimize.toms748)


@reverse(*BRACKETING[:4], wrt=("f", "a", "b", "args"), at=BRACKETED)
def brentq(g, y, f, a, b, args=(), xtol=2e-12, rtol=8.881784197001252e-16, maxiter=100):
    f_bar, args_bar = root_adjoint(g, f, y, args)
    return f_bar, 0.0, 0.0, args_bar


@forward(*BRACKETING[:4])
def brentq_forward(
    f_dot, a_dot, b_dot, args_dot, y, f, a, b, args=(), xtol=2e-12, rtol=8.881784197001252e-16, maxiter=100
):
    of_f, of_args = root_tangents(f_dot, args_dot, f, y, args)
    return of_f, 0.0, 0.0, of_args


@reverse(optimize.toms748, wrt=("f", "a", "b", "args"), at=BRACKETED)
def toms748(g, y, f, a, b, args=(), k=1, xtol=2e-12, rtol=8.881784197001252e-16, maxiter=100):
    f_bar, args_bar = root_adjoint(g, f, y, args)
    return f_bar, 0.0, 0.0, args_bar


@forward(optimize.toms748)
def toms748_forward(
    f_dot,
    a_dot,
    b_dot,
    args_dot,
    y,
    f,
    a,
    b,
    args=(),
    k=1,
    xtol=2e-12,
    rtol=8.881784197001252e-16,
    maxiter=100,
):
    of_f, of_args = root_tangents(f_dot, args_dot, f, y, args)
    return of_f, 0.0, 0.0, of_args


@reverse(
    optimize.newton,
    wrt=("func", "x0", "args"),
    at=[case(cubic, 0.8, args=(0.6,), tol=1e-14), case(cubic, V, args=(V,), tol=1e-14)],
)
def newton(g, y, func, x0, fprime=None, args=(), tol=1.48e-8, maxiter=50, fprime2=None, x1=None, rtol=0.0):
    """For an array, one equation for each element."""
    f_bar, args_bar = root_adjoint(g, func, y, args)
    return f_bar, np.zeros_like(x0, dtype=float)[()], args_bar


@forward(optimize.newton)
def newton_forward(
    func_dot,
    x0_dot,
    args_dot,
    y,
    func,
    x0,
    fprime=None,
    args=(),
    tol=1.48e-8,
    maxiter=50,
    fprime2=None,
    x1=None,
    rtol=0.0,
):
    of_f, of_args = root_tangents(func_dot, args_dot, func, y, args)
    return of_f, 0.0, of_args


def system_adjoint(g, fun, x, args):
    """From fun(x, p) = 0 with Jacobian matrix J: the cotangent of fun's value is -J^-T g."""
    value = np.asarray(fun(x, *args))
    jacobian = rows(fun, (x, *args), value)
    inner = np.linalg.solve(jacobian.T, -np.ravel(g))
    f_bar, bars = pullback(fun, (x, *args), np.reshape(inner, value.shape))
    return f_bar, matched(bars[1:], args)


def system_tangents(fun_dot, args_dot, fun, x, args):
    value = np.asarray(fun(x, *args))
    jacobian = rows(fun, (x, *args), value)

    def solved(moved):
        return np.reshape(-np.linalg.solve(jacobian, np.ravel(moved)), np.shape(x))

    of_f = 0 * np.asarray(x)
    of_args = 0 * np.asarray(x)
    if not trees.is_zero(fun_dot):
        of_f = solved(pushforward(fun, (x, *args), fun_dot, (0.0, *[0.0] * len(args))))
    if isinstance(args_dot, (list, tuple)) and len(args):
        of_args = solved(pushforward(fun, (x, *args), 0.0, (0.0, *args_dot)))
    return of_f, of_args


def coupled(z, v):
    return z**3 + z - v + 0.1 * np.sum(z)


@reverse(optimize.fsolve, wrt=("func", "x0", "args"), at=[case(coupled, V, (V,), xtol=1e-13)])
def fsolve(g, y, func, x0, args=(), fprime=None, *, xtol=1.49012e-8, maxfev=0, factor=100):
    found = system_adjoint(g, func, y, args if isinstance(args, tuple) else (args,))
    return found[0], np.zeros(np.shape(x0)), found[1] if isinstance(args, tuple) else found[1][0]


@forward(optimize.fsolve)
def fsolve_forward(
    func_dot, x0_dot, args_dot, y, func, x0, args=(), fprime=None, *, xtol=1.49012e-8, maxfev=0, factor=100
):
    single = not isinstance(args, tuple)
    of_f, of_args = system_tangents(
        func_dot, (args_dot,) if single else args_dot, func, y, (args,) if single else args
    )
    return of_f, 0 * y, of_args


def solution_bar(g, name, *others):
    """The cotangent of an attribute of a result object; what is not among `others` must have none."""
    if not isinstance(g, dict):
        return 0.0
    for key, bar in g.items():
        if key not in (name, *others) and not trees.is_zero(bar) and np.any(bar):
            raise NotImplementedError(f"the derivative of the attribute {key!r} of an optimization's result")
    return part_of(g, name) if name in g else 0.0


@reverse(optimize.root, wrt=("fun", "x0", "args"), at=[case(coupled, V, (V,), tol=1e-13)])
def root(g, y, fun, x0, args=(), method="hybr", jac=None, tol=None, *, options=None):
    """The solution's cotangent; the residuals are 0."""
    if trees.is_zero(solution_bar(g, "x", "fun", "jac")):
        return 0.0, np.zeros(np.shape(x0)), [0.0] * len(args)
    found = system_adjoint(solution_bar(g, "x", "fun", "jac"), fun, y.x, args)
    return found[0], np.zeros(np.shape(x0)), found[1]


@forward(optimize.root)
def root_forward(
    fun_dot, x0_dot, args_dot, y, fun, x0, args=(), method="hybr", jac=None, tol=None, *, options=None
):
    of_f, of_args = system_tangents(fun_dot, args_dot, fun, y.x, args)
    return {"x": of_f, "fun": 0 * y.fun}, {"x": 0 * y.x, "fun": 0 * y.fun}, {"x": of_args, "fun": 0 * y.fun}


# --- minima -------------------------------------------------------------------------------------------------
# At a minimum the gradient in x is 0. The derivative of the gradient, along x and for the parameters, is a
# central difference of eighth order of first derivatives, right to about ten digits.

STEPS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def along(function, x, direction):
    """The derivative along a direction of a function whose values are vectors."""
    length = np.linalg.norm(direction)
    if length == 0:
        return 0 * function(x)
    h = 1e-2 * (1 + np.linalg.norm(x)) / length
    total = 0.0
    for step, share in STEPS:
        total = total + share * (function(x + step * h * direction) - function(x - step * h * direction))
    return total / h


class Stationary:
    """The equation that a gradient vanishes: that of `fun` pulled back from `g_of(place)`."""

    def __init__(self, fun, x, args, g_of):
        self.fun, self.x, self.args, self.g_of = fun, np.asarray(x, float), tuple(args), g_of
        found = self.bars(self.x)
        self.like = [found[0], found[1][1:]]

    def bars(self, x):
        return pullback(self.fun, (x, *self.args), self.g_of(x))

    def gradient(self, x):
        return np.ravel(dense(self.bars(x)[1][0], x))

    def parameters(self, x):
        found = self.bars(x)
        return flat([found[0], found[1][1:]], self.like)

    def hessian(self):
        return np.stack(
            [along(self.gradient, self.x, np.reshape(e, self.x.shape)) for e in np.eye(self.x.size)]
        )

    def adjoint(self, g):
        """The cotangents of the function and its further arguments from that of the stationary point."""
        inner = np.linalg.solve(self.hessian(), -np.ravel(g))
        found = along(self.parameters, self.x, np.reshape(inner, self.x.shape))
        return unflat(found, self.like)

    def tangent(self, f_dot, args_dot, value_dot):
        """The tangent of the stationary point. `value_dot` gives the change of the gradient for that of fun's
        value."""
        moved = value_dot(f_dot, args_dot)
        return np.reshape(np.linalg.solve(self.hessian(), -moved), self.x.shape)


def change_of_gradient(fun, x, args, f_dot, args_dot):
    """The gradient in x of the tangent of a scalar function, by differences along the axes."""
    x = np.asarray(x, float)
    others = args_dot if isinstance(args_dot, (list, tuple)) else [0.0] * len(args)

    def tangent(place):
        return np.reshape(pushforward(fun, (place, *args), f_dot, (0.0, *others)), (1,))

    return np.concatenate([along(tangent, x, np.reshape(e, x.shape)) for e in np.eye(x.size)])


def valley(z, v):
    return np.sum((z - v) ** 4 + (z - 0.5 * v) ** 2) + 0.1 * z[0] * z[1]


@reverse(optimize.minimize, wrt=("fun", "x0", "args"), at=[case(valley, V, (V,), tol=1e-13)])
def minimize(g, y, fun, x0, args=(), method=None, jac=None, hess=None, hessp=None, *, tol=None, options=None):
    """The cotangents of the minimum's place and of its value, without bounds and constraints."""
    f_bar, args_bar = 0.0, [0.0] * len(args)
    if not trees.is_zero(solution_bar(g, "x", "fun", "jac")):
        equation = Stationary(fun, y.x, args, lambda x: 1.0)
        f_bar, args_bar = equation.adjoint(g["x"])
    if not trees.is_zero(solution_bar(g, "fun", "x", "jac")):
        more, bars = pullback(fun, (y.x, *args), g["fun"])
        f_bar, args_bar = trees.add(f_bar, more), trees.add(args_bar, bars[1:])
    return f_bar, np.zeros(np.shape(x0)), matched(args_bar, args)


@forward(optimize.minimize)
def minimize_forward(
    fun_dot,
    x0_dot,
    args_dot,
    y,
    fun,
    x0,
    args=(),
    method=None,
    jac=None,
    hess=None,
    hessp=None,
    *,
    tol=None,
    options=None,
):
    hessian = Stationary(fun, y.x, args, lambda x: 1.0).hessian()
    found = []
    for f_dot, others in ((fun_dot, 0.0), (0.0, args_dot)):
        if trees.is_zero(f_dot) and not isinstance(others, (list, tuple)):
            found.append({"x": 0 * y.x, "fun": 0.0})
            continue
        moved = change_of_gradient(fun, y.x, args, f_dot, others)
        dots = others if isinstance(others, (list, tuple)) else [0.0] * len(args)
        value = pushforward(fun, (y.x, *args), f_dot, (0.0, *dots))
        found.append({"x": np.reshape(-np.linalg.solve(hessian, moved), y.x.shape), "fun": value})
    return found[0], {"x": 0 * y.x, "fun": 0.0}, found[1]


def misfits(z, v):
    return np.concatenate([z**3 - v, [z[0] * z[1] - 0.3]])


@reverse(
    optimize.least_squares,
    wrt=("fun", "x0", "args"),
    at=[case(misfits, V, "3-point", args=(V,), xtol=1e-15, ftol=1e-15, gtol=1e-15)],
)
def least_squares(
    g,
    y,
    fun,
    x0,
    jac="2-point",
    *,
    method="trf",
    ftol=1e-8,
    xtol=1e-8,
    gtol=1e-8,
    x_scale=None,
    max_nfev=None,
    args=(),
):
    """The cotangent of the minimum's place, without bounds and with the plain loss."""
    place, found = solution_bar(g, "x", "fun", "cost"), [0.0, [0.0] * len(args)]
    residual_bar = solution_bar(g, "fun", "x", "cost") + solution_bar(g, "cost", "x", "fun") * y.fun
    if np.any(residual_bar):
        f_bar, bars = pullback(fun, (y.x, *args), residual_bar)
        place, found = trees.add(place, bars[0]), [f_bar, bars[1:]]
    if not trees.is_zero(place):
        equation = Stationary(fun, y.x, args, lambda x: np.asarray(fun(x, *args)))
        found = trees.add(found, equation.adjoint(place))
    return found[0], np.zeros(np.shape(x0)), matched(found[1], args)


@forward(optimize.least_squares)
def least_squares_forward(
    fun_dot,
    x0_dot,
    args_dot,
    y,
    fun,
    x0,
    jac="2-point",
    *,
    method="trf",
    ftol=1e-8,
    xtol=1e-8,
    gtol=1e-8,
    x_scale=None,
    max_nfev=None,
    args=(),
):
    equation = Stationary(fun, y.x, args, lambda x: np.asarray(fun(x, *args)))
    hessian, found = equation.hessian(), []
    for f_dot, others in ((fun_dot, 0.0), (0.0, args_dot)):
        if trees.is_zero(f_dot) and not isinstance(others, (list, tuple)):
            found.append({"x": 0 * y.x, "fun": 0 * y.fun, "cost": 0.0})
            continue
        dots = others if isinstance(others, (list, tuple)) else [0.0] * len(args)

        def half(place, f_dot=f_dot, dots=dots):
            """The tangent of half the sum of squares."""
            moved = pushforward(fun, (place, *args), f_dot, (0.0, *dots))
            return np.reshape(np.sum(np.asarray(fun(place, *args)) * moved), (1,))

        moved = np.concatenate([along(half, y.x, np.reshape(e, y.x.shape)) for e in np.eye(y.x.size)])
        x_dot = np.reshape(-np.linalg.solve(hessian, moved), y.x.shape)
        residual_dot = pushforward(fun, (y.x, *args), f_dot, (x_dot, *dots))
        found.append({"x": x_dot, "fun": residual_dot, "cost": np.sum(y.fun * residual_dot)})
    return found[0], {"x": 0 * y.x, "fun": 0 * y.fun, "cost": 0.0}, found[1]


A3 = positive(4, 3)


@reverse(
    optimize.nnls,
    wrt=("A", "b"),
    at=[(A3, positive(4, seed=1)), (A3, A3 @ np.array([0.5, 0.0, 1.5]) + 0.1 * generic(4))],
)
def nnls(g, y, A, b, *, maxiter=None):
    """Least squares over the columns that are used; which these are is constant."""
    x, residual = y
    used = x > 0
    columns = A[:, used]
    solution = np.linalg.lstsq(columns, b, rcond=None)
    a_bar, b_bar = lstsq((g[0][used], 0 * solution[1], 0, 0 * solution[3]), solution, columns, b)
    whole = np.zeros_like(A)
    whole[:, used] = a_bar
    rest = (b - A @ x) * (g[1] / residual if residual else 0.0)
    return whole - np.outer(rest, x), b_bar + rest


@forward(optimize.nnls)
def nnls_forward(A_dot, b_dot, y, A, b, *, maxiter=None):
    x, residual = y
    used = x > 0
    p, rest = np.linalg.pinv(A[:, used]), b - A @ x
    unit = rest / residual if residual else 0 * rest
    found = []
    for a_dot, change in (
        (A_dot if np.ndim(A_dot) else 0 * A, 0 * b),
        (0 * A, b_dot if np.ndim(b_dot) else 0 * b),
    ):
        x_dot = np.zeros_like(x)
        x_dot[used] = p @ (change - a_dot @ x) + p @ (p.T @ (a_dot[:, used].T @ rest))
        found.append((x_dot, unit @ (change - a_dot @ x)))
    return found[0], found[1]


# --- the valley of Rosenbrock -------------------------------------------------------------------------------


@reverse(optimize.rosen, at=[V, generic(4), generic(3, 2)])
def rosen(g, y, x):
    return g * optimize.rosen_der(x) if np.ndim(x) == 1 else g * rosen_slope(x)


def rosen_slope(x):
    """The gradient along the first axis."""
    inner = np.zeros_like(x)
    inner[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    inner[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return inner


@forward(optimize.rosen)
def rosen_forward(x_dot, y, x):
    return np.sum(rosen_slope(np.asarray(x)) * x_dot, axis=0)


@reverse(optimize.rosen_der, at=[V, generic(4)])
def rosen_der(g, y, x):
    return optimize.rosen_hess_prod(x, g)


@forward(optimize.rosen_der)
def rosen_der_forward(x_dot, y, x):
    return optimize.rosen_hess_prod(x, x_dot)


nondifferentiable(optimize.linear_sum_assignment)
