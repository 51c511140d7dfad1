"""The operators with incorrect results that a watch found, ranked, with a case of each that can be replayed.

An operator or call is *wrong* if it computed an incorrect result.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from diopi_test.fuzz.findings import CallsWriter
from diopi_test.oracle.records import BaselineCase
from diopi_test.results.causes.severity import Severity
from diopi_test.run.options import RunOptions
from diopi_torch.compare.on_cpu import CpuCall
from diopi_torch.compare.watch.judge import Judgment
from diopi_torch.compare.watch.stored_call import store_call


@final
@dataclass(kw_only=True)
class WrongForm:
    """The wrong calls of one form: one operator with one combination of element types, shapes and attributes.

    Attributes:
        judgment: the judgment of the call whose error is largest relative to its budget (the largest allowed error).
        dtype: the element type of the first tensor argument.
        description: the element types and shapes of the tensor arguments.
        origin: the line of the program that made the first wrong call.
        wrong_calls: the number of wrong calls.
        command: the command that replays the first wrong call, or the reason why that call was not stored; empty if the
            watch stores no calls.
    """

    judgment: Judgment
    dtype: str
    description: str
    origin: str
    wrong_calls: int = 0
    command: str = ""


@final
@dataclass(kw_only=True)
class WrongOperator:
    """An operator that computed wrong results in one element type.

    Attributes:
        operator: the name of the operator.
        dtype: the element type of the first tensor argument.
        forms: each wrong form with the number of all calls of this form, whether they were judged or not.
    """

    operator: str
    dtype: str
    forms: list[tuple[WrongForm, int]] = field(default_factory=list)

    @property
    def severity(self) -> Severity:
        """The worst severity of its wrong forms."""
        severities = [form.judgment.severity or Severity.minor for form, _ in self.forms]
        return max(severities, key=lambda severity: severity.rank)

    @property
    def ratio(self) -> float:
        """The largest error relative to its budget."""
        return max(form.judgment.ratio for form, _ in self.forms)

    @property
    def relative_error(self) -> float:
        """The largest relative error of a result, as `Judgment.relative_error` defines it."""
        return max(form.judgment.relative_error for form, _ in self.forms)

    @property
    def reach(self) -> float:
        """An estimate of the effect on the program: the sum over the wrong forms of relative error times calls."""
        return sum(form.judgment.relative_error * uses for form, uses in self.forms)

    @property
    def wrong_calls(self) -> int:
        """The number of wrong calls."""
        return sum(form.wrong_calls for form, _ in self.forms)

    @property
    def worst_form(self) -> WrongForm:
        """The form with the largest error relative to its budget."""
        return max((form for form, _ in self.forms), key=lambda form: form.judgment.ratio)

    @property
    def uses(self) -> int:
        """The number of all calls of the wrong forms, whether they were judged or not."""
        return sum(uses for _, uses in self.forms)


def rank(operators: list[WrongOperator]) -> list[WrongOperator]:
    """Return the operators sorted by severity, the worst first; among equally severe operators, by decreasing reach."""
    return sorted(operators, key=lambda entry: (-entry.severity.rank, -entry.reach, entry.operator, entry.dtype))


@final
class CaseFolder:
    """The folder in which a watch stores wrong calls, as cases for `diopi-test run --data` or as files for `--replay`.

    The folder is created when the first call is stored.

    Args:
        folder: the folder; None to store no calls.
        device: the type of the device, such as `cuda`, in the commands that replay the calls.

    Raises:
        FileExistsError: the folder already contains cases.
    """

    def __init__(self, folder: Path | None, device: str) -> None:
        self._folder = folder
        self._device = device
        self._writer = CallsWriter(folder) if folder else None
        if self._writer:
            self._writer.check_is_new("name another folder with --cases, or remove it")

    def store(self, case: BaselineCase | None, call: CpuCall, label: str) -> str:
        """Store a wrong call; errors of storing become part of the returned text.

        Args:
            case: the call as a case of a function; None if no function of the standard computes the same.
            call: the call of the operator, which is stored if there is no case.
            label: the name of the file without extension, which is used only if there is no case.

        Returns:
            The command that replays the call, or the reason why there is none; empty if no calls are stored.
        """
        if self._writer is None or self._folder is None:
            return ""
        try:
            if case is None:
                path = self._folder / "aten" / f"{label}.npz"
                store_call(path, call)
                return shlex.join(
                    ["python", "-m", "diopi_torch.watch", "--device", self._device, "--replay", str(path)]
                )
            self._writer.add(case.function, [case])
            return RunOptions(vendor=f"torch:{self._device}", data=self._folder).command_of(case.id)
        except Exception as error:  # a call that can't be stored must not end the program
            return f"not stored: {type(error).__name__}: {error}"
