"""The size of a workspace as a result: a call with a negative size queries the size that it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_test.oracle.reference import PartlySpecified


def workspace_size_after(size: int) -> Any:
    """Return a workspace size after the call: unchanged, or unspecified if a negative size queries it."""
    return PartlySpecified(np.int64(0), False) if size < 0 else np.int64(size)
