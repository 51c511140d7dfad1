"""Stub vendors that declare their arithmetic."""

from __future__ import annotations

from diopi_impl import find_numerics
from diopi_impl.host_runtime import HostRuntime
from diopi_test.quality.stub_vendor import StubVendor

tf32 = StubVendor("stub tf32", "1", HostRuntime().functions(), host_addressable=True, numerics=find_numerics("tf32"))
"""Returns the expected results, and declares products in TF32."""
