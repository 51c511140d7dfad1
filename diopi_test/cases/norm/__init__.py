"""Cases of normalization layers and vector norms, with their gradients.

Importing the package registers the cases of all its modules.
"""

from diopi_test.cases.norm import batch, layer, unit_vectors, vector

__all__ = ["batch", "layer", "unit_vectors", "vector"]
