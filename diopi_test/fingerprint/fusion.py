"""Multiply-add: whether a product, or a quotient, is rounded before it is added to something."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants, yes_or_no
from lib_rt.dtypes import Array, to_numpy
from lib_rt.formats import FORMATS

Floats = NDArray[np.float64]

SCALE = 16.0
"""A factor that keeps the remainder in the range of normal numbers, in float16 too."""


def inexact(dtype: Dtype) -> Floats:
    """Return numbers 1 + 2^−k whose squares and inverses are not representable in the type."""
    least = (FORMATS[dtype].precision + 1) // 2
    return 1 + np.ldexp(1.0, -np.arange(least, least + 2))


def scaled(x: Array) -> Any:
    """Return x times `SCALE`, in the type of x."""
    return x * np.asarray(SCALE, x.dtype)


def _product(x: Array) -> Any:
    return scaled(x) * x


def _quotient(x: Array) -> Any:
    return scaled(np.ones_like(x)) / x


Arguments = Callable[[Array, Array], tuple[Any, ...]]
"""A function that returns all arguments from the number that is added and x."""


def measure(
    operator: ProbedOperator, dtype: Dtype, *, rounded: Callable[[Array], Array], arguments: Arguments
) -> Observations:
    """Return whether a remainder is left when the rounded value is subtracted from the value before it is rounded."""
    numbers = inexact(dtype).astype(to_numpy(dtype))
    residues = np.concatenate([operator(*arguments(-rounded(x), x), shape=(1,), dtype=dtype) for x in numbers[:, None]])
    if not np.isfinite(residues).all():
        return {"added": ", ".join(str(residue) for residue in residues)}
    return {"added": yes_or_no(residues != 0, "unrounded", "rounded")}


def _probe(function: str, rounded: Callable[[Array], Array], arguments: Arguments) -> Probe:
    return Probe(
        function=function,
        measure=partial(measure, rounded=rounded, arguments=arguments),
        variants=single_variants(*floating),
    )


PROBES = (
    _probe("diopiAddcmul", _product, lambda addend, x: (addend, scaled(x), x, 1)),
    _probe("diopiAdd", _product, lambda addend, x: (addend, scaled(x), float(x[0]))),
    _probe("diopiAddcdiv", _quotient, lambda addend, x: (addend, scaled(np.ones_like(x)), x, 1)),
)
