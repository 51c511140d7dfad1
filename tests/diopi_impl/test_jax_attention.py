"""Attention of jax_cpu: block sizes, reproducible dropout, memory use, and invalid calls."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from implementations import with_all_parameters
from memory import assert_little_memory
from sampling import sampled

from diopi_impl.jax_cpu import llm, sparse
from diopi_impl.jax_cpu.attention import core, customized, flash, rms_norm, rotary

Array = np.ndarray[Any, Any]
STATE = np.array([5, 0], np.uint64)
NUMBERS = {
    "p_dropout": 0.0,
    "softmax_scale": 0.5,
    "is_causal": False,
    "window_size_left": -1,
    "window_size_right": -1,
}


@pytest.fixture
def tensors() -> list[Array]:
    """Return queries, keys, values and a gradient; two heads of queries share a head of keys."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=(2, 11, heads, 4)).astype(np.float32) for heads in (4, 2, 2, 4)]


def forward(q: Any, k: Any, v: Any, **numbers: Any) -> Any:
    """Return the results of `flash_attention` with the standard's order of arguments."""
    return flash.flash_attention(jnp.asarray(STATE), q, k, v, None, **{**NUMBERS, **numbers})


def backward(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, **numbers: Any) -> Any:
    """Return the gradients of `flash_attention_backward`."""
    state = jnp.asarray(STATE)
    return flash.flash_attention_backward(g, state, q, k, v, None, out, lse, **{**NUMBERS, **numbers})


MASKS = [{}, {"is_causal": True}, {"window_size_left": 3, "window_size_right": 2}]


@pytest.mark.parametrize(("block", "numbers"), sampled(product([1, 2, 5, 11], MASKS), 1, slow=2))
def test_attention_does_not_depend_on_block_size(
    tensors: list[Array], block: int, numbers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    *inputs, g = map(jnp.asarray, tensors)
    at_once = forward(*inputs, **numbers)
    gradients = backward(g, *inputs, *at_once, **numbers)
    monkeypatch.setattr(core, "BLOCK", block)
    for actual, reference in zip(at_once, forward(*inputs, **numbers), strict=True):
        np.testing.assert_allclose(actual, reference, rtol=2e-5, atol=1e-6)
    for actual, reference in zip(gradients, backward(g, *inputs, *at_once, **numbers), strict=True):
        np.testing.assert_allclose(actual, reference, rtol=2e-5, atol=2e-6)


def test_gradient_replays_the_dropout_of_the_forward_call(tensors: list[Array]) -> None:
    *inputs, g = tensors
    numbers = {"p_dropout": 0.4}

    @jax.jit  # compiles one program instead of one per operation
    def compute_gradients(wide: Any, *qkv: Any) -> Any:
        """Return the gradients of the function under test, and those that JAX derives from the forward function."""
        found = backward(wide, *qkv, *forward(*qkv, **numbers), **numbers)
        return found, jax.vjp(lambda *x: forward(*x, **numbers)[0], *qkv)[1](wide)

    with jax.enable_x64(True):
        q, k, v, wide = (jnp.asarray(x, jnp.float64) for x in (*inputs, g))
        found, expected = compute_gradients(wide, q, k, v)
    for actual, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, reference, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_customized_gradient_replays_the_saved_dropout(tensors: list[Array]) -> None:
    *inputs, g = tensors
    numbers = {**NUMBERS, "p_dropout": 0.4, "head_num": 4, "input_layout": "BSND"}
    with jax.enable_x64(True):
        q, k, v, wide = (jnp.asarray(x, jnp.float64) for x in (*inputs, g))
        state = jnp.asarray(STATE)

        def result(*x: Any) -> Any:
            return customized.customized_flash_attention(state, *x, None, None, **numbers)

        out, mask, *records = result(q, k, v)
        saved = out, None, mask, *records
        backward = with_all_parameters(customized.customized_flash_attention_backward)
        found = backward(wide, q, k, v, None, *saved, **numbers)
        expected = jax.vjp(lambda *x: result(*x)[0], q, k, v)[1](wide)
    assert mask.shape == (-(-2 * 4 * 11 * 11 // 128) * 16,)
    for actual, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            actual, reference, rtol=1e-5, atol=1e-6
        )  # the logarithms of sums are saved in float32


# Memory


@pytest.mark.parametrize("size", sampled([64, 80, 128], 1))
def test_attention_over_2048_rows_needs_limited_memory(size: int) -> None:
    q, k = (jax.ShapeDtypeStruct((1, 2048, heads, size), jnp.float32) for heads in (32, 8))
    lse = jax.ShapeDtypeStruct((1, 32, 2048), jnp.float32)
    assert_little_memory(partial(forward, is_causal=True), q, k, k)
    assert_little_memory(partial(backward, is_causal=True), q, q, k, k, q, lse)


def test_attention_over_ragged_rows_needs_limited_memory() -> None:
    q, k = (jax.ShapeDtypeStruct((2048, heads, 64), jnp.float32) for heads in (32, 8))
    begins = jax.ShapeDtypeStruct((4,), jnp.int32)

    def packed(q: Any, k: Any, v: Any, of_q: Any, of_k: Any) -> Any:
        """Return the attention of sequences that follow each other without padding."""
        state = jnp.asarray(STATE)
        attention = with_all_parameters(flash.flash_attention_var_len)
        return attention(state, q, k, v, of_q, of_k, None, 1500, 1500, 0.0, 0.5, True, -1, -1)

    assert_little_memory(packed, q, k, k, begins, begins)


# Refusals

ZEROS = jnp.zeros((2, 3, 4, 8))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: rotary.rotary_embedding(jnp.zeros((2, 3)), jnp.zeros(1), jnp.zeros(1), False, False),
            "even number",
        ),
        (lambda: rotary.rotary_embedding_v2(ZEROS, ZEROS, ZEROS, ZEROS, 3), "even number"),
        (lambda: rms_norm.rms_norm(ZEROS, (4, 3), None, None, 0.1), "normalized_shape"),
        (lambda: forward(ZEROS, ZEROS[:, :, :3], ZEROS[:, :, :3]), "do not fit"),
        (lambda: forward(ZEROS, ZEROS, ZEROS, p_dropout=1.5), "probability"),
        (
            lambda: customized.customized_flash_attention(
                STATE, *[ZEROS] * 3, None, None, *NUMBERS.values(), 4, "BDSN"
            ),
            "input_layout is 'BDSN'",
        ),
        (
            lambda: with_all_parameters(llm.matmul_all_reduce)(
                jnp.zeros((2, 3)), jnp.zeros((3, 4)), None, "", "max", 0, 1
            ),
            "'max'",
        ),
        (
            lambda: llm.paged_attention(*[jnp.zeros((1, 12))] * 3, None, (1,), 3, 2, 4, jnp.zeros((1, 1), int), 1),
            "share",
        ),
    ],
)
def test_mismatched_arguments_are_rejected(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_spmm_rejects_other_than_sparse_times_dense() -> None:
    parts = [jnp.array([0, 1]), jnp.array([0]), jnp.ones(1)]
    for inputs in ((jnp.ones((1, 1)), jnp.ones((1, 1))), (parts, parts)):
        with pytest.raises(NotImplementedError, match="sparse"):
            sparse.spmm(*inputs)
    np.testing.assert_array_equal(sparse.spmm([*parts[:2], None], jnp.full((1, 2), 3.0)), [[3.0, 3.0]])
