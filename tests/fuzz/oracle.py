"""The judge: is the derivative of a program right, refused, wrong, or did it crash?

A program is the text of a module with a function `f` and its arguments `ARGS`. Finite differences along one
random direction per argument say what the derivative is; a program on which they are not reliable (a
threshold or a kink is near, numbers explode) is rejected.
"""

from __future__ import annotations

import contextlib
import copy
import io
import linecache
import math
import re
import signal
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import srcgrad

STEP = 1e-5
LARGEST = 1e5
SECONDS = 20
CHECKS = ("single", "generic", "forward")
"""What may be judged beside `value_and_grad`: `grad` of one argument, the source for any arguments, `jvp`,
and with "second" the gradient's own derivative."""


@dataclass(frozen=True)
class Verdict:
    kind: str
    """right, refused, wrong, crashed, or rejected."""
    cause: str = ""
    """What failures for one reason have in common: the message or place without names and numbers."""
    detail: str = ""


class Reject(Exception):
    pass


class Wrong(Exception):
    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(cause)
        self.cause, self.detail = cause, detail


class Hangs(BaseException):
    """Not an `Exception`, so that a program's own `except` does not catch it."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Judge:
    """Writes programs to a folder of its own, runs and judges them."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0

    def close(self) -> None:
        self.folder.cleanup()

    def __call__(self, text: str, checks: Collection[str] = CHECKS) -> Verdict:
        """Judges `value_and_grad` of all arguments at once, and more as `checks` say."""
        self.count += 1
        name = f"fuzzed_{self.count}"
        path = Path(self.folder.name) / f"{name}.py"
        path.write_text(text)
        module = types.ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with alarm(1):
                    load(text, path, module)
                self.judge(module, checks)
        except Reject as reason:
            return Verdict("rejected", str(reason))
        except Wrong as wrong:
            return Verdict("wrong", wrong.cause, wrong.detail)
        except srcgrad.SrcgradError as refusal:
            return Verdict("refused", f"{type(refusal).__name__}: {anonymous(str(refusal))}", str(refusal))
        except Exception as error:
            return Verdict("crashed", place(error), "".join(traceback.format_exception(error))[-3000:])
        except Hangs as hangs:
            if hangs.seconds < SECONDS:
                return Verdict("rejected", "the program hangs")
            return Verdict("crashed", "hangs", f"still running after {SECONDS} s")
        finally:
            del sys.modules[name]
            linecache.cache.pop(str(path), None)
            path.unlink()
        return Verdict("right")

    def judge(self, module: Any, checks: Collection[str]) -> None:
        f, args = module.f, module.ARGS
        run = Runner(f, args, module.LOG)
        with alarm(1):
            primal = run.primal()
        wanted = [i for i, a in enumerate(args) if leaves(a)]
        if not wanted:
            raise Reject("nothing to differentiate")
        rng = np.random.default_rng(7)
        directions = [
            [rng.uniform(0.5, 1.5, np.shape(v)) * rng.choice([-1, 1], np.shape(v)) for v in leaves(args[i])]
            for i in wanted
        ]
        with alarm(2):
            slopes = [slope(run.value, args, i, d) for i, d in zip(wanted, directions, strict=True)]
        with alarm(SECONDS):
            self.derivatives(run, primal, wanted, directions, slopes, checks)

    def derivatives(
        self,
        run: Runner,
        primal: Run,
        wanted: list[int],
        directions: Any,
        slopes: list[float],
        checks: Collection[str],
    ) -> None:
        f, args = run.f, run.args
        value, gradients = self.checked(run, primal, srcgrad.value_and_grad(f, argnums=tuple(wanted)))
        if not (type(value) is type(primal.value) or isinstance(value, float)) or not same(
            value, primal.value
        ):
            raise Wrong("value", f"value_and_grad gives the value {value!r}, the function {primal.value!r}")
        self.compare(args, wanted, gradients, directions, slopes)
        which = len(args) % len(wanted)
        if "single" in checks or "generic" in checks:
            df = srcgrad.grad(f, argnums=wanted[which])
            gradient = self.checked(run, primal, df, "generic" in checks)
            self.compare(args, [wanted[which]], [gradient], [directions[which]], [slopes[which]])
        if "forward" in checks and hasattr(srcgrad, "jvp"):
            self.forward(run, f, args, wanted, directions, slopes)
        if "second" in checks:
            self.twice(run, f, args, wanted[which])

    def checked(self, run: Runner, primal: Run, df: Any, generic: bool = False) -> Any:
        """The result of a gradient function on the arguments; its side effects must be the primal's."""
        seen = run(df)
        if seen.log != primal.log or seen.printed != primal.printed:
            raise Wrong(
                "side effects", f"{seen.log} {seen.printed!r} instead of {primal.log} {primal.printed!r}"
            )
        if not same(seen.args, primal.args):
            raise Wrong("arguments", f"left as {seen.args!r} instead of {primal.args!r}")
        for a in arrays(seen.value):
            for b in arrays(seen.args):
                if np.shares_memory(a, b):
                    raise Wrong("shares memory", "the gradient shares memory with an argument")
        source = df.source if generic else df.source_for(*copy.deepcopy(run.args))
        try:
            compile(source, "source", "exec")
        except SyntaxError as error:
            raise Wrong("source", f"{error}\n{source}") from None
        return seen.value

    def compare(
        self, args: Any, wanted: list[int], gradients: Any, directions: Any, slopes: list[float]
    ) -> None:
        for i, g, d, want in zip(wanted, gradients, directions, slopes, strict=True):
            structure(g, args[i], f"argument {i}")
            got = sum(float(np.sum(np.asarray(v) * u)) for v, u in zip(leaves(g), d, strict=True))
            if not close(got, want):
                raise Wrong(
                    "gradient", f"along a direction of argument {i}: {got!r}, finite differences {want!r}"
                )

    def forward(
        self, run: Runner, f: Any, args: Any, wanted: list[int], directions: Any, slopes: list[float]
    ) -> None:
        for i, d, want in zip(wanted, directions, slopes, strict=True):
            tangents = [zeros(a) for a in args]
            tangents[i] = moved(zeros(args[i]), d, 1.0)
            seen = run(lambda *a, t=tuple(tangents): srcgrad.jvp(f, a, t))
            got = float(seen.value[1])
            if not close(got, want):
                raise Wrong("jvp", f"along a direction of argument {i}: {got!r}, finite differences {want!r}")

    def twice(self, run: Runner, f: Any, args: Any, which: int) -> None:
        """The derivative of the gradient, for an argument that is a number."""
        if not isinstance(args[which], float):
            return
        df = srcgrad.grad(f, argnums=which)

        def first(*a: Any) -> float:
            return float(df(*a))

        again = Runner(first, args, run.log)
        want = slope(again.value, args, which, [np.ones(())])
        got = float(run(srcgrad.grad(df, argnums=which)).value)
        if not close(got, want):
            raise Wrong("second derivative", f"{got!r}, finite differences of the gradient {want!r}")


