"""Large cases of optimizer steps: layers of a model, one by one and in lists."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import Growth, PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides

FAR = PlacedShape((131, 517), strides(1031, 2))
LISTS = ("params", "grads", "exp_avgs", "exp_avg_sqs")


def _steps(small: str) -> list[Growth]:
    return [
        grow(f"{small}-matrix", "layer", param=(263, 257)),
        grow(f"{small}-matrix", "half-far-apart", Dtype.float16, param=FAR),
    ]


for names, small in (
    (("diopiSgd", "diopiRmsprop"), "all"),
    (("diopiAdam", "diopiAdamW"), "amsgrad"),
    (("diopiAdadelta",), "decay"),
):
    register_grown(*names, cases=_steps(small))

LAYERS = [(263, 257), (4097,), (1, 3, 1, 5)]
HALF_LAYERS = [(509,), FAR, (3, 1031)]
register_grown(
    "diopiFusedAdamW",
    cases=[
        grow("decay", "model", **dict.fromkeys(LISTS, LAYERS)),
        grow("decay", "half-far-apart", Dtype.float16, **dict.fromkeys(LISTS, HALF_LAYERS)),
    ],
)
register_grown(
    "diopiClipGradNorm",
    cases=[grow("two", "model", grads=LAYERS), grow("two", "half-far-apart", Dtype.float16, grads=HALF_LAYERS)],
)
