"""Large cases of selecting elements: tables of 32,003 rows, long lists of positions, masks, windows of long axes."""

from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.index.tables import rows_of_unlike_norms
from diopi_test.cases.large.makers import HUGE_ROWS, PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides
from diopi_test.cases.template import tensor
from diopi_test.cases.tensors import distinct_positions, mask_values, periodic_mask, random_positions

HALF = Dtype.float16
FAR = strides(4099, 3)

TOKENS = random_positions(11, 509, below=32_003)
MASK = periodic_mask(263, 257)
CHOSEN = int(mask_values(MASK).sum())

register_grown(
    "diopiEmbedding",
    cases=[
        grow("vector", "vocabulary", weight=(32_003, 13), indices=TOKENS),
        grow(
            "vector", "half-long", HALF, weight=PlacedShape((4097, 67), FAR), indices=random_positions(1031, below=4097)
        ),
    ],
)
register_grown(
    "diopiEmbeddingBackward",
    cases=[
        grow("vector", "vocabulary", grad=(11, 509, 13), indices=TOKENS, num_weights=32_003),
        grow("vector", "crowded", HALF, grad=(1031, 67), indices=random_positions(1031, below=67), num_weights=67),
    ],
)
register_grown(
    "diopiEmbeddingRenorm_",
    cases=[
        grow(
            "euclidean",
            "vocabulary",
            inout=tensor(32_003, 3, domain=rows_of_unlike_norms((32_003, 3))),
            indices=random_positions(4099, below=32_003),
        )
    ],
)
register_grown(
    "diopiOneHot",
    cases=[
        grow("vector", "classes", input=random_positions(67, below=1031), num_classes=1031),
        grow("vector", "many", input=random_positions(70_001, below=3), num_classes=3),
    ],
)
register_grown(
    "diopiIndex",
    cases=[
        grow("rows", "rows", input=(32_003, 3), indices=[random_positions(32_005, below=32_003)]),
        grow(
            "rows",
            "half-far-apart",
            HALF,
            input=PlacedShape((131, 517), FAR),
            indices=[random_positions(263, below=131)],
        ),
    ],
)
register_grown(
    "diopiIndexBackward",
    cases=[
        grow(
            "rows",
            "rows",
            zeros_like_input=(32_003, 3),
            indices=[random_positions(32_005, below=32_003)],
            grad_output=(32_005, 3),
        ),
        grow(
            "rows",
            "crowded",
            HALF,
            zeros_like_input=(131, 67),
            indices=[random_positions(1031, below=131)],
            grad_output=(1031, 67),
        ),
    ],
)
register_grown(
    "diopiIndexPut",
    cases=[
        grow("put", "rows", input=(32_003, 3), values=(4097, 3), indices=[distinct_positions(4097, below=32_003)]),
        grow("put", "half", HALF, input=(131, 517), values=(67, 517), indices=[distinct_positions(67, below=131)]),
    ],
)
SELECTIONS = (
    ("long-rows", (7, 32_003), 1, 10_007, None),
    ("many-rows", (70_001, 3), 0, 65_537, None),
    ("half", (67, 1031), 1, 1031, HALF),
)
"""Label, shape, axis, number of positions, and element type."""


