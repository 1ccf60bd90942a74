"""Optimizers that scale each element's step by its past gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.runtime.optim.optimizer import Optimizer, check, counted, gradient, kept, number, subtract
from srcgrad.runtime.tensor_base import Tensor, own_memory, wrap


def _check_common(lr: Any, eps: float, weight_decay: float, betas: tuple[float, float] | None = None) -> None:
    check("learning rate", lr, number(lr) >= 0.0)
    check("epsilon value", eps, eps >= 0.0)
    if betas is not None:
        for i, beta in enumerate(betas):
            check("beta", beta, 0.0 <= beta < 1.0, i)
    check("weight_decay value", weight_decay, weight_decay >= 0.0)


def _moving(average: Any, value: Any, beta: float) -> None:
    """`average = beta * average + (1 - beta) * value`, in place."""
    average *= average.dtype.type(beta)
    average += value * average.dtype.type(1 - beta)


class Adam(Optimizer):
    """Adam: moving averages of gradient and squared gradient, corrected for their start."""

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
        decoupled_weight_decay: bool = False,
    ):
        _check_common(lr, eps, weight_decay, betas)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay or self._decoupled,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        beta1, beta2 = group["betas"]
        lr, eps, decoupled = number(group["lr"]), group["eps"], group["decoupled_weight_decay"]
        for p in parameters:
            g = gradient(p, group, decay=not decoupled)
            state = self.state[p]
            t = counted(state)
            m, v = kept(state, "exp_avg", g), kept(state, "exp_avg_sq", g)
            kind = g.dtype.type
            if decoupled and group["weight_decay"]:
                subtract(p, p._array * kind(lr * group["weight_decay"]))
            m += (g - m) * kind(1 - beta1)
            v *= kind(beta2)
            v += g * g * kind(1 - beta2)
            used = v
            if group["amsgrad"]:
                top = kept(state, "max_exp_avg_sq", g)
                np.maximum(top, v, out=top)
                used = top
            bias1, bias2 = 1 - beta1**t, math.sqrt(1 - beta2**t)
            denominator = np.sqrt(used)
            denominator /= kind(bias2)
            denominator += kind(eps)
            subtract(p, m / denominator * kind(lr / bias1))


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class RMSprop(Optimizer):
    """Steps over the root of a moving average of squared gradients."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        _check_common(lr, eps, weight_decay)
        check("momentum value", momentum, momentum >= 0.0)
        check("alpha value", alpha, alpha >= 0.0)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        alpha = group["alpha"]
        for p in parameters:
            g = gradient(p, group)
            state = self.state[p]
            counted(state)
            v = kept(state, "square_avg", g)
            _moving(v, g * g, alpha)
            used = v
            if group["centered"]:
                mean = kept(state, "grad_avg", g)
                _moving(mean, g, alpha)
                used = v - mean * mean
            step = g / (np.sqrt(used) + g.dtype.type(group["eps"]))
            if group["momentum"] > 0:
                b = kept(state, "momentum_buffer", g)
                b *= b.dtype.type(group["momentum"])
                b += step
                step = b
            subtract(p, step * g.dtype.type(number(group["lr"])))


class Adagrad(Optimizer):
    """Steps over the root of the sum of squared gradients."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ):
        _check_common(lr, eps, weight_decay)
        check("lr_decay value", lr_decay, lr_decay >= 0.0)
        check("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["step"] = wrap(np.zeros((), np.float32))
                self.state[p]["sum"] = wrap(np.full_like(p._array, group["initial_accumulator_value"]))

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        for p in parameters:
            g = gradient(p, group)
            state = self.state[p]
            t = counted(state)
            total = kept(state, "sum", g)
            total += g * g
            rate = number(group["lr"]) / (1 + (t - 1) * group["lr_decay"])
            subtract(p, g / (np.sqrt(total) + g.dtype.type(group["eps"])) * g.dtype.type(rate))


class Adadelta(Optimizer):
    """Steps scaled by the ratio of past steps to past gradients."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        _check_common(lr, eps, weight_decay)
        check("rho value", rho, 0.0 <= rho <= 1.0)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        rho, eps = group["rho"], group["eps"]
        for p in parameters:
            g = gradient(p, group)
            state = self.state[p]
            counted(state)
            v, a = kept(state, "square_avg", g), kept(state, "acc_delta", g)
            _moving(v, g * g, rho)
            small = g.dtype.type(eps)
            delta = np.sqrt(a + small) / np.sqrt(v + small) * g
            _moving(a, delta * delta, rho)
            subtract(p, delta * g.dtype.type(number(group["lr"])))


