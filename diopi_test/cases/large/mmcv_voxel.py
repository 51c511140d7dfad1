"""Large cases of sparse convolution and pooling: thousands of rows, in the 27 positions of a cube."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import LARGE
from diopi_test.cases.layouts import strided
from diopi_test.cases.mmcv_voxel import CONVOLVE, POOL, convolved, exactly, pooled, pooled_backward
from diopi_test.cases.template import register

CUBE = (3, 3, 3)
F16 = (Dtype.float16,)

register(
    "diopiIndiceConvMmcv",
    "diopiFusedIndiceConvBatchnormMmcv",
    templates=(
        CONVOLVE.but("cube", rows=4099, outputs=3001, pairs=2011, ci=17, co=13, kernel=CUBE),
        CONVOLVE.but(
            "half-submanifold",
            rows=1031,
            outputs=1031,
            pairs=1031,
            ci=67,
            co=31,
            submanifold=1,
            kernel=CUBE,
            dtypes=F16,
            layout=strided,
        ),
    ),
    derive=convolved,
    level=LARGE,
)
POOLS = (
    POOL.but("cube", rows=5003, outputs=3001, pairs=2011, ci=17, kernel=CUBE),
    POOL.but("half-wide", rows=1031, outputs=523, pairs=401, ci=131, kernel=CUBE, dtypes=F16, layout=strided),
)
register("diopiIndiceMaxpoolMmcv", templates=POOLS, derive=pooled, level=LARGE)
register(
    "diopiIndiceMaxpoolBackwardMmcv",
    templates=[exactly(pool) for pool in POOLS],
    derive=pooled_backward,
    level=LARGE,
)
