"""A case is found by its ID or a unique part of it, in the files that may contain it."""

from pathlib import Path

import pytest
from baselines import make_level

from diopi_test.run.lookup import CaseLookupError, find_case


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the baseline files of a function and of its in-place form."""
    folder = make_level(tmp_path_factory.mktemp("data") / "smoke", "diopiSqrt", "diopiSqrtInp")
    return [folder / "diopiSqrt.h5", folder / "diopiSqrtInp.h5"]


def test_id_finds_the_case_of_the_function(files: list[Path]) -> None:
    path, case = find_case(files, "diopiSqrt[float32-matrix]")
    assert (path, case.id) == (files[0], "diopiSqrt[float32-matrix]")


def test_part_of_a_label_finds_the_case_in_all_files(files: list[Path]) -> None:
    assert find_case(files[1:], "FLOAT32-matrix-AGAIN")[1].id == "diopiSqrtInp[float32-matrix-again]"


def test_only_files_whose_function_matches_are_searched(files: list[Path]) -> None:
    missing = files[0].with_name("diopiSin.h5")
    for words in ("diopiSqrt[float32-matrix]", "qrt[float32-matrix]"):
        assert find_case([missing, files[0]], words)[0] == files[0]
    with pytest.raises(CaseLookupError, match=r"matches .* cases"):
        find_case([missing, files[0]], "sqrt")


def test_message_names_similar_cases_or_functions(files: list[Path]) -> None:
    with pytest.raises(CaseLookupError, match=r"diopiSqrt\[float32-matrix\]"):
        find_case(files, "diopiSqrt[float32-matrx]")
    with pytest.raises(CaseLookupError, match=r"Did you mean .*diopiSqrt"):
        find_case(files, "diopiSqart[float32-matrix]")
