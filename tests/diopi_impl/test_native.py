"""Compiled vendors: loading, initializing and finalizing a library, single calls, and the suite on two libraries."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toolchain import library

from diopi_impl import Box, VendorError, find_vendor
from diopi_impl.base import TEXT_QUERIES
from diopi_impl.native import NativeVendor
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype, Error, MemoryFormat, Reduction
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case
from lib_rt import CallError, Context, Device, Generator, Tensor

C_FUNCTIONS = [
    "diopiAbs",
    "diopiAbsInp",
    "diopiAdd",
    "diopiDiv",
    "diopiSum",
    "diopiArgmax",
    "diopiGelu",
    "diopiMSELoss",
    "diopiNonzero",
    "diopiCat",
    "diopiSplitWithSizes",
    "diopiEqual",
    "diopiClipGradNorm",
    "diopiNormal",
    "diopiSpMM",
]

CPP_FUNCTIONS = [
    "diopiNeg",
    "diopiNegInp",
    "diopiMul",
    "diopiMulInp",
    "diopiMulScalar",
    "diopiClampScalar",
    "diopiProd",
    "diopiSort",
    "diopiMaskedSelect",
    "diopiStack",
    "diopiMeshGrid",
    "diopiIndex",
    "diopiPad",
    "diopiRandomInp",
    "diopiContiguous",
    "diopiGetNativeMemoryFormat",
]


class OpenVendor:
    """A compiled vendor on an open device, with a context to call it in."""

    def __init__(self, path: Path) -> None:
        self.vendor = NativeVendor(path)
        self.device = self.vendor.open_device()
        self.context = Context(self.device)

    def tensor(self, values: Any, dtype: Any = np.float32) -> Tensor:
        """Return a tensor with these values."""
        return Tensor.from_numpy(self.context, np.array(values, dtype))

    def empty(self, *shape: int, dtype: Dtype = Dtype.float32) -> Tensor:
        """Return an uninitialized tensor."""
        return Tensor.empty(self.context, shape, dtype)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the vendor, which must succeed."""
        code = self.vendor.call(name, self.context, *arguments)
        assert code is Error.Success, self.vendor.last_error()

    def close(self) -> None:
        """Close the context and the device."""
        self.context.close()
        self.device.close()


@pytest.fixture
def c(c_vendor: Path) -> Iterator[OpenVendor]:
    """Return the vendor in C with an open device and a context."""
    bench = OpenVendor(c_vendor)
    yield bench
    bench.close()


@pytest.fixture
def cpp(cpp_vendor: Path) -> Iterator[OpenVendor]:
    """Return the vendor in C++ with an open device and a context."""
    bench = OpenVendor(cpp_vendor)
    yield bench
    bench.close()


# Loading.


def test_library_reports_name_and_version(c_vendor: Path, cpp_vendor: Path) -> None:
    assert [(v.name, v.version) for v in map(NativeVendor, (c_vendor, cpp_vendor))] == [
        ("example_c", "1.2.3"),
        ("example_cpp", "0.9"),
    ]
    assert find_vendor(str(c_vendor)).name == "example_c"


def test_library_returns_its_texts(c: OpenVendor, cpp_vendor: Path) -> None:
    assert [NativeVendor(cpp_vendor).query(name) for name in TEXT_QUERIES[:2]] == ["example_cpp", "0.9"]
    assert all(c.vendor.has(name) for name in TEXT_QUERIES)
    c.vendor.call("diopiGelu", c.context, c.empty(2), c.tensor([1.0, 2.0]), "exactly")
    assert c.vendor.query("diopiGetLastErrorString").startswith("diopiGelu: ")


def test_function_that_is_not_exported_is_not_implemented(c_vendor: Path, cpp_vendor: Path) -> None:
    for path, functions in ((c_vendor, C_FUNCTIONS), (cpp_vendor, CPP_FUNCTIONS)):
        vendor = NativeVendor(path)
        assert [n for n in prototypes() if vendor.has(n) and prototypes()[n].returns == "diopiError_t"] == [
            n for n in prototypes() if n in functions
        ]
        assert not vendor.has("initLibrary")


def test_call_of_missing_function_reports_its_name(c: OpenVendor) -> None:
    assert c.vendor.call("diopiConvolution2d", c.context) is Error.NoImplement
    assert "libdiopi_impl.so does not export diopiConvolution2d" in c.vendor.last_error()


