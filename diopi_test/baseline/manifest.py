"""The manifest of a level: the files in its folder, their digests and their cases.

`manifest.json` is a JSON object with one line per function. It ends with the SHA-256 of all preceding bytes; a manifest
whose digest is wrong is rejected. It is written under a temporary name and renamed, so a partial file never exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diopi_proto.types import VERSION_NUMBER, Dtype
from diopi_test.baseline.codec import RecordError, from_json, to_json
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_regular_file, write_atomically
from diopi_test.cases.case import CaseClass

MANIFEST_NAME = "manifest.json"
"""The file name of the manifest in the folder of its level."""

FORMAT = 1
"""Version of the manifest's layout."""

LIMIT = 64 * 2**20
"""The maximum number of bytes of a manifest, about twenty times the size for the full level."""

_SEAL = "sha256"
"""The last key of the manifest's object, whose value is the digest of all bytes before it."""

_OMIT_DEFAULT = {"omit_default": True}
"""Metadata of a field that is not written if it has its default value, to keep the manifest small."""


@dataclass(frozen=True, kw_only=True)
class ListedCase:
    """The properties of a case that a run needs before it opens the case's file.

    Attributes:
        label: The unique label of the case among the function's cases.
        dtype: The element type under test; None if there is none.
        class_: The class of the case, which determines its requirements.
        base: The label of the stored case that this case is derived from when a run opens it; empty for stored cases.
    """

    label: str
    dtype: Dtype | None = field(default=None, metadata=_OMIT_DEFAULT)
    class_: CaseClass = field(default=CaseClass.basic, metadata=_OMIT_DEFAULT)
    base: str = field(default="", metadata=_OMIT_DEFAULT)


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """The manifest's entry for the file of a function.

    Attributes:
        sha256: The digest of the file.
        size: The number of bytes of the file.
        key: The digest of everything the contents depend on; a file with the right key is up to date.
        cases: The stored cases in order, then the cases derived from them.
    """

    sha256: str
    size: int
    key: str
    cases: tuple[ListedCase, ...]


@dataclass(frozen=True, kw_only=True)
class LevelManifest:
    """The content of a manifest.

    Attributes:
        format: The version of the manifest's layout.
        proto_version: The version of the standard for which the files were generated.
        level: The name of the level.
        files: The entries of the files, by function.
    """

    format: int
    proto_version: int
    level: str
    files: Mapping[str, FileEntry]


def encode_entry(entry: FileEntry) -> str:
    """Return an entry as the JSON text that the manifest contains."""
    return _compact_json(to_json(entry))


def write_manifest(folder: Path, level: str, entries: Mapping[str, str]) -> None:
    """Write the manifest of a level's folder atomically; raise BaselineError if that fails.

    If two processes write at the same time, the later manifest stays.

    Args:
        folder: The folder of the level.
        level: The name of the level.
        entries: The encoded entries by function.
    """
    head = {"format": FORMAT, "proto_version": VERSION_NUMBER, "level": level}
    files = ",\n".join(f"{_compact_json(function)}: {entries[function]}" for function in sorted(entries))
    values = {**{name: _compact_json(value) for name, value in head.items()}, "files": f"{{\n{files}\n}}"}
    body = "{\n" + "".join(f"{_compact_json(name)}: {value},\n" for name, value in values.items())
    write_atomically(folder / MANIFEST_NAME, body.encode() + _seal_line(_sha256(body.encode())))


def read_manifest(folder: Path) -> tuple[LevelManifest, str]:
    """Return the manifest of a level's folder and its digest; raise BaselineError if there is no valid manifest."""
    path = folder / MANIFEST_NAME
    content = read_regular_file(path, LIMIT)
    digest, is_intact = check_seal(content)
    if not is_intact:
        raise BaselineError(f"{path} is damaged, truncated or edited: it does not end with its sha256, {digest}")
    try:
        return _parse_manifest(path, json.loads(content)), digest
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{path} is not a valid manifest: {error}") from error


def check_seal(content: bytes) -> tuple[str, bool]:
    """Return the digest of a manifest's content, and whether the content ends with that digest."""
    length = len(_seal_line(_sha256(b"")))
    digest = _sha256(content[:-length])
    return digest, content[-length:] == _seal_line(digest)


def _parse_manifest(path: Path, content: Any) -> LevelManifest:
    """Return the manifest for its JSON content; raise RecordError or BaselineError if it is not valid."""
    if not isinstance(content, dict):
        raise RecordError(f"expected an object, found {type(content).__name__}")
    for name, expected in (("format", FORMAT), ("proto_version", VERSION_NUMBER)):
        if (actual := content.get(name)) != expected:
            raise BaselineError(f"{path} is of another version: {name} is {actual!r}, expected {expected}")
    return from_json(LevelManifest, {name: value for name, value in content.items() if name != _SEAL})


def _compact_json(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))


def _sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal notation."""
    return hashlib.sha256(content).hexdigest()


def _seal_line(digest: str) -> bytes:
    """Return the last line of a manifest with this digest."""
    return f'"{_SEAL}": "{digest}"\n}}\n'.encode()
