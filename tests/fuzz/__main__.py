"""Hunts for faults: `python -m tests.fuzz --count 20000 --seed 1 --save failures`.

Program number k is made from the seed k alone. What fails is made small and saved, a few programs for each
cause; `python -m tests.fuzz --again failures` judges the saved programs anew and removes those right by now.
"""

from __future__ import annotations

import argparse
import collections
import gc
import sys
import time
from pathlib import Path

from .choices import Choices
from .oracle import CHECKS, Judge, Verdict
from .programs import program
from .shrink import shrink

KINDS = ("right", "refused", "wrong", "crashed", "rejected")
VAGUE = ("gradient", "value", "structure", "arguments", "side effects", "second derivative", "jvp")
"""Causes that may be many: more programs of these are kept."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=1, help="the first program's seed; the others follow")
    parser.add_argument("--size", type=int, default=14, help="about how many statements a program has")
    parser.add_argument("--save", type=Path, help="the folder for failing programs, made small")
    parser.add_argument("--again", type=Path, help="judge the saved programs of this folder instead")
    parser.add_argument("--second", action="store_true", help="check second derivatives too")
    parser.add_argument("--shrink", type=float, default=20.0, help="seconds to make one program small")
    options = parser.parse_args()
    judge = Judge()
    try:
        if options.again:
            return again(judge, options.again)
        return hunt(judge, options)
    finally:
        judge.close()


def hunt(judge: Judge, options: argparse.Namespace) -> int:
    counts: collections.Counter[str] = collections.Counter()
    causes: collections.Counter[tuple[str, str]] = collections.Counter()
    smallest: dict[tuple[str, str], list[tuple[int, int]]] = {}
    """For each cause the seeds of the shortest programs, with their lengths."""
    saved: set[int] = set()
    start = time.monotonic()

    def keep() -> None:
        for key, found in smallest.items():
            for _, seed in found:
                if options.save and key[0] != "rejected" and seed not in saved:
                    saved.add(seed)
                    save(judge, options, seed)

    def report() -> None:
        for key, n in causes.most_common():
            print(f"{n:6}  {key[0]:8}  {key[1]}  (seed {smallest[key][0][1]})", flush=True)

    try:
        for done, seed in enumerate(range(options.seed, options.seed + options.count), 1):
            text = program(Choices.seeded(seed), options.size)
            verdict = judge(text, checks(options, seed))
            counts[verdict.kind] += 1
            if verdict.kind != "right":
                key = (verdict.kind, verdict.cause)
                causes[key] += 1
                found = sorted([*smallest.get(key, []), (len(text), seed)])
                smallest[key] = found[: 8 if verdict.cause in VAGUE else 1]
            if done % 200 == 0:
                gc.collect()
                print(f"{tally(counts)} in {time.monotonic() - start:.0f} s", flush=True)
                report()
            if done % 200 == 0:
                keep()
    except KeyboardInterrupt:
        pass
    print(f"{tally(counts)} in {time.monotonic() - start:.0f} s", flush=True)
    report()
    keep()
    return 1 if counts["wrong"] or counts["crashed"] else 0


def checks(options: argparse.Namespace, seed: int) -> tuple[str, ...]:
    """One check beside the first for each program; they take turns."""
    turn = (*CHECKS, "second") if options.second else CHECKS
    return (turn[seed % len(turn)],)


def tally(counts: collections.Counter[str]) -> str:
    judged = sum(counts.values()) - counts["rejected"]
    return (
        ", ".join(f"{counts[k]} {k}" for k in KINDS)
        + f"; refused {100 * counts['refused'] / max(1, judged):.2f} %"
    )


def save(judge: Judge, options: argparse.Namespace, seed: int) -> None:
    """Makes the program of a seed small and saves it."""
    text = program(Choices.seeded(seed), options.size)
    asked = checks(options, seed)
    verdict = judge(text, asked)

    def fails(candidate: str) -> bool:
        found = judge(candidate, asked)
        return (found.kind, found.cause) == (verdict.kind, verdict.cause)

    small = shrink(text, fails, options.shrink)
    options.save.mkdir(parents=True, exist_ok=True)
    (options.save / f"{seed}.py").write_text(commented(judge(small, asked)) + small)


def commented(verdict: Verdict) -> str:
    lines = [f"{verdict.kind}: {verdict.cause}", *verdict.detail.splitlines()]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def again(judge: Judge, folder: Path) -> int:
    counts: collections.Counter[str] = collections.Counter()
    groups: dict[tuple[str, str], list[str]] = {}
    for path in sorted(folder.glob("*.py"), key=lambda p: (len(p.read_text()), p.name)):
        text = "".join(line for line in path.read_text().splitlines(True) if not line.startswith("#"))
        verdict = judge(text)
        counts[verdict.kind] += 1
        if verdict.kind in ("right", "rejected"):
            path.unlink()
            continue
        path.write_text(commented(verdict) + text)
        groups.setdefault((verdict.kind, verdict.cause), []).append(path.name)
    print(tally(counts))
    for (kind, cause), names in sorted(groups.items(), key=lambda g: (g[0][0], -len(g[1]))):
        print(f"{len(names):4}  {kind:8}  {cause}  ({', '.join(names[:4])})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
