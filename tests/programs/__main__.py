"""Shows where emitted text differs from the golden one; with `--update`, accepts it."""

from __future__ import annotations

import argparse
import difflib
import sys

from . import programs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("names", nargs="*", help="the programs to look at, by the names of their files")
    parser.add_argument("--update", action="store_true", help="write the emitted text into the files")
    options = parser.parse_args()
    different = 0
    for program in programs():
        if options.names and program.name not in options.names:
            continue
        space = program.load()
        parts = [program.head]
        for wanted, expected in program.expected.items():
            _, text = program.emitted(wanted, space)
            parts.append(f"# output: {wanted}\n{text}\n\n")
            if text != expected:
                different += 1
                lines = difflib.unified_diff(
                    expected.splitlines(),
                    text.splitlines(),
                    f"{program.path.name}: {wanted}",
                    "emitted",
                    lineterm="",
                )
                print(*lines, sep="\n", end="\n\n")
        if options.update:
            program.path.write_text("".join(parts).rstrip("\n") + "\n")
    print(f"{different} of the texts differ" if different else "all texts are as they must be")
    return 1 if different and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
