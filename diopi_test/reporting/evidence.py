"""Evidence: the archive of a run, from which anyone can derive the result of the run again.

`diopi-test submit` writes the archive and `diopi-test verify` checks it. The archive is a ZIP file that contains only
uncompressed members in a fixed order: the index `evidence.json`, the log of the run, the manifest of the baseline (the
list of the stored cases), and the report in several formats. The index lists the SHA-256 digests of the other members.
An optional signature signs the index.

A verifier derives the report from the log again and compares the bytes. Changes, truncation and repacking are therefore
detected. Without a signature, the archive proves only that nothing was changed by accident or in part. It does not
prove who created it, because a forged log can be packed as well.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import final

from diopi_proto.messages import pluralize
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.baseline.manifest import check_seal
from diopi_test.execution.verdict import OPTIONAL
from diopi_test.reporting import html, markdown
from diopi_test.reporting.junit import junit
from diopi_test.results.log import LogError, damaged_lines, intact_records
from diopi_test.results.numerics import IEEE_INFO, NumericsInfo
from diopi_test.results.records import BaselineInfo, Report, VendorInfo
from diopi_test.run.recorder import LogContent

VERSION = 1
"""The version of the archive format. Reading an archive of another version raises EvidenceError."""

SUFFIX = ".diopi.zip"
"""The file name extension of archives."""

INDEX, LOG, MANIFEST, SIGNATURE = "evidence.json", "log.jsonl", "manifest.json", "evidence.json.sig"
"""The names of members: the index of the archive, the log of the run, the baseline's manifest, and the signature."""

LARGEST = 1 << 30
"""The maximum size of an archive in bytes (1 GiB), so that a huge file does not exhaust the memory of the verifier.

The members are not compressed. Their total size is therefore not larger than the archive.
"""

_DATE = (1980, 1, 1, 0, 0, 0)
"""The modification time of all members, so that equal members give equal archives. ZIP files allow no earlier time."""


class EvidenceError(Exception):
    """A file that is not valid evidence, or a log that can't be packed as evidence; the message gives the reason."""


@final
@dataclass(frozen=True)
class Member:
    """The entry of the index for a member of the archive.

    Attributes:
        sha256: the SHA-256 digest of the member in hexadecimal.
        size: the size of the member in bytes.
    """

    sha256: str
    size: int


