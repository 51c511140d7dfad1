"""The backend `diopi` of `torch.compile`: graphs of operators become programs that the vendor compiles.

AOTAutograd traces the forward and the backward pass of a model to graphs of ATen operators. `conversion` translates the
operators to calls of standard functions, `stages` divides a graph into programs and operators that run one at a time,
and `backend` registers the backend in PyTorch.
"""
