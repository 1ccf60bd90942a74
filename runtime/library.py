"""The standard library in Python: what stands for functions that are written in C, or whose source takes a
detour, when a derivative is asked for.

Each computes what the original does, and is differentiated as the user's own functions are. What the original
yields one by one comes in a list: the compiler refuses iterators that are kept and used again.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import functools
import itertools
import statistics
from typing import Any


def accumulate(iterable, func=None, *, initial=None):
    items = [v for v in iterable]
    if initial is None and len(items) == 0:
        return []
    total = items[0] if initial is None else initial
    found = [total]
    for v in items[1:] if initial is None else items:
        if func is None:
            total = total + v
        else:
            total = func(total, v)
        found.append(total)
    return found


def chain(*iterables):
    return [v for iterable in iterables for v in iterable]


def chain_from_iterable(iterables):
    return [v for iterable in iterables for v in iterable]


def product(*iterables, repeat=1):
    rows: list[Any] = [[]]
    for _ in range(repeat):
        for iterable in iterables:
            pool = [v for v in iterable]
            rows = [[*row, v] for row in rows for v in pool]
    return [tuple(row) for row in rows]


def islice(iterable, *bounds):
    items = [v for v in iterable]
    if len(bounds) == 1:
        return items[: bounds[0]]
    return items[bounds[0] : bounds[1]] if len(bounds) == 2 else items[bounds[0] : bounds[1] : bounds[2]]


def pairwise(iterable):
    items = [v for v in iterable]
    return [(items[i], items[i + 1]) for i in range(len(items) - 1)]


def zip_longest(*iterables, fillvalue=None):
    columns = [[v for v in iterable] for iterable in iterables]
    longest = max([len(c) for c in columns], default=0)
    return [tuple([c[i] if i < len(c) else fillvalue for c in columns]) for i in range(longest)]


def repeat(value, times):
    return [value for _ in range(times)]


def combinations(iterable, r):
    items = [v for v in iterable]
    return [tuple([items[i] for i in chosen]) for chosen in itertools.combinations(range(len(items)), r)]


def combinations_with_replacement(iterable, r):
    items = [v for v in iterable]
    places = itertools.combinations_with_replacement(range(len(items)), r)
    return [tuple([items[i] for i in chosen]) for chosen in places]


def permutations(iterable, r=None):
    items = [v for v in iterable]
    return [tuple([items[i] for i in chosen]) for chosen in itertools.permutations(range(len(items)), r)]


def starmap(function, iterable):
    return [function(*args) for args in iterable]


def takewhile(predicate, iterable):
    found = []
    for v in iterable:
        if not predicate(v):
            break
        found.append(v)
    return found


def dropwhile(predicate, iterable):
    found = []
    dropping = True
    for v in iterable:
        if dropping and predicate(v):
            continue
        dropping = False
        found.append(v)
    return found


def filterfalse(predicate, iterable):
    return [v for v in iterable if not (v if predicate is None else predicate(v))]


def compress(data, selectors):
    return [v for v, chosen in zip(data, selectors, strict=False) if chosen]


def mean(data):
    items = [v for v in data]
    if len(items) == 0:
        raise statistics.StatisticsError("mean requires at least one data point")
    return sum(items) / len(items)


def pvariance(data, mu=None):
    items = [v for v in data]
    center = mean(items) if mu is None else mu
    return sum([(v - center) ** 2 for v in items]) / len(items)


def variance(data, xbar=None):
    items = [v for v in data]
    if len(items) < 2:
        raise statistics.StatisticsError("variance requires at least two data points")
    center = mean(items) if xbar is None else xbar
    return sum([(v - center) ** 2 for v in items]) / (len(items) - 1)


def pstdev(data, mu=None):
    return pvariance(data, mu) ** 0.5


def stdev(data, xbar=None):
    return variance(data, xbar) ** 0.5


def median(data):
    items = sorted(data)
    n = len(items)
    if n == 0:
        raise statistics.StatisticsError("no median for empty data")
    return items[n // 2] if n % 2 else (items[n // 2 - 1] + items[n // 2]) / 2


def fromkeys(iterable, value=None):
    return {k: value for k in iterable}


def complex_number(real=0.0, imag=0.0):
    return real + imag * 1j


STANDINS: dict[Any, Any] = {
    itertools.accumulate: accumulate,
    itertools.chain: chain,
    itertools.chain.from_iterable: chain_from_iterable,
    itertools.product: product,
    itertools.islice: islice,
    itertools.pairwise: pairwise,
    itertools.zip_longest: zip_longest,
    itertools.combinations: combinations,
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.permutations: permutations,
    itertools.starmap: starmap,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.filterfalse: filterfalse,
    itertools.compress: compress,
    itertools.repeat: repeat,
    statistics.mean: mean,
    statistics.fmean: mean,
    statistics.pvariance: pvariance,
    statistics.variance: variance,
    statistics.pstdev: pstdev,
    statistics.stdev: stdev,
    statistics.median: median,
    dict.fromkeys: fromkeys,
    complex: complex_number,
}
LAZY = (
    *(f for f in STANDINS if getattr(f, "__module__", "") == "itertools"),
    map,
    filter,
    zip,
    enumerate,
    reversed,
    iter,
)
"""Functions that give iterators, which can be gone through once."""


def standin(function: Any) -> Any:
    """What is differentiated in the place of a function: itself, or what is written above.

    >>> standin(itertools.pairwise) is pairwise, standin(len) is len
    (True, True)
    """
    try:
        return STANDINS.get(function, function)
    except TypeError:  # not hashable
        return function


def lazy(function: Any) -> bool:
    """Does a function give an iterator?"""
    return any(function is f or (f is itertools.chain.from_iterable and function == f) for f in LAZY)


def once(function: Any) -> Any:
    """The function inside one that `functools` caches, unless it calls itself: without its cache that would
    take forever."""
    if not isinstance(function, functools._lru_cache_wrapper):
        return function
    inner = getattr(function, "__wrapped__", None)
    return function if inner is None or inner.__name__ in inner.__code__.co_names else inner
