"""Large cases of MMCV's synchronised batch normalisation and activation."""

from diopi_test.cases.layouts import channels_last
from diopi_test.cases.mmcv_norm import activation, batch, output
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register

register(
    "diopiSyncBnMeanMmcv",
    "diopiSyncBnVarMmcv",
    "diopiSyncBnBackwardParamMmcv",
    "diopiSyncBnBackwardDataMmcv",
    templates=(batch("many", (5, 67, 229)), batch("channels-last", (3, 131, 197), layout=channels_last)),
    level=LARGE,
)
register(
    "diopiSyncBnOutputMmcv",
    templates=(output("many", (5, 67, 229), group_size=8), output("alone", (7, 3, 4099), affine=False, running=False)),
    level=LARGE,
)
register(
    "diopiFusedBiasLeakyreluMmcv",
    templates=(
        activation("many", (3, 129, 13, 17)),
        activation("gradient", (11, 67, 101), grad=1, bias=False, layout=channels_last),
    ),
    level=LARGE,
)
