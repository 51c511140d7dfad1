"""The device on a vendor that a test selects. All of these tests need PyTorch: each module states this first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch_devices import AlteredVendor


@pytest.fixture
def activate_vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Use a vendor as the device until the test ends."""
    import diopi_torch.backend as module

    backends = []

    def use(vendor: Any) -> Any:
        backends.append(module.Backend(vendor))
        monkeypatch.setattr(module, "_backend", backends[-1])
        return vendor

    yield use
    for backend in backends:
        backend.close()


@pytest.fixture(params=[True, False], ids=["addressable", "apart"])
def vendor(request: pytest.FixtureRequest, activate_vendor: Callable[[Any], Any]) -> AlteredVendor:
    """Use the device with host-addressable memory and without."""
    return activate_vendor(AlteredVendor(host_addressable=request.param))


@pytest.fixture(autouse=True)
def counted_anew() -> Iterator[None]:
    """Reset the fallbacks for each test."""
    import diopi_torch

    diopi_torch.reset_fallbacks()
    yield
