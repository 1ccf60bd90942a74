"""The engine: one sweep that counts how many gradients each node will receive, then the nodes in the order
in which they were created, latest first. Iterative, so that a chain of a million nodes is no deeper than one
of ten.

Without `graph` the gradients are arrays, and what the nodes saved is dropped as soon as each has run.
"""

from __future__ import annotations

import heapq
import sys
import warnings
from typing import Any

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.autograd.graph import Extras, Node, Port
from srcgrad.runtime.autograd.modes import set_state, state
from srcgrad.runtime.tensor_base import Tensor, wrap


def run(
    roots: list[tuple[Any, Any]],
    graph: bool,
    retain: bool,
    captures: dict[tuple[Any, int], int] | None = None,
    accumulates: bool = True,
) -> dict[int, Any]:
    """Send gradients from `roots` (targets and their gradients: arrays, or Tensors with `graph`) to the
    leaves.

    With `captures` ((node or leaf, number) -> position), only nodes that lead to one of these run; what
    arrives there is returned, by position, and also accumulated if `accumulates`.
    """
    counts, nodes = _sweep(roots)
    needed = None if captures is None else _needed(counts, nodes, captures)
    found: dict[int, Any] = {}
    grads: dict[Any, Any] = {}
    ready: list[tuple[int, Any]] = []
    starts: list[Any] = []
    for target, g in roots:
        node = _receive(grads, target, g)
        if node not in starts:
            starts.append(node)
    leaves = []
    for node in starts:
        if counts[node] == 0:
            if isinstance(node, Tensor):
                leaves.append(node)
            elif needed is None or node in needed:
                heapq.heappush(ready, (-node._number, node))
    before, in_rules = (state.recording, state.inference), state.in_rules
    outer, state.run = state.run, counts
    set_state(graph, False)
    state.in_rules = graph
    token = arrays.hush()
    try:
        for leaf in leaves:
            _finish_leaf(leaf, grads.pop(leaf), graph, captures, found, accumulates)
        _drain(ready, counts, grads, graph, retain, captures, needed, found, accumulates)
    finally:
        arrays.unhush(token)
        set_state(*before)
        state.in_rules = in_rules
        state.run = outer
    return found


def _sweep(roots: list[tuple[Any, Any]]) -> tuple[dict[Any, int], list[Any]]:
    """For each node and leaf that the roots lead to: how many edges of the graph arrive there."""
    counts: dict[Any, int] = {}
    stack: list[Any] = []
    for target, _ in roots:
        node = target.node if type(target) is Port else target
        if node not in counts:
            counts[node] = 0
            stack.append(node)
    nodes = []
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        nodes.append(node)
        for target in node._targets:
            if target is None:
                continue
            if type(target) is Port:
                target = target.node
            count = counts.get(target)
            if count is None:
                counts[target] = 1
                push(target)
            else:
                counts[target] = count + 1
    return counts, nodes


def _needed(counts: dict[Any, int], nodes: list[Any], captures: dict[tuple[Any, int], int]) -> set[Any]:
    wanted = {node for node, _ in captures}
    needed: set[Any] = set(wanted)
    for node in sorted((n for n in nodes if isinstance(n, Node)), key=lambda n: n._number):
        for target in node._targets:
            if (target.node if type(target) is Port else target) in needed:
                needed.add(node)
                break
    return needed


def _receive(grads: dict[Any, Any], target: Any, g: Any) -> Any:
    """Add `g` to what has arrived at `target`; returns its node (or leaf)."""
    if type(target) is Port:
        node, number = target.node, target.number
    else:
        old = grads.get(target)
        grads[target] = g if old is None else old + g
        return target
    slots = grads.get(node)
    if slots is None:
        slots = grads[node] = [None] * node._outputs
    if g is not None:
        slots[number] = g if slots[number] is None else slots[number] + g
    return node


