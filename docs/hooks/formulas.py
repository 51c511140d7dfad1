"""Formulas of the functions: read `formulas.toml` and write formulas as MathML, which browsers show without scripts.

The language of the formulas is a part of Python's expressions, so that the tests can evaluate each formula and compare
it with the reference. `formulas.toml` explains the language.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

from diopi_proto.prototype import Prototype

TABLE = Path(__file__).with_name("formulas.toml")

REDUCTIONS = {
    "Sum": "∑",
    "Prod": "∏",
    "Max": "max",
    "Min": "min",
    "Mean": "mean",
    "Any": "any",
    "All": "all",
    "Count": "#",
    "Argmax": "arg max",
    "Argmin": "arg min",
}
"""How a page shows each reduction, for example `Sum[k](…)`."""

FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉"), "norm": ("‖", "‖")}
"""The functions that a page shows as a pair of fences."""

NAMES = {"pi": "π", "inf": "∞", "nan": "NaN", "true": "true", "false": "false"}
"""The constants of the language."""

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "−",
    ast.Mult: "·",
    ast.MatMult: "@",
    ast.Mod: "mod",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.USub: "−",
    ast.Not: "¬",
    ast.Invert: "~",
    ast.And: "∧",
    ast.Or: "∨",
    ast.Eq: "=",
    ast.NotEq: "≠",
    ast.Lt: "<",
    ast.LtE: "≤",
    ast.Gt: ">",
    ast.GtE: "≥",
    ast.In: "∈",
}
"""The sign of each operator."""

PRECEDENCE: Mapping[type[ast.AST], int] = {
    ast.Or: 1,
    ast.BitOr: 1,
    ast.And: 2,
    ast.BitAnd: 2,
    ast.Add: 5,
    ast.Sub: 5,
    ast.Mult: 6,
    ast.MatMult: 6,
    ast.Mod: 6,
    ast.Pow: 8,
}
"""How strongly an operator binds; operands that bind less are shown in parentheses."""

CONDITIONAL, NEGATION, COMPARISON, UNARY, ATOM = 0, 3, 4, 7, 9
"""How strongly the other kinds of expressions bind."""


LEGEND = """The pages of the functions show formulas. Names are those of the parameters. Single letters are indices or
intermediate results. The following notation is less common:

- *r* stands for all axes before the axis `dim`, or for all leading axes. *s* stands for all axes after it, or for all
  remaining axes.
- An arrow (←) updates a tensor, which keeps its other elements. Each update uses the results of those before it.
- reduce(l) is l, the sum of l or the mean of l, as the argument `reduction` says.
- tril and triu take the lower and the upper triangle of a matrix. halved also halves the diagonal.
- B and Z are bilinear samples, which [mmcv_roi](mmcv_roi.md) and [mmcv_deform](mmcv_deform.md) define.
- An element outside a tensor counts as 0 in a sum, and does not take part in a maximum.
- NULL for a weight or scale means 1, and NULL for a bias means 0.
- A formula that begins with a condition describes only the calls that satisfy the condition.

