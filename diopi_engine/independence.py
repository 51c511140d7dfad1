"""Prove from the operations of a network that the samples of a batch are independent.

The proof follows the axis of the batch through the operations, which JAX lowers to StableHLO one by one. A value is in
one of the following states:

- It is the same for every sample.
- One of its axes is the axis of the batch, and each element along this axis depends on one sample only. If other axes
  were merged with the batch, as in a reshape from (b, t, d) to (b·t, d), each sample has a block of elements.
- It mixes samples: certainly, as a sum over the batch does, or possibly, because there is no rule for an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diopi_engine.batch_rules import (
    RULES,
    UNIFORM,
    Dependence,
    elementwise,
    find_mixing,
    locate_batch_axes,
    possibly_mixed,
    shape_of,
)


def prove_independence(jaxpr: Any, weight_count: int) -> list[Dependence]:
    """Return the dependence of each output of a network.

    Args:
        jaxpr: the closed jaxpr of the network, traced with a symbolic batch size. The arguments are the weights and the
            inputs, whose first axis is the batch.
        weight_count: the number of weights.

    Returns:
        One dependence per output.
    """
    inputs = [Dependence(axis=0)] * (len(jaxpr.jaxpr.invars) - weight_count)
    return _follow(jaxpr, [UNIFORM] * weight_count + inputs)


def _follow(closed: Any, arguments: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependence of the results of a jaxpr."""
    jaxpr = getattr(closed, "jaxpr", closed)
    dependences: dict[Any, Dependence] = dict(zip(jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> Dependence:
        is_literal = hasattr(variable, "val")  # literals can't be keys
        return UNIFORM if is_literal else dependences.get(variable, UNIFORM)

    for equation in jaxpr.eqns:
        results = _apply(equation, [read(variable) for variable in equation.invars])
        dependences.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _apply(equation: Any, operands: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependence of the results of an operation."""
    name, count = equation.primitive.name, len(equation.outvars)
    inner = next((equation.params[key] for key in _PROGRAM_PARAMETERS if key in equation.params), None)
    if name in _CALLS and inner is not None:
        return _follow(inner, operands)
    if mixing := find_mixing(operands):
        return [mixing] * count
    if name in _CONTROL_FLOW:
        return _CONTROL_FLOW[name](equation, operands)
    rule = RULES.get(name)
    if rule is None:
        return [UNIFORM if _is_of_weights(equation, operands) else possibly_mixed(equation)] * count
    return [rule(equation, operands if rule is elementwise else locate_batch_axes(equation, operands))] * count


def _is_of_weights(equation: Any, operands: Sequence[Dependence]) -> bool:
    """Return whether an operation uses only weights: it has operands, all are uniform, and no size is symbolic."""
    shapes = [shape_of(variable) for variable in (*equation.invars, *equation.outvars)]
    has_batch = any(not isinstance(size, int) for shape in shapes for size in shape)
    return bool(operands) and not has_batch and all(operand == UNIFORM for operand in operands)


def _join(first: Dependence, second: Dependence) -> Dependence:
    """Return the dependence of a value that may be either of two values."""
    if mixing := find_mixing((first, second)):
        return mixing
    if UNIFORM in (first, second):
        return second if first == UNIFORM else first
    return first if first == second else Dependence(reason="the axis of the batch differs between two branches")


def _branch(equation: Any, operands: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependence of the results of a condition, for all branches.

    The results may mix samples if the condition depends on a sample.
    """
    condition, *arguments = operands
    if condition != UNIFORM:
        return [possibly_mixed(equation)] * len(equation.outvars)
    first, *alternatives = (_follow(branch, arguments) for branch in equation.params["branches"])
    for results in alternatives:
        first = [_join(*pair) for pair in zip(first, results, strict=True)]
    return first


def _repeat(step: Callable[[list[Dependence]], list[Dependence]], carried: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependence of the variables of a loop after any number of iterations."""
    values = list(carried)
    while (joined := [_join(*pair) for pair in zip(values, step(values), strict=True)]) != values:
        values = joined
    return values


def _loop(equation: Any, operands: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependence of the results of a loop.

    The results may mix samples if the condition of the loop depends on a sample.
    """
    params, conditions = equation.params, equation.params["cond_nconsts"]
    constants = conditions + params["body_nconsts"]
    bound = list(operands[conditions:constants])
    carried = _repeat(lambda values: _follow(params["body_jaxpr"], [*bound, *values]), operands[constants:])
    (condition,) = _follow(params["cond_jaxpr"], [*operands[:conditions], *carried])
    return carried if condition == UNIFORM else [find_mixing([condition]) or possibly_mixed(equation)] * len(carried)


def _scan(equation: Any, operands: Sequence[Dependence]) -> list[Dependence]:
    """Return the dependence of the results of a loop over the first axis of its last operands.

    The results may mix samples if this axis is the axis of the batch.
    """
    params = equation.params
    constants, carries = params["num_consts"], params["num_carry"]
    located = locate_batch_axes(equation, operands)
    sequences = [
        Dependence(reason="scan iterates over the batch", is_certain=True)
        if operand.axis == 0
        else UNIFORM
        if operand.axis is None
        else Dependence(axis=operand.axis - 1, block=operand.block)
        for operand in located[constants + carries :]
    ]

    def step(values: list[Dependence]) -> list[Dependence]:
        return _follow(params["jaxpr"], [*operands[:constants], *values, *sequences])

    carried = _repeat(lambda values: step(values)[:carries], operands[constants : constants + carries])
    stacked = step(carried)[carries:]
    return carried + [
        result if result.mixes or result.axis is None else Dependence(axis=result.axis + 1, block=result.block)
        for result in stacked
    ]


_PROGRAM_PARAMETERS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""The parameters that contain the jaxpr of a called function."""

_CALLS = frozenset(
    (
        *("pjit", "jit", "closed_call", "core_call", "remat", "remat2", "checkpoint"),
        *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    )
)
"""Operations that call a function."""

_CONTROL_FLOW: Mapping[str, Callable[[Any, Sequence[Dependence]], list[Dependence]]] = {
    "cond": _branch,
    "scan": _scan,
    "while": _loop,
}
"""Operations that call functions under conditions or repeatedly."""
