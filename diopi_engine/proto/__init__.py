"""The engine interfaces: tables of functions, types and constants, from which the C headers are generated.

`hgrt` declares HanGuangRT, a C interface; `nvdla` the user-mode driver of NVDLA, a C++ class on top of a C layer. The
tables follow the public descriptions. This project decides what these leave open, and marks it with
`is_project_defined`.
"""
