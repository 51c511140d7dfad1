"""Phrases that messages of all packages share: counts with nouns, and unknown names with suggestions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

LISTED_NAMES = 12
"""If there are more known names than this, a message states their number instead of listing them."""

LISTED_NAMES_WITHOUT_SUGGESTION = 50
"""The same limit for messages without a suggestion, in which no known name is similar to the unknown name."""


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun, as in "1 function", "541 functions" and "2 entries".

    Args:
        number: the count.
        singular: the noun for a count of 1.
        plural: the noun for other counts; by default the singular with an "s".

    Returns:
        The phrase, the number with commas between thousands.
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def suggest(names: Sequence[str]) -> str:
    """Return " Did you mean 'a' or 'b'?" for these names, and an empty string if there are none."""
    return f" Did you mean {' or '.join(map(repr, names))}?" if names else ""


def describe_unknown(name: str, known: Collection[str], nouns: str, similar: Sequence[str] | None = None) -> str:
    """Return "'smok' is not one of 'smoke', 'full'. Did you mean 'smoke'?" for an unknown name.

    Args:
        name: the unknown name.
        known: the names that are expected.
        nouns: what the known names are, in the plural, as in "standard functions".
        similar: the known names to suggest; by default those that are spelled like the unknown name.

    Returns:
        One sentence, and a second one with suggestions if there are any.
    """
    if not known:
        return f"{name!r} is unknown: there are no {nouns}."
    suggestions = get_close_matches(name, known) if similar is None else similar
    if len(known) <= (LISTED_NAMES if suggestions else LISTED_NAMES_WITHOUT_SUGGESTION):
        expected = ", ".join(map(repr, known))
    else:
        expected = f"the {len(known):,} {nouns}"
    return f"{name!r} is not one of {expected}.{suggest(suggestions)}"
