"""Decide whether the results of a call of an ATen operator are correct.

If functions of the standard compute the same, the suite's reference, budgets and checks decide. Otherwise, the results
are compared with those of the same operator in float64 on the CPU. The budget of a result is its largest allowed error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import _disable_current_modes

from diopi_proto.aten.mapping import NotMappedError
from diopi_test.checks import values
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.oracle.data import widen
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.results.causes.severity import Severity, severity_of_case
from diopi_torch.compare.calls import RecordedCall
from diopi_torch.compare.comparison import NotComparableError, compute_expected, derive_call_outcome
from diopi_torch.compare.contents import map_tensors, read_elements
from diopi_torch.compare.on_cpu import CpuCall, PreciseCall
from diopi_torch.compare.watch.functions import TranslatedCall
from diopi_torch.compare.watch.sampling import CallSample, WholeCall
from diopi_torch.fallback import operator_name
from diopi_torch.layout import DTYPES
from lib_rt.formats import format_of, is_inexact

FLOAT64 = "ATen in float64"
"""The entry of `Judgment.references` if the reference is the same operator in float64 on the CPU."""


class NotJudgedError(Exception):
    """A call can't be judged; the message states the reason."""


@final
@dataclass(frozen=True, kw_only=True)
class Judgment:
    """The decision whether a call is correct.

    Attributes:
        references: the names of the functions whose references judged the call, or `FLOAT64`.
        severity: the severity of the worst problem; None if the call is correct.
        ratio: the largest error relative to its budget; infinity if the problem is not an error within a budget.
        relative_error: the Euclidean norm of the error relative to that of the expected result, for the worst result;
            infinity if a NaN or an infinity is wrong.
        message: a description of the problems in one line; empty if the call is correct.
        cases: the incorrect calls of functions, with data and expected results.
        is_sampled: whether only a part of the call was judged.
    """

    references: Sequence[str]
    severity: Severity | None = None
    ratio: float = 0.0
    relative_error: float = 0.0
    message: str = ""
    cases: Sequence[BaselineCase] = field(default=())
    is_sampled: bool = False

    def join(self, further: Judgment) -> Judgment:
        """Return the judgment of a call that consists of two parts, from the judgments of both parts.

        Args:
            further: the judgment of the second part.

        Returns:
            The judgment with the worst severity and the largest errors of both; `is_sampled` is that of `self`.
        """
        worst = max((self, further), key=lambda part: -1 if part.severity is None else part.severity.rank)
        return replace(
            self,
            references=list(dict.fromkeys([*self.references, *further.references])),
            severity=worst.severity,
            ratio=max(self.ratio, further.ratio),
            relative_error=max(self.relative_error, further.relative_error),
            message="; ".join(filter(None, (self.message, further.message))),
            cases=[*self.cases, *further.cases],
        )


