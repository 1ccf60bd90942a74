"""Enlarging images, moving values between channels and space, blocks as columns."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.runtime.arrays import beside
from srcgrad.runtime.nn.functional_layers import pad
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_views import reshape

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
"""Modes of `interpolate` with weights -> for how many spatial axes."""


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels moved into space: (..., c r r, h, w) becomes (..., c, h r, w r)."""
    r = upscale_factor
    *lead, c, h, w = input._array.shape
    n = len(lead)
    split = reshape(input, (*lead, c // (r * r), r, r, h, w))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return reshape(split.permute(order), (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Space moved into channels: (..., c, h r, w r) becomes (..., c r r, h, w)."""
    r = downscale_factor
    *lead, c, h, w = input._array.shape
    n = len(lead)
    split = reshape(input, (*lead, c, h // r, r, w // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return reshape(split.permute(order), (*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Groups of channels interleaved."""
    batch, c, *rest = input._array.shape
    split = reshape(input, (batch, groups, c // groups, *rest))
    return reshape(split.transpose(1, 2), (batch, c, *rest))


def _cubic(t: Any) -> Any:
    """Keys' cubic kernel with a = -0.75 (IEEE Trans. ASSP 29, 1981)."""
    a, t = -0.75, np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    return np.where(t <= 1, near, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a)


def _weights(mode: str, new: int, old: int, ratio: float, align: bool, dtype: Any) -> Any:
    """The matrix (new, old) that interpolates along one axis."""
    matrix = np.zeros((new, old), dtype)
    i = np.arange(new)
    at = i * (old - 1) / max(new - 1, 1) if align else (i + 0.5) * ratio - 0.5
    if mode == "bicubic":
        low = np.floor(at).astype(int)
        for k in (-1, 0, 1, 2):
            np.add.at(matrix, (i, np.clip(low + k, 0, old - 1)), _cubic(at - low - k))
        return matrix
    at = at if align else np.maximum(at, 0)
    low = np.minimum(at.astype(int), old - 1)
    high = np.minimum(low + 1, old - 1)
    np.add.at(matrix, (i, low), 1 - (at - low))
    np.add.at(matrix, (i, high), at - low)
    return matrix


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Enlarge or shrink the spatial axes: by nearest neighbours, linearly, by cubics, or by averages
    ("area")."""
    n = input._array.ndim - 2
    if mode in LINEAR and LINEAR[mode] != n or mode not in (*LINEAR, "nearest", "nearest-exact", "area"):
        raise NotImplementedError(f"Got {n + 2}D input, but {mode} mode needs another number of dimensions")
    if align_corners is not None and mode not in LINEAR:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic "
            "| trilinear"
        )
    if antialias:
        raise NotImplementedError("interpolate with antialias=True is not supported")
    if (size is None) == (scale_factor is None):
        raise ValueError("exactly one of size or scale_factor must be defined")
    old = input._array.shape[2:]
    if size is not None:
        new = (size,) * n if isinstance(size, int) else tuple(size)
        ratios = tuple(o / m for o, m in zip(old, new, strict=True))
    else:
        factors = (scale_factor,) * n if isinstance(scale_factor, int | float) else tuple(scale_factor)
        new = tuple(int(math.floor(o * f)) for o, f in zip(old, factors, strict=True))
        ratios = tuple(1 / f for f in factors)
        if recompute_scale_factor:
            ratios = tuple(o / m for o, m in zip(old, new, strict=True))
    if mode == "area":
        from srcgrad.runtime.nn import functional_spatial

        return getattr(functional_spatial, f"adaptive_avg_pool{n}d")(input, new)
    out = input
    for axis, (o, m, ratio) in enumerate(zip(old, new, ratios, strict=True)):
        if mode.startswith("nearest"):
            start = 0.5 if mode == "nearest-exact" else 0.0
            at = np.minimum(((np.arange(m) + start) * ratio).astype(np.int64), o - 1)
            out = out.index_select(axis + 2, wrap(beside(at, input._array)))
            continue
        matrix = _weights(mode, m, o, ratio, bool(align_corners), input._array.dtype)
        out = (out.movedim(axis + 2, -1) @ wrap(beside(matrix.T.copy(), input._array))).movedim(-1, axis + 2)
    return out


def _blocks(sizes: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Padded sizes, and the rows and columns of each element of each block."""
    k, d, p, s = (
        (v, v) if isinstance(v, int) else tuple(v) for v in (kernel_size, dilation, padding, stride)
    )
    padded = [n + 2 * q for n, q in zip(sizes, p, strict=True)]
    counts = [(n - di * (ki - 1) - 1) // si + 1 for n, ki, di, si in zip(padded, k, d, s, strict=True)]
    rows = (np.arange(k[0]) * d[0])[:, None, None, None] + (np.arange(counts[0]) * s[0])[None, None, :, None]
    columns = (np.arange(k[1]) * d[1])[None, :, None, None] + (np.arange(counts[1]) * s[1])[
        None, None, None, :
    ]
    return padded, p, k, rows, columns


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Sliding blocks of an image, as columns."""
    if input.ndim == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    batch, channels, *sizes = input._array.shape
    _, p, k, rows, columns = _blocks(sizes, kernel_size, dilation, padding, stride)
    x = pad(input, (p[1], p[1], p[0], p[0]))
    index = wrap(beside(rows, x._array)), wrap(beside(columns, x._array))
    return x[:, :, index[0], index[1]].reshape(batch, channels * k[0] * k[1], -1)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns summed back into an image: the transpose of `unfold`."""
    if input.ndim == 2:
        return fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    sizes = (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size)
    padded, p, k, rows, columns = _blocks(sizes, kernel_size, dilation, padding, stride)
    batch, depth, _ = input._array.shape
    channels = depth // (k[0] * k[1])
    shape = np.broadcast_shapes(rows.shape, columns.shape)
    parts = input.reshape(batch, channels, *shape)
    whole = input.new_zeros(batch, channels, *padded)
    at = [wrap(beside(np.broadcast_to(i, shape).copy(), input._array)) for i in (rows, columns)]
    flat = (at[0] * padded[1] + at[1]).reshape(-1)
    summed = whole.reshape(batch, channels, -1).index_add(2, flat, parts.reshape(batch, channels, -1))
    out = summed.reshape(batch, channels, *padded)
    return out[:, :, p[0] : padded[0] - p[0], p[1] : padded[1] - p[1]]


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`input / (k + alpha * mean of input**2 over `size` channels) ** beta`."""
    squares = input * input
    lead = [0, 0] * (input.ndim - 2)
    wide = pad(squares, (*lead, size // 2, (size - 1) // 2))
    count = input.shape[1]
    total = wide[:, :count]
    for i in range(1, size):
        total = total + wide[:, i : i + count]
    return input / (k + alpha / size * total) ** beta
