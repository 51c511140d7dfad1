"""Large cases of normalisation layers and vector norms: batches of images, long rows, many rows."""

from collections.abc import Sequence

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import At, Shape, grown, like
from diopi_test.cases.layouts import channels_last, strides
from diopi_test.cases.template import TensorTemplate, tensor

IMAGES = (5, 37, 29, 31)
"""A batch whose channels are sums of 4,495 numbers."""

POINTS = (2053, 67)
"""A batch of vectors."""

WIDE = (3, 512, 7, 7)
"""As the last layers of a network have it."""

HALF = Dtype.float16

BATCHES = (("images", IMAGES, None), ("points", POINTS, None), ("half-wide", WIDE, HALF))

grown(
    "diopiBatchNorm",
    cases=[
        *(like("training", label, of, input=shape, weight=shape[1:2]) for label, shape, of in BATCHES),
        like(
            "training", "channels-last", input=At(IMAGES, channels_last), weight=(37,), results={"out": channels_last}
        ),
        like("evaluation", "evaluation", input=(70_001, 3), weight=(3,)),
    ],
)
grown("diopiBatchNormStats", cases=[like("training", label, of, input=shape) for label, shape, of in BATCHES])
grown(
    "diopiBatchNormGatherStatsWithCounts",
    cases=[
        like("plain", "images", input=IMAGES, mean_all=(11, 37), running_mean=(37,), counts=(11,)),
        like("plain", "half-wide", HALF, input=WIDE, mean_all=(131, 512), running_mean=(512,), counts=(131,)),
    ],
)
grown(
    "diopiBatchNormBackwardReduce",
    "diopiBatchNormElemt",
    cases=[like("plain", label, of, input=shape, weight=shape[1:2]) for label, shape, of in BATCHES],
)
grown(
    "diopiBatchNormBackwardElemt",
    cases=[like("plain", label, of, input=shape, weight=shape[1:2], count=(131,)) for label, shape, of in BATCHES],
)
grown(
    "diopiBatchNormBackward",
    cases=[
        *(like("training", label, of, input=shape, weight=shape[1:2]) for label, shape, of in BATCHES),
        like("evaluation", "evaluation", input=(70_001, 3), weight=(3,)),
    ],
)
grown(
    "diopiGroupNorm",
    cases=[
        like("plain", "images", input=(3, 36, 29, 31), weight=(36,), num_groups=12),
        like("plain", "half-wide", HALF, input=WIDE, weight=(512,), num_groups=32),
    ],
)
grown(
    "diopiGroupNormBackward",
    cases=[
        like("plain", "images", input=(5, 36, 29, 31), weight=(36,), mean=(5, 3)),
        like("plain", "half-wide", HALF, input=(3, 513, 7, 7), weight=(513,), mean=(3, 3)),
    ],
)
grown(
    "diopiInstanceNorm",
    "diopiInstanceNormBackward",
    cases=[
        like("plain", "images", input=IMAGES, scale=(37,)),
        like("plain", "half-wide", HALF, input=WIDE, scale=(512,)),
    ],
)

LAYERS = (
    ("many-rows", (4099, 67), (67,), None),
    ("long-rows", (5, 32_003), (32_003,), None),
    ("half-wide", (131, 1031), (1031,), HALF),
    ("planes", (17, 61, 67), (61, 67), None),
)
"""What is normalised: label, shape, its last axes and the element type."""

grown(
    "diopiLayerNorm",
    cases=[
        like("plain", label, of, input=shape, weight=last, normalized_shape=last) for label, shape, last, of in LAYERS
    ],
)
grown(
    "diopiLayerNormBackward",
    cases=[
        like("plain", label, of, input=shape, weight=last, normalized_shape=last, mean=shape[: -len(last)])
        for label, shape, last, of in LAYERS
    ],
)
grown(
    "diopiLayerNormGB",
    cases=[
        like("plain", label, of, input=shape, weight=last, begin_norm_axis=len(shape) - len(last))
        for label, shape, last, of in LAYERS
    ],
)
grown(
    "diopiLayerNormGBBackward",
    cases=[
        like(
            "plain",
            label,
            of,
            input=shape,
            weight=last,
            begin_norm_axis=len(shape) - len(last),
            running_mean=shape[: -len(last)],
        )
        for label, shape, last, of in LAYERS
    ],
)

ROWS: Sequence[tuple[str, Shape | At, Dtype | None]] = (
    ("long-rows", (5, 65_537), None),
    ("many-rows", (70_001, 3), None),
    ("half-far-apart", At((263, 517), strides(1031, 2)), HALF),
)
grown("diopiNorm", "diopiLinalgVecNorm", cases=[like("rows", label, of, input=shape) for label, shape, of in ROWS])
grown(
    "diopiNormBackward",
    cases=[
        like("rows", label, of, self=shape, norm=(length,))
        for (label, shape, of), length in zip(ROWS, (5, 70_001, 263), strict=True)
    ],
)
grown(
    "diopiForeachnormScalar",
    cases=[
        like("several", "models", inputs=[(263, 257), (4097,), (2, 1, 3)]),
        like("several", "half", HALF, inputs=[(32_003,), At((131, 511), strides(1031, 2)), (7, 1, 509)]),
    ],
)


def _of_unit(place: Shape | At) -> TensorTemplate:
    """Rows to normalise."""
    return tensor(*place.shape, layout=place.layout) if isinstance(place, At) else tensor(*place)


grown("diopiNormalize", cases=[like("rows", label, of, input=_of_unit(shape)) for label, shape, of in ROWS])
grown(
    "diopiNormalizeBackward",
    cases=[like("rows", label, of, input=_of_unit(shape), grad_output=shape) for label, shape, of in ROWS],
)
