"""The entry point of pytest: registers the plugin if the command line names a baseline.

The plugin's options would disturb projects that have options of the same names, and its imports take a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PLUGIN = "diopi_test.run.plugin"
"""The module that collects and runs baseline files; its import takes a noticeable time."""

SUFFIX = ".h5"
"""The suffix of a baseline file, copied from `diopi_test.baseline.store` to avoid its imports."""

MANIFEST = "manifest.json"
"""The file that every folder of a level contains, copied from `diopi_test.baseline.manifest` for the same reason."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """Register the plugin under its module's name, so that no conftest.py registers it a second time."""
    folder = early_config.invocation_params.dir
    paths = list(_existing_paths(args, folder)) or [folder]
    if any(map(_is_baseline, paths)):
        early_config.pluginmanager.import_plugin(PLUGIN)


def _existing_paths(words: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the files and folders that a command line names, also those in IDs of pytest items."""
    for word in words:
        path = folder / word.partition("::")[0]
        if word and not word.startswith("-") and os.path.exists(path):  # `Path.exists` fails for long expressions
            yield path


def _is_baseline(path: Path) -> bool:
    """Return whether the path is a baseline file, the folder of a level, or a folder of such folders."""
    if path.is_file():
        return path.suffix == SUFFIX
    return _is_level(path) or any(_is_level(manifest.parent) for manifest in path.glob(f"*/{MANIFEST}"))


def _is_level(folder: Path) -> bool:
    """Return whether the folder contains the baseline of a level."""
    return (folder / MANIFEST).is_file() and any(folder.glob(f"*{SUFFIX}"))
