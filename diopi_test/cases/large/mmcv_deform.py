"""Large cases of deformable functions: 64 channels of 50 × 50 elements, and attention of hundreds of queries."""

from diopi_proto.types import Dtype
from diopi_test.cases.layouts import strided
from diopi_test.cases.mmcv_deform import ATTEND, CONV, CONVOLVING, attention, convolution
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

F16 = (Dtype.float16,)
IMAGE = CONV.with_sizes("many-channels", shape=(1, 64, 50, 50), outputs=5, kernel=(3, 3))

register("diopiDeformConvMmcv", "diopiModulatedDeformConvMmcv", templates=(IMAGE,), derive=convolution, level=LARGE)
register(
    *(name for name in CONVOLVING if "Backward" in name),
    templates=(IMAGE.with_sizes("groups", shape=(1, 18, 63, 59), outputs=6, groups=3, deform_groups=2, stride=(2, 1)),),
    derive=convolution,
    level=LARGE,
)
register(
    "diopiMsDeformAttnMmcv",
    "diopiMsDeformAttnBackwardMmcv",
    templates=(
        ATTEND.with_sizes("many-queries", levels=((67, 61), (31, 29)), b=1, q=263, heads=3, d=5, points=3),
        ATTEND.with_sizes("half", levels=((47, 41), (13, 11)), b=2, q=131, heads=5, d=4).replace(
            dtypes=F16, layout=strided
        ),
    ),
    derive=attention,
    level=LARGE,
)
