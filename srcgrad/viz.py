"""Pictures of the eager graph.

>>> import srcgrad as sg
>>> x = sg.tensor(2.0, requires_grad=True)
>>> print(graph(x * x).source.splitlines()[0])
digraph {
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from srcgrad.runtime.autograd.graph import AccumulateGrad, Node
from srcgrad.runtime.errors import MissingExtra
from srcgrad.runtime.tensor_base import Tensor


class Graph:
    """A drawn graph: `source` is its DOT text; a notebook shows it as SVG when the `viz` extra is
    installed."""

    def __init__(self, source: str):
        self.source = source

    def __str__(self) -> str:
        return self.source

    def _rendered(self, kind: str) -> bytes:
        try:
            graphviz = importlib.import_module("graphviz")
        except ImportError as error:
            raise MissingExtra(
                'drawing the graph as a picture needs Graphviz: `pip install "srcgrad[viz]"`, and the '
                "program `dot`; "
                "the text is in `.source`"
            ) from error
        try:
            return bytes(graphviz.Source(self.source).pipe(format=kind))
        except graphviz.ExecutableNotFound as error:
            raise MissingExtra(
                "drawing the graph as a picture needs the program `dot` of Graphviz, which pip doesn't "
                "bring: `apt install graphviz`, `brew install graphviz` or `conda install graphviz`; "
                "the text is in `.source`"
            ) from error

    def svg(self) -> str:
        """The picture as SVG."""
        return self._rendered("svg").decode()

    def png(self) -> bytes:
        """The picture as PNG."""
        return self._rendered("png")

    def save(self, path: str) -> str:
        """Write the picture to a file; the ending says how: .dot, .svg, .png, .pdf. Returns the path."""
        kind = str(path).rpartition(".")[2]
        content = self.source.encode() if kind in ("dot", "gv", "txt") else self._rendered(kind)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg(), "text/plain": self.source}
        except Exception:  # without the extra, or without the program `dot`, a notebook shows the text
            return {"text/plain": self.source}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def graph(tensor: Any, params: Mapping[str, Tensor] | None = None) -> Graph:
    """The graph that led to `tensor` (or to several tensors): operations as boxes, leaves as ellipses,
    results below.

    `params` names leaves: pass `dict(model.named_parameters())`. Arrows run from inputs to results.
    Anything but Tensors is a `TypeError`.
    """
    names = {id(t): name for name, t in (params or {}).items()}
    tensors = list(tensor) if isinstance(tensor, tuple | list) else [tensor]
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TypeError(f"graph() draws what led to a Tensor or several, not to a {type(t).__name__}")
    lines = ["digraph {", "  rankdir=TB;", '  node [fontname="monospace", fontsize=10, height=0.3];']
    numbers: dict[int, str] = {}
    kept: list[Any] = []
    stack: list[Any] = []

    def identity(node: Any) -> str:
        if id(node) not in numbers:
            numbers[id(node)] = f"n{len(numbers)}"
            kept.append(node)
            stack.append(node)
        return numbers[id(node)]

    for i, t in enumerate(tensors):
        shape = tuple(t.shape)
        lines.append(f"  result{i} [label={_quoted(f'{shape} {t.dtype.name}')}, shape=ellipse, style=bold];")
        node = t.grad_fn
        if node is not None:
            lines.append(f"  {identity(node)} -> result{i};")
    while stack:
        node = stack.pop()
        lines += _drawn(node, numbers[id(node)], names)
        for target, number in node.next_functions:
            if target is not None:
                label = f" [label={_quoted(str(number))}]" if number else ""
                lines.append(f"  {identity(target)} -> {numbers[id(node)]}{label};")
    return Graph("\n".join([*lines, "}"]))


def _drawn(node: Node, name: str, names: dict[int, str]) -> list[str]:
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        title = names.get(id(leaf), "leaf")
        label = _quoted(f"{title}\n{tuple(leaf.shape)}")
        return [f'  {name} [label={label}, shape=ellipse, style=filled, fillcolor="lightblue"];']
    return [f"  {name} [label={_quoted(node.name().removesuffix('Backward0'))}, shape=box];"]
