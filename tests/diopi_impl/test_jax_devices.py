"""The vendors `jax:PLATFORM`: how they are found, and calls on another device than the first one of the CPU."""

import os
import subprocess
import sys
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from diopi_impl import VendorNotFoundError, find_vendor
from diopi_impl.jax_cpu import placement, programs
from diopi_impl.jax_cpu import vendor as jax_cpu
from diopi_impl.jax_cpu.devices import find_jax_vendor
from diopi_proto.types import Error, Scalar
from lib_rt import Context, Tensor

UNIT = Scalar.from_number(1)

vendor = jax_cpu.on_device("jax:chip", jax.devices("cpu")[0])
"""A vendor that treats the CPU as a device whose memory the host can't address."""


@pytest.fixture
def context() -> Iterator[Context]:
    """Return a context of the vendor."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened


@pytest.mark.parametrize("name", ["jax:cpu", "jax:cpu:0"])
def test_the_vendor_of_the_cpu_is_jax_cpu(name: str) -> None:
    assert find_vendor(name) is find_vendor("jax_cpu") is jax_cpu


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        ("submarine", "has no platform 'submarine' here: Unknown backend submarine"),
        ("cpu:99", "the platform 'cpu' has \\d+ devices here"),
        ("cpu:first", "'first' is not the number of a device"),
    ],
)
def test_a_device_that_does_not_exist_is_an_error_that_names_the_devices(platform: str, message: str) -> None:
    with pytest.raises(VendorNotFoundError, match=rf"^vendor jax:{platform}: .*{message}.* The devices are jax:cpu:0"):
        find_jax_vendor(platform)


def test_results_of_a_device_reach_strided_memory(context: Context) -> None:
    values = np.arange(6, dtype=np.float64).reshape(2, 3)
    operands = [Tensor.from_numpy(context, values, strides=(1, 2), offset=3), Tensor.from_numpy(context, values)]
    result = Tensor.empty(context, (2, 3), operands[0].dtype, strides=(8, 2), offset=5, storage_elements=30)
    assert vendor.call("diopiAdd", context, result, *operands, UNIT) is Error.Success, vendor.last_error()
    assert np.array_equal(result.numpy(), 2 * values)
    result.check_guards()


@pytest.mark.parametrize(("function", "shape"), [("diopiMul", (2**17,)), ("diopiCopyInp", (3, 5)), ("diopiSilu", (3,))])
def test_a_program_on_the_device_computes_what_numpy_computes_on_the_host(
    context: Context, function: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[jax.Device] = []
    compile_for_device = programs._compile_for_device

    def note_and_compile(build: object, arrays: object, device: jax.Device) -> object:
        compiled.append(device)
        return compile_for_device(build, arrays, device)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(programs, "_compile_for_device", note_and_compile)
    values = Tensor.from_numpy(context, np.full(shape, 2, np.float32))
    result = Tensor.empty(context, shape, values.dtype)
    calls = {"diopiCopyInp": (values, result), "diopiMul": (result, values, values), "diopiSilu": (result, values)}
    assert vendor.call(function, context, *calls[function]) is Error.Success, vendor.last_error()
    assert compiled == [jax.devices("cpu")[0]]
    assert jax_cpu.call(function, context, *calls[function]) is Error.Success
    assert len(compiled) == 1


def test_functions_that_numpy_computes_are_not_implemented_on_a_device(context: Context) -> None:
    assert jax_cpu.has("diopiUnique") and not vendor.has("diopiUnique")
    assert jax_cpu.has("diopiNativeMemoryFormatCast") and not vendor.has("diopiNativeMemoryFormatCast")
    assert vendor.call("diopiUnique", context, *[None] * 6) is Error.NoImplement
    assert vendor.last_error() == "jax:chip does not implement diopiUnique"


def test_a_type_that_the_device_lacks_is_unsupported_in_the_words_of_the_device(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject_double(device: jax.Device, dtype: np.dtype[np.generic]) -> str:
        return "this chip has no float64" if dtype == np.float64 else ""

    monkeypatch.setattr(placement, "_ask_device", reject_double)
    for dtype, code in ((np.float64, Error.DtypeNotSupported), (np.float32, Error.Success)):
        tensors = [Tensor.from_numpy(context, np.ones((3, 7), dtype)) for _ in range(2)]
        assert vendor.call("diopiTanh", context, *tensors) is code
    tensors = [Tensor.from_numpy(context, np.ones((3, 7))) for _ in range(2)]
    assert vendor.call("diopiTanh", context, *tensors) is Error.DtypeNotSupported
    assert vendor.last_error() == f"diopiTanh: {jax.devices('cpu')[0]}: this chip has no float64"


def test_a_device_is_asked_for_its_reason_once(monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[object] = []

    def reject(function: object) -> object:
        questions.append(function)
        raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: no such type\nand a whole program")

    monkeypatch.setattr(jax, "jit", reject)
    device, dtype = jax.devices("cpu")[0], np.dtype(np.int16)
    placement._ask_device.cache_clear()
    try:
        assert {placement._ask_device(device, dtype) for _ in range(2)} == {"INVALID_ARGUMENT: no such type"}
    finally:
        placement._ask_device.cache_clear()
    assert len(questions) == 1


def test_an_operation_that_the_compiler_lacks_is_not_implemented(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(lowered: object, **options: object) -> object:
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: no hyperbolic sines here\nand a whole program")

    monkeypatch.setattr(jax.stages.Lowered, "compile", reject)
    tensors = [Tensor.from_numpy(context, np.ones((3, 11), np.float32)) for _ in range(2)]
    assert vendor.call("diopiSinh", context, *tensors) is Error.NoImplement
    assert vendor.last_error().endswith(": UNIMPLEMENTED: no hyperbolic sines here")


TWO_DEVICES = """
import jax, numpy as np
from diopi_impl import find_vendor
from diopi_impl.jax_cpu import programs
from diopi_proto.types import Error
from lib_rt import Context, Tensor
used = []
lent = programs._compile_for_device
programs._compile_for_device = lambda function, arrays, device: (used.append(device), lent(function, arrays, device))[1]
first, second = find_vendor("jax:cpu"), find_vendor("jax:cpu:1")
assert first is find_vendor("jax_cpu") and second.name == "jax:cpu:1"
for vendor in (first, second, first, second):
    with vendor.open_device() as device, Context(device) as context:
        result, values = (Tensor.from_numpy(context, np.full((2, 3), x)) for x in (0.0, 1.5))
        assert vendor.call("diopiNeg", context, result, values) is Error.Success, vendor.last_error()
        assert (result.numpy() == -1.5).all()
assert used == [jax.devices("cpu")[1]], used
"""


def test_vendors_of_two_devices_share_nothing() -> None:
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "-c", TWO_DEVICES]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
