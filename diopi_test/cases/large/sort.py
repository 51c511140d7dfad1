"""Large cases of sorting: long rows, many rows, and whole tensors."""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import At, grown, like
from diopi_test.cases.layouts import strides
from diopi_test.cases.tensors import no_position_twice

LABELS = (
    ("long-rows", (3, 32_003), 1, None),
    ("many-rows", (70_001, 3), 1, None),
    ("long-columns", (4097, 17), 0, None),
    ("half-far-apart", At((67, 1031), strides(2053, 2)), 1, Dtype.float16),
)
grown(
    "diopiSort",
    "diopiArgsort",
    cases=[like("rows", label, of, input=shape, dim=dim) for label, shape, dim, of in LABELS],
)
grown(
    "diopiTopk",
    cases=[
        like("rows", "vocabulary", input=(11, 32_003), k=509),
        like("rows", "many-rows", input=(70_001, 5), k=2),
        like("rows", "half-far-apart", Dtype.float16, input=At((67, 1031), strides(2053, 2)), k=17),
    ],
)
grown(
    "diopiSortBackward",
    cases=[
        like(
            "rows",
            label,
            of,
            grad_output=(rows, length),
            indices=no_position_twice(rows, length, below=length, axis=1),
            sizes=(rows, length),
        )
        for label, rows, length, of in (
            ("long-rows", 3, 32_003, None),
            ("many-rows", 70_001, 3, None),
            ("half", 67, 1031, Dtype.float16),
        )
    ],
)
grown(
    "diopiUnique",
    cases=[
        like("matrix", "tokens", Dtype.int64, input=(263, 257)),
        like("matrix", "numbers", input=(67, 1031)),
    ],
)
