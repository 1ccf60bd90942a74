"""Hooks on groups of tensors and on saved tensors: the rest of PyTorch's `autograd.graph`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from srcgrad.runtime.autograd.api import GradientEdge, get_gradient_edge
from srcgrad.runtime.autograd.function import FunctionCtx
from srcgrad.runtime.autograd.graph import FREED, Port, SavedOutput, target_of
from srcgrad.runtime.autograd.modes import state, watch
from srcgrad.runtime.autograd.nodes import Packed, RuleUser
from srcgrad.runtime.tensor_base import Tensor, wrap


class saved_tensors_hooks:
    """Context manager: tensors saved for backward go through `pack`, and back through `unpack` when they
    are used."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        self._before = state.watchers
        others = tuple(w for w in self._before if getattr(w, "__name__", "") != "_pack_saved")

        def _pack_saved(node: Any) -> None:
            _repack(node, self.pack_hook, self.unpack_hook)

        watch((*others, _pack_saved))

    def __exit__(self, *exc: Any) -> None:
        watch(self._before)


def _repack(node: Any, pack: Any, unpack: Any) -> None:
    if isinstance(node, RuleUser) and node.recipe is not FREED:
        if hasattr(node, "plain"):
            node.plain = False
        node.saved = tuple(
            Packed(pack(s), unpack)
            if isinstance(s, Tensor)
            else [Packed(pack(x), unpack) if isinstance(x, Tensor) else x for x in s]
            if type(s) is list
            else s
            for s in node.saved
        )
        if node.out is not None and not isinstance(node.out, tuple):
            node.out = Packed(pack(wrap(node.out)), unpack)
    elif isinstance(node, FunctionCtx):
        node._saved = tuple(
            s if s is None else Packed(pack(wrap(s.array) if type(s) is SavedOutput else s[0]), unpack)
            for s in node._saved
        )


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class MultiHandle:
    def __init__(self, handles: Sequence[Any]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiHandle:
    """`fn(gradients)` when the gradients of all `tensors` are known; with mode "any", `fn(gradient)` at the
    first."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    targets = [target_of(t) for t in tensors]
    nodes = [t.node if isinstance(t, Port) else t for t in targets]
    current: list[Any] = [None, 0, []]
    """The backward pass under way, how many gradients it still brings, and those that have arrived."""

    def at(i: int) -> Callable[[Tensor], None]:
        def hook(g: Tensor) -> None:
            first = current[0] is not state.run
            if first:
                current[:] = state.run, sum(n in state.run for n in nodes), [None] * len(nodes)
            current[1] -= 1
            current[2][i] = g
            if first if mode == "any" else current[1] == 0:
                fn(g if mode == "any" else current[2])
            if current[1] == 0:
                current[:] = None, 0, []

        return hook

    return MultiHandle([t.register_hook(at(i)) for i, t in enumerate(tensors)])


def increment_version(tensor: Any) -> None:
    """Count a change of memory that was made behind the tensor's back."""
    from srcgrad.runtime.tensor_inplace import bump

    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        bump(t)


class allow_mutation_on_saved_tensors:
    """Context manager: saved tensors are copied, so that later changes in place do no harm."""

    def __enter__(self) -> None:
        self._hooks = saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)
        self._hooks.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._hooks.__exit__(*exc)


__all__ = ["GradientEdge", "get_gradient_edge"]
