"""The transforms: `grad`, `value_and_grad`, `vjp`, `jvp` and their relatives.

All but `grad`, `vjp` and `jvp` are plain functions made of these three, and so can be differentiated like any other.
"""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.gradient import Gradient, Lazy, kind_of, plain_function
from srcgrad.runtime import tangents, trees
from srcgrad.runtime.errors import ArgumentError, ResultError

Argnums = int | tuple[int, ...]


def grad(fun: Any = None, argnums: Any = 0, *, argnames: Any = None, has_aux: bool = False, jit: Any = False) -> Any:
    if fun is None:
        return lambda f: Gradient(f, argnums, argnames, has_aux, False)
    return Gradient(fun, argnums, argnames, has_aux, False)


def value_and_grad(fun: Any = None, argnums: Any = 0, *, argnames: Any = None, has_aux: bool = False, jit: Any = False) -> Any:
    if fun is None:
        return lambda f: Gradient(f, argnums, argnames, has_aux, True)
    return Gradient(fun, argnums, argnames, has_aux, True)


# Sweeps ----------------------------------------------------------------------------------------------------------------------

_compiled: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def _target(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[types.FunctionType, tuple[Any, ...]]:
    """(the Python function to differentiate, arguments that it takes before the caller's)."""
    if not callable(fun):
        raise ArgumentError(f"a transform needs a function, not a {type(fun).__name__}")
    if isinstance(fun, Lazy):
        return fun.__srcgrad_call__(args, kwargs), fun.leading  # type: ignore[attr-defined]
    return plain_function(fun)


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
        if made is None:
            from srcgrad.transforms import tangent

            made = getattr(tangent, form)(function, every, kwargs, shifted)
            if key is not None:
                known[key] = made
    return made, every, len(leading)


def push(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], moved: dict[Any, Any]) -> tuple[Any, Any]:
    """(value, tangent) of `fun(*args, **kwargs)`; `moved` holds the tangents by position or name."""
    made, every, skip = _known("root", fun, args, kwargs, set(moved))
    shifted = {m + skip if isinstance(m, int) else m: t for m, t in moved.items()}
    return made(every, kwargs, shifted)  # type: ignore[no-any-return]


def pull(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: tuple[int, ...]) -> tuple[Any, Callable[[Any], Any]]:
    """(value, pullback) of `fun(*args, **kwargs)`; the pullback gives a cotangent for each position in `wanted`."""
    made, every, skip = _known("halves", fun, args, kwargs, set(wanted))
    value, saved = made.forward(*every, **kwargs)
    saved = _kept(saved, _memory((every, kwargs, value)))
    places = _places(made, every, kwargs, wanted, skip)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        bars = made.reverse(tangents.cotangent(cotangent, value), saved)
        return tuple(bars[i] if rest is None else bars[i][rest] for i, rest in places)

    return value, pullback


def _places(made: Any, args: tuple[Any, ...], kwargs: Any, wanted: tuple[int, ...], skip: int) -> list[tuple[int, int | None]]:
    """Where the cotangent of each wanted position is found: which parameter's, and which element of `*args`."""
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
        return saved.copy() if any(np.may_share_memory(saved, a) for a in seen) else saved
    if type(saved) is tuple:
        return tuple(_kept(s, seen) for s in saved)
    if type(saved) is list:
        return [_kept(s, seen) for s in saved]
    if type(saved) is dict:
        return {k: _kept(s, seen) for k, s in saved.items()}
    return saved


