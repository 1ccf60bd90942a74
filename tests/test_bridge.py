"""A compiled function on Tensors: one node, the numbers of the eager run, derivatives of every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg

RANDOM = np.random.default_rng(0)
W, B, X = RANDOM.normal(size=3), np.float64(0.5), RANDOM.normal(size=(4, 3))


def loss(w: Any, b: Any, x: Any) -> Any:
    p = 1 / (1 + np.exp(-(x @ w + b)))
    return -np.mean(np.log(p))


def written(w: Any, b: Any, x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = np.tanh(x[i] @ w + b) ** 2
    return out


def tracked(*values: Any) -> list[sg.Tensor]:
    return [sg.tensor(v, dtype=sg.float64, requires_grad=True) for v in values]


def test_compiled_and_eager_give_the_same_numbers() -> None:
    compiled, eager = tracked(W, B, X), tracked(W, B, X)
    y, z = sg.compile(loss)(*compiled), loss(*eager)
    assert type(y.grad_fn).__name__ == "LossBackward0"
    assert [type(n).__name__ for n, _ in y.grad_fn.next_functions] == ["AccumulateGrad"] * 3
    assert y.item() == z.item()
    for t in (y, z):
        t.backward()
    for a, b in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12)
        assert a.grad.dtype == a.dtype and a.grad.shape == a.shape


def test_writing_in_place_is_no_obstacle() -> None:
    w, b, x = tracked(W, B, X)
    y = sg.compile(written)(w, b, x)
    assert y.shape == (4,) and type(y.grad_fn).__name__ == "WrittenBackward0"
    (y * sg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    step, d = 1e-6, np.array([0.3, -0.7, 0.2])
    weighted = lambda v: written(v, B, X) @ np.array([1.0, 2.0, 3.0, 4.0])  # noqa: E731
    slope = (weighted(W + step * d) - weighted(W - step * d)) / (2 * step)
    assert w.grad.numpy() @ d == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("function", [loss, written])
def test_derivatives_of_derivatives(function: Any) -> None:
    inputs = tracked(W, B, X)
    assert sg.autograd.gradcheck(sg.compile(function), inputs)
    assert sg.autograd.gradgradcheck(sg.compile(function), inputs)


def test_double_backward_is_one_node_again() -> None:
    w, b = tracked(W, B)
    (g,) = sg.autograd.grad(sg.compile(loss)(w, b, X), w, create_graph=True)
    assert type(g.grad_fn).__name__ == "LossGradBackward0"
    (h,) = sg.autograd.grad(g.sum(), w)
    np.testing.assert_allclose(h.numpy(), sg.hessian(loss)(W, B, X).sum(0), rtol=1e-10)


def test_a_gradient_called_on_tensors() -> None:
    w, b = tracked(W, B)
    g = sg.grad(loss)(w, b, X)
    assert type(g.grad_fn).__name__ == "LossGradBackward0"
    np.testing.assert_array_equal(g.detach().numpy(), sg.grad(loss)(W, B, X))
    g.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), sg.hessian(loss)(W, B, X).sum(0), rtol=1e-10)
    value, (dw, db) = sg.value_and_grad(loss, argnums=(0, 1))(w, b, X)
    assert value.item() == pytest.approx(loss(W, B, X)) and db.ndim == 0
    assert value.grad_fn is dw.grad_fn and dw.output_nr == 1


def test_containers_and_constants() -> None:
    @sg.compile
    def layers(parameters: Any, x: Any, scale: float = 1.0) -> Any:
        for w, b in parameters:
            x = np.tanh(x @ w + b)
        return {"last": x * scale, "rows": len(x)}

    first = tracked(RANDOM.normal(size=(3, 2)), RANDOM.normal(size=2))
    out = layers([tuple(first)], X, scale=2.0)
    assert out["rows"] == 4 and type(out["last"].grad_fn).__name__ == "LayersBackward0"
    out["last"].sum().backward()
    assert first[0].grad.shape == (3, 2) and first[1].grad.shape == (2,)


def test_without_tracked_tensors_nothing_is_recorded() -> None:
    y = sg.compile(loss)(sg.tensor(W), 0.5, X)
    assert isinstance(y, sg.Tensor) and y.is_leaf
    with sg.no_grad():
        assert sg.compile(loss)(*tracked(W, B, X)).is_leaf
    assert isinstance(sg.compile(loss)(W, 0.5, X), float)


def test_changes_in_place_are_noticed() -> None:
    w, b = (t * 1 for t in tracked(W, B))
    y = sg.compile(loss)(w, b, X)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_second_backward_needs_retain_graph() -> None:
    y = sg.compile(loss)(*tracked(W, B, X))
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_compiled_function_is_still_the_function_for_the_transforms() -> None:
    np.testing.assert_array_equal(sg.grad(sg.compile(loss))(W, B, X), sg.grad(loss)(W, B, X))
    assert sg.compile(loss).__name__ == "loss"
