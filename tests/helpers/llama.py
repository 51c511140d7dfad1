"""A LLaMA with two layers, decoded with NumPy in float64 without a cache: each token needs the whole sequence again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BATCH, PROMPT, TIMES = 3, 5, 14
VOCABULARY, PADDED, WIDTH, INNER, LAYERS = 23, 24, 16, 20, 2
HEADS, KEYS, SIZE, THETA, EPS = 4, 2, 4, 10000.0, 1e-5
TEMPERATURE, PENALTY, END = 0.75, 1.25, 7
TOP_K, TOP_P = 6, 0.875
PROMPTS = np.array([[1, 4, 9], [2, 2, 20], [3, 11, 5], [17, 0, 3], [6, 8, 12]])
"""Tokens by time and sequence."""

BANNED = [[13], [6, 2], [8, 12, 4]]
STOP = [[4, 1], [21]]
LIMITS = [13, 11, 12]
SEEDS = (11, 2**40, 77)

QKV, OUTPUT, GATE, UP, DOWN, NORM, SECOND_NORM, BIAS = range(1, 9)
EMBEDDING, LAST_NORM, HEAD = 0, 100, 101


def weights(number: int, *shape: int, scale: float, mean: float = 0.0) -> Array:
    """Return float32 numbers in mean ± scale.

    They depend on the number of the tensor and the position, as in `llama.c`.
    """
    mixed = (np.arange(1, np.prod(shape) + 1, dtype=np.uint64) * 2654435761 + number * 40503) % 2**32
    mixed ^= mixed >> np.uint64(15)
    mixed = mixed * 2246822519 % 2**32
    mixed ^= mixed >> np.uint64(13)
    steps = (mixed % 2001).astype(np.float32) - np.float32(1000)
    return np.asarray(steps * np.float32(scale / 1000) + np.float32(mean)).reshape(shape)


def layer_weights(layer: int) -> dict[int, Array]:
    """Return the weights of a layer by role."""
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
    return weights(EMBEDDING, VOCABULARY, WIDTH, scale=1)


def last_norm() -> Array:
    return weights(LAST_NORM, WIDTH, scale=0.25, mean=1)


def head() -> Array:
    return weights(HEAD, WIDTH, PADDED, scale=1)


def _normed(x: Array, scale: Array) -> Array:
    """Return a vector after RMS normalization."""
    return x / np.sqrt((x**2).mean() + EPS) * scale


def _rotate(x: Array, position: int) -> Array:
    """Return pairs of numbers, as complex numbers, rotated by the angles of the position."""
    angles = position * THETA ** (-np.arange(0, SIZE, 2) / SIZE)
    pairs = (x[0::2] + 1j * x[1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], -1).reshape(-1)


def _attention(rows: Array, weights: dict[int, Array]) -> Array:
    """Return the result of causal attention with grouped keys and rotary embedding."""
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
    """Return the logits of the token after these tokens of one sequence."""
    x = embedding()[tokens].astype(float)
    for layer in range(LAYERS):
        weights = layer_weights(layer)
        x = x + _attention(np.array([_normed(row, weights[NORM]) for row in x]), weights) @ weights[OUTPUT]
        normed = np.array([_normed(row, weights[SECOND_NORM]) for row in x])
        gate = normed @ weights[GATE].astype(float)
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ weights[UP].astype(float))) @ weights[DOWN]
    return np.asarray(_normed(x[-1], last_norm()) @ head().astype(float))[:VOCABULARY]


def _processed(raw: Array, tokens: list[int]) -> Array:
    """Return the logits after temperature, repetition penalty and banned words."""
    row = raw / (TEMPERATURE + 1e-6)
    for token in set(tokens):
        row[token] = row[token] * PENALTY if row[token] < 0 else row[token] / PENALTY
    for *begun, last in BANNED:
        if not begun or tokens[-len(begun) :] == begun:
            row[last] = -np.inf
    return row


def _sample_token(row: Array, number: float, way: str) -> int:
    """Return the most probable token, or the first one at which the sum of probabilities reaches `number` · top-p.

    The probabilities are added in descending order. With top-k, they are those among the k most probable tokens. With
    top-p, the most probable token is always returned if its probability is at least top-p.
    """
    order = np.argsort(-row)
    shares = np.exp(row[order] - row[order[0]])
    if way == "top-k":
        shares = shares[:TOP_K] / shares[:TOP_K].sum()
    else:
        shares = shares / (shares.sum() + 1e-6)
        if shares[0] >= TOP_P:
            return int(order[0])
    return int(order[np.argmax(np.cumsum(shares) >= number * TOP_P)])


def decoded(numbers: Callable[[int], Array], way: str) -> Array:
    """Return all tokens by time and sequence; `numbers` returns the random numbers of a step."""
    tokens, ended = [list(column) for column in PROMPTS.T.tolist()], [False] * BATCH
    for step in range(PROMPT, TIMES):
        random_numbers = numbers(step - PROMPT)
        for b, sequence in enumerate(tokens):
            token = (
                END
                if ended[b]
                else _sample_token(_processed(logits(np.array(sequence)), sequence), random_numbers[b], way)
            )
            sequence.append(token)
            ended[b] |= token == END or any(sequence[-len(word) :] == word for word in STOP) or step >= LIMITS[b]
        if all(ended):
            break
    return np.array(tokens).T
