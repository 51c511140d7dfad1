"""ONNX Runtime as a vendor: `operators.py` defines functions of the standard in operators of ONNX."""

from __future__ import annotations

import onnxruntime

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from onnxruntime_vendor.functions import OnnxFunction
from onnxruntime_vendor.operators import DEFINITIONS

vendor = Vendor("onnxruntime", onnxruntime.__version__, HostRuntime().functions(), host_addressable=True)

for function, definition in DEFINITIONS.items():
    vendor.implements(function)(OnnxFunction(definition))
