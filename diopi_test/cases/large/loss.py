"""Large cases of losses and their gradients: vocabularies, many samples, images of labels, long sequences."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides
from diopi_test.cases.loss.reduced import NONE
from diopi_test.cases.loss.sequences import CtcBatch, alignment
from diopi_test.cases.model import LARGE
from diopi_test.cases.template import register
from diopi_test.cases.tensors import random_positions

HALF = Dtype.float16
FAR = PlacedShape((131, 517), strides(1031, 2))

ELEMENTWISE = ("diopiMSELoss", "diopiBCELoss", "diopiBCEWithLogits", "diopiSmoothL1Loss")

register_grown(
    *ELEMENTWISE,
    cases=[
        grow("none", "each", input=(263, 257)),
        grow("mean", "mean", input=(70_001,)),
        grow("mean", "half-far-apart", HALF, input=FAR),
    ],
)
register_grown(
    *(f"{name}Backward" for name in ELEMENTWISE),
    "diopiSigmoidFocalLossBackward",
    cases=[
        grow("none", "each", input=(263, 257)),
        grow("mean", "mean", input=(70_001,)),
        grow("mean", "half-far-apart", HALF, input=FAR),
    ],
)
register_grown(
    "diopiSigmoidFocalLoss",
    cases=[
        grow("none", "each", inputs=(263, 257)),
        grow("mean", "mean", inputs=(70_001,)),
        grow("mean", "half-far-apart", HALF, inputs=FAR),
    ],
)

CLASSES = (
    ("none", "vocabulary", (11, 32_003), (11,), 32_003, None),
    ("mean-weight", "many-samples", (70_001, 3), (70_001,), 3, None),
    ("mean-weight", "pixels", (3, 19, 67, 41), (3, 67, 41), 19, None),
    ("mean-weight", "half", (131, 1031), (131,), 1031, HALF),
)
"""The label of the small case, label, shapes of input and target, number of classes, and element type."""

for name in ("diopiCrossEntropyLoss", "diopiNLLLoss", "diopiNLLLossV2"):
    register_grown(
        name,
        cases=[
            grow(
                small,
                label,
                dtype,
                input=shape,
                target=random_positions(*target, below=classes),
                **({"weight": (classes,)} if "weight" in small else {}),
            )
            for small, label, shape, target, classes, dtype in CLASSES
        ],
    )
    register_grown(
        f"{name}Backward",
        cases=[
            grow(
                small,
                label,
                dtype,
                input=shape,
                target=random_positions(*target, below=classes),
                **({"weight": (classes,)} if "weight" in small else {"grad_output": target}),
            )
            for small, label, shape, target, classes, dtype in CLASSES
        ],
    )


def _labels(count: int) -> list[int]:
    """Return labels from an alphabet of 40, in which some equal their predecessor."""
    return [1 + number * number // 3 % 40 for number in range(count)]


SPEECH = CtcBatch(257, 41, [_labels(61), _labels(37), _labels(89)], [257, 131, 251])
ALIGNMENTS = (alignment("speech", SPEECH), alignment("speech-none", SPEECH, NONE))

register(
    "diopiCTCLoss",
    "diopiCTCLossBackward",
    templates=[template.replace(dtypes=(Dtype.float32,)) for template in ALIGNMENTS],
    level=LARGE,
)
