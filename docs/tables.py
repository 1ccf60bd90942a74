"""Writes the tables of functions and conventions, from the rule table.

python docs/tables.py    # writes docs/functions.md and the table in docs/conventions.md
"""

from __future__ import annotations

import importlib
import re
import types
from pathlib import Path
from typing import Any

import numpy as np

import srcgrad.transforms.build  # noqa: F401  (with it come the last rules)
from srcgrad.runtime.rules import conventions
from srcgrad.runtime.rules.table import Rule, rules

FUNCTIONS = Path(__file__).with_name("functions.md")
CONVENTIONS = Path(__file__).with_name("conventions.md")
TABLE = re.compile(r"\| function \| at \|.*?\n\n", re.DOTALL)
MODULES = (
    *("builtins", "operator", "math", "functools"),
    *("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.lib.stride_tricks", "numpy.lib.scimath"),
    *(
        f"numpy.polynomial{m}"
        for m in ("", ".polynomial", ".chebyshev", ".legendre", ".hermite", ".hermite_e", ".laguerre")
    ),
    *(f"scipy.{m}" for m in ("special", "stats", "linalg", "fft", "signal", "signal.windows", "ndimage")),
    *("scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.cluster.vq"),
    *("scipy.sparse", "scipy.sparse.linalg", "scipy.spatial.distance", "scipy.spatial.transform"),
)
PLACES = (*MODULES, "Generator", "RandomState", "ndarray")
HEAD = """# Functions with a derivative

This page is made from the rule table (`python docs/tables.py`; NumPy {numpy}, SciPy {scipy}).

Every function in it has a derivative in both modes, forward and reverse. What else a program calls must be
Python code that srcgrad can read, or a function with [a rule of your own](teach.md). SciPy's distributions
are listed with the methods that have derivatives.

"Constant" functions are evaluated, and their result has no derivative.
"""


def named() -> dict[Any, list[str]]:
    """The public names of every function with a rule."""
    found: dict[Any, list[str]] = {}

    def add(value: Any, shown: str) -> None:
        try:
            names = found.setdefault(value, [])
        except TypeError:  # unhashable
            return
        if shown not in names:
            names.append(shown)

    for m in MODULES:
        module = importlib.import_module(m)
        for n in sorted(dir(module)):
            if not n.startswith("_"):
                add(getattr(module, n), f"{m}.{n}")
    for owner in (np.ndarray, np.generic, np.random.Generator, np.random.RandomState):
        for n in sorted(vars(owner)):
            add(vars(owner)[n], f"{owner.__name__}.{n}")
    return found


def title(function: Any, names: dict[Any, list[str]]) -> list[str]:
    """The names under which a page shows a function; none for what only emitted code calls."""
    if str(getattr(function, "__module__", "")).startswith("srcgrad"):
        return []
    if function in names:
        return names[function]
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        kept = names.get(owner) or [getattr(owner, "__name__", type(owner).__name__)]
        return [f"{kept[0]}.{function.__name__}"]
    owner = getattr(function, "__objclass__", None)
    if owner is not None:
        return [f"{owner.__name__}.{function.__name__}"]
    module = str(getattr(function, "__module__", "")).split("._")[0]
    return [f"{module}.{getattr(function, '__qualname__', getattr(function, '__name__', function))}"]


def section(shown: str) -> str:
    """The heading under which a function stands: its module, or its class."""
    known = [m for m in MODULES if shown.startswith(m + ".")]
    if known:
        return max(known, key=len)
    return shown.rpartition(".")[0]


def page() -> str:
    importlib.import_module("scipy.stats")
    names = named()
    rows: dict[str, dict[str, tuple[str, str, str]]] = {}
    constants: dict[str, list[str]] = {}
    for rule in rules():
        for function in rule.functions:
            for shown in title(function, names):
                place, short = section(shown), shown.removeprefix(section(shown) + ".")
                if place not in PLACES:
                    continue
                if not rule.differentiable:
                    constants.setdefault(place, []).append(short)
                    continue
                found = "; ".join(
                    taken if at == "any" else f"at {at}: {taken}"
                    for at, taken in conventions.conventions_of(function)
                )
                rows.setdefault(place, {})[short] = (short, modes(rule), found)
    import scipy

    text = [HEAD.format(numpy=version(np), scipy=version(scipy))]
    for place in [p for p in PLACES if p in rows or p in constants]:
        text.append(f"## {place}\n")
        if place in rows:
            text.append("| function | modes | at kinks and ties |\n|---|---|---|")
            text += [f"| `{n}` | {m} | {c} |" for n, m, c in sorted(rows[place].values())]
            text.append("")
        if place in constants:
            text.append("Constant: " + ", ".join(f"`{n}`" for n in sorted(set(constants[place]))) + ".\n")
    return "\n".join(text)


def modes(rule: Rule) -> str:
    if rule.elementwise:
        return "forward, reverse (elementwise)"
    return "forward, reverse (linear)" if rule.linear else "forward, reverse"


def conventions_table() -> str:
    """The table of the page on conventions."""
    names = {**named(), abs: ["abs"], max: ["max"], min: ["min"], pow: ["pow"]}
    lines = ["| function | at | derivative |", "|---|---|---|"]
    for functions, at, taken in conventions.CONVENTIONS:
        shown = [preferred(f, names).replace("numpy.", "np.") for f in functions if not is_operator(f)]
        lines.append(f"| {', '.join(f'`{n}`' for n in dict.fromkeys(shown))} | {at} | {taken} |")
    return "\n".join([*lines, "", ""])


def preferred(function: Any, names: dict[Any, list[str]]) -> str:
    """Of a function's names the one that it calls itself."""
    own = [n for n in names[function] if n.rpartition(".")[2] == function.__name__]
    return (own or names[function])[0]


def is_operator(function: Any) -> bool:
    return getattr(function, "__module__", "") == "_operator"


def version(module: Any) -> str:
    return ".".join(module.__version__.split(".")[:2])


def pages() -> dict[Path, str]:
    """What the pages must hold."""
    return {
        FUNCTIONS: page(),
        CONVENTIONS: TABLE.sub(lambda _: conventions_table(), CONVENTIONS.read_text()),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
