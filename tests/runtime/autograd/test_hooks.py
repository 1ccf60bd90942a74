"""Hooks on tensors, nodes and saved values."""

from __future__ import annotations

import pytest

import srcgrad as sg


def leaf(*values: float) -> sg.Tensor:
    return sg.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


def test_the_order_in_which_hooks_run():
    a, order = leaf(2.0), []
    b = a * 3
    b.register_hook(lambda g: order.append("tensor"))
    b.grad_fn.register_prehook(lambda grads: order.append("before the node"))
    b.grad_fn.register_hook(lambda inputs, outputs: order.append("after the node"))
    a.register_hook(lambda g: order.append("leaf"))
    a.register_post_accumulate_grad_hook(lambda p: order.append(("accumulated", p.grad.item())))
    b.backward()
    assert order == ["tensor", "before the node", "after the node", "leaf", ("accumulated", 3.0)]


def test_later_created_nodes_run_first_and_leaves_as_soon_as_complete():
    a, order = leaf(2.0), []
    u, v = a * 2, a * 3
    u.register_hook(lambda g: order.append("u"))
    v.register_hook(lambda g: order.append("v"))
    (u + v).backward()
    assert order == ["v", "u"]


def test_a_retained_gradient_is_the_one_after_all_hooks():
    a = leaf(2.0)
    b = a * 3
    b.register_hook(lambda g: g * 2)
    b.retain_grad()
    b.register_hook(lambda g: g + 1)
    (b * b).backward()
    assert b.grad.item() == 25.0 and a.grad.item() == 75.0


def test_after_a_change_in_place_old_hooks_see_the_old_value():
    a, seen = leaf(2.0), []
    y = a * 3
    y.register_hook(lambda g: seen.append(("old", g.item())))
    y.mul_(2)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    y.backward()
    assert seen == [("new", 1.0), ("old", 2.0)]


def test_recording_is_off_in_hooks_unless_the_graph_is_built():
    a, modes = leaf(2.0), []
    a.register_hook(lambda g: modes.append((sg.is_grad_enabled(), g.requires_grad)))
    (a * a).backward()
    sg.autograd.grad(a * a * a, a, create_graph=True)
    assert modes == [(False, False), (True, True)]


def test_wrong_results_of_hooks_are_refused():
    a = leaf(1.0)
    with a.register_hook(lambda g: 1.0), pytest.raises(TypeError):
        (a * 2).backward()
    with (
        a.register_hook(lambda g: sg.ones(3)),
        pytest.raises(RuntimeError, match="changed the size of value"),
    ):
        (a * 2).backward()
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        sg.ones(1).register_hook(lambda g: g)


def test_saved_tensors_hooks_pack_and_unpack():
    a, packed = leaf(3.0), []
    with sg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t.detach() * 2, lambda t: t):
        y = a * a
    y.backward()
    assert len(packed) == 2 and a.grad.item() == 12.0


def test_multi_grad_hook():
    a, b, seen = leaf(1.0), leaf(2.0), []
    sg.autograd.graph.register_multi_grad_hook((a, b), lambda gs: seen.append([g.item() for g in gs]))
    (a * b).backward()
    assert seen == [[2.0, 1.0]]


def test_anomaly_mode_names_the_line():
    x = sg.tensor([0.0], requires_grad=True)
    with pytest.warns(UserWarning):
        with sg.autograd.detect_anomaly():
            y = (x.sqrt() * 0).sum()
            with (
                pytest.warns(UserWarning, match="x.sqrt\\(\\)"),
                pytest.raises(RuntimeError, match="SqrtBackward0"),
            ):
                y.backward()
