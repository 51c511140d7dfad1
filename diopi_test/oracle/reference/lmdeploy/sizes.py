"""Sizes of workspaces, which a call may only ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_test.oracle.reference import PartlySpecified


def size_after(size: int) -> Any:
    """What a size is after the call: as it was, and open if it was asked for."""
    return PartlySpecified(np.int64(0), False) if size < 0 else np.int64(size)
