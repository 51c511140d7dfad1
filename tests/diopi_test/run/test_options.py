"""The options of a run: the enabled checks, and the declared arithmetic."""

from pathlib import Path

import pytest

from diopi_impl import NumericsError, find_numerics
from diopi_test.run.keywords import SelectionError
from diopi_test.run.limits import CaseOptions
from diopi_test.run.options import RunOptions, known_checks


def test_checks_can_be_selected_or_excluded() -> None:
    assert set(known_checks()) >= {"form", "values", "guards", "layout", "refused", "untouched"}
    assert RunOptions(vendor="any").execution == CaseOptions(enabled_checks=None)
    assert set(RunOptions(vendor="any", checks=("values", "form")).execution.enabled_checks or ()) == {"values", "form"}
    excluding = RunOptions(vendor="any", checks=("no-values",)).execution
    assert set(excluding.enabled_checks or ()) == set(known_checks()) - {"values"}
    with pytest.raises(SelectionError, match=r"'value' .*'values'\?"):
        RunOptions(vendor="any", checks=("value",))


def test_run_options_accept_the_former_name_of_a_check() -> None:
    assert RunOptions(vendor="any", checks=("meaning",)) == RunOptions(vendor="any", checks=("validity",))
    assert RunOptions(vendor="any", checks=("no-meaning",)).checks == ("no-validity",)


def test_declared_arithmetic_reaches_cases_and_repeating_commands(tmp_path: Path) -> None:
    assert RunOptions(vendor="any").execution.numerics is None
    options = RunOptions(vendor="any", numerics="tf32")
    assert options.execution.numerics == find_numerics("tf32")
    assert "--numerics tf32" in options.command()
    assert "--numerics tf32" in options.command_of("diopiSqrt[float32-matrix]")
    path = tmp_path / "chip.toml"
    path.write_text('float64 = "absent"')
    execution = RunOptions(vendor="any", numerics=str(path)).execution
    assert execution.numerics is not None
    assert execution.numerics.name == "chip"
    with pytest.raises(NumericsError, match="'tf33' is not one of"):
        _ = RunOptions(vendor="any", numerics="tf33").execution
