"""The words of PyTorch's error messages that people search for stand in ours, letter for letter."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from srcgrad.nn import functional as F

import srcgrad as sg
from srcgrad import nn

T = sg.tensor


class Doubled(sg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g[:0]


class Viewed(Doubled):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)


class Dirty(Doubled):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2


class OfTwo(Doubled):
    @staticmethod
    def forward(ctx, x, y):
        return x * y


class Number(Doubled):
    @staticmethod
    def backward(ctx, g):
        return 3.0


class ForNumber(Doubled):
    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def backward(ctx, g):
        return g, g


class Once(Doubled):
    @staticmethod
    @sg.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2


def leaf(*values: float) -> sg.Tensor:
    return T(list(values), requires_grad=True)


def changed_after_saving():
    a = leaf(1.0) * 1
    b = a * a
    a.add_(1)
    b.backward()


def leaf_changed_through_detach():
    x = sg.ones(1, requires_grad=True)
    y = x * x * 4
    x.detach().mul_(100)
    y.backward()


def twice():
    y = (leaf(1.0) ** 2).sum()
    y.backward()
    y.backward()


def view_without_recording():
    y = leaf(1.0, 2.0) * 1
    with sg.no_grad():
        view = y[:1]
    view.add_(1)


def made_in_inference() -> sg.Tensor:
    with sg.inference_mode():
        return sg.ones(1)


def changed_hook():
    x = leaf(1.0)
    x.register_hook(lambda g: sg.ones(2))
    (x * 2).backward()


def node_hook():
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (None, None, None))
    y.backward()


def once():
    x = leaf(1.0)
    (g,) = sg.autograd.grad(Once.apply(x) ** 2, x, create_graph=True)
    g.backward()


def load(state, strict=True):
    nn.Linear(2, 1).load_state_dict(state, strict)


def assigned(owner, name, value):
    setattr(owner, name, value)


WORDS = [
    ("floating point", lambda: sg.zeros(1, dtype=sg.int64, requires_grad=True)),
    ("floating point", lambda: T([1]).requires_grad_()),
    (
        "you can only change requires_grad flags of leaf variables",
        lambda: (leaf(1.0) * 2).requires_grad_(False),
    ),
    ("grad can be implicitly created only for scalar outputs", lambda: leaf(1.0, 2.0).backward()),
    ("Mismatch in shape", lambda: leaf(1.0, 2.0).backward(sg.ones(3))),
    ("a leaf Variable that requires grad is being used in an in-place operation", lambda: leaf(1.0).add_(1)),
    (
        "a view of a leaf Variable that requires grad is being used in an in-place operation",
        lambda: leaf(1.0)[:1].add_(1),
    ),
    ("modified by an inplace operation", changed_after_saving),
    ("which is output 0 of Add, is at version 1; expected version 0", changed_after_saving),
    ("FloatTensor [1]] is at version 1; expected version 0", leaf_changed_through_detach),
    ("detach", lambda: leaf(1.0)[:1].detach_()),
    ("retain_grad", lambda: sg.ones(1).retain_grad()),
    ("size", lambda: assigned(sg.ones(2), "grad", sg.ones(3))),
    ("dtype", lambda: assigned(sg.ones(2), "grad", sg.ones(2, dtype=sg.float64))),
    ("multiple views", lambda: (sg.ones(2, 2, requires_grad=True) * 1).split(1)[0].add_(1)),
    ("no_grad mode", view_without_recording),
    ("custom Function", lambda: Viewed.apply(leaf(1.0) * 1).add_(1)),
    (
        "more than one element of the written-to tensor refers to a single memory location",
        lambda: sg.ones(1).expand(2).add_(1),
    ),
    ("doesn't match the broadcast shape", lambda: sg.ones(1).add_(sg.ones(2))),
    ("can't be cast", lambda: T([1]).mul_(1.5)),
    ("out=", lambda: sg.add(leaf(1.0), 1, out=sg.ones(1))),
    ("freed", lambda: [y := leaf(1.0).exp(), y.backward(), y.grad_fn._saved_result]),
    ("does not require grad and does not have a grad_fn", lambda: sg.ones(1).backward()),
    ("Trying to backward through the graph a second time", twice),
    ("retain_graph=True", twice),
    ("cannot be empty", lambda: leaf(1.0).backward(inputs=[])),
    ("appears to not have been used in the graph", lambda: sg.autograd.grad(leaf(1.0) * 2, leaf(1.0))),
    ("does not require grad", lambda: sg.autograd.grad(leaf(1.0) * 2, sg.ones(1))),
    ("got 2 tensors and 1 gradients", lambda: sg.autograd.backward([leaf(1.0), leaf(1.0)], [sg.ones(1)])),
    (
        "Jacobian mismatch",
        lambda: sg.autograd.gradcheck(lambda x: x.detach() * x, leaf(1.0).double().detach().requires_grad_()),
    ),
    (
        "strict",
        lambda: sg.autograd.functional.jacobian(
            lambda x: sg.ones(1, requires_grad=True), leaf(1.0), strict=True
        ),
    ),
    ("vector v", lambda: sg.autograd.functional.vjp(lambda x: x * 2, leaf(1.0, 2.0))),
    ("not implemented", lambda: (leaf(1.0) // 2).backward()),
    (
        "cannot register a hook on a tensor that doesn't require gradient",
        lambda: sg.ones(1).register_hook(print),
    ),
    ("changed the size of value", changed_hook),
    ("non-leaf", lambda: (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)),
    ("incorrect number of values", node_hook),
    (
        "incorrect number of gradients (expected 2, got 1)",
        lambda: OfTwo.apply(leaf(1.0), leaf(1.0)).backward(),
    ),
    ("invalid gradient at index 0", lambda: Doubled.apply(leaf(1.0, 2.0)).sum().backward()),
    ("expected Variable or None", lambda: Number.apply(leaf(1.0)).backward()),
    ("different than None", lambda: ForNumber.apply(leaf(1.0), 2).backward()),
    ("once_differentiable", once),
    ("dirty", lambda: Dirty.apply(leaf(1.0) * 1)),
    ("inference tensor", lambda: made_in_inference().add_(1)),
    ("Inference tensors cannot be saved for backward", lambda: made_in_inference() * leaf(1.0)),
    ("version counter", lambda: made_in_inference()._version),
    ("expected sequence of length 2", lambda: T([[1, 2], [3]])),
    ("step must be greater than zero", lambda: sg.ones(3)[::-1]),
    ("can't assign", lambda: sg.ones(2).__setitem__(0, [1.0])),
    ("requires grad", lambda: leaf(1.0).numpy()),
    ("detach().numpy()", lambda: np.asarray(leaf(1.0))),
    ("expected np.ndarray", lambda: sg.from_numpy([1.0])),
    ("cannot be converted to Scalar", lambda: sg.ones(2).item()),
    ("ambiguous", lambda: bool(sg.ones(2))),
    ("0-d tensor", lambda: len(T(1.0))),
    ("graph leaves", lambda: copy.deepcopy(leaf(1.0) * 2)),
    ("Missing key(s)", lambda: load({})),
    ("Unexpected key(s)", lambda: load({**nn.Linear(2, 1).state_dict(), "other": sg.ones(1)})),
    ("size mismatch for", lambda: load({**nn.Linear(2, 1).state_dict(), "weight": sg.ones(1)}, False)),
    ("cannot assign", lambda: assigned(nn.Linear(2, 1), "weight", sg.ones(1))),
    ("'Linear' object has no attribute 'foo'", lambda: nn.Linear(2, 1).foo),
    ("Target 3 is out of bounds.", lambda: F.cross_entropy(sg.ones(1, 3), T([3]))),
    ("empty parameter list", lambda: sg.optim.SGD([], 0.1)),
    (
        "more than one parameter group",
        lambda: sg.optim.SGD([{"params": [p := leaf(1.0)]}, {"params": [p]}], 0.1),
    ),
    (
        "doesn't match the size",
        lambda: sg.optim.SGD([leaf(1.0)], 0.1).load_state_dict(
            sg.optim.SGD([leaf(1.0), leaf(1.0)], 0.1).state_dict()
        ),
    ),
    ("must match the size", lambda: sg.ones(3) + sg.ones(2)),
    ("shapes cannot be multiplied", lambda: sg.ones(2, 3) @ sg.ones(2, 3)),
    ("invalid for input of size", lambda: sg.ones(6).reshape(4)),
    ("only one dimension can be inferred", lambda: sg.ones(6).reshape(-1, -1)),
    ("view size is not compatible", lambda: sg.ones(2, 3).t().view(6)),
    ("expanded size", lambda: sg.ones(2).expand(3)),
    ("same number of dimensions", lambda: sg.cat([sg.ones(2), sg.ones(2, 2)])),
    ("Sizes of tensors must match except in dimension 0", lambda: sg.cat([sg.ones(2, 2), sg.ones(2, 3)])),
    ("equal size", lambda: sg.stack([sg.ones(2), sg.ones(3)])),
    ("1D tensors expected", lambda: sg.dot(sg.ones(2, 2), sg.ones(2))),
    ("'Tensor' object has no attribute 'foo'", lambda: sg.ones(1).foo),
    ("ZeroDivisionError", lambda: T([1]) // 0),
]


def _cases():
    for words, program in WORDS:
        marks = [pytest.mark.host] if words in ("requires grad", "detach().numpy()") else []
        yield pytest.param(words, program, id=words, marks=marks)


@pytest.mark.parametrize(("words", "program"), list(_cases()))
def test_words(words, program):
    with pytest.raises(Exception) as caught:  # noqa: B017  (the types are compared with PyTorch's in rows.py)
        program()
    assert words.lower() in str(caught.value).lower()


def test_warnings():
    with pytest.warns(UserWarning, match="not a leaf"):
        assert (leaf(1.0) * 2).grad is None
    with pytest.warns(UserWarning, match=r"detach\(\)"):
        T(sg.ones(1))
    with pytest.warns(UserWarning, match="broadcasting"):
        F.mse_loss(sg.ones(2), sg.ones(2, 1))
