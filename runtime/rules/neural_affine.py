"""The affine map `input + a @ b`, which PyTorch's Linear computes in one operation."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import forward, reverse
from srcgrad.runtime.support import unbroadcast


def addmm(input, a, b):
    """`input + a @ b` for matrices `a` and `b`."""
    out = a @ b
    out += input
    return out


@reverse(
    addmm,
    wrt=("input", "a", "b"),
    at=[(generic(4), generic(2, 3), generic(3, 4)), (generic(2, 1), generic(2, 3), generic(3, 4))],
)
def addmm_rule(g, y, input, a, b):
    return unbroadcast(g, input), g @ b.T, a.T @ g


@forward(addmm)
def addmm_forward(input_dot, a_dot, b_dot, y, input, a, b):
    return input_dot + 0 * y, a_dot @ b, a @ b_dot