def _replace_length(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return tuple(length if i == axis else size for i, size in enumerate(shape))


def _index(shape: tuple[int, ...], axis: int, length: int) -> Any:
    """Return `length` positions in every slice along the axis, without repetitions."""
    return distinct_positions(*_replace_length(shape, axis, min(length, shape[axis])), below=shape[axis], axis=axis)


register_grown(
    "diopiIndexSelect",
    cases=[
        grow("columns", label, dtype, input=shape, dim=axis, index=random_positions(number, below=shape[axis]))
        for label, shape, axis, number, dtype in SELECTIONS
    ]
    + [grow("columns", "huge", input=HUGE_ROWS, dim=0, index=random_positions(257, below=70_001))],
)
register_grown(
    "diopiIndexSelectBackward",
    cases=[
        grow(
            "columns",
            label,
            dtype,
            grad=_replace_length(shape, axis, number),
            input_sizes=shape,
            dim=axis,
            index=random_positions(number, below=shape[axis]),
        )
        for label, shape, axis, number, dtype in SELECTIONS
    ],
)
register_grown(
    "diopiIndexFill",
    cases=[
        grow("columns", label, dtype, input=shape, dim=axis, index=distinct_positions(number // 3, below=shape[axis]))
        for label, shape, axis, number, dtype in SELECTIONS
    ],
)
register_grown(
    "diopiGather",
    cases=[
        grow(
            "columns",
            label,
            dtype,
            input=shape,
            dim=axis,
            index=random_positions(*_replace_length(shape, axis, number), below=shape[axis]),
        )
        for label, shape, axis, number, dtype in SELECTIONS
    ],
)
register_grown(
    "diopiGatherBackward",
    cases=[
        grow(
            "columns",
            label,
            dtype,
            grad_output=_replace_length(shape, axis, number),
            input=shape,
            dim=axis,
            index=random_positions(*_replace_length(shape, axis, number), below=shape[axis]),
        )
        for label, shape, axis, number, dtype in SELECTIONS
    ],
)
register_grown(
    "diopiScatter",
    cases=[
        grow("columns", label, dtype, input=shape, dim=axis, src=shape, index=_index(shape, axis, number))
        for label, shape, axis, number, dtype in SELECTIONS
    ],
)
register_grown(
    "diopiScatterScalar",
    cases=[
        grow("columns", label, dtype, input=shape, dim=axis, index=_index(shape, axis, number // 3))
        for label, shape, axis, number, dtype in SELECTIONS
    ],
)
register_grown(
    "diopiSelect",
    cases=[
        grow("columns", "rows", input=(70_001, 3), dim=1),
        grow(
            "columns",
            "half-far-apart",
            HALF,
            input=PlacedShape((263, 17, 257), strides(70_003, 4099, 3)),
            dim=1,
            index=13,
        ),
    ],
)
register_grown(
    "diopiSelectBackward",
    cases=[
        grow("columns", "rows", grad_output=(70_001,), input_sizes=(70_001, 3), dim=1),
        grow("columns", "half", HALF, grad_output=(263, 67), input_sizes=(263, 17, 67), dim=1, index=13),
    ],
)
register_grown(
    "diopiSelectScatter",
    cases=[
        grow("columns", "rows", input=(70_001, 3), src=(70_001,), dim=1),
        grow(
            "columns", "half", HALF, input=(263, 17, 67), src=PlacedShape((263, 67), strides(4099, 3)), dim=1, index=13
        ),
    ],
)
WINDOWS = (
    ("long-rows", (7, 32_003), 1, (3, 32_001, 2), 15_999, None),
    ("many-rows", (70_001, 3), 0, (1, 70_000, 1), 69_999, None),
    ("half", (67, 1031), 1, (5, 1031, 3), 342, HALF),
)
"""Label, shape, axis, window, its length, and element type."""

register_grown(
    "diopiSlice",
    cases=[
        grow("columns", label, dtype, input=shape, dim=axis, start=start, end=end, step=step)
        for label, shape, axis, (start, end, step), _, dtype in WINDOWS
    ],
)
register_grown(
    "diopiSliceBackward",
    cases=[
        grow(
            "columns",
            label,
            dtype,
            grad_output=_replace_length(shape, axis, length),
            input_sizes=shape,
            dim=axis,
            start=start,
            end=end,
            step=step,
        )
        for label, shape, axis, (start, end, step), length, dtype in WINDOWS
    ],
)
register_grown(
    "diopiSliceScatter",
    cases=[
        grow(
            "columns",
            label,
            dtype,
            input=shape,
            src=_replace_length(shape, axis, length),
            dim=axis,
            start=start,
            end=end,
            step=step,
        )
        for label, shape, axis, (start, end, step), length, dtype in WINDOWS
    ],
)
register_grown(
    "diopiMaskedScatter",
    cases=[
        grow("plain", "plane", input=(263, 257), mask=MASK, source=(CHOSEN + 2,)),
        grow("plain", "half-far-apart", HALF, input=PlacedShape((263, 257), FAR), mask=MASK, source=(CHOSEN + 2,)),
    ],
)
register_grown(
    "diopiMaskedFill",
    "diopiMaskedSelect",
    cases=[
        grow("plain", "plane", input=(263, 257), mask=MASK),
        grow("plain", "half-far-apart", HALF, input=PlacedShape((263, 257), FAR), mask=MASK),
    ],
)
register_grown(
    "diopiMaskedSelectBackward",
    cases=[
        grow("plain", "plane", grad_output=(CHOSEN,), input=(263, 257), mask=MASK),
        grow("plain", "half", HALF, grad_output=(CHOSEN,), input=(263, 257), mask=MASK),
    ],
)
register_grown(
    "diopiWhere",
    cases=[
        grow("matrix", "plane", condition=MASK, input=(263, 257)),
        grow(
            "matrix",
            "half-far-apart",
            HALF,
            condition=MASK,
            input=PlacedShape((263, 257), FAR),
            other=PlacedShape((263, 257), strides(0, 1)),
        ),
    ],
)


register_grown(
    "diopiNonzero",
    cases=[
        grow("matrix", "plane", input=(263, 257)),
        grow("matrix", "half-rank5", HALF, input=(7, 11, 13, 5, 17)),
        grow("matrix", "rows", Dtype.int64, input=(70_001, 2)),
    ],
)
