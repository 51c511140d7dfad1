"""The reference runtime: HanGuangRT in Python on JAX's CPU devices, and `libhgrt.so`, by which C and C++ call it.

`cores` takes cores machine-wide, `devices` says what there is, `allocation` maps a group's virtual devices and cores to
physical ones, `execution` runs an engine on them. `calls` has the interface's functions, which `service` makes callable
from C, and `build` the library. `nvdla` has the second interface, which runs engines in the same way.
"""
