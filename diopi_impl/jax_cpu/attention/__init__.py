"""Attention in all its forms, RMS norm, rotary embedding and masked softmax."""

from diopi_impl.jax_cpu.attention import customized, flash, masked_softmax, multi_head, rms_norm, rotary

__all__ = ["customized", "flash", "masked_softmax", "multi_head", "rms_norm", "rotary"]
