"""The stand-in for a device is registered before any test of this folder is collected."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

_PATH = pathlib.Path(__file__).with_name("strict.py")
_SPEC = importlib.util.spec_from_file_location("strict_stand_in", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
strict = importlib.util.module_from_spec(_SPEC)
sys.modules["strict_stand_in"] = strict
_SPEC.loader.exec_module(strict)
strict.register()
