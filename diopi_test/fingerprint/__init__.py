"""The fingerprint of a vendor: what its arithmetic is like, found by probing its operators."""

from diopi_test.fingerprint.findings import Finding, Fingerprint

__all__ = ["Finding", "Fingerprint"]
