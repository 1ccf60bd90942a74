"""What importing costs, and what it doesn't load."""

from __future__ import annotations

import pickle
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


def test_viz_is_an_attribute_and_a_module() -> None:
    assert run("import srcgrad; print(srcgrad.viz.__name__)") == "srcgrad.viz\n"
    assert run("import srcgrad.viz; print(srcgrad.viz.graph.__name__)") == "graph\n"


def test_errors_are_at_home_at_the_front_door() -> None:
    """Tracebacks show `srcgrad.NoRule`, and pickled errors come back."""
    import srcgrad

    for name in ("UnsupportedSyntax", "NoRule", "SourceError", "AliasError", "ArgumentError", "ResultError"):
        error = getattr(srcgrad, name)("why")
        assert f"{type(error).__module__}.{type(error).__qualname__}" == f"srcgrad.{name}"
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and again.args == ("why",)


def test_import_statements_reach_the_packages_of_pytorch() -> None:
    """`import torch.nn.functional as F` and its like, with the new name; no module is loaded twice."""
    code = """
import srcgrad.nn.functional as F
import srcgrad.nn as nn
import srcgrad.optim.lr_scheduler
from srcgrad.autograd import Function, functional
from srcgrad.autograd import *
from srcgrad.nn.utils import clip_grad_norm_
from srcgrad.optim import SGD
import srcgrad as sg
assert sg.nn is nn and sg.nn.functional is F and sg.optim.SGD is SGD and sg.autograd.Function is Function
assert sg.autograd.functional is functional and clip_grad_norm_ is nn.utils.clip_grad_norm_
print(nn.Linear.__module__, F.relu(sg.tensor(-1.0)))
try:
    import srcgrad.nn.nonsense
except ModuleNotFoundError:
    print("not found")
"""
    assert run(code) == "srcgrad.runtime.nn.linear tensor(0.)\nnot found\n"
