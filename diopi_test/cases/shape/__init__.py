"""Functions that make, move and copy whole tensors: joins, splits, layout, construction and conversion."""

from diopi_test.cases.shape import construction, conversion, joins, movement

__all__ = ["construction", "conversion", "joins", "movement"]
