"""A library of Triton kernels that replace operators of PyTorch. It shows how to test such a library.

`enable` replaces the operators on the device under test. Without a GPU, Triton's interpreter runs the kernels on the
CPU. Set TRITON_INTERPRET=1 for this, before Triton is imported. docs/triton_kernels.md explains the example.
"""

from triton_library import elementwise, lookup, products, rows
from triton_library.registration import register


def enable() -> None:
    """Replace the operators of PyTorch on the device under test; the argument of `--torch-setup`."""
    for module in (elementwise, lookup, products, rows):
        register(module.OPERATORS)
