"""Functions that read, write or select elements by position, index or mask, and their gradients.

The following holds unless a docstring says otherwise:

- Results have the dtype of input. Elements that are only moved are bit for bit the same; only sums of several elements
  round.
- A negative axis counts from the end. An axis out of range is an error.
- Index tensors are int64 or int32. An index out of range is an error. If only the device sees the index, the error may
  be left undetected, and the result is then unspecified. If negative indices count from the end, the docstring says so.
- Masks are bool.
- A number written into a tensor is converted to the dtype of the tensor. A number outside the range of that dtype is an
  error. There are three exceptions: bool accepts every number, floating types accept ±∞, and uint8 accepts the integers
  −255 to −1, which wrap around.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import all_dtypes, floating, index, index32, position, promote
from diopi_proto.dtypes import boolean as truth_values
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Axis,
    Context,
    Count,
    Extents,
    In,
    Index,
    InOut,
    Mask,
    MasksOrIndices,
    MutableIn,
    NewOut,
    Out,
    PositiveExtent,
    StoredIn,
    StoredScalar,
    boolean,
    f64,
    i64,
)
from diopi_proto.types import Dtype

MaxNorm = Annotated[f64, ExcludesNumbers(("negative",), "a norm is never negative")]
"""The largest norm of a row, not negative."""

INDEX_DTYPES = {"index": index}
"""The element types of `index`."""

INDICES_DTYPES = {"indices": index}
"""The element types of `indices`."""

INDICES_OR_MASKS_DTYPES = {"indices": (*index, Dtype.bool, Dtype.uint8)}
"""The element types of `indices` if they may also be masks."""

MASK_DTYPES = {"mask": truth_values}
"""The element type of `mask`."""

IGNORES_INPUT_ELEMENTS = Ignored(("input",), "it has the shape of the result", read=Read.form)
"""Only the shape and the element type of `input` are read."""


def branches(inputs: Sequence[Dtype]) -> Dtype:
    """Return the common type of all inputs except the first, which is the condition."""
    return promote(*inputs[1:])


@prototype(
    dtypes=all_dtypes,
    argument_dtypes=INDICES_OR_MASKS_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    backward="diopiIndexBackward",
)
def diopiIndex(ctx: Context, out: NewOut, input: In, indices: MasksOrIndices, nums: Count):
    """Select elements of input by index tensors and masks: input[indices[0], …, indices[nums − 1]].

    The entries of `indices` apply to the axes of input in order. An entry is one of the following:

    - NULL selects all elements of an axis.
    - An index tensor of any shape selects elements of an axis. Negative indices count from the end.
    - A mask (bool or uint8) of rank r applies to r axes and must have their sizes. It is equivalent to r index tensors,
      the positions of its true elements (`diopiNonzero`).

    All elements of the axes after the last entry are selected. All index tensors are broadcast together to a shape B.
    If the axes with index tensors are adjacent, B replaces them in the shape of *out. Otherwise, B comes first. The
    other axes keep their sizes and their order. *out is contiguous.

    Errors: entries for more axes than input has, index shapes that do not broadcast, a mask of another shape, an index
    out of range.

    Source: torch.Tensor.__getitem__, torch.ops.aten.index.
    """


@prototype(dtypes=floating, argument_dtypes=INDICES_OR_MASKS_DTYPES)
def diopiIndexBackward(
    ctx: Context,
    grad_input: Out,
    zeros_like_input: MutableIn,
    indices: MasksOrIndices,
    nums: Count,
    grad_output: In,
):
    """Compute the gradient of `diopiIndex`: add grad_output to zeros at the positions that `indices` selects.

    grad_input and zeros_like_input have the shape of the forward input. zeros_like_input contains zeros and is only
    read. grad_output has the shape of the forward result. If a position is selected repeatedly, all gradients for it
    are added.

    Source: the gradient of torch.ops.aten.index.
    """


@prototype(
    dtypes=all_dtypes, argument_dtypes=INDICES_OR_MASKS_DTYPES, has_unordered_sums=True, inplace="diopiIndexPutInp"
)
def diopiIndexPut(
    ctx: Context,
    out: Out,
    input: In,
    values: In,
    indices: MasksOrIndices,
    indices_counts: Count,
    accumulate: boolean,
):
    """Copy input, and replace the elements that `diopiIndex` would select by values, or add values to them.

    - values: in the dtype of input, broadcast to the shape of the selection.
    - accumulate: if true, values are added to the selected elements (for bool, combined by or). If false, they replace
      the elements, and nothing is rounded.
    - out: in the shape of input.

    If a position is selected repeatedly and accumulate is true, all values for it are added. If accumulate is false,
    the result is any one of these values. The errors are those of `diopiIndex`, and values that do not broadcast to the
    shape of the selection.

    Source: torch.Tensor.index_put.
    """


@prototype(
    dtypes=all_dtypes,
    argument_dtypes=INDEX_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    backward="diopiIndexSelectBackward",
)
def diopiIndexSelect(ctx: Context, out: Out, input: In, dim: Axis, index: In):
    """Select slices of input along axis dim, in the order of `index`.

    - index: one axis, or 0-d for a single slice, with values in [0, n) for the size n of axis dim. Values may occur
      repeatedly.
    - out: in the shape of input, but axis dim has as many elements as index.

    A 0-d input counts as an axis with one element, and out is then 0-d. Errors: an index of higher rank, more than one
    index for a 0-d input.

    Source: torch.index_select.
    """


@prototype(dtypes=floating, argument_dtypes=INDEX_DTYPES)
def diopiIndexSelectBackward(ctx: Context, grad_input: Out, grad: In, input_sizes: Extents, dim: Axis, index: In):
    """Compute the gradient of `diopiIndexSelect`: add slice i of grad to slice index[i] of zeros.

    grad_input and the zeros have the shape input_sizes. grad has the shape of the forward result. The slices are those
    along axis dim.

    Source: torch.ops.aten.index_select_backward.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True, backward="diopiSelectBackward")
