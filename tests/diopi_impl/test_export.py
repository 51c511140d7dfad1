"""The built-in vendor as a library, called from C, C++, Python and threads, and its errors."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from host_process import build_host_process, changed_settings, is_ended_by_interrupt
from sampling import sampled
from toolchain import VENDORS, build, require_shared_python

from diopi_impl import Box, Vendor, VendorError, find_vendor
from diopi_impl.base import TEXT_QUERIES
from diopi_impl.export import ExportError, export
from diopi_impl.native import NativeVendor
from diopi_proto import types
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype, Error, Reduction, RoundMode, Scalar
from diopi_test.cases.selection import select_cases
from diopi_test.cli import main
from diopi_test.execution.ignored import ignored_labels, make_ignored_case
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case
from lib_rt import Context, Device, Generator, Tensor

JAX = "diopi_impl.jax_cpu:vendor"

ROUND_TRIP = [
    *("diopiAbsInp", "diopiSin", "diopiAdd", "diopiMulScalar", "diopiGelu", "diopiSum", "diopiMSELoss"),
    *("diopiHardVoxelizeMmcv", "diopiDynamicPointToVoxelMmcv", "diopiIndiceConvBackwardMmcv", "diopiSpMM"),
]
"""The functions whose smoke cases run on the vendor and on its library."""


@pytest.fixture(scope="module")
def jax() -> Vendor:
    """Return the built-in vendor from which the library was exported."""
    vendor = find_vendor(JAX)
    assert isinstance(vendor, Vendor)
    return vendor


@pytest.fixture(scope="module")
def programs(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the framework in C and in C++, each linked with the library."""
    folder = tmp_path_factory.mktemp("framework")
    return {
        "c": build_framework(folder / "in_c", "c", exported),
        "c++": build_framework(folder / "in_cpp", "c++", exported),
    }


@pytest.fixture(scope="module")
def small_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library of a vendor that loads quickly."""
    return export("sines:vendor", tmp_path_factory.mktemp("sines"))


@pytest.fixture(scope="module")
def small_program(small_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the framework in C, linked with the library that loads quickly."""
    return build_framework(tmp_path_factory.mktemp("small") / "framework", "c", small_library)


def build_framework(program: Path, language: str, library: Path, *flags: str) -> Path:
    """Build the framework as a program that is linked with the exported library, or skip the test."""
    require_shared_python()
    linked = (f"-L{library.parent}", "-ldiopi_impl", f"-Wl,-rpath,{library.parent}")
    return build(program, language, [VENDORS / "framework" / "framework.c"], *linked, *flags)