def test_missing_and_invalid_libraries_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(VendorError, match=r"nowhere\.so"):
        find_vendor(str(tmp_path / "nowhere.so"))
    tmp_path.joinpath("text.so").write_text("no library")
    with pytest.raises(VendorError, match=r"text\.so"):
        find_vendor(str(tmp_path / "text.so"))


def test_a_missing_symbol_is_found_when_the_library_is_loaded(tmp_path: Path) -> None:
    path = library(tmp_path, "extern int nobody_has_this(void); int use(void) { return nobody_has_this(); }")
    with pytest.raises(VendorError, match="nobody_has_this"):
        NativeVendor(path)


def test_library_without_texts_is_named_after_its_file(tmp_path: Path) -> None:
    vendor = NativeVendor(library(tmp_path, "int nothing;"))
    assert (vendor.name, vendor.version, vendor.last_error()) == ("libdiopi_impl.so", "unknown", "")
    with vendor.open_device() as device, pytest.raises(Exception, match="NoRegisteredStreamCreateFunction"):
        Context(device)


# Starting and ending.


def test_library_is_initialized_once_and_finalized_after_the_last_device(c_vendor: Path) -> None:
    vendor = NativeVendor(c_vendor)
    for _ in range(2):
        with vendor.open_device() as device1, vendor.open_device() as device2:
            for device in (device1, device2):
                with Context(device) as context:
                    assert Tensor.from_numpy(context, np.arange(3.0)).numpy().tolist() == [0, 1, 2]


def test_failed_initialization_is_reported(tmp_path: Path) -> None:
    vendor = NativeVendor(library(tmp_path, "int initLibrary(void) { return 5; }"))
    with pytest.raises(VendorError, match=r"initLibrary.*5"):
        vendor.open_device()


def test_failed_finalization_is_reported(tmp_path: Path) -> None:
    device = NativeVendor(library(tmp_path, "int finalizeLibrary(void) { return 7; }")).open_device()
    with pytest.raises(CallError, match=r"finalizeLibrary.*7"):
        device.close()


def test_registered_functions_replace_well_known_names(tmp_path: Path) -> None:
    source = """
    #include <diopi/diopi_register.h>
    #include <stdlib.h>
    static char one, two;
    void* device_malloc(uint64_t bytes) { return bytes ? &one : &one; }
    static void* registered(uint64_t bytes) { return bytes ? &two : &two; }
    void* addresses[] = {&one, &two};
    int32_t initLibrary(void) { return diopiRegisterDeviceMallocFunc(registered); }
    """
    with NativeVendor(library(tmp_path, source)).open_device() as device:
        assert device.malloc(8) == device.malloc(9)
        assert list(device.pointers) == ["malloc"]


# Failures.


def test_last_error_comes_from_the_library(c: OpenVendor) -> None:
    code = c.vendor.call("diopiGelu", c.context, c.empty(2), c.tensor([1, 2]), "exactly")
    assert code is Error.ErrorOccurred
    assert c.vendor.last_error() == "diopiGelu: approximate is 'exactly', expected 'none' or 'tanh'"
    code = c.vendor.call("diopiAbs", c.context, c.empty(1, dtype=Dtype.int8), c.tensor([1], np.int8))
    assert code is Error.DtypeNotSupported


def test_values_out_of_range_for_c_are_rejected(cpp: OpenVendor) -> None:
    code = cpp.vendor.call("diopiRandomInp", cpp.context, cpp.empty(2), 2**63, None, None)
    assert code is Error.ErrorOccurred
    assert "diopiRandomInp" in cpp.vendor.last_error()
    assert cpp.vendor.call("diopiNeg", cpp.context, cpp.empty(2)) is Error.ErrorOccurred


def test_tensors_of_another_device_are_rejected(c: OpenVendor, cpp: OpenVendor) -> None:
    code = c.vendor.call("diopiAbs", c.context, c.empty(1), cpp.tensor([1]))
    assert code is Error.ErrorOccurred
    assert "another device" in c.vendor.last_error()


def test_unknown_error_code_is_an_error(tmp_path: Path, c: OpenVendor) -> None:
    source = "int diopiAbsInp(void* ctx, void* input) { return ctx == input ? 0 : 77; }"
    vendor = NativeVendor(library(tmp_path, source))
    assert vendor.call("diopiAbsInp", c.context, c.tensor([1])) is Error.ErrorOccurred
    assert "77" in vendor.last_error()