def load(text: str, path: Path, module: types.ModuleType) -> None:
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise Reject(f"the module raises {type(error).__name__}") from error


@dataclass
class Run:
    value: Any
    log: list[Any]
    printed: str
    args: Any


class Runner:
    """Runs functions on fresh copies of the same arguments."""

    def __init__(self, f: Any, args: Any, log: list[Any]) -> None:
        self.f, self.args, self.log = f, args, log

    def __call__(self, f: Any) -> Run:
        args = copy.deepcopy(self.args)
        self.log.clear()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = f(*args)
        return Run(value, list(self.log), printed.getvalue(), args)

    def primal(self) -> Run:
        try:
            run = self(self.f)
            value = float(run.value)
        except Exception as error:
            raise Reject(f"the program raises {type(error).__name__}") from error
        if not math.isfinite(value) or abs(value) > LARGEST or np.ndim(run.value):
            raise Reject("the value is too large")
        return run

    def value(self, args: Any) -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                return float(self.f(*copy.deepcopy(args)))
            except Exception as error:
                raise Reject(f"the program raises {type(error).__name__}") from error


def slope(value: Callable[[Any], float], args: Any, i: int, direction: Any) -> float:
    """The derivative along a direction of argument `i`; rejects where differences don't agree."""

    def at(t: float) -> float:
        moved_args = list(args)
        moved_args[i] = moved(args[i], direction, t)
        return value(tuple(moved_args))

    here, right, left = at(0.0), at(STEP), at(-STEP)
    wide = (at(3 * STEP) - at(-3 * STEP)) / (6 * STEP)
    narrow = (right - left) / (2 * STEP)
    scale = 1 + abs(narrow)
    if not math.isfinite(wide + narrow) or abs(narrow) > LARGEST:
        raise Reject("the slope is too large")
    if abs(wide - narrow) > 1e-6 * scale:
        raise Reject("differences disagree")
    if abs((right - here) - (here - left)) / STEP > 3e-3 * scale:
        raise Reject("a kink is near")
    return narrow


