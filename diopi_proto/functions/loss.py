"""Loss functions and their gradients.

The reduction determines what happens to the element losses: none returns them, mean averages them, sum adds them up.
Any other value is an error. mean and sum write a 0-d `out`. If there are no elements, the mean is NaN and the sum is 0.

In the gradients, grad_output has the shape of the forward result, and grad_input has the shape and dtype of input. w is
the factor by which the reduction multiplies every element loss. It is 1 for none and sum. For mean it is 1 / (number of
elements) unless a docstring says otherwise.

All floating tensors of a call have the same dtype unless a docstring says otherwise. Classes are int64, int32 or uint8
indices in [0, C). Tensors of a shape or size that does not fit are an error. Some errors are in values that only the
device sees: a class out of range, or a probability outside [0, 1]. The call may report such an error. If it does not,
the result is unspecified.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index, index32, numeric, promoted, real, same_as_input, wide
from diopi_proto.facts import AtLeast, AtMostOne, ExcludesNumbers, LengthsWithin, LessThanSize, SizesFollow
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Broadcast, Context, In, MutableIn, NonNegative, Out, Sized, boolean, f32, f64, i64
from diopi_proto.types import Dtype, Reduction

Focus = Annotated[f32, ExcludesNumbers(("negative",), "focal loss is defined for γ ≥ 0")]
"""The exponent γ of a focal loss, not negative."""

TARGET_DTYPES = {"target": real}
"""The element types of a `target` that the call converts."""

WEIGHT_DTYPES = {"weight": real}
"""The element types of a `weight` that the call converts."""

WEIGHTS_DTYPES = {"weight": real, "pos_weight": numeric}
"""The element types of `weight` and `pos_weight`."""

CLASS_DTYPES = {"target": (*index, Dtype.uint8)}
"""The element types of a `target` of class indices."""

CLASS_OR_PROBABILITY_DTYPES = {"target": (*index, Dtype.uint8, *floating)}
"""The element types of a `target` of class indices or class probabilities."""

INT32_CLASSES = {"target": index32}
"""The standard accepts int32 class indices, and PyTorch does not."""

IGNORES_INPUT_ELEMENTS = Ignored(("input",), "it has the shape of the result", read=Read.form)
"""Only the shape and the element type of `input` are read."""

IGNORES_IGNORE_INDEX = Ignored(("ignore_index",), "probabilities name no class", {"target": floating})
"""`ignore_index` is ignored if `target` contains probabilities."""

LABEL_DTYPES = {"targets": index, "input_lengths": index, "target_lengths": index}
"""The element types of labels and their lengths."""

Blank = Annotated[i64, AtLeast(0), LessThanSize("log_probs", 2)]
"""The class of the blank, less than the number of classes."""

InputLengths = Annotated[In, SizesFollow(), LengthsWithin("log_probs", 0)]
"""The lengths of the samples, at most the number of steps."""

TargetLengths = Annotated[In, SizesFollow(), LengthsWithin("targets", -1)]
"""The lengths of the targets, at most the size of the last axis of `targets`."""


@prototype(dtypes=floating, argument_dtypes=TARGET_DTYPES, result=promoted, backward="diopiMSELossBackward")
def diopiMSELoss(ctx: Context, out: Out, input: In, target: Broadcast, reduction: Reduction):
    """Compute the squared error (input − target)² of each element, and reduce it.

    target is broadcast to the shape of input, and may have any dtype. out has the dtype to which both inputs promote.

    Source: torch.nn.functional.mse_loss.
    """


@prototype(dtypes=floating, argument_dtypes=TARGET_DTYPES, result=same_as_input(1))
def diopiMSELossBackward(
    ctx: Context, grad_input: Out, grad_output: In, input: Broadcast, target: Broadcast, reduction: Reduction
):
    """Compute the gradient of `diopiMSELoss` with respect to its input: 2·(input − target) · w·grad_output.

    w is 1 for the reductions none and sum, and 1 / (number of elements) for mean.

    Source: torch.ops.aten.mse_loss_backward.
    """


@prototype(dtypes=floating, argument_dtypes=TARGET_DTYPES, result=promoted, backward="diopiSmoothL1LossBackward")
def diopiSmoothL1Loss(ctx: Context, out: Out, input: In, target: Broadcast, reduction: Reduction, beta: NonNegative):
    """Compute the smooth L1 loss of d = |input − target|: d²/(2·beta) where d < beta, else d − beta/2.

    target is broadcast to the shape of input. It may have any dtype, except bool if beta is 0. out has the dtype to
    which both inputs promote. For beta = 0, the loss is d. A negative beta is an error.

    Source: torch.nn.functional.smooth_l1_loss.
    """


@prototype(dtypes=floating, argument_dtypes=TARGET_DTYPES, result=same_as_input(1))
def diopiSmoothL1LossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Broadcast,
    target: Broadcast,
    reduction: Reduction,
    beta: NonNegative,
):
    """Compute the gradient of `diopiSmoothL1Loss` with respect to its input.

    With d = input − target, the gradient is d/beta · w·grad_output where |d| < beta, else sign(d) · w·grad_output. It
    is 0 where d is 0, for every beta. w is 1 for the reductions none and sum, and 1 / (number of elements) for mean.

    Source: torch.ops.aten.smooth_l1_loss_backward.
    """


@prototype(dtypes=floating, argument_dtypes=WEIGHT_DTYPES, backward="diopiBCELossBackward")
def diopiBCELoss(ctx: Context, out: Out, input: In, target: Sized, weight: Broadcast | None, reduction: Reduction):
    """Compute the binary cross entropy −weight · (target·ln input + (1 − target)·ln(1 − input)).

    Logarithms below −100 are replaced by −100, so that the loss is finite. input and target are probabilities in [0, 1]
    and have the same shape. weight may have any dtype and is broadcast to that shape; NULL means 1. The reduction mean
    divides by the number of elements, not by the sum of the weights.

    Source: torch.nn.functional.binary_cross_entropy.
    """


@prototype(dtypes=floating, argument_dtypes=WEIGHT_DTYPES)
def diopiBCELossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    target: Sized,
    weight: Broadcast | None,
    reduction: Reduction,
):
    """Compute the gradient of `diopiBCELoss` with respect to its input.

    The gradient is weight · (input − target) / max(input·(1 − input), 1e−12) · w·grad_output. w is 1 for the reductions
    none and sum, and 1 / (number of elements) for mean.

    Source: torch.ops.aten.binary_cross_entropy_backward.
    """


@prototype(dtypes=floating, argument_dtypes=WEIGHTS_DTYPES, backward="diopiBCEWithLogitsBackward")
def diopiBCEWithLogits(
    ctx: Context,
    out: Out,
    input: In,
    target: Sized,
    weight: Broadcast | None,
    pos_weight: Broadcast | None,
    reduction: Reduction,
):
    """Compute the binary cross entropy between the sigmoid of the logits x = input, and target.

    The loss of an element is −weight · (pos_weight·target·ln σ(x) + (1 − target)·ln(1 − σ(x))) with σ(x) = 1/(1 + e⁻ˣ).
    The logarithms are computed without overflow: ln σ(x) = min(x, 0) − ln(1 + e^−|x|), and ln(1 − σ(x)) = ln σ(−x).

    - input, target: the same shape.
    - weight, pos_weight: broadcast to that shape; NULL means 1. weight may have any dtype, and pos_weight any dtype
      except bool.

    The reduction mean divides by the number of elements. The loss of x = −∞, and of x = ∞ with target 1, is
    unspecified, because PyTorch computes ∞ − ∞. For a pos_weight 0 of dtype uint8 the result is unspecified, because
    PyTorch wraps 0 − 1 around.

    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    """


@prototype(dtypes=floating, argument_dtypes=WEIGHTS_DTYPES)
def diopiBCEWithLogitsBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    target: Sized,
    weight: Broadcast | None,
    pos_weight: Broadcast | None,
    reduction: Reduction,
):
    """Compute the gradient of `diopiBCEWithLogits` with respect to its input.

    The gradient is weight · ((1 − t + p·t)·σ(x) − p·t) · w·grad_output, where x is input, t is target, p is pos_weight,
    and σ(x) = 1/(1 + e⁻ˣ). NULL for weight or pos_weight means 1. w is 1 for the reductions none and sum, and 1 /
    (number of elements) for mean.

    Source: the gradient of torch.nn.functional.binary_cross_entropy_with_logits.
    """


@prototype(dtypes=floating, backward="diopiSigmoidFocalLossBackward")
def diopiSigmoidFocalLoss(
    ctx: Context, out: Out, inputs: In, targets: Sized, alpha: f32, gamma: Focus, reduction: Reduction
):
    """Compute the focal loss α_t · (1 − p_t)^gamma · BCE(x, t) of the logit x = inputs and the label t = targets.

    - p_t = p·t + (1 − p)·(1 − t), where p = σ(x) = 1/(1 + e⁻ˣ) is the predicted probability of the label 1.
    - α_t = alpha·t + (1 − alpha)·(1 − t), or 1 if alpha is negative.
    - BCE is the loss of `diopiBCEWithLogits` without weights. Where that loss is unspecified, the focal loss is
      unspecified too.

    inputs and targets are floating tensors of the same shape. The labels are normally 0 or 1. The reduction mean
    divides by the number of elements.

    Source: Lin et al., "Focal Loss for Dense Object Detection", 2017; torchvision.ops.sigmoid_focal_loss.
    """


@prototype(dtypes=floating)
def diopiSigmoidFocalLossBackward(
    ctx: Context,
    grad_output: MutableIn,
    input: Sized,
    target: Sized,
    grad_input: Out,
    gamma: Focus,
    alpha: f32,
    reduction: Reduction,
):
    """Compute the gradient of `diopiSigmoidFocalLoss` with respect to its inputs.

    The order of the arguments differs from that of other gradient functions: grad_output comes first, the result
    grad_input fourth, and gamma before alpha.

    The gradient is the derivative of the forward formula with respect to x, times w·grad_output. With the notation of
    `diopiSigmoidFocalLoss`, the derivative for t = 0 or t = 1 is α_t · (1 − p_t)^gamma · (2t − 1) · (gamma·p_t·ln p_t −
    (1 − p_t)). w is 1 for the reductions none and sum, and 1 / (number of elements) for mean.

    Source: the gradient of torchvision.ops.sigmoid_focal_loss.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=CLASS_OR_PROBABILITY_DTYPES,
    beyond_pytorch=INT32_CLASSES,
    ignored=[IGNORES_IGNORE_INDEX],
    backward="diopiCrossEntropyLossBackward",
)
def diopiCrossEntropyLoss(
    ctx: Context,
    out: Out,
    input: In,
    target: Sized,
    weight: Sized | None,
    reduction: Reduction,
    ignore_index: i64,
    label_smoothing: Annotated[f64, AtMostOne()],
):
    """Compute the cross entropy between the logits `input` and a target of classes or probabilities.

    - input: (N, C, d…) of rank 2 or more, or (C). l is the log-softmax of input along the axis of the C classes.
    - target: class indices, in the shape of input without the class axis. If the dtype of target is floating, target
      contains probabilities instead, in the shape of input.
    - weight: (C), the weights of the classes; NULL means 1 for all of them.

    Class indices: the loss of an element with class y is −weight_y·l_y. With a label_smoothing ε, it is (1 −
    ε)·(−weight_y·l_y) + ε/C·Σ_c(−weight_c·l_c). The loss is 0 if y = ignore_index, which need not be a class. For
    reduction mean, the sum of the losses is divided by Σ weight_y over the elements that are not ignored. If all
    elements are ignored, the mean is NaN.

    Probabilities: the loss of an element with the probabilities q is −Σ_c weight_c·q_c·l_c. With a label_smoothing ε, q
    is replaced by (1 − ε)·q + ε/C. ignore_index is not used. For reduction mean, the sum of the losses is divided by
    their number.

    A negative ε counts as 0. For reduction none, out has the shape of input without the class axis. Errors:
    label_smoothing above 1, shapes that do not fit.

    Source: torch.nn.functional.cross_entropy.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=CLASS_OR_PROBABILITY_DTYPES,
    beyond_pytorch=INT32_CLASSES,
    ignored=[IGNORES_IGNORE_INDEX],
)
def diopiCrossEntropyLossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    target: Sized,
    weight: Sized | None,
    reduction: Reduction,
    ignore_index: i64,
    label_smoothing: Annotated[f64, AtMostOne()],
):
    """Compute the gradient of `diopiCrossEntropyLoss` with respect to the logits `input`.

    Let q be the probabilities of an element after label smoothing. For class indices, q is the smoothed one-hot vector
    of the class, and 0 for an ignored class. The loss of the element is then −Σ_c a_c·l_c with a_c = weight_c·q_c. Its
    gradient is grad_input_c = (softmax(input)_c·Σ_k a_k − a_c)·w·grad_output. For reduction mean, w is 1 divided by the
    divisor that `diopiCrossEntropyLoss` uses. For none and sum, w is 1.

    Source: the gradient of torch.nn.functional.cross_entropy.
    """


@prototype(dtypes=floating, argument_dtypes=CLASS_DTYPES, beyond_pytorch=INT32_CLASSES, backward="diopiNLLLossBackward")
def diopiNLLLoss(
    ctx: Context, out: Out, input: In, target: Sized, weight: Sized | None, reduction: Reduction, ignore_index: i64
):
    """Compute the negative log likelihood −weight_y · input_y of the target class y.

    - input: log-probabilities, (N, C, d…) of rank 2 or more, or (C).
    - target: the classes, (N, d…); 0-d if input is (C).
    - weight: (C), the weights of the classes; NULL means 1 for all of them.

    The loss is 0 where y = ignore_index, which need not be a class. The reduction mean divides the sum of the losses by
    Σ weight_y over the elements that are not ignored. If all elements are ignored, the mean is NaN. For the reduction
    none, out has the shape of target. Shapes that do not fit are an error.

    Source: torch.nn.functional.nll_loss.
    """


@prototype(
    dtypes=floating, argument_dtypes=CLASS_DTYPES, beyond_pytorch=INT32_CLASSES, ignored=[IGNORES_INPUT_ELEMENTS]
)
def diopiNLLLossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    target: Sized,
    weight: Sized | None,
    reduction: Reduction,
    ignore_index: i64,
):
    """Compute the gradient of `diopiNLLLoss` with respect to its input.

    The gradient is −weight_y · w·grad_output at the target class y, and 0 at all other classes. It is 0 at all classes
    where y = ignore_index. For the reduction mean, w is 1 / Σ weight_y over the elements that are not ignored; this
    function computes the sum again. For none and sum, w is 1.

    Source: torch.ops.aten.nll_loss_backward.
    """


@prototype(
    dtypes=floating, argument_dtypes=CLASS_DTYPES, beyond_pytorch=INT32_CLASSES, backward="diopiNLLLossV2Backward"
)
def diopiNLLLossV2(
    ctx: Context,
    out: Out,
    totalWeight: Out | None,
    input: In,
    target: Sized,
    weight: Sized | None,
    reduction: Reduction,
    ignore_index: i64,
):
    """Compute `diopiNLLLoss`, and also the total weight of the elements that are not ignored.

    totalWeight has one element, of shape () or (1), in the dtype of input. It is Σ weight_y over the elements that are
    not ignored, or their number if weight is NULL. For the reduction none it is 0, unless input has shape (C).

    Source: torch.ops.aten.nll_loss_forward.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=CLASS_DTYPES,
    beyond_pytorch=INT32_CLASSES,
    ignored=[
        IGNORES_INPUT_ELEMENTS,
        Ignored(("totalWeight",), "only a mean is divided by it", {"reduction": (Reduction.none, Reduction.sum)}),
    ],
)
def diopiNLLLossV2Backward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    target: Sized,
    weight: Sized | None,
    totalWeight: Sized,
    reduction: Reduction,
    ignore_index: i64,
):
    """Compute the gradient of `diopiNLLLossV2` with respect to its input.

    The formula is that of `diopiNLLLossBackward`, but for the reduction mean, w is 1 / totalWeight.

    Source: torch.ops.aten.nll_loss_backward.
    """


