"""The functions that generate tensors sample the values that their docstrings specify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import random_generator
from diopi_test.cases.index.positions import mask_values
from diopi_test.cases.layouts import strided
from diopi_test.cases.template import CaseTemplate
from diopi_test.cases.tensors import (
    derive_single_tensor,
    literal,
    mask,
    positions,
)
from diopi_test.oracle.data import plain_values


def draw_values(spec: TensorSpec) -> np.ndarray:
    """Draw the values of a tensor."""
    count = int(np.prod(spec.shape))
    return spec.domain(random_generator("f", "case", "index"), count, spec.dtype).reshape(spec.shape)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_distinct_positions_do_not_repeat_along_the_axis(axis):
    values = draw_values(positions(4, 3, 4, end=5, distinct_along=axis))
    assert values.min() >= 0 and values.max() < 5
    for row in np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis]):
        assert len(set(row)) == len(row)


def test_random_positions_are_within_bounds_and_repeat():
    values = draw_values(positions(70, end=3, low=-4))
    assert set(values) == {-4, -3, -2, -1, 0, 1, 2}


def test_an_empty_axis_has_no_positions():
    assert draw_values(positions(4, 0, end=3, distinct_along=1)).shape == (4, 0)


def test_periodic_mask_is_true_once_per_period():
    assert mask_values(mask(2, 6)).tolist() == [[False, True, False] * 2] * 2
    assert mask_values(mask(2, fill=True)).all() and not mask_values(mask(2, fill=False)).any()


def test_uint8_masks_contain_true_values_other_than_1():
    halves = mask(4, 5, period=2, dtype=Dtype.uint8)
    assert set(np.unique(halves.compute(plain_values({})))) == {0, 3}
    assert set(np.unique(mask(9, period=3, dtype=Dtype.uint8).compute({}))) == {0, 1, 3}


def test_literal_ignores_earlier_arguments():
    spec = literal([[1, 2], [3, 4]], Dtype.int32, strided)
    assert spec.shape == (2, 2) and spec.layout is strided and spec.dtype is Dtype.int32
    assert spec.compute({}).tolist() == [[1, 2], [3, 4]]


def test_a_single_tensor_has_the_shape_and_layout_of_the_template():
    derive = derive_single_tensor(name="grad_output")
    template = replace(CaseTemplate("wide", (2, 9)), layout=strided)
    (name, derived), *remaining = derive(template, Dtype.float16).items()
    assert (name, derived.shape, derived.layout) == ("grad_output", (2, 9), strided) and not remaining
