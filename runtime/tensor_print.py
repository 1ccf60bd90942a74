"""How tensors print: PyTorch's layout, digit for digit."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.runtime import arrays
from srcgrad.runtime.tensor_base import Tensor
from srcgrad.runtime.tensor_types import default_dtype, from_numpy_dtype


class Options:
    """The settings of `set_printoptions`."""

    precision = 4
    threshold: float = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors print: digits, when and how long ones are cut, the width of a line, scientific notation."""
    if profile is not None:
        values = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}[
            profile
        ]
        Options.precision, Options.threshold, Options.edgeitems, Options.linewidth = values
    Options.precision = Options.precision if precision is None else precision
    Options.threshold = Options.threshold if threshold is None else threshold
    Options.edgeitems = Options.edgeitems if edgeitems is None else edgeitems
    Options.linewidth = Options.linewidth if linewidth is None else linewidth
    Options.sci_mode = sci_mode


class Formatter:
    """Formats single numbers to one width, chosen from all the numbers that will be shown."""

    def __init__(self, shown: Any):
        self.floating = shown.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        values = shown.reshape(-1)
        if not self.floating:
            self.width = max([len(str(v)) for v in values.tolist()], default=1)
            return
        exact = values.astype(np.float64)
        finite = exact[np.isfinite(exact) & (exact != 0)]
        if finite.size:
            sizes = np.abs(finite)
            largest, smallest = sizes.max(), sizes.min()
            self.whole = bool(np.all(finite == np.ceil(finite)))
            limits = largest / smallest > 1000.0 or largest > 1.0e8
            self.scientific = limits if self.whole else limits or smallest < 1.0e-4
        if Options.sci_mode is not None:
            self.scientific = Options.sci_mode
        if finite.size:
            self.width = max([self.width, *(len(self._digits(v)) for v in finite.tolist())])

    def _digits(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{Options.precision}e}"
        if self.whole:
            return f"{value:.0f}."
        return f"{value:.{Options.precision}f}"

    def number(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        return self._digits(value) if math.isfinite(value) else str(value)

    def padded(self, value: Any) -> str:
        return self.number(value).rjust(self.width)


class ComplexFormatter:
    """Formats complex numbers as a pair of formatted parts."""

    floating = True

    def __init__(self, shown: Any):
        self.real, self.imag = Formatter(shown.real), Formatter(shown.imag)
        self.width = self.real.width + self.imag.width + 1

    def number(self, value: complex) -> str:
        real, imag = self.real.number(value.real), self.imag.number(value.imag)
        imag = imag if imag.startswith("-") else "+" + imag
        return f"{real}{imag}j"

    def padded(self, value: complex) -> str:
        real = self.real.padded(value.real)
        imag = self.imag.padded(value.imag).lstrip()
        return f"{real}{imag if imag.startswith('-') else '+' + imag}j"


def _vector(a: Any, formatter: Any, indent: int, cut: bool) -> str:
    per_line = max(1, (Options.linewidth - indent) // (formatter.width + 2))
    values = a.tolist()
    edge = Options.edgeitems
    if cut and len(values) > 2 * edge:
        words = (
            [formatter.padded(v) for v in values[:edge]]
            + [" ..."]
            + [formatter.padded(v) for v in values[-edge:]]
        )
    else:
        words = [formatter.padded(v) for v in values]
    lines = [words[i : i + per_line] for i in range(0, len(words), per_line)] or [[]]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _nested(a: Any, formatter: Any, indent: int, cut: bool) -> str:
    if a.ndim == 0:
        return str(formatter.number(a.item()))
    if a.ndim == 1:
        return _vector(a, formatter, indent, cut)
    edge = Options.edgeitems
    if cut and a.shape[0] > 2 * edge:
        parts = [_nested(a[i], formatter, indent + 1, cut) for i in range(edge)]
        parts.append("...")
        parts += [_nested(a[i], formatter, indent + 1, cut) for i in range(a.shape[0] - edge, a.shape[0])]
    else:
        parts = [_nested(x, formatter, indent + 1, cut) for x in a]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _edges(a: Any) -> Any:
    """The items that are shown of a long array."""
    edge = Options.edgeitems
    for axis in range(a.ndim):
        if a.shape[axis] > 2 * edge:
            picked = list(range(edge)) + list(range(a.shape[axis] - edge, a.shape[axis]))
            a = np.take(a, picked, axis)
    return a


def _with_suffixes(body: str, suffixes: Sequence[str], indent: int) -> str:
    out = [body]
    last = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > Options.linewidth:
            out.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
        else:
            out.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(out) + ")"


def text(t: Tensor) -> str:
    """What `repr` shows."""
    a = np.asarray(arrays.to_host(t._array))
    suffixes: list[str] = []
    device = t.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    kind = from_numpy_dtype(a.dtype)
    default = default_dtype()
    if a.size == 0:
        if a.ndim != 1:
            suffixes.append(f"size={tuple(a.shape)}")
        if kind is not default:
            suffixes.append(f"dtype={kind!r}")
        numbers = "[]"
    else:
        if kind.name not in ("bool", "int64") and kind is not default and kind is not default.to_complex():
            suffixes.append(f"dtype={kind!r}")
        cut = a.size > Options.threshold
        shown = _edges(a) if cut else a
        formatter = ComplexFormatter(shown) if kind.is_complex else Formatter(shown)
        numbers = _nested(a, formatter, 7, cut)
    node = t.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    prefix = "tensor("
    body = _with_suffixes(prefix + numbers, suffixes, len(prefix))
    return body if type(t) is Tensor else _named(t, body)


def _named(t: Tensor, body: str) -> str:
    name = getattr(type(t), "_printed_as", None)
    return f"{name} containing:\n{body}" if name else body
