"""NumPy's functions that write into an array, in programs: loops, branches, views, both modes and twice."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad
from srcgrad import check_grads, grad, jvp

V = np.array([0.53, 0.72, 0.31, 0.9])
W = np.array([0.41, 0.93, 0.65])
M = np.array([[0.41, 0.93, 0.22, 0.5], [0.86, 0.34, 0.67, 0.79], [0.3, 0.6, 0.9, 0.45]])
PROGRAMS = {}


def prog(f):
    PROGRAMS[f.__name__] = f
    return f


@prog
def copyto_loop(v, w):
    y = np.zeros(4)
    total = 0.0
    for i in range(3):
        np.copyto(y, v * w[i])
        y[0] *= w[i]
        total = total + np.sum(y**2)
    return total


@prog
def copyto_where(v, w):
    y = v * 1.0
    np.copyto(y, v**2, where=v > 0.5)
    if w[0] < 1:
        np.copyto(y[:2], w[:2])
    return np.sum(y**3)


@prog
def put_loop(v, w):
    y = v * 1.0
    for i in range(3):
        np.put(y, [i, i + 1], w[:2] * y[i])
        y = y * 1.5
    return np.sum(y**2)


@prog
def place_branch(v, w):
    y = v * v
    if np.sum(y) > 0.1:
        np.place(y, y > 0.3, w)
    else:
        np.place(y, y > 0.1, [0.0])
    return np.sum(y * v)


@prog
def putmask_while(v, w):
    y = v * 1.0
    k = 0
    while k < 3:
        np.putmask(y, y > 0.5, y * w[k])
        k += 1
    return np.sum(y * v)


@prog
def diagonal_loop(m, w):
    y = m * 1.0
    t = 0.0
    for i in range(3):
        np.fill_diagonal(y, w[i] * y[0, 1])
        t = t + np.sum(y**2)
    return t


@prog
def diagonal_view(m, w):
    y = m * 1.0
    np.fill_diagonal(y[:, 1:], w)
    return np.sum(y**2 * m)


@prog
def along_axis(m, w):
    y = m * 1.0
    for i in range(2):
        np.put_along_axis(y, np.array([[0], [1], [2]]) + i, w[:, None] * y[:, :1], axis=1)
    return np.sum(y**2)


@prog
def add_at(v, w):
    y = np.zeros(3)
    for i in range(2):
        np.add.at(y, [0, 1, 0, 2], v * w[i])
    np.subtract.at(y, [0, 0], w[:2])
    return np.sum(y**2 * w)


@prog
def row_view(m, w):
    y = m * 1.0
    r = y[1]
    r[:] = w[0] * r
    np.multiply(y[0], w[1], out=y[0])
    return np.sum(y**2)


@prog
def sort_fill(v, w):
    y = v * w[0]
    y.sort()
    z = np.empty(4)
    z.fill(w[1])
    z[1:] += y[:-1]
    y.partition(2)
    return np.sum(y * z * V)


@prog
def out_loop(v, w):
    y = np.empty(4)
    t = 0.0
    for i in range(3):
        np.multiply(v, w[i], out=y)
        np.exp(y, out=y)
        np.add(y, v, out=y, where=v > 0.5)
        t = t + np.sum(y)
    return t


@prog
def shuffle_rows(m, w):
    y = m * 1.0
    y[[0, 2]] = y[[2, 0]]
    y[y > 0.8] = w[2]
    y[0], y[1] = (y[1].copy(), y[0].copy())
    return np.sum(y**2 * m)


@prog
def flat(m, w):
    y = m * 1.0
    y.flat[2:5] = w
    return np.sum(y**2 * m)


@prog
def nested(v, w):

    def scale(a, k):
        b = a * 1.0
        np.put(b, [0], k)
        np.copyto(b[1:], b[:-1].copy())
        return b

    y = v
    for i in range(2):
        y = scale(y, w[i]) * v
    return np.sum(y)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_writes(f):
    args = (M if "m" in f.__code__.co_varnames[:2] else V, W)
    kept = [x.copy() for x in args]
    check_grads(f, args, order=1)
    df, along = grad(f, (0, 1)), tuple(x[::-1] * 0.7 for x in args)
    ahead, behind = (df(*[x + h * d for x, d in zip(args, along, strict=True)]) for h in (1e-5, -1e-5))
    for t, p, q in zip(jvp(df, args, along)[1], ahead, behind, strict=True):
        np.testing.assert_allclose(t, (p - q) / 2e-5, rtol=1e-5, atol=1e-6)
    for before, after in zip(kept, args, strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_write_through_a_view_that_has_no_name_is_refused():
    def f(m):
        y = m * 1.0
        y.T[0] = 2.0
        return np.sum(y)

    with pytest.raises(srcgrad.AliasError, match="may share its memory"):
        grad(f)(M)


def test_a_copy_is_not_written_through():
    def f(v, w):
        y = v * 1.0
        np.put(y[[0, 1]], [0, 1], w[:2])
        np.copyto(y[v > 0.5], 0.0)
        return np.sum(y**2)

    try:
        found = grad(f, (0, 1))(V, W)
    except srcgrad.SrcgradError:
        return
    np.testing.assert_allclose(found[0], 2 * V)
    np.testing.assert_allclose(found[1], np.zeros(3))


def test_a_check_of_what_may_be_unbound():
    def f(x):
        g = np.array([[x, x], [x, x * x]]) * 2.0
        if g[0, 0] > 100:
            for e, _ in g:
                kept = [lambda t: e]  # noqa: B023
            x = x * kept[0](1.0)
        g[1] = 2 * x
        return np.sum(g) * x

    expected = (f(0.3 + 1e-6) - f(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(srcgrad.grad(f)(0.3), expected, rtol=1e-7)
    np.testing.assert_allclose(srcgrad.jvp(f, (0.3,), (1.0,))[1], expected, rtol=1e-7)
