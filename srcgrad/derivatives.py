"""The transforms: `grad`, `value_and_grad`, `vjp`, `jvp` and their relatives.

All but `grad`, `vjp` and `jvp` are plain functions made of these three, and so can be differentiated like any
other.
"""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.gradient import Gradient, kind_of, plain_function, transform_in
from srcgrad.runtime import dispatch, tangents, trees
from srcgrad.runtime.dependencies import stale
from srcgrad.runtime.errors import ArgumentError
from srcgrad.runtime.rules import table

Argnums = int | tuple[int, ...]


def grad(
    fun: Any = None, argnums: Any = 0, *, argnames: Any = None, has_aux: bool = False, jit: Any = False
) -> Any:
    """The gradient of a function with a real scalar result, as a function with the same signature.

    Its Python source is emitted, compiled and kept when it is first called with arguments of a kind (a float,
    a matrix of float64, ...); `.source` and `.source_for(*args)` show it. May be used as a decorator, with
    arguments or without, also in class bodies.

    Args:
        fun: the function: a Python function, a method, a `functools.partial`, another transform's result.
        argnums: the position, or a tuple of positions, of the arguments to differentiate by; negative ones
            count from the end. An int gives one gradient, a tuple a tuple of them.
        argnames: names of arguments in place of positions; also of those that are keyword-only.
        has_aux: the function returns `(result, aux)`, and the gradient `(gradient, aux)`.
        jit: compiling with Numba is not supported yet: anything but False raises `ArgumentError`.

    Each gradient has the structure, shape and dtype of its argument, and memory of its own.

    Raises:
        ArgumentError: `argnums` or `argnames` name no argument, or one that is not of floating point numbers.
        ResultError: the result is no real scalar.
        UnsupportedSyntax, NoRule, AliasError, SourceError: the function can't be differentiated exactly; the
            message shows the line, the reason and a way out.

    >>> import numpy as np
    >>> @grad
    ... def energy(x, k=2.0):
    ...     return 0.5 * k * np.sum(x * x)
    >>> energy(np.array([1.0, -2.0]))
    array([ 2., -4.])
    """
    _without_jit(jit)
    if fun is None:
        return lambda f: grad(f, argnums, argnames=argnames, has_aux=has_aux)
    if isinstance(fun, (staticmethod, classmethod)):
        return type(fun)(grad(fun.__func__, argnums, argnames=argnames, has_aux=has_aux))
    return Gradient(fun, argnums, argnames, has_aux, False)


def value_and_grad(
    fun: Any = None, argnums: Any = 0, *, argnames: Any = None, has_aux: bool = False, jit: Any = False
) -> Any:
    """Like `grad`, for `(value, gradient)` of one forward sweep; with `has_aux`, `((value, aux), gradient)`.

    Arguments and errors are those of `grad`.

    >>> value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    (6.0, (3.0, 2.0))
    """
    _without_jit(jit)
    if fun is None:
        return lambda f: value_and_grad(f, argnums, argnames=argnames, has_aux=has_aux)
    if isinstance(fun, (staticmethod, classmethod)):
        return type(fun)(value_and_grad(fun.__func__, argnums, argnames=argnames, has_aux=has_aux))
    return Gradient(fun, argnums, argnames, has_aux, True)


def _without_jit(jit: Any) -> None:
    if jit:
        raise ArgumentError("jit: compiling gradients with Numba is not supported yet; leave it out.")


for _transform in (grad, value_and_grad):
    _transform.__srcgrad_wraps__ = True  # type: ignore[attr-defined]


# Sweeps

_compiled: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def forget() -> None:
    """Drop all compiled forms: a rule was filed."""
    with _lock:
        _compiled.clear()


