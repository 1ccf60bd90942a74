"""Backward hooks of modules: a node in front of the inputs and one behind the outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from srcgrad.runtime.autograd.function import Function
from srcgrad.runtime.tensor_base import Tensor


class BackwardHookFunction(Function):
    """Passes everything through: something in the graph to hang hooks on."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[a for a in args if isinstance(a, Tensor) and not a.requires_grad])
        return tuple(a.view_as(a) if isinstance(a, Tensor) else a for a in args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


def _through(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not any(values[i].requires_grad for i in places):
        return values, None
    made = BackwardHookFunction.apply(*[values[i] for i in places])
    out = list(values)
    node = None
    for i, t in zip(places, made, strict=True):
        out[i] = t
        node = node or t.grad_fn
    return tuple(out), node


def watch_backward(module: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    """The arguments, and a function for the result, wired so that the module's backward hooks run."""
    args, entry = _through(args)
    seen: dict[str, Any] = {}

    def finish(result: Any) -> Any:
        several = isinstance(result, tuple)
        results, node = _through(result if several else (result,))
        if node is not None:

            def leaving(grads: tuple[Any, ...]) -> Any:
                for hook in list(module._backward_pre_hooks.values()):
                    got = hook(module, grads)
                    if got is not None:
                        grads = got if isinstance(got, tuple) else (got,)
                seen["out"] = grads
                if entry is None and module._backward_hooks:
                    warnings.warn(
                        "Full backward hook is firing when gradients are computed with respect to module "
                        "outputs since no inputs require gradients.",
                        UserWarning,
                        stacklevel=6,
                    )
                    for hook in list(module._backward_hooks.values()):
                        hook(module, tuple(None for _ in args), grads)
                return grads

            node.register_prehook(leaving)
        return results if several else results[0]

    if entry is not None:

        def arriving(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
            current = grad_inputs
            for hook in list(module._backward_hooks.values()):
                got = hook(module, current, seen.get("out"))
                if got is not None:
                    current = got if isinstance(got, tuple) else (got,)
            return current

        entry.register_hook(arriving)
    return args, finish
