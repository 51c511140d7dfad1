"""Compare the device with the CPU for PyTorch's own lists of operators, modules and optimizers.

PyTorch has three databases for its tests: `op_db` lists operators, `module_db` modules, and `optim_db` optimizers. Each
entry generates samples, which are arguments for a call. The command `python -m diopi_torch.conformance` calls each
sample on the device and on the CPU, in worker processes, and compares results, gradients and exceptions.
"""
