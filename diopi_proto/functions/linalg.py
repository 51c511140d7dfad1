"""Matrix products, decompositions, triangular systems and distances, with their gradients.

`…` stands for any number of leading batch axes. The batch axes of two tensors broadcast, unless a docstring says
otherwise. All tensor inputs of a call have the same dtype, and the result has it too. Sums of products in half
precision are accumulated in float32 and rounded once. Integers wrap around. A sum of no products is 0. Sizes may be 0.
Shapes that do not fit each other are rejected.

A gradient function takes the gradient of a loss with respect to a forward result. It writes the gradients with respect
to the forward inputs, each in the shape of the corresponding input unless a docstring says otherwise. Gradients are
summed over the axes that were broadcast. Gradient results that are NULL are skipped, and the others are computed. A* is
the conjugate transpose of A, and Aᵀ is the transpose. Complex gradients are conjugated as in PyTorch.

Source: the PyTorch function of the same name.
"""

from typing import Annotated, Literal

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import complexes, constant, floating, numeric, same, wide
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, NonNegative, Out, Scalar, boolean, f64, i64
from diopi_proto.types import Dtype

ForwardOrder = Annotated[f64, ExcludesNumbers(("negative",), "the forward function rejects it")]
"""The order of the norm in the forward call, not negative."""

IGNORES_INPUT_IF_BETA_IS_0 = Ignored(
    ("input",), "the call does not multiply it by 0, so a NaN in it has no effect", {"beta": 0}, Read.form
)
"""The elements of `input` are ignored if `beta` is 0."""


@prototype(dtypes=(*numeric, *complexes), multiplies_matrices=True)
def diopiMm(ctx: Context, out: Out, input: In, mat2: In):
    """Compute the matrix product of input (m, k) and mat2 (k, n).

    out has shape (m, n).

    Source: torch.mm.
    """


@prototype(dtypes=(*numeric, *complexes), multiplies_matrices=True)
def diopiBmm(ctx: Context, out: Out, input: In, mat2: In):
    """Compute the matrix product of each pair of matrices in a batch.

    input is (B, m, k), mat2 is (B, k, n), and out is (B, m, n). The axis B is not broadcast.

    Source: torch.bmm.
    """


@prototype(
    dtypes=(*numeric, *complexes),
    ignored=[IGNORES_INPUT_IF_BETA_IS_0],
    inplace="diopiBaddbmmInp",
    multiplies_matrices=True,
)
def diopiBaddbmm(ctx: Context, out: Out, input: In, batch1: In, batch2: In, beta: f64, alpha: f64):
    """Compute beta · input + alpha · (batch1 @ batch2) for each pair of matrices in a batch.

    batch1 is (B, m, k), batch2 is (B, k, n), and out is (B, m, n). `input` is broadcast to the shape of out; in the
    in-place form it has that shape. For integer tensors, the fractions of alpha and beta are dropped.

    Source: torch.baddbmm.
    """


@prototype(dtypes=(*numeric, *complexes), ignored=[IGNORES_INPUT_IF_BETA_IS_0], multiplies_matrices=True)
def diopiAddmm(ctx: Context, out: Out, input: In, mat1: In, mat2: In, beta: Scalar, alpha: Scalar):
    """Compute beta · input + alpha · (mat1 @ mat2).

    mat1 is (m, k), mat2 is (k, n), and out is (m, n). `input` is broadcast to the shape of out. For integer tensors,
    the fractions of alpha and beta are dropped. NULL for alpha or beta is rejected.

    Source: torch.addmm.
    """


@prototype(dtypes=(*numeric, *complexes), backward="diopiMatmulBackward", multiplies_matrices=True)
def diopiMatmul(ctx: Context, out: Out, input: In, other: In):
    """Compute the matrix product of input (…, m, k) and other (…, k, n).

    out is (…, m, n); the batch axes are broadcast. A 1-d input (k) is treated as a row, and a 1-d other (k) as a
    column; the added axis is removed from out. Two 1-d inputs give their inner product, which is 0-d. 0-d inputs are
    rejected.

    Source: torch.matmul.
    """