def run(program: Path, command: str) -> dict[str, str]:
    """Run the program and return its output lines by their first word."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([program, command], capture_output=True, text=True, timeout=120, env=bare)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if line)


# What the framework does, done in Python.


class Framework:
    """The calls of framework.c, made from Python, with results in the format of the program."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.lines: dict[str, str] = {}
        with vendor.open_device() as device, Context(device) as self.context:
            self.element_wise()
            self.reductions()
            self.arrays()
            with Generator(self.context, seed=42) as generator:
                out = self.zeros(3, 4)
                if self.call("diopiNormal", out, 1.0, 2.0, generator):
                    state = np.array([generator.seed, generator.offset], np.uint64)
                    self.record("diopiNormal", out, state)

    def tensor(self, values: Any) -> Tensor:
        """Return a tensor with a copy of the values."""
        return Tensor.from_numpy(self.context, values)

    def ramp(self, rows: int, columns: int, step: float) -> Tensor:
        """Return a float32 matrix whose elements increase by `step` from −2.5 · step on, in row-major order."""
        values = (np.arange(rows * columns, dtype=np.float32) - np.float32(2.5)) * np.float32(step)
        return self.tensor(values.reshape(rows, columns))

    def zeros(self, *shape: int) -> Tensor:
        """Return a float32 tensor of zeros."""
        return self.tensor(np.zeros(shape, np.float32))

    def call(self, name: str, *arguments: Any) -> bool:
        """Call a function, which must succeed; return False if the vendor does not implement it."""
        if not self.vendor.has(name):
            return False
        code = self.vendor.call(name, self.context, *arguments)
        assert code is Error.Success, self.vendor.last_error()
        return True

    def record(self, name: str, *results: Any) -> None:
        """Record the line of a function as the program prints it: the error code 0 and the bytes of the results."""
        arrays = [result.numpy() if isinstance(result, Tensor) else np.asarray(result) for result in results]
        self.lines[name] = "0 " + " ".join(array.tobytes().hex() for array in arrays)

    def run(self, name: str, out: Tensor, *arguments: Any) -> None:
        """Call a function with one result, and record the result if the vendor implements the function."""
        if self.call(name, out, *arguments):
            self.record(name, out)

    def element_wise(self) -> None:
        """Call element-wise functions of one and two tensors and record their results."""
        x, y, out = self.ramp(3, 4, 0.37), self.ramp(3, 4, -1.3), self.zeros(3, 4)
        self.run("diopiAbs", out, x)
        self.run("diopiSin", out, x)
        self.run("diopiTanhBackward", out, x, y)
        self.run("diopiAdd", out, x, y, Scalar.from_number(0.5))
        self.run("diopiMulScalar", out, x, Scalar.from_number(7))
        self.run("diopiDiv", out, x, y, RoundMode.floor)
        self.run("diopiGelu", out, x, "tanh")
        self.run("diopiClampScalar", out, x, Scalar.from_number(0.5), None)
        self.run("diopiNegInp", x)

    def reductions(self) -> None:
        """Call functions that reduce or compare tensors and record their results."""
        x, y = self.ramp(3, 4, 0.37), self.ramp(3, 4, -1.3)
        self.run("diopiSum", self.zeros(4), x, (0,))
        self.run("diopiArgmax", self.tensor(np.zeros((3, 1), np.int64)), x, -1, True)
        self.run("diopiMSELoss", self.zeros(), x, y, Reduction.mean)
        box = Box()
        if self.call("diopiEqual", box, x, y):
            self.record("diopiEqual", box.value)

    def arrays(self) -> None:
        """Call functions with lists of tensors or allocated results and record their results."""
        x, y = self.ramp(3, 4, 0.37), self.ramp(2, 4, -1.3)
        outs, box, grads = [self.zeros(1, 4), self.zeros(2, 4)], Box(), [self.ramp(3, 4, 0.37), self.ramp(2, 4, -1.3)]
        self.run("diopiCat", self.zeros(5, 4), [x, y], 2, 0)
        if self.call("diopiSplitWithSizes", outs, 2, x, (1, 2), 0):
            self.record("diopiSplitWithSizes", *outs)
        if self.call("diopiNonzero", box, x):
            self.record("diopiNonzero", box.value)
        if self.call("diopiClipGradNorm", box, grads, 2, 1.5, 2.0, False):
            self.record("diopiClipGradNorm", np.float64(box.value), *grads)


# In a program with no Python in it.


@pytest.mark.parametrize(("language", "style"), sampled(product(["c", "c++"], ["results", "registered"]), 1))
def test_c_program_receives_bit_identical_results(
    programs: dict[str, Path], jax: Vendor, language: str, style: str
) -> None:
    lines = run(programs[language], style)
    assert len(lines) >= 12
    assert lines == Framework(jax).lines


@pytest.mark.slow
def test_threads_receive_equal_results(programs: dict[str, Path], jax: Vendor) -> None:
    assert run(programs["c"], "threads") == Framework(jax).lines


def test_threads_may_start_python_concurrently(small_program: Path) -> None:
    (line,) = run(small_program, "first").items()
    expected = np.sin(np.arange(4, dtype=np.float32) - np.float32(2.5))
    np.testing.assert_allclose(np.frombuffer(bytes.fromhex(line[1].split()[0]), np.float32), expected, rtol=1e-6)