The tests evaluate every formula and compare the results with the reference."""
"""What a reader of the formulas must know."""


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    """Return the two tables of `formulas.toml`: `formulas` and `without`, by function."""
    return tomllib.loads(TABLE.read_text("utf-8"))


def formula_texts() -> Mapping[str, str]:
    """Return the texts of all formulas, by plain function. A key of the file may name several functions."""
    return {name: text for names, text in _table()["formulas"].items() for name in names.split()}


def reasons_without_formula() -> Mapping[str, str]:
    """Return why a function has no formula, by plain function."""
    return {name: reason for names, reason in _table()["without"].items() for name in names.split()}


def describe_formula(prototype: Prototype) -> str:
    """Return the formula of a function as HTML, or a sentence that says why the function has none.

    The in-place and scalar forms of a function have the formula of the plain function.
    """
    text = formula_texts().get(prototype.base)
    if text is None:
        return reasons_without_formula()[prototype.base]
    updated = {p.name for p in prototype.results if p in prototype.arguments}
    renamed = _renamed_result(prototype)
    lines = "".join(Formula(statement, updated | set(renamed), renamed).line() for statement in parse_formula(text))
    return f'<div class="formula">{lines}</div>'


def _renamed_result(prototype: Prototype) -> Mapping[str, str]:
    """Return the name that replaces the result `out` in an in-place form, by the name of the result; else nothing."""
    return {"out": prototype.results[0].name} if prototype.is_inplace and prototype.base != prototype.name else {}


def parse_formula(text: str) -> Sequence[ast.stmt]:
    """Return the statements of a formula; raise SyntaxError if the text is not Python."""
    return ast.parse(text.strip()).body


class Formula:
    """Writes one statement of a formula as MathML.

    Args:
        statement: the statement.
        updated: the names whose assignment is shown with an arrow, because the call updates them.
        renamed: the names that are shown instead of names of the formula.
    """

    def __init__(self, statement: ast.stmt, updated: Collection[str], renamed: Mapping[str, str]) -> None:
        self._statement = statement
        self._updated = updated
        self._renamed = renamed

    def line(self) -> str:
        """Return the statement as a line of HTML."""
        return f'<math display="block"><mrow>{"".join(self._parts())}</mrow></math>'

    def _parts(self) -> Iterator[str]:
        """Yield the parts of the statement."""
        match self._statement:
            case ast.Assert(test=test):
                yield _text("for ") + self._show(test) + _text(":")
            case ast.Expr(value=ast.Call(func=ast.Name(id="per_axis"), args=names)):
                yield _comma_list([self._show(name) for name in names])
                yield _text(": one number per spatial axis")
            case ast.Assign(targets=[ast.Tuple(elts=sizes)], value=ast.Attribute(value=tensor, attr="shape")):
                yield self._show(tensor) + _text(" has the shape ") + _fenced(_comma_list(list(map(self._show, sizes))))
            case ast.Expr(value=ast.Call(func=ast.Name(id="each"), args=[name])):
                yield _text("for each ") + self._show(name) + _text(":")
            case ast.Expr(value=ast.Compare() as equation):
                yield self._show(equation)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                yield _fenced(_comma_list(list(map(self._show, names)))) + _sign("=") + self._show(value)
            case ast.Assign(targets=[target], value=value):
                yield self._show(target) + self._assignment() + self._assigned(value)
            case ast.AugAssign(target=target, op=operator, value=value):
                markup = self._show(target)
                yield markup + _sign("←") + markup + _sign(OPERATORS[type(operator)])
                yield self._operand(value, PRECEDENCE[type(operator)] + 1)
            case _:
                raise SyntaxError(f"a formula has no statement like {ast.unparse(self._statement)!r}")

    def _assignment(self) -> str:
        """Return the sign of the assignment: an arrow if the call updates the tensor."""
        name = assigned_name(self._statement)
        return _sign("←" if self._renamed.get(str(name), name) in self._updated else "=")

    def _assigned(self, value: ast.expr) -> str:
        """Return the assigned value; a truth value is in parentheses."""
        return _fenced(self._show(value)) if isinstance(value, ast.Compare | ast.BoolOp) else self._show(value)

    def _operand(self, node: ast.expr, least: int) -> str:
        """Return an operand, in parentheses if it binds less than `least`."""
        markup = self._show(node)
        return markup if _binding(node) >= least else _fenced(markup)

    def _show(self, node: ast.expr) -> str:
        """Return an expression as MathML."""
        match node:
            case ast.Name(id=name):
                return _identifier(self._renamed.get(name, NAMES.get(name, name)))
            case ast.Constant(value=str(text)):
                return _text(f"“{text}”")
            case ast.Constant(value=None):
                return _text("NULL")
            case ast.Constant(value=bool(truth)):
                return _text(str(truth).lower())
            case ast.Constant(value=number):
                return _number(number)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return f"<mfrac><mrow>{self._show(left)}</mrow><mrow>{self._show(right)}</mrow></mfrac>"
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                quotient = f"<mfrac><mrow>{self._show(left)}</mrow><mrow>{self._show(right)}</mrow></mfrac>"
                return _fenced(quotient, "⌊", "⌋")
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"<msup><mrow>{self._operand(left, ATOM)}</mrow><mrow>{self._show(right)}</mrow></msup>"
            case ast.BinOp(left=left, op=operator, right=right):
                least = PRECEDENCE[type(operator)]
                return self._operand(left, least) + _sign(OPERATORS[type(operator)]) + self._operand(right, least + 1)
            case ast.UnaryOp(op=operator, operand=operand):
                return _sign(OPERATORS[type(operator)], "prefix") + self._operand(operand, UNARY)
            case ast.BoolOp(op=operator, values=values):
                least = PRECEDENCE[type(operator)] + 1
                return _sign(OPERATORS[type(operator)]).join(self._operand(value, least) for value in values)
            case ast.Compare(left=left, ops=operators, comparators=others):
                pairs = zip(operators, others, strict=True)
                markup = (
                    _sign(OPERATORS[type(sign)]) + self._operand(operand, COMPARISON + 1) for sign, operand in pairs
                )
                return self._operand(left, COMPARISON + 1) + "".join(markup)
            case ast.IfExp():
                return self._cases(node)
            case ast.Attribute(value=value, attr=mark):
                mark = {"T": "<mi>T</mi>", "H": "<mo>*</mo>"}[mark]
                return f"<msup><mrow>{self._operand(value, ATOM)}</mrow>{mark}</msup>"
            case ast.Subscript(value=value, slice=index):
                base = f'<mpadded depth="0.25em">{self._show(value)}</mpadded>'  # indices of all names have one height
                return f"<msub>{base}<mrow>{self._indices(index)}</mrow></msub>"
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=scope), args=[term]):
                return self._reduction(REDUCTIONS[name], scope, term)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, arguments)
            case ast.List(elts=elements):
                return _fenced(_comma_list(list(map(self._show, elements))), "[", "]")
        raise SyntaxError(f"a formula has no expression like {ast.unparse(node)!r}")

    def _cases(self, node: ast.expr) -> str:
        """Return a conditional expression as rows of values and conditions behind a brace."""
        rows = []
        while isinstance(node, ast.IfExp):
            rows.append((self._show(node.body), _text("if ") + self._show(node.test)))
            node = node.orelse
        rows.append((self._show(node), _text("otherwise")))
        cells = "".join(f"<mtr><mtd>{value}</mtd><mtd>{condition}</mtd></mtr>" for value, condition in rows)
        return f'<mrow><mo fence="true" form="prefix">{{</mo><mtable class="cases">{cells}</mtable></mrow>'

    def _indices(self, index: ast.expr) -> str:
        """Return the indices of an element with commas between them."""
        entries = index.elts if isinstance(index, ast.Tuple) else [index]
        return _comma_list([_sign("…") if _is_rest(entry) else self._show(entry) for entry in entries])

    def _reduction(self, sign: str, scope: ast.expr, term: ast.expr) -> str:
        """Return a reduction of a term; its scope, such as an index and a condition, is below the sign."""
        markup = f'<mo movablelimits="false">{sign}</mo>' if len(sign) == 1 else f"<mi>{sign}</mi>"
        if not isinstance(scope, ast.Slice):
            entries = scope.elts if isinstance(scope, ast.Tuple) else [scope]
            conditions = [entry for entry in entries if not isinstance(entry, ast.Name)]
            limited = {name.id for entry in conditions for name in ast.walk(entry) if isinstance(name, ast.Name)}
            names = [entry for entry in entries if isinstance(entry, ast.Name) and entry.id not in limited]
            subscripts = _comma_list([self._show(entry) for entry in (*names, *conditions)])
            markup = f"<munder>{markup}<mrow>{subscripts}</mrow></munder>"
        operand = self._operand(term, PRECEDENCE[ast.Mult]) if sign in "∑∏" else _fenced(self._show(term))
        return f"<mrow>{markup}{operand}</mrow>"

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> str:
        """Return the value of a function, in the usual notation of mathematics where there is one."""
        markup = [self._show(argument) for argument in arguments]
        if name == "sqrt":
            return f"<msqrt><mrow>{markup[0]}</mrow></msqrt>"
        if name == "conj":
            return f'<mover accent="true"><mrow>{markup[0]}</mrow><mo>‾</mo></mover>'
        if name in FENCES:
            return _fenced(markup[0], *FENCES[name])
        return _identifier(name) + _fenced(_comma_list(markup))


def _is_rest(entry: ast.expr) -> bool:
    """Return whether an index stands for all axes that are not named."""
    return isinstance(entry, ast.Slice) or (isinstance(entry, ast.Constant) and entry.value is Ellipsis)


def assigned_name(statement: ast.stmt) -> str | None:
    """Return the name to which a statement assigns; None if it assigns to none."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _binding(node: ast.expr) -> int:
    """Return how strongly an expression binds."""
    match node:
        case ast.IfExp():
            return CONDITIONAL
        case ast.BinOp(op=ast.Div() | ast.FloorDiv()):
            return PRECEDENCE[ast.Mult]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator):
            return PRECEDENCE[type(operator)]
        case ast.Compare():
            return COMPARISON
        case ast.UnaryOp():
            return UNARY - 2 if isinstance(node.op, ast.USub) else NEGATION
        case ast.Call(func=ast.Subscript()):
            return PRECEDENCE[ast.Add]
    return ATOM


