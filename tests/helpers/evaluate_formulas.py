"""Evaluate the formulas of the site with NumPy, to compare them with the reference.

A formula is evaluated for a call. A statement without subscripts is an expression of whole arrays. In a statement with
subscripts, such as `out[i, j] = Sum[k](a[i, k] * b[k, j])`, each index variable has an axis of its own, so that every
expression is an array over all index variables. An element outside a tensor counts as 0 in a sum, and is ignored by a
maximum or minimum.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from typing import Any

import numpy as np
from scipy import special

MAX_ELEMENTS = 4_000_000
"""The largest number of elements of an intermediate array; larger calls are not evaluated."""


class NotApplicableError(Exception):
    """The formula does not describe this call, for example because it describes another number of axes."""


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "arsinh": np.arcsinh,
    "arcosh": np.arccosh,
    "artanh": np.arctanh,
    "erf": special.erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "conj": np.conj,
    "Re": np.real,
    "Im": np.imag,
    "max": np.fmax,
    "min": np.fmin,
    "erfinv": special.erfinv,
    "size": np.size,
    "is_nan": np.isnan,
    "complex": lambda real, imag: np.stack(np.broadcast_arrays(real, imag), -1).view(complex)[..., 0],
    "rank": np.ndim,
    "length": len,
    "tril": np.tril,
    "inverse": np.linalg.inv,
    "triu": np.triu,
    "halved": lambda matrix: matrix - np.eye(matrix.shape[-1]) * matrix / 2,
    "product": math.prod,
    "shape": np.shape,
    "spatial": lambda tensor: tensor.shape[2:],
    "is_mask": lambda tensor: tensor.dtype == bool,
    "column": lambda bias, axes: np.reshape(bias, (-1, *[1] * axes)),
}
"""The functions of the language."""

CONSTANTS: Mapping[str, Any] = {
    "lowest": float(np.finfo(np.float32).min),
    "pi": math.pi,
    "inf": math.inf,
    "nan": math.nan,
    "true": True,
    "false": False,
}

REDUCTIONS: Mapping[str, tuple[Any, Callable[..., Any]]] = {
    "Sum": (0, np.sum),
    "Prod": (1, np.prod),
    "Max": (-math.inf, np.max),
    "Min": (math.inf, np.min),
    "Mean": (0, np.mean),
    "Any": (False, np.any),
    "All": (True, np.all),
    "Count": (0, np.sum),
    "Argmax": (0, np.argmax),
    "Argmin": (0, np.argmin),
}
"""The reductions: the value of an element that does not take part, and the reduction along axes."""

BINARY: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.MatMult: np.matmul,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
}


def evaluate_formula(
    statements: Sequence[ast.stmt], arguments: Mapping[str, Any], expected: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of all names after the statements of a formula.

    Args:
        statements: the formula.
        arguments: the arguments of the call by name: arrays, numbers, sequences, texts and None.
        expected: the expected results by name. A formula can use a result that it does not compute.

    Returns:
        The arguments, the results and the local names of the formula, by name.

    Raises:
        NotApplicableError: the formula does not describe this call, or its arrays would be too large.
    """
    assigned = {
        _name_of(s.targets[0] if isinstance(s, ast.Assign) else s.target)
        for s in statements
        if isinstance(s, (ast.Assign, ast.AugAssign))
    }
    known_results = {
        n: value for n, value in expected.items() if n not in {*assigned, *arguments} and value is not None
    }
    shapes = {name: np.shape(value) for name, value in expected.items() if not isinstance(value, (list, type(None)))}
    state = _State({**arguments, **known_results}, shapes, _index_names(statements, {*arguments, *expected}))
    with np.errstate(all="ignore"):
        for statement in statements:
            state.run(statement)
    return {**state.values, "equations": state.equations}


