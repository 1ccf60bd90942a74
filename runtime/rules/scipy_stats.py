"""Rules for summary statistics, distances and tests (SciPy manual, `scipy.stats`, "Summary statistics" and
below).

`axis` is 0 where SciPy's is. The policy for nan is the default one.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.scipy_special import boxcox_slope
from srcgrad.runtime.rules.statistics import (
    hat,
    percentile,
    percentile_forward,
    quantile,
    quantile_forward,
    ranks,
)
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import count, deviation, expand, ratio, ties, unbroadcast, undiff

X, Y, P = generic(7), generic(7, seed=1), positive(7)
M, Q = generic(3, 4), positive(3, 4)
AXES = [X, M, case(M, axis=1), case(M, axis=None), case(M, axis=1, keepdims=True)]
POSITIVE = [P, Q, case(Q, axis=1), case(Q, axis=None), case(Q, axis=1, keepdims=True)]


def summed(x_dot, slope, axis, keepdims=False):
    """The tangent of a statistic, from its derivatives for the elements."""
    return np.sum(x_dot * slope, axis=axis, keepdims=keepdims)


# --- means --------------------------------------------------------------------------------------------------

WEIGHTED = [case(P, weights=positive(7, seed=1)), case(Q, axis=1, weights=positive(3, 4, seed=1))]


def shares_of(a, axis, weights):
    if weights is None:
        return 1 / count(a, axis)
    return weights / np.sum(weights, axis=axis, keepdims=True)


@reverse(stats.gmean, at=[*POSITIVE, *WEIGHTED])
def gmean(g, y, a, axis=0, *, weights=None, keepdims=False):
    """The weights must be constant."""
    return expand(g * y, a, axis, keepdims) * shares_of(a, axis, weights) / a


@forward(stats.gmean)
def gmean_forward(a_dot, y, a, axis=0, *, weights=None, keepdims=False):
    return y * summed(a_dot, shares_of(a, axis, weights) / a, axis, keepdims)


@reverse(stats.hmean, at=[*POSITIVE, *WEIGHTED])
def hmean(g, y, a, axis=0, *, weights=None, keepdims=False):
    """The weights must be constant."""
    return expand(g * y * y, a, axis, keepdims) * shares_of(a, axis, weights) / a**2


@forward(stats.hmean)
def hmean_forward(a_dot, y, a, axis=0, *, weights=None, keepdims=False):
    return y * y * summed(a_dot, shares_of(a, axis, weights) / a**2, axis, keepdims)


@reverse(
    stats.pmean,
    at=[
        (P, 3),
        case(Q, 0.5, axis=1),
        case(Q, -2, axis=0, keepdims=True),
        case(P, 2, weights=positive(7, seed=1)),
    ],
    wrt="a",
)
def pmean(g, y, a, p, *, axis=0, weights=None, keepdims=False):
    """The power and the weights must be constant."""
    return expand(g * y ** (1 - p), a, axis, keepdims) * shares_of(a, axis, weights) * a ** (p - 1)


@forward(stats.pmean)
def pmean_forward(a_dot, y, a, p, *, axis=0, weights=None, keepdims=False):
    return y ** (1 - p) * summed(a_dot, shares_of(a, axis, weights) * a ** (p - 1), axis, keepdims)


def within_limits(a, limits, inclusive):
    low, high = (None, None) if limits is None else limits
    inside = np.full(np.shape(a), True)
    if low is not None:
        inside = inside & (a >= low if inclusive[0] else a > low)
    if high is not None:
        inside = inside & (a <= high if inclusive[1] else a < high)
    return inside


TRIMMED = [X, case(M, axis=0), case(X, (-1.0, 1.5))]


@reverse(stats.tmean, at=TRIMMED)
def tmean(g, y, a, limits=None, inclusive=(True, True), axis=None, *, keepdims=False):
    inside = within_limits(a, limits, inclusive)
    return expand(g, a, axis, keepdims) * inside / count(a, axis, inside)


@forward(stats.tmean)
def tmean_forward(a_dot, y, a, limits=None, inclusive=(True, True), axis=None, *, keepdims=False):
    inside = within_limits(a, limits, inclusive)
    return summed(a_dot, inside / count(a, axis, inside), axis, keepdims)


def trimmed_variance_slope(a, limits, inclusive, axis, ddof):
    inside = within_limits(a, limits, inclusive)
    return 2 * deviation(a, axis, inside) * inside / count(a, axis, inside, ddof)


@reverse(stats.tvar, at=[X, M, case(X, (-1.0, 1.5)), case(M, axis=1, ddof=0)])
def tvar(g, y, a, limits=None, inclusive=(True, True), axis=0, ddof=1, *, keepdims=False):
    return expand(g, a, axis, keepdims) * trimmed_variance_slope(a, limits, inclusive, axis, ddof)


@forward(stats.tvar)
def tvar_forward(a_dot, y, a, limits=None, inclusive=(True, True), axis=0, ddof=1, *, keepdims=False):
    return summed(a_dot, trimmed_variance_slope(a, limits, inclusive, axis, ddof), axis, keepdims)


@reverse(stats.tstd, at=[X, M, case(X, (-1.0, 1.5))])
def tstd(g, y, a, limits=None, inclusive=(True, True), axis=0, ddof=1, *, keepdims=False):
    """Where all elements are equal the derivative is taken as 0."""
    return expand(ratio(g, 2 * y), a, axis, keepdims) * trimmed_variance_slope(
        a, limits, inclusive, axis, ddof
    )


@forward(stats.tstd)
def tstd_forward(a_dot, y, a, limits=None, inclusive=(True, True), axis=0, ddof=1, *, keepdims=False):
    return ratio(
        summed(a_dot, trimmed_variance_slope(a, limits, inclusive, axis, ddof), axis, keepdims), 2 * y
    )


def trim_weights(a, proportiontocut, axis):
    n = count(a, axis)
    cut = int(proportiontocut * n)
    rank = ranks(a, axis)
    return (rank >= cut) * (rank < n - cut) / (n - 2 * cut)


@reverse(stats.trim_mean, at=[(X, 0.2), (M, 0.3), (M, 0.3, 1)])
def trim_mean(g, y, a, proportiontocut, axis=0, *, keepdims=False):
    return unbroadcast(expand(g, a, axis, keepdims) * trim_weights(a, proportiontocut, axis), a)


@forward(stats.trim_mean)
def trim_mean_forward(a_dot, y, a, proportiontocut, axis=0, *, keepdims=False):
    return unbroadcast(summed(a_dot, trim_weights(a, proportiontocut, axis), axis, keepdims), y)


@reverse(stats.expectile, wrt="a", at=[(X, 0.4), X, (X, 0.8)])
def expectile(g, y, a, alpha=0.5):
    """The elements above the expectile count alpha, those below 1 - alpha."""
    weights = np.where(a > y, alpha, 1 - alpha)
    return unbroadcast(g * weights / np.sum(weights), a)


@forward(stats.expectile)
def expectile_forward(a_dot, y, a, alpha=0.5):
    weights = np.where(a > y, alpha, 1 - alpha)
    return np.sum(a_dot * weights) / np.sum(weights)


# --- moments ------------------------------------------------------------------------------------------------


def central(a, axis, k):
    """The k-th central moment, with the axes kept."""
    return np.mean(deviation(a, axis) ** k, axis=axis, keepdims=True)


def moment_slope(a, axis, k):
    """The derivative of the k-th central moment for the elements."""
    if k < 2:
        return np.zeros_like(a)
    return k / count(a, axis) * (deviation(a, axis) ** (k - 1) - central(a, axis, k - 1))


@reverse(stats.moment, at=[(X, 3), (M, 2), (M, 4, 1), X, case(X, 3, center=0.2)])
def moment(g, y, a, order=1, axis=0, *, center=None, keepdims=False):
    if center is None:
        return expand(g, a, axis, keepdims) * moment_slope(a, axis, order)
    return expand(g, a, axis, keepdims) * order / count(a, axis) * (a - center) ** (order - 1)


@forward(stats.moment)
def moment_forward(a_dot, y, a, order=1, axis=0, *, center=None, keepdims=False):
    slope = moment_slope(a, axis, order)
    if center is not None:
        slope = order / count(a, axis) * (a - center) ** (order - 1)
    return summed(a_dot, slope, axis, keepdims)


def skew_slope(a, axis, bias):
    m2, m3 = central(a, axis, 2), central(a, axis, 3)
    slope = ratio(moment_slope(a, axis, 3), m2**1.5) - 1.5 * ratio(m3 * moment_slope(a, axis, 2), m2**2.5)
    n = count(a, axis)
    return slope if bias else slope * math.sqrt(n * (n - 1)) / (n - 2)


@reverse(stats.skew, at=[X, M, case(M, axis=1, keepdims=True), case(X, bias=False), case(M, axis=None)])
def skew(g, y, a, axis=0, bias=True, *, keepdims=False):
    return expand(g, a, axis, keepdims) * skew_slope(a, axis, bias)


@forward(stats.skew)
def skew_forward(a_dot, y, a, axis=0, bias=True, *, keepdims=False):
    return summed(a_dot, skew_slope(a, axis, bias), axis, keepdims)


def kurtosis_slope(a, axis, bias):
    m2, m4 = central(a, axis, 2), central(a, axis, 4)
    slope = ratio(moment_slope(a, axis, 4), m2**2) - 2 * ratio(m4 * moment_slope(a, axis, 2), m2**3)
    n = count(a, axis)
    return slope if bias else slope * (n * n - 1) / ((n - 2) * (n - 3))


@reverse(
    stats.kurtosis, at=[X, M, case(M, axis=1), case(X, bias=False), case(X, fisher=False), case(M, axis=None)]
)
def kurtosis(g, y, a, axis=0, fisher=True, bias=True, *, keepdims=False):
    return expand(g, a, axis, keepdims) * kurtosis_slope(a, axis, bias)


@forward(stats.kurtosis)
def kurtosis_forward(a_dot, y, a, axis=0, fisher=True, bias=True, *, keepdims=False):
    return summed(a_dot, kurtosis_slope(a, axis, bias), axis, keepdims)


@reverse(stats.kstat, at=[X, (X, 1), (X, 3), (X, 4), case(M, 2, axis=1)])
def kstat(g, y, data, n=2, *, axis=None):
    return expand(g, data, axis) * kstat_slope(data, n, axis)


@forward(stats.kstat)
def kstat_forward(data_dot, y, data, n=2, *, axis=None):
    return summed(data_dot, kstat_slope(data, n, axis), axis)


def kstat_slope(data, order, axis):
    """k-statistics as combinations of central moments (M. Kendall and A. Stuart, volume 1, chapter 12)."""
    n = count(data, axis)
    if order == 1:
        return np.ones_like(data) / n
    if order == 2:
        return n / (n - 1) * moment_slope(data, axis, 2)
    if order == 3:
        return n * n / ((n - 1) * (n - 2)) * moment_slope(data, axis, 3)
    scale = n * n / ((n - 1) * (n - 2) * (n - 3))
    square = 2 * central(data, axis, 2) * moment_slope(data, axis, 2)
    return scale * ((n + 1) * moment_slope(data, axis, 4) - 3 * (n - 1) * square)


@reverse(stats.sem, at=[X, M, case(M, axis=1, ddof=0), case(M, axis=None)])
def sem(g, y, a, axis=0, ddof=1, *, keepdims=False):
    """Where all elements are equal the derivative is taken as 0."""
    n = count(a, axis)
    return expand(ratio(g, y), a, axis, keepdims) * deviation(a, axis) / (n * count(a, axis, True, ddof))


@forward(stats.sem)
def sem_forward(a_dot, y, a, axis=0, ddof=1, *, keepdims=False):
    slope = deviation(a, axis) / (count(a, axis) * count(a, axis, True, ddof))
    return ratio(summed(a_dot, slope, axis, keepdims), y)


def variation_slope(y, a, axis, ddof, keepdims):
    mean = np.mean(a, axis=axis, keepdims=True)
    deviations = deviation(a, axis)
    spread = np.sqrt(np.sum(deviations**2, axis=axis, keepdims=True) / count(a, axis, True, ddof))
    slope = ratio(deviations, spread) / count(a, axis, True, ddof)
    return slope / mean - expand(y, a, axis, keepdims) / (mean * count(a, axis))


@reverse(stats.variation, at=[P, Q, case(Q, axis=1, ddof=1), case(Q, axis=None)])
def variation(g, y, a, axis=0, *, ddof=0, keepdims=False):
    return expand(g, a, axis, keepdims) * variation_slope(y, a, axis, ddof, keepdims)


@forward(stats.variation)
def variation_forward(a_dot, y, a, axis=0, *, ddof=0, keepdims=False):
    return summed(a_dot, variation_slope(y, a, axis, ddof, keepdims), axis, keepdims)


@reverse(stats.zscore, at=[X, M, case(M, axis=1, ddof=1), case(M, axis=None)])
def zscore(g, y, a, axis=0, ddof=0):
    n = count(a, axis, True, ddof)
    spread = np.sqrt(np.sum(deviation(a, axis) ** 2, axis=axis, keepdims=True) / n)
    return (deviation(g, axis) - y * np.sum(g * y, axis=axis, keepdims=True) / n) / spread


@forward(stats.zscore)
def zscore_forward(a_dot, y, a, axis=0, ddof=0):
    n = count(a, axis, True, ddof)
    spread = np.sqrt(np.sum(deviation(a, axis) ** 2, axis=axis, keepdims=True) / n)
    return (deviation(a_dot, axis) - y * np.sum(a_dot * y, axis=axis, keepdims=True) / n) / spread


@reverse(stats.describe, at=[X, M, case(M, axis=1, ddof=0), case(X, bias=False)])
def describe(g, y, a, axis=0, ddof=1, bias=True):
    """Elements that tie for the extremes share evenly."""
    found = expand(g[1][0], a, axis) * ties(y[1][0], a, axis) + expand(g[1][1], a, axis) * ties(
        y[1][1], a, axis
    )
    found = found + expand(g[2] / count(a, axis), a, axis)
    found = found + expand(g[3], a, axis) * 2 * deviation(a, axis) / count(a, axis, True, ddof)
    found = found + expand(g[4], a, axis) * skew_slope(a, axis, bias)
    return unbroadcast(found + expand(g[5], a, axis) * kurtosis_slope(a, axis, bias), a)


@forward(stats.describe)
def describe_forward(a_dot, y, a, axis=0, ddof=1, bias=True):
    return (
        0,
        (summed(a_dot, ties(y[1][0], a, axis), axis), summed(a_dot, ties(y[1][1], a, axis), axis)),
        np.mean(a_dot, axis=axis),
        summed(a_dot, 2 * deviation(a, axis) / count(a, axis, True, ddof), axis),
        summed(a_dot, skew_slope(a, axis, bias), axis),
        summed(a_dot, kurtosis_slope(a, axis, bias), axis),
    )


# --- order statistics ---------------------------------------------------------------------------------------


@reverse(stats.iqr, at=[X, case(M, axis=0), case(M, axis=1, rng=(10, 80), keepdims=True), case(X, scale=1.3)])
def iqr(g, y, x, axis=None, rng=(25, 75), scale=1.0, *, interpolation="linear", keepdims=False):
    low, high = sorted(rng)
    scaled = g / (scipy_scale(scale))
    top = percentile(scaled, y, x, high, axis, method=interpolation, keepdims=keepdims)[0]
    return top - percentile(scaled, y, x, low, axis, method=interpolation, keepdims=keepdims)[0]


def scipy_scale(scale):
    """The scale by number, or "normal": the interquartile range of the standard normal distribution."""
    return 2 * math.sqrt(2) * special.erfinv(0.5) if scale == "normal" else scale


@forward(stats.iqr)
def iqr_forward(x_dot, y, x, axis=None, rng=(25, 75), scale=1.0, *, interpolation="linear", keepdims=False):
    low, high = sorted(rng)
    top = percentile_forward(x_dot, 0.0, y, x, high, axis, method=interpolation, keepdims=keepdims)[0]
    bottom = percentile_forward(x_dot, 0.0, y, x, low, axis, method=interpolation, keepdims=keepdims)[0]
    return (top - bottom) / scipy_scale(scale)


def mad_scale(scale):
    return special.ndtri(0.75) if scale == "normal" else scale


def mad_slope(x, axis):
    """The derivative of the median of abs(x - median(x)) for the elements."""
    away = x - np.median(x, axis=axis, keepdims=True)
    rank = ranks(np.abs(away), axis)
    weights = hat(rank, np.median(rank, axis=axis, keepdims=True)) * np.sign(away)
    rank = ranks(x, axis)
    middle = hat(rank, np.median(rank, axis=axis, keepdims=True))
    return weights - middle * np.sum(weights, axis=axis, keepdims=True)


@reverse(
    stats.median_abs_deviation, at=[X, M, case(M**3, axis=1), case(X, scale="normal"), case(M**3, axis=None)]
)
def median_abs_deviation(g, y, x, axis=0, *, scale=1.0, keepdims=False):
    return unbroadcast(expand(g / mad_scale(scale), x, axis, keepdims) * mad_slope(x, axis), x)


@forward(stats.median_abs_deviation)
def median_abs_deviation_forward(x_dot, y, x, axis=0, *, scale=1.0, keepdims=False):
    return unbroadcast(summed(x_dot, mad_slope(x, axis), axis, keepdims) / mad_scale(scale), y)


if hasattr(stats, "quantile"):

    @reverse(stats.quantile, wrt="x", at=[(X, 0.3), case(M, 0.6, axis=1), case(X, 0.3, method="hazen")])
    def quantile_(g, y, x, p, *, method="linear", axis=0):
        """For one probability, which must be constant."""
        if np.ndim(p):
            raise NotImplementedError("the derivative of scipy.stats.quantile for an array of probabilities")
        return quantile(g, y, x, p, axis, method=method)[0]

    @forward(stats.quantile)
    def quantile_tangent(x_dot, y, x, p, *, method="linear", axis=0):
        return quantile_forward(x_dot, 0.0, y, x, p, axis, method=method)[0]


# --- directions, entropies, transformations -----------------------------------------------------------------


def circmean_slope(samples, high, low, axis):
    """cos(angle - mean angle) / n over the length of the mean vector."""
    angle = (samples - low) * 2 * math.pi / (high - low)
    s, c = np.mean(np.sin(angle), axis=axis, keepdims=True), np.mean(np.cos(angle), axis=axis, keepdims=True)
    return (np.cos(angle) * c + np.sin(angle) * s) / (count(samples, axis) * (s * s + c * c))


@reverse(stats.circmean, at=[P, (Q, 3.0, -1.0), case(Q, axis=1)])
def circmean(g, y, samples, high=2 * math.pi, low=0, axis=None, *, keepdims=False):
    return expand(g, samples, axis, keepdims) * circmean_slope(samples, high, low, axis)


@forward(stats.circmean)
def circmean_forward(samples_dot, y, samples, high=2 * math.pi, low=0, axis=None, *, keepdims=False):
    return summed(samples_dot, circmean_slope(samples, high, low, axis), axis, keepdims)


def normalized_adjoint(v, p, total, axis):
    """The cotangent of numbers that are divided by their sum, from that of the quotients."""
    return (v - np.sum(v * p, axis=axis, keepdims=True)) / total


@reverse(
    stats.entropy,
    wrt=("pk", "qk"),
    at=[P, (P, P[::-1]), case(Q, axis=1, base=2), (Q, positive(3, 4, seed=2), 10), case(Q, axis=None)],
)
def entropy(g, y, pk, qk=None, base=None, axis=0, *, keepdims=False):
    """Both sequences are divided by their sums first."""
    g = expand(g / (1.0 if base is None else math.log(base)), pk, axis, keepdims)
    total = np.sum(pk, axis=axis, keepdims=True)
    p = pk / total
    if qk is None:
        return normalized_adjoint(-g * (np.log(p) + 1), p, total, axis), None
    below = np.sum(qk, axis=axis, keepdims=True)
    q = qk / below
    return (
        unbroadcast(normalized_adjoint(g * (np.log(p / q) + 1), p, total, axis), pk),
        unbroadcast(normalized_adjoint(-g * p / q, q, below, axis), qk),
    )


@forward(stats.entropy)
def entropy_forward(pk_dot, qk_dot, y, pk, qk=None, base=None, axis=0, *, keepdims=False):
    unit = 1.0 if base is None else math.log(base)
    ones = np.ones_like(np.sum(pk, axis=axis))
    of_pk, of_qk = entropy(ones / unit, y, pk, qk, None, axis)
    if qk is None:
        return summed(pk_dot, of_pk, axis, keepdims), None
    return summed(pk_dot, of_pk, axis, keepdims), summed(qk_dot, of_qk, axis, keepdims)


def power_slope(x, lmbda):
    """The derivative of the Yeo-Johnson transform for its argument."""
    return np.where(x >= 0, (1 + np.abs(x)) ** (lmbda - 1), (1 + np.abs(x)) ** (1 - lmbda))


@reverse(stats.yeojohnson, wrt=("x", "lmbda"), at=[(X, 0.4), (X, 2.0), (X, 0.0)])
def yeojohnson(g, y, x, lmbda):
    """For a given lmbda."""
    return g * power_slope(x, lmbda), unbroadcast(np.sum(g * yeojohnson_slope(x, lmbda)), lmbda)


def yeojohnson_slope(x, lmbda):
    log = np.log1p(np.abs(x))
    return np.where(x >= 0, boxcox_slope(log, lmbda), boxcox_slope(log, 2 - lmbda))


@forward(stats.yeojohnson)
def yeojohnson_forward(x_dot, lmbda_dot, y, x, lmbda):
    return x_dot * power_slope(x, lmbda), lmbda_dot * yeojohnson_slope(x, lmbda)


@reverse(stats.boxcox, wrt=("x", "lmbda"), at=[(P, 0.4), (P, 0.0)])
def boxcox(g, y, x, lmbda):
    """For a given lmbda."""
    return g * x ** (lmbda - 1), unbroadcast(np.sum(g * boxcox_slope(np.log(x), lmbda)), lmbda)


@forward(stats.boxcox)
def boxcox_forward(x_dot, lmbda_dot, y, x, lmbda):
    return x_dot * x ** (lmbda - 1), lmbda_dot * boxcox_slope(np.log(x), lmbda)


def boxcox_llf_slopes(lmb, data):
    """(lmb - 1) sum(log x) - n log(var(z)) / 2, with z the transformed data."""
    log, n = np.log(data), np.shape(data)[0]
    z = special.boxcox(data, lmb)
    away = z - np.mean(z, axis=0)
    pull = n * away / np.sum(away**2, axis=0)
    of_lmb = np.sum(log, axis=0) - np.sum(pull * boxcox_slope(log, lmb), axis=0)
    return of_lmb, (lmb - 1) / data - pull * data ** (lmb - 1)


@reverse(stats.boxcox_llf, wrt=("lmb", "data"), at=[(0.6, P), (0.6, Q), (0.0, P)])
def boxcox_llf(g, y, lmb, data):
    of_lmb, of_data = boxcox_llf_slopes(lmb, data)
    return unbroadcast(np.sum(g * of_lmb), lmb), g * of_data


@forward(stats.boxcox_llf)
def boxcox_llf_forward(lmb_dot, data_dot, y, lmb, data):
    of_lmb, of_data = boxcox_llf_slopes(lmb, data)
    return lmb_dot * of_lmb, np.sum(data_dot * of_data, axis=0)


# --- distances between samples ------------------------------------------------------------------------------


def sample_gaps(u_values, v_values, u_weights, v_weights):
    """The joint sample in order, and the two distribution functions' difference in between."""
    u, v = np.asarray(u_values), np.asarray(v_values)
    together = np.concatenate([u, v])
    order = np.argsort(together, kind="stable")
    share = np.concatenate([normal_weights(u, u_weights), -normal_weights(v, v_weights)])
    return together[order], order, np.cumsum(share[order])[:-1]