def _drain(
    ready: list[tuple[int, Any]],
    counts: dict[Any, int],
    grads: dict[Any, Any],
    graph: bool,
    retain: bool,
    captures: Any,
    needed: set[Any] | None,
    found: dict[int, Any],
    accumulates: bool,
) -> None:
    push, pop = heapq.heappush, heapq.heappop
    check_nan = state.anomaly and state.check_nan
    following = None  # the latest of the nodes that became ready, kept off the heap: all there is in a chain
    while ready or following is not None:
        if following is None or (ready and -ready[0][0] > following._number):
            node = pop(ready)[1]
        else:
            node, following = following, None
        g = grads.pop(node, None)
        extras = node._extras
        runs = captures is None or any(
            (t.node if type(t) is Port else t) in needed  # type: ignore[operator]
            for t in node._targets
            if t is not None
        )
        if extras is not None and g is not None:
            g = before_node(node, extras, g, graph, runs)
        if captures is not None and g is not None:
            _capture(node, g, captures, found)
            if not runs:
                continue
        if g is None:
            out: Any = (None,) * len(node._targets)
        else:
            out = node.apply(g, graph) if extras is None else _apply_watched(node, extras, g, graph)
            if check_nan:
                _check_nan(node, out, graph)
            if extras is not None and extras.hooks:
                out = after_node(extras, out[: len(node._targets)], g, graph)
            if not retain:
                node.release()
        del g
        targets = node._targets
        if needed is not None:
            targets = tuple(
                t if t is not None and (t.node if type(t) is Port else t) in needed else None for t in targets
            )
        gi: Any
        for target, gi in zip(targets, out, strict=False):
            if target is not None and gi is not None:
                if type(target) is Port:
                    _receive(grads, target, gi)
                else:
                    old = grads.get(target)
                    grads[target] = gi if old is None else old + gi
        out = gi = old = None
        for target in targets:
            if target is None:
                continue
            if type(target) is Port:
                target = target.node
            count = counts[target] - 1
            if count:
                counts[target] = count
            elif isinstance(target, Node):
                if following is None:
                    following = target
                elif target._number > following._number:
                    push(ready, (-following._number, following))
                    following = target
                else:
                    push(ready, (-target._number, target))
            else:
                arrived = grads.pop(target, None)
                if arrived is None:
                    continue
                if captures is None and target._more is None:
                    accumulate(target, arrived, graph)
                else:
                    _finish_leaf(target, arrived, graph, captures, found, accumulates)
                arrived = None


def _as_tensors(g: Any, graph: bool) -> Any:
    if isinstance(g, list | tuple):
        return tuple(x if graph or x is None else wrap(x) for x in g)
    return (g if graph else wrap(g),)


def _from_hook(value: Any, graph: bool) -> Any:
    return value if graph or value is None else value._array


def run_tensor_hook(hook: Any, g: Any, graph: bool) -> Any:
    """The gradient after `hook`: what it returned, or `g` itself."""
    given = g if graph else wrap(g)
    got = hook(given)
    if got is None:
        return g
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(got, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}'")
    if got._array.shape != given._array.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    if got._array.dtype != given._array.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {given.type()} got {got.type()})"
        )
    return _from_hook(got, graph)


def before_node(node: Any, extras: Extras, g: Any, graph: bool, runs: bool = True) -> Any:
    """Tensor hooks of the node's results, `retain_grad`, and, if it `runs`, the node's own prehooks."""
    slots = g if isinstance(g, list) else [g]
    if extras.tensor_hooks:
        for number, _, hook in list(extras.tensor_hooks):
            if slots[number] is not None:
                slots[number] = run_tensor_hook(hook, slots[number], graph)
    if extras.retains:
        for number, reference in extras.retains.items():
            tensor = reference()
            if tensor is not None and slots[number] is not None:
                _retain(tensor, slots[number], graph)
    if extras.prehooks and runs:
        for hook in list(extras.prehooks.values()):
            got = hook(_as_tensors(slots, graph))
            if got is not None:
                got = got if isinstance(got, tuple) else (got,)
                if len(got) != len(slots):
                    raise RuntimeError(
                        f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number of "
                        "values "
                        f"(got {len(got)}, but expected {len(slots)})"
                    )
                slots = [_from_hook(x, graph) for x in got]
    return slots if isinstance(g, list) else slots[0]


def after_node(extras: Extras, out: Any, g: Any, graph: bool) -> Any:
    for hook in list(extras.hooks.values()):  # type: ignore[union-attr]
        got = hook(_as_tensors(out, graph), _as_tensors(g, graph))
        if got is not None:
            got = got if isinstance(got, tuple) else (got,)
            if len(got) != len(out):
                raise RuntimeError(
                    f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number of values "
                    f"(got {len(got)}, but expected {len(out)})"
                )
            out = tuple(_from_hook(x, graph) for x in got)
    return out


