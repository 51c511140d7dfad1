"""A device on the synchronous host runtime, and a context on it."""

from collections.abc import Iterator

import pytest
from host_runtime import HostRuntime

from lib_rt import Context, Device


@pytest.fixture
def host() -> HostRuntime:
    """Return a new host runtime."""
    return HostRuntime()


@pytest.fixture
def device(host: HostRuntime) -> Iterator[Device]:
    """Yield a device on the host runtime."""
    with Device(host.functions(), host_addressable=True) as opened:
        yield opened


@pytest.fixture
def context(device: Device) -> Iterator[Context]:
    """Yield a context on the device."""
    with Context(device) as opened:
        yield opened
