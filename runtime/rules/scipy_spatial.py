"""Rules for distances between points (SciPy manual, `scipy.spatial.distance`). Where points agree the
derivative is 0."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy.spatial import distance

from srcgrad.runtime.rules.inputs import definite, generic, positive
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import ratio, ties, unbroadcast

U, V, W = generic(4), generic(4, seed=1), positive(4)
XA, XB = generic(3, 4) ** 3, generic(2, 4, seed=1)


def slopes(metric, y, a, b, options):
    """The derivatives of the distances `y` between vectors along the last axis, for those of `a`."""
    away = a - b
    y = np.expand_dims(y, -1)
    if metric == "euclidean":
        return ratio(away, y)
    if metric == "sqeuclidean":
        return 2 * away
    if metric == "cityblock":
        return np.sign(away)
    if metric == "chebyshev":
        size = np.abs(away)
        return np.sign(away) * ties(np.max(size, axis=-1, keepdims=True), size, -1, True)
    if metric == "minkowski":
        p = options.get("p", 2)
        return np.sign(away) * ratio(np.abs(away) ** (p - 1), np.where(y == 0, 1, y) ** (p - 1))
    if metric == "canberra":
        total = np.abs(a) + np.abs(b)
        return ratio(np.sign(away), total) - ratio(np.abs(away) * np.sign(a), total**2)
    if metric == "braycurtis":
        below = np.sum(np.abs(a + b), axis=-1, keepdims=True)
        return ratio(np.sign(away) - y * np.sign(a + b), below)
    if metric == "correlation":
        a, b = a - np.mean(a, -1, keepdims=True), b - np.mean(b, -1, keepdims=True)
    if metric in ("cosine", "correlation"):
        a_size, b_size = np.linalg.norm(a, axis=-1, keepdims=True), np.linalg.norm(b, axis=-1, keepdims=True)
        found = (1 - y) * ratio(a, a_size**2) - ratio(b, a_size * b_size)
        return found if metric == "cosine" else found - np.mean(found, -1, keepdims=True)
    if metric == "seuclidean" and "V" in options:
        return ratio(away, y * options["V"])
    if metric == "mahalanobis" and "VI" in options:
        inverse = np.asarray(options["VI"])
        return ratio(away @ (inverse + inverse.T) / 2, y)
    raise NotImplementedError(f"the derivative of the distance {metric!r}")


METRICS = (
    "euclidean",
    "sqeuclidean",
    "cityblock",
    "chebyshev",
    "cosine",
    "correlation",
    "canberra",
    "braycurtis",
)
SPECIAL = [case("minkowski", p=3), case("seuclidean", V=W), case("mahalanobis", VI=definite(4, 4))]
PAIRS = [
    (XA, XB),
    *[(XA, XB, metric) for metric in METRICS],
    *[case(XA, XB, *c.args, **c.kwargs) for c in SPECIAL],
]


def pair_slopes(y, first, second, metric, options):
    """For all pairs of rows the derivatives for the first and for the second."""
    a, b = np.expand_dims(first, 1), np.expand_dims(second, 0)
    return slopes(metric, y, a, b, options), slopes(metric, y, b, a, options)


@reverse(distance.cdist, wrt=("XA", "XB"), at=PAIRS)
def cdist(g, y, XA, XB, metric="euclidean", *, p=2, V=None, VI=None):
    of_a, of_b = pair_slopes(y, XA, XB, metric, given(p, V, VI))
    column = np.expand_dims(g, -1)
    return unbroadcast(np.sum(column * of_a, axis=1), XA), unbroadcast(np.sum(column * of_b, axis=0), XB)


def given(p, V, VI):
    return {"p": p, **({} if V is None else {"V": V}), **({} if VI is None else {"VI": VI})}


@forward(distance.cdist)
def cdist_forward(XA_dot, XB_dot, y, XA, XB, metric="euclidean", *, p=2, V=None, VI=None):
    of_a, of_b = pair_slopes(y, XA, XB, metric, given(p, V, VI))
    return (
        np.sum(of_a * np.expand_dims(XA_dot, 1), axis=-1) if np.ndim(XA_dot) else 0 * y,
        np.sum(of_b * np.expand_dims(XB_dot, 0), axis=-1) if np.ndim(XB_dot) else 0 * y,
    )


@reverse(
    distance.pdist,
    at=[XA, *[(XA, metric) for metric in METRICS], *[case(XA, *c.args, **c.kwargs) for c in SPECIAL]],
)
def pdist(g, y, X, metric="euclidean", *, p=2, V=None, VI=None):
    """The pairs above the diagonal, row by row."""
    i, j = np.triu_indices(np.shape(X)[0], 1)
    options, column = given(p, V, VI), np.expand_dims(g, -1)
    found = np.zeros(np.shape(X), np.result_type(g, X))
    np.add.at(found, i, column * slopes(metric, y, X[i], X[j], options))
    np.add.at(found, j, column * slopes(metric, y, X[j], X[i], options))
    return unbroadcast(found, X)


@forward(distance.pdist)
def pdist_forward(X_dot, y, X, metric="euclidean", *, p=2, V=None, VI=None):
    i, j = np.triu_indices(np.shape(X)[0], 1)
    options = given(p, V, VI)
    first = np.sum(slopes(metric, y, X[i], X[j], options) * X_dot[i], axis=-1)
    return first + np.sum(slopes(metric, y, X[j], X[i], options) * X_dot[j], axis=-1)


@reverse(distance.squareform, linear=True, at=[generic(6)])
def squareform(g, y, X, force="no", checks=True):
    """A vector holds the pairs above the diagonal of a symmetric matrix; of a matrix only these are read."""
    i, j = np.triu_indices(np.shape(y)[0] if np.ndim(X) == 1 else np.shape(X)[0], 1)
    if np.ndim(X) == 1:
        return g[i, j] + g[j, i]
    found = np.zeros(np.shape(X), np.result_type(g))
    found[i, j] = g
    return found


def weighted(slope, w):
    return slope if w is None else slope * w


POINTS = [(U, V), case(U, V, w=W)]


@reverse(distance.euclidean, wrt=("u", "v"), at=POINTS)
def euclidean(g, y, u, v, w=None):
    return weighted(ratio(g, y) * (u - v), w), weighted(ratio(g, y) * (v - u), w)


@forward(distance.euclidean)
def euclidean_forward(u_dot, v_dot, y, u, v, w=None):
    slope = weighted(ratio(u - v, y), w)
    return np.sum(slope * u_dot), np.sum(-slope * v_dot)


@reverse(distance.sqeuclidean, wrt=("u", "v"), at=POINTS)
def sqeuclidean(g, y, u, v, w=None):
    return weighted(2 * g * (u - v), w), weighted(2 * g * (v - u), w)


@forward(distance.sqeuclidean)
def sqeuclidean_forward(u_dot, v_dot, y, u, v, w=None):
    slope = weighted(2 * (u - v), w)
    return np.sum(slope * u_dot), np.sum(-slope * v_dot)


@reverse(distance.cityblock, wrt=("u", "v"), at=POINTS)
def cityblock(g, y, u, v, w=None):
    return weighted(g * np.sign(u - v), w), weighted(g * np.sign(v - u), w)


@forward(distance.cityblock)
def cityblock_forward(u_dot, v_dot, y, u, v, w=None):
    slope = weighted(np.sign(u - v), w)
    return np.sum(slope * u_dot), np.sum(-slope * v_dot)


@reverse(distance.chebyshev, wrt=("u", "v"), at=[(U, V)])
def chebyshev(g, y, u, v):
    return (
        unbroadcast(g * slopes("chebyshev", y, u, v, {}), u),
        unbroadcast(g * slopes("chebyshev", y, v, u, {}), v),
    )


@forward(distance.chebyshev)
def chebyshev_forward(u_dot, v_dot, y, u, v):
    slope = slopes("chebyshev", y, u, v, {})
    return np.sum(slope * u_dot), np.sum(-slope * v_dot)


@reverse(distance.minkowski, wrt=("u", "v"), at=[(U, V), (U, V, 3)])
def minkowski(g, y, u, v, p=2):
    return (
        unbroadcast(g * slopes("minkowski", y, u, v, {"p": p}), u),
        unbroadcast(g * slopes("minkowski", y, v, u, {"p": p}), v),
    )


@forward(distance.minkowski)
def minkowski_forward(u_dot, v_dot, y, u, v, p=2):
    slope = slopes("minkowski", y, u, v, {"p": p})
    return np.sum(slope * u_dot), np.sum(-slope * v_dot)


@reverse(distance.cosine, wrt=("u", "v"), at=[(U, V)])
def cosine(g, y, u, v):
    return (
        unbroadcast(g * slopes("cosine", y, u, v, {}), u),
        unbroadcast(g * slopes("cosine", y, v, u, {}), v),
    )


@forward(distance.cosine)
def cosine_forward(u_dot, v_dot, y, u, v):
    return np.sum(slopes("cosine", y, u, v, {}) * u_dot), np.sum(slopes("cosine", y, v, u, {}) * v_dot)


@reverse(distance.correlation, wrt=("u", "v"), at=[(U, V)])
def correlation(g, y, u, v):
    return (
        unbroadcast(g * slopes("correlation", y, u, v, {}), u),
        unbroadcast(g * slopes("correlation", y, v, u, {}), v),
    )


@forward(distance.correlation)
def correlation_forward(u_dot, v_dot, y, u, v):
    return np.sum(slopes("correlation", y, u, v, {}) * u_dot), np.sum(
        slopes("correlation", y, v, u, {}) * v_dot
    )


@reverse(
    distance.mahalanobis,
    wrt=("u", "v", "VI"),
    at=[(U, V, definite(4, 4)), (U, V, definite(4, 4) + 0.1 * generic(4, 4))],
)
def mahalanobis(g, y, u, v, VI):
    slope = ratio(g, y) * ((u - v) @ (VI + VI.T) / 2)
    return slope, -slope, ratio(g, 2 * y) * np.outer(u - v, u - v)


@forward(distance.mahalanobis)
def mahalanobis_forward(u_dot, v_dot, VI_dot, y, u, v, VI):
    slope = ratio((u - v) @ (VI + VI.T) / 2, y)
    return (
        np.sum(slope * u_dot),
        np.sum(-slope * v_dot),
        ratio((u - v) @ (VI_dot * np.ones_like(VI)) @ (u - v), 2 * y),
    )


nondifferentiable(distance.num_obs_dm, distance.num_obs_y, distance.is_valid_dm, distance.is_valid_y)
