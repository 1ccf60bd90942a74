"""Modules that hold modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from srcgrad.runtime.nn.module import Module, indented
from srcgrad.runtime.nn.parameter import Parameter
from srcgrad.runtime.tensor_base import Tensor


def _at(items: Any, index: Any, n: int) -> Any:
    i = operator.index(index)
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of range")
    return next(islice(items, i % n, None))


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *args: Any):
        super().__init__()
        items = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], OrderedDict)
            else ((str(i), m) for i, m in enumerate(args))
        )
        for name, module in items:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return _at(self._modules.values(), index, len(self))

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[_at(self._modules.keys(), index, len(self))] = module

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [names[index]]:
            del self._modules[name]
        object.__setattr__(self, "_modules", {str(i): m for i, m in enumerate(self._modules.values())})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Sequential:
        """Add a module at the end. Returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Sequential:
        """Add modules at the end. Returns the container."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, index: int) -> Module:
        """Remove module number `index` and return it; an `IndexError` if there is none."""
        module: Module = self[index]
        del self[index]
        return module

    def __add__(self, other: Iterable[Module]) -> Sequential:
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*[m for _ in range(times) for m in self])

    __rmul__ = __mul__

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before number `index`. Returns the container."""
        items = list(self._modules.values())
        items.insert(index, module)
        object.__setattr__(self, "_modules", {str(i): m for i, m in enumerate(items)})
        return self


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        self.extend(modules or [])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        n = len(self)
        i = operator.index(index)
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of range")
        return self._modules[str(i % n)]

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[str(operator.index(index) % len(self))] = module

    def __delitem__(self, index: Any) -> None:
        items = list(self._modules.values())
        del items[index]
        object.__setattr__(self, "_modules", {str(i): m for i, m in enumerate(items)})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end. Returns the list."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end. Returns the list."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module before number `index`."""
        items = list(self._modules.values())
        items.insert(index, module)
        object.__setattr__(self, "_modules", {str(i): m for i, m in enumerate(items)})

    def pop(self, index: int) -> Module:
        """Remove module number `index` and return it; an `IndexError` if there is none."""
        module: Module = self[index]
        del self[index]
        return module

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Equal neighbours are shown once, with their number."""
        texts = [repr(m) for m in self]
        if not texts:
            return f"{self._get_name()}()"
        groups: list[tuple[int, int, str]] = []
        for i, text in enumerate(texts):
            if groups and groups[-1][2] == text:
                groups[-1] = (groups[-1][0], i, text)
            else:
                groups.append((i, i, text))
        lines = [
            indented(
                f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            )
            for first, last, text in groups
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def update(self, modules: Any) -> None:
        """Add or replace modules: a dict, or pairs of names and modules."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        """The names, in order."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of names and modules, in order."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules, in order."""
        return self._modules.values()

    def pop(self, key: str) -> Any:
        """Remove a module and return it; a `KeyError` if there is none of that name."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        self.extend(values or [])

    def append(self, value: Any) -> ParameterList:
        """Add a parameter (of a plain tensor one is made) at the end. Returns the list."""
        wrapped = (
            Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
        )
        setattr(self, str(self._size), wrapped)
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end. Returns the list."""
        for value in values:
            self.append(value)
        return self

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(self._size)[index]])
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range")
        return getattr(self, str(index % self._size))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(
            self, str(index % self._size), Parameter(value) if not isinstance(value, Parameter) else value
        )

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def extra_repr(self) -> str:
        lines = []
        for i, p in enumerate(self):
            size = "x".join(map(str, p.shape))
            lines.append(f"  ({i}): Parameter containing: [{p.dtype} of size {size}]")
        return "\n".join(lines)


class ParameterDict(Module):
    """Parameters by name."""

    def __init__(self, parameters: Any = None):
        super().__init__()
        for name, value in (parameters or {}).items():
            self[name] = value

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = value if isinstance(value, Parameter) else Parameter(value)

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def keys(self) -> Any:
        """The names, in order."""
        return self._parameters.keys()

    def items(self) -> Any:
        """Pairs of names and parameters, in order."""
        return self._parameters.items()

    def values(self) -> Any:
        """The parameters, in order."""
        return self._parameters.values()
