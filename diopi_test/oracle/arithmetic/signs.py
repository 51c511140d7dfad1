"""The directions in which rounding errors move numbers, in eight rounds.

Each element has a pattern of eight bits, one per round. All rounds draw the same patterns, because each round starts a
generator with the same seed. The effects of two errors can cancel: a product does not change if one factor goes up and
the other one goes down. Therefore the first factor of a product moves up in an even number of rounds and the second
factor in an odd number. Their directions then agree in some rounds and differ in others.

In a sum of products, the effects of the errors can nearly cancel in all eight rounds. In a ninth round, each sum
therefore moves as a whole, by the standard deviation of its error (`products`).
"""

from __future__ import annotations

from typing import Literal, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from lib_rt.formats import FloatArray

ROUNDS = 8
"""The number of rounds in which the factors of products move. In the round `ROUNDS`, the sums of products move."""

Parity = Literal[0, 1]
"""Whether an element moves up in an even number of rounds (0) or in an odd number (1)."""


@final
class Signs:
    """Draws the directions of one round."""

    def __init__(self, rng: Generator, number: int) -> None:
        """Start a round.

        Args:
            rng: A new generator, with the same seed in each round.
            number: The number of the round, from 0 to `ROUNDS`. The last one has the patterns of round 0.
        """
        self._rng = rng
        self._number = number

    @property
    def moves_sums(self) -> bool:
        """Whether sums of products move in this round, instead of the factors."""
        return self._number == ROUNDS

    def draw(self, shape: tuple[int, ...], parity: Parity | None = None) -> FloatArray:
        """Return 1 or −1 for each element of an array, independently.

        Args:
            shape: The shape of the array.
            parity: Whether each element moves up in an even or in an odd number of rounds; None for any number.

        Returns:
            The directions in this round.
        """
        patterns = self._rng.integers(0, 1 << ROUNDS, shape, np.uint8)
        if parity is not None:
            patterns = patterns ^ ((np.bitwise_count(patterns) + parity) & 1).astype(np.uint8)
        return _to_directions(patterns, self._number % ROUNDS)


def _to_directions(patterns: NDArray[np.uint8], number: int) -> FloatArray:
    """Return 1 where the bit of a round is set, else −1."""
    return np.where(patterns >> number & 1, 1.0, -1.0)
