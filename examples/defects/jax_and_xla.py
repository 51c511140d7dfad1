"""Defects of JAX and of XLA on the CPU.

Each function returns the actual result of a call; its decorator states the call and the expected result.
"""

from __future__ import annotations

import numpy as np

from defects.registry import Array, Library, nan, register_defect

XLA = Library("XLA on the CPU", ("jaxlib", "jax"))
JAX = Library("JAX on the CPU", ("jax", "jaxlib"))


XLA_REPORT = (
    "open: [issue 21461](https://github.com/openxla/xla/issues/21461); for TensorFlow, "
    "[issue 116992](https://github.com/tensorflow/tensorflow/issues/116992)"
)
ONE_NAN = np.where(np.arange(4096) == 2000, nan, 0).astype(np.float32)


@register_defect(
    XLA, "jax.numpy.max of 4,096 float32 numbers, one NaN", np.float32(nan), "numpy.max: NaN is propagated", XLA_REPORT
)
def maximum_of_many() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.max(ONE_NAN))


@register_defect(
    XLA, "jax.numpy.min of 4,096 float32 numbers, one NaN", np.float32(nan), "numpy.min: NaN is propagated", XLA_REPORT
)
def minimum_of_many() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.min(ONE_NAN))


@register_defect(
    JAX,
    "jax.numpy.sinh of float32 67.9282",
    np.float32(np.sinh(np.float64(np.float32(67.9282)))),
    "numpy.sinh; 24 ulp off",
)
def hyperbolic_sine() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.sinh(np.float32(67.9282)))


@register_defect(
    JAX,
    "jax.numpy.cosh of float32 67.9282",
    np.float32(np.cosh(np.float64(np.float32(67.9282)))),
    "numpy.cosh; 24 ulp off",
)
def hyperbolic_cosine() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.cosh(np.float32(67.9282)))


@register_defect(
    JAX,
    "jax.scipy.special.erfinv of float32 -0.99982744",
    np.float32(-2.6559907751),
    "scipy.special.erfinv; 64 ulp off",
)
def inverse_error_function() -> Array:
    import jax

    return np.asarray(jax.scipy.special.erfinv(np.float32(-0.99982744)))
