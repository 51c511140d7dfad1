"""Chains of calls that are in flight at the same time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baselines import make_level

from diopi_impl import BaseVendor, find_vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error, Scalar
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution.in_flight import KINDS, Chain
from diopi_test.execution.verdict import Verdict
from diopi_test.run.call_text import case_text
from diopi_test.run.collection import collect_file
from diopi_test.run.limits import CaseOptions
from diopi_test.run.lookup import LoadedCase, load_case
from diopi_test.run.options import RunOptions
from diopi_test.run.run_in_flight import run_in_flight
from lib_rt import Context, Device

FUNCTIONS = ("diopiMul", "diopiAdd", "diopiSub")


def compute(name: str, first: Any, second: Any, factor: Scalar | None = None) -> Any:
    """Return the product, sum or difference of two arrays."""
    if name == "diopiMul":
        return first * second
    scaled = second * (factor.number if factor is not None else 1)
    return first + scaled if name == "diopiAdd" else first - scaled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small level."""
    level: Path = make_level(tmp_path_factory.mktemp("levels") / "full", *FUNCTIONS)
    return level


def load_chain(folder: Path, label: str, count: int = 4) -> LoadedCase:
    """Load the stored chain of `diopiMul` with this label."""
    path = folder / "diopiMul.h5"
    collected = next(case for case in collect_file(path) if case.label == label)
    assert (collected.case_class, collected.dtype) == (CaseClass.concurrent, "")
    return load_case(BaselineFile(path), collected, CaseOptions(in_flight=count))


def chain_of(folder: Path, label: str, count: int = 4) -> Chain:
    """Return the chain of calls of a loaded case."""
    chain = load_chain(folder, label, count).chain
    assert chain is not None
    return chain


class StagingVendor(BaseVendor):
    """Computes into staging memory, from which the stream copies to the result.

    Args:
        count: the number of staging buffers, which the calls use in turn.
    """

    def __init__(self, count: int) -> None:
        super().__init__("staging", "1")
        self._staging = [np.empty(2**20, np.uint8) for _ in range(count)]
        self._calls = 0

    def has(self, name: str) -> bool:
        return name in FUNCTIONS

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        out, first, second, *factor = arguments
        staging = self._staging[self._calls % len(self._staging)]
        self._calls += 1
        storage = out.storage_view()
        staging[: storage.size] = storage
        view, size = out.view(), out.element_size
        elements: Any = np.ndarray(view.shape, view.dtype, staging.data, out.storage_offset * size, view.strides)
        with np.errstate(all="ignore"):
            elements[...] = compute(name, first.view(), second.view(), *factor)
        context.stream.d2d(out.storage_ptr, staging.ctypes.data, storage.size)
        return Error.Success

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(HostRuntime().functions(), host_addressable=True)


@pytest.mark.parametrize("label", list(KINDS))
def test_staging_memory_that_two_calls_share_is_found(folder: Path, label: str) -> None:
    chain, vendor = chain_of(folder, label), StagingVendor(1)
    with vendor.open_device() as device:
        outcome = run_in_flight(vendor, device, chain)
    if label == "in-flight-family":
        assert {case.function for case in chain.cases} == set(FUNCTIONS)
    assert outcome.verdict is Verdict.failed
    (failed,) = (finding for finding in outcome.check_results if not finding.passed)
    assert (failed.check, failed.message.startswith("call 1 of ")) == ("in_flight", True)


@pytest.mark.parametrize("label", list(KINDS))
def test_calls_with_separate_staging_memory_pass(folder: Path, label: str) -> None:
    vendor = StagingVendor(8)
    with vendor.open_device() as device:
        outcome = run_in_flight(vendor, device, chain_of(folder, label))
    assert (outcome.verdict, outcome.message) == (Verdict.passed, "")


@pytest.mark.parametrize("label", list(KINDS))
def test_the_built_in_vendor_passes_chains(folder: Path, label: str) -> None:
    vendor = find_vendor("jax_cpu")
    with vendor.open_device() as device:
        outcome = run_in_flight(vendor, device, chain_of(folder, label))
    assert (outcome.verdict, outcome.message) == (Verdict.passed, "")


def test_chains_grow_and_mix_element_types(folder: Path) -> None:
    cases = chain_of(folder, "in-flight-one-stream").cases
    sizes = [case.arguments["input"].values.size + case.arguments["other"].values.size for case in cases]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert len({case.dtype for case in cases}) > 1
    assert len(chain_of(folder, "in-flight-one-stream", 2).cases) == 2


class WrongVendor(StagingVendor):
    """Returns wrong products in every call."""

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        arguments[0].view()[...] = 7
        return Error.Success


def test_calls_that_fail_on_their_own_are_not_reported_again(folder: Path) -> None:
    vendor = WrongVendor(1)
    with vendor.open_device() as device:
        outcome = run_in_flight(vendor, device, chain_of(folder, "in-flight-one-stream"))
    assert outcome.verdict is Verdict.passed
    assert outcome.check_results[0].message == "not checked: 0 of 4 calls pass on their own"


def test_a_missing_function_is_not_implemented(folder: Path) -> None:
    vendor, chain = StagingVendor(1), chain_of(folder, "in-flight-one-stream")
    vendor.has = lambda name: False
    with vendor.open_device() as device:
        assert run_in_flight(vendor, device, chain).verdict is Verdict.not_implemented


def test_zero_calls_in_flight_leave_out_all_chains(folder: Path) -> None:
    def classes(in_flight: int) -> set[CaseClass]:
        source = RunOptions(vendor="jax_cpu", level="full", data=folder.parent, in_flight=in_flight).source
        return {case.case_class for case in source.list_cases()}

    assert CaseClass.concurrent in classes(2)
    assert CaseClass.concurrent not in classes(0)
    command = RunOptions(vendor="jax_cpu", in_flight=2).command_of("diopiMul[in-flight-family]")
    assert "--in-flight 2" in command


def test_the_text_of_a_chain_lists_its_calls(folder: Path) -> None:
    text = "\n".join(case_text(load_chain(folder, "in-flight-two-streams", 2), full=False))
    assert "are in flight at the same time" in text
    assert "diopiMul[float32-" in text
