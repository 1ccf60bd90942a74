"""What `grad` and `value_and_grad` promise: which arguments, which structure, which side effects, which
text."""

from __future__ import annotations

import ast
import collections
import contextlib
import copy
import dataclasses
import gc
import importlib
import inspect
import linecache
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import traceback
import types

import numpy as np
import pytest

import srcgrad
from srcgrad import grad, value_and_grad

from . import samples


def product(x, y, z=2.0):
    return x * y * z


def keyword(x, *, y, z=3.0):
    return x * y * z


# Which arguments


@pytest.mark.parametrize(
    "argnums,expected",
    [
        (0, 15.0),
        (1, 10.0),
        (-1, 6.0),
        (-3, 15.0),
        ((0,), (15.0,)),
        ((1, 0), (10.0, 15.0)),
        ((0, -1), (15.0, 6.0)),
        ([0, 1], (15.0, 10.0)),
    ],
)
def test_argnums(argnums, expected):
    assert grad(product, argnums)(2.0, 3.0, 5.0) == expected
    assert value_and_grad(product, argnums)(2.0, 3.0, 5.0) == (30.0, expected)


@pytest.mark.parametrize("argnums", [3, -4, (0, 3)])
def test_argnums_out_of_range(argnums):
    with pytest.raises(
        srcgrad.ArgumentError, match=r"product takes 3 positional arguments, so there is no argument"
    ):
        grad(product, argnums)(2.0, 3.0, 5.0)


@pytest.mark.parametrize("argnums", ["x", 1.0, (), ("x",), None])
def test_argnums_of_a_wrong_type(argnums):
    with pytest.raises(TypeError, match="argnums must be an int or a tuple of ints"):
        grad(product, argnums)


def test_argnums_of_a_default():
    assert grad(product, 2)(2.0, 3.0) == 6.0


def test_argnums_of_something_passed_by_keyword():
    assert grad(product, 1)(2.0, z=5.0, y=3.0) == 10.0


def test_variadic():
    def total(*xs):
        return xs[0] * xs[1] + xs[-1]

    assert grad(total, 1)(2.0, 3.0, 4.0) == 2.0
    assert grad(total, (0, 2))(2.0, 3.0, 4.0) == (3.0, 1.0)
    assert grad(total, -1)(2.0, 3.0, 4.0) == 1.0
    with pytest.raises(srcgrad.ArgumentError):
        grad(total, 3)(2.0, 3.0, 4.0)


def test_argnames():
    assert grad(product, argnames="y")(2.0, 3.0, 5.0) == 10.0
    assert grad(product, argnames=("y", "x"))(2.0, 3.0, 5.0) == (10.0, 15.0)
    assert grad(keyword, argnames="y")(2.0, y=5.0) == 6.0
    assert grad(keyword, argnames=("x", "z"))(2.0, y=5.0) == (15.0, 10.0)


def test_argnames_unknown():
    with pytest.raises(srcgrad.ArgumentError, match="product has no parameter `w`; it has x, y, z"):
        grad(product, argnames="w")(1.0, 2.0)


def test_argnames_of_a_wrong_type():
    with pytest.raises(srcgrad.ArgumentError, match="argnames must be a str or a tuple of str"):
        grad(product, argnames=3)


