"""The built-in reference vendor: every operator in jax.numpy and lax, on the CPU."""

from __future__ import annotations

import jax

from diopi_impl.host_runtime import HostRuntime
from diopi_impl.jax_cpu.gradients import derive_gradients
from diopi_impl.jax_cpu.jit import adapt_by_compiling, end_registration, store_programs
from diopi_impl.vendor import Vendor
from diopi_proto.families import load_families

vendor = Vendor(
    "jax_cpu",
    jax.__version__,
    HostRuntime().functions(),
    host_addressable=True,
    adapt=adapt_by_compiling,
    calls_torch=False,
    store_programs=store_programs,
)

load_families(__name__)
derive_gradients(vendor)
end_registration()
