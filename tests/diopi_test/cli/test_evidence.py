"""`diopi-test submit` and `verify`: a real run is packed, verified and signed, and rejected after a change."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopi_test.cli import main

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="signatures need OpenSSH's ssh-keygen")


CASE = "diopiSqrt[float32-matrix]"


def call(*words: object) -> Result:
    """Run `diopi-test` with these words and return its result."""
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a few cases and return the path of the log."""
    path = tmp_path_factory.mktemp("run") / "run.log.jsonl"
    selected = ["--function", "diopiSqrt", "--dtype", "float32", "-n", 1]
    done = call("run", "--vendor", "small_vendor:vendor", *selected, "--log", path)
    assert done.exit_code == 0, done.output
    return path


def test_submit_packs_a_run_that_verify_accepts(log: Path, tmp_path: Path) -> None:
    archive = tmp_path / "run.diopi.zip"
    packed = call("submit", log, archive)
    assert packed.exit_code == 0, packed.output
    done = call("verify", archive)
    assert done.exit_code == 4, done.output
    assert done.output.startswith("no identity was checked: ")
    assert "not signed" in done.output and "cases passed" in done.output
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b'"verdict":"passed"', b'"verdict":"failed"', 1))
    second_result = call("verify", archive)
    assert second_result.exit_code == 1


def test_submit_rejects_a_vendor_that_receives_the_expected_results(tmp_path: Path) -> None:
    path = tmp_path / "run.log.jsonl"
    call("run", "--vendor", "diopi_test.quality.stub_vendor:vendor", "--case", CASE, "-n", 1, "--log", path)
    done = call("submit", path, tmp_path / "run.diopi.zip")
    assert done.exit_code != 0
    assert "the vendor stub is a test vendor, which receives the expected results" in " ".join(done.output.split())


def test_submit_rejects_another_baseline(log: Path, tmp_path: Path) -> None:
    done = call("submit", log, tmp_path / "a.zip", "--data", tmp_path)
    assert done.exit_code == 3
    assert "can't be packed" in done.output and not (tmp_path / "a.zip").exists()


def test_submit_and_verify_reject_other_files(log: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").write_text("nothing", "utf-8")
    assert call("submit", tmp_path / "nothing", tmp_path / "a.zip").exit_code == 3
    done = call("verify", log)
    assert done.exit_code == 1 and "the file is not a ZIP file" in done.output


@needs_ssh
def test_verify_checks_signatures(log: Path, tmp_path: Path) -> None:
    for name in ("own", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"me@chips {(tmp_path / 'own.pub').read_text('utf-8')}", "utf-8")
    archive, unsigned, stranger = (tmp_path / f"{name}.zip" for name in ("a", "b", "c"))
    assert call("submit", log, archive, "--sign", tmp_path / "own").exit_code == 0
    assert call("submit", log, unsigned).exit_code == 0
    assert call("submit", log, stranger, "--sign", tmp_path / "other").exit_code == 0
    trust = ("--signers", signers, "--signer", "me@chips")
    believed = call("verify", archive, *trust)
    assert (believed.exit_code, 'Good "diopi-evidence" signature for me@chips' in believed.output) == (0, True)
    assert "no identity was checked" not in believed.output
    anybodys = call("verify", archive)
    assert anybodys.exit_code == 4
    assert anybodys.output.startswith("no identity was checked: ")
    assert "expected a signature of me@chips" in call("verify", unsigned, *trust).output
    refused = call("verify", stranger, *trust)
    assert refused.exit_code == 1 and "the signature is not valid" in refused.output
    assert call("verify", archive, "--signers", signers).exit_code == 2


def test_submit_and_verify_report_missing_openssh(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("submit", log, tmp_path / "a.zip", "--sign", log)
    assert done.exit_code == 3 and "signatures need OpenSSH's ssh-keygen" in done.output
