"""A small LLaMA model, decoded with NumPy in float64: the expected tokens for tests of the functions of LMDeploy.

`tests/diopi_impl/test_llama.py` decodes the same model with a vendor's functions and compares the tokens. There is no
cache here: the whole sequence is computed again for each token. The weights are formulas, which the C program of
`tests/vendors` repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BATCH, PROMPT, TIMES = 3, 5, 14
"""The number of sequences, the tokens of each prompt, and the tokens of each sequence with its prompt."""

VOCABULARY, PADDED, WIDTH, INNER, LAYERS = 23, 24, 16, 20, 2
"""The vocabulary, its size padded to the columns of the head, the width of the hidden state and of the feed-forward
network, and the number of layers."""

HEADS, KEYS, SIZE, THETA, EPS = 4, 2, 4, 10000.0, 1e-5
"""The query heads, the key and value heads, the size of each head, the base of the rotary embedding, and the epsilon of
the RMS normalization."""

TEMPERATURE, PENALTY, END = 0.75, 1.25, 7
"""The temperature, the repetition penalty, and the token that ends a sequence."""

TOP_K, TOP_P = 6, 0.875
"""Parameters of sampling: the number of most probable tokens, and the probability that the candidates must reach."""

PROMPTS = np.array([[1, 4, 9], [2, 2, 20], [3, 11, 5], [17, 0, 3], [6, 8, 12]])
"""The tokens of the prompts, of shape (PROMPT, BATCH)."""

BANNED = [[13], [6, 2], [8, 12, 4]]
"""Sequences of tokens that must not occur: the last token is banned where the others precede it."""

STOP = [[4, 1], [21]]
"""Sequences of tokens that end a sequence."""

LIMITS = [13, 11, 12]
"""For each sequence, the position of the token after which it ends at the latest."""

SEEDS = (11, 2**40, 77)
"""The seed of the random generator of each sequence."""

# Each weight tensor has a number, from which its values are derived. The roles in a layer are numbers that are added to
# ten times the number of the layer.
QKV, OUTPUT, GATE, UP, DOWN, NORM, SECOND_NORM, BIAS = range(1, 9)
EMBEDDING, LAST_NORM, HEAD = 0, 100, 101


def weights(number: int, *shape: int, scale: float, mean: float = 0.0) -> Array:
    """Return a weight tensor in float32, whose pseudorandom values lie in mean ± scale.

    Args:
        number: the number of the tensor, which determines its values.
        shape: the shape of the tensor.
        scale: the largest difference from the mean.
        mean: the mean.
    """
    mixed = (np.arange(1, np.prod(shape) + 1, dtype=np.uint64) * 2654435761 + number * 40503) % 2**32
    mixed ^= mixed >> np.uint64(15)
    mixed = mixed * 2246822519 % 2**32
    mixed ^= mixed >> np.uint64(13)
    steps = (mixed % 2001).astype(np.float32) - np.float32(1000)
    return np.asarray(steps * np.float32(scale / 1000) + np.float32(mean)).reshape(shape)


def layer_weights(layer: int) -> dict[int, Array]:
    """Return the weights of a layer by role, for instance `QKV`."""
    first, projected = 10 * layer, (HEADS + 2 * KEYS) * SIZE
    return {
        NORM: weights(first + NORM, WIDTH, scale=0.25, mean=1),
        SECOND_NORM: weights(first + SECOND_NORM, WIDTH, scale=0.25, mean=1),
        QKV: weights(first + QKV, WIDTH, projected, scale=0.75),
        BIAS: weights(first + BIAS, 1, projected, scale=0.25),
        OUTPUT: weights(first + OUTPUT, WIDTH, WIDTH, scale=0.5),
        GATE: weights(first + GATE, WIDTH, INNER, scale=0.5),
        UP: weights(first + UP, WIDTH, INNER, scale=0.5),
        DOWN: weights(first + DOWN, INNER, WIDTH, scale=0.5),
    }


def embedding() -> Array:
    """Return the embedding of each token, of shape (VOCABULARY, WIDTH)."""
    return weights(EMBEDDING, VOCABULARY, WIDTH, scale=1)


def last_norm() -> Array:
    """Return the scale of the RMS normalization after the last layer, of shape (WIDTH,)."""
    return weights(LAST_NORM, WIDTH, scale=0.25, mean=1)


def head() -> Array:
    """Return the matrix that maps hidden states to logits, of shape (WIDTH, PADDED)."""
    return weights(HEAD, WIDTH, PADDED, scale=1)


def _normalize_rms(x: Array, scale: Array) -> Array:
    """Return a vector divided by its root mean square and multiplied by `scale`."""
    return x / np.sqrt((x**2).mean() + EPS) * scale


def _rotate(x: Array, position: int) -> Array:
    """Return a query or key after the rotary embedding, which rotates each pair of numbers by the position's angle."""
    angles = position * THETA ** (-np.arange(0, SIZE, 2) / SIZE)
    pairs = (x[0::2] + 1j * x[1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], -1).reshape(-1)