def test_boxes_stay_empty_when_the_call_fails(cpp: OpenVendor) -> None:
    box = Box()
    code = cpp.vendor.call("diopiIndex", cpp.context, box, cpp.tensor([1, 2]), [cpp.tensor([5], np.int64)], 1)
    assert (code, box.value) == (Error.ErrorOccurred, None)


# Kinds of parameters.


def test_arrays_of_tensors_are_passed(c: OpenVendor) -> None:
    x, y, out = c.tensor([[1, 2]]), c.tensor([[3, 4], [5, 6]]), c.empty(3, 2)
    c.call("diopiCat", out, [x, y], 2, 0)
    assert out.numpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    outs = [c.empty(2, 2), c.empty(1, 2)]
    c.call("diopiSplitWithSizes", outs, 2, out, (2, 1), -2)
    assert [part.numpy().tolist() for part in outs] == [[[1, 2], [3, 4]], [[5, 6]]]


def test_arrays_with_gaps_are_passed(cpp: OpenVendor) -> None:
    box, index = Box(), cpp.tensor([2, 0], np.int64)
    cpp.call("diopiIndex", box, cpp.tensor([[1, 2, 3], [4, 5, 6]]), [None, index], 2)
    assert box.value.numpy().tolist() == [[3, 1], [6, 4]]


def test_callee_allocates_tensors(c: OpenVendor, cpp: OpenVendor) -> None:
    box = Box()
    c.call("diopiNonzero", box, c.tensor([[0, 1], [2, 0]]))
    assert (box.value.numpy().tolist(), box.value.dtype) == ([[0, 1], [1, 0]], Dtype.int64)
    cpp.call("diopiContiguous", box, cpp.tensor(np.zeros((1, 2, 3, 4))), MemoryFormat.ChannelsLast)
    assert box.value.strides == (24, 1, 8, 2)


def test_callee_returns_numbers(c: OpenVendor, cpp: OpenVendor) -> None:
    box, grads = Box(), [c.tensor([3]), c.tensor([4])]
    c.call("diopiClipGradNorm", box, grads, 2, 2.5, 2.0, False)
    assert box.value == 5.0
    np.testing.assert_allclose([grad.numpy()[0] for grad in grads], [1.5, 2], rtol=1e-6)
    c.call("diopiEqual", box, c.tensor([1]), c.tensor([1]))
    assert box.value is True
    cpp.call("diopiGetNativeMemoryFormat", cpp.tensor([[1]]), box)
    assert box.value == 2


def test_optional_numbers_may_be_omitted(c: OpenVendor, cpp: OpenVendor) -> None:
    place, matrix = c.empty(1, dtype=Dtype.int64), [[1, 9], [3, 4]]
    c.call("diopiArgmax", place, c.tensor(matrix), None, False)
    assert place.numpy().tolist() == [1]
    places = c.empty(2, dtype=Dtype.int64)
    c.call("diopiArgmax", places, c.tensor(matrix), 1, False)
    assert places.numpy().tolist() == [1, 1]
    padded = cpp.empty(1, 4)
    for value, filling in ((None, 0), (7.5, 7.5)):
        cpp.call("diopiPad", padded, cpp.tensor([[1, 2]]), (1, 1), "constant", value)
        assert padded.numpy().tolist() == [[filling, 1, 2, filling]]


def test_scalars_of_both_payloads_are_passed(cpp: OpenVendor) -> None:
    out = cpp.empty(3)
    for low, high, expected in ((2, None, [2, 2, 3]), (None, 1.5, [1, 1.5, 1.5]), (True, 2.5, [1, 2, 2.5])):
        cpp.call("diopiClampScalar", out, cpp.tensor([1, 2, 3]), low, high)
        assert out.numpy().tolist() == expected
    whole = cpp.empty(1, dtype=Dtype.int64)
    cpp.call("diopiMulScalar", whole, cpp.tensor([2**53 + 1], np.int64), 3)
    assert whole.numpy().tolist() == [3 * (2**53 + 1)]


