"""Rules of your own: the decorators that the library's rules are written with, and a check.

    from srcgrad import rules

    @rules.elementwise(softplus, at=[0.3, [-2.0, 1.0]])
    def softplus_slope(y, x):
        return 1 / (1 + np.exp(-x))

    rules.check(softplus)

How a rule is written is told in `srcgrad.runtime.rules.table` and on the documentation's page "Teach srcgrad
a function".
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import srcgrad.runtime.rules  # noqa: F401  (the library's own rules, which are filed first)
from srcgrad import derivatives, gradient
from srcgrad.checks import check_grads
from srcgrad.runtime import tangents
from srcgrad.runtime.errors import ArgumentError
from srcgrad.runtime.rules import table
from srcgrad.runtime.rules.table import Case, case

Function = Callable[..., Any]


def elementwise(
    *functions: Function, at: Sequence[Any] = (), real: bool = False
) -> Callable[[Function], Function]:
    """Decorator: file the partial derivatives of elementwise `functions`.

    The rule takes the result and then the arguments, and returns one partial, or a tuple with one for each
    argument, None where there is no derivative. Broadcasting is undone elsewhere. `real` says that the result
    is real for complex arguments too. `at` lists the inputs for `check`.
    """
    return _filed(table.elementwise(*functions, at=at, real=real, shape=None))


def reverse(
    *functions: Function,
    at: Sequence[Any] = (),
    wrt: str | tuple[str, ...] | None = None,
    linear: bool = False,
) -> Callable[[Function], Function]:
    """Decorator: file the reverse rule of `functions`.

    The rule takes the cotangent of the result, the result, and the parameters of the function; it returns the
    cotangent of each parameter that `wrt` names (default: the first), as a tuple if `wrt` is one. `linear`
    says that the function is linear in those, jointly, so that it needs no forward rule.
    """
    return _filed(table.reverse(*functions, at=at, wrt=wrt, linear=linear))


def forward(*functions: Function, joint: bool = False) -> Callable[[Function], Function]:
    """Decorator: add the forward rule of `functions` that have a reverse rule.

    The rule takes the tangent of each parameter in `wrt`, then the result, then the parameters; it returns
    what the tangent of the result owes to each, as a tuple if `wrt` is one, or with `joint` the sum.
    """
    for function in functions:
        if table.find(function) is None:
            raise ArgumentError(f"{_title(function)} needs a reverse rule before it can have a forward rule")
    return _filed(table.forward(*functions, joint=joint))


def nondifferentiable(*functions: Function) -> None:
    """Functions whose result is a constant to whoever differentiates."""
    table.nondifferentiable(*functions)
    _forget()


def check(function: Function, order: int = 2) -> None:
    """Compare the rule of `function` with finite differences at the inputs it was filed with: both modes, up
    to `order`, by `check_grads`."""
    rule = table.find(function)
    if rule is None or not rule.differentiable:
        raise ArgumentError(f"{_title(function)} has no rule for its derivative")
    if not rule.at:
        raise ArgumentError(f"the rule of {_title(function)} has no inputs to check it at: give `at=[...]`")
    for inputs in rule.at:
        _check_case(function, rule, inputs, order)


def _check_case(function: Function, rule: table.Rule, inputs: Case, order: int) -> None:
    args = [tangents.as_input(a) for a in inputs.args]
    kwargs = {k: tangents.as_input(v) for k, v in inputs.kwargs.items()}
    bound = inspect.Signature(list(rule.parameters)).bind(*args, **kwargs)
    names = [n for n in bound.arguments if n not in kwargs]
    count, moving = (
        len(args),
        tuple(i for i, n in enumerate(names) if n in rule.wrt and tangents.leaves(args[i])),
    )

    def moved(*values: Any) -> Any:
        given = [values[moving.index(i)] if i in moving else args[i] for i in range(count)]
        return function(*given, **kwargs)

    moved.__qualname__ = _title(function)
    check_grads(moved, tuple(args[i] for i in moving), order)


def _title(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function)))


def _filed(decorator: Callable[[Function], Function]) -> Callable[[Function], Function]:
    def file(rule: Function) -> Function:
        decorator(rule)
        _forget()
        return rule

    return file


def _forget() -> None:
    """Derivatives compiled before are compiled again, with the new rule."""
    gradient.forget()
    derivatives.forget()
    for module in ("srcgrad.transforms.build", "srcgrad.transforms.tangent"):
        if module in sys.modules:
            sys.modules[module].forget()


__all__ = ["case", "check", "elementwise", "forward", "nondifferentiable", "reverse"]
