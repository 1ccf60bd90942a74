"""Rules for the functions of the module `math`, on Python numbers.

They use `math` itself, so that scalar code stays scalar and fast. Formulas: Abramowitz & Stegun, chapters 4,
6 and 7.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

from srcgrad.runtime.rules.table import case, elementwise, forward, nondifferentiable, reverse
from srcgrad.runtime.support import digamma, log_or_zero, lowered, power_slope, ratio

LN2 = math.log(2)
LN10 = math.log(10)
DEGREE = math.pi / 180
ROOT = 2 / math.sqrt(math.pi)


@elementwise(math.exp, at=[0.7, -1.3])
def exp(y, x):
    return y


if hasattr(math, "exp2"):

    @elementwise(math.exp2, at=[0.7, -1.3])
    def exp2(y, x):
        return y * LN2


@elementwise(math.expm1, at=[0.7, -1.3])
def expm1(y, x):
    return y + 1


@reverse(math.log, wrt=("x", "base"), at=[0.7, (3.5, 2.0), (3.5, 10)])
def log(g, y, x, base=None):
    if base is None:
        return g / x, None
    return g / (x * math.log(base)), -g * y / (base * math.log(base))


@forward(math.log)
def log_forward(x_dot, base_dot, y, x, base=None):
    if base is None:
        return x_dot / x, None
    return x_dot / (x * math.log(base)), -base_dot * y / (base * math.log(base))


@elementwise(math.log2, at=[0.7, 3.5])
def log2(y, x):
    return 1 / (x * LN2)


@elementwise(math.log10, at=[0.7, 3.5])
def log10(y, x):
    return 1 / (x * LN10)


@elementwise(math.log1p, at=[0.7, -0.3])
def log1p(y, x):
    return 1 / (1 + x)


@elementwise(math.sqrt, at=[0.7, 3.5])
def sqrt(y, x):
    return 0.5 / y if y else math.inf


if hasattr(math, "cbrt"):

    @elementwise(math.cbrt, at=[0.7, -3.5])
    def cbrt(y, x):
        return 1 / (3 * y * y) if y else math.inf


@elementwise(math.pow, at=[(1.5, 2.0), (-1.5, 3), (1.3, 2.7), (0.4, -1.2)])
def power(z, x, y):
    return power_slope(x, y, lowered(y)), z * log_or_zero(x)


@elementwise(math.sin, at=[0.7, -1.3])
def sin(y, x):
    return math.cos(x)


@elementwise(math.cos, at=[0.7, -1.3])
def cos(y, x):
    return -math.sin(x)


@elementwise(math.tan, at=[0.7, -1.3])
def tan(y, x):
    return 1 + y * y


@elementwise(math.asin, at=[0.7, -0.3])
def asin(y, x):
    return 1 / math.sqrt(1 - x * x) if abs(x) < 1 else math.inf


@elementwise(math.acos, at=[0.7, -0.3])
def acos(y, x):
    return -1 / math.sqrt(1 - x * x) if abs(x) < 1 else -math.inf


@elementwise(math.atan, at=[0.7, -1.3])
def atan(y, x):
    return 1 / (1 + x * x)


@elementwise(math.atan2, at=[(0.7, -0.4), (-1.3, 2.0)])
def atan2(z, y, x):
    """At the origin both partials are 0."""
    return ratio(x, x * x + y * y), ratio(-y, x * x + y * y)


@elementwise(math.sinh, at=[0.7, -1.3])
def sinh(y, x):
    return math.cosh(x)


@elementwise(math.cosh, at=[0.7, -1.3])
def cosh(y, x):
    return math.sinh(x)


@elementwise(math.tanh, at=[0.7, -1.3])
def tanh(y, x):
    return 1 - y * y


@elementwise(math.asinh, at=[0.7, -1.3])
def asinh(y, x):
    return 1 / math.sqrt(x * x + 1)


@elementwise(math.acosh, at=[1.7, 3.3])
def acosh(y, x):
    return 1 / math.sqrt((x - 1) * (x + 1)) if x > 1 else math.inf


@elementwise(math.atanh, at=[0.7, -0.3])
def atanh(y, x):
    return 1 / (1 - x * x)


@elementwise(math.degrees, at=[0.7])
def degrees(y, x):
    return 1 / DEGREE


@elementwise(math.radians, at=[70.0])
def radians(y, x):
    return DEGREE


@elementwise(math.erf, at=[0.7, -1.3])
def erf(y, x):
    return ROOT * math.exp(-x * x)


@elementwise(math.erfc, at=[0.7, -1.3])
def erfc(y, x):
    return -ROOT * math.exp(-x * x)


@elementwise(math.gamma, at=[0.7, 3.3, -1.3])
def gamma(y, x):
    return y * digamma(x)


@elementwise(math.lgamma, at=[0.7, 3.3, -1.3])
def lgamma(y, x):
    return digamma(x)


@elementwise(math.fabs, at=[0.7, -1.3])
def fabs(y, x):
    return (x > 0) - (x < 0)


@elementwise(math.copysign, at=[(0.7, -1.3), (-0.7, 1.3)])
def copysign(z, x, y):
    return ((x > 0) - (x < 0)) * math.copysign(1.0, y), 0


@elementwise(math.fmod, at=[(5.5, 2.0), (-5.5, 2.0)])
def fmod(z, x, y):
    return 1, (z - x) / y if y else math.nan


@elementwise(math.remainder, at=[(5.3, 2.0), (-5.3, 2.0)])
def remainder(z, x, y):
    return 1, (z - x) / y if y else math.nan


@elementwise(math.ldexp, at=[(0.7, 3)])
def ldexp(z, x, i):
    return 2.0**i, None


@reverse(math.frexp, at=[5.3, -0.7])
def frexp(g, y, x):
    return math.ldexp(g[0], -y[1])


@forward(math.frexp)
def frexp_forward(x_dot, y, x):
    return math.ldexp(x_dot, -y[1]), 0


@reverse(math.modf, at=[5.3, -0.7])
def modf(g, y, x):
    return g[0]


@forward(math.modf)
def modf_forward(x_dot, y, x):
    return x_dot, 0.0


@elementwise(math.nextafter, at=[(0.7, 1.0)])
def nextafter(z, x, y):
    return 1, 0


@reverse(math.hypot, wrt="coordinates", at=[(0.7, -0.4), (0.7, -0.4, 1.3), (-2.0,)])
def hypot(g, y, *coordinates):
    """At the origin the derivative is taken as 0."""
    parts = [g * ratio(x, y) for x in coordinates]
    return parts


@forward(math.hypot)
def hypot_forward(coordinates_dot, y, *coordinates):
    terms = [x_dot * ratio(x, y) for x_dot, x in zip(coordinates_dot, coordinates, strict=True)]
    return sum(terms)


@reverse(math.fsum, linear=True, at=[((0.7, -0.4, 1.3),)])
def fsum(g, y, seq):
    return [g] * len(seq)


@reverse(math.prod, at=[((0.7, -0.4, 1.3),), ((0.7, 0.0, 1.3),), case((0.7, 0.5), start=2.0)])
def prod(g, y, iterable, *, start=1):
    parts = [g * start * others for others in products_of_others(iterable)]
    return parts


@forward(math.prod)
def prod_forward(iterable_dot, y, iterable, *, start=1):
    terms = [
        start * x_dot * others
        for x_dot, others in zip(iterable_dot, products_of_others(iterable), strict=True)
    ]
    return sum(terms)


def products_of_others(factors):
    return [math.prod([*factors[:i], *factors[i + 1 :]]) for i in range(len(factors))]


@reverse(math.dist, wrt=("p", "q"), at=[((0.7, -0.4, 1.3), (0.1, 0.2, -0.5))])
def dist(g, y, p, q):
    """Where the points agree the derivative is taken as 0."""
    first = [g * ratio(a - b, y) for a, b in zip(p, q, strict=True)]
    second = [-part for part in first]
    return first, second


@forward(math.dist)
def dist_forward(p_dot, q_dot, y, p, q):
    along = [ratio(a - b, y) for a, b in zip(p, q, strict=True)]
    of_p = math.fsum([a * d for a, d in zip(along, p_dot, strict=True)]) if p_dot else 0.0
    of_q = math.fsum([a * d for a, d in zip(along, q_dot, strict=True)]) if q_dot else 0.0
    return of_p, -of_q


if hasattr(math, "sumprod"):

    @reverse(math.sumprod, wrt=("p", "q"), at=[((0.7, -0.4, 1.3), (0.1, 0.2, -0.5))])
    def sumprod(g, y, p, q):
        first, second = [g * b for b in q], [g * a for a in p]
        return first, second

    @forward(math.sumprod)
    def sumprod_forward(p_dot, q_dot, y, p, q):
        return math.sumprod(p_dot, q), math.sumprod(p, q_dot)


if hasattr(math, "fma"):

    @elementwise(math.fma, at=[(0.7, -0.4, 1.3)])
    def fma(w, x, y, z):
        return y, x, 1


nondifferentiable(math.floor, math.ceil, math.trunc, math.ulp)
nondifferentiable(math.isfinite, math.isinf, math.isnan, math.isclose)
nondifferentiable(math.factorial, math.comb, math.perm, math.gcd, math.lcm, math.isqrt)
