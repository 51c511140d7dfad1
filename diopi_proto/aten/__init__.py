"""The operators of ATen, PyTorch's library, and the functions of the standard that serve them.

`table` says which function serves which operator, `mapping` what a call of an operator is as calls of functions.
Neither needs PyTorch: who has it, a tracer or a device, says what its tensors are.
"""