def _number(number: float) -> str:
    """Return a number; a power of ten has an exponent."""
    mantissa, mark, exponent = repr(number).partition("e")
    if not mark:
        return f"<mn>{mantissa}</mn>"
    power = f"<msup><mn>10</mn><mn>{int(exponent)}</mn></msup>".replace("-", "−")
    return power if mantissa == "1" else f"<mn>{mantissa}</mn>{_sign('·')}{power}"


def _identifier(name: str) -> str:
    """Return a name."""
    return f"<mi>{escape(name)}</mi>"


def _sign(sign: str, form: str = "infix") -> str:
    """Return the sign of an operator."""
    return f'<mo form="{form}">{escape(sign)}</mo>'


def _text(text: str) -> str:
    """Return words within a formula."""
    return f"<mtext>{escape(text, quote=False)}</mtext>".replace("<mtext>for ", "<mtext>for&nbsp;").replace(
        "<mtext>if ", "<mtext>if&nbsp;"
    )


def _fenced(markup: str, opening: str = "(", closing: str = ")") -> str:
    """Return an expression between two fences, which are as high as the expression if it has several rows."""
    stretchy = str(any(f"<{tag}" in markup for tag in ("mfrac", "munder", "mtable"))).lower()
    first, last = (
        f'<mo fence="true" form="{form}" stretchy="{stretchy}">{sign}</mo>'
        for sign, form in ((opening, "prefix"), (closing, "postfix"))
    )
    return f"<mrow>{first}{markup}{last}</mrow>"


def _comma_list(markup: Sequence[str]) -> str:
    """Return expressions with commas between them."""
    return '<mo separator="true">,</mo>'.join(markup)
