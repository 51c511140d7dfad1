"""The options of a run: the checks that judge."""

import pytest

from diopi_test.harness.keywords import SelectionError
from diopi_test.harness.options import CaseOptions, RunOptions, known_checks


def test_checks_are_chosen_or_left_out() -> None:
    assert set(known_checks()) >= {"form", "values", "guards", "layout", "refused", "untouched"}
    assert RunOptions("any").of_cases == CaseOptions(judging=None)
    assert set(RunOptions("any", checks=("values", "form")).of_cases.judging or ()) == {"values", "form"}
    assert set(RunOptions("any", checks=("no-values",)).of_cases.judging or ()) == set(known_checks()) - {"values"}
    with pytest.raises(SelectionError, match="--check: 'value' is not known; near are values"):
        RunOptions("any", checks=("value",))
