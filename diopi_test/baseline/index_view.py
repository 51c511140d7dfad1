"""Read only the index of baseline files: everything about a case except the elements of its arrays.

This is much faster than reading a file completely, and suffices to list cases and to derive others from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline.store import BaselineFile
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in


@final
class IndexView(BaselineFile):
    """A baseline file whose arrays have the stored shapes, but zeros as elements.

    Raises BaselineError as `BaselineFile` does.
    """

    def _read_array(self, span: Mapping[str, Any]) -> NDArray[Any]:
        """Return zeros in the shape of an array, without reading the array or allocating memory for it."""
        shape = self._shape(span) if "offset" in span else tuple(span["shape"])
        return np.broadcast_to(np.zeros((), bool), shape)

    def _arguments(self, label: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a case, whose tensors have zeros as elements."""
        return {name: self._decode_argument(value) for name, value in record["arguments"].items()}

    def cases(self, first: Dtype) -> Iterator[BaselineCase]:
        """Yield all cases; cases of element type `first` come first."""
        return (self.case(label) for label in sorted(self.labels, key=lambda label: self.dtype(label) is not first))

    def layouts(self, label: str) -> frozenset[str]:
        """Return the layouts of all tensors of a case."""
        case = self.case(label)
        tensors = {tensor.layout for value in case.arguments.values() for tensor in tensors_in(value)}
        return frozenset(
            tensors | {entry.layout for value in case.expected.values() for entry in expected_arrays(value)}
        )
