"""The command line: `srcgrad show | check | export | rules`, also as `python -m srcgrad`.

Exit codes: 0 done, 1 a check failed or an exported file is stale, 2 the request can't be carried out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import srcgrad
from srcgrad.runtime.errors import ArgumentError, CheckFailed, SrcgradError

_EPILOG = """examples:
  srcgrad show model.py:loss                      the gradient's source, for arguments of any kind
  srcgrad show model.py:loss --at '{"w": [1, 2]}' for arguments of these kinds: leaner
  srcgrad show package.module:loss --argnums 0,1 --order 2 --watch
  srcgrad check model.py:loss --at '{"w": [1, 2], "b": 0.5}'
  srcgrad export model.py:loss -o loss_gradient.py
  srcgrad export model.py:loss -o loss_gradient.py --check     for CI: 1 if the file is stale
  srcgrad rules numpy.linalg

Lists in --at become NumPy arrays (of floats). The module that holds the function is imported, so its top
level runs. Exit codes: 0 done; 1 a check failed or an exported file is stale; 2 the request can't be carried
out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    >>> main(["rules", "numpy.tanh"])
    numpy.tanh(x)  forward, reverse
        return 1 - y * y
    0
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except CheckFailed as error:
        print(error, file=sys.stderr)
        return 1
    except (SrcgradError, OSError) as error:
        print(f"srcgrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="srcgrad",
        description="See, check and ship derivatives of Python/NumPy functions.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"srcgrad {srcgrad.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        return made

    show = command("show", _show, "print the source of a function's derivative")
    check = command("check", _check, "compare derivatives with finite differences at a point")
    export = command("export", _export, "write the gradient as a module that needs NumPy only")
    for made in (show, check, export):
        made.add_argument("function", metavar="FILE.py:FUNCTION", help="or package.module:function")
        made.add_argument(
            "--at", metavar="JSON", help="arguments by name, e.g. '{\"x\": [1, 2]}'", required=made is check
        )
    for made in (show, export):
        made.add_argument("--argnums", type=_argnums, default=0, metavar="N[,N...]", help="default: 0")
        made.add_argument("--order", type=int, choices=range(1, 6), default=1, help="derive so many times")
    show.add_argument("--mode", choices=("reverse", "forward"), default="reverse", help="forward needs --at")
    show.add_argument("--standalone", action="store_true", help="the module that `export` would write")
    show.add_argument("--watch", action="store_true", help="again whenever the file is saved")
    check.add_argument("--order", type=int, choices=range(1, 6), default=2, help="default: 2")
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="the module to write")
    export.add_argument("--check", action="store_true", help="write nothing; exit with 1 if FILE is stale")
    rules = command("rules", _rules, "list the functions that have derivative rules")
    rules.add_argument(
        "name", nargs="?", default="", help="a name or its beginning; a full name: the formula"
    )
    return parser


def _argnums(text: str) -> int | tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    return numbers[0] if len(numbers) == 1 else numbers


def _function(target: str) -> Any:
    """The function that `FILE.py:FUNCTION` or `package.module:function` names."""
    place, separator, name = target.rpartition(":")
    if not separator or not name:
        raise ArgumentError(f"{target!r} should be FILE.py:FUNCTION or package.module:function")
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.is_file():
            raise ArgumentError(f"there is no file {place}")
        sys.path.insert(0, str(path.parent))  # the file's own imports
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        load: Any = spec.loader.exec_module
        given: Any = module
    else:
        sys.path.insert(0, "")
        load, given = importlib.import_module, place
    try:
        load(given)
    except Exception as error:
        raise ArgumentError(f"importing {place} failed: {type(error).__name__}: {error}") from error
    found: Any = sys.modules[Path(place).stem if place.endswith(".py") else place]
    for part in name.split("."):
        if not hasattr(found, part):
            raise ArgumentError(f"{place} has no {name!r}")
        found = getattr(found, part)
    return getattr(found, "primal", found)


def _arguments(function: Any, text: str | None) -> tuple[Any, ...]:
    if text is None:
        return ()
    import numpy as np

    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"--at is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ArgumentError("--at should be an object with the arguments by name")

    def value(v: Any) -> Any:
        if isinstance(v, dict):
            return {k: value(x) for k, x in v.items()}
        return np.array(v, float) if isinstance(v, list) else v

    try:
        bound = inspect.signature(function).bind(**{k: value(v) for k, v in given.items()})
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"--at: {error}") from None
    if bound.kwargs:
        raise ArgumentError(f"--at can't give keyword-only arguments ({', '.join(bound.kwargs)})")
    return bound.args


