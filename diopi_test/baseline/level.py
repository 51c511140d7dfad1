"""`Level`: a folder of baseline files as its manifest describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import final

from diopi_proto.interface import prototypes
from diopi_test.baseline import manifest
from diopi_test.baseline.descriptions import generation_command
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_verified_file
from diopi_test.baseline.manifest import FileEntry, ListedCase, Manifest
from diopi_test.baseline.store import LIMIT, SUFFIX, BaselineFile, baseline_file

MAX_NAMED_FILES = 5
"""How many files an error names."""


def open_level(folder: Path) -> StoredLevel:
    """The level in `folder`, whose manifest is read and whose files are those of the manifest; none is opened.

    Raises BaselineError that names what is wrong: no manifest or one that can't be used, of another level than the
    folder is called; files that are missing or foreign.
    """
    if not (folder / manifest.MANIFEST_NAME).exists():
        raise BaselineError(
            f"there is no baseline in {folder}: it has no {manifest.MANIFEST_NAME}; {_remedy(folder)}, "
            "or name its folder with --data"
        )
    read, digest = manifest.read_manifest(folder)
    if read.level != folder.name:
        raise BaselineError(
            f"{folder / manifest.MANIFEST_NAME} is of level {read.level}, expected {folder.name} as its folder"
        )
    level = StoredLevel(folder, read, digest)
    level.check_names()
    return level


def open_level_of_file(path: Path) -> StoredLevel:
    """The level in whose folder the baseline file at `path` lies.

    Raises BaselineError as `open_level`, or if the manifest does not list the file.
    """
    folder = path.absolute().parent
    try:
        found = (folder / manifest.MANIFEST_NAME).stat()
        level = _open_cached(folder, found.st_mtime_ns, found.st_ino)
    except OSError:
        level = open_level(folder)  # which says what is wrong
    if path.stem not in level.functions:
        raise BaselineError(f"{path} is not in {folder / manifest.MANIFEST_NAME}; {_remedy(folder)}")
    return level


@lru_cache(maxsize=8)
def _open_cached(folder: Path, _modified: int, _inode: int) -> StoredLevel:
    """The level in `folder`, whose manifest was not written since."""
    return open_level(folder)


@final
class StoredLevel:
    """The baseline files of one level.

    Attributes:
        folder: where they lie.
        digest: of the manifest, and by that of everything in the level.
    """

    def __init__(self, folder: Path, read: Manifest, digest: str) -> None:
        self.folder = folder
        self.digest = digest
        self._entries: Mapping[str, FileEntry] = read.files

    @property
    def functions(self) -> Sequence[str]:
        """The names of the functions that have cases, sorted."""
        return sorted(self._entries)

    def path(self, function: str) -> Path:
        """Where a function's file lies."""
        return baseline_file(self.folder, function)

    def sha256(self, function: str) -> str:
        """The digest of a function's file."""
        return self._entries[function].sha256

    def cases(self, function: str) -> Sequence[ListedCase]:
        """The cases of a function: the stored ones in their order, then those made of them."""
        return self._entries[function].cases

    def open(self, function: str) -> BaselineFile:
        """A function's file, whose bytes are those of the manifest; BaselineError if they are not."""
        file = BaselineFile(self.path(function), self.sha256(function))
        if file.level != self.folder.name:
            raise BaselineError(f"{file.path} is of level {file.level}, expected {self.folder.name} as its folder")
        return file

    def verify(self, functions: Iterable[str]) -> None:
        """Compare the files of `functions`, byte for byte, with the manifest; BaselineError if one differs."""
        for function in functions:
            read_verified_file(self.path(function), LIMIT, self.sha256(function))

    def check_names(self) -> None:
        """Compare the names of files with the manifest; BaselineError if one is missing, foreign or of no function."""
        listed = {self.path(function).name for function in self._entries}
        present = {path.name for path in self.folder.glob(f"*{SUFFIX}")}
        unknown = {self.path(function).name for function in self._entries if function not in prototypes()}
        for problem, names in (
            ("lacks files that are in its manifest", listed - present),
            ("has files that are not in its manifest", present - listed),
            ("has files of functions that the standard does not have", unknown),
        ):
            if names:
                more = f" and {len(names) - MAX_NAMED_FILES} more" if len(names) > MAX_NAMED_FILES else ""
                named = ", ".join(sorted(names)[:MAX_NAMED_FILES])
                raise BaselineError(f"{self.folder} {problem}: {named}{more}; remove them, or {_remedy(self.folder)}")


def _remedy(folder: Path) -> str:
    return f"make it with diopi-test {generation_command(folder.parent, folder.name)}"