def normal_weights(values, weights):
    return (
        np.full(np.shape(values), 1 / np.size(values))
        if weights is None
        else np.asarray(weights) / np.sum(weights)
    )


def sample_cotangents(g, order, u_values, v_values):
    """From the cotangent of the joint sample in order to those of the samples."""
    found = np.empty(len(order))
    found[order] = g
    n = np.size(u_values)
    return unbroadcast(found[:n], np.asarray(u_values)), unbroadcast(found[n:], np.asarray(v_values))


def sample_tangents(u_dot, v_dot, order, n, m):
    u_dot = u_dot if np.ndim(u_dot) else np.zeros(n)
    v_dot = v_dot if np.ndim(v_dot) else np.zeros(m)
    first, second = np.concatenate([u_dot, np.zeros(m)]), np.concatenate([np.zeros(n), v_dot])
    return np.diff(first[order]), np.diff(second[order])


SAMPLES = [(X, Y), (X, Y[:4]), (X, Y[:3], positive(7), positive(3))]


@reverse(stats.wasserstein_distance, wrt=("u_values", "v_values"), at=SAMPLES)
def wasserstein_distance(g, y, u_values, v_values, u_weights=None, v_weights=None):
    """The integral of the difference of the distribution functions; the weights must be constant."""
    _, order, gap = sample_gaps(u_values, v_values, u_weights, v_weights)
    found = sample_cotangents(undiff(g * np.abs(gap)), order, u_values, v_values)
    return found[0], found[1]


