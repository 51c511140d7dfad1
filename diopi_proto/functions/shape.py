"""Functions that make, move and copy whole tensors: joins, splits, layout, padding, construction and conversion.

Unless a docstring says otherwise: results are copies, never views, of input's dtype and bit for bit equal to the
elements they are made from; tensors may be 0-d, empty or strided. A negative axis counts from the end; an axis out of
range, or named twice where axes are listed, is an error, and so is a result of the wrong shape. Functions without a
tensor input, and those that convert, take the dtype of their result from the tensor the caller made.
"""

from typing import Annotated, Literal

from diopi_proto.dtypes import all_dtypes, caller_chosen, floating, numeric, position, promoted
from diopi_proto.facts import Margins, StepBetween, Stored, WithinAxis
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Axes,
    Axis,
    ChosenOut,
    ConstExtents,
    Context,
    Count,
    Extent,
    Extents,
    In,
    Ins,
    MutableIn,
    NewOut,
    Out,
    OutI64,
    Outs,
    Pointer,
    PositiveCount,
    PositiveExtent,
    Scalar,
    Size,
    StoredScalar,
    f64,
    i64,
)
from diopi_proto.prototype import prototype
from diopi_proto.types import MemoryFormat


@prototype(dtypes=all_dtypes, result=promoted, guarantee="exact")
def diopiCat(ctx: Context, out: Out, tensors: Ins, num_inputs: PositiveCount, dim: Axis):
    """Joins num_inputs ≥ 1 tensors along axis `dim`; out's dtype is the common type of all of them.

    All have the same rank ≥ 1 and the same sizes but along dim; 1-d tensors without elements are left out whatever the
    others' shape. Errors: a 0-d tensor, sizes that differ elsewhere. Source: torch.cat.
    """


@prototype(dtypes=all_dtypes, result=promoted, guarantee="exact")
def diopiStack(ctx: Context, out: Out, tensors: Ins, numTensors: PositiveCount, dim: Axis):
    """Joins numTensors ≥ 1 tensors of one shape along a new axis `dim`, which is an axis of the result.

    out: the common shape with numTensors inserted before axis dim, −1 putting it last; its dtype is the common type of
    all of them. Source: torch.stack.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiSplitWithSizes(ctx: Context, outs: Outs, num_outs: Count, input: In, splitSizes: ConstExtents, dim: Axis):
    """Cuts input along axis `dim` into num_outs pieces: outs[i] takes the next splitSizes[i] indices, in order.

    splitSizes holds num_outs sizes, 0 allowed, whose sum is the axis's. Errors: another sum, a negative size, a 0-d
    input. Source: torch.split_with_sizes.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiTranspose(ctx: Context, out: Out, input: In, dim0: Axis, dim1: Axis):
    """Input with axes dim0 and dim1 exchanged; of a 0-d tensor a copy. Source: torch.transpose."""


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiPermute(ctx: Context, out: Out, input: In, dims: Axes):
    """Input with its axes reordered: axis i of out is axis dims[i] of input; dims names every axis once.

    Source: torch.permute.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiExpand(ctx: Context, out: ChosenOut, input: In):
    """Input repeated to the shape of `out`: axes of size 1 are stretched, new ones put in front.

    The shape is given by out alone; a size that is neither 1 nor out's is an error. Source: torch.Tensor.expand.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiFlip(ctx: Context, out: Out, input: In, dims: Axes):
    """Input with the order along every axis of `dims` reversed; len 0 reverses none.

    0-d input takes the axes 0 and −1. Source: torch.flip.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiRoll(ctx: Context, out: Out, input: In, shifts: Size, dims: Axes):
    """Input moved on by shifts[i] along axis dims[i], what leaves the end entering at the start; negative moves back.

    dims of len 0 moves the flattened elements by the one shift and keeps the shape. An axis may occur several times,
    its shifts then add up. Errors: lists of different length, any axis of a 0-d input. Source: torch.roll.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiRepeat(ctx: Context, out: Out, input: In, repeats_size: Extents):
    """Input tiled: repeats_size[i] copies one after the other along axis i, 0 giving an empty result.

    repeats_size has input's rank or more; the input of lower rank gets axes of size 1 in front. Errors: fewer entries,
    a negative one. Source: torch.Tensor.repeat.
    """


