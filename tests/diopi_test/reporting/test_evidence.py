"""Evidence: changes, truncation, forgery and repacking are reported, and unchanged archives are valid."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from case_records import case_record

from diopi_impl import IEEE, Numerics, find_numerics
from diopi_test.baseline.codec import to_json
from diopi_test.reporting import evidence
from diopi_test.reporting.evidence import INDEX, LOG, MANIFEST, Archive, EvidenceError
from diopi_test.results.log import LogRecord, seal
from diopi_test.results.numerics import NumericsInfo
from diopi_test.results.records import VendorInfo
from diopi_test.run.options import RunOptions

BODY = b'{\n"level": "smoke",\n'
DIGEST = hashlib.sha256(BODY).hexdigest()
SEALED = BODY + f'"sha256": "{DIGEST}"\n}}\n'.encode()

CASES = [case_record("diopiAdd[float32-x]", "passed"), case_record("diopiAdd[float32-y]", "failed", "out is wrong")]

HEADER = to_json(RunOptions(vendor="small").header(DIGEST))
"""The first record of every log here, which states when the run began."""


def log_of(*more: bytes, verdict: str = "failed", numerics: Numerics = IEEE) -> bytes:
    """Return the log of a run with two cases."""
    cases = [CASES[0], case_record(CASES[1].id, verdict)]
    entries = [
        LogRecord("run", HEADER),
        LogRecord("vendor", to_json(VendorInfo(name="small", version="1.0"))),
        LogRecord("numerics", to_json(NumericsInfo.from_declaration(numerics))),
        LogRecord("due", [case.id for case in cases]),
        *(LogRecord("case", to_json(case)) for case in cases),
        LogRecord("end", 0.5),
    ]
    return b"".join([*map(seal, entries), *more])


def members() -> dict[str, bytes]:
    """Return the files of a correct archive by name."""
    return dict(evidence.pack(log_of(), SEALED))


def problems(content: bytes) -> list[str]:
    """Return the problems of an archive."""
    return list(Archive(content).problems())


def test_the_index_contains_the_declared_numerics() -> None:
    tf32 = find_numerics("tf32")
    archive = Archive(evidence.build_archive(evidence.pack(log_of(numerics=tf32), SEALED)))
    assert list(archive.problems()) == []
    assert archive.evidence.numerics == NumericsInfo(tf32, tf32.digest)
    assert b"small 1.0 with numerics tf32" in archive.members["summary.md"]
    forged = dict(archive.members) | {evidence.LOG: log_of()}
    assert "log.jsonl was changed: its SHA-256 or size differs from the entry in evidence.json" in problems(
        evidence.build_archive(forged)
    )


def test_the_manifest_has_the_expected_format() -> None:
    assert evidence.check_seal(SEALED) == (DIGEST, True)


def test_an_unchanged_archive_is_accepted() -> None:
    packed = evidence.build_archive(members())
    archive = Archive(packed)
    assert list(archive.problems()) == []
    index = archive.evidence
    assert (index.exit_status, index.vendor.name, index.baseline.digest) == (1, "small", DIGEST)
    assert packed == evidence.build_archive(members())


def change(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    """Return a forgery that replaces bytes of a file of the archive."""

    def changed(parts: dict[str, bytes]) -> None:
        assert old in parts[name]
        parts[name] = parts[name].replace(old, new)

    return changed


def update_index(parts: dict[str, bytes]) -> None:
    """Correct the digests and sizes of the members in the index."""
    index: Any = json.loads(parts[INDEX])
    for name in index["members"]:
        index["members"][name] = {"sha256": hashlib.sha256(parts[name]).hexdigest(), "size": len(parts[name])}
    parts[INDEX] = (json.dumps(index, indent=1) + "\n").encode()


def forged_report(parts: dict[str, bytes]) -> None:
    """Change the number of failures in the report, and list the new digest."""
    change("report.json", b'"failed": 1', b'"failed": 0')(parts)
    update_index(parts)


def forged_status(parts: dict[str, bytes]) -> None:
    """Change the exit status in the index."""
    change(INDEX, b'"exit_status": 1', b'"exit_status": 0')(parts)


def another_log(parts: dict[str, bytes]) -> None:
    """Replace the log by the log of a run without failures."""
    parts[LOG] = log_of(verdict="passed")


def edited_log(parts: dict[str, bytes]) -> None:
    """Change a verdict in the log, and list the new digest."""
    change(LOG, b'"verdict":"failed"', b'"verdict":"passed"')(parts)
    update_index(parts)


def other_baseline(parts: dict[str, bytes]) -> None:
    """Replace the manifest by the manifest of another baseline."""
    body = BODY + b'"other": 1,\n'
    parts[MANIFEST] = body + f'"sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()
    update_index(parts)


@pytest.mark.parametrize(
    ("done", "message"),
    [
        (lambda parts: parts.pop("report.xml"), "report.xml is missing"),
        (lambda parts: parts.update(extra=b""), "extra is in the archive, but evidence.json does not list it"),
        (change("summary.md", b"failed", b"passed"), "summary.md was changed"),
        (change("report.html", b"failed", b"passed"), "report.html was changed"),
        (another_log, "log.jsonl was changed"),
        (edited_log, "the first is line 6"),
        (forged_report, "report.json differs from the file that the log yields"),
        (forged_status, "evidence.json differs from the file that the log yields"),
        (change(MANIFEST, b"smoke", b"large"), "the baseline's manifest was changed"),
        (other_baseline, "the run used a baseline with digest"),
    ],
)
def test_a_changed_member_is_named(done: Callable[[dict[str, bytes]], object], message: str) -> None:
    parts = members()
    done(parts)
    assert any(message in problem for problem in problems(evidence.build_archive(parts))), problems(
        evidence.build_archive(parts)
    )


def packed_by_others(parts: Mapping[str, bytes], **options: Any) -> bytes:
    """Return an archive that another program packed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return buffer.getvalue()


