"""Fixtures: vendors without functions, with and without host-addressable memory, and a context on the device."""

from collections.abc import Iterator

import pytest

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from lib_rt import Context


@pytest.fixture(params=[True, False], ids=["host-addressable", "remote"])
def vendor(request: pytest.FixtureRequest) -> Vendor:
    """Return a vendor without functions; its memory is host-addressable in one of the two parameters."""
    return Vendor("small", "1", HostRuntime().functions(), host_addressable=request.param)


@pytest.fixture
def context(vendor: Vendor) -> Iterator[Context]:
    """Yield a context on the device of the vendor."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened
