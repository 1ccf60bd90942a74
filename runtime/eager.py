"""The eager half under PyTorch's names: what `srcgrad.<name>` finds.

The functions on tensors are defined in the rooms `tensor_*.py`, which publish them in one table; the dtypes
stand in `tensor_types.py`. A test compares `__all__` with both.
"""

# ruff: noqa: F822

from __future__ import annotations

import inspect
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
    tensor_extra,
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
    tensor_scatter,
    tensor_views,
)
from srcgrad.runtime.autograd import api as _api  # noqa: F401  (gives Tensor its backward)
from srcgrad.runtime.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    state,
)
from srcgrad.runtime.tensor import FUNCTIONS, operand_dtype, with_out
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_guards import guarded
from srcgrad.runtime.tensor_linalg import linalg
from srcgrad.runtime.tensor_print import set_printoptions
from srcgrad.runtime.tensor_special import special
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
    tensor_extra,
    tensor_scatter,
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


def is_anomaly_enabled() -> bool:
    """Whether `detect_anomaly` is on in this thread."""
    return state.anomaly


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> sg.numel(sg.zeros(2, 3))
    6
    """
    return input.numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is one of floating-point numbers.

    >>> sg.is_floating_point(sg.tensor([1]))
    False
    """
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    >>> sg.is_complex(sg.tensor([1j]))
    True
    """
    return input.is_complex()


def _typed(name: str) -> Callable[..., Tensor]:
    """An old constructor such as `FloatTensor`."""
    kind = as_dtype(name)

    def make(*data: Any) -> Tensor:
        return Tensor(*data, dtype=kind)

    make.__doc__ = f"`Tensor(*data)` as {name}: an old constructor; `tensor(data, dtype=...)` says more."

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
        """The number of CUDA devices that can be used: 0 without CuPy."""
        from srcgrad.runtime.arrays import BACKENDS

        return int(BACKENDS["cuda"]().cuda.runtime.getDeviceCount()) if cuda.is_available() else 0


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed: what `set_printoptions` has set.

    >>> sg.get_printoptions()["precision"]
    4
    """
    from srcgrad.runtime.tensor_print import Options

    names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    return {name: getattr(Options, name) for name in names}


_WITH_OUT = (
    "abs absolute addcdiv addcmul addmm all amax amin any argmax argmin bitwise_and bitwise_not bitwise_or "
    "bitwise_xor bmm ceil clamp clamp_max clamp_min clip conj cross cummax cummin "
    "cumprod cumsum diag diff dot eq fix floor floor_divide frac gather ge ger greater greater_equal gt "
    "hstack index_select inner inverse isfinite kron kthvalue le lerp less less_equal log_softmax "
    "logical_and logical_not logical_or logical_xor logsumexp lt masked_select matmul matrix_power max "
    "mean median min mm mode mv nanmean nansum ne neg negative norm not_equal outer pow prod "
    "round sign softmax sort square std sum take tensordot topk tril triu trunc var vdot vstack where"
).split()
FUNCTIONS.update(
    {
        name: guarded(f, name, True)
        for name, f in FUNCTIONS.items()
        if inspect.isfunction(f)
        and not hasattr(f, "__wrapped__")
        and name not in (*tensor_math.UNARY, *_WITH_OUT)
    }
)
FUNCTIONS.update({name: with_out(FUNCTIONS[name]) for name in _WITH_OUT if name in FUNCTIONS})
globals().update({d.name: d for d in ALL if d.name not in globals()})
globals().update({name: f for name, f in FUNCTIONS.items() if name not in globals()})
globals()["bool"] = as_dtype(np.bool_)
globals()["float"], globals()["int"] = as_dtype("float32"), as_dtype("int32")

