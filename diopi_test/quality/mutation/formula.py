"""Formula mutants: the results of a reference with one change in its source.

The change replaces one operator, number or function, or it replaces −∞ by a finite number. It can also expand a square
(a − b)², which then cancels far from 0.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, final

import diopi_test.oracle.reference as package
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.dependencies import dependencies
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference import Reference, find_reference, separate_registry
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random

EXCHANGED: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""The operators that replace each operator."""

RELATED = {
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "argmax": "argmin",
    "argmin": "argmax",
    "any": "all",
    "all": "any",
    "floor": "ceil trunc",
    "ceil": "floor",
    "rint": "floor trunc",
    "trunc": "floor rint",
    "abs": "positive",
    "sign": "positive",
    "sqrt": "square",
    "square": "abs",
    "exp": "expm1",
    "log": "log1p",
    "expm1": "exp",
    "log1p": "log",
    "sum": "prod",
    "mean": "sum",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "zeros": "ones",
    "ones": "zeros",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
    "triu": "tril",
    "tril": "triu",
    "flip": "asarray",
}
"""The functions that replace each function of NumPy, one after the other."""

FINITE_INFINITY = "−∞ replaced by −10,000 in the formula"
"""The kind of mutants with a finite number in place of −∞."""

_A_LITTLE_LESS = 1 - 2.0**-24
"""The largest float32 number below 1. A mutant multiplies the argument of `trunc` or `floor` by it.

An integer that was computed with rounding errors may be as much too small as this factor makes it.
"""

CONVERSIONS = {"int": "round", "round": "int"}
"""The conversions to integers that replace each other: `int` truncates, and `round` rounds."""


@final
@dataclass(frozen=True, kw_only=True)
class SourceChange:
    """A change of a module's source.

    Attributes:
        kind: the kind of the mutant.
        module: the name of the module.
        place: the index of the changed node among the nodes of `_changeable_nodes`.
        variant: the index of the replacement among the node's possible replacements of this kind.
        text: a description of the change.
    """

    kind: str
    module: str
    place: int
    variant: int
    text: str


def formula_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function's formula: every change in the source that its reference can reach.

    Random functions have no formula.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    if is_random(function):
        return
    function_reference = find_reference(function)
    assert function_reference is not None, "a case has been made with it"
    names: set[str] = set()
    for module, lines in _reachable_lines(function_reference).items():
        for change in _list_changes(module, frozenset(lines)):
            name = change.text if change.text not in names else f"{change.text} (place {change.place})"
            names.add(name)
            yield Mutant(
                name=name,
                corrupt=partial(_recompute_with_change, function, function_reference.__module__, change),
                kind=change.kind,
            )


def _recompute_with_change(function: str, family: str, change: SourceChange, call: SimulatedCall) -> Effect:
    """Recompute the results of a call with a changed reference.

    Args:
        function: the name of the function.
        family: the module that contains its reference.
        change: the change, in this module or in a module that it imports.
        call: the call.

    Returns:
        The effect; `undefined` if the changed source can't be loaded or the reference fails.
    """
    if not KINDS[change.kind].concerns(call.case):
        return Effect.not_applicable
    try:
        call.reference = _changed_reference(function, family, change)
    except Exception:  # a changed source may raise anything
        return Effect.undefined
    return call.recompute()


# Where a formula is


def _reachable_lines(function: Any) -> dict[str, set[int]]:
    """Return the line numbers of the functions that a function may call, including its own, by reference module."""
    lines: dict[str, set[int]] = {}
    todo, visited_ids = [inspect.unwrap(function)], set()
    while todo:
        value = todo.pop()
        if id(value) in visited_ids:
            continue
        visited_ids.add(id(value))
        if isinstance(value, FunctionType):
            if value.__module__ != package.__name__ and value.__module__.startswith(package.__name__):
                lines.setdefault(value.__module__, set()).update(_line_numbers(value.__code__))
                todo += [*_referenced_globals(value), *(cell.cell_contents for cell in value.__closure__ or ())]
        elif isinstance(value, partial):
            todo += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list | tuple):
            todo += value
        elif getattr(value, "__module__", "").startswith(package.__name__):
            todo += vars(value).values() if hasattr(value, "__dict__") else ()
    return lines


