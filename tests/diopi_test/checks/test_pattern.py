"""Patterns of wrong elements have the documented descriptions, and elements without a pattern have none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.checks.pattern import Mask, constant_pattern, find_patterns, value_patterns
from diopi_test.execution.difference import PatternKind


def mask_at(shape: int | tuple[int, ...], *places: Any) -> Mask:
    """Return a mask that is true at these places."""
    mask = np.zeros(shape, bool)
    for place in places:
        mask[place] = True
    return mask


def texts(mask: Mask, strides: tuple[int, ...] = ()) -> list[str]:
    """Return the texts of the patterns that are found in a mask."""
    return [pattern.text for pattern in find_patterns(mask, strides)]


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (mask_at(7, np.s_[:]), "all of them"),
        (mask_at((), ()), "all of them"),
        (mask_at(100, np.s_[1::2]), "1 of every 2 elements, numbers 1, 3, …"),
        (mask_at(100, np.s_[2::7]), "1 of every 7 elements, numbers 2, 9, …"),
        (mask_at(100, np.s_[2::8], np.s_[3::8]), "2 of every 8 elements, numbers 2 to 3, 10 to 11, …"),
        (mask_at(100, np.s_[0::4], np.s_[2::4], np.s_[3::4]), "all but 1 of every 4 elements, numbers 1, 5, …"),
        (mask_at(100, np.s_[60:]), "the last 40 of 100, all from number 60 on"),
        (mask_at(1000, np.s_[32:]), "the last 968 of 1000, all from number 32 on, a multiple of 32"),
        (mask_at(1000, np.s_[64:]), "the last 936 of 1000, all from number 64 on, a multiple of 64"),
        (
            mask_at(100, np.s_[96:]),
            "the last 4 of 100, all from number 96 on, what remains after tiles of 8 or 16 or 32",
        ),
        (
            mask_at(33, np.s_[32:]),
            "the last 1 of 33, all from number 32 on, what remains after tiles of 4 or 8 or 16 or 32",
        ),
        (mask_at(1000, np.s_[:256]), "the first 256 of 1000, a multiple of 256"),
        (mask_at(1000, np.s_[128:192]), "a run of 64 of 1000, from number 128 on, a multiple of 128"),
        (mask_at(1024, np.s_[64:128], np.s_[512:640]), "whole blocks of 64, 3 of 16, the first from number 64 on"),
        (
            mask_at(2000, np.s_[256:512], np.s_[1280:1536], np.s_[1792:]),
            "whole blocks of 256, 3 of 8, the first from number 256 on",
        ),
        (mask_at(1000, np.s_[3:13], np.s_[40:50], np.s_[81:91]), "in 3 runs of 10 each, the first from number 3 on"),
        (mask_at((4, 5, 6), np.s_[:, 3]), "exactly [:, 3, :]"),
        (mask_at((4, 5, 6), np.s_[..., 2]), "exactly [:, :, 2]"),
        (mask_at((4, 5, 6), np.s_[1, 3]), "exactly [1, 3, :]"),
        (mask_at((4, 9, 6), np.s_[:, 1::3]), "exactly [:, 1::3, :]"),
        (mask_at((4, 9, 6), np.s_[:, 2:5]), "exactly [:, 2:5, :]"),
        (mask_at((1, 9, 1, 6), np.s_[:, 6:]), "exactly [:, 6:, :, :]"),
    ],
)
def test_a_slice_of_exactly_the_wrong_elements_is_found(mask: Mask, text: str) -> None:
    assert texts(mask)[0] == text


def sample_mask(places: Mask, number: int) -> Mask:
    """Return a mask of `number` elements among those at `places`, in a fixed irregular selection."""
    chosen = np.random.default_rng(3).choice(np.flatnonzero(places), number, replace=False)
    return mask_at(places.size, chosen).reshape(places.shape)


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (sample_mask(mask_at(1000, np.s_[3::4]), 12), "all in 1 of every 4 elements, numbers 3, 7, …"),
        (sample_mask(mask_at((20, 20), np.s_[:, 7]), 8), "all in [:, 7], which has 20"),
        (sample_mask(mask_at((20, 20), np.s_[4, :]), 8), "all in [4, :], which has 20"),
        (mask_at(1000, 700, 768, 900, 999, 777, 711), "all from number 700 on"),
        (mask_at(1000, 192, 700, 768, 900, 999, *range(200, 900, 30)), "all from number 192 on, a multiple of 64"),
        (mask_at(1000, 0, 32, 100, 211, 212), "all up to number 212"),
        (mask_at(100, 12, 13, 15), "all up to number 15"),
        (mask_at(100, 84, 86, 87), "all from number 84 on"),
        (mask_at(1000, 432, 440, 441, 449, 450), "all from number 432 on up to number 450"),
    ],
)
def test_a_slice_that_contains_all_wrong_elements_is_found(mask: Mask, text: str) -> None:
    assert text in texts(mask)


@pytest.mark.parametrize(
    ("mask", "kind"),
    [
        (mask_at(1000, np.s_[64:]), PatternKind.end),
        (mask_at(1000, 700, 768, 900, 999, 777, 711), PatternKind.end),
        (mask_at(100, np.s_[96:]), PatternKind.tail),
        (mask_at(1000, np.s_[:256]), PatternKind.range),
        (mask_at(1000, 432, 440, 441, 449, 450), PatternKind.range),
    ],
)
def test_ranges_up_to_the_end_have_separate_kinds(mask: Mask, kind: PatternKind) -> None:
    assert find_patterns(mask)[0].kind is kind


def test_a_range_in_memory_order_is_found_if_this_order_differs() -> None:
    mask = mask_at(60, np.s_[45:]).reshape(6, 10).T
    assert texts(mask, (1, 10))[0] == "the last 15 of 60, all from number 45 on in memory order"
    assert texts(mask_at(60, np.s_[45:]).reshape(10, 6), (6, 1))[0] == "the last 15 of 60, all from number 45 on"


def test_two_neighboring_elements_in_the_middle_are_no_pattern() -> None:
    assert texts(mask_at(100, 44, 53)) == []


def test_random_elements_rarely_have_a_pattern() -> None:
    rng = np.random.default_rng(7)
    shapes = [(400,), (20, 20), (5, 8, 10), (2, 3, 4)]
    masks = [rng.random(shapes[number % 4]) < rng.choice([0.02, 0.1, 0.5, 0.9]) for number in range(400)]
    descriptions = [find_patterns(mask) for mask in masks if mask.any()]
    assert sum(map(bool, descriptions)) < 0.1 * len(descriptions)


def test_an_exact_pattern_describes_the_wrong_elements() -> None:
    """The texts of all slices of a small tensor can be parsed, and select the wrong elements."""
    tried = 0
    for first, step, axis in ((f, s, a) for f in range(6) for s in range(1, 4) for a in range(3)):
        place = [slice(None)] * 3
        place[axis] = slice(first, None, step)
        mask = mask_at((6, 7, 8), tuple(place))
        for text in (text for text in texts(mask) if text.startswith("exactly")):
            parts = text.removeprefix("exactly [").removesuffix("]").split(", ")
            assert (mask_at(mask.shape, tuple(map(index, parts))) == mask).all()
            tried += 1
    assert tried > 40


def index(text: str) -> int | slice:
    """Return the index or slice that a text such as `1::2` describes."""
    parts = [int(part) if part else None for part in text.split(":")]
    return slice(*parts) if len(parts) > 1 else int(text)


NUMBERS = np.linspace(1, 2, 40, dtype=np.float32)


@pytest.mark.parametrize(
    ("special", "word"),
    [(np.nan, "NaN"), (-np.inf, "infinite"), (1e-40, "subnormal"), (-0.0, "-0"), (0.0, "0"), (-3.0, "negative")],
)
def test_special_values_of_an_input_are_named(special: float, word: str) -> None:
    mask = mask_at(40, [3, 4, 30])
    array = np.where(mask, np.float32(special), NUMBERS)
    (found,) = value_patterns(mask, {"other": (array, Dtype.float32), "input": (NUMBERS, Dtype.float32)})
    assert (found.kind, found.text) == (PatternKind.values, f"only where other is {word}, 3 of 3 such")


@pytest.mark.parametrize(
    ("array", "dtype", "word"),
    [
        (np.where(mask_at(40, [3, 5]), 127, 5).astype(np.int8), Dtype.int8, "the largest number 127"),
        (np.where(mask_at(40, [3, 5]), -128, 5).astype(np.int8), Dtype.int8, "the smallest number -128"),
        (mask_at(40, [3, 5]), Dtype.bool, "true"),
        (~mask_at(40, [3, 5]), Dtype.bool, "false"),
        (np.where(mask_at(40, [3, 5]), 0, 1j), Dtype.complex64, "0"),
    ],
)
def test_wrong_elements_at_special_inputs_are_a_pattern(array: Any, dtype: Dtype, word: str) -> None:
    (found,) = value_patterns(mask_at(40, [3, 5]), {"input": (array, dtype)})
    assert found.text == f"only where input is {word}, 2 of 2 such"


def test_values_that_many_correct_elements_have_are_no_pattern() -> None:
    assert value_patterns(mask_at(40, 3), {"input": (np.where(NUMBERS < 1.5, -1, 1), Dtype.int64)}) == []


def test_equal_wrong_values_for_different_expected_values_are_a_pattern() -> None:
    mask = mask_at(40, np.s_[5:9])
    actual = np.where(mask, np.float32(0), NUMBERS)
    assert [pattern.text for pattern in constant_pattern(mask, actual, NUMBERS)] == ["all wrong elements are 0.0"]
    assert constant_pattern(mask, actual, np.ones(40)) == []
    assert constant_pattern(mask, NUMBERS, NUMBERS) == []


@pytest.mark.parametrize(
    "wrong_at",
    [lambda numbers: numbers % 2 == 1, lambda numbers: numbers * 7919 % 13 < 6, lambda numbers: numbers == 5],
)
def test_large_tensors_are_examined(wrong_at: Callable[[Any], Mask]) -> None:
    mask = wrong_at(np.arange(10**6)).reshape(100, 100, 100)
    assert isinstance(find_patterns(mask, (1, 100, 10000)), list)
