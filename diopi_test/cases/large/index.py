"""Large cases of choosing elements: tables of 32,003 rows, long lists of positions, masks, windows of long axes."""

from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.index.tables import rows_of_unlike_norms
from diopi_test.cases.large.makers import HUGE_ROWS, At, grown, like
from diopi_test.cases.layouts import strides
from diopi_test.cases.template import tensor
from diopi_test.cases.tensors import no_position_twice, pattern, positions, truth

HALF = Dtype.float16
FAR = strides(4099, 3)

TOKENS = positions(11, 509, below=32_003)
MASK = pattern(263, 257)
CHOSEN = int(truth(MASK).sum())

grown(
    "diopiEmbedding",
    cases=[
        like("vector", "vocabulary", weight=(32_003, 13), indices=TOKENS),
        like("vector", "half-long", HALF, weight=At((4097, 67), FAR), indices=positions(1031, below=4097)),
    ],
)
grown(
    "diopiEmbeddingBackward",
    cases=[
        like("vector", "vocabulary", grad=(11, 509, 13), indices=TOKENS, num_weights=32_003),
        like("vector", "crowded", HALF, grad=(1031, 67), indices=positions(1031, below=67), num_weights=67),
    ],
)
grown(
    "diopiEmbeddingRenorm_",
    cases=[
        like(
            "euclidean",
            "vocabulary",
            inout=tensor(32_003, 3, domain=rows_of_unlike_norms((32_003, 3))),
            indices=positions(4099, below=32_003),
        )
    ],
)
grown(
    "diopiOneHot",
    cases=[
        like("vector", "classes", input=positions(67, below=1031), num_classes=1031),
        like("vector", "many", input=positions(70_001, below=3), num_classes=3),
    ],
)
grown(
    "diopiIndex",
    cases=[
        like("rows", "rows", input=(32_003, 3), indices=[positions(32_005, below=32_003)]),
        like("rows", "half-far-apart", HALF, input=At((131, 517), FAR), indices=[positions(263, below=131)]),
    ],
)
grown(
    "diopiIndexBackward",
    cases=[
        like(
            "rows",
            "rows",
            zeros_like_input=(32_003, 3),
            indices=[positions(32_005, below=32_003)],
            grad_output=(32_005, 3),
        ),
        like(
            "rows",
            "crowded",
            HALF,
            zeros_like_input=(131, 67),
            indices=[positions(1031, below=131)],
            grad_output=(1031, 67),
        ),
    ],
)
grown(
    "diopiIndexPut",
    cases=[
        like("put", "rows", input=(32_003, 3), values=(4097, 3), indices=[no_position_twice(4097, below=32_003)]),
        like("put", "half", HALF, input=(131, 517), values=(67, 517), indices=[no_position_twice(67, below=131)]),
    ],
)
ALONG = (
    ("long-rows", (7, 32_003), 1, 10_007, None),
    ("many-rows", (70_001, 3), 0, 65_537, None),
    ("half", (67, 1031), 1, 1031, HALF),
)
"""Label, shape, axis, number of positions, and element type."""


