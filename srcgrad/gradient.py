"""The object that a user holds after `grad`: a function that compiles itself once for each kind of
arguments."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import dispatch, operators, support
from srcgrad.runtime.dependencies import Dependency, stale
from srcgrad.runtime.errors import ArgumentError, SourceError
from srcgrad.runtime.rules import table

Key = tuple[Any, ...]


def kind_of(value: Any) -> Any:
    """The part of a value that a compiled derivative is specialised on: its kind and rank, never its value.

    For an array also which dimensions are 1 and whether it holds float64: then no code for broadcasting or
    casting is needed where nothing is broadcast or cast.
    """
    kind: Any = type(value)
    if kind is float or kind is int:
        return kind
    if kind is np.ndarray:
        shape = value.shape
        return (len(shape), value.dtype.char, tuple([n == 1 for n in shape]) if 1 in shape else None)
    if kind is list:
        return ("list", frozenset(map(kind_of, value)) if value else None)
    if kind is tuple:
        return ("tuple", *map(kind_of, value))
    if kind is dict:
        return ("dict", tuple((k, kind_of(v)) for k, v in value.items()))
    if kind is types.FunctionType and value.__closure__ is None:
        return ("function", value)
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc, type)):
        return ("function", value)
    held = getattr(value, "__dict__", None)
    if held and not held.keys().isdisjoint(_methods(kind)):
        # An attribute that hides a method.
        return (kind, frozenset(held.keys() & _methods(kind)), operators.seen_in((value,)))
    return (kind, operators.seen_in(held.values())) if held else kind


@functools.lru_cache(maxsize=256)
def _methods(cls: type) -> frozenset[str]:
    return frozenset(
        n for c in cls.__mro__ for n, v in vars(c).items() if callable(v) or isinstance(v, property)
    )


class Compiled:
    """One emitted derivative: the function, its source, and what must still hold for it to be valid."""

    def __init__(self, function: Any, source: str, dependencies: list[Dependency]) -> None:
        self.function, self.source, self.dependencies = function, source, dependencies

    def stale(self) -> bool:
        return stale(self.dependencies)


def _has_tensors(tree: Any) -> bool:
    if isinstance(tree, dict):
        return any(map(_has_tensors, tree.values()))
    if isinstance(tree, (tuple, list)):
        return any(map(_has_tensors, tree))
    return type(tree) in support.observers


_with_forms: weakref.WeakSet[Lazy] = weakref.WeakSet()


def forget() -> None:
    """Drop all compiled gradients: a rule was filed."""
    for lazy in list(_with_forms):
        lazy._compiled.clear()


class Lazy:
    """What all transformed functions share: the primal, its signature, methods, compilation under a lock."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        if not callable(fun):
            raise ArgumentError(f"a transform needs a function, not a {type(fun).__name__}")
        self.primal: Any = fun
        self.is_method = False
        self._compiled: dict[Key, Compiled] = {}
        self._lock = threading.RLock()
        self._local = threading.local()
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            try:
                setattr(self, attribute, getattr(fun, attribute))
            except AttributeError:
                pass

    def __set_name__(self, owner: type, name: str) -> None:
        self.is_method = not isinstance(inspect.getattr_static(owner, name, None), staticmethod)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.primal)

    @property
    def plain(self) -> types.FunctionType:
        """The Python function behind the primal: of a bound method, a partial, an object with `__call__`,
        another transform."""
        return plain_function(self.primal)[0]

    @property
    def inner(self) -> Lazy | None:
        """The transform that the primal is, or whose bound method it is."""
        return transform_in(self.primal)[0]

    @property
    def leading(self) -> tuple[Any, ...]:
        """Arguments that the plain function takes before those of the caller: `self`."""
        inner, before = transform_in(self.primal)
        return plain_function(self.primal)[1] if inner is None else (*inner.leading, *before)

    def plain_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> types.FunctionType:
        """The Python function to differentiate for these arguments; of another transform, what it emitted for
        them."""
        inner, before = transform_in(self.primal)
        if inner is not None:
            return inner.__srcgrad_call__((*before, *args), kwargs)
        return plain_function(self.primal, len(args), tuple(kwargs))[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __srcgrad_call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> types.FunctionType:
        """The emitted function for these arguments, for a caller that differentiates it again."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<srcgrad {type(self).__name__.lower()} of {getattr(self, '__qualname__', self.primal)!r}>"


def transform_in(fun: Any) -> tuple[Lazy | None, tuple[Any, ...]]:
    """The transform that `fun` is, or whose bound method it is, with the object; else None."""
    if isinstance(fun, Lazy):
        return fun, ()
    if isinstance(fun, types.MethodType) and isinstance(fun.__func__, Lazy):
        return fun.__func__, (fun.__self__,)
    return None, ()


def plain_function(
    fun: Any, count: int | None = None, keywords: tuple[str, ...] = ()
) -> tuple[types.FunctionType, tuple[Any, ...]]:
    """(the Python function to differentiate, arguments that it takes before the caller's). One with a rule is
    called with `count` arguments and with `keywords`."""
    ruled = table.find(fun) is not None
    if isinstance(fun, types.FunctionType) and not ruled:
        return fun, ()
    if isinstance(fun, types.MethodType) and not ruled:
        inner, before = plain_function(fun.__func__)
        return inner, (*before, fun.__self__)
    plain = getattr(fun, "__srcgrad_plain__", None)  # a function with derivatives of its own
    if isinstance(plain, types.FunctionType):
        return plain, ()
    if isinstance(fun, functools.partial):
        return dispatch._partial(fun), (fun,)
    njit = getattr(fun, "py_func", None)  # a Numba dispatcher holds the Python function
    if isinstance(njit, types.FunctionType):
        return njit, ()
    call = getattr(type(fun), "__call__", None)  # noqa: B004 (the function itself is wanted)
    if isinstance(call, types.FunctionType) and not isinstance(fun, type) and not ruled:
        return call, (fun,)
    if ruled:
        if count is None:
            try:
                count = sum(p.default is p.empty for p in inspect.signature(fun).parameters.values())
            except (ValueError, TypeError):
                count = getattr(fun, "nin", 1)
        return dispatch._wrapper(fun, count, keywords), ()
    name = getattr(fun, "__qualname__", repr(fun))
    raise SourceError(
        f"`{name}` has no Python source to differentiate and no derivative rule. Wrap it in a Python "
        "function that uses functions with rules."
    )


class Gradient(Lazy):
    """The gradient of a function with a real scalar result; see `srcgrad.grad`."""

    def __init__(self, fun: Any, argnums: Any, argnames: Any, has_aux: bool, with_value: bool) -> None:
        super().__init__(fun)
        self.argnums, self.argnames, self.has_aux, self.with_value = argnums, argnames, has_aux, with_value
        if not isinstance(argnums, int) and not (
            isinstance(argnums, (tuple, list)) and all(isinstance(a, int) for a in argnums) and argnums
        ):
            raise ArgumentError(f"argnums must be an int or a tuple of ints, not {argnums!r}")
        if argnames is not None and not isinstance(argnames, (str, tuple, list)):
            raise ArgumentError(f"argnames must be a str or a tuple of str, not {argnames!r}")

    # Which parameters ---------------------------------------------------------------------------------------

    @functools.cached_property
    def _parameters(self) -> inspect.Signature:
        inner, _ = transform_in(self.primal)
        if isinstance(inner, Gradient):
            return inner._parameters
        return inspect.signature(self.plain, follow_wrapped=False)

    def _wanted(
        self, leading: int, args: tuple[Any, ...], signature: inspect.Signature | None = None
    ) -> tuple[str, ...]:
        """The names of the differentiated parameters; an element of `*args` as "args:2"."""
        names: list[str] = []
        parameters = list((signature or self._parameters).parameters.values())
        called = parameters[leading:]
        positional = [p.name for p in called if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variadic = next((p.name for p in called if p.kind is p.VAR_POSITIONAL), None)
        every = [p.name for p in called if p.kind is not p.VAR_POSITIONAL]
        if self.argnames is not None:
            for n in [self.argnames] if isinstance(self.argnames, str) else self.argnames:
                if n not in every and not any(p.kind is p.VAR_KEYWORD for p in called):
                    raise ArgumentError(
                        f"argnames: {self._title} has no parameter `{n}`; it has {', '.join(every) or 'none'}"
                    )
                names.append(n)
            return tuple(names)
        count = max(len(positional), len(args)) if variadic else len(positional)
        for a in [self.argnums] if isinstance(self.argnums, int) else self.argnums:
            position = a + count if a < 0 else a
            if not 0 <= position < count:
                raise ArgumentError(
                    f"argnums: {self._title} takes {count} positional argument{'s' * (count != 1)}, so there "
                    f"is no argument {a}"
                )
            names.append(
                positional[position]
                if position < len(positional)
                else f"{variadic}:{position - len(positional)}"
            )
        return tuple(names)

    @property
    def _title(self) -> str:
        return getattr(self.primal, "__qualname__", None) or type(self.primal).__qualname__

    # Calls --------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            key = (*map(kind_of, args), *((k, kind_of(v)) for k, v in kwargs.items()))
            compiled = self._compiled.get(key)
        except TypeError:
            key, compiled = (id(self),), None
        if compiled is None or compiled.stale():
            compiled = self._compile(key, args, kwargs)
        before = self.leading
        try:
            return compiled.function(*before, *args, **kwargs)
        except Exception as error:
            from srcgrad.transforms.traceback import shown_in_user_code

            raise shown_in_user_code(error) from error.__cause__

    def _compile(self, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        with self._lock:
            known = self._compiled.get(key)
            if known is not None and not known.stale():
                return known
            from srcgrad.transforms import build

            if support.observers and _has_tensors((args, kwargs)):
                made = self._compiled[key] = self._for_tensors(args, kwargs)
                return made
            leading = len(self.leading) + self.is_method
            made = Compiled(*build.gradient(self, (*self.leading, *args), kwargs, leading))
            self._compiled[key] = made
            _with_forms.add(self)
            return made

    def _for_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        """A call on Tensors: one node of their graph, around the function for arrays."""
        from srcgrad import bridge

        before = len(self.leading)
        name = f"{getattr(self.primal, '__name__', 'function')}_grad"

        def on_tensors(*given: Any, **named: Any) -> Any:
            return bridge.on_tensors(self, given[before:], named, name)

        plain_args, plain_kwargs = bridge.raw((args, kwargs))
        key = (*map(kind_of, plain_args), *((k, kind_of(v)) for k, v in plain_kwargs.items()))
        return Compiled(on_tensors, self._compile(key, plain_args, plain_kwargs).source, [])

    # Looking ------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The emitted source for arguments of any kind, or of the kinds that the annotations tell."""
        return self._generic().source

    def source_for(self, *args: Any, **kwargs: Any) -> str:
        """The emitted source for arguments of the kinds of the given ones."""
        key = (*map(kind_of, args), *((k, kind_of(v)) for k, v in kwargs.items()))
        return self._compile(key, args, kwargs).source

    def save(self, path: Any, *args: Any, **kwargs: Any) -> None:
        """Write this derivative as a module that needs NumPy only; see `srcgrad.export`."""
        from srcgrad.standalone import export

        export(self, path, *args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        return self._generic().function

    def _generic(self) -> Compiled:
        with self._lock:
            known = self._compiled.get(("generic",))
            if known is None or known.stale():
                from srcgrad.transforms import build

                known = Compiled(*build.generic_gradient(self, len(self.leading) + self.is_method))
                self._compiled[("generic",)] = known
                _with_forms.add(self)
            return known

    # As an input of other transforms ------------------------------------------------------------------------

    def __srcgrad_call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> types.FunctionType:
        key = (*map(kind_of, args), *((k, kind_of(v)) for k, v in kwargs.items()))
        function: types.FunctionType = self._compile(key, args, kwargs).function
        return function

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        name = str(getattr(self, "__qualname__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:  # a decorated function: found again under its own name
            return name
        return (Gradient, (self.primal, self.argnums, self.argnames, self.has_aux, self.with_value))
