"""Normalization layers and vector norms, with their gradients."""

from diopi_impl.jax_cpu.norm import batch, layer, vector

__all__ = ["batch", "layer", "vector"]
