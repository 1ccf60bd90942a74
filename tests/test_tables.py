"""The documentation's tables of functions and conventions are what the rule table says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy

from srcgrad.runtime.rules import conventions
from srcgrad.runtime.rules.table import find

DOCS = Path(__file__).parent.parent / "docs"


def test_conventions_are_of_functions_with_rules():
    for functions, _, _ in conventions.CONVENTIONS:
        for function in functions:
            rule = find(function)
            assert rule is not None, function


def test_tables_are_up_to_date():
    spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    assert spec is not None and spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    versions = f"NumPy {tables.version(np)}, SciPy {tables.version(scipy)}"
    if versions not in (DOCS / "functions.md").read_text():
        pytest.skip(f"the pages were made with other libraries than {versions}")
    for path, text in tables.pages().items():
        assert path.read_text() == text, f"{path.name} is not up to date: run `python docs/tables.py`"
