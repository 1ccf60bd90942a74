"""What rules for functions that take functions need: the derivative of a callback, whatever it is.

The dispatcher differentiates the callback when it is met. The cotangent of a function is that of the
variables that it has captured, so that an integrand or an equation may use differentiated values of its
surroundings.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from srcgrad.runtime import dispatch, trees
from srcgrad.runtime.support import unbroadcast


def pullback(function, args, g):
    """(cotangent of the function, cotangents of the arguments) for the cotangent `g` of `function(*args)`."""
    _, saved = dispatch.forward(function, args)
    found = dispatch.reverse(saved, g)
    return found[0], found[1]


def pushforward(function, args, function_dot, args_dot):
    """The tangent of `function(*args)`; a tangent of 0.0 stands for a constant."""
    dots = tuple([None if nothing(t) else t for t in args_dot])
    moved = None if nothing(function_dot) else function_dot
    return dispatch.jvp(function, args, {}, moved, dots, {})[1]


def nothing(t):
    """Is a tangent that of a constant, or of several?"""
    return trees.is_zero(t) or (isinstance(t, (list, tuple)) and all(map(nothing, t)))


def pulled(function, args, g, count):
    """The cotangents of the first `count` of the arguments of `function`."""
    return tuple(matched(pullback(function, args, g)[1][:count], args[:count]))


def pushed(function, args, dots):
    """The tangent of `function(*args)`, where `dots` are those of the first arguments."""
    return pushforward(function, args, 0.0, tuple(dots) + (0.0,) * (len(args) - len(dots)))


def kept(g, names):
    """The parts of the cotangent of an object."""
    return [part_of(g, name) for name in names]


def flat(tree, like):
    """The numbers in a cotangent, as a vector; `like` is one of the same structure, without holes."""
    if isinstance(like, dict):
        return np.concatenate([np.zeros(0), *(flat(part_of(tree, k), v) for k, v in like.items())])
    if isinstance(like, (list, tuple)):
        return np.concatenate([np.zeros(0), *(flat(part_of(tree, i), v) for i, v in enumerate(like))])
    if like is None:
        return np.zeros(0)
    trees.known(tree)
    return (
        np.zeros(np.size(like)) if tree is None or trees.is_zero(tree) else np.ravel(np.asarray(tree, float))
    )


def part_of(tree, key):
    if tree is None or trees.is_zero(tree):
        return 0.0
    return tree.get(key, 0.0) if isinstance(tree, dict) else tree[key]


def unflat(vector, like):
    """The inverse of `flat`."""
    if isinstance(like, dict):
        found = {}
        for k, v in like.items():
            found[k] = unflat(vector[: size(v)], v)
            vector = vector[size(v) :]
        return found
    if isinstance(like, (list, tuple)):
        parts = []
        for v in like:
            parts.append(unflat(vector[: size(v)], v))
            vector = vector[size(v) :]
        return parts
    if like is None:
        return None
    return np.reshape(vector, np.shape(like)) if np.ndim(like) else vector[0]


def matched(bars, args):
    """The cotangents of arguments in their shapes and dtypes."""
    return [matched_to(bars[i], args[i]) for i in range(len(args))]


def matched_to(bar, x):
    return unbroadcast(dense(bar, x), x) if np.ndim(x) else bar


def size(like):
    return len(flat(0.0, like))


def rows(function, args, y):
    """The Jacobian matrix of a vector function for its first argument."""
    basis = np.eye(np.size(y))
    found = [
        np.ravel(dense(pullback(function, args, np.reshape(e, np.shape(y)))[1][0], args[0])) for e in basis
    ]
    return np.stack(found)


def dense(g, x):
    """A cotangent with the zeros written out."""
    return np.zeros(np.shape(x)) if trees.is_zero(g) else g