@forward(stats.wasserstein_distance)
def wasserstein_distance_forward(u_dot, v_dot, y, u_values, v_values, u_weights=None, v_weights=None):
    _, order, gap = sample_gaps(u_values, v_values, u_weights, v_weights)
    first, second = sample_tangents(u_dot, v_dot, order, np.size(u_values), np.size(v_values))
    return np.sum(np.abs(gap) * first), np.sum(np.abs(gap) * second)


@reverse(stats.energy_distance, wrt=("u_values", "v_values"), at=SAMPLES)
def energy_distance(g, y, u_values, v_values, u_weights=None, v_weights=None):
    """The root of twice the integral of the squared difference of the distribution functions."""
    _, order, gap = sample_gaps(u_values, v_values, u_weights, v_weights)
    found = sample_cotangents(undiff(ratio(g, y) * gap**2), order, u_values, v_values)
    return found[0], found[1]


@forward(stats.energy_distance)
def energy_distance_forward(u_dot, v_dot, y, u_values, v_values, u_weights=None, v_weights=None):
    _, order, gap = sample_gaps(u_values, v_values, u_weights, v_weights)
    first, second = sample_tangents(u_dot, v_dot, order, np.size(u_values), np.size(v_values))
    return ratio(np.sum(gap**2 * first), y), ratio(np.sum(gap**2 * second), y)


