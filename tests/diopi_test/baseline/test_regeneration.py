"""Levels whose inputs are generated again: their files contain results and a digest of the inputs."""

import json
from pathlib import Path

import numpy as np
import pytest
from sampling import sampled

from diopi_proto.interface import lookup
from diopi_test.baseline import compaction, generate, store
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import Case
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.execution.listing import list_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineTensor, Expected

FUNCTION = "diopiTanhBackward"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a baseline file of the level `large`, whose inputs are not stored."""
    folder = tmp_path_factory.mktemp("data") / "large"
    generate.generate_function(FUNCTION, "large", folder)
    return store.baseline_file(folder, FUNCTION)


@pytest.mark.parametrize("case", sampled(select_cases(FUNCTION, "large"), 3, slow=100), ids=lambda case: case.label)
def test_regenerated_inputs_have_the_same_bits(case: Case, path: Path) -> None:
    computed = compute_baseline_case(lookup(FUNCTION), case)
    read = BaselineFile(path).case(case.label)
    assert list(read.arguments) == list(computed.arguments)
    for name, tensor in computed.arguments.items():
        regenerated_value = read.arguments[name]
        assert isinstance(regenerated_value, BaselineTensor)
        assert (regenerated_value.dtype, regenerated_value.layout) == (tensor.dtype, tensor.layout)
        assert regenerated_value.values.tobytes() == tensor.values.tobytes()


def test_stored_results_are_compacted(path: Path) -> None:
    case = select_cases(FUNCTION, "large")[0]
    computed = compute_baseline_case(lookup(FUNCTION), case).expected["out" if "out" in case.results else "grad_input"]
    read = BaselineFile(path).case(case.label).expected
    ((expected),) = read.values()
    assert isinstance(computed, Expected)
    assert isinstance(expected, Expected)
    small = compaction.compact_expected(computed)
    assert np.array_equal(expected.values, small.values)
    assert small.budget is not None
    assert expected.budget is not None
    growth = expected.budget.unit / small.budget.unit
    assert growth.min() >= 1 - 2**-24  # float32 on the way
    assert growth.max() <= 1 + 1 / 128


def test_a_file_is_smaller_than_its_inputs(path: Path) -> None:
    cases = [BaselineFile(path).case(case.label) for case in select_cases(FUNCTION, "large")]
    inputs = sum(value.values.nbytes for case in cases for value in case.arguments.values())
    assert path.stat().st_size < inputs


def test_changed_inputs_raise_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_test.baseline.regeneration.argument_digest", lambda arguments: "0" * 64)
    with pytest.raises(BaselineError, match="gen-data --level large --function diopiTanh"):
        BaselineFile(path).case(select_cases(FUNCTION, "large")[0].label)


def test_a_case_that_no_longer_exists_raises_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_test.baseline.regeneration.select_cases", lambda function, level: ())
    with pytest.raises(BaselineError, match="exists"):
        BaselineFile(path).case(select_cases(FUNCTION, "large")[0].label)


def test_the_index_needs_no_inputs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("diopi_test.baseline.regeneration.regenerate_arguments")
    view = IndexView(path)
    cases = select_cases(FUNCTION, "large")
    shapes = [view.case(case.label).arguments["output"].values.shape for case in cases]
    assert shapes == [case.arguments["output"].shape for case in cases]
    assert [case.label for case in list_cases(view)] == [case.label for case in cases]


def test_levels_table_lists_the_levels_without_stored_inputs() -> None:
    assert [name for name, level in LEVELS.items() if level.is_drawn][:1] == ["large"]
    assert json.dumps(list(LEVELS)) == json.dumps(
        ["smoke", "full", *(n for n, expected in LEVELS.items() if expected.is_drawn)]
    )
