"""The rule table: how a rule is written, and how it is found.

A rule is an ordinary Python function, filed under the function(s) it differentiates. The compiler inlines its
expressions, the eager Tensor calls it.

**Elementwise functions** give partial derivatives, which serve forward and reverse mode alike. The rule
receives the result first and then the arguments, and returns one partial, or a tuple with one entry per
argument (`None`: no derivative with respect to that argument). Broadcasting is undone by whoever uses the
rule, never in it.

    @elementwise(np.tanh, at=[0.0, 0.7, -3.0])
    def tanh(y, x):
        return 1 - y * y

    @elementwise(operator.mul, np.multiply, at=[(2.0, [1.0, 3.0])])
    def multiply(z, x, y):
        return y, x

**Every other function** gives a reverse rule. It receives the cotangent `g` of the result, the result `y`,
and then the function's own parameters under their own names and defaults (options that nobody asks for may be
left out: a call that uses one is refused). It returns one cotangent for each parameter named in `wrt`
(default: the first), as a tuple when `wrt` is a tuple; the cotangent of a sequence parameter (also of
`*args`) is a list. A result that is a tuple or list has a tuple or list of cotangents, with zeros for what is
not used. A cotangent has exactly its argument's shape.

    @reverse(np.matmul, wrt=("a", "b"), at=[(A, B)])
    def matmul(g, y, a, b):
        if a.ndim == 2 and b.ndim == 1:
            return np.outer(g, b), a.T @ g
        return matmul_left(g, a, b), matmul_right(g, a, b)

A forward rule receives the tangent of each `wrt` parameter first (in that order), then the result, then the
parameters, and returns one contribution to the result's tangent for each `wrt` parameter, each depending only
on its own tangent. A function that is linear in its `wrt` parameters jointly says `linear=True` and needs
none: its tangent is the function itself applied to the tangents.

    @forward(np.matmul)
    def matmul_forward(a_dot, b_dot, y, a, b):
        return a_dot @ b, a @ b_dot

**Functions without derivative** (`np.floor`, `np.argmax`, comparisons, constructors of constants) are filed
with `nondifferentiable`.

How rules are read by the compiler: the body may be a chain of `if test: return expression` that ends in a
`return`. Tests on `p.ndim`, `p is None`, `isinstance(p, ...)`, or constants are decided at compile time when
the facts decide them. If one `return` remains, its expression is inlined, and only the entries of active
parameters; otherwise the rule is called. What a rule's expression does not mention is not saved, so use `y`
where it is cheaper than recomputing. Rules and the helpers that they call must themselves be differentiable:
no in-place writes to arguments, no data-dependent dtype tricks, names of plain module-level functions.

`at` lists the inputs on which the rule is tested: an entry is one argument, or a tuple of arguments, or
`case(...)` when there are keyword arguments. Lists are turned into float64 arrays by the test.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from srcgrad.runtime.errors import ArgumentError

Function = Callable[..., Any]
Alias = Literal["fresh", "view", "maybe", "alone", "elements"]


@dataclass(frozen=True)
class Case:
    """One set of test inputs of a rule: positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def case(*args: Any, **kwargs: Any) -> Case:
    """Test inputs with keyword arguments, for `at`.

    >>> case([1.0, 2.0], axis=0).kwargs
    {'axis': 0}
    """
    return Case(args, kwargs)


