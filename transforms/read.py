"""Read: from a function object to a tree, with the positions of the user's own file.

Before: a function made by `def` or `lambda`, whose text `linecache` can find.
After:  a `gast.FunctionDef` without decorators that compiles to the function's own code object.
Why here: first; every later pass works on trees.

The text that is found is compiled and compared with the function's code object, in a context that reproduces
its free variables, its class and its imports. So a text that was edited after it was imported, or the wrong
lambda of a line, is never taken for the function; and what a decorator returned is read as what it is.

>>> import calendar
>>> source = read(calendar.weekday)
>>> source.name, source.line(source.tree.lineno)
('weekday', 'def weekday(year, month, day):')
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import itertools
import linecache
import os
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import gast

from srcgrad.runtime.errors import SourceError, SrcgradError, located
from srcgrad.transforms.tree.build import clone

E = TypeVar("E", bound=SrcgradError)


@dataclass(frozen=True)
class Source:
    """A function, its tree, and the text to which the tree's lines and columns (in bytes) refer."""

    function: types.FunctionType
    tree: gast.FunctionDef
    filename: str
    lines: list[str]
    name: str

    def line(self, number: int) -> str:
        """The text of a line of the file, counted from 1; empty where there is none."""
        return self.lines[number - 1].rstrip("\r\n") if 0 < number <= len(self.lines) else ""


def read(function: Callable[..., Any]) -> Source:
    """The source of a function or method; each call gives a new tree, which passes may change.

    Raises `SourceError` where there's no text, or where it is not what the function was compiled from.
    """
    plain = _plain(function)
    with _lock:
        found = _found.get(id(plain.__code__))
        if found is None:
            found = _find(plain)
            _remember(plain.__code__, found)
        if found.tree is None:
            found.tree = gast.ast_to_gast(found.node)
    tree = clone(found.tree)
    return Source(plain, tree, found.filename, found.lines, tree.name)


def fail(error: type[E], source: Source, node: gast.AST, what: str, why: str) -> E:
    """An error that shows the user's line with a caret under `node`.

    A node that a pass made, without a position, is shown as the function's first line.
    """
    place = node if getattr(node, "lineno", None) else source.tree
    text = source.line(place.lineno)
    encoded = text.encode()
    stop = place.end_col_offset if place.end_lineno == place.lineno else None
    before = encoded[: place.col_offset].decode(errors="replace").expandtabs(4)
    upto = encoded[:stop].decode(errors="replace").rstrip().expandtabs(4)
    shown = text.expandtabs(4)
    return error(located(source.filename, place.lineno, shown, len(before), len(upto), what, why))


# Finding


@dataclass
class _Found:
    node: ast.AST
    filename: str
    lines: list[str]
    tree: Any = None
    """`node` as gast has it; made when it is first asked for, and never changed."""


@dataclass(frozen=True)
class _Candidate:
    """A definition in a file, the module's statement that contains it, and the class around it, if any."""

    node: Any
    statement: ast.stmt
    class_name: str | None


_lock = threading.RLock()
_found: dict[int, _Found] = {}
_modules: dict[str, tuple[list[str], ast.Module]] = {}  # the files read last, oldest first
_MODULES_KEPT = 16


def _remember(code: types.CodeType, found: _Found) -> None:
    """Keep `found` while the code object lives; by identity, as equal code may come from different files."""
    _found[id(code)] = found
    weakref.finalize(code, _found.pop, id(code), None).atexit = False


def known_source(code: types.CodeType, node: ast.AST, filename: str, lines: list[str]) -> None:
    """Notes the definition that emitted code was compiled from, so that `read` need not look for it."""
    with _lock:
        _remember(code, _Found(node, filename, lines))


def _plain(function: Any) -> types.FunctionType:
    if isinstance(function, (types.MethodType, staticmethod, classmethod)):
        function = function.__func__
    if isinstance(function, types.FunctionType):
        return function
    kind = type(function).__name__
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    if isinstance(function, type):
        why = "a class has no single body.\nPass one of its methods, or a function that uses an object."
    elif isinstance(vars(type(function)).get("__call__"), types.FunctionType):
        why = f"it's an object of type `{kind}`.\nPass its method `__call__`, or the function that it wraps."
    else:
        why = (
            f"it's compiled code (`{kind}`).\nCall it from a Python function, and give it a derivative rule."
        )
    raise SourceError(f"cannot read the source of `{name}`: {why}")


