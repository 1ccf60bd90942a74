"""Values, gradients, dtypes and names of nodes beside PyTorch's.

Where PyTorch is not installed,
what version 2.13 answered stands in `torch_2_13.json`; with PyTorch installed,
`python tests/runtime/eager/test_against_torch.py` writes that file anew.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import srcgrad as sg

try:
    import torch
except ImportError:
    torch = None

RECORDED = Path(__file__).with_name("torch_2_13.json")
_RECORDED: dict[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def answer(compute: Callable[..., Any], *arguments: Any) -> Any:
    """What PyTorch says: asked now, or as it was recorded."""
    if torch is not None:
        return json.loads(json.dumps(compute(torch, *arguments)))
    return _RECORDED[f"{compute.__name__} {arguments}"]


def ours(compute: Callable[..., Any], *arguments: Any) -> Any:
    return json.loads(json.dumps(compute(sg, *arguments)))


MATRIX = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]
NUMBERS = [1.5, 2.0, 3.25]

ELEMENTWISE = (
    "abs relu exp tanh sigmoid sin cos tan erf atan sinh cosh asinh expm1 floor ceil round trunc sign "
    "square neg sinc"
).split()
POSITIVE = "log sqrt rsqrt log2 log10 log1p reciprocal acosh".split()
EXPRESSIONS = [
    "x.sum()", "x.sum(0)", "x.sum(1, "
                           "keepdim=True)", "x.mean(-1)", "x.prod()", "x.prod(1)", "x.max()",
                           "x.max(1).values",
    "x.min(0)[0]", "x.amax(1)", "x.std()", "x.var(0)", "x.norm()", "x.norm(3)", "x.norm(p=2, "
                                                                                "dim=1)", "x.cumsum(1)",
    "x.cumprod(1)", "x.logsumexp(1)", "x.softmax(1)", "x.log_softmax(0)", "x.median()", "x.sort(1).values",
    "x.topk(2)[0]",
    "x.t()", "x.permute(1, "
             "0)", "x.reshape(3, 2)", "x.flatten()", "x.unsqueeze(1)", "x[0]", "x[:, 1]", "x[..., ::2]",
    "x[[0, "
    "1]]", "x[x > "
           "0]", "x.expand(2, 2, 3)", "x.repeat(2, 1)", "x.flip(0)", "x.roll(1)", "x.tril()", "x.diagonal()",
    "x.split(1)[1]", "x.unbind(1)[2]", "x.narrow(1, 1, "
                                       "2)", "x.masked_fill(x > 0, 7.0)", "x.clamp(-1, 1)", "m.cat([x, x])",
    "m.stack([x, x * 3], "
    "1)", "x @ x.t()", "m.where(x > 0, x, x * 2)", "x.clone()", "x.float()", "x**2", "x / 2", "3 / x",
    "1 - "
    "x", "x * x", "-x", "x % 2", "m.remainder(x, -1.5)", "m.fmod(x, 1.5)", "m.maximum(x, x * 0)", "x @ x[0]",
    "m.addmm(x, x @ x.t(), "
    "x)", "x.gather(1, m.tensor([[0, 1], [2, 2]]))", "x.index_select(1, m.tensor([2, 0]))",
    "(x * "
    "1).mul_(3).exp_()", "m.nn.functional.gelu(x)", "m.nn.functional.silu(x)", "m.nn.functional.softplus(x)",
    "m.nn.functional.layer_norm(x, "
    "(3,))", "m.nn.functional.mse_loss(x, x * 2)", "m.nn.functional.leaky_relu(x)",
    "m.nn.functional.cross_entropy(x, m.tensor([0, "
    "2]))", "m.nn.functional.hardswish(x)", "m.nn.functional.elu(x)",
]  # fmt: skip
LAYERS = {
    "m.nn.Linear(3, 2)": (4, 3),
    "m.nn.Conv1d(2, 4, 3, stride=2, padding=1)": (2, 2, 7),
    "m.nn.Conv2d(2, 4, (2, 3), stride=(1, 2), padding=(1, 0), groups=2)": (2, 2, 5, 6),
    "m.nn.Conv2d(1, 2, 3, padding='same')": (1, 1, 5, 5),
    "m.nn.ConvTranspose2d(2, 4, 3, stride=2, groups=2)": (1, 2, 3, 3),
    "m.nn.MaxPool2d(3, 2, ceil_mode=True)": (1, 1, 6, 6),
    "m.nn.AvgPool2d(3, 2, padding=1, count_include_pad=False)": (1, 1, 5, 5),
    "m.nn.AdaptiveAvgPool2d((2, 3))": (1, 2, 5, 7),
    "m.nn.AdaptiveMaxPool2d((2, 3))": (1, 2, 5, 7),
    "m.nn.BatchNorm1d(3)": (4, 3),
    "m.nn.BatchNorm2d(2)": (2, 2, 3, 3),
    "m.nn.LayerNorm((2, 3))": (4, 2, 3),
    "m.nn.GroupNorm(2, 4)": (2, 4, 3),
    "m.nn.InstanceNorm1d(2)": (2, 2, 4),
    "m.nn.RNN(2, 3, nonlinearity='relu', num_layers=2)": (4, 2, 2),
    "m.nn.LSTM(2, 3, num_layers=2, bidirectional=True, batch_first=True)": (2, 3, 2),
    "m.nn.GRU(2, 3)": (3, 2, 2),
    "m.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)": (3, 2, 4),
    "m.nn.PReLU()": (5,),
    "m.nn.Mish()": (5,),
}
OPTIMIZERS = [
    "SGD(ps, lr=0.02, momentum=0.9, "
    "nesterov=True)", "SGD(ps, lr=0.02, momentum=0.9, dampening=0.1, weight_decay=0.1)",
    "Adam(ps, lr=0.05, amsgrad=True, "
    "weight_decay=0.1)", "AdamW(ps, lr=0.05)", "Adadelta(ps)", "Adamax(ps)", "RAdam(ps)",
    "RMSprop(ps, lr=0.02, centered=True, "
    "momentum=0.9)", "Adagrad(ps, lr=0.1, lr_decay=0.1)", "NAdam(ps)", "Rprop(ps)",
    "ASGD(ps, "
    "lr=0.05)", "LBFGS(ps, lr=0.1, max_iter=4)", "LBFGS(ps, line_search_fn='strong_wolfe', max_iter=3)",
]  # fmt: skip


def close(got: Any, want: Any) -> bool:
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(close, got, want))
    if isinstance(want, float):
        both_nan = math.isnan(got) and math.isnan(want)
        return both_nan or math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-9)
    return bool(got == want)


def weighted(m: Any, y: Any) -> Any:
    return (y * m.arange(1, y.numel() + 1).to(y.dtype).reshape(y.shape)).sum()


def outcome(m: Any, expression: str, data: Any) -> list[Any]:
    x = m.tensor(data, dtype=m.float64, requires_grad=True)
    y = eval(expression, {"x": x, "m": m})
    name = type(y.grad_fn).__name__
    weighted(m, y).backward()
    return [y.tolist(), x.grad.tolist(), name, str(y.dtype).rpartition(".")[2]]


@pytest.mark.parametrize("expression", [f"x.{n}()" for n in ELEMENTWISE] + EXPRESSIONS)
def test_expression(expression):
    assert close(ours(outcome, expression, MATRIX), answer(outcome, expression, MATRIX))


@pytest.mark.parametrize("name", POSITIVE)
def test_function_of_positive_numbers(name):
    assert close(ours(outcome, f"x.{name}()", NUMBERS), answer(outcome, f"x.{name}()", NUMBERS))


def filled(m: Any, module: Any) -> Any:
    module.double()
    k = 1
    with m.no_grad():
        for p in module.parameters():
            numbers = [0.5 * math.sin(k + i) for i in range(p.numel())]
            p.copy_(m.tensor(numbers, dtype=m.float64).reshape(p.shape))
            k += p.numel()
    return module


def layer_outcome(m: Any, expression: str, shape: tuple[int, ...]) -> list[Any]:
    module = filled(m, eval(expression, {"m": m}))
    numbers = [math.sin(1 + i) for i in range(math.prod(shape))]
    x = m.tensor(numbers, dtype=m.float64).reshape(shape).requires_grad_()
    y = module(x)
    y = y[0] if isinstance(y, tuple) else y
    weighted(m, y).backward()
    buffers = [b.tolist() for b in module.buffers()]
    return [
        y.tolist(),
        x.grad.tolist(),
        [p.grad.tolist() for p in module.parameters()],
        buffers,
        repr(module),
    ]


@pytest.mark.parametrize("expression", LAYERS)
def test_layer(expression):
    got, want = (ask(layer_outcome, expression, LAYERS[expression]) for ask in (ours, answer))
    assert close(got[:4], want[:4])
    assert got[4] == want[4] or "Transformer" in expression


def path(m: Any, expression: str) -> list[Any]:
    p = m.tensor([1.0, -2.0, 3.0], dtype=m.float64, requires_grad=True)
    q = m.tensor([[0.5]], dtype=m.float64, requires_grad=True)
    optimizer = eval("O." + expression, {"O": m.optim, "ps": [p, q]})

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (
            (m.tensor([2.0, 1.0, 0.5], dtype=m.float64) * p * p).sum()
            + 0.1 * (p**4).sum()
            + (q**2).sum() * p[0]
        )
        loss = loss + q.exp().sum() + (q**4).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(5)]
    return [losses, p.tolist(), q.tolist()]


@pytest.mark.parametrize("expression", OPTIMIZERS)
def test_optimizer(expression):
    assert close(ours(path, expression), answer(path, expression))


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def kinds(m: Any, first: str, second: str) -> list[str]:
    a, b = m.ones(2, dtype=getattr(m, first)), m.ones(2, dtype=getattr(m, second))
    zero = m.ones((), dtype=getattr(m, second))
    return [str(t.dtype).rpartition(".")[2] for t in (a + b, a + zero, a / b, a * 2, a * 1.5)]


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_promotion(first, second):
    assert ours(kinds, first, second) == answer(kinds, first, second)


PRINTED = [
    "m.tensor([1e-5, "
    "1.0])", "m.tensor([0.5, 5000.0])", "m.arange(1001)", "m.zeros(20, 60)", "m.arange(30) / 7",
    "m.tensor([float('nan'), 0.5, "
    "float('inf')])", "m.tensor([float('nan'), 1.0])", "m.zeros(2, 0)", "m.tensor([1 + 2j])",
    "m.ones(2, 2, "
    "dtype=m.float64)", "m.ones(20, requires_grad=True) / 3", "m.tensor([[True, False]])", "m.tensor(3)",
    "m.zeros(2, 2, "
    "2)", "m.nn.Parameter(m.ones(2))", "m.tensor([123456.7])", "m.eye(3) * 1e-7", "m.tensor([])",
]  # fmt: skip


def printed(m: Any, expression: str) -> str:
    return repr(eval(expression, {"m": m})).replace("srcgrad.", "torch.")


@pytest.mark.host
@pytest.mark.parametrize("expression", PRINTED)
def test_printed_form(expression):
    assert ours(printed, expression) == answer(printed, expression)


SAVING = "a + b, a * b, a / b, a**b, a.exp(), a.log(), a.sum(), a.max(), a.softmax(0), a.std(), a @ b".split(
    ", "
)


def complains(m: Any, operation: str, which: str) -> bool:
    """Whether backward notices that `which` was changed after the operation."""
    leaves = [m.tensor(v, requires_grad=True) for v in ([0.5, 0.25], [1.0, 2.0])]
    a, b = (t * 1 for t in leaves)
    y = eval(operation, {"a": a, "b": b})
    with m.no_grad(), warnings.catch_warnings():
        {"a": a, "b": b, "y": y}[which].detach().add_(1)
    try:
        y.sum().backward()
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("operation", SAVING)
@pytest.mark.parametrize("which", list("aby"))
def test_saved_values_are_checked_alike(operation, which):
    assert ours(complains, operation, which) == answer(complains, operation, which)


def questions() -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Everything that is asked."""
    asked: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    asked += [(outcome, (e, MATRIX)) for e in [f"x.{n}()" for n in ELEMENTWISE] + EXPRESSIONS]
    asked += [(outcome, (f"x.{n}()", NUMBERS)) for n in POSITIVE]
    asked += [(layer_outcome, (e, shape)) for e, shape in LAYERS.items()]
    asked += [(path, (e,)) for e in OPTIMIZERS]
    asked += [(kinds, (a, b)) for a in DTYPES for b in DTYPES]
    asked += [(printed, (e,)) for e in PRINTED]
    return asked + [(complains, (o, w)) for o in SAVING for w in "aby"]


if __name__ == "__main__":
    answers = {f"{f.__name__} {arguments}": f(torch, *arguments) for f, arguments in questions()}
    RECORDED.write_text(json.dumps(answers, indent=0) + "\n")
