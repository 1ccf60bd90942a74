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
