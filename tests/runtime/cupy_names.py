"""The public names of CuPy's namespaces and, where Python can tell, the parameters of its functions.

`python tests/runtime/cupy_names.py`, with CuPy installed (it needs no GPU for this), writes `cupy_names.txt`
anew: the version, then lines of a name (`take`, `linalg.inv`, `ndarray.sum`, `special.erf`) and parameters.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("cupy_names.txt")


def read() -> tuple[str, dict[str, list[str]]]:
    """(version of CuPy, its names with the parameters that are known of each)."""
    version, *lines = LIST.read_text().splitlines()
    return version, {name: parameters for name, *parameters in map(str.split, lines)}


def _parameters(function: Any) -> list[str]:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    if not inspect.isfunction(function) or any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in found):
        return []
    return [p.name for p in found]


if __name__ == "__main__":
    import cupy
    import cupyx.scipy.special

    spaces = {
        "": cupy,
        "linalg.": cupy.linalg,
        "fft.": cupy.fft,
        "ndarray.": cupy.ndarray,
        "ufunc.": cupy.ufunc,
    }
    spaces |= {"lib.stride_tricks.": cupy.lib.stride_tricks, "special.": cupyx.scipy.special}
    names = {p + n: getattr(space, n) for p, space in spaces.items() for n in dir(space) if n[0] != "_"}
    lines = [" ".join([name, *_parameters(value)]) for name, value in sorted(names.items())]
    LIST.write_text("\n".join([cupy.__version__, *lines]) + "\n")