@prototype(
    dtypes=all_dtypes,
    guarantee="exact",
    ignored=[Ignored(("value",), "only constant margins have one", {"mode": ("reflect", "replicate", "circular")})],
)
def diopiPad(
    ctx: Context,
    out: Out,
    input: In,
    pad: Annotated[Size, Margins("input", "mode")],
    mode: Literal["constant", "reflect", "replicate", "circular"],
    value: Annotated[f64, Stored()] | None,
):
    """Input with margins: pad lists (before, after) for the last axis, then the one before it, and so on.

    A negative margin cuts elements off. mode "constant" fills with value, converted to input's dtype, NULL meaning 0;
    "reflect" mirrors about the edge element, "replicate" repeats it, "circular" continues from the other end of what
    is left after the cuts; these three pad the last one, two or three axes of an input with one or two
    axes more than that, whose batch may be empty. A circular margin larger than what is left gives an unspecified
    result.
    Errors: an odd number of entries or more than two an axis, another mode, an input of another rank than these three
    modes take, a size below 0, a margin not smaller than the axis for reflect or larger than it for circular, a value
    outside the range of input's dtype (bool takes all). Source: torch.nn.functional.pad.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", backward="diopiUnfoldBackward")
def diopiUnfold(
    ctx: Context,
    out: Out,
    input: In,
    dim: Axis,
    size: Annotated[Extent, WithinAxis("input", "dim")],
    step: PositiveExtent,
):
    """Sliding windows of `size` elements along axis `dim`, one every `step`.

    out: input's shape with axis dim reduced to (n − size) // step + 1 and `size` appended as the last axis;
    out[…, i, …, j] = input[…, i·step + j, …]. A 0-d input counts as one element (n = 1)
    and gives (size). Errors: size < 0 or > n, step < 1. Source: torch.Tensor.unfold.
    """


@prototype(dtypes=floating)
def diopiUnfoldBackward(
    ctx: Context, grad_input: Out, grad_output: In, input_sizes: Extents, dim: Axis, size: Extent, step: PositiveExtent
):
    """Gradient of `diopiUnfold`: every window is added back where it came from, what no window covers is 0.

    grad_input: of shape input_sizes, the forward input's. Source: torch.ops.aten.unfold_backward.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiTril(ctx: Context, out: Out, input: In, diagonal: i64):
    """Lower triangle of every matrix: input[…, i, j] where j − i ≤ diagonal, else 0; leading axes are a batch.

    Errors: rank below 2. Source: torch.tril.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", inplace="diopiTriuInp")
def diopiTriu(ctx: Context, out: Out, input: In, diagonal: i64):
    """Upper triangle of every matrix: input[…, i, j] where j − i ≥ diagonal, else 0; leading axes are a batch.

    Errors: rank below 2. Source: torch.triu.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiMeshGrid(ctx: Context, outs: Outs, inputs: Ins, inputsNum: Count):
    """Coordinate grids: outs[k][i₀, …, i_{n−1}] = inputs[k][i_k] for n = inputsNum tensors of one dtype.

    inputs: 1-d, a 0-d one counting as one element; outs: n tensors whose shape is the list of all lengths, in order.
    Errors: an input of higher rank or another dtype.
    Source: torch.meshgrid with indexing "ij".
    """


@prototype(
    dtypes=numeric,
    result=caller_chosen,
    ignored=[Ignored(("end",), "the length of the result says it", read=Read.value)],
)
def diopiArange(
    ctx: Context, out: Out, start: Scalar, end: Scalar, step: Annotated[Scalar, StepBetween("start", "end")]
):
    """The numbers start + i·step for i = 0, 1, …, up to but not including end.

    out: 1-d, its length that of the result, ⌈(end − start)/step⌉; an integer out takes start, end and step with their
    fractions dropped first, and as many elements as the caller made. Errors: step 0, also once its fraction is dropped,
    or leading away from end; numbers that are not finite.
    Source: torch.arange.
    """


