"""The manifest of a level: which files its folder holds, what exactly each of them is, and which cases it gives.

`manifest.json` is one JSON object, a line for each function, and at its end the SHA-256 of everything before: it is
believed whole or not at all. It is written under a temporary name and renamed, so there is never half of one.
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
from diopi_test.cases.model import CaseClass

MANIFEST_NAME = "manifest.json"
"""Of the manifest in its level's folder."""

FORMAT = 1
"""Version of the manifest's layout."""

LIMIT = 64 * 2**20
"""Bytes a manifest has at most, some twenty times those of the full level."""

_SEAL = "sha256"
"""The last key, of the digest of everything before it."""

_OMITTED = {"omit_default": True}


@dataclass(frozen=True)
class ListedCase:
    """What a run has to know of a case before its file is opened.

    Attributes:
        label: what tells it from the function's other cases.
        dtype: the element type under test; None where there is none.
        class_: what it demands.
        base: the label of the stored case it is made of; empty if it is stored itself.
    """

    label: str
    dtype: Dtype | None = field(default=None, metadata=_OMITTED)
    class_: CaseClass = field(default=CaseClass.basic, metadata=_OMITTED)
    base: str = field(default="", metadata=_OMITTED)


@dataclass(frozen=True)
class FileEntry:
    """One function's file.

    Attributes:
        sha256: of all its bytes.
        size: their number.
        key: digest of everything the contents depend on; a file with the right key need not be made again.
        cases: the stored ones in their order, then those made of them.
    """

    sha256: str
    size: int
    key: str
    cases: tuple[ListedCase, ...]


@dataclass(frozen=True)
class Manifest:
    """A level's files by function; `proto_version` is that of the standard they were made for."""

    format: int
    proto_version: int
    level: str
    files: Mapping[str, FileEntry]


def encode_entry(entry: FileEntry) -> str:
    """An entry as the manifest has it."""
    return _line(to_json(entry))


def write_manifest(folder: Path, level: str, entries: Mapping[str, str]) -> None:
    """Write the manifest of a level's folder, whole or not at all; BaselineError if that fails.

    `entries` are `encoded`, by function. Of two processes that write at the same time, the later one's stays.
    """
    head = {"format": FORMAT, "proto_version": VERSION_NUMBER, "level": level}
    files = ",\n".join(f"{_line(function)}: {entries[function]}" for function in sorted(entries))
    values = {**{name: _line(value) for name, value in head.items()}, "files": f"{{\n{files}\n}}"}
    body = "{\n" + "".join(f"{_line(name)}: {value},\n" for name, value in values.items())
    write_atomically(folder / MANIFEST_NAME, body.encode() + _seal(_digest(body.encode())))


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest of a level's folder, and its digest; BaselineError if there is none that can be used."""
    path = folder / MANIFEST_NAME
    content = read_regular_file(path, LIMIT)
    digest, is_whole = check_seal(content)
    if not is_whole:
        raise BaselineError(f"{path} is damaged, truncated or edited: it does not end with its sha256, {digest}")
    try:
        return _parse_manifest(path, json.loads(content)), digest
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{path} is no manifest: {error}") from error


def check_seal(content: bytes) -> tuple[str, bool]:
    """The digest of a manifest that a file holds, and whether the file ends with it."""
    length = len(_seal(_digest(b"")))
    digest = _digest(content[:-length])
    return digest, content[-length:] == _seal(digest)


def _parse_manifest(path: Path, content: Any) -> Manifest:
    """The manifest of which `given` is the JSON."""
    if not isinstance(content, dict):
        raise RecordError(f"expected an object, found {type(content).__name__}")
    for name, expected in (("format", FORMAT), ("proto_version", VERSION_NUMBER)):
        if (found := content.get(name)) != expected:
            raise BaselineError(f"{path} is of another version: {name} is {found!r}, expected {expected}")
    return from_json(Manifest, {name: value for name, value in content.items() if name != _SEAL})


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _seal(digest: str) -> bytes:
    """The end of a manifest."""
    return f'"{_SEAL}": "{digest}"\n}}\n'.encode()
