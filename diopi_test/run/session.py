"""Run cases on a target, that is, a vendor on its open device; cache the baseline files that contain the cases."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from diopi_impl import IEEE, Numerics
from diopi_proto.families import load_families
from diopi_proto.types import Dtype
from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.store import BaselineFile
from diopi_test.execution.call import RejectedCallError
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.negative_cases import NegativeCase
from diopi_test.execution.process_memory import release_freed_memory
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import UNSUCCESSFUL, Outcome, Verdict
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.run.collection import Collected
from diopi_test.run.declaration_check import NUMERICS
from diopi_test.run.dump import DumpError, dump
from diopi_test.run.limits import CaseOptions
from diopi_test.run.lookup import LoadedCase, load_case
from diopi_test.run.run_case import Observe, evaluate_case
from diopi_test.run.run_in_flight import evaluate_chain
from diopi_test.run.run_negative_case import evaluate_negative_case
from diopi_test.run.run_soak import evaluate_soak
from diopi_test.run.target import Target

if TYPE_CHECKING:
    from diopi_test.baseline.declared import DeclaredCases

CACHE_BYTES = 128 * 2**20
"""Bytes of baseline files that a session caches. All files of level `smoke` fit, so that cases in random order do not
read a file again and again."""


class FileCache:
    """A cache of the most recently used baseline files.

    Args:
        limit: The maximum number of bytes of the files in memory. A single file that exceeds the limit is still cached,
            until the next file replaces it.
    """

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._files: dict[Path, BaselineFile] = {}  # in order of use

    def get(self, path: Path, sha256: str | None = None) -> BaselineFile:
        """Return the file at `path` from the cache, or read it.

        Args:
            path: The path of the file.
            sha256: The digest that the file must have; None if any digest will do.

        Returns:
            The file.

        Raises:
            BaselineError: The file can't be read, is damaged, or has a different digest.
        """
        file = self._files.pop(path, None)
        if file is None or sha256 not in (None, file.digest):
            file = BaselineFile(path, sha256)
            self._make_room(file.memory)
        self._files[path] = file
        return file

    def _make_room(self, memory: int) -> None:
        """Drop the least recently used files until `memory` more bytes are within the limit, or no file is left."""
        while self._files and sum(file.memory for file in self._files.values()) + memory > self._limit:
            del self._files[next(iter(self._files))]


class Session:
    """A series of cases that run on one target, one after another.

    Args:
        target: The vendor on its open device, which `close` closes.
        options: The options of the run that concern single cases.

    Attributes:
        target: the target.
        numerics: the arithmetic whose error budgets the results must meet: the one in the options, or else the one that
            the vendor declares.
    """

    def __init__(self, target: Target, options: CaseOptions) -> None:
        self.target = target
        self.numerics = options.numerics or target.numerics
        self._declared = None if self.numerics.digest == IEEE.digest else _open_declared_cases(self.numerics)
        self._options = options
        self._files = FileCache()

    def run(self, path: Path, case: Collected, sha256: str | None = None) -> Outcome:
        """Run a case and return its outcome.

        Args:
            path: The baseline file of the case; ignored for cases of the runtime and measurements of the arithmetic.
            case: The case.
            sha256: The digest that the baseline file must have; None if any digest will do.

        Returns:
            The outcome. A failed case is also dumped, and a passed case is timed, if the options say so.

        Raises:
            BaselineError: The file is damaged or has changed.
        """
        if case.function == RUNTIME:
            return self.target.run_runtime_case(case.label)
        if case.function == NUMERICS:
            return self.target.measure_field(self.numerics, case.label)
        file = self._files.get(path, sha256)
        loaded = load_case(file, case, self._options, open_file=partial(self._open_next_to, path))
        if self._declared is not None and loaded.flaw is None:
            if self.numerics.float64 == "absent" and any(map(_uses_float64, loaded.calls)):
                message = f"the declared arithmetic {self.numerics.name!r} has no float64"
                return Outcome(verdict=Verdict.unsupported, message=message)
            loaded = _with_declared_budgets(loaded, partial(self._declared.derive, file_digest=file.digest))
        if self._options.dump is not None:
            outcome = self._run_and_dump(loaded, self._options.dump)
        else:
            outcome = run_loaded_case(self.target, loaded, self._options.enabled_checks)
        release_freed_memory(sum(map(_count_bytes, loaded.calls)))
        is_single_call = not (loaded.flaw or loaded.chain or loaded.soak)
        is_timed = self._options.perf and outcome.verdict is Verdict.passed and is_single_call
        return self._timed(outcome, loaded.case) if is_timed else outcome

    def _open_next_to(self, path: Path, function: str) -> BaselineFile | None:
        """Return the baseline file of a function at the level of the file at `path`; None if the level has none."""
        level = open_level_of_file(path)
        if function not in level.functions:
            return None
        return self._files.get(level.path(function), level.sha256(function))

    def _timed(self, outcome: Outcome, case: BaselineCase) -> Outcome:
        """Time the call of a passed case; return its outcome with the duration, or a failure if a call is rejected."""
        try:
            return replace(outcome, timing=self.target.time_call(case))
        except RejectedCallError as rejection:
            message = f"{rejection.code.name} when the call was repeated to time it: {self.target.last_error()}"
            return Outcome(verdict=Verdict.failed, message=message, check_results=outcome.check_results)

    def _run_and_dump(self, loaded: LoadedCase, folder: Path) -> Outcome:
        """Return the outcome of a case.

        If the case fails, its inputs and results are written to a file in `folder`, which the message then names.
        """
        records: dict[str, CallRecord] = {}
        outcome = run_loaded_case(self.target, loaded, self._options.enabled_checks, records.update)
        if outcome.verdict not in UNSUCCESSFUL:
            return outcome
        try:
            message = f"dumped to {dump(loaded.case, records, folder)}"
        except DumpError as error:
            message = str(error)
        return Outcome(
            verdict=outcome.verdict, message=f"{outcome.message}; {message}", check_results=outcome.check_results
        )

    def close(self) -> None:
        """Close the target's device."""
        self.target.close()


