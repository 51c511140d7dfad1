"""`diopi-engine show` describes an engine completely, and rejects other files."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_engine import Engine, link
from diopi_engine.cli import main


def test_show_describes_an_engine_file(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "layer.engine"
    link([engine, engine], cores=4)[1].save(file)
    done = CliRunner().invoke(main, ["show", str(file), "--network"])
    assert done.exit_code == 0, done.output
    for text in (
        "batches of up to 16 in parts of 4",
        "0 input x: float32 [batch, 4] LINEAR",
        "engine 1 of group ",
        "0 a: float32 [4, 3]",
        "weights/1.npy: ",
        "module @",
    ):
        assert text in done.output


def test_show_rejects_files_that_are_not_engines(tmp_path: Path) -> None:
    file = tmp_path / "none.engine"
    file.write_bytes(b"nothing")
    done = CliRunner().invoke(main, ["show", str(file)])
    assert done.exit_code == 1
    assert "7 bytes are not an engine" in done.output


def test_export_builds_the_libraries(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["export", "--output", str(tmp_path / "build")])
    assert done.exit_code == 0, done.output
    libraries = ["libhgrt.so", "libnvdla_runtime.so"]
    assert done.output.splitlines() == [str(tmp_path / "build" / name) for name in libraries]
    assert sorted(path.name for path in (tmp_path / "build").iterdir()) == libraries


@pytest.mark.parametrize(
    ("interface", "library"), [("hgrt", "libhgrt.so"), ("nvdla-released", "libnvdla_runtime.so")], ids=str
)
def test_export_builds_one_library(interface: str, library: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["export", "--output", str(tmp_path), "--interface", interface])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == [library]


def test_export_reports_why_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    done = CliRunner().invoke(main, ["export", "--output", str(tmp_path)])
    assert done.exit_code == 1
    assert "false" in done.output
    assert list(tmp_path.iterdir()) == []
