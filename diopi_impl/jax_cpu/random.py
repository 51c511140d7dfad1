"""Functions that draw random numbers: Threefry (Salmon et al. 2011) with a key made of seed and offset."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.extend.random import threefry_2x32

from diopi_impl.drawing import drawing
from diopi_impl.functional import ResultSpec
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import compiled
from diopi_proto.dtypes import is_floating
from diopi_proto.types import Dtype
from lib_rt.dtypes import to_numpy

_draws = partial(vendor.implements, adapt=drawing(partial(compiled, traced=["generator"])))


def key_of(generator: Array) -> Array:
    """The offset encrypted under the seed, both of two words of 32 bits: one key a state."""
    seed, offset = jnp.stack([generator >> 32, generator], axis=1).astype(jnp.uint32)
    return jax.random.wrap_key_data(threefry_2x32(seed, offset), impl="threefry2x32")


def _wide(dtype: Dtype) -> Any:
    """The type numbers are drawn in: float64 for float64, else float32."""
    return jnp.float64 if dtype is Dtype.float64 else jnp.float32


def _happens(generator: Array, p: Any, shape: tuple[int, ...]) -> Array:
    """True with probability p: never for 0, always for 1."""
    return jax.random.uniform(key_of(generator), shape, jnp.float64) < p


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}, expected a probability from 0 to 1")


def dropout(
    input: Array, p: float, train: bool, generator: Array, *, out: tuple[ResultSpec, ResultSpec | None]
) -> tuple[Array, Array | None]:
    _check_probability(p)
    if not train:
        return input, None
    mask = ~_happens(generator, p, out[1].shape if out[1] else input.shape)
    return jnp.where(mask, input / (1 - p if p < 1 else 1), 0), mask if out[1] else None


@_draws("diopiRandomInp")
def random(from_: int, to: int | None, generator: Array, *, out: ResultSpec) -> Array:
    """The remainder of 64 random bits, indistinguishable from a uniform draw for spans below 2^40."""
    span = _span(from_, to, out.dtype)
    bits = jax.random.bits(key_of(generator), out.shape, jnp.uint64)
    return (bits % np.uint64(span) if span < 2**64 else bits).astype(jnp.int64) + from_


def _span(from_: int, to: int | None, dtype: Dtype) -> int:
    """How many numbers there are to choose from."""
    low, high = _whole_numbers(dtype)
    last = high if to is None else to - 1
    if not low <= from_ <= last <= high:
        raise ValueError(f"from is {from_} and to {to}, expected from < to and numbers that {dtype.name} holds")
    return last - from_ + 1


def _whole_numbers(dtype: Dtype) -> tuple[int, int]:
    """The smallest and the largest of the consecutive whole numbers that `dtype` holds."""
    if dtype is Dtype.bool:
        return 0, 1
    if is_floating(dtype):
        last = 2 ** (jnp.finfo(to_numpy(dtype)).nmant + 1)
        return -last, last
    limits = np.iinfo(to_numpy(dtype))
    return int(limits.min), int(limits.max)


@_draws("diopiUniformInp")
def uniform(from_: float, to: float, generator: Array, *, out: ResultSpec) -> Array:
    dtype = to_numpy(out.dtype)
    largest = float(jnp.finfo(dtype).max)
    if not (-largest <= from_ <= to <= largest and to - from_ <= largest):
        raise ValueError(f"from is {from_} and to {to}, expected from <= to and a distance {out.dtype.name} holds")
    last = np.nextafter(dtype.type(to), dtype.type(from_))  # what rounding may give instead of a number just below `to`
    u = jax.random.uniform(key_of(generator), out.shape, _wide(out.dtype))
    return jnp.minimum((from_ + u * (to - from_)).astype(dtype), last)


@_draws("diopiBernoulli")
def bernoulli(input: Array, generator: Array) -> Array:
    return _happens(generator, input, input.shape)


@_draws("diopiBernoulliInp")
def bernoulli_inp(inout: Array, generator: Array) -> Array:
    return bernoulli(inout, generator)


@_draws("diopiBernoulliScalar")
def bernoulli_scalar(p: float, generator: Array, *, out: ResultSpec) -> Array:
    _check_probability(p)
    return _happens(generator, p, out.shape)


def normal(mean: Any, std: Any, generator: Array, *, out: ResultSpec) -> Array:
    if isinstance(std, float) and not std >= 0:
        raise ValueError(f"std is {std}, expected no negative number")
    return mean + std * jax.random.normal(key_of(generator), out.shape, _wide(out.dtype))


@_draws("diopiRandperm")
def randperm(n: int, generator: Array) -> Array:
    if n < 0:
        raise ValueError(f"n is {n}, expected no negative number")
    return jax.random.permutation(key_of(generator), n)


@_draws("diopiMultinomial")
def multinomial(input: Array, num_samples: int, replacement: bool, generator: Array) -> Array:
    """Gumbel's trick: adding −ln(−ln u) to the logarithms of weights makes the largest a draw."""
    categories = input.shape[-1]
    if num_samples < 1 or (num_samples > categories and not replacement):
        raise ValueError(f"num_samples is {num_samples}, expected 1 to {categories}, or more with replacement")
    logits = jnp.log(input.astype(jnp.float64))
    if not replacement:
        noise = jax.random.gumbel(key_of(generator), input.shape, jnp.float64)
        return lax.top_k(logits + noise, num_samples)[1]
    drawn = jax.random.categorical(key_of(generator), logits, shape=(num_samples, *input.shape[:-1]))
    return jnp.moveaxis(drawn, 0, -1)


for _name in ("diopiDropout", "diopiDropoutInp"):
    _draws(_name)(dropout)
for _name in ("", "Inp", "TensorScalar", "ScalarTensor", "Tensor"):
    _draws(f"diopiNormal{_name}")(normal)
