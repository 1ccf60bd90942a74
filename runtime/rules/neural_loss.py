"""Losses and normalisation of neural networks, with their rules (formulas as in PyTorch's documentation)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import functools
import math

import numpy as np

from srcgrad.runtime.rules.inputs import generic, positive
from srcgrad.runtime.rules.neural import cell, sigmoid
from srcgrad.runtime.rules.table import case, forward, reverse
from srcgrad.runtime.support import expand, put_along, scatter, unbroadcast

X = generic(2, 3)
Y = generic(2, 3, seed=1)
P = positive(2, 3)


def reduced(values, reduction):
    """`values` themselves, their sum, or their mean."""
    if reduction == "mean":
        return mean_of(values)
    return np.sum(values) if reduction == "sum" else values


def mean_of(x):
    """The mean of all values; NumPy's own takes its time."""
    if type(x) is not np.ndarray or x.itemsize < 4:
        return np.mean(x)
    return np.add.reduce(x, None) / x.dtype.type(x.size)


def share(g, x, reduction):
    """The cotangent of each value in `reduced(values)`, for values shaped as `x` (or one that broadcasts to
    that)."""
    return g / np.size(x) if reduction == "mean" else g


def mse(x, target, reduction="mean"):
    """The squared differences."""
    d = x - target
    return reduced(d * d, reduction)


@reverse(mse, wrt=("x", "target"), at=[(X, Y), case(X, Y, reduction="sum"), case(X, Y, reduction="none")])
def mse_rule(g, y, x, target, reduction="mean"):
    d = 2 * share(g, x, reduction) * (x - target)
    return d, -d


@forward(mse)
def mse_forward(x_dot, target_dot, y, x, target, reduction="mean"):
    return reduced(2 * (x - target) * x_dot, reduction), reduced(2 * (target - x) * target_dot, reduction)


def smooth_l1(x, target, reduction="mean", beta=1.0):
    """Squares below `beta`, absolute values above."""
    d = np.abs(x - target)
    return reduced(np.where(d < beta, 0.5 * d * d / (beta or 1.0), d - 0.5 * beta), reduction)


@reverse(smooth_l1, wrt=("x", "target"), at=[(X, Y), case(X, Y, reduction="none", beta=0.3)])
def smooth_l1_rule(g, y, x, target, reduction="mean", beta=1.0):
    d = x - target
    slope = share(g, x, reduction) * np.where(np.abs(d) < beta, d / (beta or 1.0), np.sign(d))
    return slope, -slope


@forward(smooth_l1)
def smooth_l1_forward(x_dot, target_dot, y, x, target, reduction="mean", beta=1.0):
    d = x - target
    slope = np.where(np.abs(d) < beta, d / (beta or 1.0), np.sign(d))
    return reduced(slope * x_dot, reduction), reduced(-slope * target_dot, reduction)


def huber(x, target, reduction="mean", delta=1.0):
    """Squares below `delta`, a line of slope `delta` above."""
    d = np.abs(x - target)
    return reduced(np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


@reverse(huber, wrt=("x", "target"), at=[(X, Y), case(X, Y, reduction="none", delta=0.3)])
def huber_rule(g, y, x, target, reduction="mean", delta=1.0):
    d = x - target
    slope = share(g, x, reduction) * np.where(np.abs(d) <= delta, d, delta * np.sign(d))
    return slope, -slope


@forward(huber)
def huber_forward(x_dot, target_dot, y, x, target, reduction="mean", delta=1.0):
    d = x - target
    slope = np.where(np.abs(d) <= delta, d, delta * np.sign(d))
    return reduced(slope * x_dot, reduction), reduced(-slope * target_dot, reduction)


def soft_margin(x, target, reduction="mean"):
    """`log(1 + exp(-target * x))`, without overflow."""
    return reduced(np.logaddexp(0, -target * x), reduction)


@reverse(soft_margin, wrt="x", at=[(X, Y), case(X, Y[0], reduction="sum"), case(X, Y, reduction="none")])
def soft_margin_rule(g, y, x, target, reduction="mean"):
    z = -target * x
    return unbroadcast(share(g, z, reduction) * -target * sigmoid(z), x)


@forward(soft_margin)
def soft_margin_forward(x_dot, y, x, target, reduction="mean"):
    z = -target * x
    return reduced(-target * sigmoid(z) * x_dot, reduction)


def bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    """The cross entropy of `sigmoid(x)` and `target`, without overflow."""
    tail = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)
    if pos_weight is None:
        loss = (1 - target) * x + tail
    else:
        loss = (1 - target) * x + (1 + (pos_weight - 1) * target) * tail
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


