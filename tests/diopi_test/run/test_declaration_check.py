"""A run compares the declared arithmetic with measurements of the vendor, in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from baselines import make_level
from commands import run_here
from reports import read_report

from diopi_impl import IEEE, Numerics
from diopi_test.fingerprint.numerics.measurement import MEASUREMENTS
from diopi_test.run.declaration_check import select_fields
from diopi_test.run.options import RunOptions


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of one function."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiSqrt")
    return folder


def run(data: Path, tmp_path: Path, vendor: str, *options: object) -> tuple[int, str, dict[str, Any]]:
    """Run a case; return the exit status, the text and the report."""
    file = tmp_path / "report.json"
    words = ("--data", data, "--vendor", f"measured_vendors:{vendor}", "--json", file, "-n", 1)
    done = run_here("run", *words, "--case", "diopiSqrt[float32-matrix]", *options)
    return done.returncode, done.stdout, read_report(file)


def test_every_field_that_can_be_measured_is_measured() -> None:
    assert select_fields(Numerics(name="strict", subnormals="keep")) == list(MEASUREMENTS)
    assert select_fields(IEEE) == [name for name in MEASUREMENTS if name != "subnormals"]


def test_a_declaration_that_is_wider_than_needed_is_reported(data: Path, tmp_path: Path) -> None:
    status, text, report = run(data, tmp_path, "exact", "--numerics", "tf32")
    message = "products in TF32 are declared, but matrix products: factors of float32 are not rounded"
    assert (status, report["declaration_check"]["contradictions"]) == (
        0,
        [{"field": "float32_products", "is_undeclared": False, "message": message}],
    )
    assert "1 conforms to DIOPI 1.0.0 with numerics tf32, which measurements contradict\n" in text
    assert f"declared, but not used: {message}\n" in text


def test_a_declaration_that_is_narrower_than_measured_is_reported(data: Path, tmp_path: Path) -> None:
    status, text, report = run(data, tmp_path, "narrow", "--numerics", "tf32")
    (found,) = report["declaration_check"]["contradictions"]
    assert (status, found["is_undeclared"]) == (0, True)
    assert "used, but not declared: matrix products: factors of float32 keep 8 significant bits, truncated" in text


@pytest.mark.parametrize(
    ("vendor", "reason", "crashing"),
    [
        ("crashing", "the vendor left its process with exit code 3", {"half_accumulation", "subnormals", "sum_order"}),
        ("raising", "the vendor lacks the functions, or their calls fail", set()),
    ],
)
def test_a_vendor_that_fails_is_reported(
    data: Path, tmp_path: Path, vendor: str, reason: str, crashing: set[str]
) -> None:
    status, text, report = run(data, tmp_path, vendor, "--numerics", "tf32")
    check = report["declaration_check"]
    assert (status, report["summary"]["passed"], check["contradictions"]) == (0, 1, [])
    failed = {entry["field"]: entry["reason"] for entry in check["unmeasured"]}
    assert reason in failed.pop("float32_products")
    assert set(failed) <= crashing
    assert f"not measured: float32_products: {reason}" in text


def test_only_a_declaration_that_is_not_ieee_is_checked_without_an_option(data: Path, tmp_path: Path) -> None:
    *_, unchecked = run(data, tmp_path, "exact", "--numerics", "tf32", "--no-check-numerics")
    _, text, undeclared = run(data, tmp_path, "exact")
    *_, requested = run(data, tmp_path, "exact", "--check-numerics")
    assert "declaration_check" not in {*unchecked, *undeclared}
    assert "declaration:" not in text
    assert requested["declaration_check"]["contradictions"] == []
    assert "float32_products" in requested["declaration_check"]["measured"]


def test_the_command_of_a_run_repeats_the_choice() -> None:
    for choice, option in ((True, "--check-numerics"), (False, "--no-check-numerics")):
        assert option in RunOptions(vendor="any", check_numerics=choice).command()
    assert "check-numerics" not in RunOptions(vendor="any").command()
