"""Debuggers see emitted code: its lines, breakpoints in it, and those of the primal."""

import io
import linecache
import pdb
import sys

import numpy as np

import srcgrad


def stopping(x):
    y = np.sin(x)
    breakpoint()
    return y * x


def test_a_breakpoint_of_the_primal_fires_once(monkeypatch):
    fired = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: fired.append(sys._getframe(1).f_code.co_name))
    srcgrad.grad(stopping)(1.0)
    assert fired == ["stopping_grad"]


def looped(x):
    for _ in range(2):
        x = x * np.sin(x)
    return x


def test_breakpoint_step_and_list_in_emitted_code():
    df = srcgrad.grad(looped)
    source = df.source_for(1.0)
    function = df.__srcgrad_call__((1.0,), {})
    linecache.checkcache()
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "x_bar = 1.0" in text)
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("c\np x_bar\nn\np x_bar\nl\nc\n"), stdout=out, nosigint=True)
    debugger.use_rawinput = False
    assert debugger.set_break(function.__code__.co_filename, line) is None
    debugger.runcall(function, 1.0)
    shown = out.getvalue()
    assert "NameError" in shown and "1.0" in shown  # before the line, and after it
    assert "# reverse of: x = x * np.sin(x)" in shown
