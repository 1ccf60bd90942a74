"""First and second derivatives of operations by finite differences, through rules that run on Tensors."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad as sg

F = sg.nn.functional
check, check_twice = sg.autograd.gradcheck, sg.autograd.gradgradcheck


def written(a: sg.Tensor) -> sg.Tensor:
    y = a * 1
    y[0] = a[1] * 2
    y[:, 1].mul_(a[:, 0])
    return y * y


ONE = {
    "tanh": lambda a: a.tanh(), "sigmoid": lambda a: a.sigmoid(), "softmax": lambda a: a.softmax(1),
    "logsumexp": lambda a: a.logsumexp(0), "var": lambda a: a.var(1), "std": lambda a: a.std(),
    "prod": lambda a: a.prod(1), "cumprod": lambda a: a.cumprod(1), "norm": lambda a: a.norm(3),
    "max": lambda a: a.max(1).values * a.max(), "sort": lambda a: a.sort(1).values ** 2,
    "index": lambda a: a[[0, 0, 1]] ** 2, "clamp": lambda a: a.clamp(0.5, 1.5) ** 2, "gelu": F.gelu,
    "layer norm": lambda a: F.layer_norm(a, (3,)), "max pool": lambda a: F.max_pool1d(a[None], 2) ** 2,
    "batch norm": lambda a: F.batch_norm(a, None, None, training=True), "written": written,
    "cross entropy": lambda a: F.cross_entropy(a, sg.tensor([0, 2])), "numpy sum": lambda a: np.sum(a * a,
    axis=0),
    "numpy linalg": np.linalg.norm, "numpy fft": lambda a: np.abs(np.fft.fft(a)) ** 2,
    "eigenvalues": lambda a: sg.linalg.eigh(a @ a.t()).eigenvalues,
    "in place": lambda a: (a * 2).mul_(a).exp_(),
}  # fmt: skip
TWO = {
    "divide": lambda a, b: a / b, "power": lambda a, b: a**b, "matmul": lambda a, b: a @ b.t(),
    "where": lambda a, b: sg.where(a > b, a * b, b * b), "cat": lambda a, b: sg.cat([a, b], 1) ** 2,
    "mse": F.mse_loss, "convolution": lambda a, b: F.conv2d(a[None, None], b[None, None, :, :2], padding=1),
    "transposed": lambda a, b: F.conv_transpose1d(a[None], b[:, None, :2], stride=2, groups=2),
    "numpy stack": lambda a, b: np.stack([a, b]) ** 2, "numpy einsum": lambda a, b: np.einsum("ij,kj->ik", a,
    b),
    "linear": lambda a, b: F.linear(a, b, b[:, 0]), "einsum": lambda a, b: sg.einsum("ij,ij->i", a, b) ** 2,
}  # fmt: skip


def inputs(count: int) -> tuple[sg.Tensor, ...]:
    random = np.random.default_rng(0)
    return tuple(sg.tensor(random.uniform(0.3, 1.7, (2, 3)), requires_grad=True) for _ in range(count))


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_derivatives(name):
    f, xs = (ONE[name], inputs(1)) if name in ONE else (TWO[name], inputs(2))
    assert check(f, xs)
    assert check_twice(f, xs)


def test_third_derivative():
    x = sg.tensor([1.0, 2.0], requires_grad=True)
    (g,) = sg.autograd.grad((x**4).sum(), x, create_graph=True)
    (h,) = sg.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = sg.autograd.grad(h.sum(), x)
    assert k.tolist() == [24.0, 48.0]


def test_complex_gradients_are_conjugated_as_in_pytorch():
    z = sg.tensor([1 + 2j], requires_grad=True)
    (z * z).abs().sum().backward()
    assert np.allclose(z.grad.tolist(), [2 + 4j])
