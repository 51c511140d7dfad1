"""Large cases of arithmetic on two tensors, or a tensor and a number."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides

register_grown(
    "diopiEqual",
    cases=[
        grow("same-matrix", "same", input=(263, 257)),
        grow("same-matrix", "same-half", Dtype.float16, input=PlacedShape((70_001,), strides(3))),
        grow("last-long", "last-differs", input=(70_001,)),
    ],
)
register_grown(
    "diopiForeachaddScalar",
    "diopiForeachmulScalar",
    "diopiForeachmulTensor",
    cases=[
        grow("three", "models", inputs=[(263, 257), (4097,), (1, 3, 1, 5)]),
        grow(
            "three", "far-apart", Dtype.float16, inputs=[(509,), PlacedShape((131, 511), strides(1031, 2)), (65_537,)]
        ),
    ],
)
