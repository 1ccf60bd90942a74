"""Export: an emitted derivative as a module of its own that needs NumPy only.

The module holds the emitted functions as they are shown, and from the library the few support functions that
they call, without annotations and without what serves Tensors. The user's imports, plain functions and
constants come along. Constants are those of the moment of the export.
"""

from __future__ import annotations

import ast
import builtins
import dis
import hashlib
import inspect
import keyword
import linecache
import os
import sys
import tempfile
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import srcgrad
from srcgrad.gradient import Gradient, plain_function
from srcgrad.runtime import arrays
from srcgrad.runtime.errors import ExportError

_LARGEST = 1000
"""The size up to which an array is written into the module."""


def export(df: Any, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
    """Write the derivative `df` (of `grad` or `value_and_grad`) to the file `path`, as a module that needs
    NumPy and the user's own imports only.

    With arguments, the version for arguments of their kinds (see `df.source_for`), which is leaner; without,
    the one that serves all kinds or those of the annotations. The same input gives the same bytes. Numbers,
    strings and small arrays that the function reads from its module or closure are written as they are now.

    Raises `ExportError` for what a text can't hold: objects, open callbacks, large arrays.

    >>> import os, runpy, tempfile
    >>> def cube(x: float) -> float:
    ...     return x**3
    >>> path = os.path.join(tempfile.mkdtemp(), "cubes.py")
    >>> export(srcgrad.grad(cube), path)
    >>> runpy.run_path(path)["cube_grad"](2.0)
    12.0
    """
    write_text(Path(path), module_text(df, args, kwargs))


def module_text(df: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> str:
    """The text of the module that `export` writes."""
    if not isinstance(df, Gradient):
        name = getattr(df, "__qualname__", repr(df))
        raise ExportError(
            f"export needs a function made by srcgrad.grad or srcgrad.value_and_grad, which `{name}` is not."
        )
    if df.leading:
        raise ExportError(
            f"{df._title} is bound to a {type(df.leading[0]).__name__}, which a text can't hold. Export the "
            "gradient of a plain function that takes what it needs as arguments."
        )
    given = args or kwargs
    function = df.__srcgrad_call__(args, kwargs or {}) if given else df._generic().function
    return _Module(function, df).text()


def digest(function: Any) -> str:
    """A hash of a function's text, for the header of an export."""
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16]


def write_text(path: Path, text: str) -> None:
    """Replace the file in one step: a reader sees the old text or the new one. A new file gets the
    permissions that `open` would give it; one that exists keeps its own."""
    path = path.resolve()
    if path.exists():
        mode = path.stat().st_mode & 0o777
    else:
        mask = os.umask(0o077)
        os.umask(mask)
        mode = 0o666 & ~mask
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _emitted(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith("<srcgrad ")


def _ours(module: str | None) -> bool:
    return module == "srcgrad" or bool(module and module.startswith("srcgrad."))


class _Item:
    """One thing that the module defines: its text, and which object each of its outer names stands for."""

    def __init__(self, value: Any, wanted: str, kind: str) -> None:
        self.value, self.wanted, self.kind = value, wanted, kind
        self.text = ""
        self.uses: dict[str, _Item] = {}
        self.locals: set[str] = set()
        self.name = wanted


class _Module:
    def __init__(self, function: types.FunctionType, df: Gradient) -> None:
        self.df = df
        self.home = function.__module__
        self.items: dict[Any, _Item] = {}
        self.kept: list[Any] = []  # what lives only here must not lend its id to another
        self.root = self.item(function, function.__name__, function.__name__)

    # What belongs to it -------------------------------------------------------------------------------------

    def item(self, value: Any, wanted: str, user: str) -> _Item:
        """What stands for `value`, which `user` calls `wanted`."""
        plain = not isinstance(value, (types.ModuleType, type)) and not callable(value)
        key: Any = (id(value), wanted) if plain else id(value)
        if key in self.items:
            return self.items[key]
        self.kept.append(value)
        if isinstance(value, types.ModuleType):
            if _ours(value.__name__):
                raise self.refused(user, f"the module {value.__name__}")
            made = _Item(value, wanted, "import")
            head, _, last = value.__name__.rpartition(".")
            made.text = f"from {head} import {last}" if head else f"import {last}"
        elif _ours(getattr(value, "__module__", None)) and value.__module__.endswith(".dispatch"):
            raise self.refused(user, "a function or method that is found at run time only")
        elif isinstance(inspect.unwrap(value), types.FunctionType) and self.written(value):
            made = self.items[key] = _Item(value, value.__name__, "function")
            if not _ours(value.__module__) and not isinstance(value, types.FunctionType):
                raise self.refused(user, f"`{wanted}`, a {type(value).__name__}")
            self.function(made)
        elif isinstance(value, type) and _ours(value.__module__):
            made = self.items[key] = _Item(value, value.__name__, "class")
            if issubclass(value, Exception):
                base = next(c for c in value.__mro__[1:] if c.__module__ == "builtins" and c is not Exception)
                made.text = f"class {value.__name__}({base.__name__}):\n    pass"
            else:
                self.from_library(made, inspect.getsource(value), vars(sys.modules[value.__module__]))
        elif (origin := _importable(value)) == ("builtins", wanted):
            made = _Item(value, wanted, "builtin")
        elif origin is not None:
            made = _Item(value, wanted, "import")
            made.text = f"from {origin[0]} import {origin[1]}"
        else:
            made = _Item(value, wanted, "constant")
            made.text = self.constant(made, user)
        self.items[key] = made
        return made

    def refused(self, user: str, what: str) -> ExportError:
        return ExportError(
            f"can't export the gradient of {self.df._title}: `{user}` uses {what}, which a module that "
            "stands alone can't hold. Pass it as an argument, or keep using the gradient within srcgrad."
        )

    def written(self, function: Any) -> bool:
        """Is the function's own text written into the module (or is it imported)?"""
        return (
            _emitted(function)
            or _ours(function.__module__)
            or function.__module__ == self.home
            or _importable(function) is None
        )

    def function(self, made: _Item) -> None:
        function = made.value
        emitted = _emitted(function)
        if not emitted and _ours(function.__module__):
            plain = inspect.unwrap(function)
            made.wanted = plain.__name__
            if plain is arrays.namespace:  # a module that needs NumPy only serves NumPy's arrays only
                made.text = "def namespace(*arrays):\n    return np"
                made.uses["np"] = self.item(np, "np", made.wanted)
                return
            self.from_library(made, inspect.getsource(plain), plain.__globals__)
            return
        if emitted:
            text = "".join(linecache.getlines(function.__code__.co_filename))
        else:
            try:
                text = textwrap.dedent(inspect.getsource(plain_function(function)[0]))
                ast.parse(text)
            except (OSError, TypeError, SyntaxError):
                raise self.refused(made.wanted, f"the function `{made.wanted}` without source") from None
            if hasattr(function, "__wrapped__") or not _is_text_of(text, function):
                raise self.refused(
                    made.wanted, f"the text of `{made.wanted}`, hidden by a decorator or changed since"
                )
            if not text.startswith("def "):
                raise self.refused(made.wanted, f"`{made.wanted}`, which is no plain `def`")
        made.text = text.strip("\n")
        definition = ast.parse(text).body[0]
        assert isinstance(definition, ast.FunctionDef)
        for node in ast.walk(definition):
            if isinstance(node, ast.Nonlocal) and node in definition.body:
                raise self.refused(made.wanted, "a `nonlocal` variable")
        self.defaults(made, definition)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name in _outer_names(function.__code__, made):
            if name in cells:
                try:
                    value = cells[name].cell_contents
                except ValueError:
                    raise self.refused(made.wanted, f"`{name}`, which has no value yet") from None
            elif name in function.__globals__:
                value = function.__globals__[name]
            else:
                continue
            if value is getattr(builtins, name, self):
                continue
            made.uses[name] = self.item(value, name, made.wanted)
        for node in ast.walk(definition.args):  # annotations and defaults are evaluated outside the code
            if isinstance(node, ast.Name) and node.id in function.__globals__ and node.id not in made.uses:
                made.uses[node.id] = self.item(function.__globals__[node.id], node.id, made.wanted)

    def defaults(self, made: _Item, definition: ast.FunctionDef) -> None:
        """The text shows the defaults; what it shows must be what the function has."""
        function = made.value
        shown = definition.args.defaults
        pairs = list(zip(shown, (function.__defaults__ or ())[-len(shown) :] if shown else (), strict=True))
        keywords = zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True)
        pairs += [(d, (function.__kwdefaults__ or {})[a.arg]) for a, d in keywords if d is not None]
        for node, value in pairs:
            try:
                if repr(ast.literal_eval(node)) == repr(value):
                    continue
            except ValueError:
                if isinstance(node, ast.Name) and function.__globals__.get(node.id) is value:
                    continue
            raise self.refused(made.wanted, f"the default `{ast.unparse(node)}`")

    def from_library(self, made: _Item, text: str, namespace: dict[str, Any]) -> None:
        """The text of a function, class or constant of the library, and what it uses."""
        made.text, own = _lean(text, namespace)
        tree = ast.parse(made.text)
        if any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(tree)):
            raise self.refused(made.wanted, "what is looked up at run time")
        made.locals = own - {made.wanted}
        for name in {n.id: None for n in ast.walk(tree) if isinstance(n, ast.Name)}:
            head, _, attribute = name.partition("_dot_")
            if name in own or name == made.wanted:
                continue
            home, called = (vars(namespace[head]), attribute) if attribute else (namespace, name)
            if called not in home or home[called] is getattr(builtins, called, self):
                continue
            made.uses[name] = self.of_library(home, called, made.wanted)

    def of_library(self, home: dict[str, Any], name: str, user: str) -> _Item:
        value = home[name]
        if isinstance(value, types.ModuleType) or callable(value):
            return self.item(value, name, user)
        found = _assignment(home, name)
        if found is None or isinstance(value, dict):
            raise self.refused(user, "what is looked up at run time")
        key = (found[1]["__name__"], name)
        if key not in self.items:
            made = _Item(value, name, "constant")
            self.from_library(made, *found)
            made.text = made.text.partition("=")[2].strip()
            self.items[key] = made
        return self.items[key]

    def constant(self, made: _Item, user: str) -> str:
        value = made.value
        if isinstance(value, np.ndarray) and type(value) is np.ndarray and value.dtype.kind in "fciub":
            if value.size > _LARGEST:
                raise self.refused(user, f"the array `{made.wanted}` of {value.size} elements")
            if not np.isfinite(value).all():
                raise self.refused(user, f"the array `{made.wanted}`, which is not finite")
            numpy = self.item(np, "np", user)
            made.uses["np"] = numpy
            return f"np.array({value.tolist()!r}, dtype={str(value.dtype)!r}).reshape({value.shape})"
        if isinstance(value, np.generic) and value.dtype.kind in "fciub" and np.isfinite(value):
            made.uses["np"] = self.item(np, "np", user)
            return f"np.{type(value).__name__}({value.item()!r})"
        if type(value) is float and not np.isfinite(value):
            return f'float("{value}")'
        if type(value) in (tuple, list) and value and not _literal(value):
            parts = []
            for i, v in enumerate(value):
                parts.append(self.item(v, f"{made.wanted}_{i}", user))
                made.uses[f"{made.wanted}_{i}"] = parts[-1]
            inside = ", ".join(f"{made.wanted}_{i}" for i in range(len(parts)))
            return f"[{inside}]" if type(value) is list else f"({inside},)"
        if type(value) in (set, frozenset) and value and all(map(_literal, value)):
            inside = "{" + ", ".join(sorted(map(repr, value))) + "}"
            return inside if type(value) is set else f"frozenset({inside})"
        if _literal(value):
            return "set()" if value == set() and type(value) is set else repr(value)
        raise self.refused(user, f"`{made.wanted}`, a {type(value).__name__}")

    # Writing it ---------------------------------------------------------------------------------------------

    def text(self) -> str:
        order = list(self.items.values())
        root, rest = self.root, [i for i in order if i is not self.root]
        taken = set(dir(builtins)) | set(keyword.kwlist)
        hidden: dict[int, set[str]] = {}
        for item in order:
            for used in item.uses.values():
                hidden.setdefault(id(used), set()).update(item.locals)
        for item in [root, *rest]:
            if item.kind == "builtin":
                continue
            name = item.wanted
            while name in taken or name in hidden.get(id(item), ()):
                name += "_"
            item.name = name
            taken.add(name)
        imports: list[str] = []
        constants: list[str] = []
        own: list[str] = []
        classes: list[str] = []
        helpers: list[str] = []
        for item in order:
            body = _renamed(item)
            if item.kind == "import":
                last = item.text.split()[-1]
                imports.append(item.text if item.name == last else f"{item.text} as {item.name}")
            elif item.kind == "constant":
                constants.append(f"{item.name} = {body}")
            elif item is not root and item.kind != "builtin":
                ours = _ours(item.value.__module__) and not _emitted(item.value)
                (own if not ours else classes if item.kind == "class" else helpers).append(body)
        plain = self.df.plain
        header = (
            f'"""The derivative of {plain.__module__}.{plain.__qualname__}, made by srcgrad '
            f"{srcgrad.__version__}. Edit the primal instead.\n\n"
            f'sha256 of the primal: {digest(plain)}\n"""'
        )
        codes = ["E741"] if any({"l", "O", "I"} & i.locals for i in order) else []
        if any(_unused(i.text) for i in order if i.kind == "function"):
            codes.append("F841")  # the user's calls stay where their results aren't needed
        parts = [header + (f"\n\n# ruff: noqa: {', '.join([*codes, 'RUF100'])}" if codes else "")]
        for standard in (True, False):
            group = [
                s for s in imports if (s.split()[1].split(".")[0] in sys.stdlib_module_names) is standard
            ]
            group.sort(key=lambda s: (s.startswith("from"), s))
            parts[0] += "\n\n" + "\n".join(group) if group else ""
        parts[0] += "\n\n" + "\n".join(constants) if constants else ""
        parts += [_renamed(root), *own, *reversed(classes), *helpers]
        return "\n\n\n".join(parts) + "\n"


