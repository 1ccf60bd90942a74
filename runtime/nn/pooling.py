"""Pooling."""

from __future__ import annotations

from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn.module import Module


class _MaxPool(Module):
    function: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = (
            padding,
            dilation,
            return_indices,
            ceil_mode,
        )

    def forward(self, input: Any) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    function: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolOfSequences(_AvgPool):
    def extra_repr(self) -> str:
        k, s, p = (
            (v,) if isinstance(v, int) else tuple(v) for v in (self.kernel_size, self.stride, self.padding)
        )
        return f"kernel_size={k}, stride={s}, padding={p}"


class _Adaptive(Module):
    function: Any = None

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return type(self).function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return type(self).function(input, self.output_size, self.return_indices)


class _LPPool(Module):
    function: Any = None

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = (
            norm_type,
            kernel_size,
            stride,
            ceil_mode,
        )

    def forward(self, input: Any) -> Any:
        return type(self).function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


def _made(name: str, base: type, function: Any) -> Any:
    members = {"function": staticmethod(function), "__doc__": function.__doc__, "__module__": __name__}
    return type(name, (base,), members)


MaxPool1d = _made("MaxPool1d", _MaxPool, F.max_pool1d)
MaxPool2d = _made("MaxPool2d", _MaxPool, F.max_pool2d)
MaxPool3d = _made("MaxPool3d", _MaxPool, F.max_pool3d)
AvgPool1d = _made("AvgPool1d", _AvgPoolOfSequences, F.avg_pool1d)
AvgPool2d = _made("AvgPool2d", _AvgPool, F.avg_pool2d)
AvgPool3d = _made("AvgPool3d", _AvgPool, F.avg_pool3d)
AdaptiveAvgPool1d = _made("AdaptiveAvgPool1d", _Adaptive, F.adaptive_avg_pool1d)
AdaptiveAvgPool2d = _made("AdaptiveAvgPool2d", _Adaptive, F.adaptive_avg_pool2d)
AdaptiveAvgPool3d = _made("AdaptiveAvgPool3d", _Adaptive, F.adaptive_avg_pool3d)
AdaptiveMaxPool1d = _made("AdaptiveMaxPool1d", _AdaptiveMax, F.adaptive_max_pool1d)
AdaptiveMaxPool2d = _made("AdaptiveMaxPool2d", _AdaptiveMax, F.adaptive_max_pool2d)
AdaptiveMaxPool3d = _made("AdaptiveMaxPool3d", _AdaptiveMax, F.adaptive_max_pool3d)
LPPool1d, LPPool2d = _made("LPPool1d", _LPPool, F.lp_pool1d), _made("LPPool2d", _LPPool, F.lp_pool2d)
LPPool3d = _made("LPPool3d", _LPPool, F.lp_pool3d)
