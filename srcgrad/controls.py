"""Control of derivatives: `stop_gradient`, `custom_vjp`, `custom_jvp`, `checkpoint`, in JAX's conventions."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from srcgrad.runtime import dispatch, tangents, trees
from srcgrad.runtime.errors import ArgumentError, UnsupportedSyntax
from srcgrad.runtime.rules import table
from srcgrad.runtime.rules.table import forward, reverse


def stop_gradient(x: Any) -> Any:
    """`x`, taken for a constant by whoever differentiates.

    >>> from srcgrad import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    detach = getattr(x, "detach", None)
    return x if detach is None else detach()


table.nondifferentiable(stop_gradient, alias="maybe", shape="anything")


def intercept(x: Any, function: Callable[[Any], Any]) -> Any:
    """`x`; whoever differentiates hands the derivative that passes this point to `function`: in reverse mode
    the cotangent of `x`, in forward mode its tangent, either in the structure, shapes and dtypes of `x`. What
    `function` returns goes on in its place; if that is None, it goes on as it is.

    >>> from srcgrad import grad, jvp
    >>> def clipped(x):
    ...     y = intercept(x * x, lambda d: min(d, 1.0))
    ...     return 5.0 * y
    >>> grad(clipped)(3.0)
    6.0
    >>> seen = []
    >>> jvp(lambda x: intercept(x * x, lambda d: seen.append(d)) * 5.0, (3.0,), (1.0,))
    (45.0, 30.0)
    >>> seen
    [6.0]
    """
    if hasattr(x, "register_hook") and x.requires_grad:
        x = x.view_as(x)
        x.register_hook(function)
    return x


def _received(function: Any, g: Any, x: Any) -> Any:
    """What goes on in the place of the cotangent `g` of `x`."""
    bar = trees.like(g, x)
    made = function(bar)
    return tangents.cotangent(bar if made is None else made, x, "what intercept was returned", "argument")


def _sent(function: Any, x_dot: Any, x: Any) -> Any:
    """What goes on in the place of the tangent `x_dot` of `x`."""
    dot = tangents.like(x_dot, x)
    made = function(dot)
    return tangents.given(dot if made is None else made, x, "the point of intercept")


def _unchanged(d: Any) -> None:
    """An inspection that sees nothing, to test with."""


@reverse(intercept, alias="maybe", at=[(2.0, _unchanged), ([1.0, -2.0], _unchanged)])
def _intercept_reverse(g: Any, y: Any, x: Any, function: Any) -> Any:
    return _received(function, g, x)


@forward(intercept)
def _intercept_forward(x_dot: Any, y: Any, x: Any, function: Any) -> Any:
    return _sent(function, x_dot, x)


