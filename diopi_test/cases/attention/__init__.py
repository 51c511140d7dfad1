"""Attention in all its forms, and what a transformer layer puts around it."""

from diopi_test.cases.attention import around, forms, masked

__all__ = ["around", "forms", "masked"]
