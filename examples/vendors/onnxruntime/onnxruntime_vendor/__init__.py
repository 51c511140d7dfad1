"""ONNX Runtime as a vendor: each row of `operators.tsv` is a function of the standard in operators of ONNX."""

from __future__ import annotations

import onnxruntime

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from onnxruntime_vendor.functions import implementation, read_table

vendor = Vendor("onnxruntime", onnxruntime.__version__, HostRuntime().functions(), host_addressable=True)

for row in read_table():
    vendor.implements(row.function)(implementation(row))
