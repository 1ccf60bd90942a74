"""Rules for discrete and for multivariate distributions (SciPy manual, `scipy.stats`).

Counts and shifts are constant; what has a derivative are the other parameters. Where a probability is 0 the
derivatives are 0. Formulas: N. Johnson, A. Kemp and S. Kotz, "Univariate Discrete Distributions"; K. Petersen
and M. Pedersen, "The Matrix Cookbook".
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from srcgrad.runtime.rules.inputs import definite, generic, positive
from srcgrad.runtime.rules.scipy_distributions import held, times
from srcgrad.runtime.rules.scipy_special import beta_density, difference, scale_of
from srcgrad.runtime.rules.table import (
    case,
    elementwise,
    find,
    for_every_instance,
    forward,
    nondifferentiable,
    reverse,
)
from srcgrad.runtime.support import unbroadcast

K = np.array([0, 1, 3])
P, U = positive(3), generic(3, low=0.15, high=0.85)


@elementwise(stats.poisson.logpmf, at=[(2, 1.3), (K, P), (K, P, -1)])
def poisson_logpmf(y, k, mu, loc=0):
    return None, held(y, (k - loc) / mu - 1), None


@elementwise(stats.poisson.pmf, at=[(2, 1.3), (K, P)])
def poisson_pmf(y, k, mu, loc=0):
    return None, times(y, (k - loc) / mu - 1), None


@elementwise(stats.poisson.cdf, at=[(2, 1.3), (K, P)])
def poisson_cdf(y, k, mu, loc=0):
    return None, -stats.poisson.pmf(np.floor(k), mu, loc), None


@elementwise(stats.poisson.sf, at=[(2, 1.3), (K, P)])
def poisson_sf(y, k, mu, loc=0):
    return None, stats.poisson.pmf(np.floor(k), mu, loc), None


BITS = np.array([0, 1, 1])


def bernoulli_slope(k, p):
    return np.where(np.equal(k, 1), 1 / p, -1 / (1 - p))


@elementwise(stats.bernoulli.logpmf, at=[(1, 0.3), (BITS, U)])
def bernoulli_logpmf(y, k, p, loc=0):
    return None, held(y, bernoulli_slope(k - loc, p)), None


@elementwise(stats.bernoulli.pmf, at=[(1, 0.3), (BITS, U)])
def bernoulli_pmf(y, k, p, loc=0):
    return None, times(y, bernoulli_slope(k - loc, p)), None


@elementwise(stats.bernoulli.cdf, at=[(0, 0.3), (BITS, U)])
def bernoulli_cdf(y, k, p, loc=0):
    return None, np.where(np.equal(np.floor(np.subtract(k, loc)), 0), -1.0, 0.0), None


@elementwise(stats.binom.logpmf, at=[(1, 4, 0.3), (K, 4, U)])
def binom_logpmf(y, k, n, p, loc=0):
    return None, None, held(y, (k - loc) / p - (n - k + loc) / (1 - p)), None


@elementwise(stats.binom.pmf, at=[(1, 4, 0.3), (K, 4, U)])
def binom_pmf(y, k, n, p, loc=0):
    return None, None, times(y, (k - loc) / p - (n - k + loc) / (1 - p)), None


@elementwise(stats.binom.cdf, at=[(1, 4, 0.3), (K, 4, U), (4, 4, 0.3)])
def binom_cdf(y, k, n, p, loc=0):
    return None, None, -binom_step(k - loc, n, p), None


@elementwise(stats.binom.sf, at=[(1, 4, 0.3), (K, 4, U)])
def binom_sf(y, k, n, p, loc=0):
    return None, None, binom_step(k - loc, n, p), None


def binom_step(k, n, p):
    """The beta density with shapes k + 1 and n - k at p; 0 where k is not in [0, n)."""
    k = np.floor(k)
    inside = (k >= 0) & (k < n)
    k = np.where(inside, k, 0)
    return np.where(inside, beta_density(k + 1, n - k, p), 0.0)


@elementwise(stats.nbinom.logpmf, at=[(1, 4, 0.3), (K, P, U)])
def nbinom_logpmf(y, k, n, p, loc=0):
    return (
        None,
        held(y, special.psi(n + k - loc) - special.psi(n) + np.log(p)),
        held(y, n / p - (k - loc) / (1 - p)),
        None,
    )


@elementwise(stats.nbinom.pmf, at=[(1, 4, 0.3), (K, P, U)])
def nbinom_pmf(y, k, n, p, loc=0):
    return (
        None,
        times(y, special.psi(n + k - loc) - special.psi(n) + np.log(p)),
        times(y, n / p - (k - loc) / (1 - p)),
        None,
    )


@elementwise(stats.nbinom.cdf, at=[(1, 4, 0.3), (K, P, U)])
def nbinom_cdf(y, k, n, p, loc=0):
    return (
        None,
        difference(special.betainc, (n, np.floor(k - loc) + 1, p), 0, scale_of(n)),
        beta_density(n, np.floor(k - loc) + 1, p),
        None,
    )


TRIALS = np.array([1, 2, 4])


@elementwise(stats.geom.logpmf, at=[(2, 0.3), (TRIALS, U)])
def geom_logpmf(y, k, p, loc=0):
    return None, held(y, 1 / p - (k - loc - 1) / (1 - p)), None


@elementwise(stats.geom.pmf, at=[(2, 0.3), (TRIALS, U)])
def geom_pmf(y, k, p, loc=0):
    return None, times(y, 1 / p - (k - loc - 1) / (1 - p)), None


@elementwise(stats.geom.cdf, at=[(2, 0.3), (TRIALS, U)])
def geom_cdf(y, k, p, loc=0):
    return None, np.maximum(np.floor(k - loc), 0) * (1 - p) ** (np.maximum(np.floor(k - loc), 1) - 1), None


def betabinom_slope(k, n, a, b):
    return special.psi(k + a) - special.psi(n + a + b) + special.psi(a + b) - special.psi(a)


@elementwise(stats.betabinom.logpmf, at=[(1, 4, 1.3, 0.7), (K, 4, P, U)])
def betabinom_logpmf(y, k, n, a, b, loc=0):
    return (
        None,
        None,
        held(y, betabinom_slope(k - loc, n, a, b)),
        held(y, betabinom_slope(n - k + loc, n, b, a)),
        None,
    )


@elementwise(stats.betabinom.pmf, at=[(1, 4, 1.3, 0.7), (K, 4, P, U)])
def betabinom_pmf(y, k, n, a, b, loc=0):
    return (
        None,
        None,
        times(y, betabinom_slope(k - loc, n, a, b)),
        times(y, betabinom_slope(n - k + loc, n, b, a)),
        None,
    )


@elementwise(stats.skellam.pmf, at=[(1, 1.3, 0.7), (K, P, U), (-1, 1.3, 0.7)])
def skellam_pmf(y, k, mu1, mu2, loc=0):
    return (
        None,
        stats.skellam.pmf(k - 1, mu1, mu2, loc) - y,
        stats.skellam.pmf(k + 1, mu1, mu2, loc) - y,
        None,
    )


def zipf_slope(k, a):
    return -np.log(k) - difference(special.zeta, (a,), 0, np.minimum(1.0, a - 1)) / special.zeta(a, 1)


@elementwise(stats.zipf.pmf, at=[(2, 2.3), (TRIALS, P + 1.2)])
def zipf_pmf(y, k, a, loc=0):
    return None, times(y, zipf_slope(k - loc, a)), None


@elementwise(stats.zipf.logpmf, at=[(2, 2.3), (TRIALS, P + 1.2)])
def zipf_logpmf(y, k, a, loc=0):
    return None, held(y, zipf_slope(k - loc, a)), None


for _distribution in (
    stats.poisson,
    stats.bernoulli,
    stats.binom,
    stats.nbinom,
    stats.geom,
    stats.betabinom,
    stats.zipf,
):
    for _method in ("logpmf", "pmf", "cdf", "sf"):
        if find(getattr(_distribution, _method)) is not None:
            for_every_instance(getattr(_distribution, _method))


# --- several variables --------------------------------------------------------------------------------------

S, MU = definite(3, 3), generic(3, seed=1)
POINTS = generic(4, 3, seed=2)


def full_covariance(cov, d):
    """A covariance given as one variance, or as variances, as a matrix."""
    cov = np.asarray(cov)
    return cov * np.eye(d) if cov.ndim == 0 else np.diag(cov) if cov.ndim == 1 else cov


def covariance_part(g, cov):
    """The cotangent of a covariance in the form in which it was given."""
    cov = np.asarray(cov)
    if cov.ndim == 2:
        return unbroadcast(g, cov)
    return unbroadcast(np.trace(g) if cov.ndim == 0 else np.diagonal(g), cov)


def normal_parts(x, mean, cov):
    """The deviations, as rows, and the same multiplied by the inverse covariance, which comes third."""
    d = np.size(mean) if mean is not None else np.shape(cov)[0] if np.ndim(cov) == 2 else 1
    center = np.zeros(d) if mean is None else np.reshape(mean, -1)
    away = np.reshape(np.asarray(x, float), (-1, d)) - center
    inverse = np.linalg.inv(full_covariance(cov, d))
    return away, away @ inverse, inverse


def normal_adjoint(g, x, mean, cov):
    """For the log density -(x - m)^T S^-1 (x - m) / 2 - log det(S) / 2."""
    _, scaled, inverse = normal_parts(x, mean, cov)
    weights = np.reshape(g, (-1, 1))
    x_bar = -weights * scaled
    outer = scaled.T @ (weights * scaled) - np.sum(weights) * inverse
    return (
        unbroadcast(np.reshape(x_bar, np.shape(x)), x),
        None if mean is None else unbroadcast(np.reshape(-np.sum(x_bar, axis=0), np.shape(mean)), mean),
        covariance_part(outer / 2, cov),
    )


def normal_tangents(x_dot, mean_dot, cov_dot, y, x, mean, cov):
    away, scaled, inverse = normal_parts(x, mean, cov)
    of_x = (
        np.reshape(-np.sum(scaled * np.reshape(x_dot, away.shape), axis=1), np.shape(y))
        if np.ndim(x_dot) == np.ndim(x)
        else 0 * y
    )
    moves = mean is not None and np.ndim(mean_dot) == np.ndim(mean)
    of_mean = np.reshape(scaled @ np.reshape(mean_dot, -1), np.shape(y)) if moves else 0 * y
    moved = full_covariance(cov_dot, away.shape[1])
    of_cov = np.reshape(
        (np.sum((scaled @ moved) * scaled, axis=1) - np.sum(inverse.T * moved)) / 2, np.shape(y)
    )
    return of_x, of_mean, of_cov


NORMALS = [
    (MU * 0.5, MU, S),
    (POINTS, MU, S),
    (POINTS, None, S),
    (POINTS, MU, 1.7),
    (POINTS, MU, [0.7, 1.2, 2.0]),
    case(MU, cov=S),
    MU,
    (0.7, 0.2, 1.7),
]


@reverse(stats.multivariate_normal.logpdf, wrt=("x", "mean", "cov"), at=NORMALS)
def normal_logpdf(g, y, x, mean=None, cov=1, *, allow_singular=False):
    """The covariance's cotangent is symmetric."""
    found = normal_adjoint(g, x, mean, cov)
    return found


