"""Functions that create, rearrange and copy tensors: joining, splitting, layout, padding, construction and conversion.

The following holds unless a docstring says otherwise:

- Results are copies, never views. They have the dtype of input, and their elements are bitwise equal to the input
  elements that they are copied from.
- Tensors may be 0-d, empty or strided.
- A negative axis counts from the end. An axis that is out of range or that occurs twice in a list of axes is an error.
  A result of the wrong shape is an error too.
- Functions without a tensor input, and functions that convert, take the dtype of their result from the tensor that the
  caller allocates.
"""

from typing import Annotated, Literal

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import all_dtypes, caller_chosen, floating, numeric, position, promoted
from diopi_proto.facts import ExcludesNumbers, Margins, StepBetween, Stored, WithinAxis
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
from diopi_proto.types import MemoryFormat

Step = Annotated[Scalar, StepBetween("start", "end"), ExcludesNumbers(("zero",), "a range with step 0 never ends")]
"""The step of a range from `start` to `end`, not 0."""


@prototype(dtypes=all_dtypes, result=promoted, guarantee="exact", moves_numbers=True)
def diopiCat(ctx: Context, out: Out, tensors: Ins, num_inputs: PositiveCount, dim: Axis):
    """Concatenate num_inputs ≥ 1 tensors along axis `dim`; out's dtype is the common type of all inputs.

    All inputs have the same rank ≥ 1, and the same sizes except along dim. There is one exception: 1-d tensors without
    elements are skipped, whatever the shape of the other inputs. Errors: a 0-d tensor; sizes that differ along another
    axis.

    Source: torch.cat.
    """


@prototype(dtypes=all_dtypes, result=promoted, guarantee="exact", moves_numbers=True)
def diopiStack(ctx: Context, out: Out, tensors: Ins, numTensors: PositiveCount, dim: Axis):
    """Stack numTensors ≥ 1 tensors of the same shape along a new axis `dim` of the result.

    out has the common shape, with the size numTensors inserted as axis dim; dim −1 means that the new axis is the last
    one. The dtype of out is the common type of all inputs.

    Source: torch.stack.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiSplitWithSizes(ctx: Context, outs: Outs, num_outs: Count, input: In, splitSizes: ConstExtents, dim: Axis):
    """Split input along axis `dim` into num_outs chunks: outs[i] takes the next splitSizes[i] indices, in order.

    splitSizes contains num_outs sizes. They may be 0, and their sum is the size of the axis. Errors: another sum; a
    negative size; a 0-d input.

    Source: torch.split_with_sizes.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiTranspose(ctx: Context, out: Out, input: In, dim0: Axis, dim1: Axis):
    """Return input with the axes dim0 and dim1 exchanged. A 0-d tensor is copied.

    Source: torch.transpose.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiPermute(ctx: Context, out: Out, input: In, dims: Axes):
    """Return input with its axes reordered: axis i of out is axis dims[i] of input; dims names every axis once.

    Source: torch.permute.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiExpand(ctx: Context, out: ChosenOut, input: In):
    """Expand input to the shape of `out`: repeat axes of size 1, and add new axes in front.

    Only the shape of out determines the shape of the result. A size of input that is neither 1 nor the size of out is
    an error.

    Source: torch.Tensor.expand.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiFlip(ctx: Context, out: Out, input: In, dims: Axes):
    """Return input with the order of elements reversed along every axis of `dims`.

    An empty dims reverses no axis. For 0-d input, dims may contain the axes 0 and −1.

    Source: torch.flip.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiRoll(ctx: Context, out: Out, input: In, shifts: Size, dims: Axes):
    """Shift input by shifts[i] along axis dims[i]; elements that leave the end re-enter at the start.

    A negative shift moves elements towards the start. If dims is empty, shifts has one entry. It moves the elements in
    row-major order, and the shape stays the same. An axis may occur several times; its shifts then add up. Errors:
    lists of different length, unless dims is empty; any axis of a 0-d input.

    Source: torch.roll.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiRepeat(ctx: Context, out: Out, input: In, repeats_size: Extents):
    """Repeat input repeats_size[i] times along axis i; 0 gives an empty result.

    repeats_size has at least as many entries as input has axes. If it has more, input gets axes of size 1 in front.
    Errors: fewer entries; a negative entry.

    Source: torch.Tensor.repeat.
    """


@prototype(
    dtypes=all_dtypes,
    guarantee="exact",
    moves_numbers=True,
    ignored=[Ignored(("value",), "only constant padding uses it", {"mode": ("reflect", "replicate", "circular")})],
)
def diopiPad(
    ctx: Context,
    out: Out,
    input: In,
    pad: Annotated[Size, Margins("input", "mode")],
    mode: Literal["constant", "reflect", "replicate", "circular"],
    value: Annotated[f64, Stored()] | None,
):
    """Add elements at the ends of axes, or remove elements there.

    `pad` lists the numbers of new elements (before, after) for the last axis, then for the axis before it, and so on. A
    negative number removes elements. `mode` selects the values of the new elements:

    - "constant": value, converted to the dtype of input; NULL means 0.
    - "reflect": the elements next to the edge element, mirrored at it. The edge element is not repeated.
    - "replicate": the edge element.
    - "circular": the elements from the other end of the axis. Negative numbers first remove elements. If there are more
      new elements than remaining ones, the result is unspecified.

    "constant" applies to any number of axes. The other modes apply to the last one, two or three axes, and input must
    have one or two axes more than that. The first of two additional axes, the batch, may have size 0.

    The following are errors:

    - an odd number of entries in `pad`, or more than two per axis
    - another mode, or an input whose rank the mode does not accept
    - a resulting size below 0
    - for "reflect", padding that is not smaller than the axis
    - for "circular", padding that is larger than the axis
    - a value outside the range of the dtype of input (bool accepts every value)

    Source: torch.nn.functional.pad.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True, backward="diopiUnfoldBackward")
