"""The nodes that run the rules of the table: what they save, when it is checked, how gradients pass.

The table's convention for complex numbers is not conjugated, PyTorch's is: the nodes conjugate on both sides.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.autograd.graph import (
    FREED,
    Node,
    Port,
    freed,
    modified,
)
from srcgrad.runtime.autograd.recipes import Recipe, recipe
from srcgrad.runtime.errors import NoRule
from srcgrad.runtime.rules.table import Rule, find
from srcgrad.runtime.tensor_base import Tensor, wrap

Saved = Any
_SMALL = 65536


def stand_in(array: Any) -> Any:
    """An array of the same shape and dtype for a rule that reads only these: `array` itself if it is
    small."""
    if array.nbytes <= _SMALL:
        return array
    return np.broadcast_to(arrays.namespace(array).empty((), dtype=array.dtype), array.shape)


def version_of(tensor: Tensor) -> int:
    counter = tensor._counter
    return 0 if counter is None else counter[0]


def check_version(tensor: Tensor, expected: int) -> None:
    counter = tensor._counter
    if counter is not None and counter[0] != expected:
        raise modified(tensor._array, tensor._history, counter[0], expected)


class Packed:
    """A saved value in the hands of `saved_tensors_hooks`: what `pack` made of it, until `unpack` gets it
    back."""

    __slots__ = ("value", "unpack", "version", "tensor")

    def __init__(self, value: Any, unpack: Callable[[Any], Any]):
        self.value = value
        self.unpack = unpack


def unpacked(saved: Saved, version: int, graph: bool) -> Any:
    """The value of a saved input: an array, or with `graph` the Tensor with its history."""
    if isinstance(saved, Tensor):
        check_version(saved, version)
        return saved if graph else saved._array
    if type(saved) is Packed:
        value = unpack_checked(saved)
        return value if graph else value._array
    return saved


def unpack_checked(packed: Packed) -> Tensor:
    """What `unpack` gives back, which must be a Tensor."""
    value = packed.unpack(packed.value)
    if not isinstance(value, Tensor):
        raise TypeError(
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
            f"{type(value).__name__}"
        )
    return value


class RuleUser(Node):
    """What the two kinds of node share: the recipe, the saved inputs and result, and when they are
    checked."""

    __slots__ = ("recipe", "saved", "versions", "out", "counter", "version", "like")
    function: ClassVar[Any]
    rule: ClassVar[Rule | None] = None
    recipe: Any
    saved: tuple[Saved, ...]
    versions: tuple[int, ...] | None
    out: Any
    counter: list[int] | None
    version: int
    like: tuple[Any, ...] | None

    @classmethod
    def find_rule(cls) -> Rule:
        if cls.rule is None:
            cls.rule = find(cls.function)
            if cls.rule is None or not cls.rule.differentiable:
                name = getattr(cls.function, "__name__", cls.function)
                raise NoRule(
                    f"{name} has no derivative rule: file one with srcgrad.runtime.rules.table.reverse"
                )
        return cls.rule

    def release(self) -> None:
        """Drop what was saved; a node that saved no values may be used again."""
        if self.recipe is not FREED and self.holds():
            self.recipe, self.saved, self.out, self.versions = FREED, (), None, None

    def holds(self) -> bool:
        raise NotImplementedError

    def result(self, graph: bool) -> Any:
        """The saved result, checked: an array, or with `graph` a Tensor whose history is this node."""
        out = self.out
        if type(out) is Packed:
            value = unpack_checked(out)
            return self._as_result(value) if graph else value._array
        if out is None:
            return None
        if type(out) is tuple:
            return tuple(self._as_result(o, i) for i, o in enumerate(out)) if graph else out
        if self.counter is None:
            return out
        if self.counter[0] != self.version:
            raise modified(out, self, self.counter[0], self.version)
        return self._as_result(out) if graph else out

    def _as_result(self, value: Any, number: int | None = None) -> Any:
        t = wrap(value._array if isinstance(value, Tensor) else value)
        t._history, t._counter = self if number is None else Port(self, number), self.counter
        return t

    def save_result(self, tensor: Tensor) -> None:
        """Keep the result's array (not the Tensor: that would be a cycle) together with its version."""
        if tensor._counter is None:
            tensor._counter = [0]
        self.out, self.counter, self.version = tensor._array, tensor._counter, tensor._counter[0]

    def _saved_at(self, name: str) -> Any:
        """What `_saved_self` and its kin show: the saved tensor itself, checked, or None if it was not
        needed."""
        if self.recipe is FREED:
            raise freed()
        if name == "result":
            out = self.result(True)
            return out
        i = self.saved_names[name]
        if i >= len(self.saved):
            raise AttributeError(f"'{self.name()}' object has no attribute '_saved_{name}'")
        saved = self.saved[i]
        if isinstance(saved, Tensor):
            check_version(saved, self.versions[i] if self.versions else 0)
        if type(saved) is Packed:
            return unpack_checked(saved)
        return wrap(saved) if arrays.is_array(saved) else saved

    saved_names: ClassVar[dict[str, int]] = {"self": 0, "other": 1, "exponent": 1, "mat2": 1}
    """Under which name, after `_saved_`, which saved argument is shown."""

    _saved_self = property(lambda self: self._saved_at("self"))
    _saved_other = property(lambda self: self._saved_at("other"))
    _saved_exponent = property(lambda self: self._saved_at("exponent"))
    _saved_mat2 = property(lambda self: self._saved_at("mat2"))
    _saved_result = property(lambda self: self._saved_at("result"))


