"""Copies, pickles and files: what of a tensor survives, and loading that never runs code.

A file is a zip archive: `data.json` describes the containers, and each memory that tensors share is one
`.npy` entry. `load` builds tensors, numbers, strings, lists, tuples and dicts, nothing else, unless
`weights_only=False`.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import copy
import io
import json
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.autograd.graph import LEAF
from srcgrad.runtime.tensor import FUNCTIONS
from srcgrad.runtime.tensor_base import Tensor, install, own_memory, wrap


def _root(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _described(t: Tensor) -> tuple[Any, int, tuple[int, ...], tuple[int, ...]]:
    """(memory, offset, shape, strides), so that shared memory is kept."""
    a = np.asarray(arrays.to_host(own_memory(t)))
    memory = _root(a)
    if memory.dtype != a.dtype or not memory.flags.c_contiguous:
        a = np.ascontiguousarray(a)
        memory = a
    offset = a.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return memory, offset, a.shape, a.strides


def _rebuilt(
    cls: type,
    memory: Any,
    offset: int,
    shape: Any,
    strides: Any,
    requires_grad: bool,
    device: str,
    state: Any,
) -> Tensor:
    a = np.ndarray(tuple(shape), memory.dtype, memory, offset, tuple(strides))
    t = wrap(a if device == "cpu" else arrays.BACKENDS[device.partition(":")[0]]().asarray(a))
    if cls is not Tensor:
        t = t.as_subclass(cls)
    if requires_grad:
        t._history = LEAF
    if state:
        for key, value in state.items():
            setattr(t, key, value)
    return t


def _reduce(self: Tensor, protocol: int = 2) -> Any:
    memory, offset, shape, strides = _described(self)
    state = getattr(self, "__dict__", None)
    return _rebuilt, (type(self), memory, offset, shape, strides, self.requires_grad, str(self.device), state)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm "
            "usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if isinstance(self._array, np.ndarray):
        memory = _root(self._array)
        if memory.dtype == self._array.dtype:
            again = copy.deepcopy(memory, memo)
            memo[id(memory)] = again
            offset = self._array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
            same_layout = memory.strides == again.strides
            a = (
                np.ndarray(self._array.shape, again.dtype, again, offset, self._array.strides)
                if same_layout and memory.flags.c_contiguous
                else self._array.copy()
            )
        else:
            a = self._array.copy()
    else:
        a = self._array.copy()
    t = wrap(a)
    if type(self) is not Tensor:
        t = t.as_subclass(type(self))
    t._history = self._history
    memo[id(self)] = t
    if self._grad is not None:
        t._grad = copy.deepcopy(self._grad, memo)
    for key, value in getattr(self, "__dict__", {}).items():
        setattr(t, key, copy.deepcopy(value, memo))
    return t


def _copy(self: Tensor) -> Tensor:
    own_memory(self)
    if self._counter is None:
        self._counter = [0]
    t = wrap(self._array)
    if type(self) is not Tensor:
        t = t.as_subclass(type(self))
    t._history = LEAF if self.requires_grad else None
    t._counter = self._counter
    return t


install(__reduce_ex__=_reduce)
install(__deepcopy__=_deepcopy)
install(__copy__=_copy)


# --- files --------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self) -> None:
        self.memories: list[Any] = []
        self.places: dict[int, int] = {}

    def encode(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            memory, offset, shape, strides = _described(x)
            if id(memory) not in self.places:
                self.places[id(memory)] = len(self.memories)
                self.memories.append(memory)
            return {
                "tensor": [self.places[id(memory)], offset, list(shape), list(strides)],
                "grad": x.requires_grad, "device": str(x.device), "class": type(x).__name__,
            }  # fmt: skip
        if x is None or isinstance(x, bool | str) or type(x) in (int, float):
            return {"float": x.hex()} if type(x) is float else x
        if isinstance(x, complex):
            return {"complex": [x.real.hex(), x.imag.hex()]}
        if isinstance(x, np.generic):
            return {"tensor": self.encode(wrap(x))["tensor"], "scalar": True}
        if isinstance(x, np.ndarray):
            return {"tensor": self.encode(wrap(x))["tensor"], "array": True}
        if isinstance(x, dict):
            kind = "ordered" if isinstance(x, OrderedDict) else "dict"
            return {kind: [[self.encode(k), self.encode(v)] for k, v in x.items()]}
        if isinstance(x, list):
            return [self.encode(v) for v in x]
        if type(x) is tuple or type(x).__name__ == "Size":
            return {"tuple": [self.encode(v) for v in x]}
        if isinstance(x, set):
            return {"set": [self.encode(v) for v in x]}
        from srcgrad.runtime.tensor_types import dtype

        if isinstance(x, dtype):
            return {"dtype": x.name}
        raise pickle.PicklingError(type(x).__name__)


def save(obj: Any, f: Any) -> None:
    """Write tensors and containers of them to a file (a path or a binary file object)."""
    writer = _Writer()
    try:
        description: Any = writer.encode(obj)
    except pickle.PicklingError:
        description = None
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        if description is None and not isinstance(obj, int | type(None)):
            archive.writestr("data.pkl", pickle.dumps(obj))
            return
        archive.writestr("data.json", json.dumps(description))
        for i, memory in enumerate(writer.memories):
            buffer = io.BytesIO()
            np.save(buffer, memory, allow_pickle=False)
            archive.writestr(f"memory/{i}.npy", buffer.getvalue())


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote. By default only tensors and plain containers: no code from the file is run."""
    try:
        opened = zipfile.ZipFile(f)
    except zipfile.BadZipFile as error:
        raise pickle.UnpicklingError("Not a file that `save` wrote.") from error
    with opened as archive:
        names = archive.namelist()
        if "data.json" not in names and "data.pkl" not in names:
            raise pickle.UnpicklingError(
                "Not a file that `save` wrote. To bring over one of PyTorch's, load it there and save its "
                "tensors as NumPy arrays."
            )
        if "data.json" not in names:
            if weights_only:
                raise pickle.UnpicklingError(
                    "Weights only load failed. The file holds other objects than tensors and plain "
                    "containers, and loading "
                    "these can run code from the file. If you trust its source, use load(f, "
                    "weights_only=False)."
                )
            return pickle.loads(archive.read("data.pkl"))
        description = json.loads(archive.read("data.json"))
        memories: dict[int, Any] = {}

        def memory(i: int) -> Any:
            if i not in memories:
                memories[i] = np.load(io.BytesIO(archive.read(f"memory/{int(i)}.npy")), allow_pickle=False)
            return memories[i]

        return _decode(description, memory, map_location)


