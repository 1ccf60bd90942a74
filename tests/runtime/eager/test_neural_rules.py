"""The rules that only nn needs, by the same checks as all others (tests/runtime/rules/test_rules.py)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from srcgrad.runtime.rules.table import Rule, rules

for _name in ("neural", "neural_affine", "neural_conv", "neural_loss", "neural_scatter"):
    importlib.import_module(f"srcgrad.runtime.rules.{_name}")

_PATH = Path(__file__).parent.parent / "rules" / "test_rules.py"
_SPEC = importlib.util.spec_from_file_location("rule_checks", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
checks = importlib.util.module_from_spec(_SPEC)
sys.modules["rule_checks"] = checks
_SPEC.loader.exec_module(checks)


def _cases() -> list[Any]:
    found = []
    for rule in rules():
        module = inspect.getmodule(rule.partials or rule.reverse)
        if module is not None and module.__name__.startswith("srcgrad.runtime.rules.neural"):
            for i, case in enumerate(rule.at):
                found.append(pytest.param(rule, rule.functions[0], case, id=f"{rule.name}-{i}"))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule, function, case", _cases())
def test_rule(rule: Rule, function: Any, case: Any) -> None:
    assert rule.at
    checks.test_rule(rule, function, case)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule, function, case", _cases())
def test_float32(rule: Rule, function: Any, case: Any) -> None:
    checks.test_float32(rule, function, case)
