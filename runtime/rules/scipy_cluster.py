"""Rules for `scipy.cluster.vq`."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
from scipy.cluster import vq

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import forward, reverse
from srcgrad.runtime.support import ratio


def apart(y, obs, code_book):
    """The unit vectors from each observation's code to the observation."""
    return ratio(obs - code_book[y[0]], y[1][:, None])


@reverse(vq.vq, wrt=("obs", "code_book"), at=[(generic(5, 2), generic(3, 2, seed=1))])
def vq_(g, y, obs, code_book):
    """The codes are constant, the distances Euclidean; at an observation that is a code the slope is 0."""
    moved = g[1][:, None] * apart(y, obs, code_book)
    chosen = np.equal(y[0][None, :], np.arange(len(code_book))[:, None]).astype(moved.dtype)
    return moved, -chosen @ moved


@forward(vq.vq)
def vq_forward(obs_dot, code_book_dot, y, obs, code_book):
    unit = apart(y, obs, code_book)
    return (0.0, np.sum(obs_dot * unit, axis=1)), (0.0, -np.sum(code_book_dot[y[0]] * unit, axis=1))
