"""Generated programs: the derivative is that of finite differences, or refused.

The fixed ones are the same in every run. New ones are drawn where SRCGRAD_FUZZ gives how many:
`SRCGRAD_FUZZ=500 python -m pytest tests/fuzz -s` prints its seed, and hypothesis makes a failing one small.
"""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from .choices import Choices
from .oracle import Judge
from .programs import program, programs

FIXED = range(1, 121)
RANDOM = int(os.environ.get("SRCGRAD_FUZZ", "0"))


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.close()


def test_fixed_programs(judge: Judge) -> None:
    verdicts = {number: judge(program(Choices.seeded(number))) for number in FIXED}
    failed = [f"seed {n}: {v.kind}: {v.cause}" for n, v in verdicts.items() if v.kind in ("wrong", "crashed")]
    assert not failed, "\n".join(failed)
    counts = collections.Counter(v.kind for v in verdicts.values())
    assert counts["right"] > 0.7 * len(FIXED), counts
    assert counts["refused"] < 0.25 * len(FIXED), {  # the aim is 0.02
        n: v.cause for n, v in verdicts.items() if v.kind == "refused"
    }


@pytest.mark.skipif(not RANDOM, reason="SRCGRAD_FUZZ is not set")
def test_random_programs(judge: Judge) -> None:
    number = random.SystemRandom().randrange(10**9)
    print(f"seed {number}")

    @seed(number)
    @settings(
        max_examples=RANDOM,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def check(text: str) -> None:
        verdict = judge(text)
        assert verdict.kind not in ("wrong", "crashed"), (
            f"seed {number}: {verdict.cause}\n{verdict.detail}\n{text}"
        )

    check()
