"""The size sweep: large cases with one long axis or many elements each, derived from the small cases of a function.

A size sweep case is a small case in which one size is replaced by a large one, in all tensors that have it. Further
cases of element-wise functions have 2^24 + 3 elements, or a storage of more than 2^31 bytes. The file `size_sweep.json`
lists cases and sizes whose large call the reference accepts, at a cost that grows linearly with the size.
`python -m diopi_test.quality.size_sweep` writes this file, and the tables of the documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import resizing
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.domains import Domain
from diopi_test.cases.layouts import Layout, contiguous, strides

FILE = Path(__file__).with_name("size_sweep.json")
"""The file that lists by function how size sweep cases are derived."""

LONG_SIZE = 70_001
"""The size of a long axis: more than 65,536, the largest number of blocks in some grids, and not a multiple of it."""

MIN_ELEMENTS = 2**20 + 3
"""The least number of elements of the largest result in a case with many elements."""

PERIOD = 251
"""The period with which large tensors repeat their values, so that their results compress well.

The period is a prime number, so that an offset that wraps at a power of two leads to another value.
"""

MANY_SHAPE = (2**24 + 3,)
"""The shape of a tensor with more elements than float32 can count exactly."""

HUGE_SHAPE, HUGE_LAYOUT = (70_001, 3), strides(7_703, 1)
"""The shape and layout of a tensor whose rows are so far apart that they span more than 2^31 bytes."""


@final
@dataclass(frozen=True, kw_only=True)
class SweepSize:
    """The rule by which size sweep cases are derived from a small case.

    Attributes:
        base: the label of the small case.
        size: the size that is replaced.
        axes: the axes that have this size, such as `input axis 1`.
        attributes: whether the size is also replaced in tuples that equal the last sizes of a tensor.
        large_size: the size with which a result has at least `MIN_ELEMENTS` elements; 0 for no such case.
        repeats: whether tensors may repeat values. They may not if the order of equal elements matters, or if rounding
            errors of sums would then add up instead of averaging out.
    """

    base: str
    size: int
    axes: Sequence[str]
    attributes: bool = False
    large_size: int = 0
    repeats: bool = False


@final
@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The size sweep of a function.

    Attributes:
        sizes: the rules for cases with a long axis.
        elementwise: the labels of small cases in which each element of a result depends only on the elements of the
            arguments at the same position. The cases with the most elements are derived from these small cases.
        reason: why there are no rules; empty if there are some.
    """

    sizes: Sequence[SweepSize] = field(default_factory=tuple)
    elementwise: Sequence[str] = field(default_factory=tuple)
    reason: str = ""


@cache
def sweeps() -> Mapping[str, Sweep]:
    """Return the size sweeps that the file lists, by the name of the function."""
    return {function: _read_sweep(**entry) for function, entry in json.loads(FILE.read_text("utf-8")).items()}


def _read_sweep(sizes: Sequence[Mapping[str, Any]] = (), **attributes: Any) -> Sweep:
    """Return the size sweep of an entry of the file."""
    return Sweep(sizes=[SweepSize(**size) for size in sizes], **attributes)


def sweep_keys(prototype: Prototype) -> Sequence[str]:
    """Return texts that change if the size sweep of a function changes; the baseline depends on them."""
    return [repr(sweeps().get(prototype.name))]


def sweep_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the size sweep cases of a function.

    Args:
        prototype: The prototype of the function.
        cases: The small cases of the function.

    Yields:
        For each rule a case with a long axis, and a case with many elements if the rule has a `large_size`. Then for
        each element-wise small case, a case with 2^24 + 3 elements, and a case with a storage of more than 2^31 bytes
        if the element type is wide enough.
    """
    by_label = {case.label: case for case in cases}
    sweep = sweeps().get(prototype.name, Sweep())
    for derivation in sweep.sizes:
        if (case := by_label.get(derivation.base)) is not None:
            yield from _long_cases(case, derivation)
    for label in sweep.elementwise:
        if (case := by_label.get(label)) is not None:
            yield reshape(case, MANY_SHAPE, f"{case.dtype.name}-{MANY_SHAPE[0]}-elements")
            huge = reshape(case, HUGE_SHAPE, f"{case.dtype.name}-storage-huge", HUGE_LAYOUT)
            if huge.is_huge:  # narrow types take fewer bytes
                yield huge


def _long_cases(case: Case, derivation: SweepSize) -> Iterator[Case]:
    """Yield the case with a long axis, and the case with many elements if there is one."""
    axis = derivation.axes[0].replace(" ", "-")
    long = lengthen(case, derivation, LONG_SIZE, f"{case.dtype.name}-long-{axis}")
    yield repeat_values(long) if derivation.repeats else long
    if derivation.large_size:
        yield repeat_values(lengthen(case, derivation, derivation.large_size, f"{case.dtype.name}-many-{axis}"))


def reshape(case: Case, shape: tuple[int, ...], label: str, first_layout: Layout = contiguous) -> Case:
    """Return an element-wise case in which all tensors have one shape and repeat their values.

    Args:
        case: The small case.
        shape: The shape of all tensors.
        label: The label of the new case.
        first_layout: The layout of the first tensor argument.

    Returns:
        The case. Other tensors than the first are contiguous. The reference evaluates only one period (`Case.period`).
    """
    layouts = {name: first_layout for name in list(_tensor_names(case))[:1]}
    arguments = case.map_tensors(lambda name, spec: replace(spec, shape=shape, layout=layouts.get(name, contiguous)))
    reshaped = replace(
        case, label=label, arguments=arguments, smoke=False, large=True, case_class=CaseClass.basic, period=PERIOD
    )
    return repeat_values(reshaped)


def _tensor_names(case: Case) -> Iterator[str]:
    """Yield the names of the arguments of a case that are tensors and are passed to the function."""
    return (name for name, value in case.arguments.items() if isinstance(value, TensorSpec) and name[0] != "_")


def lengthen(case: Case, derivation: SweepSize, target: int, label: str) -> Case:
    """Return a large case in which the size `derivation.size` is replaced by `target` in all tensors.

    If `derivation.attributes` is true, the size is also replaced in tuples that equal the last sizes of a tensor.
    """
    kind = resizing.ResizedAttributes
    attributes = kind.shapes if derivation.attributes else kind.none
    return replace(resizing.replace_sizes(case, {derivation.size: target}, label, attributes), large=True)


def repeat_values(case: Case) -> Case:
    """Return a case whose drawn tensors repeat their first `PERIOD` values; tensors with `compute` are not changed."""

    def change(name: str, spec: TensorSpec) -> TensorSpec:
        return replace(spec, domain=partial(_draw_periodic, spec.domain)) if spec.compute is None else spec

    return replace(case, arguments=case.map_tensors(change))


def _draw_periodic(domain: Domain, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw at most `PERIOD` values from the domain, and repeat them up to `count` values."""
    return np.resize(domain(rng, min(count, PERIOD), dtype), count)
