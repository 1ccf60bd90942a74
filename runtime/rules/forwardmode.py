"""Rules for what emitted forward-mode code and the transforms call: so that they can be differentiated
again."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime import dispatch, tangents, trees
from srcgrad.runtime.rules.table import forward, nondifferentiable, reverse

nondifferentiable(
    dispatch.tangent_plan_of,
    dispatch.plan_for,
    tangents.zeros_like,
    tangents.buffer,
    tangents.check_sharing,
    tangents.nothing,
    trees.attribute_key,
    trees.zero_list,
)


# What a callee takes before its arguments


@reverse(dispatch.inputs_of, at=[])
def inputs_of(g, y, function, plan):
    return dispatch.inputs_bar(g, function, plan)


@forward(dispatch.inputs_of)
def inputs_of_forward(function_dot, y, function, plan):
    return dispatch.inputs_dot(function_dot, function, plan)


@reverse(dispatch.inputs_bar, wrt="g_", at=[])
def inputs_bar(g, y, g_, function, plan):
    return dispatch.inputs_dot(g, function, plan)


@forward(dispatch.inputs_bar)
def inputs_bar_forward(g_dot, y, g_, function, plan):
    return dispatch.inputs_bar(g_dot, function, plan)


@reverse(dispatch.inputs_dot, wrt="t", at=[])
def inputs_dot(g, y, t, function, plan):
    return dispatch.inputs_bar(g, function, plan)


@forward(dispatch.inputs_dot)
def inputs_dot_forward(t_dot, y, t, function, plan):
    return dispatch.inputs_dot(t_dot, function, plan)


@reverse(dispatch.arrange, wrt="bars", linear=True, at=[])
def arrange(g, y, plan, bars, count):
    return dispatch.unarranged(g, plan, count)


@reverse(dispatch.unarranged, wrt="g_", linear=True, at=[])
def unarranged(g, y, g_, plan, count):
    return dispatch.arrange(plan, g, count)


@reverse(
    trees.added, wrt=("g_", "part"), linear=True, at=[([1.0, 2.0, 3.0], np.array([0, 2, 0]), [1.0, 2.0, 3.0])]
)
def added(g, y, g_, index, part):
    whole = trees.placed(g, g_, index)
    return whole, trees.part(whole[index], part)


# Parts of cotangents


@reverse(trees.buffer_list, wrt="g_", at=[])
def buffer_list(g, y, g_, xs):
    return trees.part(g, g_)


@forward(trees.buffer_list)
def buffer_list_forward(g_dot, y, g_, xs):
    return trees.buffer_list(g_dot, xs)


@reverse(trees.placed, wrt="g_", linear=True, at=[([1.0, 2.0], [0.0, 0.0, 0.0], slice(0, 2))])
def placed(g, y, g_, like_, index):
    return trees.taken(g, index)


@reverse(trees.taken, wrt="g_", linear=True, at=[([1.0, 2.0, 3.0], slice(0, 2))])
def taken(g, y, g_, index):
    return trees.placed(g, g_, index)


@reverse(trees.with_attribute, wrt="g_", linear=True, at=[])
def with_attribute(g, y, like_, x, name, g_):
    return trees.get_attribute(g, x, name)


@reverse(trees.select, wrt="g_", linear=True, at=[])
def select(g, y, g_, x, *later):
    return trees.unselected(g, g_, x, *later)


@reverse(trees.unselected, wrt="g_", linear=True, at=[])
def unselected(g, y, g_, of, x, *later):
    return trees.select(g, x, *later)


@reverse(trees.unless, wrt="g_", linear=True, at=[])
def unless(g, y, g_, key, *later):
    return trees.unselected({key: g}, g_, {key: None}, *later)


@reverse(dispatch.owner, wrt="bar", linear=True, at=[])
def owner(g, y, bar, x, name):
    return dispatch.owned(g, bar, x, name)


@reverse(dispatch.owned, wrt="g_", linear=True, at=[])
def owned(g, y, g_, bar, x, name):
    return dispatch.owner(g, x, name)


# Tangents


@reverse(tangents.filled, at=[])
def filled(g, y, dots, values):
    return g


@forward(tangents.filled)
def filled_forward(dots_dot, y, dots, values):
    return tangents.filled_dot(dots_dot, dots, values)


@reverse(tangents.filled_dot, at=[])
def filled_dot(g, y, dots_dot, dots, values):
    return g


@forward(tangents.filled_dot)
def filled_dot_forward(t, y, dots_dot, dots, values):
    return tangents.filled_dot(t, dots, values)


@reverse(tangents.like, at=[(1.5, 2.0), (np.array([1.0, 2.0]), np.array([3.0, 4.0]))])
def like(g, z, t, y):
    return trees.part(g, t)


@forward(tangents.like)
def like_forward(t_dot, z, t, y):
    return tangents.like(t_dot, y)


@reverse(tangents.given, at=[(1.5, 2.0, "x"), (np.array([1.0, 2.0]), np.array([3.0, 4.0]), "x")])
def given(g, y, t, x, name):
    return trees.part(g, t)


@forward(tangents.given)
def given_forward(t_dot, y, t, x, name):
    return tangents.given(t_dot, x, name)


@reverse(tangents.cotangent, wrt="c", at=[(1.5, 2.0), (np.array([1.0, 2.0]), np.array([3.0, 4.0]))])
def cotangent(g, z, c, y, name="the cotangent", of="result"):
    return trees.part(g, c)


@forward(tangents.cotangent)
def cotangent_forward(c_dot, z, c, y, name="the cotangent", of="result"):
    return tangents.cotangent(c_dot, y, name, of)


@reverse(tangents.get_attribute, at=[])
def get_attribute(g, y, t, x, name):
    return trees.with_attribute(trees.zeros_like(t), x, name, g)


@forward(tangents.get_attribute)
def get_attribute_forward(t_dot, y, t, x, name):
    return tangents.get_attribute(t_dot, x, name)


@reverse(tangents.listed, at=[((1.0, 2.0), (3.0, 4.0))])
def listed(g, y, t, x):
    return trees.match(g, t)


@forward(tangents.listed)
def listed_forward(t_dot, y, t, x):
    return tangents.listed(t_dot, x)


# The numbers in a structure


@reverse(tangents.leaves, alias="maybe", at=[])
def leaves(g, y, x):
    return tangents.regrown_bar(x, g)


@forward(tangents.leaves)
def leaves_forward(x_dot, y, x):
    return tangents.leaves_of(x_dot, x)


@reverse(tangents.leaves_of, alias="maybe", at=[])
def leaves_of(g, y, t, x):
    return tangents.regrown_bar(x, g)


@forward(tangents.leaves_of)
def leaves_of_forward(t_dot, y, t, x):
    return tangents.leaves_of(t_dot, x)


@reverse(tangents.rebuilt, wrt="values", alias="maybe", at=[])
def rebuilt(g, y, x, values):
    return tangents.leaves_of(g, x)


@forward(tangents.rebuilt)
def rebuilt_forward(values_dot, y, x, values):
    return tangents.regrown(x, values_dot)


@reverse(tangents.regrown, wrt="values", alias="maybe", at=[])
def regrown(g, y, x, values):
    return tangents.leaves_of(g, x)


@forward(tangents.regrown)
def regrown_forward(values_dot, y, x, values):
    return tangents.regrown(x, values_dot)


@reverse(tangents.regrown_bar, wrt="values", alias="maybe", at=[])
def regrown_bar(g, y, x, values):
    return tangents.leaves_of(g, x)


@forward(tangents.regrown_bar)
def regrown_bar_forward(values_dot, y, x, values):
    return tangents.regrown_bar(x, values_dot)


from srcgrad.runtime.rules import kinds  # noqa: E402

kinds.tag_all()
