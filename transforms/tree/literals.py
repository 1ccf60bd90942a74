"""Literals: the text of constants and docstrings and the plain parts of f-strings, exact to the last bit."""

from __future__ import annotations

import math
import re
from typing import Any


def constant(value: Any) -> str:
    """A literal, or for complex numbers an expression, that evaluates to exactly this value.

    >>> constant(float("-inf")), constant(complex(-0.0, -2)), constant(complex(-0.0, 2))
    ('-1e309', '-0.0 - 2j', '-(0.0 - 2j)')
    """
    if value is Ellipsis:
        return "..."
    if isinstance(value, float):
        return float.__repr__(value).replace("inf", "1e309")
    if isinstance(value, complex):
        real, imaginary = constant(value.real), repr(complex(0, abs(value.imag))).replace("inf", "1e309")
        if math.copysign(1, value.imag) < 0:
            return f"{real} - {imaginary}"
        if real == "0.0":
            return imaginary
        return f"-(0.0 - {imaginary})" if real == "-0.0" else f"{real} + {imaginary}"
    if isinstance(value, tuple):
        return f"({', '.join(map(constant, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def docstring(text: str) -> str:
    """A string in triple quotes, its line breaks and tabs kept.

    >>> print(docstring('Says "word"'))
    \"""Says "word\\"\"""
    """
    inside = "\n".join("\t".join(map(_escaped, line.split("\t"))) for line in text.split("\n"))
    return f'"""{_guarded(inside)}"""'


def _escaped(text: str) -> str:
    """Text as it stands between double quotes, but for double quotes themselves."""
    return repr(text + '"')[1:-2].replace("\\'", "'")  # the added quote makes `repr` use single quotes


def _guarded(inside: str) -> str:
    """Text in which no three double quotes meet, and which may stand before three."""
    return re.sub(r'"(?=""|\Z)', r"\"", inside)


def quoted(text: str, quote: str) -> str:
    """Plain text of an f-string as it stands between the given quotes."""
    inside = _escaped(text).replace("{", "{{").replace("}", "}}")
    if quote == "'":
        return inside.replace("'", "\\'")
    if quote == '"':
        return inside.replace('"', '\\"')
    if quote == "'''":
        return re.sub(r"'(?=''|\Z)", r"\'", inside)
    return _guarded(inside)
