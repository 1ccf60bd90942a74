"""Classes of the user's: operators, properties, constructors, and what a loop takes from an object.

Each program's derivative, reverse, forward and second, against central differences.
"""

from __future__ import annotations

import abc
import collections
import functools
import math
import operator
import typing
from dataclasses import asdict, astuple, dataclass, field, replace

import numpy as np
import pytest

import srcgrad


def slope(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


def check(f, x=0.7, order=2):
    expected = slope(f, x)
    assert srcgrad.grad(f)(x) == pytest.approx(expected, rel=1e-5)
    assert srcgrad.jvp(f, (x,), (1.0,))[1] == pytest.approx(expected, rel=1e-5)
    if order == 1:
        return
    assert srcgrad.grad(f).source
    second = slope(srcgrad.grad(f), x)
    assert srcgrad.grad(srcgrad.grad(f))(x) == pytest.approx(second, rel=1e-4, abs=1e-6)


@dataclass
class Vec:
    x: float
    y: float

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vec(self.x - other.x, self.y - other.y)

    def __mul__(self, by):
        return Vec(self.x * by, self.y * by)

    __rmul__ = __mul__

    def __truediv__(self, by):
        return Vec(self.x / by, self.y / by)

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __abs__(self):
        return math.sqrt(self.x**2 + self.y**2)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __getitem__(self, i):
        return (self.x, self.y)[i]

    def __iter__(self):
        return iter((self.x, self.y))

    @property
    def norm(self):
        return math.hypot(self.x, self.y)

    @property
    def unit(self):
        return self / self.norm


def arithmetic(x):
    a, b = Vec(x, 2 * x), Vec(x * x, 1.0)
    c = (a - b) * x + 2.0 * a - b / x
    return (c @ a) + abs(-c) + a[0] * a[-1]


def of_a_property(x):
    a = Vec(x, x**2)
    return a.norm * a.unit.x


def taken_apart(x):
    u, v = Vec(x, x**2)
    total = 0.0
    for w in Vec(x, u):
        total += w * v
    return total + sum(Vec(x, v)) * max(Vec(x, 1.0))


def updated_in_a_loop(x):
    p, v = Vec(0.0, x), Vec(1.0, 0.5 * x)
    for i in range(3):
        p += v * 0.1
        p *= x + i
        v -= p * 0.1
    return p.x + v.y


def not_known(x):
    held = {"a": Vec(x, 1.0), "b": [Vec(1.0, x), Vec(x, x)]}
    c = held["a"] + held["b"][0] * x
    c -= held["b"][1]
    return c.x * c.y + abs(held["a"]) + held["a"].norm


def summed(x):
    parts = [Vec(x * i, x + i) for i in range(3)]
    total = sum(parts, Vec(0.0, 0.0))
    product = functools.reduce(operator.add, parts) @ functools.reduce(lambda a, b: a + b * x, parts)
    return total.x * total.y + product


class Dual:
    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        if isinstance(other, (int, float)):
            return Dual(self.value + other, self.slope)
        return NotImplemented

    __radd__ = __add__

    def __mul__(self, other):
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)
        return Dual(self.value * other, self.slope * other)

    __rmul__ = __mul__

    def __rsub__(self, other):
        return other + -1.0 * self

    def __pow__(self, n):
        return Dual(self.value**n, n * self.value ** (n - 1) * self.slope)


class Tripled(Dual):
    def __radd__(self, other):
        return Dual(3 * self.value + getattr(other, "value", 0.0), self.slope)


def polynomial(t):
    return 3.0 * t * t + 2.0 * t + 1.0 + t**3


def numbers_of_the_users_own(x):
    d = polynomial(Dual(x, 1.0))
    return d.slope + (1.0 - d).value + sum([d, d]).value


def subclass_with_a_reflected_method(x):
    return (Dual(x) + Tripled(x * x)).value


class Shape(abc.ABC):
    scale = 2.0

    def __init__(self, name):
        self.name = name
        self.weight = 1.0

    @abc.abstractmethod
    def area(self): ...

    @property
    def double(self):
        return 2 * self.area() * self.weight


class Circle(Shape):
    def __init__(self, r):
        super().__init__("circle")
        self.r = r

    def area(self):
        return math.pi * self.r**2


class Square(Shape):
    scale = 3.0

    def __init__(self, side):
        super().__init__(name="square")
        self.weight = side
        self.side = side

    def area(self):
        return self.side * self.side


def inherited(x):
    total = 0.0
    for s in (Circle(x), Square(x * x)):
        if isinstance(s, Circle):
            total += s.r
        total += s.area() * s.scale + s.double
    return total


