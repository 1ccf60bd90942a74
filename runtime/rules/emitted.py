"""Rules for what emitted derivatives call: so that they can be differentiated again."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import builtins
import copy as copying

import numpy as np

from srcgrad.runtime import dispatch, operators, tangents, trees
from srcgrad.runtime.rules.table import case, forward, nondifferentiable, reverse

nondifferentiable(
    trees.refuse_integers,
    trees.refuse_object,
    trees.refuse_property,
    trees.refuse_overlap,
    trees.refuse_twice,
    trees.refuse_shared,
    trees.refuse_mutable,
    trees.zeros_like,
    trees.check_scalar,
    trees.check_constant,
    trees.unknown_slope,
    trees.clear_item,
    dispatch.plan_of,
    trees.new_object,
    trees.ordered,
    trees.equal_length,
    operators.fixed,
    operators.rebinds,
    dispatch._is_record,
)


@reverse(trees.snapshot, linear=True, at=[1.5, [1.0, 2.0]])
def snapshot(g, y, x):
    return g


@reverse(trees.structure, linear=True, alias="maybe", at=[1.5])
def structure(g, y, x):
    return g


@reverse(trees.known, linear=True, alias="maybe", at=[1.5, [1.0, 2.0]])
def known(g, y, g_):
    return g


@reverse(trees.copy, linear=True, at=[1.5, [1.0, 2.0]])
def copy(g, y, g_):
    return g


@reverse(trees.sequence, linear=True, alias="maybe", at=[[1.0, 2.0]])
def sequence(g, y, x):
    return trees.match(g, x)


@reverse(trees.add, wrt=("a", "b"), at=[(1.5, 2.5), ([1.0, 2.0], [0.5, 0.5])])
def add(g, y, a, b):
    return trees.part(g, a), trees.part(g, b)


@forward(trees.add)
def add_forward(a_dot, b_dot, y, a, b):
    return a_dot, b_dot


@reverse(trees.match, wrt="g_", alias="maybe", at=[(np.array([1.0, 2.0]), np.array([3.0, 4.0]))])
def match(g, y, g_, x):
    return trees.part(g, g_)


@forward(trees.match)
def match_forward(g_dot, y, g_, x):
    return trees.match(g_dot, x)


@reverse(trees.unlisted, wrt="g_", alias="maybe", at=[])
def unlisted(g, y, g_, x):
    return trees.part(g, g_)


@forward(trees.unlisted)
def unlisted_forward(g_dot, y, g_, x):
    return trees.unlisted(g_dot, x)


@reverse(trees.same_view, wrt="v_bar", linear=True, alias="view", at=[])
def same_view(g, y, v_bar, v, x_bar, x, name, place):
    return g


@reverse(trees.conform, wrt="g_", alias="maybe", at=[([1.0, 2.0], [0.0, 0.0])])
def conform(g, y, g_, x):
    return trees.part(g, g_)


@forward(trees.conform)
def conform_forward(g_dot, y, g_, x):
    return trees.conform(g_dot, x)


@reverse(trees.stored, wrt="g_", alias="maybe", at=[(np.array([1.0, 2.0]), 3.0), ([1.0, 2.0], [0.0, 0.0])])
def stored(g, y, g_, v):
    return trees.part(g, g_)


@forward(trees.stored)
def stored_forward(g_dot, y, g_, v):
    return trees.stored(g_dot, v)


@reverse(
    trees.like, wrt="g_", at=[(1.5, 2.0), ([1.0, 2.0], np.array([3.0, 4.0])), (1.5, np.array([1.0, 2.0]))]
)
def like(g, y, g_, x):
    return trees.part(g, g_)


@forward(trees.like)
def like_forward(g_dot, y, g_, x):
    return trees.like(g_dot, x)


@reverse(trees.overwritten, wrt="g_", at=[case(np.array([1.0, 2.0, 3.0]), slice(0, 2))])
def overwritten(g, y, g_, index):
    return trees.placed(g, g_, index)


@forward(trees.overwritten)
def overwritten_forward(g_dot, y, g_, index):
    return trees.overwritten(g_dot, index)


@reverse(trees.part, wrt="g_", alias="maybe", at=[(1.5, 2.0), (np.array([1.0, 2.0]), 1.0)])
def part(g, y, g_, of):
    return trees.part(g, g_)


@forward(trees.part)
def part_forward(g_dot, y, g_, of):
    return trees.part(g_dot, of)


@reverse(trees.built, wrt="values", alias="maybe", at=[])
def built(g, y, cls, names, *values):
    return trees.unbuilt(g, names)


@forward(trees.built, joint=True)
def built_forward(values_dot, y, cls, names, *values):
    return trees.rebuilt(values_dot, names)


@reverse(trees.unbuilt, wrt="g_", linear=True, at=[])
def unbuilt(g, y, g_, names):
    return trees.rebuilt(g, names)


@reverse(trees.rebuilt, wrt="g_", linear=True, at=[])
def rebuilt(g, y, g_, names):
    return trees.unbuilt(g, names)


@reverse(copying.deepcopy, linear=True, at=[[1.0, 2.0], np.array([1.0, 2.0])])
def deepcopy(g, y, x, memo=None):
    return trees.copy(g)


@forward(copying.deepcopy)
def deepcopy_forward(x_dot, y, x, memo=None):
    return copying.deepcopy(x_dot)


@reverse(trees.as_list, linear=True, alias="maybe", shape="list", at=[])
def as_list(g, y, x):
    return g


@reverse(trees.transposed, alias="maybe", shape="list", at=[])
def transposed(g, y, rows, strict=False):
    return trees.untransposed(g, rows)


@forward(trees.transposed)
def transposed_forward(rows_dot, y, rows, strict=False):
    return trees.transposed(rows_dot)


@reverse(trees.untransposed, wrt="g_", linear=True, at=[])
def untransposed(g, y, g_, rows):
    return trees.transposed(g)


@reverse(trees.held, alias="maybe", at=[])
def held(g, y, x, name):
    return {name: g}


@forward(trees.held)
def held_forward(x_dot, y, x, name):
    return tangents.get_attribute(x_dot, x, name)


@reverse(trees.get_attribute, wrt="g_", at=[])
def get_attribute(g, y, g_, x, name):
    return trees.with_attribute(g_, x, name, g)


@forward(trees.get_attribute)
def get_attribute_forward(g_dot, y, g_, x, name):
    return trees.get_attribute(g_dot, x, name)


@reverse(trees.unrepeat_list, wrt="g_", at=[])
def unrepeat_list(g, y, g_, xs):
    return trees.zeros_like(xs) if trees.is_zero(g) else g * (len(g_) // max(1, len(xs)))


@forward(trees.unrepeat_list)
def unrepeat_list_forward(g_dot, y, g_, xs):
    return trees.unrepeat_list(g_dot, xs)


@reverse(trees.sort_array, at=[[3.0, 1.0, 2.0]])
def sort_array(g, y, x, axis=-1, kind=None):
    return np.take_along_axis(g, np.argsort(np.argsort(x, axis=axis, kind="stable"), axis=axis), axis=axis)


@forward(trees.sort_array)
def sort_array_forward(x_dot, y, x, axis=-1, kind=None):
    return np.take_along_axis(x_dot, np.argsort(x, axis=axis, kind="stable"), axis=axis)


@reverse(builtins.sorted, alias="elements", at=[((3.0, 1.0, 2.0),)])
def sorted_(g, y, iterable, *, key=None, reverse=False):
    return trees.unsorted(g, iterable, key, reverse)


@forward(builtins.sorted)
def sorted_forward(x_dot, y, iterable, *, key=None, reverse=False):
    return trees.in_order(x_dot, iterable, key, reverse)


@reverse(trees.unsorted, alias="elements", wrt="g_", at=[])
def unsorted(g, y, g_, xs, key=None, reverse=False):
    return trees.in_order(g, xs, key, reverse)


@forward(trees.unsorted)
def unsorted_forward(g_dot, y, g_, xs, key=None, reverse=False):
    return trees.unsorted(g_dot, xs, key, reverse)


@reverse(trees.in_order, alias="elements", at=[])
def in_order(g, y, x_dot, xs, key=None, reverse=False):
    return trees.unsorted(g, xs, key, reverse)


@forward(trees.in_order)
def in_order_forward(x_dot_dot, y, x_dot, xs, key=None, reverse=False):
    return trees.in_order(x_dot_dot, xs, key, reverse)


@reverse(trees.new_partial, wrt=("func", "args", "keywords"), at=[])
def new_partial(g, y, func, args, keywords):
    return (
        trees.get_attribute(g, y, "func"),
        trees.get_attribute(g, y, "args"),
        trees.get_attribute(g, y, "keywords"),
    )


@forward(trees.new_partial)
def new_partial_forward(func_dot, args_dot, keywords_dot, y, func, args, keywords):
    return {"func": func_dot}, {"args": args_dot}, {"keywords": keywords_dot}
