"""Seeded generators of PyTorch's current device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def seeded_generator(numbers: Sequence[int]) -> torch.Generator | None:
    """Return a generator of the current device that is seeded with a hash of numbers.

    The seed is a hash because PyTorch uses only 32 bits of a seed.

    Args:
        numbers: The state of the caller's generator, and whatever distinguishes several draws of a call.

    Returns:
        The generator. None if the device supports only its default generator, which is then seeded.
    """
    seed, device = int(np.random.SeedSequence(numbers).generate_state(1)[0]), torch.get_default_device()
    try:
        return torch.Generator(device).manual_seed(seed)
    except RuntimeError:
        torch.get_device_module(device).manual_seed(seed)
        return None
