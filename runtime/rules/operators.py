"""Rules for Python's operators (module `operator`), together with the NumPy functions that do the same on
arrays.

They serve Python numbers and arrays alike; where the two differ (a division by 0) the NumPy function has a
rule of its own. Formulas: Griewank & Walther, "Evaluating Derivatives", table 2.3.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import builtins
import operator

import numpy as np

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.table import elementwise, nondifferentiable, reverse
from srcgrad.runtime.support import inverse, log_or_zero, lowered, power_slope, scatter

X = generic(3)
M = generic(2, 3)
P = positive(2, 3)


@elementwise(operator.add, np.add, at=[(1.5, -0.5), (M, X), (X, 2.0), (M, generic(2, 1))])
def add(z, x, y):
    return 1, 1


@elementwise(operator.sub, np.subtract, at=[(1.5, -0.5), (M, X), (2.0, X)])
def subtract(z, x, y):
    return 1, -1


@elementwise(operator.mul, np.multiply, at=[(1.5, -0.5), (2.0, [1.0, 3.0]), (M, X), (X[:, None], M.T)])
def multiply(z, x, y):
    return y, x


QUOTIENTS = [(1.5, -0.5), (2.0, X), (M, X), (X, 4.0)]
POWERS = [
    (1.5, 2),
    (-1.5, 3),
    (X, 2),
    (P, 0.5),
    (2.0, X),
    (P, X),
    (P, positive(3)),
    (1.3, 2.7),
    (P, -1.0),
    (X, 0),
    (X, -2),
    (X, np.array([True, False, True])),
]
REMAINDERS = [(5.5, 2.0), (-5.5, 2.0), (M, P), (X, 0.7), (2.0, [0.6, -0.7])]


@elementwise(operator.truediv, at=QUOTIENTS)
def divide(z, x, y):
    return 1 / y, -z / y


@elementwise(np.divide, at=QUOTIENTS)
def numpy_divide(z, x, y):
    return inverse(y), -z / y


@elementwise(operator.pow, builtins.pow, at=POWERS)
def power(z, x, y):
    return power_slope(x, y, lowered(y)), z * log_or_zero(x)


@elementwise(np.power, at=POWERS)
def numpy_power(z, x, y):
    """The exponent is lowered only where it is not 0, so that `0 ** 0` gives 0 and not 0 * inf."""
    return y * np.power(x, lowered(y)), z * log_or_zero(x)


@elementwise(operator.mod, at=REMAINDERS)
def remainder(z, x, y):
    return 1, -(x // y)


@elementwise(np.remainder, at=REMAINDERS)
def numpy_remainder(z, x, y):
    return 1, -np.floor_divide(x, y)


@elementwise(operator.neg, np.negative, at=[1.5, M])
def negative(y, x):
    return -1


@elementwise(operator.pos, np.positive, at=[1.5, M])
def positive_(y, x):
    return 1


@elementwise(operator.abs, builtins.abs, np.absolute, real=True, at=[1.5, -1.5, M, M + 1j * P])
def absolute(y, x):
    """At 0 the derivative is taken as 0."""
    if isinstance(x, (float, int)):
        return float(x > 0) - float(x < 0)
    if np.iscomplexobj(x):
        return np.conj(np.sign(x))
    return np.sign(x)


@reverse(
    operator.getitem,
    linear=True,
    alias="maybe",
    at=[
        (X, 1),
        (M, (0, 2)),
        (M, (slice(None), 1)),
        (M, slice(None, None, -1)),
        (M, (..., None)),
        (X, np.array([2, 0, 2])),
        (M, (np.array([0, 1, 0]), np.array([1, 1, 1]))),
        (M, (np.array([1, 1]), slice(0, 2))),
        (X, np.array([True, False, True])),
        (M, M > 0),
        (M, (0, np.array([True, False, True]))),
    ],
)
def getitem(g, y, x, index):
    return scatter(g, x, index)


nondifferentiable(
    *[operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge],
    *[operator.not_, operator.truth, operator.is_, operator.is_not, operator.contains],
    *[operator.and_, operator.or_, operator.xor, operator.invert, operator.lshift, operator.rshift],
    *[operator.floordiv, operator.index, operator.countOf, operator.indexOf, operator.length_hint],
)
nondifferentiable(
    builtins.len, builtins.int, builtins.bool, builtins.round, builtins.isinstance, builtins.range
)


@elementwise(builtins.float, at=[1.5])
def float_(y, x):
    return 1
