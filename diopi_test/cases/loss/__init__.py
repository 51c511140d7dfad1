"""Cases of loss functions and their gradients: element by element, over classes, over sequences.

Importing the package registers the cases of all its modules.
"""

from diopi_test.cases.loss import classes, elementwise, sequences

__all__ = ["classes", "elementwise", "sequences"]
