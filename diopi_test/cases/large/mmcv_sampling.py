"""Large cases of resampling and rearranging: maps of some 2,000 to 10,000 positions, or of many channels."""

from diopi_proto.types import Dtype
from diopi_test.cases.layouts import strided
from diopi_test.cases.mmcv_sampling.carafe import UP, carafe
from diopi_test.cases.mmcv_sampling.correlation import CORRELATE, correlated
from diopi_test.cases.mmcv_sampling.masked_conv import CHOICE, to_columns, to_image
from diopi_test.cases.mmcv_sampling.psa_mask import COLLECT, psa
from diopi_test.cases.mmcv_sampling.tin_shift import SHIFT, shifted
from diopi_test.cases.mmcv_sampling.upfirdn2d import FILTER, filtered
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

F16 = (Dtype.float16,)

register(
    "diopiCarafeMmcv",
    "diopiCarafeBackwardMmcv",
    "diopiCarafeNaiveMmcv",
    "diopiCarafeNaiveBackwardMmcv",
    templates=(
        UP.with_sizes("wide-kernel", shape=(1, 7, 53, 47), k=5),
        UP.with_sizes("half-groups", shape=(2, 33, 13, 11), g=3, s=3).replace(layout=strided, dtypes=F16),
    ),
    derive=carafe,
    level=LARGE,
)
register(
    "diopiCorrelationMmcv",
    "diopiCorrelationBackwardMmcv",
    templates=(
        CORRELATE.with_sizes("patch", shape=(1, 31, 53, 47), patch=(3, 5), dilation_patch=(2, 1)),
        CORRELATE.with_sizes(
            "half-kernel", shape=(2, 67, 23, 29), kernel=(3, 3), padding=(1, 1), stride=(2, 1)
        ).replace(dtypes=F16),
    ),
    derive=correlated,
    level=LARGE,
)
register(
    "diopiUpfirdn2dOpMmcv",
    templates=(
        FILTER.with_sizes("up", shape=(1, 7, 101, 97), kernel=(4, 4), up=(2, 2), rows=(2, 1), columns=(2, 1)),
        FILTER.with_sizes("half-down", shape=(3, 11, 47, 53), kernel=(7, 5), down=(2, 3), rows=(3, 3)).replace(
            layout=strided, dtypes=F16
        ),
    ),
    derive=filtered,
    level=LARGE,
)
register(
    "diopiPsamaskMmcv",
    "diopiPsamaskBackwardMmcv",
    templates=(
        COLLECT.with_sizes("collected", n=1, feature=(13, 11), mask=(25, 21), half=(12, 10)),
        COLLECT.with_sizes("half-distributed", n=3, feature=(17, 19), mask=(15, 17), half=(7, 8), psa_type=1).replace(
            dtypes=F16
        ),
    ),
    derive=psa,
    level=LARGE,
)
POSITIONS = (
    CHOICE.with_sizes("some", image=(67, 41, 43), count=1031),
    CHOICE.with_sizes("half-all", image=(11, 79, 83), count=None, kernel=(1, 2), padding=(0, 1)).replace(
        layout=strided, dtypes=F16
    ),
)
register("diopiMaskedIm2colMmcv", templates=POSITIONS, derive=to_columns, level=LARGE)
register("diopiMaskedCol2imMmcv", templates=POSITIONS, derive=to_image, level=LARGE)
register(
    "diopiTinShiftMmcv",
    "diopiTinShiftBackwardMmcv",
    templates=(
        SHIFT.with_sizes("frames", shape=(2, 16, 66, 47), groups=6, low=-5, high=5),
        SHIFT.with_sizes("half-places", shape=(1, 9, 4, 2803), groups=4).replace(layout=strided, dtypes=F16),
    ),
    derive=shifted,
    level=LARGE,
)
