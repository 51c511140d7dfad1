"""Cases whose tensors repeat a period: the reference evaluates one period, and the file stores one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.store import BaselineFile, Provenance, write_baseline_file
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.cases.sweep import PERIOD, reshape
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import Expected


def repeated_case(function: str, label: str, *shape: int) -> Case:
    """Return a case whose tensors have this shape and repeat their values."""
    base = next(case for case in select_cases(function, "full") if case.label == label)
    return reshape(base, shape, f"{base.dtype.name}-repeated")


@pytest.mark.parametrize(
    ("function", "label"),
    [("diopiGelu", "float32-none-matrix"), ("diopiAdd", "float32-matrix"), ("diopiTanhBackward", "float32-matrix")],
)
def test_repeated_results_are_those_of_the_reference(function: str, label: str) -> None:
    case = repeated_case(function, label, 3, PERIOD + 7)
    repeated = compute_baseline_case(lookup(function), case)
    whole = compute_baseline_case(lookup(function), replace(case, period=0))
    for name, tensor in whole.arguments.items():
        if hasattr(tensor, "values"):
            assert np.array_equal(tensor.values, repeated.arguments[name].values)
    first, second = whole.expected["out" if "out" in whole.expected else "grad_input"], None
    second = repeated.expected["out" if "out" in repeated.expected else "grad_input"]
    assert isinstance(first, Expected)
    assert isinstance(second, Expected)
    assert first.values.shape == second.values.shape
    assert np.array_equal(first.values, second.values)


def test_the_file_stores_one_period_and_the_reader_repeats_it(tmp_path: Path) -> None:
    case = repeated_case("diopiGelu", "float32-none-matrix", 1000, 2003)
    computed = compute_baseline_case(lookup("diopiGelu"), case)
    path = tmp_path / "diopiGelu.h5"
    write_baseline_file(path, "diopiGelu", [computed], Provenance("large", "key", {}), omit_inputs=True)
    assert path.stat().st_size < 20_000
    file = BaselineFile(path)
    expected, stored = computed.expected["out"], file._decode_expected(file._records[case.label]["expected"]["out"])
    assert isinstance(expected, Expected)
    assert isinstance(stored, Expected)
    assert stored.budget is not None
    assert expected.budget is not None
    assert stored.values.shape == (1000, 2003)
    assert np.allclose(stored.values, expected.values, rtol=2**-32, atol=0)
    assert (stored.budget.unit >= expected.budget.unit * (1 - 2**-20)).all()
