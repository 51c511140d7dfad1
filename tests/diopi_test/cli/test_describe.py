"""`diopi-test describe` shows a function, whatever the spelling of its name."""

import json

import pytest
from click.testing import CliRunner, Result

from diopi_test.cli import main


def describe(*words: str) -> Result:
    """Run `diopi-test describe` and return its result."""
    return CliRunner().invoke(main, ["describe", *words])


@pytest.mark.parametrize("name", ["diopiCat", "Cat", "cat", "DIOPICAT"])
def test_describe_finds_a_function_in_any_spelling(name: str) -> None:
    done = describe(name)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("diopiCat, family shape\n")


def test_describe_shows_parameters_results_and_implementations() -> None:
    text = " ".join(describe("diopiCat").output.split())
    assert "num_inputs (count): The number of entries in the arrays of the call. No number is less than 1." in text
    assert '@vendor.implements("diopiCat") def cat(tensors, dim, *, out): ...' in text
    assert "Include <diopi/functions.h> and define the function." in text
    assert "PyTorch: aten::cat" in text
    assert "jax_cpu: yes" in text


def test_describe_shows_the_conventions_of_the_family() -> None:
    text = " ".join(describe("diopiRoiAlignMmcv").output.split())
    assert "Conventions of the family mmcv_roi MMCV's pooling of axis-aligned regions" in text
    assert "B(F, y, x) samples an H × W plane F bilinearly" in text


def test_describe_prints_the_same_facts_as_json() -> None:
    record = json.loads(describe("diopiCat", "--json").output)
    assert record["family"] == "shape"
    assert record["cases"]["full"]["basic"] > 0
    assert record["vendors"]["jax_cpu"] is True


def test_an_unknown_name_is_an_error_that_suggests_similar_ones() -> None:
    done = describe("Uniqe")
    assert done.exit_code == 2
    assert "'Uniqe' is not one of the 541 standard functions. Did you mean 'diopiUnique'?" in done.output
