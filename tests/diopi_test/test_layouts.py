"""Layouts place every element in the storage, and no two in one place unless expanded."""

import numpy as np
import pytest

from diopi_test.layouts import LAYOUTS, Placement, another

SHAPES = [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3), (2, 1, 3)]


def addresses(place: Placement, shape: tuple[int, ...]) -> list[int]:
    return [place.offset + int(np.dot(index, place.strides)) for index in np.ndindex(*shape)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_lie_in_the_storage(name: str, shape: tuple[int, ...]) -> None:
    place = LAYOUTS[name](shape)
    places = addresses(place, shape)
    assert all(0 <= address < place.storage_elements for address in places)
    assert name == "expanded" or len(set(places)) == len(places)


def test_strides() -> None:
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
def test_another_layout_is_another(name: str, shape: tuple[int, ...]) -> None:
    if LAYOUTS[name](shape) != LAYOUTS["contiguous"](shape) or name == "contiguous":
        assert LAYOUTS[another(name, shape)](shape) != LAYOUTS[name](shape)
