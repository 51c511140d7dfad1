"""List the cases of a baseline file: the stored cases, and the cases that are derived from them."""

from __future__ import annotations

from zlib import crc32

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.manifest import ListedCase
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import LEVELS
from diopi_test.execution.aliased import aliased_labels, needs_reference
from diopi_test.execution.ignored import ignored_labels
from diopi_test.execution.in_flight import chain_labels, suitable_labels
from diopi_test.execution.negative_cases import negative_labels
from diopi_test.execution.soak import soak_labels

SMOKE = "smoke"
"""The name of the level with a sample of the cases."""

SAMPLE_PERIOD = 64
"""At level smoke, one of this many functions has cases of aliased inputs and chains, which cost the most."""


def list_cases(file: IndexView) -> tuple[ListedCase, ...]:
    """Return the cases stored in a file, then the derived cases, and last the negative tests.

    The derived cases are calls with ignored arguments or shared memory, chains of calls in flight, and soak tests.
    Level `smoke` has no soak tests, and only a sample of the chains and of the cases of aliased inputs. Negative tests
    come last, so that a vendor that crashes in them has run all other cases before. No cases are derived at levels with
    generated inputs, because the smaller levels already test the same properties.
    """
    stored = list_stored_cases(file)
    if file.level in LEVELS and LEVELS[file.level].is_drawn:
        return stored
    prototype, in_order = lookup(file.function), list(file.cases(first=Dtype.float32))
    return (
        *stored,
        *(
            ListedCase(label=label, dtype=file.dtype(base), class_=_class_of_variant(file, base), base=base)
            for label, base in ignored_labels(prototype, in_order)
        ),
        *(
            ListedCase(label=label, dtype=file.dtype(base), class_=CaseClass.aliased, base=base)
            for label, base in aliased_labels(prototype, in_order)
            if file.level != SMOKE or not needs_reference(prototype, label) or _is_in_sample(file.function)
        ),
        *(
            ListedCase(label=label, class_=CaseClass.concurrent, base=base)
            for label, base in chain_labels(file.function, suitable_labels(file))
            if file.level != SMOKE or _is_in_sample(file.function)
        ),
        *(
            ListedCase(label=label, class_=CaseClass.soak, base=base)
            for label, base in soak_labels(suitable_labels(file))
            if file.level != SMOKE
        ),
        *(
            ListedCase(label=label, class_=CaseClass.negative, base=base)
            for label, base in negative_labels(prototype, in_order)
        ),
    )


def _is_in_sample(function: str) -> bool:
    """Return whether level smoke has the aliased inputs and the chains of a function."""
    return crc32(function.encode()) % SAMPLE_PERIOD == 0


def list_stored_cases(file: IndexView) -> tuple[ListedCase, ...]:
    """Return the cases that are stored in a file, without derived cases."""
    return tuple(
        ListedCase(label=label, dtype=file.dtype(label), class_=file.case_class(label)) for label in file.labels
    )


def _class_of_variant(file: IndexView, base: str) -> CaseClass:
    """Return the class of a call with an ignored argument: `open` if its base has this class, else `callers`."""
    return CaseClass.open if file.case_class(base) is CaseClass.open else CaseClass.callers
