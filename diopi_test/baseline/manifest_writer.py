"""Update the manifest of a folder while its files are being generated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import final

from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_verified_file
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.manifest import FileEntry, ListedCase, encode_entry, read_manifest, write_manifest
from diopi_test.baseline.store import LIMIT, baseline_file

CaseLister = Callable[[IndexView], tuple[ListedCase, ...]]
"""A function that lists the cases of a file: the stored cases, and the cases derived from them."""


@final
class ManifestWriter:
    """A manifest to which files are added. It begins with the entries of the existing manifest if this one is valid.

    Args:
        folder: The folder of the level.
        level: The name of the level.
        list_cases: Lists the cases of a file.
    """

    def __init__(self, folder: Path, level: str, list_cases: CaseLister) -> None:
        self._folder = folder
        self._level = level
        self._list_cases = list_cases
        self._entries = dict(_existing_entries(folder, level))
        self._lines = {function: encode_entry(entry) for function, entry in self._entries.items()}

    def is_up_to_date(self, function: str, key: str) -> bool:
        """Return whether the file of a function exists, and has the digest in the manifest and this key."""
        entry = self._entries.get(function)
        if entry is None or entry.key != key:
            return False
        try:
            read_verified_file(baseline_file(self._folder, function), LIMIT, entry.sha256)
        except BaselineError:
            return False
        return True

    def add_file(self, function: str) -> None:
        """Add or update the entry for the current file of a function, with its cases."""
        file = IndexView(baseline_file(self._folder, function))
        self._lines[function] = encode_entry(
            FileEntry(sha256=file.digest, size=file.size, key=file.key, cases=self._list_cases(file))
        )

    def remove_functions_unless(self, has_cases: Callable[[str], bool]) -> None:
        """Remove the files and the entries of functions for which `has_cases` returns False."""
        for function in [function for function in self._lines if not has_cases(function)]:
            baseline_file(self._folder, function).unlink(missing_ok=True)
            del self._lines[function]

    def save(self) -> None:
        """Write the manifest; raise BaselineError if that fails."""
        write_manifest(self._folder, self._level, self._lines)


def _existing_entries(folder: Path, level: str) -> dict[str, FileEntry]:
    """Return the entries of a folder's manifest; return none if it is missing, invalid or of another level."""
    try:
        entries_on_disk, _ = read_manifest(folder)
    except BaselineError:
        return {}
    return dict(entries_on_disk.files) if entries_on_disk.level == level else {}