def times(g: Any, partial: Any) -> Any:
    if type(partial) is int or partial is None:
        return g if partial == 1 else None if partial is None else -g if partial == -1 else g * partial
    kind = getattr(partial, "dtype", None)
    if kind is not None and kind.kind == "c":
        partial = np.conj(partial)
    elif type(partial) is complex:
        partial = partial.conjugate()
    return g * partial


def _scaled(g: Any, partial: Any) -> Any:
    return np.zeros_like(g) if partial is None or partial == 0 else times(g, partial)


class Elementwise(RuleUser):
    """An elementwise operation: each gradient is the incoming one times the rule's partial derivative."""

    __slots__ = ("dtype",)
    dtype: np.dtype[Any] | None
    recipes: ClassVar[dict[int, Recipe]]

    @classmethod
    def recipe_for(cls, mask: int, count: int) -> Recipe:
        """The recipe when the inputs in `mask` (a bit each) need a gradient; remembered in `recipes`."""
        rule = cls.find_rule()
        needs = tuple(bool(mask >> i & 1) for i in range(len(rule.wrt)))
        made = recipe(rule, needs)
        cls.recipes[mask] = made = cls.adapted(made)
        return made

    @classmethod
    def adapted(cls, made: Recipe) -> Recipe:
        """PyTorch decides whether an operation keeps its input or its result; the other is computed anew."""
        if cls.keep == "input" and made.result:
            compute, inner = cls.function, made.function
            count = len(made.keeps)
            function = lambda y, *args: inner(compute(*args), *args)  # noqa: E731
            return dataclasses.replace(made, function=function, result=False, keeps=(True,) * count)
        if cls.keep == "result" and not made.result:
            return dataclasses.replace(made, result=True)
        return made

    times = staticmethod(times)
    keep: ClassVar[str | None] = None
    single: ClassVar[bool] = False
    """Whether a number as second operand has no place among `next_functions`."""

    def holds(self) -> bool:
        return self.out is not None or any(s is not None for s in self.saved)

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        made = self.recipe
        if made is FREED:
            raise freed()
        y = self.result(graph)
        versions, dtype = self.versions, self.dtype
        args: list[Any] = []
        value: Any
        for i, s in enumerate(self.saved):
            value = s if s is None else unpacked(s, versions[i] if versions is not None else 0, graph)
            if dtype is not None and isinstance(s, Tensor) and value.dtype != dtype:
                value = value.astype(dtype)
            args.append(value)
        partials = made.constants or made.function(y, *args)
        if type(partials) is not tuple:
            partials = (partials,)
        out: list[Any] = []
        for i, target in enumerate(self._targets):
            if target is None:
                out.append(None)
                continue
            gi = self.times(g, partials[i])
            if gi is None:
                gi = 0 * g
            if self.like is not None:
                gi = support.unbroadcast(gi, self.like[i])
            out.append(gi)
        return tuple(out)