def test_failure_returns_code_and_reason_and_changes_nothing(small_program: Path) -> None:
    lines = run(small_program, "failures")
    untouched = (np.arange(12, dtype=np.float32) - np.float32(2.5)).tobytes().hex()
    reasons = {
        "shape": "1 diopiSin: out has shape (3, 4), the result has (2, 4)",
        "dtype": "1000 diopiBitwiseNot: input is float32, expected one of ",
        "missing": "1 diopiSin: input is required, NULL was given",
        "stream": "1 diopiSin: ErrorOccurred: stream_sync returned 1: stream synchronize: 0x3039 is not a handle",
    }
    for failure, reason in reasons.items():
        message, result = lines[failure].split(" |")
        assert message.startswith(reason)
        assert result.strip() == untouched
    assert lines["memory"] == f"1 malloc: out of memory: {2**60} bytes were requested"


def test_results_do_not_depend_on_the_floating_point_environment_of_the_caller(tmp_path: Path) -> None:
    """The vendor computes with NumPy in the calling thread."""
    library = export("small_vendor:vendor", tmp_path)
    lines = run(build_framework(tmp_path / "framework", "c", library), "arithmetic")
    assert lines["other"] == lines["default"]
    assert lines["kept"] == "1"


# In a program that has settings of its own.


@pytest.mark.slow
def test_start_of_python_changes_no_setting_of_the_process(exported: Path, tmp_path: Path) -> None:
    program = build_host_process(tmp_path)
    assert changed_settings(program, exported, "initLibrary") == []
    assert is_ended_by_interrupt(program, exported, "initLibrary")


# Where it can't work.


def test_process_with_another_python_is_rejected(small_library: Path, tmp_path: Path) -> None:
    program = build_framework(tmp_path / "framework", "c", small_library, "-DANOTHER_PYTHON", "-rdynamic")
    (line,) = run(program, "first").items()
    version = sysconfig.get_python_version()
    assert " ".join(line).strip() == f"1 this library is for Python {version}, the process runs 2.7.18"


