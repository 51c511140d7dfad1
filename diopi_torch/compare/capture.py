"""Store calls that a program makes as cases of the suite."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, final

import torch

from diopi_proto.aten.mapping import FunctionCall
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.fuzz.findings import CallsWriter
from diopi_test.oracle.records import BaselineCase
from diopi_torch.compare.calls import RecordedCall
from diopi_torch.compare.comparison import NotComparableError, compute_expected
from diopi_torch.compare.observation import Observation
from diopi_torch.fallback import operator_name
from diopi_torch.functions import PerformCall, watch_calls
from diopi_torch.observing import find_observable_operators


@final
class Capture(Observation):
    """A recorder that stores calls of functions with their data as cases.

    If calls differ only in their values, only the first one is stored. Closing the capture writes the cases.

    Args:
        folder: the folder of the new baseline, for `diopi-test run --data`.
        operators: regular expressions of the operators to observe, as in `DIPU_AUTOCOMPARE_OPS_LIST`.
        source: the name of the setting that contains `operators`, for error messages.

    Attributes:
        left_out: the number of calls that can't be stored, by reason.

    Raises:
        SettingError: if an expression matches no operator.
        FileExistsError: if the folder contains cases.
    """

    def __init__(self, folder: Path, operators: str, source: str) -> None:
        chosen = find_observable_operators(source, operators)
        self._writer = CallsWriter(folder)
        self._writer.check_is_new("name another folder")
        self._seen: set[str] = set()
        self._stored: dict[str, list[BaselineCase]] = defaultdict(list)
        self.left_out: Counter[str] = Counter()
        super().__init__(chosen)

    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Run an operator and store the calls of functions that it makes."""
        with watch_calls(partial(self._watch_call, operator_name(operator))):
            return serve()

    def _watch_call(self, operator: str, call: FunctionCall, perform: PerformCall) -> Mapping[str, Any]:
        """Perform a function's call and store it as a case of the operator."""
        recorded = RecordedCall.from_call(call)
        results = perform()
        with self._lock:
            self._store_case(operator, recorded)
        return results

    def _store_case(self, operator: str, recorded: RecordedCall) -> None:
        """Store a call unless an equivalent call is already stored."""
        function, case = recorded.call.function, recorded.case(f"{operator}-{len(self._seen)}")
        likeness = _case_form(function, case)
        if likeness in self._seen:
            return
        self._seen.add(likeness)
        try:
            self._stored[function].append(compute_expected(recorded.prototype, case))
        except NotComparableError as error:
            self.left_out[f"{function}: {error}"] += 1

    def _write_findings(self) -> None:
        """Write all stored calls as cases."""
        for function, calls in self._stored.items():
            if calls:
                self._writer.add(function, calls)


def _case_form(function: str, case: Case) -> str:
    """Return a key that is equal for calls that differ only in their values."""
    arguments = {name: _value_form(value) for name, value in case.arguments.items()}
    results = {
        name: None if expected is None else (expected.dtype, expected.layout.__name__)
        for name, expected in case.results.items()
    }
    return f"{function} {arguments} {results}"


def _value_form(value: Any) -> Any:
    """Return the shapes, element types and layouts of tensors, or the value itself if it contains no tensors."""
    specs = [(spec.shape, spec.dtype.name, spec.layout.__name__) for spec in TensorSpec.all_in(value)]
    return specs or value
