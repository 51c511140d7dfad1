"""The description of what happens to subnormal numbers."""

from __future__ import annotations

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.fingerprint.subnormals import describe_flushing


def test_a_matrix_with_a_truncated_subnormal_number_is_described_by_an_example() -> None:
    exact = np.full((2, 2), 3 * 2.0**-140)
    truncated = exact.copy()
    truncated[1, 0] = 2.0**-139
    assert describe_flushing(truncated, exact, np.zeros((2, 2)), Dtype.float32) == "1.43493e-42 for 2.15239e-42"
    assert describe_flushing(exact, exact, np.zeros((2, 2)), Dtype.float32) == "kept"
