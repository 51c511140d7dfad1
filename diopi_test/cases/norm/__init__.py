"""Normalization layers and vector norms, with their gradients."""

from diopi_test.cases.norm import batch, layer, unit_vectors, vector

__all__ = ["batch", "layer", "unit_vectors", "vector"]
