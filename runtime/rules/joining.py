"""Rules for joining, splitting and padding (NumPy manual, "Joining arrays", "Splitting arrays",
`numpy.pad`)."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.arrays import beside
from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import case, forward, indexed, reverse
from srcgrad.runtime.support import scatter, split_like, ties, unblock, unbroadcast, unpad, unstack

X = generic(3)
M = generic(2, 3)
T = generic(2, 3, 4)
PAIR = (M, generic(2, 3, seed=1))


@reverse(
    np.concatenate, linear=True, at=[((X, X[:2]),), (PAIR, 1), case(PAIR, axis=-1), (PAIR, None), ((M,), 0)]
)
def concatenate(g, y, arrays, axis=0):
    return split_like(g, arrays, axis)


@reverse(np.stack, linear=True, at=[((X, X),), (PAIR, 1), case(PAIR, axis=-1), ((1.0, 2.5),)])
def stack(g, y, arrays, axis=0):
    if axis == 0:
        return unstack(g, arrays)
    return unstack(np.moveaxis(g, axis, 0), arrays)


@reverse(
    np.vstack,
    *[f for f in [vars(np).get("row_stack")] if f],
    linear=True,
    at=[((X, M),), (PAIR,), ((1.0, 2.5),), ((T, T[:1]),)],
)
def vstack(g, y, tup):
    return split_like(g, tup, 0, 2)


@reverse(np.hstack, linear=True, at=[((X, X[:2]),), (PAIR,), ((1.0, 2.5, X),), ((T, T[:, :1]),)])
def hstack(g, y, tup):
    return split_like(g, tup, 1 if g.ndim > 1 else 0, 1)


@reverse(np.dstack, linear=True, at=[((X, X),), (PAIR,), ((T, T[:, :, :1]),)])
def dstack(g, y, tup):
    return split_like(g, tup, 2, 3)


@reverse(np.column_stack, linear=True, at=[((X, generic(3, 2)),), ((X, X),)])
def column_stack(g, y, tup):
    return split_like(g, tup, 1, -2)


@reverse(
    np.append,
    wrt=("arr", "values"),
    linear=True,
    at=[(X, 2.5), (X, M), (M, X[None], 0), case(M, M[:, :1], axis=1)],
)
def append(g, y, arr, values, axis=None):
    return split_like(g, [arr, values], axis)[0], split_like(g, [arr, values], axis)[1]


@reverse(
    np.block, linear=True, at=[((1.0, 2.0),), (((M, M[:, :1]), (generic(1, 4),)),), ((X, X),), (((1.5, X),),)]
)
def block(g, y, arrays):
    return unblock(g, arrays)


@reverse(
    np.split,
    np.array_split,
    alias="view",
    linear=True,
    at=[(generic(4), 2), (generic(5), (2,)), case(M, 3, axis=1)],
)
def split(g, y, ary, indices_or_sections, axis=0):
    return np.concatenate(g, axis)


@reverse(np.hsplit, alias="view", linear=True, at=[(generic(4), 2), (M, 3)])
def hsplit(g, y, ary, indices_or_sections):
    return np.concatenate(g, 1 if np.ndim(ary) > 1 else 0)


@reverse(np.vsplit, alias="view", linear=True, at=[(M, 2)])
def vsplit(g, y, ary, indices_or_sections):
    return np.concatenate(g, 0)


@reverse(np.dsplit, alias="view", linear=True, at=[(T, 2)])
def dsplit(g, y, ary, indices_or_sections):
    return np.concatenate(g, 2)


@reverse(np.unstack, alias="view", linear=True, at=[M, case(M, axis=1), X])
def unstack_(g, y, x, *, axis=0):
    return unbroadcast(np.stack(g, axis), x)


# --- padding ------------------------------------------------------------------------------------------------

COPYING = ("edge", "reflect", "symmetric", "wrap")
"""Modes that fill the border with copies of elements."""


@reverse(
    np.pad,
    wrt=("array", "constant_values", "end_values"),
    at=[
        *[(X, 2), (M, (1, 2)), (M, ((1, 0), (0, 2))), case(X, 2, constant_values=1.5), (M, {-1: (1, 2)})],
        *[case(M, 1, constant_values=[[1.0, 2.0], [3.0, 4.0]]), case(M, 2, constant_values=[0.5, 1.5])],
        *[case(M, 2, mode="edge"), case(M, ((1, 1), (2, 2)), mode="reflect"), case(M, 4, mode="symmetric")],
        *[case(M, 4, mode="reflect"), case(M, ((1, 5), (7, 0)), mode="wrap"), case(X, 5, mode="reflect")],
        *[case(X, 2, mode=mode) for mode in ("linear_ramp", "mean", "maximum", "minimum", "median")],
        *[case(M, (1, 2), mode=mode) for mode in ("linear_ramp", "mean", "maximum", "minimum", "median")],
        *[case(T, 1, mode="mean", stat_length=2), case(M, 1, mode="maximum", stat_length=((1, 2), (2, 3)))],
        *[
            case(M, (2, 1), mode="linear_ramp", end_values=0.7),
            case(X, 2, mode="reflect", reflect_type="odd"),
        ],
        *[
            case(M, 1, mode="linear_ramp", end_values=[[1.0, 2.0]]),
            case(M, 1, mode="symmetric", reflect_type="odd"),
        ],
    ],
)
def pad(
    g,
    y,
    array,
    pad_width,
    mode="constant",
    *,
    constant_values=0,
    end_values=0,
    stat_length=None,
    reflect_type="even",
):
    return (
        pad_back(g, y, array, pad_width, mode, stat_length, reflect_type),
        pad_end(g, y, array, pad_width, mode, stat_length, constant_values, "constant"),
        pad_end(g, y, array, pad_width, mode, stat_length, end_values, "linear_ramp"),
    )


@forward(np.pad)
def pad_forward(
    array_dot,
    constant_values_dot,
    end_values_dot,
    y,
    array,
    pad_width,
    mode="constant",
    *,
    constant_values=0,
    end_values=0,
    stat_length=None,
    reflect_type="even",
):
    return (
        pad_along(array_dot, y, array, pad_width, mode, stat_length, reflect_type),
        pad_along_end(constant_values_dot, array, pad_width, mode, "constant"),
        pad_along_end(end_values_dot, array, pad_width, mode, "linear_ramp"),
    )


# Each of these is linear in its first argument, and the transpose of its neighbour.


def pad_back(g, y, array, pad_width, mode, stat_length, reflect_type):
    """The cotangent of the array."""
    if mode == "constant" or (mode in COPYING and reflect_type == "even"):
        return unpad(g, array, pad_width, mode)
    return pad_adjoint(g, y, array, pad_width, mode, stat_length)[0]


def pad_along(array_dot, y, array, pad_width, mode, stat_length, reflect_type):
    """The tangent along that of the array."""
    if mode in ("constant", "linear_ramp", "edge", "wrap", "empty"):
        return np.pad(array_dot, pad_width, mode)
    if mode in COPYING:
        return np.pad(array_dot, pad_width, mode, reflect_type=reflect_type)
    return pad_tangent(array_dot, y, array, pad_width, mode, stat_length)


def pad_end(g, y, array, pad_width, mode, stat_length, values, belongs):
    """The cotangent of the values at the ends, which belong to one mode."""
    if mode != belongs:
        return np.zeros_like(values)
    return unbroadcast(pad_adjoint(g, y, array, pad_width, mode, stat_length)[1], values)


def pad_along_end(values_dot, array, pad_width, mode, belongs):
    """The tangent along that of the values at the ends."""
    zero = np.zeros_like(array)
    if mode != belongs:
        return np.pad(zero, pad_width)
    if mode == "constant":
        return np.pad(zero, pad_width, constant_values=values_dot)
    return np.pad(zero, pad_width, mode, end_values=values_dot)


PADDED = np.pad(M, 1, "mean")


@reverse(pad_back, linear=True, at=[(generic(4, 5), PADDED, M, 1, "mean", None, "even")])
def pad_back_(gg, z, g, y, array, pad_width, mode, stat_length, reflect_type):
    return pad_along(gg, y, array, pad_width, mode, stat_length, reflect_type)


@reverse(pad_along, linear=True, at=[(M, PADDED, M, 1, "mean", None, "even")])
def pad_along_(g, z, array_dot, y, array, pad_width, mode, stat_length, reflect_type):
    return pad_back(g, y, array, pad_width, mode, stat_length, reflect_type)


@reverse(
    pad_end, linear=True, at=[(generic(5), np.pad(X[:3], 1), X[:3], 1, "constant", None, 0.5, "constant")]
)
def pad_end_(gg, z, g, y, array, pad_width, mode, stat_length, values, belongs):
    return pad_along_end(gg, array, pad_width, mode, belongs)


@reverse(pad_along_end, linear=True, at=[(0.5, X[:3], 1, "constant", "constant")])
def pad_along_end_(g, z, values_dot, array, pad_width, mode, belongs):
    return pad_end(g, z, array, pad_width, mode, None, values_dot, belongs)


def pad_steps(y, array, pad_width, stat_length):
    """For each axis the array as it stands before it is padded, with that axis in front, and its widths.

    `np.pad` fills the border axis by axis; an axis finds the earlier ones padded and the later ones not. Also
    given are the numbers of elements at both ends that the statistics of the axis are made of.
    """
    rank, shape = np.ndim(array), np.shape(array)
    widths = pad_pairs(pad_width, rank)
    lengths = [(n, n) for n in shape] if stat_length is None else pad_pairs(stat_length, rank)
    steps = []
    for axis in range(rank):
        later = [
            slice(before, before + n) for (before, _), n in zip(widths[axis:], shape[axis:], strict=True)
        ]
        core = np.moveaxis(y[(*[slice(None)] * axis, *later)], axis, 0)
        steps.append((axis, core, widths[axis], [min(k, shape[axis]) for k in lengths[axis]]))
    return steps


def pad_pairs(given, rank):
    """Widths as `np.pad` takes them, as one pair for each axis."""
    if isinstance(given, dict):
        pairs = [given.get(i, given.get(i - rank, 0)) for i in range(rank)]
        return [(p, p) if isinstance(p, int) else tuple(p) for p in pairs]
    return [tuple(p) for p in np.broadcast_to(given, (rank, 2)).tolist()]


def statistic_weights(part, mode):
    """The weights along the first axis with which the elements of `part` make the value that pads them."""
    if mode == "mean":
        return np.full_like(part, 1 / len(part))
    if mode == "median":
        rank = np.argsort(np.argsort(part, axis=0, kind="stable"), axis=0, kind="stable")
        weights = np.maximum(0.0, 1 - np.abs(rank - (len(part) - 1) / 2))
        return (weights / np.sum(weights, axis=0)).astype(part.dtype)
    return ties(np.max(part, axis=0) if mode == "maximum" else np.min(part, axis=0), part, 0)


def pad_adjoint(g, y, array, pad_width, mode, stat_length):
    """The cotangents of the array and of the values at the ends, a pair for each axis."""
    ends = []
    for axis, core, (before, after), (head, tail) in reversed(pad_steps(y, array, pad_width, stat_length)):
        g, n = np.moveaxis(g, axis, 0), len(core)
        first, middle, last = g[:before], g[before : before + n] + 0, g[before + n :]
        if mode == "constant":
            ends.insert(0, np.stack([np.sum(first), np.sum(last)]))
        elif mode == "linear_ramp":
            up, down = ramp(before, g), np.flip(ramp(after, g), 0)
            ends.insert(0, np.stack([np.sum(first * (1 - up)), np.sum(last * (1 - down))]))
            middle[0] += np.sum(first * up, axis=0)
            middle[-1] += np.sum(last * down, axis=0)
        elif mode in COPYING:  # with reflect_type="odd", which is linear too
            rows = [
                np.pad(row, (before, after), mode, reflect_type="odd") for row in np.eye(n, dtype=core.dtype)
            ]
            middle = np.tensordot(beside(np.stack(rows), g), g, (1, 0))
        elif mode != "empty":
            middle[:head] += statistic_weights(core[:head], mode) * np.sum(first, axis=0)
            middle[n - tail :] += statistic_weights(core[n - tail :], mode) * np.sum(last, axis=0)
        g = np.moveaxis(middle, 0, axis)
    return unbroadcast(g, array), np.stack(ends) if ends else None


def ramp(n, like):
    """The steps from 0 up to 1, without 1, along the first axis."""
    steps = np.reshape(np.arange(n) / max(n, 1), (-1,) + (1,) * (like.ndim - 1)).astype(like.dtype)
    return beside(steps, like)


def pad_tangent(array_dot, y, array, pad_width, mode, stat_length):
    moved = array_dot
    for axis, core, (before, after), (head, tail) in pad_steps(y, array, pad_width, stat_length):
        moved = np.moveaxis(moved, axis, 0)
        start = len(core) - tail
        first = np.sum(statistic_weights(core[:head], mode) * moved[:head], axis=0, keepdims=True)
        last = np.sum(statistic_weights(core[start:], mode) * moved[start:], axis=0, keepdims=True)
        moved = np.concatenate([np.repeat(first, before, 0), moved, np.repeat(last, after, 0)])
        moved = np.moveaxis(moved, 0, axis)
    return moved


# --- adding and removing elements ---------------------------------------------------------------------------

TWO = np.array([0, 2])


@reverse(
    np.insert,
    wrt=("arr", "values"),
    linear=True,
    at=[
        *[(X, 1, 0.5), (M, 1, generic(3), 0), (M, 1, 0.5, 1), (M, 1, 2.5), (X, TWO, generic(2))],
        *[(M, TWO, generic(2, 2), 1), (M, 1, generic(2), 1), (X, slice(0, 2), 0.5), (X, -1, generic(2))],
    ],
)
def insert(g, y, arr, obj, values, axis=None):
    if axis is None:
        parts = insert_parts(g, np.ravel(arr), obj, values, 0)
        return np.reshape(parts[0], np.shape(arr)), parts[1]
    parts = insert_parts(g, arr, obj, values, axis)
    return parts[0], parts[1]


def insert_parts(g, arr, obj, values, axis):
    """What of `g` belongs to the array and what to the values put in."""
    added = np.shape(g)[axis] - np.shape(arr)[axis]
    place = np.insert(np.arange(np.shape(arr)[axis]), obj, [-1] * added)
    new = np.compress(place < 0, g, axis)
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        new = np.moveaxis(new, axis, 0)
    return unbroadcast(np.compress(place >= 0, g, axis), arr), unbroadcast(new, values)


@reverse(
    np.delete,
    linear=True,
    at=[
        *[(X, 1), (M, 0, 0), (M, TWO, 1), case(M, slice(0, 2), axis=1), (M, -1)],
        *[(X, np.array([True, False, False]))],
    ],
)
def delete(g, y, arr, obj, axis=None):
    if axis is None:
        kept = np.delete(np.arange(np.size(arr)), obj)
        return np.reshape(scatter(g, np.ravel(arr), kept), np.shape(arr))
    kept = np.delete(np.arange(np.shape(arr)[axis]), obj)
    return scatter(g, arr, (slice(None),) * (axis % np.ndim(arr)) + (kept,))


@reverse(np.resize, linear=True, at=[(X, (2, 4)), (M, 4), (M, (3, 3)), (1.5, 3)])
def resize(g, y, a, new_shape):
    """The elements of `a` again and again."""
    places = np.arange(np.size(g)) % np.size(a)
    return unbroadcast(np.reshape(scatter(np.ravel(g), np.ravel(a), places), np.shape(a)), a)


@reverse(np.trim_zeros, linear=True, alias="maybe", at=[X])
def trim_zeros(g, y, filt, trim="fb"):
    first = np.flatnonzero(filt)[0] if "f" in trim.lower() and np.size(g) else 0
    return scatter(g, filt, slice(first, first + np.size(g)))


@reverse(
    np.lib.stride_tricks.as_strided,
    linear=True,
    alias="view",
    at=[(generic(7), (3, 3), (8, 8)), (M, (3, 2), (8, 24)), (generic(5),)],
)
def as_strided(g, y, x, shape=None, strides=None):
    """The elements of a contiguous `x` that a strided view shows, perhaps many times."""
    if not x.flags.c_contiguous:
        raise NotImplementedError("the derivative of as_strided for an array that is not contiguous")
    steps = [step // x.itemsize * 8 for step in (x.strides if strides is None else strides)]
    places = np.reshape(np.arange(x.size, dtype=np.int64), x.shape)
    places = np.lib.stride_tricks.as_strided(places, x.shape if shape is None else shape, steps)
    return np.reshape(scatter(g, np.ravel(x), places), x.shape)


# np.r_ and np.c_


@indexed(np.r_)
def joined(*parts):
    """`np.r_[parts]`."""
    return np.r_[parts]


@reverse(joined, at=[(X, 0.7, X), (X, 1.5, 0.5), (M, M[:1])])
def joined_rule(g, y, *parts):
    return joined_parts(g, parts, 0)


@forward(joined)
def joined_forward(parts_dot, y, *parts):
    return unbroadcast(np.r_[moved_parts(parts_dot, parts)], y)


@indexed(np.c_)
def joined_columns(*parts):
    """`np.c_[parts]`."""
    return np.c_[parts]


@reverse(joined_columns, at=[(X, X), (M, M[:, :1])])
def joined_columns_rule(g, y, *parts):
    return joined_parts(g, parts, -1)


@forward(joined_columns)
def joined_columns_forward(parts_dot, y, *parts):
    return unbroadcast(np.c_[moved_parts(parts_dot, parts)], y)


def moved_parts(dots, parts):
    """The tangents of the parts; a range has none."""
    return tuple([moved_part(dots[i], parts[i]) for i in range(len(parts))])


def moved_part(dot, p):
    return np.zeros(np.r_[p].shape) if isinstance(p, slice) else dot + np.zeros(np.shape(p))


def joined_parts(g, parts, axis):
    """The cotangents of arrays, numbers and ranges that were joined along an axis."""
    wholes = [np.r_[p] if axis == 0 else np.c_[p] for p in parts]
    found = np.split(g, np.cumsum([whole.shape[axis] for whole in wholes])[:-1], axis=axis)
    return [part_like(found[i], parts[i]) for i in range(len(parts))]


def part_like(c, p):
    if isinstance(p, slice):
        return 0.0
    return unbroadcast(np.reshape(c, np.shape(p)) if np.ndim(p) else np.sum(c), p)
