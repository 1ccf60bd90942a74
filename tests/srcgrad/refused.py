"""Programs that are refused, one for each reason; the tests compare the messages to the letter."""

# ruff: noqa: F841, S102
from __future__ import annotations

import math
import random

import numpy as np

TOTAL = 0.0


def generator(x):
    yield x * x


def delegating(x):
    result = yield from generator(x)
    return result


async def coroutine(x):
    return x * x


def nested_coroutine(x):
    async def inner():
        return x

    return inner()


def writes_global(x):
    global TOTAL
    TOTAL = x * x
    return TOTAL * x


def executes(x):
    exec("y = x * x")
    return x


def evaluates(x):
    return eval("x * x")


def looks_at_locals(x):
    return locals()["x"] * x


def looks_at_globals(x):
    return globals()["TOTAL"] * x


def calls_without_rule(x):
    y = np.packbits(x)
    return np.sum(y)


def callee_refused(x):
    return evaluates(x) * x


def set_of_values(x):
    return sum({v * x for v in (1.0, 2.0)})


def catches_what_may_be_assigned(x):
    y = x * x
    try:
        y = y * x
        math.log(-1.0)
    except ValueError:
        y = y * 2.0
    return y


def samples_with(x):
    return x * random.random()
