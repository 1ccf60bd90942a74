"""The derivative rules, one file for each chapter of NumPy's manual. Importing this package fills the table.

Rules for SciPy are filed once SciPy has been imported.
"""

from __future__ import annotations

from srcgrad.runtime.rules import (
    creation,
    cumulative,
    decompositions,
    elementwise,
    fft,
    indexing,
    interpolation,
    joining,
    linalg,
    mathmodule,
    methods,
    operators,
    polynomials,
    products,
    random,
    reductions,
    shapes,
    statistics,
    supports,
    ufuncmethods,
)
from srcgrad.runtime.rules.table import load_with

SCIPY = {
    "scipy.special": "scipy_special",
}
"""SciPy's modules and the files of their rules, which are imported once the module has been."""

for _module, _file in SCIPY.items():
    load_with(_module, f"srcgrad.runtime.rules.{_file}")

__all__ = [
    "creation",
    "cumulative",
    "decompositions",
    "elementwise",
    "fft",
    "indexing",
    "interpolation",
    "joining",
    "linalg",
    "mathmodule",
    "methods",
    "operators",
    "polynomials",
    "products",
    "random",
    "reductions",
    "shapes",
    "statistics",
    "supports",
    "ufuncmethods",
]
