"""Functions of random numbers: Threefry (Salmon et al. 2011) with a key derived from seed and offset.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.extend.random import threefry_2x32

from diopi_impl.jax_cpu.registration import implements_random
from diopi_proto.dtypes import is_floating
from diopi_proto.types import Dtype
from lib_rt.dtypes import integer_range, to_numpy


def derive_key(generator: Array) -> Array:
    """Return the key of a generator state: the offset encrypted with the seed; both consist of two 32-bit words."""
    seed, offset = jnp.stack([generator >> 32, generator], axis=1).astype(jnp.uint32)
    return jax.random.wrap_key_data(threefry_2x32(seed, offset), impl="threefry2x32")


def _draw_dtype(dtype: Dtype) -> Any:
    """Return the type in which numbers are drawn: float64 for float64, else float32."""
    return jnp.float64 if dtype is Dtype.float64 else jnp.float32


def _sample_bernoulli(generator: Array, p: Any, shape: tuple[int, ...]) -> Array:
    """Return bools that are true with probability p: never for 0, always for 1."""
    return jax.random.uniform(derive_key(generator), shape, jnp.float64) < p


def _check_probability(p: float) -> None:
    """Raise ValueError unless p is from 0 to 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}, expected a probability from 0 to 1")


@implements_random("diopiDropout", "diopiDropoutInp")
def dropout(input, p, train, generator, *, out):
    """Return the input with elements 0 with probability p, others divided by 1 − p, and the mask (None for NULL).

    Unless `train`, the input is returned unchanged, and no mask.

    Args:
        input: The input.
        p: The probability of 0.
        train: Whether to draw at all.
        generator: The state of the generator.
        out: The specifications of the results.

    Returns:
        The result and the mask, which is true where the element was kept.
    """
    _check_probability(p)
    if not train:
        return input, None
    mask = ~_sample_bernoulli(generator, p, out[1].shape if out[1] else input.shape)
    return jnp.where(mask, input / (1 - p if p < 1 else 1), 0), mask if out[1] else None


@implements_random("diopiRandomInp")
def random(from_, to, generator, *, out):
    """Return random integers in [from_, to): remainders of 64 random bits.

    Without `to` (None), the largest result is the largest integer that the type represents. The probabilities of the
    integers differ by less than 2^−24, relative, if there are fewer than 2^40 integers.
    """
    span = _count_integers(from_, to, out.dtype)
    bits = jax.random.bits(derive_key(generator), out.shape, jnp.uint64)
    return (bits % np.uint64(span) if span < 2**64 else bits).astype(jnp.int64) + from_


def _count_integers(from_: int, to: int | None, dtype: Dtype) -> int:
    """Return the number of integers in [from, to); raise ValueError if there are none or `dtype` lacks one of them."""
    low, high = _exact_integers(dtype)
    last = high if to is None else to - 1
    if not low <= from_ <= last <= high:
        raise ValueError(f"from is {from_} and to {to}, expected from < to and numbers that {dtype.name} represents")
    return last - from_ + 1


def _exact_integers(dtype: Dtype) -> tuple[int, int]:
    """Return the smallest and largest of the consecutive integers that `dtype` represents exactly."""
    if not is_floating(dtype):
        return integer_range(dtype)
    last = 2 ** (jnp.finfo(to_numpy(dtype)).nmant + 1)
    return -last, last


@implements_random("diopiUniformInp")
def uniform(from_, to, generator, *, out):
    """Return random numbers in [from_, to)."""
    dtype = to_numpy(out.dtype)
    largest = float(jnp.finfo(dtype).max)
    if not (-largest <= from_ <= to <= largest and to - from_ <= largest):
        raise ValueError(
            f"from is {from_} and to {to}, expected from <= to and a distance that {out.dtype.name} represents"
        )
    last = np.nextafter(dtype.type(to), dtype.type(from_))  # a number just below `to` may round up to it
    u = jax.random.uniform(derive_key(generator), out.shape, _draw_dtype(out.dtype))
    return jnp.minimum((from_ + u * (to - from_)).astype(dtype), last)


@implements_random("diopiBernoulli")
def bernoulli(input, generator):
    """Return random Booleans that are true with probabilities `input`."""
    return _sample_bernoulli(generator, input, input.shape)


@implements_random("diopiBernoulliInp")
def bernoulli_inp(inout, generator):
    """Return random Booleans that are true with probabilities `inout`."""
    return bernoulli(inout, generator)


@implements_random("diopiBernoulliScalar")
def bernoulli_scalar(p, generator, *, out):
    """Return random Booleans that are true with probability p."""
    _check_probability(p)
    return _sample_bernoulli(generator, p, out.shape)


@implements_random(*(f"diopiNormal{form}" for form in ("", "Inp", "TensorScalar", "ScalarTensor", "Tensor")))
def normal(mean, std, generator, *, out):
    """Return random normal numbers with this mean and standard deviation."""
    if isinstance(std, float) and not std >= 0:
        raise ValueError(f"std is {std}, expected at least 0")
    return mean + std * jax.random.normal(derive_key(generator), out.shape, _draw_dtype(out.dtype))


@implements_random("diopiRandperm")
def randperm(n, generator):
    """Return a random permutation of 0 … n − 1."""
    if n < 0:
        raise ValueError(f"n is {n}, expected at least 0")
    return jax.random.permutation(derive_key(generator), n)


@implements_random("diopiMultinomial")
def multinomial(input, num_samples, replacement, generator):
    """Return `num_samples` categories for each row of input, drawn with the weights in the row.

    Gumbel's trick draws a category: the one with the largest ln(weight) − ln(−ln u), where u is uniform in (0, 1).
    """
    categories = input.shape[-1]
    if num_samples < 1 or (num_samples > categories and not replacement):
        raise ValueError(f"num_samples is {num_samples}, expected 1 to {categories}, or more with replacement")
    logits = jnp.log(input.astype(jnp.float64))
    if not replacement:
        noise = jax.random.gumbel(derive_key(generator), input.shape, jnp.float64)
        return lax.top_k(logits + noise, num_samples)[1]
    samples = jax.random.categorical(derive_key(generator), logits, shape=(num_samples, *input.shape[:-1]))
    return jnp.moveaxis(samples, 0, -1)