def _find(function: types.FunctionType) -> _Found:
    code = function.__code__
    place, name = f"{code.co_filename}:{code.co_firstlineno}", function.__qualname__
    missing = True
    for filename, lines in _texts(function):
        missing = False
        module = _parsed(filename, lines)
        if module is None:
            continue
        # First at the code's own line; then anywhere, as lines above the function may have come or gone.
        for line in (code.co_firstlineno, None):
            candidate = _matching(module, list(_candidates(module, code.co_name, line)), code)
            if candidate is not None:
                return _Found(_definition(candidate), filename, lines)
    if missing:
        raise SourceError(f"{place}: cannot read the source of `{name}`: {_absence(code.co_filename)}")
    raise SourceError(
        f"{place}: the source of `{name}` changed since import: what is written there is not what runs.\n"
        "Reload the module or restart the session. (Or an import hook rewrote the function: read it without.)"
    )


def _absence(filename: str) -> str:
    if not filename.startswith("<"):
        return f"the file doesn't exist or is empty.\nPut {os.path.basename(filename)} back where it was."
    return (
        "it was typed at a prompt or run by `exec`, and Python keeps no text of it.\n"
        "Put it in a file, or give linecache the text under a name of its own: "
        "`linecache.cache[name] = (len(text), None, text.splitlines(True), name)`, then "
        "`exec(compile(text, name, 'exec'))`."
    )


def _texts(function: types.FunctionType) -> Iterator[tuple[str, list[str]]]:
    """The texts that may hold the function: what linecache knows, then what is on disk now."""
    module = function.__globals__
    filename = function.__code__.co_filename
    lines = linecache.getlines(filename, module)
    if not lines:  # a relative name, and the working directory has changed
        path = module.get("__file__")
        if isinstance(path, str) and os.path.basename(path) == os.path.basename(filename):
            filename = path
            lines = linecache.getlines(filename, module)
    if lines:
        yield filename, lines
        linecache.checkcache(filename)
        newer = linecache.getlines(filename, module)
        if newer and newer != lines:
            yield filename, newer


def _parsed(filename: str, lines: list[str]) -> ast.Module | None:
    kept = _modules.pop(filename, None)
    if kept is None or kept[0] != lines:
        try:
            with _quiet():
                kept = lines, ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            return None
    _modules[filename] = kept
    if len(_modules) > _MODULES_KEPT:
        del _modules[next(iter(_modules))]
    return kept[1]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Compiling a text for the second time repeats no warning, nor raises one that was made an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Candidates


def _beginning(node: Any) -> Any:
    """The node at whose line Python says that a definition begins: its first decorator, or itself."""
    decorators = getattr(node, "decorator_list", None)
    return decorators[0] if decorators else node


def _candidates(module: ast.Module, name: str, line: int | None) -> Iterator[_Candidate]:
    """The definitions of a name, or the lambdas, that begin at a line, or anywhere."""
    kinds = ast.Lambda if name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    for statement in module.body:
        waiting: list[tuple[Any, str | None]] = [(statement, None)]
        while waiting:
            node, class_name = waiting.pop()
            if line is not None and hasattr(node, "lineno"):
                if not _beginning(node).lineno <= line <= node.end_lineno:
                    continue
            if isinstance(node, kinds) and getattr(node, "name", name) == name:
                if line is None or _beginning(node).lineno == line:
                    yield _Candidate(node, statement, class_name)
            if isinstance(node, ast.ClassDef):
                waiting += [(child, node.name) for child in node.body]
                waiting += [
                    (child, class_name) for child in (*node.bases, *node.keywords, *node.decorator_list)
                ]
            else:
                waiting += [(child, class_name) for child in ast.iter_child_nodes(node)]


def _definition(candidate: _Candidate) -> Any:
    """What the tree is made from: no decorators, a lambda as a function, names mangled as in the class."""
    node = candidate.node
    if isinstance(node, ast.Lambda):
        result = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(ast.FunctionDef("lambda_", node.args, [result], []), node)
    elif node.decorator_list:
        node = copy.copy(node)
        node.decorator_list = []
    prefix = (candidate.class_name or "").lstrip("_")
    return _Mangler(f"_{prefix}").mangled(node) if prefix else node


class _Mangler(ast.NodeTransformer):
    """Gives `__private` names the form that the compiler gives them in a class body."""

    fields = ("id", "attr", "arg", "name", "asname", "rest", "names")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def mangled(self, node: Any) -> Any:
        nodes = list(ast.walk(node))
        if any(self.named(getattr(n, field, None)) for n in nodes for field in self.fields):
            own = node.name
            node = self.visit(copy.deepcopy(node))
            node.name = own
        return node

    def named(self, name: object) -> bool:
        if isinstance(name, list):
            return any(map(self.named, name))
        return isinstance(name, str) and name.startswith("__") and not name.endswith("__") and "." not in name

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.keyword):  # the one place where names stay as they are written
            return self.generic_visit(node)
        for field in self.fields:
            name = getattr(node, field, None)
            if self.named(name):
                if isinstance(name, list):
                    name = [self.prefix + part if self.named(part) else part for part in name]
                    setattr(node, field, name)
                else:
                    setattr(node, field, f"{self.prefix}{name}")
        if not isinstance(node, ast.ClassDef):
            return self.generic_visit(node)
        for outside in (node.bases, node.keywords, node.decorator_list):  # its body has a prefix of its own
            outside[:] = map(self.visit, outside)
        return node


