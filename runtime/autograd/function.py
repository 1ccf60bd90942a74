"""Operations that a user defines: `Function`, with its context."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import support
from srcgrad.runtime.autograd import modes
from srcgrad.runtime.autograd.graph import Node, Port, SavedOutput, edge, freed, modified, target_of
from srcgrad.runtime.autograd.modes import no_grad, state
from srcgrad.runtime.autograd.nodes import Packed, check_version, stand_in, version_of
from srcgrad.runtime.autograd.record import announce
from srcgrad.runtime.tensor_base import Tensor, shell, wrap


class FunctionCtx(Node):
    """The context of a `Function`, and at once its node in the graph."""

    _owner: Any
    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True
    _to_save: tuple[Any, ...] = ()
    _saved: Any = ()
    _dirty: tuple[Tensor, ...] = ()
    _constant: tuple[Tensor, ...] = ()
    _count = 1
    _arguments: tuple[Any, ...] = ()
    _like: list[Any]

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`: their versions are checked there."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """These inputs are changed in place by `forward`, and returned by it."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These outputs carry no derivative."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether unused outputs' gradients are zeros (True) or None."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise freed()
        return tuple(self._unpack(s) for s in self._saved)

    saved_variables = saved_tensors

    def _unpack(self, saved: Any) -> Any:
        if saved is None:
            return None
        if type(saved) is Packed:
            return saved.unpack(saved.value)
        if type(saved) is SavedOutput:
            if saved.counter[0] != saved.version:
                raise modified(saved.array, self, saved.counter[0], saved.version)
            t = wrap(saved.array)
            t._counter = saved.counter
            t._history = Port(self, saved.number) if self._count > 1 else self
            return t
        tensor, version = saved
        check_version(tensor, version)
        return tensor

    def _keep(self, outputs: list[Any]) -> None:
        saved: list[Any] = []
        for t in self._to_save:
            if t is None:
                saved.append(None)
                continue
            position = next((i for i, o in enumerate(outputs) if o is t), None)
            if position is not None and t._history is not None and edge(t._history)[0] is self:
                saved.append(SavedOutput(t, position))
            else:
                saved.append((t, version_of(t)))
        self._saved, self._to_save = tuple(saved), ()

    @property
    def _outputs(self) -> int:  # type: ignore[override]
        return self._count

    def release(self) -> None:
        if self._saved:
            self._saved = None

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        if self._saved is None:
            raise freed()
        slots = g if isinstance(g, list) else [g]
        given: list[Any] = []
        for i, x in enumerate(slots):
            if x is None:
                given.append(wrap(np.zeros_like(self._like[i])) if self.materialize_grads else None)
            else:
                given.append(x if graph else wrap(x))
        got = self._owner.backward(self, *given)
        got = got if isinstance(got, tuple | list) else (got,)
        return self._checked(list(got), graph)

    def _checked(self, got: list[Any], graph: bool) -> tuple[Any, ...]:
        expected = len(self._arguments)
        while len(got) > expected and got[-1] is None:
            got.pop()
        if len(got) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, "
                f"got {len(got)})"
            )
        out: list[Any] = []
        for i, (x, like) in enumerate(zip(got, self._arguments, strict=True)):
            if like is None:
                if x is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than None at position "
                        f"{i + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            if x is None:
                out.append(None)
                continue
            if not isinstance(x, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(x).__name__})")
            if x._array.shape != like.shape:
                x = self._fitted(x, like, i)
            out.append(x if graph else x._array)
        return tuple(out)

    def _fitted(self, x: Tensor, like: Any, i: int) -> Tensor:
        try:
            fits = np.broadcast_shapes(x._array.shape, like.shape) == x._array.shape
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {i} - got "
                f"{list(x._array.shape)} but expected "
                f"shape compatible with {list(like.shape)}"
            )
        return support.unbroadcast(x, like)


@functools.cache
def _context_class(owner: type) -> Any:
    return type(
        owner.__name__ + "Backward", (FunctionCtx,), {"_owner": owner, "__module__": owner.__module__}
    )


