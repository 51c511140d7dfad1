"""The operators of ATen (PyTorch's library of operators), and the standard functions that implement them.

- `table` states which function implements which operator.
- `mapping` translates a call of an operator to calls of functions.
- `autoload` starts a watch when PyTorch is imported, if the environment requests it.

No module imports PyTorch. Their callers, a tracer and a device, provide the tensors.
"""
