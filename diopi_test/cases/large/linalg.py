"""Large cases of matrix products and decompositions.

Decompositions and solutions of systems are of matrices of a few hundred rows: their references are not blocked.
"""

from diopi_proto.types import Dtype
from diopi_test.cases.large.makers import PlacedShape, grow, register_grown
from diopi_test.cases.layouts import strides, transposed

HALF = Dtype.float16

register_grown(
    "diopiMm",
    cases=[
        grow("odd", "square", input=(1031, 2053), mat2=(2053, 509)),
        grow("odd", "rows", input=(70_001, 3), mat2=(3, 5)),
        grow(
            "odd",
            "half-transposed",
            HALF,
            input=PlacedShape((257, 517), transposed),
            mat2=PlacedShape((517, 263), strides(1031, 3)),
        ),
    ],
)
register_grown(
    "diopiBmm",
    cases=[
        grow("odd", "attention", input=(13, 131, 67), mat2=(13, 67, 137)),
        grow("odd", "half-transposed", HALF, input=(7, 131, 257), mat2=PlacedShape((7, 257, 129), transposed)),
    ],
)
register_grown(
    "diopiBaddbmm",
    cases=[
        grow("odd-scaled", "attention", input=(13, 131, 137), batch1=(13, 131, 67), batch2=(13, 67, 137)),
        grow(
            "odd-scaled",
            "half-transposed",
            HALF,
            input=(7, 131, 129),
            batch1=(7, 131, 257),
            batch2=PlacedShape((7, 257, 129), transposed),
        ),
    ],
)
register_grown(
    "diopiAddmm",
    cases=[
        grow("odd-scaled", "square", input=(257, 509), mat1=(257, 2053), mat2=(2053, 509)),
        grow(
            "odd-scaled",
            "half-transposed",
            HALF,
            input=PlacedShape((257, 263), strides(0, 1)),
            mat1=PlacedShape((257, 517), transposed),
            mat2=(517, 263),
        ),
    ],
)
register_grown(
    "diopiMatmul",
    cases=[
        grow("matrices", "square", input=(1031, 2053), other=(2053, 509)),
        grow("matrices", "batches", input=(3, 1, 131, 67), other=(5, 67, 41)),
        grow("matrices", "long", input=(32_003,), other=(32_003, 3)),
        grow(
            "matrices",
            "half-transposed",
            HALF,
            input=PlacedShape((257, 517), transposed),
            other=PlacedShape((517, 263), strides(1031, 3)),
        ),
    ],
)
register_grown(
    "diopiMatmulBackward",
    cases=[
        grow("matrices", "square", grad_out=(257, 509), input=(257, 1031), other=(1031, 509)),
        grow("matrices", "batches", grad_out=(3, 5, 131, 41), input=(3, 1, 131, 67), other=(5, 67, 41)),
        grow(
            "matrices",
            "half-transposed",
            HALF,
            grad_out=(257, 263),
            input=PlacedShape((257, 517), transposed),
            other=(517, 263),
        ),
    ],
)
register_grown(
    "diopiLinear",
    cases=[
        grow("matrix", "square", input=(257, 2053), weight=(509, 2053), bias=(509,)),
        grow("matrix", "tokens", input=(3, 5, 131, 67), weight=(41, 67), bias=(41,)),
        grow(
            "matrix", "half-transposed", HALF, input=PlacedShape((257, 517), transposed), weight=(263, 517), bias=(263,)
        ),
    ],
)
register_grown(
    "diopiLinearBackward",
    cases=[
        grow(
            "matrix",
            "square",
            grad_output=(257, 509),
            input=(257, 1031),
            weight=(509, 1031),
            results={"grad_bias": (509,)},
        ),
        grow(
            "matrix",
            "tokens",
            grad_output=(3, 5, 131, 41),
            input=(3, 5, 131, 67),
            weight=(41, 67),
            results={"grad_bias": (41,)},
        ),
        grow(
            "matrix",
            "half-transposed",
            HALF,
            grad_output=(257, 263),
            input=PlacedShape((257, 517), transposed),
            weight=(263, 517),
            results={"grad_bias": (263,)},
        ),
    ],
)
register_grown(
    "diopiCholesky",
    "diopiCholeskyBackward",
    cases=[grow("matrix-lower", "matrix", _root=(263, 263)), grow("matrix-lower", "batch", _root=(67, 33, 33))],
)
register_grown(
    "diopiTriangularSolve",
    "diopiTriangularSolveBackward",
    cases=[
        grow("matrix-upper", "matrix", _raw=(129, 129), b=(129, 517)),
        grow("matrix-upper", "batch", _raw=(41, 17, 17), b=(41, 17, 101)),
    ],
)
register_grown(
    "diopiLinalgQR",
    cases=[grow("tall-reduced", "matrix", A=(517, 131)), grow("tall-reduced", "batch", A=(67, 41, 29))],
)
register_grown(
    "diopiCdist",
    cases=[
        grow("matrices-p2", "many", input1=(263, 37), input2=(257, 37)),
        grow("matrices-p1", "long", input1=(3, 71, 1031), input2=(3, 67, 1031)),
    ],
)
register_grown(
    "diopiCdistBackward",
    cases=[
        grow("matrices-p2", "many", input1=(263, 37), input2=(257, 37), grad_output=(263, 257)),
        grow("matrices-p1", "long", input1=(3, 71, 331), input2=(3, 67, 331), grad_output=(3, 71, 67)),
    ],
)