def test_a_call_that_does_not_fit():
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        grad(product)(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        grad(product)(1.0, 2.0, w=1.0)


def test_not_a_function():
    with pytest.raises(srcgrad.ArgumentError, match="needs a function, not a float"):
        grad(3.0)


# has_aux


def with_aux(x):
    y = x * x
    return y, {"y": y, "name": "square"}


def test_has_aux():
    assert grad(with_aux, has_aux=True)(3.0) == (6.0, {"y": 9.0, "name": "square"})
    assert value_and_grad(with_aux, has_aux=True)(3.0) == ((9.0, {"y": 9.0, "name": "square"}), 6.0)
    assert grad(with_aux, (0,), has_aux=True)(3.0) == ((6.0,), {"y": 9.0, "name": "square"})


def test_a_pair_without_has_aux():
    with pytest.raises(srcgrad.ResultError):
        grad(with_aux)(3.0)


# As a decorator


def test_decorator():
    @grad
    def f(x):
        return x * x

    @grad(argnums=1)
    def g(x, y):
        return x * y * y

    @value_and_grad(argnames="y")
    def h(x, y):
        return x * y

    assert f(3.0) == 6.0
    assert g(2.0, 3.0) == 12.0
    assert h(2.0, 3.0) == (6.0, 2.0)


class Model:
    def __init__(self, k):
        self.k = k

    @grad
    def force(self, x):
        return self.k * x * x

    @grad(argnums=(0, 1))
    def both(self, x, y):
        return self.k * x * y

    @staticmethod
    @grad
    def still(x):
        return x * x * x

    @grad
    @staticmethod
    def stiller(x):
        return x * x * x

    @classmethod
    def of_class(cls, x):
        return x * x

    def energy(self, x):
        return self.k * x**3


def test_in_class_bodies():
    model = Model(2.0)
    assert model.force(3.0) == 12.0
    assert Model.force(model, 3.0) == 12.0
    assert model.both(3.0, 4.0) == (8.0, 6.0)
    assert model.still(2.0) == 12.0
    assert Model.still(2.0) == 12.0


def test_a_staticmethod_object():
    assert Model.stiller(2.0) == 12.0
    assert Model(1.0).stiller(2.0) == 12.0


def test_bound_methods():
    model = Model(2.0)
    assert grad(model.energy)(3.0) == 54.0
    assert grad(Model.of_class)(3.0) == 6.0
    assert grad(Model.energy, 1)(model, 3.0) == 54.0
    model.k = 3.0
    assert grad(model.energy)(3.0) == 81.0


# Compilation


def spy(monkeypatch):
    """Counts what is compiled from now on."""
    from srcgrad.transforms import build

    calls = []
    real = build.gradient

    def counted(*args):
        calls.append(args[0])
        return real(*args)

    monkeypatch.setattr(build, "gradient", counted)
    return calls


def test_decorating_compiles_nothing():
    """Functions that are defined later may be called."""

    @grad
    def first(x, n):
        return second(x * x, n)

    def second(x, n):
        return x if n == 0 else third(x, n - 1)

    def third(x, n):
        return 2.0 * second(x, n)

    assert first(3.0, 2) == 24.0


def test_decorating_reads_nothing():
    made = types.FunctionType(compile("def f(x): return x", "<nowhere>", "exec").co_consts[0], {})
    df = grad(made)
    with pytest.raises(srcgrad.SourceError):
        df(1.0)


def test_compiled_once_per_signature(monkeypatch):
    calls = spy(monkeypatch)
    df = grad(lambda x, n: np.sum(x * x) * n)
    for x in (1.0, 2.0, -3.0):
        df(x, 2)
    assert len(calls) == 1
    for size in (2, 3, 5):
        df(np.ones(size), 2)
    assert len(calls) == 2
    df(np.ones((2, 3)), 2)
    assert len(calls) == 3
    df.source_for(np.ones((5, 7)), 3)
    assert len(calls) == 3


def test_compiled_once_by_many_threads(monkeypatch):
    calls = spy(monkeypatch)
    df = grad(lambda x: x * x)
    start = threading.Barrier(8)
    results = []

    def work():
        start.wait()
        results.append(df(3.0))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [6.0] * 8
    assert len(calls) == 1


def test_a_failed_compilation_may_be_tried_again(monkeypatch):
    from srcgrad.transforms import build

    df = grad(samples.square)
    real = build.gradient

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "gradient", interrupted)
    with pytest.raises(KeyboardInterrupt):
        df(3.0)
    monkeypatch.setattr(build, "gradient", real)
    assert df(3.0) == 6.0


