"""The examples in the docstrings of the runtime."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from srcgrad.runtime import support
from srcgrad.runtime.rules import inputs, table


@pytest.mark.parametrize("module", [support, table, inputs], ids=lambda m: m.__name__)
def test_examples(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0