def _with(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return tuple(length if i == axis else one for i, one in enumerate(shape))


def _index(shape: tuple[int, ...], axis: int, length: int) -> Any:
    """As many positions in every slice along the axis, none of them twice."""
    return no_position_twice(*_with(shape, axis, min(length, shape[axis])), below=shape[axis], axis=axis)


grown(
    "diopiIndexSelect",
    cases=[
        like("columns", label, of, input=shape, dim=axis, index=positions(number, below=shape[axis]))
        for label, shape, axis, number, of in ALONG
    ]
    + [like("columns", "huge", input=HUGE_ROWS, dim=0, index=positions(257, below=70_001))],
)
grown(
    "diopiIndexSelectBackward",
    cases=[
        like(
            "columns",
            label,
            of,
            grad=_with(shape, axis, number),
            input_sizes=shape,
            dim=axis,
            index=positions(number, below=shape[axis]),
        )
        for label, shape, axis, number, of in ALONG
    ],
)
grown(
    "diopiIndexFill",
    cases=[
        like("columns", label, of, input=shape, dim=axis, index=no_position_twice(number // 3, below=shape[axis]))
        for label, shape, axis, number, of in ALONG
    ],
)
grown(
    "diopiGather",
    cases=[
        like(
            "columns", label, of, input=shape, dim=axis, index=positions(*_with(shape, axis, number), below=shape[axis])
        )
        for label, shape, axis, number, of in ALONG
    ],
)
grown(
    "diopiGatherBackward",
    cases=[
        like(
            "columns",
            label,
            of,
            grad_output=_with(shape, axis, number),
            input=shape,
            dim=axis,
            index=positions(*_with(shape, axis, number), below=shape[axis]),
        )
        for label, shape, axis, number, of in ALONG
    ],
)
grown(
    "diopiScatter",
    cases=[
        like("columns", label, of, input=shape, dim=axis, src=shape, index=_index(shape, axis, number))
        for label, shape, axis, number, of in ALONG
    ],
)
grown(
    "diopiScatterScalar",
    cases=[
        like("columns", label, of, input=shape, dim=axis, index=_index(shape, axis, number // 3))
        for label, shape, axis, number, of in ALONG
    ],
)
grown(
    "diopiSelect",
    cases=[
        like("columns", "rows", input=(70_001, 3), dim=1),
        like("columns", "half-far-apart", HALF, input=At((263, 17, 257), strides(70_003, 4099, 3)), dim=1, index=13),
    ],
)
grown(
    "diopiSelectBackward",
    cases=[
        like("columns", "rows", grad_output=(70_001,), input_sizes=(70_001, 3), dim=1),
        like("columns", "half", HALF, grad_output=(263, 67), input_sizes=(263, 17, 67), dim=1, index=13),
    ],
)
grown(
    "diopiSelectScatter",
    cases=[
        like("columns", "rows", input=(70_001, 3), src=(70_001,), dim=1),
        like("columns", "half", HALF, input=(263, 17, 67), src=At((263, 67), strides(4099, 3)), dim=1, index=13),
    ],
)
WINDOWS = (
    ("long-rows", (7, 32_003), 1, (3, 32_001, 2), 15_999, None),
    ("many-rows", (70_001, 3), 0, (1, 70_000, 1), 69_999, None),
    ("half", (67, 1031), 1, (5, 1031, 3), 342, HALF),
)
"""Label, shape, axis, window, its length, and element type."""

grown(
    "diopiSlice",
    cases=[
        like("columns", label, of, input=shape, dim=axis, start=start, end=end, step=step)
        for label, shape, axis, (start, end, step), _, of in WINDOWS
    ],
)
grown(
    "diopiSliceBackward",
    cases=[
        like(
            "columns",
            label,
            of,
            grad_output=_with(shape, axis, length),
            input_sizes=shape,
            dim=axis,
            start=start,
            end=end,
            step=step,
        )
        for label, shape, axis, (start, end, step), length, of in WINDOWS
    ],
)
grown(
    "diopiSliceScatter",
    cases=[
        like(
            "columns", label, of, input=shape, src=_with(shape, axis, length), dim=axis, start=start, end=end, step=step
        )
        for label, shape, axis, (start, end, step), length, of in WINDOWS
    ],
)
grown(
    "diopiMaskedScatter",
    cases=[
        like("plain", "plane", input=(263, 257), mask=MASK, source=(CHOSEN + 2,)),
        like("plain", "half-far-apart", HALF, input=At((263, 257), FAR), mask=MASK, source=(CHOSEN + 2,)),
    ],
)
grown(
    "diopiMaskedFill",
    "diopiMaskedSelect",
    cases=[
        like("plain", "plane", input=(263, 257), mask=MASK),
        like("plain", "half-far-apart", HALF, input=At((263, 257), FAR), mask=MASK),
    ],
)
grown(
    "diopiMaskedSelectBackward",
    cases=[
        like("plain", "plane", grad_output=(CHOSEN,), input=(263, 257), mask=MASK),
        like("plain", "half", HALF, grad_output=(CHOSEN,), input=(263, 257), mask=MASK),
    ],
)
grown(
    "diopiWhere",
    cases=[
        like("matrix", "plane", condition=MASK, input=(263, 257)),
        like(
            "matrix",
            "half-far-apart",
            HALF,
            condition=MASK,
            input=At((263, 257), FAR),
            other=At((263, 257), strides(0, 1)),
        ),
    ],
)


grown(
    "diopiNonzero",
    cases=[
        like("matrix", "plane", input=(263, 257)),
        like("matrix", "half-rank5", HALF, input=(7, 11, 13, 5, 17)),
        like("matrix", "rows", Dtype.int64, input=(70_001, 2)),
    ],
)
