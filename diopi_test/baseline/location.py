"""Where baselines lie: what ships is in the package, everything else in a folder of the user's cache."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import platformdirs

from diopi_test.baseline.store import SUFFIX

SHIPPED_LEVELS = ("smoke",)
"""The levels that are part of the package."""


def package_folder() -> Path:
    """The folder of the baseline that ships."""
    return Path(str(files("baseline_data")))


def cache_folder() -> Path:
    """The folder of baselines that this version of the project made for this user."""
    return platformdirs.user_cache_path("diopi", appauthor=False, version=version("diopi")) / "baseline"


def is_source_tree() -> bool:
    """Whether the package lies in its source tree rather than where it was installed."""
    return (package_folder().parent / "pyproject.toml").is_file()


def folder_to_write(level: str) -> Path:
    """Where a level is made by default: in the package only if that ships with it and this is its source tree."""
    return (package_folder() if level in SHIPPED_LEVELS and is_source_tree() else cache_folder()) / level


def folder_to_read(level: str) -> Path:
    """Where a level is read by default: in the package if it is there, else where it would have been made."""
    shipped = package_folder() / level
    return shipped if level in SHIPPED_LEVELS and any(shipped.glob(f"*{SUFFIX}")) else folder_to_write(level)
