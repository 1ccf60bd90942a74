"""Rules for piecewise linear interpolation (NumPy manual, `numpy.interp`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import scatter, unbroadcast

KNOTS = np.array([0.0, 0.7, 1.1, 2.0])
VALUES = generic(4)
PLACES = np.array([0.35, 1.6, 0.8, 0.75])


@reverse(
    np.interp,
    wrt=("x", "xp", "fp", "left", "right"),
    at=[
        *[(PLACES, KNOTS, VALUES), (0.5, KNOTS, VALUES), (np.array([-1.0, 0.3, 5.0]), KNOTS, VALUES)],
        *[(np.array([[-1.0, 0.3, 5.0]]), KNOTS, VALUES, 0.5, 1.5), (PLACES, KNOTS, VALUES * 1j + 1)],
        *[case(np.array([-1.0, 0.3, 5.2]), KNOTS[[2, 0, 1, 3]], VALUES, period=2.3)],
    ],
)
def interp(g, y, x, xp, fp, left=None, right=None, period=None):
    """At a knot the slope is that of the interval on its right; outside of the knots it is 0."""
    i, j, width, t, under, over = bracket(x, xp, period)
    inside = ~(under | over)
    moved = np.real(g * np.where(inside, (np.take(fp, j) - np.take(fp, i)) / width, 0))
    first = g * np.where(under, left is None, np.where(over, 0, 1 - t))
    last = g * np.where(over, right is None, np.where(under, 0, t))
    return (
        unbroadcast(moved, x),
        scatter(moved * (t - 1), xp, i) - scatter(moved * t, xp, j),
        scatter(first, fp, i) + scatter(last, fp, j),
        None if left is None else unbroadcast(np.sum(g * under), left),
        None if right is None else unbroadcast(np.sum(g * over), right),
    )


@forward(np.interp)
def interp_forward(
    x_dot, xp_dot, fp_dot, left_dot, right_dot, y, x, xp, fp, left=None, right=None, period=None
):
    i, j, width, t, under, over = bracket(x, xp, period)
    inside = ~(under | over)
    slope = np.where(inside, (np.take(fp, j) - np.take(fp, i)) / width, 0)
    xp_dot, fp_dot = np.broadcast_to(xp_dot, np.shape(xp)), np.broadcast_to(fp_dot, np.shape(fp))
    first = np.take(fp_dot, i) * np.where(under, left is None, np.where(over, 0, 1 - t))
    last = np.take(fp_dot, j) * np.where(over, right is None, np.where(under, 0, t))
    return (
        unbroadcast(slope * x_dot, y),
        unbroadcast(slope * (np.take(xp_dot, i) * (t - 1) - np.take(xp_dot, j) * t), y),
        unbroadcast(first + last, y),
        None if left is None else unbroadcast(left_dot * under, y),
        None if right is None else unbroadcast(right_dot * over, y),
    )


def bracket(x, xp, period):
    """The knots beside each `x`, their distance, how far between them it is, where it is outside."""
    x, knots = np.asarray(x), np.asarray(xp)
    n = knots.size
    if period is None:
        right = np.clip(np.searchsorted(knots, x, side="right"), 1, max(n - 1, 1))
        i, j = right - 1, np.minimum(right, n - 1)
        width = np.where(i == j, 1, knots[j] - knots[i])
        return i, j, width, np.where(i == j, 0, (x - knots[i]) / width), x < knots[0], x > knots[-1]
    folded = np.mod(knots, abs(period))
    order = np.argsort(folded)
    right = np.searchsorted(folded[order], np.mod(x, abs(period)), side="right")
    i, j = order[right - 1], order[right % n]
    width = np.mod(folded[j] - folded[i], abs(period)) if n > 1 else np.full(x.shape, abs(period))
    return i, j, width, np.mod(np.mod(x, abs(period)) - folded[i], abs(period)) / width, x != x, x != x
