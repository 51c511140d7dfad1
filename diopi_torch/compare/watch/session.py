"""The watch of a program: it intercepts each ATen call, judges some of the calls, and collects the wrong ones.

The user limits the time for judging, relative to the time of the program. The watch first judges a call of each form.
With the remaining time, it judges further calls of the same forms, because their values differ.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from diopi_test.oracle.reference import find_reference
from diopi_torch.compare.contents import iterate_tensors
from diopi_torch.compare.on_cpu import CpuCall
from diopi_torch.compare.watch.findings import CaseFolder, WrongForm, WrongOperator, rank
from diopi_torch.compare.watch.forms import (
    OTHER_DEVICE,
    SUBCLASS,
    call_form,
    reason_not_judged,
    reason_tensors_not_judged,
)
from diopi_torch.compare.watch.judge import CallUnderJudgment, Judgment, NotJudgedError
from diopi_torch.compare.watch.origin import find_origin
from diopi_torch.compare.watch.report import CallCounts, format_report
from diopi_torch.compare.watch.sampling import MAX_UNSAMPLED_ELEMENTS, choose_sample
from diopi_torch.fallback import default_arguments, named_arguments, operator_name
from diopi_torch.layout import DTYPES

# Further reasons why calls are not judged, as the report of a watch lists them
REPEATED = "calls of a form that was judged before"
NO_TIME = "calls of a form that was not judged yet, because the share of time was used up"
TOO_LARGE = f"calls with a tensor of more than {MAX_UNSAMPLED_ELEMENTS:,} elements, of operators that can't be sampled"

INTERCEPTION_SECONDS = 3e-5
"""An estimate of the time in seconds that it takes to intercept a call, which also counts as time for judging."""

REPEATS_SHARE = 0.02
"""The part of the time for judging that may be spent on calls of forms that were judged before."""


@final
@dataclass(eq=False, slots=True, kw_only=True)
class FormState:
    """What a watch knows about the calls of one form.

    Attributes:
        operator: the operator.
        uses: the number of calls.
        is_judged: whether at least one call was judged.
        reason: why calls of this form can't be judged; None if they can.
        wrong_form: the wrong calls; None if there are none.
    """

    operator: Any
    uses: int = 0
    is_judged: bool = False
    reason: str | None = None
    wrong_form: WrongForm | None = None


@final
class Watch:
    """Judges the calls of ATen operators until it is closed; use it as a context manager.

    Args:
        device: the type of the device whose calls are judged, such as `cuda`; None for all devices.
        overhead: the time for judging, relative to the time of the program itself.
        cases: the folder for cases of wrong calls; None to store none.
        write: a function that receives the text of the report when the watch is closed.

    Attributes:
        counts: how many calls were judged, and the time that judging took.

    Raises:
        FileExistsError: the folder contains cases.
    """

    def __init__(self, device: str | None, overhead: float, cases: Path | None, write: Callable[[str], object]) -> None:
        self._device = device
        self._overhead = overhead
        self._write = write
        self._cases = CaseFolder(cases, device or "cpu")
        self._lock = threading.RLock()
        self._mode = _WatchMode(self)
        self._forms: dict[Hashable, FormState] = {}
        self._calls = 0
        self._number = 0
        self._repeats_seconds = 0.0
        self._is_open = False
        self._began = time.perf_counter()
        self.counts = CallCounts()

    def __enter__(self) -> Self:
        find_reference("diopiAdd")  # loads all references before the time is measured
        self._began = time.perf_counter()
        self._is_open = True
        self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the watch; it is closed when the process ends."""
        self.__enter__()
        atexit.register(self.close)

    def close(self) -> None:
        """End the watch and write the report; do nothing if it has already ended."""
        if not self._is_open:
            return
        self._is_open = False
        self._mode.__exit__(None, None, None)
        atexit.unregister(self.close)
        self._write(format_report(self.wrong_operators, self.counts, self.program_seconds))

    @property
    def wrong_operators(self) -> list[WrongOperator]:
        """The wrong operators, the most severe first."""
        by_operator: dict[tuple[str, str], WrongOperator] = {}
        for form in list(self._forms.values()):
            if form.wrong_form is not None:
                name, dtype = operator_name(form.operator), form.wrong_form.dtype
                entry = by_operator.setdefault((name, dtype), WrongOperator(operator=name, dtype=dtype))
                entry.forms.append((form.wrong_form, form.uses))
        return rank(list(by_operator.values()))

    @property
    def _interception_seconds(self) -> float:
        """An estimate of the time that it took to intercept calls."""
        return self._calls * INTERCEPTION_SECONDS

    @property
    def program_seconds(self) -> float:
        """An estimate of the time that the program itself has taken."""
        elapsed = time.perf_counter() - self._began
        return max(elapsed - self.counts.overhead_seconds - self._interception_seconds, 0.0)

    def call(self, operator: Any, types: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call an operator, and judge the call if it can be judged and time is left for it.

        Args:
            operator: the operator.
            types: the subclasses of tensors among its arguments.
            args: its positional arguments.
            kwargs: its keyword arguments.

        Returns:
            What the operator returned.
        """
        self._calls += 1
        reason = reason_not_judged(operator) or (SUBCLASS if types else None)
        if reason is not None:
            self.counts.not_judged[reason] += 1
            return operator(*args, **kwargs)
        key = call_form(operator, args, kwargs)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = FormState(operator=operator)
        form.uses += 1
        reason = form.reason or self._reason_not_due(form)
        if reason is not None:
            self.counts.not_judged[reason] += 1
            return operator(*args, **kwargs)
        with self._lock:
            return self._judge(form, args, kwargs)

    def _reason_not_due(self, form: FormState) -> str | None:
        """Return why a call of this form is not judged now, to limit the time; None if it is judged."""
        if math.isinf(self._overhead):
            return None
        available = self._overhead * self.program_seconds
        if form.is_judged:
            return None if self._repeats_seconds < REPEATS_SHARE * available else REPEATED
        # if the calls of the program are very short, interception may use at most half of the time for judging
        available -= min(self._interception_seconds, available / 2)
        return None if self.counts.overhead_seconds <= available else NO_TIME

    def _judge(self, form: FormState, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the results of an operator, after judging the call; account for the time that judging takes.

        Args:
            form: The form of the call, with the operator.
            args: The positional arguments.
            kwargs: The keyword arguments.
        """
        operator = form.operator
        is_repeat = form.is_judged
        _wait_for_devices(args)
        began = time.perf_counter()
        prepared = self._prepare(form, args, kwargs)
        self._charge(began, is_repeat)
        returned = operator(*args, **kwargs)
        if prepared is None:
            return returned
        _wait_for_devices(args)
        began = time.perf_counter()
        self._conclude(form, prepared, returned, args)
        self._charge(began, is_repeat)
        return returned

    def _charge(self, began: float, is_repeat: bool) -> None:
        """Add the time since `began` to the time for judging, and to the time for repeated forms if it is one."""
        seconds = time.perf_counter() - began
        self.counts.overhead_seconds += seconds
        self._repeats_seconds += seconds if is_repeat else 0.0

    def _prepare(self, form: FormState, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CallUnderJudgment | None:
        """Copy the arguments of a call before it runs.

        Args:
            form: the form of the call, with its operator.
            args: the positional arguments.
            kwargs: the keyword arguments.

        Returns:
            The call with its copied arguments; None if the call can't be judged. In that case, the reason is counted.
        """
        operator = form.operator
        named = default_arguments(operator) | named_arguments(operator, args, kwargs)
        tensors = [tensor for _, tensor in iterate_tensors(named)]
        reason = reason_tensors_not_judged(tensors) or self._reason_other_device(tensors, named)
        sample = None if reason else choose_sample(operator, named)
        if sample is None:
            self._skip(form, reason or TOO_LARGE)
            return None
        return CallUnderJudgment(operator, named, sample)

    def _reason_other_device(self, tensors: Sequence[torch.Tensor], named: Mapping[str, Any]) -> str | None:
        """Return the reason not to judge a call that is not on the watched device; None for a call on the device."""
        devices = {tensor.device.type for tensor in tensors} or {torch.device(named.get("device") or "cpu").type}
        return None if self._device is None or self._device in devices else OTHER_DEVICE

    def _skip(self, form: FormState, reason: str) -> None:
        """Count a call that can't be judged, and exclude further calls of this form."""
        form.reason = reason
        self.counts.not_judged[reason] += 1

    def _conclude(self, form: FormState, prepared: CallUnderJudgment, returned: Any, args: Sequence[Any]) -> None:
        """Judge a call after it ran, and store the judgment.

        Args:
            form: the form of the call.
            prepared: the call with the arguments from before it ran.
            returned: what the call returned.
            args: the positional arguments of the call.
        """
        self._number += 1
        name = operator_name(form.operator)
        try:
            judgment = prepared.judge(returned, f"{name}-{self._number}")
        except NotJudgedError as error:
            self._skip(form, str(error))
            return
        except Exception as error:  # a defect of the judge must not end the program
            self._skip(form, f"{name}: judging failed: {type(error).__name__}: {error}")
            return
        form.is_judged = True
        self.counts.judged[", ".join(judgment.references)] += 1
        self.counts.sampled += judgment.is_sampled
        if judgment.severity is not None:
            self._store_wrong(form, judgment, prepared.call, args)

    def _store_wrong(self, form: FormState, judgment: Judgment, call: CpuCall, args: Sequence[Any]) -> None:
        """Store the judgment of a wrong call, and a case if this is the first wrong call of its form.

        Args:
            form: the form of the call.
            judgment: the judgment.
            call: the call, reduced to the judged sample.
            args: the positional arguments of the call, whose types and shapes describe the form in the report.
        """
        if form.wrong_form is None:
            tensors = [tensor for _, tensor in iterate_tensors({"": list(args)})]
            case = next(iter(judgment.cases), None)
            described = [f"{DTYPES[tensor.dtype].name}{list(tensor.shape)}" for tensor in tensors]
            form.wrong_form = WrongForm(
                judgment=judgment,
                dtype=next((DTYPES[tensor.dtype].name for tensor in tensors), "-"),
                description=", ".join(described),
                origin=find_origin(),
                command=self._cases.store(case, call, f"{operator_name(form.operator)}-{self._number}"),
            )
        form.wrong_form.wrong_calls += 1
        if judgment.ratio > form.wrong_form.judgment.ratio:
            form.wrong_form.judgment = judgment


def _wait_for_devices(values: Sequence[Any]) -> None:
    """Wait until the devices of the tensors among `values` have completed all work that the program has submitted."""
    for device in {tensor.device for _, tensor in iterate_tensors({"": list(values)})}:
        if device.type not in ("cpu", "meta"):
            torch.get_device_module(device).synchronize()


@final
class _WatchMode(TorchDispatchMode):
    """The dispatch mode of PyTorch that passes each call of an ATen operator to a watch."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return self._watch.call(operator, types, args, kwargs or {})