def _target(
    fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[types.FunctionType, tuple[Any, ...]]:
    """(the Python function to differentiate, arguments that it takes before the caller's)."""
    if not callable(fun):
        raise ArgumentError(f"a transform needs a function, not a {type(fun).__name__}")
    inner, before = transform_in(fun)
    if inner is not None:
        return inner.__srcgrad_call__((*before, *args), kwargs), (*inner.leading, *before)
    return plain_function(fun, len(args), tuple(kwargs))


def _known(form: str, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], moving: set[Any]) -> Any:
    """The compiled `form` ("root" or "halves") of `fun` for arguments of these kinds."""
    function, leading = _target(fun, args, kwargs)
    shifted = {m + len(leading) if isinstance(m, int) else m for m in moving}
    every = (*leading, *args)
    try:
        key = (form, *map(kind_of, every), *((k, kind_of(v)) for k, v in kwargs.items()), frozenset(shifted))
        hash(key)
    except TypeError:
        key = None
    with _lock:
        known = _compiled.setdefault(function, {})
        made = known.get(key) if key is not None else None
        if made is None or stale(made.dependencies):
            from srcgrad.transforms import build

            made = getattr(build, form)(function, every, kwargs, shifted)
            if key is not None:
                known[key] = made
    return made, every, len(leading)


def push(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: Any, moves: Any) -> tuple[Any, Any]:
    """(value, tangent) of `fun(*args, **kwargs)`; `moves` are the tangents of the arguments at the positions
    `wanted`."""
    made, every, skip = _known("root", fun, args, kwargs, set(wanted))
    return made(every, kwargs, {w + skip: t for w, t in zip(wanted, moves, strict=True)})  # type: ignore[no-any-return]


def pull(
    fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: Sequence[int]
) -> tuple[Any, Callable[[Any], Any]]:
    """(value, pullback) of `fun(*args, **kwargs)`; the pullback gives a cotangent for each position in
    `wanted`."""
    made, every, skip = _known("halves", fun, args, kwargs, set(wanted))
    value, saved = made.forward(*every, **kwargs)
    saved = _kept(saved, _memory((every, kwargs, value)))
    places = _places(made, every, kwargs, wanted, skip)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        bars = made.back(tangents.cotangent(cotangent, value), saved)
        return tuple(bars[i] if rest is None else bars[i][rest] for i, rest in places)

    return value, pullback


def _push(fun: Any, args: Any, kwargs: Any, wanted: Any, moves: Any) -> Any:
    """`push` as it is differentiated."""
    dots = [
        tangents.given(moves[wanted.index(i)], x, f"argument {i}") if i in wanted else None
        for i, x in enumerate(args)
    ]
    value, tangent = dispatch.jvp(fun, args, kwargs, None, tuple(dots))
    return value, tangents.like(tangent, value)


def _pull(fun: Any, args: Any, kwargs: Any, wanted: Any) -> Any:
    """`pull` as it is differentiated."""
    value, saved = dispatch.forward(fun, args, kwargs)

    def pullback(cotangent: Any) -> Any:
        bars = dispatch.reverse(saved, tangents.cotangent(cotangent, value))
        return tuple([trees.like(bars[1][i], args[i]) for i in wanted])

    return value, pullback


def _vjp(fun: Any, *primals: Any) -> Any:
    """`vjp` as it is differentiated."""
    return pull(fun, primals, {}, range(len(primals)))


def _jvp(fun: Any, primals: Any, moves: Any) -> Any:
    """`jvp` as it is differentiated."""
    return push(fun, tuple(primals), {}, range(len(primals)), moves)


def _places(
    made: Any, args: tuple[Any, ...], kwargs: Any, wanted: Sequence[int], skip: int
) -> list[tuple[int, int | None]]:
    """Where the cotangent of each wanted position is found: which parameter's, and which element of
    `*args`."""
    code = made.forward.__code__
    names = code.co_varnames[: code.co_argcount]
    variadic = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 4 else None
    found: list[tuple[int, int | None]] = []
    for w in wanted:
        position = w + skip
        if position < len(names):
            found.append((made.wanted.index(names[position]), None))
        else:
            found.append((made.wanted.index(variadic), position - len(names)))
    return found


def _memory(x: Any) -> list[np.ndarray[Any, Any]]:
    return [v for v in tangents.leaves(x) if isinstance(v, np.ndarray) and v.size]


def _kept(saved: Any, seen: list[np.ndarray[Any, Any]]) -> Any:
    """What a pullback needs, safe from what the caller does to the arguments and to the value."""
    if isinstance(saved, np.ndarray):
        return saved.copy("K") if any(np.may_share_memory(saved, a) for a in seen) else saved
    if type(saved) is tuple:
        return tuple(_kept(s, seen) for s in saved)
    if type(saved) is list:
        return [_kept(s, seen) for s in saved]
    if type(saved) is dict:
        return {k: _kept(s, seen) for k, s in saved.items()}
    return saved


def vjp(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """(`fun(*primals)`, pullback). `pullback(cotangent)` takes a cotangent in the structure of the value and
    returns a tuple with the cotangent of each primal. It may be called again, and leaves its argument alone.

    >>> import numpy as np
    >>> value, pullback = vjp(lambda x, y: x * np.sin(y), 2.0, 0.0)
    >>> pullback(1.0)
    (0.0, 2.0)
    """
    wanted = tuple(i for i, p in enumerate(primals) if _differentiable(p))
    value, pullback = pull(fun, primals, {}, wanted)
    if len(wanted) == len(primals):
        return value, pullback

    def with_zeros(cotangent: Any) -> tuple[Any, ...]:
        found = dict(zip(wanted, pullback(cotangent), strict=True))
        return tuple(found[i] if i in found else trees.like(0.0, p) for i, p in enumerate(primals))

    return value, with_zeros


def _differentiable(x: Any) -> bool:
    """May there be a derivative with respect to an argument? Not for integer arrays, strings, functions."""
    if x is None or isinstance(x, (str, bytes, bool)) or callable(x):
        return False
    return getattr(getattr(x, "dtype", None), "kind", "f") in "fc"


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:  # noqa: F811
    """(`fun(*primals)`, its tangent along `tangents`, which have the primals' structure and shapes; None is
    zero).

    >>> import numpy as np
    >>> jvp(np.sin, (0.0,), (2.0,))
    (np.float64(0.0), np.float64(2.0))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError("jvp takes the primals and the tangents as tuples: jvp(f, (x,), (x_dot,))")
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp was given {len(primals)} primals but {len(tangents)} tangents")
    wanted = [i for i, t in enumerate(tangents) if t is not None and not _still(primals[i], t)]
    return push(fun, tuple(primals), {}, wanted, [tangents[i] for i in wanted])


def _still(x: Any, t: Any) -> bool:
    """Is `t` a zero tangent of something that has no derivative?"""
    return not _differentiable(x) and (
        isinstance(t, (int, float)) and not t or not np.any(np.asarray(t, dtype=object))
    )


# Made of these


def jacobian(
    fun: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian of `fun`, by whichever mode needs fewer sweeps. Its shape is that of the result followed
    by that of the argument; of containers it is a container of containers. A tuple of `argnums` gives a
    tuple.

    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, args)
        value, pullback = pull(fun, args, kwargs, positions)
        if _size(value) <= sum(_size(args[p]) for p in positions):
            return _reverse_jacobian(args, argnums, value, pullback, holomorphic)
        return _forward_jacobian(fun, args, kwargs, argnums, holomorphic)

    return _named(_shown(jacobian_of, "halves", fun, argnums), fun, "jacobian")


def jacfwd(fun: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False) -> Callable[..., Any]:
    """The Jacobian by forward mode: one sweep for each number in the argument. See `jacobian`."""

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        return _forward_jacobian(fun, args, kwargs, argnums, holomorphic)

    return _named(_shown(jacobian_of, "root", fun, argnums), fun, "jacfwd")


def jacrev(fun: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one sweep for each number in the result. See `jacobian`."""

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, args)
        value, pullback = pull(fun, args, kwargs, positions)
        return _reverse_jacobian(args, argnums, value, pullback, holomorphic)

    return _named(_shown(jacobian_of, "halves", fun, argnums), fun, "jacrev")


def hessian(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The matrix of second derivatives of a function with a real scalar result, forward over reverse.

    >>> hessian(lambda x: x**3)(2.0)
    12.0
    """
    return _named(jacfwd(grad(fun, argnums), argnums), fun, "hessian")


def hvp(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """`hvp(fun)(*args, v)` is the Hessian times `v`, by one forward sweep over the gradient; `v` has the
    structure of the argument, or is a tuple where `argnums` is one.

    >>> hvp(lambda x: x**3)(2.0, 10.0)
    120.0
    """
    gradient = grad(fun, argnums)

    def product(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            raise ArgumentError(
                "the product takes the function's arguments and then the vector: hvp(f)(x, v)"
            )
        args, v = args[:-1], args[-1]
        positions = _positions(argnums, args)
        vectors = (v,) if isinstance(argnums, int) else v
        return push(gradient, args, kwargs, positions, vectors)[1]

    return _named(_shown(product, "root", gradient, argnums), fun, "hvp")


def elementwise_grad(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The derivative of each element of the result with respect to the element of the argument at the same
    place: the gradient of the sum of the result.

    >>> import numpy as np
    >>> elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    """

    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, args)
        value, pullback = pull(fun, args, kwargs, positions)
        found = pullback(np.ones_like(value) if isinstance(value, np.ndarray) else 1.0)
        return found[0] if isinstance(argnums, int) else found

    return _named(_shown(gradient_of, "halves", fun, argnums), fun, "elementwise_grad")


def _shown(made: Any, form: str, fun: Any, argnums: Argnums) -> Any:
    """`made` with `source_for(*args)`: the emitted source that it runs for arguments of these kinds."""

    def source_for(*args: Any, **kwargs: Any) -> str:
        return str(_known(form, fun, args, kwargs, set(_positions(argnums, args)))[0].source)

    made.source_for = source_for
    return made


def _named(made: Any, fun: Any, transform: str) -> Callable[..., Any]:
    """`made`, called like `fun`."""
    name = getattr(fun, "__name__", "function")
    made.__name__, made.__qualname__ = (
        f"{transform}_of_{name}",
        f"{transform} of {getattr(fun, '__qualname__', name)}",
    )
    made.__doc__, made.__wrapped__ = getattr(fun, "__doc__", None), fun
    return made  # type: ignore[no-any-return]


def _positions(argnums: Argnums, args: tuple[Any, ...]) -> tuple[int, ...]:
    found = []
    for a in (argnums,) if isinstance(argnums, int) else argnums:
        position = a + len(args) if a < 0 else a
        if not 0 <= position < len(args):
            raise ArgumentError(f"argnums: there is no argument {a}, {len(args)} were passed")
        trees.check_argument(args[position], f"argument {a}")
        found.append(position)
    return tuple(found)


def _size(x: Any) -> int:
    return sum(int(np.size(v)) for v in tangents.leaves(x))


def _units(x: Any, holomorphic: bool) -> list[Any]:
    """The unit vectors of a structure."""
    values = tangents.leaves(x)
    if not holomorphic and any(np.iscomplexobj(v) for v in values):
        raise ArgumentError(
            "a Jacobian for complex numbers needs a holomorphic function: pass holomorphic=True"
        )
    zeros = [
        np.zeros(np.shape(v), np.result_type(v) if np.result_type(v).kind in "fc" else float) for v in values
    ]
    found = []
    for i, zero in enumerate(zeros):
        for k in range(zero.size):
            unit = zero.copy()
            unit.reshape(-1)[k] = 1
            found.append(tangents.rebuilt(x, [*zeros[:i], unit, *zeros[i + 1 :]]))
    return found


def _moves(args: tuple[Any, ...], positions: tuple[int, ...], holomorphic: bool) -> list[tuple[int, Any]]:
    """(position, unit vector) for each number in the arguments at `positions`."""
    return [(p, unit) for p in positions for unit in _units(args[p], holomorphic)]


