"""Layouts place every element in the storage, and no two elements at one place unless expanded."""

import re

import numpy as np
import pytest

from diopi_test.cases.layouts import LAYOUTS, Placement, different_layout, layout_named, strides

SHAPES = [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3), (2, 1, 3)]


def addresses(place: Placement, shape: tuple[int, ...]) -> list[int]:
    """Return the address of each element, in row-major order of the indices."""
    return [place.offset + int(np.dot(index, place.strides)) for index in np.ndindex(*shape)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_lie_in_the_storage(name: str, shape: tuple[int, ...]) -> None:
    place = LAYOUTS[name](shape)
    places = addresses(place, shape)
    assert all(0 <= address < place.storage_elements for address in places)
    assert name == "expanded" or len(set(places)) == len(places)


def test_layouts_have_the_expected_strides() -> None:
    strides = {name: layout((2, 3, 4, 5)).strides for name, layout in LAYOUTS.items()}
    assert strides == {
        "contiguous": (60, 20, 5, 1),
        "transposed": (1, 2, 6, 24),
        "channels_last": (60, 1, 15, 3),
        "strided": (120, 40, 10, 2),
        "expanded": (0, 20, 5, 1),
    }


def test_a_strided_tensor_has_gaps_on_all_sides() -> None:
    place = LAYOUTS["strided"]((2, 3))
    used = set(addresses(place, (2, 3)))
    assert min(used) > 0
    assert max(used) < place.storage_elements - 1
    assert len(used) < max(used) - min(used) + 1


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 5), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("name", ["contiguous", "transposed", "strided"])
def test_different_layout_moves_elements(name: str, shape: tuple[int, ...]) -> None:
    if LAYOUTS[name](shape) != LAYOUTS["contiguous"](shape) or name == "contiguous":
        assert LAYOUTS[different_layout(name, shape)](shape) != LAYOUTS[name](shape)


def test_layout_named_restores_strides() -> None:
    for layout in (strides(4096, 1), strides(), strides(0, 3, offset=7)):
        assert layout_named(layout.__name__) == layout
    assert strides(4096, 1, offset=3).__name__ == "strides(4096,1)+3"
    place = strides(100, 7, offset=5)((3, 2))
    assert place == Placement((100, 7), 5, 5 + 200 + 7 + 1)
    assert strides(100, 7)((0, 2)).storage_elements == 0


@pytest.mark.parametrize("name", ["", "rows", "strides", "strides(-1)", "strides(1,)", "strides(1)+", "strides(1e3)"])
def test_layout_named_rejects_unknown_names(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        layout_named(name)


def test_strides_reject_other_ranks_and_negative_numbers() -> None:
    with pytest.raises(ValueError, match="3 axes"):
        strides(3, 1)((2, 3, 4))
    with pytest.raises(ValueError, match="negative"):
        strides(3, -1)


@pytest.mark.parametrize(
    ("steps", "shape", "is_apart"),
    [
        ((3, 1), (4, 3), True),
        ((2, 1), (4, 3), False),
        ((0, 1), (4, 3), False),
        ((0, 1), (1, 3), True),
        ((1, 4), (4, 9), True),
    ],
)
def test_is_non_overlapping_detects_shared_memory(
    steps: tuple[int, ...], shape: tuple[int, ...], is_apart: bool
) -> None:
    assert strides(*steps)(shape).is_non_overlapping(shape) == is_apart
