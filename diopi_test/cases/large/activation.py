"""Large cases of activation functions and their gradients."""

from diopi_proto.types import Dtype
from diopi_test.cases.activation import ELEMENTWISE
from diopi_test.cases.large.makers import At, grown, like, stretched
from diopi_test.cases.layouts import strides, transposed

stretched(*ELEMENTWISE)

grown(
    "diopiSoftmax",
    "diopiLogSoftmax",
    cases=[
        like("rows", "vocabulary", input=(7, 32_003)),
        like("rows", "many-rows", input=(70_001, 3), dim=-1),
        like("rows", "first-axis", input=At((4097, 19), transposed), dim=0),
        like(
            "rows", "attention", Dtype.float16, input=At((2, 3, 5, 67, 129), strides(301_003, 99_991, 19_973, 263, 2))
        ),
    ],
)
grown(
    "diopiSoftmaxBackward",
    "diopiLogSoftmaxBackward",
    cases=[
        like("rows", "vocabulary", grad_output=(3, 32_003)),
        like("rows", "many-rows", grad_output=(70_001, 3)),
        like(
            "rows",
            "attention",
            Dtype.float16,
            grad_output=At((30, 67, 129), strides(19_973, 263, 2)),
            output=(30, 67, 129),
        ),
    ],
)
