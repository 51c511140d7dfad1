"""The facts about a vendor that a run records."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from diopi_impl import VendorError
from diopi_test.results.log import LogError, LogRecord, LogWriter, seal
from diopi_test.results.records import VendorInfo
from diopi_test.run.isolation.description import Description
from diopi_test.run.options import RunOptions
from diopi_test.run.recorder import LogContent


@pytest.mark.parametrize("is_library", [True, False])
def test_a_library_is_identified_by_its_digest(is_library: bool, tmp_path: Path) -> None:
    library = tmp_path / "libdiopi_impl.so"
    library.write_bytes(b"\x7fELF")
    recorder = RunOptions(vendor=str(library) if is_library else "small").recorder(LogWriter(tmp_path / "log"))
    recorder.begin("")
    recorder.vendor(Description(name="chip", version="1.0", claims=(), waivers=()))
    digest = hashlib.sha256(b"\x7fELF").hexdigest() if is_library else ""
    assert recorder.content().vendor == VendorInfo("chip", "1.0", digest)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Description(name="chip", version="2.0", claims=(), waivers=()), r"chip 1\.0.*chip 2\.0"),
        (Description(name="chip", version="1.0", claims=(), waivers=()), r"chip 1\.0 \(SHA-256 .*chip 1\.0 \(SHA-256"),
    ],
)
def test_a_run_is_not_resumed_with_another_vendor(second: Description, message: str, tmp_path: Path) -> None:
    library = tmp_path / "libdiopi_impl.so"
    library.write_bytes(b"\x7fELF")
    recorder = RunOptions(vendor=str(library)).recorder(LogWriter(tmp_path / "log"))
    recorder.begin("")
    recorder.vendor(Description(name="chip", version="1.0", claims=(), waivers=()))
    recorder.vendor(Description(name="chip", version="1.0", claims=(), waivers=()))
    library.write_bytes(b"\x7fELF of another build")
    with pytest.raises(VendorError, match=message):
        recorder.vendor(second)


def test_a_log_of_two_runs_or_vendors_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "log"
    recorder = RunOptions(vendor="chip").recorder(LogWriter(path))
    recorder.begin("")
    recorder.vendor(Description(name="chip", version="1.0", claims=(), waivers=()))
    begun = path.read_bytes()
    path.write_bytes(begun + begun)
    with pytest.raises(LogError, match="more than one run"):
        LogContent.read(path)
    path.write_bytes(begun + seal(LogRecord("vendor", {"name": "chip", "version": "2.0"})))
    with pytest.raises(LogError, match=r"chip 1\.0.*chip 2\.0"):
        LogContent.read(path)
