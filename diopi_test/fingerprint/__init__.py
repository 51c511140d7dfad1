"""The fingerprint of a vendor: properties of its arithmetic that probes of its operators measure.

The properties concern sums, dot products, multiply-add, division, conversions, subnormal numbers, NaN and elementary
functions. The package imports calls (`execution`), number formats and references, but no stored cases.
"""

from diopi_test.fingerprint.results import Fingerprint, ProbeResult

__all__ = ["Fingerprint", "ProbeResult"]
