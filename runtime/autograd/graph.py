"""The graph: nodes, the edges between them, and the values that they save.

A tensor's history is one object: `None` (not tracked), `LEAF` (a leaf that requires grad), a `Node` (its
first result), or a `Port` (another result of a node with several). A node's `_targets` say where the
gradient of each input goes: a node, a port, a leaf tensor itself, or None. `AccumulateGrad` nodes exist only
while somebody looks at them.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from srcgrad.runtime.autograd.modes import state

LEAF: Any = type("Leaf", (), {"__repr__": lambda self: "LEAF", "__slots__": ()})()
"""The history of a leaf that requires grad."""

numbers = itertools.count()
"""Creation numbers: a node's number is higher than that of every node it leads to."""


class Extras:
    """What few nodes have: hooks, metadata, retained gradients, the place in the user's program that made
    them."""

    hooks: OrderedDict[int, Any] | None = None
    prehooks: OrderedDict[int, Any] | None = None
    tensor_hooks: list[tuple[int, int, Any]] | None = None
    retains: dict[int, Any] | None = None
    metadata: dict[Any, Any] | None = None
    traceback: list[str] | None = None
    parent: Any = None


class Handle:
    """Returned by every `register_..._hook`: `remove()` takes the hook away (also as a context manager)."""

    _ids = itertools.count()

    def __init__(self, hooks: Any):
        self.id = next(Handle._ids)
        self._hooks: Callable[[], Any] = hooks if callable(hooks) else lambda: hooks

    def remove(self) -> None:
        hooks = self._hooks()
        if isinstance(hooks, list):
            hooks[:] = [h for h in hooks if h[1] != self.id]
        elif hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class Port:
    """Result `number` of a node with several results."""

    __slots__ = ("node", "number")

    def __init__(self, node: Node, number: int):
        self.node = node
        self.number = number


class Node:
    """A recorded operation. Subclasses implement `apply` and clear what they saved in `release`."""

    __slots__ = ("_targets", "_number", "_extras", "__weakref__")
    _outputs = 1
    _targets: tuple[Any, ...]
    _number: int
    _extras: Extras | None

    def _link(self, targets: tuple[Any, ...]) -> None:
        self._targets = targets
        self._number = next(numbers)
        self._extras = None

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        """The gradients of the inputs, one for each target, given that of the result (a list, for several
        results).

        Without `graph` these are arrays; with it they are Tensors, and everything done with them is recorded.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Drop what was saved."""

    # -- what a user sees

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple(edge(t) for t in self._targets)

    def name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at 0x{id(self):x}>"

    def extras(self) -> Extras:
        if self._extras is None:
            self._extras = Extras()
        return self._extras

    @property
    def metadata(self) -> dict[Any, Any]:
        more = self.extras()
        if more.metadata is None:
            more.metadata = {}
        return more.metadata

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """`hook(grad_inputs, grad_outputs)` runs after the node and may replace the gradients of its
        inputs."""
        more = self.extras()
        if more.hooks is None:
            more.hooks = OrderedDict()
        handle = Handle(more.hooks)
        more.hooks[handle.id] = hook
        return handle

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """`hook(grad_outputs)` runs before the node and may replace the gradients of its results."""
        more = self.extras()
        if more.prehooks is None:
            more.prehooks = OrderedDict()
        handle = Handle(more.prehooks)
        more.prehooks[handle.id] = hook
        return handle

    def _sequence_nr(self) -> int:
        return self._number

    def __call__(self, *grads: Any) -> Any:
        g = list(grads) if self._outputs > 1 else grads[0]
        out = self.apply(g, True)
        return out[0] if len(out) == 1 else out


def edge(target: Any) -> tuple[Any, int]:
    """A target as PyTorch shows it: (node, number of the node's result)."""
    if target is None:
        return None, 0
    if isinstance(target, Node):
        return target, 0
    if isinstance(target, Port):
        return target.node, target.number
    return accumulator(target), 0


class AccumulateGrad(Node):
    """The end of a path: adds the gradient to `variable.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any):
        self._link(())
        self.variable = variable
        self._extras = variable._more_of().leaf_extras

    def extras(self) -> Extras:
        more = self.variable._more_of()
        if more.leaf_extras is None:
            more.leaf_extras = Extras()
        self._extras = more.leaf_extras
        return self._extras

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        from srcgrad.runtime.autograd.engine import accumulate

        accumulate(self.variable, g._array if not graph else g, graph)
        return ()

    def __call__(self, *grads: Any) -> Any:
        self.apply(grads[0], state.recording)
        return ()


def accumulator(leaf: Any) -> AccumulateGrad:
    """The `AccumulateGrad` of a leaf: the same object as long as anybody holds it."""
    more = leaf._more_of()
    found = more.accumulator() if more.accumulator is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        more.accumulator = weakref.ref(found)
    return found


def target_of(tensor: Any) -> Any:
    """Where the gradient of `tensor` goes."""
    more = tensor._more
    history = tensor._history if more is None or more.base is None else tensor._fresh_history()
    return tensor if history is LEAF else history


FREED: Any = type("Freed", (), {"__slots__": ()})()
"""Takes the place of what a node saved, once the node has been used."""


def freed() -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need "
        "to access "
        "saved tensors after calling backward."
    )


def modified(array: Any, history: Any, version: int, expected: int) -> RuntimeError:
    from srcgrad.runtime.tensor_types import TYPE_NAMES

    node, number = edge(history) if history is not LEAF else (None, 0)
    origin = ""
    if node is not None:
        name = node.name().removesuffix("Backward0")
        origin = f", which is output {number} of {name},"
    kind = TYPE_NAMES.get(array.dtype.name, "Tensor")
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[srcgrad.{kind} {list(array.shape)}]{origin} is at version {version}; expected version "
        f"{expected} instead. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "srcgrad.autograd.set_detect_anomaly(True)."
    )


class SavedOutput:
    """A saved result of a node: its array and version, not the Tensor, so that no cycle arises."""

    __slots__ = ("array", "counter", "version", "number")

    def __init__(self, tensor: Any, number: int = 0):
        if tensor._counter is None:
            tensor._counter = [0]
        self.array = tensor._array
        self.counter = tensor._counter
        self.version = tensor._counter[0]
        self.number = number


def __getattr__(name: str) -> Any:
    """The rest of PyTorch's `autograd.graph`, loaded when it is used."""
    if name in (
        "saved_tensors_hooks", "save_on_cpu", "register_multi_grad_hook", "increment_version", "GradientEdge",
        "get_gradient_edge", "allow_mutation_on_saved_tensors",
    ):  # fmt: skip
        from srcgrad.runtime.autograd import hooks

        return getattr(hooks, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
