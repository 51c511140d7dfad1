"""How many samples are worked on at a time."""

from __future__ import annotations


def check_step(samples: int, step: int) -> None:
    """ValueError unless all samples are worked on in steps of as many."""
    if samples % max(min(samples, step), 1):
        raise ValueError(f"{samples} samples are not a multiple of steps of {step}")
