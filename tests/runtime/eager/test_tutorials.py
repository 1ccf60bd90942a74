"""Every statement of the two tutorials that the eager half comes from, as PyTorch really behaves."""

from __future__ import annotations

import warnings

import pytest

import srcgrad as sg


def leaf(*values: float) -> sg.Tensor:
    return sg.tensor(list(values), requires_grad=True)


def test_creation_with_requires_grad():
    x = sg.ones(2, 3, requires_grad=True)
    y = sg.ones(6)
    assert x.requires_grad and not y.requires_grad
    assert y.requires_grad_(True) is y and y.requires_grad


def test_the_flag_of_a_computed_tensor_cannot_be_switched_off():
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_only_floating_point_tensors_can_require_gradients(dtype):
    with pytest.raises(RuntimeError, match="floating point"):
        sg.zeros(2, dtype=dtype, requires_grad=True)


def test_a_result_is_untracked_only_if_all_leaves_are():
    assert not (sg.ones(2) * sg.ones(2)).requires_grad
    assert (sg.ones(2) * leaf(1.0, 2.0)).requires_grad


def test_detach_shares_memory_and_a_later_change_is_detected():
    x = sg.ones(1, requires_grad=True)
    y = x * x * 4
    detached = x.detach()
    assert not detached.requires_grad
    detached *= 100
    assert x.tolist() == [100.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_no_grad_with_and_without_parentheses():
    x = leaf(1.0)
    with sg.no_grad():
        assert not (x * 2).requires_grad
    with sg.no_grad:
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_backward_of_a_scalar_needs_no_argument_and_of_others_a_matching_one():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (x * 3).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 3).backward(sg.ones(3))
    x.grad = None
    (x * 3).backward(sg.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [3.0, 30.0]


def test_gradients_accumulate_until_they_are_zeroed():
    x = leaf(1.0)
    for _ in range(2):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [4.0]
    x.grad.data.zeros_()
    assert x.grad.tolist() == [0.0]


@pytest.mark.host
def test_a_branch_that_does_not_lead_to_the_root_keeps_none():
    a, b, d, e = (sg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0, 5.0))
    c = a * b
    f = c * d
    g = e * c
    f.backward()
    assert repr(a.grad) == "tensor(12.)" and e.grad is None
    with pytest.raises(RuntimeError, match="second time"):
        g.backward()


@pytest.mark.host
def test_grad_fn_and_its_printed_form():
    y = leaf(1.0, 2.0) + 2
    assert repr(y) == "tensor([3., 4.], grad_fn=<AddBackward0>)"
    assert leaf(1.0).grad_fn is None


def test_leaves_refuse_in_place_operations():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x *= 2
    with sg.no_grad():
        x *= 2
    assert x.tolist() == [2.0]


@pytest.mark.host
def test_data_shares_memory_and_gives_the_documented_wrong_number():
    x = sg.ones(1, requires_grad=True)
    y = x * x * 4
    x.data *= 100
    y.backward()
    assert repr(x) == "tensor([100.], requires_grad=True)"
    assert repr(x.grad) == "tensor([800.])"


@pytest.mark.host
def test_rebinding_leaves_the_old_leaf_right():
    old = x = sg.ones(1, requires_grad=True)
    y = x * x * 4
    x = x * 100
    y.backward()
    assert repr(x) == "tensor([100.], grad_fn=<MulBackward0>)" and old.grad.tolist() == [8.0]
    with pytest.warns(UserWarning, match="not a leaf"):
        assert x.grad is None


def test_is_leaf():
    x = leaf(1.0)
    assert x.is_leaf and not (x * 2).is_leaf and (x * 2).detach().is_leaf


def test_dir_lists_the_public_attributes():
    z = leaf(1.0) ** 2
    assert {"is_leaf", "grad", "grad_fn", "data", "requires_grad", "backward", "detach"} <= set(dir(z))


def test_the_walk_through_next_functions_ends_at_the_leaves():
    x, y = sg.rand(5, 5, requires_grad=True), sg.rand(5, 5, requires_grad=True)
    z = x**2 + y**3
    names = [type(f).__name__ for f, _ in z.grad_fn.next_functions]
    assert names == ["PowBackward0", "PowBackward0"]
    ends = [f.next_functions[0][0] for f, _ in z.grad_fn.next_functions]
    assert [type(e).__name__ for e in ends] == ["AccumulateGrad", "AccumulateGrad"]
    assert ends[0].variable is x and ends[1].variable is y
    z.backward(sg.ones_like(x))
    assert sg.allclose(x.grad, 2 * x) and sg.allclose(y.grad, 3 * y * y)


def test_sum_of_random_matrices():
    x, y = sg.rand(5, 5, requires_grad=True), sg.rand(5, 5, requires_grad=True)
    a = sg.sum(x + y)
    assert type(a.grad_fn).__name__ == "SumBackward0"
    a.backward()
    assert x.grad.tolist() == y.grad.tolist() == [[1.0] * 5] * 5


def test_variable_is_the_old_name():
    t = sg.ones(2)
    v = sg.autograd.Variable(t, requires_grad=True)
    assert type(v) is sg.Tensor and isinstance(t, sg.autograd.Variable) and v.requires_grad
    assert v.data_ptr() == t.data_ptr()


def test_four_packages():
    assert sg.tensor and sg.autograd.grad and sg.nn.Linear and sg.optim.SGD


def test_nothing_warns_without_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf(1.0, 2.0)
        (x.exp() * x).sum().backward()
