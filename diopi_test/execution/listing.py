"""Which cases a baseline file gives: those stored in it, and those made of them."""

from __future__ import annotations

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.manifest import ListedCase
from diopi_test.cases.model import CaseClass
from diopi_test.cases.selection import LEVELS
from diopi_test.execution.aliased import aliased_labels
from diopi_test.execution.ignored import ignored_labels
from diopi_test.execution.negative_cases import negative_labels


def list_cases(file: IndexView) -> tuple[ListedCase, ...]:
    """Return the cases stored in a file, in order, then those of ignored arguments and in-place use, then refusals.

    Refusals are last: of a vendor that crashes in them the cases that it must have right are run before. Of a level
    whose inputs are drawn nothing more is made: what it has in common with smaller cases is tried on these.
    """
    stored = list_stored_cases(file)
    if file.level in LEVELS and LEVELS[file.level].is_drawn:
        return stored
    prototype, in_order = lookup(file.function), list(file.cases(first=Dtype.float32))
    return (
        *stored,
        *(
            ListedCase(label, file.dtype(base), _class_of_variant(file, base), base)
            for label, base in (*ignored_labels(prototype, in_order), *aliased_labels(prototype, in_order))
        ),
        *(
            ListedCase(label, class_=CaseClass.negative, base=base)
            for label, base in negative_labels(prototype, in_order)
        ),
    )


def list_stored_cases(file: IndexView) -> tuple[ListedCase, ...]:
    """Return the cases that are stored in a file, and none that are made of them."""
    return tuple(ListedCase(label, file.dtype(label), file.case_class(label)) for label in file.labels)


def _class_of_variant(file: IndexView, base: str) -> CaseClass:
    """Return the class of a call with an ignored argument: that of its base, where that is not demanded either."""
    return CaseClass.open if file.case_class(base) is CaseClass.open else CaseClass.callers
