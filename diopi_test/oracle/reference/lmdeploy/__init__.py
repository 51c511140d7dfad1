"""The fused kernels of LMDeploy, an engine for serving language models."""

from diopi_test.oracle.reference.lmdeploy import attention, kernels, sampling

__all__ = ["attention", "kernels", "sampling"]
