"""`check_grads`: derivatives against finite differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.derivatives import _differentiable, pull, push
from srcgrad.runtime import tangents
from srcgrad.runtime.errors import ArgumentError, CheckFailed

Function = Callable[..., Any]
WORDS = {"fwd": "forward mode", "rev": "reverse mode"}
ORDERS = ("", "first", "second", "third")
LIMIT = 200
"""Of arguments with more entries than this, as many are checked, chosen at random."""


def check_grads(
    fun: Function,
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Raise `CheckFailed` unless the derivatives of `fun` at `args` agree with finite differences, up to
    `order`, in the given modes ("fwd", "rev"); every derivative is differentiated again in each mode.

    The message names the argument, the entry, the analytic and the numeric value. `eps` is the step relative
    to the size of an entry, `atol` and `rtol` are the tolerances; they default to what the precision of the
    arguments allows.

    >>> import numpy as np
    >>> check_grads(lambda x: np.sum(np.sin(x) * x), (np.array([0.5, -1.0]),), order=2)
    """
    if not isinstance(args, (tuple, list)):
        raise ArgumentError("check_grads takes the arguments as a tuple: check_grads(f, (x,))")
    unknown = [m for m in modes if m not in WORDS]
    if unknown:
        raise ArgumentError(f'check_grads: a mode is "fwd" or "rev", not {unknown[0]!r}')
    rough = any(
        np.result_type(v).itemsize < 8
        for a in args
        for v in tangents.leaves(a)
        if np.result_type(v).kind in "fc"
    )
    step = eps if eps is not None else 1e-2 if rough else 1e-3
    tolerance = (
        atol if atol is not None else 2e-2 if rough else 1e-6,
        rtol if rtol is not None else 2e-2 if rough else 1e-6,
    )
    _check(fun, tuple(args), order, 1, tuple(modes), step, tolerance, _title(fun), "")


def _title(fun: Any) -> str:
    return getattr(fun, "__qualname__", None) or type(fun).__qualname__


def _check(
    fun: Function,
    args: tuple[Any, ...],
    order: int,
    level: int,
    modes: tuple[str, ...],
    eps: float,
    tolerance: tuple[float, float],
    title: str,
    path: str,
) -> None:
    wanted = tuple(i for i, a in enumerate(args) if _differentiable(a) and tangents.leaves(a))
    if not wanted:
        raise ArgumentError(f"check_grads: {title} has no argument to differentiate")
    value = fun(*args)
    random = np.random.default_rng(level)
    results = tangents.leaves(value)
    single = sum(int(np.size(v)) for v in results) == 1
    weights = [np.ones_like(v)[()] if single else _direction(v, random) for v in results]
    seed = tangents.rebuilt(value, list(weights))
    for i in wanted:
        for where, step, moved, unit in _entries(args[i], eps, random):
            numeric = _difference(fun, args, i, moved, step)
            for mode in modes:
                if mode == "fwd":
                    _, t = push(fun, args, {}, (i,), (unit,))
                    found: Any = _leaves_of(t)
                    _compare(found, numeric, tolerance, title, i, where, mode, level, path, fun)
                else:
                    _, pullback = pull(fun, args, {}, (i,))
                    bar = pullback(seed)[0]
                    analytic = sum(
                        float(np.real(np.sum(b * u)))
                        for b, u in zip(tangents.leaves(bar), _leaves_of(unit), strict=True)
                    )
                    along = sum(float(np.real(np.sum(w * n))) for w, n in zip(weights, numeric, strict=True))
                    _compare([analytic], [along], tolerance, title, i, where, mode, level, path, fun)
    if level < order:
        directions = tuple(
            tangents.rebuilt(args[i], [_direction(v, random) for v in tangents.leaves(args[i])])
            for i in wanted
        )
        for mode in modes:
            inner: Function
            if mode == "fwd":

                def inner(*primals: Any) -> Any:
                    return push(fun, primals, {}, wanted, directions)[1]
            else:

                def inner(*primals: Any) -> Any:
                    return pull(fun, primals, {}, wanted)[1](seed)

            then = f"{path}{' of ' if path else ''}{WORDS[mode]}"
            _check(inner, args, order, level + 1, modes, eps, tolerance, title, then)


def _leaves_of(x: Any) -> list[Any]:
    return [np.asarray(v) for v in tangents.leaves(x)]


def _direction(v: Any, random: np.random.Generator) -> Any:
    made = random.uniform(0.5, 1.5, np.shape(v)) * random.choice([-1.0, 1.0], np.shape(v))
    if np.iscomplexobj(v):
        made = made + 1j * random.uniform(0.5, 1.5, np.shape(v))
    if isinstance(v, np.ndarray):
        return np.asarray(made, v.dtype if v.dtype.kind in "fc" else None)
    return made.item() if isinstance(made, (np.ndarray, np.generic)) else made


