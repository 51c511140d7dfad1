"""Calls that a program makes, kept as cases of the suite."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, final

import torch

from diopi_proto.aten.mapping import FunctionCall
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.model import Case, tensor_specs
from diopi_test.fuzz.findings import CallsWriter
from diopi_torch.compare.calls import RecordedCall
from diopi_torch.compare.comparison import NotComparableError, compute_expected
from diopi_torch.compare.observation import Observation
from diopi_torch.fallback import operator_name
from diopi_torch.functions import Performed, watched
from diopi_torch.observing import observable


@final
class Capture(Observation):
    """Keeps calls of functions with their data.

    Of calls that differ in their values alone, the first is kept. They are written when it is closed.

    Args:
        folder: of baselines, for `diopi-test run --data`.
        operators: whose calls, as `DIPU_AUTOCOMPARE_OPS_LIST` has it.

    Attributes:
        left_out: why calls are no cases, and how many.

    SettingError for operators that there are not; FileExistsError if there are cases in the folder.
    """

    def __init__(self, folder: Path, operators: str, source: str) -> None:
        chosen = observable(source, operators)
        self._writer = CallsWriter(folder)
        self._writer.check("name another folder")
        self._seen: set[str] = set()
        self._stored: dict[str, list[BaselineCase]] = defaultdict(list)
        self.left_out: Counter[str] = Counter()
        super().__init__(chosen)

    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Have an operator done, and keep the calls of functions that are made for it."""
        with watched(partial(self._watch, operator_name(operator))):
            return serve()

    def _watch(self, operator: str, call: FunctionCall, perform: Performed) -> Mapping[str, Any]:
        recorded = RecordedCall.from_call(call)
        results = perform()
        with self._lock:
            self._store(operator, recorded)
        return results

    def _store(self, operator: str, recorded: RecordedCall) -> None:
        """Keep a call unless there is one like it."""
        function, case = recorded.call.function, recorded.case(f"{operator}-{len(self._seen)}")
        likeness = _likeness(function, case)
        if likeness in self._seen:
            return
        self._seen.add(likeness)
        try:
            self._stored[function].append(compute_expected(recorded.prototype, case))
        except NotComparableError as error:
            self.left_out[f"{function}: {error}"] += 1

    def _write(self) -> None:
        for function, calls in self._stored.items():
            if calls:
                self._writer.add(function, calls)


def _likeness(function: str, case: Case) -> str:
    """What calls have in common that differ in their values alone."""
    arguments = {name: _form(value) for name, value in case.arguments.items()}
    results = {
        name: None if expected is None else (expected.dtype, expected.layout.__name__)
        for name, expected in case.results.items()
    }
    return f"{function} {arguments} {results}"


def _form(value: Any) -> Any:
    specs = [(spec.shape, spec.dtype.name, spec.layout.__name__) for spec in tensor_specs(value)]
    return specs or value
