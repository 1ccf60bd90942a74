"""Write: print a tree as Python source.

Before: any gast tree. A statement may carry an attribute `comment`, a string or a list of strings.
After:  text that parses to the same tree (but for positions and `comment`), with the fewest parentheses.
Why here: last, as text is what the user reads; no pass ever looks at text.

>>> tree = gast.parse("def f(x, y):\\n    return (((x * y) + (-1)) ** 2), x[(0, slice(1))]")
>>> tree.body[0].body[0].comment = "of degree two"
>>> print(unparse(tree))
def f(x, y):
    # of degree two
    return (x * y + -1) ** 2, x[0, slice(1)]
"""

from __future__ import annotations

from typing import Any

import astunparse
import gast

from srcgrad.transforms.tree.layout import COMMA, Closing, breaking, lay_out, opening
from srcgrad.transforms.tree.literals import constant, docstring, quoted

# How strongly an expression binds, weakest first; a place demands a strength, and parentheses supply it.
NAMED, TUPLE, YIELD, TEST, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR = range(10)
BIT_AND, SHIFT, ARITH, TERM, FACTOR, POWER, AWAIT, ATOM = range(10, 18)

_STRENGTHS = {
    "NamedExpr": NAMED,
    "Tuple": TUPLE,
    "Yield": YIELD,
    "YieldFrom": YIELD,
    "IfExp": TEST,
    "Lambda": TEST,
    "Or": OR,
    "And": AND,
    "Not": NOT,
    "Compare": COMPARE,
    "BitOr": BIT_OR,
    "BitXor": BIT_XOR,
    "BitAnd": BIT_AND,
    "LShift": SHIFT,
    "RShift": SHIFT,
    "Add": ARITH,
    "Sub": ARITH,
    "Mult": TERM,
    "MatMult": TERM,
    "Div": TERM,
    "Mod": TERM,
    "FloorDiv": TERM,
    "Invert": FACTOR,
    "UAdd": FACTOR,
    "USub": FACTOR,
    "Pow": POWER,
    "Await": AWAIT,
}


def unparse(tree: gast.AST | list[gast.stmt]) -> str:
    """The source of a module, a statement, a list of statements or an expression, without a final newline.

    An expression is one line, however long.
    """
    printer = _Printer()
    printer.dispatch(tree)
    if isinstance(tree, gast.expr):
        return "".join(printer.parts)
    printer.end_line()
    return "\n".join(printer.lines)


_COMMA = breaking(", ", COMMA)
_FOR, _ASYNC_FOR, _IF, _ELSE = (breaking(f" {word} ", TEST) for word in ("for", "async for", "if", "else"))
_PAREN, _SQUARE, _CURLY, _INDEX = (
    opening(*pair) for pair in [("(", True), ("[", True), ("{", True), ("[", False)]
)
_END_PAREN, _END_SQUARE, _END_CURLY = Closing(")"), Closing("]"), Closing("}")
_UNSEEN, _END_UNSEEN = opening("", True), Closing("")  # parentheses for a broken line only
_OPERATORS = {
    name: breaking(f" {symbol} ", COMPARE if name in astunparse.Unparser.cmpops else _STRENGTHS[name])
    for name, symbol in {
        **astunparse.Unparser.binop,
        **astunparse.Unparser.cmpops,
        "And": "and",
        "Or": "or",
    }.items()
}


