"""Each pass on a corpus of programs: what it leaves has the form it promises, and computes the same.

The corpus: the programs of `test_language`, and generated ones with fixed seeds."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import linecache
import sys
import types
from collections import Counter

import pytest

import srcgrad
from srcgrad.transforms import PASSES
from srcgrad.transforms.tree.verify import BrokenPromise

from ..fuzz.choices import Choices
from ..fuzz.programs import program
from . import test_language
from .passes import run, same, unit, watched

LANGUAGE = test_language.SCALAR + test_language.ARRAY
KEEP_MEANING = ("desugar", "normalize")
SEEDS = range(1, 56)


def outcome(f, args):
    """(value or exception, what was printed, the arguments afterwards)."""
    args = copy.deepcopy(args)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            value = f(*args)
        except Exception as error:
            value = type(error).__name__  # a message may name a variable by its new name
    return value, printed.getvalue(), args


def identical(got, expected):
    return same(got[0], expected[0]) and got[1] == expected[1] and same(got[2], expected[2])


def test_the_list_is_complete():
    for p in PASSES:
        module = importlib.import_module(p.module)
        assert module.__doc__
        assert p.why_here.endswith(".")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("generic", [False, True], ids=["kinds", "generic"])
@pytest.mark.parametrize("given", LANGUAGE, ids=lambda p: p[0].__name__)
def test_language(given, generic):
    f, *args = given
    expected = outcome(f, args)
    made = unit(f, None if generic else args)
    for stage in KEEP_MEANING:
        assert identical(outcome(run(made, stage), args), expected), stage


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", LANGUAGE, ids=lambda p: p[0].__name__)
def test_grammars_on_the_way_to_a_gradient(given):
    f, *args = given
    with watched():
        srcgrad.grad(f).source_for(*copy.deepcopy(args))
    with (
        watched(),
        contextlib.suppress(srcgrad.SrcgradError),
    ):  # what needs an array may refuse an unknown value
        srcgrad.grad(f).source  # noqa: B018


@contextlib.contextmanager
def module(text, number):
    """A generated program as a module."""
    name = f"generated_{number}"
    made = types.ModuleType(name)
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    sys.modules[name] = made
    try:
        exec(compile(text, file, "exec"), made.__dict__)
        yield made
    finally:
        del sys.modules[name]
        linecache.cache.pop(file)


@pytest.mark.filterwarnings("ignore")
def test_generated():
    """The main function for its arguments' kinds, the functions that it calls for any."""
    keeps_meaning(SEEDS)


def matches_inside_matches(x):
    match (0, x):
        case [0, _]:
            match (x,):
                case [y] if y > 1.0:
                    return 1.5
    return 0.763


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_early_return_out_of_nested_matches(x):
    made = unit(matches_inside_matches, (x,))
    for stage in KEEP_MEANING:
        assert run(made, stage)(x) == matches_inside_matches(x)


def keeps_meaning(seeds):
    counts = Counter()
    wrong = []
    for seed in seeds:
        text = program(Choices.seeded(seed), 12)
        with module(text, seed) as made:
            functions = {
                n: f
                for n, f in vars(made).items()
                if isinstance(f, types.FunctionType) and f.__module__ == made.__name__
            }
            made.LOG.clear()
            expected = *outcome(made.f, made.ARGS), list(made.LOG)
            if expected[0] == "UnboundLocalError":
                continue
            try:
                units = {n: unit(f, made.ARGS if n == "f" else None) for n, f in functions.items()}
            except srcgrad.SrcgradError:
                counts["refused"] += 1
                continue
            counts["run"] += 1
            for stage in KEEP_MEANING:
                vars(made).update({n: run(u, stage) for n, u in units.items()})
                made.LOG.clear()
                got = *outcome(made.f, made.ARGS), list(made.LOG)
                if got[0] in ("UnsupportedSyntax", "AliasError") and expected[0] != got[0]:
                    counts["refused at run time"] += 1  # by a guard of what is told only then
                    continue
                if not (identical(got[:3], expected[:3]) and same(got[3], expected[3])):
                    wrong.append((seed, stage, got, expected))
    assert not wrong
    assert counts["run"] > 0.75 * len(seeds)


@pytest.mark.filterwarnings("ignore")
def test_grammars_of_generated_programs():
    """Whether their gradients are right is the business of `tests/fuzz`."""
    broken = {}
    for seed in SEEDS:
        text = program(Choices.seeded(seed), 12)
        with module(text, seed) as made, watched():
            try:
                srcgrad.grad(made.f, tuple(range(len(made.ARGS)))).source_for(*made.ARGS)
            except BrokenPromise as error:
                broken[seed] = str(error)
            except Exception:
                continue
    assert not broken
