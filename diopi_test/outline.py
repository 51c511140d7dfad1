"""Baseline files read for their index alone: what there is to know of a case but its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline import BaselineCase, BaselineTensor, Expected
from diopi_test.store import BaselineFile


class Outline(BaselineFile):
    """A baseline file whose cases have every array's shape, and zeros for its elements.

    Raises BaselineError as `BaselineFile` does.
    """

    def _array(self, span: Mapping[str, Any]) -> NDArray[Any]:
        return np.broadcast_to(np.zeros((), bool), span["shape"])

    def cases(self, first: Dtype) -> Iterator[BaselineCase]:
        """All cases, those of element type `first` before the others."""
        return (self.case(label) for label in sorted(self.labels, key=lambda label: self.dtype(label) is not first))

    def layouts(self, label: str) -> frozenset[str]:
        """The layouts of all tensors of one case."""
        case = self.case(label)
        values = [*case.arguments.values(), *case.expected.values()]
        entries = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
        return frozenset(entry.layout for entry in entries if isinstance(entry, BaselineTensor | Expected))
