"""The folder of stored programs: its location, and the vendors that may use it."""

from pathlib import Path

import platformdirs
import pytest

from diopi_impl import find_vendor
from diopi_impl.program_folder import program_folder, store_programs
from diopi_test.quality.stub_vendor import vendor as stub


def test_environment_moves_the_folder_and_turns_it_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIOPI_PROGRAMS", raising=False)
    folder = program_folder()
    assert folder is not None
    assert folder.is_relative_to(platformdirs.user_cache_path("diopi", appauthor=False))
    monkeypatch.setenv("DIOPI_PROGRAMS", str(tmp_path))
    assert program_folder() == tmp_path
    monkeypatch.setenv("DIOPI_PROGRAMS", "off")
    assert program_folder() is None


def test_only_registered_vendors_store_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[tuple[Path, float]] = []
    monkeypatch.setattr(stub, "store_programs", lambda *arguments: calls.append(arguments))
    monkeypatch.setenv("DIOPI_PROGRAMS", str(tmp_path))
    store_programs(stub, "diopi_test.quality.stub_vendor:vendor", 1.0)
    assert not calls
    store_programs(stub, "jax_cpu", 1.0)
    assert calls == [(tmp_path / "jax_cpu", 1.0)]
    monkeypatch.setenv("DIOPI_PROGRAMS", "off")
    store_programs(stub, "jax_cpu", 1.0)
    assert len(calls) == 1


def test_vendor_without_programs_stores_nothing(tmp_path: Path) -> None:
    stub.store_programs(tmp_path, 0.0)
    assert not list(tmp_path.iterdir())
    assert find_vendor("jax_cpu").name == "jax_cpu"