def _ranges(xs: list[Any]) -> list[list[tuple[int, int, tuple[int, ...], Any]]]:
    """For each leaf of each structure: the numbers of its elements, counted through all, its shape and
    dtype."""
    found, start = [], 0
    for x in xs:
        parts = []
        for v in tangents.leaves(x):
            stop = start + int(np.size(v))
            parts.append((start, stop, np.shape(v), np.result_type(v)))
            start = stop
        found.append(parts)
    return found


def _forward_jacobian(fun: Any, args: Any, kwargs: Any, argnums: Any, holomorphic: bool) -> Any:
    positions = _positions(argnums, args)
    moves = _moves(args, positions, holomorphic)
    value: Any = None if moves else fun(*args, **kwargs)
    columns = []
    for p, unit in moves:
        value, tangent = push(fun, args, kwargs, (p,), (unit,))
        columns.append(tangents.leaves(tangent))
    ranges = _ranges([args[p] for p in positions])
    found = []
    for i, y in enumerate(tangents.leaves(value)):
        blocks = []
        for j in range(len(positions)):
            parts = []
            for start, stop, shape, _dtype in ranges[j]:
                parts.append(
                    _stacked([columns[k][i] for k in range(start, stop)], -1, (*np.shape(y), *shape), y)
                )
            blocks.append(tangents.rebuilt(args[positions[j]], parts))
        found.append(blocks[0] if isinstance(argnums, int) else tuple(blocks))
    return tangents.rebuilt(value, found)


def _reverse_jacobian(args: Any, argnums: Any, value: Any, pullback: Any, holomorphic: bool) -> Any:
    positions = _positions(argnums, args)
    for p in positions:
        _units(args[p], holomorphic)
    rows = []
    for unit in _units(value, holomorphic):
        rows.append(tangents.leaves(pullback(unit)))
    ranges = _ranges([value])[0]
    found = []
    for start, stop, shape, _dtype in ranges:
        blocks, leaf = [], 0
        for p in positions:
            parts = []
            for x in tangents.leaves(args[p]):
                number = leaf
                parts.append(
                    _stacked([rows[k][number] for k in range(start, stop)], 0, (*shape, *np.shape(x)), x)
                )
                leaf += 1
            blocks.append(tangents.rebuilt(args[p], parts))
        found.append(blocks[0] if isinstance(argnums, int) else tuple(blocks))
    return tangents.rebuilt(value, found)


def _stacked(parts: Any, axis: int, shape: Any, like: Any) -> Any:
    """The parts of a Jacobian's block, joined; `like` tells the dtype of an empty one."""
    if not parts:
        return np.zeros(shape, np.result_type(like))
    if shape == ():
        return parts[0]
    return np.stack(parts, axis=axis).reshape(shape)


table.nondifferentiable(_positions, _size, _units, _moves, _ranges, _differentiable)


def _differentiated(function: Any, by: Any) -> None:
    """Where a program that calls `function` is differentiated, `by` stands in its place."""
    function.__srcgrad_nested__ = by


_differentiated(push, _push)
_differentiated(pull, _pull)
_differentiated(vjp, _vjp)
_differentiated(jvp, _jvp)
_named.__srcgrad_wraps__ = True  # type: ignore[attr-defined]
_shown.__srcgrad_wraps__ = True  # type: ignore[attr-defined]


def _jvp_source(fun: Any, *primals: Any) -> str:
    """The emitted forward-mode source of `fun` for arguments of these kinds."""
    return str(
        _known("root", fun, primals, {}, {i for i, p in enumerate(primals) if _differentiable(p)})[0].source
    )


def _vjp_source(fun: Any, *primals: Any) -> str:
    """The emitted forward and reverse halves of `fun` for arguments of these kinds."""
    return str(
        _known("halves", fun, primals, {}, {i for i, p in enumerate(primals) if _differentiable(p)})[0].source
    )


jvp.source_for = _jvp_source  # type: ignore[attr-defined]
vjp.source_for = _vjp_source  # type: ignore[attr-defined]
