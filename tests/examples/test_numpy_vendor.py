"""The example vendor is found as its `pyproject.toml` describes, and its operators and runtime functions pass."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sampling import sampled

from diopi_impl import Vendor, find_vendor
from diopi_impl.base import TEXT_QUERIES
from diopi_proto.interface import lookup, prototypes
from diopi_test.cases.selection import select_cases
from diopi_test.execution.runtime_cases import RUNTIME_CASES, RuntimeCase
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case
from lib_rt import Device

FOLDER = Path(__file__).parents[2] / "examples" / "numpy_vendor"

OPERATORS = (
    *("diopiSqrt", "diopiSqrtInp", "diopiExp", "diopiExpInp", "diopiReciprocal", "diopiReciprocalInp"),
    *("diopiMul", "diopiMulInp", "diopiMulScalar", "diopiMulInpScalar"),
    *("diopiTanhBackward", "diopiSoftmax", "diopiIsNan"),
)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """Return the content of the vendor's `pyproject.toml`."""
    return tomllib.loads((FOLDER / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def vendor() -> Iterator[Vendor]:
    """Yield the example vendor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield find_vendor("numpy_vendor:vendor")


@pytest.fixture(scope="module")
def device(vendor: Vendor) -> Iterator[Device]:
    """Yield an open device of the vendor."""
    with vendor.open_device() as opened:
        yield opened


def test_the_installed_example_is_found_by_name(
    vendor: Vendor, project: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, version = project["project"]["name"], project["project"]["version"]
    points = project["project"]["entry-points"]["diopi.vendors"]
    metadata = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"  # what an installer leaves behind
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
    (metadata / "entry_points.txt").write_text(
        "[diopi.vendors]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert find_vendor("numpy_vendor") is vendor
    assert (vendor.name, vendor.version) == ("numpy_vendor", version)


def test_the_example_has_registered_functions_and_derived_forms(vendor: Vendor) -> None:
    assert {name for name in prototypes() if vendor.has(name)} == {*OPERATORS, *TEXT_QUERIES}


@pytest.mark.parametrize("name", sampled(OPERATORS, 4))
def test_an_operator_passes_its_cases(vendor: Vendor, device: Device, name: str) -> None:
    cases = select_cases(name, "full")
    assert cases
    for case in cases:
        outcome = run_case(vendor, device, compute_baseline_case(lookup(name), case))
        assert outcome.verdict is Verdict.passed, f"{name}[{case.label}]: {outcome.message}"
    assert device.live_blocks == 0


@pytest.mark.parametrize("case", RUNTIME_CASES, ids=lambda case: case.name)
def test_the_runtime_passes_its_cases(vendor: Vendor, case: RuntimeCase) -> None:
    case.run(vendor)
