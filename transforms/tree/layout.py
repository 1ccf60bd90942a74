"""Lines: a statement printed as pieces is broken where it's too long, as a careful hand would do it.

>>> pieces = ["x = f", opening("(", comma=True), "a" * 60, breaking(", ", COMMA), "b" * 60, Closing(")")]
>>> for line in lay_out(pieces, indent=""):
...     print(line)
x = f(
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,
    bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb,
)
"""

from __future__ import annotations

WIDTH = 100
COMMA = 0  # the strength at which a comma holds a line together; an operator holds it more strongly


class Breaking(str):
    """A piece of a line after which (a comma) or before which (an operator) a long line may be broken."""

    strength: int


class Opening(str):
    """An opening bracket; `broken` is its text when the line is broken inside, `""` printing as `"("`."""

    comma: bool


class Closing(str):
    """A closing bracket."""


def breaking(text: str, strength: int) -> Breaking:
    piece = Breaking(text)
    piece.strength = strength
    return piece


def opening(text: str, comma: bool) -> Opening:
    piece = Opening(text)
    piece.comma = comma  # whether one more comma at the end changes nothing
    return piece


def lay_out(parts: list[str], indent: str) -> list[str]:
    """The lines of one statement: a line that is too long is broken inside its longest pair of brackets."""
    text = indent + "".join(parts)
    if len(text) <= WIDTH:
        return [text]
    group = _longest_group(parts)
    if group is None:
        return [text]
    start, end = group
    inner = indent + "    "
    body = parts[start + 1 : end]
    lines = [indent + "".join(parts[:start]) + (parts[start] or "(")]
    if len(inner) + sum(map(len, body)) <= WIDTH:
        lines.append(inner + "".join(body))
    else:
        lines += _broken(body, inner, parts[start].comma)  # type: ignore[attr-defined]
    return [*lines, indent + (parts[end] or ")") + "".join(parts[end + 1 :])]


def _longest_group(parts: list[str]) -> tuple[int, int] | None:
    """Where the longest outermost pair of brackets with a place to break in it stands."""
    best, best_length = None, 0
    depth = start = length = 0
    breakable = False
    for position, part in enumerate(parts):
        length += len(part)
        if isinstance(part, Opening):
            if depth == 0:
                start, length, breakable = position, 0, False
            depth += 1
        elif isinstance(part, Closing):
            depth -= 1
            if depth == 0 and breakable and length > best_length:
                best, best_length = (start, position), length
        elif isinstance(part, Breaking):
            breakable = True
    return best


def _broken(parts: list[str], indent: str, comma: bool) -> list[str]:
    """The inside of a pair of brackets, broken at its commas, or else at its weakest operators."""
    depth = 0
    breaks = []
    for position, part in enumerate(parts):
        depth += isinstance(part, Opening) - isinstance(part, Closing)
        if depth == 0 and isinstance(part, Breaking):
            breaks.append((part.strength, position))
    weakest = min(breaks, default=(0, 0))[0]
    at = [position for strength, position in breaks if strength == weakest]
    if weakest == COMMA and at:
        last = [","] if comma else []
        ends = [*at, len(parts)]
        pieces = [parts[start + 1 : end] for start, end in zip([-1, *at], ends, strict=True)]
        pieces = [[*piece, ","] for piece in pieces[:-1]] + [pieces[-1] + last]
    else:
        pieces = [parts[start:end] for start, end in zip([0, *at], [*at, len(parts)], strict=True)]
        pieces = [pieces[0]] + [[piece[0].lstrip(), *piece[1:]] for piece in pieces[1:]]
    lines: list[str] = []
    for piece in pieces:
        further = len(pieces) > 1 and _longest_group(piece) is None  # at its next weakest operators
        long = len(indent) + sum(map(len, piece)) > WIDTH
        lines += _broken(piece, indent, False) if long and further else lay_out(piece, indent)
    return lines