@reverse(
    bce_with_logits,
    wrt=("x", "target"),
    at=[(X, P), case(X, P, pos_weight=np.array([1.0, 2.0, 3.0])), case(X, P, P, reduction="none")],
)
def bce_with_logits_rule(g, y, x, target, weight=None, pos_weight=None, reduction="mean"):
    return (
        share(g, x, reduction) * bce_slope(x, target, weight, pos_weight),
        share(g, x, reduction) * bce_target_slope(x, weight, pos_weight),
    )


@forward(bce_with_logits)
def bce_with_logits_forward(x_dot, target_dot, y, x, target, weight=None, pos_weight=None, reduction="mean"):
    return (
        reduced(x_dot * bce_slope(x, target, weight, pos_weight), reduction),
        reduced(target_dot * bce_target_slope(x, weight, pos_weight), reduction),
    )


def bce_slope(x, target, weight, pos_weight):
    """The derivative of each term for `x`."""
    if pos_weight is None:
        slope = sigmoid(x) - target
    else:
        slope = 1 - target - (1 + (pos_weight - 1) * target) * sigmoid(-x)
    return weighted(slope, weight)


def bce_target_slope(x, weight, pos_weight):
    """The derivative of each term for `target`."""
    slope = -x
    if pos_weight is not None:
        slope = slope + (pos_weight - 1) * (np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))
    return weighted(slope, weight)


def bce(x, target, weight=None, reduction="mean"):
    """The cross entropy of probabilities `x` and `target`; logarithms are kept above -100."""
    loss = -(target * np.maximum(np.log(x), -100) + (1 - target) * np.maximum(np.log1p(-x), -100))
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


@reverse(
    bce,
    wrt=("x", "target"),
    at=[(0.2 + 0.5 * P / 4, P), case(0.2 + 0.5 * P / 4, P, P, reduction="none")],
)
def bce_rule(g, y, x, target, weight=None, reduction="mean"):
    return (
        share(g, x, reduction) * weighted((x - target) / np.maximum(x * (1 - x), 1e-12), weight),
        share(g, x, reduction) * weighted(_odds(x), weight),
    )


@forward(bce)
def bce_forward(x_dot, target_dot, y, x, target, weight=None, reduction="mean"):
    slope = (x - target) / np.maximum(x * (1 - x), 1e-12)
    return (
        reduced(x_dot * weighted(slope, weight), reduction),
        reduced(target_dot * weighted(_odds(x), weight), reduction),
    )


def _odds(x):
    """The derivative of each term of `bce` for `target`."""
    return np.maximum(np.log1p(-x), -100) - np.maximum(np.log(x), -100)


def weighted(slope, weight):
    return slope if weight is None else slope * weight


def nll_weights(x, target, weight, ignore_index):
    """The weight of each target: that of its class, and 0 if it is to be ignored."""
    kept = target != ignore_index
    if weight is None:
        return kept.astype(x.dtype)
    return np.take(weight, np.where(kept, target, 0)) * kept


def nll(x, target, weight=None, ignore_index=-100, reduction="mean"):
    """Minus the log-probability (axis 1 of `x`) of each target class."""
    if _is_plain(x, target, weight, ignore_index):
        return reduced(-x[rows(len(target)), target], reduction)
    w = nll_weights(x, target, weight, ignore_index)
    safe = np.where(target == ignore_index, 0, target)
    picked = np.where(target == ignore_index, 0, -w * np.take_along_axis(x, np.expand_dims(safe, 1), 1)[:, 0])
    if reduction == "mean":
        return np.sum(picked) / np.sum(w)
    return np.sum(picked) if reduction == "sum" else picked


