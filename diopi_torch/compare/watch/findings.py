"""The wrong operators that a watch found, ranked, with a replayable case of each."""

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
    """The wrong calls of one form: of one operator with one combination of element types, shapes and attributes.

    Attributes:
        judgment: the judgment with the largest error relative to its budget.
        dtype: the element type of the first tensor argument.
        description: the element types and shapes of the tensor arguments.
        origin: the line of the program that made the first wrong call.
        wrong_calls: the number of wrong calls.
        command: the command that replays the first wrong call, or the reason why that call is not stored; empty if no
            calls are stored.
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
        forms: the wrong forms, each with the number of calls of this form.
    """

    operator: str
    dtype: str
    forms: list[tuple[WrongForm, int]] = field(default_factory=list)

    @property
    def severity(self) -> Severity:
        """The worst severity."""
        severities = [form.judgment.severity or Severity.minor for form, _ in self.forms]
        return max(severities, key=lambda severity: severity.rank)

    @property
    def ratio(self) -> float:
        """The largest error relative to its budget."""
        return max(form.judgment.ratio for form, _ in self.forms)

    @property
    def relative_error(self) -> float:
        """The largest relative error of a result."""
        return max(form.judgment.relative_error for form, _ in self.forms)

    @property
    def reach(self) -> float:
        """The estimate of how far the fault reaches: the sum of relative error times uses over the wrong forms."""
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
        """The number of calls of the wrong forms."""
        return sum(uses for _, uses in self.forms)


def rank(operators: list[WrongOperator]) -> list[WrongOperator]:
    """Return the operators by severity. Among equally severe operators, the one that reaches furthest comes first."""
    return sorted(operators, key=lambda entry: (-entry.severity.rank, -entry.reach, entry.operator, entry.dtype))


@final
class CaseFolder:
    """A folder of wrong calls as cases, for `diopi-test run --data`; it is created with the first case.

    Args:
        folder: the folder; None to store no cases.
        device: the type of the device in the commands that replay the cases.

    Raises:
        FileExistsError: the folder contains cases.
    """

    def __init__(self, folder: Path | None, device: str) -> None:
        self._folder = folder
        self._device = device
        self._writer = CallsWriter(folder) if folder else None
        if self._writer:
            self._writer.check_is_new("name another folder with --cases, or remove it")

    def store(self, case: BaselineCase | None, call: CpuCall, label: str) -> str:
        """Store a wrong call.

        Args:
            case: the call as a case of a function; None if the standard does not have the operator.
            call: the call of the operator.
            label: the name of the file if there is no case.

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
