"""Large cases of oriented pooling and filters."""

from diopi_test.cases.mmcv_rotated import ALIGNED, FILTERED, ROTATING, ROTATION, aligned, filters, rotated
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

register(
    *ROTATING,
    templates=(ROTATION.with_sizes("pyramid", shape=(2, 36, 31, 33), bins=(5, 7), regions=41),),
    derive=rotated,
    level=LARGE,
)
register(
    "diopiRotatedFeatureAlignMmcv",
    "diopiRotatedFeatureAlignBackwardMmcv",
    templates=(ALIGNED.with_sizes("every-place", shape=(1, 67, 33, 31)),),
    derive=aligned,
    level=LARGE,
)
register(
    "diopiActiveRotatedFilterMmcv",
    "diopiActiveRotatedFilterBackwardMmcv",
    templates=(FILTERED.with_sizes("many-filters", shape=(37, 29, 8, 3, 3), rotations=8),),
    derive=filters,
    level=LARGE,
)
