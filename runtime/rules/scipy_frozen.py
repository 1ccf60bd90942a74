"""Rules for distributions as objects (SciPy manual, `scipy.stats`): frozen ones, and densities estimated from
data.

A frozen distribution keeps its parameters as they were given, so that the rules of the distribution's own
methods give their cotangents. The formula of the density estimate is that of D. Scott, "Multivariate Density
Estimation" (1992), chapter 6.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import linecache
import math

import numpy as np
from scipy import special, stats
from scipy.stats import _distn_infrastructure, _multivariate

from srcgrad.runtime.rules import scipy_discrete
from srcgrad.runtime.rules.callbacks import part_of, pulled, pushed
from srcgrad.runtime.rules.table import find, forward, nondifferentiable, reverse


def frozen_part(g, i, name):
    """The cotangent of a parameter of a frozen distribution, which was given by position or by name."""
    args = part_of(g, "args")
    if isinstance(args, (list, tuple)) and i < len(args):
        return args[i]
    return part_of(part_of(g, "kwds"), name)


def frozen_dot(made, names, dots):
    """The tangent of a frozen distribution, whose parameters have the tangents `dots`."""
    given = {names[i]: dots[i] for i in range(len(names))}
    return {"args": tuple(dots[: len(made.args)]), "kwds": {k: given[k] for k in made.kwds}}


VOCABULARY = {"frozen_part": frozen_part, "frozen_dot": frozen_dot, "__name__": __name__}


def freezing(distribution):
    """File the rule for calling a distribution."""
    shapes = distribution.shapes.split(", ") if distribution.shapes else []
    names = [*shapes, "loc"] + ["scale"] * isinstance(distribution, stats.rv_continuous)
    given = ", ".join([*shapes, "loc=0", "scale=1"][: len(names)])
    parts = ", ".join(f"frozen_part(g, {i}, '{name}')" for i, name in enumerate(names))
    dots = ", ".join(f"{name}_dot" for name in names)
    tuple_ = f"({dots}{',' * (len(names) == 1)})"
    name = f"freeze_{distribution.name}"
    text = (
        f"def {name}(g, made, {given}):\n    return {parts}\n\n"
        f"def {name}_forward({dots}, made, {given}):\n    return frozen_dot(made, {tuple(names)}, {tuple_})\n"
    )
    file = f"<srcgrad rule {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = dict(VOCABULARY)
    exec(compile(text, file, "exec"), scope)
    reverse(distribution, wrt=tuple(names), at=[])(scope[name])
    forward(distribution, joint=True)(scope[f"{name}_forward"])


for _distribution in vars(stats).values():
    if isinstance(_distribution, stats.rv_continuous) and find(_distribution.logpdf) is not None:
        freezing(_distribution)
    if isinstance(_distribution, stats.rv_discrete) and find(_distribution.pmf) is not None:
        freezing(_distribution)

nondifferentiable(_distn_infrastructure.rv_frozen.rvs)


# --- the normal distribution in several variables -----------------------------------------------------------


@reverse(stats.multivariate_normal, wrt=("mean", "cov"), at=[])
def freeze_normal(g, made, mean=None, cov=1, allow_singular=False, seed=None):
    """Its mean and covariance have a cotangent in the form in which they were given."""
    return (
        None if mean is None else np.reshape(part_of(g, "mean") + np.zeros(made.mean.shape), np.shape(mean)),
        given_covariance(part_of(g, "cov"), cov, made.dim),
    )


@forward(stats.multivariate_normal, joint=True)
def freeze_normal_forward(mean_dot, cov_dot, made, mean=None, cov=1, allow_singular=False, seed=None):
    return {
        "mean": np.zeros(made.mean.shape) if mean is None else np.reshape(mean_dot, made.mean.shape),
        "cov": whole_covariance(cov_dot, made.dim),
    }


def whole_covariance(cov, d):
    """A covariance, or its tangent, given as a variance, as variances or as a matrix, as a matrix."""
    if np.ndim(cov) == 0:
        return cov * np.eye(d)
    return np.diag(cov) if np.ndim(cov) == 1 else cov


def given_covariance(g, cov, d):
    g = g + np.zeros((d, d))
    if np.ndim(cov) == 0:
        return np.trace(g)
    return np.diagonal(g) if np.ndim(cov) == 1 else g


FROZEN = _multivariate.multivariate_normal_frozen


def covariance_of(self):
    return self.cov_object.covariance


@reverse(covariance_of, at=[])
def covariance_bar(g, y, self):
    return {"cov": g}


@forward(covariance_of)
def covariance_dot(self_dot, y, self):
    return part_of(self_dot, "cov") + np.zeros(y.shape)


def normal_bar(g, x, self):
    bars = scipy_discrete.normal_adjoint(g, x, self.mean, covariance_of(self))
    return {"mean": bars[1], "cov": bars[2]}, bars[0]


def normal_dot(self_dot, x_dot, y, x, self):
    dots = (
        part_of(self_dot, "mean") + np.zeros(self.mean.shape),
        part_of(self_dot, "cov") + np.zeros(np.shape(covariance_of(self))),
    )
    of_x, of_mean, of_cov = scipy_discrete.normal_tangents(x_dot, *dots, y, x, self.mean, covariance_of(self))
    return of_x + of_mean + of_cov


@reverse(FROZEN.logpdf, wrt=("self", "x"), at=[])
def frozen_logpdf(g, y, self, x):
    found = normal_bar(g, x, self)
    return found


@forward(FROZEN.logpdf, joint=True)
def frozen_logpdf_forward(self_dot, x_dot, y, self, x):
    return normal_dot(self_dot, x_dot, y, x, self)


@reverse(FROZEN.pdf, wrt=("self", "x"), at=[])
def frozen_pdf(g, y, self, x):
    found = normal_bar(g * y, x, self)
    return found


@forward(FROZEN.pdf, joint=True)
def frozen_pdf_forward(self_dot, x_dot, y, self, x):
    return y * normal_dot(self_dot, x_dot, y, x, self)


nondifferentiable(FROZEN.rvs)


# --- estimated densities ------------------------------------------------------------------------------------


def log_density(dataset, points, weights, factor):
    """The log of a mean of normal densities around data: their covariance is that of the data * factor^2."""
    d = dataset.shape[0]
    points = np.reshape(points, (d, -1))
    mean = np.sum(dataset * weights, axis=1)
    away = dataset - mean[:, None]
    covariance = (away * weights) @ np.transpose(away) / (1 - np.sum(weights**2)) * factor**2
    root = np.linalg.cholesky(covariance)
    apart = np.reshape(points[:, :, None] - dataset[:, None, :], (d, -1))
    scaled = np.reshape(np.linalg.solve(root, apart), (d, points.shape[1], dataset.shape[1]))
    energy = np.log(weights) - np.sum(scaled**2, axis=0) / 2
    return special.logsumexp(energy, axis=1) - np.log(np.prod(np.diag(root))) - d / 2 * math.log(2 * math.pi)


def density(dataset, points, weights, factor):
    return np.exp(log_density(dataset, points, weights, factor))


def data_args(self, points):
    return self.dataset, np.asarray(points, float), self._weights, self.factor


@reverse(stats.gaussian_kde, wrt="dataset", at=[])
def gaussian_kde(g, made, dataset, bw_method=None, weights=None):
    return np.reshape(part_of(g, "dataset") + np.zeros(made.dataset.shape), np.shape(dataset))


@forward(stats.gaussian_kde)
def gaussian_kde_forward(dataset_dot, made, dataset, bw_method=None, weights=None):
    return {"dataset": np.reshape(dataset_dot, made.dataset.shape)}


@reverse(stats.gaussian_kde.evaluate, wrt=("self", "points"), at=[])
def evaluate(g, y, self, points):
    bars = pulled(density, data_args(self, points), g, 2)
    return {"dataset": bars[0]}, np.reshape(bars[1], np.shape(points))


@forward(stats.gaussian_kde.evaluate, joint=True)
def evaluate_forward(self_dot, points_dot, y, self, points):
    return pushed(density, data_args(self, points), (part_of(self_dot, "dataset"), points_dot))


@reverse(stats.gaussian_kde.logpdf, wrt=("self", "x"), at=[])
def kde_logpdf(g, y, self, x):
    bars = pulled(log_density, data_args(self, x), g, 2)
    return {"dataset": bars[0]}, np.reshape(bars[1], np.shape(x))


@forward(stats.gaussian_kde.logpdf, joint=True)
def kde_logpdf_forward(self_dot, x_dot, y, self, x):
    return pushed(log_density, data_args(self, x), (part_of(self_dot, "dataset"), x_dot))
