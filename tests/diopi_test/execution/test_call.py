"""Calls with tensors in host memory, and with several results that the callee allocates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Device
from diopi_test.cases.selection import select_cases
from diopi_test.execution.call import Call
from diopi_test.execution.call_arguments import CallMode
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import run_case
from lib_rt import is_poison

VOXELIZE, REDUCE = "diopiHardVoxelizeMmcv", "diopiDynamicPointToVoxelMmcv"
QUEUED = CallMode(queued=True)


def make_vendor(function: str, implementation: Callable[..., Any]) -> Vendor:
    """Return a vendor with only this raw implementation, whose device copies as late as possible."""
    vendor = Vendor("one function", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements_raw(function)(implementation)
    return vendor


def case_of(function: str, label: str) -> BaselineCase:
    """Return the computed case with this label."""
    case = next(case for case in select_cases(function, "full") if case.label == label)
    return compute_baseline_case(lookup(function), case)


def outcome_of(function: str, label: str, implementation: Callable[..., Any]) -> Outcome:
    """Return the outcome of a case on a vendor with one implementation."""
    vendor = make_vendor(function, implementation)
    with vendor.open_device() as device:
        return run_case(vendor, device, case_of(function, label))


def voxelize_with(act: Callable[[Any, Any, Any, Any], object]) -> Callable[..., None]:
    """Return an implementation that calls a function with its context, voxel_num, points and voxel_size."""

    def hard_voxelize(
        ctx: Any,
        voxels: Any,
        coors: Any,
        num_points_per_voxel: Any,
        voxel_num: Any,
        points: Any,
        voxel_size: Any,
        coors_range: Any,
        max_points: int,
        max_voxels: int,
        NDim: int,
        deterministic: bool,
    ) -> None:
        act(ctx, voxel_num, points, voxel_size)

    return hard_voxelize


def test_results_in_host_memory_are_complete_when_the_call_returns() -> None:
    zero = np.zeros((), np.int64)

    def at_once(ctx: Any, voxel_num: Any, points: Any, voxel_size: Any) -> None:
        assert voxel_num.memory_kind is Device.host
        voxel_num.view()[...] = 0

    def with_the_stream(ctx: Any, voxel_num: Any, points: Any, voxel_size: Any) -> None:
        ctx.stream.d2h(voxel_num.data_ptr, zero.ctypes.data, zero.nbytes)

    assert outcome_of(VOXELIZE, "float32-no-points", voxelize_with(at_once)).verdict is Verdict.passed
    late = outcome_of(VOXELIZE, "float32-no-points", voxelize_with(with_the_stream))
    assert late.verdict is Verdict.failed
    assert "1 of 1 elements of voxel_num were not written" in late.message


def test_arguments_in_host_memory_are_readable_while_other_inputs_are_copied() -> None:
    seen: list[Any] = []

    def look(ctx: Any, voxel_num: Any, points: Any, voxel_size: Any) -> None:
        seen.append((voxel_size.memory_kind, voxel_size.view().tolist(), is_poison(points.view()).all()))

    vendor = make_vendor(VOXELIZE, voxelize_with(look))
    with vendor.open_device() as device, Call(vendor, device, case_of(VOXELIZE, "float32-points"), QUEUED) as call:
        call.run()
    assert seen == [(Device.host, [0.5, 0.25, 2.0], True)]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (lambda context: None, "form: outlist.3 was not allocated"),
        (lambda context: context.require_tensor((0,), lookup(REDUCE).dtypes[0]), "form: outlist.3 is float16"),
    ],
)
def test_every_entry_that_the_callee_allocates_is_checked(entry: Callable[[Any], Any], message: str) -> None:
    def without_points(ctx: Any, outlist: Any, feats: Any, coors: Any, reduce_type: int) -> None:
        for box, like in zip(outlist, (feats, coors), strict=False):
            box.value = ctx.require_tensor(like.shape, like.dtype)
        outlist[2].value, outlist[3].value = ctx.require_tensor((0,), coors.dtype), entry(ctx)

    outcome = outcome_of(REDUCE, "float32-sum-no-points", without_points)
    assert outcome.verdict is Verdict.failed
    assert outcome.message.startswith(message)
