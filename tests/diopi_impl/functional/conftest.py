"""Fixtures: a vendor without functions, with host-addressable memory or not, and a context on its device."""

from collections.abc import Iterator

import pytest

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from lib_rt import Context


@pytest.fixture(params=[True, False], ids=["host-addressable", "remote"])
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return Vendor("small", "1", HostRuntime().functions(), host_addressable=request.param)


@pytest.fixture
def context(vendor: Vendor) -> Iterator[Context]:
    with vendor.open_device() as device, Context(device) as opened:
        yield opened
