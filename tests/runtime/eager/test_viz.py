"""The drawn graph."""

from __future__ import annotations

import importlib.util
import sys
import types

import pytest

import srcgrad as sg
from srcgrad import viz


def test_every_node_is_drawn_once():
    net = sg.nn.Linear(2, 1)
    x = sg.ones(3, 2)
    loss = net(x).pow(2).mean()
    text = viz.graph(loss, dict(net.named_parameters())).source
    for name in ("Addmm", "Pow", "Mean", "weight", "bias", "T"):
        assert text.count(f'"{name}') == 1
    assert text.startswith("digraph {") and text.endswith("}")


def test_shared_inputs_meet_in_one_node():
    x = sg.tensor(2.0, requires_grad=True)
    text = viz.graph(x * x).source
    assert text.count("lightblue") == 1 and text.count("->") == 3


def test_dot_text_is_saved_without_extras(tmp_path):
    x = sg.tensor(2.0, requires_grad=True)
    path = viz.graph(x.exp()).save(str(tmp_path / "graph.dot"))
    assert "Exp" in (tmp_path / "graph.dot").read_text() and path.endswith("graph.dot")


def test_only_tensors_are_drawn():
    with pytest.raises(TypeError, match="Tensor"):
        viz.graph(3)


def test_pictures_name_the_extra():
    if importlib.util.find_spec("graphviz") is not None:
        pytest.skip("Graphviz is installed")
    with pytest.raises(sg.MissingExtra, match="viz"):
        viz.graph(sg.ones(1, requires_grad=True) * 2).svg()


def test_pictures_are_graphvizs(monkeypatch, tmp_path):
    class Source:
        def __init__(self, source):
            self.source = source

        def pipe(self, format):
            return f"<{format}> {self.source}".encode()

    stand_in = types.SimpleNamespace(Source=Source, ExecutableNotFound=OSError)
    monkeypatch.setitem(sys.modules, "graphviz", stand_in)
    drawn = viz.graph(sg.ones(1, requires_grad=True) * 2)
    assert drawn.svg().startswith("<svg> digraph") and drawn.png().startswith(b"<png>")
    assert drawn._repr_mimebundle_()["image/svg+xml"] == drawn.svg()
    drawn.save(str(tmp_path / "graph.pdf"))
    assert (tmp_path / "graph.pdf").read_bytes().startswith(b"<pdf>")


def test_a_missing_dot_is_named(monkeypatch):
    class NotFound(RuntimeError):
        pass

    class Source:
        def __init__(self, source):
            pass

        def pipe(self, format):
            raise NotFound("failed to execute")

    stand_in = types.SimpleNamespace(Source=Source, ExecutableNotFound=NotFound)
    monkeypatch.setitem(sys.modules, "graphviz", stand_in)
    drawn = viz.graph(sg.ones(1, requires_grad=True) * 2)
    with pytest.raises(sg.MissingExtra, match="`dot`.*apt install graphviz"):
        drawn.png()
    assert list(drawn._repr_mimebundle_()) == ["text/plain"]


def test_real_pictures():
    graphviz = pytest.importorskip("graphviz", reason="the viz extra is not installed")
    drawn = viz.graph(sg.nn.Linear(2, 1)(sg.ones(3, 2)).pow(2).mean())
    try:
        svg, png = drawn.svg(), drawn.png()
    except sg.MissingExtra:
        pytest.skip("the program `dot` is not installed")
    assert graphviz and "<svg" in svg and "Addmm" in svg and png.startswith(b"\x89PNG")
