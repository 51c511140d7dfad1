"""ATen's operators on the CPU as a vendor: each call is one call of an operator, without conversions.

The vendor shows which calls PyTorch itself accepts. It rejects the calls that PyTorch rejects, returns the element
types that PyTorch returns, and implements only functions that have an equivalent operator (`equivalents`). Unlike
`torch_cpu`, it therefore does not pass the suite: a case that it fails must be in the class `open`, or the case demands
too much. The vendor requires the extra `torch`.
"""

from __future__ import annotations

from diopi_impl.aten_cpu.vendor import AtenVendor

vendor = AtenVendor()
"""The vendor, which computes with ATen's kernels for the CPU."""
