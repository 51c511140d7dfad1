"""A vendor that declares what it supports, and is wrong in both directions."""

from __future__ import annotations

from typing import Any

from diopi_impl import Claim
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Dtype, Error
from diopi_test.quality.stub_vendor import StubVendor
from lib_rt import Context


class ClaimingVendor(StubVendor):
    """Right results, but for square roots in float16, which it declares and does not support."""

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        if self.case is not None and self.case.dtype is Dtype.float16 and name == "diopiSqrt":
            self.failure = "no float16"
            return Error.DtypeNotSupported
        return super().call(name, context, *arguments)


vendor = ClaimingVendor(
    "claiming",
    "1",
    HostRuntime().functions(),
    host_addressable=True,
    claims=[
        Claim("diopiSqrt", dtypes=[Dtype.float16, Dtype.float32]),
        Claim("diopiNeg", layouts=["contiguous"]),
    ],
)
