"""Measure the arithmetic of a vendor and derive the declaration that fits it.

A declaration (`Numerics`) states how the arithmetic of a vendor differs from IEEE 754. It has one field per property,
such as the precision of the factors of float32 products. The suite derives error budgets from the declaration of a run.

- `operators` calls the operators of a vendor.
- `factors`, `half_sums`, `algorithms`, `errors` with `error_ranges`, `repetition` and `small_numbers` measure one or
  more properties each.
- `measurement` combines the measurements into the narrowest declaration that permits them.
- `contradictions` compares a measured declaration with the declaration of a run.
"""

from diopi_test.fingerprint.numerics.contradictions import find_contradictions
from diopi_test.fingerprint.numerics.measurement import MeasuredNumerics, measure_numerics, measure_on_device

__all__ = ["MeasuredNumerics", "find_contradictions", "measure_numerics", "measure_on_device"]
