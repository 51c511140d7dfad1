"""Attention in all its forms, and operators around attention: RMS norm, rotary embedding and masked softmax."""

from diopi_test.oracle.reference.attention import customized, flash, masked_softmax, multi_head, rms_norm, rotary

__all__ = ["customized", "flash", "masked_softmax", "multi_head", "rms_norm", "rotary"]
