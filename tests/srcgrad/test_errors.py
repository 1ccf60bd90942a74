"""What is refused: each with the user's file and line, the code with a caret, the reason, and the way out."""

from __future__ import annotations

import ctypes
import inspect
import linecache
import textwrap

import numpy as np
import pytest

import srcgrad
from srcgrad import grad

from . import refused

X = np.array([1.0, 2.0, 3.0])


def line_of(f, code):
    """The number of the line of the file of `f` that holds `code`."""
    lines, start = inspect.getsourcelines(f)
    (number,) = [start + i for i, line in enumerate(lines) if line.strip() == code]
    return number


def expected(f, what, code, marked, why):
    """The message in full. `marked` is the part of the line `code` that the caret stands under."""
    line = line_of(f, code)
    text = linecache.getline(refused.__file__, line).rstrip("\n")
    gutter = f"    {line} | "
    caret = " " * (len(gutter) + text.index(marked)) + "^" * len(marked)
    return f"{refused.__file__}:{line}: {what}\n{gutter}{text}\n{caret}\n{why}"


CASES = [
    (
        refused.generator,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `yield`",
        "yield x * x",
        "yield x * x",
        "A generator has no single result. Collect the values in a list and return it.",
    ),
    (
        refused.delegating,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `yield from`",
        "result = yield from generator(x)",
        "yield from generator(x)",
        "A generator has no single result. Collect the values in a list and return it.",
    ),
    (
        refused.coroutine,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate an `async` function (a coroutine)",
        "async def coroutine(x):",
        "async def coroutine(x):",
        "A coroutine has no result until it is run. Differentiate a plain function, and await outside.",
    ),
    (
        refused.nested_coroutine,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate a nested `async` function",
        "async def inner():",
        "async def inner():",
        "Use a plain function.",
    ),
    (
        refused.writes_global,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate a write to the global or nonlocal `TOTAL`",
        "global TOTAL",
        "global TOTAL",
        "Return the value instead.",
    ),
    (
        refused.executes,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `exec`",
        'exec("y = x * x")',
        'exec("y = x * x")',
        "It sees or changes variables that the compiler can't. Write the code out.",
    ),
    (
        refused.evaluates,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `eval`",
        'return eval("x * x")',
        'eval("x * x")',
        "It sees or changes variables that the compiler can't. Write the code out.",
    ),
    (
        refused.looks_at_locals,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `locals`",
        'return locals()["x"] * x',
        "locals()",
        "It sees or changes variables that the compiler can't. Write the code out.",
    ),
    (
        refused.looks_at_globals,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `globals`",
        'return globals()["TOTAL"] * x',
        "globals()",
        "It sees or changes variables that the compiler can't. Write the code out.",
    ),
    (
        refused.calls_without_rule,
        X,
        srcgrad.NoRule,
        "`np.packbits` has no derivative rule",
        "y = np.packbits(x)",
        "np.packbits(x)",
        "Write it with functions that have one, or give it a rule.",
    ),
    (
        refused.callee_refused,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `eval`",
        'return eval("x * x")',
        'eval("x * x")',
        "It sees or changes variables that the compiler can't. Write the code out.",
    ),
    (
        refused.set_of_values,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate a set of differentiated values",
        "return sum({v * x for v in (1.0, 2.0)})",
        "{v * x for v in (1.0, 2.0)}",
        "Use a list.",
    ),
    (
        refused.catches_what_may_be_assigned,
        1.0,
        srcgrad.UnsupportedSyntax,
        "cannot differentiate `except` after `y` may have been assigned",
        "try:",
        "try:",
        "Assign `y` before `try` or after it.",
    ),
]


@pytest.mark.parametrize("f,x,kind,what,code,marked,why", CASES, ids=[c[0].__name__ for c in CASES])
def test_message(f, x, kind, what, code, marked, why):
    place = refused.evaluates if f is refused.callee_refused else f
    with pytest.raises(kind) as caught:
        grad(f)(x)
    assert str(caught.value) == expected(place, what, code, marked, why)
    with pytest.raises(kind) as caught:
        srcgrad.value_and_grad(f)(x)
    assert str(caught.value) == expected(place, what, code, marked, why)


@pytest.mark.parametrize("f,x", [(c[0], c[1]) for c in CASES], ids=[c[0].__name__ for c in CASES])
def test_a_refused_function_has_no_effects(f, x):
    before = np.copy(x)
    total = refused.TOTAL
    with pytest.raises(srcgrad.SrcgradError):
        grad(f)(x)
    np.testing.assert_array_equal(x, before)
    assert refused.TOTAL == total


def writes_alias(x):
    y = x
    y[0] = 1.0
    return np.sum(x * y)


def writes_view(x):
    head = x[:2]
    head *= 2.0
    return np.sum(x)