# --- correlation and tests ----------------------------------------------------------------------------------


def correlation_parts(x, y):
    """Unit vectors of the deviations, their lengths, and the correlation."""
    x_away, y_away = deviation(x), deviation(y)
    x_size, y_size = np.sqrt(np.sum(x_away**2)), np.sqrt(np.sum(y_away**2))
    x_unit, y_unit = ratio(x_away, x_size), ratio(y_away, y_size)
    return x_unit, y_unit, x_size, y_size, np.sum(x_unit * y_unit)


def correlation_density(r, n):
    """The density of the correlation of independent normal samples."""
    return (1 - r * r) ** (n / 2 - 2) / special.beta(0.5, n / 2 - 1)


@reverse(stats.pearsonr, wrt=("x", "y"), at=[(X, Y)])
def pearsonr(g, z, x, y):
    """Correlation and the p-value of the test in both directions, of vectors."""
    x_unit, y_unit, x_size, y_size, r = correlation_parts(x, y)
    pull = g[0] - 2 * g[1] * np.sign(r) * correlation_density(r, np.size(x))
    return (
        unbroadcast(pull * (y_unit - r * x_unit) / x_size, x),
        unbroadcast(pull * (x_unit - r * y_unit) / y_size, y),
    )


@forward(stats.pearsonr)
def pearsonr_forward(x_dot, y_dot, z, x, y):
    x_unit, y_unit, x_size, y_size, r = correlation_parts(x, y)
    slope = -2 * np.sign(r) * correlation_density(r, np.size(x))
    of_x = np.sum(x_dot * (y_unit - r * x_unit)) / x_size
    of_y = np.sum(y_dot * (x_unit - r * y_unit)) / y_size
    return (of_x, slope * of_x), (of_y, slope * of_y)