@final
class CallUnderJudgment:
    """A call that will be judged; create the object before the call runs, because its arguments are copied then.

    Args:
        operator: the operator.
        named: its arguments by name, including default values.
        sample: the part of the call to judge.

    Attributes:
        call: the part of the call that is judged, with the contents of its tensors from before it ran.
    """

    def __init__(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], sample: CallSample) -> None:
        self._original = named
        self._sample = sample
        with _disable_current_modes(), torch.no_grad():
            self.call = CpuCall(operator, sample.reduce_arguments(named))

    def judge(self, returned: Any, label: str) -> Judgment:
        """Judge the call; must be called directly after it ran.

        Args:
            returned: what the call returned.
            label: the label of the case that represents the call.

        Returns:
            The judgment.

        Raises:
            NotJudgedError: there is no reference for the call.
        """
        with _disable_current_modes(), torch.no_grad():
            reduced = self._reduce_results(returned)
            judgment = self._judge_inputs(self._judge_by_functions(reduced, label) or self._judge_in_float64(reduced))
        return replace(judgment, is_sampled=not isinstance(self._sample, WholeCall))

    def _reduce_results(self, returned: Any) -> Any:
        """Return the sampled part of what the call returned.

        Also copy the sampled part of the arguments that the operator wrote to the arguments of the reduced call.
        """
        if isinstance(self._sample, WholeCall):
            return returned
        written = {}
        for name, value in self._original.items():
            if self.call.is_written(name) and isinstance(value, torch.Tensor):
                written[id(value)] = self.call.named[name]
                written[id(value)].copy_(self._sample.reduce_result(value))

        def reduce(name: str, tensor: torch.Tensor) -> torch.Tensor:
            """Return the sampled part of a returned tensor."""
            return written[id(tensor)] if id(tensor) in written else self._sample.reduce_result(tensor)

        return map_tensors(reduce, returned, "result")

    def _judge_inputs(self, judgment: Judgment) -> Judgment:
        """Return the judgment, with a critical problem added if the operator changed an argument it must not change.

        Only complete calls are checked. The copied sample of an argument shares no memory with the argument.
        """
        if not isinstance(self._sample, WholeCall):
            return judgment
        written = [content for name, content in self.call.contents.items() if self.call.is_written(name)]
        changed = [
            name
            for name, content in self.call.contents.items()
            if not self.call.is_written(name) and not np.array_equal(content.stored, content.read_again(written))
        ]
        if not changed:
            return judgment
        message = f"the operator changed its input {', '.join(changed)}"
        return judgment.join(
            Judgment(references=(), severity=Severity.critical, ratio=math.inf, relative_error=0.0, message=message)
        )

    def _judge_by_functions(self, returned: Any, label: str) -> Judgment | None:
        """Return the judgment by the suite's references.

        Args:
            returned: what the call returned, reduced to the sample.
            label: the label of the case; for further functions, `.1`, `.2` and so on are appended.

        Returns:
            The judgment; None if no functions compute the same, or if a reference can't compute the expected results.
        """
        try:
            translated = TranslatedCall(self.call, returned)
            recorded = [RecordedCall.from_call(call) for call in translated.calls]
            translated.write_results()
            parts = [
                _judge_function(call, f"{label}.{number}" if number else label) for number, call in enumerate(recorded)
            ]
        except (NotMappedError, NotComparableError):
            return None
        joined = parts[0] if parts else None
        for part in parts[1:]:
            joined = part if joined is None else joined.join(part)
        return joined

    def _judge_in_float64(self, returned: Any) -> Judgment:
        """Return the judgment by the same operator in float64.

        Args:
            returned: what the call returned, reduced to the sample.

        Raises:
            NotJudgedError: the operator returns no tensor, or does not support float64 on the CPU.
        """
        outputs = self.call.outputs(returned, self.call.named)
        if not outputs:
            raise NotJudgedError("operators that return no tensor")
        try:
            precise = PreciseCall(self.call)
            parts = [_judge_output(name, tensor, precise) for name, tensor in outputs.items() if tensor.numel()]
        except (RuntimeError, NotImplementedError, TypeError) as error:
            name = operator_name(self.call.operator)
            raise NotJudgedError(f"{name}: the CPU can't compute it in float64: {str(error).splitlines()[0]}") from None
        joined = Judgment(references=(FLOAT64,))
        for part in parts:
            joined = joined.join(part)
        return joined


def replay(operator: torch._ops.OpOverload, named: Mapping[str, Any]) -> Judgment:
    """Call an operator and judge the complete call.

    Args:
        operator: the operator.
        named: its arguments by name.

    Returns:
        The judgment.

    Raises:
        NotJudgedError: there is no reference for the call.
    """
    prepared = CallUnderJudgment(operator, named, WholeCall())
    with torch.no_grad():
        returned = operator(**named)
    return prepared.judge(returned, operator_name(operator))


