"""Loss functions and their gradients.

Reduction of the element losses: none keeps them, mean averages, sum adds up; any other value is an error. mean and sum
go to a 0-d `out`; of no element at all the mean is NaN, the sum 0. In the gradients grad_output has the shape of the
forward result and grad_input the shape and dtype of input; w stands for the factor that the reduction puts before every
element loss: 1 for none and sum, 1 / (number of elements) for mean unless a docstring says otherwise.
All floating tensors of a call have one dtype unless a docstring says otherwise. Classes are int64, int32 or uint8
indices in [0, C). Tensors of a shape or size that does not fit are an error. Errors in values that only the device sees
(a class out of range, a probability outside [0, 1]) may be reported or left undetected, the result then being
unspecified.
"""

from typing import Annotated

from diopi_proto.dtypes import floating, index, index32, numeric, promoted, real, same_as_input, wide
from diopi_proto.facts import AtLeast, AtMostOne, Below, LengthsWithin, SizesFollow
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Broadcast, Context, In, MutableIn, NonNegative, Out, Sized, boolean, f32, f64, i64
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype, Reduction

ANY_TARGET = {"target": real}
ANY_WEIGHT = {"weight": real}
ANY_WEIGHTS = {"weight": real, "pos_weight": numeric}
CLASSES = {"target": (*index, Dtype.uint8)}
CLASSES_OR_PROBABILITIES = {"target": (*index, Dtype.uint8, *floating)}
INT32_CLASSES = {"target": index32}
FORM_OF_INPUT = Ignored(("input",), "it has the shape of the result", read=Read.form)
NO_CLASSES = Ignored(("ignore_index",), "probabilities name no class", {"target": floating})
LABELS = {"targets": index, "input_lengths": index, "target_lengths": index}

Blank = Annotated[i64, AtLeast(0), Below("log_probs", 2)]
InputLengths = Annotated[In, SizesFollow(), LengthsWithin("log_probs", 0)]
TargetLengths = Annotated[In, SizesFollow(), LengthsWithin("targets", -1)]


@prototype(dtypes=floating, argument_dtypes=ANY_TARGET, result=promoted, backward="diopiMSELossBackward")
def diopiMSELoss(ctx: Context, out: Out, input: In, target: Broadcast, reduction: Reduction):
    """Squared error (input − target)², element by element; target is broadcast to input's shape.

    target: of any type; out has the common type of both. Source: torch.nn.functional.mse_loss.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_TARGET, result=same_as_input(1))
def diopiMSELossBackward(
    ctx: Context, grad_input: Out, grad_output: In, input: Broadcast, target: Broadcast, reduction: Reduction
):
    """Gradient of `diopiMSELoss` with respect to its input: 2·(input − target) · w·grad_output.

    Source: torch.ops.aten.mse_loss_backward.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_TARGET, result=promoted, backward="diopiSmoothL1LossBackward")
def diopiSmoothL1Loss(ctx: Context, out: Out, input: In, target: Broadcast, reduction: Reduction, beta: NonNegative):
    """Of d = |input − target|: d²/(2·beta) where d < beta, else d − beta/2; target is broadcast to input's shape.

    target: of any type, but for beta 0 not bool; out has the common type of both. beta 0 gives d itself; a negative
    beta is an error. Source: torch.nn.functional.smooth_l1_loss.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_TARGET, result=same_as_input(1))
def diopiSmoothL1LossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Broadcast,
    target: Broadcast,
    reduction: Reduction,
    beta: NonNegative,
):
    """Gradient of `diopiSmoothL1Loss`: (d/beta where |d| < beta, else sign d) · w·grad_output, d = input − target.

    0 where d is 0, whatever beta. Source: torch.ops.aten.smooth_l1_loss_backward.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_WEIGHT, backward="diopiBCELossBackward")
def diopiBCELoss(ctx: Context, out: Out, input: In, target: Sized, weight: Broadcast | None, reduction: Reduction):
    """Binary cross entropy −weight · (target·ln input + (1 − target)·ln(1 − input)), both logarithms at least −100.

    input, target: probabilities in [0, 1], of one shape; weight: of any type, broadcast to it, NULL means 1. mean
    divides by the number of elements, not by the weights. Source: torch.nn.functional.binary_cross_entropy.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_WEIGHT)
def diopiBCELossBackward(
    ctx: Context,
    grad_input: Out,
    grad_output: In,
    input: Sized,
    target: Sized,
    weight: Broadcast | None,
    reduction: Reduction,
):
    """Gradient of `diopiBCELoss`: weight · (input − target) / max(input·(1 − input), 1e−12) · w·grad_output.

    Source: torch.ops.aten.binary_cross_entropy_backward.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_WEIGHTS, backward="diopiBCEWithLogitsBackward")
