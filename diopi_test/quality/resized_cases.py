"""Derive cases with rows of 16 elements or axes of one element from small cases, and write `resized_cases.json`.

A *resizing* replaces some sizes of a case in all of its tensors: if 5 becomes 16, shape (7, 5) becomes (7, 16). The
search replaces sizes of small cases by others with which the reference and the built-in vendor accept the call.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases import resized, resizing
from diopi_test.cases.case import Case, registered_cases
from diopi_test.oracle.evaluation import draw_case_with_zeros
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.size_sweep import (
    REJECTIONS,
    has_number,
    is_accepted,
    suitable_cases,
    takes_sizes,
    usual_rank,
)

Attributes = resizing.ResizedAttributes

VECTOR = 16
"""The number of elements that rows should be a multiple of."""

PREFERRED_SIZES: Mapping[str, tuple[Sequence[int], Sequence[int]]] = {
    resized.ROWS_OF_16: ((16, 32, 48), ()),
    resized.ROWS_OF_128: ((128, 64, 32, 16), (16, 32, 48)),
    resized.CHANNELS_OF_16: ((16, 32, 48), ()),
}
"""The new sizes of the aligned axes and of the other axes by kind of case, in the order of their use."""

MAX_ELEMENTS = 2**15
"""The maximum number of elements of all tensors of a case."""

MAX_CASES = (8, 24)
"""The numbers of small cases of a function whose sizes are replaced: at first, and if none of them is perfect."""

PERFECT = 2
"""The first part of the score of a case whose first tensor and first result have an aligned axis."""

WITHOUT_ROWS_OF_16: Mapping[str, str] = {
    "diopiAmpUpdateScaleInp": "all tensors have one element",
    "diopiIou3dNms3dMmcv": "a box has 7 numbers, and the results have one element per box that is kept",
    "diopiIou3dNms3dNormalMmcv": "a box has 7 numbers, and the results have one element per box that is kept",
    "diopiKnnMmcv": "a point has 3 coordinates, and the results have as many columns as neighbors",
    "diopiThreeNnMmcv": "a point has 3 coordinates, and the results have 3 columns",
    "diopiDynamicVoxelizeMmcv": "the first 3 columns of points are coordinates, and a voxel has 3 coordinates",
    "diopiMinAreaPolygonsMmcv": "a set of points has 18 numbers, and a polygon has 8",
    "diopiActiveRotatedFilterMmcv": "a kernel has 1 or 3 columns",
    "diopiActiveRotatedFilterBackwardMmcv": "a kernel has 1 or 3 columns",
    "diopiConvexGiouMmcv": "a set of points has 18 numbers, a polygon has 8, and a result has 19",
}
"""The functions that have no case with a tensor whose rows have a multiple of 16 elements, and the reason."""

MIN_SIZE = 2
"""The smallest size that can be replaced."""


@final
@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A resizing that the reference accepts.

    Attributes:
        derivation: the resizing.
        score: how well it serves its purpose.
        case: the case with its data and zeros as results.
    """

    derivation: resized.SizeReplacement
    score: tuple[float, ...]
    case: BaselineCase


def find_resizings(function: str) -> list[resized.SizeReplacement]:
    """Return the resizings of a function: for rows of 16 and of 128 elements, and for axes of one element."""
    prototype = lookup(function)
    suitable = suitable_cases(function)  # also those that are derived from others
    registered = {case.label for case in registered_cases(prototype)}
    cases = [case for case in suitable if case.label in registered]
    if prototype.guarantee == "random" or not cases:
        return []
    rank = usual_rank(cases)
    ordered = sorted(cases, key=lambda case: (len(case.shapes[0]) != rank, not case.smoke))
    kinds = [kind for kind in PREFERRED_SIZES if kind != resized.CHANNELS_OF_16 or not prototype.elementwise]
    resizings = [_find_aligned(prototype, ordered, kind) for kind in kinds]
    return [derivation for derivation in resizings if derivation is not None] + _one_element_resizings(
        prototype, ordered
    )


def _find_aligned(prototype: Prototype, cases: Sequence[Case], kind: str) -> resized.SizeReplacement | None:
    """Return the best resizing for rows or channels of a multiple of 16 elements; None if there is none."""
    best: _Candidate | None = None
    first, last = MAX_CASES
    for part in (cases[:first], *([case] for case in cases[first:last])):
        candidate = _best_accepted(_aligned_candidates(prototype, part, kind))
        if candidate is not None and (best is None or candidate.score > best.score):
            best = candidate
        if best is not None and best.score[0] == PERFECT:
            break
    return best and best.derivation


def _best_accepted(candidates: Iterable[_Candidate]) -> _Candidate | None:
    """Return the best candidate that the built-in vendor accepts; None if there is none with an aligned axis."""
    for candidate in sorted(candidates, key=lambda candidate: candidate.score, reverse=True):
        if candidate.score[0] > 0 and is_accepted(candidate.case):
            return candidate
    return None


