"""Describe a case as text: the prototype, the arguments with their values, the expected results, special properties."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.headers import declaration
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter
from diopi_proto.types import Dtype
from diopi_test.cases.layouts import layout_named
from diopi_test.execution.description import describe_attribute, describe_tensor
from diopi_test.oracle.budget import Budget, K
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from diopi_test.run.lookup import LoadedCase
from lib_rt.formats import is_inexact

EDGE_ELEMENTS = 3
"""The number of elements at each end of an axis that an abbreviated array shows."""

MAX_COMPLETE_ELEMENTS = 60
"""The maximum number of elements of an array that is shown completely."""


def case_text(loaded: LoadedCase, *, full: bool = False) -> Iterator[str]:
    """Yield the lines that describe a case. Large arrays are abbreviated unless `full`."""
    case = loaded.case
    yield case.id
    # the runner calls smoke cases more than once, but not the negative tests that are derived from them
    level = ", called more than once" if case.smoke and loaded.flaw is None else ""
    yield f"  class {case.case_class}{level}, element type {case.dtype.name}"
    yield f"  {declaration(lookup(case.function))}"
    yield from _describe_origin(loaded)
    yield "arguments"
    for parameter in lookup(case.function).arguments:
        yield from _describe_argument(parameter, case.arguments[parameter.name], full)
    yield "results"
    for parameter in lookup(case.function).results:
        yield from _describe_result(parameter, case, loaded.flaw is not None, full)


def _describe_origin(loaded: LoadedCase) -> Iterator[str]:
    """Yield lines that describe how a case was derived from stored cases, and what the vendor must do in it."""
    if loaded.chain is not None:
        yield "  the calls of these cases are in flight at the same time; each must have the results of its case."
        yield "  The first case is shown:"
        yield from (f"    {case.id}" for case in loaded.chain.cases)
        return
    if loaded.soak is not None:
        yield f"  {loaded.soak.count:,} calls, in which these cases take turns. The first case is shown:"
        yield from (f"    {case.id}" for case in loaded.soak.cases)
        return
    if loaded.base is None:
        return
    yield f"  derived from {loaded.base.id}"
    if loaded.flaw is not None:
        yield f"  the vendor must reject the call and change nothing: {loaded.flaw.text}"
    elif loaded.case.expected is loaded.base.expected or not _describe_sharing(loaded.case):
        yield f"  must have the same results as that case: {_explain_equal_results(loaded, loaded.base)}"
    else:
        yield f"  must have the results of the reference for these arguments: {_describe_sharing(loaded.case)}"
    for before, after in (
        (loaded.base.arguments, loaded.case.arguments),
        (loaded.base.expected, loaded.case.expected),
    ):
        for name in [name for name in after if after[name] is not before.get(name)]:
            yield f"  changed: {name} was {_describe_briefly(before.get(name))}, now {_describe_briefly(after[name])}"


def _describe_sharing(case: BaselineCase) -> str:
    """Return sentences about the parameters that share memory; an empty string if none do."""
    sentences = [f"`{name}` is the tensor of `{argument}`." for name, argument in case.aliases.items()]
    if case.overlap is not None:
        first, second = case.overlap.first, case.overlap.second
        sentences.append(
            f"`{second}` begins {case.overlap.shift} elements after `{first}`, in the storage of `{first}`."
        )
    return " ".join(sentences)


def _explain_equal_results(loaded: LoadedCase, base: BaselineCase) -> str:
    """Return why a derived case has the results of its base.

    Either the call of the derived case overwrites an argument with the result, or it changes an ignored argument.
    """
    if loaded.case.aliases:
        return _describe_sharing(loaded.case)
    prototype = lookup(base.function)
    tensors = [parameter.name for parameter in prototype.parameters if parameter.is_tensor]
    return " ".join(fact.sentence(tensors) for fact in prototype.ignored if fact.covers(base.arguments))


def _describe_briefly(value: Any) -> str:
    """Return an argument or result in a few words, without its elements."""
    if isinstance(value, list):
        return f"[{'; '.join(map(_describe_briefly, value))}]"
    return _describe_layout(value) if isinstance(value, (BaselineTensor, Expected)) else describe_attribute(value)


def _describe_layout(tensor: BaselineTensor | Expected) -> str:
    """Return the element type, shape, strides, offset and layout of a tensor as text."""
    shape = tensor.values.shape
    place = layout_named(tensor.layout)(shape)
    return f"{describe_tensor(tensor.dtype, shape, place.strides, place.offset)}, {tensor.layout}"


def _describe_argument(parameter: Parameter, value: Any, full: bool) -> Iterator[str]:
    """Yield lines that describe an argument: a tensor with its layout and its elements, any other value as text."""
    for name, entry in _name_entries(parameter.c_name, value):
        if isinstance(entry, BaselineTensor):
            yield f"  {name}: {_describe_layout(entry)}"
            yield from _describe_array(entry.values, entry.dtype, full)
        else:
            yield f"  {name}: {describe_attribute(entry)}"


def _name_entries(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return a value with its name, or the entries of an array of tensors with numbered names."""
    return [(f"{name}.{i}", entry) for i, entry in enumerate(value)] if isinstance(value, list) else [(name, value)]


