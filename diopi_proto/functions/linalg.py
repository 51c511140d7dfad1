"""Matrix products, decompositions, triangular systems and distances, with their gradients.

`…` stands for any number of leading batch axes; where two tensors have them they broadcast, unless a docstring says
otherwise. All tensor inputs of a call have one dtype, and so has the result. Sums of products in half precision are
accumulated in float32 and rounded once; integers wrap around; a sum of no products is 0. Sizes may be 0. Shapes that do
not fit each other are rejected.

A gradient function gets the gradient of a loss with respect to a forward result and writes those with respect to the
forward inputs, each in the shape of its input unless a docstring says otherwise, summed over axes that were broadcast.
Gradient results that are NULL are skipped, and the others are computed. A* is the conjugate transpose of A, Aᵀ the
transpose; complex gradients are conjugated as in PyTorch. Source: the PyTorch function of the same name.
"""

from typing import Literal

from diopi_proto.dtypes import complexes, constant, floating, numeric, same, wide
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, NonNegative, Out, Scalar, boolean, f64, i64
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

BETA_0 = Ignored(("input",), "a NaN in it does not spread", {"beta": 0}, Read.form)


@prototype(dtypes=(*numeric, *complexes))
def diopiMm(ctx: Context, out: Out, input: In, mat2: In):
    """Matrix product: input (m, k), mat2 (k, n), out (m, n). Source: torch.mm."""


@prototype(dtypes=(*numeric, *complexes))
def diopiBmm(ctx: Context, out: Out, input: In, mat2: In):
    """Matrix product of each pair in a batch: input (B, m, k), mat2 (B, k, n), out (B, m, n); B does not broadcast.

    Source: torch.bmm.
    """


@prototype(dtypes=(*numeric, *complexes), ignored=[BETA_0], inplace="diopiBaddbmmInp")
def diopiBaddbmm(ctx: Context, out: Out, input: In, batch1: In, batch2: In, beta: f64, alpha: f64):
    """beta · input + alpha · batch1 batch2: batch1 (B, m, k), batch2 (B, k, n), out (B, m, n).

    `input` broadcasts to out's shape; in place it has that shape. Integer tensors truncate alpha and beta. Source:
    torch.baddbmm.
    """


@prototype(dtypes=(*numeric, *complexes), ignored=[BETA_0])
def diopiAddmm(ctx: Context, out: Out, input: In, mat1: In, mat2: In, beta: Scalar, alpha: Scalar):
    """beta · input + alpha · mat1 mat2: mat1 (m, k), mat2 (k, n), out (m, n); `input` broadcasts to out's shape.

    Integer tensors truncate alpha and beta. NULL scalars are rejected. Source: torch.addmm.
    """


@prototype(dtypes=(*numeric, *complexes), backward="diopiMatmulBackward")
def diopiMatmul(ctx: Context, out: Out, input: In, other: In):
    """Matrix product by rank: input (…, m, k), other (…, k, n), out (…, m, n), batch axes broadcast.

    A 1-d input (k) is a row and a 1-d other (k) a column whose added axis is dropped from out; two 1-d inputs give
    their inner product, 0-d. 0-d inputs are rejected. Source: torch.matmul.
    """


@prototype(dtypes=(*floating, *complexes))
def diopiMatmulBackward(
    ctx: Context, grad_input: Out | None, grad_other: Out | None, grad_out: In, input: In, other: In
):
    """Gradients of `diopiMatmul`: grad_input = grad_out other*, grad_other = input* grad_out.

    `grad_out` has the forward result's shape; a 1-d input counts as a row and a 1-d other as a column, as in the
    forward. Source: the chain rule, as PyTorch's autograd of torch.matmul.
    """


@prototype(dtypes=(*numeric, *complexes), backward="diopiLinearBackward")
def diopiLinear(ctx: Context, out: Out, input: In, weight: In, bias: In | None):
    """Affine map input weightᵀ + bias: input (…, in), weight (out, in), bias (out) or NULL for none, out (…, out).

    `input` has rank ≥ 1. A bias of any other shape that broadcasts to out's is added all the same. Source:
    torch.nn.functional.linear.
    """


@prototype(dtypes=(*floating, *complexes))
def diopiLinearBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: In,
    weight: In,
):
    """Gradients of `diopiLinear`, with g = grad_output (…, out).

    grad_input (…, in) = g conj(weight); grad_weight (out, in) = Σ gᵀ conj(input) and grad_bias (out) = Σ g, the sums
    over all leading axes; a grad_bias made in another shape, that of the bias, gets the sums over the axes along which
    the forward broadcast it. Source: the chain rule, as PyTorch's autograd of torch.nn.functional.linear.
    """


@prototype(
    dtypes=(*wide, *complexes),
    result={"out": same, "info": constant(Dtype.int32)},
    ignored=[Ignored(("checkerror",), "it determines how errors are reported", read=Read.value)],
    backward="diopiCholeskyBackward",
)
def diopiCholesky(ctx: Context, out: Out, info: Out, mat: In, upper: boolean, checkerror: boolean):
    """Cholesky factor of positive definite matrices: mat (…, n, n) = L L*, L lower triangular, diagonal real and > 0.

    `upper` false: out = L, computed from mat's lower triangle alone; true: out = L*, from its upper triangle alone. The
    other triangle of `out` is 0. `info` (…), int32: 0, or the order k of the first leading minor that is not positive
    definite; the matrix in `out` is then unspecified. `checkerror` true: the call fails if any info is not 0. Source:
    torch.linalg.cholesky_ex.
    """