def test_a_repacked_archive_is_rejected_with_the_reason() -> None:
    whole = members()
    for packed in (
        packed_by_others(whole),
        evidence.build_archive(dict(reversed(whole.items()))),
        b"more" + evidence.build_archive(whole),
    ):
        assert any("the archive was repacked" in problem for problem in problems(packed))


def test_a_changed_byte_is_detected_wherever_it_is() -> None:
    packed = evidence.build_archive(members())
    for place in range(0, len(packed), len(packed) // 97):
        damaged_bytes = bytearray(packed)
        damaged_bytes[place] ^= 1
        with suppress(EvidenceError):
            assert problems(bytes(damaged_bytes)), place


@pytest.mark.parametrize("length", [0, 10, 1000, -1])
def test_a_truncated_archive_is_rejected(length: int) -> None:
    with pytest.raises(EvidenceError, match="damaged"):
        Archive(evidence.build_archive(members())[:length])


def test_a_duplicate_member_is_rejected() -> None:
    parts = members()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr(LOG, b"")
    with pytest.raises(EvidenceError, match="same name"):
        Archive(buffer.getvalue())


@pytest.mark.parametrize("index", [b"", b"[]", b'{"schema_version": 99}', b'{"schema_version": 1}'])
def test_an_invalid_index_is_rejected(index: bytes) -> None:
    with pytest.raises(EvidenceError, match=INDEX):
        problems(evidence.build_archive({**members(), INDEX: index}))


def test_the_log_of_a_killed_and_resumed_run_is_not_damaged() -> None:
    torn = b'{"kind":"case","content":{"id":"dio\n'
    resumed = seal(LogRecord("resumed", {}))
    assert evidence.pack(log_of(torn, resumed), SEALED)
    with pytest.raises(EvidenceError, match="line 8"):
        evidence.pack(log_of(torn), SEALED)


def test_an_archive_with_compressed_members_is_not_unpacked() -> None:
    bomb = packed_by_others({**members(), LOG: bytes(2**26)}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 2**20
    with pytest.raises(EvidenceError, match="compressed"):
        Archive(bomb)


def test_members_that_share_their_bytes_are_not_read() -> None:
    """A directory of a ZIP file may list the same bytes several times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(zipfile.ZipInfo(LOG), bytes(2**16))
        for number in range(100):
            copied = copy(file.filelist[0])
            copied.filename = f"{number:0{len(LOG)}}"
            file.filelist.append(copied)
    with pytest.raises(EvidenceError, match=r"\d+ bytes.*\d+"):
        Archive(buffer.getvalue())


def test_an_archive_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "LARGEST", 100)
    path = tmp_path / "large.zip"
    path.write_bytes(evidence.build_archive(members()))
    with pytest.raises(EvidenceError, match="100 bytes"):
        Archive.read(path)


def test_a_file_that_is_not_a_log_is_not_packed() -> None:
    with pytest.raises(EvidenceError, match="log"):
        evidence.pack(seal(LogRecord("due", [])), SEALED)