def close(got: float, want: float) -> bool:
    return math.isfinite(got) and abs(got - want) <= 2e-5 * (1 + abs(want))


# Arguments ----------------------------------------------------------------------------------------


def leaves(tree: Any) -> list[Any]:
    """The real numbers and arrays of an argument, in order."""
    if isinstance(tree, dict):
        return [v for k in sorted(tree) for v in leaves(tree[k])]
    if isinstance(tree, (list, tuple)):
        return [v for t in tree for v in leaves(t)]
    real = isinstance(tree, (float, np.floating)) or isinstance(tree, np.ndarray) and tree.dtype.kind == "f"
    return [tree] if real else []


def moved(tree: Any, direction: list[Any], step: float) -> Any:
    """The argument, moved by `step` along a direction (one entry per leaf)."""
    left = list(direction)

    def walk(t: Any) -> Any:
        if isinstance(t, dict):
            made = {k: walk(t[k]) for k in sorted(t)}
            return {k: made[k] for k in t}
        if isinstance(t, (list, tuple)):
            return type(t)([walk(v) for v in t])
        if not leaves(t):
            return t
        new = t + step * left.pop(0)
        return np.asarray(new) if isinstance(t, np.ndarray) else float(new)

    return walk(tree)


def zeros(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: zeros(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([zeros(v) for v in tree])
    return np.zeros_like(tree) if isinstance(tree, np.ndarray) else 0.0


def arrays(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for t in tree:
            yield from arrays(t)
    elif isinstance(tree, np.ndarray):
        yield tree


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, structure included."""
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a == b)))


def structure(gradient: Any, like: Any, path: str) -> None:
    """Raises when a gradient does not have the structure, shapes and dtypes of its argument."""
    if isinstance(like, dict):
        if not isinstance(gradient, dict) or set(gradient) != set(like):
            raise Wrong("structure", f"{path}: {gradient!r} for {like!r}")
        for k in like:
            structure(gradient[k], like[k], f"{path}[{k!r}]")
    elif isinstance(like, (list, tuple)):
        if type(gradient) is not type(like) or len(gradient) != len(like):
            raise Wrong("structure", f"{path}: {gradient!r} for {like!r}")
        for i, v in enumerate(like):
            structure(gradient[i], v, f"{path}[{i}]")
    elif isinstance(like, np.ndarray):
        if (
            not isinstance(gradient, np.ndarray)
            or gradient.shape != like.shape
            or gradient.dtype != like.dtype
        ):
            raise Wrong("structure", f"{path}: {gradient!r} for {like!r}")
    elif isinstance(like, float) and not isinstance(gradient, (float, np.floating)):
        raise Wrong(f"structure: {type(gradient).__name__} for a float", f"{path}: {gradient!r} for {like!r}")


# Reports ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Hangs(seconds)

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def anonymous(message: str) -> str:
    """The first line of a message without file names, and with every quoted name and number alike."""
    first = message.strip().splitlines()[0] if message.strip() else ""
    first = re.sub(r"^(<[^>]*>|\S*?):\d+: ", "", first)
    return re.sub(r"\b\d+(\.\d+)?\b", "0", re.sub(r"`[^`]*`", "`...`", first))


def place(error: BaseException) -> str:
    """The exception and the innermost line of the compiler or run-time; of emitted code the message."""
    message = f"{type(error).__name__}: {anonymous(shortened(str(error)))}"
    for f in reversed(traceback.extract_tb(error.__traceback__)):
        if f.filename.startswith("<srcgrad") or "fuzzed_" in f.filename:
            return f"{message} in emitted code"
        if Path(f.filename).parent.name in ("transforms", "tree", "runtime", "rules", "srcgrad"):
            return f"{type(error).__name__} in {Path(f.filename).name} {f.name}: {f.line}"
    return message


def shortened(message: str) -> str:
    return re.sub(r"'[^']*'", "'...'", message)