def _decode(x: Any, memory: Any, place: Any) -> Any:
    if isinstance(x, list):
        return [_decode(v, memory, place) for v in x]
    if not isinstance(x, dict):
        return x
    if "tensor" in x:
        number, offset, shape, strides = x["tensor"]
        a = np.ndarray(tuple(shape), memory(number).dtype, memory(number), offset, tuple(strides))
        if x.get("array"):
            return a
        if x.get("scalar"):
            return a[()]
        t = wrap(a)
        where = str(place) if place is not None and not isinstance(place, dict) else x["device"]
        if where != "cpu":
            t = t.to(device=where)
        if x.get("class") == "Parameter":
            from srcgrad.runtime.nn.parameter import Parameter

            return Parameter(t, x["grad"])
        return t.requires_grad_() if x["grad"] else t
    ((kind, value),) = x.items()
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(float.fromhex(value[0]), float.fromhex(value[1]))
    if kind in ("dict", "ordered"):
        pairs = [(_decode(k, memory, place), _decode(v, memory, place)) for k, v in value]
        return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
    if kind == "dtype":
        from srcgrad.runtime.tensor_types import as_dtype

        return as_dtype(value)
    values = [_decode(v, memory, place) for v in value]
    return tuple(values) if kind == "tuple" else set(values)


# --- DLPack -------------------------------------------------------------------------------------------------


def _dlpack(self: Tensor, **keywords: Any) -> Any:
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return own_memory(self).__dlpack__(**keywords)


def _dlpack_device(self: Tensor) -> Any:
    return own_memory(self).__dlpack_device__()


install(__dlpack__=_dlpack)
install(__dlpack_device__=_dlpack_device)


def from_dlpack(source: Any) -> Tensor:
    """A Tensor on the memory of an object that speaks DLPack."""
    kind = source.__dlpack_device__()[0]
    return wrap((arrays.BACKENDS["cuda"]() if int(kind) == 2 else np).from_dlpack(source))


FUNCTIONS.update({"save": save, "load": load, "from_dlpack": from_dlpack})
