"""Translation of the sentences and diagnoses of causes from English to Chinese.

A cause is a group of failed cases that probably have the same defect. `diopi_test.results.causes` builds the English
sentence of a cause from phrases. This module splits the sentence into these phrases and translates each of them. Texts
of vendors, such as error messages, stay as they are.
"""

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
"""The file with the Chinese translation of each phrase that a sentence can contain."""

DIAGNOSES_FILE = "diagnoses.json"
"""The file with two Chinese texts for each diagnosis: the probable defect, and where to look for it."""

_FACTOR = re.compile(r"(?P<text>.*), up to (?P<factor>\S+) times the limit", re.DOTALL)
"""Matches a sentence that ends with the factor by which an error exceeds its limit."""

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
    """Return a sentence of a cause in a language; in English if it contains a phrase without a translation.

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
        Both texts; None without a diagnosis. Also None for Chinese if the texts of the report come from another version
        of the suite, because only the texts of this version have translations.
    """
    texts = (cause.likely, cause.look_at)
    if language == "en":
        return texts if cause.diagnosis else None
    catalog_entry = next((entry for entry in catalog() if entry.id == cause.diagnosis), None)
    if catalog_entry is None or texts != (catalog_entry.likely, catalog_entry.look_at):
        return None
    return _translated_diagnoses().get(cause.diagnosis)


def _translate(sentence: str) -> str:
    """Return the sentence of a cause in Chinese; an empty text if a phrase of the sentence has no translation.

    The Chinese sentence has the order: condition, function, observation, pattern and state, detail, factor.
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
    """Return all phrases that describe what was observed, such as a wrong value or a crash."""
    return (*RELATIONS.values(), *SYMPTOMS.values())


def _split(pattern: re.Pattern[str], text: str, group: str) -> tuple[str, str]:
    """Split a text with a regular expression that matches all of it.

    Args:
        pattern: The expression, with the group `text` and another named group.
        text: The text.
        group: The name of the other group.

    Returns:
        The group `text` and the other group; the unchanged text and "" if the expression does not match.
    """
    match = pattern.fullmatch(text)
    return (match["text"], match[group]) if match else (text, "")


def _split_phrase(text: str, phrases: Iterable[str], separator: str) -> tuple[str, str]:
    """Remove one of several phrases from the end of a text.

    Args:
        text: The text.
        phrases: The phrases.
        separator: The text between the rest and the phrase.

    Returns:
        The rest of the text and the phrase; the unchanged text and "" if the text ends with none of the phrases.
    """
    phrase = next((phrase for phrase in phrases if text.endswith(f"{separator}{phrase}")), "")
    return (text.removesuffix(f"{separator}{phrase}") if phrase else text), phrase


@cache
def _translations() -> Mapping[str, str]:
    """Return the Chinese translations of the phrases that sentences consist of, by English phrase."""
    translations: Mapping[str, str] = json.loads(asset(FILE))
    return translations


@cache
def _translated_diagnoses() -> Mapping[str, tuple[str, str]]:
    """Return the Chinese texts of each diagnosis by its ID: the probable defect, and where to look for it."""
    translations: Mapping[str, Sequence[str]] = json.loads(asset(DIAGNOSES_FILE))
    return {name: (likely, place) for name, (likely, place) in translations.items()}
