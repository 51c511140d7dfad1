"""The references of mixed precision: scaling, detection of infinities, and changes of the scale."""

from typing import Any

import numpy as np
import pytest
from references import call_reference


@pytest.mark.parametrize(("bad", "before", "after"), [(1.0, 0, 0), (np.inf, 0, 1), (np.nan, 0, 1), (1.0, 1, 1)])
def test_unscale_multiplies_and_detects_nonfinite_gradients(bad: float, before: float, after: float) -> None:
    grads = [np.array([2.0, 4.0]), np.array(bad)]
    scaled, found = call_reference(
        "diopiAmpForeachNonFiniteCheckAndUnscaleInp", grads, np.array([float(before)]), np.array([0.5])
    )
    np.testing.assert_equal(scaled, [np.array([1.0, 2.0]), np.array(bad / 2)])
    assert found.tolist() == [after]


@pytest.mark.parametrize(
    ("scale", "tracker", "found", "expected"),
    [
        (8.0, 3, 0, (8.0, 4)),
        (8.0, 4, 0, (24.0, 0)),
        (8.0, 4, 1, (2.0, 0)),
        (8.0, 5, 0, (8.0, 6)),
        (2.0**127, 4, 0, (2.0**127, 0)),
    ],
)
def test_scale_follows_found_infinities(scale: float, tracker: int, found: float, expected: Any) -> None:
    actual = call_reference("diopiAmpUpdateScaleInp", np.array(scale), np.array(tracker), np.array(found), 3.0, 0.25, 5)
    assert (actual[0], actual[1]) == expected
