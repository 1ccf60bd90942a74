"""`srcgrad.special`: SciPy's special functions on Tensors, also those that are no ufuncs.

SciPy's ufuncs take Tensors themselves (`scipy.special.gammaln(t)`), by NumPy's protocol. SciPy has no such
protocol for its other functions (`logsumexp`, `softmax`, `polygamma`, ...), which turn their arguments into
arrays first. Here all of them record what they do. `logsumexp`, `softmax` and `log_softmax` take PyTorch's
arguments, and SciPy's by their keywords (`axis=`, `b=`, ...).
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from srcgrad.runtime.errors import MissingExtra
from srcgrad.runtime.rules.table import find
from srcgrad.runtime.tensor import FUNCTIONS
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_numpy import array_function

_PYTORCH = {
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "i1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
    "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e",
}  # fmt: skip
"""PyTorch's names for what SciPy calls otherwise."""
_OURS = "digamma erf erfc erfinv exp2 expm1 i0 log1p logit round sinc xlogy".split()
_BY_DIMENSION = ("logsumexp", "softmax", "log_softmax")


class Special:
    """The namespace `srcgrad.special`.

    >>> t = sg.tensor([0.0, 0.0], requires_grad=True)
    >>> sg.special.logsumexp(t, 0)
    tensor(0.6931, grad_fn=<LogsumexpBackward0>)
    >>> sg.special.polygamma(1, sg.tensor(1.0))
    tensor(1.6449)
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _OURS:
            function = FUNCTIONS[name]
        else:
            function = _of_scipy(name)
        if name in _BY_DIMENSION:
            function = _by_dimension(FUNCTIONS[name], function)
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        try:
            names = importlib.import_module("scipy.special").__all__
        except ImportError:
            names = []
        return sorted({*_OURS, *_PYTORCH, *_BY_DIMENSION, *names})


special = Special()


def _of_scipy(name: str) -> Callable[..., Any]:
    try:
        function = getattr(importlib.import_module("scipy.special"), _PYTORCH.get(name, name), None)
    except ImportError as error:
        raise MissingExtra(f'special.{name} needs SciPy: `pip install "srcgrad[scipy]"`') from error
    if function is None:
        raise AttributeError(f"module 'srcgrad.special' has no attribute {name!r}")

    @functools.wraps(function, assigned=("__name__", "__qualname__"), updated=())
    def on_tensors(*args: Any, **keywords: Any) -> Any:
        if find(function) is None or not any(isinstance(x, Tensor) for x in (*args, *keywords.values())):
            return function(*args, **keywords)
        return array_function(None, function, (), args, keywords)

    on_tensors.__doc__ = f"`scipy.special.{name}`, on Tensors too."
    return on_tensors


def _by_dimension(ours: Callable[..., Any], scipys: Callable[..., Any]) -> Callable[..., Any]:
    def choose(input: Any, *args: Any, **keywords: Any) -> Any:
        """With PyTorch's arguments, or with SciPy's if there is one of its keywords (or no dimension)."""
        if isinstance(input, Tensor) and (args or "dim" in keywords) and not keywords.keys() & _SCIPYS:
            return ours(input, *args, **keywords)
        return scipys(input, *args, **keywords)

    choose.__name__ = choose.__qualname__ = ours.__name__
    return choose


_SCIPYS = {"axis", "b", "keepdims", "return_sign"}


def hint() -> str:
    """What to write instead, if SciPy is about to turn a tracked Tensor into an array."""
    frame = sys._getframe(1)
    names: list[str] = []
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("scipy."):
            names.append(frame.f_code.co_name)
        elif names and not module.startswith("numpy"):
            break
        frame = frame.f_back  # type: ignore[assignment]
    scipy_special = sys.modules.get("scipy.special")
    for name in reversed(names):
        if find(getattr(scipy_special, name, None)) is not None:
            return (
                f" To differentiate through it, write srcgrad.special.{name}(...) for "
                f"scipy.special.{name}(...), which computes on NumPy arrays only."
            )
    if names:
        return " SciPy computes on NumPy arrays only: use srcgrad.compile on a function that calls it."
    return ""
