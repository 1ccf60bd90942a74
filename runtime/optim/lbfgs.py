"""L-BFGS (Nocedal & Wright, "Numerical Optimization", algorithms 7.4, 3.5 and 3.6), in PyTorch's
arrangement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.arrays import copied
from srcgrad.runtime.autograd.modes import enable_grad, no_grad
from srcgrad.runtime.optim.optimizer import Optimizer, assign, check, number
from srcgrad.runtime.tensor_base import Tensor

Evaluate = Callable[[Any, float, Any], tuple[float, Any]]


def _cubic_minimum(
    x1: float,
    f1: float,
    g1: float,
    x2: float,
    f2: float,
    g2: float,
    bounds: tuple[float, float] | None = None,
) -> float:
    """The minimum of the cubic through two points with their slopes, within bounds."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


def strong_wolfe(
    evaluate: Evaluate, x: Any, t: float, d: Any, f: float, g: Any, slope: float, c1: float = 1e-4,
    c2: float = 0.9,
    tolerance: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Any, float, int]:  # fmt: skip
    """A step that satisfies the strong Wolfe conditions: (loss, gradient, step, evaluations)."""
    longest = float(np.abs(d).max())
    g = g.copy()
    f_new, g_new = evaluate(x, t, d)
    evaluations = 1
    slope_new = float(g_new @ d)
    t_before, f_before, g_before, slope_before = 0.0, f, g, slope
    done = False
    steps = 0
    bracket: list[float]
    while steps < max_ls:
        if f_new > f + c1 * t * slope or (steps > 1 and f_new >= f_before):
            bracket, values, gradients, slopes = (
                [t_before, t],
                [f_before, f_new],
                [g_before, g_new.copy()],
                [slope_before, slope_new],
            )
            break
        if abs(slope_new) <= -c2 * slope:
            bracket, values, gradients, slopes = [t], [f_new], [g_new], [slope_new]
            done = True
            break
        if slope_new >= 0:
            bracket, values, gradients, slopes = (
                [t_before, t],
                [f_before, f_new],
                [g_before, g_new.copy()],
                [slope_before, slope_new],
            )
            break
        low, high = t + 0.01 * (t - t_before), t * 10
        kept = t
        t = _cubic_minimum(t_before, f_before, slope_before, t, f_new, slope_new, (low, high))
        t_before, f_before, g_before, slope_before = kept, f_new, g_new.copy(), slope_new
        f_new, g_new = evaluate(x, t, d)
        evaluations += 1
        slope_new = float(g_new @ d)
        steps += 1
    if steps == max_ls:
        bracket, values, gradients, slopes = [0, t], [f, f_new], [g, g_new], [slope, slope_new]
    stuck = False
    low_at, high_at = (0, 1) if values[0] <= values[-1] else (1, 0)
    while not done and steps < max_ls:
        if abs(bracket[1] - bracket[0]) * longest < tolerance:
            break
        t = _cubic_minimum(bracket[0], values[0], slopes[0], bracket[1], values[1], slopes[1])
        margin = 0.1 * (max(bracket) - min(bracket))
        if min(max(bracket) - t, t - min(bracket)) < margin:
            if stuck or t >= max(bracket) or t <= min(bracket):
                t = (
                    max(bracket) - margin
                    if abs(t - max(bracket)) < abs(t - min(bracket))
                    else min(bracket) + margin
                )
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f_new, g_new = evaluate(x, t, d)
        evaluations += 1
        slope_new = float(g_new @ d)
        steps += 1
        if f_new > f + c1 * t * slope or f_new >= values[low_at]:
            bracket[high_at], values[high_at], gradients[high_at], slopes[high_at] = (
                t,
                f_new,
                g_new.copy(),
                slope_new,
            )
            low_at, high_at = (0, 1) if values[0] <= values[1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * slope:
                done = True
            elif slope_new * (bracket[high_at] - bracket[low_at]) >= 0:
                bracket[high_at], values[high_at] = bracket[low_at], values[low_at]
                gradients[high_at], slopes[high_at] = gradients[low_at], slopes[low_at]
            bracket[low_at], values[low_at], gradients[low_at], slopes[low_at] = (
                t,
                f_new,
                g_new.copy(),
                slope_new,
            )
    return values[low_at], gradients[low_at], bracket[low_at], evaluations


class LBFGS(Optimizer):
    """A quasi-Newton method with limited memory; `step` needs a closure and returns the loss before the
    step."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        check("learning rate", lr, number(lr) >= 0.0)
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def _gradient(self) -> Any:
        parts = [
            np.zeros(p._array.size, p._array.dtype) if p._grad is None else np.reshape(p._grad._array, -1)
            for p in self._params
        ]
        return np.concatenate(parts)

    def _values(self) -> list[Any]:
        return [copied(p._array) for p in self._params]

    def _move(self, t: float, d: Any) -> None:
        start = 0
        for p in self._params:
            n = p._array.size
            assign(p, p._array + p._array.dtype.type(t) * np.reshape(d[start : start + n], p._array.shape))
            start += n

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Several iterations; `closure` computes the loss and its gradients, and is needed (`TypeError`)."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with no_grad():
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = number(group["lr"])
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def run() -> float:
            with enable_grad():
                return float(closure().item())

        with enable_grad():
            first = closure()
        loss = float(first.item())
        evaluations = 1
        state["func_evals"] += 1
        g = self._gradient()
        if np.abs(g).max() <= group["tolerance_grad"]:
            return first
        d, t = state.get("d"), state.get("t")
        ys, ss, ro = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        scale, g_before, loss_before = (
            state.get("H_diag"),
            state.get("prev_flat_grad"),
            state.get("prev_loss"),
        )
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d, ys, ss, ro, scale = -g, [], [], [], 1.0
            else:
                y, s = g - g_before, d * d.dtype.type(t)
                product = float(y @ s)
                if product > 1e-10:
                    if len(ys) == group["history_size"]:
                        ys.pop(0), ss.pop(0), ro.pop(0)
                    ys.append(y), ss.append(s), ro.append(1.0 / product)
                    scale = product / float(y @ y)
                q = -g
                alphas = [0.0] * len(ys)
                for i in range(len(ys) - 1, -1, -1):
                    alphas[i] = float(ss[i] @ q) * ro[i]
                    q = q - ys[i] * q.dtype.type(alphas[i])
                d = q * q.dtype.type(scale)
                for i in range(len(ys)):
                    beta = float(ys[i] @ d) * ro[i]
                    d = d + ss[i] * d.dtype.type(alphas[i] - beta)
            g_before, loss_before = g.copy(), loss
            t = min(1.0, 1.0 / float(np.abs(g).sum())) * lr if state["n_iter"] == 1 else lr
            slope = float(g @ d)
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search is not None:
                start = self._values()

                def evaluate(x: Any, step: float, direction: Any) -> tuple[float, Any]:
                    self._move(step, direction)
                    value = run()
                    gradient = self._gradient()
                    for p, a in zip(self._params, x, strict=True):
                        assign(p, a)
                    return value, gradient

                loss, g, t, used = strong_wolfe(evaluate, start, t, d, loss, g, slope)
                self._move(t, d)
                small = np.abs(g).max() <= group["tolerance_grad"]
            else:
                self._move(t, d)
                small = False
                if iterations != group["max_iter"]:
                    loss = run()
                    g = self._gradient()
                    small = np.abs(g).max() <= group["tolerance_grad"]
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if iterations == group["max_iter"] or evaluations >= group["max_eval"] or small:
                break
            if (
                np.abs(d * t).max() <= group["tolerance_change"]
                or abs(loss - loss_before) < group["tolerance_change"]
            ):
                break
        state.update(
            d=d,
            t=t,
            old_dirs=ys,
            old_stps=ss,
            ro=ro,
            H_diag=scale,
            prev_flat_grad=g_before,
            prev_loss=loss_before,
        )
        return first