@prototype(dtypes=wide, argument_dtypes=LABEL_DTYPES, backward="diopiCTCLossBackward")
def diopiCTCLoss(
    ctx: Context,
    out: Out,
    neg_log_likelihood: Out,
    log_alpha: Out,
    log_probs: In,
    targets: In,
    input_lengths: InputLengths,
    target_lengths: TargetLengths,
    blank: Blank,
    reduction: Reduction,
    zero_infinity: boolean,
):
    """Compute the loss of connectionist temporal classification (CTC).

    The loss of a sample is −ln of the probability of its target. This probability is the sum of the probabilities of
    all alignments of the target with the steps of the sample.

    - log_probs: (T, N, C) for T steps, N samples and C classes, a log-softmax along C.
    - targets: (N, S), or one axis with the targets of all samples one after the other, without padding. No target
      contains the class `blank`.
    - input_lengths, target_lengths: (N), the numbers of steps and of target classes of each sample. They are in device
      or host memory.

    Let y be the target of sample n, and U its length. Let y′ be y with blanks between its classes and at both ends:
    blank, y₁, blank, …, y_U, blank. Its length is 2U + 1. Let p_t(c) = exp(log_probs[t, n, c]). Let α_t(s) be the sum
    of the probabilities of all paths of the steps 0 … t that end in y′_s:

    - α₀(s) = p₀(y′_s) for s < 2, and 0 for all other s.
    - α_t(s) = (α_{t−1}(s) + α_{t−1}(s − 1) + α_{t−1}(s − 2)) · p_t(y′_s). The sum omits α_{t−1}(s − 2) if y′_s is blank
      or equals y′_{s−2}.

    Results:

    - log_alpha: (N, T, 2·max U + 1). Element [n, t, s] is ln α_t(s), which is −∞ if there is no path. Elements at t ≥
      input length and at s > 2U are not specified.
    - neg_log_likelihood: (N), the losses −ln(α(2U) + α(2U − 1)) with α of the last step. The loss is ∞ if no alignment
      exists. For input length 0, it is 0 if U = 0, and ∞ otherwise.
    - out: for reduction none, the losses in shape (N). For mean, the average over the samples of loss / max(U, 1). For
      sum, the sum of the losses. For mean and sum, the shape is () or (1).

    If zero_infinity is true, infinite losses count as 0 in out, but not in neg_log_likelihood. For reduction none, both
    may be the same tensor, which then contains ∞.

    The following are errors:

    - blank outside [0, C)
    - input lengths outside [0, T], or target lengths outside [0, S]
    - for `targets` with one axis, target lengths whose sum differs from its size
    - a number of input lengths or target lengths other than N

    Source: Graves et al., "Connectionist Temporal Classification", 2006; torch.nn.functional.ctc_loss.
    """


