"""What a function writes into its arguments, however it comes to write it: a derivative is right, or
refused."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator

import numpy as np
import pytest

import srcgrad

X = np.array([0.7, -1.2])


def double(v):
    v *= 2.0


def apply(f, v):
    f(v)


def apply_default(v, f=double):
    f(v)


def apply_to_first(f, parts):
    apply(f, parts[0])


TABLE = {"double": double}
LIST = [double]


class Doubler:
    def change(self, v):
        v *= 2.0

    def __call__(self, v):
        v *= 2.0

    @staticmethod
    def fixed(v):
        v *= 2.0

    @property
    def worker(self):
        return double


class Inherits(Doubler):
    def change(self, v):
        super().change(v)


class Holds:
    def __init__(self, v):
        self.v = v

    def change(self):
        self.v *= 2.0

    def change_taken(self):
        q = self.v
        q *= 2.0


class Cases:
    """Functions that write into an array."""

    def given_function(v):
        apply(double, v)

    def given_lambda(v):
        apply(lambda q: q.fill(2.0), v)

    def mapped(v):
        list(map(double, [v]))

    def mapped_lambda(v):
        list(map(lambda q: q.sort(), [v]))

    def named_lambda(v):
        f = lambda q: q.fill(3.0)  # noqa: E731
        f(v)

    def called_lambda(v):
        (lambda q: q.fill(2.0))(v)

    def display(v):
        {"k": double}["k"](v)

    def partial(v):
        functools.partial(double, v)()

    def method(v):
        Doubler().change(v)

    def method_of_a_variable(v):
        d = Doubler()
        d.change(v)

    def inherited(v):
        Inherits().change(v)

    def called_object(v):
        Doubler()(v)

    def static(v):
        Doubler.fixed(v)

    def from_a_table(v):
        TABLE["double"](v)

    def from_a_list(v):
        LIST[0](v)

    def held(v):
        Holds(v).change()

    def held_and_taken(v):
        h = Holds(v)
        h.change_taken()

    def default(v):
        apply_default(v)

    def two_levels(v):
        apply_to_first(double, [v])

    def over_functions(v):
        for f in (double, double):
            f(v)

    def comprehension(v):
        [double(q) for q in [v]]

    def from_a_property(v):
        Doubler().worker(v)

    def captured(v):
        def inner():
            v.fill(1.5)

        g = inner
        g()

    def given_closure(v):
        def inner(q):
            q *= 2.0

        apply(inner, v)

    def chosen(v):
        (double if v[0] > 0 else apply_default)(v)

    def by_name(v):
        getattr(v, "fill")(2.0)  # noqa: B009

    def bound_method(v):
        f = v.fill
        f(2.0)

    def descriptor(v):
        np.ndarray.fill(v, 2.0)

    def special_method(v):
        v.__imul__(2.0)

    def special_item(v):
        v.__setitem__(0, 2.0)

    def operator_function(v):
        operator.imul(v, 2.0)

    def copied_by_keyword(v):
        np.copyto(dst=v, src=v * 2)

    def diagonal(v):
        np.fill_diagonal(v.reshape(1, 2), 2.0)

    def iterator(v):
        for q in np.nditer(v, op_flags=["readwrite"]):
            q[...] = 2 * q

    def flat(v):
        v.flat[0] = 3.0

    def same_memory(v):
        w = np.frombuffer(v.data)
        w *= 2

    def view(v):
        w = v.view()
        w *= 2

    def raveled(v):
        w = v.ravel()
        w *= 2

    def split(v):
        a, _ = np.split(v, 2)
        a *= 2

    def array_of_itself(v):
        w = np.array(v, copy=None)
        w *= 2

    def type_of_itself(v):
        w = v.astype(float, copy=False)
        w *= 2

    def shuffled(v):
        np.random.default_rng(0).shuffle(v)

    def at(v):
        np.subtract.at(v, [0], 1.0)

    def placed(v):
        np.place(v, [True, False], [2.0])

    def third_argument(v):
        np.add(v, 1.0, v)

    def out_of_a_method(v):
        v.clip(0.5, 0.6, v)

    def out_of_a_sum(v):
        v.cumsum(0, None, v)

    def pattern(v):
        match [v]:
            case [q, *_]:
                q *= 2.0


class Parts:
    """Functions that write into the arrays of a list."""

    def first(p):
        q = p[0]
        q *= q

    def each(p):
        for q in p:
            q *= 2.0 * q

    def joined(p):
        m = p + []
        q = m[0]
        q *= q

    def listed(p):
        q = [z for z in p][0]  # noqa: RUF015
        q *= 2.0

    def made_a_list(p):
        m = list(p)
        m[0] *= 2.0

    def zipped(p):
        for q, _ in zip(p, p, strict=True):
            q *= 2.0

    def repeated(p):
        m = p * 2
        m[0][0] = 3.0

    def chosen(p):
        q = p[0] if len(p) else None
        q[:] = q * q

    def by_out(p):
        np.multiply(p[0], 2.0, out=p[0])

    def in_a_dict(p):
        d = {"k": p[0]}
        d["k"] *= 2

    def largest(p):
        q = max(p, key=lambda v: v[0])
        q *= 2.0

    def by_a_closure(p):
        def inner():
            q = p[0]
            q *= 2.0

        inner()

    def by_another(p):
        Parts.first(p)

    def inside(p):
        r = [p]
        q = r[0][0]
        q *= 2

    def copied(p):
        q = p.copy()
        z = q[0]
        z *= 2.0

    def transposed(p):
        q = p[0].T
        q *= 3.0

    def entry(p):
        p[0][0] += p[0][1]

    def starred(p):
        q, *_ = p
        q[0] = 2.0

    def spent(p):
        while p:
            q = p.pop()
            q *= 2.0

    def pattern(p):
        match p:
            case [q, *_]:
                q *= 2.0


def of(cases):
    return [pytest.param(f, id=n) for n, f in vars(cases).items() if not n.startswith("__")]


def right_or_refused(f):
    expected = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    for slope in (srcgrad.grad(f), srcgrad.jacfwd(f)):
        try:
            found = slope(X.copy())
        except srcgrad.SrcgradError:
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("change", of(Cases))
def test_writes_into_an_array(change):
    def alone(x):
        y = x * 1.0
        change(y)
        return np.sum(y**3)

    def read_before(x):
        y = np.sin(x)
        z = y * y
        change(y[:])
        return np.sum(z * y)

    right_or_refused(alone)
    right_or_refused(read_before)


@pytest.mark.parametrize("change", of(Parts))
def test_writes_into_the_arrays_of_a_list(change):
    def named(x):
        y = x * 1.0
        parts = [y, y * 2]
        change(parts)
        return np.sum(y**3)

    def unnamed(x):
        parts = [x * 1.0, x**2]
        change(parts)
        return np.sum(parts[0] ** 3) if parts else np.sum(x)

    right_or_refused(named)
    right_or_refused(unnamed)


SECOND = [
    *(Parts.first, Parts.each, Parts.chosen, Parts.in_a_dict, Parts.entry, Parts.by_another),
]


@pytest.mark.parametrize("change", SECOND)
@pytest.mark.parametrize("outer, inner", [("fwd", "fwd"), ("fwd", "rev"), ("rev", "fwd"), ("rev", "rev")])
def test_second_derivatives(change, outer, inner):
    def f(x):
        parts = [x * 1.0, x**2]
        change(parts)
        return np.sum(parts[0] ** 3)

    by = {"fwd": srcgrad.jacfwd, "rev": srcgrad.jacrev}
    e = np.eye(2) * 1e-4
    expected = [[(f(X + a + b) - f(X + a - b) - f(X - a + b) + f(X - a - b)) / 4e-8 for a in e] for b in e]
    try:
        found = by[outer](by[inner](f))(X.copy())
    except srcgrad.SrcgradError:
        return
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_functions_that_are_given_are_followed():
    """Not refused: what writes is known where it is called."""

    def f(x):
        y = x * 1.0
        apply(double, y)
        apply_default(y)
        return np.sum(y**3)

    np.testing.assert_allclose(srcgrad.grad(f)(X), 192 * X**2)
    np.testing.assert_allclose(srcgrad.jvp(f, (X,), (np.ones(2),))[1], np.sum(192 * X**2))


def test_the_refusal_of_what_can_not_be_told_names_both_functions():
    def change(v):
        TABLE["double"](v)

    def f(x):
        y = x * 1.0
        change(y)
        return np.sum(y)

    with pytest.raises(srcgrad.UnsupportedSyntax, match="cannot tell whether `change` writes into `y`"):
        srcgrad.grad(f)(X)


Named = collections.namedtuple("Named", "a b")  # noqa: PYI024


@dataclasses.dataclass
class Data:
    a: object
    b: object


def changes_attribute(p):
    q = p.a
    q *= 2.0


def of_several(*parts):
    for v in parts:
        v *= 3.0


def of_keywords(**parts):
    for v in parts.values():
        v *= 3.0


def given_and_summed(v):
    v *= 2.0
    return float(np.sum(v))


class Programs:
    """Functions that write in ways of their own."""

    def a_named_tuple(x):
        t = Named(x * 1.0, x**2)
        changes_attribute(t)
        return np.sum(t.a**3)

    def a_dataclass(x):
        t = Data(x * 1.0, x**2)
        changes_attribute(t)
        return np.sum(t.a**3)

    def several(x):
        y, z = x * 1.0, x**2
        of_several(y, z)
        return np.sum(y**3 * z)

    def keywords(x):
        y = x * 1.0
        of_keywords(a=y)
        return np.sum(y**3)

    def items_of_a_lambda(x):
        buffer = np.zeros(2)
        list(map(lambda i: buffer.__setitem__(i, x[i] ** 2), range(2)))
        return np.sum(buffer**2)

    def a_key(x):
        y = x * 1.0
        sorted([3, 1, 2], key=lambda i: given_and_summed(y))
        return np.sum(y**2)

    def vectorized(x):
        y = x * 1.0
        np.vectorize(lambda i: given_and_summed(y))([1.0])
        return np.sum(y**2)

    def a_test(x):
        y = x * 1.0
        if given_and_summed(y) > -100:
            y = y * y
        return np.sum(y)

    def an_assertion(x):
        y = x * 1.0
        assert given_and_summed(y) < 1e9
        return np.sum(y**2)

    def a_generator(x):
        y = x * 1.0
        any(given_and_summed(q) > 1e9 for q in [y])
        return np.sum(y**2)

    def several_functions(x):
        y = x * 1.0
        for k in ("a", "b"):
            {"a": double, "b": given_and_summed}[k](y)
        return np.sum(y**3)


@pytest.mark.parametrize("f", of(Programs))
def test_writes_of_other_kinds(f):
    right_or_refused(f)


def slopes(y, out):
    out[:] = np.sin(y) * y


def stepped(f, y, n):
    d = np.empty_like(y)
    for _ in range(n):
        f(y, d)
        y = y + 0.1 * d
    return y


def test_a_right_hand_side_that_fills_an_array():
    def f(x):
        return np.sum(stepped(slopes, x * 1.0, 3) ** 2)

    expected = [(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    np.testing.assert_allclose(srcgrad.grad(f)(X), expected, rtol=1e-7)
    np.testing.assert_allclose(srcgrad.jacfwd(f)(X), expected, rtol=1e-7)
