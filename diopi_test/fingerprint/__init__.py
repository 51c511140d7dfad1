"""The fingerprint of a vendor: what its arithmetic is like, found by probing its operators.

Order and width of sums, subnormal numbers, conversions, multiply-add, NaN. Imports calls (`execution`), number formats
and references; no stored cases.
"""

from diopi_test.fingerprint.findings import Finding, Fingerprint

__all__ = ["Finding", "Fingerprint"]
