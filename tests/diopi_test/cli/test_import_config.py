"""`diopi-test import-config`: the folder it writes is run; nothing half written; and the original suite's options."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from diopi_test.cli import main

CASES = "configs = {'a': dict(name=['neg'], tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3),))]))}\n"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "configs.py"
    path.write_text(CASES, "utf-8")
    return path


def test_what_is_imported_is_listed_and_shown(config: Path, tmp_path: Path) -> None:
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "1 cases of 1 functions, 0 waivers, 0 not translated" in done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["not_translated.txt", "smoke"]
    assert "diopiNeg[float32-a-0]" in invoke("run", "--data", tmp_path / "out", "--list").output
    assert "float32 (2, 3)" in invoke("show", "diopiNeg[float32-a-0]", "--data", tmp_path / "out").output


def test_what_is_not_translated_is_told_and_gives_status_1(config: Path, tmp_path: Path) -> None:
    config.write_text(CASES + "\n".join(f"print({number})" for number in range(30)))
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 1
    assert f"not translated: {config}:2: a call" not in done.output
    assert "… and 10 more" in done.output
    assert len((tmp_path / "out" / "not_translated.txt").read_text().splitlines()) == 31


def test_names_that_no_file_and_no_terminal_takes(config: Path, tmp_path: Path) -> None:
    odd = r"[/red]\ud800\x7f\n"
    config.write_text(CASES.replace("'a'", f"'{odd}'").replace("'neg'", f"'neg', 'no{odd}'"))
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 1
    assert f"1: {odd}: no{odd}: no standard function has this name" in done.output
    assert "diopiNeg[float32-__red__ud800_x7f_n-0]" in invoke("run", "--data", tmp_path / "out", "--list").output


def test_a_folder_with_something_in_it_is_refused(config: Path, tmp_path: Path) -> None:
    done = invoke("import-config", config, "--output", tmp_path)
    assert done.exit_code == 2 and "is not empty; name another folder with --output" in done.output


def test_a_file_that_is_no_source_is_refused_and_nothing_written(config: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("configs = {")
    done = invoke("import-config", config, tmp_path / "other.py", "--output", tmp_path / "out")
    assert done.exit_code == 2 and "it is not Python source" in done.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_leaves_nothing(config: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def fails(*given: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("diopi_test.original.folder.write_calls", fails)
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 3 and "the disk is full" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["configs.py"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("run --fname conv2d", "say --function diopiConvolution2d"),
        ("run --fname softmaxx", "diopiSoftmax"),
        ("run --fname all_ops", "all functions are run"),
        ("run --filter_dtype float64", "--dtype no-float64"),
        ("run --model_name resnet50", "--level models --model resnet50"),
        ("run --html_report", "diopi-test report LOG --html FILE"),
        ("--mode gen_data --fname relu", "diopi-test gen-data"),
        ("--mode gen_case", "there is no such step"),
        ("--mode run_test", "`diopi-test run`"),
        ("--mode anything", "gen_data"),
        ("gen-data --nhwc", "`diopi-test run`"),
        ("gen-data --four_bytes", "--four-bytes"),
    ],
)
def test_words_of_the_original_suite_are_answered(words: str, answer: str) -> None:
    done = invoke(*words.split())
    assert done.exit_code == 2
    assert "is an option of the original suite; here " in done.output and answer in done.output


def test_four_bytes_is_understood_as_it_was_written() -> None:
    words = ("run", "--list", "-k", "diopiCopyInp")
    assert invoke(*words, "--four_bytes").output == invoke(*words, "--four-bytes").output != invoke(*words).output + "x"
