"""Large cases of arithmetic on two tensors, or a tensor and a number."""

from diopi_proto.interface import prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import At, grown, like, stretched
from diopi_test.cases.layouts import strides

_OWN = ("diopiEqual", "diopiForeach")

stretched(
    *(
        name
        for name, one in prototypes().items()
        if one.family == "arithmetic" and one.elementwise and name == one.base and not name.startswith(_OWN)
    )
)
grown(
    "diopiEqual",
    cases=[
        like("same-matrix", "same", input=(263, 257)),
        like("same-matrix", "same-half", Dtype.float16, input=At((70_001,), strides(3))),
        like("last-long", "last-differs", input=(70_001,)),
    ],
)
grown(
    "diopiForeachaddScalar",
    "diopiForeachmulScalar",
    "diopiForeachmulTensor",
    cases=[
        like("three", "models", inputs=[(263, 257), (4097,), (1, 3, 1, 5)]),
        like("three", "far-apart", Dtype.float16, inputs=[(509,), At((131, 511), strides(1031, 2)), (65_537,)]),
    ],
)
