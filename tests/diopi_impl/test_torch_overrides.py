"""Libraries that override operators of PyTorch: how they are set up, and which operators of calls they serve."""

import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch:DEVICE needs PyTorch: pip install 'diopi[torch]'")

from diopi_impl import OperatorUse, VendorError, VendorNotFoundError, find_vendor  # noqa: E402  # behind the check
from diopi_impl.torch_cpu import overrides  # noqa: E402  # behind the check, too
from diopi_proto.types import Error  # noqa: E402  # behind the check, too
from lib_rt import Context, Tensor  # noqa: E402  # behind the check, too

pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators")


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return the module `kernels`, whose function `enable` overrides operators until the end of the test."""
    module, library = ModuleType("kernels"), torch.library.Library("aten", "IMPL")
    calls: list[str] = []

    def enable() -> None:
        calls.append("enable")
        library.impl("relu", lambda x: torch.where(x > 0, x, 0), "CPU")
        library.impl("tanh", lambda x: x, "CPU")
        library.impl("erf", lambda x: x, "CUDA")

    def fail() -> None:
        raise OSError("the chip does not answer")

    vars(module).update(enable=enable, fail=fail, calls=calls, number=3)
    monkeypatch.setitem(sys.modules, "kernels", module)
    monkeypatch.setattr(overrides, "_called_setups", {})
    yield module
    library._destroy()


def test_a_library_overrides_the_operators_that_it_registers_for_the_device(kernels: ModuleType) -> None:
    vendor = find_vendor("torch:cpu+kernels:enable")
    assert vendor.name == "torch:cpu+kernels:enable"
    assert {override.operator for override in vendor.overrides} == {"aten::relu", "aten::tanh"}
    assert all(override.source.startswith("test_torch_overrides.py:") for override in vendor.overrides)


def test_no_waivers_apply_to_a_library(kernels: ModuleType) -> None:
    assert find_vendor("torch:cpu").waivers
    assert not find_vendor("torch:cpu+kernels:enable").waivers


def test_a_library_is_set_up_once_per_process(kernels: ModuleType) -> None:
    find_vendor("torch:cpu+kernels:enable")
    find_vendor("torch:cpu+kernels:enable")
    assert kernels.calls == ["enable"]


def test_each_operator_of_a_function_is_recorded_once(kernels: ModuleType) -> None:
    vendor = find_vendor("torch:cpu+kernels:enable")
    sources = {override.operator: override.source for override in vendor.overrides}
    with vendor.open_device() as device, Context(device) as context:
        for dtype in (np.float32, np.float32, np.float64):
            values = [Tensor.from_numpy(context, np.array([-1, 2], dtype)) for _ in range(2)]
            for function in ("diopiRelu", "diopiErf"):
                assert vendor.call(function, context, *values) is Error.Success, vendor.last_error()
    assert set(vendor.take_operator_uses()) == {
        OperatorUse(function="diopiRelu", operator="aten::relu", source=sources["aten::relu"]),
        OperatorUse(function="diopiErf", operator="aten::erf"),
    }
    assert not vendor.take_operator_uses()


def test_a_device_without_a_library_records_no_operators() -> None:
    vendor = find_vendor("torch:cpu")
    with vendor.open_device() as device, Context(device) as context:
        values = [Tensor.from_numpy(context, np.ones(3, np.float32)) for _ in range(2)]
        assert vendor.call("diopiRelu", context, *values) is Error.Success
    assert not vendor.overrides and not vendor.take_operator_uses()


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ("no_such_kernels:enable", "module no_such_kernels can't be imported: No module named 'no_such_kernels'"),
        ("kernels:disable", "module kernels has no attribute 'disable'"),
        ("kernels:number", "kernels:number is a int, expected a function"),
    ],
)
def test_a_function_that_does_not_exist_is_an_error(kernels: ModuleType, setup: str, message: str) -> None:
    with pytest.raises(VendorNotFoundError, match=rf"^vendor torch:cpu\+{setup}: {message}$"):
        find_vendor(f"torch:cpu+{setup}")


def test_a_vendor_whose_setup_raises_does_not_start(kernels: ModuleType) -> None:
    with pytest.raises(VendorError, match=r"kernels:fail raised OSError: the chip does not answer$") as failure:
        find_vendor("torch:cpu+kernels:fail")
    assert not isinstance(failure.value, VendorNotFoundError)
