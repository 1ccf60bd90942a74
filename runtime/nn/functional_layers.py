"""Linear maps, normalisation, embeddings, dropout, attention."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.runtime.arrays import beside
from srcgrad.runtime.autograd.modes import no_grad
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import (
    call,
    not_differentiable,
    record_beside,
    record_one,
    record_plain,
    tracked,
)
from srcgrad.runtime.rules import neural_conv, neural_loss
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_guards import without_array
from srcgrad.runtime.tensor_inplace import store
from srcgrad.runtime.tensor_linalg import ADDMM, einsum, matmul_
from srcgrad.runtime.tensor_random import default_generator
from srcgrad.runtime.tensor_reduce import norm, softmax
from srcgrad.runtime.tensor_types import F32, F64, finfo
from srcgrad.runtime.tensor_views import reshape, t

LAYER_NORM = rule_node("NativeLayerNormBackward0", neural_loss.normalize)
BATCH_NORM = rule_node("NativeBatchNormBackward0", neural_loss.normalize)
BATCH_NORM_FIXED = rule_node("NativeBatchNormBackward0", neural_loss.normalize_by)
GROUP_NORM = rule_node("NativeGroupNormBackward0", neural_loss.normalize)
RMS_NORM = rule_node("FusedRmsNormBackward0", neural_loss.rms_normalize)
EMBEDDING = rule_node("EmbeddingBackward0", neural_loss.embedding)
PAD = rule_node("ConstantPadNdBackward0", neural_conv.pad_constant)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    try:
        x, w = input._array, weight._array
    except AttributeError as error:
        raise without_array("linear", error) from None
    if x.dtype != w.dtype:
        raise RuntimeError(
            "mat1 and mat2 must have the same dtype, but got "
            f"{input.type().rpartition('.')[2].removesuffix('Tensor')} and "
            f"{weight.type().rpartition('.')[2].removesuffix('Tensor')}"
        )
    if x.shape[-1:] != w.shape[-1:]:
        rows = math.prod(x.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {w.shape[-1]}x{w.shape[0]})"
        )
    if bias is not None and x.ndim == 2:
        w = t(weight)
        if x.dtype is not F32 and x.dtype is not F64:
            return call(ADDMM, (bias, input, w))
        result = wrap(ADDMM.function(bias._array, x, w._array))
        if tracked((bias, input, weight)):
            record_plain(ADDMM, result, (bias, input, w))
        return result
    out: Tensor = matmul_(input, t(weight))
    return out if bias is None else out + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2 + bias[k]` for each output k: weights (out, in1, in2).

    >>> sg.nn.functional.bilinear(sg.ones(3, 1), sg.ones(3, 2), sg.ones(4, 1, 2)).shape
    srcgrad.Size([3, 4])
    """
    out = einsum("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


def _mask(input: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    kind = input._array.dtype
    if p == 1:
        return wrap(beside(np.zeros(shape, kind), input._array))
    kept = default_generator.random.random(shape) >= p
    return wrap(beside(kept.astype(kind) / kind.type(1 - p), input._array))


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros with probability `p`, the rest scaled by 1 / (1 - p)."""
    _check_probability(p)
    if not training or p == 0:
        return input
    mask = _mask(input, p, input._array.shape)
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (n, c, l) are 0 with probability `p`, the rest scaled by 1 / (1 - p).

    >>> sg.nn.functional.dropout1d(sg.ones(1, 2, 3), training=False).sum()
    tensor(6.)
    """
    return _channels(input, p, training, 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (n, c, h, w) are 0 with probability `p`, the rest scaled by 1 / (1 - p).

    >>> sg.nn.functional.dropout2d(sg.ones(1, 2, 3, 1), training=False).sum()
    tensor(6.)
    """
    return _channels(input, p, training, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (n, c, d, h, w) are 0 with probability `p`, the rest scaled by 1 / (1 - p).

    >>> sg.nn.functional.dropout3d(sg.ones(1, 2, 3, 1, 1), training=False).sum()
    tensor(6.)
    """
    return _channels(input, p, training, 3)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of values that went through SELU (Klambauer et al., 2017)."""
    _check_probability(p)
    if not training or p == 0:
        return input
    return _selu_dropout(input, p, input._array.shape)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels: (batch, channels, ...).

    >>> sg.nn.functional.feature_alpha_dropout(sg.ones(2, 3), 0.5, training=False).sum()
    tensor(6.)
    """
    _check_probability(p)
    if not training or p == 0:
        return input
    return _selu_dropout(input, p, (*input._array.shape[:2], *([1] * (input._array.ndim - 2))))


def _selu_dropout(input: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    low = -1.7580993408473766
    scale = ((1 - p) * (1 + p * low * low)) ** -0.5 if p < 1 else 0.0
    kept = wrap((_mask(input, p, shape)._array != 0).astype(input._array.dtype))
    return (input * kept + low * (1 - kept)) * scale - scale * low * p


def _channels(input: Tensor, p: float, training: bool, n: int) -> Tensor:
    _check_probability(p)
    if not training or p == 0:
        return input
    return input * _mask(input, p, (*input._array.shape[:-n], *([1] * n)))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at `input`."""
    i = input._array
    if i.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
            "Int; but got "
            f"{input.type()} instead (while checking arguments for embedding)"
        )
    n = weight._array.shape[0]
    if i.size and (i.min() < 0 or i.max() >= n):
        raise IndexError("index out of range in self")
    if padding_idx is not None and padding_idx < 0:
        padding_idx += n
    if max_norm is not None:
        _renormalize(weight, i, max_norm, norm_type)
    places = np.asarray(i) if isinstance(i, np.generic) else i
    result = wrap(weight._array[places])
    if tracked((weight,)):
        record_beside(EMBEDDING, result, weight, (places, padding_idx, scale_grad_by_freq))
    return result


def _renormalize(weight: Tensor, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up and longer than `max_norm` down to it, in place and unrecorded."""
    rows = np.unique(indices)
    with no_grad():
        lengths = norm(weight[wrap(rows)], norm_type, 1)._array
        factors = np.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1.0).astype(weight._array.dtype)
        weight[wrap(rows)] = weight[wrap(rows)] * wrap(factors[:, None])


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the place of each class and 0 elsewhere, in a new last dimension; classes are int64.

    Other dtypes, negative classes and classes from `num_classes` on are a `RuntimeError`.

    >>> sg.nn.functional.one_hot(sg.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    i = tensor._array
    if i.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if i.size == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if i.size and i.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes != -1 and i.size and i.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    n = int(i.max()) + 1 if num_classes == -1 else num_classes
    return wrap((np.expand_dims(i, -1) == beside(np.arange(n), i)).astype(np.int64))


# --- normalisation ------------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions, `normalized_shape`.

    A `RuntimeError` if the input doesn't end in that shape.

    >>> sg.nn.functional.layer_norm(sg.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    n = len(normalized_shape)
    if input._array.shape[-n:] != (shape := tuple(normalized_shape)):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], "
            f"but got input of size{list(input._array.shape)}"
        )
    return _normalized(LAYER_NORM, input, weight, bias, _LAST[n], eps)


_LAST = [tuple(range(-n, 0)) for n in range(64)]
_moments: Any = neural_loss.moments_of


def _normalized(kind: Any, x: Tensor, w: Any, b: Any, axes: tuple[int, ...], eps: float) -> Tensor:
    dtype = x._array.dtype
    if dtype is F32 or dtype is F64:
        a = x._array
        if w is b is None:
            moments = _moments(a, axes, eps) if type(a) is np.ndarray else None
            result = wrap(kind.function(a, None, None, axes, eps, moments))
            if tracked((x,)):
                record_one(kind, result, x, (None, None, axes, eps, moments))
            return result
        if w is not None and b is not None and w._array.dtype is dtype and b._array.dtype is dtype:
            moments = _moments(a, axes, eps) if type(a) is np.ndarray else None
            result = wrap(kind.function(a, w._array, b._array, axes, eps, moments))
            if tracked((x, w, b)):
                record_plain(kind, result, (x, w, b), (axes, eps, moments))
            return result
    out: Tensor = call(kind, (x, w, b, axes, eps))
    return out


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Tensor:
    """`x / sqrt(mean(x ** 2) + eps) * weight` over the last dimensions, as many as in `normalized_shape`.

    `eps` is by default the dtype's distance from 1 to the next number.

    >>> sg.nn.functional.rms_norm(sg.tensor([2.0, -2.0]), (2,))
    tensor([ 1., -1.])
    """
    eps = finfo(input.dtype).eps if eps is None else eps
    return call(RMS_NORM, (input, weight, tuple(range(-len(normalized_shape), 0)), eps))


def _per_channel(x: Tensor | None, ndim: int) -> Tensor | None:
    return x if x is None or ndim == 2 else reshape(x, (1, -1, *([1] * (ndim - 2))))


def batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel less its mean over its deviation: of the batch in training, else the running ones."""
    a = input._array
    for name, x in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight)):
        if x is not None and x.numel() != a.shape[1]:
            raise RuntimeError(f"{name} should contain {a.shape[1]} elements not {x.numel()}")
        if name != "weight" and tracked((x,)):
            raise not_differentiable("native_batch_norm", name)
    w, b = _per_channel(weight, a.ndim), _per_channel(bias, a.ndim)
    if not training:
        mean, var = _per_channel(running_mean, a.ndim), _per_channel(running_var, a.ndim)
        assert mean is not None and var is not None
        return call(BATCH_NORM_FIXED, (input, mean._array, var._array, w, b, eps))
    count = a.size // a.shape[1]
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    axes = (0, *range(2, a.ndim))
    if running_mean is not None:
        m = a.dtype.type(momentum)
        store(running_mean, (1 - m) * running_mean._array + m * a.mean(axis=axes), checked=False)
        store(running_var, (1 - m) * running_var._array + m * a.var(axis=axes, ddof=1), checked=False)
    return _normalized(BATCH_NORM, input, w, b, axes, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """`layer_norm` over each of `num_groups` groups of channels; weight and bias have one entry per channel.

    >>> sg.nn.functional.group_norm(sg.tensor([[1.0, 3.0]]), 1, eps=0.0)
    tensor([[-1.,  1.]])
    """
    shape = input._array.shape
    grouped = reshape(input, (shape[0], num_groups, -1))
    out = reshape(_normalized(GROUP_NORM, grouped, None, None, (2,), eps), shape)
    w, b = _per_channel(weight, len(shape)), _per_channel(bias, len(shape))
    out = out if w is None else out * w
    return out if b is None else out + b


def instance_norm(
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each example less its mean over its deviation, which includes `eps`.

    Without `use_input_stats` the running statistics take their place: `batch_norm` outside of training.

    >>> sg.nn.functional.instance_norm(sg.tensor([[[1.0, 3.0]]]), eps=0.0)
    tensor([[[-1.,  1.]]])
    """
    a = input._array
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, a.ndim))
    if running_mean is not None:
        m = a.dtype.type(momentum)
        store(running_mean, (1 - m) * running_mean._array + m * a.mean(axis=axes).mean(0), checked=False)
        store(running_var, (1 - m) * running_var._array + m * a.var(axis=axes, ddof=1).mean(0), checked=False)
    return call(BATCH_NORM, (input, _per_channel(weight, a.ndim), _per_channel(bias, a.ndim), axes, eps))


# --- shapes -------------------------------------------------------------------------------------------------


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions: `pad` holds (before, after) from the last dimension backwards."""
    n = input._array.ndim
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * n:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding "
            f"length {len(pad)} and input of dimension {n}"
        )
    width = [(0, 0)] * n
    for i in range(len(pad) // 2):
        width[n - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    if any(p < 0 for pair in width for p in pair):
        key = tuple(
            slice(max(0, -b), s - max(0, -e) or None)
            for (b, e), s in zip(width, input._array.shape, strict=True)
        )
        input = input[key]
        width = [(max(0, b), max(0, e)) for b, e in width]
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in names:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "reflect" and any(p >= s for pair, s in zip(width, input.shape, strict=True) for p in pair):
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"{tuple(pad)} of input {list(input.shape)}"
        )
    if mode == "constant":
        return call(PAD, (input, tuple(width), value or 0.0))
    return call(rule_node("PadBackward0", np.pad), (input, tuple(width), names[mode]))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`.

    >>> sg.nn.functional.cosine_similarity(sg.tensor([[3.0, 4.0]]), sg.tensor([[3.0, 0.0]]))
    tensor([0.6000])
    """
    dot = (x1 * x2).sum(dim)
    return dot / (norm(x1, 2, dim).clamp(min=eps) * norm(x2, 2, dim).clamp(min=eps))


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    >>> sg.nn.functional.pairwise_distance(sg.tensor([[3.0, 4.0]]), sg.zeros(1, 2), eps=0.0)
    tensor([5.])
    """
    return norm(x1 - x2 + eps, p, -1, keepdim)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """`softmax(query key^T / sqrt(d)) value`."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)) * factor
    if is_causal:
        causal = np.tril(np.ones((query.shape[-2], key.shape[-2]), dtype=bool))
        attn_mask = wrap(beside(causal, query._array))
    if attn_mask is not None:
        if attn_mask._array.dtype.kind == "b":
            scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
        else:
            scores = scores + attn_mask
    weights = softmax(scores, -1)
    return dropout(weights, dropout_p) @ value
