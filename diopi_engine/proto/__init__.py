"""The engine interfaces: tables of functions, types and constants, from which the C headers are generated.

`hgrt` declares HanGuangRT, a C interface. `nvdla` declares the user-mode driver of NVDLA, a C++ class on top of a C
layer. The tables follow the public descriptions of both. Where the descriptions leave something open, this project
decides it and marks the declaration with `is_project_defined`.
"""
