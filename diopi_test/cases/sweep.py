"""The size sweep: large cases with one long axis each, derived from the small cases of a function.

A size sweep case is a small case in which one size is replaced by a large one, in all tensors that have it. The file
`size_sweep.json` lists the cases and sizes for which the reference accepts the call at a cost that grows linearly.
`python -m diopi_test.quality.size_sweep` writes this file, and a table for the documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.domains import Domain

FILE = Path(__file__).with_name("size_sweep.json")
"""The derivations by function."""

LONG = 70_001
"""The size of a long axis: more than 65,536, the largest number of blocks in some grids, and not a multiple of it."""

MIN_ELEMENTS = 2**20 + 3
"""The least number of elements of the largest result in a case with many elements."""

PERIOD = 251
"""The number of values that tensors of cases with many elements repeat, so that their results compress well.

It is a prime number, so that offsets that wrap at a power of two lead to other values.
"""


@final
@dataclass(frozen=True, kw_only=True)
class SweepSize:
    """How a size sweep case is derived.

    Attributes:
        base: the label of the small case.
        size: the size that is replaced.
        axes: the axes that have this size, such as `input axis 1`.
        attributes: whether the size is also replaced in attributes that repeat the last sizes of a tensor.
        large_size: the size with which a result has at least `MIN_ELEMENTS` elements; 0 for no such case.
    """

    base: str
    size: int
    axes: Sequence[str]
    attributes: bool = False
    large_size: int = 0


@cache
def derivations() -> Mapping[str, Sequence[SweepSize]]:
    """Return the derivations of all functions by the name of the function."""
    listed = json.loads(FILE.read_text("utf-8"))
    return {function: [SweepSize(**entry) for entry in entries] for function, entries in listed.items()}


def sweep_keys(prototype: Prototype) -> Sequence[str]:
    """Return what the size sweep cases of a function depend on besides sources."""
    return [repr(derivation) for derivation in derivations().get(prototype.name, ())]


def sweep_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the size sweep cases of a function.

    Args:
        prototype: The prototype of the function.
        cases: The small cases of the function.

    Yields:
        For each derivation a case with a long axis, and a case with many elements if there is one.
    """
    by_label = {case.label: case for case in cases}
    for derivation in derivations().get(prototype.name, ()):
        case = by_label.get(derivation.base)
        if case is None:
            continue
        axis = derivation.axes[0].replace(" ", "-")
        yield lengthen(case, derivation, LONG, f"{case.dtype.name}-long-{axis}")
        if derivation.large_size:
            lengthened = lengthen(case, derivation, derivation.large_size, f"{case.dtype.name}-many-{axis}")
            yield repeat_values(lengthened)


def lengthen(case: Case, derivation: SweepSize, target: int, label: str) -> Case:
    """Return a case in which a size is replaced by `target` in all tensors."""

    def change(shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(target if size == derivation.size else size for size in shape)

    def change_argument(value: Any) -> Any:
        if isinstance(value, TensorSpec):
            return replace(value, shape=change(value.shape))
        if isinstance(value, list):
            return [change_argument(entry) for entry in value]
        return change(value) if derivation.attributes and repeats_sizes(value, case) else value

    def change_result(result: ResultOverride | None) -> ResultOverride | None:
        return result if result is None or result.shape is None else replace(result, shape=change(result.shape))

    return replace(
        case,
        label=label,
        arguments={name: change_argument(value) for name, value in case.arguments.items()},
        results={name: change_result(result) for name, result in case.results.items()},
        smoke=False,
        large=True,
        case_class=CaseClass.basic,
    )


def repeats_sizes(value: Any, case: Case) -> bool:
    """Return whether an attribute repeats the last sizes of a tensor of the case, as a normalized shape does."""
    shapes = [spec.shape for argument in case.arguments.values() for spec in TensorSpec.all_in(argument)]
    return isinstance(value, tuple) and bool(value) and any(shape[-len(value) :] == value for shape in shapes)


def repeat_values(case: Case) -> Case:
    """Return a case whose tensors repeat their first `PERIOD` values."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(entry) for entry in value]
        is_drawn = isinstance(value, TensorSpec) and value.compute is None
        return replace(value, domain=partial(_draw_periodic, value.domain)) if is_drawn else value

    return replace(case, arguments={name: change(value) for name, value in case.arguments.items()})


def _draw_periodic(domain: Domain, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw the first values from the domain, and repeat them."""
    return np.resize(domain(rng, min(count, PERIOD), dtype), count)
