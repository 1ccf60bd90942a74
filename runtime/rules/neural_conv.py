"""Convolution and pooling (PyTorch's cross-correlation), with their rules.

Three bilinear functions are each other's adjoints: `convolve` (input, weight -> output), `convolve_input`
(output, weight -> input) and `convolve_weight` (input, output -> weight). Arrays have a batch and a channel
axis first; options are tuples, one entry for each spatial axis.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import itertools

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from srcgrad.runtime.arrays import namespace
from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import forward, reverse
from srcgrad.runtime.support import _observable as observable
from srcgrad.runtime.support import put_along, unpad

X = generic(2, 2, 5)
W = generic(3, 2, 2, seed=1)
X2 = generic(1, 2, 4, 5)
W2 = generic(2, 1, 2, 3, seed=1)
Y = generic(2, 3, 4)
Y2 = generic(1, 2, 3, 3)


def padded(x, padding, value=0.0):
    """`x` with `padding` on both sides of each spatial axis."""
    if not any(padding):
        return x
    return np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=value)


def out_size(n, k, stride, padding, dilation, ceil=False):
    """The number of windows along an axis."""
    room = n + 2 * padding - dilation * (k - 1) - 1
    count = -(-room // stride) + 1 if ceil else room // stride + 1
    if ceil and (count - 1) * stride >= n + padding:
        count -= 1
    return count


def windows(x, size, stride, dilation):
    """(batch, channel, *positions, *size): the windows of a padded `x`, without copying."""
    spans = tuple(d * (k - 1) + 1 for k, d in zip(size, dilation, strict=False))
    axes = tuple(range(2, x.ndim))
    seen = sliding_window_view(x, spans, axis=axes)
    return seen[
        (
            slice(None),
            slice(None),
            *(slice(None, None, s) for s in stride),
            *(slice(None, None, d) for d in dilation),
        )
    ]


def _columns(x, size, stride, padding, dilation, groups):
    """(groups, batch * positions, channels / groups * window): each window as a row."""
    seen = windows(padded(x, padding), size, stride, dilation)
    n = len(size)
    batch, channels = x.shape[:2]
    positions = seen.shape[2 : 2 + n]
    order = (0, *range(2, 2 + n), 1, *range(2 + n, 2 + 2 * n))
    rows = seen.transpose(order).reshape(batch * int(np.prod(positions)), groups, -1)
    return rows.transpose(1, 0, 2), positions


@observable
def convolve(x, w, stride, padding, dilation, groups=1):
    """The cross-correlation of `x` (batch, channels, *axes) with `w` (outputs, channels / groups, *size)."""
    size = w.shape[2:]
    rows, positions = _columns(x, size, stride, padding, dilation, groups)
    weights = w.reshape(groups, w.shape[0] // groups, -1)
    out = rows @ weights.transpose(0, 2, 1)
    out = out.transpose(1, 0, 2).reshape(x.shape[0], *positions, w.shape[0])
    return np.moveaxis(out, -1, 1).copy()


@observable
def convolve_weight(x, g, size, stride, padding, dilation, groups=1):
    """The cotangent of `w` for `convolve(x, w)`: the sum over batch and positions of window times output."""
    rows, positions = _columns(x, size, stride, padding, dilation, groups)
    outputs = g.shape[1]
    flat = np.moveaxis(g, 1, -1)[(slice(None), *(slice(0, p) for p in positions))].reshape(
        -1, groups, outputs // groups
    )
    return (flat.transpose(1, 2, 0) @ rows).reshape(outputs, x.shape[1] // groups, *size)


@observable
def convolve_input(g, w, shape, stride, padding, dilation, groups=1):
    """The cotangent of `x` (with spatial `shape`) for `convolve(x, w)`: each output spread over its
    window."""
    batch, outputs = g.shape[:2]
    positions, size = g.shape[2:], w.shape[2:]
    weights = w.reshape(groups, outputs // groups, -1)
    flat = np.moveaxis(g, 1, -1).reshape(-1, groups, outputs // groups).transpose(1, 0, 2)
    spread = flat @ weights
    spread = spread.transpose(1, 0, 2).reshape(batch, *positions, groups * w.shape[1], *size)
    n = len(size)
    spread = np.moveaxis(spread, n + 1, 1)
    extent = tuple(
        max(s + 2 * p, st * (q - 1) + d * (k - 1) + 1)
        for s, p, st, q, d, k in zip(shape, padding, stride, positions, dilation, size, strict=False)
    )
    out = np.zeros_like(g, shape=(batch, groups * w.shape[1], *extent))
    for offset in itertools.product(*(range(k) for k in size)):
        where = tuple(
            slice(o * d, o * d + st * (q - 1) + 1, st)
            for o, d, st, q in zip(offset, dilation, stride, positions, strict=False)
        )
        out[(slice(None), slice(None), *where)] += spread[(..., *offset)]
    return out[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(padding, shape, strict=False)))]


@reverse(
    convolve,
    wrt=("x", "w"),
    at=[(X, W, (1,), (0,), (1,)), (X, W, (2,), (1,), (2,)), (X2, W2, (1, 2), (0, 1), (1, 1), 2)],
)
def convolve_rule(g, y, x, w, stride, padding, dilation, groups=1):
    return (
        convolve_input(g, w, x.shape[2:], stride, padding, dilation, groups),
        convolve_weight(x, g, w.shape[2:], stride, padding, dilation, groups),
    )


@forward(convolve)
def convolve_forward(x_dot, w_dot, y, x, w, stride, padding, dilation, groups=1):
    return convolve(x_dot, w, stride, padding, dilation, groups), convolve(
        x, w_dot, stride, padding, dilation, groups
    )


@reverse(
    convolve_input,
    wrt=("g", "w"),
    at=[(Y, W, (5,), (1,), (0,), (1,)), (Y2, W2, (4, 5), (1, 2), (0, 1), (1, 1), 2)],
)
def convolve_input_rule(u, y, g, w, shape, stride, padding, dilation, groups=1):
    return (
        fitted(convolve(u, w, stride, padding, dilation, groups), g.shape),
        convolve_weight(u, g, w.shape[2:], stride, padding, dilation, groups),
    )


@forward(convolve_input)
def convolve_input_forward(g_dot, w_dot, y, g, w, shape, stride, padding, dilation, groups=1):
    return (
        convolve_input(g_dot, w, shape, stride, padding, dilation, groups),
        convolve_input(g, w_dot, shape, stride, padding, dilation, groups),
    )


@reverse(
    convolve_weight,
    wrt=("x", "g"),
    at=[(X, Y, (2,), (1,), (0,), (1,)), (X2, generic(1, 2, 3, 3), (2, 3), (1, 1), (0, 0), (1, 1), 2)],
)
def convolve_weight_rule(u, y, x, g, size, stride, padding, dilation, groups=1):
    return (
        convolve_input(g, u, x.shape[2:], stride, padding, dilation, groups),
        fitted(convolve(x, u, stride, padding, dilation, groups), g.shape),
    )


@forward(convolve_weight)
def convolve_weight_forward(x_dot, g_dot, y, x, g, size, stride, padding, dilation, groups=1):
    return (
        convolve_weight(x_dot, g, size, stride, padding, dilation, groups),
        convolve_weight(x, g_dot, size, stride, padding, dilation, groups),
    )


def fitted(x, shape):
    """`x` cut to `shape` (a stride may leave positions that nothing uses)."""
    return x if tuple(x.shape) == tuple(shape) else x[tuple(slice(0, n) for n in shape)]


# --- pooling ------------------------------------------------------------------------------------------------


@observable
def pool_sum(x, size, stride, padding, positions):
    """The sum over each window (windows may reach over the padded end)."""
    wide = _reaching(padded(x, padding), size, stride, positions, 0.0)
    seen = windows(wide, size, stride, (1,) * len(size))
    seen = seen[(slice(None), slice(None), *(slice(0, p) for p in positions))]
    return np.sum(seen, axis=tuple(range(x.ndim, seen.ndim)))


def _reaching(x, size, stride, positions, value):
    extra = [
        max(0, (q - 1) * s + k - n) for q, s, k, n in zip(positions, stride, size, x.shape[2:], strict=False)
    ]
    return np.pad(x, [(0, 0), (0, 0), *((0, e) for e in extra)], constant_values=value) if any(extra) else x


@observable
def pool_spread(g, size, stride, padding, shape):
    """The adjoint of `pool_sum`: each value added to all places of its window."""
    positions = g.shape[2:]
    extent = tuple(
        max(n + 2 * p, (q - 1) * s + k)
        for n, p, q, s, k in zip(shape, padding, positions, stride, size, strict=False)
    )
    out = np.zeros_like(g, shape=(*g.shape[:2], *extent))
    for offset in itertools.product(*(range(k) for k in size)):
        where = tuple(
            slice(o, o + s * (q - 1) + 1, s) for o, s, q in zip(offset, stride, positions, strict=False)
        )
        out[(slice(None), slice(None), *where)] += g
    return out[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(padding, shape, strict=False)))]


@reverse(pool_sum, linear=True, at=[(X, (2,), (2,), (0,), (2,)), (X2, (2, 3), (1, 2), (1, 1), (5, 3))])
def pool_sum_rule(g, y, x, size, stride, padding, positions):
    return pool_spread(g, size, stride, padding, x.shape[2:])


@reverse(pool_spread, linear=True, at=[(generic(2, 2, 2), (2,), (2,), (0,), (5,))])
def pool_spread_rule(u, y, g, size, stride, padding, shape):
    return pool_sum(u, size, stride, padding, g.shape[2:])


def pool_argmax(x, size, stride, padding, dilation, positions):
    """For each window, where in the flattened spatial axes of `x` its maximum is (the first, at a tie)."""
    wide = padded(x, padding, -np.inf)
    extra = [
        max(0, (q - 1) * s + d * (k - 1) + 1 - n)
        for q, s, d, k, n in zip(positions, stride, dilation, size, wide.shape[2:], strict=False)
    ]
    if any(extra):
        wide = np.pad(wide, [(0, 0), (0, 0), *((0, e) for e in extra)], constant_values=-np.inf)
    seen = windows(wide, size, stride, dilation)
    seen = seen[(slice(None), slice(None), *(slice(0, p) for p in positions))]
    n = len(size)
    best = seen.reshape(*seen.shape[: 2 + n], -1).argmax(-1)
    flat = 0
    rest = best
    inner = []
    for k in reversed(size):
        inner.append(rest % k)
        rest = rest // k
    for axis, (offset, s, p, d) in enumerate(zip(reversed(inner), stride, padding, dilation, strict=True)):
        start = (namespace(x).arange(positions[axis]) * s - p).reshape(
            (1, 1) + tuple(-1 if a == axis else 1 for a in range(n))
        )
        flat = flat * x.shape[2 + axis] + start + offset * d
    return flat


def convolution(x, w, bias, stride, padding, dilation, groups=1):
    """`convolve` plus a bias for each output channel."""
    out = convolve(x, w, stride, padding, dilation, groups)
    if bias is None:
        return out
    return out + np.reshape(bias, (-1,) + (1,) * len(stride))


@reverse(
    convolution,
    wrt=("x", "w", "bias"),
    at=[(X, W, generic(3), (1,), (0,), (1,)), (X2, W2, generic(2), (1, 2), (0, 1), (1, 1), 2)],
)
def convolution_rule(g, y, x, w, bias, stride, padding, dilation, groups=1):
    return (
        convolve_input(g, w, x.shape[2:], stride, padding, dilation, groups),
        convolve_weight(x, g, w.shape[2:], stride, padding, dilation, groups),
        np.sum(g, axis=(0, *range(2, np.ndim(g)))),
    )


@forward(convolution)
def convolution_forward(x_dot, w_dot, bias_dot, y, x, w, bias, stride, padding, dilation, groups=1):
    return (
        convolve(x_dot, w, stride, padding, dilation, groups),
        convolve(x, w_dot, stride, padding, dilation, groups),
        0 * y + np.reshape(bias_dot, (-1,) + (1,) * len(stride)),
    )


def pick(x, flat):
    """The elements of `x` at positions `flat` of its flattened spatial axes."""
    rows = np.reshape(x, (*x.shape[:2], -1))
    return np.reshape(np.take_along_axis(rows, flat.reshape(*flat.shape[:2], -1), -1), flat.shape)


@reverse(pick, linear=True, at=[(X, np.array([[[1, 4], [0, 0]], [[2, 2], [3, 1]]]))])
def pick_rule(g, y, x, flat):
    rows = np.reshape(x, (*x.shape[:2], -1))
    indices = flat.reshape(*flat.shape[:2], -1)
    return np.reshape(put_along(np.reshape(g, indices.shape), rows, indices, -1), x.shape)


def pad_constant(x, width, value=0.0):
    """`x` with a border of one value."""
    return np.pad(x, width, constant_values=value)


@reverse(pad_constant, at=[(X, ((0, 0), (1, 0), (2, 1))), (X, ((0, 1), (0, 0), (0, 0)), 2.0)])
def pad_constant_rule(g, y, x, width, value=0.0):
    return unpad(g, x, width)


@forward(pad_constant)
def pad_constant_forward(x_dot, y, x, width, value=0.0):
    return np.pad(x_dot, width)
