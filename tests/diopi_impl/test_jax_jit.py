"""jax_cpu compiles one program for calls that differ only in unread arguments."""

from typing import Any

import numpy as np
import pytest

from diopi_impl import find_vendor
from diopi_impl.jax_cpu import jit
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Tensor
from lib_rt.dtypes import to_numpy


def test_unread_argument_needs_no_new_program(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_optimizer_step_needs_no_new_program(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: dict[Any, Any] = {}
    monkeypatch.setattr(jit._programs, "_programs", programs)
    vendor = find_vendor("diopi_impl.jax_cpu:vendor")
    with vendor.open_device() as device, Context(device) as context:
        for factor in (0.5, -0.25, 3.0):
            values, ones = (Tensor.from_numpy(context, np.full(4, n, np.float32)) for n in (2, 1))
            code = vendor.call("diopiAddcdivInp", context, values, ones, ones, Scalar.from_number(factor))
            assert code is Error.Success, vendor.last_error()
            assert values.numpy().tolist() == [2 + factor] * 4
    assert len(programs) == 1


def test_adam_needs_no_new_program_for_another_step_or_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: dict[Any, Any] = {}
    monkeypatch.setattr(jit._programs, "_programs", programs)
    vendor = find_vendor("diopi_impl.jax_cpu:vendor")
    with vendor.open_device() as device, Context(device) as context:
        for rate, step in ((0.5, 1), (0.25, 2), (0.125, 70_000)):
            param, grad, mean, square = (Tensor.from_numpy(context, np.full(4, n, np.float32)) for n in (2, 1, 0, 0))
            attributes = (None, rate, 0.0, 0.0, 0.0, 0.0, step, False)
            code = vendor.call("diopiAdam", context, param, grad, mean, square, *attributes)
            assert code is Error.Success, vendor.last_error()
            assert param.numpy().tolist() == [2 - rate] * 4
    assert len(programs) == 1


def test_new_entries_have_their_element_types() -> None:
    prototype = lookup("diopiDynamicPointToVoxelMmcv")
    feats, coors = np.ones((2, 1), to_numpy(Dtype.bfloat16)), np.ones((2, 1), np.int32)
    adapted = jit.adapt_by_compiling(
        prototype, lambda feats, coors, reduce_type: [feats + 0.001, coors, feats[0], feats[1]]
    )
    ((reduced, *remaining),) = adapted([feats, coors, 0], [None])
    assert [array.dtype.name for array in (reduced, *remaining)] == ["bfloat16", "int32", "int32", "int32"]
    too_few = jit.adapt_by_compiling(prototype, lambda feats, coors, reduce_type: [feats])
    with pytest.raises(ValueError, match="outlist"):
        too_few([feats, coors, 0], [None])
