"""Large cases of making, moving, joining and converting tensors."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import HUGE_ROWS, At, grown, like
from diopi_test.cases.layouts import channels_last, strides, transposed

HALF = Dtype.float16
PLANE, LINE = (263, 257), (70_001,)
SIX_AXES, EIGHT_AXES = (7, 3, 11, 5, 13, 5), (2, 5, 3, 2, 7, 3, 5, 11)
FAR = At(PLANE, strides(1031, 2))
MOVED = At(EIGHT_AXES, strides(1, 3, 16, 49, 100, 701, 2104, 10_521))
"""Axes in memory in the reverse order, and gaps."""

for function, result in (("diopiFill", "input"), ("diopiOnes", "out"), ("diopiZeros", "out"), ("diopiZeroInp", "self")):
    size = {"size": PLANE} if result == "out" else {}
    grown(
        function,
        cases=[
            like("matrix", "plane", results={result: PLANE}, **size),
            like("matrix", "half-line", HALF, results={result: LINE}, **({"size": LINE} if size else {})),
        ],
    )
grown(
    "diopiArange",
    cases=[
        like("up", "line", end=70_001, results={"out": LINE}),
        like("third", "int32-steps", Dtype.int32, start=-7, end=210_000, step=3, results={"out": (70_003,)}),
    ],
)
grown(
    "diopiLinspace",
    cases=[
        like("thirds", "line", start=-11, end=37, steps=70_001, results={"out": LINE}),
        like("thirds", "half", HALF, start=-11, end=37, steps=70_001, results={"out": LINE}),
    ],
)
grown(
    "diopiTril",
    "diopiTriu",
    cases=[
        like("square", "plane", input=PLANE, diagonal=-17),
        like("square", "half-batch", HALF, input=At((11, 67, 131), strides(20_011, 263, 2)), diagonal=3),
    ],
)
grown(
    "diopiCat",
    cases=[
        like("rows", "rows", tensors=[(32_003, 3), (1, 3), At((4097, 3), strides(7, 2))]),
        like("rows", "half-many", HALF, tensors=[(131, length) for length in range(1, 40)], dim=1),
    ],
)
grown(
    "diopiStack",
    cases=[
        like("front", "planes", tensors=[PLANE, FAR]),
        like("front", "half-many", HALF, tensors=[(131, 17)] * 37, dim=2),
    ],
)
grown(
    "diopiSplitWithSizes",
    cases=[
        like("rows", "rows", input=(70_001, 3), splitSizes=(65_537, 1, 4463)),
        like("rows", "half-columns", HALF, input=FAR, splitSizes=(67, 1, 189), dim=1),
    ],
)
grown(
    "diopiTranspose",
    cases=[
        like("matrix", "plane", input=PLANE),
        like("matrix", "half-eight-axes", HALF, input=MOVED, dim0=1, dim1=6),
        like("matrix", "rows", input=(70_001, 3)),
    ],
)
grown(
    "diopiPermute",
    cases=[
        like("cycle", "eight-axes", input=EIGHT_AXES, dims=(7, 2, 5, 0, 3, 6, 1, 4)),
        like("cycle", "half-image", HALF, input=At((3, 37, 29, 31), channels_last), dims=(0, 2, 3, 1)),
    ],
)
grown(
    "diopiExpand",
    cases=[
        like("columns", "rows", input=(70_001, 1), results={"out": (70_001, 3)}),
        like("columns", "half-plane", HALF, input=At((263, 1), strides(31, 1)), results={"out": PLANE}),
    ],
)
grown(
    "diopiRepeat",
    cases=[
        like("matrix", "plane", input=(67, 17), repeats_size=(5, 13)),
        like("matrix", "half-batch", HALF, input=At((67, 17), strides(37, 2)), repeats_size=(3, 7, 5)),
    ],
)
grown(
    "diopiRoll",
    cases=[
        like("rows", "rows", input=(70_001, 3), shifts=(65_537,)),
        like("rows", "half-six-axes", HALF, input=SIX_AXES, shifts=(-5, 40, 3), dims=(0, 2, 4)),
    ],
)
grown(
    "diopiFlip",
    cases=[
        like("rows", "rows", input=(70_001, 3)),
        like("rows", "half-eight-axes", HALF, input=MOVED, dims=(1, 4, 7)),
    ],
)
grown(
    "diopiPad",
    cases=[
        like("constant", "plane", input=PLANE, pad=(3, 5, 7, 1)),
        like("constant", "half-rows", HALF, input=(70_001, 1), pad=(1, 2)),
    ],
)
grown(
    "diopiUnfold",
    cases=[
        like("overlapping", "rows", input=(32_003, 3), size=5, step=3),
        like("overlapping", "half-columns", HALF, input=At((67, 1031), strides(2063, 2)), dim=1, size=7, step=4),
    ],
)
grown(
    "diopiUnfoldBackward",
    cases=[
        like("overlapping", "rows", grad_output=(10_667, 3, 5), input_sizes=(32_003, 3), size=5, step=3),
        like(
            "overlapping", "half-columns", HALF, grad_output=(67, 257, 7), input_sizes=(67, 1031), dim=1, size=7, step=4
        ),
    ],
)
grown(
    "diopiMeshGrid",
    cases=[
        like("two", "plane", inputs=[(263,), (257,)]),
        like("two", "half-space", HALF, inputs=[(41,), (37,), (43,)]),
    ],
)
grown(
    "diopiCastDtype",
    cases=[
        like("to-float16", "to-float16", input=PLANE, results={"out": PLANE}),
        like("to-float32", "to-float32", Dtype.int64, input=At(EIGHT_AXES, MOVED.layout), results={"out": EIGHT_AXES}),
    ],
)
grown(
    "diopiCopyInp",
    cases=[
        like("to-float16", "to-float16", src=PLANE, results={"dest": PLANE}),
        like("to-float16", "huge", src=HUGE_ROWS, results={"dest": HUGE_ROWS.shape}),
        like("to-int64", "to-float32", Dtype.float32, src=At(SIX_AXES, transposed), results={"dest": SIX_AXES}),
    ],
)
grown(
    "diopiContiguous",
    cases=[
        like("strided", "eight-axes", input=MOVED),
        like("channels-last", "channels-last", input=(3, 37, 29, 31), results={"out": channels_last}),
    ],
)
grown("diopiNativeMemoryFormatCast", cases=[like("matrix", "plane", in_=PLANE), like("matrix", "half", HALF, in_=LINE)])
grown("diopiGetNativeMemoryFormat", cases=[like("matrix", "plane", input=PLANE)])
grown("diopiTensorDestructionHook", cases=[like("matrix", "plane", Dtype.float32, ptr=PLANE)])
