"""Arguments that all attention functions share, and the registration of cases of a function and of its gradient.

A template describes cases that differ only in their element type. The `sizes` of the templates are `Heads` objects. A
case is non-discriminating if an implementation with a coarse error passes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.attention.calls import DEFAULT_NUMBERS, F32, F64, NON_DISCRIMINATING, Heads, Shape
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import integer_values, uniform
from diopi_test.cases.template import CaseTemplate, Derive, TensorTemplate, register, tensor
from diopi_test.cases.tensors import literal

SMALL_INTEGERS = integer_values(-2, 2)
"""A domain of integers so small that every element type represents the sums of their products exactly."""


def _identity(rows: int) -> Callable[[Any], NDArray[Any]]:
    """Return a function for `TensorSpec.compute` that returns an identity matrix of the shape (rows, 1, rows).

    The matrix is broadcast to all sequences and heads of a tensor of the shape (batch, rows, heads, head size).
    """
    return lambda values: np.eye(rows)[:, np.newaxis]


def queries_keys_values(template: CaseTemplate[Heads], q: Shape, k: Shape) -> dict[str, TensorTemplate]:
    """Return the tensor templates of queries `q`, keys `k`, values `v` and the gradient `g` of the result.

    Args:
        template: The template.
        q: The shape of `q` and of `g`.
        k: The shape of `k` and of `v`.

    Returns:
        The tensor templates by name. With a dropout probability between 0 and 1, `q` and `k` are small integers, and
        `v` and `g` are identity matrices. The result then shows which weights were dropped.
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
        template: The template. Its arguments replace the defaults in `DEFAULT_NUMBERS`, whose keys are the usual names.
        names: The names in the function, by the usual name, for arguments that have another name there.
        omitted: The usual names of arguments that the function does not have.

    Returns:
        The arguments by their names in the function.
    """
    values = {**DEFAULT_NUMBERS, **template.arguments}
    return {(names or {}).get(name, name): value for name, value in values.items() if name not in omitted}


def log_sum_exp_dtype(dtype: Dtype) -> Dtype:
    """Return the element type of the saved logarithms of the sums of exponentials of scores.

    It is float64 if the element type under test, `dtype`, is float64, and otherwise float32.
    """
    return F64 if dtype is F64 else F32


WITHOUT_DROPOUT = {"p_dropout": 0.0, "dropout_p": 0.0, "gen": None, "return_debug_mask": False}
"""The arguments with which any attention function computes its result without dropout."""


def saved_results(
    forward: str, shapes: Mapping[str, Shape], dtype: Dtype, template: CaseTemplate[Heads]
) -> dict[str, Any]:
    """Return the results of the forward function that the gradient function takes as arguments.

    The reference computes these results without dropout, because dropout is random. Only if the template's dropout
    probability is 1 does the reference drop all weights.

    Args:
        forward: The name of the forward function.
        shapes: By name, first the shape of the attention result, then that of the logarithms of the sums.
        dtype: The element type under test.
        template: The template of the gradient's cases.

    Returns:
        The tensor templates by name.
    """
    result, lse = shapes
    drop_all = {"p_dropout": 1.0, "dropout_p": 1.0} if template.argument("p_dropout") == 1 else {}
    saved = ResultOf(forward, result, extra_arguments={**WITHOUT_DROPOUT, **drop_all}, unspecified=inf)
    return {
        result: tensor(*shapes[result], compute=saved, layout=template.layout),
        lse: tensor(*shapes[lse], dtype=log_sum_exp_dtype(dtype), compute=replace(saved, result=lse)),
    }


def slopes(sizes: Heads, sequences: int) -> Any:
    """Return the tensor template of the slopes of ALiBi, which biases scores by the distance of query and key.

    Args:
        sizes: The sizes of the call. `sizes.slopes` is the number of axes of the tensor.
        sequences: The number of sequences.

    Returns:
        A float32 tensor of the shape (heads,) or (sequences, heads); None if `sizes.slopes` is 0.
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
    """Return a tensor of the positions at which packed sequences begin, followed by the end of the last sequence.

    Args:
        lengths: The lengths of the sequences.
        dtype: The element type of the tensor.

    Returns:
        The tensor template, with len(lengths) + 1 elements.
    """
    return literal(np.array([0, *accumulate(lengths)]), dtype)


def length_bound(lengths: Sequence[int]) -> int:
    """Return the largest length plus 1.

    Functions accept any upper bound of the lengths. A bound that no sequence reaches shows whether a function confuses
    the bound with a length.
    """
    return max(lengths, default=0) + 1


def register_with_gradient(
    name: str,
    derive: Derive[Any],
    shared: Sequence[CaseTemplate[Heads]],
    forward: Sequence[CaseTemplate[Heads]],
    non_discriminating: Mapping[str, str] = NON_DISCRIMINATING,
) -> None:
    """Register the templates of an attention function and of its gradient.

    Args:
        name: The name of the function. The gradient has the same name with the suffix `Backward`.
        derive: Returns the arguments of both functions for a template and the element type under test.
        shared: The templates of both functions.
        forward: Further templates of the function `name` only.
        non_discriminating: The reasons why cases are non-discriminating, by the start of their labels.
    """
    register(name, templates=(*shared, *forward), derive=derive, non_discriminating=non_discriminating)
    register(f"{name}Backward", templates=shared, derive=derive, non_discriminating=non_discriminating)
