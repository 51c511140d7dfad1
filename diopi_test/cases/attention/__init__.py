"""Cases of the attention functions, masked softmax, RMS norm and rotary embedding."""

from diopi_test.cases.attention import customized, flash, masked_softmax, multi_head, rms_norm, rotary

__all__ = ["customized", "flash", "masked_softmax", "multi_head", "rms_norm", "rotary"]
