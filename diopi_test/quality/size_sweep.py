"""Find the axes of every function that can be long, and write `cases/size_sweep.json` and the tables of docs/sizes.md.

The search replaces a size of a small case by a larger size, in all tensors that have this size. The size is a candidate
for the size sweep if the reference accepts the call, and if its results and its time grow at most linearly. If a
function has no candidate, the file contains the reason.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_impl import BaseVendor, find_vendor
from diopi_proto.dtypes import leading_dtype
from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import resized, resizing, sweep
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.selection import select_cases
from diopi_test.execution.call import Call, RejectedCallError
from diopi_test.oracle.evaluation import compute_baseline_case, draw_case_with_zeros
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from lib_rt import Device

PAGE = Path("docs/sizes.md")
"""The page of the documentation, in the root folder of a clone."""

PROBE_SIZES = (509, 4_093)
"""The sizes with which the search measures the cost of the reference: a small one and a large one."""

MAX_ELEMENTS = 2**22
"""The maximum number of elements of all tensors of a case with a long axis."""

MAX_MANY_ELEMENTS = 2**22 + 2**20
"""The maximum number of elements of all tensors of a case with many elements."""

REJECTIONS = (ValueError, IndexError, OverflowError, MemoryError, TypeError, AssertionError, KeyError)
"""The exceptions of references and domains that mean that the call is invalid with another size."""

MAX_SECONDS = 0.12
"""The maximum CPU time, in seconds, of drawing the arguments and of the reference for the larger probe size."""

MAX_CASES = 12
"""The maximum number of small cases of a function whose sizes are replaced."""

MAX_RANK = 5
"""The maximum number of axes of the first tensor of a case."""

MIN_SIZE = 2
"""The smallest size that can be replaced."""

# The reasons for which a size or a function has no case of the size sweep, as the page lists them
NO_TENSORS_REASON = "no small case has a tensor argument with an axis"
NOT_SUITABLE_REASON = (
    "no small case of the class `basic` has contiguous tensors only and at most 5 axes in its first tensor"
)
RANDOM_REASON = "the results are random; other cases test the distribution, with more elements"
NUMBER_REASON = "the function also takes the size as a number"
ONE_ELEMENT_REASON = "no axis of a small case has more than one element"
REJECTED_REASON = "the function rejects a call in which only one size is replaced"
UNRELATED_REASON = "the number of elements does not depend on the size"
TOO_MANY_REASON = "the tensors would have more than 2^22 elements"
TOO_SLOW_REASON = "the reference takes more than 0.12 s for an axis of 4,093"
INACCURATE_REASON = "implementations that add the elements of the axis one after the other exceed the budget"

INACCURATE_AXES = {
    "diopiLinalgQR": ("A axis 0",),
    "diopiLinearBackward": ("grad_output axis 0",),
    "diopiUpsampleNearestBackward": ("grad_output axis 2", "grad_output axis 3"),
}
"""The axes along which PyTorch's functions on the CPU exceed the budget with 70,001 elements, by function."""

UNREPEATED_AXES = {
    "diopiChamferDistanceBackwardMmcv": ("xyz1 axis 1", "xyz2 axis 1"),
    "diopiTokenAttentionInference": ("q axis 2",),
    "diopiUpsampleLinearBackward": ("grad_output axis 2",),
}
"""The axes that are summed, and whose values must not repeat: equal rounding errors would add up, not average out."""

SLOW_ELEMENTWISE = frozenset({"diopiMaxPool1dBackward"})
"""Functions without cases of 2^24 + 3 elements: `jax_cpu` takes minutes, because it searches each window."""

FAMILIES_WITH_SIZES = ("attention", "llm", "lmdeploy", "mmcv")
"""The beginnings of the names of families whose functions take sizes of tensors as numbers."""


class UnsuitableError(Exception):
    """A size that can't be replaced; the text is the reason."""


