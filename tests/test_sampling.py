"""Samples of the tests that are too long for every run."""

import pytest
from sampling import SEED, draw_exhaustive


class NamedItem:
    """A test of which only the marker counts."""

    def __init__(self, name: str, marker: str) -> None:
        self.name, self.marker = name, marker

    def get_closest_marker(self, name: str) -> str | None:
        return self.marker if name == self.marker else None


ITEMS = [NamedItem(f"{marker}-{number}", marker) for marker in ("", "sanitizers", "exhaustive") for number in range(25)]


def drawn_names(percent: float) -> set[str]:
    """Return the names of the exhaustive tests that are drawn."""
    return {item.name for item in draw_exhaustive(ITEMS, percent)}


@pytest.mark.parametrize(("percent", "count"), [(0, 0), (1, 1), (10, 3), (100, 25), (150, 25)])
def test_only_exhaustive_tests_are_drawn(percent: float, count: int) -> None:
    names = drawn_names(percent)
    assert {item.name for item in ITEMS if item.marker != "exhaustive"} <= names
    assert sum(name.startswith("exhaustive") for name in names) == count


def test_the_seed_decides_which_tests_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = []
    for seed in ("1", "1", "2", "3"):
        monkeypatch.setenv(SEED, seed)
        draws.append(frozenset(drawn_names(20)))
    assert draws[0] == draws[1]
    assert len(set(draws)) > 1
