"""Evidence: the archive of a run, from which anyone can derive the result of the run again.

The archive is a ZIP file of uncompressed members in a fixed order, with nothing else in it. Changes, truncation and
repacking are therefore detected. `evidence.json` contains the digests of the other members; a signature signs this
file. The report and the summaries must equal what is derived from the log. Without a signature, the archive proves only
that nothing was changed by accident or in part. It does not prove who created it: a forged log can be packed too.
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
"""The version of the archive format; archives of other versions are not read."""

SUFFIX = ".diopi.zip"
"""The end of the names of archives."""

INDEX, LOG, MANIFEST, SIGNATURE = "evidence.json", "log.jsonl", "manifest.json", "evidence.json.sig"
"""The names of members: the index of the archive, the log of the run, the baseline's manifest, and the signature."""

LARGEST = 1 << 30
"""The maximum size of an archive in bytes. The members are not compressed, so together they are not larger."""

_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all members, the earliest one in ZIP files, so that equal members give equal archives."""


class EvidenceError(Exception):
    """A file that is not evidence, or can't become it; the message gives the reason."""


@final
@dataclass(frozen=True)
class Member:
    """A member of the archive: its digest, and its size in bytes."""

    sha256: str
    size: int


@final
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The index of an archive, which describes the run.

    Attributes:
        command: the command that repeats the run in one process.
        exit_status: the exit status of the run.
        members: all other members of the archive, in order.
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
    """Return the members of the archive of a log and a manifest; raise EvidenceError if they do not match."""
    content, problems = _examine_log(log, manifest)
    if content is None or problems:
        raise EvidenceError(problems[0])
    return _build_members(content, log, manifest, signed)


def _build_members(content: LogContent, log: bytes, manifest: bytes, signed: bool) -> Mapping[str, bytes]:
    """Return all members of an archive except the signature, by name and in order.

    Args:
        content: what the log contains.
        log: the file of the log.
        manifest: the file of the baseline's manifest.
        signed: whether the archive gets a signature.

    Returns:
        The files.
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
    """Return the members that are derived from the report."""
    return {
        "report.json": _encoded(to_json(report)),
        "report.xml": junit(report).encode(),
        "report.html": html.render_report(report).encode(),
        "summary.md": markdown.render_report(report).encode(),
    }


def build_archive(members: Mapping[str, bytes]) -> bytes:
    """Return a ZIP file of the members; the same members give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, _DATE), data)
    return buffer.getvalue()


@final
class Archive:
    """An archive to verify.

    Args:
        content: The bytes of the file.

    Attributes:
        members: the content of each member by name.

    Raises:
        EvidenceError: The bytes are not an archive.
    """

    @classmethod
    def read(cls, path: Path) -> Archive:
        """Read the archive at `path`; raise EvidenceError if it can't be opened or is too large."""
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
        except OSError as error:
            raise EvidenceError(f"it can't be read: {error}") from error
        if len(content) > LARGEST:
            raise EvidenceError(f"it has more than {LARGEST} bytes")
        return cls(content)

    def __init__(self, content: bytes) -> None:
        self.members: Mapping[str, bytes] = _members(content)
        self._content = content

    @cached_property
    def evidence(self) -> Evidence:
        """Return the index; raise EvidenceError if it can't be read."""
        try:
            index = json.loads(self.members[INDEX])
            found = index.get("schema_version") if isinstance(index, dict) else None
            if found != VERSION:
                raise ValueError(f"expected schema_version {VERSION}, found {found}")
            return from_json(Evidence, index)
        except (KeyError, ValueError, RecursionError) as error:
            raise EvidenceError(f"{INDEX} is missing or can't be read: {error}") from error

    def problems(self) -> Iterator[str]:
        """Yield the reasons why the archive is not evidence of its run; none if it is."""
        expected = [INDEX, *self.evidence.members, *([SIGNATURE] if self.evidence.signed else [])]
        yield from (f"{name} is missing" for name in expected if name not in self.members)
        yield from (f"{name} does not belong to it" for name in self.members if name not in expected)
        for name, member in self.evidence.members.items():
            data = self.members.get(name)
            if data is not None and Member(hashlib.sha256(data).hexdigest(), len(data)) != member:
                yield f"{name} was changed: it is not the one that {INDEX} lists"
        in_order = {name: self.members[name] for name in (*expected, *self.members) if name in self.members}
        if build_archive(in_order) != self._content:
            yield "it was packed anew: its members do not lie in it as diopi-test submit writes them"
        if {LOG, MANIFEST} <= set(self.members):
            yield from self._contradictions()

    def _contradictions(self) -> Iterator[str]:
        """Yield the contradictions between parts of the archive."""
        log, manifest = self.members[LOG], self.members[MANIFEST]
        content, problems = _examine_log(log, manifest)
        yield from problems
        if content is None or problems:
            return
        for name, data in _build_members(content, log, manifest, self.evidence.signed).items():
            if name in self.members and self.members[name] != data:
                yield f"{name} is forged, or of another version of the suite: the log tells otherwise"


def _members(content: bytes) -> Mapping[str, bytes]:
    """Return the members of an archive by name; raise `EvidenceError` unless the archive is intact and uncompressed."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            found = file.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in found):
                raise EvidenceError("it was packed anew: a member is compressed")
            if (size := sum(member.file_size for member in found)) > len(content):
                raise EvidenceError(f"its members have {size} bytes, more than its own {len(content)}")
            if len({member.filename for member in found}) != len(found):
                raise EvidenceError("a name is there twice")
            return {member.filename: file.read(member) for member in found}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise EvidenceError(f"it is no ZIP file, truncated or damaged: {error}") from error


def _examine_log(log: bytes, manifest: bytes) -> tuple[LogContent | None, list[str]]:
    """Return the content of a log, None if it can't be read, and the problems of the log and the manifest in words."""
    lines = log.splitlines(keepends=True)
    problems = list(_damages(lines))
    try:
        content = LogContent.from_records(intact_records(lines), Path(LOG))
    except (LogError, ValueError) as error:
        return None, [*problems, f"the log can't be read: {error}"]
    return content, [*problems, *_differences(content, manifest)]


def _damages(lines: list[bytes]) -> Iterator[str]:
    """Yield a problem if lines of a log are damaged."""
    if damaged := damaged_lines(lines):
        yield f"the log has {pluralize(len(damaged), 'damaged or changed line')}, the first is line {damaged[0]}"


def _differences(content: LogContent, manifest: bytes) -> Iterator[str]:
    """Yield the reasons why a log is not evidence: a test vendor, a changed manifest, or one of another baseline."""
    if content.vendor.receives_cases:
        yield f"the vendor {content.vendor.name} is a test vendor, which receives the expected results"
    digest, is_intact = check_seal(manifest)
    if not is_intact:
        yield "the baseline's manifest does not end with its sha256: it was changed"
    if digest != content.header.baseline.digest:
        yield f"the run had another baseline, with digest {content.header.baseline.digest}; the manifest has {digest}"


def _encoded(content: object) -> bytes:
    """Return the content as indented JSON."""
    return f"{json.dumps(content, indent=1)}\n".encode()