def diopiSelect(ctx: Context, out: Out, input: In, dim: Axis, index: Index):
    """Return the slice `index` of input along axis dim, without that axis.

    A negative index counts from the end. Errors: a 0-d input, an index out of range.

    Source: torch.select.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiSelectBackward(ctx: Context, grad_input: Out, grad_output: In, input_sizes: Extents, dim: Axis, index: Index):
    """Compute the gradient of `diopiSelect`: zeros, with grad_output as the slice `index` along axis dim.

    grad_input has the shape input_sizes. A negative index counts from the end.

    Source: torch.ops.aten.select_backward.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiSelectScatter(ctx: Context, out: Out, input: In, src: In, dim: Axis, index: Index):
    """Copy input, and replace the slice `index` along axis dim by src.

    src has the shape of input without axis dim, and is converted to the dtype of input. A negative index counts from
    the end. Errors: a src of another shape, an index out of range.

    Source: torch.select_scatter.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True, backward="diopiSliceBackward")
def diopiSlice(ctx: Context, null_out: Out, input: In, dim: Axis, start: i64, end: i64, step: PositiveExtent):
    """Select every step-th index of axis dim from start up to, but not including, end.

    The result is input[start:end:step] along axis dim. A negative start or end counts from the end of the axis. Both
    are then clamped to the range of the axis. If end is not greater than start, nothing is selected. `null_out` is the
    result, which is not NULL despite its name. It has the shape of input, but the size of axis dim is the number of
    selected indices. Errors: a 0-d input, step < 1.

    Source: torch.ops.aten.slice.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiSliceBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input_sizes: Extents,
    dim: Axis,
    start: i64,
    end: i64,
    step: PositiveExtent,
):
    """Compute the gradient of `diopiSlice`: zeros, with grad_output at the selected positions.

    grad_input has the shape input_sizes. dim, start, end and step have the values of the forward call.

    Source: torch.ops.aten.slice_backward.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiSliceScatter(
    ctx: Context, out: Out, input: In, src: In, dim: Axis, start: i64, end: i64, step: PositiveExtent
):
    """Copy input, and replace the elements that `diopiSlice` would select by src.

    src has exactly the shape of the selection, and is converted to the dtype of input.

    Source: torch.slice_scatter.
    """


@prototype(
    dtypes=all_dtypes,
    argument_dtypes=MASK_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    inplace="diopiMaskedFillInp",
    scalar="diopiMaskedFillScalar",
    inplace_scalar="diopiMaskedFillInpScalar",
    scalar_arguments=("value",),
)
def diopiMaskedFill(ctx: Context, out: Out, input: In, mask: Mask, value: StoredIn):
    """Return value where mask is true, else input.

    input and mask are broadcast against each other, and out has the resulting shape. value is 0-d, and is converted to
    the dtype of input. A value of higher rank is an error.

    Source: torch.Tensor.masked_fill.
    """


@prototype(dtypes=all_dtypes, argument_dtypes=MASK_DTYPES, guarantee="exact", moves_numbers=True)
def diopiMaskedScatter(ctx: Context, out: Out, input: In, mask: Mask, source: In):
    """Copy input, and replace its i-th masked element by the i-th element of source.

    Elements are counted in row-major order. input and mask are broadcast against each other, and out has the resulting
    shape. source has the dtype of input and any shape. The elements of source after the last used one are ignored. A
    source with fewer elements than the mask has true elements is an error.

    Source: torch.Tensor.masked_scatter.
    """


@prototype(
    dtypes=all_dtypes,
    argument_dtypes=MASK_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    backward="diopiMaskedSelectBackward",
)
def diopiMaskedSelect(ctx: Context, out: NewOut, input: In, mask: Mask):
    """Return the elements of input where mask is true, in row-major order.

    input and mask are broadcast against each other. *out is 1-d; its size is the number of true elements in the
    broadcast mask.

    Source: torch.masked_select.
    """


@prototype(dtypes=floating, argument_dtypes=MASK_DTYPES, ignored=[IGNORES_INPUT_ELEMENTS])
def diopiMaskedSelectBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, mask: Mask):
    """Compute the gradient of `diopiMaskedSelect`: grad_output at the selected positions, 0 elsewhere.

    If input was broadcast, its gradient is summed over the broadcast axes, so that grad_input has the shape of input.

    Source: torch.ops.aten.masked_select_backward.
    """


@prototype(
    dtypes=all_dtypes,
    argument_dtypes=INDEX_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    inplace="diopiIndexFillInp",
    scalar="diopiIndexFillScalar",
    inplace_scalar="diopiIndexFillInpScalar",
    scalar_arguments=("value",),
    beyond_pytorch={"index": index32},
)
def diopiIndexFill(ctx: Context, out: Out, input: In, dim: Axis, index: In, value: StoredIn):
    """Copy input, and fill the slices along axis dim that `index` selects with `value`.

    - index: one axis or 0-d. Negative indices count from the end.
    - value: 0-d. It is converted to the dtype of input.

    A 0-d input counts as an axis with one element.

    Source: torch.index_fill.
    """


@prototype(
    dtypes=all_dtypes,
    argument_dtypes=INDEX_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    backward="diopiGatherBackward",
)
def diopiGather(ctx: Context, out: Out, input: In, dim: Axis, index: In):
    """Pick one element along axis dim for every index.

    For dim = 1 and rank 3, out[i, j, k] = input[i, index[i, j, k], k].

    - index: of the rank of input, with values in [0, n) for the size n of axis dim. No axis except dim is longer than
      that of input.
    - out: in the shape of index.

    A 0-d tensor counts as an axis with one element. An index without elements may have any rank.

    Source: torch.gather.
    """


@prototype(dtypes=all_dtypes, argument_dtypes=INDEX_DTYPES, ignored=[IGNORES_INPUT_ELEMENTS])
def diopiGatherBackward(ctx: Context, grad_input: Out, grad_output: In, input: In, dim: Axis, index: In):
    """Compute the gradient of `diopiGather`: add grad_output to zeros at the gathered positions.

    grad_input has the shape of input, and grad_output has the shape of index. If an element was picked repeatedly, all
    gradients for it are added (for bool, combined by or).

    Source: torch.ops.aten.gather_backward.
    """


@prototype(dtypes=all_dtypes, argument_dtypes=INDEX_DTYPES, has_unordered_sums=True, inplace="diopiScatterInp")
def diopiScatter(
    ctx: Context, out: Out, input: In, dim: Axis, src: In, index: In, reduce: Literal["", "add", "multiply"]
):
    """Copy input, and write src into it along axis dim, at the positions in index.

    For dim = 1 and rank 3, out[i, index[i, j, k], k] = src[i, j, k].

    - index: of the rank of input, with values in [0, n). No axis is longer than that of src, and no axis except dim is
      longer than that of input.
    - src: in the dtype of input. Elements beyond the shape of index are not used.
    - reduce: "" replaces the element of input, "add" adds src to it (for bool: or), and "multiply" multiplies it by
      src (for bool: and). Any other text is an error.

    If several values have the same position, "" writes any one of them, and "add" and "multiply" use all of them. A 0-d
    tensor counts as an axis with one element. If index has no elements, the result is a copy of input.

    Source: torch.scatter.
    """


@prototype(dtypes=all_dtypes, argument_dtypes=INDEX_DTYPES, has_unordered_sums=True, inplace="diopiScatterInpScalar")
def diopiScatterScalar(
    ctx: Context,
    out: Out,
    input: In,
    dim: Axis,
    value: StoredScalar,
    index: In,
    reduce: Literal["", "add", "multiply"],
):
    """Copy input, and write one number into it along axis dim, at the positions in index.

    The function does what `diopiScatter` does with a src that contains `value`, converted to the dtype of input, in
    every element. `reduce` has the same meaning.

    Source: torch.scatter.
    """


@prototype(
    dtypes=all_dtypes,
    argument_dtypes={"condition": (Dtype.bool, Dtype.uint8)},
    result=branches,
    guarantee="exact",
    moves_numbers=True,
)
def diopiWhere(ctx: Context, out: Out, condition: Mask, input: In, other: In):
    """Return input where condition is true, else other.

    A condition of dtype uint8 is true where it is not 0. The three tensors are broadcast against each other. out has
    the common type of input and other.

    Source: torch.where.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=INDICES_DTYPES,
    guarantee="exact",
    moves_numbers=True,
    ignored=[Ignored(("padding_idx", "scale_grad_byfreq", "sparse"), "only the gradient depends on them")],
    backward="diopiEmbeddingBackward",
)
def diopiEmbedding(
    ctx: Context,
    out: Out,
    weight: In,
    indices: In,
    padding_idx: i64,
    scale_grad_byfreq: boolean,
    sparse: boolean,
):
    """Look up rows of the table `weight`: out[…, :] = weight[indices[…], :].

    - weight: (V, D).
    - indices: any shape, with values in [0, V).
    - out: in the shape of indices, followed by D.

    padding_idx, scale_grad_byfreq and sparse affect only the gradient: the row padding_idx is looked up like any other
    row.

    Source: torch.nn.functional.embedding.
    """


