"""The examples in all docstrings."""

from __future__ import annotations

import doctest
import importlib
import os
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "srcgrad"


def modules() -> list[str]:
    found = []
    for directory, _, files in os.walk(PACKAGE, followlinks=True):
        place = Path(directory).relative_to(PACKAGE.parent)
        found += [".".join((place / file).with_suffix("").parts) for file in files if file.endswith(".py")]
    return sorted(name.removesuffix(".__init__") for name in found)


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    if name == "srcgrad":
        for public in dir(module):
            getattr(module, public)  # loads the errors, which are at home here
    assert doctest.testmod(module).failed == 0
