"""Runs the Python in Markdown pages, so that what they show is true.

The blocks marked `python` run in order, in one namespace. One that is marked `python output` or `text output`
isn't run: it must be what the block above it printed, and the error that it raised, if any.

    python docs/run_blocks.py README.md docs/*.md
    python docs/run_blocks.py --update README.md    # writes the outputs into the page
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def run(path: Path, update: bool) -> int:
    """Run one page; returns the number of blocks that ran, or exits at the first one that fails."""
    page = path.read_text()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    printed = ""
    error: Exception | None = None
    pieces: list[str] = []  # the page with the outputs that were found
    end = 0
    for match in FENCE.finditer(page):
        margin, language, info, text = match[1], match[2], match[3].strip(), textwrap.dedent(match[4])
        before = page.count("\n", 0, match.start(4))
        if info == "output":
            if error is not None:
                printed += "".join(traceback.format_exception_only(error))
                error = None
            if printed.rstrip() != text.rstrip() and not update:
                sys.exit(f"{path}:{before}: the page says\n\n{text}\nbut this is printed:\n\n{printed}")
            pieces += [page[end : match.start(4)], textwrap.indent(printed.rstrip() + "\n", margin)]
            end = match.end(4)
        elif language == "python":
            stop_at(error)
            ran += 1
            printed, error = execute(f"{path}#{ran}", "\n" * before + text, namespace)
    stop_at(error)
    if update:
        updated = "".join([*pieces, page[end:]])
        path.write_text(updated)
        if updated != page:
            return run(path, update)  # errors tell lines of the page, which may have moved
    return ran


def stop_at(error: Exception | None) -> None:
    if error is not None:
        sys.exit("".join(traceback.format_exception(error)))


def execute(name: str, code: str, namespace: dict[str, Any]) -> tuple[str, Exception | None]:
    """Run code, which linecache then knows; returns what it printed and the error that ended it."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), namespace)
    except Exception as error:
        return printed.getvalue(), error
    return printed.getvalue(), None


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if argument != "--update":
            print(f"{argument}: {run(Path(argument), '--update' in sys.argv)} blocks")