class Unary(Elementwise):
    __slots__ = ()

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        made = self.recipe
        if graph or self.like is not None or made is FREED:
            return Elementwise.apply(self, g, graph)
        constants = made.constants
        if constants is not None:
            return (g if constants[0] == 1 else -g,)
        y = self.out
        if y is not None and (type(y) is Packed or self.counter[0] != self.version):  # type: ignore[index]
            y = self.result(False)
        x = self.saved[0]
        if x is not None:
            if type(x) is Packed:
                x = unpacked(x, 0, False)
            else:
                counter = x._counter
                if counter is not None:
                    check_version(x, 0 if self.versions is None else self.versions[0])
                x = x._array
        partial = made.function(y, x)
        return (g * (partial[0] if type(partial) is tuple else partial),)


class Binary(Elementwise):
    __slots__ = ()

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        made = self.recipe
        if graph or self.like is not None or self.dtype is not None or made is FREED or self.out is not None:
            return Elementwise.apply(self, g, graph)
        targets = self._targets
        first, second = targets if len(targets) == 2 else (targets[0], None)
        constants = made.constants
        if constants is not None:
            p, q = constants
            return (
                None if first is None else g if p == 1 else -g if p == -1 else g * p,
                None if second is None else g if q == 1 else -g if q == -1 else g * q,
            )
        x, y = self.saved
        if isinstance(x, Tensor):
            if x._counter is not None:
                check_version(x, 0 if self.versions is None else self.versions[0])
            x = x._array
        elif type(x) is Packed:
            x = unpacked(x, 0, False)
        if isinstance(y, Tensor):
            if y._counter is not None:
                check_version(y, 0 if self.versions is None else self.versions[1])
            y = y._array
        elif type(y) is Packed:
            y = unpacked(y, 0, False)
        p, q = made.function(None, x, y)
        return (
            None if first is None else _scaled(g, p) if type(p) is int or p is None else g * p,
            None if second is None else _scaled(g, q) if type(q) is int or q is None else g * q,
        )


class WithNumber(Binary):
    """A tensor and a number that has no place in the graph."""

    __slots__ = ()
    single = True


class Powered(Binary):
    """A tensor to the power of a number."""

    __slots__ = ()
    single = True

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        made = self.recipe
        if graph or self.like is not None or self.dtype is not None or made is FREED:
            return Elementwise.apply(self, g, graph)
        x, y = self.saved
        if type(x) is Packed:
            x = unpacked(x, 0, False)
        else:
            if x._counter is not None:
                check_version(x, 0 if self.versions is None else self.versions[0])
            x = x._array
        return (g * made.function(None, x, y)[0],)


def elementwise_node(
    name: str, function: Any, count: int, keep: str | None = None, kind: type | None = None
) -> type[Elementwise]:
    """The node class `name` of an elementwise `function` of `count` arguments."""
    base: type = kind or (Unary if count == 1 else Binary if count == 2 else Elementwise)
    return type(name, (base,), {"__slots__": (), "function": function, "recipes": {}, "keep": keep})


def reversed_node(name: str, function: Any) -> type[Elementwise]:
    """The node class of `function` with its two arguments exchanged (`1 - x` is an operation on `x`)."""

    def recipe_for(cls: type[Elementwise], mask: int, count: int) -> Recipe:
        straight = recipe(cls.find_rule(), (bool(mask & 2), bool(mask & 1)))
        inner = straight.function
        cls.recipes[mask] = made = dataclasses.replace(
            straight,
            function=lambda y, a, b: inner(y, b, a)[::-1],
            constants=None if straight.constants is None else straight.constants[::-1],
            keeps=straight.keeps[::-1],
        )
        return made

    members = {
        "__slots__": (), "function": function, "recipes": {}, "recipe_for": classmethod(recipe_for),
        "single": True,
    }  # fmt: skip
    return type(name, (Binary,), members)


