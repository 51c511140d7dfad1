"""What a run notes of its vendor."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from diopi_test.harness.isolation.description import Description
from diopi_test.harness.log import LogWriter
from diopi_test.harness.options import RunOptions
from diopi_test.harness.recorder import Recorder
from diopi_test.harness.records import VendorInfo


@pytest.mark.parametrize("is_library", [True, False])
def test_a_library_is_known_by_its_digest(is_library: bool, tmp_path: Path) -> None:
    library = tmp_path / "libdiopi_impl.so"
    library.write_bytes(b"\x7fELF")
    recorder = Recorder(LogWriter(tmp_path / "log"), RunOptions(str(library) if is_library else "small"))
    recorder.begin("")
    recorder.vendor(Description("chip", "1.0", (), ()))
    digest = hashlib.sha256(b"\x7fELF").hexdigest() if is_library else ""
    assert recorder.content().vendor == VendorInfo("chip", "1.0", digest)
