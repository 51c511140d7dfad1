"""All cases of the collectives in the order in which they are run."""

from diopi_test.collectives import (  # noqa: F401 - each enters its cases
    combination_cases,
    communicator_cases,
    failure_cases,
    movement_cases,
    order_cases,
)
from diopi_test.collectives.bench import CASES, LARGE_CASES

__all__ = ["CASES", "LARGE_CASES"]
