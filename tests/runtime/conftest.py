"""Every test of Tensors runs twice: on the host, and with a stand-in for a GPU as the default device.

Tests marked `host` are about the host itself (NumPy's arrays, printed forms) and run there only.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import srcgrad as sg


def _load(name: str, file: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, pathlib.Path(__file__).with_name(file))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_load("cupy_names", "cupy_names.py")
_load("strict_stand_in", "strict.py").register()


@pytest.fixture(autouse=True)
def default_device(request: Any) -> Iterator[str]:
    before = sg.get_default_device()
    name = getattr(request, "param", "cpu")
    sg.set_default_device(name)
    yield name
    sg.set_default_device(before)


def pytest_generate_tests(metafunc: Any) -> None:
    if metafunc.definition.path.parent.name in ("eager", "autograd"):
        metafunc.parametrize("default_device", ["cpu", "strict"], indirect=True)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    def kept(item: Any) -> bool:
        on = getattr(getattr(item, "callspec", None), "params", {}).get("default_device", "cpu")
        return on == "cpu" or item.get_closest_marker("host") is None

    items[:] = [item for item in items if kept(item)]
