"""Rules for averages, order statistics, correlations and histograms (NumPy manual, "Statistics")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import math

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic, positive
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import count, expand, ratio, ties, unbroadcast

X = generic(7)
M = generic(3, 4)
T = generic(2, 3, 2)
HOLES = np.array([[1.0, np.nan, -0.5, 0.2], [2.0, 0.3, np.nan, 0.7], [0.1, -0.3, 1.3, -0.9]])


# --- averages -----------------------------------------------------------------------------------------------


@reverse(
    np.average,
    wrt=("a", "weights"),
    at=[
        *[
            X,
            case(M, axis=1),
            case(M, weights=positive(3, 4)),
            case(M, axis=0, weights=positive(3)),
            (X, None, positive(7)),
        ],
        *[case(M, 1, positive(4), keepdims=True), case(T, axis=(0, 2), weights=positive(2, 2))],
        *[case(M, axis=1, weights=positive(4), returned=True), case(M, returned=True)],
    ],
)
def average(g, y, a, axis=None, weights=None, returned=False, *, keepdims=False):
    if returned:
        return average_and_scale(g, y, a, axis, weights, keepdims)
    if weights is None:
        return expand(g / (np.size(a) / max(np.size(y), 1)), a, axis, keepdims), None
    w = np.broadcast_to(along(weights, a, axis), np.shape(a))
    share = expand(g / np.sum(w, axis=axis, keepdims=keepdims), a, axis, keepdims)
    return share * w, along_adjoint(share * (a - expand(y, a, axis, keepdims)), weights, a, axis)


@forward(np.average)
def average_forward(a_dot, weights_dot, y, a, axis=None, weights=None, returned=False, *, keepdims=False):
    if returned:
        return average_and_scale_forward(a_dot, weights_dot, y, a, axis, weights, keepdims)
    if weights is None:
        return np.mean(a_dot, axis=axis, keepdims=keepdims), None
    w = np.broadcast_to(along(weights, a, axis), np.shape(a))
    total = np.sum(w, axis=axis, keepdims=keepdims)
    of_weights = 0 * a
    if np.ndim(weights_dot):
        of_weights = along(weights_dot, a, axis) * (a - expand(y, a, axis, keepdims))
    return (
        np.sum(a_dot * w, axis=axis, keepdims=keepdims) / total,
        np.sum(of_weights, axis=axis, keepdims=keepdims) / total,
    )


def average_and_scale(g, y, a, axis, weights, keepdims):
    """With `returned`: the sum of the weights comes with the average."""
    a_bar, weights_bar = average(g[0], y[0], a, axis, weights, keepdims=keepdims)
    if weights is None:
        return a_bar, None
    return a_bar, weights_bar + along_adjoint(expand(g[1], a, axis, keepdims), weights, a, axis)


def average_and_scale_forward(a_dot, weights_dot, y, a, axis, weights, keepdims):
    of_a, of_weights = average_forward(a_dot, weights_dot, y[0], a, axis, weights, keepdims=keepdims)
    if weights is None:
        return (of_a, 0 * y[1]), None
    moved = np.broadcast_to(along(weights_dot, a, axis), np.shape(a)) if np.ndim(weights_dot) else 0 * a
    return (of_a, 0 * y[1]), (of_weights, np.sum(moved, axis=axis, keepdims=keepdims))


def along(weights, a, axis):
    """Weights given for some axes only, with axes of length 1 for the others."""
    if axis is None or np.shape(weights) == np.shape(a):
        return weights
    axes = [i % np.ndim(a) for i in ([axis] if isinstance(axis, int) else axis)]
    ordered = np.transpose(weights, np.argsort(axes))
    return np.reshape(ordered, [n if i in axes else 1 for i, n in enumerate(np.shape(a))])


def along_adjoint(g, weights, a, axis):
    if axis is None or np.shape(weights) == np.shape(a):
        return unbroadcast(g, weights)
    axes = [i % np.ndim(a) for i in ([axis] if isinstance(axis, int) else axis)]
    summed = np.sum(g, axis=tuple(i for i in range(np.ndim(a)) if i not in axes))
    return unbroadcast(np.transpose(summed, np.argsort(np.argsort(axes))), weights)


# --- order statistics ---------------------------------------------------------------------------------------
# An order statistic interpolates between neighbours in the sorted order. Applied to the ranks 0, 1, 2, ...
# instead of the values, the same function tells the place: 2.25 stands for three quarters of the element of
# rank 2 and one quarter of that of rank 3. So the weight of an element is the hat function max(0, 1 - |rank -
# place|), whatever the method.


def ranks(a, axis):
    """The rank of each element along `axis`, elements that tie in order; nan where `a` is nan."""
    flat = merged(a, axis)
    order = np.argsort(np.argsort(flat, axis=-1, kind="stable"), axis=-1, kind="stable")
    return unmerged(np.where(np.isnan(flat), np.nan, order), a, axis)


def merged(a, axis):
    """`a` with the axes to be reduced moved to the end and made one."""
    if axis is None:
        return np.reshape(a, (1, -1))
    axes = [axis] if isinstance(axis, int) else list(axis)
    moved = np.moveaxis(a, axes, list(range(-len(axes), 0)))
    kept = np.ndim(a) - len(axes)
    return np.reshape(moved, (*moved.shape[:kept], math.prod(moved.shape[kept:])))


def unmerged(flat, a, axis):
    """The inverse of `merged`."""
    if axis is None:
        return np.reshape(flat, np.shape(a))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shape = [n for i, n in enumerate(np.shape(a)) if i not in {k % np.ndim(a) for k in axes}]
    return np.moveaxis(
        np.reshape(flat, [*shape, *(np.shape(a)[i] for i in axes)]), list(range(-len(axes), 0)), axes
    )


def hat(rank, place):
    """The weight of the element of that rank at a place in the sorted order; 0 for nan."""
    return np.nan_to_num(np.maximum(0.0, 1 - np.abs(rank - place)))


def spread_order(g, place, a, rank, axis, keepdims):
    """The cotangent of `a` for order statistics at `place` (leading axes: several of them)."""
    extra = np.ndim(place) - (np.ndim(a) if keepdims else np.ndim(a) - reduced(a, axis))
    if extra == 0:
        return unbroadcast(expand(g, a, axis, keepdims) * hat(rank, expand(place, a, axis, keepdims)), a)
    places = np.reshape(place, (-1, *np.shape(place)[extra:]))
    parts = np.reshape(g, places.shape)
    return sum(spread_order(parts[k], places[k], a, rank, axis, keepdims) for k in range(len(places)))


def gather_order(x, place, a, rank, axis, keepdims, weigh=hat):
    """The sum of `x` with the weights of the order statistics at `place`."""
    extra = np.ndim(place) - (np.ndim(a) if keepdims else np.ndim(a) - reduced(a, axis))
    if extra == 0:
        weights = weigh(rank, expand(place, a, axis, keepdims))
        return np.sum(np.where(weights == 0, 0, x) * weights, axis=axis, keepdims=keepdims)
    places = np.reshape(place, (-1, *np.shape(place)[extra:]))
    found = [gather_order(x, p, a, rank, axis, keepdims, weigh) for p in places]
    return np.reshape(np.stack(found), np.shape(place))


def reduced(a, axis):
    return np.ndim(a) if axis is None else 1 if isinstance(axis, int) else len(axis)


def step_up(rank, place):
    """+1 for the element above the place in the sorted order and -1 for the one below it."""
    return (rank == np.floor(place) + 1) * 1.0 - (rank == np.floor(place))


ORDERS = [
    X,
    M,
    case(M, axis=0),
    case(M, axis=-1, keepdims=True),
    case(T, axis=(0, 2)),
    case(M, keepdims=True),
    X[:6],
]


@reverse(np.median, at=ORDERS)
def median(g, y, a, axis=None, *, keepdims=False):
    rank = ranks(a, axis)
    return spread_order(g, np.median(rank, axis=axis, keepdims=keepdims), a, rank, axis, keepdims)


@forward(np.median)
def median_forward(a_dot, y, a, axis=None, *, keepdims=False):
    rank = ranks(a, axis)
    return unbroadcast(
        gather_order(a_dot, np.median(rank, axis=axis, keepdims=keepdims), a, rank, axis, keepdims), y
    )


@reverse(np.nanmedian, at=[*ORDERS, HOLES, case(HOLES, axis=1), case(HOLES, axis=0)])
def nanmedian(g, y, a, axis=None, *, keepdims=False):
    rank = ranks(a, axis)
    return spread_order(g, np.nanmedian(rank, axis=axis, keepdims=keepdims), a, rank, axis, keepdims)


@forward(np.nanmedian)
def nanmedian_forward(a_dot, y, a, axis=None, *, keepdims=False):
    rank = ranks(a, axis)
    return unbroadcast(
        gather_order(a_dot, np.nanmedian(rank, axis=axis, keepdims=keepdims), a, rank, axis, keepdims), y
    )


SLOPES = {
    "linear": (-1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.0, 1.0),
    "weibull": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1.0),
    "normal_unbiased": (1 / 4, 1.0),
}
"""How fast the place in the sorted order moves with q: n + first, for the continuous methods."""


def place_slope(place, rank, axis, method):
    """The derivative of the place with respect to q; 0 at the ends and for discrete methods."""
    if method not in SLOPES:
        return 0.0 * place
    n = count(rank, axis)
    return (n + SLOPES[method][0]) * ((place > 0) & (place < n - 1) | (method == "linear"))


METHODS = [
    *SLOPES,
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
]
QUANTILES = [
    *[(x, 0.31) if not hasattr(x, "kwargs") else case(*x.args, 0.31, **x.kwargs) for x in ORDERS],
    *[(X, [0.23, 0.71]), case(M, [0.23, 0.71], axis=1), case(T, [[0.3, 0.7]], axis=(0, 2), keepdims=True)],
    *[case(X, 0.37, method=m) for m in METHODS],
]


@reverse(
    np.quantile,
    wrt=("a", "q"),
    at=[*QUANTILES, case(X, 0.4, weights=positive(7), method="inverted_cdf")],
)
def quantile(g, y, a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    rank = ranks(a, axis)
    place = np.quantile(rank, q, axis=axis, method=method, keepdims=keepdims, weights=weights)
    change = gather_order(a, place, a, rank, axis, keepdims, step_up) * place_slope(place, rank, axis, method)
    return spread_order(g, place, a, rank, axis, keepdims), over_places(g * change, q)


@forward(np.quantile)
def quantile_forward(a_dot, q_dot, y, a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    rank = ranks(a, axis)
    place = np.quantile(rank, q, axis=axis, method=method, keepdims=keepdims, weights=weights)
    change = gather_order(a, place, a, rank, axis, keepdims, step_up) * place_slope(place, rank, axis, method)
    moved = np.reshape(q_dot, np.shape(q_dot) + (1,) * (np.ndim(y) - np.ndim(q_dot)))
    return unbroadcast(gather_order(a_dot, place, a, rank, axis, keepdims), y), unbroadcast(change * moved, y)


def over_places(g, q):
    """`g` summed to the shape of `q`, whose axes lead."""
    return unbroadcast(np.sum(g, axis=tuple(range(np.ndim(q), np.ndim(g)))), q)


@reverse(
    np.percentile,
    wrt=("a", "q"),
    at=[
        (X, 31.0),
        case(M, [23.0, 71.0], axis=1),
        case(M, 40.0, axis=0, keepdims=True),
        case(X, 37.0, method="hazen"),
    ],
)
def percentile(g, y, a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    fraction = np.true_divide(q, 100)
    a_bar, q_bar = quantile(g, y, a, fraction, axis, method=method, keepdims=keepdims, weights=weights)
    return a_bar, unbroadcast(q_bar / 100, q)


@forward(np.percentile)
def percentile_forward(a_dot, q_dot, y, a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    fraction, moved = np.true_divide(q, 100), np.true_divide(q_dot, 100)
    return quantile_forward(
        a_dot, moved, y, a, fraction, axis, method=method, keepdims=keepdims, weights=weights
    )


@reverse(
    np.nanquantile,
    at=[(HOLES, 0.31), case(HOLES, [0.23, 0.71], axis=1), case(HOLES, 0.4, axis=0, keepdims=True), (X, 0.3)],
)
def nanquantile(g, y, a, q, axis=None, *, method="linear", keepdims=False):
    rank = ranks(a, axis)
    place = np.nanquantile(rank, q, axis=axis, method=method, keepdims=keepdims)
    return spread_order(g, place, a, rank, axis, keepdims)


@forward(np.nanquantile)
def nanquantile_forward(a_dot, y, a, q, axis=None, *, method="linear", keepdims=False):
    rank = ranks(a, axis)
    place = np.nanquantile(rank, q, axis=axis, method=method, keepdims=keepdims)
    return unbroadcast(gather_order(a_dot, place, a, rank, axis, keepdims), y)


@reverse(np.nanpercentile, at=[(HOLES, 31.0), case(HOLES, [23.0, 71.0], axis=1), (X, 30.0)])
def nanpercentile(g, y, a, q, axis=None, *, method="linear", keepdims=False):
    return nanquantile(g, y, a, np.true_divide(q, 100), axis, method=method, keepdims=keepdims)


@forward(np.nanpercentile)
def nanpercentile_forward(a_dot, y, a, q, axis=None, *, method="linear", keepdims=False):
    return nanquantile_forward(a_dot, y, a, np.true_divide(q, 100), axis, method=method, keepdims=keepdims)


# --- covariance ---------------------------------------------------------------------------------------------


COVARIANCES = [
    *[
        M,
        X,
        case(M, rowvar=False),
        case(M, ddof=0),
        case(M, bias=True),
        (M, generic(2, 4, seed=1)),
        (X, generic(7, seed=1)),
    ],
    *[
        case(M, fweights=np.array([1, 2, 1, 3])),
        case(M, aweights=np.array([0.5, 1.0, 2.0, 0.7])),
        case(X, X * X, rowvar=False),
    ],
    *[complexes(2, 4), (complexes(2, 4), generic(4))],
]


@reverse(np.cov, wrt=("m", "y"), at=COVARIANCES)
def cov(g, z, m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    x, w, n = observations(m, y, rowvar, bias, ddof, fweights, aweights)
    return unstacked(cov_adjoint(np.reshape(g, (len(x), len(x))), x, w / n), m, y, rowvar)


def cov_adjoint(g, x, w):
    return (g @ np.conj(x) + np.conj(g.T @ x)) * w


@forward(np.cov)
def cov_forward(m_dot, y_dot, z, m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    x, w, n = observations(m, y, rowvar, bias, ddof, fweights, aweights)
    of_m, of_y = stacked_tangents(m_dot, y_dot, m, y, rowvar)
    return cov_tangent(of_m, x, w / n, z), None if y is None else cov_tangent(of_y, x, w / n, z)


def cov_tangent(x_dot, x, w, z):
    half = (x_dot * w) @ np.conj(x).T
    return unbroadcast(np.reshape(half + np.conj(half).T, np.shape(z)), z)


def rows(m, rowvar):
    """The variables as rows."""
    m = np.atleast_2d(m)
    return m.T if not rowvar and m.shape[0] != 1 else m


def observations(m, y, rowvar, bias=False, ddof=None, fweights=None, aweights=None):
    """The centred observations, their weights, and the divisor, as `np.cov` has them."""
    x = rows(m, rowvar)
    if y is not None:
        x = np.concatenate([x, rows(y, rowvar)])
    ddof = (0 if bias else 1) if ddof is None else ddof
    w = np.ones_like(np.real(x), shape=x.shape[1:])
    if fweights is not None:
        w = w * fweights
    if aweights is not None:
        w = w * aweights
    total = np.sum(w)
    correction = ddof if aweights is None else ddof * np.sum(w * aweights) / total
    center = np.sum(x * w, axis=1, keepdims=True) / total
    return x - center, w.astype(np.real(x).dtype), np.real(x).dtype.type(total - correction)


def unstacked(g, m, y, rowvar):
    """The cotangents of `m` and `y` from that of the observations."""
    k = rows(m, rowvar).shape[0]
    parts = []
    for part, source in ((g[:k], m), (g[k:], y)):
        if source is None:
            parts.append(None)
        else:
            turned = np.shape(rows(source, rowvar)) != np.shape(np.atleast_2d(source)) or (
                not rowvar and np.atleast_2d(source).shape[0] != 1
            )
            parts.append(unbroadcast(np.reshape(part.T if turned else part, np.shape(source)), source))
    return tuple(parts)


def stacked_tangents(m_dot, y_dot, m, y, rowvar):
    first = rows(m_dot, rowvar) if np.ndim(m_dot) else np.zeros_like(rows(m, rowvar))
    if y is None:
        return first, None
    second = rows(y_dot, rowvar) if np.ndim(y_dot) else np.zeros_like(rows(y, rowvar))
    return np.concatenate([first, 0 * second]), np.concatenate([0 * first, second])


@reverse(
    np.corrcoef,
    wrt=("x", "y"),
    at=[M, case(M, rowvar=False), (M, generic(2, 4, seed=1)), (X, generic(7, seed=1)), complexes(3, 5)],
)
def corrcoef(g, z, x, y=None, rowvar=True):
    centred, _, _ = observations(x, y, rowvar)
    size = np.sqrt(np.sum(np.abs(centred) ** 2, axis=1, keepdims=True))
    unit = ratio(centred, size)
    full = np.reshape(z, (len(unit), len(unit)))
    direct = cov_adjoint(np.reshape(g, full.shape), unit, 1)
    radial = np.real(np.sum(direct * unit, axis=1, keepdims=True))
    return unstacked(ratio(direct - radial * np.conj(unit), size), x, y, rowvar)


@forward(np.corrcoef)
def corrcoef_forward(x_dot, y_dot, z, x, y=None, rowvar=True):
    centred, _, _ = observations(x, y, rowvar)
    size = np.sqrt(np.sum(np.abs(centred) ** 2, axis=1, keepdims=True))
    unit = ratio(centred, size)
    found = []
    for change in stacked_tangents(x_dot, y_dot, x, y, rowvar):
        if change is not None:
            change = ratio(change - np.mean(change, axis=1, keepdims=True), size)
            change = change - np.real(np.sum(np.conj(unit) * change, axis=1, keepdims=True)) * unit
            change = cov_tangent(change, unit, 1, z)
        found.append(change)
    return tuple(found)


# --- histograms ---------------------------------------------------------------------------------------------

PLACES = np.array([0.1, 0.4, 0.45, 0.9])


@reverse(
    np.bincount,
    wrt="weights",
    linear=True,
    at=[(np.array([0, 2, 2, 1]), positive(4)), (np.array([0, 2]), positive(2), 5)],
)
def bincount(g, y, x, weights=None, minlength=0):
    """The counts themselves are constant."""
    return unbroadcast(g[x], weights)


@reverse(
    np.histogram,
    wrt=("a", "weights"),
    at=[
        case(PLACES, 3, (0, 1), weights=positive(4)),
        case(PLACES, [0.0, 0.3, 0.5, 0.8], weights=positive(4)),
        (PLACES, 3),
    ],
)
def histogram(g, y, a, bins=10, range=None, *, weights=None):
    """The counts change with the weights; the edges, where they are not given, with the extreme values."""
    return edges_adjoint(g[1], a, bins, range), None if weights is None else weights_adjoint(
        g[0], a, y[1], weights
    )


@forward(np.histogram)
def histogram_forward(a_dot, weights_dot, y, a, bins=10, range=None, *, weights=None):
    of_a = (np.zeros_like(y[0]), unbroadcast(edges_tangent(a_dot, a, bins, range, y[1]), y[1]))
    if weights is None:
        return of_a, None
    return of_a, (weights_tangent(weights_dot, a, y), np.zeros_like(y[1]))


def weights_tangent(weights_dot, a, y):
    if not np.ndim(weights_dot):
        return 0 * y[0]
    return unbroadcast(np.histogram(a, y[1], weights=weights_dot)[0], y[0])


def weights_adjoint(g, a, edges, weights):
    """Each element gets the cotangent of its bin; those outside get 0."""
    bin_ = np.searchsorted(edges, a, side="right") - 1
    bin_ = np.where(np.asarray(a) == edges[-1], len(edges) - 2, bin_)
    inside = (bin_ >= 0) & (bin_ < len(edges) - 1)
    return unbroadcast(np.where(inside, g[np.where(inside, bin_, 0)], 0), weights)


@reverse(np.histogram_bin_edges, at=[X, case(M, 4), case(X, "sqrt"), case(X, 3, (0.0, 1.0))])
def histogram_bin_edges(g, y, a, bins=10, range=None, weights=None):
    return edges_adjoint(g, a, bins, range)


@forward(np.histogram_bin_edges)
def histogram_bin_edges_forward(a_dot, y, a, bins=10, range=None, weights=None):
    return unbroadcast(edges_tangent(a_dot, a, bins, range, y), y)


def moving_edges(a, bins, range_):
    return range_ is None and np.ndim(bins) == 0 and np.size(a) > 0


def edges_adjoint(g, a, bins, range_):
    if not moving_edges(a, bins, range_):
        return np.zeros_like(a)
    up = np.linspace(0.0, 1.0, g.size)
    return unbroadcast(ties(np.min(a), a) * np.sum(g * (1 - up)) + ties(np.max(a), a) * np.sum(g * up), a)


def edges_tangent(a_dot, a, bins, range_, edges):
    if not moving_edges(a, bins, range_):
        return np.zeros_like(edges)
    up = np.linspace(0.0, 1.0, edges.size)
    return np.sum(a_dot * ties(np.min(a), a)) * (1 - up) + np.sum(a_dot * ties(np.max(a), a)) * up


GRID = np.array([0.0, 0.5, 1.0])


@reverse(
    np.histogram2d,
    wrt="weights",
    alias="maybe",
    at=[case(PLACES, PLACES[::-1], (GRID, GRID), weights=positive(4))],
)
def histogram2d(g, z, x, y, bins=10, range=None, *, weights=None):
    """The counts change with the weights; the places must be constant."""
    return weights_adjoint_nd(g[0], [x, y], z[1:], weights)


@forward(np.histogram2d)
def histogram2d_forward(weights_dot, z, x, y, bins=10, range=None, *, weights=None):
    counts = np.histogram2d(x, y, z[1:], weights=weights_dot)[0]
    return counts, np.zeros_like(z[1]), np.zeros_like(z[2])


@reverse(
    np.histogramdd,
    wrt="weights",
    alias="maybe",
    at=[case(np.stack([PLACES, PLACES[::-1]], 1), (GRID, GRID), weights=positive(4))],
)
def histogramdd(g, y, sample, bins=10, range=None, *, weights=None):
    """The counts change with the weights; the places must be constant."""
    return weights_adjoint_nd(g[0], list(np.transpose(sample)), y[1], weights)


@forward(np.histogramdd)
def histogramdd_forward(weights_dot, y, sample, bins=10, range=None, *, weights=None):
    edges = [np.zeros_like(e) for e in y[1]]
    return np.histogramdd(sample, y[1], weights=weights_dot)[0], edges


def weights_adjoint_nd(g, places, edges, weights):
    found, inside = [], np.full(np.shape(places[0]), True)
    for a, edge in zip(places, edges, strict=True):
        bin_ = np.searchsorted(edge, a, side="right") - 1
        bin_ = np.where(np.asarray(a) == edge[-1], len(edge) - 2, bin_)
        inside = inside & (bin_ >= 0) & (bin_ < len(edge) - 1)
        found.append(np.clip(bin_, 0, len(edge) - 2))
    return unbroadcast(np.where(inside, g[tuple(found)], 0), weights)
