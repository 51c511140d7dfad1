"""Cases of functions that read or write elements at positions or where a mask is true, and of their gradients."""

from diopi_test.cases.index import axis, elements, lists, masks, tables

__all__ = ["axis", "elements", "lists", "masks", "tables"]
