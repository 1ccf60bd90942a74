"""Activations as modules."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

from srcgrad.runtime.nn import functional as F
from srcgrad.runtime.nn.module import Module
from srcgrad.runtime.nn.parameter import Parameter
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_create import full


class _Activation(Module):
    """An activation whose options are listed with their defaults; `function` gets them by keyword."""

    function: Any = None
    options: dict[str, Any] = {}
    shown: tuple[str, ...] = ()
    inplace = False

    def __init__(self, *args: Any, inplace: bool = False, **keywords: Any):
        super().__init__()
        values = dict(self.options)
        for name, value in zip(self.options, args, strict=False):
            values[name] = value
        extra = args[len(self.options) :]
        if extra:
            inplace = extra[0]
        for name, value in keywords.items():
            if name not in values:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            values[name] = value
        for name, value in values.items():
            setattr(self, name, value)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        keywords = {name: getattr(self, name) for name in self.options}
        if self.inplace:
            keywords["inplace"] = True
        return type(self).function(input, **keywords)

    def extra_repr(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in self.shown]
        return ", ".join(parts + (["inplace=True"] if self.inplace else []))


def _made(name: str, function: Any, shown: tuple[str, ...] | None = None, **options: Any) -> Any:
    members = {
        "function": staticmethod(function), "options": options,
        "shown": tuple(options) if shown is None else shown,
        "__doc__": function.__doc__ or f"{name}.", "__module__": __name__,
    }  # fmt: skip
    return type(name, (_Activation,), members)


ReLU = _made("ReLU", F.relu)
ReLU6 = _made("ReLU6", F.relu6)
Sigmoid = _made("Sigmoid", F.sigmoid)
Tanh = _made("Tanh", F.tanh)
SiLU = _made("SiLU", F.silu)
Mish = _made("Mish", F.mish)
SELU = _made("SELU", F.selu)
ELU = _made("ELU", F.elu, alpha=1.0)
CELU = _made("CELU", F.celu, alpha=1.0)
GELU = _made("GELU", F.gelu, approximate="none")
LeakyReLU = _made("LeakyReLU", F.leaky_relu, negative_slope=0.01)
Hardtanh = _made("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0)
Hardswish = _made("Hardswish", F.hardswish)
Hardsigmoid = _made("Hardsigmoid", F.hardsigmoid)
Softplus = _made("Softplus", F.softplus, beta=1.0, threshold=20.0)
LogSigmoid = _made("LogSigmoid", F.logsigmoid)
Softsign = _made("Softsign", F.softsign)
Tanhshrink = _made("Tanhshrink", F.tanhshrink)


class _Shrink(_Activation):
    def extra_repr(self) -> str:
        return str(self.lambd)


Hardshrink = type(
    "Hardshrink",
    (_Shrink,),
    {"function": staticmethod(F.hardshrink), "options": {"lambd": 0.5}, "__doc__": F.hardshrink.__doc__},
)
Softshrink = type(
    "Softshrink",
    (_Shrink,),
    {"function": staticmethod(F.softshrink), "options": {"lambd": 0.5}, "__doc__": F.softshrink.__doc__},
)


class Threshold(Module):
    """The input where it is above a threshold, else a value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"


class _Soft(Module):
    function: Any = None

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Soft):
    """`exp(x) / sum(exp(x))` along `dim`."""

    function = staticmethod(F.softmax)


class Softmin(_Soft):
    """Softmax of `-x`."""

    function = staticmethod(F.softmin)


class LogSoftmax(_Soft):
    """The logarithm of softmax."""

    function = staticmethod(F.log_softmax)


class Softmax2d(Module):
    """Softmax over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class GLU(Module):
    """One half of the input times the sigmoid of the other."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class RReLU(Module):
    """ReLU whose slope below 0 is drawn at random in training."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """ReLU with a learned slope below 0."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype, device=device))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
