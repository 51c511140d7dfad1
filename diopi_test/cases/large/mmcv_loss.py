"""Large cases of MMCV's losses."""

from diopi_test.cases.layouts import strided
from diopi_test.cases.mmcv_loss import WEIGHTS, points, sigmoid, softmax
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

register(
    "diopiSigmoidFocalLossMmcv",
    "diopiSigmoidFocalLossBackwardMmcv",
    templates=(
        sigmoid("many", (811, 83), weights=WEIGHTS),
        sigmoid("background", (1021, 79), gamma=1.5, layout=strided),
    ),
    level=LARGE,
)
register(
    "diopiSoftmaxFocalLossMmcv",
    "diopiSoftmaxFocalLossBackwardMmcv",
    templates=(softmax("many", (811, 83), weights=WEIGHTS), softmax("no-target", (70_001, 3), low=-1)),
    level=LARGE,
)
register(
    "diopiChamferDistanceMmcv",
    "diopiChamferDistanceBackwardMmcv",
    templates=(points("many", 2, 701, 503), points("many-batches", 3001, 11, 13)),
    level=LARGE,
)
