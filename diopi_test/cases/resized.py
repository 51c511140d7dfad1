"""Cases whose rows have a multiple of 16 elements, or whose axes have one element, derived from a function's own cases.

Most sizes in a function's own cases are odd, so that the last vector of a row is incomplete. Such cases never run a
kernel that requires complete vectors, or a kernel for a matrix with one row or column. The file `resized_cases.json`
lists the sizes that are replaced. `python -m diopi_test.quality.resized_cases` writes this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import final

from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from diopi_test.cases import resizing
from diopi_test.cases.case import Case

FILE = Path(__file__).with_name("resized_cases.json")
"""The file that lists the replaced sizes by function."""

ROWS_OF_16, ROWS_OF_128, CHANNELS_OF_16 = "rows-of-16", "rows-of-128", "channels-of-16"
"""The ends of labels: for small and for larger rows of a multiple of 16 elements, and for such a number of channels."""


REASON = "only its sizes differ from those of another case, and a softmax of one element is 1, for example"
"""The value of `Case.non_discriminating` for cases whose original case states no reason."""


@final
@dataclass(frozen=True, kw_only=True)
class SizeReplacement:
    """The rule by which a case is derived from another case with other sizes.

    Attributes:
        label: the end of the label of the derived case.
        base: the label of the original case.
        sizes: the new size by original size.
        attributes: the attributes in which sizes are also replaced.
    """

    label: str
    base: str
    sizes: Mapping[int, int]
    attributes: resizing.ResizedAttributes = resizing.ResizedAttributes.none


@cache
def resizings() -> Mapping[str, Sequence[SizeReplacement]]:
    """Return the size replacements that the file lists, by the name of the function."""
    entries = json.loads(FILE.read_text("utf-8"))
    return {
        function: [
            SizeReplacement(
                label=entry["label"],
                base=entry["base"],
                sizes={int(size): target for size, target in entry["sizes"].items()},
                attributes=resizing.ResizedAttributes(entry.get("attributes", "none")),
            )
            for entry in replacements
        ]
        for function, replacements in entries.items()
    }


def resized_keys(prototype: Prototype) -> Sequence[str]:
    """Return texts that change if the size replacements of a function change; the baseline depends on them."""
    return [repr(derivation) for derivation in resizings().get(prototype.name, ())]


def resized_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield the resized cases of a function.

    Args:
        prototype: the prototype of the function.
        cases: the function's own cases.

    Yields:
        One case per size replacement whose original case exists. Replacements with the label `ROWS_OF_128` or
        `CHANNELS_OF_16` also yield a half-precision case if the original case has a half-precision counterpart, because
        kernels handle two to eight half-precision numbers at once.
    """
    by_label = {case.label: case for case in cases}
    for derivation in resizings().get(prototype.name, ()):
        if (base := by_label.get(derivation.base)) is None:
            continue
        yield resize(base, derivation)
        if derivation.label in (ROWS_OF_128, CHANNELS_OF_16):
            suffix = derivation.base.partition("-")[2]
            narrow = (by_label.get(f"{dtype.name}-{suffix}", base) for dtype in half)
            same = (case for case in narrow if case is not base and case.shapes == base.shapes)
            yield from (resize(case, derivation) for case in islice(same, 1))


def resize(case: Case, derivation: SizeReplacement) -> Case:
    """Return the case that a size replacement derives from `case`."""
    label = f"{case.dtype.name}-{derivation.label}"
    resized_case = resizing.replace_sizes(case, derivation.sizes, label, derivation.attributes)
    return replace(resized_case, exact=False, non_discriminating=case.non_discriminating or REASON)
