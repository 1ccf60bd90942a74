"""PyTorch's `autograd`: backward, grad, custom functions, hooks, modes, and the functional interface.

Importing this package itself is free: its parts are loaded when they are used, since Tensor and engine need
each other.
"""

from __future__ import annotations

from typing import Any

_PLACES = {
    "backward": "api",
    "grad": "api",
    "no_grad": "modes",
    "enable_grad": "modes",
    "set_grad_enabled": "modes",
    "inference_mode": "modes",
    "Function": "function",
    "once_differentiable": "function",
    "apply_compiled": "compiled",
    "gradcheck": "check",
    "gradgradcheck": "check",
    "GradcheckError": "check",
    "detect_anomaly": "anomaly",
    "set_detect_anomaly": "anomaly",
    "is_anomaly_enabled": "anomaly",
}

__all__ = [*sorted(_PLACES), "Variable", "functional", "graph", "function"]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "Variable":
        return importlib.import_module("srcgrad.runtime.autograd.variable").Variable
    if name == "graph":
        return importlib.import_module("srcgrad.runtime.autograd.graph")
    if name in ("functional", "function"):
        return importlib.import_module(f"srcgrad.runtime.autograd.{name}")
    if name in _PLACES:
        found = getattr(importlib.import_module(f"srcgrad.runtime.autograd.{_PLACES[name]}"), name)
        globals()[name] = found  # so that this function isn't asked again
        return found
    raise AttributeError(f"module 'srcgrad.runtime.autograd' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
