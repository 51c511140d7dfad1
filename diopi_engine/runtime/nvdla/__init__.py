"""The user-mode driver of NVDLA in Python, and `libnvdla_runtime.so`, through which C and C++ call it.

- `kernel`: the functions of the portability layer: sessions, devices, `memory` of their heaps, and tasks that run
  engines.
- `driver`: the methods of IRuntime. It uses devices only through the portability layer (`layer`) that the library
  exports.
- `service`: makes both callable from C; `build` builds the library.
"""
