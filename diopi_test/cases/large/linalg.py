"""Large cases of matrix products and decompositions.

Decompositions and solutions of systems are of matrices of a few hundred rows: their references are not blocked.
"""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import At, grown, like
from diopi_test.cases.layouts import strides, transposed

HALF = Dtype.float16

grown(
    "diopiMm",
    cases=[
        like("odd", "square", input=(1031, 2053), mat2=(2053, 509)),
        like("odd", "rows", input=(70_001, 3), mat2=(3, 5)),
        like("odd", "half-transposed", HALF, input=At((257, 517), transposed), mat2=At((517, 263), strides(1031, 3))),
    ],
)
grown(
    "diopiBmm",
    cases=[
        like("odd", "attention", input=(13, 131, 67), mat2=(13, 67, 137)),
        like("odd", "half-transposed", HALF, input=(7, 131, 257), mat2=At((7, 257, 129), transposed)),
    ],
)
grown(
    "diopiBaddbmm",
    cases=[
        like("odd-scaled", "attention", input=(13, 131, 137), batch1=(13, 131, 67), batch2=(13, 67, 137)),
        like(
            "odd-scaled",
            "half-transposed",
            HALF,
            input=(7, 131, 129),
            batch1=(7, 131, 257),
            batch2=At((7, 257, 129), transposed),
        ),
    ],
)
grown(
    "diopiAddmm",
    cases=[
        like("odd-scaled", "square", input=(257, 509), mat1=(257, 2053), mat2=(2053, 509)),
        like(
            "odd-scaled",
            "half-transposed",
            HALF,
            input=At((257, 263), strides(0, 1)),
            mat1=At((257, 517), transposed),
            mat2=(517, 263),
        ),
    ],
)
grown(
    "diopiMatmul",
    cases=[
        like("matrices", "square", input=(1031, 2053), other=(2053, 509)),
        like("matrices", "batches", input=(3, 1, 131, 67), other=(5, 67, 41)),
        like("matrices", "long", input=(32_003,), other=(32_003, 3)),
        like(
            "matrices",
            "half-transposed",
            HALF,
            input=At((257, 517), transposed),
            other=At((517, 263), strides(1031, 3)),
        ),
    ],
)
grown(
    "diopiMatmulBackward",
    cases=[
        like("matrices", "square", grad_out=(257, 509), input=(257, 1031), other=(1031, 509)),
        like("matrices", "batches", grad_out=(3, 5, 131, 41), input=(3, 1, 131, 67), other=(5, 67, 41)),
        like(
            "matrices", "half-transposed", HALF, grad_out=(257, 263), input=At((257, 517), transposed), other=(517, 263)
        ),
    ],
)
grown(
    "diopiLinear",
    cases=[
        like("matrix", "square", input=(257, 2053), weight=(509, 2053), bias=(509,)),
        like("matrix", "tokens", input=(3, 5, 131, 67), weight=(41, 67), bias=(41,)),
        like("matrix", "half-transposed", HALF, input=At((257, 517), transposed), weight=(263, 517), bias=(263,)),
    ],
)
grown(
    "diopiLinearBackward",
    cases=[
        like(
            "matrix",
            "square",
            grad_output=(257, 509),
            input=(257, 1031),
            weight=(509, 1031),
            results={"grad_bias": (509,)},
        ),
        like(
            "matrix",
            "tokens",
            grad_output=(3, 5, 131, 41),
            input=(3, 5, 131, 67),
            weight=(41, 67),
            results={"grad_bias": (41,)},
        ),
        like(
            "matrix",
            "half-transposed",
            HALF,
            grad_output=(257, 263),
            input=At((257, 517), transposed),
            weight=(263, 517),
            results={"grad_bias": (263,)},
        ),
    ],
)
grown(
    "diopiCholesky",
    "diopiCholeskyBackward",
    cases=[like("matrix-lower", "matrix", _root=(263, 263)), like("matrix-lower", "batch", _root=(67, 33, 33))],
)
grown(
    "diopiTriangularSolve",
    "diopiTriangularSolveBackward",
    cases=[
        like("matrix-upper", "matrix", _raw=(129, 129), b=(129, 517)),
        like("matrix-upper", "batch", _raw=(41, 17, 17), b=(41, 17, 101)),
    ],
)
grown(
    "diopiLinalgQR",
    cases=[like("tall-reduced", "matrix", A=(517, 131)), like("tall-reduced", "batch", A=(67, 41, 29))],
)
grown(
    "diopiCdist",
    cases=[
        like("matrices-p2", "many", input1=(263, 37), input2=(257, 37)),
        like("matrices-p1", "long", input1=(3, 71, 1031), input2=(3, 67, 1031)),
    ],
)
grown(
    "diopiCdistBackward",
    cases=[
        like("matrices-p2", "many", input1=(263, 37), input2=(257, 37), grad_output=(263, 257)),
        like("matrices-p1", "long", input1=(3, 71, 331), input2=(3, 67, 331), grad_output=(3, 71, 67)),
    ],
)
