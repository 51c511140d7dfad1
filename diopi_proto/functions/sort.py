"""Sorting, selection of the largest or smallest, and distinct values.

An axis `dim` lies in [−rank, rank), negative counts from the last; otherwise it is rejected. 0-d input counts as one
element and takes 0 and −1. NaN counts as larger than every number, +inf included; zeros of either sign are equal. Index
results are int64, or int32 if the caller made the tensor so. Source: the PyTorch function of the same name.
"""

from diopi_proto.dtypes import complexes, floating, index, numeric, position, real, same
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Axis, Context, Extent, Extents, In, NewOut, Out, boolean
from diopi_proto.prototype import prototype

STABLE = "a validator checks the order of equal elements"


@prototype(
    dtypes=real,
    result={"values": same, "indices": position},
    guarantee="any_of",
    ignored=[Ignored(("pStable",), STABLE, read=Read.value)],
    backward="diopiSortBackward",
)
def diopiSort(
    ctx: Context, values: Out, indices: Out, input: In, dim: Axis, descending: boolean, pStable: boolean | None
):
    """input sorted along axis `dim`, ascending or `descending`; both results have input's shape.

    values[…, i, …] = input[…, indices[…, i, …], …]. `pStable` true: equal elements keep their order in the input,
    descending too; false or NULL: their order is free. Source: torch.sort.
    """


@prototype(dtypes=(*floating, *complexes), argument_dtypes={"indices": index}, guarantee="exact")
def diopiSortBackward(
    ctx: Context, grad_input: Out, grad_output: In, dim: Axis, indices: In, sizes: Extents, keepdim: boolean
):
    """Gradient of a selection along axis `dim`, such as `diopiSort`, `diopiTopk` or `diopiMax`.

    `grad_input`, of shape `sizes` (the forward input's), is 0 but for grad_input[…, indices[…, i, …], …] =
    grad_output[…, i, …]; grad_output and indices have one shape, and indices are distinct along the axis. `keepdim`
    false: both lack axis `dim`, which is first put back with size 1; sort and topk want true. Source:
    torch.ops.aten.value_selecting_reduction_backward.
    """


@prototype(
    dtypes=numeric,
    result={"values": same, "indices": position},
    guarantee="any_of",
    ignored=[Ignored(("sorted",), "sorted results are right for either", read=Read.value)],
)
def diopiTopk(
    ctx: Context, values: Out, indices: Out, input: In, k: Extent, dim: Axis, largest: boolean, sorted: boolean
):
    """The k largest, or smallest if not `largest`, elements along axis `dim`, and their positions there.

    Both results have input's shape but for size k at `dim` (0-d input: 0-d). `sorted` true orders them, the most
    extreme first; false leaves the order free. Which of equal elements are taken, and their order, is free. k outside
    [0, size] is rejected. Source: torch.topk.
    """


@prototype(dtypes=real, result=position, guarantee="any_of", ignored=[Ignored(("stable",), STABLE, read=Read.value)])
def diopiArgsort(ctx: Context, out: Out, input: In, stable: boolean, dim: Axis | None, descending: boolean):
    """The positions that sort input along axis `dim`, NULL for the last: the `indices` of `diopiSort`.

    `stable` true: equal elements keep their order in the input; false: their order is free. Source: torch.argsort.
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
    """The u distinct values of input, ascending.

    `dim` NULL: `out` (u) holds the distinct elements, and `indices`, of input's shape, the position in out of each
    element. Otherwise the slices of input across axis `dim` are compared: `out` has input's shape but for size u at
    `dim`, its slices ordered by their first differing element in row-major order; `indices` (size of `dim`) maps each
    slice of input to its place in out. `counts` (u), int64, tells how often each occurs; the callee makes it if
    `return_counts`, otherwise it is not touched and may be NULL. `indices` NULL is not wanted. Empty input gives empty
    results. What several NaNs give is left open. Source: torch.unique.
    """