def _referenced_globals(function: FunctionType) -> Iterator[Any]:
    """Yield the global objects that a function names."""
    for code in _nested_codes(function.__code__):
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


def _line_numbers(code: CodeType) -> set[int]:
    """Return the numbers of all lines of a code object, including nested code."""
    return {line for nested in _nested_codes(code) for _, _, line in nested.co_lines() if line}


# How it is changed


@cache
def _parse_module(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(Path(_source_path(module)).read_text("utf-8"))


@cache
def _list_changes(module: str, lines: frozenset[int]) -> list[SourceChange]:
    """Return all changes of the module's nodes that begin in one of these lines."""
    changes = []
    for place, node in enumerate(_changeable_nodes(_parse_module(module))):
        if node.lineno in lines:
            place_of_node = f"{module.removeprefix(f'{package.__name__}.').replace('.', '/')}.py:{node.lineno}"
            for kind, definition in KINDS.items():
                for number, variant in enumerate(definition.variants(node)):
                    text = f"{place_of_node}: {_format_node(node)} -> {_format_node(variant)}"
                    changes.append(SourceChange(kind=kind, module=module, place=place, variant=number, text=text))
    return changes


def _format_node(node: Any) -> str:
    """Return a node's source; for a statement with nested statements, its condition."""
    return ast.unparse(node.test if isinstance(node, ast.If) else node)


def _changeable_nodes(tree: ast.AST) -> Iterator[Any]:
    """Yield the expressions, augmented assignments and `if` statements, in the order of the syntax tree.

    Annotations, decorators, `assert` and `raise` statements are left out.
    """
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.Raise | ast.Assert) or not isinstance(node, ast.AST):
                continue
            if isinstance(node, ast.expr | ast.AugAssign | ast.If):
                yield node
            yield from _changeable_nodes(node)


