"""`diopi-test import-config`: its folder can be run, files are complete, and original options are explained."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from diopi_proto.prototype import Prototype
from diopi_test.baseline.errors import BaselineError
from diopi_test.cases.case import Case
from diopi_test.cli import main
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.original.entries import ConfigEntry
from diopi_test.original.translate import translate

CASES = "configs = {'a': dict(name=['neg'], tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3),))]))}\n"


def invoke(*words: object) -> Result:
    """Run `diopi-test` with these words and return its result."""
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a configuration of the original suite and return its path."""
    path = tmp_path / "configs.py"
    path.write_text(CASES, "utf-8")
    return path


def test_import_config_writes_cases_that_run_lists(config: Path, tmp_path: Path) -> None:
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "1 case of 1 function, 0 waivers, 0 not translated" in done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["described", "entries", "not_translated.txt"]
    assert "diopiNeg[float32-a-0]" in invoke("run", "--data", tmp_path / "out", "--list").output
    assert "float32 (2, 3)" in invoke("show", "diopiNeg[float32-a-0]", "--data", tmp_path / "out").output


def test_import_config_exits_1_when_something_is_not_translated(config: Path, tmp_path: Path) -> None:
    config.write_text(CASES + "\n".join(f"print({number})" for number in range(30)))
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 1
    assert f"not translated: {config}:2: a call" not in done.output
    assert "… and 10 more" in done.output
    assert len((tmp_path / "out" / "not_translated.txt").read_text().splitlines()) == 31


def test_import_config_escapes_unprintable_names(config: Path, tmp_path: Path) -> None:
    odd = r"[/red]\ud800\x7f\n"
    config.write_text(CASES.replace("'a'", f"'{odd}'").replace("'neg'", f"'neg', 'no{odd}'"))
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 1
    assert f"1: {odd}: no{odd}: no standard function has this name" in done.output
    assert "diopiNeg[float32-__red__ud800_x7f_n-0]" in invoke("run", "--data", tmp_path / "out", "--list").output


def test_import_config_rejects_a_folder_with_other_contents(config: Path, tmp_path: Path) -> None:
    done = invoke("import-config", config, "--output", tmp_path)
    assert done.exit_code == 2 and "has other contents than an import of these files" in done.output
    other_config = tmp_path / "other.py"
    other_config.write_text(CASES.replace("'a'", "'b'"))
    assert invoke("import-config", config, "--output", tmp_path / "out").exit_code == 0
    assert invoke("import-config", other_config, "--output", tmp_path / "out").exit_code == 2


