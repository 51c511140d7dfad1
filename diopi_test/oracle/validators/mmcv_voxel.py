"""Voxels in any order, of any of their points."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from diopi_test.oracle.validators import Answer, Array, Problems, validates


@validates("diopiHardVoxelizeMmcv")
def hard_voxelize(answer: Answer) -> Problems:
    """Each voxel is a cell with points of its own, as many of them as there is room for; what is left over is 0."""
    given = answer.arguments
    owned = _points_by_cell(given["points"], given["voxel_size"], given["coors_range"])
    voxels, coors, counts = (answer.results[name] for name in ("voxels", "coors", "num_points_per_voxel"))
    made = min(len(owned), given["max_voxels"])
    taken = set()
    for voxel in range(made):
        cell = tuple(int(place) for place in coors[voxel])
        if cell in taken or cell not in owned:
            yield f"coors: row {voxel} is {cell}, {'which came before' if cell in taken else 'where no point is'}"
            continue
        taken.add(cell)
        count, room = int(counts[voxel]), min(len(owned[cell]), given["max_points"])
        if count != room:
            yield f"num_points_per_voxel: voxel {voxel} has {count} points, expected {room}"
        elif not Counter(map(_identity, voxels[voxel, :count])) <= Counter(map(_identity, owned[cell])):
            yield f"voxels: voxel {voxel} has points that are not in cell {cell}, or has one twice"
        elif np.any(voxels[voxel, count:] != 0):
            yield f"voxels: voxel {voxel} has more than its {count} points"
    for name, result in (("voxels", voxels), ("coors", coors), ("num_points_per_voxel", counts)):
        if np.any(result[made:] != 0):
            yield f"{name}: there are {made} voxels, and something beyond them"


def _points_by_cell(points: Array, voxel_size: Array, coors_range: Array) -> dict[tuple[int, ...], list[Array]]:
    """The points in each cell (z, y, x) that has any."""
    owned = defaultdict(list)
    sizes = [round(float(extent)) for extent in (coors_range[3:] - coors_range[:3]) / voxel_size]
    for point in points:
        cell = [int(np.floor((point[i] - coors_range[i]) / voxel_size[i])) for i in range(3)]
        if all(0 <= place < size for place, size in zip(cell, sizes, strict=True)):
            owned[tuple(reversed(cell))].append(point)
    return dict(owned)


def _identity(point: Array) -> bytes:
    """What two points have in common that are the same number for number; all NaN are one."""
    return np.where(np.isnan(point), np.nan, point).tobytes()