@forward(stats.multivariate_normal.logpdf)
def normal_logpdf_forward(x_dot, mean_dot, cov_dot, y, x, mean=None, cov=1, *, allow_singular=False):
    found = normal_tangents(x_dot, mean_dot, cov_dot, y, x, mean, cov)
    return found


@reverse(stats.multivariate_normal.pdf, wrt=("x", "mean", "cov"), at=NORMALS)
def normal_pdf(g, y, x, mean=None, cov=1, *, allow_singular=False):
    """The covariance's cotangent is symmetric."""
    found = normal_adjoint(g * y, x, mean, cov)
    return found


@forward(stats.multivariate_normal.pdf)
def normal_pdf_forward(x_dot, mean_dot, cov_dot, y, x, mean=None, cov=1, *, allow_singular=False):
    of_x, of_mean, of_cov = normal_tangents(x_dot, mean_dot, cov_dot, y, x, mean, cov)
    return y * of_x, y * of_mean, y * of_cov


@reverse(stats.multivariate_normal.entropy, wrt="cov", at=[(MU, S), (None, S)])
def normal_entropy(g, y, mean=None, cov=1):
    return covariance_part(g / 2 * np.linalg.inv(full_covariance(cov, np.size(mean))).T, cov)


@forward(stats.multivariate_normal.entropy)
def normal_entropy_forward(cov_dot, y, mean=None, cov=1):
    d = np.size(mean)
    return np.sum(np.linalg.inv(full_covariance(cov, d)).T * full_covariance(cov_dot, d)) / 2


