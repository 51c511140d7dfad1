"""The vendors `torch:DEVICE`: how they are found, and calls in memory that the host does not address."""

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch:DEVICE needs PyTorch: pip install 'diopi[torch]'")

import torch_blocks  # noqa: E402  # behind the check for PyTorch

from diopi_impl import VendorNotFoundError, find_vendor  # noqa: E402  # behind the check, too
from diopi_impl.base import Box  # noqa: E402  # behind the check, too
from diopi_impl.torch_cpu.device_runtime import FIRST_ADDRESS, TorchRuntime  # noqa: E402  # behind the check, too
from diopi_proto.types import Dtype, Error, Scalar  # noqa: E402  # behind the check, too
from lib_rt import CallError, Context, Generator, Tensor  # noqa: E402  # behind the check, too

UNIT = Scalar.from_number(1)
vendor = torch_blocks.vendor


@pytest.fixture
def context() -> Iterator[Context]:
    """Return a context on a device whose memory the host does not address."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened
        opened.close()
        assert device.allocations == 0


def test_the_vendor_of_the_cpu_is_torch_cpu() -> None:
    assert find_vendor("torch:cpu") is find_vendor("torch_cpu")


@pytest.mark.parametrize("name", ["torch:submarine", "torch:hpu:0"])
def test_a_device_that_does_not_exist_is_an_error_that_names_the_devices(name: str) -> None:
    with pytest.raises(VendorNotFoundError, match=rf"^vendor {name}: PyTorch .* has no device .* torch:cpu"):
        find_vendor(name)


def test_the_host_does_not_address_the_memory(context: Context) -> None:
    tensor = Tensor.from_numpy(context, np.ones(3, np.float32))
    assert tensor.data_ptr > FIRST_ADDRESS
    with pytest.raises(TypeError, match="can't address"):
        tensor.view()


def test_results_reach_strided_memory_and_nothing_between_the_elements(context: Context) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    operands = [
        Tensor.from_numpy(context, values, strides=(1, 2), offset=3),
        Tensor.from_numpy(context, values.astype(np.float32)),
    ]
    result = Tensor.empty(context, (2, 3), Dtype.float32, strides=(8, 2), offset=5, storage_elements=30)
    before = result.storage()
    assert vendor.call("diopiAdd", context, result, *operands, UNIT) is Error.Success, vendor.last_error()
    assert np.array_equal(result.numpy(), 2 * values)
    assert np.count_nonzero(before != result.storage()) <= 6 * 4
    result.check_guards()


def test_a_result_that_the_callee_allocates_is_on_the_device(context: Context) -> None:
    box = Box()
    input = Tensor.from_numpy(context, np.array([[0, 2], [3, 0]], np.int32))
    assert vendor.call("diopiNonzero", context, box, input) is Error.Success, vendor.last_error()
    assert box.value.numpy().tolist() == [[0, 1], [1, 0]]


def test_generators_repeat_their_numbers(context: Context) -> None:
    results = [Tensor.empty(context, (5,), Dtype.float32) for _ in range(3)]
    for result, seed in zip(results, (3, 3, 4), strict=True):
        code = vendor.call("diopiUniformInp", context, result, 0.0, 1.0, Generator(context, seed))
        assert code is Error.Success, vendor.last_error()
    first, second, third = (result.numpy().tolist() for result in results)
    assert first == second != third


def test_a_device_without_generators_uses_its_default_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    from diopi_impl.torch_cpu.generators import seeded_generator

    def reject(device: object) -> None:
        raise RuntimeError("no generators")

    monkeypatch.setattr(torch, "Generator", reject)
    seeds: list[int] = []
    monkeypatch.setattr(torch.cpu, "manual_seed", seeds.append, raising=False)
    assert seeded_generator([1, 2]) is None
    assert len(seeds) == 1


def test_an_argument_that_is_updated_is_unchanged_if_the_call_fails(context: Context) -> None:
    param, grad = (Tensor.from_numpy(context, np.ones(3, np.float32)) for _ in range(2))
    too_short = Tensor.from_numpy(context, np.ones(2, np.float32))
    assert vendor.call("diopiSgd", context, param, grad, too_short, 0.1, 0.9, 0.0, 0.0, False) is Error.ErrorOccurred
    assert param.numpy().tolist() == [1, 1, 1]


def test_a_type_that_the_device_lacks_is_unsupported_in_the_words_of_the_device(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocate = torch.empty

    def without_double(*sizes: object, **options: object) -> torch.Tensor:
        if options.get("dtype") is torch.float64:
            raise TypeError("this chip doesn't support float64")
        return allocate(*sizes, **options)

    tensors = [Tensor.from_numpy(context, np.ones(3)) for _ in range(2)]
    monkeypatch.setattr(torch, "empty", without_double)
    monkeypatch.setattr(TorchRuntime, "_check_dtype", TorchRuntime(torch.device("cpu"))._check_dtype)
    assert vendor.call("diopiRelu", context, *tensors) is Error.DtypeNotSupported
    assert vendor.last_error() == "diopiRelu: cpu: this chip doesn't support float64"


def test_bytes_outside_of_every_block_are_an_error(context: Context) -> None:
    host, block = np.zeros(32, np.uint8), context.device.malloc(16)
    with pytest.raises(CallError, match="there are no 32 bytes at address"):
        context.stream.h2d(block, host.ctypes.data, 32)
    context.device.free(block)
