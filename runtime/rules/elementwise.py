"""Rules for NumPy's elementwise functions (NumPy manual, "Universal functions" and "Mathematical functions").

An elementwise rule returns the partial derivative with respect to each argument, given the result and the
arguments. Broadcasting is undone by whoever uses the rule, never here. Formulas: Abramowitz & Stegun,
chapters 4 and 6.

Where a denominator of the arguments alone may be 0, a rule divides by NumPy's functions: Python's `/` raises
an error for Python's numbers. For arrays the compiler writes these as operators.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic, positive
from srcgrad.runtime.rules.table import case, elementwise, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    bessel_i,
    larger,
    log_or_zero,
    lowered,
    ratio,
    sinc_slope,
    unbroadcast,
    weight,
)

X = generic(2, 3)
P = positive(2, 3)
U = generic(2, 3, low=-0.9, high=0.9)
Z = complexes(3)

LN2 = math.log(2)
LN10 = math.log(10)
DEGREE = math.pi / 180


# --- exponentials and logarithms ----------------------------------------------------------------------------


@elementwise(np.exp, at=[0.7, X, Z])
def exp(y, x):
    return y


@elementwise(np.exp2, at=[0.7, X])
def exp2(y, x):
    return y * LN2


@elementwise(np.expm1, at=[0.7, X, Z])
def expm1(y, x):
    return y + 1


@elementwise(np.log, at=[0.7, P, Z])
def log(y, x):
    return np.reciprocal(x)


@elementwise(np.log2, at=[0.7, P])
def log2(y, x):
    return np.reciprocal(x * LN2)


@elementwise(np.log10, at=[0.7, P])
def log10(y, x):
    return np.reciprocal(x * LN10)


@elementwise(np.log1p, at=[0.7, P, Z])
def log1p(y, x):
    return np.reciprocal(1 + x)


@elementwise(np.logaddexp, at=[(0.7, -0.4), (X, generic(3)), (800.0, [1.0, 801.0])])
def logaddexp(z, x, y):
    return weight(x, z), weight(y, z)


@elementwise(np.logaddexp2, at=[(0.7, -0.4), (X, generic(3))])
def logaddexp2(z, x, y):
    return weight(LN2 * x, LN2 * z), weight(LN2 * y, LN2 * z)


# --- powers and roots ---------------------------------------------------------------------------------------


@elementwise(np.sqrt, at=[0.7, P, Z])
def sqrt(y, x):
    return 0.5 / y


@elementwise(np.cbrt, at=[0.7, X])
def cbrt(y, x):
    return 1 / (3 * y * y)


@elementwise(np.square, at=[0.7, X, Z])
def square(y, x):
    return 2 * x


@elementwise(np.reciprocal, at=[0.7, X, Z])
def reciprocal(y, x):
    return -y * y


@elementwise(np.float_power, at=[(1.5, 2), (X, 2), (P, 0.5), (P, X), (2.0, X), (X, 0)])
def float_power(z, x, y):
    """Always in double precision, as the function itself."""
    return y * np.float_power(x, lowered(y)), z * log_or_zero(x)


@elementwise(np.hypot, at=[(0.7, -0.4), (X, generic(3))])
def hypot(z, x, y):
    """At the origin both partials are 0."""
    return ratio(x, z), ratio(y, z)


# --- trigonometric functions --------------------------------------------------------------------------------


@elementwise(np.sin, at=[0.7, X, Z])
def sin(y, x):
    return np.cos(x)


@elementwise(np.cos, at=[0.7, X, Z])
def cos(y, x):
    return -np.sin(x)


@elementwise(np.tan, at=[0.7, U, Z])
def tan(y, x):
    return 1 + y * y


@elementwise(np.arcsin, at=[0.7, U, Z])
def arcsin(y, x):
    return 1 / np.sqrt(1 - x * x)


@elementwise(np.arccos, at=[0.7, U, Z])
def arccos(y, x):
    return -1 / np.sqrt(1 - x * x)


@elementwise(np.arctan, at=[0.7, X, Z])
def arctan(y, x):
    return 1 / (1 + x * x)


@elementwise(np.arctan2, at=[(0.7, -0.4), (X, generic(3)), (-1.0, -2.0)])
def arctan2(z, y, x):
    """At the origin both partials are 0."""
    return ratio(x, x * x + y * y), ratio(-y, x * x + y * y)


@elementwise(np.deg2rad, np.radians, at=[70.0, X])
def radians(y, x):
    return DEGREE


@elementwise(np.rad2deg, np.degrees, at=[0.7, X])
def degrees(y, x):
    return 1 / DEGREE


@elementwise(np.sinc, at=[0.7, X, 0.0, [0.0, 1e-3, 0.4, 1.0]])
def sinc(y, x):
    return sinc_slope(x)


@elementwise(np.i0, shape="where", at=[0.7, X, [0.0, 3.0, 25.0]])
def i0(y, x):
    return bessel_i(1, x)


@reverse(
    np.unwrap,
    at=[generic(5, low=-4, high=4), case(generic(2, 4, low=-4, high=4), axis=0), case(X, period=1.0)],
)
def unwrap(g, y, p, discont=None, axis=-1, *, period=2 * math.pi):
    """The jumps that are added are constant."""
    return g


@forward(np.unwrap)
def unwrap_forward(p_dot, y, p, discont=None, axis=-1, *, period=2 * math.pi):
    return p_dot


# --- hyperbolic functions -----------------------------------------------------------------------------------


@elementwise(np.sinh, at=[0.7, X, Z])
def sinh(y, x):
    return np.cosh(x)


@elementwise(np.cosh, at=[0.7, X, Z])
def cosh(y, x):
    return np.sinh(x)


@elementwise(np.tanh, at=[0.0, 0.7, -3.0, X, Z])
def tanh(y, x):
    return 1 - y * y


@elementwise(np.arcsinh, at=[0.7, X, Z])
def arcsinh(y, x):
    return 1 / np.sqrt(x * x + 1)


@elementwise(np.arccosh, at=[1.7, 1 + P, Z])
def arccosh(y, x):
    return 1 / (np.sqrt(x - 1) * np.sqrt(x + 1))


@elementwise(np.arctanh, at=[0.7, U, Z])
def arctanh(y, x):
    return np.reciprocal(1 - x * x)


# --- choosing and rounding ----------------------------------------------------------------------------------


@elementwise(np.maximum, at=[(1.0, 2.0), ([1.0, 5.0], 3.0), (X, generic(3, seed=1))])
def maximum(z, x, y):
    """At a tie each side gets half: the rule stays symmetric in x and y."""
    return larger(x, y), larger(y, x)


@elementwise(np.minimum, at=[(1.0, 2.0), ([1.0, 5.0], 3.0), (X, generic(3, seed=1))])
def minimum(z, x, y):
    """At a tie each side gets half: the rule stays symmetric in x and y."""
    return larger(y, x), larger(x, y)


@elementwise(np.fmax, at=[(1.0, 2.0), (X, generic(3, seed=1)), ([np.nan, 1.0], [2.0, np.nan])])
def fmax(z, x, y):
    """At a tie each side gets half, a nan nothing."""
    return larger(x, y) * (x == x), larger(y, x) * (y == y)


@elementwise(np.fmin, at=[(1.0, 2.0), (X, generic(3, seed=1)), ([np.nan, 1.0], [2.0, np.nan])])
def fmin(z, x, y):
    """At a tie each side gets half, a nan nothing."""
    return larger(y, x) * (x == x), larger(x, y) * (y == y)


@elementwise(np.fabs, at=[1.5, -1.5, X])
def fabs(y, x):
    return np.sign(x)


@elementwise(np.copysign, at=[(1.5, -0.5), (X, generic(3, seed=1))])
def copysign(z, x, y):
    return np.sign(x) * np.copysign(1.0, y), 0


@elementwise(np.fmod, at=[(5.5, 2.0), (-5.5, 2.0), (X, P), (X, 0.7)])
def fmod(z, x, y):
    return 1, -np.trunc(np.divide(x, y))


@elementwise(np.heaviside, at=[(1.5, 0.5), (X, positive(3))])
def heaviside(z, x, h):
    return 0, x == 0


@elementwise(np.nextafter, at=[(1.5, 2.5), (X, generic(3))])
def nextafter(z, x, y):
    return 1, 0


@elementwise(np.nan_to_num, at=[1.5, X, case(X, nan=1.0)])
def nan_to_num(y, x, *, copy=True, nan=0.0, posinf=None, neginf=None):
    return np.isfinite(x)


@reverse(np.ldexp, linear=True, wrt="x", at=[(1.5, 3), (X, np.array([1, -2, 3])), (1.5, np.array([1, 2]))])
def ldexp(g, y, x, i):
    return unbroadcast(np.ldexp(g, i), x)


@reverse(np.frexp, at=[1.5, X])
def frexp(g, y, x):
    """The exponent is constant."""
    return np.ldexp(g[0], -y[1])


@forward(np.frexp)
def frexp_forward(x_dot, y, x):
    return np.ldexp(x_dot, -y[1]), np.zeros_like(y[1])


@reverse(np.modf, at=[1.5, X])
def modf(g, y, x):
    """The integral part is constant."""
    return g[0]


@forward(np.modf)
def modf_forward(x_dot, y, x):
    return x_dot, np.zeros_like(y[1])


@reverse(np.divmod, divmod, wrt=("x", "y"), at=[(5.5, 2.0), (X, 0.7), (X, positive(3))])
def divmod_(g, z, x, y):
    """The quotient is constant."""
    return unbroadcast(g[1], x), unbroadcast(-g[1] * z[0], y)


@forward(np.divmod)
def divmod_forward(x_dot, y_dot, z, x, y):
    return (0 * z[0], x_dot + 0 * z[1]), (0 * z[0], -z[0] * y_dot)


# --- complex numbers ----------------------------------------------------------------------------------------
# For z = x + iy a cotangent is du/dx - i du/dy (not conjugated), so a holomorphic function needs nothing
# special.


@reverse(np.conjugate, np.ndarray.conj, np.ndarray.conjugate, linear=True, alias="maybe", at=[X, Z, 1.5])
def conjugate(g, y, x):
    return np.conj(g)


@reverse(np.real, linear=True, alias="maybe", at=[X, Z])
def real(g, y, val):
    if np.iscomplexobj(val):
        return np.real(g) + 0j
    return g


@reverse(np.imag, linear=True, alias="maybe", at=[X, Z])
def imag(g, y, val):
    if np.iscomplexobj(val):
        return -1j * np.real(g)
    return np.zeros_like(val)


@reverse(np.angle, at=[X, Z, case(Z, deg=True)])
def angle(g, y, z, deg=False):
    """At 0 the derivative is taken as 0."""
    if np.iscomplexobj(z):
        return np.real(g) * ratio(-1j / DEGREE if deg else -1j, z)
    return np.zeros_like(z)


@forward(np.angle)
def angle_forward(z_dot, y, z, deg=False):
    if np.iscomplexobj(z):
        return np.real(z_dot * ratio(-1j / DEGREE if deg else -1j, z))
    return np.zeros_like(y)


@reverse(np.sign, at=[X, Z])
def sign(g, y, x):
    """For complex x the result is x / abs(x): what is radial in the cotangent is lost."""
    if np.iscomplexobj(x):
        return ratio(g - np.conj(y) * np.real(g * y), np.abs(x))
    return np.zeros_like(x)


@forward(np.sign)
def sign_forward(x_dot, y, x):
    if np.iscomplexobj(x):
        return ratio(x_dot - y * np.real(x_dot * np.conj(y)), np.abs(x))
    return np.zeros_like(x)


@reverse(np.real_if_close, alias="maybe", at=[X, Z])
def real_if_close(g, y, a, tol=100):
    return unbroadcast(g, a)


@forward(np.real_if_close)
def real_if_close_forward(a_dot, y, a, tol=100):
    return unbroadcast(a_dot, y)


# --- no derivative ------------------------------------------------------------------------------------------

nondifferentiable(
    np.floor, np.ceil, np.trunc, np.rint, np.fix, np.round, np.around, np.floor_divide, np.spacing
)
nondifferentiable(
    np.signbit, np.isfinite, np.isinf, np.isnan, np.isnat, np.isposinf, np.isneginf, np.iscomplex, np.isreal
)
nondifferentiable(
    np.iscomplexobj, np.isrealobj, np.isscalar, np.isclose, np.allclose, np.array_equal, np.array_equiv
)
nondifferentiable(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
nondifferentiable(np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
nondifferentiable(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift)
nondifferentiable(np.bitwise_count, np.gcd, np.lcm)
