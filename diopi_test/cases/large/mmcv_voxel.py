"""Large cases of voxels: a hundred thousand points; and of sparse convolution and pooling: thousands of rows.

Kernels have the 27 positions of a cube.
"""

from diopi_proto.types import Dtype
from diopi_test.cases.layouts import strided
from diopi_test.cases.mmcv_voxel import (
    CONVOLVE,
    LARGEST,
    MEANS,
    POOL,
    SUMMED,
    VOXELIZE,
    celled,
    convolved,
    convolved_backward,
    exactly,
    in_any_order,
    pooled,
    pooled_backward,
    reduced,
    reduced_backward,
    voxelized,
)
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import DtypeSelection, register

CUBE = (3, 3, 3)
F16 = (Dtype.float16,)

POINTS = (
    VOXELIZE.with_sizes("many-points", points=100_003, cells=(41, 37, 13), room=7, voxels=12_007),
    VOXELIZE.with_sizes("half-many-features", points=4099, features=67, cells=(7, 5, 3), room=53, voxels=101).replace(
        dtypes=F16
    ),
)
register(
    "diopiHardVoxelizeMmcv",
    templates=(*POINTS, in_any_order(POINTS[0].with_sizes(points=20_011).replace(layout=strided))),
    derive=voxelized,
    level=LARGE,
)
register("diopiDynamicVoxelizeMmcv", templates=POINTS, derive=celled, level=LARGE)

GROUPS = (
    SUMMED.with_sizes("sum", points=70_001, channels=5, grid=(13, 29, 31)).replace(
        dtypes=DtypeSelection.leading, smoke=False
    ),
    MEANS.with_sizes("half-mean", points=20_011, channels=67, grid=(5, 7, 11)).replace(
        dtypes=F16, smoke=False, layout=strided
    ),
    LARGEST.with_sizes("maximum", points=70_001, channels=5, grid=(13, 29, 31)).replace(
        dtypes=DtypeSelection.leading, smoke=False
    ),
)
register("diopiDynamicPointToVoxelMmcv", templates=GROUPS, derive=reduced, level=LARGE)
register("diopiDynamicPointToVoxelBackwardMmcv", templates=GROUPS, derive=reduced_backward, level=LARGE)

CONVOLUTIONS = (
    CONVOLVE.with_sizes("cube", rows=4099, outputs=3001, pairs=2011, ci=17, co=13, kernel=CUBE),
    CONVOLVE.with_sizes(
        "half-submanifold", rows=1031, outputs=1031, pairs=1031, ci=67, co=31, submanifold=1, kernel=CUBE
    ).replace(dtypes=F16, layout=strided),
)
register(
    "diopiIndiceConvMmcv",
    "diopiFusedIndiceConvBatchnormMmcv",
    templates=CONVOLUTIONS,
    derive=convolved,
    level=LARGE,
)
register("diopiIndiceConvBackwardMmcv", templates=CONVOLUTIONS, derive=convolved_backward, level=LARGE)
POOLS = (
    POOL.with_sizes("cube", rows=5003, outputs=3001, pairs=2011, ci=17, kernel=CUBE),
    POOL.with_sizes("half-wide", rows=1031, outputs=523, pairs=401, ci=131, kernel=CUBE).replace(
        dtypes=F16, layout=strided
    ),
)
register("diopiIndiceMaxpoolMmcv", templates=POOLS, derive=pooled, level=LARGE)
register(
    "diopiIndiceMaxpoolBackwardMmcv",
    templates=[exactly(pool) for pool in POOLS],
    derive=pooled_backward,
    level=LARGE,
)
