"""pytest with the entry point of the installed package: `--vendor` is known only if there is a baseline."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from baselines import make_level
from case_records import case_record, report_of

HELPERS = Path(__file__).parents[2] / "helpers"
STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of one function."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiNeg")
    folder.joinpath("pytest.ini").touch()
    return folder


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin in a separate process and return the finished process."""
    path = os.pathsep.join(map(str, (HELPERS, *filter(None, sys.path))))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=300)


def test_the_entry_point_adds_options_and_last_failed_repeats_failures(data: Path) -> None:
    failed = run_pytest(data, "smoke", "--vendor", "faulty:failing", "-k", "float32-matrix and not again")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    repeated = run_pytest(data, "smoke", "--vendor", STUB_VENDOR, "--lf")
    assert repeated.returncode == 0, repeated.stdout + repeated.stderr
    assert "1 passed" in repeated.stdout


@pytest.mark.slow
def test_the_plugin_can_be_registered_by_a_conftest_too(data: Path) -> None:
    conftest = data / "conftest.py"
    conftest.write_text('pytest_plugins = ["diopi_test.run.plugin"]\n')
    done = run_pytest(data, "smoke/diopiNeg.h5", "--vendor", STUB_VENDOR, "-k", "float32-matrix")
    conftest.unlink()
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_that_only_skips_does_not_succeed(data: Path) -> None:
    done = run_pytest(data, "smoke", "--vendor", "small_vendor:vendor", "-k", "float32-matrix")
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
    assert "none of " in done.stdout and "cases was executed" in done.stdout


def test_waivers_of_files_and_causes_apply(data: Path, tmp_path: Path) -> None:
    record = case_record("diopiNeg[float32-matrix]", "failed", "ErrorOccurred: corrupted")
    cause = report_of([record]).cases[0].cause
    path = tmp_path / "waivers.toml"
    path.write_text(f'[[waiver]]\npattern = "diopiNeg[*]"\ncause = "{cause}"\nreason = "no engine"\n')
    words = ("smoke", "--vendor", "faulty:failing", "-k", "float32-matrix and not again", "-rs")
    waived = run_pytest(data, *words, "--waivers", str(path))
    assert waived.returncode == 0, waived.stdout + waived.stderr
    assert "waived: no engine (failed: ErrorOccurred: corrupted)" in waived.stdout
    path.write_text(path.read_text().replace(cause, "01234567"))
    assert run_pytest(data, *words, "--waivers", str(path)).returncode == 1
    path.write_text("[[waiver]]\n")
    broken = run_pytest(data, *words, "--waivers", str(path))
    assert broken.returncode == pytest.ExitCode.USAGE_ERROR
    assert "pattern is missing" in broken.stderr


def test_numerics_must_be_declared(data: Path) -> None:
    words = ("smoke", "--vendor", "faulty:failing", "-k", "nothing")
    unknown = run_pytest(data, *words, "--numerics", "tf33")
    assert unknown.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--numerics: numerics 'tf33' is not one of" in unknown.stderr
    (data / "chip.toml").write_text('float64 = "none"')
    assert "chip.toml: float64: expected one of" in run_pytest(data, *words, "--numerics", "chip.toml").stderr
    (data / "chip.toml").write_text('float64 = "absent"')
    assert run_pytest(data, *words, "--numerics", "chip.toml").returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    (data / "chip.toml").unlink()


@pytest.mark.slow
def test_fail_on_decides_which_severity_counts(data: Path) -> None:
    words = ("smoke", "--vendor", "faulty:failing", "-k", "float32-matrix and not again", "-rx")
    expected = run_pytest(data, *words, "--fail-on", "critical")
    assert expected.returncode == 0, expected.stdout + expected.stderr
    assert "which counts with --fail-on major" in expected.stdout
    assert run_pytest(data, *words, "--fail-on", "minor").returncode == 1


def test_other_projects_keep_their_options_and_import_nothing(tmp_path: Path) -> None:
    tmp_path.joinpath("conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--vendor')\n    parser.addoption('--shuffle')\n"
    )
    tmp_path.joinpath("test_it.py").write_text(
        "import sys\n\n"
        "def test_it(request):\n"
        "    assert request.config.getoption('vendor') == 'acme'\n"
        "    assert 'diopi_test.run.pytest_entry' in sys.modules\n"
        "    assert not {'diopi_test.run.plugin', 'diopi_impl', 'numpy'} & set(sys.modules)\n"
    )
    done = run_pytest(tmp_path, "--vendor", "acme")
    assert done.returncode == 0, done.stdout + done.stderr
