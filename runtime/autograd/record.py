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
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import support
from srcgrad.runtime.autograd import modes
from srcgrad.runtime.autograd.graph import (
    LEAF,
    Node,
    Port,
    numbers,
    target_of,
)
from srcgrad.runtime.autograd.modes import state
from srcgrad.runtime.autograd.nodes import (
    _SMALL,
    Elementwise,
    RuleNode,
    _positions,
    stand_in,
    version_of,
)
from srcgrad.runtime.autograd.recipes import Recipe, recipe
from srcgrad.runtime.errors import NoRule
from srcgrad.runtime.rules.table import Rule
from srcgrad.runtime.tensor_base import Tensor, wrap

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
        key: Any = (mask, *keywords.items())
        try:
            found = kind.recipes.get(key)
        except TypeError:  # an array among them
            key, found = None, None
        if found is None:
            found = dataclasses.replace(made, function=functools.partial(made.function, **keywords))
            if key is not None and len(kind.recipes) < 100:
                kind.recipes[key] = found
        made = found
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
    for name, value in keywords.items():
        if isinstance(value, Tensor):
            raise TypeError(f"argument '{name}' must be Number, not Tensor")
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
        if args[position] is None and kind.hides_none:
            needs.append(False)
            continue
        value = args[position]
        if type(value) in (list, tuple):
            if any(type(x) in (list, tuple) and tracked((x,)) for x in value):
                raise NoRule(
                    f"{rule.name} of nested lists of Tensors has no derivative rule: join them first"
                )
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
    if len(args) > len(positions):
        _refuse_tracked(rule, positions, args)
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


BY_SHAPE: dict[Any, str] = {np.full_like: "a"}
"""Parameters of which only the shape matters."""


def _refuse_tracked(rule: Rule, positions: tuple[int, ...], args: Sequence[Any]) -> None:
    """A tracked Tensor where the rule has no derivative is refused: it would be taken for a constant."""
    if rule.functions[0] in BY_SHAPE or getattr(rule.functions[0], "__module__", "") == support.__name__:
        return  # these read the shape of a Tensor
    for i, x in enumerate(args):
        if i not in positions and isinstance(x, Tensor) and target_of(x) is not None:
            raise not_differentiable(rule.name, rule.parameters[i].name)


def not_differentiable(name: str, argument: str) -> RuntimeError:
    return RuntimeError(
        f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input "
        "cannot have requires_grad True: detach it."
    )


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


def record_one(
    kind: type[RuleNode],
    result: Tensor,
    x: Tensor,
    rest: tuple[Any, ...] = (),
    keywords: dict[str, Any] = NOTHING,
    shown: dict[str, Any] | None = None,
) -> None:
    """`record_plain` for one input, which is tracked."""
    history = x._history if x._more is None else x._fresh_history()
    made, keeps, saves = kind.plans.get(1) or _plan(kind, 1, 1)
    node: Any = _new(kind)
    node._targets, node._number, node._extras = (x if history is LEAF else history,), next(numbers), None
    node.recipe, node.keywords, node.layout, node.complex = made, keywords, _LAYOUTS[1], False
    node.like, node.shown, node.plain, node.saves, node.outputs = None, shown, True, saves, 1
    node.versions = None
    if keeps[0] == 2:
        node.saved = [x, *rest]
        if x._counter is not None and x._counter[0]:
            node.versions = [x._counter[0], *[0] * len(rest)]
    elif keeps[0] == 1:
        a = x._array
        node.saved = [a if a.nbytes <= _SMALL else stand_in(a), *rest]
    else:
        node.saved = [None, *rest]
    result._history = node
    if made.result:
        node.save_result(result)
    else:
        node.out = result._array if made.outline else None
        node.counter = None
    if modes.watched:
        announce(node)


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
    for x, keep in zip(inputs, keeps):  # noqa: B905  (of one length, and in the fast path)
        if keep == 2:
            counter = x._counter
            if counter is not None and (counter[0] or versions is not None):
                versions = versions or [0] * (len(inputs) + len(rest))
                versions[len(saved)] = counter[0]
            saved.append(x)
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