def student_parts(x, loc, shape, df):
    """Scaled deviations, inverse shape, and the factor that a normal distribution would lack."""
    away, scaled, inverse = normal_parts(x, loc, shape)
    square = np.sum(away * scaled, axis=1)
    return away, scaled, inverse, square, (df + away.shape[1]) / (df + square)


STUDENTS = [(MU * 0.5, MU, S, 3.0), (POINTS, MU, S, 2.5)]


@reverse(stats.multivariate_t.logpdf, wrt=("x", "loc", "shape", "df"), at=STUDENTS)
def multivariate_t_logpdf(g, y, x, loc=None, shape=1, df=1):
    """The shape's cotangent is symmetric."""
    _, scaled, inverse, square, factor = student_parts(x, loc, shape, df)
    weights = np.reshape(g, -1)
    x_bar = -(weights * factor)[:, None] * scaled
    outer = scaled.T @ ((weights * factor)[:, None] * scaled) - np.sum(weights) * inverse
    d = scaled.shape[1]
    constant = special.psi((df + d) / 2) - special.psi(df / 2) - d / df
    slope = constant - np.log1p(square / df) + factor * square / df
    return (
        unbroadcast(np.reshape(x_bar, np.shape(x)), x),
        None if loc is None else unbroadcast(np.reshape(-np.sum(x_bar, axis=0), np.shape(loc)), loc),
        covariance_part(outer / 2, shape),
        unbroadcast(np.sum(weights * slope) / 2, df),
    )


