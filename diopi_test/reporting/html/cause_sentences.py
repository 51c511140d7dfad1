"""Translation of the sentences and diagnoses of causes. Texts of vendors, such as error messages, stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from diopi_test.reporting.html.page import asset
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.diagnosis import catalog
from diopi_test.results.causes.signature import PATTERNS, RELATIONS, STATES, SYMPTOMS
from diopi_test.results.causes.text import sentence_of
from diopi_test.results.causes.traits import TRAITS

FILE = "causes.json"
"""The translations of the phrases that sentences consist of."""

DIAGNOSES_FILE = "diagnoses.json"
"""The translations of the probable defect and of the place to look at, by diagnosis."""

_FACTOR = re.compile(r"(?P<text>.*), up to (?P<factor>\S+) times the limit", re.DOTALL)
"""Matches a sentence that ends with the factor of rounding errors."""

_SCOPE = re.compile(r"(?P<text>.*) in (?P<scope>diopi\w+|runtime)", re.DOTALL)
"""Matches a sentence that ends with the name of a function."""


def translate_sentence(cause: Cause, language: str) -> str:
    """Return the sentence of a cause in a language.

    Args:
        cause: the cause.
        language: `en` or `zh`.

    Returns:
        The sentence; in English if it contains a phrase without a translation.
    """
    return translate_text(sentence_of(cause), language)


def translate_text(sentence: str, language: str) -> str:
    """Return the sentence of a cause in a language; in English if it contains a phrase without a translation.

    Args:
        sentence: the English sentence, as reports and the database of the history contain it.
        language: `en` or `zh`.
    """
    return sentence if language == "en" else _translate(sentence) or sentence


def translate_diagnosis(cause: Cause, language: str) -> tuple[str, str] | None:
    """Return the probable defect of a cause and where to look for it, in a language.

    Args:
        cause: the cause.
        language: `en` or `zh`.

    Returns:
        Both texts; None without a diagnosis, or if the report has texts of another version, which have no translation.
    """
    texts = (cause.likely, cause.look_at)
    if language == "en":
        return texts if cause.diagnosis else None
    known = next((entry for entry in catalog() if entry.id == cause.diagnosis), None)
    if known is None or texts != (known.likely, known.look_at):
        return None
    return _translated_diagnoses().get(cause.diagnosis)


def _translate(sentence: str) -> str:
    """Return a sentence in Chinese; an empty text if a phrase of the sentence has no translation.

    The parts of the Chinese sentence are the condition, the function, what is observed, where and when, and the factor.
    """
    text, factor = _split(_FACTOR, sentence, "factor")
    text, trait = _split_phrase(text, TRAITS.values(), " if ")
    text, scope = _split(_SCOPE, text, "scope")
    text, state = _split_phrase(text, STATES.values(), " ")
    text, pattern = _split_phrase(text, PATTERNS.values(), " ")
    observed = next((entry for entry in _observations() if text == entry or text.startswith(f"{entry}: ")), "")
    phrases = [phrase for phrase in (observed, trait, state, pattern) if phrase]
    if not observed or not all(phrase in _translations() for phrase in phrases):
        return ""
    condition = f"当{_translations()[trait]}时，" if trait else ""
    place = "，".join(_translations()[phrase] for phrase in (pattern, state) if phrase)
    detail = text.removeprefix(observed).removeprefix(": ")
    return "".join(
        (
            f"{condition}{f'{scope} 的' if scope else ''}{_translations()[observed]}",
            f"（{place}）" if place else "",
            f"：{detail}" if detail else "",
            f"，最多为限值的 {factor} 倍" if factor else "",
        )
    )


def _observations() -> Iterable[str]:
    """Return all texts that describe an observation in a cause."""
    return (*RELATIONS.values(), *SYMPTOMS.values())


def _split(pattern: re.Pattern[str], text: str, group: str) -> tuple[str, str]:
    """Return the group `text` of a pattern and the named group; the unchanged text and "" if it does not match."""
    found = pattern.fullmatch(text)
    return (found["text"], found[group]) if found else (text, "")


def _split_phrase(text: str, phrases: Iterable[str], separator: str) -> tuple[str, str]:
    """Return the text before a phrase at its end, and the phrase; an empty one if the text ends with none."""
    phrase = next((phrase for phrase in phrases if text.endswith(f"{separator}{phrase}")), "")
    return (text.removesuffix(f"{separator}{phrase}") if phrase else text), phrase


@cache
def _translations() -> Mapping[str, str]:
    """Return the Chinese translations of the phrases that sentences consist of, by English phrase."""
    translations: Mapping[str, str] = json.loads(asset(FILE))
    return translations


@cache
def _translated_diagnoses() -> Mapping[str, tuple[str, str]]:
    """Return the Chinese texts of the diagnoses by ID."""
    translations: Mapping[str, Sequence[str]] = json.loads(asset(DIAGNOSES_FILE))
    return {name: (likely, place) for name, (likely, place) in translations.items()}
