"""The page about models lists the existing networks with their numbers of calls."""

from pathlib import Path

import pytest

from diopi_test.traces.files import load_shipped_trace, model_names

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


@pytest.mark.parametrize("name", model_names())
def test_every_model_has_a_line(name: str) -> None:
    model = load_shipped_trace(name)
    calls, missing = (
        sum(model.functions.values()),
        ", ".join(f"`{operator}`" for operator in sorted(model.not_mapped)),
    )
    assert f"| {name} | {calls} | {len(model.calls)} | {len(model.functions)} | {missing} |\n" in PAGE


def test_no_other_model_has_a_line() -> None:
    lines = [line for line in PAGE.partition("## The networks")[2].splitlines() if line.startswith("| ")]
    names = {line.split(" ")[1] for line in lines} - {"network", "---"}
    assert names == set(model_names())
