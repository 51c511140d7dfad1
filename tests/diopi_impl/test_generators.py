"""The generator state that implementations receive, and the state after a call."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from diopi_impl import Vendor, find_vendor
from diopi_impl.functional import apply_directly
from diopi_impl.generators import pass_generator_state
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Dtype, Error
from lib_rt import Context, Generator, Tensor

Array = np.ndarray[Any, Any]


@pytest.fixture
def context() -> Iterator[Context]:
    """Yield a context on the host, on the device of a vendor without functions."""
    vendor = Vendor("device", "1", HostRuntime().functions(), host_addressable=True)
    with vendor.open_device() as device, Context(device) as opened:
        yield opened


@pytest.fixture
def states() -> list[tuple[int, ...]]:
    """Return the list to which the implementation appends the generator states that it receives."""
    return []


@pytest.fixture
def vendor(states: list[tuple[int, ...]]) -> Vendor:
    """A vendor that records the generator's state; calls with the argument from = 13 fail."""
    vendor = Vendor("drawing", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements("diopiUniformInp", adapt=pass_generator_state(apply_directly))
    def uniform(from_: float, to: float, generator: Array, *, out: Any) -> Array:
        states.append(tuple(generator.tolist()))
        if from_ == 13:
            raise ValueError("unlucky")
        return np.zeros(out.shape)

    return vendor


def fill(vendor: Vendor, context: Context, generator: Generator | None, count: int, from_: float = 0.0) -> Error:
    """Fill a tensor of `count` elements with uniform random numbers of the generator."""
    return vendor.call(
        "diopiUniformInp", context, Tensor.empty(context, (count,), Dtype.float32), from_, 1.0, generator
    )


def test_offset_advances_by_the_count_of_numbers(vendor: Vendor, context: Context, states: list[Any]) -> None:
    generator = Generator(context, 2**64 - 1, 7)
    for count in (5, 3):
        assert fill(vendor, context, generator, count) is Error.Success
    assert states == [(2**64 - 1, 7), (2**64 - 1, 12)]
    assert (generator.seed, generator.offset) == (2**64 - 1, 15)


def test_offset_wraps_around(vendor: Vendor, context: Context) -> None:
    generator = Generator(context, 1, 2**64 - 2)
    fill(vendor, context, generator, 5)
    assert generator.offset == 3


def test_failing_call_does_not_advance_the_offset(vendor: Vendor, context: Context) -> None:
    generator = Generator(context, 1, 2)
    assert fill(vendor, context, generator, 5, from_=13) is not Error.Success
    assert generator.offset == 2


def test_default_generator_never_repeats_a_state(vendor: Vendor, context: Context, states: list[Any]) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: fill(vendor, context, None, 5), range(40)))
    assert sorted(states) == [(0, 5 * n) for n in range(40)]


REJECTED_CALLS = [
    ("diopiUniformInp", Dtype.float32, (1.0, 0.0), "from is 1.0 and to 0.0"),
    ("diopiUniformInp", Dtype.float16, (-6e4, 6e4), "a distance that float16 represents"),
    ("diopiRandomInp", Dtype.int64, (3, 3), "from is 3 and to 3"),
    ("diopiRandomInp", Dtype.int8, (0, 129), "numbers that int8 represents"),
    ("diopiRandomInp", Dtype.uint8, (-1, None), "numbers that uint8 represents"),
    ("diopiRandomInp", Dtype.bfloat16, (0, 300), "numbers that bfloat16 represents"),
    ("diopiBernoulliScalar", Dtype.float32, (1.5,), "p is 1.5"),
    ("diopiBernoulliScalar", Dtype.float32, (float("nan"),), "p is nan"),
    ("diopiNormal", Dtype.float32, (0.0, -1.0), "std is -1.0"),
    ("diopiRandperm", Dtype.int64, (-1,), "n is -1"),
]


@pytest.mark.parametrize(("name", "dtype", "attributes", "message"), REJECTED_CALLS)
def test_reference_vendor_rejects_invalid_calls(
    context: Context, name: str, dtype: Dtype, attributes: tuple[Any, ...], message: str
) -> None:
    vendor = find_vendor("jax_cpu")
    generator = Generator(context, 5)
    assert vendor.call(name, context, Tensor.empty(context, (4,), dtype), *attributes, generator) is not Error.Success
    assert message in vendor.last_error()
    assert generator.offset == 0


@pytest.mark.parametrize(("count", "replacement"), [(0, True), (4, False)])
def test_multinomial_rejects_more_samples_than_categories(context: Context, count: int, replacement: bool) -> None:
    vendor = find_vendor("jax_cpu")
    weights, out = Tensor.from_numpy(context, np.ones(3, np.float32)), Tensor.empty(context, (count,), Dtype.int64)
    code = vendor.call("diopiMultinomial", context, out, weights, count, replacement, None)
    assert code is not Error.Success
    assert f"num_samples is {count}, expected 1 to 3" in vendor.last_error()
