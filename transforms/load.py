"""Load: from emitted text to a function object that lives in the user's module.

The function runs in the globals of the user's function, shares its closure cells, and reaches NumPy and the
support functions through cells of its own, so that no name can clash. Its text is registered with `linecache`
for debuggers, tracebacks and `inspect.getsource`.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import linecache
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from srcgrad.transforms.read import known_source

LINES: dict[str, tuple[str, dict[int, int]]] = {}
"""For each emitted file: the user's file, and which of its lines each emitted line comes from."""


def load(
    text: str,
    name: str,
    function: types.FunctionType,
    cells: dict[str, types.CellType],
    defaults: tuple[tuple[Any, ...] | None, dict[str, Any] | None] = (None, None),
    origins: tuple[str, dict[int, int]] | None = None,
) -> types.FunctionType:
    """Compiles `text`, the definition of the function `name`, into the surroundings of `function`.

    `cells` are what the emitted code reaches beside the user's globals; `defaults` are the values of its
    parameters' defaults, which the text only shows."""
    digest = hashlib.sha1(f"{function.__module__}.{function.__qualname__}\n{text}".encode()).hexdigest()[:8]
    filename = f"<srcgrad {name} {digest}>"
    tree = ast.parse(text, filename)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    shown, definition = definition, copy.copy(definition)
    definition.args = copy.copy(definition.args)
    definition.args.defaults = []
    definition.args.kw_defaults = [None] * len(definition.args.kwonlyargs)
    user = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    available = {**user, **cells}
    names: list[ast.expr] = [ast.Name(n, ast.Store()) for n in available]
    outer = ast.FunctionDef("emitted", ast.arguments([], [], None, [], [], None, []), [definition], [])
    if sys.version_info >= (3, 12):
        outer.type_params = []
    if names:
        outer.body.insert(0, ast.Assign(names, ast.Constant(None)))
    module = ast.fix_missing_locations(ast.Module([outer], []))
    code = next(_codes(compile(module, filename, "exec", dont_inherit=True), name, 2))
    closure = tuple(available[n] for n in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, name, defaults[0], closure)
    made.__kwdefaults__ = defaults[1]
    made.__module__ = function.__module__
    while _gone:
        linecache.cache.pop(_gone.pop(), None)
    lines = text.splitlines(True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    known_source(code, shown, filename, lines)
    if origins is not None:
        LINES[filename] = origins
    for part in _every(code):  # functions defined inside may outlive the emitted one
        _alive[filename] = _alive.get(filename, 0) + 1
        weakref.finalize(part, _forget, filename).atexit = False
    return made


_alive: dict[str, int] = {}
"""How many code objects show a text: the same text may be emitted more than once."""

_gone: list[str] = []
"""The texts that nothing shows any more. They leave `linecache` when the next one comes: a code object may
die while `linecache.checkcache` walks through its entries, which must then still be there."""


def _forget(filename: str) -> None:
    _alive[filename] -= 1
    if not _alive[filename]:
        del _alive[filename]
        _gone.append(filename)
        LINES.pop(filename, None)


def _every(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _every(constant)


def _codes(code: types.CodeType, name: str, depth: int) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if depth == 1 and constant.co_name == name:
                yield constant
            elif depth > 1:
                yield from _codes(constant, name, depth - 1)