def find_sweep(function: str) -> sweep.Sweep:
    """Return the size sweep of a function."""
    prototype = lookup(function)
    if prototype.guarantee == "random":
        return sweep.Sweep(reason=RANDOM_REASON)
    cases = suitable_cases(function)
    if not cases:
        has_tensors = any(_rank_of(case) for case in select_cases(function, "full"))
        return sweep.Sweep(reason=NOT_SUITABLE_REASON if has_tensors else NO_TENSORS_REASON)
    draw_case_with_zeros(prototype, cases[0])  # imports the reference, so that its import is not measured
    reasons: Counter[str] = Counter()
    rank = usual_rank(cases)
    sweep_sizes = _find_sizes(prototype, [case for case in cases if _rank_of(case) == rank], reasons)
    sweep_sizes = sweep_sizes or _find_sizes(prototype, [case for case in cases if _rank_of(case) != rank], reasons)
    is_form = prototype.base != prototype.name
    elementwise = [] if is_form or function in SLOW_ELEMENTWISE else _find_elementwise(prototype)
    if not sweep_sizes and not elementwise:
        return sweep.Sweep(reason="; ".join(text for text, _ in reasons.most_common()) or ONE_ELEMENT_REASON)
    sizes = _select_derivations(sweep_sizes)
    return sweep.Sweep(sizes=sizes[:1] if is_form else sizes, elementwise=elementwise)


def _find_sizes(prototype: Prototype, cases: Sequence[Case], reasons: Counter[str]) -> list[sweep.SweepSize]:
    """Return the sizes that can be long, one for each set of axes, and count in `reasons` why other sizes cannot."""
    sizes: dict[frozenset[str], sweep.SweepSize] = {}
    for case in cases[:MAX_CASES]:
        for derivation in _candidates(case):
            if takes_sizes(prototype) and has_number(case, derivation.size):
                reasons[NUMBER_REASON] += 1
                continue
            if derivation.axes[0] in INACCURATE_AXES.get(prototype.name, ()):
                reasons[INACCURATE_REASON] += 1
                continue
            key = frozenset(derivation.axes)
            if key not in sizes:
                try:
                    sizes[key] = _validate(prototype, case, derivation)
                except UnsuitableError as error:
                    reasons[str(error)] += 1
    return list(sizes.values())


def suitable_cases(function: str) -> list[Case]:
    """Return the small cases in the leading type whose first tensor has few axes, in order of size; none is resized."""
    derived = {derivation.label for derivation in resized.resizings().get(function, ())}
    cases = [case for case in select_cases(function, "full") if case.label.partition("-")[2] not in derived]
    cases = [case for case in cases if _is_suitable(case) and 0 < _rank_of(case) <= MAX_RANK]
    return sorted(cases, key=_count_elements)


def usual_rank(cases: Sequence[Case]) -> int:
    """Return the most frequent number of axes of the first tensor; more than one axis is preferred."""
    ranks = Counter(map(_rank_of, cases))
    return max(ranks, key=lambda rank: (rank > 1, ranks[rank], rank))


def _is_suitable(case: Case) -> bool:
    """Return whether a case is basic, has inexact results and only contiguous tensors."""
    return case.case_class is CaseClass.basic and not case.exact and all(_is_plain(spec) for _, spec in case.tensors)


def _find_elementwise(prototype: Prototype) -> list[str]:
    """Return the labels of element-wise cases: one in the leading type and, if it is another type, one in int32."""
    if not prototype.dtypes:
        return []
    leading = leading_dtype(prototype.dtypes)
    labels = []
    for dtype in dict.fromkeys((leading, Dtype.int32)):
        cases = (case for case in select_cases(prototype.name, "full") if case.dtype is dtype and _is_plain_case(case))
        labels += [case.label for case in cases if _is_elementwise(prototype, case)][:1]
    return labels


def _is_plain_case(case: Case) -> bool:
    """Return whether a case has ordinary values, in any element type, and only contiguous tensors."""
    is_ordinary = case.case_class in (CaseClass.basic, CaseClass.types) and not case.exact
    return is_ordinary and all(_is_plain(spec) for _, spec in case.tensors)