def _aligned_candidates(prototype: Prototype, cases: Sequence[Case], kind: str) -> Iterator[_Candidate]:
    """Yield resizings for rows of a multiple of 16 elements: of each case, one per choice of attributes."""
    for case in cases:
        for attributes in _useful_attributes(prototype, case):
            candidate = _align_greedily(prototype, case, kind, attributes)
            if candidate is None:
                candidate = _align_by_factor(prototype, case, kind, attributes)
            if candidate is not None:
                yield candidate


def _useful_attributes(prototype: Prototype, case: Case) -> list[Attributes]:
    """Return the choices of attributes in which a resizing may have to replace sizes, too."""
    sizes = {size for shape in case.shapes for size in shape if size >= MIN_SIZE}
    if takes_sizes(prototype) and any(has_number(case, size) for size in sizes):
        return [Attributes.numbers]
    attributes = [value for value in case.arguments.values() if isinstance(value, int | tuple)]
    numbers = [n for value in attributes for n in (value if isinstance(value, tuple) else [value]) if type(n) is int]
    return list(Attributes) if sizes & set(numbers) else [Attributes.none]


def _align_greedily(prototype: Prototype, case: Case, kind: str, attributes: Attributes) -> _Candidate | None:
    """Return a resizing in which as many sizes as possible are multiples of 16; None if no size can be replaced.

    Each size in turn is replaced, and the replacement is kept if it improves the score.

    Args:
        prototype: the prototype of the function.
        case: the case whose sizes are replaced.
        kind: a kind of `PREFERRED_SIZES`.
        attributes: the attributes in which sizes are replaced, too.
    """
    best: _Candidate | None = None
    preferred, other_targets = map(list, PREFERRED_SIZES[kind])
    for size, is_preferred in _replaceable_sizes(case, kind):
        targets = preferred if is_preferred else other_targets
        if not targets:
            continue
        sizes = {**(best.derivation.sizes if best else {}), size: targets[0]}
        derivation = resized.SizeReplacement(label=kind, base=case.label, sizes=sizes, attributes=attributes)
        computed = _draw(prototype, case, derivation)
        if computed is None:
            continue
        candidate = _Candidate(derivation=derivation, score=_alignment(computed, kind), case=computed)
        if best is None or candidate.score > best.score:
            best = candidate
            targets.pop(0)
    return best


def _align_by_factor(prototype: Prototype, case: Case, kind: str, attributes: Attributes) -> _Candidate | None:
    """Return a resizing in which all sizes of the axes to align are multiplied by 16, which preserves their ratios.

    Returns:
        The resizing; None if the case has no such axes, or if the resized case can't be computed.
    """
    sizes = {size: size * VECTOR for size, is_preferred in _replaceable_sizes(case, kind) if is_preferred}
    derivation = resized.SizeReplacement(label=kind, base=case.label, sizes=sizes, attributes=attributes)
    computed = _draw(prototype, case, derivation) if sizes else None
    return (
        None if computed is None else _Candidate(derivation=derivation, score=_alignment(computed, kind), case=computed)
    )


def _aligned_axis(shape: tuple[int, ...], kind: str) -> int | None:
    """Return the axis of a tensor that a kind of case aligns: the last axis, or axis 1 for the channels.

    Returns:
        The axis; None for a tensor without axes, or for the channels of a tensor with less than three axes.
    """
    if kind == resized.CHANNELS_OF_16:
        return 1 if len(shape) > 2 else None
    return len(shape) - 1 if shape else None


def _replaceable_sizes(case: Case, kind: str) -> list[tuple[int, bool]]:
    """Return the sizes that can be replaced, each with True if an axis to align has it, and with False otherwise.

    Sizes of axes to align come first. The other sizes follow, the most frequent one first, if the kind replaces them.
    """
    shapes = case.shapes
    aligned = [(shape[axis]) for shape in shapes if (axis := _aligned_axis(shape, kind)) is not None]
    if kind == resized.CHANNELS_OF_16 and aligned:
        aligned += [shape[0] for shape in shapes[1:] if shape]  # the channels of weights and of numbers per channel
    preferred = list(dict.fromkeys(size for size in aligned if size >= MIN_SIZE))
    counts = Counter(size for shape in shapes for size in set(shape) if size >= MIN_SIZE and size not in preferred)
    remaining = [size for size, _ in counts.most_common()] if PREFERRED_SIZES[kind][1] else []
    return [(size, True) for size in preferred] + [(size, False) for size in remaining]


def _alignment(case: BaselineCase, kind: str) -> tuple[float, ...]:
    """Return the score of a case of a kind in which an axis should be a multiple of 16.

    Returns:
        Four numbers, the first ones more important: how many of the first tensor and the first result have such an
        axis, and the share of all tensors that have it. They are followed by whether the first tensor has several axes,
        and by the share of other axes that have such a size, if the kind replaces them.
    """
    arguments, results = _argument_shapes(case), _result_shapes(case)
    shapes = [shape for shape in (*arguments, *results) if shape]
    first = [*arguments[:1], *results[:1]]
    axes = [size for shape in shapes for size in shape] if kind != resized.ROWS_OF_16 else []
    return (
        float(sum(_is_aligned(shape, kind) for shape in first)),
        sum(_is_aligned(shape, kind) for shape in shapes) / max(len(shapes), 1),
        float(min((len(shape) for shape in arguments[:1]), default=0) > 1),
        sum(size % VECTOR == 0 for size in axes) / max(len(axes), 1),
    )


