"""The eager half under PyTorch's names: what `srcgrad.<name>` finds.

The functions on tensors are defined in the rooms `tensor_*.py`, which publish them in one table; the dtypes
stand in `tensor_types.py`. A test compares `__all__` with both.
"""

# ruff: noqa: F822

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import (
    autograd,
    nn,
    optim,
    tensor_create,
    tensor_index,
    tensor_inplace,
    tensor_join,
    tensor_linalg,
    tensor_logic,
    tensor_math,
    tensor_numpy,
    tensor_random,
    tensor_reduce,
    tensor_save,
    tensor_views,
)
from srcgrad.runtime.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from srcgrad.runtime.tensor import FUNCTIONS, operand_dtype
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_linalg import linalg
from srcgrad.runtime.tensor_print import set_printoptions
from srcgrad.runtime.tensor_types import (
    ALL,
    Size,
    as_dtype,
    device,
    dtype,
    finfo,
    from_numpy_dtype,
    iinfo,
    promoted,
    set_default_dtype,
)
from srcgrad.runtime.tensor_types import can_cast as _can_cast
from srcgrad.runtime.tensor_types import default_dtype as get_default_dtype

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"srcgrad\.runtime\.tensor")
"""NumPy's floating point warnings at the fast operators: a Tensor holds inf and nan without remark."""

ROOMS = (
    tensor_create,
    tensor_index,
    tensor_inplace,
    tensor_join,
    tensor_linalg,
    tensor_logic,
    tensor_math,
    tensor_numpy,
    tensor_random,
    tensor_reduce,
    tensor_save,
    tensor_views,
)
"""Importing a room adds its functions and methods."""

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
newaxis = None
double, half, long, short = (as_dtype(name) for name in ("float64", "float16", "int64", "int16"))
cfloat, cdouble = as_dtype("complex64"), as_dtype("complex128")


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype in which an operation on two operands is computed."""
    return from_numpy_dtype(operand_dtype((tensor1, tensor2)))


def promote_types(type1: Any, type2: Any) -> dtype:
    """The smallest dtype that both can be converted to, by PyTorch's rules."""
    return from_numpy_dtype(promoted(as_dtype(type1).numpy, as_dtype(type2).numpy))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether in-place operations may store one dtype in the other."""
    return _can_cast(as_dtype(from_).numpy, as_dtype(to).numpy)


def numel(input: Tensor) -> int:
    return input.numel()


def is_floating_point(input: Tensor) -> bool:
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    return input.is_complex()


def _typed(name: str) -> Callable[..., Tensor]:
    """An old constructor such as `FloatTensor`."""
    kind = as_dtype(name)

    def make(*data: Any) -> Tensor:
        return Tensor(*data, dtype=kind)

    return make


FloatTensor, DoubleTensor, LongTensor = _typed("float32"), _typed("float64"), _typed("int64")
IntTensor, BoolTensor, ByteTensor = _typed("int32"), _typed("bool"), _typed("uint8")


class cuda:  # noqa: N801
    """What can be known about CUDA devices."""

    @staticmethod
    def is_available() -> bool:
        """Whether `device="cuda"` works here."""
        from srcgrad.runtime.arrays import BACKENDS

        try:
            BACKENDS["cuda"]()
        except (ImportError, RuntimeError):
            return False
        return True

    @staticmethod
    def device_count() -> int:
        from srcgrad.runtime.arrays import BACKENDS

        return int(BACKENDS["cuda"]().cuda.runtime.getDeviceCount()) if cuda.is_available() else 0


def get_printoptions() -> dict[str, Any]:
    from srcgrad.runtime.tensor_print import Options

    names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    return {name: getattr(Options, name) for name in names}


globals().update({d.name: d for d in ALL if d.name not in globals()})
globals().update({name: f for name, f in FUNCTIONS.items() if name not in globals()})
globals()["bool"] = as_dtype(np.bool_)
globals()["float"], globals()["int"] = as_dtype("float32"), as_dtype("int32")

__all__ = [
    "BoolTensor", "ByteTensor", "DoubleTensor", "FloatTensor", "Generator", "IntTensor", "LongTensor",
    "Size", "Tensor", "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "addmm", "all",
    "allclose", "amax", "amin", "aminmax", "angle", "any", "arange", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctanh", "argmax", "argmin", "argsort", "as_strided", "as_tensor", "asarray",
    "asin", "asinh", "atan", "atan2", "atanh", "autograd", "baddbmm", "bernoulli", "bincount",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bmm", "bool", "broadcast_tensors",
    "broadcast_to", "can_cast", "cat", "cdouble", "ceil", "cfloat", "cholesky", "chunk", "clamp",
    "clamp_max", "clamp_min", "clip", "clone", "complex128", "complex64", "concat", "concatenate", "conj",
    "conj_physical", "copysign", "cos", "cosh", "count_nonzero", "cross", "cuda", "cummax", "cummin",
    "cumprod", "cumsum", "deg2rad", "det", "device", "diag", "diagonal", "diff", "dist", "div", "divide",
    "dot", "double", "dtype", "e", "einsum", "empty", "empty_like", "enable_grad", "eq", "equal", "erf",
    "erfc", "exp", "exp2", "expm1", "eye", "finfo", "fix", "flatten", "flip", "fliplr", "flipud", "float",
    "float16", "float32", "float64", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod",
    "frac", "from_dlpack", "from_numpy", "full", "full_like", "gather", "ge", "ger", "get_default_dtype",
    "get_printoptions", "greater", "greater_equal", "gt", "half", "hstack", "hypot", "iinfo", "imag",
    "index_add", "index_copy", "index_fill", "index_put", "index_select", "inf", "inference_mode", "inner",
    "int", "int16", "int32", "int64", "int8", "inverse", "is_complex", "is_floating_point",
    "is_grad_enabled", "is_inference_mode_enabled", "is_tensor", "isclose", "isfinite", "isinf", "isnan",
    "kron", "kthvalue", "le", "lerp", "less", "less_equal", "linalg", "linspace", "load", "log", "log10",
    "log1p", "log2", "log_softmax", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logit", "logspace", "logsumexp", "long", "lt", "manual_seed", "masked_fill", "masked_scatter",
    "masked_select", "matmul", "matrix_power", "max", "maximum", "mean", "median", "meshgrid", "min",
    "minimum", "mm", "moveaxis", "movedim", "mul", "multinomial", "multiply", "mv", "nan", "nan_to_num",
    "nanmean", "nansum", "narrow", "ne", "neg", "negative", "newaxis", "nn", "no_grad", "nonzero", "norm",
    "normal", "not_equal", "numel", "ones", "ones_like", "optim", "outer", "permute", "pi", "pinverse",
    "positive", "pow", "prod", "promote_types", "rad2deg", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "randperm", "ravel", "real", "reciprocal", "relu", "remainder",
    "repeat_interleave", "reshape", "resolve_conj", "result_type", "roll", "rot90", "round", "rsqrt",
    "save", "scalar_tensor", "scatter", "scatter_add", "select", "set_default_dtype", "set_grad_enabled",
    "set_printoptions", "sgn", "short", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "slogdet",
    "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "std_mean", "sub", "subtract",
    "sum", "swapaxes", "swapdims", "t", "take", "take_along_dim", "tan", "tanh", "tensor", "tensor_split",
    "tensordot", "tile", "topk", "trace", "transpose", "tril", "triu", "true_divide", "trunc", "uint16",
    "uint32", "uint64", "uint8", "unbind", "unflatten", "unique", "unsqueeze", "var", "var_mean", "vdot",
    "vstack", "where", "xlogy", "zeros", "zeros_like",
]  # fmt: skip
