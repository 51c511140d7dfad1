"""The results of the families of functions, as soon as all cases of a family have ended."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import final

from diopi_proto.interface import prototypes
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import Verdict


def family_of(function: str) -> str:
    """Return the family of a standard function; the cases of the runtime are a family of their own."""
    return RUNTIME if function == RUNTIME else prototypes()[function].family


@final
class FamilyResults:
    """The verdicts of a run by family.

    Args:
        functions: The function of each case that will end, once per case.
    """

    def __init__(self, functions: Iterable[str]) -> None:
        self._left = Counter(map(family_of, functions))
        self._verdicts: defaultdict[str, Counter[Verdict]] = defaultdict(Counter)
        self._has_several = len(self._left) > 1

    def add(self, function: str, verdict: Verdict) -> str | None:
        """Add the verdict of a case.

        Args:
            function: The function of the case.
            verdict: The verdict.

        Returns:
            A line about the family if this was its last case; None otherwise, or if the run has only one family.
        """
        family = family_of(function)
        self._verdicts[family][verdict] += 1
        self._left[family] -= 1
        if self._left[family] or not self._has_several:
            return None
        counts = ((self._verdicts[family][entry], entry.value.replace("_", " ")) for entry in Verdict)
        return f"{family}: {', '.join(f'{number:,} {name}' for number, name in counts if number)}"