def _entries(
    x: Any, eps: float, random: np.random.Generator
) -> list[tuple[str, float, Callable[[float], Any], Any]]:
    """(name of the entry, step, function from a step to the moved argument, unit vector) for each number in
    an argument."""
    values = tangents.leaves(x)
    names = _names(x, "")
    every = [
        (leaf, k, part) for leaf, v in enumerate(values) for k in range(int(np.size(v))) for part in _parts(v)
    ]
    if len(every) > LIMIT:
        every = [every[i] for i in sorted(random.choice(len(every), LIMIT, replace=False))]
    found: list[tuple[str, float, Callable[[float], Any], Any]] = []
    for leaf, k, part in every:
        v = np.asarray(values[leaf])
        index = np.unravel_index(k, v.shape)
        where = names[leaf] + (f"[{', '.join(str(int(i)) for i in index)}]" if v.shape else "")

        def moved(h: float, leaf: int = leaf, index: Any = index, part: Any = part) -> Any:
            new = np.array(
                values[leaf],
                dtype=np.result_type(values[leaf], part)
                if np.result_type(values[leaf]).kind in "iu"
                else None,
            )
            new[index] += h * part
            return tangents.rebuilt(x, [*values[:leaf], _as(new, values[leaf]), *values[leaf + 1 :]])

        zeros = [
            _as(np.zeros_like(u, dtype=np.result_type(u, 1.0) if np.result_type(u).kind in "iu" else None), u)
            for u in values
        ]
        unit = np.zeros(v.shape, np.result_type(v) if v.dtype.kind in "fc" else float)
        unit[index] = part
        parts = [*zeros[:leaf], _as(unit, values[leaf]), *zeros[leaf + 1 :]]
        found.append((where, eps * max(1.0, abs(complex(v[index]))), moved, tangents.rebuilt(x, parts)))
    return found


def _parts(v: Any) -> tuple[Any, ...]:
    return (1.0, 1j) if np.iscomplexobj(v) else (1.0,)


def _as(new: Any, old: Any) -> Any:
    return (
        new
        if isinstance(old, np.ndarray)
        else new[()].item()
        if isinstance(old, (int, float, complex))
        else new[()]
    )


def _names(x: Any, path: str) -> list[str]:
    """For each leaf how it is reached from the argument."""
    if tangents.is_leaf(x):
        return [path]
    if isinstance(x, dict):
        return [n for k, v in x.items() for n in _names(v, f"{path}[{k!r}]")]
    if isinstance(x, (list, tuple)):
        fields = getattr(x, "_fields", range(len(x)))
        return [
            n
            for f, v in zip(fields, x, strict=True)
            for n in _names(v, f"{path}.{f}" if isinstance(f, str) else f"{path}[{f}]")
        ]
    if hasattr(x, "__dict__") and tangents.leaves(x):
        return [n for k, v in vars(x).items() for n in _names(v, f"{path}.{k}")]
    return []


def _difference(
    fun: Function, args: tuple[Any, ...], i: int, moved: Callable[[float], Any], step: float
) -> list[Any]:
    """The derivative of the leaves of the result along one entry, by central differences of fourth order."""

    def at(h: float) -> list[Any]:
        values = tangents.leaves(fun(*args[:i], moved(h), *args[i + 1 :]))
        return [np.asarray(v, np.result_type(v, np.float64)) for v in values]

    far, near = (at(2 * step), at(-2 * step)), (at(step), at(-step))
    return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in zip(*near, *far, strict=True)]


def _compare(
    found: list[Any],
    numeric: list[Any],
    tolerance: tuple[float, float],
    title: str,
    argument: int,
    where: str,
    mode: str,
    level: int,
    path: str,
    fun: Any,
) -> None:
    atol, rtol = tolerance
    for leaf, (a, n) in enumerate(zip(found, numeric, strict=True)):
        error = np.abs(np.asarray(a) - n)
        bound = atol + rtol * np.maximum(np.abs(n), 1.0)
        wrong = ~(error <= bound)
        if not np.any(wrong):
            continue
        index = np.unravel_index(
            int(np.argmax(np.where(np.isnan(error), np.inf, error - bound))), np.shape(error)
        )
        output = f" of the result's entry {[int(k) for k in index]}" if index else ""
        if len(found) > 1:
            output = (
                f" of the result's part {leaf}{', entry ' + str([int(k) for k in index]) if index else ''}"
            )
        kind = ORDERS[level] if level < len(ORDERS) else f"{level}th"
        outer = f" (differentiating {path})" if path else ""
        raise CheckFailed(
            f"check_grads: the {kind} derivative of {title} is wrong in {WORDS[mode]}{outer}: argument "
            f"{_argument(title, fun, argument, path)}{', entry ' + where if where else ''}{output}: analytic "
            f"{np.asarray(a)[index]:.8g}, numeric {np.asarray(n)[index]:.8g}"
        )


def _argument(title: str, fun: Any, i: int, path: str) -> str:
    """An argument by its number, and by its name where that is known."""
    if path:
        return str(i)
    try:
        names = [p.name for p in inspect.signature(fun).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        return str(i)
    return f"{i} (`{names[i]}`)" if i < len(names) else str(i)
