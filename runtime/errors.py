"""The errors that srcgrad raises: each says where, what, why, and what to do instead.

All derive from `SrcgradError` and from the builtin exception that fits, so that callers may catch either.
"""

from __future__ import annotations


class SrcgradError(Exception):
    """Base of all errors raised by srcgrad.

    >>> issubclass(UnsupportedSyntax, SrcgradError)
    True
    """


class UnsupportedSyntax(SrcgradError, NotImplementedError):
    """A construct of the language that has no derivative here, e.g. `yield` in a differentiated function."""


class NoRule(SrcgradError, NotImplementedError):
    """A function without Python source and without a derivative rule received a differentiated value."""


class SourceError(SrcgradError, OSError):
    """The source text of a function can't be read, or is not the text that the function was compiled from."""


class AliasError(SrcgradError, ValueError):
    """Memory is shared in a way that would make the derivative wrong."""


class ArgumentError(SrcgradError, TypeError):
    """A transform was asked for something that its arguments don't allow (a wrong `argnums`, an integer
    array)."""


class ResultError(SrcgradError, TypeError):
    """The differentiated function returned something that the transform can't use (not a real scalar)."""


class CheckFailed(SrcgradError, AssertionError):
    """`check_grads` found that a derivative and finite differences disagree."""


class MissingExtra(SrcgradError, ImportError):
    """An optional library is needed; the message names the extra to install."""


class ExportError(SrcgradError, NotImplementedError):
    """A derivative uses what a module that stands alone can't hold (an object, a callback)."""


for _error in (
    SrcgradError,
    UnsupportedSyntax,
    NoRule,
    SourceError,
    AliasError,
    ArgumentError,
    ResultError,
    CheckFailed,
    MissingExtra,
    ExportError,
):
    _error.__module__ = "srcgrad"  # where users find them; tracebacks and pickles name that place


def located(filename: str, line: int, code: str, column: int, end: int, what: str, why: str) -> str:
    """The text of a compile-time error: place, the user's code, a caret under the construct, reason and way
    out.

    `column` and `end` count characters of `code`, from 0.

    >>> text = "    yield loss"
    >>> print(located("model.py", 14, text, 4, 14, "cannot differentiate `yield`", "Collect in a list."))
    model.py:14: cannot differentiate `yield`
        14 |     yield loss
                 ^^^^^^^^^^
    Collect in a list.
    """
    gutter = f"    {line} | "
    width = max(1, min(end, len(code)) - column)
    caret = " " * (len(gutter) + column) + "^" * width
    return f"{filename}:{line}: {what}\n{gutter}{code}\n{caret}\n{why}"
