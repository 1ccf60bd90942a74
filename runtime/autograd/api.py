"""`backward` and `grad`: what starts the engine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.runtime.autograd import engine
from srcgrad.runtime.autograd.graph import LEAF, Port, edge, target_of
from srcgrad.runtime.tensor_base import Tensor, install, wrap


class _Warned:
    create_graph = False


def _sequence(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple | list) and not isinstance(x, GradientEdge) else [x]


def _seeds(outputs: Any, grads: Any, count: int) -> list[Any]:
    if grads is None:
        return [None] * count
    if isinstance(grads, tuple | list) and not isinstance(outputs, tuple | list) and len(grads) != 1:
        if not any(g is None or isinstance(g, Tensor) for g in grads):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grads[0]).__name__}")
    return _sequence(grads)


def _seed(output: Tensor, g: Any, graph: bool, index: int) -> Any:
    a = output._array
    if g is None:
        if a.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if a.dtype.kind not in "f":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
            )
        made = type(a)(1) if isinstance(a, np.generic) else np.ones_like(a)
        return wrap(made) if graph else made
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._array.shape != a.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {g.shape} and output[{index}] has a "
            "shape of "
            f"{output.shape}."
        )
    if g._array.dtype != a.dtype:
        g = g.to(output.dtype)
    return g if graph else g._array


def _no_graph(i: int) -> RuntimeError:
    return RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")


def _roots(outputs: Sequence[Tensor], grads: Sequence[Any], graph: bool) -> list[tuple[Any, Any]]:
    if len(outputs) != len(grads):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    roots = []
    for i, (output, g) in enumerate(zip(outputs, grads, strict=True)):
        if output._fresh_history() is None:
            raise _no_graph(i)
        roots.append((target_of(output), _seed(output, g, graph, i)))
    return roots


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of the leaves that `tensors` depend on, and add them to their `.grad`.

    `grad_tensors` are the gradients with respect to the `tensors` themselves; one element needs none.
    """
    if inputs is not None and isinstance(inputs, list | tuple) and not inputs:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _sequence(tensors)
    grads = _seeds(tensors, grad_tensors, len(outputs))
    roots = _roots(outputs, grads, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph and not _Warned.create_graph:
        _Warned.create_graph = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter "
            "and its gradient "
            "which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
            "avoid this. If you "
            "have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break "
            "the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    if inputs is None:
        engine.run(roots, create_graph, retain)
        return
    wanted = _sequence(inputs)
    captures, positions = _captures(wanted)
    found = engine.run(roots, create_graph, retain, captures, accumulates=False)
    for t, position in zip(wanted, positions, strict=True):
        g = found.get(position)
        retains = isinstance(t, Tensor) and t.retains_grad
        if g is not None and not retains:
            _accumulate_into(t, g, create_graph)
        if not retains and isinstance(t, Tensor) and not t.is_leaf:
            t.retain_grad()


def _backward_of_one(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradients of the leaves that led here, and add them to their `.grad`."""
    if create_graph or inputs is not None or isinstance(gradient, tuple | list):
        return backward(self, gradient, retain_graph, create_graph, inputs=inputs)
    if (target := target_of(self)) is None:
        raise _no_graph(0)
    engine.run([(target, _seed(self, gradient, False, 0))], False, bool(retain_graph))


_backward_of_one.__name__ = "backward"
_backward_of_one.__qualname__ = "Tensor.backward"
install(backward=_backward_of_one)


def _accumulate_into(t: Tensor, g: Any, graph: bool) -> None:
    engine.accumulate(t, g, graph)
    if t._more is not None and t._more.post_hooks:
        for hook in list(t._more.post_hooks.values()):
            hook(t)


def _captures(inputs: Sequence[Any]) -> tuple[dict[tuple[Any, int], int], list[int]]:
    captures: dict[tuple[Any, int], int] = {}
    positions = []
    for i, x in enumerate(inputs):
        if isinstance(x, GradientEdge):
            key = (x.target, x.output_nr)
        elif not isinstance(x, Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
        else:
            history = x._fresh_history()
            if history is None:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            if history is LEAF:
                key = (x, 0)
            else:
                node, number = edge(history)
                key = (node, number)
        positions.append(captures.setdefault(key, i))
    return captures, positions


class GradientEdge(tuple[Any, int]):
    """A place in the graph: (node, number of its result)."""

    target: Any

    def __new__(cls, node: Any, output_nr: int, target: Any = None) -> GradientEdge:
        made = tuple.__new__(cls, (node, output_nr))
        made.target = node if target is None else target
        return made

    @property
    def node(self) -> Any:
        return self[0]

    @property
    def output_nr(self) -> int:
        return self[1]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of `tensor` arrives: stays valid when the tensor is gone or changed in place."""
    history = tensor._fresh_history()
    if history is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    node, number = edge(target_of(tensor))
    return GradientEdge(node, number, tensor if history is LEAF else node)


def _owned(g: Any) -> Any:
    """Memory that only the caller sees."""
    if isinstance(g, np.ndarray) and (g.base is not None or not g.flags.writeable):
        return g.copy()
    return g


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; no `.grad` is touched."""
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    unused_ok = materialize_grads if allow_unused is None else allow_unused
    wanted, results = _sequence(inputs), _sequence(outputs)
    seeds = _seeds(outputs, grad_outputs, len(results))
    if is_grads_batched:
        return _batched(results, wanted, seeds, create_graph, retain_graph, unused_ok)
    retain = create_graph if retain_graph is None else retain_graph
    edges = [r for r in results if isinstance(r, GradientEdge)]
    if edges:
        roots = [
            (r.target if r.output_nr == 0 else Port(r.target, r.output_nr), s if create_graph else s._array)
            if isinstance(r, GradientEdge)
            else _roots([r], [s], create_graph)[0]
            for r, s in zip(results, seeds, strict=True)
        ]
    else:
        roots = _roots(results, seeds, create_graph)
    captures, positions = _captures(wanted)
    found = engine.run(roots, create_graph, retain, captures, accumulates=False)
    out: list[Any] = []
    for i, (x, position) in enumerate(zip(wanted, positions, strict=True)):
        g = found.get(position)
        if g is None:
            if not unused_ok:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                    "Set allow_unused=True if "
                    "this is the desired behavior."
                )
            out.append(wrap(np.zeros_like(x._array)) if materialize_grads else None)
        else:
            out.append(_apart(g) if create_graph else wrap(_owned(g)))
    return tuple(out)


def _apart(g: Tensor) -> Tensor:
    """A gradient in memory of its own where a rule made it as a view."""
    more = g._more
    return g.clone() if more is not None and (more.made or "").startswith("numpy:") else g


def _batched(
    results: list[Any],
    wanted: list[Any],
    seeds: list[Any],
    create_graph: bool,
    retain: bool | None,
    unused_ok: bool,
) -> tuple[Any, ...]:
    n = len(seeds[0])
    rows = []
    for i in range(n):
        last = i == n - 1 and not create_graph and not retain
        rows.append(
            grad(
                results,
                wanted,
                [s[i] if s is not None else None for s in seeds],
                not last,
                create_graph,
                unused_ok,
            )
        )
    from srcgrad.runtime.tensor_join import stack

    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))