class RuleNode(RuleUser):
    """An operation whose rule gives the cotangents of its inputs from that of its result."""

    __slots__ = ("keywords", "layout", "complex", "outputs", "shown", "saves", "plain")
    saves: bool
    plain: bool
    """Made by `record_plain`: nothing to convert, broadcast, conjugate or collect."""
    plans: ClassVar[dict[Any, Any]]
    hides_none: ClassVar[bool] = False
    """Whether an argument that is None has no place among `next_functions`."""
    keywords: dict[str, Any]
    layout: tuple[tuple[int, int | None], ...]
    """For each differentiable argument: its place in `wrt`, and how many tensors it is a list of (or
    None)."""
    complex: bool
    outputs: int
    shown: dict[str, Any] | None

    keep: ClassVar[str | None] = None

    @property
    def _outputs(self) -> int:  # type: ignore[override]
        return self.outputs

    def holds(self) -> bool:
        return self.saves or (self.out is not None and self.counter is not None)

    def apply(self, g: Any, graph: bool) -> tuple[Any, ...]:
        made = self.recipe
        if made is FREED:
            raise freed()
        if self.plain and not graph:
            return self._apply_plain(g, made)
        y = self.result(graph)
        versions: Any = self.versions
        args: list[Any] = []
        for i, s in enumerate(self.saved):
            if type(s) is list:
                each = versions[i] if versions is not None else 0
                args.append(
                    [unpacked(x, each[j] if type(each) is list else 0, graph) for j, x in enumerate(s)]
                )
            elif s is None:
                args.append(None)
            else:
                args.append(unpacked(s, versions[i] if versions is not None else 0, graph))
        star = _positions(self.find_rule())[1]
        if star is not None:
            args = [*args[:star], *args[star]]
        if self.complex:
            g = [np.conj(x) for x in g] if isinstance(g, list) else np.conj(g)
        if self.outputs > 1:
            g = self._all_cotangents(g)
        got = made.function(g, y, *args, **self.keywords)
        if len(self.rule.wrt) == 1:  # type: ignore[union-attr]
            got = (got,)
        out: list[Any] = []
        for which, count in self.layout:
            cotangent = got[which]
            if count is None:
                out.append(cotangent)
            else:
                out.extend([None] * count if cotangent is None else cotangent)
        if self.complex:
            out = [x if x is None else np.conj(x) for x in out]
        if self.like is not None:
            out = [
                x if x is None or like is None or t is None else support.unbroadcast(x, like)
                for x, like, t in zip(out, self.like, self._targets, strict=True)
            ]
        return tuple(x if t is not None else None for x, t in zip(out, self._targets, strict=True))

    def _apply_plain(self, g: Any, made: Recipe) -> tuple[Any, ...]:
        y = self.out
        if y is not None and self.counter is not None and self.counter[0] != self.version:
            y = self.result(False)
        saved = self.saved
        x = saved[0]
        if isinstance(x, Tensor):
            if x._counter is not None:
                check_version(x, 0 if self.versions is None else self.versions[0])
            x = x._array
        if len(self._targets) == 1:
            got = made.function(g, y, x, *saved[1:], **self.keywords)
            return got if type(got) is tuple else (got,)
        args = [x]
        for i in range(1, len(saved)):
            x = saved[i]
            if isinstance(x, Tensor):
                if x._counter is not None:
                    check_version(x, 0 if self.versions is None else self.versions[i])
                x = x._array
            args.append(x)
        return made.function(g, y, *args, **self.keywords)

    def _all_cotangents(self, g: list[Any]) -> tuple[Any, ...]:
        like = self.shown["like"] if self.shown else []
        return tuple(np.zeros_like(like[i]) if x is None else x for i, x in enumerate(g))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            if self.shown is not None and name[7:] in self.shown:
                return self.shown[name[7:]]
            if name[7:] in self.saved_names:
                return self._saved_at(name[7:])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def watching(kind: type[RuleNode]) -> Any:
    """A node class like `kind` that also notices later changes of the tensors in `watched` (masks, keys)."""

    def apply(self: Any, g: Any, graph: bool) -> tuple[Any, ...]:
        for t, version in self.watched:
            check_version(t, version)
        return kind.apply(self, g, graph)

    return type(kind.__name__, (kind,), {"__slots__": ("watched",), "apply": apply, "plans": {}})


@functools.cache
def rule_node(name: str, function: Any, keep: str | None = None) -> type[RuleNode]:
    """The node class `name` of a `function` that has a reverse rule."""
    return type(name, (RuleNode,), {"__slots__": (), "function": function, "keep": keep, "plans": {}})


def _positions(rule: Rule) -> tuple[tuple[int, ...], int | None]:
    """Where the differentiable parameters stand, and where the one that takes all the rest (`*operands`)
    does."""
    found = _POSITIONS.get(rule)
    if found is None:
        names = [p.name for p in rule.parameters]
        stars = [i for i, p in enumerate(rule.parameters) if p.kind is p.VAR_POSITIONAL]
        found = _POSITIONS[rule] = (tuple(names.index(w) for w in rule.wrt), stars[0] if stars else None)
    return found


_POSITIONS: dict[Rule, tuple[tuple[int, ...], int | None]] = {}
