"""Rules for reductions (NumPy manual, "Sums, products, differences", "Averages and variances", "Extrema
finding")."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import builtins

import numpy as np

from srcgrad.runtime.rules.inputs import complexes, generic
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse
from srcgrad.runtime.support import (
    count,
    deviation,
    expand,
    like_nested,
    others,
    ratio,
    shares,
    spread,
    ties,
    unbroadcast,
)

X = generic(2, 3)
T = generic(2, 3, 2)
Z = complexes(2, 3)
MASK = np.array([[True, False, True], [False, True, True]])
AXES = [
    X,
    generic(3),
    1.5,
    case(X, axis=0),
    case(X, axis=-1),
    case(generic(3), axis=0),
    case(T, axis=(0, 2)),
    case(T, axis=(-1, 0), keepdims=True),
    case(X, axis=1, keepdims=True),
    case(X, keepdims=True),
    case(T, axis=None),
    generic(3)[::-1],
]
MASKED = [case(X, axis=0, where=MASK), case(X, where=MASK), case(X, axis=1, where=MASK, keepdims=True)]


@reverse(
    np.sum,
    np.ndarray.sum,
    shape="reduction",
    at=[*AXES, *MASKED, case(X, initial=2.0), Z, case(X, dtype=np.float64)],
)
def sum_(g, y, a, axis=None, dtype=None, *, keepdims=False, initial=0, where=True):
    if where is True and axis is None:
        return expand(g, a)
    if where is True:
        return expand(g, a, axis, keepdims)
    return expand(g, a, axis, keepdims) * where


@forward(np.sum)
def sum_forward(a_dot, y, a, axis=None, dtype=None, *, keepdims=False, initial=0, where=True):
    if where is True:
        return np.sum(a_dot, axis=axis, dtype=dtype, keepdims=keepdims)
    return np.sum(a_dot, axis=axis, dtype=dtype, keepdims=keepdims, where=where)


@reverse(np.mean, np.ndarray.mean, shape="reduction", at=[*AXES, *MASKED, Z, case(X, dtype=np.float64)])
def mean(g, y, a, axis=None, dtype=None, *, keepdims=False, where=True):
    if where is True and axis is None:
        return expand(g / count(a), a)
    if where is True:
        return expand(g / count(a, axis), a, axis, keepdims)
    return expand(g, a, axis, keepdims) * where / count(a, axis, where)


@forward(np.mean)
def mean_forward(a_dot, y, a, axis=None, dtype=None, *, keepdims=False, where=True):
    if where is True:
        return np.mean(a_dot, axis=axis, dtype=dtype, keepdims=keepdims)
    return np.mean(a_dot, axis=axis, dtype=dtype, keepdims=keepdims, where=where)


VARIANCES = [
    *[*AXES, *MASKED, case(X, ddof=1), case(X, axis=0, ddof=0.5), Z, case(Z, axis=1), case(X, correction=1)],
    *[case(X, axis=1, mean=np.array([[0.3], [0.5]]), keepdims=True), case(X, mean=np.array([[0.3]]))],
]


@reverse(np.var, np.ndarray.var, wrt=("a", "mean"), shape="reduction", at=VARIANCES)
def var(g, y, a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=0):
    if axis is None and where is True and mean is None and np.isrealobj(a):
        return 2 * (a - np.mean(a)) * expand(g / count(a, None, True, ddof + correction), a), None
    slope = expand(np.real(g), a, axis, keepdims) * var_slope(a, axis, where, mean, ddof + correction)
    return slope, None if mean is None else unbroadcast(-slope, mean)


@forward(np.var)
def var_forward(
    a_dot,
    mean_dot,
    y,
    a,
    axis=None,
    dtype=None,
    *,
    ddof=0,
    keepdims=False,
    where=True,
    mean=None,
    correction=0,
):
    slope = var_slope(a, axis, where, mean, ddof + correction)
    return (
        np.sum(np.real(a_dot * slope), axis=axis, keepdims=keepdims),
        None if mean is None else np.sum(np.real(-mean_dot * slope), axis=axis, keepdims=keepdims),
    )


def var_slope(a, axis, where, mean, ddof):
    """The derivative of a variance; the mean moves along unless it is given."""
    difference = deviation(a, axis, where) if mean is None else a - mean
    return 2 * np.conj(difference) * where / count(a, axis, where, ddof)


@reverse(np.std, np.ndarray.std, wrt=("a", "mean"), shape="reduction", at=[*VARIANCES[:2], *VARIANCES[3:]])
def std(g, y, a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, mean=None, correction=0):
    """Where all elements are equal the derivative is taken as 0."""
    if axis is None and where is True and mean is None and np.isrealobj(a):
        return deviation(a) * expand(ratio(g, y * count(a, None, True, ddof + correction)), a), None
    half = expand(ratio(np.real(g), 2 * y), a, axis, keepdims)
    slope = half * var_slope(a, axis, where, mean, ddof + correction)
    return slope, None if mean is None else unbroadcast(-slope, mean)


@forward(np.std)
def std_forward(
    a_dot,
    mean_dot,
    y,
    a,
    axis=None,
    dtype=None,
    *,
    ddof=0,
    keepdims=False,
    where=True,
    mean=None,
    correction=0,
):
    of_a, of_mean = var_forward(
        a_dot,
        mean_dot,
        y,
        a,
        axis,
        ddof=ddof,
        keepdims=keepdims,
        where=where,
        mean=mean,
        correction=correction,
    )
    return ratio(of_a, 2 * y), None if mean is None else ratio(of_mean, 2 * y)


@reverse(
    np.prod, np.ndarray.prod, shape="reduction", at=[*AXES, *MASKED, Z, case(X, initial=2.0), [0.0, 2.0, 3.0]]
)
def prod(g, y, a, axis=None, dtype=None, *, keepdims=False, initial=1, where=True):
    if axis is None and where is True:
        return expand(g * initial, a) * others(a)
    if where is True:
        return expand(g * initial, a, axis, keepdims) * others(a, axis)
    return expand(g * initial, a, axis, keepdims) * others(a, axis, where) * where


@forward(np.prod)
def prod_forward(a_dot, y, a, axis=None, dtype=None, *, keepdims=False, initial=1, where=True):
    return initial * np.sum(a_dot * others(a, axis, where) * where, axis=axis, keepdims=keepdims)


EXTREMA = [*AXES, case(X, axis=0, initial=-9.0, where=MASK), case(X, initial=0.3, axis=1)]


@reverse(np.max, np.amax, np.ndarray.max, shape="reduction", at=EXTREMA)
def max_(g, y, a, axis=None, *, keepdims=False, initial=None, where=True):
    """Elements that tie share evenly."""
    if axis is None and where is True:
        return expand(g, a) * ties(y, a)
    if where is True:
        return expand(g, a, axis, keepdims) * ties(y, a, axis, keepdims)
    return expand(g, a, axis, keepdims) * ties(y, a, axis, keepdims, where)


@forward(np.max)
def max_forward(a_dot, y, a, axis=None, *, keepdims=False, initial=None, where=True):
    return np.sum(a_dot * ties(y, a, axis, keepdims, where), axis=axis, keepdims=keepdims)


@reverse(
    np.min, np.amin, np.ndarray.min, shape="reduction", at=[*AXES, case(X, axis=0, initial=9.0, where=MASK)]
)
def min_(g, y, a, axis=None, *, keepdims=False, initial=None, where=True):
    """Elements that tie share evenly."""
    if axis is None and where is True:
        return expand(g, a) * ties(y, a)
    if where is True:
        return expand(g, a, axis, keepdims) * ties(y, a, axis, keepdims)
    return expand(g, a, axis, keepdims) * ties(y, a, axis, keepdims, where)


@forward(np.min)
def min_forward(a_dot, y, a, axis=None, *, keepdims=False, initial=None, where=True):
    return np.sum(a_dot * ties(y, a, axis, keepdims, where), axis=axis, keepdims=keepdims)


@reverse(np.ptp, shape="reduction", at=AXES[:-2])
def ptp(g, y, a, axis=None, *, keepdims=False):
    """Elements that tie share evenly."""
    return expand(g, a, axis, keepdims) * (
        ties(np.max(a, axis=axis, keepdims=keepdims), a, axis, keepdims)
        - ties(np.min(a, axis=axis, keepdims=keepdims), a, axis, keepdims)
    )


@forward(np.ptp)
def ptp_forward(a_dot, y, a, axis=None, *, keepdims=False):
    top = ties(np.max(a, axis=axis, keepdims=keepdims), a, axis, keepdims)
    bottom = ties(np.min(a, axis=axis, keepdims=keepdims), a, axis, keepdims)
    return np.sum(a_dot * (top - bottom), axis=axis, keepdims=keepdims)


# --- sums that skip nan -------------------------------------------------------------------------------------

HOLES = np.array([[1.0, np.nan, -0.5], [2.0, 0.3, np.nan]])
SKIPPING = [*AXES[:-2], HOLES, case(HOLES, axis=0), case(HOLES, axis=1, keepdims=True)]


@reverse(np.nansum, shape="reduction", at=[*SKIPPING, Z])
def nansum(g, y, a, axis=None, dtype=None, *, keepdims=False, initial=0, where=True):
    return expand(g, a, axis, keepdims) * (~np.isnan(a) & where)


@forward(np.nansum)
def nansum_forward(a_dot, y, a, axis=None, dtype=None, *, keepdims=False, initial=0, where=True):
    return np.sum(np.where(~np.isnan(a) & where, a_dot, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@reverse(np.nanmean, shape="reduction", at=[*SKIPPING, Z])
def nanmean(g, y, a, axis=None, dtype=None, *, keepdims=False, where=True):
    return expand(g, a, axis, keepdims) * (~np.isnan(a) & where) / count(a, axis, ~np.isnan(a) & where)


@forward(np.nanmean)
def nanmean_forward(a_dot, y, a, axis=None, dtype=None, *, keepdims=False, where=True):
    kept = ~np.isnan(a) & where
    return np.sum(np.where(kept, a_dot / count(a, axis, kept), 0), axis=axis, keepdims=keepdims)


@reverse(np.nanvar, shape="reduction", at=[*SKIPPING, case(HOLES, ddof=1)])
def nanvar(g, y, a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, correction=0):
    kept = ~np.isnan(a) & where
    slope = var_slope(np.where(kept, a, 0), axis, kept, None, ddof + correction)
    return expand(np.real(g), a, axis, keepdims) * slope


@forward(np.nanvar)
def nanvar_forward(a_dot, y, a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, correction=0):
    kept = ~np.isnan(a) & where
    slope = var_slope(np.where(kept, a, 0), axis, kept, None, ddof + correction)
    return np.sum(np.real(np.where(kept, a_dot, 0) * slope), axis=axis, keepdims=keepdims)


@reverse(np.nanstd, shape="reduction", at=[SKIPPING[0], *SKIPPING[3:], case(HOLES, ddof=1), complexes(3)])
def nanstd(g, y, a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, correction=0):
    kept = ~np.isnan(a) & where
    slope = var_slope(np.where(kept, a, 0), axis, kept, None, ddof + correction)
    return expand(ratio(np.real(g), 2 * y), a, axis, keepdims) * slope


@forward(np.nanstd)
def nanstd_forward(a_dot, y, a, axis=None, dtype=None, *, ddof=0, keepdims=False, where=True, correction=0):
    moved = nanvar_forward(
        a_dot, y, a, axis, ddof=ddof, keepdims=keepdims, where=where, correction=correction
    )
    return ratio(moved, 2 * y)


@reverse(np.nanmax, np.nanmin, shape="reduction", at=SKIPPING)
def nanextremum(g, y, a, axis=None, *, keepdims=False, initial=None, where=True):
    return expand(g, a, axis, keepdims) * ties(y, a, axis, keepdims, where)


@forward(np.nanmax)
def nanextremum_forward(a_dot, y, a, axis=None, *, keepdims=False, initial=None, where=True):
    return np.sum(a_dot * ties(y, a, axis, keepdims, where), axis=axis, keepdims=keepdims)


@reverse(np.nanprod, shape="reduction", at=SKIPPING)
def nanprod(g, y, a, axis=None, dtype=None, *, keepdims=False, initial=1, where=True):
    return (
        expand(g * initial, a, axis, keepdims)
        * others(a, axis, ~np.isnan(a) & where)
        * (~np.isnan(a) & where)
    )


@forward(np.nanprod)
def nanprod_forward(a_dot, y, a, axis=None, dtype=None, *, keepdims=False, initial=1, where=True):
    kept = ~np.isnan(a) & where
    return initial * np.sum(
        np.where(kept, a_dot, 0) * others(a, axis, kept) * kept, axis=axis, keepdims=keepdims
    )


# --- Python's own -------------------------------------------------------------------------------------------


@reverse(
    builtins.sum, wrt=("iterable", "start"), at=[((1.0, 2.0, -0.5),), ([1.0, 2.0], 0.5), X, ((X, X), 1.0)]
)
def builtin_sum(g, y, iterable, start=0):
    return spread(g, iterable), unbroadcast(g, start)


@forward(builtins.sum)
def builtin_sum_forward(iterable_dot, start_dot, y, iterable, start=0):
    return builtins.sum(iterable_dot), start_dot


@reverse(
    builtins.max,
    builtins.min,
    wrt="args",
    alias="maybe",
    at=[(1.0, 2.0), (1.0, 3.0, -0.5), ((1.0, 2.0, -0.5),), generic(4)],
)
def builtin_extremum(g, y, *args):
    """Arguments that tie share evenly."""
    if len(args) == 1:
        return [like_nested(g * shares(y, args[0]), args[0])]
    parts = [unbroadcast(g * share, a) for share, a in zip(shares(y, args), args, strict=True)]
    return parts


@forward(builtins.max)
def builtin_extremum_forward(args_dot, y, *args):
    if len(args) == 1:
        args, args_dot = args[0], args_dot[0]
    terms = [share * tangent for share, tangent in zip(shares(y, args), args_dot, strict=True)]
    return builtins.sum(terms)


nondifferentiable(np.all, np.any, np.ndarray.all, np.ndarray.any, np.count_nonzero, shape="reduction")
nondifferentiable(np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.ndarray.argmax, np.ndarray.argmin)
