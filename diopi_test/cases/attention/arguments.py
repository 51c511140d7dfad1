"""Arguments that all attention functions share, and the registration of cases of a function and of its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.attention.calls import F32, F64, NON_DISCRIMINATING, NUMBERS, Heads, Shape
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import integer_values, uniform
from diopi_test.cases.template import CaseTemplate, Derive, TensorTemplate, register, tensor
from diopi_test.cases.tensors import literal

SMALL_INTEGERS = integer_values(-2, 2)
"""Integers whose sums of products are exact."""


def _identity(rows: int) -> Callable[[Any], NDArray[Any]]:
    """Return a value of `TensorSpec.compute` that returns an identity matrix of the shape (rows, 1, rows)."""
    return lambda values: np.eye(rows)[:, np.newaxis]


def queries_keys_values(template: CaseTemplate[Heads], q: Shape, k: Shape) -> dict[str, TensorTemplate]:
    """Return queries `q`, keys `k`, values `v` and the gradient `g` of the result.

    Args:
        template: The template.
        q: The shape of queries and of the gradient.
        k: The shape of keys and of values.

    Returns:
        The tensors by name. With dropout, `q` and `k` are small integers, and `v` and `g` are identity matrices.
    """
    layout = template.layout
    if not 0 < template.argument("p_dropout", 0) < 1:
        queries, keys = tensor(*q, layout=layout), tensor(*k, layout=layout)
        return {"q": queries, "k": keys, "v": keys, "g": queries}
    identity = _identity(template.sizes.size)
    tensors = {name: tensor(*shape, domain=SMALL_INTEGERS, layout=layout) for name, shape in (("q", q), ("k", k))}
    return {**tensors, **{name: tensor(*x, compute=identity, layout=layout) for name, x in (("v", k), ("g", q))}}


def numeric_arguments(
    template: CaseTemplate[Heads], names: Mapping[str, str] | None = None, omitted: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the numeric arguments of a call.

    Args:
        template: The template. Its arguments replace the defaults in `NUMBERS`.
        names: For arguments with other names in a function: by the usual name, the function's name.
        omitted: The usual names of arguments that the function does not have.

    Returns:
        The arguments by the function's names.
    """
    values = {**NUMBERS, **template.arguments}
    return {(names or {}).get(name, name): value for name, value in values.items() if name not in omitted}


def log_sum_exp_dtype(dtype: Dtype) -> Dtype:
    """Return the element type of the logarithms of the sums of exponentials: float64 for float64, else float32."""
    return F64 if dtype is F64 else F32


WITHOUT_DROPOUT = {"p_dropout": 0.0, "dropout_p": 0.0, "gen": None, "return_debug_mask": False}
"""The arguments of all forms that switch dropout off."""


def saved_results(
    forward: str, shapes: Mapping[str, Shape], dtype: Dtype, template: CaseTemplate[Heads]
) -> dict[str, Any]:
    """Return the results of the forward function that a gradient function takes.

    The reference computes them with a dropout probability of 1 if the template has this probability. Otherwise it
    computes them without dropout, because dropout is random.

    Args:
        forward: The name of the forward function.
        shapes: The shapes of the result and of the logarithms of the sums, in this order, by name.
        dtype: The element type under test.
        template: The template of the gradient's cases.

    Returns:
        The tensors by name.
    """
    result, lse = shapes
    everything = {"p_dropout": 1.0, "dropout_p": 1.0} if template.argument("p_dropout") == 1 else {}
    saved = ResultOf(forward, result, extra_arguments={**WITHOUT_DROPOUT, **everything}, unspecified=inf)
    return {
        result: tensor(*shapes[result], compute=saved, layout=template.layout),
        lse: tensor(*shapes[lse], dtype=log_sum_exp_dtype(dtype), compute=replace(saved, result=lse)),
    }


def slopes(sizes: Heads, sequences: int) -> Any:
    """Return the slopes of ALiBi (linear biases of scores), one per head or one per sequence and head.

    Return None if `sizes.slopes`, the number of axes of the tensor, is 0.
    """
    shape: Shape = ((), (sizes.heads,), (sequences, sizes.heads))[sizes.slopes]
    return tensor(*shape, domain=uniform(0.1, 1), dtype=F32) if sizes.slopes else None


def shapes_of(sizes: Heads) -> tuple[Shape, Shape]:
    """Return the shapes (batch, rows, heads, head size) of queries and of keys."""
    return (sizes.batch, sizes.queries, sizes.heads, sizes.size), (sizes.batch, sizes.keys, sizes.key_heads, sizes.size)


def packed_shapes_of(sizes: Heads) -> tuple[Shape, Shape]:
    """Return the shapes (rows of all sequences, heads, head size) of packed queries and of packed keys."""
    return (sum(sizes.queries), sizes.heads, sizes.size), (sum(sizes.keys), sizes.key_heads, sizes.size)


def start_positions(lengths: Sequence[int], dtype: Dtype) -> Any:
    """Return the positions at which the packed sequences begin, and the end of the last one."""
    return literal(np.array([0, *accumulate(lengths)]), dtype)


def length_bound(lengths: Sequence[int]) -> int:
    """Return the largest length plus 1, which a call may pass as a bound of the lengths."""
    return max(lengths, default=0) + 1


def register_both(
    name: str,
    derive: Derive[Any],
    shared: Sequence[CaseTemplate[Heads]],
    forward: Sequence[CaseTemplate[Heads]],
    non_discriminating: Mapping[str, str] = NON_DISCRIMINATING,
) -> None:
    """Register the templates `shared` for a form and its gradient, and the templates `forward` for the form only."""
    register(name, templates=(*shared, *forward), derive=derive, non_discriminating=non_discriminating)
    register(f"{name}Backward", templates=shared, derive=derive, non_discriminating=non_discriminating)
