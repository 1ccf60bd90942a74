"""Tensors on a device that is not the host: nothing moves there or back unasked.

The device is a stand-in (strict.py) that refuses implicit conversion to NumPy, as CuPy does.
"""

from __future__ import annotations

import inspect
import operator
import re
from pathlib import Path

import cupy_names
import numpy as np
import pytest

import srcgrad as sg

pytestmark = pytest.mark.host
F = sg.nn.functional
D = "strict"


def values(*shape: int) -> sg.Tensor:
    t = sg.arange(float(np.prod(shape)), device=D) / 7 + 0.3
    return t.reshape(shape).detach().requires_grad_()


def there(t: sg.Tensor) -> bool:
    return t.device.type == D and type(t._array).__name__ == "StrictArray"


def indices(*numbers: object) -> sg.Tensor:
    return sg.tensor(list(numbers), device=D)


def changed_in_place(a: sg.Tensor) -> sg.Tensor:
    y = a * 1
    y[0] = 5.0
    y[:, 0].add_(1)
    y[y > 2] = 0
    return y


OPERATIONS = [
    "a * "
    "b", "a / "
         "b", "a - 1", "1 - a", "a**2", "a**b", "a @ b.t()", "a.exp()", "a.tanh()", "a.sigmoid()", "a.relu()",
    "a.sum()", "a.sum(1)", "a.mean()", "a.prod()", "a.max()", "a.max(1).values", "a.var()", "a.std()",
    "a.norm()",
    "a.softmax(1)", "a.log_softmax(1)", "a.logsumexp(1)", "a.cumsum(1)", "a.sort(1).values", "a.t()",
    "a.reshape(6)",
    "a[0]", "a[:, "
            "1:]", "a[a > "
                   "1]", "a[indices(0, 1)]", "sg.cat([a, b])", "sg.stack([a, b])", "sg.where(a > b, a, b)",
    "a.clamp(0.5, 1.0)", "a.gather(1, indices([0], [1]))", "a.expand(2, 2, 3)", "a.repeat(2, 1)", "a.flip(0)",
    "a.split(1)[0]", "a.unbind()[0]", "a.masked_fill(a > 1, 0.0)", "F.gelu(a)", "F.mse_loss(a, b)",
    "F.cross_entropy(a, indices(0, "
    "2))", "F.layer_norm(a, (3,))", "F.batch_norm(a, None, None, training=True)",
    "F.linear(a, "
    "b)", "F.conv1d(a[None], b[:, None, :2], groups=2)", "F.conv2d(a[None, None], b[None, None, :, :2])",
    "F.max_pool1d(a[None], "
    "2)", "F.avg_pool1d(a[None], 2)", "F.embedding(indices(0, 1), a)", "F.dropout(a, 0.5)",
    "F.binary_cross_entropy_with_logits(a, b / 5)", "(a * 1).mul_(2)", "changed_in_place(a)", "a.double()",
    "a.topk(1).values", "sg.einsum('ij,ij->i', a, "
                        "b)", "np.sin(a)", "np.sum(a, axis=0)", "np.concatenate([a, b])",
    "a.clone()", "a.tril()", "a.diagonal()", "F.pad(a, (1, "
                                             "1))", "F.softplus(a)", "sg.maximum(a, b)", "a.abs()",
    "a.erf()", "a.amax(1)", "F.adaptive_avg_pool1d(a[None], "
                            "2)", "F.smooth_l1_loss(a, b)", "a.floor()", "a.roll(1)",
    "a.index_select(0, indices(1))", "F.normalize(a)", "F.group_norm(a[None], 1)",
]  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_and_gradient_stay_on_the_device(operation):
    a, b = values(2, 3), values(2, 3)
    scope = {
        "a": a,
        "b": b,
        "sg": sg,
        "np": np,
        "F": F,
        "indices": indices,
        "changed_in_place": changed_in_place,
    }
    y = eval(operation, scope)
    assert there(y)
    (y * y).sum().backward()
    if a.grad is not None:
        assert there(a.grad)


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"]
)
def test_training_step(name):
    layers = [sg.nn.Linear(3, 4), sg.nn.BatchNorm1d(4), sg.nn.ReLU(), sg.nn.Linear(4, 2)]
    net = sg.nn.Sequential(*layers).to(D)
    optimizer = getattr(sg.optim, name)(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(net(values(4, 3).detach()), indices(0, 1, 0, 1)).backward()
        optimizer.step()
    assert all(there(p) and there(p.grad) for p in net.parameters())


def test_recurrent_layers_and_attention():
    lstm = sg.nn.LSTM(2, 3).to(D)
    lstm(values(2, 1, 2))[0].sum().backward()
    assert there(lstm.weight_hh_l0.grad)
    attention = sg.nn.MultiheadAttention(4, 2).to(D)
    x = values(2, 1, 4)
    attention(x, x, x)[0].sum().backward()
    assert there(x.grad)


def test_second_derivative():
    z = values(3)
    (g,) = sg.autograd.grad((z**3).sum(), z, create_graph=True)
    (h,) = sg.autograd.grad(g.sum(), z)
    assert there(h)


def test_moving_is_explicit_and_differentiable():
    x = sg.ones(3, requires_grad=True)
    x.to(D).mul(2).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [2.0, 2.0, 2.0]


def test_mixed_devices_are_refused():
    with pytest.raises(RuntimeError, match="same device"):
        values(2) + sg.ones(2)


def test_conversion_to_numpy_is_refused():
    with pytest.raises(TypeError, match="cpu"):
        values(2).detach().numpy()


def test_printing_names_the_device():
    assert repr(values(1)) == "tensor([0.3000], device='strict:0', requires_grad=True)"


def test_cuda_without_cupy_says_what_to_install():
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="srcgrad\\[cupy\\]"):
            sg.ones(1, device="cuda")
    else:
        pytest.skip("CuPy is installed here")


ON_THE_HOST = {"unstack", "block", "seterr"}
"""The key of a rule, a function that is looked up, and NumPy's warnings: none is called with arrays."""


def test_every_numpy_function_used_exists_in_cupy():
    _, names = cupy_names.read()
    folder = Path(inspect.getfile(sg.Tensor)).parent
    patterns = ("tensor*.py", "arrays.py", "autograd/*.py", "nn/*.py", "optim/*.py", "rules/neural*.py")
    sources = "\n".join(f.read_text() for pattern in patterns for f in folder.glob(pattern))
    used = set(re.findall(r"\bnp\.((?:linalg\.|fft\.|lib\.stride_tricks\.)?[a-z_0-9]+)", sources))
    assert len(used) > 150 and used - set(names) == ON_THE_HOST


def test_the_stand_in_refuses_what_cupy_refuses():
    a = values(2, 3)._array
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(a)
    with pytest.raises(TypeError, match="CuPy has none"):
        np.unstack(a)
    with pytest.raises(TypeError, match="no parameters"):
        np.sum(a, where=True)
    with pytest.raises(TypeError, match="host array"):
        a + np.ones((2, 3))
    with pytest.raises(TypeError):
        np.add.at(a, (0, slice(None)), 1.0)
    assert not hasattr(a, "tocoo") and not hasattr(a.flags, "writeable")


@pytest.mark.parametrize("f", [operator.add, operator.truediv, operator.pow, operator.matmul])
def test_device_arrays_beside_tensors(f):
    a, t = values(2, 2)._array, values(2, 2)
    for y in (f(a, t), f(t, a)):
        assert there(y) and y.requires_grad
    assert there(a // t) and there(t // a)