@prototype(dtypes=(*wide, *complexes))
def diopiCholeskyBackward(ctx: Context, grad_mat: Out, grad_output: In, L: In, upper: boolean):
    """Gradient of `diopiCholesky` from its result L (…, n, n), the upper factor if `upper`; grad_mat is Hermitian.

    For the lower factor and its gradient G: with P = Φ(L* G), Φ keeping the lower triangle and halving the diagonal,
    S = L⁻* P L⁻¹ and grad_mat = (S + S*) / 2. An upper factor U is used as L = U*, with G*. Only the triangle of G that
    the factor fills counts. Source: I. Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527.
    """


@prototype(dtypes=(*wide, *complexes), backward="diopiTriangularSolveBackward")
def diopiTriangularSolve(
    ctx: Context,
    out: Out,
    cloned_mat: Out,
    b: In,
    mat: In,
    upper: boolean,
    transpose: boolean,
    unitriangular: boolean,
):
    """Solution X of op(mat) X = b: mat (…, n, n), b (…, n, k), out = X (…, n, k), batch axes broadcast.

    Only the upper (`upper`) or lower triangle of `mat` is read, with `unitriangular` taking its diagonal as 1 whatever
    is stored. op transposes (without conjugating) if `transpose`. `cloned_mat` is a copy of all of `mat`, broadcast to
    the batch axes of out. A 0 on the diagonal divides by 0, without an error. Source: torch.triangular_solve.
    """


@prototype(dtypes=(*wide, *complexes), ignored=[Ignored(("b",), "the solution x stands for it")])
def diopiTriangularSolveBackward(
    ctx: Context,
    grad_b: Out | None,
    grad_mat: Out | None,
    grad_x: In | None,
    grad_cloned_mat: In | None,
    x: In,
    b: In,
    mat: In,
    upper: boolean,
    transpose: boolean,
    unitriangular: boolean,
):
    """Gradients of `diopiTriangularSolve` from its result x; grad_x and grad_cloned_mat are those of its two results.

    grad_b (as b) solves op(mat)* grad_b = grad_x. grad_mat (as mat) = −grad_b x*, or −conj(x) grad_bᵀ if `transpose`,
    of which only the triangle that the forward read is kept (without the diagonal if `unitriangular`), plus all of
    grad_cloned_mat. A NULL grad_x or grad_cloned_mat counts as 0. Source: the chain rule, as PyTorch's autograd of
    torch.triangular_solve.
    """


@prototype(dtypes=(*wide, *complexes))
def diopiLinalgQR(ctx: Context, A: In, mode: Literal["reduced", "complete", "r"], Q: Out, R: Out):
    """QR decomposition A = Q R of A (…, m, n), columns of Q orthonormal, R upper triangular, k = min(m, n).

    `mode` "reduced": Q (…, m, k), R (…, k, n). "complete": Q (…, m, m), R (…, m, n). "r": R as "reduced" alone; Q has
    shape (0) and is left as it is. Any other text is rejected. The signs are those of the Householder reflections of
    LAPACK's geqrf: eliminating the entries below the diagonal of a column puts the norm of the column's part from the
    diagonal down there, with the sign opposite to that of the diagonal entry's real part (− if that is 0); where
    nothing is to eliminate, and the entry is real, it stays. Q is the product of the reflections, its columns past k
    too; those that A does not determine (rank below k) are not unique. Source: torch.linalg.qr.
    """


@prototype(
    dtypes=wide,
    ignored=[Ignored(("compute_mode",), "it selects an algorithm, not a result", read=Read.value)],
    backward="diopiCdistBackward",
)
def diopiCdist(ctx: Context, out: Out, input1: In, input2: In, p: NonNegative, compute_mode: i64 | None):
    """Distances of every pair of rows, (Σ |x − y|^p)^(1/p): input1 (…, P, M), input2 (…, R, M), out (…, P, R).

    p ≥ 0, negative is rejected; p = 0 counts the unequal coordinates, p = inf takes the largest |x − y|; M = 0 gives 0.
    The distance is NaN where a difference is NaN, ∞ − ∞ being one; p = inf leaves that open.
    `compute_mode` lets p = 2 be computed by a matrix product as √(|x|² + |y|² − 2 x·y), less exact for close rows: NULL
    or 0 where P > 25 or R > 25, 1 always, 2 never; other numbers are rejected. Source: torch.cdist.
    """


@prototype(
    dtypes=wide,
    ignored=[Ignored(("cdist",), "every slope is 0, 1 or −1", {"p": (0, 1)})],
)
def diopiCdistBackward(ctx: Context, grad_input: Out, grad_output: In, input1: In, input2: In, p: f64, cdist: In):
    """Gradient of `diopiCdist` with respect to `input1`, from its result `cdist` (…, P, R), the shape of grad_output.

    With d = x − y for rows x of input1 and y of input2, D their distance and g the element of grad_output, row x gets
    the sum over y of g · sign(d) · (|d| / D)^(p−1); p = inf: g · sign(d) in every coordinate where |d| = D; p = 0: 0,
    even if d or g is not finite. D = 0, and d = 0 in a coordinate, give 0; p = inf leaves a NaN in d open.
    `grad_input` has the broadcast batch axes, (…, P, M). The gradient for input2 is that of the call with the roles
    exchanged. Source: torch.ops.aten._cdist_backward.
    """
