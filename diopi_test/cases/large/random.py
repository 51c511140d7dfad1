"""Large cases of random draws."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import At, Growth, grown, like
from diopi_test.cases.layouts import strides

PLANE, FAR = (263, 257), strides(1031, 2)
HALF = Dtype.float16


def _filling(name: str) -> list[Growth]:
    """A tensor without gaps, and one of half precision whose rows are far apart."""
    return [
        like("sample", "plane", results={name: PLANE}),
        like("sample", "half", HALF, results={name: (70_001,)}),
    ]


for function, result in (
    ("diopiRandomInp", "inout"),
    ("diopiUniformInp", "inout"),
    ("diopiNormalInp", "inout"),
    ("diopiNormal", "out"),
    ("diopiBernoulliScalar", "out"),
):
    grown(function, cases=_filling(result))

for functions, name in (
    (("diopiDropout", "diopiDropoutInp", "diopiBernoulli"), "input"),
    (("diopiBernoulliInp",), "inout"),
    (("diopiNormalTensorScalar", "diopiNormalTensor"), "mean"),
    (("diopiNormalScalarTensor",), "std"),
):
    grown(
        *functions,
        cases=[
            like("sample", "plane", **{name: PLANE}),
            like("sample", "half-far-apart", HALF, **{name: At(PLANE, FAR)}),
        ],
    )
grown(
    "diopiRandperm",
    cases=[
        like("sample", "long", Dtype.int64, n=131_101, results={"out": (131_101,)}),
        like("sample", "int32", Dtype.int32, n=70_001, results={"out": (70_001,)}),
    ],
)
grown(
    "diopiMultinomial",
    cases=[like("put-aside", "rows", input=(70_001, 5)), like("sample", "draws", num_samples=70_001)],
)
