"""The backend `diopi` of `torch.compile`: graphs of operators become programs that the vendor compiles.

AOTAutograd traces the forward and the backward pass of a model to graphs of ATen operators. A *program* is a sequence
of calls of standard functions and of rearrangements of arrays, which a vendor compiles and runs as a whole.

- `backend` is the backend that PyTorch calls with a graph.
- `stages` divides a graph into programs and operators that run one at a time.
- `conversion` translates operators to the steps of a program, and `structural` those that only rearrange elements.
- `builder` collects the steps of a program.
"""