def test_import_config_rejects_a_file_that_is_not_python(config: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("configs = {")
    done = invoke("import-config", config, tmp_path / "other.py", "--output", tmp_path / "out")
    assert done.exit_code == 2 and "it is not Python source" in done.output
    assert not (tmp_path / "out").exists()


def test_import_config_exits_3_when_the_folder_is_not_writable(config: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def fails(*arguments: object) -> None:
        raise BaselineError("the disk is full")

    monkeypatch.setattr("diopi_test.original.folder.write_atomically", fails)
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 3 and "the disk is full" in done.output


def write_entries(path: Path, *names: str) -> None:
    """Write a configuration with one entry per name."""
    entry = "dict(name=['neg'], tensor_para=dict(args=[dict(shape=((2, 3),))]))"
    path.write_text("configs = {" + ", ".join(f"{name!r}: {entry}" for name in names) + "}")


def test_an_interrupted_import_continues_with_the_next_entry(config: Path, tmp_path: Path, monkeypatch: Any) -> None:
    names = [f"e{number}" for number in range(20)]
    write_entries(config, *names)
    done: list[str] = []

    def counting(entry: ConfigEntry) -> Iterator[Any]:
        done.append(entry.name)
        if len(done) == 8:
            raise KeyboardInterrupt
        return translate(entry)

    monkeypatch.setattr("diopi_test.original.folder.translate", counting)
    stopped = invoke("import-config", config, "--output", tmp_path / "out")
    assert stopped.exit_code == 3 and "repeat the command to continue" in stopped.output
    assert len(list((tmp_path / "out" / "entries").glob("*.json"))) == 7
    assert not (tmp_path / "out" / "described").exists()
    resumed = invoke("import-config", config, "--output", tmp_path / "out")
    assert resumed.exit_code == 0 and "7 entries had been translated before" in resumed.output
    assert "20 cases of 1 function" in resumed.output and "10 of 20 entries: e10" in resumed.output
    assert done == [*names[:8], *names[7:]]


def test_import_config_updates_changed_entries_and_removes_deleted_ones(config: Path, tmp_path: Path) -> None:
    write_entries(config, "a", "b", "c")
    assert invoke("import-config", config, "--output", tmp_path / "out").exit_code == 0
    config.write_text(config.read_text().replace("(2, 3)", "(2, 4)", 1).replace("'c'", "'d'"))
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert "1 entry had been translated before" in done.output
    text = (tmp_path / "out" / "described" / "diopiNeg.json").read_text()
    assert "float32-a-0" in text and "[2,4]" in text and "float32-d-0" in text and "float32-c-0" not in text


def test_import_config_keeps_earlier_entries_that_the_pattern_excludes(config: Path, tmp_path: Path) -> None:
    write_entries(config, "conv_1", "conv_2", "pool")
    first = invoke("import-config", config, "--output", tmp_path / "out", "--entry", "conv*")
    assert "2 cases of 1 function" in first.output
    second = invoke("import-config", config, "--output", tmp_path / "out", "--entry", "pool")
    assert "3 cases of 1 function" in second.output and "2 entries had been" in second.output


def test_import_config_runs_no_reference(config: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def fails(*arguments: object) -> None:
        raise AssertionError("a reference runs")

    monkeypatch.setattr("diopi_test.oracle.evaluation.Evaluation._call_reference", fails)
    monkeypatch.setattr("diopi_test.oracle.evaluation.compute_result", fails)
    config.write_text(
        "configs = {'a': dict(name=['softmax'], para=dict(dim=[0]),"
        "tensor_para=dict(args=[dict(shape=((2, 3),), requires_grad=[True])]))}"
    )
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 0 and "2 cases of 2 functions" in done.output


def test_import_config_exits_3_after_an_internal_error(config: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def fails(*arguments: object) -> None:
        raise TypeError("something is broken")

    monkeypatch.setattr("diopi_test.original.translate._case", fails)
    done = invoke("import-config", config, "--output", tmp_path / "out")
    assert done.exit_code == 3 and "internal error: TypeError: something is broken" in done.output
    assert "1 internal error: please report them" in done.output


@pytest.mark.parametrize(("error", "status"), [(ValueError("too small"), 0), (AttributeError("broken"), 3)])
def test_a_run_skips_cases_that_the_reference_rejects_and_exits_3_after_internal_errors(
    config: Path, tmp_path: Path, monkeypatch: Any, error: Exception, status: int
) -> None:
    write_entries(config, "a", "b")
    assert invoke("import-config", config, "--output", tmp_path / "out").exit_code == 0

    def fails(prototype: Prototype, case: Case) -> BaselineCase:
        if case.label == "float32-b-0":
            raise error
        return compute_baseline_case(prototype, case)

    monkeypatch.setattr("diopi_test.baseline.on_demand.compute_baseline_case", fails)
    monkeypatch.setattr("diopi_test.run.described.process_map", lambda workers: in_turn)
    words = ("run", "--data", tmp_path / "out", "-n", 1, "--function", "diopiNeg", "--log", tmp_path / "log")
    done = invoke(*words)
    assert done.exit_code == status, done.output
    assert "1 passed" in done.output
    listed = (tmp_path / "out" / "refused" / "diopiNeg.txt").read_text()
    assert listed.startswith("diopiNeg[float32-b-0]: ") and str(error) in listed
    assert ("rejects 1 case of diopiNeg" in done.output) == (status == 0)
    assert ("internal error" in done.output) == (status == 3)


def in_turn(work: Callable[[str], Any], items: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Do the work in this process."""
    return ((item, work(item)) for item in items)


@pytest.mark.parametrize(
    ("words", "replacement"),
    [
        ("run --fname conv2d", "use --function diopiConvolution2d"),
        ("run --fname softmaxx", "diopiSoftmax"),
        ("run --fname all_ops", "a run covers all functions"),
        ("run --filter_dtype float64", "--dtype no-float64"),
        ("run --model_name resnet50", "--level models --model resnet50"),
        ("run --html_report", "diopi-test report LOG --html FILE"),
        ("--mode gen_data --fname relu", "diopi-test gen-data"),
        ("--mode gen_case", "omit this step"),
        ("--mode run_test", "`diopi-test run`"),
        ("--mode anything", "gen_data"),
        ("--mode utest", "`diopi-test run -k runtime`"),
        ("--mode utest_diopi_test", "run `pytest` in the source tree"),
        ("--get_model_list", "docs/models.md"),
        ("run --filter_dtype float64 int64", "--dtype no-float64"),
        ("run --model_name FASTER_RCNN_R50", "--level models --model retinanet or --level models --model resnet50"),
        ("run --impl_folder ../impl/my_device", "`diopi-test import-config` translates device_configs.py"),
        ("run --nhwc_min_dim 4", "`diopi-test run --nhwc`"),
        ("run --case_output_dir gencases", "there are no files of cases"),
        ("run --test_cases_path gencases", "--function, --family, -k or --case"),
        ("run --file_or_dir gencases", "--function, --family, -k or --case"),
        ("run --pytest_args=-x", "`pytest baseline_data/smoke --vendor NAME`"),
        ("run --failure_debug_level 1", "`diopi-test show CASE`"),
        ("run --test_result_path report.xlsx", "`diopi-test report LOG --json FILE`"),
        ("run --use_db", "every run writes a log"),
        ("run --use_db --db_path sqlite:///records.db", "every run writes a log"),
        ("gen-data --nhwc", "`diopi-test run`"),
        ("gen-data --four_bytes", "--int32-indices"),
    ],
)
def test_an_original_option_is_a_usage_error_that_names_its_replacement(words: str, replacement: str) -> None:
    done = invoke(*words.split())
    assert done.exit_code == 2
    assert "is an option of the original suite; instead, " in done.output and replacement in done.output


@pytest.mark.parametrize("alias", ["--four-bytes", "--four_bytes"])
def test_deprecated_names_of_int32_indices_still_work(alias: str) -> None:
    words = ("run", "--list", "-k", "diopiSort and int32")
    done = invoke(*words, alias)
    assert (done.exit_code, done.stdout) == (0, invoke(*words, "--int32-indices").stdout)
    assert done.stderr == f"{alias} is deprecated; use --int32-indices instead\n"
    assert alias not in invoke("run", "--help").output