def _is_text_of(text: str, function: Any) -> bool:
    """Is the function compiled from this text, as far as it can be told without its surroundings?"""
    made = next((c for c in compile(text, "text", "exec").co_consts if isinstance(c, types.CodeType)), None)
    code = function.__code__
    if made is None or made.co_varnames != code.co_varnames or made.co_name != code.co_name:
        return False
    plain = [c for c in made.co_consts if not isinstance(c, types.CodeType)]
    known = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    return bool(code.co_freevars) or (made.co_names == code.co_names and repr(plain) == repr(known))


def _unused(text: str) -> bool:
    """Is a name stored in `text` that is never read?"""
    names = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)]
    stored = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return not stored <= {n.id for n in names if isinstance(n.ctx, ast.Load)}


def _importable(value: Any) -> tuple[str, str] | None:
    """(module, name) under which a statement finds `value`, or None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, np.ufunc):
        module, name = "numpy", value.__name__
    if not isinstance(module, str) or not isinstance(name, str) or not name.isidentifier():
        return None
    if module == "__main__" or _ours(module):
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def _literal(value: Any) -> bool:
    try:
        return bool(type(value) is set and not value) or repr(ast.literal_eval(repr(value))) == repr(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _outer_names(code: types.CodeType, made: _Item) -> Iterator[str]:
    """The names that a code object reads from outside, in the order of its text."""
    seen: dict[str, None] = dict.fromkeys(code.co_freevars)

    def visit(part: types.CodeType) -> None:
        made.locals.update(part.co_varnames, part.co_cellvars)
        for instruction in dis.get_instructions(part):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"):
                seen.setdefault(instruction.argval)
        for constant in part.co_consts:
            if isinstance(constant, types.CodeType):
                visit(constant)

    visit(code)
    return iter(seen)


def _renamed(item: _Item) -> str:
    """The item's text with the names under which the module defines what it uses."""
    changed = {n: used.name for n, used in item.uses.items() if used.name != n}
    if item.kind in ("function", "class") and item.name != item.value.__name__:
        changed[item.value.__name__] = item.name
    if item.kind == "import" or not changed:
        return item.text
    lines = [line.encode() for line in item.text.split("\n")]
    places = []
    for node in ast.walk(ast.parse(item.text)):
        if isinstance(node, ast.Name) and node.id in changed:
            places.append((node.lineno - 1, node.col_offset, node.id))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in changed:
            at = lines[node.lineno - 1].index(node.name.encode(), node.col_offset + 4)
            places.append((node.lineno - 1, at, node.name))
    for row, column, name in sorted(places, reverse=True):
        line = lines[row]
        lines[row] = line[:column] + changed[name].encode() + line[column + len(name.encode()) :]
    return "\n".join(line.decode() for line in lines)


