"""Reading: every kind of function from every kind of place, or a refusal that says why."""

from __future__ import annotations

import argparse
import ast
import doctest
import functools
import gc
import importlib
import inspect
import itertools
import json.decoder
import linecache
import os
import statistics
import subprocess
import sys
import textwrap
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gast
import numpy as np
import pytest

from srcgrad.runtime.errors import SourceError, UnsupportedSyntax
from srcgrad.transforms import read as reading
from srcgrad.transforms.read import fail, read
from srcgrad.transforms.write import unparse

_numbers = itertools.count()


def text(function: Callable[..., Any]) -> str:
    return unparse(read(function).tree)


def cell(code: str, namespace: dict[str, Any] | None = None, one_by_one: bool = False) -> dict[str, Any]:
    """Run code as a notebook does: its text is known to linecache, under a name that is no file."""
    namespace = {"__name__": "__main__"} if namespace is None else namespace
    name = f"<ipython-input-{next(_numbers)}-0123456789ab>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    if one_by_one:
        for statement in ast.parse(code).body:
            exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    else:
        exec(compile(code, name, "exec"), namespace)
    return namespace


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], types.ModuleType]]:
    """Writes a module's text and imports it (again)."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"module_to_read_{next(_numbers)}"
    times = itertools.count(1_000_000_000)

    def write(code: str, run: bool = True) -> types.ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(code))
        os.utime(path, (when := next(times), when))
        importlib.invalidate_caches()
        if not run:
            return sys.modules[name]
        return importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)

    yield write
    sys.modules.pop(name, None)


# Functions of this file


def square(x: float, *, scale: float = 2.0) -> float:
    """Squared."""
    return x * x * scale


def test_function() -> None:
    source = read(square)
    assert source.name == source.tree.name == "square"
    assert source.function is square
    assert source.filename == __file__
    assert source.line(source.tree.lineno) == "def square(x: float, *, scale: float = 2.0) -> float:"
    returned = source.tree.body[-1]
    assert (
        source.line(returned.lineno)[returned.col_offset : returned.end_col_offset] == "return x * x * scale"
    )
    assert isinstance(source.tree, gast.FunctionDef)


def test_each_call_gives_a_tree_of_its_own() -> None:
    read(square).tree.body.clear()
    assert len(read(square).tree.body) == 2


class Private:
    __weight = 3.0

    def __init__(self, __k: float = 1.0) -> None:
        self.__k = __k

    @property
    def area(self) -> float:
        return self.__k * self.__weight

    def method(self, x: float) -> float:
        __local = x
        self.__call = lambda __y: __y * self.__k

        class Inner:
            __weight = 1.0

        return float(super().__getattribute__("_Private__k")) * __local

    @staticmethod
    def static(x: float) -> float:
        return dict(__x=x)["__x"]

    @classmethod
    def of(cls, x: float) -> Private:
        return cls(x)


def test_methods() -> None:
    assert text(Private(2.0).method).startswith("def method(self, x: float) -> float:")
    assert text(Private.static) == "def static(x: float) -> float:\n    return dict(__x=x)['__x']"
    assert "return cls(x)" in text(Private.of)
    assert "return cls(x)" in text(vars(Private)["of"])


def test_private_names_are_mangled_as_in_the_class() -> None:
    getter = Private.area.fget
    assert getter is not None
    assert text(getter).endswith("return self._Private__k * self._Private__weight")
    assert text(Private.__init__).split("\n") == [
        "def __init__(self, _Private__k: float = 1.0) -> None:",
        "    self._Private__k = _Private__k",
    ]
    method = text(Private.method)
    assert "lambda _Private__y: _Private__y * self._Private__k" in method
    assert "        __weight = 1.0" in method  # the inner class has a prefix of its own


# fmt: off
double, triple = (lambda x: x * 2.0), (lambda x: x * 3.0)
one, true, zero, minus_zero = lambda: 1, lambda: True, lambda: 0.0, lambda: -0.0
twins = [lambda x: x + 1, lambda x: x + 1]
several_lines, *_ = (
    lambda x,
           y=(1,
              2):
        x
    + y[0],
)
# fmt: on


def test_lambdas() -> None:
    assert text(double) == "def lambda_(x):\n    return x * 2.0"
    assert text(triple) == "def lambda_(x):\n    return x * 3.0"
    assert [text(f)[26:] for f in (one, true, zero, minus_zero)] == ["1", "True", "0.0", "-0.0"]
    assert read(one).name == "lambda_"
    assert text(several_lines) == "def lambda_(x, y=(1, 2)):\n    return x + y[0]"


def test_equal_lambdas_on_a_line_keep_their_places() -> None:
    places = [read(twin).tree.body[0].col_offset for twin in twins]
    line = read(twins[0]).line(read(twins[0]).tree.lineno)
    assert [line[place:].startswith("x + 1") for place in places] == [True, True]
    assert places[0] < places[1]


def test_lambda_in_lambda() -> None:
    f = lambda x: lambda y: lambda z: x + y + z  # noqa: E731
    assert text(f(1)) == "def lambda_(y):\n    return lambda z: x + y + z"
    assert text(f(1)(2)) == "def lambda_(z):\n    return x + y + z"


def in_percent(f: Callable[[float], float]) -> Callable[[float], float]:
    @functools.wraps(f)
    def inner(x: float) -> float:
        return 100.0 * f(x)

    return inner


@in_percent
@in_percent
def rate(x: float) -> float:
    return x


def test_a_wrapper_is_read_as_what_it_is() -> None:
    assert rate.__name__ == "rate"
    assert text(rate) == "def inner(x: float) -> float:\n    return 100.0 * f(x)"
    assert text(rate.__wrapped__.__wrapped__) == "def rate(x: float) -> float:\n    return x"  # type: ignore[attr-defined]


def test_closures_of_one_text() -> None:
    def power(n: int) -> Callable[[float], float]:
        def raised(x: float) -> float:
            nonlocal n
            n += 0
            return x**n

        return raised

    assert read(power(2)).filename == read(power(3)).filename
    assert "nonlocal n" in text(power(2))


def test_asserts_in_test_modules() -> None:
    """pytest rewrites them before it compiles; the tree is what was written."""

    def positive(x: float) -> float:
        assert x > 0, "negative"
        assert x
        return x

    assert text(positive).split("\n")[1:3] == ["    assert x > 0, 'negative'", "    assert x"]


def test_async_and_generators_are_read() -> None:
    async def waits(x: Any) -> Any:
        return await x

    def yields(x: Any) -> Any:
        yield x

    assert text(waits).startswith("async def waits")
    assert text(yields).endswith("yield x")


# Other places


def test_notebook_cells() -> None:
    first = cell("import numpy as np\ndef f(x): return np.sin(x)\ng = lambda x: np.cos(x)", one_by_one=True)
    assert text(first["f"]) == "def f(x):\n    return np.sin(x)"
    assert text(first["g"]) == "def lambda_(x):\n    return np.cos(x)"
    second = cell("def f(x):\n    # squared\n    return x ** 2\n", first)
    assert text(second["f"]) == "def f(x):\n    return x ** 2"


def test_top_level_await_in_a_cell() -> None:
    code = "x = [await y for y in ()] or [lambda x: x]\n"
    name = f"<ipython-input-{next(_numbers)}-await>"
    linecache.cache[name] = (len(code), None, [code], name)
    made = compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    function = next(part for part in made.co_consts if getattr(part, "co_name", "") == "<lambda>")
    assert text(types.FunctionType(function, {})) == "def lambda_(x):\n    return x"


def test_doctest() -> None:
    example = """
    >>> def cube(x):
    ...     return x ** 3
    >>> print(unparse(read(cube).tree))
    def cube(x):
        return x ** 3
    """
    test = doctest.DocTestParser().get_doctest(example, {"read": read, "unparse": unparse}, "t", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_pytest_imports_and_future_flags(module: Callable[..., types.ModuleType]) -> None:
    made = module(
        '''
        from __future__ import annotations, generator_stop
        """Text."""
        try:
            import math as m
        except ImportError:
            m = None
        if True:
            from os import path as p, sep
        class A:
            def f(self, x: unknown) -> "A":
                return m.sin(x) + len(p.join("a", sep))
        '''
    )
    assert "m.sin(x)" in text(made.A.f)


def test_two_functions_of_one_name(module: Callable[..., types.ModuleType]) -> None:
    made = module(
        """
        kept = []
        def f(x): return x
        kept.append(f)
        if kept:
            def f(x): return -x
        """
    )
    assert text(made.kept[0]).endswith("return x")
    assert text(made.f).endswith("return -x")


def test_tabs_and_unicode(module: Callable[..., types.ModuleType]) -> None:
    made = module("class Größe:\n\tdef fläche(self, ü):\n\t\treturn 'äöü', ü.real\n")
    source = read(made.Größe.fläche)
    attribute = source.tree.body[0].value.elts[1]
    assert source.line(attribute.lineno).encode()[attribute.col_offset :] == "ü.real".encode()
    assert str(fail(UnsupportedSyntax, source, attribute, "no", "Why.")).split("\n")[1:] == [
        "    3 |         return 'äöü', ü.real",
        "                              ^^^^^^",
        "Why.",
    ]


def test_relative_names_survive_a_change_of_directory(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def f(x):\n    return x\n")
    code = (
        "import os, runpy; n = runpy.run_path('script.py'); os.chdir('/');"
        f"n['f'].__globals__['__file__'] = {str(tmp_path / 'script.py')!r};"
        "from srcgrad.transforms.read import read; print(read(n['f']).name)"
    )
    made = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert made.stdout.strip() == "f", made.stderr


# Texts that changed


def test_edited_after_import_is_refused(module: Callable[..., types.ModuleType]) -> None:
    made = module("def f(x):\n    return x * 2\n")
    module("def f(x):\n    return x * 3\n", run=False)
    with pytest.raises(SourceError, match=r"(?s)source of `f` changed since import.*Reload"):
        read(made.f)
    made = module("def f(x):\n    return x * 3\n")
    assert text(made.f).endswith("x * 3")


def test_edited_after_it_was_read(module: Callable[..., types.ModuleType]) -> None:
    made = module("def f(x):\n    return x * 2\n")
    assert text(made.f).endswith("x * 2")
    old = made.f
    made = module("def f(x):\n    return x * 3\n")
    assert text(old).endswith("x * 2")
    assert text(made.f).endswith("x * 3")


@pytest.mark.parametrize(
    "changed",
    [
        "def f(x): return x * 2.0",
        "def f(x): return x - 2",
        "def f(y): return y * 2",
        "def f(x, y): return x * 2",
        "def f(x): return z * 2",
        "def g(x): return x * 2",
        "def f(x): return (lambda: 1)() and x * 2",
        "def f(x: return x * 2",
        "",
    ],
)
def test_any_difference_is_seen(module: Callable[..., types.ModuleType], changed: str) -> None:
    made = module("def f(x): return x * 2\n")
    module(changed, run=False)
    with pytest.raises(SourceError, match="source"):
        read(made.f)


def test_lines_that_moved_do_not_matter(module: Callable[..., types.ModuleType]) -> None:
    made = module("def f(x):\n    return x * 2\ng = lambda x: x\n")
    module("# one more line\n\ndef h(): pass\ndef f(x):\n    return x * 2\ng = lambda x: x\n", run=False)
    assert read(made.f).tree.lineno == 4
    assert read(made.g).tree.lineno == 6


# Refusals


def test_no_text() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x): return x", namespace)
    with pytest.raises(SourceError, match=r"(?s)`f`.*exec.*linecache") as caught:
        read(namespace["f"])
    assert isinstance(caught.value, OSError)


def test_missing_file(module: Callable[..., types.ModuleType]) -> None:
    made = module("def f(x): return x\n")
    os.remove(str(made.__file__))
    with pytest.raises(SourceError, match=r"(?s)source of `f`.*doesn't exist"):
        read(made.f)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (len, "source of `len`: it's compiled code"),
        (np.sin, "source of `sin`: it's compiled code"),
        ([].append, "source of `list.append`"),
        (Private, "source of `Private`: a class has no single body"),
        (functools.partial(square), "compiled code|object of type"),
        (argparse.FileType(), "object of type `FileType`(?s:.*)`__call__`"),
        (3, "source of `3`"),
    ],
)
def test_what_has_no_source(function: Any, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        read(function)


# Errors


def test_fail_shows_the_place() -> None:
    source = read(square)
    returned = source.tree.body[-1]
    error = fail(UnsupportedSyntax, source, returned.value, "cannot differentiate this", "Do that.")
    assert isinstance(error, UnsupportedSyntax)
    line = returned.lineno
    gutter = f"    {line} | "
    assert str(error) == (
        f"{__file__}:{line}: cannot differentiate this\n"
        f"{gutter}    return x * x * scale\n"
        f"{' ' * len(gutter)}           ^^^^^^^^^^^^^\n"
        "Do that."
    )


def test_fail_at_a_block_or_a_made_node_shows_one_line() -> None:
    source = read(square)
    for node in (source.tree, gast.Constant(1, None)):
        shown = str(fail(UnsupportedSyntax, source, node, "no", "Why.")).split("\n")
        assert shown[1].endswith("def square(x: float, *, scale: float = 2.0) -> float:")
        assert shown[2].strip() == "^" * len("def square(x: float, *, scale: float = 2.0) -> float:")


# All of it at once


@pytest.mark.parametrize(
    "module_", [inspect, statistics, argparse, json.decoder, functools], ids=lambda m: m.__name__
)
def test_every_function_of_a_module(module_: types.ModuleType) -> None:
    """Trees compile to the code objects that they were read from."""
    functions = [
        function
        for owner in [module_, *(value for value in vars(module_).values() if isinstance(value, type))]
        for function in vars(owner).values()
        if isinstance(function, types.FunctionType) and function.__module__ == module_.__name__
        if not function.__code__.co_filename.startswith("<")
    ]
    assert functions
    for function in functions:
        tree = read(function).tree
        assert tree.name == function.__code__.co_name or tree.name == "lambda_"
        if function.__code__.co_freevars or "__" in unparse(tree):
            continue  # needs its context
        made = compile(unparse(tree), "made", "exec")
        part = next(
            part for part in made.co_consts if isinstance(part, types.CodeType) and part.co_name == tree.name
        )
        assert part.co_varnames == function.__code__.co_varnames


def test_kept_as_long_as_the_code() -> None:
    namespace = cell("def f(x): return x")
    code = weakref.ref(namespace["f"].__code__)
    key = id(namespace["f"].__code__)
    read(namespace["f"])
    assert key in reading._found
    del namespace
    gc.collect()
    assert code() is None
    assert key not in reading._found


def test_threads() -> None:
    functions = [cell(f"def f(x):\n    return x + {i}")["f"] for i in range(20)]
    got: list[str] = [""] * 80

    def work(start: int) -> None:
        for i in range(20):
            got[start + i] = text(functions[i])

    threads = [threading.Thread(target=work, args=(20 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [f"def f(x):\n    return x + {i}" for i in range(20)] * 4


def test_no_warning_is_repeated() -> None:
    with pytest.warns(SyntaxWarning):
        namespace = cell("def f(x): return x is 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert text(namespace["f"]).endswith("x is 1")
