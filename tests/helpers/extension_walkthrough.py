"""The steps by which the documentation of the PyTorch extension DIPU shows how to find a wrong operator.

The program names CUDA devices only. It prints a title before each step and to stderr what the step reports.
"""

import os
import sys

import torch


def title(text: str) -> None:
    """Print the title of a step to stderr, where the device prints, too."""
    print(f"# {text}", file=sys.stderr, flush=True)


x = torch.arange(6.0).reshape(2, 3).cuda()
image = torch.ones(1, 2, 4, 4).cuda()
convolution = torch.nn.Conv2d(2, 3, 3).cuda()
title("compute")
x + x
convolution(image).sum().backward()
x.add_(1)
x.eq(2)
for level in ("1", "2", "3", "0"):
    title(f"dump level {level}")
    os.environ["DIPU_DUMP_OP_ARGS"] = level
    x + x
