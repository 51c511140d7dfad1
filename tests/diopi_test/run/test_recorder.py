"""The facts about a vendor that a run records."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from diopi_impl import IEEE, VendorError, find_numerics
from diopi_test.baseline.codec import to_json
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.results.log import LogError, LogRecord, LogWriter, seal
from diopi_test.results.numerics import NumericsInfo
from diopi_test.results.records import VendorInfo
from diopi_test.run import recorder
from diopi_test.run.collection import Collected
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
    assert recorder.content().vendor == VendorInfo(name="chip", version="1.0", digest=digest)


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


def test_log_contains_the_declared_numerics(tmp_path: Path) -> None:
    path = tmp_path / "log"
    recorder = RunOptions(vendor="chip").recorder(LogWriter(path))
    recorder.begin("")
    assert recorder.content().numerics.declaration.is_ieee
    tf32, cuda = find_numerics("tf32"), find_numerics("cuda-default")
    description = Description(name="chip", version="1.0", claims=(), waivers=(), numerics=tf32)
    recorder.vendor(description)
    content = LogContent.read(path)
    assert content.numerics == NumericsInfo(tf32, tf32.digest)
    assert content.report().title == "chip 1.0 with numerics tf32"
    with pytest.raises(VendorError, match=r"results for the numerics tf32 \(.*are cuda-default \(.*without --resume"):
        recorder.vendor(replace(description, numerics=cuda))


def test_log_with_a_wrong_digest_of_the_numerics_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "log"
    recorder = RunOptions(vendor="chip").recorder(LogWriter(path))
    recorder.begin("")
    forged = {"declaration": to_json(find_numerics("tf32")), "digest": IEEE.digest}
    path.write_bytes(path.read_bytes() + seal(LogRecord("numerics", forged)))
    with pytest.raises(LogError, match="the digest of the numerics is"):
        LogContent.read(path)


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


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((Verdict.not_run, Verdict.passed), Verdict.passed),  # the run was resumed
        ((Verdict.failed, Verdict.passed), Verdict.failed),
        ((Verdict.passed, Verdict.failed), Verdict.failed),
    ],
)
def test_a_case_with_several_records_has_one_verdict(
    verdicts: tuple[Verdict, Verdict], expected: Verdict, tmp_path: Path
) -> None:
    recorder = RunOptions(vendor="chip").recorder(LogWriter(tmp_path / "log"))
    recorder.begin("")
    case = Collected(function="diopiSqrt", label="float32-matrix", dtype="float32")
    for verdict in verdicts:
        recorder.case(case.record(Outcome(verdict=verdict, message=""), 0.0))
    assert recorder.content().cases[case.id].verdict is expected
    assert LogContent.read(tmp_path / "log").cases[case.id].verdict is expected


def test_the_environment_has_only_packages_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "PACKAGES", ("numpy", "no-such-package"))
    assert list(recorder.environment().packages) == ["numpy"]
