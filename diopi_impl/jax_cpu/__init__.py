"""The built-in reference vendor: every operator in jax.numpy and lax, on the CPU.

The XLA options below make compilation three times cheaper and change no result beyond rounding; set
`DIOPI_JAX_OPTIMIZE=1` to let XLA optimise as it normally does.
"""

from __future__ import annotations

import os

if os.environ.get("DIOPI_JAX_OPTIMIZE") != "1":
    os.environ["XLA_FLAGS"] = " ".join(
        [
            os.environ.get("XLA_FLAGS", ""),
            "--xla_backend_optimization_level=0",
            "--xla_cpu_use_fusion_emitters=false",
        ]
    ).strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

from diopi_impl.families import load_families
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.vendor import Vendor

jax.config.update("jax_enable_x64", True)  # int64 and float64 are element types of the standard

vendor = Vendor("jax_cpu", jax.__version__, HostRuntime().functions(), host_addressable=True, adapt=compiled)

load_families(__name__)
