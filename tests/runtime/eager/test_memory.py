"""Long graphs, freed memory, no reference cycles."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import srcgrad as sg


@pytest.mark.host
def test_a_million_nodes_run_backward_and_are_dropped():
    x = sg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_backward_frees_saved_values_as_it_goes():
    x = sg.ones(100, requires_grad=True)
    middle = x * 2
    seen = weakref.ref(middle._array)
    y = (middle * middle).sum()
    del middle
    assert seen() is not None
    there = []
    x.register_hook(lambda g: there.append(seen() is not None))  # while the backward pass is under way
    y.backward()
    assert there == [False]


def _step(net: sg.nn.Module, optimizer: sg.optim.Optimizer, x: sg.Tensor, y: sg.Tensor) -> None:
    optimizer.zero_grad()
    sg.nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()


@pytest.mark.host
def test_memory_is_flat_over_training_steps_with_the_collector_off():
    net = sg.nn.Sequential(sg.nn.Linear(4, 8), sg.nn.Tanh(), sg.nn.LayerNorm(8), sg.nn.Linear(8, 1))
    optimizer = sg.optim.Adam(net.parameters())
    x, y = sg.randn(16, 4), sg.randn(16, 1)
    gc.collect()
    gc.disable()
    try:
        for _ in range(2500):  # CPython's free lists hold up to 2000 objects of each kind
            _step(net, optimizer, x, y)
        before = sys.getallocatedblocks()  # an array that stays costs a block at least for its header
        for _ in range(10_000):
            _step(net, optimizer, x, y)
        after = sys.getallocatedblocks()
    finally:
        gc.enable()
    assert after - before < 1000


def test_results_that_save_themselves_make_no_cycle():
    gc.collect()
    gc.disable()
    try:
        x = sg.ones(3, requires_grad=True)
        y = x.exp().sigmoid().softmax(0)
        y2 = x * 1
        y2.mul_(2).tanh_()
        y2[0] = 1.0
        dead = weakref.ref(y), weakref.ref(y2)
        del y, y2
        assert dead[0]() is None and dead[1]() is None
    finally:
        gc.enable()


def test_leaf_gradients_own_their_memory():
    x, y = sg.ones(2, 3, requires_grad=True), sg.ones(2, 3, requires_grad=True)
    (x + y).sum().backward()
    x.grad.add_(1)
    assert y.grad.tolist() == [[1.0] * 3] * 2
    assert x.grad.tolist() == [[2.0] * 3] * 2
