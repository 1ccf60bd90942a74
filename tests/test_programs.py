"""The golden texts of `tests/programs`: the emitted text is the expected one to the letter, and right."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from .fuzz.oracle import leaves, slope, structure
from .programs import Program, programs

CASES = [(p, wanted) for p in programs() for wanted in p.expected]


def lines(text: str) -> int:
    """Lines that do something: no blank ones, no comments."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())


@pytest.mark.parametrize("program,wanted", CASES, ids=[f"{p.name}-{wanted}" for p, wanted in CASES])
def test_program(program: Program, wanted: str) -> None:
    space = program.load()
    df, text = program.emitted(wanted, space)
    assert text == program.expected[wanted], f"python -m tests.programs {program.name} shows the difference"
    args = space["ARGS"]
    got = df(*copy.deepcopy(args))
    if wanted.startswith("value_and_grad"):
        value, got = got
        assert value == df.primal(*copy.deepcopy(args))
    positions = (df.argnums,) if isinstance(df.argnums, int) else df.argnums
    rng = np.random.default_rng(3)
    for position, gradient in zip(positions, (got,) if isinstance(df.argnums, int) else got, strict=True):
        structure(gradient, args[position], f"argument {position}")
        direction = [rng.uniform(0.5, 1.5, np.shape(v)) for v in leaves(args[position])]
        expected = slope(lambda a: float(df.primal(*copy.deepcopy(a))), args, position, direction)
        along = sum(float(np.sum(v * d)) for v, d in zip(leaves(gradient), direction, strict=True))
        assert along == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name,most", [("logistic_loss", 9), ("growth", 12)])
def test_the_two_texts_of_the_design(name: str, most: int) -> None:
    """No longer than they are printed in the design: 9 and 12 lines that do something."""
    (program,) = [p for p in programs() if p.name == name]
    (text,) = program.expected.values()
    assert lines(text) <= most
