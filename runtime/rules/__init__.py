"""The derivative rules, one file for each chapter of NumPy's manual. Importing this package fills the table.

The rules for SciPy, and for the parts of NumPy that NumPy itself imports on first use, are filed once these
are imported.
"""

from __future__ import annotations

from srcgrad.runtime.rules import (
    callables,
    creation,
    cumulative,
    decompositions,
    elementwise,
    indexing,
    inplace,
    interpolation,
    joining,
    linalg,
    mathmodule,
    methods,
    operators,
    polynomials,
    products,
    reductions,
    shapes,
    statistics,
    supports,
    ufuncmethods,
)
from srcgrad.runtime.rules.table import load_with

LATER = {
    "numpy.fft": "fft",
    "numpy.polynomial": "series",
    "numpy.random": "random",
    "scipy.cluster.vq": "scipy_cluster",
    "scipy.fft": "scipy_fft",
    "scipy.integrate": "scipy_integrate",
    "scipy.interpolate": "scipy_interpolate",
    "scipy.linalg": "scipy_linalg scipy_matrices",
    "scipy.ndimage": "scipy_ndimage",
    "scipy.optimize": "scipy_optimize",
    "scipy.signal": "scipy_signal",
    "scipy.sparse.linalg": "scipy_sparse",
    "scipy.spatial.distance": "scipy_spatial",
    "scipy.spatial.transform": "scipy_rotation",
    "scipy.special": "scipy_special",
    "scipy.stats": "scipy_distributions scipy_discrete scipy_frozen scipy_stats",
}
"""Modules that may never be imported, and the files of their rules, which are read once they are."""

for _module, _files in LATER.items():
    for _file in _files.split():
        load_with(_module, f"srcgrad.runtime.rules.{_file}")

__all__ = [
    "callables",
    "creation",
    "cumulative",
    "decompositions",
    "elementwise",
    "indexing",
    "inplace",
    "interpolation",
    "joining",
    "linalg",
    "mathmodule",
    "methods",
    "operators",
    "polynomials",
    "products",
    "reductions",
    "shapes",
    "statistics",
    "supports",
    "ufuncmethods",
]
