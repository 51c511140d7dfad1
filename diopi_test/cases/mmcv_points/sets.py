"""Point sets: where their coordinates are drawn from, and sets that are stacked."""

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

CLOUD = normal()
"""Usual coordinates."""


def draw_some_undefined(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw coordinates of which every seventh is NaN."""
    values = CLOUD(rng, count, dtype)
    values[::7] = np.nan
    return values


LATTICE = integer_values(-2, 2)
"""Exact coordinates; many distances are equal, and some are 0."""


def attributes(sizes: Any, *names: str) -> dict[str, Any]:
    """Return the fields of the sizes that are arguments of the same names; all fields if none is named."""
    return {field.name: getattr(sizes, field.name) for field in fields(sizes) if not names or field.name in names}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Stacked sets: the numbers of centers, or rows, and of points of each set."""

    centers: tuple[int, ...] = (3, 4)
    points: tuple[int, ...] = (17, 11)
    sample_num: int = 4
    max_radius: float = 1.25
    domain: Domain = CLOUD
    channels: int = 3
    outside: bool = False


STACKED = CaseTemplate("two-sets", Stack(), **SMOKE_IN_ALL_DTYPES)
"""Two sets of points, one after the other in one tensor."""

STACK = STACKED.replace(dtypes=DtypeSelection.leading, smoke=False)
"""The template in the leading element type only, without smoke cases."""

OTHER_SIZES_REASON = "sets of other sizes do not make up the rows"
