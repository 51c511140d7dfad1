"""Former path of the stub vendor, deprecated: use `diopi_test.quality.stub_vendor:vendor`."""

import warnings

from diopi_test.quality.stub_vendor import vendor

__all__ = ["vendor"]

warnings.warn(
    "diopi_test.quality.echo:vendor is deprecated: use diopi_test.quality.stub_vendor:vendor",
    DeprecationWarning,
    stacklevel=2,
)
