"""The eager half takes its derivatives from the one rule table, and its public names from one list."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.runtime import eager
from srcgrad.runtime.autograd.nodes import Elementwise, RuleNode
from srcgrad.runtime.autograd.recipes import recipe
from srcgrad.runtime.rules.table import find
from srcgrad.runtime.tensor import FUNCTIONS


def test_all_public_functions_are_listed():
    assert set(FUNCTIONS) <= set(eager.__all__)
    assert all(hasattr(eager, name) for name in eager.__all__)
    assert sorted(set(eager.__all__)) == eager.__all__


def _nodes() -> list[type]:
    found, todo = [], [Elementwise, RuleNode]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if "function" in vars(kind):
            found.append(kind)
    return found


@pytest.mark.parametrize("kind", _nodes(), ids=lambda k: k.__name__)
def test_every_node_has_its_rule_in_the_table(kind):
    rule = find(kind.function)
    assert rule is not None and rule.differentiable


def test_a_recipe_keeps_only_what_it_needs():
    multiply = find(np.multiply)
    assert recipe(multiply, (True, False)).keeps == (False, True)
    assert recipe(multiply, (True, True)).keeps == (True, True)
    assert recipe(find(np.add), (True, True)).constants == (1, 1)
    assert not recipe(find(np.sum), (True,)).keeps[0]
    assert recipe(find(np.exp), (True,)).result
    matmul = recipe(find(np.matmul), (True, False))
    assert "b" in matmul.values and "a" not in matmul.values


def test_recipes_compute_what_their_rules_compute():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    divide = find(np.divide)
    whole = divide.partials(x / y, x, y)
    for needs in ((True, False), (False, True), (True, True)):
        got = recipe(divide, needs).function(x / y, x, y)
        for g, w, need in zip(got, whole, needs, strict=True):
            assert (g is None) if not need else np.array_equal(g, w)


def test_no_node_class_has_a_formula_of_its_own():
    allowed = {"Elementwise", "RuleNode", "Unary", "Binary", "Powered", "IndexBackward0"}
    for kind in _nodes():
        if "apply" in vars(kind) and kind.__name__ not in allowed:
            assert "expand_dims" in inspect.getsource(vars(kind)["apply"])


def test_a_function_without_rule_is_refused():
    with pytest.raises(sg.NoRule):
        np.frompyfunc(lambda v: v + 1.0, 1, 1)(sg.ones(3, requires_grad=True))


def test_a_compiled_function_is_one_node():
    def square(x):
        return x * x, lambda g: (2 * x * g,)

    x = sg.tensor([1.0, 3.0], requires_grad=True)
    y = sg.autograd.apply_compiled(square, x, name="square")
    assert type(y.grad_fn).__name__ == "SquareBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 6.0]
    (g,) = sg.autograd.grad(sg.autograd.apply_compiled(square, x).sum(), x, create_graph=True)
    assert sg.autograd.grad(g.sum(), x)[0].tolist() == [2.0, 2.0]
