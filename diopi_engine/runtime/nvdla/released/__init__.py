"""The driver of NVDLA with the binary interface of the released headers: a second `libnvdla_runtime.so`.

- `calls`: the functions and methods, which convert arguments and call those of `diopi_engine.runtime.nvdla`.
- `tensors`: the descriptions of tensors.
- `layer`: the calls of the library's portability layer.
- `service`: makes all of it callable from C; `build` builds the library.
"""
