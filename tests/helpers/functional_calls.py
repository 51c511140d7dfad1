"""Call functions of a vendor and assert that they succeed; create arrays for them."""

from typing import Any

import numpy as np

from diopi_impl import Vendor
from diopi_proto.types import Error
from lib_rt import Context

Array = np.ndarray[Any, Any]


def call(vendor: Vendor, name: str, context: Context, *arguments: Any) -> None:
    """Call a function and assert that it succeeds."""
    code = vendor.call(name, context, *arguments)
    assert code is Error.Success, vendor.last_error()


def floats(*values: float) -> Array:
    """Return a float32 array."""
    return np.array(values, np.float32)
