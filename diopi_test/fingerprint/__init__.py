"""The fingerprint of a vendor: properties of its arithmetic that probes of its operators measure.

A probe calls an operator with chosen numbers and derives a property from the results. Examples are the order in which
terms are added, and whether subnormal numbers are replaced by zero. The properties are measured, not judged: vendors
may differ in them and conform.

- `probe` and `samples` contain the common parts of probes and the numbers that they use.
- `accumulation`, `trees` and `orders` probe sums and dot products.
- `fusion`, `division`, `conversions`, `subnormals`, `nans` and `elementary` probe the properties that they are named
  after.
- `table` lists all probes, `results` runs them, and `report` prints the results.
- `numerics` derives the declaration of a vendor's arithmetic from further measurements.
"""

from diopi_test.fingerprint.results import Fingerprint, ProbeResult

__all__ = ["Fingerprint", "ProbeResult"]
