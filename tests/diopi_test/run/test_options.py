"""The options of a run: the enabled checks."""

import pytest

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
