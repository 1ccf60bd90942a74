"""Small programs beside PyTorch: what each makes, or how it fails, compared in value, dtype, shape, name of
node, gradients and printed form.

The programs stand in `rows/*.txt` between lines of `---`, the first of a file being what all of its programs
begin with; `m` is the library. What PyTorch 2.13 answered stands in `rows/answers.jsonl`; where PyTorch is,
`python tests/runtime/eager/rows.py` asks it anew.
"""

from __future__ import annotations

import collections
import copy
import io
import json
import math
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).with_name("rows")
ANSWERS = FOLDER / "answers.jsonl"


def _tools(m: Any) -> dict[str, Any]:
    def leaf(*values: Any, dtype: Any = None) -> Any:
        data = values[0] if len(values) == 1 else list(values)
        return m.tensor(data, dtype=dtype or m.float64, requires_grad=True)

    def wave(*shape: int, start: int = 1, rg: bool = True, dtype: Any = None) -> Any:
        numbers = [math.sin(start + i) for i in range(math.prod(shape))]
        t = m.tensor(numbers, dtype=dtype or m.float64).reshape(shape)
        return t.detach().clone().requires_grad_(rg)

    def weighted(t: Any) -> Any:
        return (t * m.arange(1, t.numel() + 1).to(t.dtype).reshape(t.shape)).sum()

    def W(t: Any, *leaves: Any) -> Any:
        """A result and the gradients of its weighted sum."""
        if not t.requires_grad:
            return t
        weighted(t).backward()
        return [t, *(x.grad for x in leaves)]

    def par(node: Any) -> Any:
        return [None if f is None else type(f).__name__ for f, _ in node.next_functions]

    def fill(module: Any, scale: float = 0.5) -> Any:
        module.double()
        k = 1
        with m.no_grad():
            for p in module.parameters():
                numbers = [scale * math.sin(k + i) for i in range(p.numel())]
                p.copy_(m.tensor(numbers, dtype=m.float64).reshape(p.shape))
                k += p.numel()
        return module

    def tensors(value: Any) -> list[Any]:
        if isinstance(value, m.Tensor):
            return [value]
        return [t for part in value for t in tensors(part)] if isinstance(value, tuple | list) else []

    return {
        "__name__": "rows", "m": m, "nn": m.nn, "F": m.nn.functional, "T": m.tensor, "np": np, "math": math,
        "copy": copy, "io": io, "pickle": pickle, "inf": math.inf, "nan": math.nan, "ag": m.autograd,
        "O": m.optim, "S": m.optim.lr_scheduler, "AF": m.autograd.functional, "f64": m.float64,
        "f32": m.float32, "OD": collections.OrderedDict, "warnings": warnings, "leaf": leaf, "wave": wave,
        "W": W, "par": par, "fill": fill, "tensors": tensors, "weighted": weighted,
    }  # fmt: skip


def plain(m: Any, v: Any) -> Any:
    """What a program made, as JSON can hold it."""
    if isinstance(v, m.Tensor):
        node = None if v.grad_fn is None else type(v.grad_fn).__name__
        kind = str(v.dtype).rpartition(".")[2]
        return [type(v).__name__, kind, list(v.shape), node or v.requires_grad, plain(m, v.detach().tolist())]
    if isinstance(v, dict):
        return {str(k) if not isinstance(k, m.Tensor) else "tensor": plain(m, e) for k, e in v.items()}
    if isinstance(v, tuple | list):
        return [plain(m, e) for e in v]
    if isinstance(v, np.ndarray | np.generic):
        return ["numpy", str(v.dtype), plain(m, v.tolist())]
    if isinstance(v, complex):
        return ["complex", v.real, v.imag]
    if isinstance(v, float):
        return float(f"{v:.10g}") if math.isfinite(v) else str(v)
    if isinstance(v, str):
        return re.sub(r"0x[0-9a-f]+", "0x", v.replace("srcgrad.", "").replace("torch.", ""))
    if v is None or isinstance(v, int):
        return v
    if isinstance(v, type):
        return v.__name__
    if isinstance(v, m.autograd.graph.Node):
        return "node " + type(v).__name__
    if type(v).__name__ in ("dtype", "device"):
        return str(v).rpartition(".")[2]
    return "a " + type(v).__name__


def outcome(m: Any, program: str, setup: str = "") -> list[Any]:
    """["made", value, warnings], or ["failed", type, message, warnings]."""
    scope = _tools(m)
    exec(setup, scope)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            try:
                code = compile(program, "<row>", "eval")
            except SyntaxError:
                exec(program, scope)
                value = scope.get("out")
            else:
                value = eval(code, scope)
            answer = ["made", plain(m, value)]
        except Exception as error:
            message = str(error).partition("\n")[0].replace("torch.", "").replace("srcgrad.", "")
            answer = ["failed", type(error).__name__, message]
    return [*answer, sorted({w.category.__name__ for w in caught if w.category is UserWarning})]


def programs() -> Iterator[tuple[str, str, str]]:
    """(file, what comes before, program)."""
    for path in sorted(FOLDER.glob("*.txt")):
        setup, *parts = path.read_text().strip("\n").split("\n---\n")
        for part in parts:
            yield path.stem, setup, part


def ask(m: Any) -> None:
    lines = [json.dumps([name, program, outcome(m, program, setup)]) for name, setup, program in programs()]
    ANSWERS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    ask(torch)
