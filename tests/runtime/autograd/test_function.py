"""Custom functions."""

from __future__ import annotations

import pytest

import srcgrad as sg

Function = sg.autograd.Function


def leaf(*values: float) -> sg.Tensor:
    return sg.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


class Power(Function):
    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.n = inputs[1]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None


def test_setup_context_and_double_backward():
    x = leaf(2.0)
    y = Power.apply(x, 3)
    assert type(y.grad_fn).__name__ == "PowerBackward"
    (g,) = sg.autograd.grad(y, x, create_graph=True)
    (h,) = sg.autograd.grad(g, x)
    assert (g.item(), h.item()) == (12.0, 12.0)


def test_saved_tensors_are_checked_and_freed():
    x = leaf(2.0)
    y = Power.apply(x, 3)
    with sg.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    y = Power.apply(x, 3)
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn.saved_tensors  # noqa: B018


class Scale(Function):
    returned: object = None

    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def backward(ctx, g):
        return Scale.returned


@pytest.mark.parametrize(
    "returned, words",
    [
        (sg.ones(2), "incorrect number of gradients"),
        ((sg.ones(3), None), "invalid gradient at index 0"),
        ((1.0, None), "expected Variable or None"),
        ((sg.ones(2), sg.ones(2)), "different than None"),
    ],
)
def test_wrong_gradients_are_refused(returned, words):
    Scale.returned = returned
    with pytest.raises(RuntimeError, match=words):
        Scale.apply(leaf(1.0, 2.0), 2).sum().backward()


class Increment(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 7


def test_mark_dirty_returns_the_same_object():
    x = leaf(1.0)
    h = x * 1
    out = Increment.apply(h)
    assert out is h and type(h.grad_fn).__name__ == "IncrementBackward"
    out.backward()
    assert x.grad.item() == 7.0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Increment.apply(leaf(1.0))


class Two(Function):
    seen: list[object] = []

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2

    @staticmethod
    def backward(ctx, a, b):
        Two.seen.append(a)
        return b * 2


def test_unused_outputs():
    Two.seen.clear()
    x = leaf(1.0)
    first, second = Two.apply(x)
    assert first.grad_fn is second.grad_fn and second.output_nr == 1
    second.backward()
    assert Two.seen == [None] and x.grad.item() == 2.0


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @sg.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_once_differentiable():
    x = leaf(2.0)
    (g,) = sg.autograd.grad(Once.apply(x) * x, x, create_graph=True)
    assert g.item() == 12.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 4


def test_an_input_returned_as_it_is():
    x = leaf(1.0, 2.0)
    out = Same.apply(x)
    assert out is not x
    out.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="custom Function"):
        Same.apply(x * 1).add_(1)