def diopiUnfold(
    ctx: Context,
    out: Out,
    input: In,
    dim: Axis,
    size: Annotated[Extent, WithinAxis("input", "dim")],
    step: PositiveExtent,
):
    """Return sliding windows of `size` elements along axis `dim`, one every `step` elements.

    Let n be the size of axis dim. out has the shape of input, except that axis dim has the size (n − size) // step + 1.
    An axis of size `size` is appended. out[…, i, …, j] = input[…, i·step + j, …]. A 0-d input counts as one element
    (n = 1) and gives the shape (size). Errors: size < 0 or size > n, step < 1.

    Source: torch.Tensor.unfold.
    """


@prototype(dtypes=floating)
def diopiUnfoldBackward(
    ctx: Context, grad_input: Out, grad_output: In, input_sizes: Extents, dim: Axis, size: Extent, step: PositiveExtent
):
    """Compute the gradient of `diopiUnfold`: add every window back to its position; uncovered positions are 0.

    grad_input has the shape input_sizes, which is the shape of the forward input. dim, size and step have the values of
    the forward call. Gradients of overlapping windows are added.

    Source: torch.ops.aten.unfold_backward.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiTril(ctx: Context, out: Out, input: In, diagonal: i64):
    """Return the lower triangle of every matrix: input[…, i, j] where j − i ≤ diagonal, and 0 elsewhere.

    The last two axes are the matrices, and the other axes are batch axes. Errors: rank below 2.

    Source: torch.tril.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True, inplace="diopiTriuInp")
def diopiTriu(ctx: Context, out: Out, input: In, diagonal: i64):
    """Return the upper triangle of every matrix: input[…, i, j] where j − i ≥ diagonal, and 0 elsewhere.

    The last two axes are the matrices, and the other axes are batch axes. Errors: rank below 2.

    Source: torch.triu.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiMeshGrid(ctx: Context, outs: Outs, inputs: Ins, inputsNum: Count):
    """Create coordinate grids: outs[k][i₀, …, i_{n−1}] = inputs[k][i_k] for n = inputsNum tensors of one dtype.

    inputs: 1-d tensors; a 0-d tensor counts as one element. outs: n tensors whose shape lists the lengths of all
    inputs, in order. Errors: an input of higher rank or another dtype.

    Source: torch.meshgrid with indexing "ij".
    """


@prototype(
    dtypes=numeric,
    result=caller_chosen,
    ignored=[Ignored(("end",), "the length of the result determines it", read=Read.value)],
)
def diopiArange(ctx: Context, out: Out, start: Scalar, end: Scalar, step: Step):
    """Return the numbers start + i·step for i = 0, 1, …, up to but not including end.

    out is 1-d, of length ⌈(end − start)/step⌉. If start equals end, it has no elements. If out is an integer tensor,
    the fractions of start, end and step are dropped first. The result then has as many elements as the tensor that the
    caller allocated. Errors: a step that is 0, also after its fraction is dropped; a step whose sign leads away from
    end; numbers that are not finite.

    Source: torch.arange.
    """


@prototype(dtypes=numeric, result=caller_chosen)
def diopiLinspace(ctx: Context, out: Out, start: Scalar, end: Scalar, steps: Extent):
    """Return `steps` evenly spaced numbers from start to end, inclusive: start + i·(end − start)/(steps − 1).

    out is (steps). One step gives only start.

    If out is an integer tensor, the fractions of start and end are dropped. Every element is computed in float64 from
    the nearer end, and then rounded towards zero. With step = (end − start)/(steps − 1), the first steps // 2 elements
    are start + i·step. The others are end − (steps − 1 − i)·step. The product and the sum may be rounded together, as
    PyTorch's kernels do on processors with fused multiply-add, or separately.

    Errors: steps < 0; for an integer out, start or end beyond its range.

    Source: torch.linspace.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiFill(ctx: Context, input: Out, value: StoredScalar):
    """Write `value`, converted to the dtype of `input`, into every element of `input`.

    The old elements are not read. The conversion depends on the dtype:

    - Integers: the fraction of value is dropped. A number outside the range of the dtype, ∞ and NaN are errors. There
      is one exception: in uint8, the integers −255 to −1 wrap around.
    - bool: the elements become whether value is not 0.
    - float16 and bfloat16: a finite number beyond the range becomes ∞.
    - float32, float64 and complex: a finite number beyond the range is an error.

    Source: torch.Tensor.fill_.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiOnes(ctx: Context, out: Out, size: Extents):
    """Fill `out` with ones of its dtype.

    `size` contains the shape of out.

    Source: torch.ones.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiZeros(ctx: Context, out: Out, size: Extents):
    """Fill `out` with zeros of its dtype.

    `size` contains the shape of out.

    Source: torch.zeros.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact")
def diopiZeroInp(ctx: Context, self: Out):
    """Write zero into every element of `self`. The old elements are not read.

    Source: torch.Tensor.zero_.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact", moves_numbers=True)
