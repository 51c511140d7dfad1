"""Which tensor inputs of a call may share memory: one tensor for both, or tensors whose storages overlap.

Reading never conflicts with reading, so the values decide: they must be valid for both inputs.

- Floating-point and complex inputs may share their values.
- Integers and truth values may do so in functions that compute each element of the result from the elements at the same
  position. In all other functions, they are positions, lengths or masks, whose values depend on other arguments.
- Starts of sequences may be shared if they are equal, as in self-attention, where queries and keys are the same rows.
- The fact `AwayFromBoundary` excludes inputs whose equal values have no determined result.
- If a function has inputs that are gradients of results, one of the two inputs is such a gradient. It may have any
  value. The other inputs must match the results of the forward function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from diopi_proto.dtypes import category
from diopi_proto.facts import AwayFromBoundary, OnHost, SequenceStarts
from diopi_proto.parameters import Parameter, Role, SparseIn
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype

_FLOATING = 2
"""The category of floating-point types, see `diopi_proto.dtypes.category`. Complex types have a greater category."""


@dataclass(frozen=True, kw_only=True)
class InputPair:
    """Two tensor inputs that may share memory.

    Attributes:
        first: the name of the input that comes first in the call.
        second: the name of the other input.
        sources: the names of the inputs whose values are valid for both, the most restricted one first.
        all_dtypes: whether integers and truth values may be shared, too.
        divided: the tensors whose rows the inputs divide into sequences; empty if the inputs are not starts of
            sequences. Starts of sequences may share memory if they are equal.
    """

    first: str
    second: str
    sources: tuple[str, ...]
    all_dtypes: bool
    divided: tuple[str, ...] = ()

    def accepts(self, dtype: Dtype) -> bool:
        """Return whether the inputs may share memory if both have this element type."""
        return self.all_dtypes or category(dtype) >= _FLOATING


@cache
def find_input_pairs(prototype: Prototype) -> tuple[InputPair, ...]:
    """Return the pairs of inputs of a function that may share memory, in the order of the call."""
    inputs = [p for p in prototype.arguments if _is_readable(p)]
    gradients = frozenset(p.name for p in inputs if _is_gradient(p))
    return tuple(_make_pairs(prototype, inputs, gradients))


def _make_pairs(prototype: Prototype, inputs: list[Parameter], gradients: frozenset[str]) -> Iterator[InputPair]:
    """Yield the pairs of `inputs` that may share memory; `gradients` names the inputs that are gradients."""
    for first, second in combinations(inputs, 2):
        names = (first.name, second.name)
        divided = tuple(fact.tensor for p in (first, second) if (fact := p.fact(SequenceStarts)) is not None)
        if len(divided) == len(names):
            yield InputPair(first=names[0], second=names[1], sources=names[:1], all_dtypes=True, divided=divided)
            continue
        are_apart = any(
            fact.argument in names for p in (first, second) for fact in p.facts if isinstance(fact, AwayFromBoundary)
        )
        if are_apart or (gradients and gradients.isdisjoint(names)):
            continue
        sources = [name for name in reversed(names) if name not in gradients] or list(reversed(names))
        yield InputPair(
            first=names[0],
            second=names[1],
            sources=tuple(sources),
            all_dtypes=prototype.elementwise,
        )


def _is_readable(parameter: Parameter) -> bool:
    """Return whether a parameter is a single dense tensor in device memory that the call only reads."""
    is_input = parameter.is_tensor and parameter.role is Role.input
    return is_input and parameter.annotation is not SparseIn and parameter.fact(OnHost) is None


def _is_gradient(parameter: Parameter) -> bool:
    """Return whether a parameter is the gradient of a result, as its name states."""
    return "grad" in parameter.name.lower()
