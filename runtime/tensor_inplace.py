"""Writing in place: what is allowed, how it is recorded, and what it does to views and versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.graph import LEAF, Node, numbers, target_of
from srcgrad.runtime.autograd.modes import enable_grad, no_grad, paused, state
from srcgrad.runtime.autograd.nodes import RuleUser
from srcgrad.runtime.autograd.record import tracked
from srcgrad.runtime.tensor import type_name
from srcgrad.runtime.tensor_base import NO_COUNTER, More, Tensor, install, own_memory, shell, wrap
from srcgrad.runtime.tensor_guards import must_be_tensor
from srcgrad.runtime.tensor_types import can_cast, fitting


def bump(t: Tensor) -> None:
    """Count a change of the memory."""
    counter = t._counter
    if counter is None:
        t._counter = [1]
    elif counter is not NO_COUNTER:
        counter[0] += 1


def store(t: Tensor, value: Any, checked: bool = True) -> None:
    """Write the array `value` into the tensor's memory, and count it."""
    a = t._array
    if checked and np.shape(value) != a.shape:
        raise RuntimeError(
            f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(np.shape(value))}"
        )
    if checked and not can_cast(value.dtype, a.dtype):
        raise RuntimeError(
            f"result type {type_name(value.dtype)} can't be cast to the desired output type "
            f"{type_name(a.dtype)}"
        )
    if isinstance(a, np.generic):
        t._array = np.asarray(value).astype(a.dtype).reshape(())[()]
    else:
        if type(a) is np.ndarray and not a.flags.writeable and arrays.overlaps_itself(a):
            a.flags.writeable = True
        a[...] = value
    bump(t)


def check_writable(t: Tensor, recorded: bool, overlapping: bool) -> None:
    """PyTorch's bans on writing in place."""
    if t._counter is NO_COUNTER and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
            "to get a normal "
            "tensor before doing inplace update. See https://github.com/pytorch/rfcs/pull/17 for more "
            "details."
        )
    _check_history(t, recorded)
    if not overlapping and arrays.overlaps_itself(t._array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please "
            "clone() the tensor before performing the operation."
        )


def _check_history(t: Tensor, recorded: bool) -> None:
    """No change of a tracked leaf, or of a view that may not be changed."""
    more = t._more
    base = None if more is None else more.base
    if paused and not state.recording:
        return
    if base is None:
        if recorded and t._history is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return
    assert more is not None
    if not recorded and base._fresh_history() is None:
        return
    _check_view(more)
    if base._history is LEAF:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def _check_view(more: More) -> None:
    """Views that may not be changed in place say so themselves, whatever their base is."""
    if more.made is not None:
        if more.made == "no_grad":
            raise RuntimeError(
                "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
                "Given that this use "
                "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
                "both the view and the "
                "inplace either both inside the no_grad block (if you don't want the inplace to be "
                "tracked) or both outside (if "
                "you want the inplace to be tracked)."
            )
        kind, _, name = more.made.partition(":")
        if kind == "multiple":
            raise RuntimeError(
                f"Output 0 of {name} is a view and is being modified inplace. This view is the "
                "output of a function that "
                "returns multiple views. Such functions do not allow the output views to be modified "
                "inplace. You should replace "
                "the inplace operation by an out-of-place one."
            )
        if kind == "numpy":
            raise RuntimeError(
                f"the result of np.{name} is a view and is being modified inplace: modify a copy of it, or "
                "use the Tensor's own methods to make the view"
            )
        raise RuntimeError(
            f"Output 0 of {name} is a view and is being modified inplace. This view was created inside a "
            "custom Function (or "
            "because an input was returned as-is) and the autograd logic to handle view+inplace would "
            "override the custom "
            "backward associated with the custom Function, leading to incorrect gradients. This behavior "
            "is forbidden. You can "
            "fix this by cloning the output of the custom Function."
        )


