"""Locations of baselines: shipped levels are in the package, other levels in the user's cache."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import platformdirs

from diopi_test.baseline.store import SUFFIX

SHIPPED_LEVELS = ("smoke",)
"""The levels that are part of the package."""


def package_folder() -> Path:
    """Return the folder of the shipped baseline."""
    return Path(str(files("baseline_data")))


def cache_folder() -> Path:
    """Return the folder of the baselines that this version of the project generated for this user."""
    return platformdirs.user_cache_path("diopi", appauthor=False, version=version("diopi")) / "baseline"


def is_source_tree() -> bool:
    """Return whether the package is in its source tree, not installed elsewhere."""
    return (package_folder().parent / "pyproject.toml").is_file()


def folder_to_write(level: str) -> Path:
    """Return the default folder in which a level is generated: the source tree for shipped levels, else the cache."""
    return (package_folder() if level in SHIPPED_LEVELS and is_source_tree() else cache_folder()) / level


def folder_to_read(level: str) -> Path:
    """Return the default folder from which a level is read: in the package if it ships, else `folder_to_write`."""
    shipped = package_folder() / level
    return shipped if level in SHIPPED_LEVELS and any(shipped.glob(f"*{SUFFIX}")) else folder_to_write(level)