def diopiBCEWithLogits(
    ctx: Context,
    out: Out,
    input: In,
    target: Sized,
    weight: Broadcast | None,
    pos_weight: Broadcast | None,
    reduction: Reduction,
):
    """Binary cross entropy of the logit x = input: −weight · (pos_weight·target·ln σ(x) + (1 − target)·ln(1 − σ(x))).

    σ(x) = 1/(1 + e⁻ˣ); the logarithms are computed without overflow, ln σ(x) = min(x, 0) − ln(1 + e^−|x|). input,
    target: one shape; weight, pos_weight: of any type, pos_weight but for bool, broadcast to it, NULL means 1; the
    result for pos_weight 0 in uint8 is unspecified, because PyTorch wraps 0 − 1 around. mean divides by the number of
    elements. The loss of x = −∞, and of x = ∞ with target 1, is unspecified, because PyTorch computes ∞ − ∞. Source:
    torch.nn.functional.binary_cross_entropy_with_logits.
    """


@prototype(dtypes=floating, argument_dtypes=ANY_WEIGHTS)
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
    """Gradient of `diopiBCEWithLogits`: weight · ((1 − t + p·t)·σ(x) − p·t) · w·grad_output.

    t is target, p pos_weight; NULL means 1. Source: the gradient of
    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    """


@prototype(dtypes=floating, backward="diopiSigmoidFocalLossBackward")
def diopiSigmoidFocalLoss(
    ctx: Context, out: Out, inputs: In, targets: Sized, alpha: f32, gamma: f32, reduction: Reduction
):
    """Focal loss α_t · (1 − p_t)^gamma · BCE(x, t) of the logit x = inputs and the target t in {0, 1}.

    p = σ(x); p_t = p·t + (1 − p)·(1 − t); α_t = alpha·t + (1 − alpha)·(1 − t), or 1 where alpha is negative; BCE as
    `diopiBCEWithLogits` without weights. inputs, targets: floating, one shape; mean divides by the number of elements.
    Where that leaves a loss open, so does this function.
    Source: Lin et al., "Focal Loss for Dense Object Detection", 2017; torchvision.ops.sigmoid_focal_loss.
    """