class _Printer(astunparse.Unparser):
    """astunparse's printer with strengths in place of parentheses everywhere, for gast and today's syntax."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.parts: list[str] = []
        self.write = self.parts.append
        self.future_imports: list[str] = []
        self._indent = self._line_indent = 0

    # lines

    def fill(self, text: str = "") -> None:
        self.end_line()
        self.write(text)

    def end_line(self) -> None:
        """Finish the line in `parts`, breaking it where it is too long."""
        if self.parts:
            self.lines += lay_out(self.parts, "    " * self._line_indent)
            self.parts.clear()
        self._line_indent = self._indent

    def enter(self) -> None:
        self.write(":")
        self._indent += 1

    def comment(self, statement: gast.stmt) -> None:
        comment = getattr(statement, "comment", None)
        if comment:
            self.end_line()
            for text in [comment] if isinstance(comment, str) else comment:
                self.lines += ["    " * self._indent + f"# {line}".rstrip() for line in text.split("\n")]

    def dispatch(self, tree: Any, level: int = TEST) -> None:
        """Print a list of statements, or one node, in parentheses if it binds more weakly than `level`."""
        if tree.__class__ is list:
            self.statements(tree)
            return
        name = tree.__class__.__name__
        method = getattr(self, "_" + name)
        if name in ("Name", "Call", "Attribute", "Subscript") or _strength(tree) >= level:
            method(tree)
        else:
            self.write(_PAREN)
            method(tree)
            self.write(_END_PAREN)

    def statements(self, body: list[gast.stmt]) -> None:
        """A block: definitions stand apart by one blank line, at the top level by two."""
        after_definition = False
        for position, statement in enumerate(body):
            definition = statement.__class__.__name__ in ("FunctionDef", "AsyncFunctionDef", "ClassDef")
            if position and (definition or after_definition):
                self.end_line()
                self.lines += [""] if self._indent else ["", ""]
            after_definition = definition
            self.comment(statement)
            self.dispatch(statement)

    def documented(self, body: list[gast.stmt]) -> None:
        """The body of a function, class or module, with its docstring in triple quotes."""
        first = body[0] if body else None
        value = first.value if isinstance(first, gast.Expr) else None
        if isinstance(value, gast.Constant) and isinstance(value.value, str) and value.kind is None:
            self.comment(first)
            self.end_line()
            self.lines += ("    " * self._indent + docstring(value.value)).split("\n")
            body = body[1:]
        self.statements(body)

    def separated(self, nodes: list[Any], level: int = TEST) -> None:
        for position, node in enumerate(nodes):
            if position:
                self.write(_COMMA)
            self.dispatch(node, level)

    def bare(self, node: gast.expr) -> None:
        """An expression where a tuple needs no parentheses and a long line may be given some."""
        if isinstance(node, gast.Tuple) and node.elts:
            self.write(_UNSEEN)
            self._Tuple(node)
            self.write(_END_UNSEEN)
        elif isinstance(node, (gast.BinOp, gast.BoolOp, gast.Compare, gast.IfExp)):
            self.write(_UNSEEN)
            self.dispatch(node)
            self.write(_END_UNSEEN)
        else:
            self.dispatch(node)

    def unbroken(self, mark: int) -> str:
        """Take back the parts from `mark` on, as text in which no line is broken."""
        text = "".join(self.parts[mark:])
        del self.parts[mark:]
        return text

    def yielded(self, node: gast.expr) -> None:
        """The right-hand side of an assignment, where `yield` needs no parentheses either."""
        if isinstance(node, (gast.Yield, gast.YieldFrom)):
            self.dispatch(node, YIELD)
        else:
            self.bare(node)

    # statements

    def _Module(self, t: Any) -> None:
        self.documented(t.body)

    def _Interactive(self, t: Any) -> None:
        self.statements(t.body)

    def _Expr(self, t: Any) -> None:
        self.fill()
        self.yielded(t.value)

    def _Assign(self, t: Any) -> None:
        self.fill()
        for target in t.targets:
            self.dispatch(target, TUPLE)
            self.write(" = ")
        self.yielded(t.value)

    def _AugAssign(self, t: Any) -> None:
        self.fill()
        self.dispatch(t.target)
        self.write(f" {self.binop[type(t.op).__name__]}= ")
        self.yielded(t.value)

    def _AnnAssign(self, t: Any) -> None:
        self.fill()
        bracketed = isinstance(t.target, gast.Name) and not t.simple
        self.write("(" if bracketed else "")
        self.dispatch(t.target)
        self.write(")" if bracketed else "")
        self.write(": ")
        self.dispatch(t.annotation)
        if t.value is not None:
            self.write(" = ")
            self.yielded(t.value)

    def _Return(self, t: Any) -> None:
        self.fill("return")
        if t.value is not None:
            self.write(" ")
            self.bare(t.value)

    def _TypeAlias(self, t: Any) -> None:
        self.fill("type ")
        self.dispatch(t.name)
        self.type_parameters(t)
        self.write(" = ")
        self.dispatch(t.value)

    def _If(self, t: Any) -> None:
        self.fill("if ")
        self.conditional(t)
        while len(t.orelse) == 1 and isinstance(t.orelse[0], gast.If):
            t = t.orelse[0]
            self.comment(t)
            self.fill("elif ")
            self.conditional(t)
        self.otherwise(t)

    def _While(self, t: Any) -> None:
        self.fill("while ")
        self.conditional(t)
        self.otherwise(t)

    def conditional(self, t: Any) -> None:
        if isinstance(t.test, gast.NamedExpr):
            self.dispatch(t.test, NAMED)
        elif isinstance(t.test, gast.Tuple):
            self.dispatch(t.test)
        else:
            self.bare(t.test)
        self.block(t.body)

    def block(self, body: list[gast.stmt]) -> None:
        self.enter()
        self.statements(body)
        self.leave()

    def otherwise(self, t: Any) -> None:
        if t.orelse:
            self.fill("else")
            self.block(t.orelse)

    def _For(self, t: Any, word: str = "for ") -> None:
        self.fill(word)
        self.dispatch(t.target, TUPLE)
        self.write(" in ")
        self.bare(t.iter)
        self.block(t.body)
        self.otherwise(t)

    def _AsyncFor(self, t: Any) -> None:
        self._For(t, "async for ")

    def _withitem(self, t: Any) -> None:
        alone = isinstance(t.context_expr, gast.Tuple) and t.optional_vars is None
        self.write("(" if alone else "")  # `with (a, b):` enters a and b, `with ((a, b)):` enters a tuple
        super()._withitem(t)
        self.write(")" if alone else "")

    def _TryStar(self, t: Any) -> None:
        for handler in t.handlers:
            handler.star = True
        self._Try(t)

    def _ExceptHandler(self, t: Any) -> None:
        self.fill("except*" if getattr(t, "star", False) else "except")
        if t.type is not None:
            self.write(" ")
            self.dispatch(t.type)
        if t.name is not None:
            self.write(f" as {t.name.id}")
        self.block(t.body)

    def _ClassDef(self, t: Any) -> None:
        self.decorators(t)
        self.fill(f"class {t.name}")
        self.type_parameters(t)
        if t.bases or t.keywords:
            self.write(_PAREN)
            self.separated(t.bases + t.keywords)
            self.write(_END_PAREN)
        self.enter()
        self.documented(t.body)
        self.leave()

    def _FunctionDef(self, t: Any, word: str = "def ") -> None:
        self.decorators(t)
        self.fill(word + t.name)
        self.type_parameters(t)
        self.write(_PAREN)
        self.parameters(t.args)
        self.write(_END_PAREN)
        if t.returns is not None:
            self.write(" -> ")
            self.dispatch(t.returns)
        self.enter()
        self.documented(t.body)
        self.leave()

    def _AsyncFunctionDef(self, t: Any) -> None:
        self._FunctionDef(t, "async def ")

    def decorators(self, t: Any) -> None:
        for decorator in t.decorator_list:
            self.fill("@")
            self.dispatch(decorator)

    def type_parameters(self, t: Any) -> None:
        if t.type_params:
            self.write(_SQUARE)
            self.separated(t.type_params)
            self.write(_END_SQUARE)

    def _TypeVar(self, t: Any, stars: str = "") -> None:
        self.write(stars + t.name)
        if getattr(t, "bound", None) is not None:
            self.write(": ")
            self.dispatch(t.bound)
        if getattr(t, "default_value", None) is not None:
            self.write(" = ")
            self.dispatch(t.default_value)

    def _TypeVarTuple(self, t: Any) -> None:
        self._TypeVar(t, "*")

    def _ParamSpec(self, t: Any) -> None:
        self._TypeVar(t, "**")

    # parameters

    def parameters(self, t: Any) -> None:
        """What stands between the parentheses of a `def`, or between `lambda` and its colon."""
        positional = t.posonlyargs + t.args
        defaults = [None] * (len(positional) - len(t.defaults)) + t.defaults
        items: list[tuple[str, Any, Any]] = [
            ("", name, default) for name, default in zip(positional, defaults, strict=True)
        ]
        if t.posonlyargs:
            items.insert(len(t.posonlyargs), ("/", None, None))
        if t.vararg is not None or t.kwonlyargs:
            items.append(("*", t.vararg, None))
        items += [("", name, default) for name, default in zip(t.kwonlyargs, t.kw_defaults, strict=True)]
        if t.kwarg is not None:
            items.append(("**", t.kwarg, None))
        for position, (stars, name, default) in enumerate(items):
            self.write(_COMMA if position else "")
            self.write(stars)
            if name is not None:
                self._Name(name)
            if default is not None:
                self.write(" = " if name.annotation is not None else "=")
                self.dispatch(default)

    def _Name(self, t: Any) -> None:
        self.write(t.id)
        if t.annotation is not None:
            self.write(": ")
            self.dispatch(t.annotation)

    # match

    def _Match(self, t: Any) -> None:
        self.fill("match ")
        self.bare(t.subject)
        self._indent += 1
        self.write(":")
        for case in t.cases:
            self.fill("case ")
            self.dispatch(case.pattern)
            if case.guard is not None:
                self.write(" if ")
                self.dispatch(case.guard)
            self.block(case.body)
        self.leave()

    def _MatchValue(self, t: Any) -> None:
        self.dispatch(t.value)

    def _MatchSingleton(self, t: Any) -> None:
        self.write(repr(t.value))

    def _MatchSequence(self, t: Any) -> None:
        self.write(_SQUARE)
        self.separated(t.patterns)
        self.write(_END_SQUARE)

    def _MatchStar(self, t: Any) -> None:
        self.write(f"*{t.name or '_'}")

    def _MatchMapping(self, t: Any) -> None:
        self.write(_CURLY)
        for position, (key, pattern) in enumerate(zip(t.keys, t.patterns, strict=True)):
            self.write(_COMMA if position else "")
            self.dispatch(key)
            self.write(": ")
            self.dispatch(pattern)
        if t.rest is not None:
            self.write(_COMMA if t.keys else "")
            self.write(f"**{t.rest}")
        self.write(_END_CURLY)

    def _MatchClass(self, t: Any) -> None:
        self.dispatch(t.cls)
        self.write(_PAREN)
        self.separated(t.patterns)
        for position, (name, pattern) in enumerate(zip(t.kwd_attrs, t.kwd_patterns, strict=True)):
            self.write(_COMMA if position or t.patterns else "")
            self.write(f"{name}=")
            self.dispatch(pattern)
        self.write(_END_PAREN)

    def _MatchAs(self, t: Any) -> None:
        if t.pattern is None:
            self.write(t.name or "_")
        else:
            self.alternative(t.pattern, gast.MatchAs)
            self.write(f" as {t.name}")

    def _MatchOr(self, t: Any) -> None:
        for position, pattern in enumerate(t.patterns):
            self.write(_OPERATORS["BitOr"] if position else "")
            self.alternative(pattern, (gast.MatchAs, gast.MatchOr))

    def alternative(self, pattern: Any, weak: Any) -> None:
        """A pattern inside `as` or `|`, in parentheses if it is one of the `weak` ones."""
        needed = isinstance(pattern, weak) and getattr(pattern, "pattern", pattern) is not None
        self.write(_PAREN if needed else "")
        self.dispatch(pattern)
        self.write(_END_PAREN if needed else "")

    # expressions

    def _NamedExpr(self, t: Any) -> None:
        self.dispatch(t.target)
        self.write(" := ")
        self.dispatch(t.value)

    def _Tuple(self, t: Any) -> None:
        if not t.elts:
            self.write("()")
        self.separated(t.elts)
        if len(t.elts) == 1:
            self.write(",")

    def _Yield(self, t: Any) -> None:
        self.write("yield")
        if t.value is not None:
            self.write(" ")
            self.dispatch(t.value, TEST if isinstance(t.value, gast.Yield | gast.YieldFrom) else TUPLE)

    def _YieldFrom(self, t: Any) -> None:
        self.write("yield from ")
        self.dispatch(t.value)

    def _Await(self, t: Any) -> None:
        self.write("await ")
        self.dispatch(t.value, ATOM)

    def _Lambda(self, t: Any) -> None:
        mark = len(self.parts)
        self.parameters(t.args)
        parameters = self.unbroken(mark)
        self.write(f"lambda {parameters}" if parameters else "lambda")
        self.write(": ")
        self.dispatch(t.body)

    def _IfExp(self, t: Any) -> None:
        self.dispatch(t.body, OR)
        self.write(_IF)
        self.dispatch(t.test, OR)
        self.write(_ELSE)
        self.dispatch(t.orelse)

    def _BoolOp(self, t: Any) -> None:
        operator = _OPERATORS[type(t.op).__name__]
        for position, value in enumerate(t.values):
            self.write(operator if position else "")
            self.dispatch(value, operator.strength + 1)

    def _Compare(self, t: Any) -> None:
        self.dispatch(t.left, BIT_OR)
        for op, value in zip(t.ops, t.comparators, strict=True):
            self.write(_OPERATORS[type(op).__name__])
            self.dispatch(value, BIT_OR)

    def _BinOp(self, t: Any) -> None:
        operator = _OPERATORS[type(t.op).__name__]
        if operator.strength == POWER:
            self.dispatch(t.left, AWAIT)
            self.write(operator)
            self.dispatch(t.right, FACTOR)
            return
        chain = [t]  # a loop, so that a sum of a thousand terms needs no deep recursion
        while isinstance(chain[-1].left, gast.BinOp) and _strength(chain[-1].left) == operator.strength:
            chain.append(chain[-1].left)
        self.dispatch(chain[-1].left, operator.strength)
        for node in reversed(chain):
            self.write(_OPERATORS[type(node.op).__name__])
            self.dispatch(node.right, operator.strength + 1)

    def _UnaryOp(self, t: Any) -> None:
        symbol = self.unop[type(t.op).__name__]
        self.write("not " if symbol == "not" else symbol)
        strength = _strength(t)
        twice = symbol in "+-" and _strength(t.operand) == FACTOR  # print -(-x), not --x
        self.dispatch(t.operand, strength + 1 if twice else strength)

    def _Attribute(self, t: Any) -> None:
        whole = isinstance(t.value, gast.Constant) and type(t.value.value) is int  # `1.real` is no expression
        self.dispatch(t.value, ATOM + 1 if whole else ATOM)
        self.write(f".{t.attr}")

    def _Call(self, t: Any) -> None:
        self.dispatch(t.func, ATOM)
        if len(t.args) == 1 and not t.keywords and isinstance(t.args[0], gast.GeneratorExp):
            self._GeneratorExp(t.args[0])
            return
        self.write(_PAREN)
        self.separated(t.args + t.keywords)
        self.write(_END_PAREN)

    def _Subscript(self, t: Any) -> None:
        self.dispatch(t.value, ATOM)
        self.write(_INDEX)
        self.dispatch(t.slice, TUPLE if not isinstance(t.slice, gast.Yield | gast.YieldFrom) else TEST)
        self.write(_END_SQUARE)

    def _Slice(self, t: Any) -> None:
        if t.lower is not None:
            self.dispatch(t.lower)
        self.write(":")
        if t.upper is not None:
            self.dispatch(t.upper)
        if t.step is not None:
            self.write(":")
            self.dispatch(t.step)

    def _Starred(self, t: Any) -> None:
        self.write("*")
        self.dispatch(t.value, BIT_OR)

    def _List(self, t: Any) -> None:
        self.write(_SQUARE)
        self.separated(t.elts)
        self.write(_END_SQUARE)

    def _Set(self, t: Any) -> None:
        self.write(_CURLY)
        self.separated(t.elts)
        self.write(_END_CURLY)

    def _Dict(self, t: Any) -> None:
        self.write(_CURLY)
        for position, (key, value) in enumerate(zip(t.keys, t.values, strict=True)):
            self.write(_COMMA if position else "")
            if key is None:
                self.write("**")
                self.dispatch(value, BIT_OR)
            else:
                self.dispatch(key)
                self.write(": ")
                self.dispatch(value)
        self.write(_END_CURLY)

    def comprehended(self, opening: str, t: Any, closing: str) -> None:
        self.write(opening)
        self.dispatch(t.elt)
        for generator in t.generators:
            self._comprehension(generator)
        self.write(closing)

    def _ListComp(self, t: Any) -> None:
        self.comprehended(_SQUARE, t, _END_SQUARE)

    def _SetComp(self, t: Any) -> None:
        self.comprehended(_CURLY, t, _END_CURLY)

    def _GeneratorExp(self, t: Any) -> None:
        self.comprehended(_PAREN, t, _END_PAREN)

    def _DictComp(self, t: Any) -> None:
        self.write(_CURLY)
        self.dispatch(t.key)
        self.write(": ")
        self.dispatch(t.value)
        for generator in t.generators:
            self._comprehension(generator)
        self.write(_END_CURLY)

    def _comprehension(self, t: Any) -> None:
        self.write(_ASYNC_FOR if t.is_async else _FOR)
        mark = len(self.parts)
        self.dispatch(t.target, TUPLE)
        self.write(self.unbroken(mark))
        self.write(" in ")
        self.dispatch(t.iter, OR)
        for condition in t.ifs:
            self.write(_IF)
            self.dispatch(condition, OR)

    def _Constant(self, t: Any) -> None:
        self.write(("u" if t.kind == "u" else "") + constant(t.value))

    # f-strings

    def _JoinedStr(self, t: Any) -> None:
        pieces: list[str] = []
        codes: list[str] = []
        _collect(t, pieces, codes)
        # Inside the braces Python 3.11 allows no backslash and not the quote outside.
        for quote in ("'", '"', "'''", '"""'):
            if not any(quote in code or "\\" in code or "\n" in code for code in codes):
                break
        else:
            self.formatted(t)
            return
        plain = [piece for position, piece in enumerate(pieces) if position % 2 == 0]
        if quote == "'" and any("'" in piece for piece in plain):
            if not any('"' in text for text in plain + codes):
                quote = '"'
        texts = [quoted(piece, quote) if i % 2 == 0 else piece for i, piece in enumerate(pieces)]
        self.write(f"f{quote}{''.join(texts)}{quote}")

    def _FormattedValue(self, t: Any) -> None:
        self._JoinedStr(gast.JoinedStr([t]))

    def formatted(self, t: Any) -> None:
        """An f-string that Python 3.11 can't spell, as a call of `str.format` with the same meaning."""
        values: list[Any] = []
        self.write(f"{_template(t, values)!r}.format")
        self.write(_PAREN)
        self.separated(values)
        self.write(_END_PAREN)


