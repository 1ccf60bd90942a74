"""Exported derivatives: run without srcgrad, agree with it, are stable, and refuse what a text can't hold."""

import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import srcgrad
from srcgrad.standalone import module_text

SCALE = 2.0
MATRIX = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
TINY = {"a": 1.5}


def add(x):  # the name of a support function
    return x + 1


def wave(x):
    return np.sin(x) * x


def logistic(w, x, y):
    p = 1 / (1 + np.exp(-(x @ w)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)) * SCALE * math.pi


def growth(x, r, n):
    for _ in range(n):
        x = x + r * x * (1 - x)
    return x + wave(r)


def clash(w):
    norm = MATRIX @ w
    return np.linalg.norm(norm) * TINY["a"] + np.sum(add(w))


def written(w):
    out = np.zeros(4)
    out[[0, 1, 2]] = w
    out[0] = np.max(w)
    return np.sum(np.sort(out) * out)


W = [0.3, -0.2, 0.5]
X = [[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]]
PROGRAMS = [
    (logistic, (W, X, [0.2, 0.7])),
    (growth, (0.1, 0.2, 3)),
    (clash, (W,)),
    (written, (W,)),
]
ALONE = """
import sys, json, importlib.util
class Away:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("srcgrad", "gast", "beniget", "astunparse"):
            raise ImportError(name)
sys.meta_path.insert(0, Away())
import numpy as np
spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
args = [np.array(a) if isinstance(a, list) else a for a in json.loads(sys.argv[3])]
print(json.dumps(np.asarray(getattr(module, sys.argv[2])(*args)).tolist()))
"""


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("fun, args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_runs_without_srcgrad(fun, args, lean, tmp_path):
    df = srcgrad.grad(fun)
    arrays = [np.array(a) if isinstance(a, list) else a for a in args]
    path = tmp_path / "exported.py"
    df.save(path, *(arrays if lean else ()))
    call = [sys.executable, "-I", "-c", ALONE, str(path), f"{fun.__name__}_grad", json.dumps(args)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), df(*arrays), rtol=1e-14)
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", path], capture_output=True, text=True
    )
    assert "No module named ruff" in ruff.stderr or not ruff.returncode, ruff.stdout


def test_same_bytes_in_another_process(tmp_path):
    (tmp_path / "model.py").write_text("import numpy as np\ndef f(x): return np.sum(np.sort(x)) ** 2\n")
    code = "import model, srcgrad; srcgrad.grad(model.f).save(__import__('sys').argv[1])"
    texts = []
    for seed in ("1", "2"):
        target = tmp_path / f"out{seed}.py"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{tmp_path}{os.pathsep}{_root()}"}
        subprocess.run([sys.executable, "-c", code, str(target)], env=environment, check=True)
        texts.append(target.read_bytes())
    assert texts[0] == texts[1]
    assert b"model.f" in texts[0] and srcgrad.__version__.encode() in texts[0]


def _root() -> str:
    return str(Path(srcgrad.__file__).parents[1])


def test_permissions_and_replacement(tmp_path):
    path = tmp_path / "out.py"
    path.write_text("old")
    path.chmod(0o640)
    srcgrad.export(srcgrad.grad(wave), path, 1.0)
    assert path.stat().st_mode & 0o777 == 0o640
    assert "wave_grad" in path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["out.py"]


class Model:
    def __init__(self):
        self.k = 2.0

    def loss(self, x):
        return self.k * x


MODEL = Model()
LARGE = np.ones(5000)


def with_object(x):
    return MODEL.k * x


def with_large(x):
    return np.sum(LARGE * x)


def with_callback(f, x):
    return f(x)


def plainly(x):
    return 2 * x


def doubling(fun):
    @functools.wraps(fun)
    def call(x):
        return fun(x) * 2

    return call


doubled = doubling(plainly)


def with_wrapped(x):
    return doubled(1.0) * x


@pytest.mark.parametrize(
    "df, reason",
    [
        (srcgrad.grad(with_object), "MODEL"),
        (srcgrad.grad(with_large), "LARGE"),
        (srcgrad.grad(with_callback, argnums=1), "run time"),
        (srcgrad.grad(with_wrapped), "decorator"),
        (srcgrad.grad(MODEL.loss), "bound to a Model"),
        (wave, "srcgrad.grad"),
    ],
)
def test_refused(df, reason):
    with pytest.raises(srcgrad.ExportError, match=reason):
        module_text(df)