def _judge_function(recorded: RecordedCall, label: str) -> Judgment:
    """Judge a call of a function by the suite's reference; must be called after the results were written.

    Args:
        recorded: the call with the contents of its tensors from before it ran.
        label: the end of the label of its case.

    Returns:
        The judgment.

    Raises:
        NotComparableError: the reference can't compute the results.
    """
    expected = compute_expected(recorded.prototype, recorded.case(label))
    record = recorded.make_record(expected, {})
    outcome, function = derive_call_outcome(record), recorded.call.function
    if outcome.verdict is not Verdict.failed:
        return Judgment(references=(function,), ratio=_largest_ratio(outcome.check_results))
    return Judgment(
        references=(function,),
        severity=severity_of_case(outcome.verdict, outcome.check_results, outcome.message),
        ratio=max((finding.excess for finding in outcome.check_results if not finding.passed), default=0) or math.inf,
        relative_error=max(
            (
                _relative_error(widen(tensor.values, tensor.dtype), expected_result)
                for tensor, expected_result in record.results()
                if tensor.values.size == expected_result.values.size
            ),
            default=math.inf,
        ),
        message=outcome.message,
        cases=[expected],
    )


def _largest_ratio(findings: Sequence[CheckResult]) -> float:
    """Return the largest error relative to its budget among the check results of a correct call; 0 without errors."""
    return max((finding.ratio for finding in findings if finding.ratio is not None), default=0.0)


def _judge_output(name: str, tensor: torch.Tensor, precise: PreciseCall) -> Judgment:
    """Judge one output of a call by its value in float64.

    Args:
        name: the name of the output.
        tensor: the output on the device.
        precise: the call in float64.

    Returns:
        The judgment, without `references`.
    """
    actual, dtype, exact = read_elements(tensor), DTYPES[tensor.dtype], precise.outputs[name]
    if exact.shape != actual.shape:
        message = f"{name} has the shape {list(actual.shape)}, expected {list(exact.shape)}"
        return Judgment(
            references=(), severity=Severity.major, ratio=math.inf, relative_error=math.inf, message=message
        )
    budget = None
    if is_inexact(dtype):
        # The budget lacks the rounding errors of intermediate values, which only references declare. The root mean
        # square of the output estimates their size.
        size = _root_mean_square(exact)
        budget = precise.budget(name, dtype).widen(np.asarray(format_of(dtype).epsilon * size))
        budget = budget.with_unsigned_zeros(exact, dtype)
    expected = Expected(values=exact, dtype=dtype, budget=budget)
    check_result = values.compare(actual, expected)
    if not check_result.is_wrong.any():
        return Judgment(references=(), ratio=check_result.ratio or 0.0)
    message = f"{name}: {int(check_result.is_wrong.sum())} of {check_result.is_wrong.size} elements are wrong"
    return Judgment(
        references=(),
        severity=Severity.critical,
        ratio=math.inf if check_result.ratio is None else check_result.ratio,
        relative_error=_relative_error(widen(actual, dtype), expected),
        message=message,
    )


def _root_mean_square(output: NDArray[Any]) -> float:
    """Return the root mean square of the finite elements; 0 if there are none."""
    finite = output[np.isfinite(output)]
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(np.square(np.abs(finite))))) if finite.size else 0.0


@np.errstate(all="ignore")
def _relative_error(actual: NDArray[Any], expected: Expected) -> float:
    """Return the Euclidean norm of the error of a result, divided by the norm of the expected result.

    Return infinity if a NaN or an infinity is wrong, or if the expected result is 0 and the error is not.
    """
    expected_values = np.asarray(expected.values * 1.0)
    error = np.where(
        actual.reshape(expected_values.shape) == expected_values,
        0,
        actual.reshape(expected_values.shape) - expected_values,
    )
    error = error[~(np.isnan(actual.reshape(expected_values.shape)) & np.isnan(expected_values))]
    if not np.isfinite(error).all():
        return math.inf
    size = float(np.linalg.norm(expected_values[np.isfinite(expected_values)]))
    distance = float(np.linalg.norm(error))
    return distance / size if size else math.inf if distance else 0.0