def _with_declared_budgets(loaded: LoadedCase, derive: Callable[[BaselineCase], BaselineCase]) -> LoadedCase:
    """Return a loaded case that is not a negative test, with the budgets of a declared arithmetic in each of its calls.

    Args:
        loaded: The single call, the chain (calls in flight at the same time) or the soak test (repeated calls).
        derive: Returns a case with the budgets of the declared arithmetic.
    """
    if loaded.chain is not None:
        return replace(loaded, chain=replace(loaded.chain, cases=list(map(derive, loaded.calls))))
    if loaded.soak is not None:
        return replace(loaded, soak=replace(loaded.soak, cases=list(map(derive, loaded.calls))))
    return replace(loaded, case=derive(loaded.case))


def _count_bytes(case: BaselineCase) -> int:
    """Return the size in bytes of the arguments and the expected results of a case."""
    arrays = [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]
    results = [entry for value in case.expected.values() for entry in expected_arrays(value)]
    # a result that a negative case passes as NULL has no array
    return sum(array.nbytes for array in (*arrays, *(entry.values for entry in results if entry is not None)))


def _uses_float64(case: BaselineCase) -> bool:
    """Return whether a tensor of a valid case has the element type float64 or complex128."""
    dtypes = {tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)}
    dtypes |= {entry.dtype for value in case.expected.values() for entry in expected_arrays(value)}
    return bool(dtypes & {Dtype.float64, Dtype.complex128})


def _open_declared_cases(numerics: Numerics) -> DeclaredCases:
    """Return the object that derives the budgets of a declared arithmetic.

    Also import all references now, so that the first case of each family does not spend its time limit on the import.
    """
    from diopi_test.baseline.declared import DeclaredCases  # its imports take long, and IEEE arithmetic needs none

    load_families("diopi_test.oracle.reference")
    return DeclaredCases(numerics)


def run_loaded_case(
    target: Target,
    loaded: LoadedCase,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a case on a target: a single valid call, a negative test, a chain or a soak test.

    Args:
        target: The vendor on its open device.
        loaded: The case.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the calls, by the name of the call.

    Returns:
        The outcome of the case.
    """
    if loaded.chain is not None:
        return evaluate_chain(target, loaded.chain, enabled_checks, observe)
    if loaded.soak is not None:
        return evaluate_soak(target, loaded.soak, enabled_checks, observe)
    if loaded.flaw is not None:
        return evaluate_negative_case(target, NegativeCase(loaded.case, loaded.flaw), enabled_checks, observe)
    return evaluate_case(target, loaded.case, enabled_checks, observe)
