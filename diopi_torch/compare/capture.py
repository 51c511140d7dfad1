"""Store the calls of functions that a program makes as cases, with which the suite can test other vendors."""

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
    """An observer that stores calls of functions with their data and expected results as cases.

    If several calls differ only in their values, only the first one is stored. `close` writes the cases.

    Args:
        folder: the folder for the cases, which `diopi-test run --data` can run.
        operators: comma-separated regular expressions of the operators to observe, as in `DIPU_AUTOCOMPARE_OPS_LIST`.
        source: the name of the setting that contains `operators`, for error messages.

    Attributes:
        left_out: the number of calls that can't be stored, by function and reason.

    Raises:
        SettingError: an expression matches no operator.
        FileExistsError: the folder already contains cases.
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
        """Run an operator by calling `serve`, store the calls of functions that it makes, and return its result."""
        with watch_calls(partial(self._watch_call, operator_name(operator))):
            return serve()

    def _watch_call(self, operator: str, call: FunctionCall, perform: PerformCall) -> Mapping[str, Any]:
        """Perform a call of a function by calling `perform`, store it as a case, and return its results by name."""
        recorded = RecordedCall.from_call(call)
        results = perform()
        with self._lock:
            self._store_case(operator, recorded)
        return results

    def _store_case(self, operator: str, recorded: RecordedCall) -> None:
        """Store a call unless a call of the same form is already stored.

        Args:
            operator: the name of the operator, with which the label of the case begins.
            recorded: the call with its data from before it ran.
        """
        function, case = recorded.call.function, recorded.case(f"{operator}-{len(self._seen)}")
        form = _case_form(function, case)
        if form in self._seen:
            return
        self._seen.add(form)
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
    """Return a key that is equal for calls of a function that differ only in the elements of their tensors."""
    arguments = {name: _value_form(value) for name, value in case.arguments.items()}
    results = {
        name: None if expected is None else (expected.dtype, expected.layout.__name__)
        for name, expected in case.results.items()
    }
    return f"{function} {arguments} {results}"


def _value_form(value: Any) -> Any:
    """Return the part of a key for one argument: shape, element type and layout of each tensor, or the value itself."""
    specs = [(spec.shape, spec.dtype.name, spec.layout.__name__) for spec in TensorSpec.all_in(value)]
    return specs or value
