"""Cases of matrix products, decompositions, triangular systems and distances, and of their gradients."""

from diopi_test.cases.linalg import affine, decompositions, distances, products, systems  # each registers its cases

__all__ = ["affine", "decompositions", "distances", "products", "systems"]
