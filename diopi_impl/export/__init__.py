"""A Python vendor as a library: `export` builds a `libdiopi_impl.so` that C and C++ frameworks can call.

The library is C: each operator it exports starts Python when there is none in the process yet, and calls a function
that `service` made for it there. It finds the framework's runtime by the dynamic linker, whatever implements it.
"""

from diopi_impl.export.build import ExportError, export

__all__ = ["ExportError", "export"]
