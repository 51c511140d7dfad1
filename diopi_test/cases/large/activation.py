"""Large cases of activation functions and their gradients."""

from diopi_proto.types import Dtype
from diopi_test.cases.activation import ELEMENTWISE
from diopi_test.cases.large.makers import PlacedShape, grow, register_grown, register_stretched
from diopi_test.cases.layouts import strides, transposed

register_stretched(*ELEMENTWISE)

register_grown(
    "diopiSoftmax",
    "diopiLogSoftmax",
    cases=[
        grow("rows", "vocabulary", input=(7, 32_003)),
        grow("rows", "many-rows", input=(70_001, 3), dim=-1),
        grow("rows", "first-axis", input=PlacedShape((4097, 19), transposed), dim=0),
        grow(
            "rows",
            "attention",
            Dtype.float16,
            input=PlacedShape((2, 3, 5, 67, 129), strides(301_003, 99_991, 19_973, 263, 2)),
        ),
    ],
)
register_grown(
    "diopiSoftmaxBackward",
    "diopiLogSoftmaxBackward",
    cases=[
        grow("rows", "vocabulary", grad_output=(3, 32_003)),
        grow("rows", "many-rows", grad_output=(70_001, 3)),
        grow(
            "rows",
            "attention",
            Dtype.float16,
            grad_output=PlacedShape((30, 67, 129), strides(19_973, 263, 2)),
            output=(30, 67, 129),
        ),
    ],
)
