"""The operators of ATen (PyTorch's library of operators), and the standard functions that implement them.

- `table` states which function implements which operator.
- `mapping` translates a call of an operator to calls of functions.
- `autoload` imports the device with PyTorch, if an environment variable requests a watch or CUDA names.

No module imports PyTorch. Their callers, a tracer and a device, provide the tensors.
"""
