"""Large cases of automatic mixed precision."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import At, grown, like, stay_small
from diopi_test.cases.layouts import strides

grown(
    "diopiAmpForeachNonFiniteCheckAndUnscaleInp",
    cases=[
        like("finite", "model", scaled_grads=[(263, 257), (4097,), (1, 3, 1, 5)]),
        like(
            "infinite",
            "half-far-apart",
            Dtype.float16,
            scaled_grads=[(509,), At((131, 517), strides(1031, 2)), (3, 1031)],
        ),
    ],
)
stay_small("all its tensors have one element", "diopiAmpUpdateScaleInp")
