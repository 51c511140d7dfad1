"""What jax_cpu compiles: one program for calls that differ in nothing that is read."""

from typing import Any

import numpy as np
import pytest

from diopi_impl import find_vendor
from diopi_impl.jax_cpu import jit
from diopi_proto.types import Error
from lib_rt import Context, Tensor


def test_what_is_not_read_makes_no_new_program(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: dict[Any, Any] = {}
    monkeypatch.setattr(jit._programs, "_programs", programs)
    vendor = find_vendor("diopi_impl.jax_cpu:vendor")
    with vendor.open_device() as device, Context(device) as context:
        input = Tensor.from_numpy(context, np.arange(4, dtype=np.float32).reshape(1, 1, 4))
        grad = Tensor.from_numpy(context, np.float32([[[2, 4]]]))
        strange = [Tensor.from_numpy(context, np.zeros(shape)) for shape in ((1,), (3, 3))]
        for indices, dilation in ((None, (1,)), (strange[0], (9,)), (strange[1], ())):
            result = Tensor.from_numpy(context, np.zeros((1, 1, 4), np.float32))
            attributes = ("avg", (2,), (2,), (0,), dilation, False, False, False)
            code = vendor.call("diopiPool1dBackward", context, result, grad, input, *attributes, indices)
            assert code is Error.Success, vendor.last_error()
            assert result.numpy().tolist() == [[[1, 1, 2, 2]]]
    assert len(programs) == 1
