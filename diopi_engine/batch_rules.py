"""Rules for operations: derive how the results depend on the samples of a batch from how the operands depend on them.

Each rule applies to an operation (an equation of a jaxpr) whose operands do not mix samples. If an operation has no
rule, or its rule does not cover the axes, the result counts as possibly mixing samples.

A rule receives the equation and the dependence of each operand, and returns the dependence of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final


@final
@dataclass(frozen=True, kw_only=True)
class Dependence:
    """The dependence of a value on the samples of a batch: uniform, one block of elements per sample, or mixed.

    Attributes:
        axis: the axis of the batch; None if the value is the same for every sample, or mixes samples.
        block: the number of consecutive elements along the axis that belong to one sample.
        reason: why the value may mix samples: an operation that does, or one without a rule; empty if it does not.
        is_certain: whether the operation certainly mixes samples.
    """

    axis: int | None = None
    block: int = 1
    reason: str = ""
    is_certain: bool = False

    @property
    def mixes(self) -> bool:
        """Return whether the value may mix samples."""
        return bool(self.reason)

    @property
    def is_independent(self) -> bool:
        """Return whether the first axis has one entry per sample, each of which depends only on this sample."""
        return not self.mixes and self.axis in (None, 0) and self.block == 1


UNIFORM = Dependence()
"""The dependence of a value that is the same for every sample."""

Rule = Callable[[Any, Sequence[Dependence]], Dependence]
"""A function of an operation and its operands' dependences that returns the dependence of the results."""


def certainly_mixed(equation: Any, action: str) -> Dependence:
    """Return the dependence of a result that certainly mixes samples; `action` is the verb in the reason."""
    return Dependence(reason=f"{equation.primitive.name} {action} the batch", is_certain=True)


def possibly_mixed(equation: Any) -> Dependence:
    """Return the dependence of a result that no rule covers."""
    return Dependence(reason=f"there is no rule for {equation.primitive.name} with these axes")


def shape_of(variable: Any) -> tuple[Any, ...]:
    """Return the sizes of a variable. The batch size is symbolic, all other sizes are integers."""
    return tuple(variable.aval.shape)


