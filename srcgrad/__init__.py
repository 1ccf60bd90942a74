"""srcgrad: derivatives of Python/NumPy functions as readable Python source, and an eager Tensor with
autograd.

Names are loaded on first use, so that neither an exported gradient nor the eager half pulls in the compiler.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from srcgrad.bridge import compile as compile
    from srcgrad.checks import check_grads as check_grads
    from srcgrad.controls import checkpoint as checkpoint
    from srcgrad.controls import custom_jvp as custom_jvp
    from srcgrad.controls import custom_vjp as custom_vjp
    from srcgrad.controls import intercept as intercept
    from srcgrad.controls import stop_gradient as stop_gradient
    from srcgrad.derivatives import elementwise_grad as elementwise_grad
    from srcgrad.derivatives import grad as grad
    from srcgrad.derivatives import hessian as hessian
    from srcgrad.derivatives import hvp as hvp
    from srcgrad.derivatives import jacfwd as jacfwd
    from srcgrad.derivatives import jacobian as jacobian
    from srcgrad.derivatives import jacrev as jacrev
    from srcgrad.derivatives import jvp as jvp
    from srcgrad.derivatives import value_and_grad as value_and_grad
    from srcgrad.derivatives import vjp as vjp
    from srcgrad.loops import checkpointed_loop as checkpointed_loop
    from srcgrad.runtime.errors import SrcgradError as SrcgradError
    from srcgrad.standalone import export as export

__version__ = "0.1.0"

_HERE = {
    **dict.fromkeys(
        [
            *("grad", "value_and_grad", "vjp", "jvp", "jacobian", "jacfwd", "jacrev", "hessian", "hvp"),
            "elementwise_grad",
        ],
        "srcgrad.derivatives",
    ),
    "check_grads": "srcgrad.checks",
    "compile": "srcgrad.bridge",
    "export": "srcgrad.standalone",
    "checkpointed_loop": "srcgrad.loops",
    **dict.fromkeys(
        ["stop_gradient", "intercept", "custom_vjp", "custom_jvp", "checkpoint"], "srcgrad.controls"
    ),
    **dict.fromkeys(
        [
            "SrcgradError",
            "UnsupportedSyntax",
            "NoRule",
            "SourceError",
            "AliasError",
            "ArgumentError",
            "ResultError",
            "CheckFailed",
            "MissingExtra",
            "ExportError",
        ],
        "srcgrad.runtime.errors",
    ),
}
_EAGER = "srcgrad.runtime.eager"


class _Packages:
    """Finds `srcgrad.nn`, `.optim`, `.autograd` and their parts for statements such as `import
    srcgrad.nn.functional as F`: the runtime's own modules under a second name, so that no class exists twice.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.startswith("srcgrad.") and name.split(".")[1] in ("nn", "optim", "autograd"):
            return ModuleSpec(name, _Packages())  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """None asks for an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        importlib.import_module(_EAGER)
        name = module.__name__
        sys.modules[name] = importlib.import_module("srcgrad.runtime" + name.removeprefix("srcgrad"))


sys.meta_path.insert(0, _Packages())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'srcgrad' has no attribute {name!r}")
    if name == "viz":
        value = importlib.import_module("srcgrad.viz")
    elif name in _HERE:
        value = getattr(importlib.import_module(_HERE[name]), name)
    else:
        try:
            value = getattr(importlib.import_module(_EAGER), name)
        except AttributeError:
            raise AttributeError(f"module 'srcgrad' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HERE, "viz", *getattr(importlib.import_module(_EAGER), "__all__", []), "__version__"})
