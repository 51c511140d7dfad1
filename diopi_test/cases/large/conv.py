"""Large cases of convolutions: images with many channels, large images with few channels, depthwise kernels."""

from collections.abc import Iterator

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.conv import Convolution, convolution_cases
from diopi_test.cases.large.makers import PlacedShape, grow, register_grown
from diopi_test.cases.layouts import channels_last, strides
from diopi_test.cases.model import LARGE, Case, cases_for
from diopi_test.cases.template import CaseTemplate

HALF = (Dtype.float16,)
SQUARE, POINT = (3, 3, 3), (1, 1, 1)

IMAGES = (
    CaseTemplate(
        "images", Convolution(input=(2, 29, 31), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(37, 41), batch=2)
    ),
    CaseTemplate("half-points", Convolution(input=(1, 7, 7), kernel=POINT, channels=(512, 131), batch=11), dtypes=HALF),
    CaseTemplate(
        "wide",
        Convolution(input=(1, 7, 7), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(257, 37)),
        layout=channels_last,
    ),
    CaseTemplate(
        "by-channel",
        Convolution(input=(2, 29, 31), kernel=(1, 3, 3), dilation=(1, 2, 2), channels=(131, 131), groups=131, batch=1),
    ),
    CaseTemplate(
        "groups",
        Convolution(
            input=(3, 17, 19), kernel=SQUARE, stride=(1, 2, 2), channels=(32, 64), groups=8, batch=1, bias=False
        ),
    ),
)
STEM = CaseTemplate(
    "stem",
    Convolution(input=(1, 113, 112), kernel=(1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), channels=(3, 23), batch=1),
)
"""The first layer of a network; for a transposed convolution it would produce an image of a million elements."""

RANKS, FORMS = ("2d", "3d"), ("", "Backward")


@cases_for(
    *(f"diopi{kind}{rank}{form}" for kind in ("Convolution", "ConvTranspose") for rank in RANKS for form in FORMS),
    level=LARGE,
)
def convolutions(prototype: Prototype) -> Iterator[Case]:
    more = () if "Transpose" in prototype.name else (STEM,)
    return convolution_cases(prototype, [*IMAGES, *more])


PATCHES = {"kernel_size": (3, 5), "stride": (1, 2), "padding": (1, 2)}

register_grown(
    "diopiIm2Col",
    cases=[
        grow("plain", "images", input=(2, 7, 67, 41), **PATCHES),
        grow(
            "plain",
            "half-far-apart",
            Dtype.float16,
            input=PlacedShape((2, 3, 67, 71), strides(100_003, 20_011, 263, 2)),
            **PATCHES,
        ),
    ],
)
register_grown(
    "diopiCol2Im",
    cases=[
        grow("plain", "images", input=(2, 7 * 15, 67 * 21), output_size=(67, 41), **PATCHES),
        grow("plain", "half", Dtype.float16, input=(2, 3 * 15, 67 * 36), output_size=(67, 71), **PATCHES),
    ],
)
