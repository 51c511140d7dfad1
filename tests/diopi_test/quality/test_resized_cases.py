"""The search for resizings finds sizes that the reference and the built-in vendor accept."""

import json
from pathlib import Path

import pytest

from diopi_test.cases import resized
from diopi_test.quality.resized_cases import find_resizings, main


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
