"""Large cases of boxes and regions of interest.

Of boxes there are some 2,000, each of which is compared with all others.
"""

from diopi_proto.types import Dtype
from diopi_test.cases.detection import Pooling, boxes, pooling
from diopi_test.cases.domains import integer_values
from diopi_test.cases.layouts import strided
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

SCATTERED = {"_corners": integer_values(-60, 60)}

register(
    "diopiNms",
    templates=(
        boxes("many", 2053, 0.37, domains=SCATTERED),
        boxes("half", 517, 0.25, layout=strided, domains=SCATTERED, dtypes=(Dtype.float16,)),
    ),
    level=LARGE,
)
register(
    "diopiRoiAlign",
    "diopiRoiAlignBackward",
    templates=(
        pooling("pyramid", Pooling((2, 37, 29, 31), (7, 7), 67)),
        pooling("half-unaligned", Pooling((3, 131, 13, 11), (3, 5), 41, 0.25, aligned=False), dtypes=(Dtype.float16,)),
    ),
    level=LARGE,
)
