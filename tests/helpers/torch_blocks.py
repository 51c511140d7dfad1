"""The vendor `torch:cpu` with memory that the host does not address, as on an accelerator: `torch_blocks:vendor`."""

import torch

from diopi_impl.torch_cpu import vendor as torch_cpu

vendor = torch_cpu.on_device("torch:blocks", torch.device("cpu"))
