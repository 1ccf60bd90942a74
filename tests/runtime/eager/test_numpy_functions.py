"""NumPy's functions on Tensors: the same values, and gradients that finite differences confirm.

The inputs are those that stand beside the rules; a function whose rule has no derivative for an argument
refuses a tracked Tensor there. Functions that call functions need the compiler, and have tests with it.
"""

from __future__ import annotations

import types
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.runtime.rules.table import Case, rules

STEP = 1e-5
REFUSED = (sg.NoRule, RuntimeError, TypeError, AttributeError)
"""What says that a function does not take Tensors: never a wrong number instead."""
REASONS = {"cpu": ("Tensor", "derivative")}
REASONS["strict"] = (*REASONS["cpu"], "CuPy", "host array", "NumPy array", "all returned NotImplemented")
LEFT_OUT = ("cholesky", "eigh", "eigvalsh", "row_stack", "block")
"""Functions of symmetric matrices; `vstack` by its old name; `block`, which tells lists from tuples."""


def prepared(value: Any) -> Any:
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    return tuple(map(prepared, value)) if type(value) is tuple else value


def mapped(function: Any, value: Any) -> Any:
    """`function` of each float array in nested arguments."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return function(value)
    return type(value)(mapped(function, v) for v in value) if type(value) in (list, tuple) else value


def results(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [r for part in value for r in results(part)]
    kind = getattr(getattr(value, "_array", value), "dtype", None)
    return [value] if kind is not None and kind.kind == "f" else []


def of_functions(rule: Any) -> bool:
    rule_function = rule.partials or rule.reverse
    return bool(rule_function.__module__.endswith("callables"))


def cases() -> list[Any]:
    found = []
    for rule in rules():
        if not rule.differentiable or rule.name in LEFT_OUT or of_functions(rule):
            continue
        for function in rule.functions:
            module = getattr(function, "__module__", None) or ""
            special = isinstance(function, np.ufunc)
            if not (module.startswith("numpy") and "random" not in module or special):
                continue
            if isinstance(function, type | types.MethodDescriptorType):
                continue
            name = f"{module}.{getattr(function, '__name__', function)}"
            if getattr(function, "__name__", "") in LEFT_OUT:
                continue
            found += [pytest.param(function, c, id=f"{name} {i}") for i, c in enumerate(rule.at[:2])]
    return found


@pytest.mark.parametrize(("function", "case"), cases())
def test_function_of_tensors(function: Any, case: Case) -> None:
    args = prepared(case.args)
    keywords = {k: v for k, v in case.kwargs.items() if not isinstance(v, np.ndarray)}
    if keywords != case.kwargs:
        pytest.skip("arrays as keywords")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _check(function, args, keywords)


def _check(function: Any, args: Any, keywords: dict[str, Any]) -> None:
    leaves: list[sg.Tensor] = []

    def leaf(a: Any) -> sg.Tensor:
        leaves.append(sg.tensor(a.copy(), requires_grad=True))
        return leaves[-1]

    plain = results(function(*args, **keywords))
    given = mapped(leaf, args)
    if not leaves or not plain:
        pytest.skip("nothing to differentiate")
    random = np.random.default_rng(0)
    weights = [random.uniform(0.5, 1.5, np.shape(p)) for p in plain]
    try:
        got = results(function(*given, **keywords))
        tracked = [(r * sg.tensor(w)).sum() for r, w in zip(got, weights, strict=True) if r.requires_grad]
        sum(tracked[1:], tracked[0]).backward()
    except REFUSED as error:
        assert any(word in str(error) for word in REASONS[sg.get_default_device().type]), error
        return
    for ours, theirs in zip(got, plain, strict=True):
        np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs, rtol=1e-10)
    directions = [random.uniform(0.5, 1.5, tuple(t.shape)) for t in leaves]
    slope = sum(
        (t.grad * sg.tensor(d)).sum().item()
        for t, d in zip(leaves, directions, strict=True)
        if t.grad is not None
    )

    def along(step: float) -> float:
        each = iter(directions)
        moved = mapped(lambda a: a + step * next(each), args)
        return sum(
            float(np.sum(w * r)) for w, r in zip(weights, results(function(*moved, **keywords)), strict=True)
        )

    assert slope == pytest.approx((along(STEP) - along(-STEP)) / (2 * STEP), rel=1e-4, abs=1e-6)


def test_functions_of_scipy_special_that_are_ufuncs() -> None:
    x = sg.tensor([0.5, 1.5], dtype=sg.float64, requires_grad=True)
    scipy.special.gammaln(x).sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), scipy.special.digamma([0.5, 1.5]))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: np.nanquantile(np.ones(3), t.sum()),
        lambda t: np.pad(np.ones(3), 1, constant_values=t[0]),
        lambda t: np.add(t, t, where=np.array([True, False, True])),
        lambda t: np.union1d(t, t),
    ],
)
def test_what_would_lose_a_gradient_is_refused(call: Any) -> None:
    with pytest.raises((sg.NoRule, RuntimeError, TypeError)):
        call(sg.tensor([0.1, 0.2, 0.3], requires_grad=True))


@pytest.mark.host
def test_blocks() -> None:
    x = sg.ones(2, 2, requires_grad=True)
    y = np.block([[x, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    assert y.tolist() == [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    (y * sg.arange(9.0).reshape(3, 3)).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [3.0, 4.0]]


@pytest.mark.host
def test_masks_and_outputs_of_ufuncs() -> None:
    t, out = sg.tensor([1.0, 2.0]), sg.tensor([7.0, 7.0])
    np.add(t, 1.0, out=out, where=np.array([True, False]))
    assert out.tolist() == [2.0, 7.0]


def test_order_of_reshape() -> None:
    x = sg.arange(6.0).reshape(2, 3).requires_grad_()
    y = np.reshape(x, (3, 2), order="F")
    np.testing.assert_array_equal(
        y.detach().cpu().numpy(), np.reshape(np.arange(6.0).reshape(2, 3), (3, 2), order="F")
    )
    (y * sg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [[1.0, 5.0, 4.0], [3.0, 2.0, 6.0]]


@pytest.mark.host
@pytest.mark.parametrize("make", [np.flip, lambda a: np.expand_dims(a, 0), lambda a: np.hsplit(a, 1)[0]])
def test_views_that_numpy_makes_are_counted_as_views(make: Any) -> None:
    """Such a view can't be changed in place while recording; a change of the base is seen through it."""
    x = sg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    view = make(y)
    with pytest.raises(RuntimeError, match="is a view"):
        view.mul_(10)
    squared = (y * y).sum()
    with sg.no_grad():
        view.mul_(10)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        squared.backward()
    z = x * 1
    seen = make(z)
    z.mul_(sg.tensor([2.0, 3.0]))
    (seen * seen).sum().backward()
    assert x.grad.tolist() == [8.0, 36.0]  # of (2 a)^2 + (3 b)^2
