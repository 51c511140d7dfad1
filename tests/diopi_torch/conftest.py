"""The device on a vendor of a test's choice. All of it needs PyTorch: each module of tests says so first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch_devices import Altered


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Makes a vendor the device until the test ends."""
    import diopi_torch.backend as module

    made = []

    def use(vendor: Any) -> Any:
        made.append(module.Backend(vendor))
        monkeypatch.setattr(module, "_backend", made[-1])
        return vendor

    yield use
    for backend in made:
        backend.close()


@pytest.fixture(params=[True, False], ids=["addressable", "apart"])
def vendor(request: pytest.FixtureRequest, on: Callable[[Any], Any]) -> Altered:
    """The device, whose memory the host can or can't address."""
    return on(Altered(host_addressable=request.param))


@pytest.fixture(autouse=True)
def counted_anew() -> Iterator[None]:
    """Each test counts its own fallbacks."""
    import diopi_torch

    diopi_torch.reset_fallbacks()
    yield
