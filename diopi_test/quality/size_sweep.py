"""Find the axes of every function that can be long, and write `cases/size_sweep.json` and the table of docs/sizes.md.

A size of a small case is replaced by larger ones in all tensors that have it. It is a candidate for the size sweep if
the reference accepts the call, and if its results and its time grow at most linearly.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import final

from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases import sweep
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import draw_case_with_zeros
from diopi_test.oracle.records import expected_arrays, tensors_in

PAGE = Path("docs/sizes.md")
"""The page of the documentation, in the root folder of a clone."""

PROBE_SIZES = (509, 4_093)
"""The sizes with which the reference is tried."""

MAX_ELEMENTS = 2**21
"""The maximum number of elements of all tensors of a case with a long axis."""

MAX_MANY_ELEMENTS = 2**22 + 2**20
"""The maximum number of elements of all tensors of a case with many elements."""

REJECTIONS = (ValueError, IndexError, OverflowError, MemoryError, TypeError, AssertionError, KeyError)
"""The exceptions of references and domains that mean that the call is invalid with another size."""

MAX_SECONDS = 0.12
"""The maximum CPU time of the reference and of drawing its arguments for the larger of the sizes."""

MAX_CASES = 12
"""The maximum number of small cases of a function whose sizes are replaced."""

MAX_RANK = 4
"""The maximum number of axes of the first tensor of a case."""

MIN_SIZE = 2
"""The smallest size that can be replaced."""


def find_derivations(function: str) -> list[sweep.SweepSize]:
    """Return the derivations of the size sweep cases of a function."""
    prototype = lookup(function)
    found: dict[frozenset[str], sweep.SweepSize] = {}
    for case in _suitable_cases(function):
        for derivation in _candidates(case):
            key = frozenset(derivation.axes)
            if key not in found and (valid := _validate(prototype, case, derivation)) is not None:
                found[key] = valid
    return _select_derivations(list(found.values()))


def _suitable_cases(function: str) -> list[Case]:
    """Return the small cases in the leading type, small ones first, whose first tensor has the most frequent rank.

    A rank above 1 is preferred.
    """
    cases = [
        case
        for case in select_cases(function, "full")
        if case.case_class is CaseClass.basic and not case.exact and all(map(_is_plain, _tensors_of(case)))
    ]
    ranks = Counter(rank for case in cases if 0 < (rank := _rank_of(case)) <= MAX_RANK)
    if not ranks:
        return []
    rank = max(ranks, key=lambda rank: (rank > 1, ranks[rank], rank))
    return sorted((case for case in cases if _rank_of(case) == rank), key=_count_elements)[:MAX_CASES]


def _tensors_of(case: Case) -> list[TensorSpec]:
    """Return the tensor arguments of a case."""
    return [spec for value in case.arguments.values() for spec in TensorSpec.all_in(value)]


def _is_plain(spec: TensorSpec) -> bool:
    """Return whether a tensor is contiguous, so that its sizes can be replaced."""
    return spec.layout is contiguous


def _rank_of(case: Case) -> int:
    """Return the number of axes of the first tensor; 0 if there is none."""
    specs = _tensors_of(case)
    return len(specs[0].shape) if specs else 0


def _count_elements(case: Case) -> int:
    """Return the number of elements of all tensor arguments."""
    return sum(math.prod(spec.shape) for spec in _tensors_of(case))


def _candidates(case: Case) -> Iterator[sweep.SweepSize]:
    """Yield a derivation for each size of a case, with and without attributes."""
    places: dict[int, list[str]] = {}
    for name, value in case.arguments.items():
        for spec in TensorSpec.all_in(value):
            for axis, size in enumerate(spec.shape):
                if size >= MIN_SIZE:
                    places.setdefault(size, []).append(f"{name.lstrip('_')} axis {axis}")
    for size, axes in places.items():
        is_listed = any(sweep.repeats_sizes(value, case) and size in value for value in case.arguments.values())
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


def _measure(prototype: Prototype, case: Case) -> _Cost | None:
    """Return the cost of a call; None if the reference rejects it."""
    start = time.process_time()
    try:
        computed = draw_case_with_zeros(prototype, case)
    except REJECTIONS:
        return None
    arguments = [tensor.values.size for value in computed.arguments.values() for tensor in tensors_in(value)]
    results = [entry for value in computed.expected.values() for entry in expected_arrays(value)]
    return _Cost(
        elements=sum(arguments) + sum(entry.values.size for entry in results),
        result_elements=max((entry.values.size for entry in results), default=0),
        seconds=time.process_time() - start,
        has_ordinary_results=all(entry.dtype is case.dtype and not entry.needs_validator for entry in results),
    )


def _validate(prototype: Prototype, case: Case, derivation: sweep.SweepSize) -> sweep.SweepSize | None:
    """Return the derivation with the size for many elements; None if the call is invalid or costs too much."""
    small_case, large_case = (sweep.lengthen(case, derivation, size, case.label) for size in PROBE_SIZES)
    if _count_elements(small_case) > MAX_ELEMENTS * PROBE_SIZES[0] / sweep.LONG:
        return None
    small = _measure(prototype, small_case)
    if small is None or small.elements > MAX_ELEMENTS * PROBE_SIZES[0] / sweep.LONG:
        return None
    if small.seconds > MAX_SECONDS:
        return None
    large = _measure(prototype, large_case)
    if large is None or large.elements <= small.elements or large.seconds > MAX_SECONDS:
        return None
    slope = (large.elements - small.elements) / (PROBE_SIZES[1] - PROBE_SIZES[0])
    if slope * sweep.LONG > MAX_ELEMENTS:
        return None
    result_slope = (large.result_elements - small.result_elements) / (PROBE_SIZES[1] - PROBE_SIZES[0])
    if result_slope < 1 or not large.has_ordinary_results or prototype.guarantee not in {"exact", "rounded"}:
        return derivation
    large_size = math.ceil(sweep.MIN_ELEMENTS / result_slope) | 1
    is_cheap = large.elements + slope * large_size <= MAX_MANY_ELEMENTS and large.seconds < MAX_SECONDS / 4
    return replace(derivation, large_size=large_size) if is_cheap else derivation


def _select_derivations(found: Sequence[sweep.SweepSize]) -> list[sweep.SweepSize]:
    """Return the derivations with different labels, of which only one has many elements."""
    selected: dict[str, sweep.SweepSize] = {}
    has_large_size = False
    for derivation in sorted(found, key=lambda derivation: len(derivation.axes)):
        if derivation.axes[0] not in selected:
            selected[derivation.axes[0]] = replace(derivation, large_size=0) if has_large_size else derivation
            has_large_size = has_large_size or derivation.large_size > 0
    return list(selected.values())


PAGE_HEAD = """\
# Sizes

