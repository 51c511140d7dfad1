"""Findings of the fuzzer: failing calls, which are written as cases of a baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from diopi_proto.interface import lookup
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.manifest import MANIFEST_NAME, ListedCase
from diopi_test.baseline.manifest_writer import ManifestWriter
from diopi_test.baseline.store import baseline_file
from diopi_test.execution.description import describe_attribute
from diopi_test.execution.listing import list_stored_cases
from diopi_test.execution.verdict import Outcome
from diopi_test.fuzz.trial import LEVEL, write_calls
from diopi_test.oracle.records import BaselineCase, BaselineTensor
from diopi_test.run.collection import Collected

MAX_PRINTED_CALLS = 6
"""The maximum number of calls of a finding that are printed."""

MAX_PRINTED_ENTRIES = 4
"""The maximum number of tensors of an array that are printed."""


@final
@dataclass(frozen=True, kw_only=True)
class FuzzFinding:
    """A sequence of calls of one function that one process executes in this order; the last call fails.

    Attributes:
        calls: the calls.
        outcome: the outcome of the last call, or of the derived call.
        attempts: the number of smaller sequences that were tried.
        derived: the failing call, if it is derived from the calls: with shared memory, or with all calls in flight.
    """

    calls: Sequence[BaselineCase]
    outcome: Outcome
    attempts: int = 0
    derived: Collected | None = None

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.calls[-1].function

    def lines(self) -> Iterator[str]:
        """Yield the lines that describe the finding to a user."""
        earlier_calls = len(self.calls) - 1
        suffix = f" after {earlier_calls} other call{'s' if earlier_calls > 1 else ''}" if earlier_calls else ""
        if self.derived is None:
            yield f"{self.calls[-1].id}: {self.outcome.verdict}{suffix}: {self.outcome.message}"
        else:
            yield f"{self.derived.id}, from {self.derived.base}: {self.outcome.verdict}: {self.outcome.message}"
        printed = self.calls[-MAX_PRINTED_CALLS:]
        if len(printed) < len(self.calls):
            yield f"  … {len(self.calls) - len(printed)} earlier calls"
        for call in printed:
            yield f"  {describe_call(call)}"


def describe_call(call: BaselineCase) -> str:
    """Return a description of a call: the types, shapes and layouts of its tensors, and its attributes."""
    arguments = ", ".join(
        f"{p.c_name} {_describe_argument(call.arguments[p.name])}" for p in lookup(call.function).arguments
    )
    return f"{call.function}({arguments})"


def _describe_argument(value: object) -> str:
    """Return a description of an argument; long lists are shortened."""
    if isinstance(value, list):
        suffix = f", … {len(value)} in all" if len(value) > MAX_PRINTED_ENTRIES else ""
        return f"[{', '.join(map(_describe_argument, value[:MAX_PRINTED_ENTRIES]))}{suffix}]"
    if isinstance(value, BaselineTensor):
        layout = "" if value.layout == "contiguous" else f" {value.layout}"
        return f"{value.dtype.name}{list(value.values.shape)}{layout}"
    return describe_attribute(value)


@final
class CallsWriter:
    """Writes calls to a folder in the form of a baseline: level smoke, one file per function, and a manifest.

    The commands `run --data FOLDER` and `show --data FOLDER` read such a folder. The folder is complete after each
    addition.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._level = folder / LEVEL
        self._calls: dict[str, list[BaselineCase]] = defaultdict(list)
        self._derived: dict[str, dict[str, ListedCase]] = defaultdict(dict)

    def check_is_new(self, remedy: str) -> None:
        """Raise FileExistsError if the folder already contains a baseline; the message ends with the remedy."""
        if (self._level / MANIFEST_NAME).exists():
            raise FileExistsError(f"{self._level} has a baseline already; {remedy}")

    def add(self, function: str, calls: Sequence[BaselineCase], derived: Collected | None = None) -> None:
        """Append calls to the file of a function and update the manifest; raise BaselineError or OSError on failure.

        Args:
            function: the name of the function.
            calls: the calls.
            derived: a call that is derived from these calls. The folder has one such call of each kind.
        """
        self._calls[function] += calls
        if derived is not None:
            dtype = calls[0].dtype if derived.dtype else None
            listed = ListedCase(label=derived.label, dtype=dtype, class_=derived.case_class, base=derived.base)
            self._derived[function].setdefault(derived.label, listed)
        self._level.mkdir(parents=True, exist_ok=True)
        write_calls(baseline_file(self._level, function), self._calls[function])
        manifest = ManifestWriter(self._level, LEVEL, self._list_cases)
        manifest.add_file(function)
        manifest.save()

    def _list_cases(self, file: IndexView) -> tuple[ListedCase, ...]:
        """Return the stored calls of a function, and the calls that are derived from them."""
        return (*list_stored_cases(file), *self._derived[file.function].values())


@final
class FindingsWriter:
    """Adds findings to a folder of baselines during the search.

    Attributes:
        found: the findings in the order in which they were written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[FuzzFinding] = []
        self._writer = CallsWriter(folder)

    def check_is_new(self) -> None:
        """Raise FileExistsError if the folder already contains a baseline."""
        self._writer.check_is_new("name another folder with --output")

    def add(self, finding: FuzzFinding) -> FuzzFinding:
        """Write a finding as cases: the failing call as `fuzz-n`, and the calls before it with their positions.

        Args:
            finding: the finding.

        Returns:
            The finding; its calls have the labels of the written cases.

        Raises:
            BaselineError: if the baseline can't be written.
            OSError: if a file can't be written.
        """
        number, last = len(self.found) + 1, len(finding.calls)
        labels = [f"fuzz-{number}" if place == last else f"fuzz-{number}.{place}" for place in range(1, last + 1)]
        named = [
            replace(call, label=f"{call.dtype.name}-{label}") for call, label in zip(finding.calls, labels, strict=True)
        ]
        derived = finding.derived and replace(finding.derived, base=named[0].label)
        self._writer.add(finding.function, named, derived)
        self.found.append(replace(finding, calls=named, derived=derived))
        return self.found[-1]
