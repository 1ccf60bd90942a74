"""Losses."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from srcgrad.runtime.arrays import beside, quiet
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import (
    call,
    not_differentiable,
    record_beside,
    record_plain,
    tracked,
)
from srcgrad.runtime.nn.functional_layers import pairwise_distance
from srcgrad.runtime.rules import neural_loss
from srcgrad.runtime.tensor import shape_mismatch, type_name
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_guards import must_be_tensor
from srcgrad.runtime.tensor_math import where
from srcgrad.runtime.tensor_reduce import log_softmax
from srcgrad.runtime.tensor_types import F32, F64, I64
from srcgrad.runtime.tensor_views import broadcast_tensors, unsqueeze

MSE = rule_node("MseLossBackward0", neural_loss.mse)
SMOOTH_L1 = rule_node("SmoothL1LossBackward0", neural_loss.smooth_l1)
HUBER = rule_node("HuberLossBackward0", neural_loss.huber)
BCE = rule_node("BinaryCrossEntropyBackward0", neural_loss.bce)
BCE_LOGITS = rule_node("BinaryCrossEntropyWithLogitsBackward0", neural_loss.bce_with_logits)
SOFT_MARGIN = rule_node("SoftMarginLossBackward0", neural_loss.soft_margin)
NLL = rule_node("NllLossBackward0", neural_loss.nll)

_nll_weights: Any = neural_loss.nll_weights
_over: Any = neural_loss.reduced


def _reduced(values: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return values
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _check(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _legacy(size_average: Any, reduce: Any, reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _pair(input: Tensor, target: Tensor, level: int = 3) -> tuple[Tensor, Tensor]:
    if input._array.shape != target._array.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            "This will likely lead "
            "to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=level,
        )
        try:
            input, target = broadcast_tensors(input, target)
        except ValueError:
            raise shape_mismatch((input._array.shape, target._array.shape)) from None
    if input._array.dtype != target._array.dtype:
        from srcgrad.runtime.tensor_create import convert
        from srcgrad.runtime.tensor_types import result_dtype

        dtype = result_dtype((input._array, target._array))
        input, target = convert(input, dtype), convert(target, dtype)
    return input, target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """The mean of the squared differences."""
    reduction = _legacy(size_average, reduce, reduction)
    _check(reduction)
    if input._array.shape != target._array.shape or input._array.dtype != target._array.dtype:
        input, target = _pair(input, target)
    a = input._array
    if a.dtype is not F32 and a.dtype is not F64:
        return call(MSE, (input, target, reduction))
    result = wrap(MSE.function(a, target._array, reduction))
    if tracked((input, target)):
        record_plain(MSE, result, (input, target), (reduction,))
    return result


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """`|input - target|`: its mean, its sum, or with `reduction="none"` each.

    >>> sg.nn.functional.l1_loss(sg.tensor([1.0, 2.0]), sg.tensor([1.0, 4.0]))
    tensor(1.)
    """
    input, target = _pair(input, target)
    return _reduced((input - target).abs(), _legacy(size_average, reduce, reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """`(input - target)**2 / (2 * beta)` for differences below `beta`, else `|input - target| - beta / 2`.

    >>> sg.nn.functional.smooth_l1_loss(sg.tensor([3.0]), sg.tensor([0.0]))
    tensor(2.5000)
    """
    input, target = _pair(input, target)
    _check(reduction)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return call(SMOOTH_L1, (input, target, reduction, beta))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """`(input - target)**2 / 2` for differences below `delta`, else `delta * (|input - target| - delta / 2)`.

    A `delta` that isn't positive is a `RuntimeError`.

    >>> sg.nn.functional.huber_loss(sg.tensor([3.0]), sg.tensor([0.0]))
    tensor(2.5000)
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    input, target = _pair(input, target)
    _check(reduction)
    return call(HUBER, (input, target, reduction, delta))


def _both_tensors(name: str, input: Any, target: Any) -> None:
    if not isinstance(input, Tensor):
        raise must_be_tensor(name, "input", 1, input)
    if not isinstance(target, Tensor):
        raise must_be_tensor(name, "target", 2, target)


