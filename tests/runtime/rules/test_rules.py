"""Every rule of the table against finite differences, on the inputs that stand beside it."""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad.transforms.build  # noqa: F401  (the compiler, which differentiates callbacks)
import srcgrad.transforms.tangent  # noqa: F401
from srcgrad.runtime.rules import LATER
from srcgrad.runtime.rules.table import Case, Rule, rules
from srcgrad.runtime.support import unbroadcast
from srcgrad.transforms import facts

for module in LATER:
    importlib.import_module(module)  # so that the rules for it are filed

STEP = 1e-4
SYMMETRIC = {
    "cholesky": "a",
    "cho_factor": "a",
    "eigh": "ab",
    "eigvalsh": "ab",
    "ldl": ("A",),
    "pinvh": "a",
    "solve_continuous_are": "qr",
    "solve_discrete_are": "qr",
    "wishart_logpdf": ("x", "scale"),
    "normal_logpdf": ("cov",),
    "normal_pdf": ("cov",),
    "normal_entropy": ("cov",),
    "multivariate_t_logpdf": ("shape",),
}
"""Functions of symmetric matrices, and the arguments that are perturbed by symmetric matrices."""

OF_OBJECTS = (
    "callables",
    "polynomials",
    "scipy_frozen",
    "scipy_interpolate",
    "scipy_rotation",
    "scipy_sparse",
    "series",
)
"""Rule files that are tested by the programs of `test_objects`."""

DRAWING = (np.random.Generator, np.random.RandomState)


def prepared(value: Any) -> Any:
    """Test inputs as the rule table writes them: lists become float64 arrays, tuples stay sequences."""
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    if isinstance(value, tuple):
        return tuple(prepared(part) for part in value)
    return value


def fresh(argument: Any) -> Any:
    """A random generator is copied, so that each call draws the same numbers."""
    if isinstance(argument, (np.random.Generator, np.random.RandomState)):
        return copy.deepcopy(argument)
    return argument


def listed(tree: Any) -> Any:
    return [listed(part) for part in tree] if isinstance(tree, (list, tuple)) else tree


def is_method(function: Any) -> bool:
    return type(function) in (
        types.MethodDescriptorType,
        types.GetSetDescriptorType,
        types.WrapperDescriptorType,
    )


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(function, (types.GetSetDescriptorType, types.MemberDescriptorType, property)):
        return function.__get__(args[0])
    if is_method(function):
        args = (np.asarray(args[0]), *args[1:])
    return function(*args, **kwargs)


