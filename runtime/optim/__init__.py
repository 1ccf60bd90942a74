"""PyTorch's `optim`: optimizers and learning-rate schedulers."""

from __future__ import annotations

from srcgrad.runtime.optim import lr_scheduler
from srcgrad.runtime.optim.adaptive import (
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
)
from srcgrad.runtime.optim.lbfgs import LBFGS
from srcgrad.runtime.optim.optimizer import Optimizer
from srcgrad.runtime.optim.plain import ASGD, SGD, Rprop

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop",
    "lr_scheduler",
]  # fmt: skip