This page is for people who want to know with which sizes the suite tests a function. Afterwards you know which axes
of a function are longer than 65,536 in a case of level `large`.

The cases of the size sweep are small cases in which one size is replaced by a large one, in all tensors that have it:

- `float32-long-input-axis-0`: the axis has {long:,} elements.
- `float32-many-input-axis-0`: the axis is so long that a result has at least 2^20 + 3 elements. The inputs repeat
  {period} values, so that the results take little space. {period} is a prime number, so an offset that wraps at a
  power of two leads to another value.

The size must be valid, and the number of elements and the time of the reference must grow at most linearly. The file
`diopi_test/cases/size_sweep.json` lists the sizes. `python -m diopi_test.quality.size_sweep FUNCTION` finds the sizes
of a function again and writes this page.

| function | long axes | elements |
| --- | --- | --- |
"""

FUNCTIONS_WITHOUT_SWEEP = """
## Functions without size sweep

{count} functions have no cases of the size sweep. Either no axis of a small case can be long at a linear cost, or the
cases have not been derived yet. [Level large](baseline.md#level-large) has other cases of these functions:

{names}.
"""


def render_page() -> str:
    """Return the page of the documentation about the size sweep."""
    swept = {function: entries for function, entries in sweep.derivations().items() if entries}
    lines = [_table_row(function, entries) for function, entries in sorted(swept.items())]
    missing = [name for name in prototypes() if name not in swept]
    note = FUNCTIONS_WITHOUT_SWEEP.format(count=len(missing), names=", ".join(f"`{name}`" for name in missing))
    return PAGE_HEAD.format(long=sweep.LONG, period=sweep.PERIOD) + "\n".join(lines) + "\n" + note


def _table_row(function: str, entries: Sequence[sweep.SweepSize]) -> str:
    """Return the row of a function in the table."""
    axes = "; ".join(", ".join(entry.axes) for entry in entries)
    elements = "2^20 + 3 or more" if any(entry.large_size for entry in entries) else ""
    return f"| `{function}` | {axes} | {elements} |"


def main(functions: Sequence[str]) -> None:
    """Find the derivations of these functions, write them to the file, and write the page.

    The current folder is the root folder of a clone.

    Args:
        functions: the names of the functions; none to write only the page.
    """
    known = json.loads(sweep.FILE.read_text("utf-8"))
    for function in functions:
        known[function] = [asdict(derivation) for derivation in find_derivations(function)]
    lines = [f"{json.dumps(name)}: {json.dumps(entries)}" for name, entries in sorted(known.items()) if entries]
    sweep.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    sweep.derivations.cache_clear()
    PAGE.write_text(render_page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
