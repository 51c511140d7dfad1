"""Samples of the tests that are too long for every run."""

from collections import Counter

import pytest
from sampling import SEED, draw_marked, find_deselected_markers, sampled


class NamedItem:
    """A test of which only the marker counts."""

    def __init__(self, name: str, marker: str) -> None:
        self.name, self.marker = name, marker

    def get_closest_marker(self, name: str) -> str | None:
        return self.marker if name == self.marker else None


ITEMS = [
    NamedItem(f"{marker}-{number}", marker)
    for marker in ("", "sanitizers", "exhaustive", "slow")
    for number in range(25)
]


def drawn_names(**percentages: float) -> set[str]:
    """Return the names of the tests that are drawn."""
    return {item.name for item in draw_marked(ITEMS, percentages)}


@pytest.mark.parametrize(("percent", "count"), [(0, 0), (1, 1), (10, 3), (100, 25), (150, 25)])
def test_only_tests_with_the_marker_are_drawn(percent: float, count: int) -> None:
    names = drawn_names(exhaustive=percent)
    assert {item.name for item in ITEMS if item.marker != "exhaustive"} <= names
    assert sum(name.startswith("exhaustive") for name in names) == count


def test_each_marker_has_its_part() -> None:
    counts = Counter(name.partition("-")[0] for name in drawn_names(exhaustive=10, slow=50))
    assert counts == {"": 25, "sanitizers": 25, "exhaustive": 3, "slow": 13}


def test_the_seed_decides_which_tests_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = []
    for seed in ("1", "1", "2", "3"):
        monkeypatch.setenv(SEED, seed)
        draws.append(frozenset(drawn_names(exhaustive=20)))
    assert draws[0] == draws[1]
    assert len(set(draws)) > 1


@pytest.mark.parametrize(
    ("expression", "deselected"),
    [
        ("", set()),
        ("exhaustive", set()),
        ("slow", set()),  # a slow test may have exhaustive parameters
        ("not slow", {"slow"}),
        ("slow and not exhaustive", {"exhaustive"}),
        ("not exhaustive and not slow and not sanitizers", {"exhaustive", "slow"}),
    ],
)
def test_a_marker_is_omitted_if_no_test_with_it_is_selected(expression: str, deselected: set[str]) -> None:
    assert find_deselected_markers(expression, ("exhaustive", "slow")) == deselected


def test_items_with_an_omitted_marker_are_no_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampling.omitted_markers", {"exhaustive"})
    parameters = sampled(range(10), 3, slow=2)
    assert len(parameters) == 5
    assert Counter(mark.name for _, marks, _ in parameters for mark in marks) == {"slow": 2}
    assert len(sampled(range(10), 0)) == 10  # a test without parameters would be reported as skipped


@pytest.fixture
def all_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `sampled` return the items with any marker."""
    monkeypatch.setattr("sampling.omitted_markers", set())


@pytest.mark.usefixtures("all_markers")
def test_items_outside_the_sample_are_marked() -> None:
    parameters = sampled(range(10), 3, slow=2)
    assert [values for (values,), _, _ in parameters] == list(range(10))
    assert Counter(mark.name for _, marks, _ in parameters for mark in marks) == {"slow": 2, "exhaustive": 5}
    assert [len(marks) for _, marks, _ in sampled(range(2), 1, slow=5)] in ([0, 1], [1, 0])
    assert all(not marks for _, marks, _ in sampled(range(2), 3))
