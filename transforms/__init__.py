"""The compiler, floor 2: from a Python function to the source of its derivative.

The intermediate representation is Python itself, as gast trees. `PASSES` lists the passes in the order in
which they run; each is one file of this folder, whose docstring tells what holds before it and what holds
after it. Every pass takes a function that could be run and leaves one that can be: up to `normalize` it
computes what the user's function computes, from `reverse` or `forward` on it computes the derivative.

The analyses change nothing and may be asked again: `facts` runs before `normalize`, which needs it, and
once more after it. `reverse` and `forward` are alternatives; a Hessian uses both, one on what the other has
emitted.

Beside the passes stand `compile` (the driver: one function, its callees, and the forms in which a
derivative is emitted), `build` (what the front door asks of the driver), `tangent` (the same for forward
mode), `traceback` (the user's own lines in errors), and `tree/` (what passes share: builders, names,
scopes, liveness, inlining, and `verify`, which checks what each pass promises to leave behind). Importing
this module loads none of them.

>>> [p.name for p in PASSES if p.rewrites]
['read', 'desugar', 'normalize', 'reverse', 'forward', 'recording', 'simplify']
"""

from __future__ import annotations

from typing import NamedTuple


class Pass(NamedTuple):
    name: str
    rewrites: bool
    """Does it make a new tree? The others look at it, or print it."""
    why_here: str

    @property
    def module(self) -> str:
        return f"srcgrad.transforms.{self.name}"


PASSES = (
    Pass("read", True, "Every later pass works on a tree that is sure to be the function's."),
    Pass("check", False, "What nothing can differentiate is refused before any work is done."),
    Pass("desugar", True, "Every later pass sees one form of each thing."),
    Pass("resolve", False, "All that follows asks it which derivative an operation has."),
    Pass("facts", False, "Normalizing asks whether a value is an array, a list or a number."),
    Pass("normalize", True, "The analyses may ask which operation made a name, and get one answer."),
    Pass("activity", False, "What carries no derivative needs no care in what follows."),
    Pass(
        "aliases",
        False,
        "Writes that one value per name would get wrong are refused before they are reversed.",
    ),
    Pass("reverse", True, "Knows by now each name's activity and each operation's rule."),
    Pass("forward", True, "In place of `reverse`, where tangents are asked for."),
    Pass("recording", True, "Only now is it known which values the reverse sweep reads."),
    Pass("simplify", True, "Sees the whole program, and needs to know nothing of derivatives."),
    Pass("write", False, "Text is what the user reads; no pass ever looks at it."),
    Pass("load", False, "Gives the text the user's own globals and closure cells."),
)
