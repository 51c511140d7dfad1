"""The seeded vendor has defects only in operators of the standard, and the cases detect those that a test chooses."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sampling import sampled

from diopi_proto.interface import prototypes

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "seeded_defects.py"


def load_script() -> ModuleType:
    """Return the benchmark as a module."""
    if "seeded_defects" not in sys.modules:
        spec = importlib.util.spec_from_file_location("seeded_defects", SCRIPT)
        assert spec is not None and spec.loader is not None
        module = sys.modules["seeded_defects"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["seeded_defects"]


DEFECTS = load_script().read_defects()


def test_seeded_defects_belong_to_operators_of_the_standard() -> None:
    assert DEFECTS.keys() <= prototypes().keys()
    assert len({defect for defects in DEFECTS.values() for defect in defects}) > 100


@pytest.mark.slow
@pytest.mark.parametrize("function", sampled(sorted(DEFECTS), 1))
def test_cases_detect_the_defects_of_an_operator(function: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler here")
    script = load_script()
    vendor = script.SeededVendor(script.build_vendor(tmp_path))
    assert [str(found) for found in vendor.detect(function, DEFECTS[function]) if not found.level] == []
