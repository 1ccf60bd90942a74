"""Losses over sets and sequences of labels."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime.arrays import beside, to_host
from srcgrad.runtime.nn.functional_activation import logsigmoid
from srcgrad.runtime.nn.functional_layers import pairwise_distance
from srcgrad.runtime.nn.functional_loss import _reduced
from srcgrad.runtime.tensor import FUNCTIONS
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_join import stack


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of the logistic loss of each label."""
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.shape[-1], reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The hinge between each class of the target (up to the first -1) and each other class."""
    x, t = (input, target) if input.ndim == 2 else (input.unsqueeze(0), target.unsqueeze(0))
    labels = to_host(t._array)
    stop = np.cumsum(labels < 0, axis=1) > 0
    is_target = np.zeros(x._array.shape, bool)
    rows, columns = np.nonzero(~stop)
    is_target[rows, labels[rows, columns]] = True
    pairs = is_target[:, :, None] & ~is_target[:, None, :]
    gap = (1 - x.unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    chosen = wrap(beside(pairs.astype(x._array.dtype), x._array))
    loss = (gap * chosen).sum((1, 2)) / x.shape[1]
    return _reduced(loss if input.ndim == 2 else loss[0], reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The triplet loss with any distance."""
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = FUNCTIONS["minimum"](far, distance(positive, negative))
    return _reduced((margin + near - far).clamp(min=0), reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-probability of the label sequences, over all alignments: the forward algorithm of
    Graves et al. (ICML 2006), recorded step by step."""
    alone = log_probs.ndim == 2
    logs = log_probs.unsqueeze(1) if alone else log_probs
    times, sizes = (
        np.reshape(to_host(FUNCTIONS["as_tensor"](n)._array), -1) for n in (input_lengths, target_lengths)
    )
    labels = to_host(targets._array)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    losses = []
    for n, (steps, size) in enumerate(zip(times, sizes, strict=True)):
        own = (
            (labels if alone else labels[n])[:size]
            if labels.ndim == 2 or alone
            else labels[starts[n] : starts[n + 1]]
        )
        path = np.full(2 * size + 1, blank)
        path[1::2] = own
        skips = np.zeros(len(path), bool)
        skips[2:] = (path[2:] != blank) & (path[2:] != path[:-2])
        losses.append(-_alignments(logs[: int(steps), n], path, skips))
    loss = stack(losses)
    if zero_infinity:
        loss = loss.masked_fill(loss.isinf(), 0.0)
    if reduction == "mean":
        return (loss / wrap(beside(np.maximum(sizes, 1).astype(loss._array.dtype), loss._array))).mean()
    return _reduced(loss[0] if alone else loss, reduction)


def _alignments(logs: Tensor, path: Any, skips: Any) -> Tensor:
    """The log-probability of all ways along `path`, whose labels may repeat, whose blanks may be skipped."""
    index = wrap(beside(path.astype(np.int64), logs._array))
    none = wrap(beside(np.full(2, -np.inf, logs._array.dtype), logs._array))
    barred = wrap(beside(~skips, logs._array))
    start = wrap(beside(np.arange(len(path)) > 1, logs._array))
    alpha = logs[0][index].masked_fill(start, -np.inf)
    for t in range(1, logs.shape[0]):
        before = FUNCTIONS["cat"]([none, alpha])
        ways = stack([alpha, before[1:-1], before[:-2].masked_fill(barred, -np.inf)])
        alpha = _safe_logsumexp(ways) + logs[t][index]
    return _safe_logsumexp(alpha[-2:] if len(path) > 1 else alpha)


def _safe_logsumexp(x: Tensor) -> Tensor:
    """`logsumexp` along the first axis; where all is -inf the gradient is 0."""
    empty = wrap(np.all(np.isneginf(x._array), axis=0))
    return x.masked_fill(empty, 0.0).logsumexp(0).masked_fill(empty, -np.inf)
