"""Boxes and regions of interest: suppression of overlapping boxes, and pooling of features inside boxes.

Boxes are x1, y1, x2, y2 in real coordinates, with x1 ≤ x2 and y1 ≤ y2. Coordinates, weights
and areas are computed in the precision of the boxes, but at least in float32.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, position
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.parameters import Context, In, NewOut, Out, boolean, f64, i64

Overlap = Annotated[f64, ExcludesNumbers(("negative",), "an overlap is never negative")]
"""A threshold for the overlap of boxes (IoU), not negative."""

SpatialScale = Annotated[
    f64, ExcludesNumbers(("zero", "negative"), "the ratio of the sizes of a feature map and an image")
]
"""The size of a feature map divided by the size of its image, positive."""


@prototype(dtypes=floating, result=position, guarantee="exact")
def diopiNms(ctx: Context, out: NewOut, boxes: In, confidence: In, iou_threshold: Overlap):
    """Non-maximum suppression: the positions of the remaining boxes, highest confidence first.

    boxes: (N, 4); confidence: (N), of the dtype of boxes; *out: 1-d, int64. Boxes are visited in descending order of
    confidence. Boxes of equal confidence are visited in order of position. A box remains unless its IoU with an earlier
    remaining box is greater than iou_threshold. IoU = intersection / union of the areas (x2 − x1)·(y2 − y1); if both
    boxes have area 0, neither suppresses the other. N may be 0. Errors: other shapes. Source: torchvision.ops.nms.
    """


@prototype(dtypes=floating, backward="diopiRoiAlignBackward")
def diopiRoiAlign(
    ctx: Context,
    out: Out,
    input: In,
    rois: In,
    spatial_scale: SpatialScale,
    pooled_height: i64,
    pooled_width: i64,
    sampling_ratio: i64,
    aligned: boolean,
):
    """Averages bilinear samples of the features in each of pooled_height × pooled_width bins of every region.

    input: (N, C, H, W); rois: (K, 5), of input's dtype: index of the sample n, then a box; out: (K, C, pooled_height,
    pooled_width). The box is multiplied by spatial_scale. If `aligned` is true, the box is then shifted by −½;
    otherwise its width and height are at least 1. The box is divided into equal bins. Each bin is sampled at the
    centres of a g_h × g_w grid of equal cells. g_h and g_w are sampling_ratio; if that is ≤ 0, they are ⌈height /
    pooled_height⌉ and ⌈width / pooled_width⌉. A bin without samples is 0. A sample at (y, x) interpolates the four
    elements around it. A sample outside [−1, H] × [−1, W] is 0. Between that limit and the first or last element, a
    sample takes the value at the border. Source: He et al., "Mask R-CNN", 2017; torchvision.ops.roi_align.
    """


@prototype(dtypes=floating)
def diopiRoiAlignBackward(
    ctx: Context,
    out: Out,
    grad: In,
    rois: In,
    spatial_scale: SpatialScale,
    pooled_height: i64,
    pooled_width: i64,
    batch_size: i64,
    channels: i64,
    height: i64,
    width: i64,
    sampling_ratio: i64,
    aligned: boolean,
):
    """Gradient of `diopiRoiAlign` with respect to its features; rois have no gradient.

    grad: (K, C, pooled_height, pooled_width); out: (batch_size, channels, height, width), the sum over all samples of
    grad / (samples of the bin) · weight of the element in the sample; 0 where no sample reaches.
    Source: the gradient of torchvision.ops.roi_align.
    """
