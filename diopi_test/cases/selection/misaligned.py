"""A case with misaligned tensors for every function whose own cases have none.

A misaligned tensor is contiguous, but begins one element after the beginning of its storage, so that its address is no
multiple of 16 bytes. A wrong kernel may read or write whole vectors from the aligned address below the first element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.layouts import contiguous, strides
from diopi_test.cases.selection.open_calls import reason_open

LABEL = "misaligned"
"""The end of the labels of these cases."""


def misaligned_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield at most one case: a copy of a smoke case with misaligned tensors.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The case, in float32 if possible. None if an own case has the label `misaligned`, no smoke case has contiguous
        tensors with elements, or results are random.
    """
    if prototype.guarantee == "random" or any(case.label.endswith(LABEL) for case in cases):
        return
    moved = [_with_misaligned_tensors(case) for case in cases if case.smoke and _can_be_moved(case)]
    usual = [case for case in moved if not reason_open(prototype, case)]
    yield from [*(case for case in usual if case.dtype is Dtype.float32), *usual][:1]


def _with_misaligned_tensors(case: Case) -> Case:
    """Return a case whose contiguous tensors are misaligned."""
    arguments = case.map_tensors(lambda _, spec: _move(spec))
    return replace(case, label=f"{case.dtype.name}-{LABEL}", arguments=arguments, smoke=False)


def _can_be_moved(case: Case) -> bool:
    """Return whether a vendor must pass the case, and one of its tensors is contiguous and has elements."""
    specs = (spec for name, spec in case.tensors if not name.startswith("_"))
    return case.case_class.is_demanded and any(spec.has_layout(contiguous) and 0 not in spec.shape for spec in specs)


def _move(spec: TensorSpec) -> TensorSpec:
    """Return a tensor that begins one element after its storage if it is contiguous and has elements."""
    if not spec.has_layout(contiguous) or 0 in spec.shape:
        return spec
    return replace(spec, layout=strides(*contiguous(spec.shape).strides, offset=1))
