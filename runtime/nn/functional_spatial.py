"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.arrays import beside, namespace
from srcgrad.runtime.autograd.nodes import rule_node
from srcgrad.runtime.autograd.record import call
from srcgrad.runtime.rules import neural_conv
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_views import squeeze, unsqueeze

CONVOLUTION = rule_node("ConvolutionBackward0", neural_conv.convolution)
TRANSPOSED = rule_node("ConvolutionBackward0", neural_conv.convolve_input)

_out_size: Callable[..., int] = neural_conv.out_size
_pool_argmax: Callable[..., Any] = neural_conv.pool_argmax


def several(value: Any, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value)


def _batched(input: Tensor, n: int, name: str) -> tuple[Tensor, bool]:
    if input._array.ndim == n + 1:
        return unsqueeze(input, 0), True
    if input._array.ndim != n + 2:
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input._array.shape)}"
        )
    return input, False


def _convolution(n: int) -> Callable[..., Tensor]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x, alone = _batched(input, n, f"conv{n}d")
        s, d = several(stride, n), several(dilation, n)
        size = weight._array.shape[2:]
        if x._array.shape[1] != weight._array.shape[1] * groups:
            raise RuntimeError(
                f"Given groups={groups}, weight of size {list(weight._array.shape)}, expected "
                f"input{list(x._array.shape)} to have "
                f"{weight._array.shape[1] * groups} channels, but got {x._array.shape[1]} channels instead"
            )
        if padding == "same":
            if any(v != 1 for v in s):
                raise ValueError("padding='same' is not supported for strided convolutions")
            from srcgrad.runtime.nn.functional_layers import pad as pad_

            total = [di * (k - 1) for di, k in zip(d, size, strict=True)]
            if all(v % 2 == 0 for v in total):
                p = tuple(v // 2 for v in total)
            else:
                x = pad_(x, [w for v in reversed(total) for w in (v // 2, v - v // 2)])
                p = (0,) * n
        else:
            p = (0,) * n if padding == "valid" else several(padding, n)
        room = [m + 2 * q - di * (k - 1) for m, q, di, k in zip(x._array.shape[2:], p, d, size, strict=True)]
        if any(r < 1 for r in room):
            raise RuntimeError(
                "Calculated padded input size per channel: "
                f"{tuple(m + 2 * q for m, q in zip(x._array.shape[2:], p, strict=True))}. "
                f"Kernel size: {size}. Kernel size can't be greater than actual input size"
            )
        if x._array.dtype != weight._array.dtype:
            raise RuntimeError(f"Input type ({x.dtype}) and weight type ({weight.dtype}) should be the same")
        out: Tensor = call(CONVOLUTION, (x, weight, bias, s, p, d, groups))
        return squeeze(out, 0) if alone else out

    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__doc__ = f"Cross-correlation over {n} spatial axes."
    return conv


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)


def _transposed(n: int) -> Callable[..., Tensor]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        x, alone = _batched(input, n, f"conv_transpose{n}d")
        s, p, o, d = (several(v, n) for v in (stride, padding, output_padding, dilation))
        shape = tuple(
            (m - 1) * si - 2 * pi + di * (k - 1) + oi + 1
            for m, si, pi, oi, di, k in zip(
                x._array.shape[2:], s, p, o, d, weight._array.shape[2:], strict=True
            )
        )
        out: Tensor = call(TRANSPOSED, (x, weight, shape, s, p, d, groups))
        if bias is not None:
            out = out + bias.reshape(-1, *([1] * n))
        return squeeze(out, 0) if alone else out

    conv.__name__ = conv.__qualname__ = f"conv_transpose{n}d"
    conv.__doc__ = f"""The transpose of `conv{n}d` over {n} spatial axes: its derivative by its input.

    The weight is (in, out / groups, ...); each axis becomes
    `(length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1` long.

    >>> sg.nn.functional.conv_transpose{n}d(sg.ones{(1, 1) + (2,) * n}, sg.ones{(1, 1) + (3,) * n}).shape
    srcgrad.Size({[1, 1] + [4] * n})
    """
    return conv


conv_transpose1d, conv_transpose2d, conv_transpose3d = _transposed(1), _transposed(2), _transposed(3)


# --- pooling ------------------------------------------------------------------------------------------------


def _max_pool(n: int) -> Callable[..., Any]:
    kind = rule_node(f"MaxPool{n}DWithIndicesBackward0", neural_conv.pick)

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x, alone = _batched(input, n, f"max_pool{n}d")
        k = several(kernel_size, n)
        s = k if stride is None or stride == [] else several(stride, n)
        p, d = several(padding, n), several(dilation, n)
        if any(2 * pi > ki for pi, ki in zip(p, k, strict=True)):
            raise RuntimeError("pad should be at most half of effective kernel size")
        positions = tuple(
            _out_size(m, ki, si, pi, di, ceil_mode)
            for m, ki, si, pi, di in zip(x._array.shape[2:], k, s, p, d, strict=True)
        )
        flat = _pool_argmax(x._array, k, s, p, d, positions)
        out: Tensor = call(kind, (x, flat))
        indices = wrap(flat)
        if alone:
            out, indices = squeeze(out, 0), squeeze(indices, 0)
        return (out, indices) if return_indices else out

    pool.__name__ = pool.__qualname__ = f"max_pool{n}d"
    pool.__doc__ = f"""The maximum of each window over {n} axes, `stride` apart (default: `kernel_size`).

    With `return_indices` a pair: also the place of each maximum, counted as if the spatial axes were flat.
    Padding of more than half a window is a `RuntimeError`.

    >>> sg.nn.functional.max_pool{n}d(sg.ones{(1, 1) + (4,) * n}, 2).shape
    srcgrad.Size({[1, 1] + [2] * n})
    """
    return pool


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


def _avg_pool(n: int) -> Callable[..., Tensor]:
    kind = rule_node(f"AvgPool{n}DBackward0", neural_conv.pool_sum)

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        x, alone = _batched(input, n, f"avg_pool{n}d")
        k = several(kernel_size, n)
        s = k if stride is None or stride == [] else several(stride, n)
        p = several(padding, n)
        shape = x._array.shape[2:]
        positions = tuple(
            _out_size(m, ki, si, pi, 1, ceil_mode) for m, ki, si, pi in zip(shape, k, s, p, strict=True)
        )
        total: Tensor = call(kind, (x, k, s, p, positions))
        if divisor_override is not None:
            out = total / divisor_override
        else:
            counts: Any = np.ones((1,) * n)
            for axis, (m, ki, si, pi, q) in enumerate(zip(shape, k, s, p, positions, strict=True)):
                start = np.arange(q) * si - pi
                end = np.minimum(start + ki, m + pi if count_include_pad else m)
                each = end - (start if count_include_pad else np.maximum(start, 0))
                counts = counts * each.reshape([-1 if a == axis else 1 for a in range(n)])
            scale = (1 / counts).astype(x._array.dtype)
            out = total * (
                wrap(beside(scale, x._array))
                if len(set(scale.reshape(-1).tolist())) > 1
                else float(scale.reshape(-1)[0])
            )
        return squeeze(out, 0) if alone else out

    pool.__name__ = pool.__qualname__ = f"avg_pool{n}d"
    pool.__doc__ = f"""The mean of each window over {n} axes, `stride` (default: `kernel_size`) apart.

    Padding counts as zeros, or with `count_include_pad=False` not at all; `divisor_override` divides the
    sum instead of the number of elements.

    >>> sg.nn.functional.avg_pool{n}d(sg.ones{(1, 1) + (4,) * n}, 2).shape
    srcgrad.Size({[1, 1] + [2] * n})
    """
    return pool


avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)


def _bins(n: int, count: int) -> list[tuple[int, int]]:
    return [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]


def _adaptive_avg(n: int) -> Callable[..., Tensor]:
    def pool(input: Tensor, output_size: Any) -> Tensor:
        x, alone = _batched(input, n, f"adaptive_avg_pool{n}d")
        wanted = tuple(
            m if w is None else w
            for w, m in zip(
                several(output_size, n) if output_size is not None else (None,) * n,
                x._array.shape[2:],
                strict=True,
            )
        )
        out = x
        for axis, (m, w) in enumerate(zip(x._array.shape[2:], wanted, strict=True)):
            matrix = np.zeros((m, w), x._array.dtype)
            for i, (start, end) in enumerate(_bins(m, w)):
                matrix[start:end, i] = 1 / (end - start)
            out = (out.movedim(axis + 2, -1) @ wrap(beside(matrix, x._array))).movedim(-1, axis + 2)
        return squeeze(out, 0) if alone else out

    pool.__name__ = pool.__qualname__ = f"adaptive_avg_pool{n}d"
    pool.__doc__ = f"""The mean of windows over {n} axes, chosen so that the result has `output_size`.

    `output_size` is one number or one per axis, None for as many as there are.

    >>> sg.nn.functional.adaptive_avg_pool{n}d(sg.ones{(1, 1) + (5,) * n}, 2).shape
    srcgrad.Size({[1, 1] + [2] * n})
    """
    return pool


def _adaptive_max(n: int) -> Callable[..., Any]:
    kind = rule_node(f"AdaptiveMaxPool{n}DBackward0", neural_conv.pick)

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        x, alone = _batched(input, n, f"adaptive_max_pool{n}d")
        shape = x._array.shape[2:]
        wanted = tuple(m if w is None else w for w, m in zip(several(output_size, n), shape, strict=True))
        flat = namespace(x._array).zeros((*x._array.shape[:2], *wanted), dtype=np.int64)
        for position in np.ndindex(*wanted):
            spans = [_bins(m, w)[i] for m, w, i in zip(shape, wanted, position, strict=True)]
            part = x._array[(slice(None), slice(None), *(slice(b, e) for b, e in spans))]
            best = part.reshape(*part.shape[:2], -1).argmax(-1)
            inner = np.unravel_index(best, part.shape[2:])
            where = np.ravel_multi_index(tuple(i + b for i, (b, _) in zip(inner, spans, strict=True)), shape)
            flat[(slice(None), slice(None), *position)] = where
        out: Tensor = call(kind, (x, flat))
        indices = wrap(flat)
        if alone:
            out, indices = squeeze(out, 0), squeeze(indices, 0)
        return (out, indices) if return_indices else out

    pool.__name__ = pool.__qualname__ = f"adaptive_max_pool{n}d"
    pool.__doc__ = f"""The maximum of windows over {n} axes, chosen so that the result has `output_size`.

    `output_size` is one number or one per axis, None for as many as there are.
    With `return_indices` a pair: also the places.

    >>> sg.nn.functional.adaptive_max_pool{n}d(sg.ones{(1, 1) + (5,) * n}, 2).shape
    srcgrad.Size({[1, 1] + [2] * n})
    """
    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg(n) for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max(n) for n in (1, 2, 3))


def _lp_pool(n: int, average: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pool(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        """The p-norm of each window (of the absolute value of its sum of powers, as in PyTorch)."""
        size = int(np.prod(several(kernel_size, n)))
        powers = average(input**norm_type, kernel_size, stride, 0, ceil_mode)
        out: Tensor = (powers.sign() * powers.abs().relu() * size) ** (1 / norm_type)
        return out

    pool.__name__ = pool.__qualname__ = f"lp_pool{n}d"
    return pool


lp_pool1d, lp_pool2d, lp_pool3d = (
    _lp_pool(n, pool) for n, pool in enumerate((avg_pool1d, avg_pool2d, avg_pool3d), 1)
)