def _apply_watched(node: Any, extras: Extras, g: Any, graph: bool) -> Any:
    try:
        return node.apply(g, graph)
    except Exception:
        if state.anomaly:
            _show_traceback(node, extras)
        raise


def _show_traceback(node: Any, extras: Extras | None) -> None:
    if extras is None or extras.traceback is None:
        text = "No forward pass information available. Enable detect anomaly during forward pass for more."
    else:
        text = "Traceback of forward call that caused the error:\n" + "".join(extras.traceback)
    warnings.warn(f"Error detected in {node.name()}. {text}", UserWarning, stacklevel=6)


def _check_nan(node: Any, out: Any, graph: bool) -> None:
    for i, g in enumerate(out):
        a = g._array if graph and g is not None else g
        if a is not None and a.dtype.kind in "fc" and bool(np.any(np.isnan(a))):
            _show_traceback(node, node._extras)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _capture(node: Any, g: Any, captures: dict[tuple[Any, int], int], found: dict[int, Any]) -> None:
    for number in range(node._outputs):
        position = captures.get((node, number))
        if position is not None:
            value = g[number] if isinstance(g, list) else g
            if value is not None:
                found[position] = value


def _finish_leaf(
    leaf: Tensor, g: Any, graph: bool, captures: Any, found: dict[int, Any], accumulates: bool
) -> None:
    more = leaf._more
    if more is not None and more.hooks:
        for hook in list(more.hooks.values()):
            g = run_tensor_hook(hook, g, graph)
    if more is not None and more.leaf_extras is not None and more.leaf_extras.prehooks:
        g = before_node(None, more.leaf_extras, g, graph)
    if captures is not None:
        position = captures.get((leaf, 0))
        if position is None:
            return
        found[position] = _fitting(leaf, g, graph)
        if not accumulates:
            return
    accumulate(leaf, g, graph)
    if more is not None and more.leaf_extras is not None and more.leaf_extras.hooks:
        after_node(more.leaf_extras, (), g, graph)
    if more is not None and more.post_hooks:
        recording = state.recording
        set_state(graph, state.inference)
        for hook in list(more.post_hooks.values()):
            hook(leaf)
        set_state(recording, state.inference)


def _fitting(leaf: Tensor, g: Any, graph: bool) -> Any:
    """`g` in the leaf's dtype (and shape, if a rule left it broadcast)."""
    a = leaf._array
    if g.dtype != a.dtype or g.shape != a.shape:
        return support.unbroadcast(g, a)
    return g


def accumulate(leaf: Tensor, g: Any, graph: bool) -> None:
    """Add `g` to `leaf.grad`: the first gradient becomes it, in memory that nobody else sees; later ones
    are added in place."""
    a = leaf._array
    if leaf._history is None:
        return  # `requires_grad_(False)` since the forward pass
    if g.dtype != a.dtype or g.shape != a.shape:
        g = _fitting(leaf, g, graph)
    grad = leaf._grad
    if graph:
        leaf._grad = g.clone() if grad is None else grad + g
        return
    if grad is None:
        if type(g) is np.ndarray:
            base = g.base
            # 3: the variable of the caller, the parameter `g`, and the argument of getrefcount
            if sys.getrefcount(g) > 3 or not g.flags.writeable:
                g = g.copy()
            elif base is not None and (
                type(base) is not np.ndarray or sys.getrefcount(base) > 3 or g.size != base.size
            ):
                g = g.copy()
        elif not isinstance(g, np.generic):
            g = g.copy()
        made = object.__new__(Tensor)
        made._array = g
        made._history = made._counter = made._grad = made._more = None
        leaf._grad = made
        return
    if isinstance(grad._array, np.generic):
        grad._array = grad._array + g
    else:
        grad._array += g
    if grad._counter is None:
        grad._counter = [0]
    grad._counter[0] += 1


def _retain(tensor: Tensor, g: Any, graph: bool) -> None:
    if graph:
        tensor._grad = g if tensor._grad is None else tensor._grad + g
    else:
        g = support.unbroadcast(g, tensor._array)
        tensor._grad = (
            wrap(np.copy(g) if not isinstance(g, np.generic) else g)
            if tensor._grad is None
            else wrap(tensor._grad._array + g)
        )
