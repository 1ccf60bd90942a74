"""Rules for the support functions, so that derivatives can be differentiated again without looking into
them."""

# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

from srcgrad.runtime import support
from srcgrad.runtime.rules.inputs import generic
from srcgrad.runtime.rules.table import reverse
from srcgrad.runtime.support import unbroadcast

X = generic(3)
M = generic(2, 3)


@reverse(support.unbroadcast, linear=True, alias="maybe", at=[(M, X), (M, M), (M, 1.0), (2.0, X), (2.0, 1.0)])
def unbroadcast_(gg, y, g, x):
    return unbroadcast(gg, g)