OTHER_PYTHON = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.diopiGetLastErrorString.restype = ctypes.c_char_p
stream = ctypes.c_void_p()
print(library.device_make_stream(ctypes.byref(stream)), library.diopiAbs(None, None, None), library.initLibrary())
print(library.diopiGetLastErrorString().decode())
"""


def other_pythons() -> Iterator[str]:
    """Yield Python interpreters of other versions, from pyenv and from /usr/bin and /usr/local/bin."""
    own_version = sysconfig.get_python_version()
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for minor in range(8, 20):
        installed = sorted(versions.glob(f"3.{minor}.*/bin/python"))
        found = shutil.which(f"python3.{minor}", path=os.pathsep.join(["/usr/bin", "/usr/local/bin"]))
        if f"3.{minor}" != own_version and (installed or found):
            yield str(installed[0]) if installed else str(found)


@pytest.mark.parametrize("python", [*other_pythons()] or [pytest.param("", marks=pytest.mark.skip("no other Python"))])
def test_other_python_versions_receive_a_reason(exported: Path, python: str) -> None:
    done = subprocess.run([python, "-c", OTHER_PYTHON, exported], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    codes, reason = done.stdout.splitlines()
    assert codes == "1 1 1"
    assert reason.startswith(f"this library is for Python {sysconfig.get_python_version()}, the process runs 3.")


def test_forked_process_receives_a_reason(small_program: Path) -> None:
    (line,) = run(small_program, "forked").items()
    assert " ".join(line).strip().startswith("1 the process was forked after Python had started")


def test_missing_vendor_is_reported(tmp_path: Path) -> None:
    source = "from diopi_impl import Vendor\nfrom lib_rt import RuntimeFunctions\n"
    module = tmp_path / "short_lived.py"
    module.write_text(f"{source}vendor = Vendor('short', '1', RuntimeFunctions(stream_create=lambda: 1))\n")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from diopi_impl.export import export;"
        "export('short_lived:vendor', Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, env=environment)
    module.unlink()
    script = OTHER_PYTHON.replace("library.diopiAbs(None, None, None)", "1")
    command = [sys.executable, "-c", script, tmp_path / "libdiopi_impl.so"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    codes, reason = done.stdout.splitlines()
    assert codes == "1 1 1"
    assert reason.startswith("the vendor can't be served: vendor short_lived:vendor")


# In Python.


@pytest.fixture(scope="module")
def library(exported: Path) -> NativeVendor:
    """Load the exported library as a vendor."""
    return NativeVendor(exported)


def test_library_exports_the_functions_of_the_vendor(library: NativeVendor, jax: Vendor) -> None:
    names = [name for name, prototype in prototypes().items() if prototype.returns == "diopiError_t"]
    assert [library.has(name) for name in names] == [jax.has(name) for name in names]
    assert [library.query(name) for name in TEXT_QUERIES[:2]] == [jax.name, jax.version]


@pytest.mark.parametrize("function", sampled(ROUND_TRIP, 1, slow=1))
def test_suite_passes_on_the_exported_library(library: NativeVendor, jax: Vendor, function: str) -> None:
    cases = [compute_baseline_case(lookup(function), case) for case in select_cases(function, "smoke")]
    assert cases
    with library.open_device() as there, jax.open_device() as here:
        for case in cases:
            outcome = run_case(library, there, case)
            assert outcome == run_case(jax, here, case), case.id
        assert there.live_blocks == here.live_blocks == 0


@pytest.mark.parametrize("function", ["diopiPool2dBackward", "diopiNLLLossV2Backward", "diopiBatchNormBackward"])
def test_ignored_arguments_may_be_anything_in_c(library: NativeVendor, function: str) -> None:
    prototype = lookup(function)
    cases = {case.label: compute_baseline_case(prototype, case) for case in select_cases(function, "smoke")}
    labels = ignored_labels(prototype, cases.values())
    assert labels
    with library.open_device() as device:
        for label, base in labels:
            outcome = run_case(library, device, make_ignored_case(cases[base], label))
            assert outcome.verdict is Verdict.passed, f"{function}[{label}]: {outcome.message}"


def test_errors_match_those_of_the_vendor(library: NativeVendor, jax: Vendor) -> None:
    for vendor in (library, jax):
        with vendor.open_device() as device, Context(device) as context:
            out, mismatched = Tensor.empty(context, (2,), Dtype.float32), Tensor.empty(context, (3,), Dtype.float32)
            before = out.storage()
            assert vendor.call("diopiSin", context, out, mismatched) is Error.ErrorOccurred
            assert vendor.last_error() == "diopiSin: out has shape (2,), the result has (3,)"
            assert vendor.call("diopiBitwiseNot", context, out, out) is Error.DtypeNotSupported
            np.testing.assert_array_equal(out.storage(), before)


def test_numbers_keep_their_kinds_and_ranges(library: NativeVendor, jax: Vendor) -> None:
    calls: list[tuple[str, Dtype, Scalar, Any]] = [
        ("diopiPow", Dtype.float32, Scalar.from_number(-0.5), 0.5),
        ("diopiPow", Dtype.int32, Scalar.from_number(2), 16),
        ("diopiPow", Dtype.int32, Scalar.from_number(True), 4),
        (
            "diopiPow",
            Dtype.int32,
            Scalar.from_number(-1),
            "diopiPow: exponent is -1, expected at least 0 for an integer input",
        ),
        ("diopiFill", Dtype.int8, Scalar.from_number(-128), -128),
        ("diopiFill", Dtype.int8, Scalar.from_number(128), "diopiFill: value is 128, out of the range of int8"),
    ]
    for vendor in (library, jax):
        with vendor.open_device() as device, Context(device) as context:
            four = Tensor.from_numpy(context, np.array([4], np.int32))
            for name, dtype, number, expected in [*calls, *calls[::-1]]:
                out = Tensor.empty(context, (1,), dtype)
                code = vendor.call(name, context, out, *([four] if name == "diopiPow" else []), number)
                found = out.numpy().item() if code is Error.Success else vendor.last_error()
                assert found == expected


@pytest.mark.parametrize("axes", [32, 33])
def test_tensors_of_many_axes_are_passed(library: NativeVendor, axes: int) -> None:
    """33 axes are more than the runtime describes in a single query."""
    values = np.arange(6, dtype=np.float32).reshape(2, *[1] * (axes - 2), 3)
    with library.open_device() as device, Context(device) as context:
        tensor, out = Tensor.from_numpy(context, values), Tensor.empty(context, values.shape, Dtype.float32)
        assert library.call("diopiNeg", context, out, tensor) is Error.Success, library.last_error()
        np.testing.assert_array_equal(out.numpy(), -values)


@pytest.mark.parametrize(("tensors", "axes"), [(63, 1), (64, 1), (63, 2), (15, 16)])
def test_many_tensors_are_passed(library: NativeVendor, tensors: int, axes: int) -> None:
    """The calls have as many tensors as fit into the description of a call, and more."""
    values = np.arange(3, dtype=np.float32).reshape(3, *[1] * (axes - 1))
    with library.open_device() as device, Context(device) as context:
        inputs = [Tensor.from_numpy(context, values + i) for i in range(tensors)]
        out = Tensor.empty(context, (3 * tensors, *values.shape[1:]), Dtype.float32)
        assert library.call("diopiCat", context, out, inputs, tensors, 0) is Error.Success, library.last_error()
        np.testing.assert_array_equal(out.numpy(), np.concatenate([values + i for i in range(tensors)]))


def test_export_supports_devices_that_are_not_addressable(tmp_path: Path) -> None:
    """Memory that the host can't address is read and written by the vendor's copy functions."""
    library = NativeVendor(export("remote:vendor", tmp_path))
    with library.open_device() as device, Context(device) as context:
        values = Tensor.from_numpy(context, np.arange(6, dtype=np.float32), strides=(2,), offset=1)
        out = Tensor.empty(context, (6,), Dtype.float32, strides=(3,))
        assert library.call("diopiNeg", context, out, values) is Error.Success, library.last_error()
        np.testing.assert_array_equal(out.numpy(), -np.arange(6, dtype=np.float32))
        cells = Tensor.from_numpy(context, np.zeros((1, 3), np.int32))
        points, size, bounds = np.float32([[1, 2, 4]]), np.float32([0.5, 1, 2]), np.float32([0, 1, 2, 9, 9, 9])
        grid = (Tensor.from_numpy(context, array, memory_kind=types.Device.host) for array in (size, bounds))
        code = library.call("diopiDynamicVoxelizeMmcv", context, cells, Tensor.from_numpy(context, points), *grid, 3)
        assert code is Error.Success, library.last_error()
        assert cells.numpy().tolist() == [[1, 1, 2]]


# Building.


def test_the_command_line_builds_a_library(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["export", "--vendor", "remote:vendor", "--output", str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(tmp_path / "new" / "libdiopi_impl.so")
    assert NativeVendor(tmp_path / "new" / "libdiopi_impl.so").name == "remote"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["libdiopi_impl.so"]


def test_export_rejects_vendors_and_reports_compiler_errors(
    c_vendor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(VendorError, match=r"diopi_impl\.Vendor"):
        export(str(c_vendor), tmp_path)
    with pytest.raises(VendorError, match="nobody"):
        export("nobody", tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ExportError, match="no-such-compiler"):
        export(JAX, tmp_path)
    monkeypatch.setenv("CC", "false")
    with pytest.raises(ExportError, match="failed"):
        export(JAX, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_devices_can_be_opened_and_closed_repeatedly(library: NativeVendor) -> None:
    for _ in range(3):
        device: Device = library.open_device()
        with Context(device) as context:
            assert Tensor.from_numpy(context, np.arange(3)).numpy().tolist() == [0, 1, 2]
        device.close()
