"""The device on a vendor of a test's choice. All of it needs PyTorch: each module of tests says so first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch_devices import Altered


@pytest.fixture
def activate_vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Makes a vendor the device until the test ends."""
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
def vendor(request: pytest.FixtureRequest, activate_vendor: Callable[[Any], Any]) -> Altered:
    """The device, whose memory the host can or can't address."""
    return activate_vendor(Altered(host_addressable=request.param))


@pytest.fixture(autouse=True)
def counted_anew() -> Iterator[None]:
    """Each test counts its own fallbacks."""
    import diopi_torch

    diopi_torch.reset_fallbacks()
    yield
