"""`checkpointed_loop`: a loop that keeps a few of its states and runs the steps between them again.

The schedule is the binomial one of A. Griewank, "Achieving logarithmic growth of temporal and spatial
complexity in reverse automatic differentiation" (1992), with the splits of A. Griewank and A. Walther,
"Algorithm 799: revolve" (2000): with s states in memory and every step run at most t times again, it reverses
binomial(s + t, s) steps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from srcgrad.controls import Custom
from srcgrad.gradient import kind_of
from srcgrad.runtime import dispatch, trees
from srcgrad.runtime.errors import ArgumentError
from srcgrad.runtime.rules import table
from srcgrad.runtime.rules.table import forward, reverse


def checkpointed_loop(body: Callable[..., Any], slots: int = 100) -> Callable[..., Any]:
    """A function `loop(n, state, *args)` that returns `state` after `state = body(i, state, *args)` for `i`
    in `range(n)`.

    Its reverse sweep keeps at most `slots` states at a time, the first one included, and runs steps again for
    those it has not kept: a step is run about `t` times more where `binomial(slots + t, t)` exceeds `n`.
    `state` may be a number, an array or a container, and has a derivative, as has each of `args` and what
    `body` has captured. `body` must not write into its arguments.

    >>> from srcgrad import grad
    >>> growth = checkpointed_loop(lambda i, x, r: x + r * x * (1 - x), slots=5)
    >>> growth(2, 0.5, 1.0)
    0.9375
    >>> grad(growth, argnums=(1, 2))(1000, 0.5, 0.0)
    (1.0, 250.0)
    """
    return CheckpointedLoop(body, slots)


class CheckpointedLoop(Custom):
    """See `checkpointed_loop`."""

    def __init__(self, body: Callable[..., Any], slots: int) -> None:
        if not isinstance(slots, int) or slots < 1:
            raise ArgumentError(f"checkpointed_loop: slots is a positive int, not {slots!r}")
        if not callable(body):
            raise ArgumentError(f"checkpointed_loop needs a function, not a {type(body).__name__}")

        def loop(n: int, state: Any, *args: Any) -> Any:
            return _advanced(body, state, 0, n, args)

        super().__init__(loop)
        self.body, self.slots = body, slots
        functools.update_wrapper(self, body, updated=())

    def plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            raise ArgumentError(
                f"the loop over {self._title} takes no keyword arguments: loop(n, state, ...)"
            )
        return dispatch.Plan(_run, _run_back, ("function",), ("function", "*args"), "object")

    def tangent_plan(self, args: tuple[Any, ...], kwargs: dict[str, Any], dots: Any) -> Any:
        places = (("loop_dot", "function", None), ("dots", "every", None))
        return dispatch.TangentPlan(_run_pushed, (), "object", places)


def _body_of(loop: CheckpointedLoop) -> Any:
    return loop.body


@reverse(_body_of, at=[])
def _body_of_reverse(g: Any, y: Any, loop: Any) -> Any:
    return g


@forward(_body_of)
def _body_of_forward(loop_dot: Any, y: Any, loop: Any) -> Any:
    return loop_dot


def _run(loop: Any, n: int, state: Any, *args: Any) -> Any:
    return _advanced(_body_of(loop), state, 0, n, args), (loop, n, state, args)


def _advanced(body: Any, state: Any, start: int, stop: int, args: Any) -> Any:
    for i in range(start, stop):
        state = body(i, state, *args)
    return state


def _run_pushed(loop: Any, n: int, state: Any, *args: Any, loop_dot: Any, dots: Any) -> Any:
    return dispatch.jvp(
        _advanced, (_body_of(loop), state, 0, n, args), None, None, (loop_dot, dots[1], None, None, dots[2:])
    )


def _run_back(g: Any, saved: Any) -> Any:
    loop, n, state, args = saved
    body, slots = _body_of(loop), _slots_of(loop)
    starts, states = [0], [trees.snapshot(state)]
    plans = _no_plans()
    body_bar: Any = 0.0
    args_bar: Any = [0.0 for _ in args]
    for last in range(n - 1, -1, -1):
        while last > starts[-1] and len(starts) < slots:
            middle = starts[-1] + _split(last + 1 - starts[-1], slots - len(starts))
            states.append(trees.snapshot(_advanced(body, states[-1], starts[-1], middle, args)))
            starts.append(middle)
        before = _advanced(body, states[-1], starts[-1], last, args)
        given = (last, before, *args)
        _, record = dispatch.forward(body, given, None, False, _plan(plans, body, given))
        bars = dispatch.reverse(record, g)
        body_bar = trees.add(body_bar, bars[0])
        g = bars[1][1]
        args_bar = [trees.add(a, b) for a, b in zip(args_bar, bars[1][2:], strict=True)]
        if starts[-1] == last:
            starts.pop()
            states.pop()
    return [body_bar, [0.0, g, *args_bar]]


def _no_plans() -> dict[Any, Any]:
    return {}


def _plan(plans: dict[Any, Any], body: Any, args: tuple[Any, ...]) -> Any:
    """How a step is differentiated, remembered for arguments of the same kinds."""
    key = tuple([kind_of(a) for a in args])
    if key not in plans:
        plans[key] = dispatch.plan_of(body, args, {})
    return plans[key]


def _slots_of(loop: Any) -> int:
    return int(loop.slots)


@functools.lru_cache(maxsize=65536)
def _split(steps: int, free: int) -> int:
    """How far from the last state the next one is kept, for `steps` steps to reverse and `free` slots.

    >>> _split(10, 2)  # binomial(5, 2) steps: two runs again of the first binomial(4, 3)
    4
    """
    held, repeats = free + 1, 0
    while math.comb(held + repeats, held) < steps:
        repeats += 1
    few = math.comb(held + repeats - 1, held) if repeats else 0
    return max(1, min(few, max(1, steps - math.comb(held - 1 + repeats - 1, held - 1))))


table.nondifferentiable(_no_plans, _plan, _slots_of, _split)
checkpointed_loop.__srcgrad_wraps__ = True  # type: ignore[attr-defined]
