"""The C code of an exported library, and a framework that calls it, under the compiler's sanitizers."""

from pathlib import Path

import pytest
import sanitizers
from sanitizers import ADDRESS, THREAD
from toolchain import VENDORS, WARNINGS, build, require_shared_python

from diopi_impl.export import export

pytestmark = pytest.mark.sanitizers


def framework(folder: Path, vendor: str, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build the framework in C and the library of `vendor` with `flags`; return the linked program."""
    require_shared_python()
    sanitizers.require(flags)
    monkeypatch.setenv("CC", " ".join(("cc", *flags, *WARNINGS)))
    library = export(vendor, folder / "exported")
    linked = (f"-L{library.parent}", "-ldiopi_impl", f"-Wl,-rpath,{library.parent}")
    return build(folder / "framework", "c", [VENDORS / "framework" / "framework.c"], *flags, *linked)


def run(program: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a command of the program and return its output; a report of a sanitizer fails the test."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return sanitizers.run([program, command], sanitizers.LEAKS_OF_PYTHON)


def test_the_exported_library_has_no_memory_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = framework(tmp_path, "sines:vendor", ADDRESS, monkeypatch)
    assert run(program, "registered", monkeypatch).strip().startswith("diopiSin 0 ")
    assert "memory 1 malloc: out of memory" in run(program, "failures", monkeypatch)
    assert run(program, "forked", monkeypatch).strip().startswith("1 the process was forked")


def test_the_exported_library_has_no_data_races(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = framework(tmp_path, "sines:vendor", THREAD, monkeypatch)
    assert run(program, "threads", monkeypatch).strip().startswith("diopiSin 0 ")
    assert run(program, "first", monkeypatch).strip()


def test_concurrent_failures_have_no_races(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "soon_gone.py"
    module.write_text("from sines import vendor\n")
    monkeypatch.syspath_prepend(tmp_path)
    program = framework(tmp_path, "soon_gone:vendor", THREAD, monkeypatch)
    module.unlink()
    assert "No module named 'soon_gone'" in run(program, "first", monkeypatch)