@prototype(dtypes=(*floating, *complexes), multiplies_matrices=True)
def diopiMatmulBackward(
    ctx: Context, grad_input: Out | None, grad_other: Out | None, grad_out: In, input: In, other: In
):
    """Compute the gradients of `diopiMatmul`: grad_input = grad_out @ other* and grad_other = input* @ grad_out.

    The star means the conjugate transpose of each matrix. `grad_out` has the shape of the forward result. Each gradient
    has the shape of its argument, and is summed over the axes along which the argument was broadcast. As in the forward
    function, a 1-d input is treated as a row, and a 1-d other as a column.

    Source: the gradient of torch.matmul.
    """


@prototype(dtypes=(*numeric, *complexes), backward="diopiLinearBackward", multiplies_matrices=True)
def diopiLinear(ctx: Context, out: Out, input: In, weight: In, bias: In | None):
    """Compute the affine map input @ weightᵀ + bias.

    - input: (…, in), of rank 1 or more.
    - weight: (out, in).
    - bias: (out), or NULL for no bias. A bias of any other shape is also added if it broadcasts to the shape of the
      result.
    - out: (…, out).

    Source: torch.nn.functional.linear.
    """


@prototype(dtypes=(*floating, *complexes), multiplies_matrices=True)
def diopiLinearBackward(
    ctx: Context,
    grad_input: Out | None,
    grad_weight: Out | None,
    grad_bias: Out | None,
    grad_output: In,
    input: In,
    weight: In,
):
    """Compute the gradients of `diopiLinear` with respect to input, weight and bias.

    With g = grad_output (…, out):

    - grad_input (…, in) = g @ conj(weight).
    - grad_weight (out, in) = Σ gᵀ @ conj(input), summed over all leading axes.
    - grad_bias (out) = Σ g, summed over all leading axes. If the bias had another shape, grad_bias has that shape, and
      is summed over the axes along which the forward function broadcast the bias.

    Source: the gradient of torch.nn.functional.linear.
    """


@prototype(
    dtypes=(*wide, *complexes),
    result={"out": same, "info": constant(Dtype.int32)},
    ignored=[Ignored(("checkerror",), "it determines how errors are reported", read=Read.value)],
    backward="diopiCholeskyBackward",
)
def diopiCholesky(ctx: Context, out: Out, info: Out, mat: In, upper: boolean, checkerror: boolean):
    """Compute the Cholesky factor L of positive definite matrices: mat = L @ L*.

    - mat: (…, n, n), Hermitian matrices. L is lower triangular, and its diagonal is real and positive.
    - upper: if false, out = L, computed only from the lower triangle of mat. If true, out = L*, computed only from the
      upper triangle of mat. The other triangle of out is 0.
    - info: (…), int32. It is 0 on success. Otherwise it is the order k of the first leading minor that is not positive
      definite, and the matrix in out is unspecified.
    - checkerror: if true, the call fails if any element of info is not 0.

    Source: torch.linalg.cholesky_ex.
    """