class CopySlices(Node):
    """A change of a view, seen from its base: what was overwritten gets its gradient through the operation
    that wrote."""

    __slots__ = ("node", "steps")
    node: Node
    steps: tuple[tuple[Any, tuple[Any, ...]], ...]

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        if graph:
            whole = g.clone()
            part = self._part(whole)
            got = self.node.apply(part.clone(), True)
            if got[0] is None:
                part.zero_()
            else:
                part.copy_(got[0])
            return (whole, *got[1:])
        with no_grad():
            whole = wrap(arrays.copied(g))
            part = self._part(whole)._array
            got = self.node.apply(part.copy(), False)
            part[...] = 0 if got[0] is None else got[0]
        return (whole._array, *got[1:])

    def _part(self, whole: Tensor) -> Tensor:
        part = whole
        for function, args in self.steps:
            part = function(part, *args)
        return part

    def release(self) -> None:
        self.node.release()


def rebase(t: Tensor, node: Any) -> None:
    """Let `t`, just changed in place by `node`, have its new history; for a view, its base has."""
    more = t._more
    base = None if more is None else more.base
    if base is None:
        old = t._history
        t._history = node
        if more is not None:
            more.generation += 1
            if more.retains:
                t._retain_anew(old)
        return
    assert more is not None
    step: Any = object.__new__(CopySlices)
    step._targets = (target_of(base), *(node._targets[1:] if node is not None else ()))
    step._number, step._extras = next(numbers), None
    step.node, step.steps = node if node is not None else Zero.make(), more.steps
    old, base._history = base._history, step
    above = base._more_of()
    above.generation += 1
    if above.retains:
        base._retain_anew(old)
    t._fresh_history()


class Zero(Node):
    """The history of a value that no longer depends on anything."""

    __slots__ = ()

    @classmethod
    def make(cls, target: Any = None) -> Node:
        node = object.__new__(cls)
        node._link((target,))
        return node

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        return (wrap(np.zeros_like(g._array)) if graph else np.zeros_like(g),)


ZeroBackward0 = type("ZeroBackward0", (Zero,), {"__slots__": ()})
FillBackward2 = type("FillBackward2", (Zero,), {"__slots__": ()})
FillBackward3 = type("FillBackward3", (Zero,), {"__slots__": ()})


def in_place(
    t: Tensor, function: Callable[..., Tensor], *args: Any, overlapping: bool = False, **keywords: Any
) -> Tensor:
    """Write `function(t, *args)` into `t`, recorded as that operation."""
    recorded = tracked((t, *args))
    check_writable(t, recorded, overlapping)
    if not recorded:
        with no_grad():
            store(t, function(t, *args, **keywords)._array)
        return t
    source = shell(t)
    again = tuple(shell(t) if a is t else a for a in args)
    with enable_grad():
        result = function(source, *again, **keywords)
    if result is source:
        return t
    node = result._history
    if isinstance(node, RuleUser) and any(s is source for s in node.saved):
        before = shell(source)
        before._array, before._counter = source._array.copy(), None
        node.saved = tuple(before if s is source else s for s in node.saved)
        node.versions = (
            None
            if node.versions is None
            else tuple(0 if s is before else v for s, v in zip(node.saved, node.versions, strict=True))
        )
    store(t, result._array)
    if node is None:
        node = ZeroBackward0.make(target_of(source))  # type: ignore[attr-defined]
    if isinstance(node, RuleUser) and node.out is not None and type(node.out) is not tuple:
        node.out, node.counter = own_memory(t), t._counter
        node.version = t._counter[0] if t._counter is not None else 0
    if isinstance(node, Node) and node._targets and node._targets[0] is source:
        node._targets = (target_of(t), *node._targets[1:])
    rebase(t, node)
    return t


