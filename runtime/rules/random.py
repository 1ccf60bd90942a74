"""Rules for random draws (NumPy manual, "Random sampling").

Where a parameter shifts, scales or bends a standard draw, the derivative is that of the shift, scale or bend,
with the standard draw held fixed (the reparameterised gradient); it can be told from the result. Discrete
draws and draws without parameters are constant. What is missing here (`choice` and `permutation` of given
values, draws of a beta distribution, ...) has no derivative that this library knows, and is refused where one
would be needed.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import forward, nondifferentiable, reverse
from srcgrad.runtime.support import ratio, unbroadcast

RNG, LEGACY = np.random.default_rng(0), np.random.RandomState(0)
X, P = generic(3), positive(3)
BOTH = [(rng, *args) for rng in (RNG, LEGACY) for args in ((0.5, 1.5), (X, P), (0.5, P, (2, 3)))]
FREE = [(0.5, 1.5), (X, P), (0.5, P, (2, 3))]


def shifted_and_scaled(g, y, loc, scale):
    return unbroadcast(g, loc), unbroadcast(g * ratio(y - loc, scale), scale)


def shift_and_scale(loc_dot, scale_dot, y, loc, scale):
    return unbroadcast(loc_dot, y), unbroadcast(scale_dot * ratio(y - loc, scale), y)


@reverse(
    *[
        f
        for r in (np.random.Generator, np.random.RandomState)
        for f in (r.normal, r.laplace, r.logistic, r.gumbel)
    ],
    wrt=("loc", "scale"),
    at=BOTH,
)
def normal(g, y, self, loc=0.0, scale=1.0, size=None):
    return shifted_and_scaled(g, y, loc, scale)


@forward(
    *[
        f
        for r in (np.random.Generator, np.random.RandomState)
        for f in (r.normal, r.laplace, r.logistic, r.gumbel)
    ]
)
def normal_forward(loc_dot, scale_dot, y, self, loc=0.0, scale=1.0, size=None):
    return shift_and_scale(loc_dot, scale_dot, y, loc, scale)


@reverse(
    np.random.normal, np.random.laplace, np.random.logistic, np.random.gumbel, wrt=("loc", "scale"), at=FREE
)
def global_normal(g, y, loc=0.0, scale=1.0, size=None):
    return shifted_and_scaled(g, y, loc, scale)


@forward(np.random.normal)
def global_normal_forward(loc_dot, scale_dot, y, loc=0.0, scale=1.0, size=None):
    return shift_and_scale(loc_dot, scale_dot, y, loc, scale)


def between(g, y, low, high):
    share = ratio(y - low, high - low)
    return unbroadcast(g * (1 - share), low), unbroadcast(g * share, high)


def between_tangents(low_dot, high_dot, y, low, high):
    share = ratio(y - low, high - low)
    return unbroadcast(low_dot * (1 - share), y), unbroadcast(high_dot * share, y)


@reverse(
    np.random.Generator.uniform,
    np.random.RandomState.uniform,
    wrt=("low", "high"),
    at=[(RNG, 0.5, 1.5), (LEGACY, X, 3.0), (RNG, 0.5, P + 1, (2, 3))],
)
def uniform(g, y, self, low=0.0, high=1.0, size=None):
    return between(g, y, low, high)


@forward(np.random.Generator.uniform)
def uniform_forward(low_dot, high_dot, y, self, low=0.0, high=1.0, size=None):
    return between_tangents(low_dot, high_dot, y, low, high)


@reverse(np.random.uniform, wrt=("low", "high"), at=[(0.5, 1.5), (X, 3.0), (0.5, P + 1, (2, 3))])
def global_uniform(g, y, low=0.0, high=1.0, size=None):
    return between(g, y, low, high)


@forward(np.random.uniform)
def global_uniform_forward(low_dot, high_dot, y, low=0.0, high=1.0, size=None):
    return between_tangents(low_dot, high_dot, y, low, high)


SCALED = [f for r in (np.random.Generator, np.random.RandomState) for f in (r.exponential, r.rayleigh)]


@reverse(*SCALED, at=[(RNG, 1.5), (LEGACY, P), (RNG, P, (2, 3))], wrt="scale")
def exponential(g, y, self, scale=1.0, size=None):
    return unbroadcast(g * ratio(y, scale), scale)


@forward(*SCALED)
def exponential_forward(scale_dot, y, self, scale=1.0, size=None):
    return unbroadcast(scale_dot * ratio(y, scale), y)


@reverse(np.random.exponential, np.random.rayleigh, at=[1.5, P, (P, (2, 3))])
def global_exponential(g, y, scale=1.0, size=None):
    return unbroadcast(g * ratio(y, scale), scale)


@forward(np.random.exponential)
def global_exponential_forward(scale_dot, y, scale=1.0, size=None):
    return unbroadcast(scale_dot * ratio(y, scale), y)


@reverse(
    np.random.Generator.gamma,
    np.random.RandomState.gamma,
    wrt="scale",
    at=[(RNG, 2.0, 1.5), (LEGACY, 2.0, P)],
)
def gamma(g, y, self, shape, scale=1.0, size=None):
    return unbroadcast(g * ratio(y, scale), scale)


@forward(np.random.Generator.gamma)
def gamma_forward(scale_dot, y, self, shape, scale=1.0, size=None):
    return unbroadcast(scale_dot * ratio(y, scale), y)


@reverse(np.random.gamma, wrt="scale", at=[(2.0, 1.5), (2.0, P)])
def global_gamma(g, y, shape, scale=1.0, size=None):
    return unbroadcast(g * ratio(y, scale), scale)


@forward(np.random.gamma)
def global_gamma_forward(scale_dot, y, shape, scale=1.0, size=None):
    return unbroadcast(scale_dot * ratio(y, scale), y)


LOGNORMAL = (np.random.Generator.lognormal, np.random.RandomState.lognormal)


@reverse(*LOGNORMAL, wrt=("mean", "sigma"), at=BOTH)
def lognormal(g, y, self, mean=0.0, sigma=1.0, size=None):
    return shifted_and_scaled(g * y, np.log(y), mean, sigma)


@forward(*LOGNORMAL)
def lognormal_forward(mean_dot, sigma_dot, y, self, mean=0.0, sigma=1.0, size=None):
    return unbroadcast(y * mean_dot, y), unbroadcast(y * sigma_dot * ratio(np.log(y) - mean, sigma), y)


@reverse(np.random.lognormal, wrt=("mean", "sigma"), at=FREE)
def global_lognormal(g, y, mean=0.0, sigma=1.0, size=None):
    return shifted_and_scaled(g * y, np.log(y), mean, sigma)


@forward(np.random.lognormal)
def global_lognormal_forward(mean_dot, sigma_dot, y, mean=0.0, sigma=1.0, size=None):
    return unbroadcast(y * mean_dot, y), unbroadcast(y * sigma_dot * ratio(np.log(y) - mean, sigma), y)


POWERS = (
    np.random.Generator.weibull,
    np.random.Generator.power,
    np.random.RandomState.weibull,
    np.random.RandomState.power,
)


@reverse(*POWERS, wrt="a", at=[(RNG, 1.5), (LEGACY, P), (RNG, P, (2, 3))])
def weibull(g, y, self, a, size=None):
    """A draw is e ** (1 / a) for a standard e."""
    return unbroadcast(-g * y * np.log(y) / a, a)


@forward(*POWERS)
def weibull_forward(a_dot, y, self, a, size=None):
    return unbroadcast(-a_dot * y * np.log(y) / a, y)


@reverse(np.random.Generator.pareto, np.random.RandomState.pareto, wrt="a", at=[(RNG, 1.5), (LEGACY, P)])
def pareto(g, y, self, a, size=None):
    """1 + y is e ** (1 / a) for a standard e."""
    return unbroadcast(-g * (1 + y) * np.log1p(y) / a, a)


@forward(np.random.Generator.pareto)
def pareto_forward(a_dot, y, self, a, size=None):
    return unbroadcast(-a_dot * (1 + y) * np.log1p(y) / a, y)


_CONSTANT = (
    "standard_normal standard_exponential standard_cauchy binomial geometric hypergeometric logseries "
    "negative_binomial poisson zipf multinomial bytes"
)
nondifferentiable(
    *[getattr(r, name) for r in (np.random.Generator, np.random.RandomState) for name in _CONSTANT.split()],
    *[getattr(np.random, name) for name in _CONSTANT.split()],
    *[
        np.random.Generator.random,
        np.random.Generator.integers,
        np.random.default_rng,
        np.random.Generator.spawn,
    ],
    *[np.random.RandomState.rand, np.random.RandomState.randn, np.random.RandomState.randint],
    *[np.random.RandomState.random_sample, np.random.RandomState.random, np.random.RandomState.seed],
    *[
        np.random.rand,
        np.random.randn,
        np.random.randint,
        np.random.random,
        np.random.random_sample,
        np.random.seed,
    ],
    *[np.random.ranf, np.random.sample, np.random.get_state, np.random.set_state, np.random.RandomState],
    *[np.random.Generator, np.random.SeedSequence, np.random.PCG64, np.random.MT19937, np.random.Philox],
)
