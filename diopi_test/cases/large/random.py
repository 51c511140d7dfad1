"""Large cases of random draws."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import Growth, PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides

PLANE, FAR = (263, 257), strides(1031, 2)
HALF = Dtype.float16


def _filling(name: str) -> list[Growth]:
    """Return a contiguous case, and a half-precision case whose rows are far apart."""
    return [
        grow("sample", "plane", results={name: PLANE}),
        grow("sample", "half", HALF, results={name: (70_001,)}),
    ]


for function, result in (
    ("diopiRandomInp", "inout"),
    ("diopiUniformInp", "inout"),
    ("diopiNormalInp", "inout"),
    ("diopiNormal", "out"),
    ("diopiBernoulliScalar", "out"),
):
    register_grown(function, cases=_filling(result))

for functions, name in (
    (("diopiDropout", "diopiDropoutInp", "diopiBernoulli"), "input"),
    (("diopiBernoulliInp",), "inout"),
    (("diopiNormalTensorScalar", "diopiNormalTensor"), "mean"),
    (("diopiNormalScalarTensor",), "std"),
):
    register_grown(
        *functions,
        cases=[
            grow("sample", "plane", **{name: PLANE}),
            grow("sample", "half-far-apart", HALF, **{name: PlacedShape(PLANE, FAR)}),
        ],
    )
register_grown(
    "diopiRandperm",
    cases=[
        grow("sample", "long", Dtype.int64, n=131_101, results={"out": (131_101,)}),
        grow("sample", "int32", Dtype.int32, n=70_001, results={"out": (70_001,)}),
    ],
)
register_grown(
    "diopiMultinomial",
    cases=[grow("put-aside", "rows", input=(70_001, 5)), grow("sample", "draws", num_samples=70_001)],
)