def test_interrupted_in_the_middle_of_a_pass(monkeypatch):
    """Nothing half done stays behind: not for the function, nor for those that it calls."""
    from srcgrad.transforms import compile as driver

    df = grad(samples.uses_helper)
    real = driver.Simplify.run
    count = 0

    def interrupted(self):
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        real(self)

    monkeypatch.setattr(driver.Simplify, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        df(2.0)
    monkeypatch.setattr(driver.Simplify, "run", real)
    assert df(2.0) == 12.0


def test_interrupted_primal():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grad(f)(1.0)


def test_a_global_function_that_is_defined_anew(monkeypatch):
    df = grad(samples.uses_helper)
    assert df(2.0) == 12.0
    source = "def helper(x):\n    return 5.0 * x\n"
    space = {"__name__": "anew"}
    linecache.cache["<anew>"] = (len(source), None, source.splitlines(True), "<anew>")
    exec(compile(source, "<anew>", "exec"), space)
    monkeypatch.setattr(samples, "helper", space["helper"])
    assert samples.uses_helper(2.0) == 20.0
    assert df(2.0) == 20.0


def test_globals_and_closures_are_read_when_it_is_called(monkeypatch):
    df = grad(samples.by_rate)
    assert df(1.0) == 2.0
    monkeypatch.setattr(samples, "RATE", 5.0)
    assert df(1.0) == 5.0
    k = 2.0

    def f(x):
        return k * x

    df = grad(f)
    assert df(1.0) == 2.0
    k = 7.0
    assert df(1.0) == 7.0


def test_a_global_that_becomes_an_array(monkeypatch):
    df = grad(lambda x: np.sum(x * samples.RATE))
    assert df(1.0) == 2.0
    monkeypatch.setattr(samples, "RATE", np.ones(3))
    assert df(1.0) == 3.0
    np.testing.assert_array_equal(df(np.ones(3)), np.ones(3))
    monkeypatch.setattr(samples, "RATE", np.ones((2, 3)))
    np.testing.assert_array_equal(df(np.ones(3)), [2.0, 2.0, 2.0])


# The object


def test_it_looks_like_the_function():
    df = grad(samples.scaled)
    assert df.__name__ == "scaled"
    assert df.__module__ == samples.__name__
    assert inspect.signature(df) == inspect.signature(samples.scaled)
    assert grad(samples.square).__doc__ == "The square of x."
    assert df.primal is samples.scaled
    assert "scaled" in repr(df)


def test_signature_of_a_bound_method():
    assert list(inspect.signature(grad(Model(1.0).energy)).parameters) == ["x"]
    assert list(inspect.signature(Model.force).parameters) == ["self", "x"]
    assert list(inspect.signature(Model(1.0).force).parameters) == ["x"]


def test_source():
    def f(x: float):
        return x * x

    df = grad(f)
    assert df.source.startswith("def f_grad(x):\n    return ")
    assert inspect.getsource(df).rstrip("\n") == df.source.rstrip("\n")
    assert df.source_for(3.0) == "def f_grad(x):\n    return 2 * x\n"


def test_source_without_annotations_is_that_for_anything():
    df = grad(samples.square)
    assert df.source.startswith("def square_grad(x):\n")
    assert "check_scalar" in df.source


@pytest.mark.parametrize(
    "f,args", [(samples.scaled, (1.0,)), (samples.uses_helper, (1.0,)), (with_aux, (1.0,))]
)
def test_source_stands_alone(f, args):
    df = grad(f, has_aux=f is with_aux)
    for text in (df.source, df.source_for(*args)):
        definitions = ast.parse(text).body
        assert all(isinstance(d, ast.FunctionDef) for d in definitions)
        compile(text, "alone", "exec")


@pytest.mark.parametrize("df", [grad(samples.square), value_and_grad(samples.scaled, argnames="by")])
def test_pickle_and_copy(df):
    args = (3.0,)
    expected = df(*args)
    for again in (pickle.loads(pickle.dumps(df)), copy.copy(df), copy.deepcopy(df)):
        assert again(*args) == expected
        assert again.primal is df.primal


def test_pickle_of_a_decorated_function():
    assert pickle.loads(pickle.dumps(Model.force))(Model(2.0), 3.0) == 12.0


def test_linecache_entries_go_with_the_gradient():
    df = grad(samples.square)
    df(2.0)
    df.source  # noqa: B018
    ours = {n for n in linecache.cache if n.startswith("<srcgrad square_grad")}
    assert ours
    before = len(ours)
    del df
    gc.collect()
    assert grad(lambda x: 3.0 * x)(2.0) == 3.0  # the next text takes those of the dead with it
    after = {n for n in linecache.cache if n.startswith("<srcgrad square_grad")}
    assert len(after) < before


def test_checkcache_while_a_gradient_dies(monkeypatch):
    """The garbage collector may run at any moment, also inside `linecache.checkcache`."""
    monkeypatch.setitem(linecache.cache, "no file", (0, 1.0, [], "no file"))

    def stat(path):
        if path == "no file":  # once: there may be thousands of entries
            gc.collect()
        raise FileNotFoundError

    gc.collect()
    gc.disable()
    try:
        df = grad(lambda x: 5.0 * x * x)
        assert df(2.0) == 20.0
        cycle = [df]
        cycle.append(cycle)
        del df, cycle
        with monkeypatch.context() as patch:
            patch.setattr(linecache, "os", types.SimpleNamespace(stat=stat))
            linecache.checkcache()
    finally:
        gc.enable()
    assert "no file" not in linecache.cache


def test_text_is_the_same_in_every_process(tmp_path):
    code = """
        import numpy as np, srcgrad
        def f(params, x, n):
            scale = {"a": x, "b": 2.0 * x}
            def g(t):
                return t * params["w"] + params["b"]
            s = 0.0
            for i in range(n):
                y = g(x) * scale["a"]
                if np.sum(y) > 1.0:
                    s += np.sum(y * scale["b"])
                else:
                    z = y * y
                    x = x + z
                    s = s * np.sum(z)
            return s
        args = {"w": np.ones(3), "b": 1.0}, np.ones(3), 2
        print(srcgrad.grad(f, (0, 1)).source_for(*args), srcgrad.grad(f).source)
    """
    texts = set()
    for seed in "012":
        file = tmp_path / "program.py"
        file.write_text(textwrap.dedent(code))
        run = [sys.executable, str(file)]
        done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 1


# What a gradient is


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    left: object
    right: object


class Plain:
    def __init__(self, w):
        self.w = w


def total(x):
    """The sum of the squares of all numbers in a structure."""
    return np.sum(x * x)


def check_like(gradient, value):
    """Same structure, shapes and dtypes."""
    if isinstance(value, dict):
        assert type(gradient) is dict and list(gradient) == list(value)
        for k in value:
            check_like(gradient[k], value[k])
    elif isinstance(value, (list, tuple)):
        assert type(gradient) is type(value) and len(gradient) == len(value)
        for g, v in zip(gradient, value, strict=True):
            check_like(g, v)
    elif isinstance(value, np.ndarray):
        assert isinstance(gradient, np.ndarray)
        assert gradient.shape == value.shape and gradient.dtype == value.dtype
    elif isinstance(value, np.generic):
        assert np.shape(gradient) == () and np.asarray(gradient).dtype == value.dtype
    elif isinstance(value, (int, float)):
        assert isinstance(gradient, (float, np.floating))
    else:
        assert type(gradient) is type(value)
        for n in vars(value):
            check_like(getattr(gradient, n), getattr(value, n))


NUMBERS = [
    2.0,
    2,
    True,
    np.float64(2.0),
    np.float32(2.0),
    np.float16(2.0),
    np.array(2.0, np.float32),
    np.ones(3),
    np.ones((2, 1)),
    np.ones((0, 3)),
    np.ones((2, 3), np.float32),
    np.asfortranarray(np.ones((2, 3))),
    np.ones((4, 4))[::2, 1::2],
]


@pytest.mark.parametrize("x", NUMBERS, ids=lambda x: f"{type(x).__name__}{np.shape(x)}{np.result_type(x)}")
def test_structure_of_numbers(x):
    for df in (
        grad(total),
        grad(lambda x: np.mean(np.sin(x)) if np.size(x) else np.sum(x)),
        grad(lambda x: np.sum(x)),
    ):
        check_like(df(x), x)
    check_like(value_and_grad(total)(x)[1], x)
    np.testing.assert_allclose(grad(total)(x), 2.0 * np.asarray(x), rtol=1e-3)


def test_structure_of_an_array_without_dimensions():
    check_like(grad(total)(np.array(2.0)), np.array(2.0))


@pytest.mark.parametrize("x", NUMBERS, ids=lambda x: f"{type(x).__name__}{np.shape(x)}{np.result_type(x)}")
def test_zeros_for_what_does_not_matter(x):
    for df in (grad(lambda x, y: y * y, (0, 1)), grad(lambda x, y: y * y if y > 0 else np.sum(x), (0, 1))):
        zero, g = df(x, 3.0)
        check_like(zero, x)
        assert not np.any(zero)
        assert g == 6.0


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_beside_high(dtype):
    w, x = np.ones(3, dtype), np.ones(3)
    gw, gx = grad(lambda w, x: np.sum(w * x * 2.0), (0, 1))(w, x)
    assert gw.dtype == dtype and gx.dtype == np.float64


CONTAINERS = [
    {"w": np.ones(2), "b": 1.0},
    [np.ones(2), 2.0],
    (np.ones(2), 2.0),
    Point(np.ones(2), 2.0),
    Pair(np.ones(2), 2.0),
    {"layers": [(np.ones((2, 2)), np.ones(2)), (np.ones(2), 0.5)], "rate": 2.0},
    [[1.0, 2.0], [3.0]],
]


def first(p):
    """Uses one number of a structure."""
    if isinstance(p, dict):
        return first(next(iter(p.values())))
    if isinstance(p, Pair):
        return np.sum(p.left)
    return first(p[0]) if isinstance(p, (list, tuple)) else np.sum(p)


def first_of_dict(p):
    return np.sum(p["w"] * p["w"])


def first_of_sequence(p):
    return np.sum(p[0] * 2.0)


def first_of_record(p):
    return np.sum(p.left * 2.0)


def nested(p):
    w, b = p["layers"][0]
    return np.sum(w @ b) * p["rate"]


@pytest.mark.parametrize(
    "f,x",
    [
        (first_of_dict, CONTAINERS[0]),
        (first_of_sequence, CONTAINERS[1]),
        (first_of_sequence, CONTAINERS[2]),
        (first_of_sequence, CONTAINERS[3]),
        (first_of_record, CONTAINERS[4]),
        (nested, CONTAINERS[5]),
        (lambda p: p[0][1] * p[1][0], CONTAINERS[6]),
        (lambda p: np.sum(p.w * p.w), Plain(np.ones(3))),
    ],
    ids=["dict", "list", "tuple", "namedtuple", "dataclass", "nested", "rows", "object"],
)
def test_structure_of_containers(f, x):
    check_like(grad(f)(x), x)
    check_like(grad(lambda p, y: y * y)(x, 2.0), x)
    check_like(grad(lambda p, y: y * y if y > 0 else f(p))(x, 2.0), x)


def test_values_of_containers():
    g = grad(nested)(CONTAINERS[5])
    np.testing.assert_array_equal(g["layers"][0][0], [[2.0, 2.0], [2.0, 2.0]])
    np.testing.assert_array_equal(g["layers"][0][1], [4.0, 4.0])
    assert g["layers"][1][1] == 0.0 and g["rate"] == 4.0


@pytest.mark.parametrize("x", [np.array([1, 2]), np.array([True, False]), np.array(["a"])])
def test_arrays_of_a_wrong_dtype_are_refused_by_name(x):
    with pytest.raises(TypeError, match="weights"):
        grad(lambda weights: np.sum(weights))(x)
    with pytest.raises(TypeError, match="weights"):
        grad(lambda weights, y: y * y, (0, 1))(x, 1.0)
    assert grad(lambda weights, y: np.sum(y), 1)(x, 1.0) == 1.0


@pytest.mark.parametrize(
    "x",
    [
        "text",
        b"bytes",
        None,
        len,
        {1.0, 2.0},
        np.matrix([[1.0]]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_no_number_is_refused_by_name(x):
    with pytest.raises(TypeError, match="name"):
        grad(lambda name, y: y * y)(x, 2.0)


@pytest.mark.parametrize(
    "f,x",
    [
        (lambda x: x * x, np.ones(3)),
        (lambda x: x * x, np.ones(1)),
        (lambda x: (x, x), 1.0),
        (lambda x: [x], 1.0),
        (lambda x: {"a": x}, 1.0),
        (lambda x: None, 1.0),
        (lambda x: "text", 1.0),
    ],
)
def test_results_that_are_no_numbers(f, x):
    for made in (grad(f), value_and_grad(f)):
        with pytest.raises(TypeError) as caught:
            made(x)
        assert isinstance(caught.value, srcgrad.ResultError)
        for word in ("jacobian", "vjp", "elementwise_grad"):
            assert word in str(caught.value)


def test_complex_results_are_refused():
    with pytest.raises(srcgrad.ResultError, match="complex"):
        grad(lambda x: x * 1j)(1.0)
    assert grad(lambda x: abs(x * 1j))(3.0) == pytest.approx(1.0)


def test_complex_arguments():
    z = 1.0 + 2.0j
    g = grad(lambda z: z.real * z.real + 3.0 * z.imag)(z)
    assert g == pytest.approx(2.0 - 3.0j)  # du/dx - i du/dy


def test_scalar_results_of_other_kinds():
    assert grad(lambda x: np.array(x * x))(3.0) == 6.0
    assert grad(lambda x: np.float32(x) * x)(3.0) == 6.0
    assert grad(lambda x: 3)(2.0) == 0.0
    assert grad(lambda x: 3.0 if x > 0 else x)(2.0) == 0.0


# What the caller sees of the primal


def test_the_body_runs_once_and_in_order(capsys):
    log = []

    def f(x, n):
        log.append("start")
        for i in range(n):
            print(i)
            x = x * 2.0
            log.append(i)
        if x > 1.0:
            log.append("large")
        return x

    assert grad(f)(1.0, 3) == 8.0
    assert log == ["start", 0, 1, 2, "large"]
    assert capsys.readouterr().out == "0\n1\n2\n"
    log.clear()
    assert value_and_grad(f)(1.0, 2) == (4.0, 4.0)
    assert log == ["start", 0, 1, "large"]


def test_calls_whose_results_are_not_used_stay():
    log = []

    def note(x):
        log.append(x)
        return x

    def f(x):
        note(x)
        y = note(x * 2.0)
        z = [note(v) for v in (1.0, 2.0)]  # noqa: F841
        return x * x + 0.0 * y

    assert grad(f)(3.0) == 6.0
    assert log == [3.0, 6.0, 1.0, 2.0]


def test_context_managers_run_once():
    log = []

    @contextlib.contextmanager
    def noted():
        log.append("in")
        yield
        log.append("out")

    def f(x):
        with noted():
            y = x * x
        return y

    assert grad(f)(3.0) == 6.0
    assert log == ["in", "out"]


def user_frames(error):
    return [(f.filename, f.name, f.line) for f in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("f", [samples.fails, samples.fails_inside])
@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_exceptions_show_the_users_own_lines(f, transform):
    with pytest.raises(IndexError) as caught:
        transform(f)(2.0)
    frames = user_frames(caught.value)
    assert not [f for f in frames if f[0].startswith("<srcgrad")]
    inner = [f for f in frames if f[0] == samples.__file__]
    assert inner[-1][1:] == ("fails", "return y / np.array([1.0]).item(int(y) * 0 + 5)")
    if f is samples.fails_inside:
        assert inner[-2][1:] == ("fails_inside", "return fails(x) * x")


def test_exceptions_pass_through_unchanged():
    class Stop(Exception):
        pass

    error = Stop("reason")

    def f(x):
        if x > 1.0:
            raise error
        return x

    with pytest.raises(Stop) as caught:
        grad(f)(2.0)
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None

    def g(x):
        try:
            return {}["missing"] * x
        except KeyError as missing:
            raise Stop from missing

    with pytest.raises(Stop) as caught:
        grad(g)(2.0)
    assert isinstance(caught.value.__cause__, KeyError)


def test_assertions_of_the_user():
    def f(x):
        assert x > 3.0, "too small"
        return x

    with pytest.raises(AssertionError, match="too small"):
        grad(f)(2.0)


def test_arguments_are_left_alone():
    x, p = np.arange(3.0), {"w": [np.ones(3)]}
    grad(lambda x, p: np.sum(x * p["w"][0]) ** 2, (0, 1))(x, p)
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(p["w"][0], np.ones(3))


def test_arguments_end_as_the_primal_leaves_them():
    def f(x, log):
        x[0] = x[1] * 2.0
        x *= 3.0
        log.append(len(x))
        return np.sum(x * x)

    x, log = np.array([1.0, 2.0]), []
    g = grad(f)(x, log)
    np.testing.assert_array_equal(x, [12.0, 6.0])
    assert log == [2]
    np.testing.assert_allclose(g, [0.0, 9.0 * 2 * (4.0 * 2.0 + 2.0)])


SHARING = {
    "sum": lambda x, y: np.sum(x) + np.sum(y),
    "same": lambda x, y: np.sum(x + y),
    "by the other": lambda x, y: np.sum(x * y),
    "reshaped": lambda x, y: np.sum(x.reshape(-1).reshape(x.shape) * 2.0 + y),
    "transposed": lambda x, y: np.sum(x.T.T + y),
    "unused": lambda x, y: 1.0 + np.sum(x) * 0,
    "view": lambda x, y: np.sum(x[::-1] + y),
    "difference": lambda x, y: np.sum(x - y),
    "dot": lambda x, y: x @ y,
}


@pytest.mark.parametrize("name", SHARING)
def test_gradients_own_their_memory(name):
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    df = grad(SHARING[name], (0, 1))
    gx, gy = df(x, y)
    kept = gx.copy(), gy.copy()
    assert not np.shares_memory(gx, gy)
    for g in (gx, gy):
        assert not np.shares_memory(g, x) and not np.shares_memory(g, y)
        assert g.flags.writeable
        g += 100.0
    again = df(x, y)
    np.testing.assert_array_equal(again[0], kept[0])
    np.testing.assert_array_equal(again[1], kept[1])


def test_gradients_of_one_array_passed_twice():
    x = np.array([1.0, 2.0])
    gx, gy = grad(lambda x, y: np.sum(x + y), (0, 1))(x, x)
    assert not np.shares_memory(gx, gy)


def test_gradients_of_containers_own_their_memory():
    w = np.ones(2)
    p = {"a": w, "b": [w]}
    g = grad(lambda p: np.sum(p["a"] + p["b"][0]))(p)
    assert not np.shares_memory(g["a"], g["b"][0])
    assert not np.shares_memory(g["a"], w)


# Memory that is shared


def writes_one_reads_both(a, b):
    a[0] = b[1] * 2.0
    return np.sum(a * b)


@pytest.mark.parametrize(
    "args",
    [
        lambda x: (x, x),
        lambda x: (x[1:], x[:-1]),
        lambda x: (x[:2], x[2:]),
        lambda x: (x, x.copy()),
    ],
    ids=["same", "overlapping", "apart", "copied"],
)
def test_arguments_that_share_memory(args):
    """What one argument writes, another sees: exact as a function of the memory, or refused."""
    x = np.array([1.0, 2.0, 3.0, 4.0])

    def value(x):
        return writes_one_reads_both(*args(x.copy()))

    given = args(x.copy())
    try:
        ga, gb = grad(writes_one_reads_both, (0, 1))(*given)
    except srcgrad.AliasError:
        return
    direction = np.array([0.3, -1.1, 0.7, 0.9])
    da, db = args(direction)
    along = np.sum(ga * da) + np.sum(gb * db)
    assert along == pytest.approx((value(x + 1e-6 * direction) - value(x - 1e-6 * direction)) / 2e-6)


# As an input of others


def test_gradients_of_gradients():
    d2 = grad(grad(lambda x: x**4))
    assert d2(2.0) == 48.0
    assert grad(d2)(2.0) == 48.0
    assert grad(grad(product, 0), 1)(2.0, 3.0, 5.0) == 5.0
    value, (dx, dy) = value_and_grad(grad(product), (0, 1))(2.0, 3.0, 5.0)
    assert (value, dx, dy) == (15.0, 0.0, 5.0)


def test_a_gradient_inside_a_function():
    df = grad(lambda x: x**3)

    def f(x):
        return df(x) * x

    assert grad(f)(2.0) == 36.0
    assert grad(lambda x: grad(lambda t: t * t * x)(3.0))(2.0) == 6.0


def test_modules_are_found_by_name_after_a_reload():
    module = importlib.reload(samples)
    assert grad(module.square)(3.0) == 6.0


def test_a_factor_of_what_a_loop_made():
    """The loop restores its values on the way back; the factor's gradient needs the last one."""

    def f(ps, x, s):
        for w in ps:
            x = np.tanh(x * w)
        return x * s

    last = np.tanh(np.tanh(0.5 * 2.0) * 3.0)
    assert srcgrad.grad(f, argnums=2)([2.0, 3.0], 0.5, 1.5) == last
    assert srcgrad.vjp(f, [2.0, 3.0], 0.5, 1.5)[1](1.0)[2] == last


def test_jit_says_that_it_is_not_supported():
    for transform in (grad, srcgrad.value_and_grad):
        with pytest.raises(srcgrad.ArgumentError, match="jit"):
            transform(samples.square, jit=True)
