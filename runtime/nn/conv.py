"""Convolutions."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn import init
from srcgrad.runtime.nn.functional_spatial import several
from srcgrad.runtime.nn.module import Module
from srcgrad.runtime.nn.parameter import Parameter
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import empty


class _Conv(Module):
    n = 0
    function: Any = None
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        n = self.n
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = (
            several(kernel_size, n),
            several(stride, n),
            several(dilation, n),
        )
        self.padding: Any = padding if isinstance(padding, str) else several(padding, n)
        self.padding_mode = padding_mode
        shape = (
            (in_channels, out_channels // groups)
            if self.transposed
            else (out_channels, in_channels // groups)
        )
        self.weight = Parameter(empty(*shape, *self.kernel_size, dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(empty(out_channels, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        bound = 1 / math.sqrt(fan_in) if fan_in else 0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            if isinstance(padding, str):
                total: list[int] = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
                around = [
                    w
                    for t in reversed(total)
                    for w in ((t // 2, t - t // 2) if padding == "same" else (0, 0))
                ]
            else:
                around = [w for p in reversed(padding) for w in (p, p)]
            input = F.pad(input, around, self.padding_mode)
            padding = (0,) * self.n
        return type(self).function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        out = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.n:
            out += f", padding={self.padding}"
        if self.dilation != (1,) * self.n:
            out += f", dilation={self.dilation}"
        if self.transposed and any(self.output_padding):
            out += f", output_padding={self.output_padding}"
        if self.groups != 1:
            out += f", groups={self.groups}"
        if self.bias is None:
            out += ", bias=False"
        if self.padding_mode != "zeros":
            out += f", padding_mode={self.padding_mode}"
        return out


class Conv1d(_Conv):
    """Cross-correlation of sequences."""

    n, function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Cross-correlation of images."""

    n, function = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Cross-correlation of volumes."""

    n, function = 3, staticmethod(F.conv3d)


class _ConvTranspose(_Conv):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = several(output_padding, self.n)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self.output_padding
        if output_size is not None:
            least: list[int] = [
                (m - 1) * s - 2 * p + d * (k - 1) + 1
                for m, s, p, d, k in zip(
                    tuple(input.shape)[-self.n :],
                    self.stride,
                    self.padding,
                    self.dilation,
                    self.kernel_size,
                    strict=True,
                )
            ]
            extra = tuple(w - m for w, m in zip(output_size[-self.n :], least, strict=True))
        return type(self).function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """The adjoint of Conv1d."""

    n, function = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The adjoint of Conv2d."""

    n, function = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The adjoint of Conv3d."""

    n, function = 3, staticmethod(F.conv_transpose3d)