@functools.lru_cache(maxsize=16)
def rows(n):
    """`np.arange(n)`, for reading only."""
    return np.arange(n)


def _is_plain(x, target, weight, ignore_index):
    """The common case: one class for each row, all of them counting alike (`ignore_index` None says so)."""
    if weight is not None or target.ndim != 1 or x.ndim != 2:
        return False
    return ignore_index is None or not (target == ignore_index).any()


@reverse(
    nll,
    linear=True,
    at=[
        (X, np.array([0, 2])),
        (X, np.array([1, 1]), np.array([0.5, 2.0, 1.0])),
        case(generic(2, 3, 2), np.array([[0, 1], [2, -100]]), reduction="sum"),
    ],
)
def nll_rule(g, y, x, target, weight=None, ignore_index=-100, reduction="mean"):
    if isinstance(g, (np.ndarray, np.generic)) and _is_plain(x, target, weight, ignore_index):
        out = np.zeros(x.shape, g.dtype)
        out[rows(len(target)), target] = g / g.dtype.type(-len(target)) if reduction == "mean" else -g
        return out
    w = nll_weights(x, target, weight, ignore_index)
    each = np.where(target == ignore_index, 0, -w * (g / np.sum(w) if reduction == "mean" else g))
    safe = np.where(target == ignore_index, 0, target)
    return put_along(np.expand_dims(each, 1), x, np.expand_dims(safe, 1), 1)


def embedding(weight, indices, padding_idx=None, by_frequency=False):
    """The rows of `weight` at `indices`."""
    return weight[indices]


@reverse(embedding, at=[(X, np.array([1, 0, 1]))])
def embedding_rule(g, y, weight, indices, padding_idx=None, by_frequency=False):
    """The row `padding_idx` gets nothing, and with `by_frequency` a row gets the mean of what arrives (so
    there the rule is not the derivative, as in PyTorch)."""
    if by_frequency:
        counts = np.bincount(np.ravel(indices), minlength=weight.shape[0])
        g = g / np.expand_dims(counts[indices], -1).astype(weight.dtype)
    if padding_idx is None:
        return scatter(g, weight, indices)
    return scatter(g * np.expand_dims(indices != padding_idx, -1), weight, indices)


@forward(embedding)
def embedding_forward(weight_dot, y, weight, indices, padding_idx=None, by_frequency=False):
    if padding_idx is None:
        return weight_dot[indices]
    return weight_dot[indices] * np.expand_dims(indices != padding_idx, -1)


# --- normalisation ------------------------------------------------------------------------------------------


def deviation_root(x, axis, eps):
    """`1 / sqrt(var + eps)` along `axis`, kept."""
    d = x - np.mean(x, axis=axis, keepdims=True)
    return 1 / np.sqrt(np.mean(d * d, axis=axis, keepdims=True) + eps)


def standard(x, axis, eps):
    """`x` less its mean, over its deviation."""
    if type(x) is np.ndarray and x.itemsize >= 4:
        return moments_of(x, axis, eps)[0]
    d = x - np.mean(x, axis=axis, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=axis, keepdims=True) + eps)


def normalize_by(x, mean, var, weight, bias, eps):
    """`(x - mean) / sqrt(var + eps) * weight + bias`, all of one rank."""
    y = (x - mean) * (1 / np.sqrt(var + eps))
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@reverse(
    normalize_by,
    wrt=("x", "weight", "bias"),
    at=[
        (X, generic(1, 3, seed=1), positive(1, 3), None, None, 1e-5),
        (X, generic(1, 3, seed=1), positive(1, 3), generic(1, 3, seed=2), generic(1, 3, seed=3), 1e-5),
    ],
)
def normalize_by_rule(g, y, x, mean, var, weight, bias, eps):
    root = 1 / np.sqrt(var + eps)
    return (
        g * root if weight is None else g * root * weight,
        None if weight is None else unbroadcast(g * (x - mean) * root, weight),
        None if bias is None else unbroadcast(g, bias),
    )


