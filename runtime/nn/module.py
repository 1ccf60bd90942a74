"""Module: the base of all layers. It knows its parameters, buffers and children by name."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from srcgrad.runtime.arrays import BACKENDS
from srcgrad.runtime.autograd.graph import Handle
from srcgrad.runtime.autograd.modes import no_grad
from srcgrad.runtime.nn.parameter import Buffer, Parameter
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_guards import without_array
from srcgrad.runtime.tensor_types import as_dtype, device

IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


def _all_keys_matched(self: Any) -> str:
    if not self.missing_keys and not self.unexpected_keys:
        return "<All keys matched successfully>"
    return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


IncompatibleKeys.__repr__ = _all_keys_matched  # type: ignore[method-assign]


def indented(text: str, spaces: int = 2) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


class Module:
    """A part of a network. Assign Parameters and other Modules in `__init__`, compute in `forward`."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self, *args: Any, **keywords: Any) -> None:
        set_ = object.__setattr__
        set_(self, "training", True)
        set_(self, "_parameters", {})
        set_(self, "_buffers", {})
        set_(self, "_modules", {})
        set_(self, "_not_persistent", set())
        set_(self, "_forward_hooks", OrderedDict())
        set_(self, "_forward_pre_hooks", OrderedDict())
        set_(self, "_backward_hooks", OrderedDict())
        set_(self, "_backward_pre_hooks", OrderedDict())

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """What the module computes: call the module itself, so that its hooks run; to be overridden."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if not (
            self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        ):
            try:
                return self.forward(*args, **keywords)
            except AttributeError as error:
                if error.name != "_array" or isinstance(error.obj, Module):
                    raise
                raise without_array(type(self).__name__, error) from error
        return self._call_hooked(args, keywords)

    def _call_hooked(self, args: Any, keywords: dict[str, Any]) -> Any:
        from srcgrad.runtime.nn.hooks import watch_backward

        for hook, with_keywords in list(self._forward_pre_hooks.values()):
            got = hook(self, args, keywords) if with_keywords else hook(self, args)
            if got is not None:
                if with_keywords:
                    args, keywords = got
                else:
                    args = got if isinstance(got, tuple) else (got,)
        if self._backward_hooks or self._backward_pre_hooks:
            args, finish = watch_backward(self, args)
        else:
            finish = None
        result = self.forward(*args, **keywords)
        for hook, with_keywords in list(self._forward_hooks.values()):
            got = hook(self, args, keywords, result) if with_keywords else hook(self, args, result)
            if got is not None:
                result = got
        return result if finish is None else finish(result)

    # -- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        parameters = self.__dict__.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, self._buffers, self._modules)
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_of(value)}' as parameter '{name}' (srcgrad.nn.Parameter or "
                    "None expected)"
                )
            parameters[name] = None
            return
        modules = self.__dict__.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, self._buffers, self._parameters)
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_of(value)}' as child module '{name}' (srcgrad.nn.Module or "
                    "None expected)"
                )
            modules[name] = None
            return
        buffers = self.__dict__.get("_buffers")
        if buffers is not None and (name in buffers or isinstance(value, Buffer)):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_type_of(value)}' as buffer '{name}' (srcgrad.Tensor or None expected)"
                )
            if name not in buffers:
                self.register_buffer(name, value, getattr(value, "persistent", True))
            else:
                buffers[name] = value
            return
        object.__setattr__(self, name, value)

    def _forget(self, name: str, *places: dict[str, Any]) -> None:
        self.__dict__.pop(name, None)
        for place in places:
            place.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for place in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(place)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def _check_name(self, name: str, what: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter by name (None keeps the name for none)."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter")
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_of(param)}' object to parameter '{name}' (srcgrad.nn.Parameter or "
                "None required)"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is state but not learned; it is saved unless `persistent` is False."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_of(tensor)}' object to buffer '{name}' (srcgrad.Tensor or None "
                "required)"
            )
        self._buffers[name] = tensor
        (self._not_persistent.discard if persistent else self._not_persistent.add)(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a child by name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_type_of(module)} is not a Module subclass")
        self._check_name(name, "module")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        self._modules[name] = module

    register_module = add_module

    def get_submodule(self, target: str) -> Any:
        """The module at a path such as `"layers.0"`; an `AttributeError` if there is none."""
        found: Any = self
        for part in target.split(".") if target else []:
            if not hasattr(found, part):
                raise AttributeError(f"{type(found).__name__} has no attribute `{part}`")
            found = getattr(found, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found

    def get_parameter(self, target: str) -> Any:
        """The parameter at a path such as `"layers.0.weight"`; an `AttributeError` if there is none."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """The buffer at a path such as `"norm.running_mean"`; an `AttributeError` if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    # -- walking

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and all below it, each once, with the paths to them.

        >>> [name for name, _ in sg.nn.Sequential(sg.nn.ReLU(), sg.nn.Tanh()).named_modules()]
        ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(
                    memo, prefix + ("." if prefix else "") + name, remove_duplicate
                )

    def modules(self) -> Iterator[Any]:
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly below this one, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules directly below this one, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, place: str, prefix: str, recurse: bool, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in getattr(module, place).items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield path + ("." if path else "") + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All parameters with their names: own ones first, then the children's; each once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """All parameters, or with `recurse=False` this module's own; each once.

        >>> [p.shape for p in sg.nn.Linear(3, 2).parameters()]
        [srcgrad.Size([2, 3]), srcgrad.Size([2])]
        """
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All buffers with their names, or with `recurse=False` this module's own; each once."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """All buffers, or with `recurse=False` this module's own; each once."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    # -- state

    def get_extra_state(self) -> Any:
        """What `state_dict` holds beside parameters and buffers, under `_extra_state`; to be overridden."""
        return None

    def set_extra_state(self, state: Any) -> None:
        """What `load_state_dict` does with what `get_extra_state` gave; to be overridden with it."""
        raise NotImplementedError(f"{type(self).__name__} has no `set_extra_state`")

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by name, detached, on the same memory."""
        destination = OrderedDict() if destination is None else destination
        for name, p in self._parameters.items():
            if p is not None:
                destination[prefix + name] = p if keep_vars else p.detach()
        for name, b in self._buffers.items():
            if b is not None and name not in self._not_persistent:
                destination[prefix + name] = b if keep_vars else b.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        return destination

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copy the tensors of a `state_dict` into this module's, in place."""
        if not hasattr(state_dict, "items"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        own = self.state_dict(keep_vars=True)
        extra = {k: self.get_submodule(k.rpartition(".")[0]) for k in own if k.endswith("_extra_state")}
        for key, module in extra.items():
            if type(module).set_extra_state is Module.set_extra_state:
                del own[key]
        missing = [k for k in own if k not in state_dict]
        unexpected = [k for k in state_dict if k not in own]
        errors = []
        if strict and missing:
            errors.append("Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
        if strict and unexpected:
            errors.append(
                "Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". "
            )
        for key, value in own.items():
            if key not in state_dict:
                continue
            given = state_dict[key]
            if key in extra:
                extra[key].set_extra_state(given)
                continue
            if not isinstance(given, Tensor):
                errors.append(
                    f'While copying the parameter named "{key}", expected a Tensor from checkpoint but '
                    f"received {type(given)}"
                )
                continue
            if tuple(given.shape) != tuple(value.shape):
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                    "the shape in current "
                    f"model is {value.shape}."
                )
                continue
            with no_grad():
                if assign:
                    value._array = given._array
                else:
                    value.copy_(given)
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return IncompatibleKeys(missing, unexpected)

    def train(self, mode: bool = True) -> Any:
        """Training mode (True) or evaluation mode, for this module and all children."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """`train(False)`: the module and all below it compute as in use, not as in training."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with `set_to_none=False` fill them with zeros."""
        for p in self.parameters():
            if p._grad is not None:
                if set_to_none:
                    p._grad = None
                else:
                    p._grad = p._grad.detach()
                    p._grad.zero_()

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Let operations on all parameters be recorded (or not). Returns the module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """Call `fn` on every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Any:
        for module in self.children():
            module._apply(fn)
        with no_grad():
            for p in self._parameters.values():
                if p is not None:
                    p._array = fn(p)._array
                    if p._grad is not None:
                        p._grad = fn(p._grad).detach()
            for name, b in self._buffers.items():
                if b is not None:
                    self._buffers[name] = fn(b)
        return self

    def to(self, *args: Any, **keywords: Any) -> Any:
        """Parameters and buffers in another floating point dtype or on another device, in place."""
        dtype = keywords.pop("dtype", None)
        rest: list[Any] = []
        for a in args:
            if isinstance(a, Tensor):
                dtype = a.dtype
                rest.append(a.device)
            elif isinstance(a, device) or (isinstance(a, str) and a.partition(":")[0] in BACKENDS):
                rest.append(a)
            elif not isinstance(a, bool):
                dtype = as_dtype(a)
        if dtype is not None and as_dtype(dtype).kind not in "fc":
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t: Tensor) -> Tensor:
            out = t.to(*rest, **keywords)
            return out.to(dtype) if dtype is not None and out._array.dtype.kind in "fc" else out

        return self._apply(convert)

    def _to_floating(self, name: str) -> Any:
        return self._apply(lambda t: t.to(as_dtype(name)) if t._array.dtype.kind == "f" else t)

    def double(self) -> Any:
        """Floating-point parameters and buffers as float64, in place. Returns the module."""
        return self._to_floating("float64")

    def float(self) -> Any:
        """Floating-point parameters and buffers as float32, in place. Returns the module."""
        return self._to_floating("float32")

    def half(self) -> Any:
        """Floating-point parameters and buffers as float16, in place. Returns the module."""
        return self._to_floating("float16")

    def type(self, dst_type: Any) -> Any:
        """All parameters and buffers in a dtype, in place. Returns the module."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Any:
        """All parameters and buffers in the computer's own memory, in place. Returns the module."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """All parameters and buffers on the CUDA device, in place. Returns the module."""
        return self._apply(lambda t: t.cuda(device))

    # -- hooks

    def _add_hook(self, place: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> Handle:
        handle = Handle(place)
        place[handle.id] = hook
        if prepend:
            place.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """`hook(module, args, output)` after `forward`; may return another output."""
        return self._add_hook(self._forward_hooks, (hook, with_kwargs), prepend)

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """`hook(module, args)` before `forward`; may return other arguments."""
        return self._add_hook(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """`hook(module, grad_input, grad_output)` when the gradients of the inputs are known; may replace
        them."""
        return self._add_hook(self._backward_hooks, hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """`hook(module, grad_output)` before the module's backward; may return other gradients."""
        return self._add_hook(self._backward_pre_hooks, hook, prepend)

    # -- text

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses; to be overridden."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if not children:
            return (
                f"{self._get_name()}({extra})"
                if len(lines) < 2
                else f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"
            )
        return f"{self._get_name()}(\n  " + "\n  ".join([*lines, *children]) + "\n)"

    def __getstate__(self) -> Any:
        return dict(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def share_memory(self) -> Any:
        """Nothing: there is no sharing between processes. Returns the module."""
        return self


def _type_of(value: Any) -> str:
    if type(value) is Tensor:
        return str(value.type())
    if isinstance(value, np.ndarray):
        return "numpy.ndarray"
    module = type(value).__module__
    return type(value).__name__ if module == "builtins" else f"{module}.{type(value).__name__}"