# Comparing

_MARK = 1 << 20  # beyond the lines of any file
_FUTURE = sum(
    getattr(__future__, name).compiler_flag
    for name in __future__.all_feature_names
    if name not in ("nested_scopes", "generators")  # their flags say something else by now
)


def _matching(module: ast.Module, candidates: list[_Candidate], code: types.CodeType) -> _Candidate | None:
    """The candidate that compiles to `code`; of several, one whose expressions stand at the same places.

    Calls of attributes of imported names compile to instructions of their own, so the module's imports belong
    to the context; but notebooks compile each statement on its own.
    """
    same: list[_Candidate] = []
    for _, group in itertools.groupby(candidates, key=lambda candidate: id(candidate.statement)):
        members = list(group)
        contexts: list[list[ast.stmt]] = [_imports(module), []]
        for context in contexts:
            for candidate, made in zip(members, _compiled(members, context, code), strict=True):
                if made is not None and _identity(made) == _identity(code):
                    if _placed(made, code):
                        return candidate
                    same.append(candidate)
    return same[0] if same else None


def _imports(module: ast.Module) -> list[ast.stmt]:
    """Import statements for all names that a module imports in its own scope."""
    aliases: list[ast.alias] = []
    waiting: list[Any] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [(alias.asname or alias.name).split(".")[0] for alias in node.names]
            aliases += [ast.alias(name) for name in names if name != "*"]
        elif isinstance(
            node, (ast.If, ast.Try, ast.TryStar, ast.With, ast.For, ast.While, ast.ExceptHandler)
        ):
            waiting += ast.iter_child_nodes(node)
    return [ast.fix_missing_locations(ast.Import(aliases, lineno=1, col_offset=0))] if aliases else []


def _compiled(
    candidates: list[_Candidate], context: list[ast.stmt], code: types.CodeType
) -> list[types.CodeType | None]:
    """The code objects of definitions in one statement of a module, compiled with the whole statement.

    To find them again, their first lines are changed for the time of the compilation.
    """
    beginnings = [_beginning(candidate.node) for candidate in candidates]
    lines = [(node.lineno, node.end_lineno) for node in beginnings]
    module = ast.Module([*context, candidates[0].statement], [])
    flags = (code.co_flags & _FUTURE) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        for number, node in enumerate(beginnings):
            node.lineno, node.end_lineno = _MARK + number, 2 * _MARK
        if "@pytest_ar" in code.co_names:
            module = _asserting(module)
        with _quiet():
            whole = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return [None] * len(candidates)
    finally:
        for node, (line, end) in zip(beginnings, lines, strict=True):
            node.lineno, node.end_lineno = line, end
    made = {part.co_firstlineno: part for part in _parts(whole)}
    return [made.get(_MARK + number) for number in range(len(candidates))]


def _asserting(module: ast.Module) -> ast.Module:
    """What pytest makes of a test module's statement: it replaces `assert` before it compiles."""
    module = copy.deepcopy(module)
    sys.modules["_pytest.assertion.rewrite"].rewrite_asserts(module, b"")
    return module


def _parts(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts(constant)


def _identity(constant: Any) -> Any:
    """A value that differs for 1 and 1.0, 0.0 and -0.0, and code that differs in anything but its place."""
    if isinstance(constant, types.CodeType):
        return (
            constant.co_code,
            constant.co_exceptiontable,
            constant.co_name,
            constant.co_names,
            constant.co_varnames,
            constant.co_freevars,
            constant.co_cellvars,
            constant.co_argcount,
            constant.co_posonlyargcount,
            constant.co_kwonlyargcount,
            constant.co_flags,
            tuple(map(_identity, constant.co_consts)),
        )
    if isinstance(constant, (tuple, frozenset)):
        return type(constant), type(constant)(map(_identity, constant))
    return type(constant), constant if isinstance(constant, (str, bytes, int)) else repr(constant)


def _placed(made: types.CodeType, code: types.CodeType) -> bool:
    """Whether the expressions of two equal code objects stand at the same lines and columns."""
    places = zip(made.co_positions(), code.co_positions(), strict=True)
    return all(a == b or (a[0] or 0) >= _MARK for a, b in places)
