"""Long graphs, freed memory, no reference cycles."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
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


class Shifted(sg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x.add_(1))
        ctx.save_for_backward(y := x.exp())
        return x, y

    @staticmethod
    def backward(ctx, g, h):
        return g + h * ctx.saved_tensors[0]


def _twice_differentiated(x):
    (g,) = sg.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()


def _watched(x):
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (y[0] * y.view(-1).sum()).sum().backward()


def _packed(x):
    packed = sg.nn.utils.rnn.pack_sequence([x, x[:2]])
    sg.nn.LSTM(3, 2, bidirectional=True)(packed)[0].data.sum().backward()


COMPILED = sg.compile(lambda a: (np.tanh(a) ** 2).sum())
PROGRAMS = {
    "function": lambda x: sum(Shifted.apply(x * 1)).sum().backward(),
    "double": _twice_differentiated,
    "hooks": _watched,
    "packed": _packed,
    "bridge": lambda x: COMPILED(x).backward(),
    "attention": lambda x: sg.nn.MultiheadAttention(3, 1)(x, x, x)[0].sum().backward(),
    "numpy": lambda x: np.sum(np.concatenate([np.sin(x), x])).backward(),
    "jacobian": lambda x: sg.autograd.functional.jacobian(lambda a: a.exp(), x.detach()),
}


@pytest.mark.host
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_left_to_the_collector(name):
    for _ in range(2):  # the first run compiles and fills caches
        gc.collect()
        gc.disable()
        try:
            PROGRAMS[name](sg.randn(3, 3, requires_grad=True))
            left = gc.collect()
        finally:
            gc.enable()
    assert left == 0


def test_leaf_gradients_own_their_memory():
    x, y = sg.ones(2, 3, requires_grad=True), sg.ones(2, 3, requires_grad=True)
    (x + y).sum().backward()
    x.grad.add_(1)
    assert y.grad.tolist() == [[1.0] * 3] * 2
    assert x.grad.tolist() == [[2.0] * 3] * 2
