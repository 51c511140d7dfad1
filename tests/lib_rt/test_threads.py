"""Several threads at once: on one context, on one device, on separate devices."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from host_runtime import HostRuntime

from lib_rt import Context, Device, Tensor

THREADS, ROUNDS = 8, 150


def run_in_threads(work: Callable[[int], None]) -> None:
    """Call `work` with the number of each thread in several threads; an exception of a thread fails the test."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def exercise(context: Context, seed: int) -> None:
    """Create, copy and close tensors repeatedly, and check their values."""
    for i in range(ROUNDS):
        values = np.arange(i % 17) + 1000 * seed
        with Tensor.from_numpy(context, values) as tensor, tensor.clone() as clone:
            clone.write(values + 1)
            np.testing.assert_array_equal(tensor.numpy(), values)
            np.testing.assert_array_equal(clone.numpy(), values + 1)


def test_threads_can_share_a_context(device: Device, context: Context) -> None:
    run_in_threads(lambda seed: exercise(context, seed))
    assert (device.live_blocks, device.live_bytes) == (0, 0)


def test_threads_can_have_a_context_each(device: Device, host: HostRuntime) -> None:
    def work(seed: int) -> None:
        with Context(device) as context:
            exercise(context, seed)

    run_in_threads(work)
    assert (device.live_blocks, host.memory) == (0, {})


def test_threads_can_have_a_device_each() -> None:
    def work(seed: int) -> None:
        host = HostRuntime()
        with Device(host.functions()) as device, Context(device) as context:
            exercise(context, seed)
        assert host.memory == {}

    run_in_threads(work)