def record_parts(
    kind: type[RuleNode], results: list[Tensor], x: Tensor, rest: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    """`record_rule` for the parts of one Tensor of a real dtype, of which the rule reads the shape."""
    made, keeps, _ = kind.plans.get(1) or _plan(kind, 1, 1)
    node: Any = _new(kind)
    node._targets, node._number, node._extras = (target_of(x),), next(numbers), None
    node.recipe, node.keywords, node.layout, node.complex = made, keywords, _LAYOUTS[1], False
    node.like, node.plain, node.saves, node.outputs = None, False, False, len(results)
    node.saved = [stand_in(x._array) if keeps[0] else None, *rest]
    node.versions = node.out = node.counter = None
    node.version = 0
    for number, t in enumerate(results):
        t._history = Port(node, number)
    node.shown = {"like": [stand_in(t._array) for t in results]}
    if modes.watched:
        announce(node)


def record_behind(
    kind: type[RuleNode],
    result: Tensor,
    first: Tensor,
    inputs: tuple[Tensor, ...],
    rest: tuple[Any, ...] = (),
) -> None:
    """`record_plain` where a Tensor that has no derivative, a mask, comes before the `inputs`."""
    targets = tuple([target_of(x) for x in inputs])
    needs = tuple([t is not None for t in targets]) + (False,) * len(rest)
    made = kind.plans.get(needs)
    if made is None:
        made = kind.plans[needs] = recipe(kind.find_rule(), needs)
    node: Any = _new(kind)
    node._targets, node._number, node._extras = targets, next(numbers), None
    node.recipe, node.keywords, node.layout, node.complex = made, NOTHING, _LAYOUTS[len(inputs)], False
    node.like, node.shown, node.plain, node.saves, node.outputs = None, None, True, True, 1
    counter = first._counter
    moved = counter is not None and counter[0]
    node.versions = [counter[0], *[0] * (len(inputs) + len(rest))] if counter and moved else None
    arrays = [x._array for x in inputs]
    node.saved = [first, *[a if a.nbytes <= _SMALL else stand_in(a) for a in arrays], *rest]
    result._history = node
    node.out = node.counter = None
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
        if not several and _is_plain(kind, args, results._array.dtype):
            record_one(kind, results, args[0], tuple(args[1:]), keywords, shown)
        else:
            record_rule(kind, results, args, keywords, shown)
    return results


_NUMBERS = (int, float)
_CONSTANTS = {int, float, bool, str, slice, type(None)}


def _is_plain(kind: type[RuleNode], args: Sequence[Any], dtype: Any) -> bool:
    """Whether `record_one` will do: one Tensor in front, of the result's real dtype, and then constants."""
    x = args[0]
    if not isinstance(x, Tensor) or x._array.dtype is not dtype or dtype.char not in "fd":
        return False
    for a in args[1:]:
        if type(a) not in _CONSTANTS and not (type(a) is tuple and all(type(e) in _CONSTANTS for e in a)):
            return False
    positions, star = _positions(kind.find_rule())
    if star is not None or positions[0] != 0:
        return False
    for p in positions[1:]:
        if p < len(args) and type(args[p]) not in _NUMBERS and not (kind.hides_none and args[p] is None):
            return False
    return True


def record_beside(
    kind: type[RuleNode],
    result: Tensor,
    x: Tensor,
    rest: tuple[Any, ...],
    shown: dict[str, Any] | None = None,
) -> None:
    """Record an operation on one Tensor, beside arrays that it keeps."""
    dtype = x._array.dtype
    if dtype is result._array.dtype and dtype.char in "fd":
        record_one(kind, result, x, rest, NOTHING, shown)
        result._history.saves = True
    else:
        record_rule(kind, result, (x, *rest), {}, shown)


def record_list(
    kind: type[RuleNode], result: Tensor, tensors: list[Tensor], rest: tuple[Any, ...], shown: dict[str, Any]
) -> None:
    """`record_rule` for a list of Tensors of the result's real dtype, of which the rule reads the shapes."""
    node: Any = _new(kind)
    targets = tuple([target_of(x) for x in tensors])
    node._targets, node._number, node._extras = targets, next(numbers), None
    made: Any = _listed(kind)  # type: ignore[arg-type]
    node.recipe, node.keywords, node.layout = made, NOTHING, ((0, len(targets)),)
    node.like, node.shown, node.outputs = None, shown, 1
    node.complex = node.plain = node.saves = False
    arrays = [x._array for x in tensors]
    node.saved = ([a if a.nbytes <= _SMALL else stand_in(a) for a in arrays], *rest)
    node.versions = node.out = node.counter = None
    node.version = 0
    result._history = node
    if modes.watched:
        announce(node)


@functools.cache
def _listed(kind: type[RuleNode]) -> Recipe:
    return recipe(kind.find_rule(), (True,))
