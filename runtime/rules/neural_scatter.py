"""Scattering with a reduction, and its rule (formulas as in PyTorch's documentation of `scatter_reduce`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import _observable as observable
from srcgrad.runtime.support import scatter

A, SRC = generic(3, 2), generic(4, 2, seed=1)
PLACES = (np.array([[0, 2], [0, 0], [2, 0], [1, 0]]), np.array([[0, 1]]))
WAYS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


@observable
def scatter_reduce(a, src, index, reduce, include_self=True):
    """`a` with the elements of `src` added at `index` (or multiplied, or the greatest kept, ...); without
    `include_self` what `a` holds there does not count."""
    out = np.array(a) if type(a) is np.ndarray else a.copy()
    if not include_self:
        out[index] = src if reduce in ("amax", "amin") else int(reduce == "prod")
    getattr(arrays.namespace(out), WAYS[reduce]).at(out, index, src)
    if reduce != "mean":
        return out
    counts = parts(out, src, index, include_self)
    return out / counts if out.dtype.kind in "fc" else out // counts


def often(a, src, index):
    """How many elements are scattered to each place."""
    return scatter(np.ones_like(src), a, index)


def parts(a, src, index, include_self):
    """How many elements each mean is of, at least 1."""
    counts = often(a, src, index)
    return 1 + counts if include_self else np.maximum(counts, 1)


def share_of_extremum(y, a, src, index, include_self):
    """The shares of `a` and `src` in extrema: elements that tie share evenly."""
    own = (a == y) * kept(a, src, index, include_self)
    theirs = (src == y[index]) * np.ones_like(src)
    ties = own + scatter(theirs, a, index)
    return own / ties, theirs / ties[index]


def kept(a, src, index, include_self):
    """1 where what `a` holds counts, else 0."""
    return np.ones_like(a) if include_self else often(a, src, index) == 0


def share_of_product(y, a, src, index, include_self):
    """The products of the other factors, exact also where one of all is 0."""
    none, none_src = (a == 0) * kept(a, src, index, include_self), (src == 0) * np.ones_like(src)
    zeros = none + scatter(none_src, a, index)
    own, theirs = np.where(a == 0, 1, a), np.where(src == 0, 1, src)
    if not np.any(zeros):
        return y / own * kept(a, src, index, include_self), y[index] / theirs
    others = scatter_reduce(own, theirs, index, "prod", include_self) * (zeros == 1)
    return (
        np.where(none == 1, others, y / own) * kept(a, src, index, include_self),
        np.where(src == 0, others[index], y[index] / theirs),
    )


def shares(y, a, src, index, reduce, include_self):
    """The derivatives of each result for the elements that went into it."""
    if reduce in ("amax", "amin"):
        return share_of_extremum(y, a, src, index, include_self)
    if reduce == "prod":
        return share_of_product(y, a, src, index, include_self)
    own, each = kept(a, src, index, include_self), np.ones_like(src)
    if reduce == "mean":
        counts = parts(a, src, index, include_self)
        return own / counts, each / counts[index]
    return own, each


CASES = [case(A, SRC, PLACES, way) for way in WAYS]


@reverse(
    scatter_reduce,
    wrt=("a", "src"),
    at=[*CASES, *(case(A, SRC, PLACES, w, include_self=False) for w in ("mean", "prod", "amax"))],
)
def scatter_reduce_rule(g, y, a, src, index, reduce, include_self=True):
    own, theirs = shares(y, a, src, index, reduce, include_self)
    return g * own, g[index] * theirs


@forward(scatter_reduce)
def scatter_reduce_forward(a_dot, src_dot, y, a, src, index, reduce, include_self=True):
    own, theirs = shares(y, a, src, index, reduce, include_self)
    return a_dot * own, scatter(src_dot * theirs, a, index)
