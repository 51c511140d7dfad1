"""The reference runtime: HanGuangRT in Python on JAX's CPU devices, and `libhgrt.so`, through which C and C++ call it.

- `cores`: reserves cores across all processes of the machine.
- `devices`: the available devices.
- `allocation`: maps the virtual devices and cores of a group to physical ones.
- `execution`: runs an engine on cores.
- `calls`: the functions of the interface; `service` makes them callable from C, and `build` builds the library.
- `nvdla`: the second interface, which runs engines in the same way.
"""
