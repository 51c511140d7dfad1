"""The fused kernels of the LMDeploy engine."""

from diopi_test.oracle.reference.lmdeploy import attention, kernels, sampling

__all__ = ["attention", "kernels", "sampling"]
