"""`StoredLevel`: a folder of baseline files as described by its manifest."""

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
from diopi_test.baseline.manifest import FileEntry, LevelManifest, ListedCase
from diopi_test.baseline.store import LIMIT, SUFFIX, BaselineFile, baseline_file

MAX_NAMED_FILES = 5
"""The number of files that an error message names."""


def open_level(folder: Path) -> StoredLevel:
    """Open the level in `folder`: read the manifest and compare the names of files with it.

    Args:
        folder: The folder of the level; its name is the name of the level.

    Returns:
        The level; no baseline file is opened yet.

    Raises:
        BaselineError: The manifest is missing, unusable or of another level, or files are missing or unexpected.
    """
    if not (folder / manifest.MANIFEST_NAME).exists():
        raise BaselineError(
            f"there is no baseline in {folder}: it has no {manifest.MANIFEST_NAME}; {_remedy(folder)}, "
            "or name its folder with --data"
        )
    content, digest = manifest.read_manifest(folder)
    if content.level != folder.name:
        raise BaselineError(
            f"{folder / manifest.MANIFEST_NAME} is of level {content.level}, expected {folder.name} as its folder"
        )
    level = StoredLevel(folder, content, digest)
    level.check_names()
    return level


def open_level_of_file(path: Path) -> StoredLevel:
    """Open the level that contains the baseline file at `path`.

    Args:
        path: The baseline file.

    Returns:
        The level.

    Raises:
        BaselineError: `open_level` fails, or the manifest does not list the file.
    """
    folder = path.absolute().parent
    try:
        status = (folder / manifest.MANIFEST_NAME).stat()
        level = _open_cached(folder, status.st_mtime_ns, status.st_ino)
    except OSError:
        level = open_level(folder)  # raises an error that names the problem
    if path.stem not in level.functions:
        raise BaselineError(f"{path} is not in {folder / manifest.MANIFEST_NAME}; {_remedy(folder)}")
    return level


@lru_cache(maxsize=8)
def _open_cached(folder: Path, _modified: int, _inode: int) -> StoredLevel:
    """Return the level in `folder`; the cache key contains the time and inode of its manifest, to notice changes."""
    return open_level(folder)


@final
class StoredLevel:
    """The baseline files of one level.

    Attributes:
        folder: The folder of the files.
        digest: The digest of the manifest, which covers everything in the level.
    """

    def __init__(self, folder: Path, content: LevelManifest, digest: str) -> None:
        self.folder = folder
        self.digest = digest
        self._entries: Mapping[str, FileEntry] = content.files

    @property
    def functions(self) -> Sequence[str]:
        """Return the names of the functions that have cases, sorted."""
        return sorted(self._entries)

    def path(self, function: str) -> Path:
        """Return the path of a function's file."""
        return baseline_file(self.folder, function)

    def sha256(self, function: str) -> str:
        """Return the digest of a function's file."""
        return self._entries[function].sha256

    def cases(self, function: str) -> Sequence[ListedCase]:
        """Return the cases of a function: the stored cases in order, then the cases derived from them."""
        return self._entries[function].cases

    def open(self, function: str) -> BaselineFile:
        """Return a function's opened file; raise BaselineError if it differs from the manifest."""
        file = BaselineFile(self.path(function), self.sha256(function))
        if file.level != self.folder.name:
            raise BaselineError(f"{file.path} is of level {file.level}, expected {self.folder.name} as its folder")
        return file

    def verify(self, functions: Iterable[str]) -> None:
        """Compare the files of `functions` with the manifest; raise BaselineError if one differs."""
        for function in functions:
            read_verified_file(self.path(function), LIMIT, self.sha256(function))

    def check_names(self) -> None:
        """Compare file names with the manifest; raise BaselineError if one is missing, unlisted or of no function."""
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
    """Return what a user can do about the problem: run the command that generates the level again."""
    return f"generate it with diopi-test {generation_command(folder.parent, folder.name)}"
