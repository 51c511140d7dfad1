"""Scaled masked softmax and its gradient.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: the fused softmax kernels of Megatron-LM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sums import relative_terms, sum_terms

Array = NDArray[Any]

MASKED_SCORE = -10000.0
"""The value that replaces masked scores; it is finite, so that a row without visible scores has a uniform softmax."""


def _is_masked(shape: tuple[int, ...], mask: Array, fixed_triu_mask: bool) -> Array:
    """Return which scores are masked: scores above the diagonal, or where `mask` is not 0."""
    if fixed_triu_mask:
        return np.arange(shape[-1]) > np.arange(shape[-2])[:, None]
    return mask != 0


@reference("diopiScaledMaskedSoftmax")
def scaled_masked_softmax(input, mask, scale, fixed_triu_mask):
    """Return the softmax over the last axis of scale · input, where masked scores are −10000."""
    scores = np.where(_is_masked(input.shape, mask, fixed_triu_mask), MASKED_SCORE, scale * input)
    e = np.exp(scores - np.max(scores, -1, keepdims=True, initial=-np.inf))
    shares = e / e.sum(-1, keepdims=True)
    # exp turns the rounding error of a scaled score into a relative error of a share in proportion to |score|
    largest = np.max(np.abs(np.where(e > 0, scores, 0)), -1, keepdims=True, initial=0)
    return WithTerms(shares, shares * (relative_terms(e, -1) + largest), signed=True)


@reference("diopiScaledMaskedSoftmaxBackward")
def scaled_masked_softmax_backward(grad_output, output, mask, scale, fixed_triu_mask):
    """Return scale · y · (g − Σ g · y), and 0 at masked scores; y is the result, g is grad_output."""
    weighted = grad_output * output
    gradient = scale * output * (grad_output - weighted.sum(-1, keepdims=True))
    terms = np.abs(scale * output) * sum_terms(weighted, -1, keepdims=True)
    return WithTerms(np.where(_is_masked(output.shape, mask, fixed_triu_mask), 0, gradient), terms)