def locate_batch_axes(equation: Any, operands: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependences of the operands, each with the axis of the batch if its shape contains the batch size."""
    return [_locate(variable, operand) for variable, operand in zip(equation.invars, operands, strict=True)]


def _locate(variable: Any, operand: Dependence) -> Dependence:
    """Return the dependence of an operand.

    A uniform operand that was broadcast to the batch gets the axis of the batch.
    """
    symbolic = [axis for axis, size in enumerate(shape_of(variable)) if not isinstance(size, int)]
    return Dependence(axis=symbolic[0]) if operand == UNIFORM and len(symbolic) == 1 else operand


def find_mixing(operands: Sequence[Dependence]) -> Dependence | None:
    """Return an operand that mixes samples, preferably one that certainly does; None if there is none."""
    mixing = [operand for operand in operands if operand.mixes]
    return max(mixing, key=lambda operand: operand.is_certain, default=None)


def elementwise(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence that all operands which are not uniform have in common."""
    dependent = {operand for operand in operands if operand.axis is not None}
    return UNIFORM if not dependent else dependent.pop() if len(dependent) == 1 else possibly_mixed(equation)


def _broadcast(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the axis of the batch after a broadcast."""
    operand, axes = operands[0], equation.params["broadcast_dimensions"]
    if operand.axis is None:
        return UNIFORM
    symbolic = [axis for axis, size in enumerate(shape_of(equation.outvars[0])) if not isinstance(size, int)]
    return Dependence(axis=axes[operand.axis], block=operand.block) if len(symbolic) == 1 else possibly_mixed(equation)


def _reshape(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the axis of the batch after a reshape. The elements behind the axis determine the block."""
    operand, input_shape, output_shape = operands[0], shape_of(equation.invars[0]), shape_of(equation.outvars[0])
    symbolic = [axis for axis, size in enumerate(output_shape) if not isinstance(size, int)]
    if operand.axis is None:
        return UNIFORM if not symbolic else possibly_mixed(equation)
    if len(symbolic) != 1 or prod(input_shape[: operand.axis]) != prod(output_shape[: symbolic[0]]):
        return possibly_mixed(equation)
    elements, elements_after = (
        operand.block * prod(input_shape[operand.axis + 1 :]),
        prod(output_shape[symbolic[0] + 1 :]),
    )
    return (
        Dependence(axis=symbolic[0], block=elements // elements_after)
        if elements_after and elements % elements_after == 0
        else possibly_mixed(equation)
    )


def _transpose(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the axis of the batch after a permutation of the axes."""
    operand = operands[0]
    if operand.axis is None:
        return UNIFORM
    return Dependence(axis=equation.params["permutation"].index(operand.axis), block=operand.block)


def _remove_axes(equation: Any, operand: Dependence, removed: Sequence[int], action: str) -> Dependence:
    """Return the dependence of `operand` after an operation has removed the axes `removed`.

    If the axis of the batch is among them, the result mixes samples. `action` is the verb in the reason.
    """
    if operand.axis is None:
        return UNIFORM
    if operand.axis in removed:
        return certainly_mixed(equation, action)
    return Dependence(axis=operand.axis - sum(axis < operand.axis for axis in removed), block=operand.block)


def _reduce(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of a reduction. It mixes samples if it reduces the axis of the batch."""
    axes = equation.params["axes" if "axes" in equation.params else "dimensions"]
    return _remove_axes(equation, elementwise(equation, operands), axes, "reduces")


def _squeeze(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence after axes of size 1 were removed."""
    return _remove_axes(equation, operands[0], equation.params["dimensions"], "removes")


def _axis_rule(parameter: str, action: str, *, is_certain: bool = True) -> Rule:
    """Return the rule of an operation that mixes or reorders the elements along some axes.

    Args:
        parameter: The parameter of the operation that contains the axes.
        action: The verb in the reason, such as `sorts`.
        is_certain: Whether an operation along the axis of the batch certainly mixes samples; if not, it possibly does.
    """

    def rule(equation: Any, operands: Sequence[Dependence]) -> Dependence:
        operand, axes = elementwise(equation, operands), equation.params[parameter]
        if operand.axis is None or operand.axis not in (axes if isinstance(axes, tuple | list) else (axes,)):
            return operand
        return certainly_mixed(equation, action) if is_certain else possibly_mixed(equation)

    return rule


def _top_k(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of the largest elements along an axis."""
    axis = equation.params.get("axis", -1) % len(shape_of(equation.invars[0]))
    return certainly_mixed(equation, "orders") if operands[0].axis == axis else operands[0]


def _slice(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of a slice. A part of the batch counts as mixing samples."""
    axis, input_shape, output_shape = operands[0].axis, shape_of(equation.invars[0]), shape_of(equation.outvars[0])
    return (
        operands[0]
        if axis is None or input_shape[axis] == output_shape[axis]
        else certainly_mixed(equation, "selects a part of")
    )


def _pad(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of a padded value."""
    operand = operands[0]
    is_padded = operand.axis is not None and any(equation.params["padding_config"][operand.axis])
    return possibly_mixed(equation) if is_padded else operand


def _iota(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of positions along an axis. Positions in the batch may lead to mixed samples or not."""
    is_position = not isinstance(equation.params["shape"][equation.params["dimension"]], int)
    return possibly_mixed(equation) if is_position else UNIFORM


def _dot_general(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of a product of matrices. It mixes samples if it sums over the batch."""
    contracted, batched = equation.params["dimension_numbers"]
    ranks = [len(shape_of(variable)) for variable in equation.invars]
    if any(operands[side].axis in contracted[side] for side in range(2)):
        return certainly_mixed(equation, "sums over")
    paired, free = len(batched[0]), ranks[0] - len(batched[0]) - len(contracted[0])
    results = set()
    for side, operand in enumerate(operands):
        if operand.axis is not None:
            remaining = [axis for axis in range(ranks[side]) if axis not in (*contracted[side], *batched[side])]
            order = [*batched[side], *([None] * free if side else []), *remaining]
            results.add(Dependence(axis=order.index(operand.axis), block=operand.block))
    if len(results) == 2 or (len(results) == 1 and None not in (operands[0].axis, operands[1].axis) and not paired):
        return possibly_mixed(equation)
    return results.pop() if results else UNIFORM


def _convolution(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of a convolution, whose batch must be the batch axis of the data."""
    data, filters = operands
    numbers = equation.params["dimension_numbers"]
    if data.axis is None and filters.axis is None:
        return UNIFORM
    is_batch = data.axis == numbers.lhs_spec[0] and filters.axis is None and equation.params["batch_group_count"] == 1
    return Dependence(axis=numbers.out_spec[0], block=data.block) if is_batch else possibly_mixed(equation)


def _reduce_window(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of reduced windows, which must not extend along the batch."""
    operand, params = elementwise(equation, operands), equation.params
    if operand.axis is None:
        return operand
    neutral = {"window_dimensions": 1, "window_strides": 1, "base_dilation": 1, "padding": (0, 0)}
    values = {name: params[name][operand.axis] for name in neutral if name in params}
    is_one_sample = all(value == neutral[name] for name, value in values.items())
    return operand if is_one_sample else possibly_mixed(equation)


def _gather(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of gathered slices."""
    (operand, indices), numbers = operands, equation.params["dimension_numbers"]
    rank = len(shape_of(equation.outvars[0]))
    index_axes = [axis for axis in range(rank) if axis not in numbers.offset_dims]
    if operand.axis is None:
        return UNIFORM if indices.axis is None else _indexed(equation, indices, index_axes)
    if indices.axis is not None:
        pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        is_paired = (operand.axis, indices.axis) in pairs and operand.block == indices.block
        return _indexed(equation, indices, index_axes) if is_paired else possibly_mixed(equation)
    if equation.params["slice_sizes"][operand.axis] != shape_of(equation.invars[0])[operand.axis]:
        return certainly_mixed(equation, "selects a part of")
    removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    if operand.axis in removed or operand.axis in numbers.start_index_map:
        return possibly_mixed(equation)
    remaining = [axis for axis in range(len(shape_of(equation.invars[0]))) if axis not in removed]
    return Dependence(axis=numbers.offset_dims[remaining.index(operand.axis)], block=operand.block)


def _indexed(equation: Any, indices: Dependence, index_axes: Sequence[int]) -> Dependence:
    """Return the dependence of a gather from a uniform operand, with indices that depend on samples.

    Args:
        equation: The operation.
        indices: The dependence of the indices.
        index_axes: The axis of the result for each axis of the indices, except the last one, which has coordinates.
    """
    is_vector = indices.axis == len(shape_of(equation.invars[1])) - 1
    return (
        possibly_mixed(equation)
        if is_vector or indices.axis is None
        else Dependence(axis=index_axes[indices.axis], block=indices.block)
    )


def _matrix(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of an operation on the last two axes, such as a triangular solve."""
    operand, ranks = elementwise(equation, operands), [len(shape_of(variable)) for variable in equation.invars]
    is_outside = operand.axis is None or operand.axis < min(ranks) - 2
    return operand if is_outside else possibly_mixed(equation)


def _fft(equation: Any, operands: Sequence[Dependence]) -> Dependence:
    """Return the dependence of a Fourier transform. It mixes samples if it transforms along the batch."""
    operand, rank = operands[0], len(shape_of(equation.invars[0]))
    is_outside = operand.axis is None or operand.axis < rank - len(equation.params["fft_lengths"])
    return operand if is_outside else certainly_mixed(equation, "transforms")


_ELEMENTWISE = """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex conj
    convert_element_type copy cos cosh digamma div eq eq_to erf erf_inv erfc exp exp2 expm1 floor ge gt igamma
    igammac imag integer_pow is_finite le le_to lgamma log log1p logistic lt lt_to max min mul ne neg nextafter not
    optimization_barrier or population_count pow real reduce_precision regularized_incomplete_beta rem round rsqrt
    select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh
    xor
"""
"""The names of all operations of JAX whose results depend only on the operands' elements at the same position."""

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE.split(), elementwise),
    **dict.fromkeys(
        ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "reduce_xor"], _reduce
    ),
    **dict.fromkeys(["argmax", "argmin", "reduce"], _reduce),
    **dict.fromkeys(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"], _axis_rule("axis", "accumulates over")),
    **dict.fromkeys(["reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"], _reduce_window),
    **dict.fromkeys(["cholesky", "triangular_solve"], _matrix),
    "broadcast_in_dim": _broadcast,
    "concatenate": _axis_rule("dimension", "joins", is_certain=False),
    "conv_general_dilated": _convolution,
    "dot_general": _dot_general,
    "dynamic_slice": _slice,
    "expand_dims": _reshape,
    "fft": _fft,
    "gather": _gather,
    "iota": _iota,
    "pad": _pad,
    "reshape": _reshape,
    "rev": _axis_rule("dimensions", "reverses"),
    "slice": _slice,
    "sort": _axis_rule("dimension", "orders"),
    "split": _axis_rule("axis", "divides"),
    "squeeze": _squeeze,
    "top_k": _top_k,
    "transpose": _transpose,
}
"""The rules by the name of the operation in JAX."""
