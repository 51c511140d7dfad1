"""Loss functions and their gradients: element by element, over classes, over sequences."""

from diopi_test.cases.loss import classes, elementwise, sequences

__all__ = ["classes", "elementwise", "sequences"]