def vjp(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """(`fun(*primals)`, pullback). `pullback(cotangent)` takes a cotangent in the structure of the value and returns a tuple
    with the cotangent of each primal. It may be called again, and leaves its argument alone.

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


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    """(`fun(*primals)`, its tangent along `tangents`, which have the primals' structure and shapes; None is zero).

    >>> import numpy as np
    >>> jvp(np.sin, (0.0,), (2.0,))
    (np.float64(0.0), np.float64(2.0))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError("jvp takes the primals and the tangents as tuples: jvp(f, (x,), (x_dot,))")
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp was given {len(primals)} primals but {len(tangents)} tangents")
    moved = {i: t for i, t in enumerate(tangents) if t is not None and not _still(primals[i], t)}
    return push(fun, tuple(primals), {}, moved)


def _still(x: Any, t: Any) -> bool:
    """Is `t` a zero tangent of something that has no derivative?"""
    return not _differentiable(x) and (isinstance(t, (int, float)) and not t or not np.any(np.asarray(t, dtype=object)))


# Made of these ---------------------------------------------------------------------------------------------------------------


def jacobian(fun: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False) -> Callable[..., Any]:
    """The Jacobian of `fun`, by whichever mode needs fewer sweeps. Its shape is that of the result followed by that of the
    argument; of containers it is a container of containers. A tuple of `argnums` gives a tuple.

    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, args)
        value, pullback = pull(fun, args, kwargs, positions)
        if _size(value) <= sum(_size(args[p]) for p in positions):
            return _reverse_jacobian(args, argnums, positions, value, pullback, holomorphic)
        return _forward_jacobian(fun, args, kwargs, argnums, positions, holomorphic)

    return _named(jacobian_of, fun, "jacobian")


def jacfwd(fun: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False) -> Callable[..., Any]:
    """The Jacobian by forward mode: one sweep for each number in the argument. See `jacobian`."""

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        return _forward_jacobian(fun, args, kwargs, argnums, _positions(argnums, args), holomorphic)

    return _named(jacobian_of, fun, "jacfwd")


def jacrev(fun: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one sweep for each number in the result. See `jacobian`."""

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, args)
        value, pullback = pull(fun, args, kwargs, positions)
        return _reverse_jacobian(args, argnums, positions, value, pullback, holomorphic)

    return _named(jacobian_of, fun, "jacrev")


def hessian(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The matrix of second derivatives of a function with a real scalar result, forward over reverse.

    >>> hessian(lambda x: x**3)(2.0)
    12.0
    """
    return _named(jacfwd(Gradient(fun, argnums, None, False, False), argnums), fun, "hessian")


def hvp(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """`hvp(fun)(*args, v)` is the Hessian times `v`, by one forward sweep over the gradient; `v` has the structure of the
    argument, or is a tuple where `argnums` is one.

    >>> hvp(lambda x: x**3)(2.0, 10.0)
    120.0
    """
    gradient = Gradient(fun, argnums, None, False, False)

    def product(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            raise ArgumentError("the product takes the function's arguments and then the vector: hvp(f)(x, v)")
        args, v = args[:-1], args[-1]
        positions = _positions(argnums, args)
        vectors = (v,) if isinstance(argnums, int) else v
        return push(gradient, args, kwargs, dict(zip(positions, vectors, strict=True)))[1]

    return _named(product, fun, "hvp")


def elementwise_grad(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The derivative of each element of the result with respect to the element of the argument at the same place: the gradient
    of the sum of the result.

    >>> import numpy as np
    >>> elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    """

    def gradient_of(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, args)
        value, pullback = pull(fun, args, kwargs, positions)
        found = pullback(np.ones_like(value) if isinstance(value, np.ndarray) else 1.0)
        return found[0] if isinstance(argnums, int) else found

    return _named(gradient_of, fun, "elementwise_grad")


def _named(made: Any, fun: Any, transform: str) -> Any:
    """`made`, called like `fun`."""
    name = getattr(fun, "__name__", "function")
    made.__name__, made.__qualname__ = f"{transform}_of_{name}", f"{transform} of {getattr(fun, '__qualname__', name)}"
    made.__doc__, made.__wrapped__ = getattr(fun, "__doc__", None), fun
    return made


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


def _check_real(x: Any, holomorphic: bool, what: str) -> None:
    if not holomorphic and any(np.iscomplexobj(v) for v in tangents.leaves(x)):
        raise ArgumentError(f"a Jacobian for a complex {what} needs a holomorphic function: pass holomorphic=True")


def _units(x: Any) -> list[tuple[int, Any]]:
    """The unit vectors of a structure: (number of the leaf, structure with a single 1)."""
    found = []
    values = tangents.leaves(x)
    zeros = [np.zeros(np.shape(v), np.result_type(v) if np.result_type(v).kind in "fc" else float) for v in values]
    for i, v in enumerate(values):
        for k in range(int(np.size(v))):
            unit = zeros[i].copy()
            unit.reshape(-1)[k] = 1
            found.append((i, tangents.rebuilt(x, [*zeros[:i], unit, *zeros[i + 1 :]])))
    return found


def _forward_jacobian(
    fun: Any, args: tuple[Any, ...], kwargs: Any, argnums: Argnums, positions: tuple[int, ...], holomorphic: bool
) -> Any:
    blocks = []  # for each argument, for each of its leaves, the columns: tangents of the value
    value: Any = None
    for p in positions:
        _check_real(args[p], holomorphic, "argument")
        columns: list[list[Any]] = [[] for _ in tangents.leaves(args[p])]
        for leaf, unit in _units(args[p]):
            value, moved = push(fun, args, kwargs, {p: unit})
            columns[leaf].append(tangents.leaves(moved))
        blocks.append(columns)
    if value is None:
        value = fun(*args, **kwargs)
    results = []
    for i, y in enumerate(tangents.leaves(value)):
        per_argument = []
        for p, columns in zip(positions, blocks, strict=True):
            parts = []
            for x, found in zip(tangents.leaves(args[p]), columns, strict=True):
                shape = np.shape(y) + np.shape(x)
                if not found:
                    parts.append(np.zeros(shape, np.result_type(y)))
                elif shape == ():
                    parts.append(found[0][i])
                else:
                    parts.append(np.stack([column[i] for column in found], axis=-1).reshape(shape))
            per_argument.append(tangents.rebuilt(args[p], parts))
        results.append(per_argument[0] if isinstance(argnums, int) else tuple(per_argument))
    return _outer(value, results)


def _reverse_jacobian(
    args: tuple[Any, ...], argnums: Argnums, positions: tuple[int, ...], value: Any, pullback: Any, holomorphic: bool
) -> Any:
    _check_real(value, holomorphic, "result")
    for p in positions:
        _check_real(args[p], holomorphic, "argument")
    rows: list[list[Any]] = [[] for _ in tangents.leaves(value)]
    for leaf, unit in _units(value):
        rows[leaf].append(pullback(unit))
    results = []
    for y, found in zip(tangents.leaves(value), rows, strict=True):
        per_argument = []
        for i, p in enumerate(positions):
            parts = []
            for j, x in enumerate(tangents.leaves(args[p])):
                shape = np.shape(y) + np.shape(x)
                gradients = [tangents.leaves(bars[i])[j] for bars in found]
                if not gradients:
                    parts.append(np.zeros(shape, np.result_type(x)))
                elif shape == ():
                    parts.append(gradients[0])
                else:
                    parts.append(np.stack(gradients).reshape(shape))
            per_argument.append(tangents.rebuilt(args[p], parts))
        results.append(per_argument[0] if isinstance(argnums, int) else tuple(per_argument))
    return _outer(value, results)


def _outer(value: Any, results: list[Any]) -> Any:
    """The Jacobians of the value's leaves in the structure of the value."""
    if not results:
        raise ResultError(f"a Jacobian needs a function whose result holds numbers, not a {type(value).__name__}")
    return tangents.rebuilt(value, list(results))
