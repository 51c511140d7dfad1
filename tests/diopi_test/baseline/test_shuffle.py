"""Shuffled cases: a seed determines their order, verdicts stay the same, and effects of the order are found."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from baselines import make_level
from commands import run_here
from reports import read_report

from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.shuffle import parse_seed, sample_functions, shuffle_by_seed
from diopi_test.run.session import FileCache

STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"

HELPERS = Path(__file__).parents[2] / "helpers"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of two functions."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiSqrt", "diopiNeg")
    return folder


def run_pytest(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run pytest in a separate process and return the finished process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "pytest", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def run(data: Path, vendor: str, tmp_path: Path, *more: object) -> tuple[int, dict[str, Any], str]:
    """Run the suite and return its exit status, JSON report and output."""
    report = tmp_path / "report.json"
    done = run_here("run", "--data", data, "--vendor", vendor, "--json", report, *more)
    assert report.exists(), done.stdout + done.stderr
    return done.returncode, read_report(report), done.stdout


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    """Return the verdicts of a report by case ID."""
    return {case["id"]: case["verdict"] for case in report["cases"]}


def test_the_order_depends_only_on_the_seed_and_the_names() -> None:
    names = [f"case-{i}" for i in range(100)]
    order = shuffle_by_seed(names, 7)
    assert order == shuffle_by_seed(reversed(names), 7) != shuffle_by_seed(names, 8)
    assert sorted(order) == sorted(names) != order
    assert order[:3] == ["case-67", "case-66", "case-65"]
    assert shuffle_by_seed(names, None) == names


def test_a_seed_is_an_integer_or_random() -> None:
    assert parse_seed("-3") == -3
    assert len({parse_seed("random") for _ in range(5)}) > 1
    with pytest.raises(ValueError, match="seed is 'x'"):
        parse_seed("x")


def test_forms_of_a_function_are_sampled_together() -> None:
    functions = ["diopiAdd", "diopiAddInp", "diopiAddScalar", "diopiNeg", "diopiNegInp", "diopiSqrt"]
    for seed in range(5):
        (forms,) = {name[:8] for name in sample_functions(functions, 1, seed)}
        assert sample_functions(functions, 1, seed) == {name for name in functions if name.startswith(forms)}
    assert len({frozenset(sample_functions(functions, 1, seed)) for seed in range(20)}) == 3
    assert sample_functions(functions, 9, 0) == set(functions)


def test_a_shuffled_run_has_the_same_verdicts(data: Path, tmp_path: Path) -> None:
    _, ordered, _ = run(data, STUB_VENDOR, tmp_path)
    status, mixed, output = run(data, STUB_VENDOR, tmp_path, "--shuffle", 7)
    assert (status, verdicts(mixed)) == (0, verdicts(ordered))
    assert (mixed["shuffle"]["seed"], mixed["shuffle"]["sample"]) == (7, None)
    assert mixed["shuffle"]["command"].endswith("--shuffle 7 -n 1")
    assert "shuffled with seed 7" in output
    assert all("--shuffle 7 --case" in case["command"] for case in mixed["cases"])


@pytest.mark.parametrize("more", [["--shuffle"], ["--shuffle", "random"]])
def test_run_reports_a_random_seed(data: Path, tmp_path: Path, more: list[str]) -> None:
    status, report, output = run(data, STUB_VENDOR, tmp_path, "--sample", 1, "-n", 2, *more)
    assert status == 0
    seed = report["shuffle"]["seed"]
    assert f"shuffled with seed {seed}" in output
    assert f"--shuffle {seed} --sample 1 -n 1" in report["shuffle"]["command"]
    assert len({case["function"] for case in report["cases"]} - {"runtime"}) == 1


def test_shuffling_detects_results_that_depend_on_earlier_calls(data: Path, tmp_path: Path) -> None:
    chosen = ["-n", 1, "-k", "not negative and (diopiSqrt[ or diopiNeg[)"]
    status, report, _ = run(data, "faulty:keeping", tmp_path, *chosen)
    assert (status, set(verdicts(report).values())) == (0, {"passed"})
    for seed in (1, 2, 3):
        status, report, _ = run(data, "faulty:keeping", tmp_path, *chosen, "--shuffle", seed)
        if status == 1:
            break
    assert status == 1
    second_run, repeated, _ = run(data, "faulty:keeping", tmp_path, *chosen, "--shuffle", seed)
    assert (second_run, verdicts(repeated)) == (1, verdicts(report))


@pytest.mark.slow
def test_the_plugin_shuffles_the_cases(data: Path) -> None:
    plugins = ["-p", "no:cacheprovider", "-c", os.devnull, "-p", "diopi_test.run.plugin"]
    vendor = ["--vendor", STUB_VENDOR, "-v"]
    done = run_pytest(data / "smoke", *plugins, *vendor, "-n", "2", "--shuffle")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"diopi: cases shuffled with --shuffle \d+", done.stdout)
    functions = re.findall(r"::(diopi\w+)\[.*PASSED|PASSED .*::(diopi\w+)\[", done.stdout)
    assert len({name for pair in functions for name in pair if name}) == 2
    assert functions != sorted(functions)


def test_the_plugin_rejects_an_invalid_seed(data: Path) -> None:
    done = run_pytest(data / "smoke", "-p", "diopi_test.run.plugin", "-c", os.devnull, "--shuffle", "soon")
    assert done.returncode == 4
    assert "--shuffle: seed is 'soon', expected an integer or 'random'" in done.stderr


def test_files_are_cached_as_long_as_they_fit(data: Path) -> None:
    sqrt, neg = (data / "smoke" / f"{name}.h5" for name in ("diopiSqrt", "diopiNeg"))
    roomy, tight = FileCache(2**30), FileCache(1)
    for files in (roomy, tight):
        first = files.get(sqrt)
        assert files.get(sqrt) is first
        files.get(neg)
        assert (files.get(sqrt) is first) == (files is roomy)
    assert 10_000 < roomy.get(sqrt).memory < 1_000_000


def test_a_cached_file_with_another_digest_than_expected_is_rejected(data: Path) -> None:
    path = data / "smoke" / "diopiSqrt.h5"
    files = FileCache()
    cached = files.get(path)
    assert files.get(path, cached.digest) is cached
    with pytest.raises(BaselineError):
        files.get(path, "0" * 64)
