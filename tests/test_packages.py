"""The packages: documented dependencies, visible type annotations, and vendors that do not need JAX."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = CONFIGURATION["project"]
WHEEL = CONFIGURATION["tool"]["scikit-build"]["wheel"]["packages"]
PAGE = (ROOT / "docs" / "packages.md").read_text("utf-8")

WITHOUT_JAX = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "flatbuffers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
"""A `sitecustomize` module, which Python imports in every process: JAX is then as good as not installed."""


def names(requirements: list[str]) -> list[str]:
    """Return the names of the required packages."""
    return [re.split(r"[<>=\[ ;]", requirement)[0] for requirement in requirements]


def test_the_page_of_packages_names_every_dependency() -> None:
    assert [name for name in names(PROJECT["dependencies"]) if f"| {name} |" not in PAGE] == []
    for extra, requirements in PROJECT["optional-dependencies"].items():
        (row,) = re.findall(rf"^\| `{extra}` \|.*$", PAGE, re.MULTILINE)
        assert [name for name in names(requirements) if name != "diopi" and name not in row] == [], extra


@pytest.mark.parametrize("package", [package for package in WHEEL if package != "baseline_data"])
def test_type_checkers_of_users_find_the_annotations_of_every_package(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_a_vendor_that_does_not_use_jax_is_tested_without_jax(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_JAX)
    paths = [str(tmp_path), str(ROOT / "examples" / "numpy_vendor"), *sys.path]
    words = ["-m", "diopi_test", "run", "--vendor", "numpy_vendor:vendor", "--function", "diopiSqrt", "-n", "1"]
    done = subprocess.run(
        [sys.executable, *words],
        env={"PYTHONPATH": ":".join(paths), "XDG_STATE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 function implemented, 1 conform" in " ".join(done.stdout.split())
    checked = subprocess.run(
        [sys.executable, "-c", "import jax"],
        env={"PYTHONPATH": ":".join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'jax'" in checked.stderr
