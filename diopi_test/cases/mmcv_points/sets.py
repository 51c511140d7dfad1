"""Shared parts of the cases of point sets: domains of coordinates, and sets that are stacked in one tensor.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. The leading element type is float32, or the first type of a function without float32. `Case.non_discriminating`
is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values, normal
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection

I32, I64 = Dtype.int32, Dtype.int64
"""Short names for the element types of indices."""

CLOUD_COORDINATES = normal()
"""The domain of normally distributed coordinates."""


def draw_some_undefined(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return normally distributed coordinates, with every seventh replaced by NaN."""
    values = CLOUD_COORDINATES(rng, count, dtype)
    values[::7] = np.nan
    return values


LATTICE_COORDINATES = integer_values(-2, 2)
"""The domain of integer coordinates in [−2, 2]. Many distances are equal, and some are 0."""


def attribute_arguments(sizes: Any, *names: str) -> dict[str, Any]:
    """Return fields of a dataclass as arguments by name.

    Args:
        sizes: An instance of a dataclass whose fields have the names of parameters.
        *names: The names of the fields; all fields if there is no name.

    Returns:
        The values of the fields by name.
    """
    return {field.name: getattr(sizes, field.name) for field in fields(sizes) if not names or field.name in names}


@dataclass(frozen=True, kw_only=True)
class StackedSets:
    """The sizes of a call with several point sets, which follow each other along the first axis of one tensor.

    Attributes:
        centers: The number of centers of each set, or of rows of indices.
        points: The number of points of each set.
        sample_num, max_radius: The arguments of these names.
        domain: The domain of the coordinates.
        channels: The number of features of a point.
        has_outside_indices: Whether some indices are beyond the points of their set.
    """

    centers: tuple[int, ...] = (3, 4)
    points: tuple[int, ...] = (17, 11)
    sample_num: int = 4
    max_radius: float = 1.25
    domain: Domain = CLOUD_COORDINATES
    channels: int = 3
    has_outside_indices: bool = False


STACK_SMOKE = CaseTemplate("two-sets", StackedSets(), **SMOKE_IN_ALL_DTYPES)
"""A template of smoke cases in every element type, with two point sets."""

STACK_LEADING = STACK_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""The template `STACK_SMOKE` in the leading element type only, without smoke cases."""

OTHER_SIZES_REASON = "other sizes of the sets would not add up to the number of rows"
"""The reason why a case need not reveal a function that reads wrong set sizes (`Case.non_discriminating`).

Other sizes would not add up to the number of rows of the tensor.
"""
