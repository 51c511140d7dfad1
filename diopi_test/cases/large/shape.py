"""Large cases of creating, moving, joining and converting tensors."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import HUGE_ROWS, PlacedShape, grow, register_grown
from diopi_test.cases.layouts import channels_last, strides, transposed

HALF = Dtype.float16
PLANE, LINE = (263, 257), (70_001,)
SIX_AXES, EIGHT_AXES = (7, 3, 11, 5, 13, 5), (2, 5, 3, 2, 7, 3, 5, 11)
FAR = PlacedShape(PLANE, strides(1031, 2))
MOVED = PlacedShape(EIGHT_AXES, strides(1, 3, 16, 49, 100, 701, 2104, 10_521))
"""Axes in reverse memory order with gaps."""

for function, result in (("diopiFill", "input"), ("diopiOnes", "out"), ("diopiZeros", "out"), ("diopiZeroInp", "self")):
    size = {"size": PLANE} if result == "out" else {}
    register_grown(
        function,
        cases=[
            grow("matrix", "plane", results={result: PLANE}, **size),
            grow("matrix", "half-line", HALF, results={result: LINE}, **({"size": LINE} if size else {})),
        ],
    )
register_grown(
    "diopiArange",
    cases=[
        grow("up", "line", end=70_001, results={"out": LINE}),
        grow("third", "int32-steps", Dtype.int32, start=-7, end=210_000, step=3, results={"out": (70_003,)}),
    ],
)
register_grown(
    "diopiLinspace",
    cases=[
        grow("thirds", "line", start=-11, end=37, steps=70_001, results={"out": LINE}),
        grow("thirds", "half", HALF, start=-11, end=37, steps=70_001, results={"out": LINE}),
    ],
)
register_grown(
    "diopiTril",
    "diopiTriu",
    cases=[
        grow("square", "plane", input=PLANE, diagonal=-17),
        grow("square", "half-batch", HALF, input=PlacedShape((11, 67, 131), strides(20_011, 263, 2)), diagonal=3),
    ],
)
register_grown(
    "diopiCat",
    cases=[
        grow("rows", "rows", tensors=[(32_003, 3), (1, 3), PlacedShape((4097, 3), strides(7, 2))]),
        grow("rows", "half-many", HALF, tensors=[(131, length) for length in range(1, 40)], dim=1),
    ],
)
register_grown(
    "diopiStack",
    cases=[
        grow("front", "planes", tensors=[PLANE, FAR]),
        grow("front", "half-many", HALF, tensors=[(131, 17)] * 37, dim=2),
    ],
)
register_grown(
    "diopiSplitWithSizes",
    cases=[
        grow("rows", "rows", input=(70_001, 3), splitSizes=(65_537, 1, 4463)),
        grow("rows", "half-columns", HALF, input=FAR, splitSizes=(67, 1, 189), dim=1),
    ],
)
register_grown(
    "diopiTranspose",
    cases=[
        grow("matrix", "plane", input=PLANE),
        grow("matrix", "half-eight-axes", HALF, input=MOVED, dim0=1, dim1=6),
        grow("matrix", "rows", input=(70_001, 3)),
    ],
)
register_grown(
    "diopiPermute",
    cases=[
        grow("cycle", "eight-axes", input=EIGHT_AXES, dims=(7, 2, 5, 0, 3, 6, 1, 4)),
        grow("cycle", "half-image", HALF, input=PlacedShape((3, 37, 29, 31), channels_last), dims=(0, 2, 3, 1)),
    ],
)
register_grown(
    "diopiExpand",
    cases=[
        grow("columns", "rows", input=(70_001, 1), results={"out": (70_001, 3)}),
        grow("columns", "half-plane", HALF, input=PlacedShape((263, 1), strides(31, 1)), results={"out": PLANE}),
    ],
)
register_grown(
    "diopiRepeat",
    cases=[
        grow("matrix", "plane", input=(67, 17), repeats_size=(5, 13)),
        grow("matrix", "half-batch", HALF, input=PlacedShape((67, 17), strides(37, 2)), repeats_size=(3, 7, 5)),
    ],
)
register_grown(
    "diopiRoll",
    cases=[
        grow("rows", "rows", input=(70_001, 3), shifts=(65_537,)),
        grow("rows", "half-six-axes", HALF, input=SIX_AXES, shifts=(-5, 40, 3), dims=(0, 2, 4)),
    ],
)
register_grown(
    "diopiFlip",
    cases=[
        grow("rows", "rows", input=(70_001, 3)),
        grow("rows", "half-eight-axes", HALF, input=MOVED, dims=(1, 4, 7)),
    ],
)
register_grown(
    "diopiPad",
    cases=[
        grow("constant", "plane", input=PLANE, pad=(3, 5, 7, 1)),
        grow("constant", "half-rows", HALF, input=(70_001, 1), pad=(1, 2)),
    ],
)
register_grown(
    "diopiUnfold",
    cases=[
        grow("overlapping", "rows", input=(32_003, 3), size=5, step=3),
        grow(
            "overlapping", "half-columns", HALF, input=PlacedShape((67, 1031), strides(2063, 2)), dim=1, size=7, step=4
        ),
    ],
)
register_grown(
    "diopiUnfoldBackward",
    cases=[
        grow("overlapping", "rows", grad_output=(10_667, 3, 5), input_sizes=(32_003, 3), size=5, step=3),
        grow(
            "overlapping", "half-columns", HALF, grad_output=(67, 257, 7), input_sizes=(67, 1031), dim=1, size=7, step=4
        ),
    ],
)
register_grown(
    "diopiMeshGrid",
    cases=[
        grow("two", "plane", inputs=[(263,), (257,)]),
        grow("two", "half-space", HALF, inputs=[(41,), (37,), (43,)]),
    ],
)
register_grown(
    "diopiCastDtype",
    cases=[
        grow("to-float16", "to-float16", input=PLANE, results={"out": PLANE}),
        grow(
            "to-float32",
            "to-float32",
            Dtype.int64,
            input=PlacedShape(EIGHT_AXES, MOVED.layout),
            results={"out": EIGHT_AXES},
        ),
    ],
)
register_grown(
    "diopiCopyInp",
    cases=[
        grow("to-float16", "to-float16", src=PLANE, results={"dest": PLANE}),
        grow("to-float16", "huge", src=HUGE_ROWS, results={"dest": HUGE_ROWS.shape}),
        grow(
            "to-int64", "to-float32", Dtype.float32, src=PlacedShape(SIX_AXES, transposed), results={"dest": SIX_AXES}
        ),
    ],
)
register_grown(
    "diopiContiguous",
    cases=[
        grow("strided", "eight-axes", input=MOVED),
        grow("channels-last", "channels-last", input=(3, 37, 29, 31), results={"out": channels_last}),
    ],
)
register_grown(
    "diopiNativeMemoryFormatCast", cases=[grow("matrix", "plane", in_=PLANE), grow("matrix", "half", HALF, in_=LINE)]
)
register_grown("diopiGetNativeMemoryFormat", cases=[grow("matrix", "plane", input=PLANE)])
register_grown("diopiTensorDestructionHook", cases=[grow("matrix", "plane", Dtype.float32, ptr=PLANE)])