@prototype(dtypes=floating, argument_dtypes=INDICES_DTYPES, ignored=[Ignored(("sparse",), "the gradient is dense")])
def diopiEmbeddingBackward(
    ctx: Context,
    out: Out,
    grad: In,
    indices: In,
    num_weights: i64,
    padding_idx: i64,
    scale_grad_byfreq: boolean,
    sparse: boolean,
):
    """Compute the gradient of `diopiEmbedding` for the table: row v is the sum of grad[…, :] where indices is v.

    - grad: in the shape of indices, followed by D.
    - out: (num_weights, D), always a dense tensor; `sparse` has no effect.
    - padding_idx: the row padding_idx of out is 0. The value −1 means that there is no such row.
    - scale_grad_byfreq: if true, row v is divided by the number of times that v occurs in indices.

    Source: torch.ops.aten.embedding_dense_backward.
    """


@prototype(dtypes=floating, argument_dtypes=INDICES_DTYPES)
def diopiEmbeddingRenorm_(ctx: Context, inout: InOut, indices: In, max_norm: MaxNorm, norm_type: f64):
    """Shorten, in place, the rows of a table whose p-norm exceeds max_norm.

    `inout` is the table, (V, D). The call changes only rows that occur in indices and whose norm is greater than
    max_norm. Such a row is multiplied by max_norm / (norm + 1e−7), only once even if it occurs repeatedly. All other
    rows are unchanged bit for bit. norm_type is the order p of the norm as in `diopiNorm`, and may be ∞. indices has
    any shape and values in [0, V).

    Source: torch.embedding_renorm_.
    """


@prototype(dtypes=index, result=position, beyond_pytorch={"input": index32})
def diopiOneHot(ctx: Context, out: Out, input: In, num_classes: i64):
    """Encode classes as one-hot vectors: out[…, c] = 1 where input[…] = c, else 0.

    - input: values in [0, num_classes). If only the device sees a value outside this range, the error may be left
      undetected.
    - num_classes: the number of classes. −1 stands for the largest element of input plus 1; this is an error if input
      has no elements.
    - out: int64, in the shape of input, followed by the number of classes.

    Source: torch.nn.functional.one_hot.
    """


@prototype(dtypes=all_dtypes, result=position)
def diopiNonzero(ctx: Context, out: NewOut, input: In):
    """Return the positions of the elements that are not 0, in row-major order.

    *out is int64 of shape (count, rank). Each row is the position of one element. NaN counts as nonzero. For a 0-d
    input, the shape of *out is (1, 0) or (0, 0).

    Source: torch.nonzero.
    """
