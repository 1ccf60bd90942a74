"""Recording: the nodes that run the rules of the table, and the functions that make them.

`elementwise` and `call` compute an operation on Tensors and record it. Both take a node class, made once per
operation by `elementwise_node` or `rule_node` from PyTorch's name for the node and the function under which
the rule is filed.

The table's convention for complex numbers is not conjugated, PyTorch's is: the nodes conjugate on both sides.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.runtime import arrays, support
from srcgrad.runtime.autograd import modes
from srcgrad.runtime.autograd.graph import (
    FREED,
    LEAF,
    Node,
    Port,
    SavedOutput,
    freed,
    modified,
    numbers,
    target_of,
)
from srcgrad.runtime.autograd.modes import state
from srcgrad.runtime.autograd.recipes import Recipe, recipe
from srcgrad.runtime.errors import NoRule
from srcgrad.runtime.rules.table import Rule, find
from srcgrad.runtime.tensor_base import Tensor, wrap
from srcgrad.runtime.tensor_types import result_dtype

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
        value = saved.unpack(saved.value)
        return value if graph else value._array
    return saved


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
            value = out.unpack(out.value)
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
        i = {"self": 0, "other": 1, "exponent": 1, "mat2": 1}[name]
        if i >= len(self.saved):
            raise AttributeError(f"'{self.name()}' object has no attribute '_saved_{name}'")
        saved = self.saved[i]
        if isinstance(saved, Tensor):
            check_version(saved, self.versions[i] if self.versions else 0)
        return saved.unpack(saved.value) if type(saved) is Packed else saved

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
            gi = times(g, partials[i])
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
        return (g * made.function(y, x),)


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
                None if first is None else g if p == 1 else -g,
                None if second is None else g if q == 1 else -g,
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
        if first is None:
            return None, (g * q if type(q) is not int else times(g, q))
        if second is None:
            return (g * p if type(p) is not int else times(g, p)), None
        return (g * p if type(p) is not int else times(g, p)), (g * q if type(q) is not int else times(g, q))


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


_new = object.__new__


def record_elementwise(
    kind: type[Elementwise],
    result: Tensor,
    inputs: Sequence[Any],
    raw: Sequence[Any],
    like: tuple[Any, ...] | None,
    dtype: Any,
    keywords: dict[str, Any] | None = None,
) -> None:
    """Make `result` the result of a node of class `kind` over `inputs` (Tensors and constants)."""
    targets = tuple(target_of(x) if isinstance(x, Tensor) else None for x in inputs)
    mask = 0
    for i, t in enumerate(targets):
        if t is not None:
            mask |= 1 << i
    made = kind.recipes.get(mask) or kind.recipe_for(mask, len(inputs))
    node = _new(kind)
    node._targets, node._number, node._extras = targets[:1] if kind.single else targets, next(numbers), None
    if keywords:
        made = dataclasses.replace(made, function=functools.partial(made.function, **keywords))
    node.recipe, node.like, node.dtype = made, like, dtype
    keeps = made.keeps
    saved: list[Any] = []
    versions: list[int] = []
    moved = False
    for i, x in enumerate(inputs):
        if not keeps[i]:
            saved.append(None)
            versions.append(0)
        elif isinstance(x, Tensor):
            version = version_of(x)
            saved.append(x)
            versions.append(version)
            moved = moved or version != 0
        else:
            saved.append(raw[i])
            versions.append(0)
    node.saved, node.versions = tuple(saved), tuple(versions) if moved else None
    result._history = node
    if made.result:
        node.save_result(result)
    else:
        node.out = node.counter = None
        node.version = 0
    if modes.watched:
        announce(node)


def announce(node: Node) -> None:
    for watcher in state.watchers:
        watcher(node)


def elementwise(
    kind: type[Elementwise], inputs: Sequence[Any], raw: Sequence[Any], out: Any, dtype: Any, **keywords: Any
) -> Tensor:
    """Wrap `out`, computed by `kind.function` from `raw` (the inputs' arrays, cast to `dtype`), and record
    it."""
    result = wrap(out)
    if modes.paused and not state.recording:
        return result
    tracked = False
    for x in inputs:
        if isinstance(x, Tensor) and (
            x._history is not None or (x._more is not None and x._fresh_history() is not None)
        ):
            tracked = True
    if not tracked or result._array.dtype.kind not in "fc":
        return result
    like: tuple[Any, ...] | None = None
    shape, kind_ = result._array.shape, result._array.dtype
    cast = None
    for x in inputs:
        if isinstance(x, Tensor):
            a = x._array
            if a.dtype != kind_ or kind_.kind == "c":
                cast = dtype
                like = ()
            elif a.shape != shape:
                like = ()
    if like is not None:
        like = tuple(stand_in(x._array) if isinstance(x, Tensor) else None for x in inputs)
    record_elementwise(kind, result, inputs, raw, like, cast, keywords)
    return result


# --- operations with a reverse rule -------------------------------------------------------------------------


class RuleNode(RuleUser):
    """An operation whose rule gives the cotangents of its inputs from that of its result."""

    __slots__ = ("keywords", "layout", "complex", "outputs", "shown", "saves", "plain")
    saves: bool
    plain: bool
    """Made by `record_plain`: nothing to convert, broadcast, conjugate or collect."""
    plans: ClassVar[dict[int, Any]]
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
            return (made.function(g, y, x, *saved[1:], **self.keywords),)
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
        if name.startswith("_saved_") and self.shown is not None and name[7:] in self.shown:
            return self.shown[name[7:]]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


@functools.cache
def rule_node(name: str, function: Any, keep: str | None = None) -> type[RuleNode]:
    """The node class `name` of a `function` that has a reverse rule."""
    return type(name, (RuleNode,), {"__slots__": (), "function": function, "keep": keep, "plans": {}})


def tracked(inputs: Sequence[Any]) -> bool:
    """Whether something is recorded now and one of `inputs` (Tensors, lists of Tensors, anything) is
    tracked."""
    if modes.paused and not state.recording:
        return False
    for x in inputs:
        if isinstance(x, Tensor):
            if x._history is not None or (x._more is not None and x._fresh_history() is not None):
                return True
        elif type(x) in (list, tuple) and tracked(x):
            return True
    return False


def raw_of(x: Any) -> Any:
    """Arrays in place of Tensors, also inside lists, tuples and slices."""
    if isinstance(x, Tensor):
        return x._array
    if type(x) in (list, tuple):
        return type(x)(raw_of(e) for e in x)
    if type(x) is slice and any(isinstance(e, Tensor) for e in (x.start, x.stop, x.step)):
        return slice(*(int(e) if isinstance(e, Tensor) else e for e in (x.start, x.stop, x.step)))
    return x


def record_rule(
    kind: type[RuleNode],
    results: Any,
    args: Sequence[Any],
    keywords: dict[str, Any],
    shown: dict[str, Any] | None = None,
) -> None:
    """Make `results` (a Tensor, or a list of Tensors) the results of a node of class `kind` over `args`."""
    rule = kind.find_rule()
    positions, star = _positions(rule)
    if star is not None:
        args = (*args[:star], tuple(args[star:]))
    targets: list[Any] = []
    layout: list[tuple[int, int | None]] = []
    needs: list[bool] = []
    like: list[Any] = []
    first = results[0] if isinstance(results, list) else results
    out_dtype = first._array.dtype
    is_complex = out_dtype.kind == "c"
    adjust = False
    for which, position in enumerate(positions):
        if position >= len(args) or isinstance(args[position], int | float | complex | np.generic | str):
            needs.append(False)
            continue
        value = args[position]
        if type(value) in (list, tuple):
            ts = [target_of(x) if isinstance(x, Tensor) else None for x in value]
            targets += ts
            layout.append((which, len(ts)))
            needs.append(any(t is not None for t in ts))
            members = value
        else:
            t = target_of(value) if isinstance(value, Tensor) else None
            targets.append(t)
            layout.append((which, None))
            needs.append(t is not None)
            members = (value,)
        for x in members:
            like.append(None)
            if isinstance(x, Tensor):
                d = x._array.dtype
                is_complex = is_complex or d.kind == "c"
                if d != out_dtype:
                    adjust = True
                    like[-1] = stand_in(x._array)
    made = recipe(rule, tuple(needs))
    if kind.keep is not None:
        made = _keeping(rule, tuple(needs), kind.keep == "both")
    node = _new(kind)
    node._targets, node._number, node._extras = tuple(targets), next(numbers), None
    node.recipe, node.keywords, node.layout, node.complex = made, keywords, tuple(layout), is_complex
    node.like = tuple(like) if adjust else None
    node.shown, node.plain = shown, False
    names = [p.name for p in rule.parameters]
    saved: list[Any] = []
    versions: list[Any] = []
    moved = node.saves = False
    for i, x in enumerate(args):
        name = names[min(i, len(names) - 1)]
        read = name in made.values
        if read and (isinstance(x, Tensor | np.ndarray) or (type(x) in (list, tuple) and _has_array(x))):
            node.saves = True
        version: Any = 0
        if isinstance(x, Tensor):
            if read:
                version = version_of(x)
                moved = moved or version != 0
                saved.append(x)
            else:
                saved.append(stand_in(x._array) if name in made.shapes else None)
        elif type(x) in (list, tuple) and any(isinstance(e, Tensor) for e in x):
            moved = True
            if read:
                version = [version_of(e) if isinstance(e, Tensor) else 0 for e in x]
                saved.append(list(x))
            else:
                version = [0] * len(x)
                saved.append([stand_in(e._array) if isinstance(e, Tensor) else e for e in x])
        else:
            saved.append(raw_of(x))
        versions.append(version)
    node.saved, node.versions = tuple(saved), tuple(versions) if moved else None
    if isinstance(results, list):
        node.outputs = len(results)
        for number, t in enumerate(results):
            if t._array.dtype.kind in "fc":
                t._history = Port(node, number)
        node.shown = {**(shown or {}), "like": [stand_in(t._array) for t in results]}
        node.out = tuple(t._array for t in results) if made.result or made.outline else None
        node.counter, node.version = None, 0
    else:
        node.outputs = 1
        results._history = node
        if made.result:
            node.save_result(results)
        else:
            node.out = stand_in(results._array) if made.outline else None
            node.counter, node.version = None, 0
    if modes.watched:
        announce(node)


NOTHING: dict[str, Any] = {}
_LAYOUTS = tuple(tuple((i, None) for i in range(n)) for n in range(4))


def _plan(kind: type[RuleNode], mask: int, count: int) -> Any:
    """What `record_plain` needs to know: the recipe, and for each input whether its value or shape is
    kept."""
    rule = kind.find_rule()
    made = recipe(rule, tuple(bool(mask >> i & 1) for i in range(len(rule.wrt))))
    if kind.keep is not None:
        made = _keeping(rule, tuple(bool(mask >> i & 1) for i in range(len(rule.wrt))), kind.keep == "both")
    names = [p.name for p in rule.parameters]
    keeps = tuple(2 if n in made.values else 1 if n in made.shapes else 0 for n in names[:count])
    found = kind.plans[mask] = (made, keeps, 2 in keeps)
    return found


def record_plain(
    kind: type[RuleNode],
    result: Tensor,
    inputs: tuple[Tensor, ...],
    rest: tuple[Any, ...] = (),
    keywords: dict[str, Any] = NOTHING,
    shown: dict[str, Any] | None = None,
) -> None:
    """`record_rule` for the common case: the differentiable arguments come first and are Tensors of one
    real floating
    dtype, which the result has too; `rest` are the other positional arguments, of which no value may be an
    array.
    """
    mask = 0
    bit = 1
    targets: list[Any] = []
    for x in inputs:
        history = x._history
        if x._more is not None:
            history = x._fresh_history()
        if history is None:
            targets.append(None)
        else:
            mask |= bit
            targets.append(x if history is LEAF else history)
        bit <<= 1
    made, keeps, saves = kind.plans.get(mask) or _plan(kind, mask, len(inputs))
    node: Any = _new(kind)
    node._targets, node._number, node._extras = tuple(targets), next(numbers), None
    node.recipe, node.keywords, node.layout, node.complex = made, keywords, _LAYOUTS[len(inputs)], False
    node.like, node.shown, node.plain, node.saves, node.outputs = None, shown, True, saves, 1
    saved: list[Any] = []
    versions: Any = None
    for i, x in enumerate(inputs):
        keep = keeps[i]
        if keep == 2:
            saved.append(x)
            counter = x._counter
            if counter is not None and (counter[0] or versions is not None):
                versions = versions or [0] * (len(inputs) + len(rest))
                versions[i] = counter[0]
        elif keep == 1:
            a = x._array
            saved.append(a if a.nbytes <= _SMALL else stand_in(a))
        else:
            saved.append(None)
    saved += rest
    node.saved, node.versions = saved, versions
    result._history = node
    if made.result:
        node.save_result(result)
    else:
        node.out = result._array if made.outline else None
        node.counter = None
    if modes.watched:
        announce(node)


def _has_array(x: Any) -> bool:
    return any(isinstance(e, Tensor | np.ndarray) for e in x)


@functools.cache
def _keeping(rule: Rule, needs: tuple[bool, ...], result: bool) -> Recipe:
    """PyTorch saves the input (and the result) of this operation, whatever the rule reads."""
    made = recipe(rule, needs)
    values = made.values | {rule.parameters[0].name}
    return dataclasses.replace(made, values=values, result=made.result or result)


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


def call(
    kind: type[RuleNode],
    args: Sequence[Any],
    keywords: dict[str, Any] | None = None,
    out: Any = None,
    shown: dict[str, Any] | None = None,
) -> Any:
    """Compute `kind.function(*args, **keywords)` (unless `out` is given) and record it."""
    keywords = keywords or {}
    if out is None:
        out = kind.function(*[raw_of(a) for a in args], **keywords)
    several = isinstance(out, list | tuple)
    results: Any = [wrap(o) for o in out] if several else wrap(out)
    if tracked(args) and (several or results._array.dtype.kind in "fc"):
        record_rule(kind, results, args, keywords, shown)
    return results


__all__ = [
    "FREED", "LEAF", "Binary", "Elementwise", "Node", "Packed", "RuleNode", "SavedOutput", "Unary",
    "announce", "call",
    "elementwise", "elementwise_node", "raw_of", "record_elementwise", "record_rule", "result_dtype",
    "reversed_node",
    "rule_node",
    "record_plain", "stand_in", "tracked", "version_of",
]  # fmt: skip
