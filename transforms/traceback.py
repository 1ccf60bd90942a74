"""Tracebacks: an exception out of the primal, run inside emitted code, shows the user's own lines."""

from __future__ import annotations

import types

from srcgrad.transforms.load import LINES


def shown_in_user_code(error: Exception) -> Exception:
    """`error` with each frame of emitted code that runs a line of the user's replaced by that line."""
    links = []
    entry = error.__traceback__
    changed = False
    while entry is not None:
        known = LINES.get(entry.tb_frame.f_code.co_filename)
        line = known[1].get(entry.tb_lineno) if known is not None else None
        if known is not None and line is not None:
            links.append(_frame_at(known[0], line, entry.tb_frame.f_code.co_name))
            changed = True
        else:
            links.append((entry.tb_frame, entry.tb_lasti, entry.tb_lineno))
        entry = entry.tb_next
    if not changed:
        return error
    made = None
    for frame, lasti, line in reversed(links):
        made = types.TracebackType(made, frame, lasti, line)
    return error.with_traceback(made)


def _frame_at(filename: str, line: int, name: str) -> tuple[types.FrameType, int, int]:
    """A frame whose code claims to stand at `line` of `filename`."""
    for suffix in ("_value_and_grad", "_grad", "_forward", "_reverse"):
        name = name.removesuffix(suffix)
    code = compile("raise Exception", filename, "exec").replace(co_name=name, co_firstlineno=line)
    try:
        exec(code, {"__name__": name})
    except Exception as raised:
        entry = raised.__traceback__
        assert entry is not None and entry.tb_next is not None
        return entry.tb_next.tb_frame, entry.tb_next.tb_lasti, line
    raise AssertionError("unreachable")
