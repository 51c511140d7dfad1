"""MMCV's functions on jax_cpu: invalid calls and memory use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from implementations import with_all_parameters
from memory import assert_little_memory, shape
from sampling import sampled

from diopi_impl.jax_cpu import mmcv_box, mmcv_deform, mmcv_points, mmcv_rotated, mmcv_voxel, vendor
from diopi_impl.jax_cpu.mmcv_roi import deform_roi_pool, roi_align

IMAGE, WEIGHT, OFFSET, MASK = shape(1, 64, 50, 50), shape(64, 64, 3, 3), shape(1, 18, 50, 50), shape(1, 9, 50, 50)
NONE, BIAS = shape(0), shape(64)
POINTS, CENTERS = shape(1, 20_000, 3), shape(1, 1024, 3)
BOXES, SCORES, ORDER, ROTATED_BOXES = shape(4096, 4), shape(4096), shape(4096, dtype=np.int64), shape(4096, 5)
CLOUD, SIZES, RANGE = shape(20_000, 4), shape(3), shape(6)
VOXELS, CELLS, COUNTS = shape(40_000, 32, 4), shape(40_000, 3, dtype=np.int32), shape(40_000, dtype=np.int32)
CONVOLVING = (3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 64)

CALLS: dict[str, tuple[Callable[..., Any], list[Any], tuple[Any, ...]]] = {
    "deform_conv": (mmcv_deform.deform_conv, [NONE, NONE, IMAGE, WEIGHT, OFFSET], CONVOLVING),
    "deform_conv_backward_input": (
        vendor.function("diopiDeformConvBackwardInputMmcv"),
        [IMAGE, OFFSET, IMAGE, OFFSET, IMAGE, WEIGHT, NONE],
        CONVOLVING,
    ),
    "modulated_deform_conv_backward": (
        mmcv_deform.modulated_deform_conv_backward,
        [IMAGE, WEIGHT, BIAS, OFFSET, MASK, IMAGE, WEIGHT, BIAS, NONE, OFFSET, MASK, NONE, IMAGE],
        (*CONVOLVING[:-1], True),
    ),
    "ball_query": (
        mmcv_points.ball_query,
        [shape(1, 1024, 32, dtype=np.int32), CENTERS, POINTS],
        (1, 20_000, 1024, 32, 0.0, 0.2),
    ),
    "knn": (mmcv_points.knn, [POINTS, CENTERS], (1, 20_000, 1024, 32)),
    "furthest_point_sampling": (
        mmcv_points.furthest_point_sampling,
        [shape(1, 20_000), POINTS],
        (1, 20_000, 1024),
    ),
    "nms": (mmcv_box.nms, [BOXES, SCORES], (0.5, 0)),
    "nms_rotated": (mmcv_box.nms_rotated, [ROTATED_BOXES, SCORES, ORDER, ROTATED_BOXES, NONE], (0.5, False)),
    "hard_voxelize": (
        mmcv_voxel.hard_voxelize,
        [VOXELS, CELLS, COUNTS, CLOUD, SIZES, RANGE],
        (32, 40_000, 3, True),
    ),
    "dynamic_voxelize": (mmcv_voxel.dynamic_voxelize, [shape(20_000, 3, dtype=np.int32), CLOUD, SIZES, RANGE], (3,)),
}
"""Calls with the sizes of models: the function, its arrays and its attributes."""


@pytest.mark.parametrize("name", sampled(CALLS, 3, slow=7))
def test_memory_is_limited_to_a_few_arguments(name: str) -> None:
    function, arrays, attributes = CALLS[name]
    function = with_all_parameters(function)
    assert_little_memory(lambda *arguments: function(*arguments, *attributes), *arrays)


def test_knn_rejects_more_than_100_neighbors() -> None:
    points = jnp.zeros((1, 200, 3))
    with pytest.raises(ValueError, match="nsample is 101"):
        with_all_parameters(mmcv_points.knn)(points, points, 1, 200, 200, 101)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": (4, 3, 2, 2)}, "does not fit 4 channels"),
        ({"offset": (2, 8, 5, 4)}, "offset has shape"),
        ({"offset": (2, 16, 4, 4)}, "offset has shape"),
        ({"input": (2, 4, 1, 5)}, "leaves a result of size"),
        ({"step": 3}, "im2col_step is 3"),
    ],
)
def test_deformable_convolutions_reject_mismatched_arguments(changes: dict[str, Any], message: str) -> None:
    arguments = {
        "input": (4 if "step" in changes else 2, 4, 5, 5),
        "weight": (4, 4, 2, 2),
        "offset": (2, 8, 4, 4),
        "step": 64,
    }
    arguments |= changes
    arrays = [jnp.zeros(arguments[name]) for name in ("input", "weight", "offset")]
    with pytest.raises(ValueError, match=message):
        convolve = with_all_parameters(mmcv_deform.deform_conv)
        convolve(arrays[0], arrays[0], *arrays, 2, 2, 1, 1, 0, 0, 1, 1, 1, 1, arguments["step"])


def test_invalid_modes_and_points_are_rejected() -> None:
    maps, rois = jnp.zeros((1, 2, 4, 4)), jnp.zeros((1, 5))
    with pytest.raises(ValueError, match="pool_mode is 2"):
        roi_align.roi_align(maps, rois, 2, 2, 2, 2, 1.0, True, out=())
    with pytest.raises(ValueError, match="points is 4"):
        mmcv_rotated.rotated_feature_align(maps, jnp.zeros((1, 4, 4, 5)), 1.0, 4)
    with pytest.raises(ValueError, match="3 orientations"):
        mmcv_rotated.riroi_align_rotated(maps, jnp.zeros((1, 6)), 2, 2, 2, 3, 1.0, False)
    with pytest.raises(ValueError, match="offset"):
        deform_roi_pool.deform_roi_pool(maps, rois, jnp.zeros((1, 2, 2, 3)), 2, 2, 2, 1.0, 0.1)