def _attention(rows: Array, weights: dict[int, Array]) -> Array:
    """Return causal attention with grouped keys and rotary embedding, without the output projection.

    Args:
        rows: the normalized hidden states of shape (time, WIDTH).
        weights: the weights of the layer by role.
    """
    projected = rows @ weights[QKV].astype(float) + weights[BIAS]
    heads = projected.reshape(len(rows), HEADS + 2 * KEYS, SIZE)
    result = np.zeros((len(rows), HEADS, SIZE))
    for time in range(len(rows)):
        for h in range(HEADS):
            key = HEADS + h // (HEADS // KEYS)
            query = _rotate(heads[time, h], time)
            scores = np.array([query @ _rotate(heads[t, key], t) for t in range(time + 1)]) / np.sqrt(SIZE)
            shares = np.exp(scores - scores.max())
            result[time, h] = shares @ heads[: time + 1, key + KEYS] / (shares.sum() + 1e-6)
    return result.reshape(len(rows), -1)


def logits(tokens: Array) -> Array:
    """Return the logits of the next token, of shape (VOCABULARY,), after the tokens of one sequence."""
    x = embedding()[tokens].astype(float)
    for layer in range(LAYERS):
        weights = layer_weights(layer)
        x = x + _attention(np.array([_normalize_rms(row, weights[NORM]) for row in x]), weights) @ weights[OUTPUT]
        normed = np.array([_normalize_rms(row, weights[SECOND_NORM]) for row in x])
        gate = normed @ weights[GATE].astype(float)
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ weights[UP].astype(float))) @ weights[DOWN]
    return np.asarray(_normalize_rms(x[-1], last_norm()) @ head().astype(float))[:VOCABULARY]


def _adjust_logits(raw: Array, tokens: list[int]) -> Array:
    """Return the logits after temperature, repetition penalty and banned words."""
    row = raw / (TEMPERATURE + 1e-6)
    for token in set(tokens):
        row[token] = row[token] * PENALTY if row[token] < 0 else row[token] / PENALTY
    for *begun, last in BANNED:
        if not begun or tokens[-len(begun) :] == begun:
            row[last] = -np.inf
    return row


def _sample_token(row: Array, number: float, method: str) -> int:
    """Sample a token from adjusted logits by adding probabilities in descending order.

    Args:
        row: the adjusted logits.
        number: a random number from (0, 1].
        way: `top-k` restricts the probabilities to the k most probable tokens. `top-p` returns the most probable token
            if its probability is at least top-p.

    Returns:
        The first token at which the sum of the probabilities reaches `number` · top-p.
    """
    order = np.argsort(-row)
    shares = np.exp(row[order] - row[order[0]])
    if method == "top-k":
        shares = shares[:TOP_K] / shares[:TOP_K].sum()
    else:
        shares = shares / (shares.sum() + 1e-6)
        if shares[0] >= TOP_P:
            return int(order[0])
    return int(order[np.argmax(np.cumsum(shares) >= number * TOP_P)])


def decode(numbers: Callable[[int], Array], method: str) -> Array:
    """Decode all sequences until each has ended.

    Args:
        numbers: returns the random number of each sequence for a step; the first token after the prompt is step 0.
        way: the kind of sampling, `top-k` or `top-p`.

    Returns:
        The tokens with the prompts, of shape (time, BATCH).
    """
    tokens, ended = [list(column) for column in PROMPTS.T.tolist()], [False] * BATCH
    for step in range(PROMPT, TIMES):
        random_numbers = numbers(step - PROMPT)
        for b, sequence in enumerate(tokens):
            token = (
                END
                if ended[b]
                else _sample_token(_adjust_logits(logits(np.array(sequence)), sequence), random_numbers[b], method)
            )
            sequence.append(token)
            ended[b] |= token == END or any(sequence[-len(word) :] == word for word in STOP) or step >= LIMITS[b]
        if all(ended):
            break
    return np.array(tokens).T
