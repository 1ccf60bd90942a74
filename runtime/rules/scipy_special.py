"""Rules for special functions (SciPy manual, `scipy.special`).

Formulas: Abramowitz & Stegun; NIST Digital Library of Mathematical Functions (dlmf.nist.gov), by chapter.
Some parameters (orders and shapes) have no derivative in closed form: theirs is a central difference of
eighth order, right to about ten digits, and the rule says so by calling `difference`.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import special

from srcgrad.runtime import arrays
from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import case, elementwise, forward, nondifferentiable, reverse
from srcgrad.runtime.support import expand, lowered, ratio, unbroadcast, weight

X = generic(3)
P = positive(3)
U = generic(3, low=0.15, high=0.85)
ROOT_PI = math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2 * math.pi)
LN2, LN10 = math.log(2), math.log(10)
DEGREE = math.pi / 180


def difference(function, args, k, scale=1.0):
    """The derivative of `function(*args)` for `args[k]`, by central differences of eighth order.

    `scale` is the distance over which the function changes appreciably (and stays defined).
    """
    h = 0.02 * scale
    total = 0.0
    for step, share in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
        above = function(*args[:k], args[k] + step * h, *args[k + 1 :])
        below = function(*args[:k], args[k] - step * h, *args[k + 1 :])
        total = total + share * (above - below)
    return total / h


def like(value, y):
    """`value` in the precision of the result `y`: parameters that are Python numbers do not raise it."""
    dtype = np.result_type(y)
    return (
        value
        if dtype == np.result_type(value) or dtype.kind not in "fc"
        else np.asarray(value).astype(dtype)[()]
    )


def scale_of(x):
    """A distance that keeps a positive parameter positive."""
    return np.minimum(1.0, np.abs(x))


# --- exponentials, logarithms, entropies --------------------------------------------------------------------


@elementwise(special.expit, at=[0.7, X, 800.0])
def expit(y, x):
    return y * (1 - y)


@elementwise(special.logit, at=[0.7, U])
def logit(y, x):
    return 1 / (x * (1 - x))


@elementwise(special.log_expit, at=[0.7, X, -50.0])
def log_expit(y, x):
    return special.expit(-x)


if hasattr(special, "softplus"):

    @elementwise(special.softplus, at=[0.7, X, -50.0])
    def softplus(y, x):
        return special.expit(x)


@elementwise(special.exp2, at=[0.7, X])
def exp2(y, x):
    return y * LN2


@elementwise(special.exp10, at=[0.7, X])
def exp10(y, x):
    return y * LN10


@elementwise(special.expm1, at=[0.7, X])
def expm1(y, x):
    return y + 1


@elementwise(special.log1p, at=[0.7, P])
def log1p(y, x):
    return 1 / (1 + x)


@elementwise(special.cbrt, at=[0.7, X])
def cbrt(y, x):
    return 1 / (3 * y * y)


@elementwise(special.cosm1, at=[0.7, X])
def cosm1(y, x):
    return -np.sin(x)


@elementwise(special.exprel, at=[0.7, X, [1e-3, 0.0, -1e-5]])
def exprel(y, x):
    """(exp(x) - y) / x; near 0 through 1F1(2; 3; x) / 2."""
    return special.hyp1f1(2, 3, x) / 2


@elementwise(special.powm1, at=[(1.5, 2.3), (P, X)])
def powm1(z, x, y):
    return y * np.power(x, lowered(y)), (1 + z) * np.log(x)


@elementwise(special.xlogy, at=[(1.5, 2.5), (X, P), (0.0, 1.5)])
def xlogy(z, x, y):
    return np.log(y), ratio(x, y)


@elementwise(special.xlog1py, at=[(1.5, 2.5), (X, P), (0.0, 1.5)])
def xlog1py(z, x, y):
    return np.log1p(y), ratio(x, 1 + y)


@elementwise(special.entr, at=[0.7, P])
def entr(y, x):
    return -np.log(x) - 1


@elementwise(special.rel_entr, at=[(1.5, 2.5), (P, U)])
def rel_entr(z, x, y):
    return np.log(x / y) + 1, -x / y


@elementwise(special.kl_div, at=[(1.5, 2.5), (P, U)])
def kl_div(z, x, y):
    return np.log(x / y), 1 - x / y


@elementwise(special.huber, at=[(1.5, 0.7), (0.5, X), (U, X)])
def huber(z, delta, r):
    return np.maximum(np.abs(r) - delta, 0), np.clip(r, -delta, delta)


@elementwise(special.pseudo_huber, at=[(1.5, 0.7), (0.5, X), (U, X)])
def pseudo_huber(z, delta, r):
    return 2 * z / delta - r * r / (delta * np.hypot(1, r / delta)), r / np.hypot(1, r / delta)


@elementwise(special.boxcox, at=[(1.5, 0.7), (P, X), (P, 0.0), (P, 1e-4)])
def boxcox(y, x, lmbda):
    return x ** (lmbda - 1), boxcox_slope(np.log(x), lmbda)


@elementwise(special.boxcox1p, at=[(1.5, 0.7), (P, X), (P, 0.0)])
def boxcox1p(y, x, lmbda):
    return (1 + x) ** (lmbda - 1), boxcox_slope(np.log1p(x), lmbda)


def boxcox_slope(log, lmbda):
    """The derivative of (exp(lmbda log) - 1) / lmbda for lmbda."""
    return log * log * exprel(None, lmbda * log)


@elementwise(special.inv_boxcox, at=[(0.5, 0.7), (P, 0.4), (P, 0.0), (0.3, -0.5)])
def inv_boxcox(x, y, lmbda):
    return x / (1 + lmbda * y), like(x * inv_boxcox_slope(y, lmbda), x)


@elementwise(special.inv_boxcox1p, at=[(0.5, 0.7), (P, 0.4), (P, 0.0)])
def inv_boxcox1p(x, y, lmbda):
    return (1 + x) / (1 + lmbda * y), like((1 + x) * inv_boxcox_slope(y, lmbda), x)


def inv_boxcox_slope(y, lmbda):
    """The derivative of log(1 + t) / t at t = lmbda y, times y^2."""
    t = lmbda * y
    return -y * y * special.hyp2f1(2, 2, 3, -t) / 2


@reverse(
    special.logsumexp,
    wrt=("a", "b"),
    at=[
        *[X, generic(2, 3), case(generic(2, 3), axis=1), case(generic(2, 3), axis=(0, 1), keepdims=True)],
        *[case(X, b=P), case(generic(2, 3), axis=0, b=positive(2, 1)), [0.0, -np.inf, 1.0]],
        *[case(X, return_sign=True), case(generic(2, 3), axis=1, b=-positive(2, 3), return_sign=True)],
    ],
)
def logsumexp(g, y, a, axis=None, b=None, keepdims=False, return_sign=False):
    """Where all of `a` is -inf the derivative is taken as 0; the sign is constant."""
    if return_sign:
        return logsumexp(g[0] * y[1], y[0], a, axis, b, keepdims)
    if b is None:
        return expand(g, a, axis, keepdims) * weight(a, expand(y, a, axis, keepdims)), None
    share = expand(g, a, axis, keepdims) * weight(a, expand(y, a, axis, keepdims))
    return share * b, unbroadcast(share, b)


@forward(special.logsumexp)
def logsumexp_forward(a_dot, b_dot, y, a, axis=None, b=None, keepdims=False, return_sign=False):
    if return_sign:
        of_a, of_b = logsumexp_forward(a_dot, b_dot, y[0], a, axis, b, keepdims)
        return (of_a * y[1], 0 * y[1]), None if b is None else (of_b * y[1], 0 * y[1])
    share = weight(a, expand(y, a, axis, keepdims))
    if b is None:
        return np.sum(a_dot * share, axis=axis, keepdims=keepdims), None
    return (
        np.sum(a_dot * share * b, axis=axis, keepdims=keepdims),
        np.sum(b_dot * share, axis=axis, keepdims=keepdims),
    )


@reverse(
    special.softmax, at=[X, generic(2, 3), case(generic(2, 3), axis=1), case(generic(2, 3), axis=(0, 1))]
)
def softmax(g, y, x, axis=None):
    return y * (g - np.sum(g * y, axis=axis, keepdims=True))


@forward(special.softmax)
def softmax_forward(x_dot, y, x, axis=None):
    return y * (x_dot - np.sum(x_dot * y, axis=axis, keepdims=True))


@reverse(special.log_softmax, at=[X, generic(2, 3), case(generic(2, 3), axis=1)])
def log_softmax(g, y, x, axis=None):
    return g - np.exp(y) * np.sum(g, axis=axis, keepdims=True)


@forward(special.log_softmax)
def log_softmax_forward(x_dot, y, x, axis=None):
    return x_dot - np.sum(np.exp(y) * x_dot, axis=axis, keepdims=True)


# --- error functions ----------------------------------------------------------------------------------------


@elementwise(special.erf, at=[0.7, X])
def erf(y, x):
    return 2 / ROOT_PI * np.exp(-x * x)


@elementwise(special.erfc, at=[0.7, X])
def erfc(y, x):
    return -2 / ROOT_PI * np.exp(-x * x)


@elementwise(special.erfcx, at=[0.7, X])
def erfcx(y, x):
    return 2 * x * y - 2 / ROOT_PI


@elementwise(special.erfi, at=[0.7, X])
def erfi(y, x):
    return 2 / ROOT_PI * np.exp(x * x)


@elementwise(special.erfinv, at=[0.7, U])
def erfinv(y, x):
    return ROOT_PI / 2 * np.exp(y * y)


@elementwise(special.erfcinv, at=[0.7, U])
def erfcinv(y, x):
    return -ROOT_PI / 2 * np.exp(y * y)


@elementwise(special.dawsn, at=[0.7, X])
def dawsn(y, x):
    return 1 - 2 * x * y


@elementwise(special.wofz, shape=None, at=[0.7, X, X + 0.5j])
def wofz(y, z):
    return -2 * z * y + 2j / ROOT_PI


@elementwise(special.ndtr, at=[0.7, X])
def ndtr(y, x):
    return np.exp(-x * x / 2) / ROOT_2PI


@elementwise(special.log_ndtr, at=[0.7, X, -30.0])
def log_ndtr(y, x):
    return np.exp(-x * x / 2 - y) / ROOT_2PI


@elementwise(special.ndtri, at=[0.7, U])
def ndtri(x, y):
    return ROOT_2PI * np.exp(x * x / 2)


@elementwise(special.ndtri_exp, at=[-0.7, -P])
def ndtri_exp(x, y):
    return ROOT_2PI * np.exp(y + x * x / 2)


@elementwise(special.owens_t, at=[(0.7, 1.3), (X, P)])
def owens_t(z, h, a):
    return (
        -np.exp(-h * h / 2) * special.erf(a * h / math.sqrt(2)) / (2 * ROOT_2PI),
        np.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
    )


@elementwise(special.voigt_profile, at=[(0.7, 1.3, 0.4), (X, P, U)])
def voigt_profile(y, x, sigma, gamma):
    """The real part of w((x + i gamma) / (sigma sqrt 2)) / (sigma sqrt(2 pi))."""
    return (
        np.real(voigt_slope(x, sigma, gamma)),
        -y / sigma - np.real((x + 1j * gamma) * voigt_slope(x, sigma, gamma)) / sigma,
        -np.imag(voigt_slope(x, sigma, gamma)),
    )


def voigt_slope(x, sigma, gamma):
    z = (x + 1j * gamma) / (sigma * math.sqrt(2))
    return (-2 * z * special.wofz(z) + 2j / ROOT_PI) / (sigma * sigma * 2 * ROOT_PI)


# --- gamma and beta functions -------------------------------------------------------------------------------


@elementwise(special.gamma, at=[0.7, P, -1.3])
def gamma(y, x):
    return y * special.psi(x)


@elementwise(special.gammaln, special.loggamma, at=[0.7, P])
def gammaln(y, x):
    return special.psi(x)


@elementwise(special.rgamma, at=[0.7, P, -1.3, [0.0, -1.0, -2.0]])
def rgamma(y, x):
    return rgamma_slope(y, x)


def rgamma_slope(y, x):
    """Below 1/2 by reflection (DLMF 5.5.3), for the poles of gamma: there it is (-1)^n n!, x = -n."""
    low = x < 0.5
    psi, angle = special.psi(np.where(low, 1 - x, x)), math.pi * x
    turned = special.gamma(np.where(low, 1 - x, 1)) * (np.cos(angle) - psi * np.sin(angle) / math.pi)
    return np.where(low, turned, -y * psi)[()]


@elementwise(special.psi, at=[0.7, P, -1.3])
def psi(y, x):
    return trigamma(x)


def trigamma(x):
    """For negative x by reflection (6.4.7)."""
    negative = np.less(x, 0)
    size = arrays.special(x).zeta(2.0, np.where(negative, 1 - x, x))
    return np.where(negative, (math.pi / np.sin(math.pi * np.where(negative, x, 0.5))) ** 2 - size, size)[()]


@elementwise(trigamma, at=[0.7, P, -1.3])
def trigamma_(y, x):
    return like(special.polygamma(2, x), y)


@elementwise(special.polygamma, shape="where", at=[(1, 0.7), (2, P)])
def polygamma(y, n, x):
    return None, special.polygamma(n + 1, x)


@elementwise(special.multigammaln, at=[(1.7, 2), (P + 1, 3)])
def multigammaln(y, a, d):
    return like(multigammaln_slope(a, d), y), None


def multigammaln_slope(a, d):
    return sum(special.psi(a - j / 2) for j in range(int(d)))


@elementwise(special.beta, at=[(0.7, 1.3), (P, U)])
def beta(y, a, b):
    return y * (special.psi(a) - special.psi(a + b)), y * (special.psi(b) - special.psi(a + b))


@elementwise(special.betaln, at=[(0.7, 1.3), (P, U)])
def betaln(y, a, b):
    return special.psi(a) - special.psi(a + b), special.psi(b) - special.psi(a + b)


# Where a gamma function in a denominator may have a pole, the slopes below go by the reflection formula
# 1 / Gamma(x) = Gamma(1 - x) sin(pi x) / pi (DLMF 5.5.3): they and their own derivatives hold there too.


@elementwise(special.binom, at=[(4.3, 1.7), (P + 2, U), (3.0, [5.0, -2.0, 2.0]), (-0.3, [0.9, 2.0, -3.0])])
def binom(y, n, k):
    return like(binom_by_n(y, n, k), y), like(binom_by_k(y, n, k), y)


def binom_by_n(y, n, k):
    m = n - k + 1
    low = m < 0.5
    beta, psi = special.beta(n + 1, np.where(low, k - n, 1)), special.psi(np.where(low, k - n, m))
    slope = special.psi(n + 1) - psi
    turned = beta * (slope * np.sin(math.pi * m) / math.pi + np.cos(math.pi * m))
    return np.where(low, turned, y * slope)[()]


def binom_by_k(y, n, k):
    m = n - k + 1
    low, under = m < 0.5, k < -0.5
    slope = special.psi(np.where(low, k - n, m)) - special.psi(np.where(under & (m >= 0.5), -k, k + 1))
    angle = math.pi * np.where(low, m, k + 1)
    beta = special.beta(n + 1, np.where(low, k - n, np.where(under, -k, 1)))
    turned = beta * (slope * np.sin(angle) / math.pi + np.where(low, -1, 1) * np.cos(angle))
    return np.where(low | under, turned, y * slope)[()]


@elementwise(special.poch, at=[(1.3, 1.7), (P, U), ([-1.0, -2.3, 0.0], 3.4), (-2.3, [1.2, 2.0])])
def poch(y, z, m):
    return like(poch_by_z(y, z, m), y), y * special.psi(z + m)


def poch_by_z(y, z, m):
    low = z < 0.5
    both = low & (z + m < 0.5)
    one = low & (z + m >= 0.5)
    slope = special.psi(np.where(both, 1 - z - m, z + m)) - special.psi(np.where(low, 1 - z, z))
    bent = both & (m != np.floor(m))  # else the two cotangents are equal
    start, end = np.where(bent, z, 0.25), np.where(bent, z + m, 0.25)
    slope = slope + math.pi * (1 / np.tan(math.pi * start) - 1 / np.tan(math.pi * end))
    scale = np.exp(special.gammaln(np.where(one, z + m, 1)) + special.gammaln(np.where(one, 1 - z, 1)))
    turned = scale * (slope * np.sin(math.pi * z) / math.pi + np.cos(math.pi * z))
    return np.where(one, turned, y * slope)[()]


def where_any(y, slope):
    """`y * slope`, and 0 where `y` is 0, as it is all around."""
    return np.where(y == 0, 0, y * slope)[()]


@elementwise(special.comb, at=[(4.3, 1.7), (P + 2, U), (3.0, 5.0)])
def comb(y, N, k, *, exact=False, repetition=False):
    n = N + k - 1 if repetition else N
    by_n = special.psi(n + 1) - special.psi(n - k + 1)
    by_k = special.psi((n if repetition else n - k) + 1) - special.psi(k + 1)
    return where_any(y, by_n), where_any(y, by_k)


@elementwise(special.perm, at=[(4.3, 1.7), (P + 2, U), (3.0, 5.0)])
def perm(y, N, k, *, exact=False):
    after = special.psi(N - k + 1)
    return where_any(y, special.psi(N + 1) - after), where_any(y, after)


@elementwise(special.factorial, at=[1.3, P, -1.0])
def factorial(y, n, *, exact=False):
    return where_any(y, special.psi(n + 1))


def gamma_density(a, x):
    """x^(a - 1) exp(-x) / Gamma(a)."""
    return np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))


def beta_density(a, b, x):
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))


SHAPES = [(1.3, 0.7), (P, U), (2.5, P)]


@elementwise(special.gammainc, at=SHAPES)
def gammainc(y, a, x):
    return like(difference(special.gammainc, (a, x), 0, scale_of(a)), y), like(gamma_density(a, x), y)


@elementwise(special.gammaincc, at=SHAPES)
def gammaincc(y, a, x):
    return like(difference(special.gammaincc, (a, x), 0, scale_of(a)), y), like(-gamma_density(a, x), y)


@elementwise(special.gammaincinv, at=[(1.3, 0.7), (P, U)])
def gammaincinv(x, a, y):
    return (
        like(-difference(special.gammainc, (a, x), 0, scale_of(a)) / gamma_density(a, x), x),
        like(1 / gamma_density(a, x), x),
    )


@elementwise(special.gammainccinv, at=[(1.3, 0.7), (P, U)])
def gammainccinv(x, a, y):
    return (
        like(difference(special.gammaincc, (a, x), 0, scale_of(a)) / gamma_density(a, x), x),
        like(-1 / gamma_density(a, x), x),
    )


TRIPLES = [(1.3, 0.7, 0.4), (P, P[::-1], U)]


@elementwise(special.betainc, at=TRIPLES)
def betainc(y, a, b, x):
    return (
        like(difference(special.betainc, (a, b, x), 0, scale_of(a)), y),
        like(difference(special.betainc, (a, b, x), 1, scale_of(b)), y),
        like(beta_density(a, b, x), y),
    )


@elementwise(special.betaincc, at=TRIPLES)
def betaincc(y, a, b, x):
    return (
        like(difference(special.betaincc, (a, b, x), 0, scale_of(a)), y),
        like(difference(special.betaincc, (a, b, x), 1, scale_of(b)), y),
        like(-beta_density(a, b, x), y),
    )


@elementwise(special.betaincinv, at=TRIPLES)
def betaincinv(x, a, b, y):
    return (
        like(-difference(special.betainc, (a, b, x), 0, scale_of(a)) / beta_density(a, b, x), x),
        like(-difference(special.betainc, (a, b, x), 1, scale_of(b)) / beta_density(a, b, x), x),
        like(1 / beta_density(a, b, x), x),
    )


@elementwise(special.betainccinv, at=TRIPLES)
def betainccinv(x, a, b, y):
    return (
        like(difference(special.betaincc, (a, b, x), 0, scale_of(a)) / beta_density(a, b, x), x),
        like(difference(special.betaincc, (a, b, x), 1, scale_of(b)) / beta_density(a, b, x), x),
        like(-1 / beta_density(a, b, x), x),
    )


@elementwise(special.zeta, at=[(2.5, 1.3), (P + 1.5, U), 3.5])
def zeta(y, x, q=1.0):
    return like(difference(special.zeta, (x, q), 0, np.minimum(1.0, x - 1)), y), like(
        -x * special.zeta(x + 1, q), y
    )


@elementwise(special.zetac, at=[2.5, P + 1.5, 0.3, -1.3])
def zetac(y, x):
    return like(difference(special.zetac, (x,), 0, np.minimum(1.0, np.abs(x - 1))), y)


# --- Bessel functions ---------------------------------------------------------------------------------------


@elementwise(special.j0, at=[0.7, X])
def j0(y, x):
    return -special.j1(x)


@elementwise(special.j1, at=[0.7, X, 0.0])
def j1(y, x):
    return (special.j0(x) - special.jv(2, x)) / 2


@elementwise(special.y0, at=[0.7, P])
def y0(y, x):
    return -special.y1(x)


@elementwise(special.y1, at=[0.7, P])
def y1(y, x):
    return (special.y0(x) - special.yv(2, x)) / 2


@elementwise(special.i0, at=[0.7, X])
def i0(y, x):
    return special.i1(x)


@elementwise(special.i1, at=[0.7, X, 0.0])
def i1(y, x):
    return (special.i0(x) + special.iv(2, x)) / 2


@elementwise(special.i0e, at=[0.7, X])
def i0e(y, x):
    """At 0, where the function has a kink, the derivative is taken as 0."""
    return special.i1e(x) - np.sign(x) * y


@elementwise(special.i1e, at=[0.7, X])
def i1e(y, x):
    return (special.i0e(x) + special.ive(2, x)) / 2 - np.sign(x) * y


@elementwise(special.k0, at=[0.7, P])
def k0(y, x):
    return -special.k1(x)


@elementwise(special.k1, at=[0.7, P])
def k1(y, x):
    return -(special.k0(x) + special.kv(2, x)) / 2


@elementwise(special.k0e, at=[0.7, P])
def k0e(y, x):
    return y - special.k1e(x)


@elementwise(special.k1e, at=[0.7, P])
def k1e(y, x):
    return y - (special.k0e(x) + special.kve(2, x)) / 2


ORDERS = [(2, 0.7), (1.5, P), (P, 1.3)]


@elementwise(special.jv, at=ORDERS)
def jv(y, v, z):
    return difference(special.jv, (v, z), 0), (special.jv(v - 1, z) - special.jv(v + 1, z)) / 2


@elementwise(special.yv, at=ORDERS)
def yv(y, v, z):
    return difference(special.yv, (v, z), 0), (special.yv(v - 1, z) - special.yv(v + 1, z)) / 2


@elementwise(special.iv, at=ORDERS)
def iv(y, v, z):
    return difference(special.iv, (v, z), 0), (special.iv(v - 1, z) + special.iv(v + 1, z)) / 2


@elementwise(special.kv, at=ORDERS)
def kv(y, v, z):
    return difference(special.kv, (v, z), 0), -(special.kv(v - 1, z) + special.kv(v + 1, z)) / 2


@elementwise(special.jve, at=ORDERS)
def jve(y, v, z):
    """For real z, where no factor is taken out."""
    return difference(special.jve, (v, z), 0), (special.jve(v - 1, z) - special.jve(v + 1, z)) / 2


@elementwise(special.yve, at=ORDERS)
def yve(y, v, z):
    """For real z, where no factor is taken out."""
    return difference(special.yve, (v, z), 0), (special.yve(v - 1, z) - special.yve(v + 1, z)) / 2


@elementwise(special.ive, at=ORDERS)
def ive(y, v, z):
    """For real z, where the factor exp(-abs(z)) is taken out."""
    return (
        difference(special.ive, (v, z), 0),
        (special.ive(v - 1, z) + special.ive(v + 1, z)) / 2 - like(np.sign(z), y) * y,
    )


@elementwise(special.kve, at=ORDERS)
def kve(y, v, z):
    return difference(special.kve, (v, z), 0), y - (special.kve(v - 1, z) + special.kve(v + 1, z)) / 2


@elementwise(special.hankel1, shape=None, at=ORDERS)
def hankel1(y, v, z):
    return difference(special.hankel1, (v, z), 0), (special.hankel1(v - 1, z) - special.hankel1(v + 1, z)) / 2


@elementwise(special.hankel2, shape=None, at=ORDERS)
def hankel2(y, v, z):
    return difference(special.hankel2, (v, z), 0), (special.hankel2(v - 1, z) - special.hankel2(v + 1, z)) / 2


@elementwise(special.hankel1e, shape=None, at=ORDERS)
def hankel1e(y, v, z):
    return (
        difference(special.hankel1e, (v, z), 0),
        (special.hankel1e(v - 1, z) - special.hankel1e(v + 1, z)) / 2 - 1j * y,
    )


@elementwise(special.hankel2e, shape=None, at=ORDERS)
def hankel2e(y, v, z):
    return (
        difference(special.hankel2e, (v, z), 0),
        (special.hankel2e(v - 1, z) - special.hankel2e(v + 1, z)) / 2 + 1j * y,
    )


WHOLE = [(2, 0.7), (3, P), (0, 1.3)]


@elementwise(special.yn, at=WHOLE)
def yn(y, n, x):
    return None, like((special.yv(n - 1, x) - special.yv(n + 1, x)) / 2, y)


@elementwise(special.kn, at=WHOLE)
def kn(y, n, x):
    return None, like(-(special.kv(n - 1, x) + special.kv(n + 1, x)) / 2, y)


SPHERICAL = [*WHOLE, case(2, 0.7, derivative=True), case(1, P, derivative=True)]


@elementwise(special.spherical_jn, at=SPHERICAL)
def spherical_jn(y, n, z, *, derivative=False):
    if not derivative:
        return None, special.spherical_jn(n, z, derivative=True)
    return None, -2 / z * y - (1 - n * (n + 1) / z**2) * special.spherical_jn(n, z)


@elementwise(special.spherical_yn, at=SPHERICAL)
def spherical_yn(y, n, z, *, derivative=False):
    if not derivative:
        return None, special.spherical_yn(n, z, derivative=True)
    return None, -2 / z * y - (1 - n * (n + 1) / z**2) * special.spherical_yn(n, z)


@elementwise(special.spherical_in, at=SPHERICAL)
def spherical_in(y, n, z, *, derivative=False):
    if not derivative:
        return None, special.spherical_in(n, z, derivative=True)
    return None, -2 / z * y + (1 + n * (n + 1) / z**2) * special.spherical_in(n, z)


@elementwise(special.spherical_kn, at=SPHERICAL)
def spherical_kn(y, n, z, *, derivative=False):
    if not derivative:
        return None, special.spherical_kn(n, z, derivative=True)
    return None, -2 / z * y + (1 + n * (n + 1) / z**2) * special.spherical_kn(n, z)


def struve_term(v, x):
    return (x / 2) ** v / (ROOT_PI * special.gamma(v + 1.5))


@elementwise(special.struve, at=ORDERS)
def struve(y, v, x):
    return (
        difference(special.struve, (v, x), 0),
        (special.struve(v - 1, x) - special.struve(v + 1, x) + struve_term(v, x)) / 2,
    )


@elementwise(special.modstruve, at=ORDERS)
def modstruve(y, v, x):
    return (
        difference(special.modstruve, (v, x), 0),
        (special.modstruve(v - 1, x) + special.modstruve(v + 1, x) + struve_term(v, x)) / 2,
    )


@elementwise(special.ber, at=[0.7, P])
def ber(y, x):
    return special.berp(x)


@elementwise(special.bei, at=[0.7, P])
def bei(y, x):
    return special.beip(x)


@elementwise(special.ker, at=[0.7, P])
def ker(y, x):
    return special.kerp(x)


@elementwise(special.kei, at=[0.7, P])
def kei(y, x):
    return special.keip(x)


@elementwise(special.berp, at=[0.7, P])
def berp(y, x):
    return -special.bei(x) - y / x


@elementwise(special.beip, at=[0.7, P])
def beip(y, x):
    return special.ber(x) - y / x


@elementwise(special.kerp, at=[0.7, P])
def kerp(y, x):
    return -special.kei(x) - y / x


@elementwise(special.keip, at=[0.7, P])
def keip(y, x):
    return special.ker(x) - y / x


# --- exponential integrals and their kin --------------------------------------------------------------------


@elementwise(special.exp1, at=[0.7, P])
def exp1(y, x):
    return -np.exp(-x) / x


@elementwise(special.expi, at=[0.7, X])
def expi(y, x):
    return np.exp(x) / x


@elementwise(special.expn, at=[(2, 0.7), (1, P), (3, P)])
def expn(y, n, x):
    return None, -special.expn(n - 1, x)


@elementwise(special.spence, at=[0.7, P, [1.0, 1.001]])
def spence(y, z):
    """log(z) / (1 - z), through 2F1(1, 1; 2; 1 - z) where z is near 1."""
    return like(spence_slope(z), y)


def spence_slope(z):
    near = np.abs(z - 1) < 0.5
    away = np.where(near, 2, z)
    return np.where(near, -special.hyp2f1(1, 1, 2, 1 - np.where(near, z, 1)), np.log(away) / (1 - away))[()]


@elementwise(special.lambertw, shape=None, at=[0.7, P, X + 1j, 0.0])
def lambertw(w, z, k=0, tol=1e-8):
    return np.exp(-w) / (1 + w), None, None


@elementwise(special.wrightomega, at=[0.7, X, X + 1j])
def wrightomega(w, z):
    return w / (1 + w)


def tuple_tangents(z_dot, slopes):
    return tuple(z_dot * slope for slope in slopes)


def fresnel_slopes(z):
    return np.sin(math.pi * z * z / 2), np.cos(math.pi * z * z / 2)


@reverse(special.fresnel, at=[0.7, X])
def fresnel(g, y, z):
    return g[0] * np.sin(math.pi * z * z / 2) + g[1] * np.cos(math.pi * z * z / 2)


@forward(special.fresnel)
def fresnel_forward(z_dot, y, z):
    return z_dot * np.sin(math.pi * z * z / 2), z_dot * np.cos(math.pi * z * z / 2)


@reverse(special.sici, at=[0.7, P])
def sici(g, y, x):
    return (g[0] * np.sin(x) + g[1] * np.cos(x)) / x


@forward(special.sici)
def sici_forward(x_dot, y, x):
    return x_dot * np.sin(x) / x, x_dot * np.cos(x) / x


@reverse(special.shichi, at=[0.7, P])
def shichi(g, y, x):
    return (g[0] * np.sinh(x) + g[1] * np.cosh(x)) / x


@forward(special.shichi)
def shichi_forward(x_dot, y, x):
    return x_dot * np.sinh(x) / x, x_dot * np.cosh(x) / x


@reverse(special.airy, at=[0.7, X])
def airy(g, y, z):
    return g[0] * y[1] + g[1] * z * y[0] + g[2] * y[3] + g[3] * z * y[2]


@forward(special.airy)
def airy_forward(z_dot, y, z):
    return z_dot * y[1], z_dot * z * y[0], z_dot * y[3], z_dot * z * y[2]


@reverse(special.airye, at=[0.7, P])
def airye(g, y, z):
    """For real z, where exp(2/3 z^(3/2)) and its inverse are taken out for positive z."""
    r = np.sqrt(np.maximum(z, 0))
    first = g[0] * (y[1] + r * y[0]) + g[1] * (z * y[0] + r * y[1])
    return first + g[2] * (y[3] - r * y[2]) + g[3] * (z * y[2] - r * y[3])


@forward(special.airye)
def airye_forward(z_dot, y, z):
    r = np.sqrt(np.maximum(z, 0))
    return (
        z_dot * (y[1] + r * y[0]),
        z_dot * (z * y[0] + r * y[1]),
        z_dot * (y[3] - r * y[2]),
        z_dot * (z * y[2] - r * y[3]),
    )


@reverse(special.pbdv, wrt="x", at=[(0.5, 0.7), (1.5, X)])
def pbdv(g, y, v, x):
    return unbroadcast(g[0] * y[1] + g[1] * (x * x / 4 - v - 0.5) * y[0], x)


@forward(special.pbdv)
def pbdv_forward(x_dot, y, v, x):
    return x_dot * y[1], x_dot * (x * x / 4 - v - 0.5) * y[0]


@reverse(special.pbvv, wrt="x", at=[(0.5, 0.7), (1.5, X)])
def pbvv(g, y, v, x):
    return unbroadcast(g[0] * y[1] + g[1] * (x * x / 4 - v - 0.5) * y[0], x)


@forward(special.pbvv)
def pbvv_forward(x_dot, y, v, x):
    return x_dot * y[1], x_dot * (x * x / 4 - v - 0.5) * y[0]


# --- elliptic integrals and functions -----------------------------------------------------------------------


@elementwise(special.ellipk, at=[0.7, U, [0.0, -0.4, 1e-6]])
def ellipk(y, m):
    return like(ellipk_slope(m, 1 - m), y)


@elementwise(special.ellipkm1, at=[0.7, U, 0.05])
def ellipkm1(y, p):
    return like(-ellipk_slope(1 - p, p), y)


def ellipk_slope(m, p):
    """(E - p K) / (2 m p) with p = 1 - m; near m = 0 as a hypergeometric function."""
    near = np.abs(m) < 0.3
    away = np.where(near, 0.5, m)
    rest = np.where(near, 0.5, p)
    far = (special.ellipe(away) - rest * special.ellipkm1(rest)) / (2 * away * rest)
    return np.where(near, math.pi / 8 * special.hyp2f1(1.5, 1.5, 2, np.where(near, m, 0)), far)[()]


@elementwise(special.ellipe, at=[0.7, U, [0.0, -0.4, 1e-6]])
def ellipe(y, m):
    return like(-math.pi / 8 * special.hyp2f1(0.5, 1.5, 2, m), y)


AMPLITUDES = [(0.7, 0.4), (U, U[::-1]), (0.8, [1e-4, 0.3, -0.5])]


@elementwise(special.ellipkinc, at=AMPLITUDES)
def ellipkinc(y, phi, m):
    return 1 / np.sqrt(1 - m * np.sin(phi) ** 2), ellipkinc_slope(y, phi, m)


def ellipkinc_slope(y, phi, m):
    near = np.abs(m) < 0.02
    away = np.where(near, 0.5, m)
    far = (special.ellipeinc(phi, away) - (1 - away) * special.ellipkinc(phi, away)) / (2 * away * (1 - away))
    far = far - np.sin(2 * phi) / (4 * (1 - away) * np.sqrt(1 - away * np.sin(phi) ** 2))
    return np.where(near, difference(special.ellipkinc, (phi, np.where(near, m, 0.0)), 1), far)[()]


@elementwise(special.ellipeinc, at=AMPLITUDES)
def ellipeinc(y, phi, m):
    return np.sqrt(1 - m * np.sin(phi) ** 2), ellipeinc_slope(y, phi, m)


def ellipeinc_slope(y, phi, m):
    near = np.abs(m) < 0.02
    away = np.where(near, 0.5, m)
    far = (special.ellipeinc(phi, away) - special.ellipkinc(phi, away)) / (2 * away)
    return np.where(near, difference(special.ellipeinc, (phi, np.where(near, m, 0.0)), 1), far)[()]


@reverse(special.ellipj, wrt=("u", "m"), at=[(0.7, 0.4), (X, U)])
def ellipj(g, y, u, m):
    sn, cn, dn, _ = y
    slopes = ellipj_slopes(u, m)
    return (
        unbroadcast(g[0] * cn * dn - g[1] * sn * dn - g[2] * m * sn * cn + g[3] * dn, u),
        unbroadcast(g[0] * slopes[0] + g[1] * slopes[1] + g[2] * slopes[2] + g[3] * slopes[3], m),
    )


def ellipj_slopes(u, m):
    """For the parameter, which stays in [0, 1]: by differences over a distance that does."""
    return tuple(
        difference(ellipj_component, (k, u, m), 2, np.minimum(1.0, 10 * np.minimum(m, 1 - m)))
        for k in range(4)
    )


def ellipj_component(k, u, m):
    return special.ellipj(u, m)[k]


@forward(special.ellipj)
def ellipj_forward(u_dot, m_dot, y, u, m):
    sn, cn, dn, _ = y
    slopes = ellipj_slopes(u, m)
    of_m = tuple(unbroadcast(m_dot * slope, sn) for slope in slopes)
    return (u_dot * cn * dn, -u_dot * sn * dn, -u_dot * m * sn * cn, u_dot * dn), of_m


@elementwise(special.elliprc, at=[(0.7, 0.4), (P, U)])
def elliprc(z, x, y):
    return -special.elliprd(y, y, x) / 6, -special.elliprd(x, y, y) / 3


@elementwise(special.elliprf, at=[(0.7, 0.4, 1.3), (P, U, P[::-1])])
def elliprf(w, x, y, z):
    return -special.elliprd(y, z, x) / 6, -special.elliprd(z, x, y) / 6, -special.elliprd(x, y, z) / 6


@elementwise(special.elliprg, at=[(0.7, 0.4, 1.3), (P, U, P[::-1])])
def elliprg(w, x, y, z):
    return (
        like(difference(special.elliprg, (x, y, z), 0, scale_of(x)), w),
        like(difference(special.elliprg, (x, y, z), 1, scale_of(y)), w),
        like(difference(special.elliprg, (x, y, z), 2, scale_of(z)), w),
    )


@elementwise(special.elliprd, at=[(0.7, 0.4, 1.3), (P, U, P[::-1])])
def elliprd(w, x, y, z):
    return (
        like(difference(special.elliprd, (x, y, z), 0, scale_of(x)), w),
        like(difference(special.elliprd, (x, y, z), 1, scale_of(y)), w),
        like(difference(special.elliprd, (x, y, z), 2, scale_of(z)), w),
    )


@elementwise(special.elliprj, at=[(0.7, 0.4, 1.3, 0.9), (P, U, P[::-1], 0.9)])
def elliprj(w, x, y, z, p):
    return (
        like(difference(special.elliprj, (x, y, z, p), 0, scale_of(x)), w),
        like(difference(special.elliprj, (x, y, z, p), 1, scale_of(y)), w),
        like(difference(special.elliprj, (x, y, z, p), 2, scale_of(z)), w),
        like(difference(special.elliprj, (x, y, z, p), 3, scale_of(p)), w),
    )


@elementwise(special.agm, at=[(0.7, 1.4), (P, U)])
def agm(y, a, b):
    return like(agm_slope(y, a, b), y), like(agm_slope(y, b, a), y)


def agm_slope(y, a, b):
    """From agm = pi (a + b) / (4 K(m)) with m = ((a - b) / (a + b))^2."""
    s, d = a + b, a - b
    k = math.pi * s / (4 * y)
    return y / s - y / k * ellipk_slope((d / s) ** 2, 4 * a * b / (s * s)) * 4 * b * d / s**3


# --- hypergeometric functions -------------------------------------------------------------------------------


@elementwise(special.hyp0f1, at=[(1.5, 0.7), (P, X)])
def hyp0f1(y, v, z):
    return like(difference(special.hyp0f1, (v, z), 0, scale_of(v)), y), like(special.hyp0f1(v + 1, z) / v, y)


@elementwise(special.hyp1f1, at=[(1.2, 1.7, 0.6), (P, U, X)])
def hyp1f1(y, a, b, x):
    return (
        like(difference(special.hyp1f1, (a, b, x), 0), y),
        like(difference(special.hyp1f1, (a, b, x), 1, scale_of(b)), y),
        like(a / b * special.hyp1f1(a + 1, b + 1, x), y),
    )


@elementwise(special.hyp2f1, at=[(1.2, 0.7, 1.9, 0.6), (P, 0.7, P[::-1], U)])
def hyp2f1(y, a, b, c, z):
    return (
        like(difference(special.hyp2f1, (a, b, c, z), 0), y),
        like(difference(special.hyp2f1, (a, b, c, z), 1), y),
        like(difference(special.hyp2f1, (a, b, c, z), 2, scale_of(c)), y),
        like(a * b / c * special.hyp2f1(a + 1, b + 1, c + 1, z), y),
    )


@elementwise(special.hyperu, at=[(1.2, 1, 0.6), (1.2, 0.7, P)])
def hyperu(y, a, b, x):
    return (
        like(difference(special.hyperu, (a, b, x), 0), y),
        like(difference(special.hyperu, (a, b, x), 1), y),
        like(-a * special.hyperu(a + 1, b + 1, x), y),
    )


@elementwise(special.wright_bessel, at=[(0.5, 1.2, 0.7), (0.5, 1.2, P)])
def wright_bessel(y, a, b, x):
    return (
        like(difference(special.wright_bessel, (a, b, x), 0, scale_of(a)), y),
        like(difference(special.wright_bessel, (a, b, x), 1, scale_of(b)), y),
        like(special.wright_bessel(a, a + b, x), y),
    )


if hasattr(special, "log_wright_bessel"):

    @elementwise(special.log_wright_bessel, at=[(0.5, 1.2, 0.7), (0.5, 1.2, P)])
    def log_wright_bessel(y, a, b, x):
        return (
            like(difference(special.log_wright_bessel, (a, b, x), 0, scale_of(a)), y),
            like(difference(special.log_wright_bessel, (a, b, x), 1, scale_of(b)), y),
            like(np.exp(special.log_wright_bessel(a, a + b, x) - y), y),
        )


@elementwise(special.mathieu_a, at=[(2, 0.7), (1, P)])
def mathieu_a(y, m, q):
    return None, difference(special.mathieu_a, (m, q), 1)


@elementwise(special.mathieu_b, at=[(2, 0.7), (1, P)])
def mathieu_b(y, m, q):
    return None, difference(special.mathieu_b, (m, q), 1)


# --- trigonometry in degrees --------------------------------------------------------------------------------


@elementwise(special.sindg, at=[70.0, 30 * X])
def sindg(y, x):
    return DEGREE * special.cosdg(x)


@elementwise(special.cosdg, at=[70.0, 30 * X])
def cosdg(y, x):
    return -DEGREE * special.sindg(x)


@elementwise(special.tandg, at=[70.0, 30 * X])
def tandg(y, x):
    return DEGREE * (1 + y * y)


@elementwise(special.cotdg, at=[70.0, 30 * X])
def cotdg(y, x):
    return -DEGREE * (1 + y * y)


@elementwise(special.diric, shape="where", at=[(0.7, 5), (X, 4)])
def diric(y, x, n):
    """At multiples of 2 pi, where the function has an extremum, the derivative is 0."""
    return ratio(np.cos(n * x / 2) / 2 - y * np.cos(x / 2) / 2, np.sin(x / 2)), None


# --- orthogonal polynomials ---------------------------------------------------------------------------------

DEGREES = [(3, 0.7), (2, U), (0, 0.3), (1, U)]


@elementwise(special.eval_legendre, at=DEGREES)
def eval_legendre(y, n, x):
    return None, (n + 1) / 2 * special.eval_jacobi(n - 1, 1, 1, x)


@elementwise(special.eval_chebyt, at=DEGREES)
def eval_chebyt(y, n, x):
    return None, n * special.eval_chebyu(n - 1, x)


@elementwise(special.eval_chebyu, at=DEGREES)
def eval_chebyu(y, n, x):
    return None, 2 * special.eval_gegenbauer(n - 1, 2, x)


@elementwise(special.eval_chebyc, at=DEGREES)
def eval_chebyc(y, n, x):
    return None, n * special.eval_chebyu(n - 1, x / 2)


@elementwise(special.eval_chebys, at=DEGREES)
def eval_chebys(y, n, x):
    return None, special.eval_gegenbauer(n - 1, 2, x / 2)


@elementwise(special.eval_hermite, at=DEGREES)
def eval_hermite(y, n, x):
    return None, 2 * n * special.eval_hermite(np.maximum(n - 1, 0), x)


@elementwise(special.eval_hermitenorm, at=DEGREES)
def eval_hermitenorm(y, n, x):
    return None, n * special.eval_hermitenorm(np.maximum(n - 1, 0), x)


@elementwise(special.eval_laguerre, at=DEGREES)
def eval_laguerre(y, n, x):
    return None, -special.eval_genlaguerre(n - 1, 1, x)


@elementwise(special.eval_genlaguerre, at=[(3, 0.5, 0.7), (2, 0.5, U)])
def eval_genlaguerre(y, n, alpha, x):
    return (
        None,
        difference(special.eval_genlaguerre, (n, alpha, x), 1, np.minimum(1.0, alpha + 1)),
        -special.eval_genlaguerre(n - 1, alpha + 1, x),
    )


@elementwise(special.eval_gegenbauer, at=[(3, 0.5, 0.7), (2, 0.7, U)])
def eval_gegenbauer(y, n, alpha, x):
    return (
        None,
        difference(special.eval_gegenbauer, (n, alpha, x), 1, scale_of(alpha)),
        2 * alpha * special.eval_gegenbauer(n - 1, alpha + 1, x),
    )


@elementwise(special.eval_jacobi, at=[(3, 0.5, 0.2, 0.7), (2, 0.5, 0.7, U)])
def eval_jacobi(y, n, alpha, beta, x):
    return (
        None,
        difference(special.eval_jacobi, (n, alpha, beta, x), 1, np.minimum(1.0, alpha + 1)),
        difference(special.eval_jacobi, (n, alpha, beta, x), 2, np.minimum(1.0, beta + 1)),
        (n + alpha + beta + 1) / 2 * special.eval_jacobi(n - 1, alpha + 1, beta + 1, x),
    )


@elementwise(special.eval_sh_legendre, at=DEGREES)
def eval_sh_legendre(y, n, x):
    return None, (n + 1) * special.eval_jacobi(n - 1, 1, 1, 2 * x - 1)


@elementwise(special.eval_sh_chebyt, at=DEGREES)
def eval_sh_chebyt(y, n, x):
    return None, 2 * n * special.eval_chebyu(n - 1, 2 * x - 1)


@elementwise(special.eval_sh_chebyu, at=DEGREES)
def eval_sh_chebyu(y, n, x):
    return None, 4 * special.eval_gegenbauer(n - 1, 2, 2 * x - 1)


@elementwise(special.lpmv, at=[(1, 3, 0.7), (0, 2, U)])
def lpmv(y, m, v, x):
    return None, None, (v * x * y - (v + m) * special.lpmv(m, v - 1, x)) / (x * x - 1)


if hasattr(special, "legendre_p"):

    @elementwise(special.legendre_p, shape=None, at=DEGREES)
    def legendre_p(y, n, z):
        return None, np.expand_dims((n + 1) / 2 * special.eval_jacobi(n - 1, 1, 1, z), 0)

    @elementwise(special.sph_harm_y, shape=None, at=[(3, 1, 0.7, 0.4), (2, 2, P, U), (2, 0, 0.7, 0.3)])
    def sph_harm_y(y, n, m, theta, phi):
        return None, None, special.sph_harm_y(n, m, theta, phi, diff_n=1)[1][..., 0], 1j * m * y


# --- distribution functions ---------------------------------------------------------------------------------


@elementwise(special.bdtr, at=[(2, 5, 0.4), (2, 5, U)])
def bdtr(y, k, n, p):
    return None, None, like(-beta_density(np.floor(k) + 1, n - np.floor(k), p), y)


@elementwise(special.bdtrc, at=[(2, 5, 0.4), (2, 5, U)])
def bdtrc(y, k, n, p):
    return None, None, like(beta_density(np.floor(k) + 1, n - np.floor(k), p), y)


@elementwise(special.bdtri, at=[(2, 5, 0.4), (2, 5, U)])
def bdtri(p, k, n, y):
    return None, None, like(-1 / beta_density(np.floor(k) + 1, n - np.floor(k), p), p)


@elementwise(special.btdtria, at=[(0.5, 1.2, 0.4), (U, 1.2, 0.4)])
def btdtria(a, p, b, x):
    """The shape a for which the beta distribution function is p."""
    slope = difference(special.betainc, (a, b, x), 0, scale_of(a))
    return (
        like(1 / slope, a),
        like(-difference(special.betainc, (a, b, x), 1, scale_of(b)) / slope, a),
        like(-beta_density(a, b, x) / slope, a),
    )


@elementwise(special.btdtrib, at=[(1.2, 0.5, 0.4), (1.2, U, 0.4)])
def btdtrib(b, a, p, x):
    """The shape b for which the beta distribution function is p."""
    slope = difference(special.betainc, (a, b, x), 1, scale_of(b))
    return (
        like(-difference(special.betainc, (a, b, x), 0, scale_of(a)) / slope, b),
        like(1 / slope, b),
        like(-beta_density(a, b, x) / slope, b),
    )


@elementwise(special.chdtr, at=[(1.5, 0.7), (P, P[::-1])])
def chdtr(y, v, x):
    return like(difference(special.chdtr, (v, x), 0, scale_of(v)), y), like(
        gamma_density(v / 2, x / 2) / 2, y
    )


@elementwise(special.chdtrc, at=[(1.5, 0.7), (P, P[::-1])])
def chdtrc(y, v, x):
    return like(difference(special.chdtrc, (v, x), 0, scale_of(v)), y), like(
        -gamma_density(v / 2, x / 2) / 2, y
    )


@elementwise(special.chdtri, at=[(1.5, 0.7), (P, U)])
def chdtri(x, v, p):
    return (
        like(difference(special.chdtrc, (v, x), 0, scale_of(v)) / (gamma_density(v / 2, x / 2) / 2), x),
        like(-1 / (gamma_density(v / 2, x / 2) / 2), x),
    )


def f_density(dfn, dfd, x):
    total = dfd + dfn * x
    return beta_density(dfn / 2, dfd / 2, dfn * x / total) * dfn * dfd / (total * total)


@elementwise(special.fdtr, at=[(1.5, 2.5, 0.7), (1.5, 2.5, P)])
def fdtr(y, dfn, dfd, x):
    return (
        like(difference(special.fdtr, (dfn, dfd, x), 0, scale_of(dfn)), y),
        like(difference(special.fdtr, (dfn, dfd, x), 1, scale_of(dfd)), y),
        like(f_density(dfn, dfd, x), y),
    )


@elementwise(special.fdtrc, at=[(1.5, 2.5, 0.7), (1.5, 2.5, P)])
def fdtrc(y, dfn, dfd, x):
    return (
        like(difference(special.fdtrc, (dfn, dfd, x), 0, scale_of(dfn)), y),
        like(difference(special.fdtrc, (dfn, dfd, x), 1, scale_of(dfd)), y),
        like(-f_density(dfn, dfd, x), y),
    )


@elementwise(special.fdtri, at=[(1.5, 2.5, 0.7), (1.5, 2.5, U)])
def fdtri(x, dfn, dfd, p):
    return (
        like(-difference(special.fdtr, (dfn, dfd, x), 0, scale_of(dfn)) / f_density(dfn, dfd, x), x),
        like(-difference(special.fdtr, (dfn, dfd, x), 1, scale_of(dfd)) / f_density(dfn, dfd, x), x),
        like(1 / f_density(dfn, dfd, x), x),
    )


@elementwise(special.gdtr, at=[(1.5, 2.5, 0.7), (1.5, 2.5, P)])
def gdtr(y, a, b, x):
    return (
        like(x * gamma_density(b, a * x), y),
        like(difference(special.gdtr, (a, b, x), 1, scale_of(b)), y),
        like(a * gamma_density(b, a * x), y),
    )


@elementwise(special.gdtrc, at=[(1.5, 2.5, 0.7), (1.5, 2.5, P)])
def gdtrc(y, a, b, x):
    return (
        like(-x * gamma_density(b, a * x), y),
        like(difference(special.gdtrc, (a, b, x), 1, scale_of(b)), y),
        like(-a * gamma_density(b, a * x), y),
    )


@elementwise(special.gdtrix, at=[(1.5, 2.5, 0.7), (1.5, 2.5, U)])
def gdtrix(x, a, b, p):
    return (
        like(-x / a, x),
        like(-difference(special.gdtr, (a, b, x), 1, scale_of(b)) / (a * gamma_density(b, a * x)), x),
        like(1 / (a * gamma_density(b, a * x)), x),
    )


@elementwise(special.nbdtr, at=[(2, 3, 0.4), (2, 3, U)])
def nbdtr(y, k, n, p):
    return None, None, like(beta_density(n, k + 1, p), y)


@elementwise(special.nbdtrc, at=[(2, 3, 0.4), (2, 3, U)])
def nbdtrc(y, k, n, p):
    return None, None, like(-beta_density(n, k + 1, p), y)


@elementwise(special.nbdtri, at=[(2, 3, 0.4), (2, 3, U)])
def nbdtri(p, k, n, y):
    return None, None, like(1 / beta_density(n, k + 1, p), p)


@elementwise(special.pdtr, at=[(2, 0.7), (2, P)])
def pdtr(y, k, m):
    return None, like(-gamma_density(np.floor(k) + 1, m), y)


@elementwise(special.pdtrc, at=[(2, 0.7), (2, P)])
def pdtrc(y, k, m):
    return None, like(gamma_density(np.floor(k) + 1, m), y)


@elementwise(special.pdtri, at=[(2, 0.7), (2, U)])
def pdtri(m, k, y):
    return None, like(-1 / gamma_density(k + 1, m), m)


def t_density(df, t):
    return np.exp(-special.betaln(df / 2, 0.5) - (df + 1) / 2 * np.log1p(t * t / df)) / np.sqrt(df)


@elementwise(special.stdtr, at=[(2.5, 0.7), (P + 1, X)])
def stdtr(y, df, t):
    return like(difference(special.stdtr, (df, t), 0, scale_of(df)), y), like(t_density(df, t), y)


@elementwise(special.stdtrit, at=[(2.5, 0.7), (P + 1, U)])
def stdtrit(t, df, p):
    return like(-difference(special.stdtr, (df, t), 0, scale_of(df)) / t_density(df, t), t), like(
        1 / t_density(df, t), t
    )


@elementwise(special.tklmbda, at=[(0.7, 0.5), (X, 0.3)])
def tklmbda(y, x, lmbda):
    return (
        like(1 / (y ** (lmbda - 1) + (1 - y) ** (lmbda - 1)), y),
        like(difference(special.tklmbda, (x, lmbda), 1, 0.1), y),
    )


@elementwise(special.chndtr, at=[(0.7, 2.5, 0.4), (P, 2.5, 0.4)])
def chndtr(y, x, df, nc):
    return (
        like(difference(special.chndtr, (x, df, nc), 0, scale_of(x)), y),
        like(difference(special.chndtr, (x, df, nc), 1, scale_of(df)), y),
        like((special.chndtr(x, df + 2, nc) - y) / 2, y),
    )


@elementwise(special.nctdtr, at=[(2.5, 0.4, 0.7), (2.5, 0.4, P)])
def nctdtr(y, df, nc, t):
    return (
        like(difference(special.nctdtr, (df, nc, t), 0, scale_of(df)), y),
        like(difference(special.nctdtr, (df, nc, t), 1), y),
        like(difference(special.nctdtr, (df, nc, t), 2), y),
    )


@elementwise(special.ncfdtr, at=[(2.5, 3.0, 0.4, 0.7), (2.5, 3.0, 0.4, P)])
def ncfdtr(y, dfn, dfd, nc, f):
    return (
        like(difference(special.ncfdtr, (dfn, dfd, nc, f), 0, scale_of(dfn)), y),
        like(difference(special.ncfdtr, (dfn, dfd, nc, f), 1, scale_of(dfd)), y),
        like(difference(special.ncfdtr, (dfn, dfd, nc, f), 2, scale_of(nc)), y),
        like(difference(special.ncfdtr, (dfn, dfd, nc, f), 3, scale_of(f)), y),
    )


@elementwise(special.kolmogorov, at=[0.7, P, 1.5])
def kolmogorov(y, x):
    return -kolmogorov_density(x)


@elementwise(special.kolmogi, at=[0.7, U])
def kolmogi(x, p):
    return -1 / kolmogorov_density(x)


def kolmogorov_density(x):
    """The two series of the same theta function, for small and for large x."""
    x = np.asarray(x)
    near = x < 1
    small, large = np.where(near, np.maximum(x, 0.04), 1), np.where(near, 1, x)
    first, second = 0.0, 0.0
    for k in range(1, 7):
        rate = (2 * k - 1) ** 2 * math.pi**2 / 8
        first = first + np.exp(-rate / small**2) * (2 * rate / small**4 - 1 / small**2)
        second = second + (-1) ** (k - 1) * k * k * np.exp(-2 * k * k * large**2)
    return np.where(near, ROOT_2PI * first, 8 * large * second)[()]


@elementwise(special.smirnov, at=[(3, 0.45), (5, U)])
def smirnov(y, n, d):
    return None, smirnov_slope(n, d)


@elementwise(special.smirnovi, at=[(3, 0.45), (5, U)])
def smirnovi(d, n, y):
    return None, 1 / smirnov_slope(n, d)


def smirnov_slope(n, d):
    """The derivative of sum_v C(n, v) d (d + v/n)^(v - 1) (1 - d - v/n)^(n - v), over v <= n (1 - d)."""
    total = 0.0
    for v in range(int(np.max(n))):
        up, down = d + v / n, 1 - d - v / n
        inside = down > 0
        down = np.where(inside, down, 1)
        term = special.comb(n, v) * up ** (v - 1) * down ** (n - v)
        total = total + np.where(inside, term * (1 + d * (v - 1) / up - d * (n - v) / down), 0)
    return total


nondifferentiable(special.gammasgn, special.round, special.factorial2, special.bernoulli, special.euler)