def test_enumerators_are_passed(c: OpenVendor) -> None:
    for reduction, expected in ((Reduction.mean, 2.5), (Reduction.sum, 5)):
        out = c.empty(1)
        c.call("diopiMSELoss", out, c.tensor([1, 2]), c.tensor([2, 4]), reduction)
        assert out.numpy().tolist() == [expected]
    assert c.vendor.call("diopiMSELoss", c.context, c.empty(1), c.tensor([1]), c.tensor([2]), 3) is Error.ErrorOccurred


def test_generators_are_passed(c: OpenVendor, cpp: OpenVendor) -> None:
    with Generator(c.context, seed=5) as generator:
        first, second, repeated_first = c.empty(1000), c.empty(1000), c.empty(1000)
        c.call("diopiNormal", first, 1.0, 2.0, generator)
        assert generator.offset == 2000
        c.call("diopiNormal", second, 1.0, 2.0, generator)
        generator.offset = 0
        c.call("diopiNormal", repeated_first, 1.0, 2.0, generator)
    assert not np.array_equal(first.numpy(), second.numpy())
    assert np.array_equal(first.numpy(), repeated_first.numpy())
    assert abs(first.numpy().mean() - 1) < 0.3
    numbers = cpp.empty(100, dtype=Dtype.int64)
    cpp.call("diopiRandomInp", numbers, -2, 2, None)
    assert set(numbers.numpy()) == {-2, -1, 0, 1}


def test_sparse_tensors_are_passed(c: OpenVendor) -> None:
    parts = (c.tensor([0, 1, 3], np.int64), c.tensor([1, 0, 2], np.int64), c.tensor([2, 3, 4]))
    sparse, out = Tensor.sparse_csr(*parts, (2, 3)), c.empty(2, 2)
    c.call("diopiSpMM", out, sparse, c.tensor([[1, 2], [3, 4], [5, 6]]))
    assert out.numpy().tolist() == [[6, 8], [23, 30]]
    assert c.vendor.call("diopiSpMM", c.context, out, c.empty(2, 3), c.empty(3, 2)) is Error.NoImplement


def test_several_results_are_returned(cpp: OpenVendor) -> None:
    values, indices = cpp.empty(3), cpp.empty(3, dtype=Dtype.int64)
    for stable in (None, True):
        cpp.call("diopiSort", values, indices, cpp.tensor([2, 3, 1]), 0, True, stable)
        assert (values.numpy().tolist(), indices.numpy().tolist()) == ([3, 2, 1], [1, 0, 2])
    outs = [cpp.empty(2, 3), cpp.empty(2, 3)]
    cpp.call("diopiMeshGrid", outs, [cpp.tensor([1, 2]), cpp.tensor([3, 4, 5])], 2)
    assert [out.numpy().tolist() for out in outs] == [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]


# The suite's cases.


def verdicts(vendor: NativeVendor, device: Device, function: str) -> dict[str, Verdict]:
    """Run the smoke cases of a function, assert that none fails, and return the verdicts by case ID."""
    prototype = lookup(function)
    cases = [compute_baseline_case(prototype, case) for case in select_cases(function, "smoke")]
    outcomes = {case.id: run_case(vendor, device, case) for case in cases}
    failed = [f"{case}: {outcome.message}" for case, outcome in outcomes.items() if outcome.verdict is Verdict.failed]
    assert not failed, "\n".join(failed)
    return {case: outcome.verdict for case, outcome in outcomes.items()}


def check_suite(bench: OpenVendor, function: str, dtypes: tuple[str, ...]) -> None:
    """Assert that cases of every supported element type pass and that no other case fails."""
    found = verdicts(bench.vendor, bench.device, function)
    if not found:
        pytest.skip(f"{function} has no cases")
    passed = Counter(case.split("[")[1].split("-")[0] for case, verdict in found.items() if verdict is Verdict.passed)
    tested = {case.split("[")[1].split("-")[0] for case in found}
    assert set(dtypes) & tested <= set(passed)
    assert set(found.values()) <= {Verdict.passed, Verdict.unsupported, Verdict.not_implemented}
    assert bench.device.live_blocks == 0


@pytest.mark.parametrize("function", C_FUNCTIONS)
def test_the_vendor_in_c_passes_the_suite(c: OpenVendor, function: str) -> None:
    check_suite(c, function, ("float32", "float64"))


@pytest.mark.parametrize("function", CPP_FUNCTIONS)
def test_the_vendor_in_cpp_passes_the_suite(cpp: OpenVendor, function: str) -> None:
    check_suite(cpp, function, ("float32", "float64", "int64", "uint8"))
