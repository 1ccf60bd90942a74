"""The bridge for compiled functions: one node of the graph for a call whose forward and backward are emitted
source."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd import modes
from srcgrad.runtime.autograd.graph import Node, Port, freed, target_of
from srcgrad.runtime.autograd.modes import enable_grad
from srcgrad.runtime.autograd.nodes import check_version, version_of
from srcgrad.runtime.autograd.record import announce, tracked
from srcgrad.runtime.tensor_base import Tensor, wrap


def mapped(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`function` of each leaf of nested tuples, lists and dicts (with the leaves of the others there)."""
    if isinstance(tree, dict):
        return type(tree)({k: mapped(function, v, *[o[k] for o in others]) for k, v in tree.items()})
    if isinstance(tree, tuple | list):
        parts = [mapped(function, v, *rest) for v, *rest in zip(tree, *others, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree, *others)


def leaves(tree: Any) -> list[Any]:
    """The leaves of nested tuples, lists and dicts, in order."""
    found: list[Any] = []
    mapped(found.append, tree)
    return found


def raw(tree: Any) -> Any:
    """Arrays in place of Tensors."""
    return mapped(lambda x: x._array if isinstance(x, Tensor) else x, tree)


class CompiledNode(Node):
    """A compiled function called on Tensors: forward and backward run the emitted source."""

    __slots__ = ("function", "inputs", "versions", "pullback", "again", "result", "count")
    function: Any
    inputs: tuple[Any, ...]
    versions: tuple[int, ...]
    pullback: Any
    again: Any
    result: Any
    """The value: a tree whose differentiable leaves are arrays (only their shapes and dtypes matter)."""
    count: int

    @property
    def _outputs(self) -> int:  # type: ignore[override]
        return self.count

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        if self.pullback is None:
            raise freed()
        tensors = [x for x in leaves(self.inputs) if isinstance(x, Tensor)]
        for x, version in zip(tensors, self.versions, strict=True):
            check_version(x, version)
        each = iter(g if self.count > 1 else [g])
        cotangent = mapped(lambda y: self._cotangent(y, each, graph), self.result)
        if not graph:
            got = self.pullback(cotangent)
        elif self.again is not None:
            got = self.again(cotangent, *self.inputs)
        else:
            with enable_grad():
                got = self.function(*self.inputs)[1](cotangent)
        got = got if isinstance(got, tuple | list) else (got,)
        found: list[Any] = []
        mapped(lambda x, c: found.append(_plain(c, x, graph)), self.inputs, tuple(got))
        return tuple(c for c, x in zip(found, leaves(self.inputs), strict=True) if isinstance(x, Tensor))

    def _cotangent(self, y: Any, each: Any, graph: bool) -> Any:
        if not _differentiable(y):
            return 0.0
        c = next(each)
        if c is None:
            return wrap(np.zeros_like(y)) if graph else np.zeros_like(y)
        return c

    def release(self) -> None:
        self.pullback = self.again = None
        self.inputs = self.versions = ()


def _plain(g: Any, like: Any, graph: bool) -> Any:
    if not isinstance(like, Tensor) or g is None:
        return None
    if isinstance(g, Tensor):
        return g if graph else g._array
    g = g if arrays.is_array(g) else like._array.dtype.type(g)
    return wrap(g) if graph else g


def _differentiable(y: Any) -> bool:
    return isinstance(y, float) or (arrays.is_array(y) and y.dtype.kind in "fc")


@functools.cache
def _compiled_kind(name: str) -> Any:
    title = "".join(p[:1].upper() + p[1:] for p in name.split("_") if p)
    return type(
        f"{title if title.isidentifier() else 'Compiled'}Backward0", (CompiledNode,), {"__slots__": ()}
    )


def apply_compiled(
    value_and_pullback: Callable[..., Any],
    *arguments: Any,
    name: str | None = None,
    again: Callable[..., Any] | None = None,
) -> Any:
    """Call a compiled function on Tensors, as one node `<Name>Backward0` of the graph.

    `value_and_pullback(*arguments)` gets arrays in place of Tensors (also in tuples, lists, dicts), and gives
    (value, pullback); `pullback(cotangent)` returns a tuple with one cotangent for each argument. The value
    may be an array or a nested tuple, list or dict of arrays. Derivatives of derivatives: with `again`, the
    pullback is `again(cotangent, *arguments)`, of Tensors and recorded; without, both are run again on the
    Tensors themselves.

    >>> import srcgrad as sg
    >>> def square(x):
    ...     return x * x, lambda g: (2 * x * g,)
    >>> x = sg.tensor(3.0, requires_grad=True)
    >>> y = apply_compiled(square, x)
    >>> y.backward()
    >>> y, x.grad
    (tensor(9., grad_fn=<SquareBackward0>), tensor(6.))
    """
    label = name or getattr(value_and_pullback, "__name__", "compiled")
    value, pullback = value_and_pullback(*raw(arguments))
    tensors = [x for x in leaves(arguments) if isinstance(x, Tensor)]
    results: list[Tensor] = []

    def result(v: Any) -> Any:
        if not (arrays.is_array(v) or isinstance(v, float)):
            return v
        t = wrap(v if arrays.is_array(v) else np.float64(v))
        if t._array.dtype.kind in "fc":
            results.append(t)
        return t

    out = mapped(result, value)
    if tracked(tensors) and results:
        node = object.__new__(_compiled_kind(label))
        node._link(tuple(target_of(x) for x in tensors))
        node.function, node.pullback, node.again = value_and_pullback, pullback, again
        node.inputs, node.versions = arguments, tuple(map(version_of, tensors))
        node.result, node.count = value, len(results)
        for i, r in enumerate(results):
            r._history = Port(node, i) if len(results) > 1 else node
        if modes.watched:
            announce(node)
    return out
