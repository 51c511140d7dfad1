"""A compiled library can be the device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toolchain import VENDORS, build

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_impl.native import NativeVendor  # noqa: E402  # behind the check, too


@pytest.fixture
def library(tmp_path: Path, activate_vendor: Callable[[Any], Any]) -> NativeVendor:
    """Build the vendor in C and activate it for the device."""
    sources = sorted((VENDORS / "c").glob("*.c"))
    used: NativeVendor = activate_vendor(NativeVendor(build(tmp_path / "libdiopi_impl.so", "c", sources, "-O1")))
    return used


def test_exported_functions_run_on_the_vendor_and_others_on_the_cpu(library: NativeVendor) -> None:
    assert library.has("diopiAdd") and not library.has("diopiMm")
    x = torch.arange(6.0).reshape(2, 3)
    there = x.to("diopi")
    assert torch.equal((there + there).cpu(), x + x)
    assert torch.equal(there.nonzero().cpu(), x.nonzero()), "in memory that the vendor asked for"
    assert diopi_torch.fallbacks() == {}
    assert torch.equal((there @ there.T).cpu(), x @ x.T)
    assert diopi_torch.fallbacks() == {"mm": 1}