def _derivative(options: argparse.Namespace) -> tuple[Any, tuple[Any, ...]]:
    function = _function(options.function)
    made = function
    for _ in range(options.order):
        made = srcgrad.grad(made, options.argnums)
    return made, _arguments(function, options.at)


def _text(options: argparse.Namespace) -> str:
    made, args = _derivative(options)
    if options.mode == "forward":
        from srcgrad.derivatives import jacfwd

        if not args:
            raise ArgumentError(
                "--mode forward needs --at: the tangent's code depends on the arguments' kinds"
            )
        text: str = jacfwd(made.primal, options.argnums).source_for(*args)  # type: ignore[attr-defined]
    elif options.standalone:
        from srcgrad.standalone import module_text

        return module_text(made, args)
    else:
        text = made.source_for(*args) if args else made.source
    return text.rstrip("\n") + "\n"


def _show(options: argparse.Namespace) -> int:
    if not options.watch:
        print(_text(options), end="")
        return 0
    path = Path(options.function.rpartition(":")[0])
    if not path.is_file():
        raise ArgumentError("--watch needs FILE.py:FUNCTION")
    seen = b""
    while True:
        found = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else seen
        if found != seen:
            seen = found
            try:
                print(_text(options), flush=True)
            except SrcgradError as error:
                print(error, file=sys.stderr, flush=True)
        time.sleep(0.3)


def _check(options: argparse.Namespace) -> int:
    function = _function(options.function)
    srcgrad.check_grads(function, _arguments(function, options.at), order=options.order)
    print(f"{options.function}: derivatives up to order {options.order} agree with finite differences")
    return 0


def _export(options: argparse.Namespace) -> int:
    from srcgrad.standalone import module_text, write_text

    made, args = _derivative(options)
    text, path = module_text(made, args), Path(options.output)
    if options.check:
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return 0
        print(f"{path} is stale: run the command again without --check", file=sys.stderr)
        return 1
    write_text(path, text)
    return 0


def _rules(options: argparse.Namespace) -> int:
    from srcgrad.runtime.rules import table

    lines: dict[str, Any] = {}
    for rule in table.rules():
        for function in rule.functions if rule.differentiable else ():
            module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", rule.name)
            module = "numpy" if type(function).__name__ == "ufunc" and not module else module
            lines[f"{module}.{name}" if module else name] = rule
    chosen = {n: r for n, r in sorted(lines.items()) if n.startswith(options.name)}
    if options.name in chosen:
        chosen = {options.name: chosen[options.name]}
    if not chosen:
        raise ArgumentError(f"no function named {options.name!r} has a derivative rule")
    for name, rule in chosen.items():
        modes = [m for m in ("forward", "reverse") if rule.elementwise or getattr(rule, m) is not None]
        print(f"{name}({', '.join(p.name for p in rule.parameters)})  {', '.join(modes)}")
    if len(chosen) == 1:
        for rule in chosen.values():
            for formula in filter(None, (rule.partials, rule.forward, rule.reverse)):
                body = inspect.getsource(formula).split("\n")
                start = next(i for i, line in enumerate(body) if line.startswith("def "))
                print("\n".join(body[start + 1 :]).rstrip())
    return 0