def _is_elementwise(prototype: Prototype, case: Case) -> bool:
    """Return whether results of repeated arguments are the repeated results, so that elements are independent."""
    shapes = set(case.shapes)
    is_listed = any(isinstance(value, list) for value in case.arguments.values())
    if len(shapes) != 1 or () in shapes or is_listed or not math.prod(*shapes):
        return False
    longer = sweep.reshape(case, (2 * sweep.PERIOD + 17,), case.label)
    try:
        if not is_accepted(draw_case_with_zeros(prototype, replace(longer, period=0))):
            return False
        without_period = compute_baseline_case(prototype, replace(longer, period=0))
        repeated = compute_baseline_case(prototype, longer)
    except REJECTIONS:
        return False
    pairs = [
        (first, second)
        for name, value in without_period.expected.items()
        for first, second in zip(expected_arrays(value), expected_arrays(repeated.expected[name]), strict=True)
    ]
    return bool(pairs) and all(
        not first.needs_validator and np.array_equal(first.values, second.values, equal_nan=True)
        for first, second in pairs
    )


def _is_plain(spec: TensorSpec) -> bool:
    """Return whether a tensor is contiguous, so that its sizes can be replaced."""
    return spec.layout is contiguous


def _rank_of(case: Case) -> int:
    """Return the number of axes of the first tensor; 0 if there is none."""
    specs = [spec for _, spec in case.tensors]
    return len(specs[0].shape) if specs else 0


def _count_elements(case: Case) -> int:
    """Return the number of elements of all tensor arguments."""
    return sum(map(math.prod, case.shapes))


def has_number(case: Case, size: int) -> bool:
    """Return whether a case passes a size as a number, too, so that it can't be replaced in the tensors only."""
    return any(type(value) is int and value == size for value in case.arguments.values())


def takes_sizes(prototype: Prototype) -> bool:
    """Return whether the functions of the prototype's family take sizes of tensors as numbers."""
    return prototype.family.startswith(FAMILIES_WITH_SIZES)


def _candidates(case: Case) -> Iterator[sweep.SweepSize]:
    """Yield each size of a case that can be replaced, with the axes that have it.

    If an attribute repeats sizes and contains this one, a first candidate replaces it in attributes, too.
    """
    places: dict[int, list[str]] = {}
    for name, spec in case.tensors:
        for axis, size in enumerate(spec.shape):
            if size >= MIN_SIZE:
                places.setdefault(size, []).append(f"{name.lstrip('_')} axis {axis}")
    for size, axes in places.items():
        is_listed = any(resizing.repeats_sizes(value, case) and size in value for value in case.arguments.values())
        for attributes in (True, False) if is_listed else (False,):
            yield sweep.SweepSize(base=case.label, size=size, axes=list(dict.fromkeys(axes)), attributes=attributes)


@final
@dataclass(frozen=True, kw_only=True)
class _Cost:
    """The cost of a call with one of the probe sizes.

    Attributes:
        elements: the number of elements of all tensors.
        result_elements: the number of elements of the largest result.
        seconds: the CPU time of drawing the arguments and of the reference.
        has_ordinary_results: whether all results are numbers of the element type under test.
    """

    elements: int
    result_elements: int
    seconds: float
    has_ordinary_results: bool


def _measure(prototype: Prototype, case: Case) -> _Cost:
    """Return the cost of a call; raise UnsuitableError if the reference rejects it."""
    start = time.process_time()
    try:
        computed = draw_case_with_zeros(prototype, case)
    except REJECTIONS as error:
        raise UnsuitableError(REJECTED_REASON) from error
    arguments = [tensor.values.size for value in computed.arguments.values() for tensor in tensors_in(value)]
    results = [entry for value in computed.expected.values() for entry in expected_arrays(value)]
    return _Cost(
        elements=sum(arguments) + sum(entry.values.size for entry in results),
        result_elements=max((entry.values.size for entry in results), default=0),
        seconds=time.process_time() - start,
        has_ordinary_results=all(entry.dtype is case.dtype and not entry.needs_validator for entry in results),
    )


