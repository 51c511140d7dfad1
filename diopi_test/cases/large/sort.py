"""Large cases of sorting: long rows, many rows, and whole tensors."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides
from diopi_test.cases.tensors import distinct_positions

LABELS = (
    ("long-rows", (3, 32_003), 1, None),
    ("many-rows", (70_001, 3), 1, None),
    ("long-columns", (4097, 17), 0, None),
    ("half-far-apart", PlacedShape((67, 1031), strides(2053, 2)), 1, Dtype.float16),
)
register_grown(
    "diopiSort",
    "diopiArgsort",
    cases=[grow("rows", label, dtype, input=shape, dim=dim) for label, shape, dim, dtype in LABELS],
)
register_grown(
    "diopiTopk",
    cases=[
        grow("rows", "vocabulary", input=(11, 32_003), k=509),
        grow("rows", "many-rows", input=(70_001, 5), k=2),
        grow("rows", "half-far-apart", Dtype.float16, input=PlacedShape((67, 1031), strides(2053, 2)), k=17),
    ],
)
register_grown(
    "diopiSortBackward",
    cases=[
        grow(
            "rows",
            label,
            dtype,
            grad_output=(rows, length),
            indices=distinct_positions(rows, length, below=length, axis=1),
            sizes=(rows, length),
        )
        for label, rows, length, dtype in (
            ("long-rows", 3, 32_003, None),
            ("many-rows", 70_001, 3, None),
            ("half", 67, 1031, Dtype.float16),
        )
    ],
)
register_grown(
    "diopiUnique",
    cases=[
        grow("matrix", "tokens", Dtype.int64, input=(263, 257)),
        grow("matrix", "numbers", input=(67, 1031)),
    ],
)
