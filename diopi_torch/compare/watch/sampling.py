"""Reduce a large call to some of its elements, rows or columns, so that judging it takes little time.

This is possible if the operator computes the elements, or the entries along an axis, independently of each other. The
reduced call has smaller arguments, and its results are a part of the results of the complete call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import torch

from diopi_torch.compare.contents import iterate_tensors, map_tensors
from diopi_torch.fallback import operator_name

MAX_ELEMENTS = 1 << 14
"""Calls with a larger tensor are sampled if their operator allows it. A sample has about this many elements."""

MAX_UNSAMPLED_ELEMENTS = 1 << 20
"""The largest number of elements of a tensor in a call that can't be sampled; larger calls are not judged."""

SEED = 1
"""The seed that selects the elements or entries of a sample."""


class CallSample(Protocol):
    """The part of a call that is judged; selects the corresponding part of each tensor."""

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the call that computes only the sampled part."""

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the sampled part of a result or of an argument that the call overwrites."""


@final
@dataclass(frozen=True)
class WholeCall:
    """The complete call."""

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged."""
        return dict(named)

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor unchanged."""
        return tensor


@final
@dataclass(frozen=True)
class ElementSample:
    """Some elements of an element-wise call, whose tensors broadcast to one shape.

    Attributes:
        shape: the shape of the result.
        places: for each axis of the result, the indices of the selected elements along this axis.
    """

    shape: tuple[int, ...]
    places: tuple[torch.Tensor, ...]

    @classmethod
    def of_shape(cls, shape: Sequence[int]) -> ElementSample:
        """Return a sample of MAX_ELEMENTS elements of a result with this shape, which must have at least as many."""
        flat = np.sort(np.random.default_rng(SEED).choice(math.prod(shape), MAX_ELEMENTS, replace=False))
        return cls(tuple(shape), tuple(map(torch.from_numpy, np.unravel_index(flat, tuple(shape)))))

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the selected elements of each tensor; tensors without axes are unchanged."""
        return {name: map_tensors(lambda _, tensor: self._select(tensor), value, name) for name, value in named.items()}

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the selected elements of a result."""
        return self._select(tensor)

    def _select(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the selected elements of a tensor that broadcasts to the shape; a 0-d tensor is returned unchanged."""
        if tensor.dim() == 0:
            return tensor
        return tensor.detach().expand(self.shape)[tuple(place.to(tensor.device) for place in self.places)]


@final
@dataclass(frozen=True, kw_only=True)
class AxisRule:
    """An axis of the results along which an operator computes each entry from the same entry of some arguments.

    Example: row i of a matrix product depends only on row i of the first factor.

    Attributes:
        axes: the number of the corresponding axis in each of these arguments, by the name of the argument.
        result: the number of the axis in the results.
    """

    axes: Mapping[str, int]
    result: int = 0


@final
@dataclass(frozen=True)
class EntrySample:
    """Some entries along one or more axes of the results, such as some rows.

    Attributes:
        entries: each rule with the indices of the selected entries along its axis.
    """

    entries: Sequence[tuple[AxisRule, torch.Tensor]]

    @classmethod
    def of_rules(cls, rules: Sequence[AxisRule], named: Mapping[str, Any]) -> EntrySample:
        """Return a random sample of entries.

        Along each axis, as many entries are selected as reduce the arguments of the rule to at most `MAX_ELEMENTS`
        elements, but at least one.

        Args:
            rules: the axes along which entries are selected.
            named: the arguments of the call by name.

        Returns:
            The sample.
        """
        entries = []
        for rule in rules:
            tensors = [(named[name], axis) for name, axis in rule.axes.items()]
            length = tensors[0][0].shape[tensors[0][1]]
            largest = max(tensor.numel() // length for tensor, _ in tensors)
            count = min(length, max(1, MAX_ELEMENTS // max(largest, 1)))
            chosen = np.sort(np.random.default_rng(SEED).choice(length, count, replace=False))
            entries.append((rule, torch.from_numpy(chosen)))
        return cls(entries)

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments; those that a rule names are reduced to the selected entries."""
        reduced = dict(named)
        for rule, chosen in self.entries:
            for name, axis in rule.axes.items():
                reduced[name] = _select_entries(reduced[name], axis, chosen)
        return reduced

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the selected entries of a result."""
        for rule, chosen in self.entries:
            tensor = _select_entries(tensor, rule.result, chosen)
        return tensor


def _select_entries(tensor: torch.Tensor, axis: int, chosen: torch.Tensor) -> torch.Tensor:
    """Return the entries of a tensor with the indices `chosen` along an axis."""
    return tensor.detach().index_select(axis, chosen.to(tensor.device))


def _has_inner_axis(named: Mapping[str, Any]) -> bool:
    """Return whether the call works along an axis `dim` other than the first one, so that rows are independent."""
    first = next(value for value in named.values() if isinstance(value, torch.Tensor))
    return first.dim() > 1 and named["dim"] % first.dim() != 0


def _reduces_inner_axes(named: Mapping[str, Any]) -> bool:
    """Return whether a reduction does not include the first axis, so that rows are independent."""
    rank, axes = named["self"].dim(), named["dim"]
    return bool(axes) and 0 not in {axis % rank for axis in axes}


def _normalizes_inner_axes(named: Mapping[str, Any]) -> bool:
    """Return whether a layer normalization does not include the first axis, so that rows are independent."""
    return len(named["normalized_shape"]) < named["input"].dim()


def _is_applicable(named: Mapping[str, Any]) -> bool:
    """Return True, because the rules of the operator hold for every call."""
    return True


def _has_vector_bias(named: Mapping[str, Any]) -> bool:
    """Return whether the bias of a matrix product is a vector with one number per column of the product."""
    return bool(named["self"].dim() == 1 and len(named["self"]) == named["mat2"].shape[1])


def _has_one_gradient(named: Mapping[str, Any]) -> bool:
    """Return whether the gradient of a loss is a single number for all rows of a matrix."""
    return named["grad_output"].dim() == 0 and named["self"].dim() == 2


def _rows(*names: str) -> tuple[AxisRule, ...]:
    """Return the rule of an operator that computes row i of its results from row i of the arguments `names`."""
    return (AxisRule(axes=dict.fromkeys(names, 0)),)


_ATTENTION_OPERATOR = "_scaled_dot_product_flash_attention_for_cpu"
"""The operator of attention on the CPU, in which the entries along the batch axis are independent."""

INDEPENDENT_ENTRIES: Mapping[str, tuple[Sequence[AxisRule], Callable[[Mapping[str, Any]], bool]]] = {
    "_log_softmax": (_rows("self"), _has_inner_axis),
    "_log_softmax_backward_data": (_rows("grad_output", "output"), _has_inner_axis),
    _ATTENTION_OPERATOR: (_rows("query", "key", "value"), _is_applicable),
    f"{_ATTENTION_OPERATOR}_backward": (_rows("grad_out", "query", "key", "value", "out", "logsumexp"), _is_applicable),
    "_softmax": (_rows("self"), _has_inner_axis),
    "_softmax_backward_data": (_rows("grad_output", "output"), _has_inner_axis),
    "addmm": ((AxisRule(axes={"mat1": 0}), AxisRule(axes={"mat2": 1, "self": 0}, result=1)), _has_vector_bias),
    "bmm": (_rows("self", "mat2"), _is_applicable),
    **dict.fromkeys(("amax", "amin", "mean.dim", "sum.dim_IntList"), (_rows("self"), _reduces_inner_axes)),
    "embedding": (_rows("indices"), _is_applicable),
    "embedding_dense_backward": ((AxisRule(axes={"grad_output": -1}, result=-1),), _is_applicable),
    "mm": ((AxisRule(axes={"self": 0}), AxisRule(axes={"mat2": 1}, result=1)), _is_applicable),
    "native_layer_norm": (_rows("input"), _normalizes_inner_axes),
    "nll_loss_backward": (_rows("self", "target"), _has_one_gradient),
}
"""The operators that compute entries independently of each other: the rules, and a condition.

The rules hold for a call only if the condition is true for its arguments.
"""


def choose_sample(operator: torch._ops.OpOverload, named: Mapping[str, Any]) -> CallSample | None:
    """Return the part of a call to judge; None if the call is too large and its operator can't be sampled.

    Args:
        operator: the operator.
        named: its arguments by name, including default values.

    Returns:
        The complete call if it is small enough; otherwise a sample of elements or entries.
    """
    tensors = dict(iterate_tensors(named))
    largest = max((tensor.numel() for tensor in tensors.values()), default=0)
    if largest <= MAX_ELEMENTS:
        return WholeCall()
    if torch.Tag.pointwise in operator.tags and not any(isinstance(value, list) for value in named.values()):
        shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors.values()))
        return ElementSample.of_shape(shape)
    rules, holds = INDEPENDENT_ENTRIES.get(operator_name(operator), ((), _is_applicable))
    if rules and holds(named):
        sampled = {name for rule in rules for name in rule.axes}
        whole_sizes = [tensor.numel() for name, tensor in tensors.items() if name not in sampled]
        if max(whole_sizes, default=0) <= MAX_UNSAMPLED_ELEMENTS and all(named[name].numel() for name in sampled):
            return EntrySample.of_rules(rules, named)
    return WholeCall() if largest <= MAX_UNSAMPLED_ELEMENTS else None
