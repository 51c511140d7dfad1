"""The default folders in which baselines are generated and found."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_test.baseline import location, manifest
from diopi_test.cli import main


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty user's cache."""
    monkeypatch.setattr(location.platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    return tmp_path / "cache" / "baseline"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the baseline in an installed package."""
    folder = tmp_path / "site-packages" / "baseline_data"
    (folder / "smoke").mkdir(parents=True)
    monkeypatch.setattr(location, "package_folder", lambda: folder)
    return folder


def test_the_cache_is_of_this_user_and_version() -> None:
    folder = location.cache_folder()
    assert folder.is_absolute()
    assert "diopi" in folder.parts
    assert folder.parts[-1] == "baseline"
    assert location.version("diopi") in folder.parts


def test_shipped_levels_are_generated_in_the_source_tree(cache: Path, installed: Path) -> None:
    assert not location.is_source_tree()
    (installed.parent / "pyproject.toml").touch()
    assert location.is_source_tree()
    assert location.folder_to_write("smoke") == location.folder_to_read("smoke") == installed / "smoke"
    assert location.folder_to_write("full") == location.folder_to_read("full") == cache / "full"


def test_no_level_is_generated_in_an_installed_package(cache: Path, installed: Path) -> None:
    assert location.folder_to_write("smoke") == location.folder_to_read("smoke") == cache / "smoke"
    (installed / "smoke" / "diopiSin.h5").touch()
    assert location.folder_to_write("smoke") == cache / "smoke"
    assert location.folder_to_read("smoke") == installed / "smoke"
    assert location.folder_to_write("full") == location.folder_to_read("full") == cache / "full"


def test_a_level_generated_in_the_cache_is_found(cache: Path, installed: Path) -> None:
    done = CliRunner().invoke(main, ["gen-data", "--level", "full", "-k", "diopiFloorInp", "-n", "1"])
    assert done.exit_code == 0, done.output
    assert {path.name for path in (cache / "full").iterdir()} == {"diopiFloorInp.h5", manifest.MANIFEST_NAME}
    assert list((installed / "smoke").iterdir()) == []
    assert location.folder_to_read("full") == cache / "full"


def test_a_missing_baseline_is_reported_with_the_command_to_run(cache: Path) -> None:
    done = CliRunner().invoke(main, ["run", "--level", "full", "--vendor", "diopi_test.quality.stub_vendor:vendor"])
    assert done.exit_code == 3
    assert f"there is no baseline in {cache / 'full'}" in done.output
    assert "diopi-test gen-data --level full, or name its folder with --data" in done.output