def _describe_result(parameter: Parameter, case: BaselineCase, is_negative: bool, full: bool) -> Iterator[str]:
    """Yield lines that describe an expected result, the required accuracy and the expected values.

    For a negative test (`is_negative`), accuracy and values are omitted, because the call must not write results.
    """
    for name, entry in _name_entries(parameter.c_name, case.expected[parameter.name]):
        if entry is None:
            yield f"  {name}: NULL"
            continue
        yield f"  {name}: {_describe_layout(entry)}"
        if not is_negative:
            yield from (f"    {line}" for line in _describe_accuracy(entry))
            yield from _describe_array(entry.values, entry.dtype, full)


def _describe_accuracy(expected: Expected) -> Iterator[str]:
    """Yield sentences about the accuracy that a result must have."""
    if expected.needs_validator:
        yield "several results are valid, and a validator decides whether a result is valid; this is one valid result:"
    elif expected.budget is None:
        yield "must be exact"
    elif expected.budget.unit.size:
        yield f"accepted errors: {_budget_text(expected.budget, expected)}, K = {K:g} included"
    if expected.specified is not None:
        number, size = int(expected.specified.sum()), expected.specified.size
        yield f"{number} of {size} elements are specified; the others may have any value"
    if expected.flushed is not None:
        yield "the vendor may replace subnormal inputs by zero"


def _budget_text(budget: Budget, expected: Expected) -> str:
    """Return a description of the smallest, the median and the largest accepted error of the elements of a result.

    The errors are in ulps of the expected elements. If an error is infinite in ulps (for an expected 0, whose ulp is
    extremely small), all errors are absolute numbers.
    """
    units, name = budget.to_ulps(expected.values, expected.dtype), " ulps"
    if np.isinf(units).any():
        units, name = budget.unit, ""
    with np.errstate(over="ignore"):
        budgets = np.sort(K * units, axis=None)
    least, median, largest = (f"{budgets[i]:.3g}" for i in (0, budgets.size // 2, -1))
    return f"{least} (smallest), {median} (median), {largest} (largest){name}"


def _describe_array(values: NDArray[Any], dtype: Dtype, full: bool) -> Iterator[str]:
    """Yield the range of the values and the array itself, abbreviated unless `full`."""
    if values.size > 1 and is_inexact(dtype) and values.dtype.kind != "c":
        yield f"    {_describe_range(values.astype(np.float64))}"
    threshold = sys.maxsize if full else MAX_COMPLETE_ELEMENTS
    with np.errstate(invalid="ignore"):  # signaling NaN
        text = np.array2string(values, threshold=threshold, edgeitems=EDGE_ELEMENTS, max_line_width=100)
    yield indent(text, "    ")


def _describe_range(values: NDArray[np.float64]) -> str:
    """Return the smallest and the largest finite number as text, and the numbers of other values."""
    finite = values[np.isfinite(values)]
    special = {"NaN": np.isnan(values), "infinite": np.isinf(values)}
    counts = [f"{int(mask.sum())} {name}" for name, mask in special.items() if mask.any()]
    span = [f"from {finite.min():.6g} to {finite.max():.6g}"] if finite.size else []
    return ", ".join([*span, *counts])
