"""MMCV's losses: focal loss on sigmoid and softmax probabilities, and chamfer distance.

All floating tensors of a call have one dtype; half precision computes in float32. MIN is the smallest normal float32,
2^−126, which keeps logarithms finite. Empty inputs: success, nothing written.

Focal losses: `target` int64 [N] holds classes; `weight` is one number a class, [C], or has no elements, which is weight
1 for all. p is the probability the model gives, gamma (γ ≥ 0) lowers the weight of well classified examples, alpha (α)
balances positives against negatives. Nothing is summed or averaged. NaN gives NaN. Rejected: shapes that contradict
each other.
Source: T.-Y. Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017; the MMCV 1.x operators.
"""

from diopi_proto.dtypes import floating, index32, index64, position32, same
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import Context, In, Out, Sized, SizedInOut, Workspace, f32
from diopi_proto.prototype import prototype


@prototype(dtypes=floating, argument_dtypes={"target": index64}, backward="diopiSigmoidFocalLossBackwardMmcv")
def diopiSigmoidFocalLossMmcv(
    ctx: Context, output: Out, input: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Focal loss of independent classes, from logits.

    input, output: [N, C]; p = 1 / (1 + exp(−input)). Where c is the target: −α·(1 − p)^γ·ln max(p, MIN); elsewhere:
    −(1 − α)·p^γ·ln max(1 − p, MIN). With weights, row n is multiplied by weight[target[n]].
    Targets lie in 0 … C; C means background, no class at all, and is not allowed together with weights.
    """


@prototype(dtypes=floating, argument_dtypes={"target": index64})
def diopiSigmoidFocalLossBackwardMmcv(
    ctx: Context, grad_input: Out, input: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Derivative of each element of `diopiSigmoidFocalLossMmcv` by its logit; no upstream gradient is applied.

    grad_input, input: [N, C]. Where c is the target: −α·(1 − p)^γ·(1 − p − γ·p·ln max(p, MIN)); elsewhere:
    −(1 − α)·p^γ·(γ·(1 − p)·ln max(1 − p, MIN) − p). With weights, row n is multiplied by weight[target[n]].
    """


@prototype(dtypes=floating, argument_dtypes={"target": index64}, backward="diopiSoftmaxFocalLossBackwardMmcv")
def diopiSoftmaxFocalLossMmcv(
    ctx: Context, output: Out, softmax: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Focal loss of exclusive classes, from softmax probabilities.

    softmax: [N, C], rows that sum to 1; output: [N]. With t = target[n] and p = softmax[n, t]:
    output[n] = −α·(1 − p)^γ·ln max(p, MIN), times weight[t] with weights; 0 where t < 0. Targets are below C.
    """


@prototype(dtypes=floating, argument_dtypes={"target": index64})
def diopiSoftmaxFocalLossBackwardMmcv(
    ctx: Context, grad_input: Out, buff: Workspace, softmax: In, target: Sized, weight: Sized, gamma: f32, alpha: f32
):
    """Derivative of each element of `diopiSoftmaxFocalLossMmcv` by the logits; no upstream gradient is applied.

    grad_input, softmax: [N, C]; buff: workspace [N]. With t = target[n], p = softmax[n, t] and
    b = α·(γ·(1 − p)^(γ−1)·p·ln max(p, MIN) − (1 − p)^γ), times weight[t] with weights:
    grad_input[n, c] = b·(1 − softmax[n, c]) for c = t and −b·softmax[n, c] for the others; the row is 0 where t < 0.
    """


@prototype(
    dtypes=floating,
    result={"dist1": same, "dist2": same, "idx1": position32, "idx2": position32},
    backward="diopiChamferDistanceBackwardMmcv",
)
def diopiChamferDistanceMmcv(ctx: Context, dist1: Out, dist2: Out, idx1: Out, idx2: Out, xyz1: In, xyz2: In):
    """Squared distance from each point of one set to the nearest of the other, both ways.

    xyz1: [B, n, 2]; xyz2: [B, m, 2], n, m ≥ 1. dist1[b, i] = minimum over j of |xyz1[b, i] − xyz2[b, j]|², [B, n];
    idx1 (int32 [B, n]) the first j that attains it; dist2 and idx2, [B, m], the other way round. Of points whose
    distances differ by no more than rounding any is right. Rejected: other ranks, another number of coordinates, sets
    of different batches.
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
    """Gradients of `diopiChamferDistanceMmcv` by both point sets, the nearest points idx1 and idx2 (int32) held fixed.

    grad_xyz1, grad_xyz2: [B, n, 2] and [B, m, 2], zeros on entry, the call adds to them in any order. For every i with
    j = idx1[b, i] and d = 2·grad_dist1[b, i]·(xyz1[b, i] − xyz2[b, j]): grad_xyz1[b, i] takes d, grad_xyz2[b, j] takes
    −d. Then the same with both sets' roles exchanged, by idx2 and grad_dist2.
    """
