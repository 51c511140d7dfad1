"""The built-in reference vendor: every operator in jax.numpy and lax, on the CPU.

The same implementations are the vendor `jax:PLATFORM` on each platform of JAX.
"""

from __future__ import annotations

import jax

from diopi_impl.jax_cpu.device_vendor import JaxVendor
from diopi_impl.jax_cpu.gradients import derive_gradients
from diopi_impl.jax_cpu.jit import end_registration
from diopi_proto.families import load_families

vendor = JaxVendor("jax_cpu", jax.__version__)
"""The vendor, with which the modules of this package register their implementations."""

load_families(__name__)
derive_gradients(vendor)
end_registration()
