"""What the rules choose where a function has no derivative: at kinks, ties and singular points.

The documentation's tables are made from this list. Sources of the choices: the subgradient of least norm
where there is one; ties split evenly, which is the mean of the one-sided derivatives; else the limit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

CONVENTIONS: list[tuple[tuple[Function, ...], str, str]] = [
    ((np.abs, np.fabs, abs, operator.abs, math.fabs, np.sign), "0", "0"),
    ((np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin, max, min), "a tie of n", "1/n to each"),
    ((np.maximum, np.minimum, np.fmax, np.fmin), "a tie", "1/2 to each"),
    ((np.clip,), "a bound", "1 to the array, 0 to the bound"),
    ((np.sqrt, math.sqrt, np.cbrt, np.log, np.log2, np.log10), "0", "inf"),
    ((np.arcsin, np.arccosh), "1", "inf"),
    ((np.linalg.norm, np.hypot, math.hypot), "the zero vector; with order 1, a zero component", "0"),
    ((np.linalg.norm,), "order inf, a tie", "shared equally"),
    ((np.arctan2, math.atan2), "(0, 0)", "0 to both"),
    ((np.power, np.float_power, operator.pow, pow), "x = 0, y > 1 or y = 0", "0 to x, 0 to y"),
    ((np.power, np.float_power, operator.pow, pow), "x = 0, 0 < y < 1", "inf to x, 0 to y"),
    ((np.prod, np.cumprod, np.nanprod), "zeros", "the products of the other factors"),
    ((np.std, np.nanstd, np.ptp), "a constant array", "0"),
    ((np.linalg.det,), "a singular matrix", "the transposed adjugate"),
    ((np.linalg.eigh, np.linalg.eigvalsh, np.linalg.svd), "equal values", "1 / (w[i] - w[j]) is taken for 0"),
    ((np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh), "any", "symmetrised (Hermitian) gradient"),
    ((np.linalg.pinv,), "any", "that for a constant rank"),
    (
        (np.sort, np.partition, np.median, np.percentile, np.quantile),
        "ties",
        "a stable argsort's permutation",
    ),
    ((np.where,), "what isn't taken", "0, also where its derivative is infinite or nan"),
    ((np.nan_to_num,), "nan, inf", "0"),
    ((np.nanmax, np.nanmin, np.nansum, np.nanmean, np.nanvar), "nan", "0"),
    ((np.mod, operator.mod), "any", "1 to x, minus the floored quotient to y"),
    ((np.fmod, math.fmod), "any", "1 to x, minus the truncated quotient to y"),
    ((np.heaviside,), "0", "0 to x, 1 to the value at 0"),
    ((np.floor, np.ceil, np.trunc, np.rint, np.round), "any", "0"),
    ((np.sinc,), "0", "0"),
    ((np.interp,), "a knot; outside", "the slope of the interval on the right; 0"),
    ((np.abs, np.angle, np.sign), "complex 0", "0"),
    ((np.copysign,), "0", "0"),
]


def conventions_of(function: Function) -> list[tuple[str, str]]:
    """(where, the derivative that is taken there) for each convention of `function`.

    >>> conventions_of(np.maximum)
    [('a tie', '1/2 to each')]
    """
    return [(at, taken) for functions, at, taken in CONVENTIONS if any(function is f for f in functions)]