def _replacements(node: Any) -> list[Any]:
    """Return the nodes that can replace a node; an empty list for most nodes."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in EXCHANGED:
            return [ast.BinOp(left, EXCHANGED[type(op)](), right)]
        case ast.AugAssign(target, op, value) if type(op) in EXCHANGED:
            return [ast.AugAssign(target, EXCHANGED[type(op)](), value)]
        case ast.Compare(left, ops, values):
            return [
                ast.Compare(left, [*ops[:i], EXCHANGED[type(op)](), *ops[i + 1 :]], values)
                for i, op in enumerate(ops)
                if type(op) in EXCHANGED
            ]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(EXCHANGED[type(op)](), values)]
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            return [operand]
        case ast.Constant(bool() as value):
            return [ast.Constant(not value)]
        case ast.Constant(int() | float() as value):
            return [ast.Constant(value + 1)]
        case ast.IfExp(test, body, orelse):
            return [ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)]
        case ast.If(test, body, orelse):
            return [ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)]
        case ast.Attribute(ast.Name("np") as numpy, name, context) if name in RELATED:
            return [ast.Attribute(numpy, related, context) for related in RELATED[name].split()]
        case ast.Call(ast.Attribute(ast.Name("np"), "trunc" | "floor") as function, [number]):
            return [ast.Call(function, [ast.BinOp(number, ast.Mult(), ast.Constant(_A_LITTLE_LESS))], [])]
        case ast.Call(ast.Name(name, context), arguments, keywords) if name in CONVERSIONS:
            return [ast.Call(ast.Name(CONVERSIONS[name], context), arguments, keywords)]
        case ast.Call(ast.Attribute(values, "astype", context), arguments):
            rounded = ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "rint", ast.Load()), [values], [])
            return [ast.Call(ast.Attribute(rounded, "astype", context), arguments, [])]
    return []


EXPANDED = "{0} * {0} - 2 * ({0} * {1}) + {1} * {1}"
"""The square of the difference of `{0}` and `{1}`, computed as x² − 2xy + y²."""


def _expand_square(node: Any) -> list[Any]:
    """Return the expansion in float32 of a squared difference of two arrays; the list is empty for other nodes.

    A square is `(a - b) ** 2`, `np.square(a - b)` or the square of `np.abs(a - b)`.
    """
    match node:
        case ast.BinOp(base, ast.Pow(), ast.Constant(2)) | ast.Call(ast.Attribute(ast.Name("np"), "square"), [base]):
            match base:
                case ast.Call(ast.Attribute(ast.Name("np"), "abs"), [ast.BinOp(minuend, ast.Sub(), subtrahend)]):
                    pass
                case ast.BinOp(minuend, ast.Sub(), subtrahend):
                    pass
                case _:
                    return []
            if isinstance(subtrahend, ast.Constant):  # no data is so close to a constant that digits cancel
                return []
            operands = (f"np.float32({ast.unparse(operand)})" for operand in (minuend, subtrahend))
            return [ast.parse(EXPANDED.format(*operands), mode="eval").body]
    return []


FINITE_SUBSTITUTE = -10_000.0
"""The number that some kernels use instead of −∞ for hidden scores and as the first number of a maximum."""


def _replace_infinity(node: Any) -> list[Any]:
    """Return the finite substitute for `-np.inf`; the list is empty for other nodes."""
    match node:
        case ast.UnaryOp(ast.USub(), ast.Attribute(ast.Name("np"), "inf")):
            return [ast.Constant(FINITE_SUBSTITUTE)]
    return []


def _is_in_float32(case: BaselineCase) -> bool:
    """Return whether the element type of a case is float32."""
    return case.dtype is Dtype.float32


@final
@dataclass(frozen=True)
class _ChangeKind:
    """A kind of change.

    Attributes:
        variants: returns the nodes that can replace a node.
        concerns: returns whether mutants of this kind apply to a case.
    """

    variants: Callable[[Any], list[Any]]
    concerns: Callable[[BaselineCase], bool] = lambda case: True


KINDS = {
    "formula changed": _ChangeKind(_replacements),
    "square of a difference expanded": _ChangeKind(_expand_square, _is_in_float32),
    FINITE_INFINITY: _ChangeKind(_replace_infinity),
}
"""The changes of a formula, by kind of mutant."""


@final
class _NodeReplacer(ast.NodeTransformer):
    """Replaces one node by a variant."""

    def __init__(self, node: Any, variant: Any) -> None:
        """Prepare to replace the syntax tree `node` by `variant`."""
        self._node, self._variant = node, variant

    def visit(self, node: Any) -> Any:
        """Return the variant for the node to replace, and visit all other nodes."""
        if node is not self._node:
            return super().visit(node)
        return ast.copy_location(self._variant, node)


@final
class _ChangedLoader(SourceFileLoader):
    """Loads a module with one change in its source."""

    def __init__(self, change: SourceChange) -> None:
        """Prepare to load the module that the change concerns."""
        super().__init__(change.module, _source_path(change.module))
        self._change = change

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled code of the module `fullname` with the change."""
        tree = ast.parse(self.get_data(self.path))
        node = next(islice(_changeable_nodes(tree), self._change.place, None))
        variant = KINDS[self._change.kind].variants(node)[self._change.variant]
        changed = _NodeReplacer(node, variant).visit(tree)
        return compile(ast.fix_missing_locations(changed), self.path, "exec")


@lru_cache(maxsize=1)
def _changed_reference(function: str, family: str, change: SourceChange) -> Reference:
    """Return a function's reference with one change in the family's module or in a module that it imports."""
    with separate_registry() as references:
        _load_changed(family, change, {})
    return references.get(function) or references[lookup(function).base]


def _load_changed(name: str, change: SourceChange, loaded: dict[str, ModuleType]) -> ModuleType:
    """Load a private copy of a reference module with the change, and of the imported modules that depend on it.

    Args:
        name: the name of the module.
        change: the change.
        loaded: the copies by name. The function adds new copies, and loads no module twice.

    Returns:
        The copy.
    """
    loader = _ChangedLoader(change) if name == change.module else SourceFileLoader(name, _source_path(name))
    module = loaded[name] = importlib.util.module_from_spec(ModuleSpec(name, loader, origin=loader.path))

    def import_from(name: str, globals: Any = None, locals: Any = None, names: Any = (), level: int = 0) -> ModuleType:
        """Import a module as `__import__` does, but load changed copies of modules that depend on the change."""
        if not name.startswith(f"{package.__name__}.") or change.module not in dependencies(frozenset({name})):
            return __import__(name, globals, locals, names, level)
        return loaded[name] if name in loaded else _load_changed(name, change, loaded)

    vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_from}
    loader.exec_module(module)
    return module


def _source_path(module: str) -> str:
    """Return the path of a module's source file."""
    return importlib.import_module(module).__file__ or ""