class Custom:
    """A function with derivatives of its own. `plan(args, kwargs)` tells the dispatcher how to differentiate
    a call of it, `tangent_plan(args, kwargs, dots)` how to do so forwards."""

    __srcgrad_custom__ = True

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        if not callable(fun):
            raise ArgumentError(
                f"a function with derivatives of its own needs a function, not a {type(fun).__name__}"
            )
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<srcgrad {type(self).__name__} of {self._title!r}>"

    @property
    def _title(self) -> str:
        return getattr(self.fun, "__qualname__", type(self.fun).__qualname__)

    @functools.cached_property
    def __srcgrad_plain__(self) -> types.FunctionType:
        """A Python function that calls this one, for whoever differentiates it as a whole."""
        parameters = inspect.signature(self.fun).parameters.values()
        star: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        shown = [star.get(p.kind, "") + p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        if any(p.kind is p.KEYWORD_ONLY for p in parameters):
            raise ArgumentError(
                f"{self._title} has keyword-only parameters: a function with its own derivatives may not"
            )
        text = f"def apply({', '.join(shown)}):\n    return function({', '.join(shown)})\n"
        made = dispatch.made_from(text, "apply", {"function": self}, f"call of {self._title} {id(self):x}")
        made.__defaults__ = tuple(p.default for p in parameters if p.default is not p.empty) or None
        return made

    def _sources(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
        """For each parameter, in order: (its place for `dispatch.arrange`, where its argument stands, the
        default)."""
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        passed = set(bound.arguments)
        bound.apply_defaults()
        found: list[tuple[str, Any, Any]] = []
        position = 0
        for n, v in bound.arguments.items():
            p = bound.signature.parameters[n]
            if p.kind is p.VAR_POSITIONAL:
                found += [(f"{n}{i}", position + i, None) for i in range(len(v))]
            elif p.kind in (p.VAR_KEYWORD, p.KEYWORD_ONLY):
                raise ArgumentError(
                    f"{self._title} has keyword-only parameters: a function with its own derivatives may not"
                )
            elif n in kwargs:
                found.append(("=" + n, n, None))
            elif n in passed:
                found.append((n, position, None))
                position += 1
            else:
                found.append(("=" + n, None, v))
        return tuple(found)

    def _refuse_captured(self, function_dot: Any) -> None:
        if isinstance(function_dot, dict) and function_dot:
            raise UnsupportedSyntax(
                f"{self._title}, which has derivatives of its own, captured the differentiated variable "
                f"{', '.join(map(str, function_dot))}: pass it as an argument."
            )

    def _moving(self, count: int) -> tuple[int, ...]:
        still = {i + count if i < 0 else i for i in self.nondiff_argnums}
        return tuple(i for i in range(count) if i not in still)

    def _fixed(self, count: int) -> tuple[int, ...]:
        return tuple(i for i in range(count) if i not in self._moving(count))


def _complete(args: Any, kwargs: Any, sources: Any) -> list[Any]:
    """All arguments in the order of the parameters."""
    found = []
    for _, where, default in sources:
        if where is None:
            found.append(default)
        elif isinstance(where, str):
            found.append(kwargs[where])
        else:
            found.append(args[where])
    return found


class CustomVjp(Custom):
    """See `custom_vjp`."""

    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """`fwd(*args) -> (value, residuals)` and `bwd(residuals, cotangent) -> cotangents of the arguments, a
        tuple`."""
        self.forward, self.backward = fwd, bwd

    def plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.forward is None:
            raise ArgumentError(
                f"{self._title} is a custom_vjp without derivatives: call defvjp(fwd, bwd) first"
            )
        sources = self._sources(args, kwargs)
        forward, reverse = _vjp_halves(
            self.forward, self.backward, sources, self._fixed(len(sources)), self._title
        )
        return dispatch.Plan(forward, reverse, (), tuple(place for place, _, _ in sources), "plain")

    def tangent_plan(self, args: tuple[Any, ...], kwargs: dict[str, Any], dots: Any) -> Any:
        if self.forward is None:
            raise ArgumentError(
                f"{self._title} is a custom_vjp without derivatives: call defvjp(fwd, bwd) first"
            )
        self._refuse_captured(dots[0])
        sources = self._sources(args, kwargs)
        count = len(sources)
        pushed = _vjp_pushed(
            self.forward, self.backward, sources, self._moving(count), self._fixed(count), self._title
        )
        return dispatch.TangentPlan(
            pushed, (), "plain", (("dots", "every", 0), ("keyword_dots", "keywords", tuple(kwargs)))
        )


def _vjp_halves(fwd: Any, bwd: Any, sources: Any, fixed: tuple[int, ...], title: str) -> tuple[Any, Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        every = _complete(args, kwargs, sources)
        value, residuals = fwd(*every)
        return value, (residuals, value, every)

    def reverse(g: Any, saved: Any) -> Any:
        residuals, value, every = saved
        bars = bwd(*[every[i] for i in fixed], residuals, trees.like(g, value))
        return _spread(bars, every, fixed, title)

    return forward, reverse


def _vjp_pushed(fwd: Any, bwd: Any, sources: Any, moving: Any, fixed: Any, title: str) -> Any:
    """Forward mode out of reverse halves: what `bwd` returns is linear in the cotangent, so that its own
    pullback with respect to that is the derivative sought."""

    def pushed(*args: Any, dots: Any, keyword_dots: Any, **kwargs: Any) -> Any:
        every = _complete(args, kwargs, sources)
        moves = _complete(dots, keyword_dots, _still(sources))
        value, residuals = fwd(*every)
        given = [*[every[i] for i in fixed], residuals, tangents.zeros_like(value)]
        _, saved = dispatch.forward_of(bwd, tuple(given), (len(given) - 1,))
        (tangent,) = dispatch.reverse_of(saved, [moves[i] for i in moving])
        return value, tangents.like(tangent, value)

    return pushed


def _spread(bars: Any, args: Any, fixed: tuple[int, ...], title: str) -> list[Any]:
    """The cotangents that a user's `bwd` returned, one for each argument, in the form that emitted code works
    on."""
    if not isinstance(bars, (tuple, list)) or len(bars) != len(args) - len(fixed):
        got = f"{len(bars)} cotangents" if isinstance(bars, (tuple, list)) else f"a {type(bars).__name__}"
        raise ArgumentError(
            f"the bwd of {title} returned {got} for {len(args) - len(fixed)} arguments: return a tuple"
        )
    found, k = [], 0
    for i, x in enumerate(args):
        if i in fixed:
            found.append(0.0)
            continue
        name = f"the cotangent of argument {i} from the bwd of {title}"
        found.append(0.0 if bars[k] is None else tangents.cotangent(bars[k], x, name, "argument"))
        k += 1
    return found


def _spread_dot(bars_dot: Any, bars: Any, args: Any, fixed: tuple[int, ...], title: str) -> list[Any]:
    """The tangent of `_spread(bars, args, fixed, title)`."""
    moved = tuple(None if b is None else t for t, b in zip(bars_dot, bars, strict=True))
    return _spread(moved, args, fixed, title)


def _spread_back(g: Any, bars: Any, fixed: tuple[int, ...]) -> list[Any]:
    """The cotangent of `bars` for `_spread(bars, args, fixed, title)`."""
    kept = [v for i, v in enumerate(g) if i not in fixed]
    return [0.0 if b is None else trees.part(v, b) for v, b in zip(kept, bars, strict=True)]


@reverse(_spread, at=[])
def _spread_reverse(g: Any, y: Any, bars: Any, args: Any, fixed: Any, title: Any) -> Any:
    return _spread_back(g, bars, fixed)


@forward(_spread)
def _spread_forward(bars_dot: Any, y: Any, bars: Any, args: Any, fixed: Any, title: Any) -> Any:
    return _spread_dot(bars_dot, bars, args, fixed, title)


class CustomJvp(Custom):
    """See `custom_jvp`."""

    rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """`rule(primals, tangents) -> (value, tangent)`; may be used as a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Any) -> None:
        """A rule for each argument: `rule(tangent, value, *primals) -> its share of the tangent`; None if it
        has none."""
        fun = self.fun

        def rule(primals: Any, tangents: Any) -> Any:
            value = fun(*primals)
            found = [
                rules[i](tangents[i], value, *primals) for i in range(len(rules)) if rules[i] is not None
            ]
            total = found[0]
            for part in found[1:]:
                total = total + part
            return value, total

        self.rule = rule

    def _rule(self) -> Callable[..., Any]:
        if self.rule is None:
            raise ArgumentError(f"{self._title} is a custom_jvp without derivatives: call defjvp(rule) first")
        return self.rule

    def plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        sources = self._sources(args, kwargs)
        forward, reverse = _transposed(
            self._rule(), sources, self._moving(len(sources)), self._fixed(len(sources))
        )
        return dispatch.Plan(forward, reverse, (), tuple(place for place, _, _ in sources), "plain")

    def tangent_plan(self, args: tuple[Any, ...], kwargs: dict[str, Any], dots: Any) -> Any:
        sources = self._sources(args, kwargs)
        self._refuse_captured(dots[0])
        pushed = _pushed(
            self._rule(), sources, self._moving(len(sources)), self._fixed(len(sources)), self._title
        )
        return dispatch.TangentPlan(
            pushed, (), "plain", (("dots", "every", 0), ("keyword_dots", "keywords", tuple(kwargs)))
        )


def _pushed(rule: Any, sources: Any, moving: tuple[int, ...], fixed: tuple[int, ...], title: str) -> Any:
    def pushed(*args: Any, dots: Any, keyword_dots: Any, **kwargs: Any) -> Any:
        every = _complete(args, kwargs, sources)
        moves = _complete(dots, keyword_dots, _still(sources))
        value, tangent = rule(
            *[every[i] for i in fixed], tuple([every[i] for i in moving]), tuple([moves[i] for i in moving])
        )
        return value, tangents.given(tangent, value, f"the result of {title}")

    return pushed


def _still(sources: Any) -> Any:
    """Zero tangents in the place of defaults."""
    return tuple((place, where, tangents.zeros_like(default)) for place, where, default in sources)


def _transposed(rule: Any, sources: Any, moving: tuple[int, ...], fixed: tuple[int, ...]) -> tuple[Any, Any]:
    """Reverse halves out of a forward rule: its tangent is linear in the tangents, so that its pullback with
    respect to them, taken anywhere, is the derivative sought."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        every = _complete(args, kwargs, sources)
        zeros = tuple([tangents.zeros_like(every[i]) for i in moving])
        given = [*[every[i] for i in fixed], tuple([every[i] for i in moving]), zeros]
        found, saved = dispatch.forward_of(rule, tuple(given), (len(given) - 1,))
        return found[0], (saved, found, zeros)

    def reverse(g: Any, saved: Any) -> Any:
        record, found, zeros = saved
        (bars,) = dispatch.reverse_of(record, [trees.zeros_like(found[0]), g])
        return _placed(trees.match(bars, zeros), moving, len(sources))

    return forward, reverse


def _placed(bars: Any, moving: tuple[int, ...], count: int) -> list[Any]:
    return [bars[moving.index(i)] if i in moving else 0.0 for i in range(count)]


def custom_vjp(fun: Callable[..., Any] | None = None, nondiff_argnums: Sequence[int] = ()) -> Any:
    """`fun` with a reverse-mode derivative of your own, set by `.defvjp(fwd, bwd)`.

    `fwd(*args)` returns (value, residuals), `bwd(residuals, cotangent)` a tuple with the cotangent of each
    argument, None for zero. The arguments at `nondiff_argnums` have no derivative; `bwd` receives them first.

    >>> from srcgrad import grad
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (min(g, 1.0),))
    >>> grad(lambda x: 5.0 * clipped(x))(2.0)
    1.0
    """
    if fun is None:
        return lambda f: CustomVjp(f, nondiff_argnums)
    return CustomVjp(fun, nondiff_argnums)


def custom_jvp(fun: Callable[..., Any] | None = None, nondiff_argnums: Sequence[int] = ()) -> Any:
    """`fun` with a derivative of your own for both modes, set by `.defjvp(rule)` or `.defjvps(*rules)`.

    `rule(primals, tangents)` returns (value, tangent); the tangent must be linear in `tangents`. The
    arguments at `nondiff_argnums` have no derivative; the rule receives them first.

    >>> from srcgrad import grad
    >>> @custom_jvp
    ... def square(x):
    ...     return x * x
    >>> @square.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return square(x), 2 * x * x_dot
    >>> grad(square)(3.0)
    6.0
    """
    if fun is None:
        return lambda f: CustomJvp(f, nondiff_argnums)
    return CustomJvp(fun, nondiff_argnums)


class Checkpointed(Custom):
    """See `checkpoint`."""

    def plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return dispatch.Plan(_run, _run_again, ("function",), ("function", "*args", "**kwargs"), "object")

    def tangent_plan(self, args: tuple[Any, ...], kwargs: dict[str, Any], dots: Any) -> Any:
        return dispatch.tangent_plan_of(self.fun, args, kwargs, *dots)


def _inner(function: Checkpointed) -> Any:
    return function.fun


@reverse(_inner, at=[])
def _inner_reverse(g: Any, y: Any, function: Any) -> Any:
    return g


@forward(_inner)
def _inner_forward(function_dot: Any, y: Any, function: Any) -> Any:
    return function_dot


def _run(function: Any, *args: Any, **kwargs: Any) -> Any:
    return _inner(function)(*args, **kwargs), (function, args, kwargs)


def _run_again(g: Any, saved: Any) -> Any:
    function, args, kwargs = saved
    _, record = dispatch.forward(_inner(function), args, kwargs)
    return dispatch.reverse(record, g)


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, which saves nothing for the reverse sweep but its arguments: the sweep runs it again. Memory for
    time.

    >>> from srcgrad import grad
    >>> grad(checkpoint(lambda x: x * x))(3.0)
    6.0
    """
    return Checkpointed(fun)


checkpoint.__srcgrad_wraps__ = True  # type: ignore[attr-defined]
table.nondifferentiable(_still)
__all__ = ["checkpoint", "custom_jvp", "custom_vjp", "intercept", "stop_gradient"]
