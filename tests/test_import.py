"""What importing costs, and what it doesn't load."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(code: str) -> str:
    """Run code in a fresh interpreter; returns what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_no_compiler() -> None:
    loaded = run("import sys, srcgrad; print(*sys.modules)").split()
    heavy = {"gast", "astunparse", "beniget", "scipy", "numba", "srcgrad.transforms"}
    assert heavy.isdisjoint(loaded)


def test_import_is_fast() -> None:
    code = (
        "import numpy, time; start = time.perf_counter(); import srcgrad; print(time.perf_counter() - start)"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.03


def test_the_ground_floor_needs_no_compiler() -> None:
    code = """
import importlib, pkgutil, sys, srcgrad.runtime
for module in pkgutil.walk_packages(srcgrad.runtime.__path__, "srcgrad.runtime."):
    importlib.import_module(module.name)
print(*sys.modules)
"""
    assert not [name for name in run(code).split() if name.startswith(("srcgrad.transforms", "gast"))]


def test_unknown_names() -> None:
    import srcgrad

    with pytest.raises(AttributeError, match="has no attribute 'gradd'"):
        srcgrad.gradd  # noqa: B018
