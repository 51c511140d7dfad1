"""Complex numbers from real ones, and their parts.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from diopi_impl.jax_cpu import vendor


@vendor.implements("diopiComplex")
def complex_(real, imag):
    """Return real + i · imag, without an addition that would turn infinities into NaN."""
    return lax.complex(*jnp.broadcast_arrays(real, imag))


@vendor.implements("diopiPolar")
def polar(abs, angle):
    """Return abs · (cos(angle) + i · sin(angle))."""
    return lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle))


@vendor.implements("diopiConj")
def conj(input):
    """Return the complex conjugate."""
    return jnp.conj(input) if jnp.iscomplexobj(input) else input


@vendor.implements("diopiReal")
def real(input):
    """Return the real part."""
    return jnp.real(input)


@vendor.implements("diopiImag")
def imag(input):
    """Return the imaginary part."""
    return jnp.imag(input)
