"""A vendor with failures of several kinds in calls that networks make, for tests of the plan of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from diopi_test.quality.stub_vendor import StubVendor
from lib_rt import Context, Tensor

NOT_IMPLEMENTED = frozenset({"diopiEmbeddingBackward", "diopiLayerNormBackward"})
"""Functions that the vendor does not implement."""

SCALED = frozenset({"diopiSum", "diopiSigmoid", "diopiTanh"})
"""Functions whose results are too large by an eighth."""

MINOR = frozenset({"diopiThresholdBackward"})
"""Functions whose zeros have the wrong sign, which does not prevent training."""


class VendorWithNetworkFailures(StubVendor):
    """A vendor that returns the expected results, except for `NOT_IMPLEMENTED`, `SCALED`, `MINOR` and int64 copies."""

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Return an error for missing functions; otherwise write the results and damage those of faulty functions."""
        if name in NOT_IMPLEMENTED:
            self.failure = f"{name} is not implemented"
            return Error.NoImplement
        if name == "diopiCat" and self.case is not None and self.case.dtype is Dtype.int64:
            self.failure = "int64 is not supported"
            return Error.DtypeNotSupported
        error = super().call(name, context, *arguments)
        if error is not Error.Success:
            return error
        results = [parameter.is_result for parameter in lookup(name).parameters[1:]]
        for argument, is_result in zip(arguments, results, strict=True):
            if is_result and isinstance(argument, Tensor):
                _damage(name, argument.view())
        return error


def _damage(name: str, values: np.ndarray[Any, Any]) -> None:
    """Change the correct result of a faulty function."""
    if name in SCALED:
        values *= 1.125
    if name in MINOR:
        np.negative(values, out=values, where=values == 0)


vendor = VendorWithNetworkFailures("incomplete", "1", HostRuntime().functions(), host_addressable=True)
"""The vendor that separate processes find by name."""
