"""Small programs give what PyTorch 2.13 gave: see `rows.py`."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import srcgrad as sg

_SPEC = importlib.util.spec_from_file_location("eager_rows", Path(__file__).with_name("rows.py"))
assert _SPEC is not None and _SPEC.loader is not None
rows = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(rows)
ANSWERS = {(n, p): a for n, p, a in map(json.loads, rows.ANSWERS.read_text().splitlines())}


def difference(got: Any, want: Any, path: str = "") -> str | None:
    if isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        found = (difference(g, w, f"{path}[{i}]") for i, (g, w) in enumerate(zip(got, want, strict=True)))
        return next((f for f in found if f), None)
    if isinstance(want, dict) and isinstance(got, dict) and got.keys() == want.keys():
        return next((f for k in want if (f := difference(got[k], want[k], f"{path}.{k}"))), None)
    if isinstance(want, float) and isinstance(got, float):
        return None if math.isclose(got, want, rel_tol=1e-5, abs_tol=1e-6) else f"{path}: {got} is not {want}"
    return None if got == want and type(got) is type(want) else f"{path}: {got!r} is not {want!r}"


HOST = re.compile(r"\bR\(|repr|numpy|np\.|'cpu'|\.cpu\(|device")
"""Programs about the host."""


def programs() -> list[Any]:
    made = []
    for name, setup, program in rows.programs():
        marks = [pytest.mark.host] if HOST.search(program) else []
        made.append(pytest.param(name, setup, program, id=f"{name}: {program}", marks=marks))
    return made


@pytest.mark.parametrize(("name", "setup", "program"), programs())
def test_row(name, setup, program, default_device):
    sg.manual_seed(1)  # some rows depend on initial weights that leave a ReLU alive
    got, want = json.loads(json.dumps(rows.outcome(sg, program, setup))), ANSWERS[name, program]
    assert got[0] == want[0], (got, want)
    if got[0] == "made":
        warned = None if default_device == "cpu" else -1
        assert difference(got[1:warned], want[1:warned]) is None
        return
    assert got[1].lstrip("_") == want[1].lstrip("_") or {got[1], want[1]} in NAMES
    words = re.findall(r"\w+", want[2])
    assert 2 * sum(word in got[2] for word in words) >= len(words), (got[2], want[2])


NAMES = [{"_NotOne", "ValueError"}, {"_NotOne", "RuntimeError"}, {"MissingExtra", "AssertionError"}]
"""Names of errors of ours that are kinds of PyTorch's."""
