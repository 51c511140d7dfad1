"""Cases of functions that create, move and copy tensors: joins, splits, layout, construction and conversion.

Importing the package registers the cases of all its modules.
"""

from diopi_test.cases.shape import construction, conversion, joins, movement

__all__ = ["construction", "conversion", "joins", "movement"]
