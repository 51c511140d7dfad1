"""Attention in all its forms, and what a transformer layer puts around it."""

from diopi_impl.jax_cpu.attention import customized, flash, masked_softmax, multi_head, rms_norm, rotary

__all__ = ["customized", "flash", "masked_softmax", "multi_head", "rms_norm", "rotary"]
