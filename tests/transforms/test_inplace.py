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


# Names for one memory ---------------------------------------------------------------------------------------


def written_through_a_view_without_a_name(x):
    y = np.outer(x, x)
    y.T[0] = 2.0 * x[1]
    return np.sum(y**2)


def written_through_a_reshape(x):
    y = x.reshape(2, 2)
    y[0] *= 2
    return np.sum(y * y) + np.sum(x[1:] ** 3)


def written_while_a_transpose_is_in_use(x):
    rows = x.reshape(2, 2).T
    x[2] += 1.5 * x[0]
    return np.sum(rows[0] * x[:2])


def two_slices_in_a_loop(x):
    state = x * 1.0
    part = state[1:3]
    for _ in range(3):
        part *= state[0]
        state[0] += part[0]
        state[3] = part[1] * state[3]
    return np.sum(state * state)


def buffers_that_change_places(x):
    u = x * 1.0
    v = np.zeros(4)
    for _ in range(5):
        v[1:] = u[:-1] * x[0]
        v[0] = u[-1]
        u, v = v, u
    return np.sum(u * u) + np.sum(v)


def rows_of_a_loop(x):
    m = np.outer(x, x)
    for i, row in enumerate(m):
        row *= x[i]
        m[i, 0] = row[1] * 2
    return np.sum(m * m)


def an_alias_by_branch(x):
    a = x * 2
    b = a if x[0] > 0 else a[::-1]
    b[0] = x[1] * x[2]
    a[1] *= b[0]
    return np.sum(a * a * b)


def a_window_that_moves(x):
    w = np.zeros(4)
    for k in range(3):
        part = w[k : k + 2]
        part += x[k : k + 2] * w[k]
        w[k] += x[k]
        w[3] += np.sum(part)
    return np.sum(w * w)


def views_of_views(x):
    m = np.outer(x, x)
    d = np.diagonal(m)
    t = m.T
    m[0, 0] = x[1] ** 2
    t[1] += d[0] * m[2]
    return np.sum(m * t) + np.sum(d * d)


def raveled(x):
    y = x.copy()
    r = np.ravel(y.reshape(2, 2))
    r[1] = x[0] * r[2]
    y[2] -= r[1] * y[0]
    return np.sum(r * y)


def changed_by_a_helper(w, k):
    v = w[k:]
    v *= w[0]
    w[1] = v[0]
    return np.sum(v * v) * w[2]


def in_a_helper(x):
    total = 0.0
    for k in range(3):
        total += changed_by_a_helper(x * 3.0, k)
    return total


def two_names_updated(x):
    y = x * 1.0
    z = y
    z *= z
    y *= x
    z -= y
    z /= y[1] + 40
    z = z * 2
    z[0] = y[1]
    return np.sum(z * y)


def a_ring(x):
    ring = np.zeros(3)
    out = 0.0
    for i in range(6):
        now = ring[i % 3 : i % 3 + 1]
        out += np.sum(now) * x[i % 4]
        ring[i % 3] = x[i % 4] * 2 + out
        ring *= 0.9
        out += now[0]
    return out


def updated_by_views_of_itself(x):
    y = np.sin(x)
    a = y.reshape(4)
    y *= a
    z = y[::-1]
    y += z
    y /= z + 5
    z -= y
    return np.sum(y * y) + np.sum(a * x)


def views_of_what_was_constant(x):
    a = np.zeros(4)
    a -= 0.9
    b = a
    for i in range(2):
        x[i] *= 0.7
        a, b = b, a
        a[1:3] -= x[:2] * b[1]
    return np.sum(a * x) + np.sum(b * np.arange(4.0))


def made_by_a_call(x):
    y = np.square(x)
    for _ in range(2):
        w = squared(y)
        v = w[::-1]
        v[0] += w[0]
        w[1] = v[1] * x[0]
        y = w * 0.5
    return np.sum(y)


def squared(t):
    return t * t


def a_contribution_before_a_loop(x):
    a = x.copy()
    b = a[::-1]
    for i in range(2):
        b[i] *= a[3]
        a, b = b, a
    b += x
    return np.sum(a * np.arange(4.0)) + np.sum(b)


def a_view_that_some_iterations_make(x):
    v = x * 1.0
    for i in range(3):
        if i > 0:
            state = v[::-1]
            state[0] *= x[1]
        v[...] = np.sin(v)
        if i > 1:
            v = v * state[2]
    return np.sum(v) + np.sum(state)