def _lean(text: str, namespace: dict[str, Any]) -> tuple[str, set[str]]:
    """(the text of a library function without annotations, docstrings and what serves Tensors; its names).
    `module.name` of a module of the library becomes `module_dot_name`."""
    text = textwrap.dedent(text).strip("\n")
    tree = ast.parse(text)
    lines = [line.encode() for line in text.split("\n")]
    own = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    own |= {n.id for n in ast.walk(tree.body[0]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    edits: list[tuple[int, int, int, int, str]] = []  # from line, column, to line, column: text

    def edit(start: Any, end: Any, new: str) -> None:
        edits.append((start.lineno - 1, start.col_offset, end.end_lineno - 1, end.end_col_offset, new))

    def whole(first: int, last: int) -> None:
        edits.append((first - 1, 0, last - 1, len(lines[last - 1]), "\0"))

    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                if "cache" not in ast.unparse(decorator) and "property" not in ast.unparse(decorator):
                    whole(decorator.lineno, decorator.end_lineno or 0)
            if ast.get_docstring(node) is not None:
                if len(node.body) == 1:
                    edit(node.body[0], node.body[0], "pass")
                else:
                    last = node.body[0].end_lineno or 0
                    whole(node.body[0].lineno, last if lines[last].strip() else last + 1)
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            row, column = node.returns.lineno - 1, node.returns.col_offset
            start = lines[row].rindex(b"->", 0, column)
            edits.append((row, len(lines[row][:start].rstrip()), row, node.returns.end_col_offset or 0, ""))
        if isinstance(node, ast.arg) and node.annotation is not None:
            at = node.col_offset + len(node.arg.encode())
            end = node.annotation
            edits.append((node.lineno - 1, at, (end.end_lineno or 0) - 1, end.end_col_offset or 0, ""))
        if isinstance(node, ast.AnnAssign):
            if node.value is None:
                whole(node.lineno, node.end_lineno or 0)
            else:
                row, column = node.target.lineno - 1, node.target.end_col_offset or 0
                end = node.annotation
                edits.append((row, column, (end.end_lineno or 0) - 1, end.end_col_offset or 0, ""))
        if isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test).startswith("observers"):
            if not lines[node.lineno - 1].lstrip().startswith(b"elif"):
                whole(node.lineno, node.end_lineno or 0)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in own:
            module = namespace.get(node.value.id)
            if isinstance(module, types.ModuleType) and _ours(module.__name__):
                edit(node, node, f"{node.value.id}_dot_{node.attr}")
    outer: list[tuple[int, int, int, int, str]] = []
    for e in sorted(edits, key=lambda e: (e[0], e[1], -e[2], -e[3])):
        if not outer or (e[0], e[1]) >= (outer[-1][2], outer[-1][3]):
            outer.append(e)
    for row, column, to_row, to_column, new in reversed(outer):
        lines[row : to_row + 1] = [lines[row][:column] + new.encode() + lines[to_row][to_column:]]
    return "\n".join(line.decode() for line in lines if line != b"\0"), own


def _assignment(namespace: dict[str, Any], name: str) -> tuple[str, dict[str, Any]] | None:
    """The statement of the library that makes the constant `name`, and the module where it stands."""
    source = inspect.getsource(sys.modules[namespace["__name__"]])
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if [getattr(t, "id", None) for t in targets] == [name]:
            return ast.get_source_segment(source, node) or "", namespace
        if isinstance(node, ast.ImportFrom) and name in {a.name for a in node.names if not a.asname}:
            if _ours(node.module):
                return _assignment(vars(sys.modules[str(node.module)]), name)
    return None
