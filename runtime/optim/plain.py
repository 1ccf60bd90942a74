"""Optimizers without adaptive denominators: SGD, ASGD, Rprop."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.runtime.arrays import copied
from srcgrad.runtime.optim.optimizer import (
    Optimizer,
    assign,
    check,
    counted,
    gradient,
    kept,
    number,
    subtract,
)
from srcgrad.runtime.tensor_base import Tensor, own_memory, wrap


class SGD(Optimizer):
    """Gradient descent, with momentum (also Nesterov's) and weight decay."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ):
        check("learning rate", lr, number(lr) >= 0.0)
        check("momentum value", momentum, momentum >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        lr, momentum = number(group["lr"]), group["momentum"]
        for p in parameters:
            g = gradient(p, group)
            if momentum:
                state = self.state[p]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = wrap(copied(g))
                    b = own_memory(buffer)
                else:
                    b = own_memory(buffer)
                    b *= b.dtype.type(momentum)
                    b += g * b.dtype.type(1 - group["dampening"])
                g = g + b.dtype.type(momentum) * b if group["nesterov"] else b
            subtract(p, g * p._array.dtype.type(lr))


class ASGD(Optimizer):
    """Averaged stochastic gradient descent."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check("learning rate", lr, number(lr) >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        lr, lambd = number(group["lr"]), group["lambd"]
        for p in parameters:
            state = self.state[p]
            if "eta" not in state:
                state["eta"], state["mu"] = wrap(np.array(lr, np.float32)), wrap(np.ones((), np.float32))
                kept(state, "ax", p._array)
            g = gradient(p, group)
            step = counted(state)
            eta, mu = float(state["eta"]._array), float(state["mu"]._array)
            assign(p, p._array * p._array.dtype.type(1 - lambd * eta) - g * p._array.dtype.type(eta))
            ax = own_memory(state["ax"])
            ax[...] = p._array if mu == 1 else ax + (p._array - ax) * ax.dtype.type(mu)
            own_memory(state["eta"])[...] = lr / (1 + lambd * lr * step) ** group["alpha"]
            own_memory(state["mu"])[...] = 1 / max(1, step - group["t0"])


class Rprop(Optimizer):
    """Resilient backpropagation: a step size for each element, by the signs of the gradients."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check("learning rate", lr, number(lr) >= 0.0)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        low, high = group["etas"]
        smallest, largest = group["step_sizes"]
        for p in parameters:
            g = copied(gradient(p, group))
            state = self.state[p]
            counted(state)
            before = kept(state, "prev", g)
            if "step_size" not in state:
                state["step_size"] = wrap(np.full_like(g, number(group["lr"])))
            size = own_memory(state["step_size"])
            sign = np.sign(g * before)
            factor = np.where(sign > 0, high, np.where(sign < 0, low, 1.0)).astype(g.dtype)
            size[...] = np.clip(size * factor, smallest, largest)
            g = np.where(sign < 0, 0, g).astype(g.dtype)
            subtract(p, np.sign(g) * size)
            before[...] = g
