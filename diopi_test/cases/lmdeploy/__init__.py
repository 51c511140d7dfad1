"""The fused kernels of the LMDeploy engine."""

from diopi_test.cases.lmdeploy import attention, criteria, helpers, layers, penalties, sampling, setup

__all__ = ["attention", "criteria", "helpers", "layers", "penalties", "sampling", "setup"]
