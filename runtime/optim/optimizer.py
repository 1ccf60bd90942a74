"""Optimizer: parameter groups, state, and what all update rules share."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.runtime.autograd.graph import Handle
from srcgrad.runtime.autograd.modes import enable_grad, no_grad
from srcgrad.runtime.tensor_base import Tensor, own_memory, wrap
from srcgrad.runtime.tensor_inplace import bump


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()


def check(name: str, value: Any, ok: bool, index: int | None = None) -> None:
    """PyTorch's ValueErrors for bad settings."""
    if not ok:
        where = f" parameter at index {index}" if index is not None else ""
        raise ValueError(f"Invalid {name}{where}{':' if not where else ':'} {value}")


class Optimizer:
    """Base of the optimizers: subclasses implement `update(group, parameters)`."""

    def __init__(self, params: Any, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but "
                f"got {params.type()}"
            )
        self.defaults = defaults
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._step_count = 0
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        if isinstance(given[0], tuple):
            given = [{"params": [p for _, p in given], "param_names": [name for name, _ in given]}]
        elif not isinstance(given[0], dict):
            given = [{"params": given}]
        for group in given:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will "
                "change between runs. Please use a list instead."
            )
        else:
            params = list(params)
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}"
                )
            if not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        group = {"params": params}
        if "param_names" in param_group:
            group["param_names"] = param_group["param_names"]
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            group[name] = param_group.get(name, default)
        group.update({k: v for k, v in param_group.items() if k not in group})
        seen = {id(p) for g in self.param_groups for p in g["params"]}
        if len({id(p) for p in params}) != len(params):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters", UserWarning, stacklevel=3
            )
        if any(id(p) in seen for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients (or set them to zero)."""
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    if set_to_none:
                        p._grad = None
                    else:
                        p._grad = p._grad.detach()
                        p._grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update; `closure`, if given, computes the loss and its gradients first, and its result is
        returned."""
        for hook in list(self._pre_hooks.values()):
            hook(self, (closure,) if closure is not None else (), {})
        self._step_count += 1
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                followed = [p for p in group["params"] if p._grad is not None]
                if followed:
                    self.update(group, followed)
        for hook in list(self._post_hooks.values()):
            hook(self, (closure,) if closure is not None else (), {})
        return loss

    def update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        """One step for the parameters of a group that have gradients; to be overridden."""
        raise NotImplementedError

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """`hook(optimizer, args, kwargs)` before each step, until `remove()` of the handle it returns."""
        handle = Handle(self._pre_hooks)
        self._pre_hooks[handle.id] = hook
        return handle

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """`hook(optimizer, args, kwargs)` after each step, until `remove()` of the handle it returns."""
        handle = Handle(self._post_hooks)
        self._post_hooks[handle.id] = hook
        return handle

    def state_dict(self) -> dict[str, Any]:
        """State and settings, with parameters named by their position."""
        positions: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                positions.setdefault(id(p), len(positions))
            groups.append(
                {
                    **{k: v for k, v in group.items() if k != "params"},
                    "params": [positions[id(p)] for p in group["params"]],
                }
            )
        state = {positions[id(p)] if isinstance(p, Tensor) else p: dict(s) for p, s in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        groups = [dict(g) for g in state_dict["param_groups"]]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        names: dict[Any, Tensor] = {}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            names.update(zip(theirs["params"], mine["params"], strict=True))
            mine.update({k: copy.deepcopy(v) for k, v in theirs.items() if k != "params"})
        state: Any = defaultdict(dict)
        for key, values in state_dict["state"].items():
            p = names.get(key)
            if p is None:
                state[key] = copy.deepcopy(values)
            else:
                state[p] = {
                    k: v.detach().clone().to(p.dtype)
                    if isinstance(v, Tensor) and k != "step" and v._array.dtype.kind == "f"
                    else copy.deepcopy(v)
                    for k, v in values.items()
                }
        self.state = state

    def __repr__(self) -> str:
        out = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            out += f"\nParameter Group {i}\n"
            out += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return out + ")"

    def __getstate__(self) -> Any:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_pre_hooks", OrderedDict())
        self.__dict__.setdefault("_post_hooks", OrderedDict())
        self.__dict__.setdefault("_step_count", 0)


def gradient(p: Tensor, group: dict[str, Any], decay: bool = True) -> Any:
    """The gradient's array: negated to maximize, with weight decay added."""
    grad: Any = p._grad
    g = grad._array
    if group.get("maximize"):
        g = -g
    if decay and group.get("weight_decay"):
        g = g + p._array.dtype.type(number(group["weight_decay"])) * p._array
    return g


def number(x: Any) -> float:
    """The value of a setting that may be a tensor of one number."""
    return float(x.item()) if isinstance(x, Tensor) else x


def assign(p: Tensor, value: Any) -> None:
    """Write new values into the parameter's memory."""
    if isinstance(p._array, np.generic):
        p._array = p._array.dtype.type(value)
    else:
        p._array[...] = value
    bump(p)


def subtract(p: Tensor, change: Any) -> None:
    """`p -= change`, in place."""
    if isinstance(p._array, np.generic):
        p._array = p._array.dtype.type(p._array - change)
    else:
        np.subtract(p._array, change, out=p._array, casting="same_kind")
    bump(p)


def kept(state: dict[str, Any], name: str, like: Any) -> Any:
    """The array of a tensor in `state`, made of zeros at first."""
    t = state.get(name)
    if t is None:
        t = state[name] = wrap(np.zeros_like(like))
        own_memory(t)
    return own_memory(t)


def counted(state: dict[str, Any]) -> float:
    """The number of steps, as PyTorch keeps it: a float32 tensor that is counted up."""
    t = state.get("step")
    if t is None:
        t = state["step"] = wrap(np.zeros((), np.float32))
    array = own_memory(t)
    array += 1
    return float(array)
