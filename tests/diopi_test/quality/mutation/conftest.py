"""Fixtures of the tests of mutation tests."""

import pytest

from diopi_test.quality.mutation import matrix


@pytest.fixture
def without_soak_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run no mutants of soak tests, which make hundreds of calls each; test_soak.py and test_derived.py have them."""
    monkeypatch.setattr(matrix, "SOAK_KINDS", ())