@reverse(stats.linregress, wrt=("x", "y"), at=[(X, Y)])
def linregress(g, z, x, y):
    """Slope, intercept, correlation, p-value and standard error, of vectors."""
    slopes = regression_slopes(x, y)
    of_x = [part * slope for part, slope in zip(g, slopes[0], strict=True)]
    of_y = [part * slope for part, slope in zip(g, slopes[1], strict=True)]
    return unbroadcast(sum(of_x), x), unbroadcast(sum(of_y), y)


def regression_slopes(x, y):
    """The derivatives of the five results for the elements of x and of y."""
    n = np.size(x)
    x_unit, y_unit, x_size, y_size, r = correlation_parts(x, y)
    slope = r * y_size / x_size
    found = []
    for own in (0, 1):
        of_r = (y_unit - r * x_unit) / x_size if own == 0 else (x_unit - r * y_unit) / y_size
        of_slope = of_r * y_size / x_size + (
            -slope * x_unit / x_size if own == 0 else slope / y_size * y_unit
        )
        of_intercept = -of_slope * np.mean(x) + (-slope / n if own == 0 else 1 / n)
        of_p = -2 * np.sign(r) * correlation_density(r, n) * of_r
        error = np.sqrt((1 - r * r) / (n - 2)) * y_size / x_size
        of_error = -r * of_r / (1 - r * r) * error
        of_error = of_error + error * (-x_unit / x_size if own == 0 else y_unit / y_size)
        found.append((of_slope, of_intercept, of_r, of_p, of_error))
    return found


