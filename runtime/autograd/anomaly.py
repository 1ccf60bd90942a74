"""Anomaly detection: which line of the user's program made the node that failed, and the first gradient
that is nan."""

from __future__ import annotations

import os
import traceback
import warnings
from typing import Any

from srcgrad.runtime.autograd.graph import Node
from srcgrad.runtime.autograd.modes import state, watch

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _remember(node: Node) -> None:
    frames = traceback.extract_stack()
    while frames and os.path.abspath(frames[-1].filename).startswith(_OWN):
        frames.pop()
    node.extras().traceback = frames.format()


def is_anomaly_enabled() -> bool:
    """Whether `detect_anomaly` is on in this thread."""
    return state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether `detect_anomaly` also looks for nan in gradients."""
    return state.check_nan


def _set(mode: bool, check_nan: bool) -> None:
    state.anomaly, state.check_nan = mode, check_nan
    others = tuple(w for w in state.watchers if w is not _remember)
    watch((*others, _remember) if mode else others)


class set_detect_anomaly:
    """Switch anomaly detection on or off, at once or as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = (state.anomaly, state.check_nan)
        _set(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _set(*self.before)


class detect_anomaly:
    """Context manager: backward errors and nan gradients name the line of the forward pass that they come
    from."""

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (state.anomaly, state.check_nan)
        _set(True, self.check_nan)

    def __exit__(self, *exc: Any) -> None:
        _set(*self.before)
