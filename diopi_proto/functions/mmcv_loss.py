"""MMCV's losses: focal loss for sigmoid and softmax probabilities, and chamfer distance.

All floating tensors of a call have one dtype; half precision computes in float32. MIN is the smallest normal float32
number, 2^−126. It keeps logarithms finite. A call with empty inputs succeeds and writes nothing.

Focal losses: `target`, int64 [N], contains classes. `weight` has one number per class, [C], or no elements, which means
weight 1 for all classes. p is the probability that the model predicts. gamma (γ ≥ 0) reduces the weight of examples
that are classified well. alpha (α) balances positive and negative examples. The losses are neither summed nor averaged.
NaN gives NaN. A call is rejected if its shapes do not match.

Source: T.-Y. Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017; the MMCV 1.x operators.
"""

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, index32, index64, position32, same
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, Out, Sized, SizedInOut, Workspace, f32


@prototype(dtypes=floating, argument_dtypes={"target": index64}, backward="diopiSigmoidFocalLossBackwardMmcv")
def diopiSigmoidFocalLossMmcv(
    ctx: Context, output: Out, input: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Compute the focal loss of independent classes from logits.

    input and output are [N, C]. Let p = 1 / (1 + exp(−input)), and let c be the class of an element:

    - If c is the target of the row, the loss is −α·(1 − p)^γ·ln max(p, MIN).
    - Otherwise, the loss is −(1 − α)·p^γ·ln max(1 − p, MIN).

    Targets are in 0 … C. The target C means background: no class is the target. If `weight` has elements, row n is
    multiplied by weight[target[n]], and the target C is not allowed.
    """


@prototype(dtypes=floating, argument_dtypes={"target": index64})
def diopiSigmoidFocalLossBackwardMmcv(
    ctx: Context, grad_input: Out, input: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Compute the derivative of each element of `diopiSigmoidFocalLossMmcv` with respect to its logit.

    grad_input and input are [N, C]. The derivative is not multiplied by an upstream gradient:

    - If c is the target of the row, it is −α·(1 − p)^γ·(1 − p − γ·p·ln max(p, MIN)).
    - Otherwise, it is −(1 − α)·p^γ·(γ·(1 − p)·ln max(1 − p, MIN) − p).

    If `weight` has elements, row n is multiplied by weight[target[n]].
    """


@prototype(dtypes=floating, argument_dtypes={"target": index64}, backward="diopiSoftmaxFocalLossBackwardMmcv")
def diopiSoftmaxFocalLossMmcv(
    ctx: Context, output: Out, softmax: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Compute the focal loss of exclusive classes from softmax probabilities.

    softmax: [N, C], rows with sum 1. output: [N]. Let t = target[n] and p = softmax[n, t]. Then output[n] =
    −α·(1 − p)^γ·ln max(p, MIN), multiplied by weight[t] if `weight` has elements. output[n] is 0 if t < 0. Targets are
    below C.
    """


@prototype(dtypes=floating, argument_dtypes={"target": index64})
def diopiSoftmaxFocalLossBackwardMmcv(
    ctx: Context, grad_input: Out, buff: Workspace, softmax: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Compute the derivatives of the elements of `diopiSoftmaxFocalLossMmcv` with respect to the logits.

    grad_input and softmax are [N, C], and buff is a workspace [N]. The derivatives are not multiplied by an upstream
    gradient. Let t = target[n] and p = softmax[n, t]. Let b = α·(γ·(1 − p)^(γ−1)·p·ln max(p, MIN) − (1 − p)^γ),
    multiplied by weight[t] if `weight` has elements:

    - grad_input[n, c] = b·(1 − softmax[n, c]) for c = t.
    - grad_input[n, c] = −b·softmax[n, c] for all other c.
    - The row n is 0 if t < 0.
    """


@prototype(
    dtypes=floating,
    result={"dist1": same, "dist2": same, "idx1": position32, "idx2": position32},
    backward="diopiChamferDistanceBackwardMmcv",
)
def diopiChamferDistanceMmcv(ctx: Context, dist1: Out, dist2: Out, idx1: Out, idx2: Out, xyz1: In, xyz2: In):
    """Compute the squared distance from each point of either set to the nearest point of the other set.

    - xyz1: [B, n, 2]. xyz2: [B, m, 2], where n, m ≥ 1.
    - dist1: [B, n]. dist1[b, i] is the minimum over j of |xyz1[b, i] − xyz2[b, j]|².
    - idx1: int32 [B, n], the first j with this distance.
    - dist2, idx2: [B, m], the same with both sets exchanged.

    If distances differ only within rounding, any of these points is accepted. A call is rejected if ranks, numbers of
    coordinates or batch sizes differ from these.

    Source: H. Fan et al., "A Point Set Generation Network for 3D Object Reconstruction from a Single Image", CVPR 2017;
    MMCV 1.x chamfer_distance.
    """


@prototype(
    dtypes=floating,
    argument_dtypes={"idx1": index32, "idx2": index32},
    ignored=[Ignored(("grad_xyz1", "grad_xyz2"), "they are zeros on entry", read=Read.value)],
)
def diopiChamferDistanceBackwardMmcv(
    ctx: Context,
    grad_xyz1: SizedInOut,
    grad_xyz2: SizedInOut,
    xyz1: In,
    xyz2: Sized,
    idx1: Sized,
    idx2: Sized,
    grad_dist1: Sized,
    grad_dist2: Sized,
):
    """Compute the gradients of `diopiChamferDistanceMmcv` with respect to both point sets, for fixed nearest points.

    - idx1, idx2: int32, the nearest points, which are results of the forward call.
    - grad_xyz1: [B, n, 2]. grad_xyz2: [B, m, 2]. Both contain zeros on entry, and the call adds to them in any order.

    For every i, let j = idx1[b, i] and d = 2·grad_dist1[b, i]·(xyz1[b, i] − xyz2[b, j]). d is added to grad_xyz1[b, i]
    and subtracted from grad_xyz2[b, j]. Then the same is done with both sets exchanged, with idx2 and grad_dist2.
    """