def _index_names(statements: Sequence[ast.stmt], known: set[str]) -> set[str]:
    """Return the names that are index variables: those that neither the statements nor `known` define."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    assigned = {
        name.id
        for statement in statements
        if isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Subscript)
        for name in ast.walk(statement.targets[0])
        if isinstance(name, ast.Name)
    } | {
        name.id
        for statement in statements
        if _is_each(statement)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name)
    }
    called = {
        name.id for node in nodes if isinstance(node, ast.Call) for name in ast.walk(node.func) if _is_callee(name)
    }
    tensors = {node.value.id for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names - known - assigned - tensors - called - set(CONSTANTS)


def _is_callee(node: ast.AST) -> bool:
    """Return whether a part of a called expression is the name of a function or of a reduction."""
    return isinstance(node, ast.Name) and node.id in {*FUNCTIONS, *REDUCTIONS, "reduce", "B", "Z", "each", "per_axis"}


def _is_each(statement: ast.stmt) -> bool:
    """Return whether a statement says that the formula holds for each tensor of an array."""
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("each(")


def _name_of(target: ast.expr) -> str:
    """Return the name to which a statement assigns."""
    return next(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


class _State:
    """The values of names while a formula is evaluated."""

    def __init__(self, values: dict[str, Any], results: Mapping[str, tuple[int, ...]], indices: set[str]) -> None:
        self.values = values
        self._results = results
        self._indices = indices
        self.equations = 0
        self._macros: dict[str, ast.expr] = {}
        self._per_axis: set[str] = set()
        self._axes: list[str] = []
        self._ranges: dict[str, int] = {}

    def run(self, statement: ast.stmt) -> None:
        """Execute a statement."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id="per_axis"), args=names)):
                self._per_axis = {name.id for name in names if isinstance(name, ast.Name)}
                return
            case ast.Expr(value=ast.Call(func=ast.Name(id="each"), args=[ast.Name(id=name)])):
                self.values[name] = 0  # the first tensor of each array
                return
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id=name)):
                if len(names) != len(self.values[name]):
                    raise NotApplicableError(f"{name} has {len(self.values[name])} entries")
                self.values.update(zip(map(_name_of, names), self.values[name], strict=True))
                return
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=i))], value=value) if (
                self.values.get(i) == 0 and isinstance(self.values.get(i), int)
            ):
                self._axes = []
                self.values[name] = [self._value(value)]
                return
            case ast.Assign(
                targets=[ast.Tuple(elts=sizes)], value=ast.Attribute(value=ast.Name(id=name), attr="shape")
            ):
                self._assign_sizes([size.id for size in sizes if isinstance(size, ast.Name)], name)
                return
        statement = self._expand(statement)
        match statement:
            case ast.Assert(test=test):
                self._axes = []
                if not np.all(self._value(test)):
                    raise NotApplicableError(ast.unparse(test))
            case ast.Expr(value=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                self._begin(None, ast.Tuple([left, right], ast.Load()))
                a, b = (np.asarray(self._value(side)) for side in (left, right))
                np.testing.assert_allclose(*np.broadcast_arrays(a, b), rtol=1e-6, atol=1e-9)
                self.equations += 1
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if self._used(value) & self._indices:
                    self._macros[name] = value
                else:
                    self._axes = []
                    self.values[name] = self._value(value)
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Subscript() as target, op=operator, value=value):
                self._accumulate(target, {ast.Add: np.add, ast.Sub: np.subtract}[type(operator)], value)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                self._axes = []
                self.values[name] = BINARY[type(operator)](self.values[name], self._value(value))

    def _assign_sizes(self, names: Sequence[str], tensor: str) -> None:
        """Assign the sizes of a tensor to names; a name that each axis has stands for all remaining sizes."""
        shape = self._results[tensor] if tensor in self._results else np.shape(self.values[tensor])
        if len(names) != len(shape):
            raise NotApplicableError(f"{tensor} has {len(shape)} axes")
        self.values.update(zip(names, shape, strict=True))

    @staticmethod
    def _used(node: ast.AST) -> set[str]:
        """Return the names in an expression."""
        return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}

    def _expand(self, statement: ast.stmt) -> ast.stmt:
        """Return the statement with local names replaced by their expressions and one index per spatial axis."""
        statement = deepcopy(statement)
        for _ in range(8):  # local names may refer to local names
            if self._used(statement) & set(self._macros):
                statement = _Substitute(self._macros).visit(statement)
        if self._per_axis & self._used(statement):
            lists = (
                value
                for name, value in self.values.items()
                if isinstance(value, (list, tuple)) and value and name not in ("in_size", "bias_sizes")
            )
            count = max(map(len, lists), default=0)
            statement = _PerAxis(self._per_axis, count, self.values).visit(statement)
            self._indices |= {f"{name}_{axis}" for name in self._per_axis for axis in range(count)}
        return ast.fix_missing_locations(statement)

    def _begin(self, target: ast.Subscript | None, value: ast.expr) -> None:
        """Determine the index variables of a statement and their ranges."""
        parts = [value] if target is None else [target.slice, value]
        self._axes = sorted(set().union(*map(self._used, parts)) & self._indices)
        self._ranges = {}
        if target is not None and (shape := self._results.get(_name_of(target.value))) is not None:
            self._limit(_entries(target), self._viewed_shape(shape, _entries(target)))
        planes: list[ast.expr] = []  # an axis of rows and one of columns have no index there
        for node in (n for part in parts for n in ast.walk(part)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("B", "Z"):
                assert isinstance(node.args[0], ast.Subscript)
                planes.append(node.args[0])
                self._limit(_entries(node.args[0]), np.shape(self.values[_name_of(node.args[0].value)])[:2])
            if isinstance(node, ast.Subscript) and node in planes:
                continue
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.values:
                tensor = self.values[node.value.id]
                if isinstance(tensor, np.ndarray):
                    self._limit(_entries(node), self._viewed_shape(tensor.shape, _entries(node)))
        for node in ast.walk(value):
            if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.Lt):
                self._limit_by_condition(node)
        if axes_without_range := set(self._axes) - set(self._ranges):
            raise AssertionError(f"the range of {sorted(axes_without_range)} is not known")
        if math.prod(self._ranges[axis] for axis in self._axes) > MAX_ELEMENTS:
            raise NotApplicableError("too large")

    def _limit(self, entries: Sequence[ast.expr], shape: Sequence[int]) -> None:
        """Give each variable that is an index of a tensor the size of the axis as its range."""
        for entry, size in zip(entries, shape, strict=True):
            if not isinstance(entry, ast.Name) or entry.id not in self._indices:
                continue
            if self._ranges.setdefault(entry.id, size) != size and entry.id in ("r", "s"):
                raise NotApplicableError(f"the tensors have different sizes at {entry.id}")

    def _limit_by_condition(self, node: ast.Compare) -> None:
        """Give the variable of a condition such as `0 <= k < n` the range of the condition."""
        variable = node.comparators[-2] if len(node.comparators) > 1 else node.left
        limit = node.comparators[-1]
        if isinstance(variable, ast.Name) and variable.id in self._indices and not self._used(limit) & self._indices:
            self._ranges.setdefault(variable.id, math.ceil(self._value(limit)))

    def _viewed_shape(self, shape: tuple[int, ...], entries: Sequence[ast.expr]) -> tuple[int, ...]:
        """Return the shape of a tensor with as many axes as indices: `r` and `s` run over several axes at once."""
        first = "r" in self._used(entries[0]) if entries else False
        last = "s" in self._used(entries[-1]) if entries else False
        if len(entries) == 1 and (first or last):
            return (math.prod(shape),)
        middle = len(entries) - first - last
        if first and last:
            lead = self._leading_axes(len(shape), middle)
        elif first or last:
            lead = len(shape) - middle if first else middle
        else:
            lead = middle = len(shape)
        trail = lead + middle if first else lead
        if lead < 0 or trail > len(shape) or (not first and not last and len(shape) != len(entries)):
            raise NotApplicableError(f"{len(shape)} axes instead of {len(entries)}")
        if not first:
            return (*shape[:trail], *([math.prod(shape[trail:])] if last else []))
        return (math.prod(shape[:lead]), *shape[lead:trail], *([math.prod(shape[trail:])] if last else []))

    def _leading_axes(self, rank: int, middle: int) -> int:
        """Return the number of axes for which `r` stands in a tensor, if `s` stands for the last axes."""
        if "normalized_shape" in self.values:
            return rank - len(self.values["normalized_shape"])
        if "begin_norm_axis" in self.values:
            return int(self.values["begin_norm_axis"]) % rank
        axis = self.values.get("dim", -1)
        return int(axis if axis >= 0 else axis + rank + 1 - middle)

    def _assign(self, target: ast.Subscript, value: ast.expr) -> None:
        """Assign to the elements of a tensor."""
        self._begin(target, value)
        name, entries = _name_of(target.value), _entries(target)
        if name in self.values and self.values[name] is None:
            return  # a result that the caller omits
        computed = self._value(value)
        free = [entry.id for entry in entries if isinstance(entry, ast.Name) and entry.id in self._indices]
        if len(free) == len(entries) and name not in self.values:
            shape = tuple(self._ranges[axis] for axis in free)
            full = np.broadcast_to(computed, self._full_shape(free))
            order = [self._axes.index(axis) for axis in free]
            bound = [n for n in range(len(self._axes)) if n not in order]
            tensor = np.transpose(full, [*order, *bound]).reshape(shape)
            self.values[name] = tensor.reshape(self._results.get(name, shape))
        else:
            self._write(name, entries, computed, lambda tensor, index, new: tensor.__setitem__(index, new))

    def _full_shape(self, free: Sequence[str]) -> tuple[int, ...]:
        """Return the shape of an array over the given index variables, with size 1 for the others."""
        return tuple(self._ranges[axis] if axis in free else 1 for axis in self._axes)

    def _accumulate(self, target: ast.Subscript, operation: np.ufunc, value: ast.expr) -> None:
        """Add to, or subtract from, the elements of a tensor; an element may occur repeatedly."""
        self._begin(target, value)
        self._write(_name_of(target.value), _entries(target), self._value(value), operation.at)

    def _write(self, name: str, entries: Sequence[ast.expr], new: Any, write: Callable[..., Any]) -> None:
        """Write to the elements that the indices name, except those outside the tensor."""
        old = self.values.get(name)
        shape = np.shape(old) if old is not None else self._results[name]
        kind = np.result_type(np.asarray(new), np.float64 if old is None else np.asarray(old))
        tensor = np.zeros(shape, kind) if old is None else np.array(old, kind)
        view = tensor.reshape(self._viewed_shape(shape, entries))
        indices = [np.asarray(self._value(entry)).astype(np.int64) for entry in entries]
        *indices, new = np.broadcast_arrays(*indices, new, np.zeros([self._ranges[axis] for axis in self._axes]))[:-1]
        inside = np.ones(new.shape, bool)
        for index, size in zip(indices, view.shape, strict=True):
            inside &= (index >= 0) & (index < size)
        write(view, tuple(index[inside] for index in indices), new[inside])
        self.values[name] = view.reshape(shape)

    def _value(self, node: ast.expr, fill: Any = 0) -> Any:
        """Return the value of an expression; `fill` is the value of elements outside a tensor."""
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Constant(value=value):
                return value
            case ast.List(elts=elements):
                return [self._value(element) for element in elements]
            case ast.BinOp(left=left, op=operator, right=right):
                a, b = self._value(left, fill), self._value(right, fill)
                if isinstance(operator, ast.Pow):
                    a = np.asarray(a, np.result_type(np.asarray(a), np.float64))
                return BINARY[type(operator)](a, b)
            case ast.BoolOp(op=operator, values=values):
                result = self._value(values[0])
                for value in values[1:]:
                    if isinstance(operator, ast.And) and np.ndim(result) == 0 and not result:
                        return False
                    result = BINARY[type(operator)](result, self._value(value))
                return result
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return np.negative(self._value(operand, fill))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.logical_not(self._value(operand, fill))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return np.invert(self._value(operand, fill))
            case ast.Compare(left=left, ops=operators, comparators=others):
                if isinstance(others[0], ast.Constant) and others[0].value is None:
                    return self.values[_name_of(left)] is None
                values = [self._value(part) for part in (left, *others)]
                pairs = zip(operators, values, values[1:], strict=False)
                return reduce(np.logical_and, (_compare(sign, a, b) for sign, a, b in pairs))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = self._value(test)
                if np.ndim(chosen) == 0:
                    return self._value(body if chosen else orelse, fill)
                return np.where(chosen, self._value(body, fill), self._value(orelse, fill))
            case ast.Attribute(value=value, attr=mark):
                matrix = np.swapaxes(self._value(value), -1, -2)
                return np.conj(matrix) if mark == "H" else matrix
            case ast.Subscript():
                return self._element(node, fill)
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=scope), args=[term]):
                return self._reduce(name, scope, term)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, arguments, fill)
        raise AssertionError(ast.unparse(node))

    def _name(self, name: str) -> Any:
        """Return the value of a name: an index variable is the array of its indices along its axis."""
        if name in self._axes:
            return np.arange(self._ranges[name]).reshape([-1 if axis == name else 1 for axis in self._axes])
        value = self.values[name] if name in self.values else CONSTANTS[name]
        if value is None:
            if "weight" in name or "scale" in name or "bias" in name:
                return 0 if "bias" in name else 1
            raise NotApplicableError(f"{name} is NULL")
        if self._axes and isinstance(value, np.ndarray) and value.ndim:
            if value.size != 1:
                raise NotApplicableError(f"{name} has {value.ndim} axes and no index")
            return value.reshape(())
        return value

    def _element(self, node: ast.Subscript, fill: Any) -> Any:
        """Return elements of a tensor, or an entry of a list."""
        assert isinstance(node.value, ast.Name)
        tensor, entries = self.values[node.value.id], _entries(node)
        if tensor is None and node.value.id == "input_lengths":
            raise NotApplicableError("input_lengths is NULL")
        if tensor is None:
            return 0 if "bias" in node.value.id else 1
        if isinstance(tensor, (list, tuple)):
            index = self._value(entries[0])
            if index >= len(tensor):
                raise NotApplicableError("too few entries")
            return tensor[index]
        tensor = np.asarray(tensor)
        view = tensor.reshape(self._viewed_shape(tensor.shape, entries))
        indices = [np.asarray(self._value(entry)).astype(np.int64) for entry in entries]
        if not indices:
            return tensor.reshape(())
        inside = np.logical_and.reduce(
            np.broadcast_arrays(*(((i >= 0) & (i < size)) for i, size in zip(indices, view.shape, strict=True)))
        )
        if not view.size:
            return np.full(inside.shape, fill)
        clipped = tuple(np.clip(i, 0, size - 1) for i, size in zip(indices, view.shape, strict=True))
        return np.where(inside, view[clipped], fill)

    def _reduce(self, name: str, scope: ast.expr, term: ast.expr) -> Any:
        """Return a reduction along index variables or axes, which keep the size 1."""
        neutral, reduction = REDUCTIONS[name]
        entries = scope.elts if isinstance(scope, ast.Tuple) else [scope]
        names = set().union(*(self._used(entry) for entry in entries)) & set(self._axes)
        if not names:
            array = np.asarray(self._value(term))
            return reduction(array, axis=self._reduced_axes(scope, array.ndim), keepdims=True)
        inner = self._value(term, neutral)
        bound = _bound(entries) & names
        shape = tuple(self._ranges[axis] if axis in bound else 1 for axis in self._axes)
        conditions = [self._value(entry) for entry in entries if isinstance(entry, ast.Compare)]
        included = np.logical_and.reduce(np.broadcast_arrays(np.ones(shape, bool), *conditions))
        axes = tuple(n for n, axis in enumerate(self._axes) if axis in bound)
        inner, included = np.broadcast_arrays(inner, included)
        if name == "Mean":
            return np.where(included, inner, 0).sum(axes, keepdims=True) / included.sum(axes, keepdims=True)
        if name in ("Argmax", "Argmin"):
            (axis,) = axes
            return reduction(
                np.where(included, inner, -math.inf if name == "Argmax" else math.inf), axis, keepdims=True
            )
        return reduction(np.where(included, inner, neutral), axis=axes, keepdims=True)

    def _reduced_axes(self, scope: ast.expr, rank: int) -> Any:
        """Return the axes along which a reduction of whole arrays runs."""
        if isinstance(scope, ast.Slice):
            return None
        axes = self._value(scope)
        if isinstance(scope, ast.Name) and scope.id == "normalized_shape":
            return tuple(range(rank - len(axes), rank))
        if axes is None or (np.ndim(axes) == 1 and not len(axes)):
            return None
        if rank == 0:
            return None
        return int(axes) if np.ndim(axes) == 0 else tuple(axes)

    def _call(self, name: str, arguments: Sequence[ast.expr], fill: Any) -> Any:
        """Return the value of a function."""
        if name == "reduce":  # the reduction of element losses
            losses, mode = np.asarray(self._value(arguments[0])), self.values["reduction"]
            return losses.mean() if mode == "mean" else losses.sum() if mode == "sum" else losses
        if name in ("B", "Z"):
            return self._bilinear(name, arguments)
        if name in ("size", "rank", "length", "spatial"):  # of whole tensors, also among indices
            tensor, *axes = (self._whole(a.id) if isinstance(a, ast.Name) else self._value(a) for a in arguments)
            if tensor is None or (axes and np.ndim(tensor) <= axes[0]):
                raise NotApplicableError(f"{ast.unparse(arguments[0])} has too few axes")
            return FUNCTIONS[name](tensor, *axes)
        values = [self._value(argument, fill) for argument in arguments]
        if name in ("max", "min"):
            combine = np.maximum if name == "max" else np.minimum
            return combine(values[0], values[1])
        return FUNCTIONS[name](*values)

    def _whole(self, name: str) -> Any:
        """Return an argument, or zeros in the shape of a result that is not computed yet."""
        return np.zeros(self._results[name]) if name in self._results and name not in self.values else self.values[name]

    def _bilinear(self, name: str, arguments: Sequence[ast.expr]) -> Any:
        """Return bilinear samples of the plane that a subscript with two missing indices names."""
        plane, y, x = arguments
        assert isinstance(plane, ast.Subscript) and isinstance(plane.value, ast.Name)
        tensor, lead = np.asarray(self.values[plane.value.id]), [self._value(e) for e in _entries(plane)]
        y, x = np.broadcast_arrays(np.asarray(self._value(y), float), np.asarray(self._value(x), float))
        height, width = tensor.shape[-2:]
        if name == "B":
            outside = (y < -1) | (y > height) | (x < -1) | (x > width)
            y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
        else:
            outside = (y <= -1) | (y >= height) | (x <= -1) | (x >= width)
        row, column = np.floor(y).astype(int), np.floor(x).astype(int)
        total: Any = 0.0
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            cell_y, cell_x = row + i, column + j
            inside = (cell_y >= 0) & (cell_y < height) & (cell_x >= 0) & (cell_x < width)
            weight = (y - row if i else 1 - y + row) * (x - column if j else 1 - x + column)
            indices = [np.asarray(e).astype(int) for e in lead]
            value = tensor[(*indices, np.clip(cell_y, 0, height - 1), np.clip(cell_x, 0, width - 1))]
            total = total + np.where(inside & ~outside, weight * value, 0)
        return total


