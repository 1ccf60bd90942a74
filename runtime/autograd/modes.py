"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`, per
thread.

Each is a context manager (re-enterable) and a decorator for functions, methods and generator functions.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any


class State(threading.local):
    """What the thread is doing. `recording` is the one attribute that operations read on their fast path."""

    recording: bool = True
    inference: bool = False
    watchers: tuple[Callable[[Any], None], ...] = ()
    """Called with each new node: anomaly mode, saved-tensor hooks."""
    anomaly: bool = False
    in_rules: bool = False
    """Whether rules run on Tensors now: then NumPy's arithmetic with bools holds, which PyTorch forbids."""
    check_nan: bool = True
    run: Any = ()
    """The backward pass under way: how many gradients each of its nodes waits for."""


state = State()

paused: dict[int, bool] = {}
"""The threads that do not record. Empty nearly always, so that the fast path asks for the thread's state
only if not."""

inferring: dict[int, bool] = {}
"""The threads inside `inference_mode`."""

watched: dict[int, bool] = {}
"""The threads whose new nodes somebody watches."""


def set_state(recording: bool, inference: bool) -> None:
    thread = threading.get_ident()
    state.recording, state.inference = recording, inference
    if recording:
        paused.pop(thread, None)
    else:
        paused[thread] = True
    if inference:
        inferring[thread] = True
    else:
        inferring.pop(thread, None)


def watch(watchers: tuple[Callable[[Any], None], ...]) -> None:
    """Let `watchers` see each node that this thread makes."""
    state.watchers = watchers
    if watchers:
        watched[threading.get_ident()] = True
    else:
        watched.pop(threading.get_ident(), None)


class _Mode:
    """Base of the recording modes: sets `recording` (and `inference`), and restores what was before."""

    recording = False
    inference: bool | None = None
    _stack: list[tuple[bool, bool]]

    def __enter__(self) -> Any:
        if "_stack" not in self.__dict__:
            self._stack = []
        self._stack.append((state.recording, state.inference))
        inference = state.inference if self.inference is None else self.inference
        set_state(self.recording and not inference, inference)
        return self

    def __exit__(self, *exc: Any) -> None:
        set_state(*self._stack.pop())

    def clone(self) -> _Mode:
        """A mode of the same kind, to be entered on its own."""
        return type(self)()

    def __call__(self, function: Any) -> Any:
        """Decorate: the mode holds while `function` runs (for a generator: only while the generator runs)."""
        if inspect.isclass(function):
            setattr(function, "__init__", self(function.__init__))  # noqa: B010
            return function
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return decorated

    def _generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                generator = function(*args, **kwargs)
            sent: Any = None
            failed: BaseException | None = None
            while True:
                try:
                    with self.clone():
                        value = generator.send(sent) if failed is None else generator.throw(failed)
                except StopIteration as stop:
                    return stop.value
                sent = failed = None
                try:
                    sent = yield value
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    failed = error

        return decorated


class _Bare(type):
    """Lets `with no_grad:` and `@no_grad` work without parentheses."""

    _open: threading.local = threading.local()

    def __enter__(cls) -> Any:
        stack = _Bare._open.__dict__.setdefault("stack", [])
        mode = cls()
        stack.append(mode)
        return mode.__enter__()

    def __exit__(cls, *exc: Any) -> None:
        _Bare._open.stack.pop().__exit__(*exc)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]):
            return type.__call__(cls)(args[0])
        return type.__call__(cls, *args, **kwargs)


class no_grad(_Mode, metaclass=_Bare):
    """Nothing is recorded inside.

    >>> with no_grad():
    ...     is_grad_enabled()
    False
    """

    recording = False


class enable_grad(_Mode, metaclass=_Bare):
    """Operations are recorded inside, also within `no_grad`."""

    recording = True


class set_grad_enabled(_Mode):
    """Recording on or off, at once; as a context manager it restores what was before."""

    def __init__(self, mode: bool):
        self.recording = bool(mode)
        self._before = state.recording
        set_state(self.recording, state.inference)

    def __enter__(self) -> Any:
        if "_stack" not in self.__dict__:
            self._stack = []
        self._stack.append((self._before, state.inference))
        set_state(self.recording, state.inference)
        return self

    def clone(self) -> _Mode:
        """A mode of the same kind, to be entered on its own."""
        return set_grad_enabled(self.recording)

    def __call__(self, function: Any) -> Any:
        set_state(self._before, state.inference)
        return super().__call__(function)


class inference_mode(_Mode, metaclass=_Bare):
    """Like `no_grad`, and tensors made inside can never be recorded: they have no version counter."""

    def __init__(self, mode: bool = True):
        self.mode = mode
        self.recording = not mode
        self.inference = mode

    def clone(self) -> _Mode:
        """A mode of the same kind, to be entered on its own."""
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread.

    >>> with sg.no_grad():
    ...     sg.is_grad_enabled()
    False
    """
    return state.recording


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`.

    >>> with sg.inference_mode():
    ...     sg.is_inference_mode_enabled()
    True
    """
    return state.inference
