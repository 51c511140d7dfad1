"""A vendor whose claims do not match what it supports.

A claim is a statement of a vendor about the element types and layouts that a function supports. The report of a run
lists where the claims and the results differ.
"""

from __future__ import annotations

from typing import Any

from diopi_impl import Claim
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Dtype, Error
from diopi_test.quality.stub_vendor import StubVendor
from lib_rt import Context


class ClaimingVendor(StubVendor):
    """A vendor that returns the expected results, but does not support square roots in float16.

    It claims such square roots, which is too much. It also supports more layouts of diopiNeg than it claims.
    """

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
