"""Nested functions, and calls of helpers."""

from __future__ import annotations

import ast
from dataclasses import replace

from .body import Body, statement
from .kinds import SCALAR, Array, Arrow, Kind, Row, Variable


@statement(4)
def define(body: Body) -> bool:
    """A nested function or lambda that reads this function's variables."""
    if body.level > 3:
        return False
    array_result = body.choose.chance(20)
    shape = body.some_shape()
    result: Kind = Array(shape) if array_result else SCALAR
    parameters: tuple[Kind, ...] = (Array(shape),) if array_result else (SCALAR,) * body.choose.integer(1, 2)
    kind = Arrow(parameters, result)
    name = body.target(kind, anew=True)
    names = [f"a{i}" for i in range(len(parameters))]
    if body.choose.chance(40):
        with body.bound(**dict(zip(names, parameters, strict=True))):
            code = f"lambda {', '.join(names)}: {body.argument(result, 2)}"
        body.emit(f"{name} = {code}")
    else:
        env = {n: replace(v, owned=False, frozen=True) for n, v in body.env.items()}
        env.update({n: Variable(k, owned=False) for n, k in zip(names, parameters, strict=True)})
        inner = Body(body.program, env, result, min(3, body.budget), body.foreign | set(body.env) | {name})
        inner.level = body.level + 1
        inner.trips = max(5, body.trips)
        inner.statements(body.choose.integer(1, 3))
        inner.finish()
        default = ", b=0.7" if not array_result and body.choose.chance(20) else ""
        body.emit(f"def {name}({', '.join(names)}{default}):")
        body.lines += inner.lines
        body.budget -= 2
        code = "\n".join(line[4 * body.level :] for line in inner.lines)
        code = f"def {name}():\n{code}"
    read = {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)}
    body.pinned |= read & set(body.env)
    body.bind(name, kind, owned=False)
    return True


@statement(5)
def call_helper(body: Body) -> bool:
    helpers = body.program.helpers
    if not helpers:
        return False
    helper = body.choose.pick(helpers)
    code = body.call(helper, 1)
    if isinstance(helper.result, Row):
        names = [body.target(k, anew=True) for k in helper.result.items]
        if len(set(names)) == len(names) and body.choose.chance(70):
            body.emit(f"{', '.join(names)} = {code}")
            for n, k in zip(names, helper.result.items, strict=True):
                body.bind(n, k, owned=False)
            body.share(code)
            return True
    name = body.target(helper.result, owned=False)
    body.emit(f"{name} = {code}")
    body.share(code)
    body.bind(name, helper.result, owned=False)
    return True
