"""Attention in all its forms, and what a transformer layer puts around it."""

from diopi_test.cases.attention import customized, flash, masked_softmax, multi_head, rms_norm, rotary

__all__ = ["customized", "flash", "masked_softmax", "multi_head", "rms_norm", "rotary"]
