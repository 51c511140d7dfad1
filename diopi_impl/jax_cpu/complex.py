"""Complex numbers from real ones, and their parts."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor


@vendor.implements("diopiComplex")
def complex_(real: Array, imag: Array) -> Array:
    return lax.complex(*jnp.broadcast_arrays(real, imag))


@vendor.implements("diopiPolar")
def polar(abs: Array, angle: Array) -> Array:
    return lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle))


@vendor.implements("diopiConj")
def conj(input: Array) -> Array:
    return jnp.conj(input) if jnp.iscomplexobj(input) else input


@vendor.implements("diopiReal")
def real(input: Array) -> Array:
    return jnp.real(input)


@vendor.implements("diopiImag")
def imag(input: Array) -> Array:
    return jnp.imag(input)