class Function:
    """An operation with a derivative of its own: subclasses define static `forward` and `backward`.

    `forward(ctx, *args)` computes, `backward(ctx, *grads)` returns one gradient for each argument of
    `forward`. With a static `setup_context(ctx, inputs, output)`, `forward` takes no `ctx`. Call it as
    `MyFunction.apply(*args)`.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            "autograd function "
            "with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """What the function computes, `forward(ctx, *args)`, or without `ctx` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
        """Save on `ctx` what `backward` needs, if `forward` takes no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the inputs of `forward`, one each (None for none), from those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use "
            "it with backward mode AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Compute, and record as one node."""
        from srcgrad.runtime.tensor_inplace import bump

        kind: Any = cls
        ctx = object.__new__(_context_class(kind))
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        recorded = state.recording and any(ctx.needs_input_grad)
        targets = tuple(target_of(a) for a in args if isinstance(a, Tensor))
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **keywords)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **keywords)
        several = isinstance(output, tuple | list)
        outputs = list(output) if several else [output]
        for t in ctx._dirty:
            if not any(o is t for o in outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. "
                    "The inputs that are "
                    "modified inplace must all be outputs of the Function."
                )
            if recorded and t.requires_grad and t.is_leaf:
                raise RuntimeError(
                    "a leaf Variable that requires grad is being used in an in-place operation."
                )
            bump(t)
        if not recorded:
            ctx._saved = ()
            return output
        ctx._link(targets)
        ctx._arguments = tuple(stand_in(a._array) if isinstance(a, Tensor) else None for a in args)
        ctx._count = max(1, len(outputs))
        ctx._like = [stand_in(o._array) if isinstance(o, Tensor) else None for o in outputs]
        made = [_adopted(ctx, o, i, args) for i, o in enumerate(outputs)]
        ctx._keep(made)
        ctx._dirty = ctx._constant = ()  # a result that holds its own node would be a cycle
        if modes.watched:
            announce(ctx)
        return tuple(made) if several else made[0]


def _adopted(ctx: FunctionCtx, output: Any, number: int, args: tuple[Any, ...]) -> Any:
    """An output of `forward`, made a result of the node."""
    if not isinstance(output, Tensor) or output._array.dtype.kind not in "fc":
        return output
    if any(output is t for t in ctx._constant):
        return output
    history: Any = ctx if ctx._count == 1 else Port(ctx, number)
    if any(output is t for t in ctx._dirty):
        from srcgrad.runtime.tensor_inplace import rebase

        if output._base is not None:
            rebase(output, ctx)
        else:
            output._history = history
            if output._more is not None:
                output._more.generation += 1
        return output
    made = f"function:{ctx._owner.__name__}"
    if any(output is a for a in args):
        from srcgrad.runtime.tensor_views import alias, attach

        again = wrap(shell(output)._array)
        attach(again, output, alias, (), made)
        output = again
    elif (
        output._more is not None
        and output._more.base is not None
        and any(
            output._more.base is a or (isinstance(a, Tensor) and a._base is output._more.base) for a in args
        )
    ):
        output._more.made = made
    elif output._more is not None:
        output._more = None
    output._history = history
    if output._more is not None and output._more.base is not None:
        output._more.made = made
    return output


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: this `backward` can't itself be differentiated; trying to raises an error."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            got = backward(ctx, *grads)
        if not state.recording or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return got
        several = isinstance(got, tuple)
        out = []
        for t in got if several else (got,):
            if isinstance(t, Tensor):
                t = wrap(t._array)
                node = object.__new__(DelayedError)
                node._link(tuple(target_of(g) for g in grads if isinstance(g, Tensor)))
                t._history = node
            out.append(t)
        return tuple(out) if several else out[0]

    return wrapper


class DelayedError(Node):
    """Raises when a derivative of a `once_differentiable` backward is asked for."""

    __slots__ = ()

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
