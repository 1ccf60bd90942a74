"""What the rules choose at kinks, ties and singular points (the table in the documentation)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import srcgrad.runtime.rules  # noqa: F401
from srcgrad.runtime.rules.table import find
from srcgrad.runtime.support import unbroadcast

INF = math.inf


def gradient(function: Any, *args: Any, g: Any = 1.0, **kwargs: Any) -> Any:
    """The cotangents of all arguments that the rule differentiates."""
    rule = find(function)
    assert rule is not None
    args = tuple(np.array(a, float) if isinstance(a, list) else a for a in args)
    with np.errstate(all="ignore"):
        y = function(*args, **kwargs)
        if np.ndim(y) and np.ndim(g) == 0:
            g = np.full(np.shape(y), g)
        if rule.partials is not None:
            partials = rule.partials(y, *args, **kwargs)
            partials = partials if isinstance(partials, tuple) else (partials,)
            return [p if p is None else unbroadcast(g * p, x) for p, x in zip(partials, args, strict=True)]
        assert rule.reverse is not None
        found = rule.reverse(g, y, *args, **kwargs)
    return list(found) if isinstance(found, tuple) else [found]


CASES: list[tuple[Any, tuple[Any, ...], dict[str, Any], list[Any]]] = [
    (np.abs, ([0.0, -0.0],), {}, [[0, 0]]),
    (abs, (0.0,), {}, [0]),
    (np.fabs, ([0.0],), {}, [[0]]),
    (math.fabs, (0.0,), {}, [0]),
    (np.max, ([1, 0, 1],), {}, [[0.5, 0, 0.5]]),
    (np.max, ([[1, 0, 1], [2, 3, 0]],), {"axis": 1}, [[[0.5, 0, 0.5], [0, 1, 0]]]),
    (np.min, ([1, 1, 1],), {}, [[1 / 3, 1 / 3, 1 / 3]]),
    (np.maximum, ([1.0], [1.0]), {}, [[0.5], [0.5]]),
    (np.minimum, (1.0, 1.0), {}, [0.5, 0.5]),
    (np.fmax, ([1.0], [1.0]), {}, [[0.5], [0.5]]),
    (np.maximum, ([0.0], 0.0), {}, [[0.5], 0.5]),
    (np.maximum, ([-INF], [-INF]), {}, [[0.5], [0.5]]),
    (np.clip, ([0.0, 1.0, 0.5], 0.0, 1.0), {}, [[1, 1, 1], 0, 0, None, None]),
    (np.clip, ([-1.0, 2.0, 0.5], 0.0, 1.0), {}, [[0, 0, 1], 1, 1, None, None]),
    (np.sqrt, ([0.0],), {}, [[INF]]),
    (math.sqrt, (0.0,), {}, [INF]),
    (np.cbrt, ([0.0],), {}, [[INF]]),
    (np.log, ([0.0],), {}, [[INF]]),
    (np.arcsin, ([1.0],), {}, [[INF]]),
    (math.asin, (1.0,), {}, [INF]),
    (np.arccosh, ([1.0],), {}, [[INF]]),
    (np.linalg.norm, ([0.0, 0.0],), {}, [[0, 0]]),
    (np.linalg.norm, ([[0, 0], [3, 4]],), {"axis": 1}, [[[0, 0], [0.6, 0.8]]]),
    (np.linalg.norm, ([0.0, 2.0], 1), {}, [[0, 1]]),
    (np.linalg.norm, ([1.0, -1.0], INF), {}, [[0.5, -0.5]]),
    (np.linalg.norm, ([0.0, 0.0], 3), {}, [[0, 0]]),
    (np.hypot, (0.0, 0.0), {}, [0, 0]),
    (math.hypot, (0.0, 0.0), {}, [[0, 0]]),
    (np.arctan2, ([0.0], [0.0]), {}, [[0], [0]]),
    (math.atan2, (0.0, 0.0), {}, [0, 0]),
    (np.power, ([0.0], 2.0), {}, [[0], 0]),
    (np.power, ([0.0], 1.0), {}, [[1], 0]),
    (np.power, ([0.0], 0.0), {}, [[0], 0]),
    (np.power, ([0.0], 0.5), {}, [[INF], 0]),
    (np.power, ([0.0], [0.0]), {}, [[0], [0]]),
    (pow, (0.0, 0), {}, [0, 0]),
    (np.prod, ([0.0, 2.0, 3.0],), {}, [[6, 0, 0]]),
    (np.prod, ([0.0, 0.0, 3.0],), {}, [[0, 0, 0]]),
    (np.cumprod, ([2.0, 0.0, 3.0],), {}, [[1, 8, 0]]),
    (np.std, ([0.7, 0.7, 0.7],), {}, [[0, 0, 0], None]),
    (np.std, ([0.5, 0.5],), {}, [[0, 0], None]),
    (np.std, ([0.5, 0.5],), {"ddof": 1}, [[0, 0], None]),
    (np.std, ([0.7],), {}, [[0], None]),
    (np.linalg.det, ([[1, 2], [2, 4]],), {}, [[[4, -2], [-2, 1]]]),
    (np.linalg.det, ([[0, 0], [0, 0]],), {}, [[[0, 0], [0, 0]]]),
    (np.linalg.det, ([[1, 1, 1], [1, 1, 1], [1, 1, 1]],), {}, [np.zeros((3, 3))]),
    (np.logaddexp, ([1000.0], [0.0]), {}, [[1], [0]]),
    (np.logaddexp, ([-INF], [-INF]), {}, [[0], [0]]),
    (np.sinc, ([0.0],), {}, [[0]]),
    (np.mod, ([2.0], [1.0]), {}, [[1], [-2]]),
    (np.mod, (-2.5, 1.0), {}, [1, 3]),
    (np.fmod, (-2.5, 1.0), {}, [1, 2]),
    (np.heaviside, ([0.0], 0.5), {}, [None, 1]),
    (np.nan_to_num, ([math.nan, INF, 1.0],), {}, [[0, 0, 1]]),
    (np.nanmax, ([math.nan, 1.0, 2.0],), {}, [[0, 0, 1]]),
    (np.ptp, ([0.5, 0.5],), {}, [[0, 0]]),
    (np.abs, (np.array([0j]),), {}, [[0]]),
    (np.abs, (np.array([3 + 4j]),), {}, [[0.6 - 0.8j]]),
    (np.angle, (np.array([0j]),), {}, [[0]]),
    (np.angle, ([-1.0],), {}, [[0]]),
    (np.sign, (np.array([0j]),), {}, [[0]]),
    (np.imag, (np.array([1 + 2j]),), {}, [[-1j]]),
    (np.mean, (np.zeros(0),), {}, [[]]),
    (max, (1.0, 1.0), {}, [[0.5, 0.5]]),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function, args, kwargs, expected", CASES, ids=[f"{c[0].__name__}-{i}" for i, c in enumerate(CASES)]
)
def test_convention(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], expected: list[Any]
) -> None:
    found = gradient(function, *args, **kwargs)
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if want is None:
            assert got is None or not np.any(got)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_ties_in_order() -> None:
    """Sorting follows the permutation of a stable argsort."""
    (found,) = gradient(np.sort, [0.5, 0.5, 0.1], g=np.array([1.0, 2.0, 5.0]))
    np.testing.assert_array_equal(found, [2, 5, 1])


def test_masked() -> None:
    """The branch that `np.where` does not take gets an exact 0, also from an infinite cotangent."""
    found = gradient(np.where, np.array([True, False]), [1.0, 2.0], [3.0, 4.0], g=np.array([1.0, INF]))
    np.testing.assert_array_equal(found, [[1, 0], [0, INF]])
