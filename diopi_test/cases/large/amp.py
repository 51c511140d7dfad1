"""Large cases of automatic mixed precision."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import PlacedShape, exempt_from_large, grow, register_grown
from diopi_test.cases.layouts import strides

register_grown(
    "diopiAmpForeachNonFiniteCheckAndUnscaleInp",
    cases=[
        grow("finite", "model", scaled_grads=[(263, 257), (4097,), (1, 3, 1, 5)]),
        grow(
            "infinite",
            "half-far-apart",
            Dtype.float16,
            scaled_grads=[(509,), PlacedShape((131, 517), strides(1031, 2)), (3, 1031)],
        ),
    ],
)
exempt_from_large("all its tensors have one element", "diopiAmpUpdateScaleInp")
