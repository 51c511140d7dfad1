"""PyTorch programs as JAX functions: an interpreter of the graph that `torch.export` creates from a module.

The graph is decomposed to Core ATen, the set of operators from which PyTorch composes all others. `operators` and the
neighboring modules implement these operators with `jax.numpy`; `program` interprets the graph. Sizes that depend on the
batch are symbolic dimensions of JAX, which support integer arithmetic.
"""
