"""The examples in all docstrings."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import srcgrad as sg

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
    assert doctest.testmod(module, extraglobs={"sg": sg}).failed == 0


NAMESPACES = {
    "srcgrad": sg,
    **{
        f"srcgrad.{name}": importlib.import_module(f"srcgrad.runtime.{name}")
        for name in ("nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "autograd")
    },
}


def public(name: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a namespace, with the classes' methods and properties."""
    for key in dir(NAMESPACES[name]):
        value = getattr(NAMESPACES[name], key, None)
        if key.startswith("_") or not callable(value) or not value.__module__.startswith("srcgrad"):
            continue
        yield f"{name}.{key}", value
        for part in vars(value) if isinstance(value, type) else ():
            member = inspect.getattr_static(value, part)
            if not part.startswith("_") and (callable(member) or isinstance(member, property)):
                yield f"{name}.{key}.{part}", getattr(value, part) if callable(member) else member


@pytest.mark.parametrize("name", NAMESPACES)
def test_public_names_have_docstrings(name: str) -> None:
    """Also those that loops make, whose examples run here."""
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    without = []
    for full, value in public(name):
        text = vars(value).get("__doc__") if isinstance(value, type) else inspect.getdoc(value)
        if not text:
            without.append(full)
        elif ">>> sg." in text:
            for test in finder.find(value, full, module=False, globs={"sg": sg}):
                runner.run(test)
    assert without == []
    assert runner.summarize().failed == 0