def method(name: str, function: Callable[..., Tensor]) -> None:
    """Add the in-place form `name_` of `function` to Tensor."""

    def changed(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        return in_place(self, function, *args, **keywords)

    changed.__name__ = name + "_"
    changed.__doc__ = f"`{name}`, written into the tensor itself."
    setattr(Tensor, name + "_", changed)


class CopyBackwards(Node):
    """Overwriting: the old values get nothing, the new ones everything."""

    __slots__ = ("like",)
    like: Any

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        from srcgrad.runtime import support

        old, new = self._targets
        return (
            (wrap(np.zeros_like(g._array)) if graph else np.zeros_like(g)) if old is not None else None,
            support.unbroadcast(g, self.like) if new is not None else None,
        )


def carried(array: Any, kind: str) -> Any:
    """`array` on another kind of device: `copy_` is one of the ways to ask for that."""
    host = np.asarray(arrays.to_host(array))
    return host if kind == "cpu" else arrays.BACKENDS[kind]().asarray(host)


def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Copy the values of `other` (broadcast, and converted to this dtype)."""
    from srcgrad.runtime.autograd.nodes import stand_in

    if not isinstance(other, Tensor):
        raise must_be_tensor("copy_", "other", 1, other)
    recorded = tracked((self, other))
    check_writable(self, recorded, False)
    history = shell(self)._history if recorded else None
    value = other._array
    if type(value) is not type(self._array) and arrays.device_type(value) != arrays.device_type(self._array):
        value = carried(value, arrays.device_type(self._array))
    try:
        value = np.broadcast_to(value, self._array.shape)
    except ValueError:
        raise _cannot_copy(self, other) from None
    if not isinstance(self._array, np.generic) and np.may_share_memory(value, self._array):
        value = value.copy()
    if recorded:
        node: Any = object.__new__(CopyBackwards)
        old = self if history is LEAF else history
        node._link((old, target_of(other)))
        node.like = stand_in(other._array)
        _write_any(self, value)
        rebase(self, node)
    else:
        _write_any(self, value)
    return self


def _cannot_copy(t: Tensor, other: Tensor) -> RuntimeError:
    from srcgrad.runtime.tensor import shape_mismatch

    try:
        np.broadcast_shapes(t._array.shape, other._array.shape)
    except ValueError:
        return shape_mismatch((t._array.shape, other._array.shape))
    return RuntimeError(
        f"output with shape {list(t._array.shape)} doesn't match the broadcast shape "
        f"{list(np.broadcast_shapes(t._array.shape, other._array.shape))}"
    )


def _write_any(t: Tensor, value: Any) -> None:
    kind, mine = value.dtype.kind, t._array.dtype
    if kind == "c" and mine.kind != "c":
        value = value.real
    store(t, value.astype(mine) if value.dtype != mine else value, checked=False)


def fill_(self: Tensor, value: Any, kind: Any = FillBackward2) -> Tensor:
    """Set every element to `value`."""
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value._array.ndim} dimensions."
            )
        if value.requires_grad:
            return copy_(self, value)
        value, kind = value.item(), FillBackward3
    number = fitting(value, self._array.dtype)
    recorded = tracked((self,))
    check_writable(self, recorded, True)
    history = shell(self)._history if recorded else None
    store(
        self,
        number if isinstance(self._array, np.generic) else np.asarray(number),
        checked=False,
    )
    if recorded:
        rebase(self, kind.make(history))
    return self


def zero_(self: Tensor) -> Tensor:
    """Set every element to 0."""
    recorded = tracked((self,))
    check_writable(self, recorded, True)
    history = shell(self)._history if recorded else None
    store(self, np.zeros((), self._array.dtype), checked=False)
    if recorded:
        rebase(self, ZeroBackward0.make(history))  # type: ignore[attr-defined]
    return self


for _f in (copy_, fill_, zero_):
    setattr(Tensor, _f.__name__, _f)
install(zeros_=zero_)


def set_(self: Tensor, source: Tensor) -> Tensor:
    """Take over the memory of `source`."""
    self._array = own_memory(source)
    bump(self)
    return self


install(set_=set_)


def overwritten(self: Tensor, values: Any, name: str) -> Tensor:
    """Write `values`, which depend on nothing, recorded as a node `name` whose gradient is zero."""
    recorded = tracked((self,))
    check_writable(self, recorded, False)
    history = shell(self)._history if recorded else None
    store(self, values, checked=False)
    if recorded:
        kind: Any = type(name, (Zero,), {"__slots__": ()})
        rebase(self, kind.make(self if history is LEAF else history))
    return self