def bumped(w, k):
    w *= k
    w[0] += w[1] * k
    return w[-1]


def views_changed_by_calls(x):
    y = np.outer(x, x)
    total = bumped(y[0, 1:], x[0])
    for i, row in enumerate(y):
        total += bumped(row[::-1], x[i])
    return np.sum(y * y) + total * x[1]


def a_stencil(x):
    grid = np.outer(x, x)
    inner, left, right = grid[1:-1, 1:-1], grid[1:-1, :-2], grid[1:-1, 2:]
    for _ in range(3):
        inner += 0.1 * (left + right - 2 * inner)
    return np.sum(grid**2)


@pytest.mark.parametrize(
    "f",
    [
        written_through_a_view_without_a_name,
        written_through_a_reshape,
        written_while_a_transpose_is_in_use,
        two_slices_in_a_loop,
        buffers_that_change_places,
        rows_of_a_loop,
        an_alias_by_branch,
        a_window_that_moves,
        views_of_views,
        raveled,
        in_a_helper,
        two_names_updated,
        a_ring,
        updated_by_views_of_itself,
        views_of_what_was_constant,
        made_by_a_call,
        views_changed_by_calls,
        a_view_that_some_iterations_make,
        a_contribution_before_a_loop,
        a_stencil,
    ],
)
def test_writes_through_one_of_several_names(f):
    x, h = np.array([0.7, -1.2, 0.4, 1.6]), 1e-6
    expected = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(4)]
    after, given = x.copy(), x.copy()
    value = f(after)
    found, gradient = srcgrad.value_and_grad(f)(given)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    assert found == value
    np.testing.assert_array_equal(given, after)
    assert not np.shares_memory(given, gradient)
    _, pullback = srcgrad.vjp(f, x.copy())
    for seed in (1.0, -0.5):
        np.testing.assert_allclose(pullback(seed)[0], seed * np.array(expected), rtol=1e-6, atol=1e-7)
    tangent = srcgrad.jvp(f, (x.copy(),), (x,))[1]
    np.testing.assert_allclose(tangent, expected @ x, rtol=1e-6)


def test_what_may_be_a_copy_is_refused_when_it_is_one():
    def f(m):
        y = m * 1.0
        flat = y.T.ravel()
        y[0, 0] = 3.0
        return np.sum(flat**2) * np.sum(y)

    with pytest.raises(srcgrad.AliasError, match="`flat` is a copy here"):
        grad(f)(M)


def test_what_repeats_elements_is_refused():
    def f(v):
        y = v * 1.0
        wide = np.broadcast_to(y, (2, len(v)))
        y[0] = v[1] ** 2
        return np.sum(wide**2)

    with pytest.raises(srcgrad.AliasError, match="`wide`"):
        grad(f)(V)


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


# Constants that are written through another name ------------------------------------------------------------


def same(a):
    return a


def what_a_call_gives_back(x):
    a = np.zeros(4)
    b = same(a)
    b[0] = x
    b[1] = x * x
    return np.sum(a * 2)


def reshaped_and_turned(x):
    a = np.zeros(4)
    b = a.reshape(2, 2).T
    b[0] = x
    b[1] = x * x
    return np.sum(a * 2)


def kept_in_a_list(x):
    a = np.zeros(4)
    rows = [a, a[1:]]
    rows[0][1] = x
    return np.sum(a * 2)


def as_an_array(x):
    a = np.zeros(4)
    b = np.asarray(a)
    b += x
    return np.sum(a * 2)


def rows_in_a_loop(x):
    a = np.zeros((2, 2))
    for r in a:
        r += x
    return np.sum(a * 2)


def kept_in_a_dict(x):
    d = {"a": np.zeros(3)}
    b = d["a"]
    b[1] = x * x
    return np.sum(d["a"] * 2)


def an_element_of_a_list(x):
    d = [np.zeros(3), np.zeros(3)]
    b = d[0]
    b[1] = x * x
    return np.sum(d[0] * 2)


def by_a_condition(x):
    a = np.zeros(4)
    b = a if x > 0 else a[::-1]
    b[0] = x
    return np.sum(a * np.arange(4.0))