def _is_aligned(shape: tuple[int, ...], kind: str) -> bool:
    """Return whether the axis of a tensor that a kind of case aligns has a multiple of 16 elements."""
    axis = _aligned_axis(shape, kind)
    return axis is not None and shape[axis] > 0 and shape[axis] % VECTOR == 0


def _one_element_resizings(prototype: Prototype, cases: Sequence[Case]) -> list[resized.SizeReplacement]:
    """Return the resizings of the first suitable case in which one axis has one element.

    The last axes of tensors are replaced in all functions. Other axes are replaced only in functions that combine
    elements and are not in-place or scalar forms.
    """
    combines = prototype.guarantee == "rounded" and not prototype.elementwise and prototype.base == prototype.name
    for case in cases[: MAX_CASES[1]]:
        replacements: dict[str, resized.SizeReplacement] = {}
        for name, axis, size, is_last in _named_axes(case):
            label = f"one-{name}-axis-{axis}"
            is_new = label not in replacements  # tensors of a list have the same name
            if is_new and (is_last or combines):
                derivation = _one_element_resizing(prototype, case, label, size)
                replacements.update({} if derivation is None else {label: derivation})
        if replacements:
            return list(replacements.values())
    return []


def _one_element_resizing(prototype: Prototype, case: Case, label: str, size: int) -> resized.SizeReplacement | None:
    """Return the resizing that replaces a size by 1; None if the call is then invalid or has only one element."""
    for attributes in _useful_attributes(prototype, case):
        derivation = resized.SizeReplacement(label=label, base=case.label, sizes={size: 1}, attributes=attributes)
        computed = _draw(prototype, case, derivation)
        if computed is not None and _has_several_elements(computed) and is_accepted(computed):
            return derivation
    return None


def _has_several_elements(case: BaselineCase) -> bool:
    """Return whether a result and an argument have more than one element."""
    return all(
        any(math.prod(shape) > 1 for shape in shapes) for shapes in (_argument_shapes(case), _result_shapes(case))
    )


def _named_axes(case: Case) -> Iterator[tuple[str, int, int, bool]]:
    """Yield for each size of a case an axis that has it: the tensor's name, the axis, the size, whether it is the last.

    An axis that is the last one of a tensor is preferred to others of the same size.
    """
    axes = [
        (name.lstrip("_"), axis, size, axis == len(spec.shape) - 1)
        for name, spec in case.tensors
        for axis, size in enumerate(spec.shape)
        if size >= MIN_SIZE
    ]
    chosen: dict[int, tuple[str, int, int, bool]] = {}
    for entry in sorted(axes, key=lambda entry: not entry[3]):
        chosen.setdefault(entry[2], entry)
    yield from chosen.values()


def _draw(prototype: Prototype, case: Case, derivation: resized.SizeReplacement) -> BaselineCase | None:
    """Return the resized case with its data; None if the reference rejects it or it has too many elements."""
    resized_case = resized.resize(case, derivation)
    if sum(map(math.prod, resized_case.shapes)) > MAX_ELEMENTS:
        return None
    try:
        computed = draw_case_with_zeros(prototype, resized_case)
    except (*REJECTIONS, ZeroDivisionError):
        return None
    elements = sum(map(math.prod, (*_argument_shapes(computed), *_result_shapes(computed))))
    return computed if elements <= MAX_ELEMENTS else None


def _argument_shapes(case: BaselineCase) -> list[tuple[int, ...]]:
    """Return the shapes of the tensors that are passed to the function."""
    return [tensor.values.shape for value in case.arguments.values() for tensor in tensors_in(value)]


def _result_shapes(case: BaselineCase) -> list[tuple[int, ...]]:
    """Return the shapes of the results."""
    return [entry.values.shape for value in case.expected.values() for entry in expected_arrays(value)]


def main(functions: Sequence[str]) -> None:
    """Find the resizings of these functions and write them to the file.

    Args:
        functions: the names of the functions; `all` for all of them.
    """
    stored = json.loads(resized.FILE.read_text("utf-8")) if resized.FILE.exists() else {}
    for function in prototypes() if list(functions) == ["all"] else functions:
        stored[function] = [_to_json(derivation) for derivation in find_resizings(function)]
    lines = [f"{json.dumps(name)}: {json.dumps(stored[name])}" for name in prototypes() if stored.get(name)]
    resized.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    resized.resizings.cache_clear()


def _to_json(derivation: resized.SizeReplacement) -> dict[str, Any]:
    """Return the attributes of a resizing that differ from their defaults."""
    values = {"label": derivation.label, "base": derivation.base, "sizes": dict(derivation.sizes)}
    return values if derivation.attributes is Attributes.none else {**values, "attributes": derivation.attributes}


if __name__ == "__main__":
    main(sys.argv[1:])