@forward(stats.multivariate_t.logpdf)
def multivariate_t_logpdf_forward(x_dot, loc_dot, shape_dot, df_dot, y, x, loc=None, shape=1, df=1):
    away, scaled, inverse, square, factor = student_parts(x, loc, shape, df)
    d = scaled.shape[1]
    moved = full_covariance(shape_dot, d)
    of_x = -factor * np.sum(scaled * np.reshape(x_dot, away.shape), axis=1) if np.ndim(x_dot) else 0 * square
    of_loc = factor * (scaled @ np.reshape(loc_dot, -1)) if np.ndim(loc_dot) else 0 * square
    of_shape = (factor * np.sum((scaled @ moved) * scaled, axis=1) - np.sum(inverse.T * moved)) / 2
    slope = (
        special.psi((df + d) / 2)
        - special.psi(df / 2)
        - d / df
        - np.log1p(square / df)
        + factor * square / df
    )
    found = [np.reshape(part, np.shape(y)) for part in (of_x, of_loc, of_shape, df_dot * slope / 2)]
    return found[0], found[1], found[2], found[3]


ALPHA = P + 0.4
SIMPLEX = U / np.sum(U)


def last_missing(x, alpha):
    """Does `x` leave out its last component, which is what is missing to 1?"""
    return np.shape(x)[0] == np.shape(alpha)[-1] - 1


def completed(x, alpha):
    return (
        np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)]) if last_missing(x, alpha) else np.asarray(x)
    )


