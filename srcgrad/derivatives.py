"""The transforms: `grad`, `value_and_grad`, `vjp` and their relatives."""

from __future__ import annotations

from typing import Any

from srcgrad.gradient import Gradient


def grad(fun: Any = None, argnums: Any = 0, *, argnames: Any = None, has_aux: bool = False, jit: Any = False) -> Any:
    if fun is None:
        return lambda f: Gradient(f, argnums, argnames, has_aux, False)
    return Gradient(fun, argnums, argnames, has_aux, False)


def value_and_grad(fun: Any = None, argnums: Any = 0, *, argnames: Any = None, has_aux: bool = False, jit: Any = False) -> Any:
    if fun is None:
        return lambda f: Gradient(f, argnums, argnames, has_aux, True)
    return Gradient(fun, argnums, argnames, has_aux, True)
