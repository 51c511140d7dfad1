"""The user-mode driver of NVDLA in Python, and `libnvdla_runtime.so`, by which C and C++ call it.

`kernel` has the functions of the portability layer: sessions, devices, `memory` of their heaps, and tasks, which run
engines. `driver` has the methods of IRuntime; it reaches devices through the portability layer alone (`layer`), as the
library exports it. `service` makes both callable from C, and `build` the library.
"""