__all__ = [
    "BoolTensor", "ByteTensor", "DoubleTensor", "FloatTensor", "Generator", "IntTensor", "LongTensor",
    "Size", "Tensor", "abs", "abs_", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul",
    "addmm", "addmv", "addr", "adjoint", "all", "allclose", "amax", "amin", "aminmax", "angle", "any",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmin",
    "argsort", "argwhere", "as_strided", "as_tensor", "asarray", "asin", "asinh", "atan", "atan2",
    "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "autograd", "baddbmm", "bernoulli", "bincount",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "block_diag", "bmm", "bool", "broadcast_shapes", "broadcast_tensors", "broadcast_to",
    "bucketize", "can_cast", "cartesian_prod", "cat", "cdist", "cdouble", "ceil", "ceil_", "cfloat",
    "chain_matmul", "cholesky", "chunk", "clamp", "clamp_", "clamp_max", "clamp_min", "clip", "clone",
    "column_stack", "combinations", "complex128", "complex64", "concat", "concatenate", "conj",
    "conj_physical", "copysign", "corrcoef", "cos", "cos_", "cosh", "count_nonzero", "cov", "cross",
    "cuda", "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "deg2rad", "det", "detach",
    "device", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "diff", "digamma",
    "dist", "div", "divide", "dot", "double", "dstack", "dtype", "e", "einsum", "empty", "empty_like",
    "enable_grad", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "exp_", "expm1", "expm1_",
    "eye", "fill_", "finfo", "fix", "flatten", "flip", "fliplr", "flipud", "float", "float16",
    "float32", "float64", "float_power", "floor", "floor_", "floor_divide", "fmax", "fmin", "fmod",
    "frac", "from_dlpack", "from_numpy", "full", "full_like", "gather", "ge", "ger",
    "get_default_device", "get_default_dtype", "get_device", "get_printoptions", "get_rng_state",
    "greater", "greater_equal", "gt", "half", "heaviside", "histc", "hsplit", "hstack", "hypot", "i0",
    "iinfo", "imag", "index_add", "index_copy", "index_fill", "index_put", "index_select", "inf",
    "inference_mode", "inner", "int", "int16", "int32", "int64", "int8", "inverse",
    "is_anomaly_enabled", "is_complex", "is_floating_point", "is_grad_enabled", "is_inference",
    "is_inference_mode_enabled", "is_nonzero", "is_same_size", "is_signed", "is_tensor", "isclose",
    "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "kron", "kthvalue", "le",
    "lerp", "less", "less_equal", "lgamma", "linalg", "linspace", "load", "log", "log10", "log1p",
    "log1p_", "log2", "log_", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "long",
    "lt", "manual_seed", "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_power",
    "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mm", "mode", "moveaxis",
    "movedim", "msort", "mul", "multinomial", "multiply", "mv", "nan", "nan_to_num", "nanmean",
    "nanmedian", "nansum", "narrow", "narrow_copy", "ne", "neg", "neg_", "negative", "newaxis", "nn",
    "no_grad", "nonzero", "norm", "normal", "not_equal", "numel", "ones", "ones_like", "optim", "outer",
    "permute", "pi", "pinverse", "positive", "pow", "prod", "promote_types", "put", "quantile",
    "rad2deg", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "ravel", "real", "reciprocal", "reciprocal_", "relu", "relu_", "remainder", "renorm",
    "repeat_interleave", "reshape", "resolve_conj", "result_type", "roll", "rot90", "round", "round_",
    "row_stack", "rsqrt", "rsqrt_", "rsub", "save", "scalar_tensor", "scatter", "scatter_add",
    "scatter_reduce", "searchsorted", "select", "select_scatter", "set_default_device",
    "set_default_dtype", "set_grad_enabled", "set_printoptions", "set_rng_state", "sgn", "short",
    "sigmoid", "sigmoid_", "sign", "signbit", "sin", "sin_", "sinc", "sinh", "slice_scatter", "slogdet",
    "softmax", "sort", "special", "split", "split_with_sizes", "sqrt", "sqrt_", "square", "square_",
    "squeeze", "stack", "std", "std_mean", "sub", "subtract", "sum", "swapaxes", "swapdims", "t",
    "take", "take_along_dim", "tan", "tan_", "tanh", "tanh_", "tensor", "tensor_split", "tensordot",
    "tile", "topk", "trace", "transpose", "trapezoid", "trapz", "tril", "tril_indices", "triu",
    "triu_indices", "true_divide", "trunc", "trunc_", "uint16", "uint32", "uint64", "uint8", "unbind",
    "unflatten", "unique", "unique_consecutive", "unsqueeze", "vander", "var", "var_mean", "vdot",
    "vsplit", "vstack", "where", "xlogy", "zero_", "zeros", "zeros_like",
]  # fmt: skip
