"""Compare the operator calls of a running program with the CPU and with the suite's reference, and write a report.

The report has the format of `diopi-test run`: each call of a function is a case with a verdict.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import torch

from diopi_proto.aten.mapping import FunctionCall
from diopi_proto.types import Dtype
from diopi_test.baseline.codec import to_json
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.fuzz.findings import CallsWriter
from diopi_test.oracle.records import BaselineCase
from diopi_test.results.records import CaseRecord, VendorInfo
from diopi_test.run.collection import Collected
from diopi_test.run.options import RunOptions
from diopi_test.run.output import check_writable, write_text
from diopi_test.run.recorder import LogContent
from diopi_test.run.run_case import add_check_results
from diopi_torch.backend import backend, selected_vendor
from diopi_torch.compare.calls import RecordedCall
from diopi_torch.compare.comparison import NotComparableError, compute_expected, derive_call_outcome
from diopi_torch.compare.observation import Observation
from diopi_torch.compare.on_cpu import CpuCall
from diopi_torch.compare.outputs import ComparedTensor, StandardResult, compare_outputs
from diopi_torch.fallback import operator_name
from diopi_torch.functions import PerformCall, watch_calls
from diopi_torch.observing import find_observable_operators

MAX_CAPTURED_CASES = 8
"""Maximum number of failed calls per function that are stored as cases, which limits the size of the files."""


@final
@dataclass(frozen=True, kw_only=True)
class ComparedCall:
    """A call of a standard function within an operator's call, and the result of comparing it with the reference.

    Attributes:
        function: the name of the function.
        label: the label of the case that represents the call.
        dtype: the element type under test.
        case: the case with its expected results; None if the reference can't compute them.
        outcome: the outcome of the call.
        known: the expected results, by the memory address of the tensor that contains the actual result.
        seconds: the duration of the vendor's call, including the wait for the device.
    """

    function: str
    label: str
    dtype: Dtype
    case: BaselineCase | None
    outcome: Outcome
    known: Mapping[int, StandardResult]
    seconds: float

    def make_record(self) -> CaseRecord:
        """Return the record of the call in the report, where it is one case of the function."""
        return Collected(function=self.function, label=self.label, dtype=self.dtype.name).record(
            self.outcome, self.seconds
        )


def perform_compared(call: FunctionCall, perform: PerformCall, label: str) -> tuple[Mapping[str, Any], ComparedCall]:
    """Execute a call of a standard function and compare it with the reference.

    If the reference can't compute the results, the call passes and its message states the reason.

    Args:
        call: the call.
        perform: a function that executes the call on the vendor and returns the results that the vendor allocated.
        label: the end of the label of the case that represents the call.

    Returns:
        The results that the vendor allocated, by name, and the comparison.
    """
    recorded = RecordedCall.from_call(call)
    began = time.perf_counter()
    returned = perform()
    backend().stream.synchronize()
    seconds = time.perf_counter() - began
    case = recorded.case(label)
    compared = partial(ComparedCall, function=call.function, label=case.label, dtype=case.dtype, seconds=seconds)
    try:
        expected = compute_expected(recorded.prototype, case)
    except NotComparableError as error:
        message = f"not compared: {error}"
        unchecked = [CheckResult(check="reference", passed=True, message=message)]
        outcome = Outcome(verdict=Verdict.passed, message="", check_results=unchecked)
        return returned, compared(case=None, outcome=outcome, known={})
    record = recorded.make_record(expected, returned)
    known_results = _find_known_results(recorded, record, returned)
    return returned, compared(case=expected, outcome=derive_call_outcome(record), known=known_results)


def _find_known_results(
    recorded: RecordedCall, record: CallRecord, returned: Mapping[str, Any]
) -> dict[int, StandardResult]:
    """Return the expected value of each result, by the memory address of the tensor that contains the result.

    Args:
        recorded: the call with its tensors.
        record: the record of the call with the expected results.
        returned: the results that the vendor allocated, by name.
    """
    tensors = {name: content.tensor for name, content in recorded.contents.items()}
    tensors |= {name: value for name, value in returned.items() if isinstance(value, torch.Tensor)}
    results = [(tensors[tensor.name], expected) for tensor, expected in record.results()]
    return {tensor.data_ptr(): StandardResult(expected, tensor.stride()) for tensor, expected in results}


@final
class ComparisonSession(Observation):
    """An observer that compares calls of operators with PyTorch's CPU, and their calls of functions with the reference.

    Args:
        operators: comma-separated regular expressions of the operators to compare, as in `DIPU_AUTOCOMPARE_OPS_LIST`.
        report: the path of the report, which is written at the end; None for no report. Failed calls are stored as
            cases in the folder with the same name and the suffix `.cases`.
        print_line: a function that receives each line of output for the user, such as `print_to_stderr`.
        source: the name of the setting that contains `operators`, for error messages.

    Attributes:
        counts: for each operator, the number of its calls (`compared`) and of its incorrect calls (`wrong`).

    Raises:
        SettingError: an expression matches no operator.
        OSError: the report can't be written.
        FileExistsError: the folder already contains cases.
    """

    def __init__(self, operators: str, report: Path | None, print_line: Callable[[str], object], source: str) -> None:
        chosen = find_observable_operators(source, operators)
        self._report = report
        self._writer = CallsWriter(report.with_suffix(".cases")) if report else None
        if report and self._writer:
            check_writable(report)
            self._writer.check_is_new("give the report another name, or remove the folder")
        self._print_line = print_line
        self._records: dict[str, CaseRecord] = {}
        self._captured: Counter[str] = Counter()
        self._number = 0
        self._began = time.perf_counter()
        self.counts: dict[str, Counter[str]] = {}
        super().__init__(chosen)

    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Execute an operator and compare its outputs, its inputs and the functions that it calls.

        Args:
            operator: the operator.
            named: the arguments by name.
            serve: a function that executes the operator on the device.

        Returns:
            The result of the operator on the device.
        """
        name, calls = operator_name(operator), list[ComparedCall]()
        with self._lock:
            self._number += 1
            label = f"{name}-{self._number}"

        def watch(call: FunctionCall, perform: PerformCall) -> Mapping[str, Any]:
            """Execute and compare a call of a standard function that the operator makes."""
            results, compared_call = perform_compared(call, perform, f"{label}.{len(calls)}" if calls else label)
            calls.append(compared_call)
            return results

        cpu_call = CpuCall(operator, named)
        with watch_calls(watch):
            returned = serve()
        known_results = calls[0].known if len(calls) == 1 else {}
        tensors = list(compare_outputs(cpu_call, returned, known_results))
        with self._lock:
            self._report_operator(name, calls, tensors)
        return returned

    def _report_operator(self, name: str, calls: list[ComparedCall], tensors: Sequence[ComparedTensor]) -> None:
        """Print and count the outcome of an operator's call, and store the calls of functions for the report.

        Args:
            name: the name of the operator.
            calls: the calls of functions that the operator made. The comparison of the operator's tensors is added to
                the last one as the check `operator`.
            tensors: the comparisons of the operator's tensors with the CPU's.
        """
        incorrect = [tensor for tensor in tensors if not tensor.is_correct]
        if calls:
            message = "; ".join(tensor.lines[0] for tensor in incorrect)
            outcome = add_check_results(
                calls[-1].outcome, [CheckResult(check="operator", passed=not incorrect, message=message)]
            )
            calls[-1] = replace(calls[-1], outcome=outcome)
        failed = bool(incorrect) or any(call.outcome.verdict is Verdict.failed for call in calls)
        counts = self.counts.setdefault(name, Counter())
        counts.update({"compared": 1, "wrong": int(failed)})
        self._print_line(
            f"{name} ({', '.join(call.function for call in calls) or '-'}): {'wrong' if failed else 'right'}"
        )
        for line in (line for tensor in tensors for line in tensor.lines):
            self._print_line(f"  {line}")
        for call in calls:
            if call.outcome.verdict is Verdict.failed:
                self._print_line(f"  {call.function}[{call.label}]: {call.outcome.message}")
            self._store_call(call)

    def _store_call(self, call: ComparedCall) -> None:
        """Store the record of a call for the report, and the first failed calls of each function also as cases.

        A call that fails only the check `operator` is not stored as a case, because that check compares the operator
        and not the function. Repeating the function would not reproduce the failure.
        """
        if self._report is None or self._writer is None:
            return
        record = call.make_record()
        repeats = any(not finding.passed and finding.check != "operator" for finding in call.outcome.check_results)
        if call.case is not None and repeats and self._captured[call.function] < MAX_CAPTURED_CASES:
            self._captured[call.function] += 1
            self._writer.add(call.function, [call.case])
            record = replace(record, command=self._run_options().command_of(record.id))
        self._records[record.id] = record

    def _run_options(self) -> RunOptions:
        """Return the options of a run that repeats the stored cases; the report states its commands."""
        return RunOptions(vendor=selected_vendor(), data=self._writer.folder if self._writer else None)

    def _write_findings(self) -> None:
        """Write the report, if the user requested one."""
        if self._report is not None:
            write_text(self._report, json.dumps(to_json(self._log_content().report()), indent=1) + "\n")

    def _log_content(self) -> LogContent:
        """Return the content of a run log in which each compared call is a case."""
        vendor = backend().vendor
        return LogContent(
            path=Path(),
            header=self._run_options().header(""),
            vendor=VendorInfo(name=vendor.name, version=vendor.version),
            schedule=list(self._records),
            cases=self._records,
            seconds=time.perf_counter() - self._began,
        )


def print_to_stderr(line: str) -> None:
    """Print a line to stderr."""
    print(line, file=sys.stderr)