@final
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The index of an archive, stored as `evidence.json`, which describes the run and lists the other members.

    Attributes:
        schema_version: the version of the archive format.
        vendor: the vendor under test.
        baseline: the level and the digest of the baseline that the run used.
        command: the command that repeats the run in one process.
        exit_status: the exit status of the run.
        members: the digests and sizes of all other members except the signature, by name and in order.
        signed: whether the archive has a signature.
        numerics: the declared arithmetic for which the results were evaluated.
    """

    schema_version: int
    vendor: VendorInfo
    baseline: BaselineInfo
    command: str
    exit_status: int
    members: Mapping[str, Member]
    signed: bool = field(default=False, metadata=OPTIONAL)
    numerics: NumericsInfo = field(default=IEEE_INFO, metadata=OPTIONAL)


def pack(log: bytes, manifest: bytes, *, signed: bool = False) -> Mapping[str, bytes]:
    """Return the members of a new archive, except the signature.

    Args:
        log: The content of the log file of the run.
        manifest: The content of the manifest file of the baseline that the run used.
        signed: Whether the caller will add a signature. The index records it.

    Returns:
        The content of each member by name, in the order of the archive; the index comes first.

    Raises:
        EvidenceError: The log is damaged or comes from a test vendor, the manifest was changed, or the run used another
            baseline than this manifest describes.
    """
    content, problems = _examine_log(log, manifest)
    if content is None or problems:
        raise EvidenceError(problems[0])
    return _build_members(content, log, manifest, signed)


def _build_members(content: LogContent, log: bytes, manifest: bytes, signed: bool) -> Mapping[str, bytes]:
    """Return all members of an archive except the signature, by name and in order.

    Args:
        content: the parsed log, from which the report is derived.
        log: the content of the log file, which becomes a member.
        manifest: the content of the manifest file, which becomes a member.
        signed: whether the archive gets a signature.

    Returns:
        The content of each member.
    """
    report = content.report()
    members = {LOG: log, MANIFEST: manifest, **derive_members(report)}
    listed = {name: Member(hashlib.sha256(data).hexdigest(), len(data)) for name, data in members.items()}
    index = Evidence(
        schema_version=VERSION,
        vendor=report.vendor,
        baseline=report.baseline,
        numerics=report.numerics,
        command=content.header.command,
        exit_status=report.exit_status,
        members=listed,
        signed=signed,
    )
    return {INDEX: _encoded(to_json(index)), **members}


def derive_members(report: Report) -> Mapping[str, bytes]:
    """Return the members that are derived from the report (JSON, JUnit XML, HTML and Markdown), by file name."""
    return {
        "report.json": _encoded(to_json(report)),
        "report.xml": junit(report).encode(),
        "report.html": html.render_report(report).encode(),
        "summary.md": markdown.render_report(report).encode(),
    }


def build_archive(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a ZIP file with these members in this order; the same members always give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, _DATE), data)
    return buffer.getvalue()


@final
class Archive:
    """An archive to verify.

    Args:
        content: The bytes of the archive file.

    Attributes:
        members: the content of each member by name.

    Raises:
        EvidenceError: The bytes are not an intact ZIP file of uncompressed members with distinct names.
    """

    @classmethod
    def read(cls, path: Path) -> Archive:
        """Return the archive at `path`; raise EvidenceError if it can't be opened or is too large."""
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
        except OSError as error:
            raise EvidenceError(f"the archive can't be read: {error}") from error
        if len(content) > LARGEST:
            raise EvidenceError(f"the archive has more than {LARGEST} bytes")
        return cls(content)

    def __init__(self, content: bytes) -> None:
        self.members: Mapping[str, bytes] = _members(content)
        self._content = content

    @cached_property
    def evidence(self) -> Evidence:
        """Return the index; raise EvidenceError if it is missing, invalid or of another format version."""
        try:
            index = json.loads(self.members[INDEX])
            version = index.get("schema_version") if isinstance(index, dict) else None
            if version != VERSION:
                raise ValueError(f"expected schema_version {VERSION}, found {version}")
            return from_json(Evidence, index)
        except (KeyError, ValueError, RecursionError) as error:
            raise EvidenceError(f"{INDEX} is missing or can't be read: {error}") from error

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each reason why the archive is not valid evidence; yield nothing for a valid archive.

        The signature is not verified here; `signature.check` verifies it.

        Raises:
            EvidenceError: The index is missing or can't be read.
        """
        expected = [INDEX, *self.evidence.members, *([SIGNATURE] if self.evidence.signed else [])]
        yield from (f"{name} is missing" for name in expected if name not in self.members)
        yield from (
            f"{name} is in the archive, but {INDEX} does not list it" for name in self.members if name not in expected
        )
        for name, member in self.evidence.members.items():
            data = self.members.get(name)
            if data is not None and Member(hashlib.sha256(data).hexdigest(), len(data)) != member:
                yield f"{name} was changed: its SHA-256 or size differs from the entry in {INDEX}"
        in_order = {name: self.members[name] for name in (*expected, *self.members) if name in self.members}
        if build_archive(in_order) != self._content:
            yield "the archive was repacked: its bytes differ from those that diopi-test submit writes for its members"
        if {LOG, MANIFEST} <= set(self.members):
            yield from self._contradictions()

    def _contradictions(self) -> Iterator[str]:
        """Yield the contradictions between the log and the other members, which are derived from the log again."""
        log, manifest = self.members[LOG], self.members[MANIFEST]
        content, problems = _examine_log(log, manifest)
        yield from problems
        if content is None or problems:
            return
        for name, data in _build_members(content, log, manifest, self.evidence.signed).items():
            if name in self.members and self.members[name] != data:
                yield (
                    f"{name} differs from the file that the log yields: it was forged, or another version of the suite "
                    "wrote it"
                )


def _members(content: bytes) -> Mapping[str, bytes]:
    """Return the content of the members of a ZIP file by name.

    Args:
        content: The bytes of the file.

    Raises:
        EvidenceError: The file is not an intact ZIP file, a member is compressed, two members have the same name, or
            the members claim to be larger than the file.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            entries = file.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in entries):
                raise EvidenceError("the archive was repacked: a member is compressed")
            if (size := sum(member.file_size for member in entries)) > len(content):
                raise EvidenceError(f"the members have {size} bytes together, but the archive has only {len(content)}")
            if len({member.filename for member in entries}) != len(entries):
                raise EvidenceError("two members of the archive have the same name")
            return {member.filename: file.read(member) for member in entries}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise EvidenceError(f"the file is not a ZIP file, or it is truncated or damaged: {error}") from error


def _examine_log(log: bytes, manifest: bytes) -> tuple[LogContent | None, list[str]]:
    """Parse the log of a run and find the reasons why it can't be evidence.

    Args:
        log: The content of the log file.
        manifest: The content of the manifest file of the baseline.

    Returns:
        The parsed log, or None if it can't be read; and a sentence for each problem of the log or the manifest.
    """
    lines = log.splitlines(keepends=True)
    problems = list(_damages(lines))
    try:
        content = LogContent.from_records(intact_records(lines), Path(LOG))
    except (LogError, ValueError) as error:
        return None, [*problems, f"the log can't be read: {error}"]
    return content, [*problems, *_differences(content, manifest)]


def _damages(lines: list[bytes]) -> Iterator[str]:
    """Yield one sentence about the damaged lines of a log; nothing if every line is intact."""
    if damaged := damaged_lines(lines):
        yield f"the log has {pluralize(len(damaged), 'damaged or changed line')}; the first is line {damaged[0]}"


def _differences(content: LogContent, manifest: bytes) -> Iterator[str]:
    """Yield the reasons why a log is not evidence together with this manifest.

    The vendor may be a test vendor, the manifest may have been changed, or the run may have used another baseline.

    Args:
        content: The parsed log.
        manifest: The content of the manifest file.
    """
    if content.vendor.receives_cases:
        yield f"the vendor {content.vendor.name} is a test vendor, which receives the expected results"
    digest, is_intact = check_seal(manifest)
    if not is_intact:
        yield "the baseline's manifest was changed: it does not end with its own SHA-256"
    if digest != content.header.baseline.digest:
        yield (
            f"the run used a baseline with digest {content.header.baseline.digest}, but the manifest has digest "
            f"{digest}"
        )


def _encoded(content: object) -> bytes:
    """Return a JSON value as indented JSON in UTF-8, with a newline at the end."""
    return f"{json.dumps(content, indent=1)}\n".encode()