def diopiCopyInp(ctx: Context, src: In, dest: Out):
    """Copy src into dest, broadcast to the shape of dest and converted to its dtype as by `diopiCastDtype`.

    src is the first argument, and dest the second. Each tensor may be in host memory. The copy is asynchronous.

    Source: torch.Tensor.copy_.
    """


@prototype(dtypes=all_dtypes, result=caller_chosen, guarantee="exact", moves_numbers=True)
def diopiCastDtype(ctx: Context, out: Out, input: In):
    """Convert input to the dtype of `out`; both have the same shape.

    - to a floating type: the nearest value with ties to even, and ±∞ beyond the range
    - from a floating type to an integer type: the fraction is dropped. NaN and values out of range give an unspecified
      result.
    - between integer types: the number modulo 2^bits
    - to bool: whether the element is not 0. NaN gives true.
    - from a complex type to a real type: the imaginary part is dropped

    Source: torch.Tensor.to.
    """


@prototype(
    dtypes=all_dtypes,
    guarantee="exact",
    moves_numbers=True,
    ignored=[Ignored(("memoryFormat",), "only the order in memory depends on it", read=Read.value)],
)
def diopiContiguous(ctx: Context, out: NewOut, input: In, memoryFormat: MemoryFormat):
    """Return a tensor with the elements of input, whose memory is dense and in the order that memoryFormat selects.

    *out is a new tensor with the shape and dtype of input. If the memory of input is already in that order, *out may be
    the handle of input instead. The orders are:

    - Contiguous: the last axis varies fastest.
    - ChannelsLast1d, ChannelsLast, ChannelsLast3d: axis 1 varies fastest, then the other axes from the last to the
      first. input has rank 3, 4 and 5, respectively.
    - Preserve: the order of input if its memory is dense, otherwise contiguous.

    Errors: a channels-last order for another rank.

    Source: torch.Tensor.contiguous.
    """


@prototype(dtypes=all_dtypes, guarantee="exact", moves_numbers=True)
def diopiNativeMemoryFormatCast(ctx: Context, out: NewOut, in_: MutableIn, format: i64):
    """Convert `in` to one of the device's own memory layouts; `format` is the device's code for the layout.

    *out has the shape, dtype and elements of `in`. If nothing changes, *out is `in` itself. This is always the case on
    a device without its own layouts. On a device with its own layouts, an unknown code is an error. Every device knows
    the code 0.

    Source: this interface.
    """


@prototype(dtypes=all_dtypes, result=position)
def diopiGetNativeMemoryFormat(ctx: Context, input: In, format: OutI64):
    """Write the device's code for the memory layout of input to `*format`; `diopiNativeMemoryFormatCast` accepts the
    code.

    The code is written before the call returns. If `diopiNativeMemoryFormatCast` receives a tensor and the code of this
    tensor, it changes nothing.

    Source: this interface.
    """


@prototype()
def diopiTensorDestructionHook(ctx: Context, ptr: Pointer):
    """Notify the implementation that the tensor memory at `ptr` is about to be released.

    The implementation discards everything that it has recorded about this memory. An address about which it has
    recorded nothing is not an error.

    Source: this interface.
    """
