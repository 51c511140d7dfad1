"""Cases of `diopiDiffIouRotatedSortVerticesMmcv`, which sorts the corners of intersections around their center.

An intersection has 24 entries for corners, of which a mask marks the valid ones. A template describes cases that differ
only in their element type (`diopi_test.cases.template`).

`TensorSpec.compute` computes a tensor from the arguments before it. A case does not pass arguments whose names start
with `_`; it computes other arguments from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import Values
from diopi_test.cases.domains import uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.mmcv_box.shapes import F64
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, Arguments, CaseTemplate, TemplateFields, register, tensor

Array = NDArray[Any]
"""An array of vertices or of truth values."""
CORNERS = 24
"""The number of entries for corners of an intersection of two rotated boxes: 4 corners of either box, 16 crossings."""


def _valid_mask(counts: Sequence[int]) -> Callable[[Values], Array]:
    """Return a value of `TensorSpec.compute` for the argument `mask`, which marks valid entries.

    Args:
        counts: The numbers of valid entries of the intersections, in rotation.

    Returns:
        The function. The argument `_order` determines which entries are valid.
    """

    def compute(values: Values) -> Array:
        """Return the mask for the argument value `_order`."""
        order = values["_order"].reshape(-1, CORNERS).argsort(-1)
        numbers = np.resize(counts, len(order))
        return np.asarray(order.argsort(-1) < numbers[:, np.newaxis]).reshape(values["_order"].shape)

    return compute


def _vertices_around_center(values: Values) -> Array:
    """Return vertices around the origin, in random order.

    Each of the 24 vertices lies in another twenty-fourth of a turn, so that the order of their directions does not
    depend on rounding. The arguments `_order`, `_directions` and `_radii` provide the random numbers.
    """
    directions = values["_directions"].argsort(-1).argsort(-1)
    angles = (directions + 0.2 + 0.6 * values["_order"]) * 2 * np.pi / CORNERS
    return np.asarray(values["_radii"][..., np.newaxis] * np.stack([np.cos(angles), np.sin(angles)], -1))


def vertex_template(
    label: str, batches: int, intersections: int, counts: Sequence[int], **fields: Unpack[TemplateFields]
) -> CaseTemplate:
    """Return a template of a call that sorts the corners of intersections.

    Args:
        label: The label of the cases.
        batches: The number of batches.
        intersections: The number of intersections per batch.
        counts: The numbers of valid corners of the intersections, in rotation.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    shape, layout = (batches, intersections, CORNERS), fields.get("layout", contiguous)
    arguments: Arguments = {
        "_order": tensor(*shape, domain=uniform(0, 1), dtype=F64),
        "_directions": tensor(*shape, domain=uniform(0, 1), dtype=F64),
        "_radii": tensor(*shape, domain=uniform(0.5, 3), dtype=F64),
        "vertices": tensor(*shape, 2, layout=layout, compute=_vertices_around_center),
        "mask": tensor(*shape, dtype=Dtype.bool, layout=layout, compute=_valid_mask(counts)),
        "num_valid": tensor(
            batches, intersections, dtype=Dtype.int32, layout=layout, compute=lambda values: values["mask"].sum(-1)
        ),
    }
    return CaseTemplate(label, arguments=arguments, **fields)


SORT_TEMPLATES = (
    vertex_template("plain", 2, 5, [4, 6, 3, 8, 5, 7], **SMOKE_IN_ALL_DTYPES),
    vertex_template("few", 2, 6, [0, 1, 2, 3]),
    vertex_template("none", 1, 3, [0], non_discriminating="no entry is valid"),
    vertex_template("triangles", 3, 4, [3]),
    vertex_template("quadrilaterals", 2, 5, [4]),
    vertex_template("octagons", 2, 5, [8]),
    vertex_template("strided", 2, 4, [5, 3, 8, 2], layout=strided),
    vertex_template("transposed", 3, 4, [4, 6, 8, 0, 3], layout=transposed),
    vertex_template("one-batch", 1, 9, [7, 4]),
    vertex_template("one-row", 5, 1, [6, 3]),
    vertex_template("one", 1, 1, [5]),
    vertex_template("many", 4, 60, [4, 6, 3, 8, 5, 7, 2]),
    vertex_template("no-batches", 0, 3, [4]),
    vertex_template("no-rows", 2, 0, [4]),
    vertex_template("many", 7, 311, [4, 6, 3, 8, 5, 7, 2, 0], large=True),
)
"""The templates of `diopiDiffIouRotatedSortVerticesMmcv`. Real intersections have between 0 and 8 valid corners."""

register("diopiDiffIouRotatedSortVerticesMmcv", templates=SORT_TEMPLATES)
