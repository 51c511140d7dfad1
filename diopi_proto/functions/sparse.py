"""Products with sparse matrices."""

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import single
from diopi_proto.parameters import Context, Out, Sized, SparseIn


@prototype(dtypes=single)
def diopiSpMM(ctx: Context, out: Out, input: SparseIn, mat2: Sized):
    """Multiply a sparse matrix by a dense matrix: input @ mat2.

    out[r, :] = Σ values[p] · mat2[col[p], :] over the entries p of row r; a row without entries gives 0.

    - input: [M, K], a compressed sparse row tensor (`diopiIsTensorSparse`). The entries of row r are those with crow[r]
      ≤ p < crow[r + 1].
    - crow [M + 1] is the result of `diopiGetTensorCrowIndices` for input, and col [nnz] is the result of
      `diopiGetTensorColIndices`. Both are int32 or int64. nnz is the number of entries.
    - values [nnz] is the result of `diopiGetTensorValues`. Without values, every value is 1.
    - mat2: dense [K, N]. out: dense [M, N].

    The columns of a row need not be sorted. Entries of repeated columns are added. For a dense input or a sparse mat2,
    the call returns diopiNoImplement. Sizes that do not match are an error.

    Source: torch.sparse.mm.
    """
