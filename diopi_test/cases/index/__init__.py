"""Functions that read, write or select elements by position, index or mask, and their gradients."""

from diopi_test.cases.index import axis, elements, lists, masks, tables

__all__ = ["axis", "elements", "lists", "masks", "tables"]
