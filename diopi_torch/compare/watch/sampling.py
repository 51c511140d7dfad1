"""Reduce a call to a part of its elements or rows, if the operator computes these independently of each other."""

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
"""The largest number of elements that a tensor of a call may have for the whole call to be judged, if it can be
sampled."""

MAX_UNSAMPLED_ELEMENTS = 1 << 20
"""The largest number of elements that a tensor may have if the operator can't be sampled, or in a sample of rows."""

SEED = 1
"""The seed that selects the elements or rows of a sample."""


class CallSample(Protocol):
    """Selects a part of each tensor of a call."""

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the call that computes only the sampled part."""

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the sampled part of a result or of a written argument."""


@final
@dataclass(frozen=True)
class WholeCall:
    """Selects the whole call."""

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged."""
        return dict(named)

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor unchanged."""
        return tensor


@final
@dataclass(frozen=True)
class ElementSample:
    """Selects elements of an element-wise call, whose tensors broadcast to one shape.

    Attributes:
        shape: the shape of the result.
        places: the indices of the selected elements along each axis.
    """

    shape: tuple[int, ...]
    places: tuple[torch.Tensor, ...]

    @classmethod
    def of_shape(cls, shape: Sequence[int]) -> ElementSample:
        """Return a sample of the elements of a result with this shape."""
        flat = np.sort(np.random.default_rng(SEED).choice(math.prod(shape), MAX_ELEMENTS, replace=False))
        return cls(tuple(shape), tuple(map(torch.from_numpy, np.unravel_index(flat, tuple(shape)))))

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the selected elements of each tensor; tensors without axes are unchanged."""
        return {name: map_tensors(lambda _, tensor: self._select(tensor), value, name) for name, value in named.items()}

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the selected elements of a result."""
        return self._select(tensor)

    def _select(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0:
            return tensor
        return tensor.detach().expand(self.shape)[tuple(place.to(tensor.device) for place in self.places)]


@final
@dataclass(frozen=True)
class RowSample:
    """Selects rows, which are entries along the first axis.

    Attributes:
        names: the arguments that have these rows.
        rows: the indices of the selected rows.
    """

    names: frozenset[str]
    rows: torch.Tensor

    @classmethod
    def of_rows(cls, names: frozenset[str], rows: int, elements_per_row: int) -> RowSample:
        """Return a sample of at least one of the rows, with about `MAX_ELEMENTS` elements."""
        count = min(rows, max(1, MAX_ELEMENTS // max(elements_per_row, 1)))
        return cls(names, torch.from_numpy(np.sort(np.random.default_rng(SEED).choice(rows, count, replace=False))))

    def reduce_arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the selected rows of the tensors that have these rows."""
        return {
            name: self.reduce_result(value) if name in self.names and isinstance(value, torch.Tensor) else value
            for name, value in named.items()
        }

    def reduce_result(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the selected rows of a result."""
        return tensor.detach()[self.rows.to(tensor.device)]


def _has_inner_axis(named: Mapping[str, Any]) -> bool:
    """Return whether the call works along an axis other than the first one."""
    first = next(value for value in named.values() if isinstance(value, torch.Tensor))
    return first.dim() > 1 and named["dim"] % first.dim() != 0


def _normalizes_inner_axes(named: Mapping[str, Any]) -> bool:
    """Return whether a normalization does not include the first axis."""
    return len(named["normalized_shape"]) < named["input"].dim()


def _always(named: Mapping[str, Any]) -> bool:
    """Return that the rows are independent in every call."""
    return True


def _has_vector_bias(named: Mapping[str, Any]) -> bool:
    """Return whether the first argument, which is added to a product, has one axis."""
    return bool(named["self"].dim() == 1)


ROW_WISE: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Any]], bool]]] = {
    "_log_softmax": (frozenset({"self"}), _has_inner_axis),
    "_log_softmax_backward_data": (frozenset({"grad_output", "output"}), _has_inner_axis),
    "_scaled_dot_product_flash_attention_for_cpu": (frozenset({"query", "key", "value"}), _always),
    "_softmax": (frozenset({"self"}), _has_inner_axis),
    "_softmax_backward_data": (frozenset({"grad_output", "output"}), _has_inner_axis),
    "addmm": (frozenset({"mat1"}), _has_vector_bias),
    "bmm": (frozenset({"self", "mat2"}), _always),
    "embedding": (frozenset({"indices"}), _always),
    "mm": (frozenset({"self"}), _always),
    "native_layer_norm": (frozenset({"input"}), _normalizes_inner_axes),
}
"""Operators whose rows are independent of each other: the arguments with these rows, and a condition on the call."""


def choose_sample(operator: torch._ops.OpOverload, named: Mapping[str, Any]) -> CallSample | None:
    """Return the part of a call to judge; None if the call is too large and its operator can't be sampled.

    Args:
        operator: the operator.
        named: its arguments by name, including default values.

    Returns:
        The sample.
    """
    tensors = dict(iterate_tensors(named))
    largest = max((tensor.numel() for tensor in tensors.values()), default=0)
    if largest <= MAX_ELEMENTS:
        return WholeCall()
    if torch.Tag.pointwise in operator.tags and not any(isinstance(value, list) for value in named.values()):
        shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors.values()))
        return ElementSample.of_shape(shape)
    names, is_independent = ROW_WISE.get(operator_name(operator), (frozenset[str](), _always))
    if names and is_independent(named):
        with_rows = [tensor for name, tensor in tensors.items() if name in names]
        whole_sizes = [tensor.numel() for name, tensor in tensors.items() if name not in names]
        rows = with_rows[0].shape[0]
        if rows and max(whole_sizes, default=0) <= MAX_UNSAMPLED_ELEMENTS:
            return RowSample.of_rows(names, rows, max(tensor.numel() // rows for tensor in with_rows))
    return WholeCall() if largest <= MAX_UNSAMPLED_ELEMENTS else None
