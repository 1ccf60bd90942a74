"""What functions of Tensors refuse, in PyTorch's words: dtypes without a meaning for them, and operands that
are no Tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_types import SCALAR_NAMES

_UNORDERED = "atan2 copysign cummax cummin erf erfc hypot i0 logaddexp2 logit mode unique xlogy".split()
_REAL = "deg2rad fmax fmin heaviside isneginf isposinf maximum minimum nansum rad2deg".split()
_MATRICES = "cholesky det eigvalsh inverse inv lstsq pinv pinverse qr slogdet solve svd svdvals".split()
_FLOATING = "Expected a floating point or complex tensor as input. Got {}"

REFUSED: dict[str, tuple[str, type[Exception], str]] = {
    **{n: ("c", NotImplementedError, f"\"{n}_cpu\" not implemented for '{{}}'") for n in _UNORDERED},
    **{
        n: ("c", NotImplementedError, f"\"{n}_vml_cpu\" not implemented for '{{}}'")
        for n in ("digamma", "erfinv", "lgamma")
    },
    **{n: ("c", RuntimeError, f"{n} is not implemented for complex tensors.") for n in _REAL},
    **{n: ("biu", RuntimeError, f"linalg.{n}: {_FLOATING}") for n in _MATRICES},
    **{
        n: (kinds, NotImplementedError, f"\"{n}_cpu\" not implemented for '{{}}'")
        for n, kinds in {
            "addcmul": "b", "bernoulli": "biu", "cross": "b", "eigh": "biu",
            "histc": "biu", "hypot": "cbiu", "kthvalue": "bc", "lerp": "biu", "logaddexp": "cbiu",
            "logaddexp2": "cbiu", "logcumsumexp": "biu", "trace": "b",
        }.items()
    },
    "addcdiv": ("biu", RuntimeError, "Integer division with addcdiv is no longer supported: got {}"),
    "logdet": ("biu", RuntimeError, f"logdet: {_FLOATING}"),
    "quantile": ("biuc", RuntimeError, "quantile() input tensor must be either float or double dtype"),
    "relu": ("c", NotImplementedError, "clamp is not supported for complex types"),
    "signbit": ("c", NotImplementedError, "signbit is not implemented for complex tensors."),
    "topk": ("bc", RuntimeError, "topk does not support {} dtypes on CPU"),
}  # fmt: skip
"""Name of a function -> the kinds of dtype that it refuses, the error, its text (`{}`: the dtype)."""


def refuse(name: str, dtype: np.dtype[Any]) -> None:
    """Raise what PyTorch raises if `name` has no meaning for `dtype`."""
    found = REFUSED.get(name)
    if found is not None and dtype.kind in found[0]:
        raise found[1](found[2].format(SCALAR_NAMES.get(dtype.name, dtype.name)))


def must_be_tensor(name: str, parameter: str, place: int, value: Any) -> TypeError:
    kind = type(value)
    full = f"{kind.__module__}.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
    return TypeError(f"{name}(): argument '{parameter}' (position {place}) must be Tensor, not {full}")


def without_array(name: str, error: AttributeError) -> Exception:
    """What to raise for an error that came from using something else as a Tensor."""
    return must_be_tensor(name, "input", 1, error.obj) if error.name == "_array" else error


_BARE = set(
    "add sub mul div matmul pow sum mean max min reshape view t transpose unsqueeze squeeze permute expand "
    "select softmax log_softmax clamp clone detach flatten narrow contiguous where chunk split unbind gather "
    "exp log sqrt sin cos tan tanh sigmoid relu abs neg square lt le gt ge eq ne".split()
)
"""The functions on the fast path, which look at their arguments themselves."""


def guarded(f: Callable[..., Any], name: str, bare: bool = False) -> Callable[..., Any]:
    """`f`, which refuses the dtypes in `REFUSED`, and arguments that are no Tensors where its annotations
    say so. `bare`: also if it is one of the fast path."""
    if name in _BARE and not bare:
        return f
    refused = name in REFUSED
    places: list[tuple[int, str]] = []
    for i, parameter in enumerate(inspect.signature(f).parameters.values()):
        if parameter.annotation == "Tensor" and parameter.default is parameter.empty:
            places.append((i, parameter.name))
    if not places and not refused:
        return f

    first = not refused and len(places) == 1 and places[0][0] == 0

    @functools.wraps(f)
    def checked(*args: Any, **keywords: Any) -> Any:
        if first and args and type(args[0]) is Tensor:
            return f(*args, **keywords)
        for i, parameter in places:
            if i < len(args):
                value = args[i]
            elif parameter in keywords:
                value = keywords[parameter]
            else:
                continue
            if not isinstance(value, Tensor):
                raise must_be_tensor(name, parameter, i + 1, value)
        if refused:
            dtypes = [x._array.dtype for x in args if isinstance(x, Tensor)]
            if dtypes:
                refuse(name, max(dtypes, key=lambda d: "biufc".index(d.kind)))
        return f(*args, **keywords)

    return checked