class Adamax(Optimizer):
    """Adam with the largest past gradient in place of the root of the average square."""

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        _check_common(lr, eps, weight_decay, betas)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        beta1, beta2 = group["betas"]
        for p in parameters:
            g = gradient(p, group)
            state = self.state[p]
            t = counted(state)
            m, u = kept(state, "exp_avg", g), kept(state, "exp_inf", g)
            m += (g - m) * m.dtype.type(1 - beta1)
            u[...] = np.maximum(u * u.dtype.type(beta2), np.abs(g) + u.dtype.type(group["eps"]))
            subtract(p, m / u * m.dtype.type(number(group["lr"]) / (1 - beta1**t)))


class NAdam(Optimizer):
    """Adam with Nesterov momentum."""

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        _check_common(lr, eps, weight_decay, betas)
        check("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        beta1, beta2 = group["betas"]
        lr, decoupled = number(group["lr"]), group["decoupled_weight_decay"]
        for p in parameters:
            g = gradient(p, group, decay=not decoupled)
            state = self.state[p]
            t = counted(state)
            if decoupled and group["weight_decay"]:
                subtract(p, p._array * g.dtype.type(lr * group["weight_decay"]))
            if "mu_product" not in state:
                state["mu_product"] = wrap(np.ones((), np.float32))
            m, v = kept(state, "exp_avg", g), kept(state, "exp_avg_sq", g)
            mu = beta1 * (1.0 - 0.5 * (0.96 ** (t * group["momentum_decay"])))
            mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((t + 1) * group["momentum_decay"])))
            product = own_memory(state["mu_product"])
            product *= np.float32(mu)
            m += (g - m) * m.dtype.type(1 - beta1)
            _moving(v, g * g, beta2)
            denominator = np.sqrt(v / v.dtype.type(1 - beta2**t)) + v.dtype.type(group["eps"])
            so_far = float(product)
            kind = g.dtype.type
            subtract(p, g / denominator * kind(lr * (1.0 - mu) / (1.0 - so_far)))
            subtract(p, m / denominator * kind(lr * mu_next / (1.0 - so_far * mu_next)))


class RAdam(Optimizer):
    """Adam that waits with its denominator until the average can be trusted."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        _check_common(lr, eps, weight_decay, betas)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        })  # fmt: skip

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        beta1, beta2 = group["betas"]
        lr, decoupled = number(group["lr"]), group["decoupled_weight_decay"]
        for p in parameters:
            g = gradient(p, group, decay=not decoupled)
            state = self.state[p]
            t = counted(state)
            if decoupled and group["weight_decay"]:
                subtract(p, p._array * g.dtype.type(lr * group["weight_decay"]))
            m, v = kept(state, "exp_avg", g), kept(state, "exp_avg_sq", g)
            m += (g - m) * m.dtype.type(1 - beta1)
            _moving(v, g * g, beta2)
            kind = g.dtype.type
            corrected = m / kind(1 - beta1**t)
            limit = 2 / (1 - beta2) - 1
            length = limit - 2 * t * beta2**t / (1 - beta2**t)
            if length > 5.0:
                rect = math.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
                scale = math.sqrt(1 - beta2**t) / (np.sqrt(v) + kind(group["eps"]))
                subtract(p, corrected * kind(lr) * scale * kind(rect))
            else:
                subtract(p, corrected * kind(lr))