def dirichlet_adjoint(g, x, alpha):
    full = completed(x, alpha)
    powers = np.reshape(np.asarray(alpha) - 1, (-1, *[1] * (full.ndim - 1)))
    x_bar = g * powers / full
    if last_missing(x, alpha):
        x_bar = x_bar[:-1] - x_bar[-1:]
    direct = np.sum(np.reshape(g * np.log(full), (len(full), -1)), axis=1)
    return unbroadcast(x_bar, x), unbroadcast(
        direct + np.sum(g) * (special.psi(np.sum(alpha)) - special.psi(alpha)), alpha
    )


def dirichlet_tangents(x_dot, alpha_dot, y, x, alpha):
    full = completed(x, alpha)
    column = (-1, *[1] * (full.ndim - 1))
    of_x = of_alpha = 0 * y
    if np.ndim(x_dot):
        moved = (
            np.concatenate([x_dot, -np.sum(x_dot, axis=0, keepdims=True)])
            if last_missing(x, alpha)
            else x_dot
        )
        of_x = np.sum(np.reshape(np.asarray(alpha) - 1, column) / full * moved, axis=0)
    if np.ndim(alpha_dot):
        change = np.sum(alpha_dot * (special.psi(np.sum(alpha)) - special.psi(alpha)))
        of_alpha = np.sum(np.log(full) * np.reshape(alpha_dot, column), axis=0) + change
    return of_x, of_alpha


DIRICHLETS = [(SIMPLEX[:2], ALPHA), (np.stack([SIMPLEX[:2], SIMPLEX[1:]], 1), ALPHA)]


@reverse(stats.dirichlet.logpdf, wrt=("x", "alpha"), at=DIRICHLETS)
def dirichlet_logpdf(g, y, x, alpha):
    found = dirichlet_adjoint(g, x, alpha)
    return found


@forward(stats.dirichlet.logpdf)
def dirichlet_logpdf_forward(x_dot, alpha_dot, y, x, alpha):
    found = dirichlet_tangents(x_dot, alpha_dot, y, x, alpha)
    return found


@reverse(stats.dirichlet.pdf, wrt=("x", "alpha"), at=DIRICHLETS)
def dirichlet_pdf(g, y, x, alpha):
    found = dirichlet_adjoint(g * y, x, alpha)
    return found


@forward(stats.dirichlet.pdf)
def dirichlet_pdf_forward(x_dot, alpha_dot, y, x, alpha):
    of_x, of_alpha = dirichlet_tangents(x_dot, alpha_dot, y, x, alpha)
    return y * of_x, y * of_alpha


def dirichlet_entropy_slope(alpha):
    total = np.sum(alpha)
    return (total - np.size(alpha)) * special.polygamma(1, total) - (
        np.asarray(alpha) - 1
    ) * special.polygamma(1, alpha)


@reverse(stats.dirichlet.entropy, at=[ALPHA])
def dirichlet_entropy(g, y, alpha):
    return unbroadcast(g * dirichlet_entropy_slope(alpha), alpha)


@forward(stats.dirichlet.entropy)
def dirichlet_entropy_forward(alpha_dot, y, alpha):
    return np.sum(alpha_dot * dirichlet_entropy_slope(alpha))


@reverse(stats.dirichlet.mean, at=[ALPHA])
def dirichlet_mean(g, y, alpha):
    return (g - np.sum(g * y)) / np.sum(alpha)


@forward(stats.dirichlet.mean)
def dirichlet_mean_forward(alpha_dot, y, alpha):
    return (alpha_dot - y * np.sum(alpha_dot)) / np.sum(alpha)


@reverse(stats.dirichlet.var, at=[ALPHA])
def dirichlet_var(g, y, alpha):
    """a (s - a) / (s^2 (s + 1)) with s the sum."""
    s = np.sum(alpha)
    scale = s * s * (s + 1)
    return (
        g * (s - 2 * alpha) / scale + np.sum(g * alpha) / scale - np.sum(g * y) * (3 * s + 2) / (s * (s + 1))
    )


@forward(stats.dirichlet.var)
def dirichlet_var_forward(alpha_dot, y, alpha):
    s, s_dot = np.sum(alpha), np.sum(alpha_dot)
    moved = alpha_dot * (s - 2 * alpha) + alpha * s_dot
    return moved / (s * s * (s + 1)) - y * s_dot * (3 * s + 2) / (s * (s + 1))


