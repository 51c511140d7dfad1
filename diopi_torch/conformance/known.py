"""The known differences between the device and the CPU, with their reasons."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from diopi_torch.conformance.samples import SampleGroup

FILE = Path(__file__).with_name("known_differences.toml")
"""The file with the known differences."""


@dataclass(frozen=True, kw_only=True)
class KnownDifference:
    """A class of differences that have the same known reason.

    Attributes:
        reason: the reason in a sentence.
        entries: names of operators, modules and optimizers, as patterns of `fnmatch`.
        forms: the forms of the samples; empty for all of them.
        dtypes: the element types; empty for all of them.
        text: a regular expression that must match a part of the description of the difference.
    """

    reason: str
    entries: Sequence[str] = ("*",)
    forms: Sequence[str] = ()
    dtypes: Sequence[str] = ()
    text: str = ""

    def explains(self, group: SampleGroup, difference: str) -> bool:
        """Return whether a difference of a sample in the group belongs to this class."""
        return (
            any(fnmatchcase(group.entry, pattern) for pattern in self.entries)
            and (not self.forms or group.form in self.forms)
            and (not self.dtypes or group.dtype in self.dtypes)
            and re.search(self.text, difference) is not None
        )


@cache
def known_differences() -> Sequence[KnownDifference]:
    """Return the classes of known differences in the file."""
    return [KnownDifference(**table) for table in tomllib.loads(FILE.read_text("utf-8")).get("difference", [])]


def find_reason(group: SampleGroup, difference: str) -> str | None:
    """Return the reason of a difference; None if it is not known."""
    return next((known.reason for known in known_differences() if known.explains(group, difference)), None)