@dataclass(eq=False)
class Rule:
    """The derivative of one function (or of several that share it).

    `parameters` are the primal's parameters as the rule names them, `wrt` those that have a derivative. For
    an elementwise rule `partials` holds the rule; for others `reverse` and `forward`. `alias` tells whether
    the result may share memory with an argument (never, always, sometimes, only with a single operand, or
    only with what the argument holds); `shape` names how the result's shape follows from the arguments'
    shapes ("broadcast", "same": as the first argument, "scalar", "reduction": by `axis` and `keepdims`,
    "matmul", or None: unknown). `real` marks an elementwise function whose result is real for
    complex arguments too (`np.abs`): its tangent is the real part of partial times tangent, its cotangent the
    real part of what arrives times the partial. `joint` says that the forward rule gives one tangent for all
    arguments, rather than one for each, which are added.
    """

    name: str
    functions: tuple[Function, ...]
    parameters: tuple[inspect.Parameter, ...] = ()
    wrt: tuple[str, ...] = ()
    partials: Function | None = None
    reverse: Function | None = None
    forward: Function | None = None
    linear: bool = False
    alias: Alias = "fresh"
    shape: str | None = None
    at: list[Case] = field(default_factory=list)
    real: bool = False
    joint: bool = False

    def shares(self, operands: int) -> bool:
        """May the result of a call with so many operands share memory with one of them?"""
        return self.alias in ("view", "maybe", "elements") or (self.alias == "alone" and operands == 1)

    @property
    def elementwise(self) -> bool:
        return self.partials is not None

    @property
    def differentiable(self) -> bool:
        return bool(self.wrt)


_TABLE: dict[Any, Rule] = {}
_HARMLESS = {
    *("condition", "condlist", "mask", "where", "selector", "out", "dtype", "prototype"),
    *("tol", "xtol", "rtol", "atol", "ftol", "gtol", "eps", "epsabs", "epsrel", "rcond", "tolerance"),
}
"""Parameters that no result depends on continuously."""


@functools.lru_cache(maxsize=4096)
def constants_of(rule: Rule) -> frozenset[str]:
    """The parameters that a rule takes for constants: numbers that depend on what is differentiated must not
    be passed there."""
    if any(str(getattr(f, "__module__", None)).startswith("srcgrad.") for f in rule.functions):
        return frozenset()  # what only emitted code calls is called with constants there
    found = {p.name for p in rule.parameters} - set(rule.wrt) - _HARMLESS
    if rule.name == "normal_entropy":  # the same wherever the mean is
        found.discard("mean")
    if rule.name.endswith("like"):  # the first argument tells a shape
        found.discard(rule.parameters[0].name)
    if rule.partials is not None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(rule.partials)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                parts = zip(rule.wrt, node.value.elts, strict=False)
                found |= {w for w, e in parts if isinstance(e, ast.Constant) and e.value is None}
    return frozenset(found)


_LAZY: dict[str, list[str]] = {}
"""Rule files that are imported only once the library they describe is: library -> module names."""


def find(function: Any) -> Rule | None:
    """The rule filed under `function` (a function, ufunc, operator, or method descriptor such as
    `np.ndarray.sum`).

    >>> import numpy as np
    >>> import srcgrad.runtime.rules
    >>> find(np.tanh).name
    'tanh'
    >>> find(print) is None
    True
    """
    try:
        rule = _TABLE.get(function)
    except TypeError:  # unhashable
        return None
    if rule is None and _load_lazy():
        rule = _TABLE.get(function)
    if rule is None and isinstance(function, types.MethodType):
        rule = _TABLE.get((type(function.__self__), function.__name__))
    return rule


def for_every_instance(method: Any) -> None:
    """Let the rule of a bound method serve that method of every instance of its class.

    >>> import fractions
    >>> half = fractions.Fraction(1, 2)
    >>> nondifferentiable(half.as_integer_ratio)
    >>> for_every_instance(half.as_integer_ratio)
    >>> find(fractions.Fraction(2, 3).as_integer_ratio).name
    'as_integer_ratio'
    """
    _TABLE[type(method.__self__), method.__name__] = _TABLE[method]


def rules() -> list[Rule]:
    """All rules, once each, in the order in which they were written."""
    _load_lazy()
    return list(dict.fromkeys(_TABLE.values()))


def load_with(library: str, module: str) -> None:
    """File the rules of `module` as soon as `library` has been imported by the user."""
    _LAZY.setdefault(library, []).append(module)


def _load_lazy() -> bool:
    found = False
    for library, modules in _LAZY.items():
        if modules and library in sys.modules:
            pending, modules[:] = list(modules), []
            for module in pending:
                __import__(module)
            found = True
    return found