@prototype(dtypes=floating)
def diopiSigmoidFocalLossBackward(
    ctx: Context,
    grad_output: MutableIn,
    input: Sized,
    target: Sized,
    grad_input: Out,
    gamma: f32,
    alpha: f32,
    reduction: Reduction,
):
    """Gradient of `diopiSigmoidFocalLoss`; grad_output comes first, the result fourth, gamma before alpha.

    α_t · (1 − p_t)^gamma · ((2t − 1)·(gamma·p_t·ln p_t − (1 − p_t))) · w·grad_output for t in {0, 1}; in general the
    derivative of the formula given there. Source: the gradient of torchvision.ops.sigmoid_focal_loss.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=CLASSES_OR_PROBABILITIES,
    beyond_pytorch=INT32_CLASSES,
    ignored=[NO_CLASSES],
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
    """Cross entropy of the logits `input` against classes or class probabilities.

    input: (N, C, d…) of rank 2 or more, or (C); l = log-softmax along the class axis. weight: (C), NULL means 1.
    target is floating with input's shape (probabilities), or an index with input's shape less the class axis.
    Classes: the element loss at target class y is −weight_y·l_y, 0 where y = ignore_index, which need not be a class;
    with label_smoothing ε it is (1 − ε)·(−weight_y·l_y) + ε/C·Σ_c(−weight_c·l_c). A negative ε counts as 0.
    mean divides the sum by Σ weight_y over the elements that are not ignored, NaN if there are none.
    Probabilities q: the element loss is −Σ_c weight_c·q_c·l_c with q replaced by (1 − ε)·q + ε/C. ignore_index is not
    used; mean divides by the number of element losses.
    out for none: input's shape less the class axis. Errors: label_smoothing above 1, shapes that do not fit.
    Source: torch.nn.functional.cross_entropy.
    """


@prototype(
    dtypes=floating, argument_dtypes=CLASSES_OR_PROBABILITIES, beyond_pytorch=INT32_CLASSES, ignored=[NO_CLASSES]
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
    """Gradient of `diopiCrossEntropyLoss` with respect to its logits `input`.

    The element loss is −Σ_c a_c·l_c with a_c = weight_c·q_c, q being the smoothed probabilities or, for classes, the
    smoothed one-hot vector, 0 altogether where the class is ignored. Then grad_input_c is
    (softmax(input)_c·Σ_k a_k − a_c) · w·grad_output, w for mean being one over the divisor given there.
    Source: the gradient of torch.nn.functional.cross_entropy.
    """


@prototype(dtypes=floating, argument_dtypes=CLASSES, beyond_pytorch=INT32_CLASSES, backward="diopiNLLLossBackward")
def diopiNLLLoss(
    ctx: Context, out: Out, input: In, target: Sized, weight: Sized | None, reduction: Reduction, ignore_index: i64
):
    """Negative log likelihood −weight_y·input_y of the target class y, 0 where y = ignore_index.

    input: log-probabilities (N, C, d…) of rank 2 or more with target (N, d…), or (C) with target 0-d.
    weight: (C), NULL means 1. mean divides the sum by Σ weight_y over the elements that are not ignored, NaN if there
    are none. out for none: target's shape. Errors: shapes that do not fit. Source: torch.nn.functional.nll_loss.
    """


@prototype(dtypes=floating, argument_dtypes=CLASSES, beyond_pytorch=INT32_CLASSES, ignored=[FORM_OF_INPUT])
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
    """Gradient of `diopiNLLLoss`: −weight_y · w·grad_output at the target class y, 0 elsewhere and where it is ignored.

    w for mean is 1 / Σ weight_y over the elements that are not ignored, computed again here.
    Source: torch.ops.aten.nll_loss_backward.
    """


@prototype(dtypes=floating, argument_dtypes=CLASSES, beyond_pytorch=INT32_CLASSES, backward="diopiNLLLossV2Backward")
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
    """`diopiNLLLoss` that also gives its divisor.

    totalWeight: one element, 0-d or (1), of input's dtype: Σ weight_y over the elements that are not ignored, their
    number without weight; 0 for reduction none, unless input is (C). Source: torch.ops.aten.nll_loss_forward.
    """


@prototype(
    dtypes=floating,
    argument_dtypes=CLASSES,
    beyond_pytorch=INT32_CLASSES,
    ignored=[
        FORM_OF_INPUT,
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
    """Gradient of `diopiNLLLossV2`: as `diopiNLLLossBackward`, w for mean being 1 / totalWeight.

    Source: torch.ops.aten.nll_loss_backward.
    """


@prototype(dtypes=wide, argument_dtypes=LABELS, backward="diopiCTCLossBackward")
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
    """Connectionist temporal classification: minus the log of the summed probability of all alignments of the target.

    log_probs: (T, N, C), log-softmax along C. targets: (N, S), or 1-d with just the targets one after the
    other; none holds `blank`. input_lengths, target_lengths: (N), in device or host memory.
    For sample n with target y of length U let y′ = blank, y₁, blank, …, y_U, blank, of length 2U + 1. log_alpha
    (N, T, 2·max U + 1) at [n, t, s] is the log of the summed probability of all paths of steps 0 … t that end in y′_s,
    −∞ where there is none; α_t(s) = (α_{t−1}(s) + α_{t−1}(s − 1) + α_{t−1}(s − 2)) · p_t(y′_s), the last term only
    where y′_s is neither blank nor y′_{s−2}; α₀ is p₀(y′_s) for s < 2, else 0. Its elements at t ≥ input length or s >
    2U are not specified. neg_log_likelihood (N): −ln(α(2U) + α(2U − 1)) at the last step; ∞ if no alignment fits; for
    input length 0 it is 0 where U = 0, else ∞.
    out: none gives (N), mean the average over N of loss/max(U, 1), sum the sum, as 0-d or (1). zero_infinity counts ∞
    as 0 in out, never in neg_log_likelihood; where both are one tensor (reduction none), ∞ stays.
    Errors: blank outside [0, C); input lengths outside [0, T], target lengths outside [0, S] or, of a 1-d `targets`,
    that do not add up to its size; another number of either than N.
    Source: Graves et al., "Connectionist Temporal Classification", 2006; torch.nn.functional.ctc_loss.
    """


@prototype(dtypes=wide, argument_dtypes=LABELS)
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
    """Gradient of `diopiCTCLoss` with respect to the logits whose log-softmax log_probs is; shape (T, N, C).

    (exp(log_probs) − P) · w·grad_output, where P[t, n, c] is the probability, given the target, that an alignment has
    class c at step t: Σ over y′_s = c of α_t(s)·β_t(s) / p_t(c), over exp(−neg_log_likelihood); β is α run from the
    end. 0 at steps t ≥ input length, and for a sample of infinite loss under zero_infinity (otherwise NaN there).
    w for mean is 1 / (N · max(U, 1)). Errors: as in the forward. Source: equation 16 of the paper named
    there; torch.ops.aten._ctc_loss_backward.
    """
