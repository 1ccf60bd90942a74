"""`autograd.functional`: Jacobians, Hessians, and products with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.autograd.api import grad
from srcgrad.runtime.autograd.modes import enable_grad
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_join import stack
from srcgrad.runtime.tensor_views import reshape


def _tuple(x: Any, name: str, argument: str) -> tuple[bool, tuple[Tensor, ...]]:
    several = isinstance(x, tuple)
    found = tuple(x) if several else (x,)
    for i, t in enumerate(found):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"The {argument} given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"value at index {i} has "
                f"type {type(t)}."
            )
    return several, found


def _tracked_copies(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _result(x: Any, several: bool, create_graph: bool) -> Any:
    out = tuple(t if create_graph else t.detach() for t in x)
    return out if several else out[0]


def _gradients(
    outputs: Any, inputs: tuple[Tensor, ...], seeds: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Tensor, ...]:
    followed = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
    if not followed:
        got: tuple[Any, ...] = (None,) * len(inputs)
    else:
        got = grad(
            [o for o, _ in followed],
            inputs,
            [s for _, s in followed],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    out = []
    for i, (g, x) in enumerate(zip(got, inputs, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(
                    f"The output of the user-provided function is independent of input {i}. This is not "
                    "allowed in strict mode "
                    f"({name})."
                )
            g = wrap(np.zeros_like(x._array))
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not "
                "allowed in strict mode "
                "when create_graph=True."
            )
        out.append(g)
    return tuple(out)


def _run(
    func: Callable[..., Any], inputs: tuple[Tensor, ...], name: str, strict: bool
) -> tuple[bool, tuple[Tensor, ...]]:
    several, outputs = _tuple(func(*inputs), name, "outputs")
    if strict:
        for i, o in enumerate(outputs):
            if not o.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs "
                    "must be computed in a "
                    "differentiable manner from the input when running in strict mode."
                )
    return several, outputs


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The derivatives of each output element with respect to each input element: shape of output + shape of
    input."""
    with enable_grad():
        several_in, given = _tuple(inputs, "jacobian", "inputs")
        xs = _tracked_copies(given, create_graph)
        several_out, outputs = _run(func, xs, "jacobian", strict)
        blocks = []
        for o in outputs:
            rows: list[list[Tensor]] = [[] for _ in xs]
            n = o._array.size
            for i in range(n):
                seed = np.zeros_like(o._array, order="C")
                seed.reshape(-1)[i] = 1
                for row, g in zip(
                    rows, _gradients((o,), xs, (wrap(seed),), create_graph, strict, "jacobian"), strict=True
                ):
                    row.append(g)
            block = tuple(
                reshape(stack(row), (*o._array.shape, *x._array.shape))
                if row
                else x.new_zeros(*o._array.shape, *x._array.shape)
                for row, x in zip(rows, xs, strict=True)
            )
            blocks.append(tuple(b if create_graph else b.detach() for b in block))
    picked = [b if several_in else b[0] for b in blocks]
    return tuple(picked) if several_out else picked[0]


def _scalar(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    def checked(*xs: Any) -> Any:
        out = func(*xs)
        if not isinstance(out, Tensor):
            if isinstance(out, tuple) and len(out) == 1 and isinstance(out[0], Tensor):
                out = out[0]
            else:
                raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if out._array.size != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {name} should contain a single element"
            )
        return reshape(out, ()) if out._array.ndim else out

    return checked


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function with a single element as its value."""
    several, given = _tuple(inputs, "hessian", "inputs")
    single = _scalar(func, "hessian")

    def gradient(*xs: Tensor) -> Any:
        out = single(*xs)
        if strict and not out.requires_grad:
            raise RuntimeError(
                "The output of the user-provided function is independent of the input, in strict mode."
            )
        return _gradients((out,), xs, (None,), True, strict, "hessian")

    result = jacobian(gradient, given, create_graph, strict)
    return result if several else result[0][0]


def _vectors(v: Any, like: tuple[Tensor, ...], name: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0]._array.size != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with "
                "a single element."
                if name == "vjp"
                else "The vector v can only be None if the input to the user-provided function is a single "
                "Tensor with a single element."
            )
        return (wrap(np.ones_like(like[0]._array)),)
    _, vs = _tuple(v, name, "v")
    if len(vs) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, like, strict=True)):
        if a._array.shape != b._array.shape:
            raise RuntimeError(f"Entry {i} in v has invalid size: should be {b.shape} but got {a.shape}.")
    return vs


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """The value, and the product of the vector `v` with the Jacobian."""
    with enable_grad():
        several_in, given = _tuple(inputs, "vjp", "inputs")
        xs = _tracked_copies(given, create_graph)
        several_out, outputs = _run(func, xs, "vjp", strict)
        vs = _vectors(v, outputs, "vjp")
        got = _gradients(outputs, xs, vs, create_graph, strict, "vjp")
    return _result(outputs, several_out, create_graph), _result(got, several_in, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """The value, and the product of the Jacobian with the vector `v` (by two reverse passes)."""
    with enable_grad():
        _, given = _tuple(inputs, "jvp", "inputs")
        xs = _tracked_copies(given, create_graph)
        vs = _vectors(v, xs, "jvp")
        several_out, outputs = _run(func, xs, "jvp", strict)
        duals = tuple(wrap(np.zeros_like(o._array)).requires_grad_() for o in outputs)
        first = _gradients(outputs, xs, duals, True, strict, "jvp")
        got = _gradients(first, duals, vs, create_graph, False, "jvp")
    return _result(outputs, several_out, create_graph), _result(got, several_out, create_graph)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """The value, and the product of the vector `v` with the Hessian."""
    with enable_grad():
        several, given = _tuple(inputs, "vhp", "inputs")
        xs = _tracked_copies(given, create_graph)
        vs = _vectors(v, xs, "vhp")
        out = _scalar(func, "vhp")(*xs)
        first = _gradients((out,), xs, (None,), True, strict, "vhp")
        got = _gradients(first, xs, vs, create_graph, strict, "vhp")
    return _result((out,), False, create_graph), _result(got, several, create_graph)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """The value, and the product of the Hessian with the vector `v`."""
    with enable_grad():
        several, given = _tuple(inputs, "hvp", "inputs")
        xs = _tracked_copies(given, create_graph)
        vs = _vectors(v, xs, "hvp")
        out = _scalar(func, "hvp")(*xs)
        first = _gradients((out,), xs, (None,), True, strict, "hvp")
        duals = tuple(wrap(np.zeros_like(x._array)).requires_grad_() for x in xs)
        second = _gradients(first, xs, duals, True, False, "hvp")
        got = _gradients(second, duals, vs, create_graph, False, "hvp")
    return _result((out,), False, create_graph), _result(got, several, create_graph)
