"""A library that overrides operators of PyTorch on the CPU, as docs/torch_backends.md shows it."""

import torch

library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]  # PyTorch does not annotate it


def neg(x: torch.Tensor) -> torch.Tensor:
    """Return -x, but 0 instead of -0."""
    return 0 - x


def tanh(x: torch.Tensor) -> torch.Tensor:
    """Return the hyperbolic tangent, which is inaccurate near 0, where the difference cancels."""
    return 1 - 2 / (torch.exp(2 * x) + 1)


def enable() -> None:
    """Replace PyTorch's kernels for the CPU."""
    library.impl("neg", neg, "CPU")  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
    library.impl("tanh", tanh, "CPU")  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
