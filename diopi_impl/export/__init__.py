"""Export of a Python vendor: `export` builds a `libdiopi_impl.so` that C and C++ frameworks can call.

The library is written in C. Each operator starts Python if the process has no interpreter yet, and calls a function
that `service` created. The dynamic linker finds the framework's runtime, whatever implements it.
"""

from diopi_impl.export.build import ExportError, export

__all__ = ["ExportError", "export"]
