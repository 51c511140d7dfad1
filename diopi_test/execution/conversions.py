"""Convert cases for chips that need other layouts or element types than those of the stored cases.

The standard also specifies the converted calls, and their results have the same values. Therefore the expected values
and the budgets stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from diopi_proto import dtypes
from diopi_proto.facts import NamesAxis
from diopi_proto.interface import lookup
from diopi_proto.parameters import Out, Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected

FAMILIES_WITH_CHANNELS = frozenset({"conv", "pool", "norm", "interpolate", "detection"})
"""The families whose tensors are (N, C, spatial axes), except functions with arguments that name axes."""

AXES_ARGUMENTS = frozenset({"normalized_shape"})
"""Arguments that determine which axes a function works on, besides those with the fact `NamesAxis`."""

TENSORS_WITHOUT_CHANNELS = frozenset({"grid"})
"""The parameters of these families that have other axes. The last axis of `grid` contains the coordinates of points."""

INT32_RANGE = np.iinfo(np.int32)
"""The smallest and the largest int32 number."""

StoredTensor = TypeVar("StoredTensor", BaselineTensor, Expected)
"""A tensor argument or an expected result."""


def channels_last(case: BaselineCase) -> BaselineCase:
    """Convert contiguous (N, C, H, W) and (N, C, D, H, W) tensors of a case, results included, to channels-last.

    Args:
        case: The case.

    Returns:
        The converted case; the same case if the function has no channels in axis 1, or no tensor has such a shape.
    """
    if not _has_channels(lookup(case.function)):
        return case

    def to_channels_last(name: str, entry: StoredTensor) -> StoredTensor:
        """Return a tensor in the channels-last layout, if it has channels and is contiguous."""
        has_channels = entry.layout == "contiguous" and entry.values.ndim in _channel_ranks(case.function)
        return (
            replace(entry, layout="channels_last") if has_channels and name not in TENSORS_WITHOUT_CHANNELS else entry
        )

    return _change_tensors(case, to_channels_last)


def int32_indices(case: BaselineCase) -> BaselineCase:
    """Convert int64 indices of a case to int32 where the standard accepts both.

    Args:
        case: The case.

    Returns:
        The converted case; the same case if it has no such index, or an index exceeds int32.
    """
    narrowed = _index_names(case.function)

    def narrow(name: str, entry: StoredTensor) -> StoredTensor:
        """Return a tensor of indices with the element type int32."""
        if name not in narrowed or entry.dtype is not Dtype.int64:
            return entry
        if isinstance(entry, BaselineTensor):
            return replace(entry, values=entry.values.astype(np.int32), dtype=Dtype.int32)
        return replace(entry, dtype=Dtype.int32)

    stored = [entry for value in (*case.arguments.items(), *case.expected.items()) for entry in _named_tensors(*value)]
    fits = all(_fit_int32(entry.values) for name, entry in stored if name in narrowed and entry.dtype is Dtype.int64)
    return _change_tensors(case, narrow) if fits else case


CONVERSIONS: dict[str, Callable[[BaselineCase], BaselineCase]] = {"nhwc": channels_last, "int32_indices": int32_indices}
"""The conversions by the names that options of a run have for them."""


def convert(case: BaselineCase, names: Iterable[str]) -> BaselineCase:
    """Return the case after these conversions, in order."""
    for name in names:
        case = CONVERSIONS[name](case)
    return case


def is_converted(case: BaselineCase, names: Iterable[str]) -> bool:
    """Return whether these conversions change this case."""
    return convert(case, names) is not case


def _has_channels(prototype: Prototype) -> bool:
    """Return whether axis 1 of the function's tensors is the channel axis.

    The family decides. Exceptions are functions with arguments that name axes, and functions with arrays of tensors,
    which have any shape.
    """
    arguments = prototype.arguments
    chooses_axes = any(p.name in AXES_ARGUMENTS or p.fact(NamesAxis) or p.is_tensor_array for p in arguments)
    return prototype.family in FAMILIES_WITH_CHANNELS and not chooses_axes


@cache
def _channel_ranks(function: str) -> frozenset[int]:
    """Return the ranks of tensors with a batch axis, channels, and two or three spatial axes, such as 4 for conv2d."""
    spatial = re.search("([123])d", function)
    return frozenset({4, 5} & {int(spatial[1]) + 2}) if spatial else frozenset({4, 5})


@cache
def _index_names(function: str) -> frozenset[str]:
    """Return the names of arguments and results that contain indices as int64 or int32."""
    prototype = lookup(function)
    index_arguments = {name for name, accepted in prototype.argument_dtypes.items() if _are_indices(accepted)}
    return frozenset(index_arguments | {result.name for result in prototype.results if _is_position(prototype, result)})


def _are_indices(accepted: dtypes.DtypeSet) -> bool:
    """Return whether the types are int32 and int64; a parameter that accepts more integer types contains no indices."""
    return set(dtypes.index) <= set(accepted) and Dtype.int16 not in accepted


def _is_position(prototype: Prototype, result: Parameter) -> bool:
    """Return whether a result contains int64 indices by default, in a tensor that the caller allocates."""
    return result.annotation is Out and prototype.rule_of(result.name) is dtypes.position


def _named_tensors(name: str, value: Any) -> list[tuple[str, BaselineTensor | Expected]]:
    """Return the tensors or expected results in an argument or result, each with its name."""
    entries = value if isinstance(value, list) else [value]
    return [(name, entry) for entry in entries if isinstance(entry, BaselineTensor | Expected)]


def _fit_int32(values: NDArray[Any]) -> bool:
    """Return whether int32 can represent all values."""
    return not values.size or (values.min() >= INT32_RANGE.min and values.max() <= INT32_RANGE.max)


def _change_tensors(case: BaselineCase, change: Callable[[str, Any], Any]) -> BaselineCase:
    """Return the case with every tensor and expected result changed; the same case if none changes."""

    def change_value(name: str, value: Any) -> Any:
        """Return an argument or result with its tensors changed."""
        if not isinstance(value, list):
            return change(name, value) if isinstance(value, BaselineTensor | Expected) else value
        entries = [change_value(name, entry) for entry in value]
        return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value

    def changed_values(values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments or results that change, by name."""
        changed = {name: change_value(name, value) for name, value in values.items()}
        return {name: value for name, value in changed.items() if value is not values[name]}

    arguments, expected = changed_values(case.arguments), changed_values(case.expected)
    if not arguments and not expected:
        return case
    return replace(case, arguments={**case.arguments, **arguments}, expected={**case.expected, **expected})
