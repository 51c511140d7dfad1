"""The vendor `torch_blocks:vendor`: PyTorch's CPU as `torch:DEVICE` would use an accelerator.

Its memory is not addressable by the host, so that data are copied, which `torch:cpu` avoids.
"""

import torch

from diopi_impl.torch_cpu import vendor as torch_cpu

vendor = torch_cpu.on_device("torch:blocks", torch.device("cpu"))
