"""Rules for probability distributions (SciPy manual, `scipy.stats`).

A continuous distribution is told by the derivative of its log density at the standardised place z = (x - loc)
/ scale (its `score`), by the derivatives of the log density for the shape parameters, and by those of the
distribution function for them. All its methods follow. The rules are written out from these formulas when
this file is read, and stand in `linecache` like any other source. The normal distribution, which everybody
uses, is written by hand. Outside of the support the derivatives are 0.

Formulas: N. Johnson, S. Kotz and N. Balakrishnan, "Continuous Univariate Distributions"; NIST Digital Library
of Mathematical Functions, chapters 5, 7, 8 and 10.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import linecache
import math
import re

import numpy as np
from scipy import special, stats

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.scipy_special import difference, like, scale_of
from srcgrad.runtime.rules.table import case, elementwise, for_every_instance

X, P, U = generic(3), positive(3), generic(3, low=0.15, high=0.85)
ROOT_2PI = math.sqrt(2 * math.pi)


def held(y, value):
    """`value`, and 0 where the logarithm `y` is infinite: outside of the support."""
    return like(np.where(np.isfinite(y), value, 0), y)


def times(y, value):
    """`y` times `value`, and 0 where the density `y` is 0: outside of the support."""
    return like(np.where(np.equal(y, 0), 0, y * value), y)


# --- the normal distribution --------------------------------------------------------------------------------

NORMAL = [0.7, (0.7, 0.2), (X, 0.2, 1.3), (X, U, P), case(X, scale=P)]


@elementwise(stats.norm.logpdf, at=NORMAL)
def norm_logpdf(y, x, loc=0, scale=1):
    return (loc - x) / scale**2, (x - loc) / scale**2, ((x - loc) ** 2 / scale**2 - 1) / scale


@elementwise(stats.norm.pdf, at=NORMAL)
def norm_pdf(y, x, loc=0, scale=1):
    return y * (loc - x) / scale**2, y * (x - loc) / scale**2, y * ((x - loc) ** 2 / scale**2 - 1) / scale


def bell(x, loc, scale):
    """The density of the normal distribution."""
    return np.exp(-(((x - loc) / scale) ** 2) / 2) / (ROOT_2PI * scale)


@elementwise(stats.norm.cdf, at=NORMAL)
def norm_cdf(y, x, loc=0, scale=1):
    return bell(x, loc, scale), -bell(x, loc, scale), bell(x, loc, scale) * (loc - x) / scale


@elementwise(stats.norm.sf, at=NORMAL)
def norm_sf(y, x, loc=0, scale=1):
    return -bell(x, loc, scale), bell(x, loc, scale), bell(x, loc, scale) * (x - loc) / scale


def bell_share(y, x, loc, scale):
    """The density over a probability of which `y` is the logarithm."""
    return np.exp(-(((x - loc) / scale) ** 2) / 2 - y) / (ROOT_2PI * scale)


@elementwise(stats.norm.logcdf, at=NORMAL)
def norm_logcdf(y, x, loc=0, scale=1):
    return (
        bell_share(y, x, loc, scale),
        -bell_share(y, x, loc, scale),
        bell_share(y, x, loc, scale) * (loc - x) / scale,
    )


@elementwise(stats.norm.logsf, at=NORMAL)
def norm_logsf(y, x, loc=0, scale=1):
    return (
        -bell_share(y, x, loc, scale),
        bell_share(y, x, loc, scale),
        bell_share(y, x, loc, scale) * (x - loc) / scale,
    )


PROBABILITIES = [0.7, (0.7, 0.2), (U, 0.2, 1.3), (U, X, P)]


@elementwise(stats.norm.ppf, at=PROBABILITIES)
def norm_ppf(x, q, loc=0, scale=1):
    return 1 / bell(x, loc, scale), 1, (x - loc) / scale


@elementwise(stats.norm.isf, at=PROBABILITIES)
def norm_isf(x, q, loc=0, scale=1):
    return -1 / bell(x, loc, scale), 1, (x - loc) / scale


@elementwise(stats.norm.entropy, at=[(0.3, 1.3), (X, P)])
def norm_entropy(y, loc=0, scale=1):
    return 0, 1 / scale


@elementwise(stats.norm.mean, stats.norm.median, at=[(0.3, 1.3)])
def norm_mean(y, loc=0, scale=1):
    return 1, 0


@elementwise(stats.norm.std, at=[(0.3, 1.3)])
def norm_std(y, loc=0, scale=1):
    return 0, 1


@elementwise(stats.norm.var, at=[(0.3, 1.3)])
def norm_var(y, loc=0, scale=1):
    return 0, 2 * scale


for _method in (
    "logpdf",
    "pdf",
    "cdf",
    "sf",
    "logcdf",
    "logsf",
    "ppf",
    "isf",
    "entropy",
    "mean",
    "median",
    "std",
    "var",
):
    for_every_instance(getattr(stats.norm, _method))  # a frozen distribution has an instance of its own


# --- other continuous distributions -------------------------------------------------------------------------

METHODS = {
    "logpdf": (
        "held(y, ({score}) / scale)",
        "held(y, -({score}) / scale)",
        "held(y, -(1 + z * ({score})) / scale)",
    ),
    "pdf": (
        "times(y, ({score}) / scale)",
        "times(y, -({score}) / scale)",
        "times(y, -(1 + z * ({score})) / scale)",
    ),
    "cdf": ("{f}", "-{f}", "-z * {f}"),
    "sf": ("-{f}", "{f}", "z * {f}"),
    "logcdf": ("share(y, {f})", "share(y, -{f})", "share(y, -z * {f})"),
    "logsf": ("share(y, -{f})", "share(y, {f})", "share(y, z * {f})"),
    "ppf": ("1 / {f}", "1", "z"),
    "isf": ("-1 / {f}", "1", "z"),
}
"""For each method the partial derivatives for the place (or the probability), for loc, and for scale; {f} is
the density."""

SLOPES = {
    "logpdf": "held(y, {0})",
    "pdf": "times(y, {0})",
    "cdf": "like({1}, y)",
    "sf": "like(-({1}), y)",
    "logcdf": "share(y, {1})",
    "logsf": "share(y, -({1}))",
    "ppf": "like(-({1}) / {f}, x)",
    "isf": "like(-({1}) / {f}, x)",
}
"""The partial derivative of a shape parameter, from those of the log density {0} and of the distribution
function {1}."""


def share(y, value):
    """`value` over the probability of which `y` is the logarithm; 0 where that is 0."""
    return held(y, value * np.exp(-np.where(np.isfinite(y), y, 0)))


def normal_mass(a, b):
    """The standard normal probability between a and b, from the tail on which they lie."""
    upper = np.greater(a, 0)
    return special.ndtr(np.where(upper, np.negative(a), b)) - special.ndtr(np.where(upper, np.negative(b), a))


def mills(x):
    """The standard normal density over its distribution function."""
    return np.exp(-x * x / 2 - special.log_ndtr(x)) / ROOT_2PI


def bent(c, z):
    """The derivative of -log(1 + c z) / c for c; at c = 0, z^2 / 2."""
    return z * z * special.hyp2f1(2, 2, 3, -c * z) / 2


def bessel_ratio(v, x):
    """I_{v+1}(x) / I_v(x)."""
    return special.ive(v + 1, x) / special.ive(v, x)


VOCABULARY = {
    **{
        "np": np,
        "math": math,
        "special": special,
        "stats": stats,
        "difference": difference,
        "scale_of": scale_of,
    },
    **{f.__name__: f for f in (like, held, times, share, bell, normal_mass, mills, bent, bessel_ratio)},
    "__name__": __name__,
}
"""The names that the formulas may use."""


def family(distribution, shapes, score, slopes=(), cdf_slopes=(), at=(), methods=tuple(METHODS), q=U):
    """File the rules of a continuous distribution's methods.

    `shapes` names the shape parameters. `score`, `slopes` and `cdf_slopes` are formulas in z and the shape
    parameters: the derivative of the log density for z, and those of log density and distribution function
    for each shape parameter.
    """
    names = shapes.split()
    args = "".join(f", {name}" for name in names)
    scope = dict(VOCABULARY, density=distribution.pdf, tail=distribution.sf)
    f = f"density(x{args}, loc, scale)"
    for method in methods:
        place, loc, scale = (part.format(score=score, f=f) for part in METHODS[method])
        pairs = zip(slopes, cdf_slopes or slopes, strict=True)
        body = ", ".join([place, *(SLOPES[method].format(*pair, f=f) for pair in pairs), loc, scale])
        body = re.sub(r"\bz\b", "((x - loc) / scale)", body)
        inverse = method in ("ppf", "isf")
        name = f"{distribution.name}_{method}"
        text = f"def {name}({'x, q' if inverse else 'y, x'}{args}, loc=0, scale=1):\n    return {body}\n"
        file = f"<srcgrad rule {name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), scope)
        inputs = [(q, *arguments[1:]) if inverse else arguments for arguments in at]
        elementwise(getattr(distribution, method), at=inputs)(scope[name])
        for_every_instance(getattr(distribution, method))  # a frozen distribution has an instance of its own


LOCATED = [(X,), (X, 0.1, 1.3), (X, U, P)]
POSITIVE = [(P,), (P, -0.1, 1.3), (P, -U, P)]


def shaped(places, *shapes):
    """Places with shape parameters, alone, with location and scale, and as arrays."""
    return [
        (places, *shapes),
        (places, *shapes, -0.1, 1.3),
        (places, *[s + 0 * U for s in shapes], -U / 10, P),
    ]


WITHOUT_PPF = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")
LOGARITHMIC = ("logpdf", "pdf")
NONCENTRAL = ((1, "scale_of(df)"), (2, 1.0))

family(stats.uniform, "", "0.0 * z", at=[(U,), (U, -0.1, 1.3)])
family(stats.expon, "", "-1.0", at=POSITIVE)
family(stats.cauchy, "", "-2 * z / (1 + z * z)", at=LOCATED)
family(stats.laplace, "", "-np.sign(z)", at=LOCATED)
family(stats.logistic, "", "-np.tanh(z / 2)", at=LOCATED)
family(stats.gumbel_r, "", "np.exp(-z) - 1", at=LOCATED)
family(stats.gumbel_l, "", "1 - np.exp(z)", at=LOCATED)
family(stats.halfnorm, "", "-z", at=POSITIVE)
family(stats.halfcauchy, "", "-2 * z / (1 + z * z)", at=POSITIVE)
family(stats.rayleigh, "", "1 / z - z", at=POSITIVE)
family(stats.maxwell, "", "2 / z - z", at=POSITIVE)

family(
    stats.gamma,
    "a",
    "(a - 1) / z - 1",
    ["np.log(z) - special.psi(a)"],
    ["difference(special.gammainc, (a, z), 0, scale_of(a))"],
    at=shaped(P, 1.7),
)
family(
    stats.chi2,
    "df",
    "(df / 2 - 1) / z - 0.5",
    ["(np.log(z / 2) - special.psi(df / 2)) / 2"],
    ["difference(special.chdtr, (df, z), 0, scale_of(df))"],
    at=shaped(P, 1.7),
)
family(
    stats.beta,
    "a b",
    "(a - 1) / z - (b - 1) / (1 - z)",
    ["np.log(z) - special.psi(a) + special.psi(a + b)", "np.log1p(-z) - special.psi(b) + special.psi(a + b)"],
    [f"difference(special.betainc, (a, b, z), {k}, scale_of({'ab'[k]}))" for k in (0, 1)],
    at=[(U, 1.7, 0.8), (U, 1.7, 0.8, -0.1, 1.3), (U, P, P[::-1])],
)
family(
    stats.t,
    "df",
    "-(df + 1) * z / (df + z * z)",
    [
        "(special.psi((df + 1) / 2) - special.psi(df / 2) - 1 / df - np.log1p(z * z / df)"
        " + (df + 1) * z * z / (df * (df + z * z))) / 2"
    ],
    ["difference(special.stdtr, (df, z), 0, scale_of(df))"],
    at=shaped(X, 2.7),
)
family(
    stats.lognorm,
    "s",
    "-(1 + np.log(z) / s**2) / z",
    ["np.log(z) ** 2 / s**3 - 1 / s"],
    ["-bell(np.log(z) / s, 0, 1) * np.log(z) / s**2"],
    at=shaped(P, 0.7),
)
family(
    stats.pareto,
    "b",
    "-(b + 1) / z",
    ["1 / b - np.log(z)"],
    ["z**-b * np.log(z)"],
    at=[(P + 2, 1.7), (P + 2, 1.7, 0.1, 1.3), (P + 2, P, U, U)],
)
family(
    stats.truncnorm,
    "a b",
    "-z",
    ["bell(a, 0, 1) / normal_mass(a, b)", "-bell(b, 0, 1) / normal_mass(a, b)"],
    [
        "-bell(a, 0, 1) / normal_mass(a, b) * tail(x, a, b, loc, scale)",
        "-bell(b, 0, 1) / normal_mass(a, b) * (1 - tail(x, a, b, loc, scale))",
    ],
    at=[(U, -1.0, 2.0), (U, -1.0, 2.0, 0.1, 1.3), (U, -P, P[::-1] + 1)],
)
family(
    stats.vonmises,
    "kappa",
    "-kappa * np.sin(z)",
    ["np.cos(z) - special.i1e(kappa) / special.i0e(kappa)"],
    ["difference(stats.vonmises.cdf, (z, kappa), 1, scale_of(kappa))"],
    at=shaped(X, 1.7),
    methods=("logpdf", "pdf", "cdf"),
)
family(
    stats.wrapcauchy,
    "c",
    "-2 * c * np.sin(z) / (1 + c * c - 2 * c * np.cos(z))",
    ["-2 * c / (1 - c * c) - 2 * (c - np.cos(z)) / (1 + c * c - 2 * c * np.cos(z))"],
    at=shaped(P, 0.4),
    methods=LOGARITHMIC,
)
family(
    stats.gennorm,
    "beta",
    "-beta * np.sign(z) * np.abs(z) ** (beta - 1)",
    ["1 / beta + special.psi(1 / beta) / beta**2 - np.abs(z) ** beta * np.log(np.abs(z))"],
    ["difference(stats.gennorm.cdf, (z, beta), 1, scale_of(beta))"],
    at=shaped(X, 1.7),
)
family(
    stats.invgamma,
    "a",
    "1 / z**2 - (a + 1) / z",
    ["-np.log(z) - special.psi(a)"],
    ["difference(special.gammaincc, (a, 1 / z), 0, scale_of(a))"],
    at=shaped(P, 1.7),
)
family(
    stats.weibull_min,
    "c",
    "(c - 1) / z - c * z ** (c - 1)",
    ["1 / c + np.log(z) - z**c * np.log(z)"],
    ["np.exp(-(z**c)) * z**c * np.log(z)"],
    at=shaped(P, 1.7),
)
family(
    stats.f,
    "dfn dfd",
    "(dfn / 2 - 1) / z - (dfn + dfd) * dfn / (2 * (dfd + dfn * z))",
    [
        "(np.log(dfn * z / (dfd + dfn * z)) + 1 - (dfn + dfd) * z / (dfd + dfn * z)"
        " - special.psi(dfn / 2) + special.psi((dfn + dfd) / 2)) / 2",
        "(np.log(dfd / (dfd + dfn * z)) + 1 - (dfn + dfd) / (dfd + dfn * z)"
        " - special.psi(dfd / 2) + special.psi((dfn + dfd) / 2)) / 2",
    ],
    [f"difference(special.fdtr, (dfn, dfd, z), {k}, scale_of({('dfn', 'dfd')[k]}))" for k in (0, 1)],
    at=shaped(P, 1.7, 2.6),
)
family(
    stats.triang,
    "c",
    "np.where(z < c, 1 / z, -1 / (1 - z))",
    ["np.where(z < c, -1 / c, 1 / (1 - c))"],
    ["np.where(z < c, -((z / c) ** 2), -(((1 - z) / (1 - c)) ** 2))"],
    at=[(U, 0.4), (U, 0.4, -0.1, 1.3), (U, U**2)],
)
family(
    stats.invgauss,
    "mu",
    "-3 / (2 * z) - 1 / (2 * mu**2) + 1 / (2 * z**2)",
    ["z / mu**3 - 1 / mu**2"],
    ["difference(stats.invgauss.cdf, (z, mu), 1, scale_of(mu))"],
    at=shaped(P, 1.7),
    methods=WITHOUT_PPF,
)
family(
    stats.skewnorm,
    "a",
    "a * mills(a * z) - z",
    ["z * mills(a * z)"],
    ["-np.exp(-(z**2) * (1 + a * a) / 2) / (math.pi * (1 + a * a))"],
    at=shaped(X, 1.7),
    methods=WITHOUT_PPF,
)
family(
    stats.genpareto,
    "c",
    "-(1 + c) / (1 + c * z)",
    ["bent(c, z) - z / (1 + c * z)"],
    ["-((1 + c * z) ** (-1 / c)) * bent(c, z)"],
    at=shaped(P, 0.4),
)
family(
    stats.genextreme,
    "c",
    "((1 - c * z) ** (1 / c) - 1 + c) / (1 - c * z)",
    ["(1 - c - (1 - c * z) ** (1 / c)) * -bent(-c, z) - np.log1p(-c * z) / c"],
    ["-np.exp(-((1 - c * z) ** (1 / c))) * (1 - c * z) ** (1 / c) * -bent(-c, z)"],
    at=[(U, 0.4), (U, 0.4, -0.1, 1.3), (U, U)],
)
family(
    stats.burr12,
    "c d",
    "(c - 1) / z - (d + 1) * c * z ** (c - 1) / (1 + z**c)",
    ["1 / c + np.log(z) - (d + 1) * z**c * np.log(z) / (1 + z**c)", "1 / d - np.log1p(z**c)"],
    ["d * (1 + z**c) ** (-d - 1) * z**c * np.log(z)", "(1 + z**c) ** -d * np.log1p(z**c)"],
    at=shaped(P, 1.7, 0.8),
)
family(
    stats.powerlaw,
    "a",
    "(a - 1) / z",
    ["1 / a + np.log(z)"],
    ["z**a * np.log(z)"],
    at=[(U, 1.7), (U, 1.7, -0.1, 1.3), (U, P)],
)
family(
    stats.exponnorm,
    "K",
    "mills(z - 1 / K) - 1 / K",
    ["(z - 1 / K + mills(z - 1 / K)) / K**2 - 1 / K"],
    at=shaped(X, 1.7),
    methods=LOGARITHMIC,
)
family(stats.loggamma, "c", "c - np.exp(z)", ["z - special.psi(c)"], at=shaped(X, 1.7), methods=LOGARITHMIC)
family(
    stats.ncx2,
    "df nc",
    "(df / 2 - 1) / z + (np.sqrt(nc / z) * bessel_ratio(df / 2 - 1, np.sqrt(nc * z)) - 1) / 2",
    [
        "difference(stats.ncx2.logpdf, (z, df, nc), 1, scale_of(df))",
        "(np.sqrt(z / nc) * bessel_ratio(df / 2 - 1, np.sqrt(nc * z)) - 1) / 2",
    ],
    ["difference(stats.ncx2.cdf, (z, df, nc), 1, scale_of(df))", "-stats.ncx2.pdf(z, df + 2, nc)"],
    at=shaped(P, 2.7, 0.8),
    methods=WITHOUT_PPF,
)
family(
    stats.nct,
    "df nc",
    "difference(stats.nct.logpdf, (z, df, nc), 0)",
    [f"difference(stats.nct.logpdf, (z, df, nc), {k}, {scale})" for k, scale in NONCENTRAL],
    [f"difference(stats.nct.cdf, (z, df, nc), {k}, {scale})" for k, scale in NONCENTRAL],
    at=shaped(X, 2.7, 0.4),
    methods=WITHOUT_PPF,
)
