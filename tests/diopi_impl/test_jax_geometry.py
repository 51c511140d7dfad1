"""Areas of polygons in jax_cpu, compared with Shapely for shared edges and corners, in any frame of reference."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shapely import MultiPoint, Polygon

from diopi_impl.jax_cpu import geometry

Array = np.ndarray[Any, np.dtype[np.float64]]


overlaps = jax.jit(geometry.overlap_areas)


@pytest.fixture(autouse=True)
def wide() -> Any:
    """Enable 64-bit element types, as jax_cpu does while it computes."""
    with jax.enable_x64(True):
        yield


def _squares(*corners: tuple[float, float, float]) -> Array:
    """Return the corners of squares (x, y, side)."""
    return np.array([[[x, y], [x + a, y], [x + a, y + a], [x, y + a]] for x, y, a in corners])


MEETING = {
    "equal": ((0, 0, 2), (0, 0, 2)),
    "nested with a corner": ((0, 0, 2), (0, 0, 1)),
    "nested on a side": ((0, 0, 3), (1, 0, 1)),
    "nested": ((0, 0, 3), (1, 1, 1)),
    "side by side": ((0, 0, 2), (2, 0, 2)),
    "at a corner": ((0, 0, 2), (2, 2, 1)),
    "part of a side": ((0, 0, 2), (1, 0, 2)),
    "apart": ((0, 0, 1), (5, 7, 1)),
}
FRAMES: list[Callable[[Array], Array]] = [
    lambda points: points,
    lambda points: points + 100,
    lambda points: points @ np.array([[0.0, 1.0], [-1.0, 0.0]]),
    lambda points: points @ np.array([[0.6, 0.8], [-0.8, 0.6]]),
    lambda points: points[:, ::-1],
    lambda points: np.roll(points, 1, 1),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("pair", MEETING.values(), ids=MEETING)
def test_overlaps_are_accurate_for_shared_edges_and_corners(pair: Any, frame: Callable[[Array], Array]) -> None:
    a, b = frame(_squares(*pair))
    expected = Polygon(a).intersection(Polygon(b)).area
    for polygons in ((a, b), (b, a)):
        assert float(overlaps(*map(jnp.asarray, polygons))) == pytest.approx(expected, abs=1e-11)


def test_overlaps_match_shapely() -> None:
    rng = np.random.default_rng(0)
    boxes = np.concatenate([rng.uniform(0, 5, (40, 2)), rng.uniform(1, 6, (40, 2)), rng.uniform(-4, 4, (40, 1))], 1)
    corners = np.asarray(jax.jit(geometry.rotated_box_corners)(jnp.asarray(boxes)))
    actual = overlaps(jnp.asarray(corners[:, None]), jnp.asarray(corners))
    expected = [[Polygon(a).intersection(Polygon(b)).area for b in corners] for a in corners]
    np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.slow
def test_overlaps_do_not_depend_on_the_distance_from_the_origin() -> None:
    """The centers are integers, so that moving them causes no rounding."""
    rng = np.random.default_rng(3)
    shapes = np.concatenate([rng.uniform(2, 6, (40, 2)), rng.uniform(-4, 4, (40, 1))], 1)
    near = np.concatenate([rng.integers(0, 8, (40, 2)), shapes], 1).astype(np.float32)
    far = near + np.array([2**20, -(2**21), 0, 0, 0], np.float32)
    actual, expected = (
        geometry.box_overlap_areas(jnp.asarray(boxes[:, None]), jnp.asarray(boxes)) for boxes in (far, near)
    )
    np.testing.assert_array_equal(actual, expected)


def test_hulls_match_shapely() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(size=(20, 9, 2)), rng.integers(0, 3, (20, 9, 2))])

    @jax.jit  # compiles one program instead of one per operation
    def hulls_with_areas(points: Any) -> Any:
        hulls = geometry.select_points(points, geometry.hull_indices(points))
        return hulls, geometry.signed_areas(hulls)

    hulls, areas = hulls_with_areas(jnp.asarray(points))
    for point_set, hull, area in zip(points, hulls, areas, strict=True):
        expected = MultiPoint(point_set).convex_hull
        assert float(area) == pytest.approx(expected.area, abs=1e-12)
        assert MultiPoint(np.asarray(hull)).convex_hull.equals(expected)