def _compare(sign: ast.cmpop, a: Any, b: Any) -> Any:
    """Return whether two values compare as the sign says; texts and None are compared as they are."""
    if isinstance(sign, (ast.Eq, ast.NotEq)) and (isinstance(a, (str, tuple)) or isinstance(b, (str, tuple))):
        return (a == b) == isinstance(sign, ast.Eq)
    return BINARY[type(sign)](a, b)


def _bound(entries: Sequence[ast.expr]) -> set[str]:
    """Return the index variables that a scope binds: the plain names; in a condition alone, its middle or first."""
    plain = {entry.id for entry in entries if isinstance(entry, ast.Name)}
    if plain:
        return plain
    bound = set()
    for entry in entries:
        assert isinstance(entry, ast.Compare)
        variable = entry.comparators[0] if len(entry.comparators) > 1 else entry.left
        bound |= {name.id for name in ast.walk(variable) if isinstance(name, ast.Name)}
    return bound


def _entries(node: ast.Subscript) -> list[ast.expr]:
    """Return the indices of a subscript."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


class _Substitute(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, expressions: Mapping[str, ast.expr]) -> None:
        self._expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self._expressions.get(node.id, node))

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        node.value = self.visit(node.value)
        if isinstance(node.targets[0], ast.Subscript):
            node.targets[0].slice = self.visit(node.targets[0].slice)
        return node


class _PerAxis(ast.NodeTransformer):
    """Replaces an index that has one number per spatial axis by as many indices.

    Args:
        names: the indices that have one number per axis.
        count: the number of axes.
        values: the attributes; those that are lists have one number per axis, too.
    """

    def __init__(self, names: set[str], count: int, values: Mapping[str, Any]) -> None:
        self._names = names
        self._count = count
        self._values = values

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        entries: list[ast.expr] = []
        for entry in _entries(node):
            entries += self._per_axis(entry)
        node.slice = entries[0] if len(entries) == 1 else ast.Tuple(entries, ast.Load())
        return node

    def _per_axis(self, entry: ast.expr) -> list[ast.expr]:
        """Return one expression per axis; the expression itself if it does not depend on the axis."""
        if not _State._used(entry) & self._names:
            return [self.visit(entry)]
        return [_OneAxis(self._names, axis, self._values).visit(deepcopy(entry)) for axis in range(self._count)]


class _OneAxis(ast.NodeTransformer):
    """Replaces the indices and lists in an expression by those of one axis."""

    def __init__(self, names: set[str], axis: int, values: Mapping[str, Any]) -> None:
        self._names = names
        self._axis = axis
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._names:
            return ast.Name(f"{node.id}_{self._axis}", ast.Load())
        value = self._values.get(node.id)
        if isinstance(value, (list, tuple)):
            if not value:
                raise NotApplicableError(f"{node.id} is empty")
            return ast.Constant(value[self._axis] if len(value) > 1 else value[0])
        return node