@dataclass(frozen=True)
class Line:
    a: float
    b: float = 2.0

    def __call__(self, x):
        return self.a * x + self.b


@dataclass
class Cylinder:
    r: float
    h: float
    volume: float = field(init=False)
    log: list = field(default_factory=list)

    def __post_init__(self):
        self.volume = math.pi * self.r**2 * self.h


@dataclass
class Lidded(Cylinder):
    lid: float = 0.5

    def __post_init__(self):
        super().__post_init__()
        self.volume = self.volume * self.lid


def dataclasses_of_all_kinds(x):
    return Line(x, b=x * x)(2.0) * Line(a=x)(x) + Cylinder(x, 2 * x).volume + Lidded(x, h=x, lid=x).volume


class Pair(typing.NamedTuple):
    x: float
    y: float

    def __add__(self, other):
        return Pair(self.x + other.x, self.y * other.y)

    @property
    def product(self):
        return self.x * self.y


class Scaled(collections.namedtuple("Scaled", "x y")):
    __slots__ = ()

    def __mul__(self, by):
        return Scaled(self.x * by, self.y * by)


def named_tuples(x):
    p = Pair(x, x * x) + Pair(1.0, x)
    q = Scaled(x, x * x) * x
    return p.product * p.x + q.y


class Thermometer:
    def __init__(self, celsius):
        self.celsius = celsius

    @property
    def fahrenheit(self):
        return self.celsius * 1.8 + 32

    @fahrenheit.setter
    def fahrenheit(self, value):
        self.celsius = (value - 32) / 1.8


def property_stored(x):
    t = Thermometer(x)
    t.fahrenheit = x * x * 10
    return t.celsius * t.fahrenheit


class Population:
    def __init__(self, size):
        self.size = size

    @property
    def shape(self):
        return (self.size, 1.0)


def attributes_called_as_those_of_arrays(x):
    return sum(p.size for p in [Population(x), Population(x * x)]) + Population(x**3).shape[0]


class Builder:
    def __init__(self):
        self.parts, self.factor = [], 1.0

    def add(self, part):
        self.parts.append(part)
        return self

    def __iadd__(self, part):
        self.parts.append(part)
        return self

    def __setitem__(self, i, part):
        self.parts[i] = part

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.factor = self.factor * 2

    def total(self):
        return self.factor * sum((i + 1) * p for i, p in enumerate(self.parts))


def methods_that_return_their_object(x):
    b = Builder().add(x).add(x * x)
    b.add(x**3).add(1.0)
    b += x
    b[1] = x * x * x
    return b.total() * x


def objects_as_context_managers(x):
    total = 0.0
    b = Builder()
    with b:
        b.add(x)
    for i in range(3):
        with Builder().add(x * i) as inner:
            if i == 1:
                continue
            total += inner.total()
    return total + b.total()


def lists_inside(x):
    groups, found, b = {"a": []}, [[] for _ in range(2)], Builder()
    for i in range(4):
        groups.setdefault(i % 2, []).append(x * i)
        groups["a"].extend([x, x * x])
        found[i % 2].append(x**i)
        b.parts.append(x)
    last = groups["a"].pop()
    return sum(groups[1]) * last + sum(groups["a"]) * found[1][1] + b.total()


def objects_changed_in_a_loop(x):
    lines = [Vec(x * i, 1.0) for i in range(3)]
    for v in lines:
        v.x = v.x * x + v.y
    return sum(v.x for v in lines)


class Sensor:
    def __init__(self, raw):
        self.raw = raw

    @functools.cached_property
    def level(self):
        return self.raw * self.raw

    def __float__(self):
        return self.raw * 3.0

    def twice(self):
        return type(self)(self.raw * 2).level + self.__class__(self.raw).level


def computed_once(x):
    s = Sensor(x)
    return s.level * s.level + float(s) + s.twice()


@dataclass(slots=True)
class Slotted:
    a: float
    inner: typing.Any = None


def copies_of_dataclasses(x):
    line = replace(Line(x), b=x * x)
    whole = asdict(Slotted(x, Vec(x, x * x)))
    a, (_, y) = astuple(Slotted(x * x, Vec(1.0, x)))
    return line(3.0) + whole["a"] * whole["inner"]["y"] + a * y


def attributes_by_name(x):
    v = Vec(x, 1.0)
    setattr(v, "y", x * x)  # noqa: B010 (as users write it)
    return sum(getattr(v, n) * getattr(v, n + "_", 2.0) for n in ("x", "y"))


class Register:
    def __init__(self):
        self.last = 0.0

    def push(self, value):
        self.last = value
        return True


