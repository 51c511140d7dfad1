"""The device `diopi` as the vendor `torch:diopi`: the suite calls PyTorch, and PyTorch calls a vendor."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_impl import find_vendor  # noqa: E402  # behind the check, too
from diopi_impl.base import Box  # noqa: E402  # behind the check, too
from diopi_proto.types import Dtype, Error  # noqa: E402  # behind the check, too
from lib_rt import Context, Generator, Tensor  # noqa: E402  # behind the check, too


@pytest.mark.parametrize("name", ["jax_cpu", "torch_cpu"])
def test_calls_pass_through_the_device(name: str, activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(find_vendor(name))
    vendor = find_vendor("torch:diopi")
    assert vendor.name == "torch:diopi"
    with vendor.open_device() as device, Context(device) as context:
        input = Tensor.from_numpy(context, np.array([[2.0, -1.0], [0.0, 3.0]], np.float32), strides=(1, 2))
        result, box = Tensor.empty(context, (2, 2), Dtype.float32), Box()
        diopi_torch.reset_fallbacks()
        assert vendor.call("diopiRelu", context, result, input) is Error.Success, vendor.last_error()
        assert result.numpy().tolist() == [[2, 0], [0, 3]]
        assert not diopi_torch.fallbacks()
        assert vendor.call("diopiNonzero", context, box, input) is Error.Success, vendor.last_error()
        assert len(box.value.numpy()) == 3
        code = vendor.call("diopiUniformInp", context, result, 0.0, 1.0, Generator(device, 3))
        assert code is Error.Success, vendor.last_error()
