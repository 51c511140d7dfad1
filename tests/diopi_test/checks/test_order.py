"""The check detects vendors that read inputs before they have arrived, or write results too late."""

from collections.abc import Callable

import numpy as np
from trials import failed_checks, outcome_of

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.execution.verdict import Verdict
from lib_rt import Context, Tensor

MATRIX = "float32-matrix"


def vendor_of(
    function: Callable[[Context, Tensor, Tensor], None], runtime: HostRuntime, name: str = "diopiNeg"
) -> Vendor:
    """Return a vendor with one function."""
    vendor = Vendor("one function", "1", runtime.functions(), host_addressable=True)
    vendor.implements_raw(name)(function)
    return vendor


def waits(ctx: Context, out: Tensor, input: Tensor) -> None:
    """Negate the input after all work of the stream."""
    ctx.stream.synchronize()
    np.negative(input.view(), out=out.view())


def does_not_wait(ctx: Context, out: Tensor, input: Tensor) -> None:
    """Negate the input at once, although its data may not have arrived."""
    with np.errstate(invalid="ignore"):
        np.negative(input.view(), out=out.view())


def enqueues(ctx: Context, out: Tensor, input: Tensor) -> None:
    """Enqueue the work like a chip: nothing is computed when the call returns, but the stream keeps the order."""
    ctx.stream.d2d(out.data_ptr, input.data_ptr, out.numel * out.element_size)


class LateWritingVendor(HostRuntime):
    """A vendor that does work outside of any stream, just after the stream was synchronized."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[Callable[[], None]] = []

    def stream_sync(self, stream: int) -> Error:
        code = super().stream_sync(stream)
        while self.work:
            self.work.pop()()
        return code

    def negate(self, ctx: Context, out: Tensor, input: Tensor) -> None:
        """Negate the input; the result is written only after the stream is synchronized."""
        ctx.stream.synchronize()
        target, result = out.view(), -input.view()
        self.work.append(lambda: np.copyto(target, result))


def test_a_vendor_that_waits_for_its_inputs_passes() -> None:
    outcome = outcome_of(vendor_of(waits, HostRuntime()), "diopiNeg", MATRIX)
    assert outcome.verdict is Verdict.passed
    assert "order" in [finding.check for finding in outcome.check_results]


def test_a_vendor_that_enqueues_its_work_passes() -> None:
    outcome = outcome_of(vendor_of(enqueues, HostRuntime(), "diopiFloor"), "diopiFloor", "int32-matrix")
    assert outcome.verdict is Verdict.passed, outcome.message


def test_a_vendor_that_does_not_wait_for_its_inputs_fails() -> None:
    outcome = outcome_of(vendor_of(does_not_wait, HostRuntime()), "diopiNeg", MATRIX)
    assert failed_checks(outcome) == ["order"]
    assert "order: with inputs still being copied: values: out: 35 of 35 elements are wrong" in outcome.message


def test_a_vendor_that_writes_after_synchronization_fails() -> None:
    runtime = LateWritingVendor()
    outcome = outcome_of(vendor_of(runtime.negate, runtime), "diopiNeg", MATRIX)
    assert failed_checks(outcome) == ["written", "values", "order"]
    assert "order: out changed after a copy queued behind the call had read the results" in outcome.message


def test_a_wrong_result_that_does_not_change_passes_the_check_of_order() -> None:
    def wrong_in_one_element(ctx: Context, out: Tensor, input: Tensor) -> None:
        waits(ctx, out, input)
        out.view().flat[-1] += 1

    assert failed_checks(outcome_of(vendor_of(wrong_in_one_element, HostRuntime()), "diopiNeg", MATRIX)) == ["values"]
