"""The seeded vendor has defects only in operators of the standard, and the cases detect those that a test chooses."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from sampling import sampled
from scripts import load_script

from diopi_proto.interface import prototypes

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "seeded_defects.py"


seeded_defects: Any = load_script(SCRIPT)

DEFECTS = seeded_defects.read_defects()


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the seeded vendor, which takes a minute to compile."""
    pytest.importorskip("torch", reason="the operators of the seeded vendor call PyTorch: pip install 'diopi[torch]'")
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler here")
    return seeded_defects.SeededVendor(seeded_defects.build_vendor(tmp_path_factory.mktemp("seeded")))


def test_seeded_defects_belong_to_operators_of_the_standard() -> None:
    assert DEFECTS.keys() <= prototypes().keys()
    assert len({defect for defects in DEFECTS.values() for defect in defects}) > 100


@pytest.mark.slow
@pytest.mark.parametrize("function", sampled(sorted(DEFECTS), 1))
def test_cases_detect_the_defects_of_an_operator(function: str, vendor: Any) -> None:
    assert [str(found) for found in vendor.detect(function, DEFECTS[function]) if not found.level] == []
