"""The search for resizings finds sizes that the reference and the built-in vendor accept."""

import json
from pathlib import Path

import pytest
from sampling import sampled

from diopi_proto.interface import lookup, prototypes
from diopi_test.cases import resized
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import draw_case_with_zeros
from diopi_test.oracle.records import expected_arrays, tensors_in
from diopi_test.quality.resized_cases import VECTOR, WITHOUT_ROWS_OF_16, find_resizings, main


@pytest.mark.parametrize("function", ["diopiMm", "diopiSoftmax", "diopiLayerNorm", "diopiWhere"])
def test_the_file_has_the_resizings_that_the_search_finds(function: str) -> None:
    assert list(resized.resizings()[function]) == find_resizings(function)


def test_sizes_whose_ratio_matters_are_multiplied() -> None:
    """The cosines of rotary embedding have half as many columns as the input."""
    (rows,) = [resizing for resizing in find_resizings("diopiRotaryEmbedding") if resizing.label == resized.ROWS_OF_16]
    assert {target / size for size, target in rows.sizes.items()} == {16}


def test_random_functions_have_no_resizings() -> None:
    assert find_resizings("diopiNormal") == []


def test_the_command_updates_the_functions_that_it_gets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "resized_cases.json"
    path.write_text('{"diopiAdd": [], "diopiSub": [{"label": "kept"}]}')
    monkeypatch.setattr(resized, "FILE", path)
    main(["diopiTril", "diopiNormal"])
    written = json.loads(path.read_text())
    assert set(written) == {"diopiSub", "diopiTril"}
    assert written["diopiSub"] == [{"label": "kept"}]
    assert [entry["label"] for entry in written["diopiTril"]][:1] == [resized.ROWS_OF_16]


WITHOUT_RESIZING = [
    name
    for name, prototype in prototypes().items()
    if prototype.guarantee != "random"
    and not any(resizing.label == resized.ROWS_OF_16 for resizing in resized.resizings().get(name, ()))
    and select_cases(name, "full")
]
"""The functions whose cases with rows of 16 elements are not derived, or that have none."""


def has_rows_of_16(function: str) -> bool:
    """Return whether a case that a vendor must pass has an argument or a result with such rows."""
    for case in select_cases(function, "full"):
        if case.case_class.is_demanded:
            computed = draw_case_with_zeros(lookup(function), case)
            tensors = [tensor.values for value in computed.arguments.values() for tensor in tensors_in(value)]
            tensors += [entry.values for value in computed.expected.values() for entry in expected_arrays(value)]
            if any(array.size and array.ndim and array.shape[-1] % VECTOR == 0 for array in tensors):
                return True
    return False


@pytest.mark.parametrize("function", sampled(WITHOUT_RESIZING, 8))
def test_a_function_has_a_case_with_rows_of_16_or_a_reason(function: str) -> None:
    assert has_rows_of_16(function) is (function not in WITHOUT_ROWS_OF_16)