def _validate(prototype: Prototype, case: Case, derivation: sweep.SweepSize) -> sweep.SweepSize:
    """Return the derivation with `repeats` and `large_size` set; raise UnsuitableError if it is invalid or costly."""
    limit = MAX_ELEMENTS * PROBE_SIZES[0] / sweep.LONG_SIZE
    small_case, large_case = (sweep.lengthen(case, derivation, size, case.label) for size in PROBE_SIZES)
    if _count_elements(small_case) > limit:
        raise UnsuitableError(TOO_MANY_REASON)
    small_result = _measure(prototype, small_case)
    if small_result.elements > limit:
        raise UnsuitableError(TOO_MANY_REASON)
    if not is_accepted(draw_case_with_zeros(prototype, small_case)):
        raise UnsuitableError(REJECTED_REASON)
    if small_result.seconds * PROBE_SIZES[1] / PROBE_SIZES[0] > 2 * MAX_SECONDS:
        raise UnsuitableError(TOO_SLOW_REASON)
    large = _measure(prototype, large_case)
    if large.elements <= small_result.elements:
        raise UnsuitableError(UNRELATED_REASON)
    if large.seconds > MAX_SECONDS:
        raise UnsuitableError(TOO_SLOW_REASON)
    slope = (large.elements - small_result.elements) / (PROBE_SIZES[1] - PROBE_SIZES[0])
    if slope * sweep.LONG_SIZE > MAX_ELEMENTS:
        raise UnsuitableError(TOO_MANY_REASON)
    is_determined = large.has_ordinary_results and prototype.guarantee in {"exact", "rounded"}
    averages_out = derivation.axes[0] not in UNREPEATED_AXES.get(prototype.name, ())
    can_repeat = is_determined and averages_out and _can_repeat(prototype, large_case)
    derivation = replace(derivation, repeats=can_repeat)
    result_slope = (large.result_elements - small_result.result_elements) / (PROBE_SIZES[1] - PROBE_SIZES[0])
    if result_slope < 1 or not derivation.repeats:
        return derivation
    large_size = math.ceil(sweep.MIN_ELEMENTS / result_slope) | 1
    is_cheap = large.elements + slope * large_size <= MAX_MANY_ELEMENTS and large.seconds < MAX_SECONDS / 4
    return replace(derivation, large_size=large_size) if is_cheap else derivation


@cache
def _vendor() -> tuple[BaseVendor, Device]:
    """Return the built-in vendor and its open device."""
    vendor = find_vendor("jax_cpu")
    return vendor, vendor.open_device()


def is_accepted(case: BaselineCase) -> bool:
    """Return whether the built-in vendor, which checks more shapes than the references, accepts the call."""
    vendor, device = _vendor()
    try:
        with Call(vendor, device, case) as call:
            call.run()
    except RejectedCallError:
        return False
    return True


def _can_repeat(prototype: Prototype, case: Case) -> bool:
    """Return whether the reference accepts the case with repeated values; domains of boxes, for instance, reject it."""
    try:
        draw_case_with_zeros(prototype, sweep.repeat_values(case))
    except REJECTIONS:
        return False
    return True


def _select_derivations(candidates: Sequence[sweep.SweepSize]) -> list[sweep.SweepSize]:
    """Return one derivation per first axis, those with the fewest axes first; only the first large size is kept."""
    selected: dict[str, sweep.SweepSize] = {}
    has_large_size = False
    for derivation in sorted(candidates, key=lambda derivation: len(derivation.axes)):
        if derivation.axes[0] not in selected:
            selected[derivation.axes[0]] = replace(derivation, large_size=0) if has_large_size else derivation
            has_large_size = has_large_size or derivation.large_size > 0
    return list(selected.values())


