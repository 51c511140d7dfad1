"""Products with sparse matrices."""

from diopi_proto.dtypes import single
from diopi_proto.parameters import Context, Out, Sized, SparseIn
from diopi_proto.prototype import prototype


@prototype(dtypes=single)
def diopiSpMM(ctx: Context, out: Out, input: SparseIn, mat2: Sized):
    """Product input @ mat2 of a sparse matrix and a dense one.

    out[r, :] = Σ values[p] · mat2[col[p], :] over the entries p of row r, 0 if it has none.

    input: [M, K], a compressed-sparse-row tensor (`diopiIsTensorSparse`). The entries of row r are those with
    crow[r] ≤ p < crow[r + 1]: crow [M + 1] is `diopiGetTensorCrowIndices`, col [nnz] `diopiGetTensorColIndices`, both
    int32 or int64, values [nnz] `diopiGetTensorValues`; without values every one is 1. Columns need not be sorted;
    repeated columns add up. mat2: dense [K, N]. out: dense [M, N]. A dense input or a sparse mat2 returns
    diopiNoImplement; mismatched sizes are an error. Source: torch.sparse.mm.
    """