@forward(stats.linregress)
def linregress_forward(x_dot, y_dot, z, x, y):
    of_x, of_y = regression_slopes(x, y)
    first = [np.sum(x_dot * slope) for slope in of_x]
    second = [np.sum(y_dot * slope) for slope in of_y]
    return tuple(first), tuple(second)


def student_density(t, df):
    return np.exp(-special.betaln(df / 2, 0.5) - (df + 1) / 2 * np.log1p(t * t / df)) / np.sqrt(df)


def significance(t, df, alternative):
    """The derivative of a p-value for the statistic."""
    density = student_density(t, df)
    return {"two-sided": -2 * np.sign(t), "less": 1.0, "greater": -1.0}[alternative] * density


def t_slopes(t, a, axis, keepdims):
    """The derivatives of (mean - popmean) / (deviation / sqrt(n)) for the elements and for popmean."""
    n = count(a, axis)
    spread = np.sqrt(np.sum(deviation(a, axis) ** 2, axis=axis, keepdims=True) / (n - 1))
    unit = math.sqrt(n) / spread
    return unit / n - expand(t, a, axis, keepdims) * deviation(a, axis) / (spread**2 * (n - 1)), -unit


@reverse(
    stats.ttest_1samp,
    wrt=("a", "popmean"),
    at=[(X, 0.3), (M, 0.3), case(M, 0.3, axis=1), case(X, 0.3, alternative="less")],
)
def ttest_1samp(g, y, a, popmean, axis=0, *, alternative="two-sided", keepdims=False):
    t = np.asarray(y[0])
    pull = g[0] + g[1] * significance(t, count(a, axis) - 1, alternative)
    of_a, of_mean = t_slopes(t, a, axis, keepdims)
    whole = unbroadcast(expand(pull, a, axis, keepdims), a)
    return whole * of_a, unbroadcast(
        np.sum(whole * of_mean / count(a, axis), axis=axis, keepdims=keepdims), popmean
    )


