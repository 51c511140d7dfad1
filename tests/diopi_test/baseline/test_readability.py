"""A separate process with a time limit reads baseline files first."""

import hashlib
import json
import sys
from io import StringIO
from pathlib import Path

import pytest
from baselines import make_level

from diopi_test.baseline import readability
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.level import open_level
from diopi_test.baseline.readability import check_readable


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a baseline file of diopiSqrt."""
    return make_level(tmp_path_factory.mktemp("baseline") / "smoke", "diopiSqrt") / "diopiSqrt.h5"


def test_a_readable_file_passes(path: Path) -> None:
    check_readable({path: open_level(path.parent).sha256("diopiSqrt")})


def test_a_file_with_another_digest_is_not_given_to_hdf5(path: Path, tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"diopiSqrt\.h5 .*sha256"):
        check_readable({path: "0" * 64})
    with pytest.raises(BaselineError, match="read"):
        check_readable({tmp_path / "nothing.h5": "0" * 64})


def test_a_file_that_is_not_hdf5_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "diopiSqrt.h5"
    path.write_bytes(b"no HDF5")
    with pytest.raises(BaselineError, match="readable"):
        check_readable({path: hashlib.sha256(b"no HDF5").hexdigest()})


def test_a_reader_that_hangs_or_crashes_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readability, "START_TIMEOUT", 0.1)
    monkeypatch.setattr(readability, "READ_TIMEOUT", 0.0)
    monkeypatch.setattr(readability, "_BOOTSTRAP", "while True: pass")
    with pytest.raises(BaselineError, match=r"diopiSqrt\.h5.*0\.1 s"):
        check_readable({path: ""})
    monkeypatch.setattr(readability, "START_TIMEOUT", 60.0)
    monkeypatch.setattr(readability, "_BOOTSTRAP", "import os; os.abort()")
    with pytest.raises(BaselineError, match="-6"):
        check_readable({path: ""})


def test_the_reader_prints_the_reason(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The main function of the reader is called in this process."""
    monkeypatch.setattr(sys, "stdin", StringIO(json.dumps({str(path): "0" * 64})))
    with pytest.raises(SystemExit, match="1"):
        readability.main()
    assert "sha256" in capsys.readouterr().out