def _cases(at: Sequence[Any]) -> list[Case]:
    return [c if isinstance(c, Case) else Case(c if isinstance(c, tuple) else (c,), {}) for c in at]


def _distinct(functions: Iterable[Function]) -> tuple[Function, ...]:
    """`functions` once each: NumPy has several names for some."""
    return tuple(dict.fromkeys(functions))


def _file(rule: Rule, functions: Iterable[Function]) -> None:
    for function in _distinct(functions):
        if function in _TABLE:
            raise ArgumentError(f"{function!r} has a rule already: {_TABLE[function].name}")
        _TABLE[function] = rule


def elementwise(
    *functions: Function,
    at: Sequence[Any],
    alias: Alias = "fresh",
    shape: str | None = "broadcast",
    real: bool = False,
) -> Callable[[Function], Function]:
    """Decorator: file the partial derivatives of elementwise `functions` (see the module's text).

    A function that may be complex for real arguments says `shape=None`, so that nobody takes it for real.
    """

    def file(rule: Function) -> Function:
        parameters = tuple(inspect.signature(rule).parameters.values())[1:]
        wrt = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        made = Rule(
            rule.__name__,
            _distinct(functions),
            parameters,
            wrt,
            partials=rule,
            alias=alias,
            shape=shape,
            at=_cases(at),
            real=real,
        )
        _file(made, functions)
        return rule

    return file


def reverse(
    *functions: Function,
    at: Sequence[Any],
    wrt: str | tuple[str, ...] | None = None,
    linear: bool = False,
    alias: Alias = "fresh",
    shape: str | None = None,
) -> Callable[[Function], Function]:
    """Decorator: file the reverse rule of `functions` (see the module's text)."""

    def file(rule: Function) -> Function:
        parameters = tuple(inspect.signature(rule).parameters.values())[2:]
        names = (parameters[0].name,) if wrt is None else (wrt,) if isinstance(wrt, str) else wrt
        unknown = set(names) - {p.name for p in parameters}
        if unknown:
            raise ArgumentError(f"the rule {rule.__name__} has no parameter {', '.join(sorted(unknown))}")
        made = Rule(
            rule.__name__,
            _distinct(functions),
            parameters,
            names,
            reverse=rule,
            linear=linear,
            alias=alias,
            shape=shape,
            at=_cases(at),
        )
        _file(made, functions)
        return rule

    return file


def forward(*functions: Function, joint: bool = False) -> Callable[[Function], Function]:
    """Decorator: add the forward rule of `functions`, which `reverse` must have filed before.

    It gives the tangents that the result owes to each parameter in `wrt`; with `joint`, their sum.
    """

    def file(rule: Function) -> Function:
        for function in functions:
            _TABLE[function].forward, _TABLE[function].joint = rule, joint
        return rule

    return file


_WRITTEN: dict[Any, Function] = {}


def stores(*functions: Any) -> Callable[[Function], Function]:
    """Decorator: `functions` write into their first argument what the decorated one returns."""

    def file(result: Function) -> Function:
        for function in functions:
            _WRITTEN[function] = result
        return result

    return file


def written_by(function: Any) -> Function | None:
    """The function that returns what `function` writes into its first argument; None if it doesn't."""
    try:
        return _WRITTEN.get(function)
    except TypeError:  # unhashable
        return None


_INDEXED: dict[Any, Function] = {}


def indexed(obj: Any) -> Callable[[Function], Function]:
    """Decorator: `obj[a, b, ...]` is what the decorated function returns for `a, b, ...`."""

    def file(result: Function) -> Function:
        _INDEXED[obj] = result
        return result

    return file


def indexed_by(obj: Any) -> Function | None:
    """The function that computes what indexing `obj` means, where that is no selection of elements."""
    try:
        return _INDEXED.get(obj)
    except TypeError:  # unhashable
        return None


def nondifferentiable(*functions: Any, alias: Alias = "fresh", shape: str | None = None) -> None:
    """File functions whose result carries no derivative."""
    for function in functions:
        name = getattr(function, "__name__", str(function))
        _file(Rule(name, (function,), alias=alias, shape=shape), (function,))