@forward(stats.ttest_1samp)
def ttest_1samp_forward(
    a_dot, popmean_dot, y, a, popmean, axis=0, *, alternative="two-sided", keepdims=False
):
    t = np.asarray(y[0])
    slope = significance(t, count(a, axis) - 1, alternative)
    of_a, of_mean = t_slopes(t, a, axis, keepdims)
    moved = np.sum(a_dot * of_a, axis=axis, keepdims=keepdims)
    shifted = popmean_dot * np.sum(of_mean + 0 * a, axis=axis, keepdims=keepdims) / count(a, axis)
    return (
        (moved, unbroadcast(slope * moved, np.asarray(y[1]))),
        (shifted, unbroadcast(slope * shifted, np.asarray(y[1]))),
    )


def chisquare_parts(f_obs, f_exp, axis):
    expected = np.mean(f_obs, axis=axis, keepdims=True) if f_exp is None else f_exp
    return expected, (f_obs - expected) / expected


def chisquare_pull(g, y, f_obs, ddof, axis):
    """The cotangent of the statistic, which the p-value follows."""
    df = count(f_obs, axis) - 1 - ddof
    return g[0] - g[1] * stats.chi2.pdf(y[0], df)


@reverse(stats.chisquare, wrt=("f_obs", "f_exp"), at=[P, case(P, P[::-1], sum_check=False), case(Q, axis=1)])
def chisquare(g, y, f_obs, f_exp=None, ddof=0, axis=0, *, sum_check=True):
    expected, excess = chisquare_parts(f_obs, f_exp, axis)
    pull = expand(chisquare_pull(g, y, f_obs, ddof, axis), f_obs, axis)
    of_exp = -pull * (2 * excess + excess**2)
    if f_exp is None:
        shared = np.sum(of_exp, axis=axis, keepdims=True) / count(f_obs, axis)
        return unbroadcast(2 * pull * excess + shared, f_obs), None
    return unbroadcast(2 * pull * excess, f_obs), unbroadcast(of_exp, f_exp)


@forward(stats.chisquare)
def chisquare_forward(f_obs_dot, f_exp_dot, y, f_obs, f_exp=None, ddof=0, axis=0, *, sum_check=True):
    expected, excess = chisquare_parts(f_obs, f_exp, axis)
    slope = -stats.chi2.pdf(y[0], count(f_obs, axis) - 1 - ddof)
    moved = np.sum(2 * excess * f_obs_dot, axis=axis) if np.ndim(f_obs_dot) else 0 * y[0]
    if f_exp is None:
        moved = moved - np.sum(
            (2 * excess + excess**2) * np.mean(f_obs_dot, axis=axis, keepdims=True), axis=axis
        )
        return (moved, unbroadcast(slope * moved, np.asarray(y[1]))), None
    shifted = -np.sum((2 * excess + excess**2) * f_exp_dot, axis=axis) if np.ndim(f_exp_dot) else 0 * y[0]
    return (
        (moved, unbroadcast(slope * moved, np.asarray(y[1]))),
        (shifted, unbroadcast(slope * shifted, np.asarray(y[1]))),
    )


nondifferentiable(stats.rankdata)
