"""Workspace queries of functions without workspaces, and random numbers from several generators."""

from collections.abc import Iterator

import numpy as np
import pytest

from diopi_impl import Box, Vendor, find_vendor
from diopi_impl.functional import apply_directly
from diopi_impl.generators import pass_generator_states
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.workspace_queries import answer_workspace_queries
from diopi_proto.types import Dtype, Error
from lib_rt import Context, Generator, Tensor


@pytest.fixture
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with find_vendor("jax_cpu").open_device() as device, Context(device) as opened:
        yield opened


def ffn(context: Context, x: Tensor | None, size: Box | None, weight: Tensor | None) -> Error:
    """Call the fused feed-forward network with a workspace size."""
    values = (x, weight, weight, weight, None, size, 0)
    return find_vendor("jax_cpu").call("diopiFusedSiluFfnInp", context, *values)


def test_query_needs_no_tensors(context: Context) -> None:
    size = Box(-1)
    assert ffn(context, None, size, None) is Error.Success
    assert size.value == 0


def test_query_does_not_change_tensors(context: Context) -> None:
    size, x = Box(-5), Tensor.from_numpy(context, np.ones((2, 3), np.float64))
    assert ffn(context, x, size, x) is Error.Success
    assert size.value == 0
    np.testing.assert_array_equal(x.numpy(), np.ones((2, 3)))


def test_computing_call_keeps_the_workspace_size(context: Context) -> None:
    size = Box(9)
    x, weight = (Tensor.from_numpy(context, np.ones(shape, np.float32)) for shape in ((2, 3), (3, 3)))
    assert ffn(context, x, size, weight) is Error.Success
    assert size.value == 9
    np.testing.assert_allclose(x.numpy(), 27 / (1 + np.exp(-3)), rtol=1e-6)


def test_computing_call_requires_tensors_and_a_size(context: Context) -> None:
    assert ffn(context, None, Box(0), None) is not Error.Success
    assert "inoutput is required" in find_vendor("jax_cpu").last_error()
    x, weight = (Tensor.from_numpy(context, np.ones(shape, np.float32)) for shape in ((2, 3), (3, 3)))
    assert ffn(context, x, None, weight) is not Error.Success
    assert "workspace_size is required" in find_vendor("jax_cpu").last_error()


# Several generators.


@pytest.fixture
def states() -> list[list[list[int]]]:
    """Return the list to which the implementation appends the states of generators."""
    return []


@pytest.fixture
def vendor(states: list[list[list[int]]]) -> Vendor:
    """A vendor that records the generators' states; its call for step 13 fails."""
    vendor = Vendor("drawing", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements("diopiTopKSampling", adapt=answer_workspace_queries(pass_generator_states(apply_directly)))
    def top_k(output_ids, finished, sequence_lengths, step, cum_log_probs, output_log_probs, generators):  # type: ignore[no-untyped-def]  # as vendors write them
        states.append(generators.tolist())
        if step == 13:
            raise ValueError("unlucky")
        return output_ids, finished, sequence_lengths, cum_log_probs, output_log_probs

    return vendor


def sample(vendor: Vendor, context: Context, generators: list[Generator], step: int, size: int = 0) -> Error:
    """Call top-k sampling for one step of the decoder."""
    batch = len(generators)
    ids, row = (Tensor.empty(context, shape, Dtype.int64) for shape in ((20, batch), (batch,)))
    logits, shares = (Tensor.empty(context, shape, Dtype.float32) for shape in ((batch, 4), (batch,)))
    values = (
        ids,
        logits,
        None,
        Box(size),
        0,
        row,
        None,
        None,
        step,
        batch,
        4,
        row,
        shares,
        None,
        None,
        None,
        generators,
    )
    return vendor.call("diopiTopKSampling", context, *values)


def test_each_generator_advances_by_one(vendor: Vendor, context: Context, states: list[list[list[int]]]) -> None:
    generators = [Generator(context, 2**64 - 1, 7), Generator(context, 3, 2**64 - 1)]
    for step in (0, 1):
        assert sample(vendor, context, generators, step) is Error.Success
    assert states == [[[2**64 - 1, 7], [3, 2**64 - 1]], [[2**64 - 1, 8], [3, 0]]]
    assert [generator.offset for generator in generators] == [9, 1]


def test_repeated_generator_advances_once_per_occurrence(
    vendor: Vendor, context: Context, states: list[list[list[int]]]
) -> None:
    generator = Generator(context, 5)
    assert sample(vendor, context, [generator] * 3, 0) is Error.Success
    assert states == [[[5, 0], [5, 1], [5, 2]]]
    assert generator.offset == 3


def test_failed_calls_and_queries_draw_nothing(vendor: Vendor, context: Context) -> None:
    generators = [Generator(context, 5, 2), Generator(context, 6, 4)]
    assert sample(vendor, context, generators, 13) is not Error.Success
    assert sample(vendor, context, generators, 0, size=-1) is Error.Success
    assert [generator.offset for generator in generators] == [2, 4]
