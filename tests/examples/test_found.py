"""The script that reproduces defects of other software, and the page that lists them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "found.md").read_text("utf-8")


@pytest.fixture(scope="module")
def found() -> Iterator[ModuleType]:
    """Yield the module `examples/found.py`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "examples")
        patch.setenv("JAX_PLATFORMS", "cpu")  # the script sets both variables, which must not outlive it
        patch.setenv("TRITON_INTERPRET", "1")
        import found

        yield found


@pytest.mark.slow
def test_every_defect_reproduces_in_the_versions_of_the_page(found: ModuleType) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "found.py")], capture_output=True, text=True, timeout=600, check=False
    )
    assert len(done.stdout.splitlines()) == len(found.DEFECTS), done.stdout + done.stderr
    versions = {defect.library.title: defect.library.version.partition("+")[0] for defect in found.DEFECTS}
    if not all(f"## {title}\n\nVersion {version}" in PAGE for title, version in versions.items() if version):
        pytest.skip(f"the page is about other versions than {versions}")
    cpuinfo = Path("/proc/cpuinfo")
    if not (cpuinfo.exists() and "avx512f" in cpuinfo.read_text("utf-8")):
        pytest.skip("the page has the results of a processor with AVX-512, whose vectorized kernels others may not use")
    assert done.returncode == 0, done.stdout


def test_the_page_lists_the_defects_of_the_script(found: ModuleType) -> None:
    rows = {tuple(row.strip("| ").split(" | ")) for row in re.findall(r"^\| .* \|$", PAGE, re.MULTILINE)}
    listed = {(call, expected, definition, status) for call, _, expected, definition, status in rows} - {
        ("call", "expected", "definition", "status"),
        ("---",) * 4,
    }
    assert listed == {
        (defect.call, found.format_result(defect.expected), defect.definition, defect.status)
        for defect in found.DEFECTS
    }


@pytest.mark.parametrize(
    ("actual", "expected", "is_correct"),
    [
        (np.float32([1, np.nan]), np.float32([1, np.nan]), True),
        (np.float32([1.0000001]), np.float32([1]), True),
        (np.float32([1.00001]), np.float32([1]), False),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.float32([np.nan]), np.float32([np.inf]), False),
        (np.int64([2**53]), np.int64([2**53 + 1]), False),
    ],
)
def test_results_are_correct_up_to_a_few_units_in_the_last_place(
    found: ModuleType, actual: object, expected: object, is_correct: bool
) -> None:
    from defects import registry

    assert registry.is_correct(actual, expected) is is_correct
