"""The catalog of diagnoses is complete, consistent and documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from diopi_test.results.causes.diagnosis import Diagnosis, catalog
from diopi_test.results.causes.page import update_page
from diopi_test.results.causes.signature import PATTERNS, RELATIONS, STATES, SYMPTOMS
from diopi_test.results.causes.traits import FLOATING_TYPE, TRAITS

PAGE = Path(__file__).parents[4] / "docs" / "diagnoses.md"


def test_the_page_is_generated_from_the_catalog() -> None:
    command = "python -m diopi_test.results.causes.page docs/diagnoses.md"
    page = PAGE.read_text("utf-8")
    assert page == update_page(page), f"run {command}"


def test_a_page_without_the_marker_is_rejected() -> None:
    with pytest.raises(ValueError, match="has no line"):
        update_page("# Diagnoses\n")


def test_every_diagnosis_has_its_own_id() -> None:
    ids = [diagnosis.id for diagnosis in catalog()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("diagnosis", catalog(), ids=lambda diagnosis: diagnosis.id)
def test_conditions_use_names_that_signatures_can_have(diagnosis: Diagnosis) -> None:
    for conditions in diagnosis.when:
        known = {"symptom": SYMPTOMS, "relation": RELATIONS, "pattern": PATTERNS, "state": STATES, "trait": TRAITS}
        for field, names in known.items():
            assert set(getattr(conditions, field)) <= {*names, "none", FLOATING_TYPE}, field


def test_sentences_end_with_a_period_and_defects_do_not() -> None:
    for diagnosis in catalog():
        assert diagnosis.look_at.endswith(".") and diagnosis.explanation.endswith("."), diagnosis.id
        assert not diagnosis.likely.endswith("."), diagnosis.id
