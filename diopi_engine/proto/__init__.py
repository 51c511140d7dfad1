"""What the engine interfaces are: every function, type and constant, as tables from which the C headers are generated.

`hgrt` has HanGuangRT, a C interface; `nvdla` the user-mode driver of NVDLA, a C++ class over a C layer. What their
public descriptions say is declared as they say it; what they leave open is decided here, and marked `ours`.
"""
