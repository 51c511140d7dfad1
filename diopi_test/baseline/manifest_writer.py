"""The manifest of a folder whose files are being made."""

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
"""Lists the cases that a file gives: those stored in it, and those made of them."""


@final
class ManifestWriter:
    """Enters files in the manifest of a folder; what that has already stays, if it can be read and is of this level."""

    def __init__(self, folder: Path, level: str, list_cases: CaseLister) -> None:
        self._folder = folder
        self._level = level
        self._list_cases = list_cases
        self._entries = dict(_files_of(folder, level))
        self._lines = {function: encode_entry(entry) for function, entry in self._entries.items()}

    def is_up_to_date(self, function: str, key: str) -> bool:
        """Whether a function's file need not be made: it has this key, and the bytes that were entered."""
        entry = self._entries.get(function)
        if entry is None or entry.key != key:
            return False
        try:
            read_verified_file(baseline_file(self._folder, function), LIMIT, entry.sha256)
        except BaselineError:
            return False
        return True

    def enter(self, function: str) -> None:
        """Enter a function's file as it is now, with the cases that it gives."""
        file = IndexView(baseline_file(self._folder, function))
        self._lines[function] = encode_entry(FileEntry(file.digest, file.size, file.key, self._list_cases(file)))

    def remove_unless(self, has_cases: Callable[[str], bool]) -> None:
        """Remove the files that are entered but of functions that have no cases."""
        for function in [function for function in self._lines if not has_cases(function)]:
            baseline_file(self._folder, function).unlink(missing_ok=True)
            del self._lines[function]

    def save(self) -> None:
        """Write the manifest; BaselineError if that fails."""
        write_manifest(self._folder, self._level, self._lines)


def _files_of(folder: Path, level: str) -> dict[str, FileEntry]:
    try:
        found, _ = read_manifest(folder)
    except BaselineError:
        return {}
    return dict(found.files) if found.level == level else {}