def _strength(node: Any) -> int:
    """How strongly the printed form of an expression binds."""
    name = node.__class__.__name__
    if name in ("BinOp", "UnaryOp", "BoolOp"):
        return _STRENGTHS[node.op.__class__.__name__]
    if name == "Constant":
        text = constant(node.value) if isinstance(node.value, (int, float, complex)) else ""
        return ARITH if " " in text else FACTOR if text.startswith("-") else ATOM
    if name == "Tuple" and not node.elts:
        return ATOM
    return _STRENGTHS.get(name, ATOM)


def _collect(t: Any, pieces: list[str], codes: list[str]) -> None:
    """Append to `pieces` the parts of an f-string, text and code in turn, and to `codes` its expressions."""
    if not pieces:
        pieces.append("")
    for value in t.values:
        if isinstance(value, gast.Constant):
            pieces[-1] += value.value
            continue
        printer = _Printer()
        printer.dispatch(value.value, OR)
        code = "".join(printer.parts)
        codes.append(code)
        pieces.append("{" + (" " if code.startswith("{") else "") + code)
        if value.conversion != -1:
            pieces[-1] += f"!{chr(value.conversion)}"
        if value.format_spec is not None:
            pieces[-1] += ":"
            pieces.append("")
            _collect(value.format_spec, pieces, codes)
            pieces.append("")
        pieces[-1] += "}"
        pieces.append("")


def _template(t: Any, values: list[Any], inside: bool = False) -> str:
    """The template of `str.format` for an f-string; its expressions are appended to `values`."""
    text = ""
    for value in t.values:
        if not isinstance(value, gast.Constant):
            values.append(value.value)
            conversion = f"!{chr(value.conversion)}" if value.conversion != -1 else ""
            spec = f":{_template(value.format_spec, values, True)}" if value.format_spec is not None else ""
            text += f"{{{conversion}{spec}}}"
        elif inside and set("{}") & set(value.value):  # a format has no way to spell a brace
            values.append(value)
            text += "{}"
        else:
            text += value.value.replace("{", "{{").replace("}", "}}")
    return text
