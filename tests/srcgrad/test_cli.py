"""The command line: what it prints, what it writes, its exit codes."""

import sys

import pytest

from srcgrad.cli import main

MODEL = """
import numpy as np

def wave(x):
    return np.sum(np.sin(x) * x)

def bumpy(x):
    return np.sum(np.floor(x))

def made(x):
    import srcgrad
    return srcgrad.stop_gradient(x) * x
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "cli_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "cli_model.py"
    sys.modules.pop("cli_model", None)


def test_show(model, capsys):
    assert main(["show", f"{model}:wave", "--at", '{"x": [1, 2]}']) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("def wave_grad(x):") and "np.cos(x)" in shown and "unbroadcast" not in shown
    assert main(["show", "cli_model:wave", "--standalone"]) == 0
    assert "def unbroadcast(" in capsys.readouterr().out
    assert main(["show", f"{model}:wave", "--mode", "forward", "--at", '{"x": 1.0}']) == 0
    assert "x_dot" in capsys.readouterr().out


def test_check(model, capsys):
    assert main(["check", f"{model}:wave", "--at", '{"x": [1, 2]}']) == 0
    assert main(["check", f"{model}:made", "--at", '{"x": 2.0}']) == 1  # x is taken for a constant once
    assert "made" in capsys.readouterr().err


def test_export_and_its_check(model, tmp_path, capsys):
    command = ["export", f"{model}:wave", "-o", "out.py"]
    assert main([*command, "--check"]) == 1
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    (tmp_path / model).write_text(MODEL.replace("np.sin(x) * x", "np.cos(x) * x"))
    sys.modules.pop("cli_model")
    assert main([*command, "--check"]) == 1
    assert "stale" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command, reason",
    [
        (["show", "nowhere.py:f"], "no file"),
        (["show", "cli_model.py:f"], "has no 'f'"),
        (["show", "wave"], "FILE.py:FUNCTION"),
        (["show", "cli_model.py:wave", "--at", "{"], "not JSON"),
        (["show", "cli_model.py:wave", "--at", '{"y": 1}'], "missing"),
        (["show", "cli_model.py:wave", "--mode", "forward"], "--at"),
        (["rules", "nothing"], "derivative rule"),
    ],
)
def test_requests_that_cannot_be_carried_out(model, command, reason, capsys):
    assert main(command) == 2
    assert reason in capsys.readouterr().err


def test_rules(capsys):
    assert main(["rules", "numpy.linalg"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("numpy.linalg.det(") for line in lines)
    assert lines == sorted(lines)
