"""NumPy's functions that write into their argument, and what they write, as functions that return it.

A derivative can't follow a write that happens inside NumPy: compiled code calls the function given here, and
stores its result.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime.rules.table import stores


@stores(np.put, np.ndarray.put)
def put_values(a, ind, v, mode="raise"):
    """`a` with values in the places `ind` of its elements in order; they repeat if there are too few."""
    flat = np.ravel(a).copy()
    places = np.ravel(ind)
    if mode == "wrap":
        places = places % flat.shape[0]
    elif mode == "clip":
        places = np.clip(places, 0, flat.shape[0] - 1)
    flat[places] = repeated(v, places.shape)
    return np.reshape(flat, np.shape(a))


def repeated(v, shape):
    """A scalar, or values that repeat, in a given shape."""
    return v if np.ndim(v) == 0 else np.resize(v, shape)


@stores(np.place)
def place_values(arr, mask, vals):
    """`arr` with the values in turn where the mask says so."""
    flat = np.ravel(arr).copy()
    places = np.flatnonzero(mask)
    flat[places] = repeated(vals, places.shape)
    return np.reshape(flat, np.shape(arr))


@stores(np.putmask)
def mask_values(a, mask, values):
    """`a` with the values at the same places where the mask says so."""
    return np.where(mask, repeated(values, np.shape(a)), a)


@stores(np.put_along_axis)
def put_values_along_axis(arr, indices, values, axis):
    """`arr` with values at indices along an axis, which match its other axes."""
    if axis is None:
        flat = np.ravel(arr).copy()
        flat[indices] = values
        return np.reshape(flat, np.shape(arr))
    moved = np.array(np.moveaxis(arr, axis, 0))
    places = np.moveaxis(indices, axis, 0)
    wide = np.broadcast_to(values, np.broadcast_shapes(np.shape(values), np.shape(indices)))
    index = list(np.indices(np.shape(places), sparse=True))
    index[0] = places
    moved[tuple(index)] = np.moveaxis(wide, axis, 0)
    return np.moveaxis(moved, 0, axis)


@stores(np.fill_diagonal)
def fill_diagonal_values(a, val, wrap=False):
    """`a` with a value, or values in turn, on its diagonal."""
    flat = np.ravel(a).copy()
    step = a.shape[1] + 1 if a.ndim == 2 else 1 + int(np.sum(np.cumprod(a.shape[:-1])))
    end = a.shape[1] * a.shape[1] if a.ndim == 2 and not wrap else flat.shape[0]
    places = np.arange(0, min(end, flat.shape[0]), step)
    flat[places] = repeated(val, places.shape)
    return np.reshape(flat, a.shape)


@stores(np.ndarray.partition)
def partition_values(a, kth, axis=-1):
    """`a` partitioned around the places `kth`."""
    return np.partition(a, kth, axis)
