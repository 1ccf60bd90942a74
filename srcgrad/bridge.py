"""The bridge between the halves: a compiled function called on Tensors is one node of their graph.

Forward and backward run the emitted source on the Tensors' arrays. A derivative of the backward pass is again
a call of a compiled function (the pullback, as a function of the cotangent and the arguments), and so again
one node.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from srcgrad.derivatives import vjp
from srcgrad.runtime.autograd.compiled import apply_compiled, leaves, mapped, raw
from srcgrad.runtime.autograd.record import tracked
from srcgrad.runtime.errors import ArgumentError
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_numpy import wrapped


def on_tensors(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """`fun` of arguments among which are Tensors (also in tuples, lists and dicts): one node of the graph."""
    if tracked(leaves(kwargs)):
        bound = inspect.signature(fun).bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs
        if tracked(leaves(kwargs)):
            raise ArgumentError(f"{name}: a keyword-only argument is a tracked Tensor; pass it by position")
    if not tracked(leaves(args)):
        return mapped(wrapped, fun(*raw(args), **raw(kwargs)))
    given = functools.partial(fun, **raw(kwargs)) if kwargs else fun
    return apply_compiled(functools.partial(vjp, given), *args, name=name, again=_again(given, name))


@functools.lru_cache(maxsize=256)
def _again(fun: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The pullback of `fun` as a function on Tensors; the same one for each call, so that it is compiled
    once."""

    def pulled(g: Any, *primals: Any) -> Any:
        return vjp(fun, *primals)[1](g)

    def again(g: Any, *primals: Any) -> Any:
        return on_tensors(pulled, (g, *primals), {}, name + "_grad")

    return again


class CompiledFunction:
    """A function that is one node of the graph when it is called on Tensors; see `srcgrad.compile`."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fun)
        self.__srcgrad_plain__ = self.primal = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Tensor) for x in leaves((args, kwargs))):
            return on_tensors(self.primal, args, kwargs, getattr(self.primal, "__name__", "compiled"))
        return self.primal(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<srcgrad compiled {getattr(self.primal, '__qualname__', self.primal)!r}>"


def compile(fun: Callable[..., Any]) -> CompiledFunction:
    """`fun`, compiled for Tensors: a call of it on Tensors is one node of their graph, `<Name>Backward0`,
    forward and backward through the emitted source. On arrays and numbers it is `fun` itself, and so it is
    for the transforms (`grad`, `vjp`, ...).

    The arguments may be Tensors, arrays, numbers, and tuples, lists and dicts of these. A call raises what
    the compiler raises for source that it cannot differentiate.

    >>> import numpy as np
    >>> import srcgrad as sg
    >>> @sg.compile
    ... def energy(x):
    ...     total = 0.0
    ...     for v in x:
    ...         total += np.sin(v) * v
    ...     return total
    >>> x = sg.tensor([0.0, 1.0], requires_grad=True)
    >>> energy(x)
    tensor(0.8415, grad_fn=<EnergyBackward0>)
    >>> energy(x).backward()
    >>> x.grad
    tensor([0.0000, 1.3818])
    """
    return CompiledFunction(fun)


__all__ = ["CompiledFunction", "compile", "on_tensors", "raw"]
