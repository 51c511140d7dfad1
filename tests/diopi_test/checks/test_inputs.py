"""The check of inputs, also of inputs that are passed as addresses."""

import ctypes

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case
from lib_rt import Context


def test_a_write_to_memory_that_is_passed_as_an_address_fails() -> None:
    vendor = Vendor("one function", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements_raw("diopiTensorDestructionHook")
    def forget(ctx: Context, ptr: int) -> None:
        ctypes.c_ubyte.from_address(ptr).value ^= 1

    function = "diopiTensorDestructionHook"
    case = next(case for case in select_cases(function, "full") if case.label == "float32-matrix")
    device = vendor.open_device()
    outcome = run_case(vendor, device, compute_baseline_case(lookup(function), case))
    device.close()
    assert outcome.verdict is Verdict.failed
    assert outcome.message == "inputs: 1 byte of ptr changed, the first at 0"
