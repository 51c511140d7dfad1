"""The versions of PyTorch that the device supports."""

from __future__ import annotations

import re

SUPPORTED = ("2.13",)
"""Major and minor versions of PyTorch that the device was tested with; it relies on details of these versions."""


def check_version(version: str) -> None:
    """Raise ImportError unless the version of PyTorch is supported; patch level and build do not matter."""
    match = re.match(r"\d+\.\d+", version)
    if match is None or match[0] not in SUPPORTED:
        requirement = f"diopi_torch works with PyTorch {' or '.join(SUPPORTED)}"
        raise ImportError(f"{requirement}, {version} is installed: pip install 'diopi[torch]'")