@prototype(dtypes=wide, argument_dtypes=LABEL_DTYPES)
def diopiCTCLossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    log_probs: Sized,
    targets: In,
    input_lengths: InputLengths,
    target_lengths: TargetLengths,
    neg_log_likelihood: Sized,
    log_alpha: Sized,
    blank: Blank,
    reduction: Reduction,
    zero_infinity: boolean,
):
    """Compute the gradient of `diopiCTCLoss` with respect to the logits, whose log-softmax is log_probs.

    grad_input has the shape (T, N, C) of log_probs. With the notation of `diopiCTCLoss`:

    - grad_input[t, n, c] = (p_t(c) − P) · w · grad_output. The gradient is 0 at steps t ≥ input length.
    - P is the probability that an alignment has class c at step t, on the condition that the target is correct. It is Σ
      α_t(s)·β_t(s) / p_t(c) over all s with y′_s = c, divided by exp(−neg_log_likelihood).
    - β_t(s) is computed like α_t(s), but from the last step to the first.
    - w is 1 for none and sum, and 1 / (N · max(U, 1)) for mean.

    For a sample with infinite loss, the gradient is 0 if zero_infinity is true, and NaN otherwise. Errors: the same as
    in `diopiCTCLoss`.

    Source: equation 16 of the paper named in `diopiCTCLoss`; torch.ops.aten._ctc_loss_backward.
    """
