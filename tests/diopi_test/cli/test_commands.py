"""The commands, run in this process: what they print and write, and their exit status."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopi_proto.interface import lookup, prototypes
from diopi_test.cli import main
from diopi_test.cli.console import console


def invoke(*words: object) -> Result:
    """Run `diopi-test` with these words and return its result."""
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize("command", ["run", "report", "fuzz"])
def test_a_command_exits_3_when_its_import_is_interrupted(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("diopi_test.cli.import_module", interrupt)
    done = invoke(command)
    assert (done.exit_code, done.output) == (3, "Error: interrupted\n")


def test_a_command_exits_3_when_the_working_directory_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    done = invoke("run", "--function", "diopiNeg")
    assert done.exit_code == 3
    assert done.output.startswith("Error: the working directory can't be used")


def test_list_shows_functions_and_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 200)
    done = invoke("list", "--family", "activation")
    assert done.exit_code == 0
    assert "diopiSoftmax" in done.output and "jax_cpu" in done.output


def test_list_does_not_shorten_names_in_a_pipe() -> None:
    family = ("--family", "mmcv_norm")
    names = {row["function"] for row in json.loads(invoke("list", "--json", *family).output)}
    lines = invoke("list", *family).output.splitlines()
    assert names <= {line.split("│")[1].strip() for line in lines if line.startswith("│")}
    assert not [line for line in lines if "…" in line]


def test_list_wraps_names_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 60)
    monkeypatch.setattr(console, "_force_terminal", True)
    assert "…" not in invoke("list", "--family", "norm").output


def test_list_prints_a_json_record_per_function() -> None:
    rows = {row["function"]: row for row in json.loads(invoke("list", "--json", "--family", "activation").output)}
    assert len(rows) == sum(lookup(name).family == "activation" for name in prototypes())
    assert rows["diopiSoftmax"]["reference"]
    assert rows["diopiSoftmax"]["vendors"]["jax_cpu"]
    assert rows["diopiSoftmax"]["cases"]["full"] >= rows["diopiSoftmax"]["cases"]["smoke"] > 0


def test_list_shows_only_selected_functions() -> None:
    rows = json.loads(invoke("list", "--json", "--family", "conv", "--dtype", "complex64").output)
    assert [row["function"] for row in rows] == ["diopiIm2Col", "diopiCol2Im"]
    done = invoke("list", "--function", "diopiSoftmx")
    assert done.exit_code == 2
    assert "Did you mean 'diopiSoftmax'" in done.output


@pytest.mark.slow
def test_gen_data_generates_only_selected_functions(tmp_path: Path) -> None:
    names = ("diopiCopyInp", "diopiZeros", "diopiOnes")
    words = ("gen-data", "--data", tmp_path, *(word for name in names for word in ("--function", name)), "-n", 1)
    generated = []
    for shard in ("1/2", "2/2"):
        done = invoke(*words, "--shard", shard)
        assert done.exit_code == 0, done.output
        generated.append({path.stem for path in (tmp_path / "smoke").glob("*.h5")})
    assert set() < generated[0] < generated[1] <= set(names)


def test_gen_data_does_not_regenerate_current_files(tmp_path: Path) -> None:
    words = ("gen-data", "--data", tmp_path, "-k", "diopiCopyInp", "-n", 1)
    first, second = invoke(*words), invoke(*words)
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert "generated 0 cases" not in first.output
    assert "generated 0 cases; 1 function is up to date in " in second.output
    assert second.output.endswith(" non-discriminating cases\n")
    assert (tmp_path / "smoke" / "diopiCopyInp.h5").exists()


def test_gen_data_names_a_folder_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "smoke").touch()
    done = invoke("gen-data", "--data", tmp_path, "-k", "diopiCopyInp", "-n", 1)
    assert done.exit_code == 1
    assert "smoke" in done.output


def test_mutation_test_writes_its_results(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("json", "markdown", "choose")}
    files["choose"].write_text('{"diopiSoftmax": ["float32-rows"]}')
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    done = invoke("mutation-test", "-k", "diopiCopyInp", "-n", 1, *options)
    assert done.exit_code == 0, done.output
    assert [record["function"] for record in json.loads(files["json"].read_text())["functions"]] == ["diopiCopyInp"]
    assert files["markdown"].read_text().startswith("# Mutation testing")
    selection = json.loads(files["choose"].read_text())
    assert selection["diopiSoftmax"] == ["float32-rows"], "the selection of other functions in the file stays"
    assert selection["diopiCopyInp"]


def test_former_name_of_mutation_test_is_deprecated() -> None:
    done = invoke("audit", "--help")
    assert done.exit_code == 0
    assert "audit" in done.stderr and "mutation-test" in done.stderr
    assert "audit" not in invoke("--help").output


@pytest.mark.slow
def test_mutation_test_selects_a_sample_of_functions(tmp_path: Path) -> None:
    file = tmp_path / "mutants.json"
    words = ("--function", "diopiCopyInp", "--shuffle", 1, "--sample", 1, "--shard", "1/1")
    done = invoke("mutation-test", *words, "-n", 1, "--json", file)
    assert done.exit_code == 0, done.output
    assert [record["function"] for record in json.loads(file.read_text())["functions"]] == ["diopiCopyInp"]
    assert "--sample goes with --shuffle" in invoke("mutation-test", "--sample", 1).output


@pytest.mark.parametrize("vendor", ["missing", "missing:vendor"])
def test_export_exits_2_for_an_unknown_vendor(vendor: str, tmp_path: Path) -> None:
    done = invoke("export", "--vendor", vendor, "--output", tmp_path)
    assert done.exit_code == 2
    assert "missing" in done.output