def writes_alias_of_dict(x):
    d = {"a": x, "b": 2.0}
    e = d
    e["a"] = e["b"] * x
    return d["a"]


def appends_through_alias(x):
    xs = [x]
    ys = xs
    ys.append(x * x)
    return sum(xs)


@pytest.mark.parametrize("f", [writes_alias, writes_view, writes_alias_of_dict, appends_through_alias])
def test_writes_through_another_name_are_exact(f):
    scalar = f in (writes_alias_of_dict, appends_through_alias)
    x = 1.3 if scalar else np.array([0.5, 0.7, 1.1])
    given = np.copy(x)
    got = grad(f)(np.copy(given) if not scalar else x)
    steps = [1e-6] if scalar else 1e-6 * np.eye(3)
    wanted = [(f(np.copy(given) + h) - f(np.copy(given) - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(np.ravel(got), wanted, rtol=1e-6, atol=1e-8)


def test_the_traceback_starts_at_the_call():
    with pytest.raises(srcgrad.SrcgradError) as caught:
        grad(refused.evaluates)(1.0)
    assert caught.traceback[0].path.name == "test_errors.py"
    assert caught.value.__cause__ is None


def test_no_source():
    space = {}
    exec("def f(x):\n    return x * x\n", space)
    with pytest.raises(srcgrad.SourceError) as caught:
        grad(space["f"])(1.0)
    assert isinstance(caught.value, OSError)
    assert "cannot read the source of `f`" in str(caught.value)
    assert "linecache.cache[name] = " in str(caught.value)


def test_a_source_that_was_edited(tmp_path):
    file = tmp_path / "edited.py"
    file.write_text("def f(x):\n    return x * x\n")
    space = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    file.write_text("def f(x):\n    return x * x * x\n")
    linecache.checkcache(str(file))
    with pytest.raises(srcgrad.SourceError, match="edited.py"):
        grad(space["f"])(2.0)


@pytest.mark.parametrize("f,name", [(str.upper, "str.upper"), (print, "print"), (ctypes.CDLL(None).abs, "")])
def test_functions_of_c_extensions_are_named(f, name):
    with pytest.raises(srcgrad.SourceError) as caught:
        grad(f)(1.0)
    text = str(caught.value)
    assert f"{name}` has no Python source to differentiate and no derivative rule" in text or not name
    assert "Wrap it in a Python function that uses functions with rules." in text


def test_a_c_function_inside():
    with pytest.raises(srcgrad.NoRule) as caught:
        grad(lambda x: x * ctypes.CDLL(None).abs(x))(1.0)
    assert "has no derivative rule" in str(caught.value)


NESTED = """
def outer(x):
    k = x

    def inner():
        nonlocal k
        k = k * x
        return k

    steps = [inner]
    steps[0]()
    return k
"""


def test_a_captured_variable_written_by_a_function_that_escapes():
    """Exact, or refused."""
    text = textwrap.dedent(NESTED)
    linecache.cache["<nested>"] = (len(text), None, text.splitlines(True), "<nested>")
    space = {}
    exec(compile(text, "<nested>", "exec"), space)
    try:
        assert grad(space["outer"])(1.5) == pytest.approx(3.0)
    except srcgrad.SrcgradError:
        pass


WRONG = {
    "a key that sees the value": "return max([x * 2, x * x], key=lambda v: -v)",
    "a set": "return {x, x * x}.pop() * x",
    "a list repeated": "a = [[x] * 2] * 2\n    a[0][0] = x * x\n    return a[1][0] * x",
    "an exception's value": (
        "try:\n        if x > 1:\n            raise ValueError(x)\n        y = x\n"
        "    except ValueError as e:\n        y = e.args[0] * x\n    return y"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_exact_or_refused(name):
    text = f"def f(x):\n    {WRONG[name]}\n"
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    space = {}
    exec(compile(text, f"<{name}>", "exec"), space)
    f = space["f"]
    try:
        assert grad(f)(1.3) == pytest.approx((f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rel=1e-5)
    except srcgrad.SrcgradError:
        pass


def test_every_error_is_also_a_builtin_one():
    natural = {
        "UnsupportedSyntax": NotImplementedError,
        "NoRule": NotImplementedError,
        "SourceError": OSError,
        "AliasError": ValueError,
        "ArgumentError": TypeError,
        "ResultError": TypeError,
        "CheckFailed": AssertionError,
        "MissingExtra": ImportError,
        "ExportError": NotImplementedError,
    }
    for name, builtin in natural.items():
        error = getattr(srcgrad, name)
        assert issubclass(error, srcgrad.SrcgradError) and issubclass(error, builtin)


def test_ordinary_uses_beside_what_is_refused():
    assert grad(refused.samples_with)(1.0) <= 1.0
