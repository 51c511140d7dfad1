"""The declaration that fits a vendor: each module measures one field of `Numerics` with calls of the vendor.

- `operators` calls operators and skips those that a vendor lacks.
- `factors`, `half_sums`, `algorithms`, `errors` with `error_ranges`, `repetition` and `small_numbers` measure fields.
- `measured` combines the measurements into the narrowest declaration that permits them.
- `contradictions` compares a measured declaration with the declaration of a run.
"""

from diopi_test.fingerprint.numerics.contradictions import find_contradictions
from diopi_test.fingerprint.numerics.measured import MeasuredNumerics, measure_numerics, measure_on_device

__all__ = ["MeasuredNumerics", "find_contradictions", "measure_numerics", "measure_on_device"]
