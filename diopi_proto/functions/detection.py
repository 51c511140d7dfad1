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
    """Suppress non-maximum boxes and return the positions of the retained boxes, highest confidence first.

    - boxes: (N, 4), where N may be 0.
    - confidence: (N), in the dtype of boxes.
    - *out: int64, one axis.

    The boxes are visited in descending order of confidence. Boxes of equal confidence are visited in ascending order of
    position. A box is retained unless its IoU with a retained box before it is greater than iou_threshold.

    IoU is the area of the intersection divided by the area of the union. A box has the area (x2 − x1)·(y2 − y1). If
    both boxes have area 0, neither suppresses the other. Tensors of any other shape are an error.

    Source: torchvision.ops.nms.
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
    """Divide every region of the features into bins, and return the mean of bilinear samples in each bin.

    - input: (N, C, H, W), the features of N samples.
    - rois: (K, 5), in the dtype of input. Each row is the index of a sample and a box (x1, y1, x2, y2).
    - out: (K, C, pooled_height, pooled_width).

    The coordinates of a box are multiplied by spatial_scale. If `aligned` is true, ½ is then subtracted from them.
    Otherwise, the width and the height of the box are raised to at least 1. The box is divided into pooled_height ×
    pooled_width equal bins.

    A bin is divided into g_h × g_w equal cells, with a sample at the center of each cell. g_h and g_w are
    sampling_ratio if it is positive. Otherwise, they are ⌈box height / pooled_height⌉ and ⌈box width / pooled_width⌉. A
    bin without samples gives 0.

    A sample is interpolated bilinearly between the four elements around it. Samples outside [−1, H] × [−1, W] are 0. A
    sample within these limits, but before the first or after the last element of an axis, has the value at the border.

    Source: He et al., "Mask R-CNN", 2017; torchvision.ops.roi_align.
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
    """Compute the gradient of `diopiRoiAlign` with respect to its features; the regions have no gradient.

    - grad: (K, C, pooled_height, pooled_width), the gradient of the result.
    - out: (batch_size, channels, height, width), the gradient of the features.

    Let g be the gradient of a bin, divided by the number of its samples. Each sample of the bin adds g to the four
    elements around it, multiplied by the weight of the element in the sample. Elements that no sample uses are 0.

    Source: the gradient of torchvision.ops.roi_align.
    """
