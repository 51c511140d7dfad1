"""Large cases of normalisation layers and vector norms: batches of images, long rows, many rows."""

from collections.abc import Sequence

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import PlacedShape, Shape, grow, register_grown
from diopi_test.cases.layouts import channels_last, strides
from diopi_test.cases.template import TensorTemplate, tensor

IMAGES = (5, 37, 29, 31)
"""A batch whose channels are sums of 4,495 numbers."""

POINTS = (2053, 67)
"""A batch of vectors."""

WIDE = (3, 512, 7, 7)
"""The shape of the last layers of a network."""

HALF = Dtype.float16

BATCHES = (("images", IMAGES, None), ("points", POINTS, None), ("half-wide", WIDE, HALF))

register_grown(
    "diopiBatchNorm",
    cases=[
        *(grow("training", label, dtype, input=shape, weight=shape[1:2]) for label, shape, dtype in BATCHES),
        grow(
            "training",
            "channels-last",
            input=PlacedShape(IMAGES, channels_last),
            weight=(37,),
            results={"out": channels_last},
        ),
        grow("evaluation", "evaluation", input=(70_001, 3), weight=(3,)),
    ],
)
register_grown(
    "diopiBatchNormStats", cases=[grow("training", label, dtype, input=shape) for label, shape, dtype in BATCHES]
)
register_grown(
    "diopiBatchNormGatherStatsWithCounts",
    cases=[
        grow("plain", "images", input=IMAGES, mean_all=(11, 37), running_mean=(37,), counts=(11,)),
        grow("plain", "half-wide", HALF, input=WIDE, mean_all=(131, 512), running_mean=(512,), counts=(131,)),
    ],
)
register_grown(
    "diopiBatchNormBackwardReduce",
    "diopiBatchNormElemt",
    cases=[grow("plain", label, dtype, input=shape, weight=shape[1:2]) for label, shape, dtype in BATCHES],
)
register_grown(
    "diopiBatchNormBackwardElemt",
    cases=[
        grow("plain", label, dtype, input=shape, weight=shape[1:2], count=(131,)) for label, shape, dtype in BATCHES
    ],
)
register_grown(
    "diopiBatchNormBackward",
    cases=[
        *(grow("training", label, dtype, input=shape, weight=shape[1:2]) for label, shape, dtype in BATCHES),
        grow("evaluation", "evaluation", input=(70_001, 3), weight=(3,)),
    ],
)
register_grown(
    "diopiGroupNorm",
    cases=[
        grow("plain", "images", input=(3, 36, 29, 31), weight=(36,), num_groups=12),
        grow("plain", "half-wide", HALF, input=WIDE, weight=(512,), num_groups=32),
    ],
)
register_grown(
    "diopiGroupNormBackward",
    cases=[
        grow("plain", "images", input=(5, 36, 29, 31), weight=(36,), mean=(5, 3)),
        grow("plain", "half-wide", HALF, input=(3, 513, 7, 7), weight=(513,), mean=(3, 3)),
    ],
)
register_grown(
    "diopiInstanceNorm",
    "diopiInstanceNormBackward",
    cases=[
        grow("plain", "images", input=IMAGES, scale=(37,)),
        grow("plain", "half-wide", HALF, input=WIDE, scale=(512,)),
    ],
)

LAYERS = (
    ("many-rows", (4099, 67), (67,), None),
    ("long-rows", (5, 32_003), (32_003,), None),
    ("half-wide", (131, 1031), (1031,), HALF),
    ("planes", (17, 61, 67), (61, 67), None),
)
"""Label, shape, normalized shape and element type."""

register_grown(
    "diopiLayerNorm",
    cases=[
        grow("plain", label, dtype, input=shape, weight=last, normalized_shape=last)
        for label, shape, last, dtype in LAYERS
    ],
)
register_grown(
    "diopiLayerNormBackward",
    cases=[
        grow("plain", label, dtype, input=shape, weight=last, normalized_shape=last, mean=shape[: -len(last)])
        for label, shape, last, dtype in LAYERS
    ],
)
register_grown(
    "diopiLayerNormGB",
    cases=[
        grow("plain", label, dtype, input=shape, weight=last, begin_norm_axis=len(shape) - len(last))
        for label, shape, last, dtype in LAYERS
    ],
)
register_grown(
    "diopiLayerNormGBBackward",
    cases=[
        grow(
            "plain",
            label,
            dtype,
            input=shape,
            weight=last,
            begin_norm_axis=len(shape) - len(last),
            running_mean=shape[: -len(last)],
        )
        for label, shape, last, dtype in LAYERS
    ],
)

ROWS: Sequence[tuple[str, Shape | PlacedShape, Dtype | None]] = (
    ("long-rows", (5, 65_537), None),
    ("many-rows", (70_001, 3), None),
    ("half-far-apart", PlacedShape((263, 517), strides(1031, 2)), HALF),
)
register_grown(
    "diopiNorm", "diopiLinalgVecNorm", cases=[grow("rows", label, dtype, input=shape) for label, shape, dtype in ROWS]
)
register_grown(
    "diopiNormBackward",
    cases=[
        grow("rows", label, dtype, self=shape, norm=(length,))
        for (label, shape, dtype), length in zip(ROWS, (5, 70_001, 263), strict=True)
    ],
)
register_grown(
    "diopiForeachnormScalar",
    cases=[
        grow("several", "models", inputs=[(263, 257), (4097,), (2, 1, 3)]),
        grow("several", "half", HALF, inputs=[(32_003,), PlacedShape((131, 511), strides(1031, 2)), (7, 1, 509)]),
    ],
)


def _unit_rows(place: Shape | PlacedShape) -> TensorTemplate:
    """Return rows to normalize."""
    return tensor(*place.shape, layout=place.layout) if isinstance(place, PlacedShape) else tensor(*place)


register_grown(
    "diopiNormalize", cases=[grow("rows", label, dtype, input=_unit_rows(shape)) for label, shape, dtype in ROWS]
)
register_grown(
    "diopiNormalizeBackward",
    cases=[grow("rows", label, dtype, input=_unit_rows(shape), grad_output=shape) for label, shape, dtype in ROWS],
)
