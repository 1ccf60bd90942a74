"""The standard library in differentiated functions: each program's derivative, reverse and forward, against
central differences."""

from __future__ import annotations

import bisect
import collections
import copy
import functools
import itertools
import logging
import operator
import statistics
import types

import numpy as np
import pytest

import srcgrad

A = np.array([0.3, 1.2, 0.8, 2.0])
log = logging.getLogger(__name__)


@functools.cache
def square(x):
    return x * x


PROGRAMS = [
    lambda a: sum(v * v for v in itertools.accumulate(a)),
    lambda a: list(itertools.accumulate(a, lambda s, v: s * 0.5 + v, initial=a[0]))[-1],
    lambda a: sum(itertools.accumulate(list(a), operator.mul)),
    lambda a: sum(v**2 for v in itertools.chain(a, a * a)) + sum(itertools.chain.from_iterable([a, a])),
    lambda a: sum(u * v * v for u, v in itertools.product(a, a)),
    lambda a: sum(a[i] * a[j] ** 2 for i, j in itertools.product(range(4), repeat=2)),
    lambda a: sum(v * v for v in itertools.islice(a, 1, 3)) + sum(itertools.islice(a, 2)),
    lambda a: sum((v - u) ** 2 for u, v in itertools.pairwise(a)),
    lambda a: sum(u * v for u, v in itertools.zip_longest(a, a[1:], fillvalue=1.5)),
    lambda a: sum(u * v for u, v in itertools.combinations(a, 2)) * sum(itertools.repeat(a[0], 3)),
    lambda a: sum(p[0] * p[1] ** 2 for p in itertools.permutations(a, 2)),
    lambda a: sum(itertools.takewhile(lambda v: v < 1.5, a)) * sum(itertools.dropwhile(lambda v: v < 1, a)),
    lambda a: sum(itertools.starmap(lambda u, v: u * v * v, zip(a, a[1:], strict=False))),
    lambda a: operator.itemgetter(2)(a) * sum(operator.itemgetter(0, 1)(a)) + operator.truediv(a[0], a[1]),
    lambda a: operator.attrgetter("w")(types.SimpleNamespace(w=a[0] * a[1], b=a[2])) * a[3],
    lambda a: statistics.mean(a) * statistics.fmean(a) + statistics.median(list(a)) * a[0],
    lambda a: statistics.pvariance(list(a)) + statistics.stdev(list(a)) * a[1],
    lambda a: sum(dict(zip("abcd", a, strict=True)).values()) * dict.fromkeys("ab", a[1])["b"],
    lambda a: sum(i * v for i, (_, v) in enumerate(sorted({"b": a[0], "a": a[1]}.items()), 2)),
    lambda a: abs(complex(a[0], a[1]) ** 2) + square(a[2]) * square(a[3]),
    lambda a: a[bisect.bisect([0.5, 1.5], a[1])] * collections.Counter("hello")["l"],
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_functions_of_the_standard_library(f):
    check(f)


def check(f):
    expected = [
        (f(A + 1e-6 * e) - f(A - 1e-6 * e)) / 2e-6
        for e in np.eye(4)  # one element after another
    ]
    np.testing.assert_allclose(srcgrad.grad(f)(A), expected, rtol=1e-6, atol=1e-8)
    assert srcgrad.jvp(f, (A,), (np.ones(4),))[1] == pytest.approx(sum(expected), rel=1e-6, abs=1e-6)


def dicts_joined(a):
    d = {"a": a[0]}
    d.update({"b": a[1]})
    d |= {"c": a[2]}
    e = d | {"a": 1.0}
    log.info(f"{e} of {a[0]:.2f}")
    return sum(d.values()) * e["a"] * e["b"]


def unknown_dicts_joined(a):
    held = [{"a": a[0]}, {"b": a[1], "a": a[2]}]
    joined = held[0] | held[1]
    return joined["a"] * joined["b"]


def copies(a):
    nested = [a[0], [a[1]]]
    shallow, deep, third = copy.copy(nested), copy.deepcopy(nested), nested.copy()
    deep[1][0] = 1.0
    third.remove(a[0])
    whole = nested[:]
    whole.append(a[2])
    b = copy.deepcopy(a)
    b[0] = 5.0
    p = types.SimpleNamespace(k=a[3])
    q = copy.copy(p)
    q.k = q.k * 2
    return shallow[0] * third[0][0] * deep[0] * whole[2] + np.sum(a * b) + p.k * q.k


@pytest.mark.parametrize("f", [dicts_joined, unknown_dicts_joined, copies])
def test_dicts_and_copies(f):
    check(f)


def used_twice(x):
    squares = map(lambda v: v * v, [x, 2 * x])
    return sum(squares) + sum(squares)


def used_in_a_loop(x):
    squares = (v * x for v in (1.0, 2.0))
    total = 0.0
    for _ in range(2):
        total += sum(squares)
    return total


@pytest.mark.parametrize("f", [used_twice, used_in_a_loop])
def test_iterators_that_are_spent(f):
    with pytest.raises(srcgrad.UnsupportedSyntax, match="more than once"):
        srcgrad.grad(f)(0.7)


def test_iterators_without_an_end_are_refused():
    def f(x):
        return sum(v * w for v, w in zip(itertools.chain([x], itertools.count()), [1.0, x], strict=False))

    with pytest.raises(srcgrad.UnsupportedSyntax, match="no end"):
        srcgrad.grad(f)(0.7)


def test_arrays_enumerated():
    def f(a):
        m = np.reshape(a, (2, 2))
        return sum(v * v * (i + 2 * j) + m[j, i] for (i, j), v in np.ndenumerate(m))

    check(f)
