"""The validator of hard voxelization, which sorts points into the cells (voxels) of a grid.

The voxels may be in any order. If a cell has more points than a voxel can contain, any of the points are valid.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates


@validates("diopiHardVoxelizeMmcv")
def hard_voxelize(call: CompletedCall) -> Problems:
    """Check that voxels are distinct cells with as many of their points as fit, and the remaining elements are 0."""
    arguments = call.arguments
    points_by_cell = _group_points_by_cell(arguments["points"], arguments["voxel_size"], arguments["coors_range"])
    voxels, coors, counts = (call.results[name] for name in ("voxels", "coors", "num_points_per_voxel"))
    voxel_count = min(len(points_by_cell), arguments["max_voxels"])
    seen = set()
    for voxel in range(voxel_count):
        cell = tuple(int(index) for index in coors[voxel])
        if cell in seen or cell not in points_by_cell:
            yield f"coors: row {voxel} is {cell}, {'which occurs twice' if cell in seen else 'which has no points'}"
            continue
        seen.add(cell)
        count, room = int(counts[voxel]), min(len(points_by_cell[cell]), arguments["max_points"])
        if count != room:
            yield f"num_points_per_voxel: voxel {voxel} has {count} points, expected {room}"
        elif not Counter(map(_point_key, voxels[voxel, :count])) <= Counter(map(_point_key, points_by_cell[cell])):
            yield f"voxels: voxel {voxel} has points that are not in cell {cell}, or has a point twice"
        elif np.any(voxels[voxel, count:] != 0):
            yield f"voxels: voxel {voxel} has more than its {count} points"
    for name, result in (("voxels", voxels), ("coors", coors), ("num_points_per_voxel", counts)):
        if np.any(result[voxel_count:] != 0):
            yield f"{name}: there are {voxel_count} voxels, and elements after them are not 0"


def _group_points_by_cell(points: Array, voxel_size: Array, coors_range: Array) -> dict[tuple[int, ...], list[Array]]:
    """Return the points of each nonempty cell; the key is the index of the cell in the order z, y, x.

    Args:
        points: The points, [points, features]; the first three features are x, y and z.
        voxel_size: The size of a cell along x, y and z.
        coors_range: The least x, y and z of the grid, then the largest ones.
    """
    points_by_cell = defaultdict(list)
    sizes = [round(float(extent)) for extent in (coors_range[3:] - coors_range[:3]) / voxel_size]
    for point in points:
        cell = [int(np.floor((point[i] - coors_range[i]) / voxel_size[i])) for i in range(3)]
        if all(0 <= index < size for index, size in zip(cell, sizes, strict=True)):
            points_by_cell[tuple(reversed(cell))].append(point)
    return dict(points_by_cell)


def _point_key(point: Array) -> bytes:
    """Return the bytes of a point as a dictionary key; all NaNs give the same bytes."""
    return np.where(np.isnan(point), np.nan, point).tobytes()
