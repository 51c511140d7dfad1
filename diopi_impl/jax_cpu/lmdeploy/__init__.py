"""The fused kernels of the LMDeploy engine; none of them needs a workspace."""

from diopi_impl.jax_cpu.lmdeploy import attention, kernels, sampling

__all__ = ["attention", "kernels", "sampling"]