COUNTS = np.array([1, 0, 2])


@reverse(stats.multinomial.logpmf, wrt="p", at=[(COUNTS, 3, SIMPLEX)])
def multinomial_logpmf(g, y, x, n, p):
    """SciPy takes for the last probability what is missing to 1."""
    return unbroadcast(np.expand_dims(g, -1) * multinomial_slope(x, p), p)


def multinomial_slope(x, p):
    x = np.asarray(x)
    rest = 1 - np.sum(p[..., :-1], axis=-1, keepdims=True)
    slope = x[..., :-1] / p[..., :-1] - x[..., -1:] / rest
    return np.concatenate([slope, np.zeros_like(slope[..., :1])], axis=-1)


@forward(stats.multinomial.logpmf)
def multinomial_logpmf_forward(p_dot, y, x, n, p):
    return np.sum(multinomial_slope(x, p) * p_dot, axis=-1)


@reverse(stats.multinomial.pmf, wrt="p", at=[(COUNTS, 3, SIMPLEX)])
def multinomial_pmf(g, y, x, n, p):
    """SciPy takes for the last probability what is missing to 1."""
    return unbroadcast(np.expand_dims(g * y, -1) * multinomial_slope(x, p), p)


@forward(stats.multinomial.pmf)
def multinomial_pmf_forward(p_dot, y, x, n, p):
    return y * np.sum(multinomial_slope(x, p) * p_dot, axis=-1)


def wishart_slopes(x, df, scale):
    """The derivatives of the log density for the matrix, the degrees of freedom and the scale matrix."""
    d = len(scale)
    x_inverse, inverse = np.linalg.inv(x), np.linalg.inv(scale)
    of_x = (df - d - 1) / 2 * x_inverse - inverse / 2
    logs = np.linalg.slogdet(x)[1] - np.linalg.slogdet(scale)[1] - d * math.log(2)
    of_df = (logs - np.sum(special.psi((df - np.arange(d)) / 2))) / 2
    of_scale = inverse @ x @ inverse / 2 - df / 2 * inverse
    return of_x, of_df, of_scale


@reverse(stats.wishart.logpdf, wrt=("x", "df", "scale"), at=[(S, 4.3, S + np.eye(3))])
def wishart_logpdf(g, y, x, df, scale):
    """The cotangents of the matrices are symmetric."""
    of_x, of_df, of_scale = wishart_slopes(x, df, scale)
    return g * of_x, unbroadcast(g * of_df, df), g * of_scale


@forward(stats.wishart.logpdf)
def wishart_logpdf_forward(x_dot, df_dot, scale_dot, y, x, df, scale):
    of_x, of_df, of_scale = wishart_slopes(x, df, scale)
    return np.sum(of_x.T * x_dot), df_dot * of_df, np.sum(of_scale.T * scale_dot)


nondifferentiable(
    *[
        d.rvs
        for d in (stats.norm, stats.uniform, stats.expon, stats.gamma, stats.beta, stats.t, stats.poisson)
    ],
)


for _distribution in (
    *(stats.poisson, stats.bernoulli, stats.binom, stats.geom, stats.nbinom, stats.betabinom),
    *(stats.zipf, stats.skellam, stats.hypergeom, stats.randint),
):
    nondifferentiable(_distribution.ppf, _distribution.isf, _distribution.median)


@elementwise(stats.poisson.entropy, at=[2.5, P])
def poisson_entropy(y, mu, loc=0):
    """With E f(k + 1) - E f(k) for the slope of E f(k) at f = log k!."""
    return mean_log_next(mu) - np.log(mu), 0


def mean_log_next(mu):
    """The mean of log(k + 1) for Poisson's k."""
    largest = np.max(mu)
    k = np.arange(int(largest + 20 * np.sqrt(largest) + 60))
    return np.sum(stats.poisson.pmf(k, np.asarray(mu)[..., None]) * np.log1p(k), axis=-1)
