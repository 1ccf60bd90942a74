"""Golden texts: each file holds a program, and under `# output: grad(...)` the text that it must become.

The program says with what arguments it is called, `ARGS`; they decide for which kinds it is compiled. A file
may ask for several texts. `python -m tests.programs` shows what differs today, `--update` writes it into the
files: read the difference before it is committed, these texts are what a user reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import srcgrad

FOLDER = Path(__file__).parent
MARK = re.compile(r"^# output: (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    path: Path
    head: str
    expected: dict[str, str]
    """The text that each transformed function must become, by the expression that makes it."""

    @property
    def name(self) -> str:
        return self.path.stem

    def load(self) -> dict[str, Any]:
        """What the program defines, with the transforms beside it."""
        space: dict[str, Any] = {"__name__": f"program_{self.name}", "__file__": str(self.path)}
        exec(compile(self.head, str(self.path), "exec"), space)
        return space

    def emitted(self, wanted: str, space: dict[str, Any]) -> tuple[Any, str]:
        """(the transformed function, its text for the program's arguments)."""
        transforms = {n: getattr(srcgrad, n) for n in ("grad", "value_and_grad")}
        df = eval(wanted, {**space, **transforms})
        return df, df.source_for(*space["ARGS"])


def programs() -> list[Program]:
    found = []
    for path in sorted(FOLDER.glob("[!_]*.py")):
        head, *parts = MARK.split(path.read_text())
        texts = [p.strip("\n") + "\n" for p in parts[1::2]]
        found.append(Program(path, head, dict(zip(parts[::2], texts, strict=True))))
    return found