def a_list_of_rows(x):
    a = np.zeros(4)
    b = list(a.reshape(2, 2))
    b[0][1] = x
    return np.sum(a * np.arange(4.0))


def parts_of_an_array(x):
    a = np.zeros(4)
    b, c = np.split(a, 2)
    b[0] = x
    c += x
    return np.sum(a * np.arange(4.0))


def two_slices_at_once(x):
    a = np.zeros(4)
    b, c = a[:2], a[2:]
    b[0] = x
    c += x
    return np.sum(a * np.arange(4.0))


def bound_twice(x):
    a, b = np.zeros(4), None
    b = a
    b[2] = x
    return np.sum(a * np.arange(4.0))


def bound_inside_with(x):
    a = np.zeros(4)
    with np.errstate(all="ignore"):
        b = a[1:]
    b[0] = x
    return np.sum(a)


def what_a_lambda_gives_back(x):
    a = np.zeros(4)
    b = (lambda t: t[1:])(a)
    b[0] = x
    return np.sum(a)


def rows_of_a_comprehension(x):
    a = np.zeros(4)
    v = [r for r in a.reshape(2, 2)]
    v[0][0] = x
    return np.sum(a)


def the_largest_by_a_key(x):
    a = np.zeros(4)
    b = max([a], key=np.sum)
    b[1] = x
    return np.sum(a)


def viewed(x):
    a = np.zeros(4)
    b = a.view()
    b[1] = x
    c = a.astype(float, copy=False)
    c[2] = x * x
    return np.sum(a)


def the_next_of_an_iterator(x):
    a = np.zeros(4)
    it = iter([a])
    b = next(it)
    b[1] = x
    return np.sum(a)


@pytest.mark.parametrize(
    "f",
    [
        what_a_call_gives_back,
        reshaped_and_turned,
        kept_in_a_list,
        as_an_array,
        rows_in_a_loop,
        kept_in_a_dict,
        an_element_of_a_list,
        by_a_condition,
        a_list_of_rows,
        parts_of_an_array,
        two_slices_at_once,
        bound_twice,
        bound_inside_with,
        what_a_lambda_gives_back,
        rows_of_a_comprehension,
        the_largest_by_a_key,
        viewed,
        the_next_of_an_iterator,
    ],
)
def test_constants_that_are_written_through_another_name(f):
    """Right, or refused."""
    expected = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    for slope in (lambda: srcgrad.grad(f)(0.7), lambda: srcgrad.jvp(f, (0.7,), (1.0,))[1]):
        try:
            found = slope()
        except srcgrad.AliasError:
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_result_of_an_early_return_that_is_written_later():
    def helper(u):
        for i in range(2):
            if u[i] > 0.5:
                return np.exp(np.roll(u[[0, 1]], 1))
        return u[[1, 0]]

    def f(x):
        y = np.sin(x)
        for _ in range(2):
            y = helper(y)
            y += x
        return np.sum(y * x)

    for x in (np.array([0.7, 0.2]), np.array([0.2, 0.7]), np.array([0.2, 0.3])):
        expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
        np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-7)


# Arrays inside containers that a function changes -----------------------------------------------------------


def doubles_the_first(parts):
    q = parts[0]
    q *= 2.0


def doubles_each(parts):
    for q in parts:
        q *= 2.0


def multiplies(pair):
    a, b = pair
    a *= b


def doubles_an_item(d):
    d["a"] *= 2.0


def sets_an_entry(d):
    d["a"][0] = 2.0


@pytest.mark.parametrize(
    "change, held",
    [
        (doubles_the_first, lambda y, x: [y]),
        (doubles_each, lambda y, x: [y, y * 2]),
        (multiplies, lambda y, x: (y, x)),
        (doubles_an_item, lambda y, x: {"a": y}),
        (sets_an_entry, lambda y, x: {"a": y}),
    ],
)
def test_arrays_inside_a_container_that_a_call_changes(change, held):
    """Right, or refused."""

    def f(x):
        y = x * 1.0
        parts = held(y, x)
        change(parts)
        return np.sum(y * y)

    x = np.array([0.7, -1.2])
    expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    for slope in (
        lambda: grad(f)(x.copy()),
        lambda: [srcgrad.jvp(f, (x.copy(),), (e,))[1] for e in np.eye(2)],
    ):
        try:
            found = slope()
        except srcgrad.SrcgradError:
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-6)