@prototype(dtypes=(*wide, *complexes), multiplies_matrices=True)
def diopiCholeskyBackward(ctx: Context, grad_mat: Out, grad_output: In, L: In, upper: boolean):
    """Compute the gradient of `diopiCholesky` with respect to mat, which is a Hermitian matrix.

    L (…, n, n) is the result of the forward call: the lower factor, or the upper factor if `upper` is true. grad_output
    is the gradient of that result; only the triangle in which the factor is stored is used.

    Let G be the gradient with respect to the lower factor. Φ takes the lower triangle of a matrix and halves the
    diagonal. With P = Φ(L* G) and S = L⁻* P L⁻¹, grad_mat = (S + S*) / 2. For an upper factor U, L = U* and G is the
    conjugate transpose of grad_output.

    Source: I. Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527.
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
    """Solve op(mat) @ X = b for X, where mat is triangular and op is the identity or the transposition.

    - mat: (…, n, n). Only one triangle is read: the upper one if `upper` is true, otherwise the lower one.
    - b: (…, n, k). The batch axes of mat and b are broadcast.
    - out: the solution X, (…, n, k).
    - cloned_mat: a copy of all of mat, broadcast to the batch axes of out.
    - transpose: if true, op transposes mat without conjugating it.
    - unitriangular: if true, the diagonal of mat is taken as 1, whatever is stored there.

    A 0 on the diagonal leads to a division by 0, and is not an error.

    Source: torch.triangular_solve.
    """


@prototype(
    dtypes=(*wide, *complexes), ignored=[Ignored(("b",), "the solution x is used instead")], multiplies_matrices=True
)
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
    """Compute the gradients of `diopiTriangularSolve` with respect to b and mat.

    x is the forward result out. grad_x and grad_cloned_mat are the gradients of out and cloned_mat; NULL counts as 0.

    - grad_b, in the shape of b, solves op(mat)* @ grad_b = grad_x.
    - grad_mat, in the shape of mat, is computed in three steps. It is −grad_b @ x*, or −conj(x) @ grad_bᵀ if
      `transpose` is true. Then the elements outside the triangle that the forward function read are set to 0, and also
      the diagonal if `unitriangular` is true. Finally, grad_cloned_mat is added.

    Source: the gradient of torch.triangular_solve.
    """


@prototype(dtypes=(*wide, *complexes))
def diopiLinalgQR(ctx: Context, A: In, mode: Literal["reduced", "complete", "r"], Q: Out, R: Out):
    """Compute the QR decomposition A = Q R of every matrix of A (…, m, n).

    The columns of Q are orthonormal, and R is upper triangular. Let k = min(m, n). `mode` selects the shapes:

    - "reduced": Q is (…, m, k), and R is (…, k, n).
    - "complete": Q is (…, m, m), and R is (…, m, n).
    - "r": only R is computed, as in "reduced". Q has shape (0) and is not written.

    Any other text is rejected.

    The decomposition is the one that LAPACK's geqrf computes with Householder reflections. For each column, a
    reflection sets the entries below the diagonal to 0 and changes the diagonal entry. The absolute value of the new
    diagonal entry is the norm of the column from the diagonal down. Its sign is opposite to the sign of the real part
    of the old entry, or − if this real part is 0. If the entries below the diagonal are 0 already and the old entry is
    real, nothing changes.

    Q is the product of the reflections, which also defines the columns after the first k. If the rank of A is below k,
    some columns of Q do not follow from A, and an implementation may choose them.

    Source: torch.linalg.qr.
    """


@prototype(
    dtypes=wide,
    ignored=[Ignored(("compute_mode",), "it selects an algorithm, not a result", read=Read.value)],
    backward="diopiCdistBackward",
)
def diopiCdist(ctx: Context, out: Out, input1: In, input2: In, p: NonNegative, compute_mode: i64 | None):
    """Compute the distance of every pair of rows of input1 and input2: (Σ |x − y|^p)^(1/p).

    input1 is (…, P, M), input2 is (…, R, M), and out is (…, P, R). Σ is the sum over the M coordinates. p selects the
    distance:

    - p = 0 gives the number of coordinates that differ.
    - p = inf gives the largest |x − y|.
    - A negative p is rejected.

    For M = 0, the distance is 0. If a difference is NaN, for example ∞ − ∞, the distance is NaN. For p = inf, it is
    then unspecified.

    For p = 2, an implementation may compute √(|x|² + |y|² − 2 x·y) with a matrix product, which is less exact for close
    rows. `compute_mode` states when it may do so: 1 means always, 2 never, and 0 or NULL if P > 25 or R > 25. Other
    numbers are rejected.

    Source: torch.cdist.
    """


@prototype(
    dtypes=wide,
    ignored=[Ignored(("cdist",), "the gradient does not depend on the distances", {"p": (0, 1)})],
)
def diopiCdistBackward(
    ctx: Context, grad_input: Out, grad_output: In, input1: In, input2: In, p: ForwardOrder, cdist: In
):
    """Compute the gradient of `diopiCdist` with respect to input1.

    `cdist` is the forward result. It has the shape (…, P, R), and so does grad_output. grad_input is (…, P, M) with the
    broadcast batch axes.

    Let d = x − y for rows x of input1 and y of input2, D their distance, and g the element of grad_output for this
    pair. The gradient of x is the sum over all y of one term per coordinate:

    - If D = 0, or d = 0 in the coordinate, the term is 0.
    - For p = inf, the term is g · sign(d) where |d| = D, and 0 elsewhere. For a NaN in d, it is unspecified.
    - For p = 0, the term is 0, even if d or g is not finite.
    - Otherwise, it is g · sign(d) · (|d| / D)^(p−1).

    The gradient with respect to input2 is the result of the call with input1 and input2 exchanged, and with grad_output
    and cdist transposed.

    Source: torch.ops.aten._cdist_backward.
    """
