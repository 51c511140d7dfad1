"""Specs of results: the form of the tensors for results that the caller has allocated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from diopi_proto.types import Dtype


@final
@dataclass(frozen=True)
class ResultSpec:
    """The shape, element type and name of a result tensor that the caller allocated; a *spec* for short."""

    shape: tuple[int, ...]
    dtype: Dtype
    name: str = field(default="", compare=False)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


OutSpec = ResultSpec | tuple[ResultSpec, ...] | None
"""The spec of a result, or of each tensor of an array; None for a result that the caller has not allocated."""
"""The spec of a single result, or of an array of results; None if the caller omits it or the callee allocates it."""