def numbers(result: Any) -> Any:
    """What is continuous in a result; of SciPy's result objects the solution, its residuals and its cost."""
    if isinstance(result, dict) and "message" in result:
        return {k: result[k] for k in ("y", "x", "fun", "cost") if k in result}
    return result


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return leaves(list(tree.values()))
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def mapped(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    if isinstance(tree, dict):
        return {k: mapped(function, v, *[other[k] for other in others]) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [mapped(function, part, *rest) for part, *rest in zip(tree, *others, strict=True)]
        return tuple(parts) if isinstance(tree, tuple) else parts
    return function(tree, *others)


def inexact(value: Any) -> bool:
    return np.result_type(value).kind in "fc" if not isinstance(value, (int, str, type(None))) else False


def continuous(tree: Any) -> bool:
    if isinstance(tree, (list, tuple)):
        return any(map(continuous, tree))
    return isinstance(tree, (float, complex, np.ndarray, np.generic)) and inexact(tree)


class Random:
    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def like(self, value: Any) -> Any:
        if not inexact(value):
            return value if value is None or isinstance(value, str) else value * 0
        shape = np.shape(value)
        drawn: Any = self.generator.uniform(0.5, 1.5, shape) * self.generator.choice([-1.0, 1.0], shape)
        if np.iscomplexobj(value):
            drawn = drawn + 1j * self.generator.uniform(0.5, 1.5, shape)
        if isinstance(value, np.ndarray):
            return np.asarray(drawn, dtype=value.dtype)
        return drawn.item() if hasattr(drawn, "item") else drawn


def paired(g: Any, v: Any) -> float:
    """The pairing of a cotangent with a tangent: Re(sum(g * v)), no conjugate."""
    total = 0.0
    for a, b in zip(leaves(g), leaves(v), strict=True):
        if inexact(b):
            with np.errstate(invalid="ignore"):
                product = np.where(np.asarray(a) == 0, 0, np.asarray(a) * np.where(np.isfinite(b), b, 0))
            total += float(np.real(np.sum(product)))
    return total


class Bound:
    """One function at one test input."""

    def __init__(self, rule: Rule, function: Any, case: Case) -> None:
        self.rule, self.function = rule, function
        self.args = tuple(prepared(a) for a in case.args)
        if function is np.block:
            self.args = (listed(self.args[0]),)
        self.kwargs = {k: prepared(v) for k, v in case.kwargs.items()}
        bound = inspect.Signature(list(rule.parameters)).bind(*self.args, **self.kwargs)
        given = bound.arguments
        self.active = {name: given[name] for name in rule.wrt if name in given and continuous(given[name])}
        self.names = list(given)

    def with_values(self, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args: list[Any] = []
        kwargs = dict(self.kwargs)
        position = 0
        for parameter in self.rule.parameters:
            name = parameter.name
            if name in kwargs:
                kwargs[name] = values.get(name, kwargs[name])
            elif parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(values.get(name, self.args[position:]))
                position = len(self.args)
            elif position < len(self.args) and parameter.kind is not parameter.KEYWORD_ONLY:
                args.append(values.get(name, self.args[position]))
                position += 1
        return tuple(args), kwargs

    def value(self, values: dict[str, Any]) -> Any:
        args, kwargs = self.with_values(values)
        if isinstance(getattr(self.function, "__self__", None), np.random.RandomState):
            np.random.seed(7)
        return call(self.function, *map(fresh, args), **kwargs)

    def difference(self, directions: dict[str, Any]) -> Any:
        """The derivative along `directions`, by central differences of fourth order."""

        def at(step: float) -> Any:
            moved = {
                k: mapped(lambda x, v: x + step * v if inexact(x) else x, self.active[k], v)
                for k, v in directions.items()
            }
            return numbers(self.value(moved))

        def combine(a: Any, b: Any, c: Any, d: Any) -> Any:
            if not inexact(a):
                return None if a is None else 0 * np.asarray(a)
            with np.errstate(invalid="ignore"):
                return (8 * (np.asarray(b) - c) - (np.asarray(a) - d)) / (12 * STEP)

        return mapped(combine, at(2 * STEP), at(STEP), at(-STEP), at(-2 * STEP))

    def cotangents(self, g: Any, y: Any, values: dict[str, Any]) -> dict[str, Any]:
        args, kwargs = self.with_values(values)
        if self.rule.partials is not None:
            found = self.rule.partials(y, *args, **kwargs)
            found = found if isinstance(found, tuple) else (found,)
            if self.rule.real:
                g = np.real(g)
            assert len(found) == len(self.rule.wrt)
            given = inspect.Signature(list(self.rule.parameters)).bind(*args, **kwargs).arguments
            return {
                k: None if p is None else unbroadcast(g * p, given[k])
                for k, p in zip(self.rule.wrt, found, strict=True)
                if k in self.active
            }
        else:
            assert self.rule.reverse is not None
            found = self.rule.reverse(g, y, *args, **kwargs)
            if len(self.rule.wrt) == 1 and not isinstance(found, tuple):
                found = (found,)
            assert len(found) == len(self.rule.wrt)
        return {k: c for k, c in zip(self.rule.wrt, found, strict=False) if k in self.active}

    def tangent(self, y: Any, tangents: dict[str, Any]) -> Any:
        args, kwargs = self.with_values({})
        rule = self.rule
        if rule.partials is not None:
            partials = rule.partials(y, *args, **kwargs)
            partials = partials if isinstance(partials, tuple) else (partials,)
            terms = [
                p * tangents[k]
                for k, p in zip(rule.wrt, partials, strict=False)
                if k in tangents and p is not None
            ]
            total = sum(terms)
            return np.real(total) if rule.real else total
        if rule.linear:
            zeros = {k: mapped(lambda x: x * 0, v) for k, v in self.active.items()}
            return self.value({**zeros, **tangents})
        assert rule.forward is not None, "a function that is not linear needs a forward rule"
        full = [
            tangents.get(k, mapped(lambda x: x * 0, self.active[k]) if k in self.active else 0.0)
            for k in rule.wrt
        ]
        found = rule.forward(*full, y, *args, **kwargs)
        if len(rule.wrt) == 1 or rule.joint:
            return found
        terms = [t for k, t in zip(rule.wrt, found, strict=True) if k in tangents and t is not None]
        total = terms[0]
        for term in terms[1:]:
            total = mapped(lambda a, b: a + b, total, term)
        return total


def precision(value: Any) -> float:
    """The rounding unit of a result that is less precise than double, else 0."""
    dtype = np.result_type(value) if inexact(value) else np.dtype(np.float64)
    return float(np.finfo(dtype).eps) if np.finfo(dtype).eps > 1e-15 else 0.0


def close(got: float, want: float, scale: float, tolerance: float, what: str) -> None:
    assert np.isfinite(got), f"{what} is {got}"
    assert abs(got - want) <= tolerance * (1 + scale), f"{what}: got {got}, expected {want}"


def cases() -> Iterator[Any]:
    for rule in rules():
        if not rule.differentiable:
            continue
        for function in rule.functions:
            for i, case in enumerate(rule.at):
                first = case.args[0] if case.args else None
                if type(first) in DRAWING and function not in vars(type(first)).values():
                    continue  # the case is for another kind of generator
                if is_method(function) and isinstance(first, float):
                    continue  # the case is for the function that shares the rule
                if is_method(function) and "correction" in case.kwargs:
                    continue
                name = getattr(function, "__qualname__", getattr(function, "__name__", str(function)))
                yield pytest.param(rule, function, case, id=f"{rule.name}-{name}-{i}")


@pytest.mark.parametrize("rule", [r for r in rules() if r.differentiable], ids=lambda r: r.name)
def test_has_inputs(rule: Rule) -> None:
    """What only emitted code calls takes functions, saved values and cotangents of any structure, and some
    rules take or make objects: programs that are differentiated twice test them, and inputs are a bonus."""
    emitted = all(str(getattr(f, "__module__", "")).startswith("srcgrad.runtime") for f in rule.functions)
    written = rule.reverse is not None and rule.reverse.__module__.rpartition(".")[2]
    assert rule.at or emitted or written in OF_OBJECTS, f"{rule.name} has no test inputs"
    assert rule.linear or rule.partials or rule.forward, f"{rule.name} needs a forward rule"


def shared(value: Any, given: list[Any]) -> bool:
    arrays = [[x for x in leaves(v) if isinstance(x, np.ndarray)] for v in (value, given)]
    return any(np.shares_memory(a, b) for a in arrays[0] for b in arrays[1])


def numbers_alone(rule: Rule, case: Case) -> bool:
    return rule.alias == "fresh" and any(type(a) is float for a in case.args)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "rule, function, case", [p for p in cases() if numbers_alone(p.values[0], p.values[2])]
)
def test_values_of_no_dimension_are_fresh_too(rule: Rule, function: Any, case: Case) -> None:
    """Functions that give back what they were given do so for arrays of no dimension at most."""
    args = [np.array(a) if type(a) is float else a for a in case.args]
    try:
        y = function(*args, **case.kwargs)
    except (TypeError, ValueError):
        pytest.skip("takes no arrays of no dimension")
    assert not shared(y, args), "the result shares memory with an argument"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule, function, case", list(cases()))
def test_rule(rule: Rule, function: Any, case: Case) -> None:
    bound = Bound(rule, function, case)
    assert bound.active, "the case has no argument to differentiate"
    kept = mapped(np.copy, list(bound.active.values()))
    y = bound.value({})
    if rule.alias == "fresh":
        assert not shared(y, [*case.args, *case.kwargs.values()]), "the result shares memory with an argument"
    random = Random(0)
    g = mapped(random.like, numbers(y))
    g_kept = mapped(np.copy, g)
    cotangents = bound.cotangents(g, y, {})
    for name, x in bound.active.items():
        v = mapped(random.like, x)
        assumed = case.kwargs.get("assume_a", "gen") != "gen" and name == "a"
        if assumed or name in SYMMETRIC.get(rule.name, SYMMETRIC.get(function.__name__, "")):
            v = v + np.conj(np.swapaxes(v, -1, -2)) if np.ndim(v) > 1 else v
        if function.__name__ == "sosfilt" and name == "sos":
            v[:, 3] = 0  # these must stay 1
        want = bound.difference({name: v})
        scale = max(
            [float(np.max(np.abs(w), initial=0, where=np.isfinite(w))) for w in leaves(want) if w is not None]
            or [0.0]
        )
        cotangent = cotangents[name]
        iterative = str(getattr(function, "__module__", "")).startswith("scipy.optimize")
        tolerance = max(
            1e-5 if iterative else 1e-7, 50 * max(precision(part) for part in leaves(numbers(y))) / STEP
        )
        if cotangent is None:
            assert scale < 1e-9, f"no cotangent for {name}"
            continue
        for part, leaf in zip(leaves(cotangent), leaves(x), strict=True):
            if part is None:
                assert not inexact(leaf)
                continue
            assert np.shape(part) == np.shape(leaf), (
                f"{name}: shape {np.shape(part)}, expected {np.shape(leaf)}"
            )
        if isinstance(x, (list, tuple)):
            assert isinstance(cotangent, list)
        pairing = paired(g, want)
        close(paired(cotangent, v), pairing, scale, tolerance, f"reverse, {name}")
        tangent = bound.tangent(y, {name: v})
        for got, expected in zip(leaves(tangent), leaves(want), strict=True):
            if inexact(expected):
                got = np.broadcast_to(got, np.shape(expected))
                error = np.where(np.isfinite(expected), got - expected, 0)
                assert np.all(np.abs(error) <= tolerance * (1 + scale)), (
                    f"forward, {name}: {got}, expected {expected}"
                )
        close(
            paired(g, tangent),
            paired(cotangent, v),
            scale,
            tolerance / 100,
            f"forward against reverse, {name}",
        )
    for before, after in zip(leaves([kept, g_kept]), leaves([list(bound.active.values()), g]), strict=True):
        if inexact(after):
            assert np.array_equal(before, after, equal_nan=True), "an argument was changed"


def single(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(single(part) for part in value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return value.astype(np.float32 if value.dtype.kind == "f" else np.complex64)
    return value


def doubled(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or not inexact(value):
        return value
    return value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule, function, case", list(cases()))
def test_float32(rule: Rule, function: Any, case: Case) -> None:
    if function in (np.lib.stride_tricks.as_strided, np.ndarray.view):
        pytest.skip("its strides, or types, are those of doubles")
    if str(getattr(function, "__module__", "")).startswith(("scipy.integrate", "scipy.optimize")):
        pytest.skip("computes in double precision")
    bound = Bound(rule, function, case)
    values = {k: single(v) for k, v in bound.active.items()}
    bound.args, bound.kwargs = single(bound.args), {k: single(v) for k, v in bound.kwargs.items()}
    bound.active = values
    y = bound.value({})
    random = Random(1)
    g = mapped(random.like, numbers(y))
    cotangents = bound.cotangents(g, y, {})
    double = Bound(rule, function, case)
    exact = double.cotangents(mapped(doubled, g), double.value({}), {})
    for name, x in values.items():
        if cotangents[name] is None:
            continue
        parts = zip(leaves(cotangents[name]), leaves(x), leaves(exact[name]), strict=True)
        for part, leaf, reference in parts:
            if part is None:
                continue
            if isinstance(leaf, np.ndarray):
                assert part.dtype == leaf.dtype, f"{name}: {part.dtype} for {leaf.dtype}"
            if rule.name not in ("eig_", "schur"):  # LAPACK's choice of signs depends on the precision
                size = 1 + np.max(np.abs(reference), initial=0)
                assert np.all(np.abs(part - reference) <= 2e-3 * size)
        tangent = bound.tangent(y, {name: mapped(random.like, x)})
        for part, result in zip(leaves(tangent), leaves(numbers(y)), strict=True):
            if isinstance(result, np.ndarray) and inexact(result) and np.ndim(part):
                assert part.dtype.itemsize <= result.dtype.itemsize, (
                    f"{name}: {part.dtype} for {result.dtype}"
                )


@pytest.mark.parametrize("rule", [r for r in rules() if r.differentiable], ids=lambda r: r.name)
def test_expressions(rule: Rule) -> None:
    """What a rule returns is an expression without a scope of its own: it can be put into other code."""
    scopes = (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.Lambda)
    for function in (rule.partials, rule.reverse, rule.forward):
        if function is not None:
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
                if isinstance(node, ast.Return):
                    assert not any(isinstance(part, scopes) for part in ast.walk(node)), function.__name__


def fact_of(value: Any) -> facts.Fact:
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        if isinstance(value, tuple):
            return facts.Fact("tuple", items=tuple(map(fact_of, value)))
        return facts.Fact("list", items=functools.reduce(facts.join, map(fact_of, value), facts.BOTTOM))
    if isinstance(value, np.ndarray):
        dims = tuple(
            1 if n == 1 else facts.Dim(f"{id(value)}.{i}", 0, True) for i, n in enumerate(value.shape)
        )
        return facts.Fact(
            "array", dims, 2 if value.dtype == np.float64 else 1 if value.dtype.kind in "biu" else 0
        )
    return facts.of_constant(value) if value is None or np.isscalar(value) else facts.UNKNOWN


def agrees(fact: facts.Fact, value: Any) -> bool:
    """Is `fact` true of `value`?"""
    dtype = np.result_type(value) if isinstance(value, (np.ndarray, np.generic, int, float)) else None
    if fact.real and dtype is not None and dtype.kind not in ("biu" if fact.real == 1 else "") + "f":
        return False
    if fact.kind == "scalar":
        return not isinstance(value, np.ndarray) and np.isscalar(value)
    if fact.kind == "array":
        if not isinstance(value, np.ndarray):
            return False
        lengths = fact.shape or ()
        return fact.shape is None or (
            len(lengths) == value.ndim
            and all(not isinstance(d, int) or d == n for d, n in zip(lengths, value.shape, strict=True))
        )
    if fact.kind == "numeric":
        return isinstance(value, np.ndarray) or np.isscalar(value)
    if fact.kind == "list":
        return isinstance(value, list) and (fact.items is None or all(agrees(fact.items, v) for v in value))
    if fact.kind == "tuple":
        return isinstance(value, (tuple, list))
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "rule, function, case", [p for p in cases() if p.values[0].shape is not None and p.values[2].args]
)
def test_facts_of_results(rule: Rule, function: Any, case: Case) -> None:
    """What the compiler concludes of a result before it is known."""
    interpreter = facts.Interpreter(None)
    given = [np.asarray(a) if i == 0 and is_method(function) else a for i, a in enumerate(case.args)]
    fact = interpreter.rule(
        function, [fact_of(prepared(a)) for a in given], {k: fact_of(v) for k, v in case.kwargs.items()}
    )
    value = Bound(rule, function, case).value({})
    shown = (value.dtype, value.shape) if isinstance(value, np.ndarray) else value
    assert agrees(fact, value), f"{fact} of {type(value).__name__} {shown}"
