"""ATen's operators on the CPU as a vendor: each call is one call of an operator, and nothing is converted.

The vendor shows which calls PyTorch itself accepts. It refuses what PyTorch refuses, gives the element types that
PyTorch gives, and implements only functions that have an equivalent operator (`equivalents`). Unlike `torch_cpu`, it
therefore does not pass the suite: a case that it fails must be of the class `open`, or it demands too much.
Needs the extra `torch`.
"""

from __future__ import annotations

from diopi_impl.aten_cpu.vendor import AtenVendor

vendor = AtenVendor()