@prototype(dtypes=numeric, result=caller_chosen)
def diopiLinspace(ctx: Context, out: Out, start: Scalar, end: Scalar, steps: Extent):
    """`steps` numbers at equal distances from start to end, both included: start + i·(end − start)/(steps − 1).

    out: (steps); one step gives start alone. An integer out takes start and end with their fractions dropped, and every
    element rounded towards zero as computed in float64 from the nearer end, with step = (end − start)/(steps − 1): of
    the first steps // 2 elements start + i·step, then end − (steps − 1 − i)·step. What is left open is whether product
    and sum are rounded once (as PyTorch's kernels do where the processor can) or each. Errors: steps < 0; for an
    integer out, start or end beyond its range. Source: torch.linspace.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiFill(ctx: Context, input: Out, value: StoredScalar):
    """Writes `value`, converted to the tensor's dtype, into every element of `input`; what it held is not read.

    An integer tensor takes value with its fraction dropped, bool whether it is not 0. A value outside the dtype's range
    is an error; ∞ and NaN are for integers only, and half precision takes any as ∞. Source: torch.Tensor.fill_.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiOnes(ctx: Context, out: Out, size: Extents):
    """Ones of out's dtype; `size` repeats out's shape. Source: torch.ones."""


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiZeros(ctx: Context, out: Out, size: Extents):
    """Zeros of out's dtype; `size` repeats out's shape. Source: torch.zeros."""


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiZeroInp(ctx: Context, self: Out):
    """Writes zero into every element of `self`; what it held is not read. Source: torch.Tensor.zero_."""


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiCopyInp(ctx: Context, src: In, dest: Out):
    """Copies src into dest, broadcast to its shape and converted to its dtype as `diopiCastDtype` does.

    The source comes first. Either tensor may lie in host memory; the copy is asynchronous.
    Source: torch.Tensor.copy_.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiCastDtype(ctx: Context, out: Out, input: In):
    """Input converted to the dtype of `out`; both have one shape.

    To a floating type: the nearest value, ties to even, ∞ beyond the range. From a floating type to an integer one: the
    fraction is dropped; NaN and values out of range give an unspecified result. Between integers: modulo 2^bits. To
    bool: whether it is not 0, NaN is true. From complex to real: the imaginary part is dropped. Source:
    torch.Tensor.to.
    """


@prototype(
    dtypes=all_dtypes,
    guarantee="exact",
    ignored=[Ignored(("memoryFormat",), "it says where the elements lie", read=Read.value)],
)
def diopiContiguous(ctx: Context, out: NewOut, input: In, memoryFormat: MemoryFormat):
    """Input's elements in a tensor whose memory is dense in the order memoryFormat.

    *out is a new tensor of input's shape and dtype, or input's own handle if its memory is in that order already.
    Contiguous: the last axis varies fastest. ChannelsLast1d, ChannelsLast, ChannelsLast3d: of an input of rank 3, 4, 5,
    axis 1 varies fastest, then the others from the last. Preserve: input's own order where its memory is dense, else
    contiguous. Errors: a channels-last order for another rank. Source: torch.Tensor.contiguous.
    """


@prototype(dtypes=all_dtypes, guarantee="exact")
def diopiNativeMemoryFormatCast(ctx: Context, out: NewOut, in_: MutableIn, format: i64):
    """`in` in one of the device's own memory layouts, `format` being the device's code for it.

    *out has the shape, dtype and elements of `in`; it is `in` itself where nothing changes, as on every device without
    layouts of its own. An unknown code is an error on a device that has them; 0 is known to all. Source: this
    interface.
    """


@prototype(dtypes=all_dtypes, result=position)
def diopiGetNativeMemoryFormat(ctx: Context, input: In, format: OutI64):
    """The device's code of the memory layout input is in, as `diopiNativeMemoryFormatCast` takes it.

    Written before the call returns. Casting a tensor to the code reported for it changes nothing. Source: this
    interface.
    """


@prototype()
def diopiTensorDestructionHook(ctx: Context, ptr: Pointer):
    """Tells the implementation that the tensor memory at `ptr` is about to go: it forgets what it noted about it.

    An address it knows nothing about is no error. Source: this interface.
    """