PAGE_HEAD = """\
# Sizes

This page is for people who want to know with which sizes the suite tests a function. Afterwards you know which axes are
longer than 65,536 elements in cases of level `large`, and which functions are tested with millions of elements.

The *size sweep* is a group of cases with one long axis or with many elements. {count} functions have such cases. Each
of them is derived from a small case. For example, if a small case has tensors of shapes (7, 5) and (5,), a derived case
has tensors of shapes (7, {long}) and ({long},). The label of a case shows what is large:

- `float32-long-input-axis-0`: axis 0 of `input` has {long:,} elements.
- `float32-many-input-axis-0`: axis 0 of `input` is so long that a result has at least 2^20 + 3 elements.
- `float32-{many}-elements`: all tensors of an element-wise function have 2^24 + 3 elements. A counter in float32
  stops at 2^24. If the function accepts int32, there is also a case in int32.
- `float32-storage-huge`: a tensor of an element-wise function has a storage of more than 2^31 bytes. These cases
  run only with [`--huge`](baseline.md#level-large).

Most inputs repeat {period} values, so that the stored results are small. {period} is a prime number, so a kernel
whose offset wraps at a power of two reads a wrong value. For an element-wise function with 2^24 + 3 elements, the
reference computes only one period of {period} elements, and the baseline file stores only this period. In two
situations, the inputs do not repeat values:

- The order of equal elements matters, as it does in a sort.
- The function computes a sum. With equal values, the rounding errors would add up instead of averaging out.

Some functions add the elements along an axis. If the axis is long, an implementation that adds the elements one after
the other exceeds the error budget. PyTorch's CPU kernels do this for the following axes, so the size sweep leaves them
out:

{inaccurate}

An axis is made long only if the function accepts the longer axis. The number of elements and the time of the reference
must also grow at most linearly with the size. In-place and scalar forms have only one long axis. The file
`diopi_test/cases/size_sweep.json` lists the long axes. `python -m diopi_test.quality.size_sweep FUNCTION` searches for
the long axes of a function again and writes this page.

The column *long axes* lists the long axes of each function. A semicolon separates different cases. A comma separates
axes that are long in the same case. The column *elements* shows how many elements the
results of the largest cases have at least.

| function | long axes | elements |
| --- | --- | --- |
"""

FUNCTIONS_WITHOUT_SWEEP = """
## Functions without size sweep

{count} functions have no cases of the size sweep. The table lists the reasons why the axes that were tried can't be
long, the most frequent reason first. [Level large](baseline.md#level-large) contains other cases of these functions.

| function | reason |
| --- | --- |
{rows}
"""


def render_page() -> str:
    """Return the page of the documentation about the size sweep."""
    swept_functions = {function: entry for function, entry in sorted(sweep.sweeps().items()) if not entry.reason}
    lines = [_table_row(function, entry) for function, entry in swept_functions.items()]
    not_swept = [(name, sweep.sweeps()[name].reason) for name in prototypes() if name not in swept_functions]
    reasons = [f"| `{name}` | {reason} |" for name, reason in not_swept]
    note = FUNCTIONS_WITHOUT_SWEEP.format(count=len(not_swept), rows="\n".join(reasons))
    inaccurate = "\n".join(f"- `{function}`: {', '.join(axes)}" for function, axes in INACCURATE_AXES.items())
    head = PAGE_HEAD.format(
        long=sweep.LONG_SIZE,
        period=sweep.PERIOD,
        many=sweep.MANY_SHAPE[0],
        count=len(swept_functions),
        inaccurate=inaccurate,
    )
    return head + "\n".join(lines) + "\n" + note


def _table_row(function: str, entry: sweep.Sweep) -> str:
    """Return the row of a function in the table."""
    axes = "; ".join(", ".join(size.axes) for size in entry.sizes)
    has_many = any(size.large_size for size in entry.sizes)
    elements = [text for text, has_it in (("2^20 + 3", has_many), ("2^24 + 3", entry.elementwise)) if has_it]
    return f"| `{function}` | {axes} | {', '.join(elements)} |"


def main(functions: Sequence[str]) -> None:
    """Find the size sweeps of these functions, write them to the file, and write the page.

    The current folder is the root folder of a clone.

    Args:
        functions: the names of the functions; `all` for all of them, none to write only the page.
    """
    stored = json.loads(sweep.FILE.read_text("utf-8"))
    for function in prototypes() if list(functions) == ["all"] else functions:
        stored[function] = _to_json(find_sweep(function))
    lines = [f"{json.dumps(name)}: {json.dumps(stored[name])}" for name in prototypes() if name in stored]
    sweep.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    sweep.sweeps.cache_clear()
    PAGE.write_text(render_page(), "utf-8")


def _to_json(record: sweep.Sweep | sweep.SweepSize) -> dict[str, Any]:
    """Return the attributes of a record that differ from their defaults."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, sweep.Sweep):
        values["sizes"] = [_to_json(size) for size in record.sizes]
    return {name: value for name, value in values.items() if value}


if __name__ == "__main__":
    main(sys.argv[1:])
