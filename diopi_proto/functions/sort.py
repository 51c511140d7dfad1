"""Sorting, selection of the largest or smallest, and distinct values.

- An axis `dim` is in [−rank, rank), where negative axes count from the last; other values are rejected. 0-d input
  counts as one element, and its dim is 0 or −1.
- NaN is larger than every number, including +inf. Zeros of either sign are equal.
- Results of positions are int64, or int32 if the caller passes an int32 tensor.

Source: the PyTorch function of the same name.
"""

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import complexes, floating, index, numeric, position, real, same
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Axis, Context, Extent, Extents, In, NewOut, Out, boolean

ANY_ORDER_IS_ACCEPTED = "any order of equal elements is accepted"
"""The reason why stability does not affect whether a result is valid."""


@prototype(
    dtypes=real,
    result={"values": same, "indices": position},
    guarantee="any_of",
    ignored=[Ignored(("pStable",), ANY_ORDER_IS_ACCEPTED, read=Read.value)],
    backward="diopiSortBackward",
)
def diopiSort(
    ctx: Context, values: Out, indices: Out, input: In, dim: Axis, descending: boolean, pStable: boolean | None
):
    """Sort input along axis `dim`, in descending order if `descending` is true, otherwise in ascending order.

    values and indices have the shape of input, and values[…, i, …] = input[…, indices[…, i, …], …]. If `pStable` is
    true, equal elements keep their order in input, even in descending order. If it is false or NULL, the order of equal
    elements is unspecified.

    Source: torch.sort.
    """


@prototype(dtypes=(*floating, *complexes), argument_dtypes={"indices": index}, guarantee="exact", moves_numbers=True)
def diopiSortBackward(
    ctx: Context, grad_input: Out, grad_output: In, dim: Axis, indices: In, sizes: Extents, keepdim: boolean
):
    """Compute the gradient of a selection along axis `dim`, such as `diopiSort`, `diopiTopk` or `diopiMax`.

    `grad_input` has the shape `sizes` of the forward input. It is 0, except that grad_input[…, indices[…, i, …], …] =
    grad_output[…, i, …]. grad_output and indices have the same shape, and the indices along the axis are distinct. If
    `keepdim` is false, grad_output and indices lack axis `dim`, and the call treats them as if they had it with size 1.
    The gradients of `diopiSort` and `diopiTopk` require `keepdim` true.

    Source: torch.ops.aten.value_selecting_reduction_backward.
    """


@prototype(
    dtypes=numeric,
    result={"values": same, "indices": position},
    guarantee="any_of",
    ignored=[Ignored(("sorted",), "sorted results are valid in both cases", read=Read.value)],
)
def diopiTopk(
    ctx: Context, values: Out, indices: Out, input: In, k: Extent, dim: Axis, largest: boolean, sorted: boolean
):
    """Return the k largest elements along axis `dim`, or the k smallest if `largest` is false, and their positions.

    values and indices have the shape of input, but size k at axis `dim`. For 0-d input they are 0-d. If `sorted` is
    true, the largest element comes first, or the smallest if `largest` is false. If `sorted` is false, the order is
    unspecified. If elements are equal, it is unspecified which of them are selected, and in which order. A k outside
    [0, size of the axis] is rejected.

    Source: torch.topk.
    """


@prototype(
    dtypes=real,
    result=position,
    guarantee="any_of",
    ignored=[Ignored(("stable",), ANY_ORDER_IS_ACCEPTED, read=Read.value)],
)
def diopiArgsort(ctx: Context, out: Out, input: In, stable: boolean, dim: Axis | None, descending: boolean):
    """Return the positions that sort input along axis `dim`: the result `indices` of `diopiSort`.

    A NULL dim selects the last axis. If `stable` is true, equal elements keep their order in input. If it is false,
    their order is unspecified.

    Source: torch.argsort.
    """


@prototype(
    dtypes=real,
    result={"out": same, "indices": position, "counts": position},
    guarantee="any_of",
    ignored=[Ignored(("sorted",), "the values are always sorted")],
)
def diopiUnique(
    ctx: Context,
    out: NewOut,
    input: In,
    dim: Axis | None,
    sorted: boolean,
    return_counts: boolean,
    indices: Out | None,
    counts: NewOut | None,
):
    """Return the u distinct values of input in ascending order.

    If `dim` is NULL, the values are the single elements of input:

    - out: (u), the distinct elements.
    - indices: in the shape of input, the position in out of each element of input.

    Otherwise, the values are the slices of input across axis `dim`. The order of two slices is the order of their first
    elements, in row-major order, that differ:

    - out: the distinct slices, in the shape of input with size u at axis `dim`.
    - indices: one axis with the size of axis `dim`, the position in out of each slice of input.

    In both cases, counts (u), int64, contains the number of occurrences of each value. The callee allocates it if
    `return_counts` is true. Otherwise, it is not written and may be NULL. If `indices` is NULL, it is not computed.
    Empty input gives empty results. If input contains several NaNs, the results are unspecified.

    Source: torch.unique.
    """