@forward(normalize_by)
def normalize_by_forward(x_dot, weight_dot, bias_dot, y, x, mean, var, weight, bias, eps):
    root = 1 / np.sqrt(var + eps)
    return (
        x_dot * root if weight is None else x_dot * root * weight,
        None if weight is None else weight_dot * (x - mean) * root,
        None if bias is None else expand(bias_dot, x),
    )


def normalize(x, weight, bias, axis, eps, moments=None):
    """`standard(x) * weight + bias`; `moments`: `standard(x)` and 1 / deviation, if they are known."""
    known = moments is not None and type(x) is np.ndarray
    out = moments[0] if known else standard(x, axis, eps)
    if weight is not None:
        out = out * weight
    if bias is not None:
        return out + bias
    return out.copy() if known and weight is None else out


@reverse(
    normalize,
    wrt=("x", "weight", "bias"),
    at=[
        (X, generic(3), generic(3, seed=2), (1,), 1e-5),
        (generic(4, 2), generic(2), generic(2, seed=1), (0,), 0.1),
    ],
)
def normalize_rule(g, y, x, weight, bias, axis, eps, moments=None):
    return (
        standard_adjoint(g if weight is None else g * weight, x, axis, eps, moments),
        unbroadcast(g * normalize(x, None, None, axis, eps, moments), weight),
        unbroadcast(g, bias),
    )


@forward(normalize)
def normalize_forward(x_dot, weight_dot, bias_dot, y, x, weight, bias, axis, eps, moments=None):
    moved = standard_adjoint(x_dot, x, axis, eps)
    return moved if weight is None else moved * weight, weight_dot * standard(x, axis, eps), bias_dot + 0 * y


def moments_of(x, axis, eps):
    """An array less its mean along `axis` over its deviation, and `1 / sqrt(var + eps)`, kept."""
    count = math.prod([x.shape[k] for k in axis])
    d = x - np.add.reduce(x, axis, None, None, True) / cell(count, x)
    spread = np.add.reduce(d * d, axis, None, None, True)
    root = cell(math.sqrt(count), x) / np.sqrt(spread + cell(count * eps, x))
    d *= root
    return d, root


def standard_adjoint(g, x, axis, eps, moments=None):
    """The cotangent of `x` for `standard(x)`; the same map gives its tangent."""
    if type(x) is type(g) is np.ndarray and x.itemsize >= 4:
        s, root = moments_of(x, axis, eps) if moments is None else moments
        total = s * np.add.reduce(g * s, axis, None, None, True)
        total += np.add.reduce(g, axis, None, None, True)
        return (g - total / cell(math.prod([x.shape[k] for k in axis]), x)) * root
    d = x - np.mean(x, axis=axis, keepdims=True)
    root = 1 / np.sqrt(np.mean(d * d, axis=axis, keepdims=True) + eps)
    s = d * root
    return (g - np.mean(g, axis=axis, keepdims=True) - s * np.mean(g * s, axis=axis, keepdims=True)) * root


def rms_normalize(x, weight, axis, eps):
    """`x` over the root of the mean of its squares."""
    out = x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + eps)
    return out if weight is None else out * weight


def rms_adjoint(g, x, axis, eps):
    """The cotangent of `x` for `rms_normalize(x, None)`; the same map gives its tangent."""
    r = 1 / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + eps)
    return r * (g - x * r * r * np.mean(g * x, axis=axis, keepdims=True))


@reverse(rms_normalize, wrt=("x", "weight"), at=[(X, generic(3), (1,), 1e-5)])
def rms_normalize_rule(g, y, x, weight, axis, eps):
    return (
        rms_adjoint(g if weight is None else g * weight, x, axis, eps),
        unbroadcast(g * rms_normalize(x, None, axis, eps), weight),
    )


@forward(rms_normalize)
def rms_normalize_forward(x_dot, weight_dot, y, x, weight, axis, eps):
    moved = rms_adjoint(x_dot, x, axis, eps)
    return moved if weight is None else moved * weight, weight_dot * rms_normalize(x, None, axis, eps)