def _plain_nll(x: Tensor, i: Any, reduction: str) -> Tensor | None:
    """The common case: a row and a class each, all of which count; None for everything else."""
    a = x._array
    if type(a) is not np.ndarray or (a.dtype is not F32 and a.dtype is not F64) or i.dtype != I64:
        return None
    if a.ndim != 2 or i.ndim != 1 or len(i) != len(a) or not len(i):
        return None
    if (min(i.tolist()) if len(i) < 32 else np.minimum.reduce(i)) < 0:
        return None
    try:
        picked = a[neural_loss.rows(len(i)), i]
    except IndexError:
        return None
    if reduction == "mean":
        out = wrap(np.add.reduce(picked, None) / a.dtype.type(-len(i)))
    else:
        out = wrap(_over(-picked, reduction))
    if (x._history is not None or x._more is not None) and tracked((x,)):
        record_beside(NLL, out, x, (i, None, None, reduction))
    return out


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability of the target classes."""
    reduction = _legacy(size_average, reduce, reduction)
    _check(reduction)
    _both_tensors("nll_loss", input, target)
    if weight is None and ignore_index < 0:
        plain = _plain_nll(input, target._array, reduction)
        if plain is not None:
            return plain
    i = target._array
    x = input
    if i.dtype != I64 and i.dtype != np.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(i.dtype)}")
    alone = x._array.ndim == 1
    if alone:
        x, i = unsqueeze(x, 0), np.reshape(i, (1,))
    if x._array.shape[0] != i.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({x._array.shape[0]}) to match target batch_size ({i.shape[0]})."
        )
    if x._array.shape[2:] != i.shape[1:]:
        raise RuntimeError(
            f"Expected target size {[x._array.shape[0], *x._array.shape[2:]]}, got {list(i.shape)}"
        )
    n = x._array.shape[1]
    if i.size and (i.min() < 0 or i.max() >= n):
        bad = (i != ignore_index) & ((i < 0) | (i >= n))
        if bool(np.any(bad)):
            raise IndexError(f"Target {int(i[bad][0])} is out of bounds.")
    w = None if weight is None else weight._array
    if tracked((weight,)):
        raise not_differentiable("nll_loss_forward", "weight")
    if w is not None and w.shape != (n,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {n} classes or no classes but got weight tensor "
            f"of shape: {list(w.shape)}"
        )
    with quiet():
        out = wrap(NLL.function(x._array, i, w, ignore_index, reduction))
    if tracked((x,)):
        record_beside(NLL, out, x, (i, w, ignore_index, reduction))
    return out[0] if alone and reduction == "none" else out


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of `log_softmax`; the target holds classes, or probabilities."""
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce, reduction)
    _check(reduction)
    if label_smoothing and not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    _both_tensors("cross_entropy_loss", input, target)
    dim = 0 if input._array.ndim == 1 else 1
    logp = log_softmax(input, dim)
    if weight is None and ignore_index < 0 and not label_smoothing:
        plain = _plain_nll(logp, target._array, reduction)
        if plain is not None:
            return plain
    if target._array.shape == input._array.shape and target._array.dtype.kind == "f":
        n = input._array.shape[dim]
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / n
        terms = -(target * logp)
        if weight is not None:
            terms = terms * weight.reshape(*((-1,) + (1,) * (input.ndim - dim - 1)))
        losses = terms.sum(dim)
        if reduction == "mean":
            return losses.sum() / (losses.numel() if input.ndim > 1 else 1)
        return losses if reduction == "none" else losses.sum()
    plain = nll_loss(logp, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return plain
    weighted = logp if weight is None else logp * weight.reshape(*((-1,) + (1,) * (input.ndim - dim - 1)))
    smooth = -weighted.sum(dim) * wrap((target._array != ignore_index).astype(input._array.dtype))
    if reduction != "none":
        smooth = smooth.sum()
    if reduction == "mean":
        w = None if weight is None else weight._array
        smooth = smooth / float(np.sum(_nll_weights(input._array, target._array, w, ignore_index)))
    return (1 - label_smoothing) * plain + label_smoothing / input._array.shape[dim] * smooth


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`-(target * log(input) + (1 - target) * log(1 - input))`, with logarithms of at least -100.

    Shapes that differ are a `ValueError`, values outside of [0, 1] a `RuntimeError`.

    >>> sg.nn.functional.binary_cross_entropy(sg.tensor([0.5]), sg.tensor([1.0]))
    tensor(0.6931)
    """
    _check(reduction)
    if input._array.shape != target._array.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
            "deprecated. Please "
            "ensure they have the same size."
        )
    a = input._array
    if bool(np.any((a < 0) | (a > 1))):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if bool(np.any((target._array < 0) | (target._array > 1))):
        raise RuntimeError("all elements of target should be between 0 and 1")

    with quiet():
        return call(BCE, (input, target, weight, reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of `sigmoid(input)` without overflow; `pos_weight` weighs the positive terms.

    Shapes that differ are a `ValueError`.

    >>> sg.nn.functional.binary_cross_entropy_with_logits(sg.tensor([0.0]), sg.tensor([1.0]))
    tensor(0.6931)
    """
    _check(reduction)
    if input._array.shape != target._array.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return call(BCE_LOGITS, (input, target, weight, pos_weight, reduction))


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """`target * (log(target) - input)`, with `input` in logarithms."""
    if log_target:
        terms = target.exp() * (target - input)
    else:
        from srcgrad.runtime.tensor import FUNCTIONS

        terms = FUNCTIONS["xlogy"](target, target) - target * input
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=2,
        )
    if reduction == "batchmean":
        return terms.sum() / input.shape[0]
    return _reduced(terms, reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where `target` is 1, else `max(0, margin - input)`.

    >>> sg.nn.functional.hinge_embedding_loss(sg.tensor([0.5, 0.5]), sg.tensor([1, -1]))
    tensor(0.5000)
    """
    return _reduced(where(target.eq(1), input, (margin - input).clamp(min=0)), reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, -target * (input1 - input2) + margin)`: target 1 wants the first to be greater, -1 less.

    >>> sg.nn.functional.margin_ranking_loss(sg.tensor([1.0]), sg.tensor([3.0]), sg.tensor([1.0]))
    tensor(2.)
    """
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """`log(1 + exp(-target * input))`, with targets 1 and -1.

    >>> sg.nn.functional.soft_margin_loss(sg.tensor([0.0]), sg.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = _legacy(size_average, reduce, reduction)
    _check(reduction)
    if target._history is not None and tracked((target,)):
        raise not_differentiable("soft_margin_loss", "target")
    y = target._array.astype(input._array.dtype)
    return call(SOFT_MARGIN, (input, y, reduction))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`sum over the other classes of max(0, margin - x[target] + x[i]) ** p / classes`, of (n, classes).

    >>> sg.nn.functional.multi_margin_loss(sg.tensor([[2.0, 2.0]]), sg.tensor([0]))
    tensor(0.5000)
    """
    x = unsqueeze(input, 0) if input.ndim == 1 else input
    i = target.reshape(-1)
    n, c = x.shape
    rows = wrap(beside(np.arange(n), x._array))
    right = x[rows, i].unsqueeze(1)
    gap = (margin - right + x).clamp(min=0)
    if p == 2:
        gap = gap * gap
    if weight is not None:
        gap = gap * weight[i].unsqueeze(1)
    others = wrap((beside(np.arange(c)[None], x._array) != i._array[:, None]).astype(x._array.dtype))
    losses = (gap * others).sum(1) / c
    return _reduced(losses[0] if input.ndim == 1 else losses, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`1 - cos` where `target` is 1, `max(0, cos - margin)` where it is -1, of vectors (n, d).

    >>> a, b = sg.tensor([[3.0, 0.0]]), sg.tensor([[0.0, 2.0]])
    >>> sg.nn.functional.cosine_embedding_loss(a, b, sg.tensor([1]))
    tensor(1.)
    """
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    cos = dot / ((input1 * input1).sum(-1) + eps).mul((input2 * input2).sum(-1) + eps).sqrt()
    zero = wrap(np.zeros_like(cos._array))
    losses = where(target.eq(1), 1 - cos, zero) + where(target.eq(-1), (cos - margin).clamp(min=0), zero)
    return _reduced(losses, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)`, d the `pairwise_distance`.

    With `swap`, the negative's distance to the positive counts if it is smaller.

    >>> a = sg.zeros(1, 2)
    >>> sg.nn.functional.triplet_margin_loss(a, a, a)
    tensor(1.)
    """
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        from srcgrad.runtime.tensor_math import minimum

        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced((near - far + margin).clamp(min=0), reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """`exp(input) - target * input`, or without `log_input` `input - target * log(input + eps)`.

    `full` adds Stirling's approximation of `log(target!)` where `target` is above 1.

    >>> sg.nn.functional.poisson_nll_loss(sg.tensor([0.0]), sg.tensor([3.0]))
    tensor(1.)
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """`(log(var) + (input - target)**2 / var) / 2`, with `var` at least `eps`; `full` adds `log(2 pi) / 2`.

    A negative `var` is a `ValueError`.

    >>> sg.nn.functional.gaussian_nll_loss(sg.tensor([2.0]), sg.tensor([0.0]), sg.tensor([1.0]))
    tensor(2.)
    """
    if not isinstance(var, Tensor):
        var = wrap(np.full_like(input._array, var))
    if bool((var._array < 0).any()):
        raise ValueError("var has negative entry/entries")
    clamped = var.clone()
    from srcgrad.runtime.autograd.modes import no_grad

    with no_grad():
        clamped.clamp_(min=eps)
    loss = 0.5 * (clamped.log() + (input - target) ** 2 / clamped)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)
