"""The number of samples that an implementation processes per step, which is an argument of some functions."""

from __future__ import annotations


def check_step_divides_batch(samples: int, step: int) -> None:
    """Raise ValueError unless steps of `step` samples divide the batch evenly.

    Args:
        samples: The size of the batch.
        step: The number of samples per step. If it is larger than the batch, the batch is a single step.

    Raises:
        ValueError: The last step has fewer samples than the others.
    """
    if samples % max(min(samples, step), 1):
        raise ValueError(f"im2col_step is {step}, expected a divisor of the number of samples, {samples}")