def method_that_changes_in_a_test(x):
    r = Register()
    if r.push(x * x):
        x = x + 1
    while r.push(r.last * x) and r.last < 3:
        pass
    return r.last * x


def method_in_a_string(x):
    r = Register()
    s = f"{r.push(x * x)}"
    return r.last * len(s)


class Doubled(Vec):
    @property
    def norm(self):
        return super().norm * 2


def property_of_the_base(x):
    return Doubled(x, 1.0).norm * x


@pytest.mark.parametrize(
    "f",
    [
        property_stored,
        methods_that_return_their_object,
        objects_as_context_managers,
        lists_inside,
        objects_changed_in_a_loop,
        computed_once,
        copies_of_dataclasses,
        attributes_by_name,
        method_that_changes_in_a_test,
        method_in_a_string,
        property_of_the_base,
    ],
)
def test_objects_that_change(f):
    check(f, order=1)


class Twice:
    def __init__(self):
        self.a = np.zeros(3)
        self.b = self.a[1:]
        self.c = self.d = []


def method_in_a_lazy_part(x):
    r = Register()
    y = 1.0 if x > 0 and r.push(x * x) else 2.0
    return r.last * y


def method_kept_while_its_object_changes(x):
    line = Vec(x, 1.0)
    kept = line.__mul__
    line.x = x * x
    return kept(2.0).x


@pytest.mark.parametrize("f", [method_in_a_lazy_part, method_kept_while_its_object_changes])
def test_hidden_changes_are_refused(f):
    with pytest.raises(srcgrad.AliasError):
        srcgrad.grad(f)(0.7)


def view_in_another_attribute(x):
    t = Twice()
    t.a[1] = x
    return t.b[0] * x


def list_in_another_attribute(x):
    t = Twice()
    t.c.append(x)
    return t.d[0] * x


def row_held_twice(x):
    rows = [np.zeros(2)] * 2
    rows[0][0] = x
    return rows[1][0] * x


def list_held_twice(x):
    rows = dict.fromkeys("ab", [0.0])
    rows["a"][0] = x
    return rows["b"][0] * x


@pytest.mark.parametrize(
    "f", [view_in_another_attribute, list_in_another_attribute, row_held_twice, list_held_twice]
)
def test_parts_held_twice_are_not_taken_for_one(f):
    with pytest.raises(srcgrad.AliasError, match="more than once|several times"):
        srcgrad.grad(f)(0.7)


@pytest.mark.parametrize(
    "f",
    [
        arithmetic,
        of_a_property,
        taken_apart,
        updated_in_a_loop,
        not_known,
        summed,
        numbers_of_the_users_own,
        subclass_with_a_reflected_method,
        inherited,
        dataclasses_of_all_kinds,
        named_tuples,
        attributes_called_as_those_of_arrays,
    ],
)
def test_objects_of_the_users_classes(f):
    check(f)


def test_arguments_that_are_objects():
    def f(a, b):
        return (a + b) @ (a - b * 2.0) + abs(a) + a.norm * a[1]

    g = srcgrad.grad(f)(Vec(0.5, 1.5), Vec(2.0, -1.0))
    assert g.x == pytest.approx(slope(lambda x: f(Vec(x, 1.5), Vec(2.0, -1.0)), 0.5), rel=1e-5)
    assert g.y == pytest.approx(slope(lambda y: f(Vec(0.5, y), Vec(2.0, -1.0)), 1.5), rel=1e-5)


class Body:
    def __init__(self, place, speed):
        self.place, self.speed = place, speed


def test_objects_that_come_inside_arguments():
    def f(body, t):
        return abs(body.place + body.speed * t)

    body = Body(Vec(1.0, 2.0), Vec(0.5, -0.3))
    assert srcgrad.grad(f, 1)(body, 0.4) == pytest.approx(slope(lambda t: f(body, t), 0.4), rel=1e-5)


def test_a_class_defined_anew_is_not_taken_for_the_old_one():
    def made(factor):
        class Gain:
            def __init__(self, k):
                self.k = k

            def __mul__(self, x):
                return factor * self.k * x

        return Gain(1.0)

    def f(x, gain):
        return gain * x

    df = srcgrad.grad(f)
    assert (df(1.5, made(2.0)), df(1.5, made(3.0))) == (2.0, 3.0)


def test_an_array_on_the_left_applies_the_operator_to_each_element():
    def f(x):
        return (np.array([x, 2 * x]) * Vec(1.0, x))[0].y

    with pytest.raises(srcgrad.UnsupportedSyntax, match="array of objects"):
        srcgrad.grad(f)(0.7)
