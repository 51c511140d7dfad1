"""Counts have the singular or plural of the noun, and messages about unknown names have suggestions."""

import pytest

from diopi_proto.messages import describe_unknown, pluralize, suggest


@pytest.mark.parametrize(
    ("number", "nouns", "phrase"),
    [
        (0, ("case",), "0 cases"),
        (1, ("case",), "1 case"),
        (1234, ("case",), "1,234 cases"),
        (1, ("entry", "entries"), "1 entry"),
        (2, ("entry", "entries"), "2 entries"),
    ],
)
def test_pluralize_chooses_the_form_of_the_noun(number: int, nouns: tuple[str, ...], phrase: str) -> None:
    assert pluralize(number, *nouns) == phrase


def test_suggest_joins_names() -> None:
    assert suggest([]) == ""
    assert suggest(["a", "b"]) == " Did you mean 'a' or 'b'?"


HUNDRED_NAMES = [f"name{number}" for number in range(100)]


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("smok", ["smoke", "full"], "'smok' is not one of 'smoke', 'full'. Did you mean 'smoke'?"),
        ("xyz", ["smoke", "full"], "'xyz' is not one of 'smoke', 'full'."),
        ("xyz", HUNDRED_NAMES, "'xyz' is not one of the 100 names."),
        ("xyz", HUNDRED_NAMES[:50], f"'xyz' is not one of {', '.join(map(repr, HUNDRED_NAMES[:50]))}."),
        ("name7x", ["name7", *HUNDRED_NAMES[:30]], "'name7x' is not one of the 31 names. Did you mean 'name7' or "),
        ("smok", [], "'smok' is unknown: there are no names."),
    ],
)
def test_an_unknown_name_is_described(name: str, known: list[str], message: str) -> None:
    assert describe_unknown(name, known, "names").startswith(message)


def test_suggestions_can_be_passed() -> None:
    assert describe_unknown("x", ["a"], "names", ["b"]) == "'x' is not one of 'a'. Did you mean 'b'?"
