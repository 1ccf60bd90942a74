"""`gradcheck` and `gradgradcheck`: derivatives against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.api import grad
from srcgrad.runtime.autograd.modes import no_grad
from srcgrad.runtime.tensor_base import Tensor, own_memory, wrap


class GradcheckError(RuntimeError):
    """A derivative and its finite difference disagree."""


def _tensors(x: Any) -> list[Tensor]:
    return [t for t in (x if isinstance(x, tuple | list) else (x,)) if isinstance(t, Tensor)]


def _numerical(f: Callable[..., Any], inputs: list[Any], x: Tensor, number: int, eps: float) -> Any:
    """The Jacobian of output `number` with respect to `x`, (elements of x, elements of output), by central
    differences."""
    flat = own_memory(x).reshape(-1)
    columns = []
    steps = (eps, 1j * eps) if flat.dtype.kind == "c" else (eps,)
    for i in range(flat.size):
        for step in steps:
            kept = flat[i].item()
            with no_grad():
                flat[i] = kept + step
                high = arrays.to_host(_tensors(f(*inputs))[number]._array).copy()
                flat[i] = kept - step
                low = arrays.to_host(_tensors(f(*inputs))[number]._array).copy()
            flat[i] = kept
            columns.append((high.reshape(-1) - low.reshape(-1)) / (2 * eps))
    return np.array(columns)


def _analytical(output: Tensor, x: Tensor) -> Any:
    rows = []
    size = output._array.size
    for i in range(size):
        for one in (1, 1j) if output._array.dtype.kind == "c" else (1,):
            seed = np.zeros_like(output._array, order="C")
            seed.reshape(-1)[i] = one
            (g,) = grad(output, x, wrap(seed), retain_graph=True, allow_unused=True)
            a = np.zeros(x._array.shape, x._array.dtype) if g is None else arrays.to_host(g._array)
            rows.append(a.reshape(-1))
    return np.array(rows)


def _compare(f: Any, inputs: list[Any], outputs: list[Tensor], eps: float, atol: float, rtol: float) -> None:
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        for j, x in enumerate(inputs):
            if not isinstance(x, Tensor) or not x.requires_grad:
                continue
            got, want = _analytical(output, x), _numerical(f, inputs, x, i, eps)
            if got.dtype.kind == "c" or output._array.dtype.kind == "c":
                parts = [got.real, got.imag] if got.dtype.kind == "c" else [got]
                step = 2 if output._array.dtype.kind == "c" else 1
                real = np.stack([p for p in parts], -1).reshape(got.shape[0], -1)
                wide = np.stack([want.real, want.imag], -1).reshape(want.shape[0], -1) if step == 2 else want
                got, want = real, wide.real
            got = got.T
            if got.shape != want.shape or not np.allclose(got, want, rtol, atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input "
                    f"{j},\nnumerical:{want}\nanalytical:{got}\n"
                )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    fast_mode: bool = False,
    **_: Any,
) -> bool:
    """Whether the gradients of `func` agree with central differences; raises GradcheckError where they
    don't."""
    given = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    followed = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
    if not followed:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for x in followed:
        if x._array.dtype.itemsize < 8:
            warnings.warn(
                "Input #0 requires gradient and is not a double precision floating point or complex. This "
                "check will likely "
                "fail if all the inputs are not of double precision floating point or complex. ",
                UserWarning,
                stacklevel=2,
            )
        x.retain_grad()
    try:
        outputs = _tensors(func(*given))
        if not any(o.requires_grad for o in outputs):
            raise GradcheckError("gradcheck expects at least one output that requires gradient")
        _compare(func, given, outputs, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """`gradcheck` of the gradient of `func`."""
    given = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    outputs = [o for o in _tensors(func(*given)) if o.requires_grad]
    if grad_outputs is None:
        random = np.random.default_rng(0)
        seeds = [
            wrap(
                arrays.beside(random.standard_normal(o._array.shape).astype(o._array.dtype), o._array)
            ).requires_grad_()
            for o in outputs
        ]
    else:
        seeds = _tensors(grad_outputs)
    count = len(seeds)

    def gradient(*args: Any) -> Any:
        xs, gs = args[: len(given)], args[len(given) :]
        followed = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        from srcgrad.runtime.autograd.modes import enable_grad

        with enable_grad():
            fresh = [o for o in _tensors(func(*xs)) if o.requires_grad]
            got = grad(fresh, followed, list(gs), create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None and g.requires_grad) or tuple(
            g for g in got if g is not None
        )

    assert count == len(outputs)
    try:
        return gradcheck(
            gradient, (*given, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
        )
    except GradcheckError as error:
        if "at least one output" in str(error):
            return True
        raise
