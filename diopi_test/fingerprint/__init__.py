"""The fingerprint of a vendor: properties of its arithmetic that probes of its operators measure.

The properties are the order and width of sums, subnormal numbers, conversions, multiply-add, and NaN. The package
imports calls (`execution`), number formats and references, but no stored cases.
"""

from diopi_test.fingerprint.results import Fingerprint, ProbeResult

__all__ = ["Fingerprint", "ProbeResult"]
