"""Normalization layers and vector norms, with their gradients."""

from diopi_test.oracle.reference.norm import batch, layer, vector

__all__ = ["batch", "layer", "vector"]
